"""Simple scenes: a bridge at dusk, a cat on a chair, a stage, a hill, a kitchen."""

from __future__ import annotations

from samples.drawing import Picture, ring, scatter
from samples.papers import cat, squash


def _hills(view: Picture, far: str, near: str, level: float) -> None:
    view.shape(
        [
            (0, level),
            (70, level - 70),
            (150, level - 20),
            (240, level - 96),
            (330, level - 24),
            (410, level - 74),
            (480, level - 10),
            (480, level + 60),
            (0, level + 60),
        ],
        far,
    )
    view.shape(
        [
            (0, level + 20),
            (120, level - 18),
            (260, level + 26),
            (390, level - 8),
            (480, level + 24),
            (480, 360),
            (0, 360),
        ],
        near,
    )


def bicycle(view: Picture, x: float, y: float, paint: str, *, basket: str = "") -> None:
    """Draw a bicycle facing right; (x, y) is its back hub."""
    for hub in (x, x + 150):
        view.disc(hub, y, 52, None, edge="#23272a", width=5)
        for px, py in ring(hub, y, 50, 10):
            view.line([(hub, y), (px, py)], "#9aa3a8", 1)
    crank, seat, head = (x + 62, y + 4), (x + 44, y - 74), (x + 128, y - 78)
    view.line([(x, y), crank, head, seat, (x, y)], paint, 6)
    view.line([crank, seat], paint, 6)
    view.line([(x + 150, y), (x + 122, y - 100)], paint, 6)
    view.line([seat, (x + 40, y - 88)], "#444444", 5)
    view.box(x + 20, y - 96, 42, 9, "#3a2c22", radius=4)
    view.line([(x + 122, y - 100), (x + 108, y - 110), (x + 92, y - 106)], "#3a3a3a", 5)
    view.disc(*crank, 12, "#6e777c", edge="#2b2b2b", width=2)
    if basket:
        view.box(x + 132, y - 104, 46, 36, basket, radius=4, edge="#8a6d2a", width=2)


def bike_shop(paint: str = "#2f6fc0") -> Picture:
    """A new bicycle outside its shop."""
    street = Picture(480, 360, "#b66d52")
    for row in range(0, 250, 16):
        street.line([(0, row), (480, row)], "#a05c44", 1)
    street.box(40, 14, 400, 40, "#234d3c", radius=3)
    street.text(240, 21, "KESTREL CYCLES", 25, "#f4e9c8", align="middle", bold=True)
    street.box(60, 64, 250, 170, "#cfe0e6", edge="#234d3c", width=6)
    street.line([(185, 64), (185, 234)], "#234d3c", 4)
    street.box(340, 64, 84, 186, "#234d3c")
    street.box(352, 78, 60, 70, "#cfe0e6")
    street.box(0, 250, 480, 110, "#8f9496")
    street.line([(0, 288), (480, 286)], "#7e8385", 2)
    bicycle(street, 150, 262, paint)
    return street


def bike_home() -> Picture:
    """The same bicycle at home with a yellow basket."""
    yard = Picture(480, 360, "#cdbfa8")
    yard.box(0, 0, 480, 236, "#e0d6c4")
    yard.box(330, 30, 100, 206, "#7a3b2e", radius=4)
    yard.disc(412, 138, 5, "#e8c25a")
    for x in (40, 110, 180):
        yard.box(x, 170, 50, 66, "#b5653f", radius=3)
        for px, py in scatter(x, 12, (x, x + 50), (126, 172)):
            yard.disc(px, py, 9, "#5b8a4a")
    bicycle(yard, 150, 282, "#2f6fc0", basket="#f2c23e")
    return yard


def cat_carrier() -> Picture:
    """A cat looking out of a carrier."""
    hall = Picture(480, 360, "#d8cbb6")
    hall.box(0, 270, 480, 90, "#8d6a48")
    hall.box(90, 90, 300, 200, "#5f8f9c", radius=26)
    hall.box(200, 66, 80, 26, None, radius=10, edge="#3f6570", width=8)
    hall.box(140, 124, 200, 152, "#2a3336", radius=14)
    cat(hall, 240, 210, 0.8)
    for x in range(152, 336, 20):
        hall.line([(x, 126), (x, 274)], "#b9c6ca", 3)
    return hall


