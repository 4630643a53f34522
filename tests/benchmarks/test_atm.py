from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memharness.benchmarks.atm import (
    CUTS,
    INSTRUCTION,
    ATMBench,
    ATMQuestionScore,
    ATMScores,
    guess_type,
)
from memharness.reader import Reply
from memharness.types import DataError, Derived, Evidence, Image, Place, Status, Text, Usage, UserError, Video
from tests.benchmarks.conftest import scored

EMAIL, PHOTO, FILM = "email202401010001", "20240102_030405", "20240701_120000"


def files() -> dict[str, Any]:
    question = {"id": "u-1", "question": "How much was the ferry?", "answer": "€62.8", "notes": "private note"}
    return {
        "atm-bench/atm-bench.json": [
            {**question, "evidence_ids": [EMAIL], "qtype": "number"},
            {
                **question,
                "id": "u-2",
                "answer": f"{PHOTO}, {FILM}",
                "evidence_ids": [PHOTO, FILM],
                "qtype": "list_recall",
            },
            {**question, "id": "u-3", "answer": "By the old pier", "evidence_ids": [PHOTO], "qtype": "open_end"},
        ],
        "atm-bench/atm-bench-hard.json": {"qas": [{**question, "id": "h-1", "answer": 3, "evidence_ids": [EMAIL]}]},
        "atm-bench/niah/atm-bench-hard-niah25.json": [
            {**question, "id": "h-1", "answer": 3, "evidence_ids": [EMAIL], "niah_evidence_ids": [PHOTO, EMAIL]}
        ],
        "raw_memory/email/emails.json": [
            {"id": EMAIL, "timestamp": "2024-01-01 01:02:03", "short_summary": "Ferry", "detail": "Paid €62.8."}
        ],
        "processed_memory/image_batch_results.json": [
            {
                "image_path": f"data/raw_memory/image/{PHOTO}.jpg",
                "timestamp": "2024-01-02 03:04:05",
                "location": [1.5, -2],
                "location_name": "Old Pier, Bude",
                "city": "Bude",
                "caption": "A pier.",
                "short_caption": "Pier",
                "tags": ["pier", "sea"],
                "entities": [{"entity": "pier", "type": "thing"}],
                "ocr_text": "TOTAL 62.8",
                "model_used": "hidden-model",
            }
        ],
        "processed_memory/video_batch_results.json": [
            {
                "video_path": f"data/raw_memory/video/{FILM}.mp4",
                "timestamp": "2024-07-01 11:00:00+00:00",
                "location": None,
                "location_name": None,
                "city": "",
                "duration": 3.5,
                "width": 720,
                "height": 480,
                "caption": "Waves.",
                "short_caption": "",
                "tags": [],
                "ocr_text": "",
            }
        ],
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path / "release", files())


def written(root: Path, contents: dict[str, Any]) -> Path:
    for name, value in contents.items():
        path = root / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    (root / "data/raw_memory/image").mkdir(parents=True, exist_ok=True)
    Pillow.new("RGB", (8, 6), "blue").save(root / f"data/raw_memory/image/{PHOTO}.jpg")
    return root


@pytest.mark.parametrize("at", ["", "data"])
def test_items_in_order_of_time(root: Path, bench: Callable[..., Any], at: str) -> None:
    email, photo, film = bench(ATMBench, root / at).items
    assert [email.id, photo.id, film.id] == [EMAIL, PHOTO, FILM] == [email.label, photo.label, film.label]
    assert (email.text(), email.derived, email.time) == (
        "Paid €62.8.",
        (Derived("short_summary", "Ferry", 0),),
        "2024-01-01T01:02:03",
    )
    assert isinstance(photo.parts[0], Image)
    assert (photo.parts[0].width, photo.parts[0].missing, photo.place) == (
        8,
        False,
        Place("Old Pier, Bude, Bude", 1.5, -2),
    )
    assert {d.kind: d.text for d in photo.derived} == {
        "caption": "A pier.",
        "short_caption": "Pier",
        "ocr": "TOTAL 62.8",
        "tags": "pier, sea",
    }
    assert isinstance(film.parts[0], Video)
    assert (film.parts[0].missing, film.parts[0].seconds, film.place) == (True, 3.5, None)
    assert film.time == "2024-07-01T12:00:00", "the local time in the file's name, not the UTC time stamp"
    assert "hidden-model" not in repr([email, photo, film])


