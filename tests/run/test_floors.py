"""Floors and ceilings: which there are, what they score, and the known figures of LoCoMo."""

from __future__ import annotations

from pathlib import Path

import pytest

from memharness.run.floors import GOLD, Figures, Floors, floors
from memharness.types import UserError
from tests.run.harness import TOYS

QUIZ = f"{Path(__file__).with_name('quiz.py')}:Quiz"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def quiz(home: Path) -> Floors:
    return floors(QUIZ, None, None, {})


def named(found: Floors) -> dict[str, Figures]:
    return {floor.name: floor for floor in found.floors}


def test_the_floors_that_fit_every_benchmark(quiz: Floors) -> None:
    assert [floor.name for floor in quiz.floors] == [
        "always empty", "first option", "last option", "longest option", "always A", "always B", "always C",
        "always unknown", "always Not mentioned in the conversation", "always yes", "always no",
        "best constant by type", "the last item", GOLD,
    ]  # fmt: skip
    assert named(quiz)["always C"].about == "an option's letter, the most frequent gold answer, 3 of 9"


def test_their_figures(quiz: Floors) -> None:
    right = {name: (floor.figures["right"], floor.n) for name, floor in named(quiz).items()}
    assert right["always empty"] == (0, 9)
    assert right["first option"] == (pytest.approx(1 / 5), 5)
    assert right["last option"] == (pytest.approx(3 / 5), 5)
    assert right["longest option"] == (pytest.approx(1 / 5), 5)
    assert right["always C"] == (pytest.approx(3 / 9), 9)
    assert right["always yes"] == (pytest.approx(2 / 9), 9)
    assert right["the last item"] == (pytest.approx(1 / 9), 9)
    assert right[GOLD] == (1, 9)
    assert named(quiz)[GOLD].figures["right.free"] == 1


def test_the_leading_figure_comes_first_and_needs_no_judge(quiz: Floors) -> None:
    assert (quiz.primary, quiz.leading, quiz.judged) == ("kind", "right", ["Kind"])
    assert all(next(iter(floor.figures)) == "right" for floor in quiz.floors)


def test_the_best_constant_of_each_type_is_picked_and_says_so(quiz: Floors) -> None:
    assert named(quiz)["best constant by type"].figures["right"] == pytest.approx(5 / 9)
    assert quiz.notes == [
        "best constant of choice, picked with gold among 8: 'C' (right 0.600)",
        "best constant of free, picked with gold among 10: 'yes' (right 0.500)",
    ]


def test_groups_are_scored(quiz: Floors) -> None:
    assert {name: floor.figures["all_right"] for name, floor in named(quiz).items() if "option" in name} == {
        "first option": 0, "last option": 0, "longest option": 0,
    }  # fmt: skip
    assert named(quiz)[GOLD].figures["all_right"] == 1


def test_live_episodes_go_on_with_each_floors_answers(home: Path) -> None:
    found = floors(f"{TOYS}:Corridor", None, None, {})
    assert named(found)[GOLD].figures["won"] == 1
    assert named(found)[GOLD].n == 6
    assert named(found)["always empty"].figures["won"] == 0
    assert named(found)["always empty"].n == 10  # five steps at the first door, in each of two games
    assert named(found)["always go 1"].figures["right"] == pytest.approx(1 / 5)


def test_they_are_the_same_each_time(quiz: Floors) -> None:
    assert floors(QUIZ, None, None, {}) == quiz


def test_data_without_a_question(home: Path) -> None:
    with pytest.raises(UserError, match="holds no question to measure floors on"):
        floors(QUIZ, None, None, {"questions": "false"})


def test_locomo_has_the_known_figures(shared: Path, home: Path) -> None:
    found = named(floors("locomo", str(shared / "data/locomo/locomo10.json"), None, {}))
    gold, constant = found[GOLD].figures, found["always Not mentioned in the conversation"].figures
    names = ("f1.1", "f1.2", "f1.3", "f1.4", "f1.5", "f1", "f1.1-4")
    assert [gold[name] for name in names] == pytest.approx([1, 1, 0.9274, 1, 0.0045, 0.7729, 0.9955], abs=5e-5)
    assert [constant[name] for name in ("f1", "f1.5", "f1.1-4")] == pytest.approx([0.2330, 1, 0.0108], abs=5e-5)
    assert found[GOLD].n == 1986