def cat_chair(*, eyes_open: bool = True) -> Picture:
    """A cat on a red armchair by a lamp."""
    room = Picture(480, 360, "#e7d9c0")
    room.box(0, 290, 480, 70, "#9a7550")
    room.line([(420, 300), (420, 110)], "#5b4a38", 5)
    room.shape([(384, 116), (456, 116), (438, 60), (402, 60)], "#f5d98a")
    room.box(110, 70, 250, 220, "#b8423a", radius=34)
    room.box(84, 170, 60, 140, "#a23830", radius=20)
    room.box(326, 170, 60, 140, "#a23830", radius=20)
    room.box(140, 220, 190, 90, "#c9544b", radius=16)
    cat(room, 235, 168, 0.95, eyes_open=eyes_open)
    return room


def cat_string(step: int) -> Picture:
    """A cat batting at a string; one frame of a film, 320 by 240."""
    room = Picture(320, 240, "#e2d3bb")
    room.box(0, 180, 320, 60, "#9a7550")
    swing = (-46, -24, 4, 30, 46, 34, 8, -20, -40, -30)[step % 10]
    cat(room, 150 + swing * 0.3, 140, 0.72)
    room.line([(220, 0), (220 + swing * 0.5, 60), (210 + swing, 118)], "#c0392b", 3)
    room.disc(210 + swing, 122, 8, "#c0392b")
    return room


def cat_tree(step: int) -> Picture:
    """A cat knocking a bauble from a Christmas tree; one frame, 320 by 240."""
    room = Picture(320, 240, "#44566b")
    room.box(0, 190, 320, 50, "#7a5a3c")
    for level in range(4):
        y = 34 + level * 36
        room.shape([(220, y), (176 - level * 12, y + 62), (264 + level * 12, y + 62)], "#2f6b45")
    room.box(212, 202, 16, 18, "#5b3d24")
    room.shape(ring(220, 30, 12, 5, -90), "#f6d55c")
    for index, (x, y) in enumerate(((204, 92), (236, 112), (198, 142), (244, 158))):
        room.disc(x, y, 7, ("#d9534f", "#f0c040", "#7fb8d8", "#d98fc0")[index])
    fall = max(0, step - 3)
    room.disc(176 - fall * 3, min(196, 168 + fall * fall * 2), 8, "#e94f4f")
    cat(room, 100 + min(step, 4) * 6, 150, 0.62)
    return room


def bridge(boat: float | None = None) -> Picture:
    """An iron arch bridge over a wide river at dusk, perhaps with a boat at `boat` pixels from the left."""
    view = Picture(480, 360, "#2a3a5c")
    view.shade(0, 214, (52, 58, 110), (246, 160, 104))
    view.disc(392, 176, 24, "#ffd9a0")
    for index, x in enumerate(range(0, 480, 34)):
        tall = (52, 74, 40, 66, 88, 58)[index % 6]
        view.box(x, 214 - tall, 30, tall, ("#7c4a45", "#8f5f4c", "#5f4450")[index % 3])
        view.box(x + 9, 224 - tall, 5, 7, "#ffd27a")
        view.box(x + 18, 238 - tall, 5, 7, "#ffd27a")
    view.shade(214, 360, (92, 84, 120), (30, 40, 74))
    view.arc(240, 330, 226, 196, 344, "#1d2233", 7)
    view.arc(240, 342, 226, 200, 340, "#1d2233", 3)
    view.box(0, 140, 480, 8, "#1d2233")
    view.box(0, 206, 480, 6, "#1d2233")
    for x in range(30, 470, 22):
        rise = 104 + ((x - 240) / 226) ** 2 * 110
        view.line([(x, min(rise, 206)), (x, 206)], "#1d2233", 2)
    for px, py in scatter(3, 40, (0, 470), (230, 352)):
        view.line([(px, py), (px + 14, py)], "#c98a6a", 1)
    if boat is not None:
        view.shape([(boat, 286), (boat + 84, 286), (boat + 68, 304), (boat + 14, 304)], "#3b2416")
        view.line([(boat + 40, 286), (boat + 40, 226)], "#3b2416", 3)
        view.shape([(boat + 42, 230), (boat + 42, 278), (boat + 76, 278)], "#e8dcc4")
        view.disc(boat + 16, 280, 6, "#8c5a32")
        view.disc(boat + 28, 280, 6, "#8c5a32")
    return view