def test_questions_and_gold(root: Path, bench: Callable[..., Any]) -> None:
    opened = bench(ATMBench, root)
    assert opened.contexts() == ["main"]
    number, listed, _ = opened.episode("main").cases
    assert {case.question.instruction for case in opened.episode("main").cases} == {INSTRUCTION}
    assert (number.gold.category, number.gold.native_id, number.gold.evidence) == ("number", "u-1", (Evidence(EMAIL),))
    assert listed.gold.evidence == (Evidence(PHOTO), Evidence(FILM))
    assert "private note" not in repr(opened.episode("main").cases) + repr(opened.items)
    assert bench(ATMBench, root, instruction=False).episode("main").cases[0].question.instruction == ""


def test_subsets(root: Path, bench: Callable[..., Any]) -> None:
    opened = bench(ATMBench, root)
    assert opened.contexts("hard") == ["hard"]
    assert [case.gold.answers for case in opened.episode("hard").cases] == [("3",)]
    assert opened.contexts("all") == ["all"]
    assert [case.gold.extra["split"] for case in opened.episode("all").cases] == ["main", "main", "main", "hard"]
    (pool,) = opened.contexts("niah25")
    episode = opened.episode(pool)
    assert [item.id for item in episode.items] == [EMAIL, PHOTO]
    assert [item.order for item in episode.items] == [0, 1]
    assert {item.context for item in episode.items} == {pool}
    with pytest.raises(UserError, match="did you mean niah25"):
        opened.contexts("niah24")
    with pytest.raises(DataError, match=r"niah50\.json: no such file"):
        opened.contexts("niah50")


MAIN, PHOTOS, MAILS = (
    "atm-bench/atm-bench.json",
    "processed_memory/image_batch_results.json",
    "raw_memory/email/emails.json",
)


@pytest.mark.parametrize(
    ("file", "key", "new", "words"),
    [
        (MAIN, "evidence_ids", ["20990101_000000"], r"record 0 \(u-1\): evidence_ids: '20990101_000000' names no item"),
        (MAIN, "evidence_ids", None, r"record 0 \(u-1\): evidence_ids: is missing"),
        (MAIN, "answer", "", r"record 0 \(u-1\): answer: is missing or empty"),
        (MAIN, "answer", True, r"record 0 \(u-1\): answer: a gold answer must be"),
        (MAIN, "question", 5, r"record 0 \(u-1\): question: must be text"),
        (MAIN, "qtype", "essay", r"record 0 \(u-1\): qtype: 'essay' is no question type"),
        (MAIN, "id", "u-2", r"record 1 \(u-2\): id: 'u-2' is already the id of"),
        (MAIN, "id", None, r"record 0: id: is missing"),
        (PHOTOS, "image_path", None, r"image_batch_results\.json: record 0: image_path: is missing"),
        (PHOTOS, "location", "here", r"location: must be \[latitude, longitude\]"),
        (PHOTOS, "tags", [1], r"tags\[0\]: must be text"),
        (MAILS, "timestamp", "yesterday", r"emails\.json: record 0: timestamp: 'yesterday' is no date"),
        (MAILS, "id", PHOTO, f"'{PHOTO}' is already the id of"),
    ],
)
def test_faults_are_named(tmp_path: Path, bench: Callable[..., Any], file: str, key: str, new: Any, words: str) -> None:
    contents = files()
    contents[file][0][key] = new
    opened = bench(ATMBench, written(tmp_path / "bad", contents))
    with pytest.raises(DataError, match=words):
        opened.contexts()
    assert [finding.level for finding in bench(ATMBench, tmp_path / "bad").check()] == ["error"]


def test_no_data_and_no_items(tmp_path: Path, bench: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="holds no atm-bench/"):
        bench(ATMBench, tmp_path).contexts()
    empty = {name: value for name, value in files().items() if name.startswith("atm-bench")}
    with pytest.raises(DataError, match="no e-mail, photo or video"):
        bench(ATMBench, written(tmp_path / "empty", empty)).contexts()
    without = files() | {MAIN: []}
    with pytest.raises(DataError, match="holds no question"):
        bench(ATMBench, written(tmp_path / "none", without)).contexts()


