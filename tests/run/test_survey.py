"""What `data check` counts by walking the episodes, and the faults it finds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmark import Ask, Benchmark, BenchmarkCard, Data, Episode, Fact, Observe, Recorded
from memharness.config import Config
from memharness.media import MediaStore
from memharness.run import survey as module
from memharness.run.survey import Survey, survey
from memharness.types import (
    Answer,
    Case,
    Choice,
    DataError,
    Evidence,
    Finding,
    Gold,
    Image,
    Item,
    Question,
    Text,
    Video,
)

SHA = "a" * 64
PICTURE, MISSING, FILM = Image(SHA, source="a.jpg"), Image(None, source="lost.jpg"), Video("b" * 64, source="f.mp4")
ITEMS = [Item("i1", "c", 0, (Text("x"), PICTURE, FILM)), Item("i2", "c", 1, (PICTURE, MISSING))]


def case(name: str, *evidence: str, native: str = "", parts: tuple[Any, ...] = (Text("?"),)) -> Case:
    """A question with two options, one of them a picture."""
    question = Question(name, "c", parts, (Choice("A", (PICTURE,)), Choice("B", (Text("no"),))))
    return Case(question, Gold(("A",), tuple(map(Evidence, evidence)), native_id=native or name))


class Live(Episode):
    """Observes, asks, observes, asks."""

    live = True

    def __init__(self, context: str) -> None:
        """In a context."""
        self.context = context

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """Two rounds; the second asks about what gold answers brought."""
        yield Observe(ITEMS[:1])
        answers = yield Ask([case(f"{self.context}1", "i1")])
        assert [answer.text for answer in answers] == ["A"]
        yield Observe(ITEMS[1:])
        yield Ask([case(f"{self.context}2", "i2")])
        yield Fact({"won": 1.0})


class Held(Benchmark):
    """Whatever a test puts into it."""

    card = BenchmarkCard(
        name="held", title="Held", paper="", licence="", source="", revision="1", version=1, splits={},
        counts={"contexts": 1, "questions": 2, "rounds": 7}, cluster="", primary="",
    )  # fmt: skip
    options_class = Config

    def __init__(self, *episodes: Episode, state: str = "given", own: Sequence[Finding] = ()) -> None:
        """Hold episodes and findings."""
        super().__init__(Data(Path("there"), state, MediaStore()), Config())
        self.episodes = {episode.context: episode for episode in episodes}
        self.own = own

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """All."""
        return list(self.episodes)

    def episode(self, context: str) -> Episode:
        """One."""
        return self.episodes[context]

    def metrics(self) -> Sequence[Any]:
        """None."""
        return ()

    def check(self) -> Sequence[Finding]:
        """What the test says."""
        return self.own


def levels(found: Survey) -> dict[str, list[str]]:
    """Messages by level."""
    return {
        level: [finding.message for finding in found.findings if finding.level == level]
        for level in ("error", "warning", "info")
    }


def test_it_counts_what_there_is() -> None:
    asked = (Text("?"), Image(SHA, source="q.jpg"))
    found = survey(
        Held(Recorded("c", ITEMS, [case("q1", "i1"), case("q2", parts=asked)]), own=[Finding("info", "", "own")])
    )
    assert found.counts == {
        "contexts": 1,
        "items": 2,
        "questions": 2,
        "questions without gold evidence": 1,
        "pictures": 2,
        "videos": 1,
        "question pictures": 2,
        "missing media": 1,
        "dangling evidence": 0,
        "duplicate ids": 0,
    }
    assert levels(found) == {
        "error": [],
        "warning": [],
        "info": ["own", "1 pictures or videos are not at hand, such as lost.jpg"],
    }


def test_it_finds_what_does_not_hold() -> None:
    cases = [case("q1", "i1", "nowhere"), case("q1", native="n"), case("q3", native="n")]
    found = survey(Held(Recorded("c", [ITEMS[0], replace(ITEMS[1], id="i1")], cases)))
    assert (found.counts["dangling evidence"], found.counts["duplicate ids"]) == (1, 3)
    assert levels(found)["error"] == [
        "1 question ids come twice: a run could not tell them apart, such as q1",
        "1 item ids come twice in their context, such as i1 in c",
    ]
    assert levels(found)["warning"] == [
        "1 native ids come twice: predictions by them are ambiguous, such as n",
        "1 pieces of gold evidence name no item, such as nowhere of q1",
    ]


def test_pictures_of_one_name_are_told_apart_by_their_content() -> None:
    """Publishers call every picture `image.jpg`."""
    shown = [Image(letter * 64, source="image.jpg") for letter in "aab"]
    found = survey(Held(Recorded("c", [], [case(f"q{n}", parts=(one,)) for n, one in enumerate(shown)])))
    assert found.counts["question pictures"] == 3  # two of that name, and the one in the options


def test_the_benchmarks_own_check_is_of_the_subset() -> None:
    class Reading(Held):
        read: str | None = "nothing"

        def contexts(self, subset: str | None = None) -> Sequence[str]:
            self.read = subset
            return super().contexts(subset)

        def check(self) -> Sequence[Finding]:
            return [Finding("info", "", f"read {self.read}")]

    assert levels(survey(Reading(Recorded("c", ITEMS, [case("q1")])), "cn"))["info"][0] == "read cn"


def test_an_id_may_return_in_another_context() -> None:
    found = survey(Held(Recorded("c", ITEMS, [case("q1")]), Recorded("d", ITEMS, [case("q2")])))
    assert found.counts["duplicate ids"] == 0


def test_live_episodes_are_played_with_gold_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIVE", 2)
    held = Held(*map(Live, "cde"))
    found = survey(held)
    assert (found.counts["contexts"], found.counts["items"], found.counts["questions"]) == (3, 4, 4)
    assert levels(found)["info"][-1] == "2 of 3 live episodes were played; --all plays every one"
    assert survey(held, every=True).counts["questions"] == 6


def test_a_fault_of_the_data_is_a_finding() -> None:
    for name in ("check", "contexts", "episode"):

        def broken(*words: object) -> Any:
            raise DataError("file: record 3: answer: is missing; fetch the file again")

        found = survey(type("Broken", (Held,), {name: broken})(Recorded("c", [], [])))
        assert levels(found)["error"] == ["file: record 3: answer: is missing; fetch the file again"]


def test_errors_of_the_benchmarks_own_check_end_it() -> None:
    found = survey(Held(own=[Finding("error", "x", "is broken")]))
    assert (found.counts, levels(found)["error"]) == ({}, ["is broken"])


@pytest.mark.parametrize(("state", "warned"), [("prepared", ["1 questions where the card counts 2"]), ("sample", [])])
def test_prepared_data_are_held_to_the_card(state: str, warned: list[str]) -> None:
    assert levels(survey(Held(Recorded("c", ITEMS, [case("q1")]), state=state)))["warning"] == warned
