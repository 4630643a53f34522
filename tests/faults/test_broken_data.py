"""Data that are missing, torn, of another type, or that contradict themselves, through the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.media import MediaStore
from memharness.run.data import open_benchmark
from memharness.types import DataError, Image
from tests.faults.conftest import Said, hostile, records, refused, run_words, summary

Cli = Callable[..., Said]
Sample = Callable[[str], Path]
FILES = {  # the sample's folder, and a file of it that holds questions
    "2wiki": ("two_wiki", "dev.json"),
    "atm": ("atm", "data/atm-bench/atm-bench.json"),
    "h2hmem": ("h2hmem", "dyadic/dialogue1/scenes/session1/questions.json"),
    "hotpotqa": ("hotpotqa", "hotpot_sample.json"),
    "locomo": ("locomo", "locomo_sample.json"),
    "mem-gallery": ("mem_gallery", "dialog/Clock_Mending_Model_Railway.json"),
    "memeye": ("memeye", "dialog/Toy_Shelf_Log.json"),
}
LISTS = ("2wiki", "atm", "hotpotqa", "locomo")
MAPPINGS = ("h2hmem", "mem-gallery", "memeye")


def words(bench: str, data: Path) -> list[str]:
    """A run that needs no model."""
    return ["run", "--method", "recency", "--bench", bench, "--reader", "extractive", "--json", "--data", str(data)]


def spoilt(sample: Sample, bench: str, spoil: Callable[[bytes], bytes]) -> tuple[Path, Path]:
    """A copy of a sample with one file rewritten: the copy, and the file."""
    name, inside = FILES[bench]
    folder = sample(name)
    file = folder / inside
    file.write_bytes(spoil(file.read_bytes()))
    return folder, file


@pytest.mark.parametrize("bench", FILES)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda raw: raw[: len(raw) // 2], "not JSON"),
        (lambda raw: b"", "line 1 column 1: not JSON"),
        (lambda raw: b"\xef\xbb\xbf" + raw, "BOM"),
        (lambda raw: raw[:-30] + b"\xe9" + raw[-30:], "not UTF-8"),
        (lambda raw: raw.replace(b"{", b'{"old": NaN, ', 1), "NaN is no JSON value"),
        (lambda raw: b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    ],
)
def test_a_file_that_is_not_the_data(
    cli: Cli, sample: Sample, tmp_path: Path, bench: str, spoil: Callable[[bytes], bytes], message: str
) -> None:
    folder, file = spoilt(sample, bench, spoil)
    refused(cli(*words(bench, folder)), str(file), message)
    assert not list(tmp_path.glob("results/runs/*/records/*"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda raw: b" \n ", "not JSON"),
        (lambda raw: raw.decode().encode("utf-16"), "byte 0: not UTF-8"),
        (lambda raw: bytes(100), "not JSON"),
        (lambda raw: raw.replace(b"{", b'{"old": -Infinity, ', 1), "-Infinity is no JSON value"),
        (lambda raw: b"[" + b"1" * 5000 + b"]", "not JSON that can be read"),
        (lambda raw: b"[" * 100_000, "nested too deep"),
    ],
)
def test_a_file_that_is_hardly_text(cli: Cli, sample: Sample, spoil: Callable[[bytes], bytes], message: str) -> None:
    folder, file = spoilt(sample, "locomo", spoil)
    refused(cli(*words("locomo", folder)), str(file), message)


@pytest.mark.parametrize(
    ("bench", "raw", "message"),
    [
        *((bench, raw, message) for bench in LISTS for raw, message in (
            (b"{}", "must hold a list of records, not a mapping"),
            (b"[]", "holds no"),
            (b"null", "not nothing"),
            (b"[null]", "record 0: must be a mapping"),
        )),
        *((bench, raw, message) for bench in MAPPINGS for raw, message in (
            (b"[]", "must be a mapping"),
            (b"{}", "is missing"),
            (b'"text"', "not text"),
            (b"3", "not a whole number"),
        )),
    ],
)  # fmt: skip
def test_a_file_of_another_shape(cli: Cli, sample: Sample, bench: str, raw: bytes, message: str) -> None:
    folder, file = spoilt(sample, bench, lambda _: raw)
    refused(cli(*words(bench, folder)), str(file), message)


@pytest.mark.parametrize("bench", FILES)
def test_line_ends_of_another_system_change_nothing(sample: Sample, bench: str) -> None:
    folder = sample(FILES[bench][0])

    def told() -> list[Any]:
        opened = open_benchmark(bench, str(folder), {}, MediaStore(folder / "files.sqlite"))
        episodes = [opened.episode(context) for context in opened.contexts()]
        return [(episode.context, episode.items, episode.cases) for episode in episodes]  # type: ignore[attr-defined]

    before = told()
    for file in (file for file in folder.rglob("*") if file.suffix in (".json", ".jsonl")):
        raw = file.read_bytes()
        assert b"\n" in raw
        file.write_bytes(raw.replace(b"\n", b"\r\n"))
    assert told() == before


@pytest.mark.parametrize("bench", FILES)
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


def rewritten(spoil: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """What changes a JSON value in place, as what changes a file's bytes."""

    def spoilt_bytes(raw: bytes) -> bytes:
        value = json.loads(raw)
        spoil(value)
        return json.dumps(value).encode()

    return spoilt_bytes


