"""Budgets: counted as shown, cut at the longest beginning that holds, and never overstepped in silence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.budget import PictureRule, Remembering, RunBudget, counters
from memharness.image_tokens import NAMED
from memharness.prompts import Renderer, View
from memharness.reader import Counter, count
from memharness.types import BudgetError, Derived, Evidence, Image, Item, Question, Readout, Text, UserError

ASKED = Question("q", "c", (Text("?"),))


class Words:
    """A token is a word; a picture is what it says."""

    name = "words"

    def text(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        """Its width."""
        return width


class Pairs(Words):
    """A token is two characters, so that a text may cost less than its halves."""

    name = "pairs"

    def text(self, text: str) -> int:
        """Pairs of characters."""
        return -(-len(text) // 2)


class Seams(Words):
    """A tokenizer with a merge over a seam: a text may cost less than its own beginning."""

    name = "seams"

    def text(self, text: str) -> int:
        """Characters, where each `a` that ends a line and the `b` that begins the next block's are one."""
        return len(text) - 6 * text.count("a\n\n[")


def items(*texts: str) -> dict[str, Item]:
    """Items `i0`, `i1` … of one text each."""
    return {f"i{at}": Item(f"i{at}", "c", at, (Text(text),)) for at, text in enumerate(texts)}


def budget(
    held: dict[str, Item],
    *,
    tokens: int | None = None,
    n: int | None = None,
    by: Sequence[Counter] = (Words(),),
    view: View = "captions",
) -> RunBudget:
    """A budget over these items."""
    return RunBudget(n, tokens, by, Renderer(held, view))


# ------------------------------------------------------------------------------------------------------------ counters


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(28, 28, 1), (29, 28, 2), (1, 1, 1), (640, 480, 392), (1280, 1280, 2090), (0, 5, 0)]
)
def test_nominal28_is_by_area_rounded_up(width: int, height: int, tokens: int) -> None:
    counter = PictureRule("nominal28", Words())
    assert counter.image(width, height) == tokens == math.ceil(width * height / 784)
    assert counter.text("three little words") == 3
    assert counter.name == "nominal28+words"


@given(st.integers(1, 10**5), st.integers(1, 10**5))
def test_nominal28_is_exact(width: int, height: int) -> None:
    tokens = PictureRule("nominal28", Words()).image(width, height)
    assert 784 * (tokens - 1) < width * height <= 784 * tokens


def test_counters_by_name() -> None:
    reader = Words()
    both = counters(["nominal28", "reader"], reader)
    assert [counter.name for counter in both] == ["nominal28+words", "words"]
    assert both[1] is reader
    assert counters([], reader) == ()
    sizes = {counter.name: counter.image(1000, 600) for counter in counters(list(NAMED), reader)}
    assert sizes == {
        "nominal28+words": 766,
        "qwen2.5-vl+words": 36 * 21,
        "qwen3-vl+words": 31 * 19,
        "internvl+words": 256 * (3 * 2 + 1),
        "openai-tiles+words": 85 + 4 * 170,
        "openai-patches+words": 32 * 19,
    }
    with pytest.raises(UserError, match=r"--counter qwen3vl: there are reader, nominal28.*did you mean qwen3-vl"):
        counters(["qwen3vl"], reader)


def test_a_text_is_counted_once_for_all_counters_that_share_it() -> None:
    asked: list[str] = []

    class Slow(Words):
        def text(self, text: str) -> int:
            asked.append(text)
            return super().text(text)

    limit = budget(items("one two"), by=counters(list(NAMED), Remembering(Slow())))
    assert set(limit.cost([Evidence("i0")], ASKED).values()) == {3}
    assert asked == ["[1]\none two\n"]


def test_noted_counters_are_recorded_and_bind_nothing() -> None:
    held = items("one two three")
    readout = Readout((Evidence("i0"),))
    shown = Renderer(held, "captions").evidence(readout.evidence)
    limit = RunBudget(None, 4, (Words(),), Renderer(held, "captions"), noted=(Pairs(), Words()))
    assert limit.check(readout, shown) == {"pairs": 9, "words": 4}
    assert limit.fit(readout.evidence, ASKED) == readout.evidence


def test_adjacent_texts_are_counted_as_they_are_sent() -> None:
    picture = Image("00", width=5)
    assert count(Words(), [Text("one tw"), Text("o"), picture, Text("three"), picture]) == 2 + 5 + 1 + 5
    assert count(Pairs(), [Text("a"), Text("b")]) == 1
    assert count(Words(), []) == 0


