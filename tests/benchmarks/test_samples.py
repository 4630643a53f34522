"""The committed samples: whole, consistent, and what their generator makes."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import re
import struct
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageStat

ROOT = Path(__file__).resolve().parents[2]
ATM = ROOT / "benchmarks/atm/sample/data"
GALLERY = ROOT / "benchmarks/mem_gallery/sample"
LOCOMO = ROOT / "benchmarks/locomo/sample/locomo_sample.json"
HOTPOT = ROOT / "benchmarks/hotpotqa/sample/hotpot_sample.json"
MADE = (
    "alfworld",
    "m2ca",
    "atm",
    "mem_gallery",
    "locomo",
    "hotpotqa",
    "two_wiki",
    "memeye",
    "h2hmem",
    "blink",
    "lvbench",
    "muirbench",
    "mvbench",
    "mmbench",
    "mmstar",
    "realworldqa",
    "simplevqa",
)
FOLDERS = [f"benchmarks/{name}/sample" for name in MADE]
VERSIONS = "tools/samples/MADE_WITH"


def read(path: Path) -> Any:
    """Return the JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def names(root: Path) -> set[str]:
    """Return the sample files under a root, by relative path."""
    found = (path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix() for path in found}


# --- the generator -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples, made once more in an empty folder."""
    out = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, ROOT / "tools/make_samples.py", "--out", out], check=True, timeout=240)
    return out


def without_sizes(value: Any) -> Any:
    """Return JSON without the sizes of encoded files, which depend on the encoder's version."""
    if isinstance(value, dict):
        return {key: without_sizes(inner) for key, inner in value.items() if key != "file_size"}
    return [without_sizes(inner) for inner in value] if isinstance(value, list) else value


def without_pictures(text: bytes) -> bytes:
    """Return a text file without the base64 pictures in it, which depend on the encoder's version."""
    return re.sub(rb'"[A-Za-z0-9+/=]{200,}"', b'""', text)


def alike(one: bytes, other: bytes) -> bool:
    """Tell whether two encoded pictures show the same, whatever their encoders."""
    first, second = (Image.open(io.BytesIO(body)).convert("RGB") for body in (one, other))
    return first.size == second.size and max(ImageStat.Stat(ImageChops.difference(first, second)).mean) < 4


def test_the_generator_makes_the_committed_files(remade: Path) -> None:
    assert names(remade) == names(ROOT)
    same_versions = (remade / VERSIONS).read_text() == (ROOT / VERSIONS).read_text()
    for name in sorted(names(ROOT)):
        made, kept = (remade / name).read_bytes(), (ROOT / name).read_bytes()
        if same_versions or name.endswith((".md", ".tw-pddl")):
            assert made == kept, name
        elif name.endswith(".json"):
            assert without_sizes(json.loads(made)) == without_sizes(json.loads(kept)), name
        elif name.endswith((".tsv", ".jsonl")):
            assert without_pictures(made) == without_pictures(kept), name
        elif name.endswith((".jpg", ".png")):
            assert alike(made, kept), name
        else:
            assert all(alike(a, b) for a, b in zip(stills(made), stills(kept), strict=True)), name


def test_the_samples_are_small() -> None:
    sizes = {folder: sum(p.stat().st_size for p in (ROOT / folder).rglob("*") if p.is_file()) for folder in FOLDERS}
    assert sizes["benchmarks/atm/sample"] < 2_000_000
    assert sizes["benchmarks/mem_gallery/sample"] < 1_000_000


# --- ATM-Bench ---------------------------------------------------------------------------------------------------


