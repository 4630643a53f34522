"""The photos and films of the ATM sample: where, what is drawn, and what a captioning machine might have said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from samples import papers, views
from samples.drawing import Picture


@dataclass(frozen=True)
class Place:
    """A spot on the map: latitude and longitude in degrees, the address a geocoder gives, the city."""

    spot: tuple[float, float]
    address: str
    city: str


PLACES: dict[str, Place] = {
    "home": Place(
        (53.79321, -1.55612),
        "14 Tannery Lane, Holbeck, Leeds, West Yorkshire, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "bike shop": Place(
        (53.80142, -1.53988),
        "Kestrel Cycles, Corn Row, Leeds, West Yorkshire, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "rescue": Place(
        (53.78515, -1.56231),
        "Holbeck Cat Rescue, Sweet Street, Leeds, West Yorkshire, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "vets": Place(
        (53.78874, -1.55902),
        "Holbeck Vets, Brook Lane, Leeds, West Yorkshire, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "tram stop": Place((41.14068, -8.61544), "Rua do Infante, Ribeira, Porto, Portugal", "Porto, Portugal"),
    "quay": Place((41.14021, -8.61103), "Cais da Ribeira, Ribeira, Porto, Portugal", "Porto, Portugal"),
    "taberna": Place((41.14055, -8.61318), "Taberna do Cais, Rua do Cais, Porto, Portugal", "Porto, Portugal"),
    "workshop": Place((41.15211, -8.63642), "Palacete da Tinta, Massarelos, Porto, Portugal", "Porto, Portugal"),
    "hotel": Place((41.14664, -8.60591), "Casa do Moinho, Rua do Moinho, Porto, Portugal", "Porto, Portugal"),
    "airport": Place((41.23706, -8.67031), "Porto Airport, Maia, Porto, Portugal", "Porto, Portugal"),
    "allotment": Place(
        (53.81203, -1.57911),
        "Fenwick Hill Allotments, Headingley, Leeds, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "race": Place(
        (53.83351, -1.77264),
        "Aire Meadow, Saltaire, Bradford, West Yorkshire, England, United Kingdom",
        "Bradford, United Kingdom",
    ),
    "mill hall": Place(
        (53.79604, -1.53412),
        "Mill Hall, Weir Street, Leeds, West Yorkshire, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "station": Place(
        (53.79502, -1.54771), "Leeds Station, Leeds, West Yorkshire, England, United Kingdom", "Leeds, United Kingdom"
    ),
    "thistle house": Place(
        (55.94112, -3.18025),
        "Thistle House, Sciennes, Edinburgh, Scotland, United Kingdom",
        "Edinburgh, United Kingdom",
    ),
    "castle": Place(
        (55.95021, -3.19722), "Castle Gardens, Edinburgh, Scotland, United Kingdom", "Edinburgh, United Kingdom"
    ),
    "tile shop": Place(
        (53.79011, -1.52245),
        "Aire Tiles, Canal Yard, Leeds, West Yorkshire, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
    "library": Place(
        (53.79907, -1.54395), "Wharfside Map Library, Quayhead, Leeds, England, United Kingdom", "Leeds, United Kingdom"
    ),
    "kettle": Place(
        (53.79882, -1.54226), "Copper Kettle, Quayhead, Leeds, England, United Kingdom", "Leeds, United Kingdom"
    ),
    "pier": Place(
        (54.58932, -3.14218), "Heron Pier, Keswick, Cumbria, England, United Kingdom", "Keswick, United Kingdom"
    ),
    "fell": Place(
        (54.56871, -3.17115), "Ravensgill Fell, Newlands, Cumbria, England, United Kingdom", "Keswick, United Kingdom"
    ),
    "market": Place(
        (53.80011, -1.54901),
        "Christmas Market, Guildhall Square, Leeds, England, United Kingdom",
        "Leeds, United Kingdom",
    ),
}


@dataclass(frozen=True)
class Photo:
    """One photo: its id, place, drawing and derived text; `shift` and `light` make a burst's frames differ."""

    id: str
    place: str | None
    draw: Callable[[], Picture]
    caption: str
    short: str
    tags: str
    ocr: str = ""
    entities: str = ""  # "Kestrel Cycles:organization; Heron 3:product"
    light: str = "day"  # day, room or night: the camera's settings
    shift: tuple[float, float] = (0.0, 0.0)
    bright: float = 1.0