# ----------------------------------------------------------------------------------------------------------------- fit


def brute(limit: RunBudget, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The longest beginning that holds both limits, by looking at each."""
    for length in range(len(evidence), -1, -1):
        kept = tuple(evidence[:length])
        few = limit.items is None or len({pointer.item for pointer in kept}) <= limit.items
        if few and limit.holds(limit.renderer.evidence(kept)):
            return kept
    raise AssertionError("nothing at all always holds")


TEXTS = st.lists(st.text("ab \n", max_size=8), min_size=1, max_size=6)


@given(st.data(), TEXTS, st.none() | st.integers(0, 40), st.none() | st.integers(0, 7))
def test_fit_is_the_longest_beginning(data: st.DataObject, texts: list[str], tokens: int | None, n: int | None) -> None:
    held = items(*texts)
    pointers = st.builds(Evidence, st.sampled_from(sorted(held)), st.sampled_from([None, 0]))
    evidence = data.draw(st.lists(pointers, max_size=12))
    limit = budget(held, tokens=tokens, n=n, by=(Words(), Pairs()))
    assert limit.fit(evidence, ASKED) == brute(limit, evidence)


@given(st.lists(st.sampled_from(["a", "ba", "b", "aaaa"]), min_size=1, max_size=8), st.integers(0, 60))
def test_fit_holds_even_where_more_may_cost_less(texts: list[str], tokens: int) -> None:
    held = items(*texts)
    limit = budget(held, tokens=tokens, by=(Seams(),))
    evidence = [Evidence(name) for name in held]
    kept = limit.fit(evidence, ASKED)
    assert list(kept) == evidence[: len(kept)]
    assert limit.holds(limit.renderer.evidence(kept))


def test_without_limits_everything_fits() -> None:
    evidence = [Evidence("i0")] * 3
    assert budget(items("a")).fit(evidence, ASKED) == tuple(evidence)
    assert budget(items("a"), tokens=0).fit([], ASKED) == ()


def test_items_are_counted_once_however_often_pointed_to() -> None:
    held = items("a", "b", "c")
    pointers = [Evidence("i0"), Evidence("i1"), Evidence("i0", 0), Evidence("i2"), Evidence("i0")]
    assert budget(held, n=2).fit(pointers, ASKED) == tuple(pointers[:3])
    assert budget(held, n=0).fit(pointers, ASKED) == ()


def test_every_counter_must_hold() -> None:
    held = items("one two", "three")
    evidence = [Evidence("i0"), Evidence("i1")]
    assert len(budget(held, tokens=5, by=(Words(),)).fit(evidence, ASKED)) == 2
    assert len(budget(held, tokens=5, by=(Words(), Pairs())).fit(evidence, ASKED)) == 0
    assert len(budget(held, tokens=6, by=(Words(), Pairs())).fit(evidence, ASKED)) == 1


# --------------------------------------------------------------------------------------------------------------- costs


def test_cost_is_of_what_would_be_shown() -> None:
    picture = Item("p", "c", 0, (Image("00", "image/png", 56, 28),), derived=(Derived("caption", "a red kite", 0),))
    evidence = [Evidence("p")]
    by = (Words(), PictureRule("nominal28", Words()))
    assert budget({"p": picture}, by=by).cost(evidence, ASKED) == {"words": 5, "nominal28+words": 5}
    assert budget({"p": picture}, by=by, view="pixels").cost(evidence, ASKED) == {"words": 57, "nominal28+words": 3}


def test_a_readout_over_the_budget_is_refused() -> None:
    held = items("one two three", "four")
    readout = Readout((Evidence("i0"), Evidence("i1"), Evidence("i1", 0)))
    shown = Renderer(held, "captions").evidence(readout.evidence)
    assert budget(held, tokens=7, n=2).check(readout, shown) == {"words": 7}
    assert budget(held).check(readout, shown) == {"words": 7}
    with pytest.raises(BudgetError, match="the readout holds 2 items; the budget is 1"):
        budget(held, n=1).check(readout, shown)
    with pytest.raises(BudgetError, match="the evidence costs 7 tokens by words; the budget is 6"):
        budget(held, tokens=6).check(readout, shown)


def test_a_readouts_own_parts_are_what_is_counted() -> None:
    own = (Text("a b c d"),)
    readout = Readout((Evidence("i0"),), parts=own)
    with pytest.raises(BudgetError, match="costs 4 tokens"):
        budget(items("a"), tokens=3).check(readout, own)
    assert budget(items("a"), tokens=4).check(readout, own) == {"words": 4}
