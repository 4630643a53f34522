from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memharness.benchmarks.memeye import MemEye, MemEyeDebiased, official_choice
from memharness.types import DataError, Derived, Outcome, Status
from tests.benchmarks.conftest import scored

OPTIONS = ["red", "blue", "green", "white"]


def rotated(right: int = 0) -> list[dict[str, str]]:
    return [
        {
            **{"ABCD"[n]: OPTIONS[(n - shift) % 4] for n in range(4)},
            "answer": "ABCD"[(right + shift) % 4],
        }
        for shift in range(4)
    ]


def question(**changes: Any) -> dict[str, Any]:
    return {
        "question_id": "T1",
        "point": [["X2"], ["Y1"]],
        "question": "Which colour?",
        "answer": "A",
        "session_id": ["D1"],
        "clue": ["D1:1"],
        "options": rotated(),
        **changes,
    }


def write(folder: Path, *questions: Any, name: str = "Shelf") -> Path:
    (folder / "dialog").mkdir(exist_ok=True)
    body = {
        "character_profile": {"task_family": "shelf"},
        "multi_session_dialogues": [
            {
                "session_id": "D1",
                "date": "2025-03-02",
                "dialogues": [{"round": "D1:1", "user": "My shelf.", "assistant": "I see."}],
            }
        ],
        "human-annotated QAs": list(questions),
    }
    (folder / "dialog" / f"{name}.json").write_text(json.dumps(body))
    return folder


def group(opened: Any, asked: Callable[..., Any], *answers: str | None) -> list[Any]:
    cases = opened.episode("Shelf").cases
    return [asked(case, answer) for case, answer in zip(cases, answers, strict=False)]


def test_every_rotation_is_a_row_of_one_group(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(MemEye, write(tmp_path, question()))
    cases = opened.episode("Shelf").cases
    assert [case.gold.answers for case in cases] == [("A",), ("B",), ("C",), ("D",)]
    assert len({case.gold.group for case in cases}) == 1
    assert [case.gold.native_id for case in cases] == [f"Shelf:T1:{n}" for n in range(4)]
    assert {case.gold.category for case in cases} == {"X2-Y1"}
    assert [choice.parts[0].text for choice in cases[1].question.choices] == ["white", "red", "blue", "green"]
    assert "T1" not in repr([case.question for case in cases])


def test_nothing_but_the_dialogue_is_remembered(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(MemEye, write(tmp_path, question()))
    assert [item.id for item in opened.episode("Shelf").items] == ["D1:1/user", "D1:1/assistant"]
    (whole,) = bench(MemEye, tmp_path, units="round").episode("Shelf").items
    assert whole.text() == "user (user): My shelf.\nassistant: I see."


@pytest.mark.parametrize("prefix", ["", "image/", "../image/", "./image/", "data/image/"])
def test_pictures_by_every_published_spelling(tmp_path: Path, bench: Callable[..., Any], prefix: str) -> None:
    folder = tmp_path / "image" / "Shelf"
    folder.mkdir(parents=True)
    Pillow.new("RGB", (8, 6), "red").save(folder / "a.png")
    names = [f"{prefix}Shelf/a.png", f"{prefix}Shelf/b.png"]
    write(tmp_path, question(question_images=names, image_caption=["A shelf.", "Another."]))
    (case, *_) = bench(MemEye, tmp_path).episode("Shelf").cases
    _, there, gone = case.question.parts
    assert (there.width, there.source, gone.missing, gone.source) == (8, "image/Shelf/a.png", True, "image/Shelf/b.png")
    assert case.question.derived == (Derived("caption", "A shelf.", 1), Derived("caption", "Another.", 2))
    write(tmp_path, question(question_image=names[0], image_caption="A shelf."))
    (case, *_) = bench(MemEye, tmp_path).episode("Shelf").cases
    assert (len(case.question.parts), case.question.derived) == (2, (Derived("caption", "A shelf.", 1),))


def test_debiased_em_is_the_share_of_rotations(tmp_path: Path, bench: Callable[..., Any], asked: Any) -> None:
    opened = bench(MemEye, write(tmp_path, question()))
    debiased = MemEyeDebiased()

    def scores(*answers: str | None) -> tuple[float | None, float | None]:
        got = debiased.score(group(opened, asked, *answers), {})
        return got["debiased_em"].value, got["same_letter"].value

    assert scores("A", "B", "C", "D") == (1.0, 0.0)
    assert scores("A", "A", "A", "A") == (0.25, 1.0)
    assert scores("A", "B", "no idea", "A") == (0.5, 0.0)
    got = debiased.score(group(opened, asked, *["I see nothing."] * 4), {})
    assert got["debiased_em"].status is Status.UNPARSED
    assert debiased.score(group(opened, asked, "A", "B"), {})["debiased_em"].status is Status.NOT_APPLICABLE
    failed = group(opened, asked, "A", "B", "C", "D")
    failed[2].record.outcome, failed[2].record.answer = Outcome.READER_ERROR, None
    assert debiased.score(failed, {})["debiased_em"].value is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("b", "B"),
        ("B) blue", "B"),
        ("The answer is: C", "C"),
        ("My choice: (D)", "D"),
        ("It is a blue ball", "A"),  # the article, as the official rule has it
        ("none of them", None),
        ("", None),
    ],
)
def test_the_official_rule(reply: str, letter: str | None) -> None:
    assert official_choice(reply, "ABCD") == letter