@dataclass(frozen=True)
class Film:
    """One film: its id, place, a drawing for each step, and derived text."""

    id: str
    place: str | None
    draw: Callable[[int], Picture]
    caption: str
    short: str
    tags: str
    ocr: str = ""
    entities: str = ""


def _meter(id: str, reading: str) -> Photo:
    return Photo(id, "home", partial(papers.meter, reading, "K88-204"),
                 "An electricity meter in a cupboard with a row of black digits under the supplier's name.",
                 "electricity meter in a cupboard", "meter, electricity, digits, cupboard",
                 f"BRIGHTWELL {reading} kWh No. K88-204", "Brightwell:organization", "room")  # fmt: skip


FINISH_CLOCK = ["55:57", "55:57", "55:58", "55:59", "55:59", "56:00", "56:01", "56:01", "56:02", "56:02"]

PHOTOS: list[Photo] = [
    _meter("20240106_101512", "04512"),
    Photo("20240113_113020", "bike shop", views.bike_shop,
          "A blue bicycle with a black saddle leans outside a brick shop with a green front.",
          "blue bicycle outside a shop", "bicycle, blue, shop, street, brick", "KESTREL CYCLES",
          "Kestrel Cycles:organization"),
    Photo("20240113_113024", "bike shop", views.bike_shop,
          "A new blue bicycle on the pavement before a shop window, seen from slightly further left.",
          "blue bicycle before a shop window", "bicycle, blue, shop, window", "KESTREL CYCLES",
          "Kestrel Cycles:organization", shift=(9, -4), bright=1.06),
    Photo("20240113_114105", "bike shop", partial(papers.tag, ["KESTREL CYCLES  HERON 3", "KH3-77219"]),
          "Close-up of a white sticker with a code on a blue metal tube.", "sticker on a blue tube",
          "sticker, code, blue, metal, close-up", "KESTREL CYCLES HERON 3 KH3-77219", "Heron 3:product"),
    Photo("20240210_112244", "rescue", views.cat_carrier,
          "A tabby cat looks out through the bars of a blue-green carrier standing on a wooden floor.",
          "tabby cat in a carrier", "cat, tabby, carrier, pet", light="room"),
    Photo("20240210_190310", "home", views.cat_chair,
          "A tabby cat sits upright on a red armchair beside a standing lamp.", "tabby cat on a red armchair",
          "cat, tabby, armchair, red, lamp", light="room"),
    Photo("20240210_190312", "home", partial(views.cat_chair, eyes_open=False),
          "A tabby cat on a red armchair with its eyes closed, apparently content.", "cat dozing on an armchair",
          "cat, tabby, armchair, red, sleep", light="room", shift=(-5, 3)),
    Photo("20240222_163511", "vets", partial(papers.scale, "3.9 kg", "cat", "HOLBECK VETS"),
          "A tabby cat sits on a veterinary scale with a green display.", "cat on a scale", "cat, tabby, scale, vet",
          "3.9 kg HOLBECK VETS", "Holbeck Vets:organization", "room"),
    Photo("20240311_121530", "tram stop",
          partial(papers.ticket, "ELECTRICO DO PORTO", "Linha 1  Infante - Passeio",
                  [("Data", "11-03-2024"), ("Hora", "12:14"), ("Preco", "€6.00"), ("Tipo", "Simples"), ("Carro",
                  "213")],
                  "Obrigado, boa viagem", tint="#b8860b"),
          "A printed tram ticket with a golden head lies on a pale cloth.", "tram ticket",
          "ticket, tram, transport, paper",
          "ELECTRICO DO PORTO Linha 1 Infante - Passeio Data 11-03-2024 Hora 12:14 Preco €6.00 Tipo Simples Carro 213",
          "Linha 1:other", "room"),
    Photo("20240311_193348", "quay", views.bridge,
          "An iron arch bridge over a wide river at dusk with lit houses behind it.", "arch bridge at dusk",
          "bridge, river, dusk, city, lights", light="night"),
    Photo("20240311_193351", "quay", views.bridge,
          "A tall arch bridge crosses a dark river under an orange evening sky.",
          "iron bridge and river in the evening",
          "bridge, river, evening, sky", light="night", shift=(7, 2), bright=0.93),
    Photo("20240311_193355", "quay", partial(views.bridge, 120),
          "A small sailing boat loaded with barrels passes below an arch bridge at dusk.",
          "boat with barrels under a bridge",
          "bridge, river, boat, barrels, dusk", light="night", shift=(-6, 0)),
    Photo("20240312_201204", "taberna", views.sardines,
          "Three grilled sardines with potatoes and half a lemon on a white plate, blue tablecloth.",
          "grilled sardines on a plate", "food, fish, sardines, lemon, plate, dinner", light="room"),
    Photo("20240312_204017", "taberna",
          partial(papers.receipt, "TABERNA DO CAIS", ["Rua do Cais 18, Porto", "12-03-2024   20:38"],
                  [("Sardinhas grelhadas", "€14.50"), ("Salada de batata", "€4.00"), ("Vinho verde, copo", "€5.50"),
                   ("Pao e azeitonas", "€3.50")], ("TOTAL", "€27.50"), ["Mesa 6", "Obrigado e volte sempre"]),
          "A restaurant receipt with four lines on a wooden table.", "restaurant receipt",
          "receipt, restaurant, dinner, paper, table",
          "TABERNA DO CAIS Rua do Cais 18, Porto 12-03-2024 20:38 Sardinhas grelhadas €14.50 Salada de batata"
          " €4.00 Vinho verde, copo €5.50 Pao e azeitonas €3.50 TOTAL €27.50 Mesa 6 Obrigado e volte sempre",
          "Taberna do Cais:organization", "room"),
    Photo("20240313_094310", "workshop",
          partial(papers.whiteboard, "Sala Azul, 13 March",
                  ["09:45  Welcome and coffee", "10:30  Oakes: Mending river charts", "11:15  Break",
                   "11:40  Duarte: Iron gall ink", "12:30  Lunch", "14:00  Visit to the paper mill"]),
          "A whiteboard with a programme of talks in blue ink under a red heading.", "programme on a whiteboard",
          "whiteboard, programme, talks, workshop",
          "Sala Azul, 13 March 09:45 Welcome and coffee 10:30 Oakes: Mending river charts 11:15 Break 11:40"
          " Duarte: Iron gall ink 12:30 Lunch 14:00 Visit to the paper mill", "Sala Azul:location; Duarte:person",
          "room"),
    Photo("20240314_131040", "workshop",
          partial(papers.receipt, "CAFE AZULEJO", ["Massarelos, Porto", "14-03-2024   13:05"],
                  [("Sopa do dia", "€3.20"), ("Tosta mista", "€4.60"), ("Galao", "€2.00")], ("TOTAL", "€9.80"), [
                  "Obrigado"],
                  angle=-4, table=papers.LINEN),
          "A small receipt from a cafe on a pale cloth.", "cafe receipt", "receipt, cafe, lunch, paper",
          "CAFE AZULEJO Massarelos, Porto 14-03-2024 13:05 Sopa do dia €3.20 Tosta mista €4.60 Galao €2.00 TOTAL €9.80"
          " Obrigado", "Cafe Azulejo:organization", "room"),
    Photo("20240315_091500", "hotel",
          partial(papers.receipt, "CASA DO MOINHO", ["Rua do Moinho 4, Porto", "Room 12, 11 to 15 March"],
                  [("4 nights, single room", "€312.00"), ("City tax 4 x €2.00", "€8.00"), ("Breakfast 3 x €8.00",
                  "€24.00")],
                  ("TO PAY", "€344.00"), ["Paid by card, thank you"], angle=1.5, table="#8f6b4a"),
          "A bill with a hotel's name on top, lying on a dark wooden desk.", "hotel bill", "bill, hotel, paper, desk",
          "CASA DO MOINHO Rua do Moinho 4, Porto Room 12, 11 to 15 March 4 nights, single room €312.00 City tax 4"
          " x €2.00 €8.00 Breakfast 3 x €8.00 €24.00 TO PAY €344.00 Paid by card, thank you",
          "Casa do Moinho:organization", "room"),
    Photo("20240315_134812", "airport",
          partial(papers.departures, "DEPARTURES", "13:48",
                  [("14:10", "Lisbon", "12", "On time"), ("14:35", "Madeira", "7", "On time"),
                   ("15:05", "Leeds", "18", "On time"), ("15:20", "Ghent", "9", "Late 15:50")]),
          "A black departure board with orange rows in an airport hall.", "airport departure board",
          "airport, board, departures, flights",
          "DEPARTURES 13:48 14:10 Lisbon 12 On time 14:35 Madeira 7 On time 15:05 Leeds 18 On time 15:20 Ghent 9"
          " Late 15:50",
          "Leeds:location", "room"),
    Photo("20240406_104520", "allotment", partial(views.allotment, "17B"),
          "A painted sign stands before empty brown beds and a small shed under a clear sky.",
          "allotment sign and shed",
          "allotment, garden, sign, shed, spring", "PLOT 17B"),
    _meter("20240407_083015", "05240"),
    Photo("20240420_151210", "allotment",
          partial(views.seed_rows, [("Amber Bell", "#e0902c"), ("Grey Lantern", "#7d9491"), ("Ruby Stem", "#a8324a")]),
          "Three seed packets stand at the ends of freshly sown rows with tiny green shoots.", "seed packets in a bed",
          "garden, seeds, packets, soil, sowing",
          "THISTLEDOWN Amber Bell THISTLEDOWN Grey Lantern THISTLEDOWN Ruby Stem", "Thistledown:organization"),
    Photo("20240519_084455", "race", partial(views.bib, "2718"),
          "A race number is pinned to a green running shirt.", "race number on a shirt", "race, number, running, shirt",
          "AIRE VALLEY 10K 2718 WAVE C START 09:30", "Aire Valley 10K:event"),
    Photo("20240519_103903", "race", partial(views.finish, "56:02", 250),
          "A runner in a green shirt passes under a red finish arch with a clock, people watching behind.",
          "runner at a finish arch", "race, running, finish, clock, crowd", "FINISH AIRE VALLEY 10K 56:02",
          "Aire Valley 10K:event"),
    Photo("20240519_111020", "race", views.medal, "A gold medal on a red and blue ribbon against grass.",
    "medal on a ribbon",
          "medal, ribbon, race, gold", "AIRE VALLEY 10K 2024", "Aire Valley 10K:event"),
    Photo("20240621_181512", "mill hall",
          partial(papers.ticket, "MILL HALL", "The Paper Lanterns",
                  [("Date", "21 June 2024"), ("Row", "F"), ("Seat", "14"), ("Door", "North"), ("Price", "£26.00")],
                  "No. 8841"),
          "A printed concert ticket with a blue head on a pale cloth.", "concert ticket",
          "ticket, concert, music, paper",
          "MILL HALL The Paper Lanterns Date 21 June 2024 Row F Seat 14 Door North Price £26.00 No. 8841",
          "The Paper Lanterns:organization", "room"),
    Photo("20240621_204140", "mill hall", partial(views.stage, 7),
          "Three musicians play on a stage hung with glowing paper lanterns.", "band on a stage with lanterns",
          "concert, stage, lanterns, band, crowd", light="night"),
    Photo("20240621_204143", "mill hall", partial(views.stage, 7, 0.85),
          "A band under paper lanterns in purple light, heads of the crowd in front.", "band under lanterns",
          "concert, lanterns, band, purple", light="night", shift=(-8, 3)),
    Photo("20240625_183230", "home", views.bike_home,
          "A blue bicycle with a yellow basket stands in a yard with potted plants by a red door.",
          "blue bicycle with a yellow basket", "bicycle, blue, basket, yard, door"),
    _meter("20240706_100840", "05779"),
    Photo("20240719_095022", "station",
          partial(papers.departures, "LEEDS", "09:50",
                  [("10:02", "York", "11", "On time"), ("10:15", "Edinburgh", "8", "Exp 10:48"),
                   ("10:21", "Hull", "3", "On time"), ("10:30", "Carlisle", "6", "Exp 10:36")]),
          "A station departure board; one of the trains is expected late.", "station departure board",
          "station, train, board, departures",
          "LEEDS 09:50 10:02 York 11 On time 10:15 Edinburgh 8 Exp 10:48 10:21 Hull 3 On time 10:30 Carlisle 6"
          " Exp 10:36",
          "Leeds:location; Edinburgh:location", "room"),
    Photo("20240719_165530", "thistle house", views.guest_house,
          "A purple door in a grey stone wall beside the painted sign of a guest house.", "guest house door and sign",
          "door, purple, guest house, sign, stone", "THISTLE HOUSE rooms from £72", "Thistle House:organization"),
    Photo("20240720_142210", "castle", views.castle,
    "A castle with a red flag on a rock above a meadow of yellow flowers.",
          "castle on a rock", "castle, rock, flag, flowers, summer"),
    Photo("20240720_142213", "castle", views.castle, "A stone castle on a steep rock under a bright sky.",
          "castle in the sun", "castle, rock, sky", shift=(6, -5), bright=1.05),
    Photo("20240721_121544", "castle",
          partial(papers.receipt, "CASTLE TEA ROOM", ["Castle Gardens, Edinburgh", "21/07/2024   12:11"],
                  [("Scone with jam x 2", "£7.60"), ("Pot of tea for two", "£6.60")], ("TOTAL", "£14.20"), [
                  "Served by Una"],
                  angle=3),
          "A receipt from a tea room on a wooden table.", "tea room receipt", "receipt, tea, cafe, paper",
          "CASTLE TEA ROOM Castle Gardens, Edinburgh 21/07/2024 12:11 Scone with jam x 2 £7.60 Pot of tea for two £6.60"
          " TOTAL £14.20 Served by Una", "Castle Tea Room:organization", "room"),
    Photo("20240722_090512", "thistle house", views.coat_hooks,
          "A hallway rail with hooks: something green and knitted, a yellow raincoat and a key with a red fob.",
          "coats on hooks in a hallway", "hallway, hooks, raincoat, knitwear, key", "5", light="room"),
    Photo("20240810_110320", "home",
          partial(papers.whiteboard, "Kitchen: who?",
                  ["Dunmore        £4,180", "Hartley + Finch  £3,650 + VAT = £4,380",
                  "Marlow          £3,940, from 2 Sept",
                   "Marlow! Ash, her own workshop", "still to do: colour, tiles"], ink="#2e7d4f"),
          "A whiteboard comparing three sums for work in the house, one name with an exclamation mark.",
          "whiteboard comparing prices", "whiteboard, prices, kitchen, plan",
          "Kitchen: who? Dunmore £4,180 Hartley + Finch £3,650 + VAT = £4,380 Marlow £3,940, from 2 Sept Marlow!"
          " Ash, her own workshop still to do: colour, tiles", "Marlow:organization; Dunmore:organization", "room"),
    Photo("20240817_143012", "home", partial(papers.scale, "1.42 kg", "tomatoes", "kitchen scale"),
          "A blue bowl heaped with small orange tomatoes on a digital scale.", "tomatoes on a kitchen scale",
          "tomatoes, harvest, scale, bowl", "1.42 kg kitchen scale", light="room"),
    Photo("20240818_101055", "home",
          partial(views.swatches, [("Tern Grey", "#a9b0b0"), ("Quince", "#e0c25a"), ("Old Moss", "#6d7f4a")], 2),
          "Three painted patches on a wall, the last of them ringed in red.", "paint samples on a wall",
          "paint, colours, wall, samples", "kitchen cupboards? Tern Grey Quince Old Moss this one!", light="room"),
    Photo("20240824_153344", "tile shop",
          partial(papers.receipt, "AIRE TILES", ["Canal Yard, Leeds", "24/08/2024   15:31"],
                  [("Tile, rain blue 12 x £2.35", "£28.20"), ("Tile, chalk 48 x £2.35", "£112.80"), ("Grout, white",
                  "£11.50")],
                  ("TOTAL", "£152.50"), ["No returns on cut tiles"], angle=-2),
          "A shop receipt with three lines on a wooden surface.", "shop receipt", "receipt, shop, tiles, paper",
          "AIRE TILES Canal Yard, Leeds 24/08/2024 15:31 Tile, rain blue 12 x £2.35 £28.20 Tile, chalk 48 x £2.35"
          " £112.80 Grout, white £11.50 TOTAL £152.50 No returns on cut tiles", "Aire Tiles:organization", "room"),
    Photo("20240914_204830", "kettle", partial(views.cake, ["Happy Birthday", "Maren"], 6),
          "A pink birthday cake with writing and six lit candles.", "birthday cake with candles",
          "cake, birthday, candles, pink, party", "Happy Birthday Maren", "Maren:person", "room"),
    Photo("20240914_221530", "kettle",
          partial(papers.receipt, "COPPER KETTLE", ["Quayhead, Leeds", "14/09/2024   22:12   Table 9"],
                  [("Set dinner 7 x £23.00", "£161.00"), ("Elderflower jug x 2", "£14.00"), ("Coffee x 4", "£11.40")],
                  ("TOTAL", "£186.40"), ["Many happy returns!"], angle=2),
          "A long restaurant receipt on a wooden table.", "restaurant receipt", "receipt, restaurant, dinner, paper",
          "COPPER KETTLE Quayhead, Leeds 14/09/2024 22:12 Table 9 Set dinner 7 x £23.00 £161.00 Elderflower jug x"
          " 2 £14.00 Coffee x 4 £11.40 TOTAL £186.40 Many happy returns!", "Copper Kettle:organization", "room"),
    Photo("20240918_183302", "home", partial(views.kitchen, "#6d7f4a"),
          "A kitchen with newly painted green cupboards, pale tiles and a red kettle.", "kitchen with green cupboards",
          "kitchen, cupboards, green, tiles, kettle", light="room"),
    Photo("20241005_114600", "allotment", views.squash_bench, "A large grey-blue squash on a wooden garden bench.",
          "grey squash on a bench", "squash, harvest, garden, bench"),
    Photo("20241005_121810", "home", partial(papers.scale, "4.85 kg", "squash", "kitchen scale"),
          "A large grey-blue squash on a digital scale.", "squash on a kitchen scale", "squash, harvest, scale",
          "4.85 kg kitchen scale", light="room"),
    _meter("20241006_092030", "06132"),
    Photo("20241012_093015", "pier",
          partial(papers.signpost, ["HERON PIER", "October: first boat 09:45", "last boat back 17:45"], size=27,
                  backdrop=None),
          "A green sign with white letters stands on two posts in the grass by a lake.", "green sign by a pier",
          "sign, pier, lake, boat, timetable", "HERON PIER October: first boat 09:45 last boat back 17:45",
          "Heron Pier:location"),
    Photo("20241012_093140", "pier", views.lake, "A calm lake between fells with a small wooden pier.", "lake and pier",
          "lake, pier, fells, water, autumn"),
    Photo("20241012_092211", "pier",
          partial(papers.ticket, "HERON PIER FIELD", "Pay and display",
                  [("Paid", "£6.00"), ("Date", "12 Oct 2024"), ("Until", "23:59")], "leave behind the windscreen",
                  tint="#4a5a3a", angle=2, table=papers.SLATE),
          "A small printed ticket on a grey dashboard.", "parking ticket", "ticket, parking, car, dashboard",
          "HERON PIER FIELD Pay and display Paid £6.00 Date 12 Oct 2024 Until 23:59 leave behind the windscreen",
          "Heron Pier:location"),
    Photo("20241012_131205", "fell", partial(views.summit, ["Ravensgill Fell", "612 m"]),
          "A slate sign on a stone cairn at the top of a hill, fells in the distance.", "summit sign and cairn",
          "summit, fell, cairn, sign, hike", "Ravensgill Fell 612 m", "Ravensgill Fell:location"),
    Photo("20241012_131208", "fell", partial(views.summit, ["Ravensgill Fell", "612 m"]),
          "The sign on the summit cairn, a little brighter, with brown slopes behind.", "sign on a summit",
          "summit, sign, cairn, hills", "Ravensgill Fell 612 m", "Ravensgill Fell:location", shift=(5, 4), bright=1.07),
    Photo("20241128_181012", "library",
          partial(papers.poster, ["Rivers on Paper", "charts 1680 - 1900", "21 November, 18:00"],
                  ["MOVED", "28 Nov 18:30"]),
          "An exhibition poster with winding blue rivers and a yellow sticker over one corner.",
          "poster with a sticker",
          "poster, exhibition, rivers, sticker",
          "Rivers on Paper charts 1680 - 1900 MOVED 28 Nov 18:30 21 November, 18:00",
          "Rivers on Paper:event", "room"),
    Photo("20241128_191540", "library", views.chart_case, "An old map of a river in a lit glass case.",
          "old river map in a case", "map, chart, river, exhibition, glass",
          "A True Chart of the River Nidder surveyed 1743", "River Nidder:location", "room"),
    Photo("20241128_200135", "library",
          partial(papers.price_board, "Visitors tonight", [("18:30", "22"), ("19:00", "71"), ("19:30", "109"), (
          "20:00", "126")]),
          "A chalk board with a column of times and a column of numbers.", "chalk board with a tally",
          "board, chalk, numbers, tally", "Visitors tonight 18:30 22 19:00 71 19:30 109 20:00 126", light="room"),
    Photo("20241209_171830", "vets", partial(papers.scale, "4.6 kg", "cat", "HOLBECK VETS"),
          "A tabby cat sits on a scale at the vet's and looks displeased.", "cat on a scale", "cat, tabby, scale, vet",
          "4.6 kg HOLBECK VETS", "Holbeck Vets:organization", "room"),
    Photo("20241214_155530", "market", views.market, "A striped stall with a row of coloured mugs under fairy lights.",
          "market stall with mugs", "market, christmas, mugs, stall, lights", "hand-thrown mugs £5.50 each", light=
          "night"),
    Photo("20241223_171130", "station",
          partial(papers.departures, "LEEDS ARRIVALS", "17:11",
                  [("17:12", "Hull", "3", "On time"), ("17:20", "Edinburgh", "5", "Exp 17:45"),
                   ("17:26", "York", "11", "On time")]),
          "A station board in the evening; one train from the north is late.", "station arrivals board",
          "station, train, board, arrivals",
          "LEEDS ARRIVALS 17:11 17:12 Hull 3 On time 17:20 Edinburgh 5 Exp 17:45 17:26 York 11 On time",
          "Leeds:location", "room"),
    Photo("20241226_120409", None,
          partial(papers.phone, "Resolutions 2025", ["Mend the 1743 chart", "Run 10K under 54:00", "Grow kale, really",
                                                     "Swim once a week", "Call Junia on Sundays"]),
          "A screenshot of a list of five notes on a phone.", "list on a phone", "screenshot, phone, list, notes",
          "Resolutions 2025 Mend the 1743 chart Run 10K under 54:00 Grow kale, really Swim once a week Call Junia"
          " on Sundays"),
    _meter("20241229_100512", "06604"),
]  # fmt: skip

