"""Writes the M2CA-Bench sample: two sessions of making and talking about small drawn pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from samples.drawing import Colour, Picture, jpeg
from samples.text import as_json

FOLDER = "benchmarks/m2ca/sample"
HOLDS = (
    "{sessions} sessions, one in English and one in Chinese, of {turns} turns with {pictures} pictures: all five task"
    " types and four difficulties, near-duplicates, and both kinds of negatives. A synthetic stand-in in this project's"
    " own layout, since M2CA-Bench is not published: every sentence was made up and every picture drawn by"
    " `tools/make_samples.py` for memharness, and a result on it says nothing about M2CA-Bench. Code: Apache-2.0. This"
    " data: CC0-1.0. To make it again: `python tools/make_samples.py`."
)
WIDTH, HEIGHT = 96, 72


# --- pictures -----------------------------------------------------------------------------------------------------


def shelf(*mugs: tuple[Colour, bool]) -> Picture:
    """A white shelf with mugs: colour, and whether it has white dots."""
    picture = Picture(WIDTH, HEIGHT, "#e9e4da")
    picture.box(0, 56, WIDTH, 6, "#ffffff", edge="#b8b0a2")
    for place, (colour, dots) in enumerate(mugs):
        mug(picture, (place + 0.5) * WIDTH / len(mugs), 56, colour, dots)
    return picture


def mug(picture: Picture, x: float, base: float, colour: Colour, dots: bool = False, size: float = 1.0) -> None:
    """A mug that stands at (x, base)."""
    picture.disc(x + 11 * size, base - 13 * size, 6 * size, None, edge=colour, width=3 * size)
    picture.box(x - 11 * size, base - 25 * size, 22 * size, 25 * size, colour, radius=3 * size)
    if dots:
        for dx, dy in ((-5, -19), (4, -16), (-3, -9), (6, -7)):
            picture.disc(x + dx * size, base + dy * size, 2 * size, "#ffffff")


def kite(colour: Colour = "#c0392b", *, tail: bool = True, beach: bool = True, dusk: bool = False) -> Picture:
    """A kite over a field or a beach."""
    picture = Picture(WIDTH, HEIGHT, "#35416b" if dusk else "#bfe0f2")
    ground = ("#a98e5f" if dusk else "#ecd9a0") if beach else "#7fae55"
    picture.box(0, 54, WIDTH, 18, ground)
    fly(picture, 48, 26, colour, tail)
    return picture


def fly(picture: Picture, x: float, y: float, colour: Colour, tail: bool) -> None:
    """A kite with its middle at (x, y)."""
    if tail:
        picture.line([(x, y + 14), (x - 6, y + 20), (x + 4, y + 26), (x - 3, y + 33)], "#f1c40f", 2)
    picture.shape([(x, y - 15), (x + 11, y), (x, y + 14), (x - 11, y)], colour, edge="#333333")


def stall(*, red_mug: bool = False, sign: bool = False, orange_kite: bool = False) -> Picture:
    """A market stall with a striped roof."""
    picture = Picture(WIDTH, HEIGHT, "#dfe8d8")
    for stripe in range(8):
        picture.box(8 + stripe * 10, 16, 10, 12, "#ffffff" if stripe % 2 else "#2e7d6b")
    picture.box(10, 28, 3, 40, "#7a5c3a")
    picture.box(83, 28, 3, 40, "#7a5c3a")
    picture.box(8, 50, 80, 18, "#9c7447")
    if red_mug:
        mug(picture, 40, 50, "#c0392b", size=0.6)
    if sign:
        board(picture, 66, 38, "12", size=0.5)
    if orange_kite:
        fly(picture, 48, 15, "#e67e22", tail=False)
    return picture


def sign(words: str) -> Picture:
    """A wooden price sign."""
    picture = Picture(WIDTH, HEIGHT, "#f4f1ea")
    board(picture, 48, 34, words)
    return picture


def board(picture: Picture, x: float, y: float, words: str, size: float = 1.0) -> None:
    """A board with its middle at (x, y)."""
    picture.box(x - 28 * size, y - 18 * size, 56 * size, 36 * size, "#b98a55", edge="#6d4a24", width=2)
    if words:
        picture.text(x, y - 13 * size, words, 24 * size, align="middle", bold=True)


def lake(sail: Colour, *, moon: bool = False, bridge: bool = False, boat: bool = True) -> Picture:
    """A lake by day or by moonlight, with a boat or a stone bridge or both."""
    picture = Picture(WIDTH, HEIGHT, "#232d4d" if moon else "#cfe6f0")
    picture.box(0, 46, WIDTH, 26, "#1c3a57" if moon else "#6fa8c7")
    if moon:
        picture.disc(76, 14, 7, "#f7f3d0")
    if bridge:
        picture.arc(48, 50, 30, 180, 360, "#8d8d86", 8)
    if boat:
        picture.line([(48, 26), (48, 50)], "#5b3a1e", 2)
        picture.shape([(50, 28), (64, 46), (50, 46)], sail, edge="#555555")
        picture.shape([(32, 50), (64, 50), (58, 58), (38, 58)], "#7b4f2a")
    return picture


# --- sessions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A picture that a turn brings or makes: file name, how it is drawn, caption, kind and parents by file name."""

    name: str
    draw: Callable[[], Picture]
    caption: str
    kind: str = "generated"
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """A turn: task, difficulty, the user's words, pictures needed by name, and what comes of it."""

    task: str
    difficulty: str
    text: str
    needs: tuple[str, ...] = ()
    makes: Made | None = None
    answer: str = ""
    tags: tuple[str, ...] = ()
    negatives: str = "none"
    confounders: tuple[str, ...] = ()
    brings: Made | None = None


