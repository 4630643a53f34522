"""Where a miss broke: said where it is known, and left open where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.report.viewer.links import LINKS, Known, Link, State, chain, first_break, holds, named
from memharness.types import Asked, Evidence, Gold, Item, Outcome, Question, Record, Score, Status, Text

ITEMS = {f"i{n}": Item(f"i{n}", "c", n, (Text(f"word {n} is w{n}"),)) for n in range(4)}


def states(**changes: Any) -> dict[str, str]:
    """The chain of a question whose gold is items 0 and 1: both recalled, shown and answered wrongly, but for changes.

    Changes go to whichever of record, gold, question and `Known` has the field.
    """
    record = Record("q", "c", 0, 0, Outcome.OK, answer="something else", evidence=(Evidence("i1"), Evidence("i0")))
    gold, question = Gold(("w0",), (Evidence("i0"), Evidence("i1"))), Question("q", "c", (Text("?"),))
    prompt = "user: Evidence:\n[1]\nword 1 is w1\n\n[2]\nword 0 is w0\n"
    known = Known(ITEMS, {"i0", "i1"}, prompt, lambda e: ITEMS[e.item].text(), "evidence", True, Score(0.0), False)
    made: list[Any] = [known, record, gold, question]
    for name, value in changes.items():
        at = next(at for at, one in enumerate(made) if name in {*type(one).__dataclass_fields__})
        made[at] = replace(made[at], **{name: value})
    known, record, gold, question = made
    links = chain(Asked(question, gold, record), known)
    assert [link.name for link in links] == list(LINKS)
    assert all(link.why for link in links)
    return {link.name: link.state.value for link in links} | {"broke": first_break(links)}


def test_the_reader_broke_it_where_it_saw_all_gold() -> None:
    assert states() == dict.fromkeys(LINKS, "yes") | {"read": "no", "broke": "read"}


def test_a_right_answer_breaks_nowhere() -> None:
    found = states(answer="w0", score=Score(1.0), right=True)
    assert [found[name] for name in LINKS] == ["yes"] * 6


@pytest.mark.parametrize(("evidence", "state"), [((), "no"), ((Evidence("i0"), Evidence("i3")), "partly")])
def test_gold_that_was_stored_and_not_recalled_broke_in_recall(evidence: Any, state: str) -> None:
    found = states(evidence=evidence)
    assert (found["recalled"], found["shown"], found["broke"]) == (state, state, "recalled")


def test_gold_of_which_nothing_shows_that_it_was_stored_leaves_two_links_open() -> None:
    found = states(evidence=(), stored=frozenset())
    assert (found["stored"], found["broke"]) == ("unknown", "stored or recalled")


def test_gold_that_the_data_do_not_hold_was_never_observed() -> None:
    found = states(evidence=(Evidence("gone"), Evidence("i0")))
    assert found["observed"] == "partly" or found["recalled"] == "partly"
    found = states(evidence=(), items={})
    assert (found["observed"], found["broke"]) == ("no", "observed")


def test_without_the_data_what_records_prove_is_still_known() -> None:
    found = states(items=None, rendered=None)
    assert (found["observed"], found["recalled"], found["shown"]) == ("yes", "yes", "unknown")
    assert found["broke"] == "shown or read"
    assert states(items=None, rendered=None, stored=frozenset(), evidence=())["broke"] == "observed … recalled"


@pytest.mark.parametrize("where", ["open", "observe", "ready"])
def test_a_memory_that_failed_to_fill_broke_at_once(where: str) -> None:
    error = {"type": "X", "message": "no", "where": where}
    found = states(outcome=Outcome.METHOD_ERROR, error=error, evidence=None, answer=None, prompt=None)
    assert found["broke"] == "observed"


def test_a_failing_recall_broke_in_recall() -> None:
    error = {"type": "X", "message": "no", "where": "recall"}
    changes = {"outcome": Outcome.METHOD_ERROR, "error": error, "evidence": None, "answer": None, "prompt": None}
    assert states(**changes)["broke"] == "recalled"


@pytest.mark.parametrize("outcome", [Outcome.OVER_BUDGET, Outcome.OVER_WINDOW])
def test_what_did_not_fit_was_not_shown(outcome: Outcome) -> None:
    found = states(outcome=outcome, answer=None)
    assert (found["recalled"], found["broke"]) == ("yes", "shown")


def test_evidence_that_is_not_in_the_prompt_as_rendered_is_not_known_to_be_shown() -> None:
    found = states(prompt="user: in the method's own words")
    assert (found["shown"], found["broke"]) == ("unknown", "shown or read")


def test_a_picture_without_a_caption_shows_nothing_in_the_captions_view() -> None:
    found = states(rendered=lambda pointer: "")
    assert (found["shown"], found["broke"]) == ("no", "shown")


@pytest.mark.parametrize("outcome", [Outcome.READER_ERROR, Outcome.REFUSED, Outcome.TIMEOUT])
def test_a_reader_that_fails_broke_it(outcome: Outcome) -> None:
    assert (
        states(outcome=outcome, answer=None, error={"type": "X", "message": "no", "where": "read"})["broke"] == "read"
    )


def test_an_answer_with_the_gold_words_may_have_been_judged_wrongly() -> None:
    assert states(answer="It is <b>W0</b>, I think")["broke"] == "read or judged"
    assert states(answer="<think>w0?</think> no")["broke"] == "read"
    assert states(answer="w0 it is", form="choice")["broke"] == "read"


def test_unparsed_answers_and_failing_judges_are_told_from_wrong_ones() -> None:
    assert states(score=Score(0.0, Status.UNPARSED, "no letter"))["broke"] == "read or judged"
    found = states(score=Score(None, Status.JUDGE_ERROR, "down"), right=None, answer="w1")
    assert (found["judged"], found["broke"]) == ("no", "read or judged")


def test_an_answer_track_method_shows_in_its_own_way() -> None:
    found = states(track="answer", prompt=None)
    assert (found["recalled"], found["shown"], found["broke"]) == ("yes", "unknown", "shown or read")
    assert states(track="answer", prompt=None, evidence=None)["recalled"] == "unknown"


def test_retrieval_alone_is_not_read() -> None:
    found = states(reads=False, prompt=None, answer=None, score=Score(0.5), right=False)
    assert (found["shown"], found["read"]) == ("none", "none")


def test_what_has_no_memory_or_no_gold_evidence_is_told_apart() -> None:
    assert states(evidence=())["broke"] == "recalled"
    record = Record("q", "c", 0, 0, Outcome.OK, answer="x", evidence=())
    asked = Asked(Question("q", "c", (Text("?"),)), Gold(("w0",)), record)
    known = Known({}, set(), "user: ?", None, "evidence", True, Score(0.0), False)
    assert first_break(chain(asked, known)) == "read"
    assert first_break(chain(asked, replace(known, items=ITEMS))) == "observed … read"
    abstains = replace(asked, gold=Gold(("none",), abstain=True))
    assert first_break(chain(abstains, replace(known, items=ITEMS))) == "read"


@given(st.lists(st.sampled_from(list(State)), min_size=6, max_size=6))
def test_a_break_is_named_by_the_first_link_it_may_be_and_the_last(given_: list[State]) -> None:
    broke = first_break([Link(name, state, "") for name, state in zip(LINKS, given_, strict=True)])
    bad = [name for name, state in zip(LINKS, given_, strict=True) if state in (State.NO, State.PARTLY)]
    unknown = [name for name, state in zip(LINKS, given_, strict=True) if state is State.UNKNOWN]
    if bad:
        before = [name for name in unknown if LINKS.index(name) < LINKS.index(bad[0])]
        assert broke.replace(" or ", " … ") == (f"{before[0]} … {bad[0]}" if before else bad[0])
    elif unknown:
        assert broke.replace(" or ", " … ") == (f"{unknown[0]} … {unknown[-1]}" if len(unknown) > 1 else unknown[0])
    else:
        assert broke == "unknown"


def test_words_are_held_whole_and_in_a_row() -> None:
    assert holds("The answer is: New York!", ["new york"])
    assert not holds("New old York", ["new york"])
    assert not holds("yesterday", ["yes"])
    assert not holds("anything", [""])
    assert holds("<think>Paris?</think>London", ["london"])
    assert not holds("<think>it may be London", ["london"])


def test_ids_are_found_anywhere_in_a_trace_but_only_whole() -> None:
    trace = {"nodes": {"i1": 0.5}, "pairs": [["i2", "i3 and more"]], "n": 4, "none": None}
    assert named(trace, {"i1", "i2", "i3"}) == {"i1", "i2"}