FILMS: list[Film] = [
    Film("20240210_191022", "home", views.cat_string, "A tabby cat bats at a red string that swings back and forth.",
         "cat playing with a string", "cat, tabby, string, play"),
    Film("20240312_181530", "tram stop", views.tram, "A yellow tram climbs a street of pale houses from left to right.",
         "yellow tram in a street", "tram, yellow, street, houses", "1 INFANTE"),
    Film("20240313_104512", "workshop", views.lecture,
         "A person in a green jumper points at a slide, which changes from a title to a drawing.",
         "speaker with slides",
         "talk, slides, speaker, workshop",
         "Mending river charts Maren Oakes Wharfside Map Library Paste: wheat starch 1 : 5", "Maren Oakes:person"),
    Film("20240519_103858", "race",
         lambda step: views.finish(FINISH_CLOCK[step], 20 + step * 20, (320, 240)),
         "A runner in a green shirt runs towards a red arch with a running clock.", "runner nearing the finish",
         "race, running, finish, clock", "FINISH AIRE VALLEY 10K 55:57 56:00 56:02", "Aire Valley 10K:event"),
    Film("20240621_205344", "mill hall",
         lambda step: views.stage(7, (0.7, 0.8, 0.9, 1.0, 0.9, 0.8, 0.7, 0.8, 0.9, 1.0)[step], (320, 240),
                                  "The Long Way Down the Aire" if 3 <= step <= 6 else ""),
         "Lanterns over a stage grow brighter and dimmer while a band plays and a title appears.",
         "band and pulsing lanterns",
         "concert, lanterns, band, music", "The Long Way Down the Aire"),
    Film("20240720_221005", "castle", lambda step: views.castle(burst=step, size=(320, 240)),
         "Fireworks open and fade above a dark castle.", "fireworks over a castle", "fireworks, castle, night"),
    Film("20241012_112233", "fell", views.waterfall,
    "White water falls between two rocks into a pool; a small sign at left.",
         "waterfall between rocks", "waterfall, rocks, water, sign", "Otter Force", "Otter Force:location"),
    Film("20241130_160510", "allotment", views.snow, "Snow falls on a shed, a sign and white ground.", "snow on a shed",
         "snow, shed, winter, garden", "17B"),
    Film("20241224_110015", "home", views.cat_tree, "A tabby cat knocks a red bauble from a decorated tree.",
         "cat and a christmas tree", "cat, tabby, christmas tree, bauble"),
]  # fmt: skip