def test_the_official_rule_is_a_toggle(tmp_path: Path, bench: Callable[..., Any], asked: Any) -> None:
    got = {}
    for rule in ("memharness", "memeye"):
        opened = bench(MemEye, write(tmp_path, question()), extractor=rule)
        (unit,) = group(opened, asked, "I see a ball.")
        got[rule] = opened.metrics()[1].score([unit], {})["row_em"]
    assert (got["memharness"].value, got["memharness"].status) == (0.0, Status.UNPARSED)
    assert (got["memeye"].value, got["memeye"].status) == (1.0, Status.OK)


def test_rows_and_questions_weigh_apart(sample: Callable[[str], Path], bench: Callable[..., Any]) -> None:
    opened = bench(MemEye, sample("memeye"))
    answers = {
        case.gold.native_id: opened.gold_answer(case)
        for context in opened.contexts()
        for case in opened.episode(context).cases
    }
    report = opened.report(scored(opened, answers))
    assert report["row_em"] == report["open_em"] == report["f1"] == 1.0
    assert report["recall_readout.semantic"] == 1.0
    assert {"row_em.X3", "row_em.Y2", "row_em.X3-Y1"} <= set(report)
    # one question wrong in all four rotations and right when asked openly: 4 of 5 rows, but half of that question
    wrong = dict.fromkeys([name for name in answers if name.startswith("Toy_Shelf_Log:T1:")])
    less = opened.report(scored(opened, {name: answer for name, answer in answers.items() if name not in wrong}))
    assert less["row_em"] == pytest.approx(28 / 32)
    assert less["recall_readout.semantic"] == pytest.approx((7 + 1 / 5) / 8)
    assert less["recall_readout"] == pytest.approx(36 / 40)


def test_the_older_form_and_open_files(tmp_path: Path, bench: Callable[..., Any]) -> None:
    older = question(options=dict(zip("ABCD", OPTIONS, strict=True)), answer="C")
    write(tmp_path, older)
    write(tmp_path, question(options=None, answer=3), name="Shelf_Open")
    write(tmp_path, question(), name="concat_all")
    opened = bench(MemEye, tmp_path)
    assert list(opened.contexts()) == ["Shelf", "Shelf_Open"]
    assert [case.gold.answers for case in opened.episode("Shelf").cases] == [("C",)]
    assert [case.gold.answers for case in opened.episode("Shelf_Open").cases] == [("3",)]
    assert bench(MemEye, tmp_path, mode="open").contexts() == ["Shelf_Open"]
    assert any("1 rotations, the right letters are C" in finding.message for finding in opened.check())


def test_rotations_that_disagree_are_said(tmp_path: Path, bench: Callable[..., Any]) -> None:
    wrong = rotated()
    wrong[3]["answer"] = "A"
    opened = bench(MemEye, write(tmp_path, question(options=wrong)))
    assert [finding.message for finding in opened.check() if finding.level == "warning"] == [
        "1 questions lack their mirror in the other mode, such as Shelf/T1",
        "options: its rotations call different options right",
    ]


def test_options_may_be_numbers_in_any_order(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(MemEye, write(tmp_path, question(options=[{"answer": "B", "B": 7, "A": 0}])))
    (case,) = opened.episode("Shelf").cases
    assert [(choice.key, choice.parts[0].text) for choice in case.question.choices] == [("A", "0"), ("B", "7")]
    assert case.gold.answers == ("B",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question_id": None}, "question_id: is missing"),
        ({"point": [["X9"], ["Y1"]]}, "'X9' is no level"),
        ({"point": ["X2"]}, r"point: must be \[\[X levels\], \[Y levels\]\]"),
        ({"options": [{"A": "red", "C": "blue", "answer": "A"}]}, "letters: are A, C"),
        ({"options": [{"A": "red", "B": "blue", "answer": "E"}]}, "answer: 'E' is not among the options"),
        ({"options": ["A"]}, "must be a mapping"),
        ({"options": []}, "options: must be a list"),
        ({"options": [{"A": "red", "B": " ", "answer": "A"}]}, "options 0: B: is missing or empty"),
        (
            {"options": [{"A": "red", "B": True, "answer": "A"}]},
            "options 0: B: must be text or a number, not true or false",
        ),
        ({"options": None, "answer": " "}, "answer: is missing or empty"),
        ({"question_image": "a.png", "image_caption": ["a", "b"]}, "image_caption: holds 2 captions of 1 pictures"),
        ({"clue": ["D9:9"]}, "clue: 'D9:9' is no round"),
        ({"question_image": "../../etc/passwd"}, "lies outside the data folder"),
    ],
)
def test_bad_records_are_named(tmp_path: Path, bench: Callable[..., Any], changes: dict[str, Any], said: str) -> None:
    opened = bench(MemEye, write(tmp_path, question(**changes)))
    with pytest.raises(DataError, match=said):
        opened.episode("Shelf")


def test_two_questions_of_one_id_are_refused(tmp_path: Path, bench: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="'T1' is already the id of"):
        bench(MemEye, write(tmp_path, question(), question())).contexts()