def tram(step: int) -> Picture:
    """A yellow tram climbing a street; one frame, 320 by 240."""
    street = Picture(320, 240, "#9fb6c8")
    for index, x in enumerate(range(-10, 320, 58)):
        street.box(x, 30 + index % 3 * 14, 54, 170, ("#e3c9a0", "#c9dbe0", "#e0b0a0")[index % 3])
        for y in (70, 110):
            street.box(x + 14, y, 10, 20, "#4f6a78")
            street.box(x + 32, y, 10, 20, "#4f6a78")
    street.box(0, 190, 320, 50, "#77706a")
    street.line([(0, 214), (320, 214)], "#c9c3bb", 2)
    x = -140 + step * 42
    street.box(x, 116, 150, 84, "#f1c232", radius=8)
    street.box(x + 8, 128, 134, 30, "#5a7a88", radius=3)
    street.box(x, 172, 150, 8, "#fff4d0")
    street.text(x + 75, 156, "1  INFANTE", 14, "#3a2c10", align="middle", bold=True)
    for dx in (30, 120):
        street.disc(x + dx, 206, 11, "#33302c")
    street.line([(x + 74, 116), (x + 92, 40)], "#33302c", 2)
    return street


def lecture(step: int) -> Picture:
    """A speaker beside a slide; one frame, 320 by 240."""
    hall = Picture(320, 240, "#34405c")
    hall.box(70, 20, 230, 136, "#f7f4ea")
    if step < 4:
        hall.text(185, 44, "Mending river charts", 20, "#30507a", align="middle", bold=True)
        hall.text(185, 80, "Maren Oakes", 16, "#444444", align="middle")
        hall.text(185, 104, "Wharfside Map Library", 14, "#777777", align="middle")
    else:
        hall.text(185, 30, "Paste: wheat starch 1 : 5", 16, "#30507a", align="middle", bold=True)
        hall.line([(100, 130), (140, 90), (190, 112), (240, 70), (280, 84)], "#4f8aa8", 8)
    hall.box(0, 196, 320, 44, "#6b4a2f")
    lean = (0, 2, 4, 2, 0, -2, -4, -2)[step % 8]
    hall.box(22, 136, 34, 64, "#7a9a6a", radius=10)
    hall.disc(39 + lean, 116, 17, "#c99a74")
    hall.disc(39 + lean, 106, 17, "#4a2f20", ry=10)
    hall.line([(52, 150), (84 + lean * 2, 120)], "#7a9a6a", 8)
    return hall


def sardines() -> Picture:
    """A plate of grilled sardines with potatoes."""
    top = Picture(480, 360, "#3f6f8f")
    for x in range(0, 480, 48):
        top.line([(x, 0), (x, 360)], "#386480", 3)
    top.disc(240, 184, 150, "#f7f5ef", ry=138, edge="#cfcabd", width=4)
    for index, y in enumerate((130, 172, 214)):
        top.disc(232, y, 96, "#8d97a0", ry=17, edge="#5d666e", width=2)
        top.shape([(326, y), (352, y - 17), (352, y + 17)], "#76808a")
        for x in range(170, 300, 26):
            top.line([(x, y - 13), (x + 8, y + 13)], "#4d4a45", 3)
        top.disc(150, y - 3, 3, "#15181a")
        top.disc(302 + index * 6, 268 - index * 16, 17, "#ecd27c")
    top.shape(ring(160, 262, 26, 12), "#f4e04d", edge="#c9b52f")
    return top


