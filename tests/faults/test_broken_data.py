"""Data that are missing, torn, of another type, or that contradict themselves, through the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.media import MediaStore
from memharness.types import DataError, Image
from tests.faults.conftest import SAMPLES, Said, hostile, records, refused, run_words, summary

Cli = Callable[..., Said]
Sample = Callable[[str], Path]
FILES = {
    "hotpotqa": SAMPLES / "hotpotqa/sample/hotpot_sample.json",
    "locomo": SAMPLES / "locomo/sample/locomo_sample.json",
}


def words(bench: str, data: Path) -> list[str]:
    """A run that needs no model."""
    return ["run", "--method", "recency", "--bench", bench, "--reader", "extractive", "--json", "--data", str(data)]


@pytest.mark.parametrize("bench", FILES)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda raw: raw[: len(raw) // 2], "not JSON"),
        (lambda raw: b"", "line 1 column 1: not JSON"),
        (lambda raw: b" \n ", "not JSON"),
        (lambda raw: b"{}", "must hold a list of records, not a mapping"),
        (lambda raw: b"[]", "holds no"),
        (lambda raw: b'"text"', "not text"),
        (lambda raw: b"3", "not a whole number"),
        (lambda raw: b"null", "not nothing"),
        (lambda raw: b"[null]", "record 0: must be a mapping"),
        (lambda raw: b"[[]]", "record 0: must be a mapping"),
        (lambda raw: b"\xef\xbb\xbf" + raw, "BOM"),
        (lambda raw: raw[:-30] + b"\xe9" + raw[-30:], "not UTF-8"),
        (lambda raw: raw.decode().encode("utf-16"), "byte 0: not UTF-8"),
        (lambda raw: bytes(100), "not JSON"),
        (lambda raw: raw.replace(b'"answer": ', b'"old": NaN, "answer": ', 1), "NaN is no JSON value"),
        (lambda raw: raw.replace(b'"answer": ', b'"old": -Infinity, "answer": ', 1), "-Infinity is no JSON value"),
        (lambda raw: b"[" + b"1" * 5000 + b"]", "not JSON that can be read"),
        (lambda raw: b"[" * 100_000, "nested too deep"),
        (lambda raw: b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    ],
)
def test_a_file_that_is_not_the_data(
    cli: Cli, tmp_path: Path, bench: str, spoil: Callable[[bytes], bytes], message: str
) -> None:
    file = tmp_path / "spoilt.json"
    file.write_bytes(spoil(FILES[bench].read_bytes()))
    refused(cli(*words(bench, file)), str(file), message)
    assert not list(tmp_path.glob("results/runs/*/records/*"))


@pytest.mark.parametrize("bench", [*FILES, "atm", "mem-gallery"])
def test_a_path_that_is_no_such_file(cli: Cli, tmp_path: Path, bench: str) -> None:
    for name in ("missing.json", "loop.json", "folder.json", "pipe.json"):
        path = tmp_path / name
        if name == "loop.json":
            path.symlink_to(path)
        elif name == "folder.json":
            path.mkdir()
        elif name == "pipe.json":
            os.mkfifo(path)
        refused(cli(*words(bench, path)), str(path))


# ------------------------------------------------------------------------------------------------ records that are off


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v[0].pop("answer"), "record 0 (a9bfc957ace578487f4cae0b): answer: is missing or empty"),
        (lambda v: v[0].update(answer=""), "answer: is missing or empty"),
        (lambda v: v[0].update(context=[]), "context: is empty; a question needs at least one paragraph"),
        (lambda v: v[0].update(question=" "), "question: is empty"),
        (lambda v: v.append(v[0]), "record 24: _id: 'a9bfc957ace578487f4cae0b' is already the id of"),
    ],
)
def test_hotpotqa_records(cli: Cli, tmp_path: Path, spoil: Callable[[Any], Any], message: str) -> None:
    value = json.loads(FILES["hotpotqa"].read_text())
    spoil(value)
    file = tmp_path / "data.json"
    file.write_text(json.dumps(value))
    refused(cli(*words("hotpotqa", file)), message)


def empty_sessions(value: Any) -> None:
    """Leave no turn."""
    value[0]["conversation"] = {k: [] if isinstance(v, list) else v for k, v in value[0]["conversation"].items()}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v[0]["qa"][0].pop("answer"), "record 0 (conv-1): qa 0: answer: is missing or empty"),
        (lambda v: v[0]["qa"].clear(), "qa: holds no question"),
        (empty_sessions, "holds no session with turns; a context needs something to remember"),
        (
            lambda v: v[0]["conversation"]["session_1"].extend(v[0]["conversation"]["session_1"][:1]),
            "'D1:1' is already",
        ),
        (lambda v: v.append(v[0]), "sample_id: 'conv-1' is already the id of"),
    ],
)
def test_locomo_records(cli: Cli, tmp_path: Path, spoil: Callable[[Any], Any], message: str) -> None:
    value = json.loads(FILES["locomo"].read_text())
    spoil(value)
    file = tmp_path / "data.json"
    file.write_text(json.dumps(value))
    refused(cli(*words("locomo", file)), message)


QAS, TALK = "human-annotated QAs", "multi_session_dialogues"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v[QAS][0].pop("answer"), "question 0: answer: is empty"),
        (lambda v: v[QAS][0].update(clue=["D99:1"]), "clue: 'D99:1' is no round of this dialogue"),
        (lambda v: v[QAS].clear(), "human-annotated QAs: holds no question"),
        (lambda v: v[TALK].clear(), "holds no round; a context needs something to remember"),
        (lambda v: v[TALK][0]["dialogues"].append(v[TALK][0]["dialogues"][0]), "round: 'D1:1' is already the id of"),
    ],
)
def test_mem_gallery_records(cli: Cli, sample: Sample, spoil: Callable[[Any], Any], message: str) -> None:
    folder = sample("mem_gallery")
    file = folder / "dialog" / "Clock_Mending_Model_Railway.json"
    value = json.loads(file.read_text())
    spoil(value)
    file.write_text(json.dumps(value))
    refused(cli(*words("mem-gallery", folder)), str(file), message)


MAIL, ASKED = "data/raw_memory/email/emails.json", "data/atm-bench/atm-bench.json"


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        (ASKED, lambda v: v.append(v[0]), "record 37 (bfd8e819-e74a-5fc3-b304-ff0f8493c131): id:"),
        (ASKED, lambda v: v[0].update(evidence_ids=["zzz"]), "evidence_ids: 'zzz' names no item"),
        (ASKED, lambda v: v[0].pop("answer"), "answer: is missing or empty"),
        (ASKED, lambda v: v[0].update(answer=float("nan")), "NaN is no JSON value"),
        (ASKED, lambda v: v[0].update(id=7), "record 0: id: must be text, not a whole number"),
        (ASKED, lambda v: v.clear(), "holds no question"),
        (MAIL, lambda v: v.append(v[0]), "id: 'email202401040001' is already the id of"),
        (MAIL, lambda v: v.clear(), "names no item"),
        (MAIL, lambda v: v[0].update(timestamp="soon"), "timestamp: 'soon' is no date and time"),
    ],
)
def test_atm_records(cli: Cli, sample: Sample, name: str, spoil: Callable[[Any], Any], message: str) -> None:
    folder = sample("atm")
    value = json.loads((folder / name).read_text())
    spoil(value)
    (folder / name).write_text(json.dumps(value))
    refused(cli(*words("atm", folder)), message)


# ----------------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("content", [b"", b"<html>404 Not Found</html>", b"\xff\xd8\xff\xe0", b"head"])
def test_a_picture_that_is_none(cli: Cli, sample: Sample, content: bytes) -> None:
    folder = sample("atm")
    picture = sorted((folder / "data/raw_memory/image").iterdir())[0]
    picture.write_bytes(picture.read_bytes()[:100] if content == b"head" else content)
    refused(cli(*words("atm", folder)), "record 0: image_path", str(picture), "fetch it again or remove it")


def test_a_picture_torn_in_the_middle_is_named_when_it_is_looked_at(cli: Cli, sample: Sample) -> None:
    folder = sample("atm")
    for picture in (folder / "data/raw_memory/image").iterdir():
        picture.write_bytes(picture.read_bytes()[:-400])
    said = cli(*words("atm", folder), "--reader", hostile("Rough"), "-R", "how=looks", "--method", "oracle")
    refused(said, str(folder / "data/raw_memory/image"), "cannot be decoded as a picture", "fetch it again")
    assert summary(cli(*words("atm", folder)))["outcomes"] == {"ok": 37}  # by captions nothing is decoded


def test_a_missing_picture_is_said_for_pixels_and_no_matter_for_captions(cli: Cli, sample: Sample) -> None:
    folder = sample("atm")
    for picture in (folder / "data/raw_memory/image").iterdir():
        picture.unlink()
    said = cli(*words("atm", folder), "--reader", hostile("Rough"), "--method", "oracle", "-R", "how=looks")
    refused(said, "is not at hand; fetch the pictures or use --view captions")
    assert summary(cli(*words("atm", folder)))["outcomes"] == {"ok": 37}


def test_a_picture_that_claims_to_be_huge_or_has_a_wrong_checksum(tmp_path: Path) -> None:
    from PIL import Image as Pillow

    store = MediaStore(tmp_path / "files.sqlite")
    good = tmp_path / "good.png"
    Pillow.new("RGB", (40, 40), "red").save(good)
    raw = good.read_bytes()
    (tmp_path / "bomb.png").write_bytes(raw[:16] + (60_000).to_bytes(4, "big") * 2 + raw[24:])
    (tmp_path / "sum.png").write_bytes(raw[:30] + bytes([raw[30] ^ 1]) + raw[31:])  # in the checksum of its header
    (tmp_path / "cut.png").write_bytes(raw[: len(raw) // 2])
    for name in ("bomb.png", "sum.png", "cut.png"):
        with pytest.raises(DataError, match=name):
            image = store.image(tmp_path / name, name, f"record 0: {name}")
            assert isinstance(image, Image)
            store.open(image)


# --------------------------------------------------------------------------------- what only an outside loader can do


@pytest.mark.parametrize(
    ("how", "outcomes"),
    [
        ("same-item", {"method_error": 6}),
        ("no-items", {"ok": 6}),
        ("dangling-gold", {"ok": 6}),
        ("no-answers", {"ok": 6}),
        ("surrogate", {"ok": 6}),
    ],
)
def test_an_outside_benchmark_with_odd_data_still_ends(cli: Cli, how: str, outcomes: dict[str, int]) -> None:
    found = summary(cli(*run_words(bench=hostile("Odd")), "-B", f"how={how}"))
    assert found["outcomes"] == outcomes
    if how == "same-item":
        assert records(found)[0]["error"]["message"] == "item id 'i0' comes twice"
    if how == "no-items":
        assert found["flags"]["empty_readout"] == 6
    assert cli("verify", found["run"]).code == 0


def test_an_outside_benchmark_without_questions_or_that_breaks(cli: Cli) -> None:
    refused(cli(*run_words(bench=hostile("Odd")), "-B", "how=no-questions"), "nothing to ask")
    said = cli(*run_words(bench=hostile("Odd")), "-B", "how=raises")
    refused(said, "context c1: KeyError: 'turns' (hostile.py:")
    kept = [line for file in Path("results").glob("runs/*/records/*.jsonl") for line in file.read_text().splitlines()]
    assert len(kept) == 3  # of the context that was whole