def stills(film: bytes) -> list[bytes]:
    """Return the JPEG pictures of a Motion-JPEG AVI file, found through its index."""
    start = film.index(b"movi")
    at = film.rindex(b"idx1")
    (size,) = struct.unpack_from("<I", film, at + 4)
    rows = [struct.unpack_from("<4sIII", film, at + 8 + 16 * i) for i in range(size // 16)]
    return [film[start + offset + 8 : start + offset + 8 + length] for _, _, offset, length in rows]


@pytest.fixture(scope="module")
def photos() -> dict[str, dict[str, Any]]:
    """The processed rows of the photos, by id."""
    return {Path(r["image_path"]).stem: r for r in read(ATM / "processed_memory/image_batch_results.json")}


@pytest.fixture(scope="module")
def films() -> dict[str, dict[str, Any]]:
    """The processed rows of the films, by id."""
    return {Path(r["video_path"]).stem: r for r in read(ATM / "processed_memory/video_batch_results.json")}


@pytest.fixture(scope="module")
def mails() -> dict[str, dict[str, Any]]:
    """The e-mails, by id."""
    return {m["id"]: m for m in read(ATM / "raw_memory/email/emails.json")}


@pytest.fixture(scope="module")
def atm_questions() -> list[dict[str, Any]]:
    """The plain and the hard questions together."""
    rows: list[dict[str, Any]] = read(ATM / "atm-bench/atm-bench.json") + read(ATM / "atm-bench/atm-bench-hard.json")
    return rows


def test_atm_items_are_whole(
    mails: dict[str, Any], photos: dict[str, dict[str, Any]], films: dict[str, dict[str, Any]]
) -> None:
    rows = read(ATM / "raw_memory/email/emails.json")
    assert len(mails) == len(rows) >= 30
    assert len(photos) >= 40
    assert len(films) >= 8
    assert all(
        re.fullmatch(r"email\d{12}", id) and id[5:13] == m["timestamp"][:10].replace("-", "") for id, m in mails.items()
    )
    assert {p.stem for p in (ATM / "raw_memory/image").iterdir()} == set(photos)
    assert {p.stem for p in (ATM / "raw_memory/video").iterdir()} == set(films)
    for id, row in {**photos, **films}.items():
        path = ATM.parent / (row.get("image_path") or row["video_path"])
        assert path.stat().st_size == row["file_size"]
        assert re.fullmatch(r"\d{8}_\d{6}", id)
        assert row["caption"] and row["short_caption"] and row["tags"] and row["safety_content"] == "safe"
        assert all(set(entity) == {"entity", "type"} for entity in row["entities"])


def test_atm_photos_carry_their_time_and_place(photos: dict[str, dict[str, Any]]) -> None:
    for id, row in photos.items():
        with Image.open(ATM.parent / row["image_path"]) as picture:
            picture.load()
            data = picture.getexif()
        taken = str(data.get_ifd(0x8769)[0x9003])
        assert re.sub(r"\D", "", taken) == id.replace("_", "") == re.sub(r"\D", "", row["timestamp"])
        gps = data.get_ifd(0x8825)
        if row["location"] is None:
            assert not gps and row["city"] is None
            continue
        for field, reference, value in ((2, gps[1], row["location"][0]), (4, gps[3], row["location"][1])):
            whole, minutes, seconds = (float(part) for part in gps[field])
            sign = -1 if reference in "SW" else 1
            assert sign * (whole + minutes / 60 + seconds / 3600) == pytest.approx(value, abs=1e-5)


def test_atm_bursts_are_near_duplicates(photos: dict[str, dict[str, Any]]) -> None:
    with (
        Image.open(ATM.parent / photos["20240113_113020"]["image_path"]) as one,
        Image.open(ATM.parent / photos["20240113_113024"]["image_path"]) as two,
    ):
        difference = max(ImageStat.Stat(ImageChops.difference(one, two)).mean)
    assert 1 < difference < 40


def test_atm_films_decode(films: dict[str, dict[str, Any]]) -> None:
    for row in films.values():
        body = (ATM.parent / row["video_path"]).read_bytes()
        assert len(body) < 60_000
        assert body[:4] == b"RIFF" and body[8:12] == b"AVI " and b"MJPG" in body[:256]
        assert struct.unpack_from("<I", body, 4)[0] == len(body) - 8
        pictures = [Image.open(io.BytesIO(still)).convert("RGB") for still in stills(body)]
        assert {picture.size for picture in pictures} == {(row["width"], row["height"])}
        assert len(pictures) == row["duration"] * 2
        assert ImageStat.Stat(ImageChops.difference(pictures[0], pictures[5])).sum != [0, 0, 0]


@pytest.mark.skipif(importlib.util.find_spec("av") is None, reason="PyAV is not installed")
def test_atm_films_decode_in_a_player(films: dict[str, dict[str, Any]]) -> None:
    av = importlib.import_module("av")

    for row in films.values():
        with av.open(str(ATM.parent / row["video_path"])) as film:
            assert film.streams.video[0].codec_context.name == row["codec"]
            assert sum(1 for _ in film.decode(video=0)) == row["duration"] * 2


def test_atm_questions_resolve(
    atm_questions: list[dict[str, Any]],
    mails: dict[str, Any],
    photos: dict[str, dict[str, Any]],
    films: dict[str, dict[str, Any]],
) -> None:
    items = {**mails, **photos, **films}
    assert len(items) == len(mails) + len(photos) + len(films) >= 60
    assert len({q["id"] for q in atm_questions}) == len({q["question"] for q in atm_questions}) == len(atm_questions)
    for question in atm_questions:
        assert uuid.UUID(question["id"]).version == 5
        assert set(question["evidence_ids"]) <= set(items), question["question"]
        assert question["evidence_ids"] or question["answer"] == "Unknown"
        if question["qtype"] == "list_recall":
            assert question["answer"].split(", ") == question["evidence_ids"]


def test_atm_has_what_it_promises(atm_questions: list[dict[str, Any]]) -> None:
    assert len(read(ATM / "atm-bench/atm-bench.json")) >= 30
    kinds = Counter(q["qtype"] for q in atm_questions)
    assert set(kinds) == {"number", "list_recall", "open_end"} and min(kinds.values()) >= 8
    assert sum(q["answer"] == "Unknown" for q in atm_questions) >= 3
    assert sum(len(q["evidence_ids"]) >= 2 for q in atm_questions) >= 20
    mixed = [q for q in atm_questions if len({i.startswith("email") for i in q["evidence_ids"]}) == 2]
    assert len(mixed) >= 10


def test_atm_pools_hold_the_evidence(
    mails: dict[str, Any], photos: dict[str, dict[str, Any]], films: dict[str, dict[str, Any]]
) -> None:
    hard = read(ATM / "atm-bench/atm-bench-hard.json")
    pools = read(ATM / "atm-bench/niah/atm-bench-hard-niah25.json")
    assert [{k: v for k, v in row.items() if k != "niah_evidence_ids"} for row in pools] == hard
    for row in pools:
        pool = row["niah_evidence_ids"]
        assert len(pool) == len(set(pool)) == 25
        assert set(row["evidence_ids"]) <= set(pool) <= {*mails, *photos, *films}


# --- Mem-Gallery -------------------------------------------------------------------------------------------------


def dialogues() -> Iterator[tuple[Path, Any]]:
    """Yield the dialogues of the Mem-Gallery sample."""
    for path in sorted((GALLERY / "dialog").glob("*.json")):
        yield path, read(path)


def test_gallery_rounds_and_pictures() -> None:
    used = set()
    for path, dialogue in dialogues():
        assert len(dialogue["multi_session_dialogues"]) == 5
        assert dialogue["character_profile"]["name"]
        for session in dialogue["multi_session_dialogues"]:
            for number, told in enumerate(session["dialogues"], 1):
                assert told["round"] == f"{session['session_id']}:{number}"
                assert told["user"] and told["assistant"]
                if "image_id" in told:
                    (name,), (caption,) = told["input_image"], told["image_caption"]
                    assert name == f"../image/{path.stem}/{told['image_id'][0].replace(':', '_')}.jpg"
                    assert caption
                    used.add((path.parent / name).resolve())
        used |= {(path.parent / q["question_image"]).resolve() for q in questions_of(dialogue) if "question_image" in q}
    assert used == {p.resolve() for p in (GALLERY / "image").rglob("*.jpg")}
    for picture in used:
        with Image.open(picture) as opened:
            opened.load()


def questions_of(dialogue: Any) -> list[dict[str, Any]]:
    """Return a dialogue's questions."""
    rows: list[dict[str, Any]] = dialogue["human-annotated QAs"]
    return rows


def test_gallery_questions_resolve() -> None:
    points: Counter[str] = Counter()
    pictured = 0
    for _, dialogue in dialogues():
        rounds = {r["round"]: r for s in dialogue["multi_session_dialogues"] for r in s["dialogues"]}
        for question in questions_of(dialogue):
            points[question["point"]] += 1
            pictured += "question_image" in question
            assert ("question_image" in question) == ("image_caption" in question)
            assert set(question["clue"]) <= set(rounds)
            if question["point"] == "AR":
                assert question["clue"] == [] and question["answer"] == "Not mentioned."
                continue
            assert question["session_id"] == list(dict.fromkeys(c.split(":")[0] for c in question["clue"])) != []
            if question["point"] == "VS":
                shown = [rounds[c]["image_id"][0] for c in question["clue"]]
                assert question["answer"].split(", ") == shown
    assert set(points) == {"FR", "VS", "TTL", "TR", "VR", "MR", "KR", "CD", "AR"}
    assert sum(points.values()) >= 30 and pictured >= 6


# --- LoCoMo ------------------------------------------------------------------------------------------------------


def test_locomo_turns() -> None:
    talks = read(LOCOMO)
    assert len({talk["sample_id"] for talk in talks}) == len(talks) == 2
    for talk in talks:
        told = talk["conversation"]
        people = {told["speaker_a"], told["speaker_b"]}
        sessions = {key: value for key, value in told.items() if isinstance(value, list)}
        assert len(sessions) == 4
        for key, turns in sessions.items():
            assert re.fullmatch(r"\d{1,2}:\d\d [ap]m on \d{1,2} [A-Z][a-z]+, \d{4}", told[f"{key}_date_time"])
            for number, turn in enumerate(turns, 1):
                assert turn["dia_id"] == f"D{key.removeprefix('session_')}:{number}"
                assert turn["speaker"] in people and turn["text"]
                assert "img_url" not in turn or (len(turn["img_url"]) == 1 and turn["blip_caption"] and turn["query"])
    dates = [key for key in talks[0]["conversation"] if key.endswith("_date_time")]
    assert len(dates) == 6  # two of them without a session, as in the real file
    turns = [t for talk in talks for s in talk["conversation"].values() if isinstance(s, list) for t in s]
    assert sum("img_url" in t for t in turns) >= 6
    assert any("blip_caption" in t and "img_url" not in t for t in turns)


def test_locomo_questions_resolve() -> None:
    talks = read(LOCOMO)
    rows = [(talk, question) for talk in talks for question in talk["qa"]]
    assert len(rows) >= 30 and len({q["question"] for _, q in rows}) == len(rows)
    assert {q["category"] for _, q in rows} == {1, 2, 3, 4, 5}
    for talk, question in rows:
        known = {t["dia_id"] for s in talk["conversation"].values() if isinstance(s, list) for t in s}
        assert {id for field in question["evidence"] for id in re.split(r"[;\s]+", field)} <= known
        assert ("adversarial_answer" in question) == (question["category"] == 5)
        assert "answer" in question or question["category"] == 5
    oddities = [q for _, q in rows]
    assert {q["category"] for q in oddities if isinstance(q.get("answer"), int)} == {1, 2}
    assert sum("answer" in q for q in oddities if q["category"] == 5) == 1
    assert sum(any(";" in field for field in q["evidence"]) for q in oddities) == 1
    assert any(q["evidence"] == [] for q in oddities)
    assert any(len({field.split(":")[0] for field in q["evidence"]}) > 1 for q in oddities if q["category"] == 1)
    assert any(";" in str(q.get("answer")) for q in oddities if q["category"] == 3)


# --- HotpotQA ----------------------------------------------------------------------------------------------------


def test_hotpot_questions_resolve() -> None:
    rows = read(HOTPOT)
    assert len({row["_id"] for row in rows}) == len(rows) >= 20
    assert {row["type"] for row in rows} == {"bridge", "comparison"}
    assert {row["level"] for row in rows} == {"easy", "medium", "hard"}
    assert sorted({len(row["context"]) for row in rows}) == [4, 10]
    for row in rows:
        context = dict(row["context"])
        assert len(context) == len(row["context"])
        assert all(context[title][sentence] for title, sentence in row["supporting_facts"])
        for first, *rest in context.values():
            assert not first.startswith(" ") and all(s.startswith(" ") and not s.endswith(" ") for s in rest)
    answers = {row["answer"] for row in rows}
    assert {"yes", "no"} <= answers


def test_hotpot_answers_stand_in_their_evidence() -> None:
    for row in read(HOTPOT):
        if row["answer"] in ("yes", "no"):
            continue
        context = dict(row["context"])
        words = " ".join(f"{title} {context[title][i]}" for title, i in row["supporting_facts"]).lower()
        answer = row["answer"].removeprefix("the ").lower()
        assert answer in words, row["question"]
