"""Things with writing on them: receipts, tickets, signs, boards, screens, meters, scales."""

from __future__ import annotations

from collections.abc import Sequence

from samples.drawing import Picture, scatter

WOOD, LINEN, SLATE = "#b98a5a", "#d9d2c3", "#6d7780"
Row = tuple[str, str]


def table_top(width: int, height: int, colour: str, seed: int) -> Picture:
    """Return a table seen from above, with a little grain."""
    top = Picture(width, height, colour)
    for x, y in scatter(seed, 26, (-60, width), (0, height)):
        top.line([(x, y), (x + 70 + y % 50, y + 1)], _darker(colour), 1)
    return top


def _darker(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return round(red * 0.93), round(green * 0.93), round(blue * 0.93)


def receipt(
    shop: str,
    under: Sequence[str],
    rows: Sequence[Row],
    total: Row,
    foot: Sequence[str],
    *,
    angle: float = 2.0,
    table: str = WOOD,
) -> Picture:
    """A till receipt on a table; portrait, 360 by 480."""
    height = 118 + 20 * len(under) + 23 * len(rows) + 19 * len(foot)
    paper = Picture(250, height, "#fbfaf5")
    paper.text(125, 14, shop, 20, align="middle", bold=True)
    y = 42.0
    for words in under:
        paper.text(125, y, words, 13, "#444444", align="middle")
        y += 20
    paper.line([(14, y + 3), (236, y + 3)], "#999999", 1)
    y += 12
    for name, price in rows:
        paper.text(16, y, name, 14.5)
        paper.text(234, y, price, 14.5, align="right")
        y += 23
    paper.line([(14, y + 2), (236, y + 2)], "#999999", 1)
    paper.text(16, y + 9, total[0], 18, bold=True)
    paper.text(234, y + 9, total[1], 18, align="right", bold=True)
    y += 40
    for words in foot:
        paper.text(125, y, words, 12.5, "#555555", align="middle")
        y += 19
    top = table_top(360, 480, table, len(shop))
    top.lay(paper, 180, 240, angle)
    return top


def ticket(
    head: str,
    title: str,
    fields: Sequence[Row],
    foot: str,
    *,
    tint: str = "#2f5d73",
    angle: float = -3.0,
    table: str = LINEN,
) -> Picture:
    """A printed ticket with a coloured head and labelled fields; landscape, 480 by 360."""
    card = Picture(400, 214, "#fffdf4")
    card.box(0, 0, 400, 44, tint)
    card.text(16, 12, head, 19, "white", bold=True)
    card.text(16, 56, title, 25, bold=True)
    for index, (label, value) in enumerate(fields):
        x, y = 16 + 128 * (index % 3), 98 + 50 * (index // 3)
        card.text(x, y, label.upper(), 11, "#777777")
        card.text(x, y + 15, value, 18, bold=True)
    card.text(384, 192, foot, 12, "#777777", align="right")
    for y in range(50, 214, 9):
        card.disc(0, y, 2.5, "#c9c2b0")
    top = table_top(480, 360, table, len(title))
    top.lay(card, 240, 180, angle)
    return top


def whiteboard(title: str, lines: Sequence[str], *, ink: str = "#1f4fa0", title_ink: str = "#b02a2a") -> Picture:
    """A whiteboard on a wall; 480 by 360."""
    wall = Picture(480, 360, "#cfd6d2")
    wall.box(22, 20, 436, 300, "#9aa0a3", radius=6)
    wall.box(30, 28, 420, 284, "#fafcfc", radius=3)
    wall.text(48, 42, title, 25, title_ink, bold=True)
    wall.line([(48, 74), (60 + wall.measure(title, 25), 72)], title_ink, 2)
    for index, words in enumerate(lines):
        wall.text(50 + index % 2 * 3, 90 + index * 36, words, 20, ink)
    wall.box(180, 316, 120, 9, "#7d8386", radius=2)
    for x, colour in ((190, "#b02a2a"), (222, "#1f4fa0"), (254, "#2e7d4f")):
        wall.box(x, 311, 24, 6, colour, radius=2)
    return wall


def departures(station: str, clock: str, rows: Sequence[tuple[str, str, str, str]]) -> Picture:
    """A departure board: time, destination, platform or gate, state; 480 by 360."""
    hall = Picture(480, 360, "#39424a")
    hall.box(16, 26, 448, 294, "#11151a", radius=6)
    hall.text(32, 40, station, 21, "#f3f3f3", bold=True)
    hall.text(448, 40, clock, 21, "#f3f3f3", align="right", bold=True)
    hall.line([(28, 74), (452, 74)], "#55606a", 1)
    for index, (time, place, gate, state) in enumerate(rows):
        y = 88 + index * 42
        warm = "#ffb52e" if index % 2 == 0 else "#ffd27a"
        hall.text(32, y, time, 20, warm, bold=True)
        hall.text(104, y, place, 20, warm)
        hall.text(300, y, gate, 20, warm, align="middle")
        hall.text(450, y, state, 17, "#7fe08a" if state == "On time" else "#ff7d6b", align="right")
    return hall


def signpost(
    lines: Sequence[str],
    *,
    face: str = "#2f5b3c",
    ink: str = "#f6f3e4",
    size: float = 28,
    ground: str = "#7fa35f",
    backdrop: Picture | None = None,
) -> Picture:
    """A painted sign on two posts, outdoors or before `backdrop`; 480 by 360."""
    view = backdrop or Picture(480, 360, "#bcd7e8")
    if backdrop is None:
        view.shade(0, 230, (150, 192, 222), (224, 236, 240))
        view.box(0, 230, 480, 130, ground)
        for x, y in scatter(len(lines[0]), 40, (0, 480), (240, 355)):
            view.line([(x, y), (x + 3, y - 9)], "#5f8a48", 2)
    height = 44 + len(lines) * (size + 12)
    for x in (116, 352):
        view.box(x, 100, 12, 250, "#6b4a2f")
    view.box(60, 60, 360, height, "#3b2a1c", radius=8)
    view.box(65, 65, 350, height - 10, face, radius=6)
    for index, words in enumerate(lines):
        big = size if index == 0 else size * 0.72
        view.text(240, 80 + index * (size + 9), words, big, ink, align="middle", bold=index == 0)
    return view


def meter(reading: str, serial: str) -> Picture:
    """An electricity meter in a cupboard; 480 by 360."""
    wall = Picture(480, 360, "#a79c8d")
    wall.box(90, 24, 300, 312, "#e9e8e2", radius=14, edge="#8b8880", width=3)
    wall.text(240, 46, "BRIGHTWELL", 21, "#33557a", align="middle", bold=True)
    wall.box(124, 90, 232, 76, "#1d241f", radius=6)
    for index, digit in enumerate(reading):
        wall.box(134 + index * 43, 98, 38, 60, "#efefe8" if index < 5 else "#d8503f", radius=3)
        wall.text(153 + index * 43, 105, digit, 44, "#15181a", align="middle", bold=True)
    wall.text(350, 172, "kWh", 20, "#333333", align="right")
    wall.disc(240, 236, 34, "#cfd3d6", edge="#777777", width=3)
    wall.line([(206, 236), (274, 236)], "#c0392b", 4)
    wall.text(240, 290, f"No. {serial}", 17, "#555555", align="middle")
    return wall


def scale(reading: str, on_top: str, label: str) -> Picture:
    """A digital scale with something on it: "cat", "tomatoes" or "squash"; 480 by 360."""
    room = Picture(480, 360, "#dfe6e4")
    room.box(0, 236, 480, 124, "#b7b0a2")
    room.box(96, 224, 288, 100, "#eceeef", radius=12, edge="#9aa1a5", width=2)
    room.box(70, 208, 340, 18, "#c7ccd0", radius=7)
    room.box(170, 244, 140, 52, "#20302a", radius=5)
    room.text(240, 251, reading, 34, "#8cf5b0", align="middle", bold=True)
    room.text(240, 302, label, 14, "#666666", align="middle")
    if on_top == "cat":
        cat(room, 240, 128, 0.95)
    elif on_top == "tomatoes":
        room.shape([(120, 140), (360, 140), (330, 208), (150, 208)], "#7aa0b8")
        for x, y in scatter(5, 26, (140, 340), (104, 144)):
            room.disc(x, y, 17, "#f0a02c" if int(x) % 3 else "#e8862a", edge="#b96a1c", width=1)
    else:
        squash(room, 240, 132, 1.0)
    return room


def cat(
    view: Picture,
    x: float,
    y: float,
    size: float,
    *,
    eyes_open: bool = True,
    fur: str = "#a9825a",
    dark: str = "#6f5136",
) -> None:
    """Draw a sitting tabby with its middle at (x, y), about 150 pixels tall at size 1."""

    def at(dx: float, dy: float) -> tuple[float, float]:
        return x + dx * size, y + dy * size

    view.line([at(46, 62), at(78, 52), at(84, 20), at(72, 4)], dark, 13 * size)
    view.disc(*at(0, 38), 50 * size, fur, ry=46 * size)
    for dy in (18, 34, 50):
        view.line([at(-47, dy + 6), at(-24, dy)], dark, 5 * size)
        view.line([at(47, dy + 6), at(24, dy)], dark, 5 * size)
    view.disc(*at(0, 52), 22 * size, "#efe3d0", ry=28 * size)
    for side in (-1, 1):
        view.shape([at(side * 36, -34), at(side * 34, -80), at(side * 6, -52)], fur)
        view.shape([at(side * 31, -44), at(side * 30, -68), at(side * 14, -52)], "#d8a39a")
        view.disc(*at(side * 18, 78), 15 * size, "#efe3d0", ry=9 * size)
    view.disc(*at(0, -26), 42 * size, fur, ry=35 * size)
    for dx in (-10, 0, 10):
        view.line([at(dx, -58), at(dx * 0.8, -43)], dark, 4 * size)
    view.disc(*at(0, -12), 19 * size, "#efe3d0", ry=13 * size)
    for side in (-1, 1):
        if eyes_open:
            view.disc(*at(side * 17, -30), 8 * size, "#c6d65a", ry=8.5 * size)
            view.disc(*at(side * 17, -30), 3 * size, "#1c1c1c", ry=7 * size)
        else:
            view.line([at(side * 25, -31), at(side * 17, -27), at(side * 9, -31)], "#3d2c1d", 3 * size)
        view.line([at(side * 12, -10), at(side * 48, -16)], "#f5efe6", 1.2 * size)
        view.line([at(side * 12, -6), at(side * 48, -3)], "#f5efe6", 1.2 * size)
    view.shape([at(-5, -18), at(5, -18), at(0, -11)], "#b86a66")


def squash(view: Picture, x: float, y: float, size: float) -> None:
    """Draw a ribbed grey-blue squash."""
    for dx, wide in ((-62, 42), (62, 42), (-32, 46), (32, 46), (0, 44)):
        shade = "#8fa3a0" if abs(dx) > 40 else "#a3b5b1"
        view.disc(x + dx * size, y + 20 * size, wide * size, shade, ry=62 * size, edge="#778b88", width=1)
    view.shape([(x - 9, y - 36), (x + 9, y - 36), (x + 15, y - 66), (x - 1, y - 62)], "#6f7a45")


def phone(title: str, lines: Sequence[str]) -> Picture:
    """A screenshot of a phone; 300 by 480."""
    screen = Picture(300, 480, "#f4f6f8")
    screen.box(0, 0, 300, 66, "#355c7d")
    screen.text(150, 28, title, 19, "white", align="middle", bold=True)
    for index, words in enumerate(lines):
        y = 84 + index * 54
        screen.box(14, y, 272, 44, "white", radius=8, edge="#d5dbe0")
        screen.text(26, y + 13, words, 15, "#2a2f33")
    return screen


def poster(lines: Sequence[str], sticker: Sequence[str]) -> Picture:
    """An exhibition poster with winding rivers and, perhaps, a correction stuck over a corner; portrait, 360 by 480."""
    wall = Picture(360, 480, "#8c8379")
    sheet = Picture(280, 400, "#f1e7cf")
    for index, colour in enumerate(("#4f8aa8", "#7fb0c4", "#3a6c86")):
        x = 60 + index * 75
        points = [(x + (30 if k % 2 else -26) + k * 3, 112 + k * 24) for k in range(11)]
        sheet.line(points, colour, 12 - index * 3)
    for px, py in scatter(9, 22, (20, 260), (120, 350)):
        sheet.shape([(px, py), (px + 5, py - 10), (px + 10, py)], "#7d8f5a")
    sheet.text(140, 26, lines[0], 29, "#5a2d1a", align="middle", bold=True)
    sheet.text(140, 64, lines[1], 15, "#5a2d1a", align="middle")
    sheet.box(0, 350, 280, 50, "#5a2d1a")
    sheet.text(140, 363, lines[2], 18, "#f1e7cf", align="middle")
    wall.lay(sheet, 180, 236, 0.5)
    if sticker:
        label = Picture(176, 26 + 24 * len(sticker), "#ffdf3f")
        for index, words in enumerate(sticker):
            label.text(88, 12 + 24 * index, words, 18, "#7d1313", align="middle", bold=True)
        wall.lay(label, 236, 330, 7)
    return wall


def tag(lines: Sequence[str], metal: str = "#3566a8") -> Picture:
    """A sticker on a painted bicycle tube, close up; 480 by 360."""
    tube = Picture(480, 360, "#555b5e")
    tube.shade(60, 190, (38, 74, 128), (98, 150, 214))
    tube.shade(190, 300, (98, 150, 214), (30, 58, 104))
    sticker = Picture(320, 36 + 32 * len(lines), "#f2f2ee")
    for index, words in enumerate(lines):
        sticker.text(160, 16 + 32 * index, words, 24 if index else 19, align="middle", bold=bool(index))
    tube.lay(sticker, 240, 182, 1.5)
    tube.disc(60, 182, 13, metal, edge="#1d3c68", width=3)
    return tube


def price_board(title: str, rows: Sequence[Row], *, face: str = "#2a2a2a") -> Picture:
    """A chalk board with prices or times; 480 by 360."""
    wall = Picture(480, 360, "#a8896a")
    wall.box(34, 22, 412, 318, "#6b4a2f", radius=4)
    wall.box(46, 34, 388, 294, face)
    wall.text(240, 50, title, 27, "#fdf6d8", align="middle", bold=True)
    for index, (name, value) in enumerate(rows):
        y = 100 + index * 38
        wall.text(66, y, name, 21, "#f5f5ee")
        wall.text(414, y, value, 21, "#ffd27a", align="right", bold=True)
    return wall


def bars(title: str, rows: Sequence[tuple[str, int]], unit: str) -> Picture:
    """A bar chart on paper, values above the bars; 480 by 360."""
    sheet = Picture(480, 360, "#ffffff")
    sheet.text(240, 16, title, 22, align="middle", bold=True)
    top = max(value for _, value in rows)
    step = 400 / len(rows)
    for index, (name, value) in enumerate(rows):
        x, tall = 48 + index * step, 210 * value / top
        sheet.box(x, 300 - tall, step * 0.62, tall, ("#e0a030", "#5b8fb0", "#6d9a5b", "#b0624a")[index % 4])
        sheet.text(x + step * 0.31, 278 - tall, str(value), 17, align="middle", bold=True)
        sheet.text(x + step * 0.31, 308, name, 16, "#444444", align="middle")
    sheet.line([(36, 300), (456, 300)], "#333333", 2)
    sheet.text(36, 50, unit, 14, "#777777")
    return sheet