RED, BLUE, GREEN = "#c0392b", "#2f5d9b", "#3c8d4f"
LONG, CROSS, SWITCH = "long_term_mem", "cross_topic", "topic_switch"

KIOSK = (
    Said("generate", "easy", "Draw a blue enamel mug on a white shelf.",
         makes=Made("mug_blue", lambda: shelf((BLUE, False)), "A plain blue enamel mug on a white shelf.")),
    Said("edit", "easy", "Make the mug red and leave the rest as it is.", ("mug_blue",),
         Made("mug_red", lambda: shelf((RED, False)), "A plain red enamel mug on a white shelf.", "edited",
              ("mug_blue",))),
    Said("generate", "medium", "Now something new, with nothing from before: a paper kite over a green field.",
         makes=Made("kite_field", lambda: kite(tail=False, beach=False), "A red kite over a green field."),
         tags=(SWITCH,), negatives="structural"),
    Said("edit", "easy", "Give the kite a long yellow tail.", ("kite_field",),
         Made("kite_tail", lambda: kite(beach=False), "A red kite with a yellow tail over a green field.", "edited",
              ("kite_field",))),
    Said("understand", "medium", "Which colour was the very first mug you drew for me?", ("mug_blue",),
         answer="It was blue.", tags=(SWITCH,), confounders=("mug_red",)),
    Said("composite", "hard", "Here is a photo of my stall. Put the red mug on its counter.", ("mug_red", "stall"),
         Made("stall_mug", lambda: stall(red_mug=True), "A market stall with a green striped roof and a red mug on it.",
              "composed", ("mug_red", "stall")),
         tags=(CROSS,),
         brings=Made("stall", stall, "A market stall with a green striped roof and an empty counter.", "upload")),
    Said("pure_chat", "easy", "The red mug looks good there. What is a fair price for an enamel mug, roughly?",
         answer="Somewhere between 8 and 15, depending on its size.", negatives="semantic"),
    Said("edit", "medium", "Back to the kite with the tail: turn the field below it into a beach.", ("kite_tail",),
         Made("kite_beach", kite, "A red kite with a yellow tail over a sandy beach by day.", "edited", ("kite_tail",)),
         tags=(SWITCH,), confounders=("kite_field",)),
    Said("edit", "easy", "The same, at dusk.", ("kite_beach",),
         Made("kite_dusk", lambda: kite(dusk=True), "A red kite with a yellow tail over a sandy beach at dusk.",
              "edited", ("kite_beach",))),
    Said("understand", "medium", "In the picture before the dusk one, is there sand or grass below the kite?",
         ("kite_beach",), answer="Sand.", confounders=("kite_dusk", "kite_tail")),
    Said("edit", "hard", "Take the blue mug from the beginning and paint white dots on it.", ("mug_blue",),
         Made("mug_dots", lambda: shelf((BLUE, True)), "A blue enamel mug with white dots on a white shelf.", "edited",
              ("mug_blue",)),
         tags=(CROSS, LONG), confounders=("mug_red",)),
    Said("generate", "medium", "A fresh picture, please: an empty wooden price sign.",
         makes=Made("sign_empty", lambda: sign(""), "An empty wooden sign."), tags=(SWITCH,), negatives="structural"),
    Said("edit", "easy", "Write 12 on it.", ("sign_empty",),
         Made("sign_12", lambda: sign("12"), "A wooden sign that says 12.", "edited", ("sign_empty",))),
    Said("composite", "very_hard", "Hang that sign on the stall, the one with a mug on its counter.",
         ("stall_mug", "sign_12"),
         Made("stall_sign", lambda: stall(red_mug=True, sign=True),
              "A market stall with a green striped roof, a red mug and a sign that says 12.", "composed",
              ("stall_mug", "sign_12")),
         tags=(CROSS, LONG), confounders=("stall", "sign_empty")),
    Said("understand", "very_hard", "Compare the dotted mug with the one it was made from: what is different?",
         ("mug_blue", "mug_dots"), answer="The dots alone; both are blue.", tags=(CROSS, LONG),
         confounders=("mug_red",)),
    Said("pure_chat", "easy", "My sister smiled at those kites. Do people still fly them at the coast?",
         answer="They do, most of all on windy weekends.", negatives="semantic"),
    Said("edit", "medium", "Make the dotted mug green, with its dots as they are.", ("mug_dots",),
         Made("mug_green", lambda: shelf((GREEN, True)), "A green enamel mug with white dots on a white shelf.",
              "edited", ("mug_dots",)),
         tags=(SWITCH,), confounders=("mug_blue",)),
    Said("composite", "very_hard", "All that I may sell in one picture: the plain red mug and both dotted ones.",
         ("mug_red", "mug_dots", "mug_green"),
         Made("mugs", lambda: shelf((RED, False), (BLUE, True), (GREEN, True)),
              "A plain red, a dotted blue and a dotted green mug on a white shelf.", "composed",
              ("mug_red", "mug_dots", "mug_green")),
         tags=(CROSS, LONG), confounders=("mug_blue",)),
    Said("edit", "hard", "In the beach picture by daylight, let the kite be orange.", ("kite_beach",),
         Made("kite_orange", lambda: kite("#e67e22"), "An orange kite with a yellow tail over a sandy beach by day.",
              "edited", ("kite_beach",)),
         tags=(CROSS, LONG), confounders=("kite_dusk",)),
    Said("composite", "very_hard", "For the poster: the stall as it is now, and above it the kite from just before.",
         ("stall_sign", "kite_orange"),
         Made("poster", lambda: stall(red_mug=True, sign=True, orange_kite=True),
              "A market stall with a red mug and a sign that says 12, and an orange kite above it.", "composed",
              ("stall_sign", "kite_orange")),
         tags=(CROSS,), confounders=("stall_mug", "stall")),
)  # fmt: skip