def allotment(sign: str) -> Picture:
    """A gate with a plot number, a shed and bare beds."""
    plot = Picture(480, 360, "#bcd7e8")
    plot.shade(0, 170, (140, 186, 220), (226, 238, 240))
    plot.box(0, 170, 480, 190, "#7fa35f")
    plot.shape([(320, 120), (384, 76), (448, 120)], "#5b4636")
    plot.box(330, 120, 108, 80, "#8a6b4a")
    plot.box(372, 146, 28, 54, "#5b4636")
    for row in range(3):
        plot.shape(
            [(40, 216 + row * 40), (300, 210 + row * 40), (320, 232 + row * 40), (30, 240 + row * 40)], "#6b4a33"
        )
    plot.box(60, 56, 170, 74, "#f3ead0", radius=5, edge="#5b4636", width=4)
    plot.text(145, 66, "PLOT", 20, "#5b4636", align="middle")
    plot.text(145, 86, sign, 34, "#2f5b3c", align="middle", bold=True)
    for x in (84, 196):
        plot.box(x, 130, 10, 120, "#5b4636")
    return plot


def seed_rows(packets: list[tuple[str, str]]) -> Picture:
    """Seed packets standing at the ends of sown rows."""
    bed = Picture(480, 360, "#6b4a33")
    for x, y in scatter(17, 160, (0, 480), (0, 360)):
        bed.disc(x, y, 2.5, "#573b28")
    for index, (name, colour) in enumerate(packets):
        x = 30 + index * 148
        bed.line([(x + 60, 196), (x + 64, 356)], "#4a3222", 14)
        for k in range(4):
            bed.disc(x + 62 + k, 226 + k * 36, 6, "#7fb25f")
        bed.box(x, 40, 122, 150, "#fbf6e6", radius=4, edge="#c9bfa5", width=2)
        bed.box(x, 40, 122, 30, colour, radius=4)
        bed.text(x + 61, 46, "THISTLEDOWN", 14, "white", align="middle", bold=True)
        bed.disc(x + 61, 112, 28, colour)
        for word, y in zip(name.split(), (146, 164), strict=False):
            bed.text(x + 61, y, word, 16, align="middle", bold=True)
    return bed


def bib(number: str) -> Picture:
    """A race number pinned to a running shirt."""
    shirt = Picture(480, 360, "#2f8f83")
    shirt.shape([(0, 0), (120, 0), (60, 360), (0, 360)], "#287a70")
    card = Picture(300, 200, "#fffef8")
    card.box(0, 0, 300, 44, "#c0392b")
    card.text(150, 10, "AIRE VALLEY 10K", 24, "white", align="middle", bold=True)
    card.text(150, 56, number, 92, align="middle", bold=True)
    card.text(150, 168, "WAVE C   START 09:30", 17, "#555555", align="middle")
    for x in (14, 286):
        for y in (58, 186):
            card.disc(x, y, 4, "#a0a6aa", edge="#666666")
    shirt.lay(card, 240, 188, -2)
    return shirt