def test_unreadable_picture_is_named(root: Path, bench: Callable[..., Any]) -> None:
    (root / f"data/raw_memory/image/{PHOTO}.jpg").write_bytes(b"jpg")
    with pytest.raises(DataError, match=r"record 0: image_path.*not a readable picture"):
        bench(ATMBench, root).contexts()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("£799.74", "number"),
        ("15 March 2022", "number"),
        ("4:00 PM", "number"),
        ("3 sessions", "number"),
        (f"{EMAIL}, {PHOTO}", "list_recall"),
        (PHOTO, "list_recall"),
        ("The blue bicycle that I bought in 2021", "open_end"),
        ("Old Moss", "open_end"),
        ("Unknown", "open_end"),
    ],
)
def test_type_guessed_from_the_answer(answer: str, kind: str) -> None:
    assert guess_type(answer) == kind


def test_scores_without_a_judge(root: Path, bench: Callable[..., Any], asked: Callable[..., Any]) -> None:
    number, listed, free = bench(ATMBench, root).episode("main").cases

    def scores(case: Any, said: str | None) -> dict[str, float | None]:
        return {name: score.value for name, score in ATMScores().score([asked(case, said)], {}).items()}

    assert scores(number, "It was €62.8.") == {"em": 1, "jaccard": None, "qs_closed": 1}
    assert scores(listed, f"I found {PHOTO}.") == {"em": 0, "jaccard": 0.5, "qs_closed": 0.5}
    assert scores(free, "old pier") == {"em": 1, "jaccard": None, "qs_closed": None}
    assert scores(number, None) == {"em": 0, "jaccard": None, "qs_closed": 0}


def reply(text: str) -> Reply:
    return Reply(text, Usage())


def test_judged_question_score(root: Path, bench: Callable[..., Any], asked: Callable[..., Any]) -> None:
    _, listed, free = bench(ATMBench, root).episode("main").cases
    metric = ATMQuestionScore()
    unit = [asked(free, "Beside the pier", [Evidence(PHOTO)])]
    assert metric.score(unit, {}) == {}
    request = metric.ask(unit)
    shown = "".join(part.text for part in request.parts() if isinstance(part, Text))
    assert "You grade one answer to a question about a person's own e-mails" in shown
    assert all(words in shown for words in ("How much was the ferry?", "By the old pier", "Beside the pier"))
    assert "private note" not in shown
    assert request.schema is not None
    right = metric.read(unit, reply('{"explanation": "same", "accuracy": "true"}'))
    assert (right["qs"].value, right["joint_strict@5"].value, right["joint_partial@10"].value) == (1, 1, 1)
    assert metric.read(unit, reply('{"explanation": "not true", "accuracy": "false"}'))["qs"].value == 0
    half = metric.score([asked(listed, PHOTO, [Evidence(PHOTO)])], {})
    assert (half["qs"].value, half["joint_strict@5"].value, half["joint_partial@5"].value) == (0.5, 0, 0.5)
    assert metric.score([asked(free, None)], {})["qs"].value == 0
    assert metric.score([asked(listed, PHOTO)], {})["joint_strict@5"].status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("text", ["", "It is correct.", '{"accuracy": 1}', '{"accuracy": "maybe"}', "not json {"])
def test_a_reply_without_a_verdict_is_a_judge_error(
    root: Path, bench: Callable[..., Any], asked: Callable[..., Any], text: str
) -> None:
    unit = [asked(bench(ATMBench, root).episode("main").cases[2], "Beside the pier", [Evidence(PHOTO)])]
    strict = ATMQuestionScore().read(unit, reply(text))
    assert {score.status for score in strict.values()} == {Status.JUDGE_ERROR}
    lenient = ATMQuestionScore("official").read(unit, reply(text))
    assert lenient["qs"].value == float("correct" in text)


def test_verdict_option_reaches_the_metric(root: Path, bench: Callable[..., Any]) -> None:
    metrics = bench(ATMBench, root, verdict="official").metrics()
    assert "ATMQuestionScore(verdict=official)" in map(str, metrics)
    cuts = [f"Recall(abstentions=True)@{k}" for k in CUTS]
    assert [str(m) for m in metrics if str(m).startswith("Recall(")] == [*cuts, "Recall(over_all=True)@10"]