def record(cli: Cli, sample: Sample, bench: str, spoil: Callable[[Any], Any], message: str) -> None:
    """A run on a sample with one record spoilt is refused, and the file named."""
    folder, file = spoilt(sample, bench, rewritten(spoil))
    refused(cli(*words(bench, folder)), str(file), message)


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
def test_hotpotqa_records(cli: Cli, sample: Sample, spoil: Callable[[Any], Any], message: str) -> None:
    record(cli, sample, "hotpotqa", spoil, message)


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
def test_locomo_records(cli: Cli, sample: Sample, spoil: Callable[[Any], Any], message: str) -> None:
    record(cli, sample, "locomo", spoil, message)


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
    record(cli, sample, "mem-gallery", spoil, message)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v[QAS].append(v[QAS][0]), "question 4: question_id: 'T1' is already the id of"),
        (lambda v: v[QAS][0].pop("question_id"), "question 0: question_id: is missing"),
        (lambda v: v[QAS][0].update(clue=["D99:1"]), "clue: 'D99:1' is no round of this dialogue"),
        (lambda v: v[QAS][0]["options"][0].update(answer="E"), "options 0: answer: 'E' is not among the options A, B"),
        (lambda v: v[QAS][0]["options"][2].pop("B"), "options 2: letters: are A, C, D; options are A, B, C"),
        (lambda v: v[QAS][0]["options"][1].update(A=None), "options 1: A: is missing or empty"),
        (lambda v: v[TALK][0]["dialogues"][0].update(input_image=["../../secret.jpg"]), "lies outside the data folder"),
    ],
)
def test_memeye_records(cli: Cli, sample: Sample, spoil: Callable[[Any], Any], message: str) -> None:
    record(cli, sample, "memeye", spoil, message)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v["questions"][0].update(answer_session=["session9"]), "'session9' is no session of this dialogue"),
        (lambda v: v["questions"][0].pop("original_answer"), "question 0: original_answer: is missing or empty"),
        (lambda v: v["questions"][0]["question"].update(text=" "), "question 0: question: text: is empty"),
        (lambda v: v["questions"][0]["question"].update(image="../../../x.jpg"), "lies outside the dialogue"),
        (lambda v: v["questions"][0].update(answer_session=[1]), "answer_session[0]: must be text"),
        (lambda v: v.update(questions={}), "questions: must be a list, not a mapping"),
    ],
)
def test_h2hmem_records(cli: Cli, sample: Sample, spoil: Callable[[Any], Any], message: str) -> None:
    record(cli, sample, "h2hmem", spoil, message)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v.append(v[0]), "is already the id of"),
        (lambda v: v[0].pop("evidences"), "evidences: must be a list of [subject, relation, object], not nothing"),
        (lambda v: v[0]["evidences"][0].append("more"), "evidences[0]: must be [subject, relation, object]"),
        (lambda v: v[0]["supporting_facts"].append(["A title", "0"]), "must be [title, sentence number]"),
        (lambda v: v[0]["context"].clear(), "context: is empty"),
        (lambda v: v[0].update(answer_id=5), "answer_id: must be text"),
    ],
)
def test_2wiki_records(cli: Cli, sample: Sample, spoil: Callable[[Any], Any], message: str) -> None:
    record(cli, sample, "2wiki", spoil, message)


def test_aliases_that_cannot_be_read(cli: Cli, sample: Sample) -> None:
    folder = sample("two_wiki")
    for raw, message in ((b'{"Q_id": "Q1"', "line 1: not JSON"), (b"\xef\xbb\xbf{}", "not JSON"), (b"[]", "must be a")):
        (folder / "id_aliases.json").write_bytes(raw)
        refused(cli(*words("2wiki", folder)), "id_aliases.json", message)


@pytest.mark.parametrize(
    ("bench", "spoil", "message"),
    [
        ("hotpotqa", lambda v: v[0]["supporting_facts"].append(["No such title", 0]), "this is fullwiki data"),
        ("2wiki", lambda v: v[0]["supporting_facts"].append(["No such title", 0]), "1 supporting facts of 1 questions"),
        ("locomo", lambda v: v[0]["qa"][0].update(evidence=["D99:1"]), "'D99:1': dropped D99:1, which names no turn"),
    ],
)
def test_evidence_that_names_nothing_stays_as_officially_and_is_said(
    cli: Cli, sample: Sample, bench: str, spoil: Callable[[Any], Any], message: str
) -> None:
    """The official evaluators count it as gold, or pass it over: it is no reason to refuse the data."""
    folder, _ = spoilt(sample, bench, rewritten(spoil))
    said = cli("data", "check", bench, "--data", folder)
    assert said.code == 0
    assert message in said.out.replace("\n", " ")


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
    (folder / name).write_bytes(rewritten(spoil)((folder / name).read_bytes()))
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