def finish(clock: str, runner: float, size: tuple[int, int] = (480, 360)) -> Picture:
    """A finish arch with a clock; `runner` is how far along the runner is, in pixels from the left."""
    w, h = size
    k = w / 480
    view = Picture(w, h, "#cfe3ee")
    view.box(0, 214 * k, w, h - 214 * k, "#8d9193")
    for x in range(0, w, round(36 * k)):
        view.disc(x + 10 * k, 190 * k, 15 * k, ("#c96f5a", "#5a8fc9", "#d9b24a")[x // round(36 * k) % 3])
        view.disc(x + 10 * k, 168 * k, 10 * k, "#d3a27c")
    view.box(70 * k, 40 * k, 24 * k, 230 * k, "#c0392b")
    view.box(386 * k, 40 * k, 24 * k, 230 * k, "#c0392b")
    view.box(70 * k, 30 * k, 340 * k, 92 * k, "#c0392b", radius=6)
    view.text(240 * k, 36 * k, "FINISH  AIRE VALLEY 10K", 22 * k, "white", align="middle", bold=True)
    view.box(160 * k, 66 * k, 160 * k, 50 * k, "#15181a", radius=4)
    view.text(240 * k, 68 * k, clock, 40 * k, "#ff5a3c", align="middle", bold=True)
    view.line([(runner, 250 * k), (runner - 16 * k, 300 * k)], "#333f55", 11 * k)
    view.line([(runner, 250 * k), (runner + 22 * k, 290 * k)], "#333f55", 11 * k)
    view.box(runner - 15 * k, 194 * k, 32 * k, 60 * k, "#2f8f83", radius=10)
    view.box(runner - 8 * k, 210 * k, 20 * k, 15 * k, "#fffef8")
    view.disc(runner + 2 * k, 178 * k, 16 * k, "#c99a74")
    view.disc(runner, 169 * k, 15 * k, "#4a2f20", ry=9 * k)
    return view


def medal() -> Picture:
    """A medal on a ribbon in an open hand."""
    top = Picture(480, 360, "#7f9b6a")
    top.shape([(190, 0), (240, 0), (256, 150), (226, 160)], "#c0392b")
    top.shape([(290, 0), (240, 0), (224, 150), (254, 160)], "#2f5d9c")
    top.disc(240, 222, 92, "#d9a93a", edge="#a87c1f", width=6)
    top.disc(240, 222, 72, "#e8c25a")
    top.text(240, 172, "AIRE VALLEY", 19, "#5a3d08", align="middle", bold=True)
    top.text(240, 196, "10K", 46, "#5a3d08", align="middle", bold=True)
    top.text(240, 250, "2024", 21, "#5a3d08", align="middle")
    return top


def stage(lanterns: int, glow: float = 1.0, size: tuple[int, int] = (480, 360), banner: str = "") -> Picture:
    """A concert stage hung with paper lanterns, heads before it."""
    w, h = size
    k = w / 480
    view = Picture(w, h, "#150f24")
    view.shade(0, 250 * k, (26, 16, 48), (88, 36, 84))
    for index in range(lanterns):
        x = (40 + index * 400 / max(1, lanterns - 1)) * k
        y = (46 + (index * 37) % 60) * k
        view.line([(x, 0), (x, y)], "#6a5a70", 1)
        red, green, blue = ((248, 196, 96), (240, 140, 90), (250, 220, 150))[index % 3]
        warm = (round(red * glow), round(green * glow), round(blue * glow))
        view.disc(x, y + 20 * k, 20 * k, warm, ry=25 * k)
    view.box(0, 246 * k, w, 20 * k, "#3a2438")
    for x, dress in ((150, "#c9544b"), (240, "#e8dcc4"), (330, "#4f8aa8")):
        view.box((x - 14) * k, 180 * k, 28 * k, 68 * k, dress, radius=8)
        view.disc(x * k, 166 * k, 14 * k, "#d3a27c")
        view.line([((x - 26) * k, 214 * k), ((x + 30) * k, 194 * k)], "#8a5a2a", 6 * k)
    if banner:
        view.text(w / 2, 112 * k, banner, 26 * k, "#fff2c8", align="middle", bold=True)
    for index in range(9):
        view.disc((24 + index * 56) * k, (300 + index % 3 * 12) * k, 30 * k, "#0b0814", ry=40 * k)
    return view


def guest_house() -> Picture:
    """The door of a guest house with its sign."""
    wall = Picture(480, 360, "#8f8a84")
    for y in range(0, 360, 30):
        for x in range(-30 if y % 60 else 0, 480, 60):
            wall.box(x, y, 57, 27, "#a39d95", radius=3)
    wall.box(60, 76, 130, 284, "#3d2f63", radius=4)
    wall.box(82, 100, 86, 90, "#cfe0e6")
    wall.disc(174, 236, 6, "#e8c25a")
    wall.box(230, 90, 220, 130, "#f3ead0", radius=6, edge="#3d2f63", width=4)
    wall.text(340, 106, "THISTLE", 30, "#3d2f63", align="middle", bold=True)
    wall.text(340, 140, "HOUSE", 30, "#3d2f63", align="middle", bold=True)
    wall.text(340, 184, "rooms from £72", 17, "#555555", align="middle")
    return wall


def coat_hooks() -> Picture:
    """A hallway with coat hooks: a green scarf, a yellow raincoat, a key marked 5."""
    hall = Picture(480, 360, "#d9c9a8")
    hall.box(0, 304, 480, 56, "#7a5a3c")
    hall.box(40, 70, 400, 26, "#6b4a2f", radius=5)
    for x in (90, 190, 290, 390):
        hall.arc(x, 104, 12, 0, 180, "#3a3a3a", 4)
    hall.shape([(262, 110), (318, 110), (344, 262), (236, 262)], "#f0c63c")
    hall.line([(290, 112), (290, 262)], "#c9a020", 2)
    hall.line([(84, 108), (76, 190), (80, 270)], "#3f8f5a", 24)
    hall.line([(96, 108), (104, 180), (102, 244)], "#4fa56a", 22)
    for x in range(70, 92, 5):
        hall.line([(x, 270), (x, 288)], "#3f8f5a", 2)
    hall.line([(390, 112), (390, 150)], "#888888", 2)
    hall.box(374, 150, 32, 40, "#b8423a", radius=6)
    hall.text(390, 154, "5", 28, "white", align="middle", bold=True)
    return hall


def castle(*, burst: int = -1, size: tuple[int, int] = (480, 360)) -> Picture:
    """A castle on a rock by day, or by night with fireworks at stage `burst`."""
    w, h = size
    k = w / 480
    night = burst >= 0
    view = Picture(w, h, "#10162c")
    view.shade(0, h, (16, 20, 46) if night else (132, 180, 220), (40, 40, 80) if night else (228, 236, 236))
    rock, stone = ("#1d1f2b", "#2b2e3d") if night else ("#6f6a5c", "#a79f8f")
    view.shape(
        [(60 * k, h), (110 * k, 210 * k), (180 * k, 176 * k), (350 * k, 176 * k), (400 * k, 230 * k), (450 * k, h)],
        rock,
    )
    for x, y, wide, tall in ((176, 110, 50, 70), (226, 132, 80, 48), (306, 96, 46, 84)):
        view.box(x * k, y * k, wide * k, tall * k, stone)
        for n in range(int(wide // 16)):
            view.box((x + n * 16) * k, (y - 9) * k, 10 * k, 10 * k, stone)
        view.box((x + wide / 2 - 4) * k, (y + 22) * k, 8 * k, 14 * k, "#ffd27a" if night else "#3a3a3a")
    view.line([(329 * k, 96 * k), (329 * k, 52 * k)], stone, 3 * k)
    view.shape([(331 * k, 52 * k), (366 * k, 60 * k), (331 * k, 70 * k)], "#c0392b")
    if night:
        for index, (x, y) in enumerate(((110, 70), (250, 44), (400, 80))):
            radius = ((burst + index * 3) % 8) * 8 * k
            for px, py in ring(x * k, y * k, radius, 14):
                view.disc(px, py, 3 * k, ("#ffcf5a", "#ff7d6b", "#8fd3ff")[index])
    else:
        view.box(0, 300 * k, w, 60 * k, "#7fa35f")
        for px, py in scatter(4, 18, (0, w), (300 * k, 350 * k)):
            view.disc(px, py, 5 * k, "#d9b24a")
    return view


def lake() -> Picture:
    """A lake between fells with a small pier."""
    view = Picture(480, 360, "#bcd0dc")
    view.shade(0, 200, (150, 176, 200), (226, 226, 214))
    _hills(view, "#7f8f86", "#8f8a55", 190)
    view.shade(232, 360, (120, 156, 176), (66, 104, 128))
    view.box(40, 270, 190, 12, "#6b4a2f")
    for x in (60, 120, 180, 220):
        view.box(x, 280, 8, 40, "#5b3d24")
    return view


def summit(lines: list[str]) -> Picture:
    """A summit cairn with a slate sign and fells behind."""
    view = Picture(480, 360, "#bcd0dc")
    view.shade(0, 220, (140, 172, 206), (230, 230, 220))
    _hills(view, "#8a9a90", "#9a8a4f", 230)
    for index, (x, y) in enumerate(((200, 318), (240, 322), (284, 318), (214, 296), (262, 296), (238, 274))):
        view.disc(x, y, 30, ("#85807a", "#9a948c", "#757069")[index % 3], ry=17)
    view.box(110, 96, 260, 112, "#4a5458", radius=6, edge="#2f3639", width=3)
    view.text(240, 112, lines[0], 26, "#f1efe6", align="middle", bold=True)
    view.text(240, 152, lines[1], 34, "#ffd98a", align="middle", bold=True)
    view.box(234, 208, 12, 70, "#5b4636")
    return view


def waterfall(step: int) -> Picture:
    """A waterfall between rocks; one frame, 320 by 240."""
    view = Picture(320, 240, "#5f7a52")
    view.box(0, 0, 320, 50, "#a9c4d0")
    view.shape([(0, 40), (126, 30), (120, 240), (0, 240)], "#5a554c")
    view.shape([(320, 40), (200, 30), (206, 240), (320, 240)], "#655f55")
    view.shape([(126, 30), (200, 30), (210, 200), (116, 200)], "#d8e8ee")
    for index in range(9):
        y = (index * 27 + step * 9) % 180
        view.line([(130 + index * 8, 30 + y * 0.9), (128 + index * 8, 56 + y * 0.9)], "#9fc0cf", 3)
    view.disc(163, 210, 90, "#7fa8ba", ry=26)
    for px, py in scatter(step, 14, (100, 226), (190, 222)):
        view.disc(px, py, 4, "#eef6f8")
    view.box(20, 150, 84, 34, "#f3ead0", radius=3, edge="#5b4636", width=2)
    view.text(62, 158, "Otter Force", 14, "#2f5b3c", align="middle", bold=True)
    return view


def swatches(rows: list[tuple[str, str]], chosen: int) -> Picture:
    """Painted patches on a wall with pencilled names; the chosen one is ringed."""
    wall = Picture(480, 360, "#efe9dc")
    for index, (name, colour) in enumerate(rows):
        x = 30 + index * 150
        wall.box(x, 70, 122, 150, colour)
        wall.text(x + 61, 232, name, 20, "#444444", align="middle")
    wall.disc(30 + chosen * 150 + 61, 166, 82, None, ry=118, edge="#c0392b", width=4)
    wall.text(240, 24, "kitchen cupboards?", 21, "#666666", align="middle")
    wall.text(30 + chosen * 150 + 61, 300, "this one!", 19, "#c0392b", align="middle", bold=True)
    return wall


def kitchen(paint: str) -> Picture:
    """A finished kitchen: painted cupboards, a row of tiles, a kettle."""
    room = Picture(480, 360, "#f1ece1")
    room.box(0, 310, 480, 50, "#b98a5a")
    for x in (20, 132, 244, 356):
        room.box(x, 20, 104, 90, paint, radius=3, edge="#3a4a30", width=2)
        room.disc(x + 92, 66, 4, "#e8c25a")
        room.box(x, 206, 104, 104, paint, radius=3, edge="#3a4a30", width=2)
        room.disc(x + 92, 226, 4, "#e8c25a")
    room.box(10, 192, 460, 14, "#d9cbb0")
    for x in range(12, 468, 24):
        for y in (120, 144, 168):
            room.box(x, y, 22, 22, "#dfe9ea" if (x + y) % 7 else "#9fc0cf")
    room.disc(120, 176, 26, "#b0483f", ry=22)
    room.arc(120, 156, 20, 180, 360, "#333333", 4)
    room.shape([(142, 172), (168, 156), (146, 184)], "#b0483f")
    return room


def cake(lines: list[str], candles: int) -> Picture:
    """A birthday cake with a message and candles."""
    table = Picture(480, 360, "#4a3a50")
    table.box(0, 270, 480, 90, "#c9b596")
    table.disc(240, 286, 186, "#f7f5ef", ry=34)
    table.box(90, 150, 300, 136, "#f3c6cf", radius=14)
    table.disc(240, 150, 150, "#fbe3e7", ry=30)
    for x in range(100, 390, 29):
        table.disc(x, 282, 12, "#ffffff")
    for index in range(candles):
        wick = 140 + index * 200 / max(1, candles - 1)
        table.box(wick - 3, 92, 6, 52, ("#5a8fc9", "#e0a030", "#6d9a5b")[index % 3])
        table.disc(wick, 84, 5, "#ffd84a", ry=9)
    for index, words in enumerate(lines):
        table.text(240, 188 + index * 36, words, 28, "#8a2f46", align="middle", bold=True)
    return table


def chart_case() -> Picture:
    """An old river chart in a glass case."""
    case = Picture(480, 360, "#3b332b")
    case.box(40, 40, 400, 270, "#e6d3a6", edge="#8a6d3a", width=8)
    points = [(60, 250), (120, 190), (170, 216), (220, 150), (280, 176), (330, 110), (420, 86)]
    case.line(points, "#5f8fa3", 13)
    case.line(points, "#86b2c2", 6)
    for x, y in scatter(21, 26, (70, 410), (70, 290)):
        case.shape([(x, y), (x + 6, y - 11), (x + 12, y)], "#9a8a55")
    case.text(250, 262, "A True Chart of the River Nidder", 19, "#5a3d1a", align="middle")
    case.text(250, 284, "surveyed 1743", 15, "#5a3d1a", align="middle")
    case.shape([(40, 40), (160, 40), (40, 170)], "#efe2c2")
    return case


def snow(step: int) -> Picture:
    """Snow on an allotment shed; one frame, 320 by 240."""
    view = Picture(320, 240, "#9fb0c0")
    view.shade(0, 150, (120, 136, 156), (200, 208, 216))
    view.box(0, 150, 320, 90, "#eef2f5")
    view.shape([(180, 90), (234, 50), (290, 90)], "#f6f8fa")
    view.box(190, 90, 92, 76, "#8a6b4a")
    view.box(222, 112, 26, 54, "#5b4636")
    view.box(40, 90, 84, 46, "#f3ead0", radius=4, edge="#5b4636", width=3)
    view.text(82, 97, "17B", 28, "#2f5b3c", align="middle", bold=True)
    for x in (52, 106):
        view.box(x, 136, 7, 50, "#5b4636")
    for px, py in scatter(77, 70, (0, 320), (0, 240)):
        view.disc((px + step * 3) % 320, (py + step * 17) % 240, 2.6, "#ffffff")
    return view


def market() -> Picture:
    """A Christmas market stall with mugs and a price sign."""
    view = Picture(480, 360, "#23304a")
    for index in range(13):
        view.disc(20 + index * 37, 30 + index % 2 * 10, 6, ("#ffd84a", "#ff7d6b", "#8fd3ff")[index % 3])
    for index, x in enumerate(range(60, 420, 40)):
        view.shape([(x, 70), (x + 40, 70), (x + 46, 124), (x - 6, 124)], "#b8423a" if index % 2 else "#f3ead0")
    view.box(60, 214, 360, 106, "#8a6b4a")
    for index, x in enumerate((90, 150, 210, 270, 330)):
        colour = ("#4f8aa8", "#d9a93a", "#6d9a5b", "#c9544b", "#e8dcc4")[index]
        view.box(x, 172, 34, 42, colour, radius=4)
        view.arc(x + 38, 192, 10, -90, 90, colour, 5)
    view.box(130, 236, 220, 64, "#fffdf4", radius=4)
    view.text(240, 242, "hand-thrown mugs", 19, align="middle")
    view.text(240, 268, "£5.50 each", 22, "#8a2f46", align="middle", bold=True)
    return view


def squash_bench() -> Picture:
    """A squash on a bench at the allotment."""
    bench = Picture(480, 360, "#9fbf8a")
    bench.box(60, 230, 360, 26, "#8a6b4a", radius=3)
    bench.box(90, 256, 22, 80, "#6b4a33")
    bench.box(368, 256, 22, 80, "#6b4a33")
    squash(bench, 240, 160, 1.0)
    return bench