def test_recall_over_questions_with_evidence_and_over_all(
    root: Path, bench: Callable[..., Any], rows_of: Callable[..., Any], change: Callable[..., Any]
) -> None:
    def lose(rows: Any) -> None:
        rows[0] |= {"evidence_ids": [], "answer": "Unknown"}

    change(root / "data/atm-bench/atm-bench.json", lose)
    opened = bench(ATMBench, root)
    cases = opened.episode(opened.contexts()[0]).cases
    gold = {case.gold.native_id: opened.gold_answer(case) for case in cases}
    report = opened.report(scored(opened, gold))
    assert (report["recall@1"], report["recall@gt"]) == (pytest.approx(0.75), 1)  # one of two, and one of one
    assert report["recall@10_all"] == pytest.approx(2 / 3)
    assert report["abstention"] == 1


def test_pools_are_checked(root: Path, bench: Callable[..., Any], change: Callable[..., Any]) -> None:
    found = [finding.message for finding in bench(ATMBench, root).check()]
    assert "niah25: pools hold 2 items, not 25 each" in found
    change(
        root / "data/atm-bench/niah/atm-bench-hard-niah25.json", lambda rows: rows[0].update(niah_evidence_ids=[PHOTO])
    )
    (finding,) = bench(ATMBench, root).check()
    assert finding.level == "error"
    assert f"evidence_ids: '{EMAIL}' names no item" in finding.message


def test_predictions(root: Path, tmp_path: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]) -> None:
    opened = bench(ATMBench, root)
    said = tmp_path / "out" / "answers.jsonl"
    said.parent.mkdir()
    said.write_text('{"id": "u-1", "answer": "€62.8", "retrieval_ids": ["x"]}\n\n{"id": "u-2", "prediction": null}\n')
    details = [{"id": "u-1", "retrieval_ids": [EMAIL]}, {"id": "u-2", "retrieval_ids": [PHOTO]}]
    (said.parent / "retrieval_recall_details.json").write_text(json.dumps(details))
    answers = dict(opened.predictions(said))
    assert answers["u-1"].readout.evidence == (Evidence("x"),)
    assert (answers["u-2"].text, answers["u-2"].readout.evidence) == (None, (Evidence(PHOTO),))
    report = opened.report(evaluate(opened, said))
    assert report["em"] == pytest.approx(1 / 3)
    assert (report["em.number"], report["recall@1"], report["recall@gt"]) == (
        1,
        pytest.approx(0.5 / 3),
        pytest.approx(0.5 / 3),
    )
    for line, words in (
        ('{"id": "u-1"}', "line 1: answer: is missing"),
        ('{"id": "u-1", "answer": 3}', "line 1: answer: must be text"),
        ('{"id": "u-1", "answer": "a"}\n{"id": "u-1", "answer": "b"}', "line 2: id: 'u-1' is already"),
        ("[", "line 1: not JSON"),
    ):
        said.write_text(line)
        with pytest.raises(DataError, match=words):
            list(opened.predictions(said))


def test_digest_names_files_and_media(root: Path, bench: Callable[..., Any]) -> None:
    first = bench(ATMBench, root).digest()
    assert f"raw_memory/image/{PHOTO}.jpg" in first
    assert {"atm-bench/atm-bench.json", "raw_memory/email/emails.json"} <= set(first)
    (root / "data/atm-bench/atm-bench-hard.json").write_text("[]")
    assert bench(ATMBench, root).digest() != first


def test_guessed_types_are_found(root: Path, bench: Callable[..., Any]) -> None:
    found = [finding.message for finding in bench(ATMBench, root).check()]
    assert any("hard: 1 questions name no qtype" in message for message in found)
    assert any("1 videos are not at hand" in message for message in found)
    assert any("partial" in message for message in found)


def test_sample_holds_what_was_asked_for(sample: Callable[[str], Path], bench: Callable[..., Any]) -> None:
    opened = bench(ATMBench, sample("atm"))
    cases = opened.episode(opened.contexts()[0]).cases
    assert len(cases) >= 24
    assert set(Counter(case.gold.category for case in cases)) == {"number", "list_recall", "open_end"}
    assert len(opened.items) >= 60
    assert {item.kind for item in opened.items} == {"email", "image", "video"}
    assert not [part for item in opened.items for part in item.parts if not isinstance(part, Text) and part.missing]
    for context in opened.contexts("niah25"):
        assert len(opened.episode(context).items) == 25