LAKE = (
    Said("generate", "easy", "画一只白帆小木船，停在湖上。",
         makes=Made("boat_white", lambda: lake("#ffffff"), "白天的湖上，一只白帆小木船。")),
    Said("edit", "easy", "把船帆改成红色。", ("boat_white",),
         Made("boat_red", lambda: lake(RED), "白天的湖上，一只红帆小木船。", "edited", ("boat_white",))),
    Said("generate", "medium", "另画一张新的：湖上的一座石桥。",
         makes=Made("bridge", lambda: lake(RED, bridge=True, boat=False), "湖上的一座石桥。"),
         tags=(SWITCH,), negatives="structural"),
    Said("pure_chat", "easy", "刚才的红帆小船真好看。划船难学吗？", answer="不难，半天就能学会。",
         negatives="semantic"),
    Said("edit", "medium", "让红帆小船停在月光下。", ("boat_red",),
         Made("boat_moon", lambda: lake(RED, moon=True), "月光下的湖上，一只红帆小木船。", "edited", ("boat_red",)),
         tags=(SWITCH,), confounders=("boat_white",)),
    Said("understand", "hard", "最早那张图里，船帆是什么颜色？", ("boat_white",), answer="白色。", tags=(CROSS,),
         confounders=("boat_red",)),
    Said("composite", "very_hard", "把月光下的小船放到石桥下面。", ("bridge", "boat_moon"),
         Made("boat_bridge", lambda: lake(RED, moon=True, bridge=True), "月光下，石桥下面的红帆小木船。", "composed",
              ("bridge", "boat_moon")),
         tags=(CROSS,), confounders=("boat_red",)),
    Said("edit", "easy", "改成白天。", ("boat_bridge",),
         Made("boat_day", lambda: lake(RED, bridge=True), "白天，石桥下面的红帆小木船。", "edited", ("boat_bridge",))),
)  # fmt: skip

SESSIONS: tuple[tuple[str, str, list[str], tuple[Said, ...]], ...] = (
    ("kiosk", "en", ["commercial"], KIOSK),
    ("lake", "zh", ["natural landscape"], LAKE),
)


def session(name: str, lang: str, domains: list[str], turns: tuple[Said, ...]) -> tuple[Any, dict[str, bytes]]:
    """Return a native session and its pictures by path."""
    index: dict[str, int] = {}
    assets: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}

    def asset(made: Made, turn: int) -> str:
        index[made.name] = len(assets)
        path = f"images/{name}/{len(assets):02d}.jpg"
        files[path] = jpeg(made.draw().done())
        assets.append({
            "asset_id": identity(made.name), "index": len(assets), "created_turn": turn, "kind": made.kind,
            "parent_ids": [identity(parent) for parent in made.parents], "path": path, "caption": made.caption,
        })  # fmt: skip
        return identity(made.name)

    def identity(made: str) -> str:
        return f"{name}-{index[made]:02d}"

    rows: list[dict[str, Any]] = []
    for number, said in enumerate(turns, 1):
        row: dict[str, Any] = {"turn": number, "user_text": said.text}
        row["uploads"] = [asset(said.brings, number)] if said.brings else []
        oldest = min((assets[index[need]]["created_turn"] for need in said.needs), default=number)
        row |= {
            "task_type": said.task, "gt_images": [identity(need) for need in said.needs],
            "difficulty": said.difficulty, "tags": list(said.tags), "span_max": number - oldest,
            "negatives": said.negatives, "confounders": [identity(other) for other in said.confounders],
        }  # fmt: skip
        row |= {"output_asset": asset(said.makes, number) if said.makes else None, "gt_answer": said.answer or None}
        rows.append(row)
    return {"session_id": name, "lang": lang, "domains": domains, "turns": rows, "assets": assets}, files


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    turns = pictures = 0
    for one in SESSIONS:
        body, drawn = session(*one)
        yield f"{FOLDER}/sessions/{one[0]}.json", as_json(body)
        for path, picture in drawn.items():
            yield f"{FOLDER}/{path}", picture
        turns, pictures = turns + len(one[3]), pictures + len(drawn)
    words = HOLDS.format(sessions=len(SESSIONS), turns=turns, pictures=pictures)
    yield (
        f"{FOLDER}/README.md",
        f"# M2CA-Bench sample\n\n{textwrap.fill(words, 100, break_on_hyphens=False)}\n".encode(),
    )
