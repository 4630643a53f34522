from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.budget import RunBudget
from memharness.config import build
from memharness.method import Answers, Control, Memory, Method, Recalls
from memharness.methods import controls
from memharness.registry import find
from memharness.retrieval import searchable
from memharness.types import (
    BudgetError,
    Derived,
    Evidence,
    Gold,
    Image,
    Item,
    Place,
    Question,
    Readout,
    Text,
    UserError,
)

from .kit import FakeKit, HashingEmbedder, as_kit, item, question

PICKING = ("random", "recency", "bm25", "dense", "dense-rounds")
NOUNS = ["harbour", "lantern", "violin", "glacier", "orchard", "compass", "ferry", "walnut", "tunnel", "kettle"]


def store(n: int = 30) -> list[Item]:
    """n items of two turns a round, with words that repeat."""
    return [
        item(i, f"{NOUNS[i % 10]} and {NOUNS[i % 7]} number {i}", keys={"round": str(i // 2)}, speaker="Ada")
        for i in range(n)
    ]


def open_memory(name: str, kit: FakeKit, **options: Any) -> Any:
    method: type[Method[Any]] = find("methods", name)
    return method(build(method.config_class, options, "-M", name)).open("c", as_kit(kit))


async def remember(memory: Memory, kit: FakeKit, items: Sequence[Item], chunk: int = 7) -> None:
    kit.know(items)
    for start in range(0, len(items), chunk):
        await memory.observe(items[start : start + chunk])
    await memory.ready()


async def recall(
    name: str,
    items: Sequence[Item],
    asked: Question,
    /,
    limits: Mapping[str, int | None] | None = None,
    kit: FakeKit | None = None,
    **options: Any,
) -> Readout:
    """One question to a fresh memory; the readout must pass the harness's own check, unless it shows everything."""
    kit = kit or FakeKit()
    memory = open_memory(name, kit, **options)
    await remember(memory, kit, items)
    budget = kit.budget(**(limits or {}))
    readout: Readout = await memory.recall(asked, budget)
    if name != "full-context":
        budget.check(readout, kit.render(readout.evidence))
    return readout


def ids(readout: Readout) -> list[str]:
    return [pointer.item for pointer in readout.evidence]


# ------------------------------------------------------------------------------------------------ all that pick k


@pytest.mark.parametrize("name", PICKING)
@pytest.mark.parametrize("k", [1, 2, 3, 10, 25, 30])
async def test_exactly_k_of_30_by_budget_by_option_and_by_kit(name: str, k: int) -> None:
    # cases/c22: a swallowed limit, a threshold or a page size gives another number than was asked for
    asked = question("where was the lantern?")
    for readout in (
        await recall(name, store(), asked, {"items": k}),
        await recall(name, store(), asked, items=k),
        await recall(name, store(), asked, kit=FakeKit(items=k)),
        await recall(name, store(), asked, {"items": k}, kit=FakeKit(items=7)),
    ):
        assert len(ids(readout)) == len(set(ids(readout))) == k
        assert readout.available == 30


@pytest.mark.parametrize("name", PICKING)
async def test_a_small_memory_gives_all_it_has_and_says_so(name: str) -> None:
    readout = await recall(name, store(4), question("lantern"), {"items": 10})
    assert sorted(ids(readout)) == ["i0", "i1", "i2", "i3"]
    assert readout.available == 4


@pytest.mark.parametrize("name", PICKING)
async def test_the_budget_binds_an_option_that_wants_more(name: str) -> None:
    assert len(ids(await recall(name, store(), question("lantern"), {"items": 3}, items=5))) == 3
    assert len(ids(await recall(name, store(), question("lantern"), {"items": 5}, items=3))) == 3


@pytest.mark.parametrize("name", [*PICKING, "full-context", "null"])
async def test_an_empty_memory_recalls_nothing(name: str) -> None:
    readout = await recall(name, [], question("lantern"), {"items": 3})
    assert (readout.evidence, readout.available) == ((), 0)


@pytest.mark.parametrize("name", PICKING)
async def test_a_budget_of_no_items_gets_none(name: str) -> None:
    assert not ids(await recall(name, store(), question("lantern"), {"items": 0}))


@pytest.mark.parametrize("name", PICKING)
@pytest.mark.parametrize("tokens", [0, 9, 30, 55, 1000])
async def test_a_token_budget_keeps_the_best_that_fit(name: str, tokens: int) -> None:
    whole = ids(await recall(name, store(), question("lantern")))
    cut = ids(await recall(name, store(), question("lantern"), {"tokens": tokens}))
    assert cut == whole[: len(cut)]
    assert len(cut) == min(tokens // 7, 10)  # 7 words an item: number, speaker, and five of its own


@pytest.mark.parametrize("name", PICKING)
async def test_words_nobody_knows_and_no_words_still_give_k(name: str) -> None:
    for text in ("xyzzy", "", "?!"):
        assert len(ids(await recall(name, store(), question(text), {"items": 5}))) == 5


@pytest.mark.parametrize("name", [*PICKING, "full-context"])
async def test_memory_grows_between_questions(name: str) -> None:
    kit = FakeKit()
    memory = open_memory(name, kit)
    items = store()
    await remember(memory, kit, items[:6])
    first = await memory.recall(question("kettle tunnel"), kit.budget(30))
    await remember(memory, kit, items[6:])
    second = await memory.recall(question("kettle tunnel"), kit.budget(30))
    assert (len(ids(first)), first.available) == (6, 6)
    assert (len(ids(second)), second.available, memory.stored()) == (30, 30, 30)
    assert ids(second) == ids(await recall(name, items, question("kettle tunnel"), {"items": 30}))


@pytest.mark.parametrize("name", PICKING)
async def test_questions_do_not_touch_each_other(name: str) -> None:
    kit = FakeKit()
    memory = open_memory(name, kit)
    await remember(memory, kit, store())
    asked = [question(f"the {noun}", id=noun) for noun in NOUNS]
    forward = [await memory.recall(one, kit.budget()) for one in asked]
    backward = [await memory.recall(one, kit.budget()) for one in reversed(asked)]
    beside = await asyncio.gather(*(memory.recall(one, kit.budget()) for one in asked))
    assert forward == backward[::-1] == beside


# ---------------------------------------------------------------------------------------------- random and recency


async def test_random_follows_seed_and_question_only() -> None:
    async def draw(id: str, seed: int = 0) -> list[str]:
        return ids(await recall("random", store(), question("anything", id), kit=FakeKit(seed=seed)))

    assert await draw("a") == await draw("a")
    assert await draw("a") != await draw("b")
    assert await draw("a") != await draw("a", seed=1)


async def test_random_is_fair() -> None:
    kit = FakeKit(items=3)
    memory = open_memory("random", kit)
    await remember(memory, kit, store(10))
    drawn = [name for n in range(2000) for name in ids(await memory.recall(question("x", f"q{n}"), kit.budget()))]
    counts = np.unique(drawn, return_counts=True)[1]
    assert len(counts) == 10
    assert np.all(abs(counts - 600) < 100)  # sd 20.5


async def test_recency_is_newest_first_whatever_the_order_of_observing() -> None:
    items = store()
    random.Random(1).shuffle(items)
    assert ids(await recall("recency", items, question("x"), {"items": 3})) == ["i29", "i28", "i27"]


# -------------------------------------------------------------------------------------------------------- rankers


async def test_bm25_finds_the_word_anywhere_it_is_searched() -> None:
    items = store(10)
    items[3] = Item(
        "i3",
        "c",
        3,
        (Text("look at this"), Image("00ff", source="a.jpg")),
        derived=(Derived("caption", "a heron by the pond", 1), Derived("short_caption", "heron", 1)),
        time="2031-05-06",
        speaker="Bohumil",
        place=Place("Oslo"),
        label="D7:IMG_001",
    )
    for word in ("heron", "2031-05-06", "Bohumil", "oslo", "IMG 001", "look"):
        readout = await recall("bm25", items, question(f"when {word}?"), {"items": 1})
        assert ids(readout) == ["i3"], word
        assert readout.evidence[0].score is not None
    assert ids(await recall("bm25", items, question("heron"), {"items": 1}, derived=False)) == ["i0"]


async def test_bm25_scores_fall_and_ties_keep_the_order() -> None:
    items = [item(i, text) for i, text in enumerate(["cat", "dog", "cat", "cat dog"])]
    readout = await recall("bm25", items, question("cat"), {"items": 4})
    assert ids(readout) == ["i0", "i2", "i3", "i1"]
    scores = [pointer.score or 0.0 for pointer in readout.evidence]
    assert scores == sorted(scores, reverse=True)


async def test_a_picture_is_asked_by_its_caption() -> None:
    asked = Question("q", "c", (Image("00ff", source="a.jpg"),), derived=(Derived("caption", "an orchard", 0),))
    items = [item(i, f"some {noun}") for i, noun in enumerate(NOUNS)]
    for name in ("bm25", "dense", "dense-rounds"):
        assert ids(await recall(name, items, asked, {"items": 1})) == ["i4"]


async def test_dense_is_the_ranking_by_inner_product() -> None:
    kit = FakeKit()
    embedder = kit.embedder
    assert isinstance(embedder, HashingEmbedder)
    items, asked = store(), question("the lantern and the tunnel")
    readout = await recall("dense", items, asked, {"items": 30}, kit)
    scores = np.array([embedder.vector(searchable(one)) @ embedder.vector(asked.text()) for one in items])
    assert ids(readout)[0] == items[int(np.argmax(scores))].id
    told = [pointer.score or 0.0 for pointer in readout.evidence]
    np.testing.assert_allclose(told, np.sort(scores)[::-1], atol=1e-6)
    by_id = dict(zip((one.id for one in items), scores, strict=True))
    np.testing.assert_allclose([by_id[name] for name in ids(readout)], told, atol=1e-6)


async def test_dense_embeds_each_chunk_in_one_call_and_each_item_once() -> None:
    kit = FakeKit()
    embedder = kit.embedder
    assert isinstance(embedder, HashingEmbedder)
    memory = open_memory("dense", kit)
    await remember(memory, kit, store(), chunk=20)
    await memory.observe([])
    await memory.ready()
    assert embedder.calls == [(20, "item"), (10, "item")]
    await memory.recall(question("x"), kit.budget())
    assert embedder.calls[2:] == [(1, "query")]


# --------------------------------------------------------------------------------------------------- dense-rounds


async def test_rounds_are_completed_behind_the_item_that_was_found() -> None:
    texts = ["the lantern", "yes it shines", "a walnut lantern", "good", "the ferry", "left"]
    items = [item(i, text, keys={"round": str(i // 2)}) for i, text in enumerate(texts)]
    readout = await recall("dense-rounds", items, question("the lantern"), {"items": 4})
    assert ids(readout) == ["i0", "i1", "i4", "i5"]
    assert [pointer.score is None for pointer in readout.evidence] == [False, True, False, True]


async def test_a_mate_of_its_own_rank_is_not_taken_twice() -> None:
    items = [item(i, "lantern", keys={"round": "1"}) for i in range(3)] + [item(3, "lantern")]
    readout = await recall("dense-rounds", items, question("lantern"), {"items": 4})
    assert ids(readout) == ["i0", "i1", "i2", "i3"]


async def test_without_rounds_it_is_dense() -> None:
    items = [item(i, one.text()) for i, one in enumerate(store())]
    asked = question("the lantern and the tunnel")
    assert await recall("dense-rounds", items, asked) == await recall("dense", items, asked)


@given(
    rounds=st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=20),
    k=st.integers(1, 22),
    seed=st.integers(0, 9),
)
def test_dense_rounds_unfolds_the_whole_dense_ranking(rounds: list[int | None], k: int, seed: int) -> None:
    draw = random.Random(seed)
    items = [
        item(i, " ".join(draw.choices(NOUNS, k=3)), keys={} if key is None else {"round": str(key)})
        for i, key in enumerate(rounds)
    ]
    asked = question(" ".join(draw.choices(NOUNS, k=2)))
    ranking = ids(asyncio.run(recall("dense", items, asked, {"items": len(items)})))
    by_id = {one.id: one for one in items}
    unfolded: list[str] = []
    for name in ranking:
        key = by_id[name].keys.get("round")
        mates = [one.id for one in items if key is not None and one.keys.get("round") == key]
        unfolded += [name, *mates]
    got = ids(asyncio.run(recall("dense-rounds", items, asked, {"items": k})))
    assert len(got) == min(k, len(items)) and len(set(got)) == len(got)
    assert got == list(dict.fromkeys(unfolded))[:k]


# ------------------------------------------------------------------------------------------- null, oracle, constant


async def test_null_recalls_nothing_and_is_not_a_failure() -> None:
    kit = FakeKit()
    memory = open_memory("null", kit)
    await remember(memory, kit, store())
    assert await memory.recall(question("x"), kit.budget()) == Readout(available=0)
    assert memory.stored() is None


async def oracle(evidence: Sequence[Evidence], **limits: int | None) -> Readout:
    kit = FakeKit()
    memory = open_memory("oracle", kit)
    await remember(memory, kit, store())
    budget = kit.budget(**limits)
    readout: Readout = await memory.recall_with_gold(question("x"), Gold(("a",), tuple(evidence)), budget)
    budget.check(readout, kit.render(readout.evidence))
    return readout


async def test_oracle_is_the_gold_evidence_in_order() -> None:
    gold = [Evidence("i9"), Evidence("i2", 0), Evidence("i25", 0, (0, 3)), *(Evidence(f"i{n}") for n in range(10, 22))]
    readout = await oracle(gold)
    assert readout == Readout(tuple(gold), available=30)  # more than kit.items: only a budget limits the oracle
    assert (await oracle([])).evidence == ()


async def test_oracle_points_once_and_counts_distinct_items() -> None:
    gold = [Evidence("i9"), Evidence("i2", 0, (0, 2)), Evidence("i2", 0, (3, 5)), Evidence("i9"), Evidence("i4")]
    assert (await oracle(gold)).evidence == (*gold[:3], gold[4])
    assert (await oracle(gold, items=2)).evidence == tuple(gold[:3])
    assert (await oracle(gold, items=1)).evidence == (gold[0],)
    assert (await oracle(gold, tokens=7)).evidence == (gold[0],)


async def test_constant_answers_without_looking() -> None:
    for options, text in (({}, "Not mentioned."), ({"text": "B"}, "B"), ({"text": ""}, "")):
        kit = FakeKit()
        memory = open_memory("constant", kit, **options)
        await remember(memory, kit, store())
        assert (await memory.answer(question("x"), kit.budget())).text == text
        assert memory.stored() is None


# ---------------------------------------------------------------------------------------------------- full-context


async def test_full_context_is_everything_in_order() -> None:
    items = store()
    random.Random(1).shuffle(items)
    for keep in ("all", "newest", "oldest"):
        readout = await recall("full-context", items, question("x"), keep=keep)
        assert ids(readout) == [f"i{n}" for n in range(30)]
        assert readout.available == 30


@given(tokens=st.integers(0, 240), limit=st.one_of(st.none(), st.integers(1, 35)))
def test_full_context_keeps_what_it_says(tokens: int, limit: int | None) -> None:
    kit = FakeKit()
    budget = kit.budget(limit, tokens)
    fits = min(tokens // 7, 30, limit or 30)

    def keep(which: str) -> Readout:
        limits = {"items": limit, "tokens": tokens}
        return asyncio.run(recall("full-context", store(), question("x"), limits, kit, keep=which))

    assert ids(keep("oldest")) == [f"i{n}" for n in range(fits)]
    assert ids(keep("newest")) == [f"i{n}" for n in range(30 - fits, 30)]
    everything = keep("all")
    assert len(ids(everything)) == 30
    if fits < 30:
        with pytest.raises(BudgetError):
            budget.check(everything, kit.render(everything.evidence))


async def test_newest_holds_the_budget_where_the_order_changes_the_cost() -> None:
    class ByPlace:
        """A letter costs the number of its block, so that a long item costs more at the end than in front."""

        name = "by place"

        def text(self, text: str) -> int:
            bodies = [line for line in text.splitlines() if line and not line.startswith("[")]
            return sum(place * len(body) for place, body in enumerate(bodies, 1))

        def image(self, width: int, height: int) -> int:
            return 0

    kit = FakeKit()
    memory = open_memory("full-context", kit, keep="newest")
    await remember(memory, kit, [item(0, "a"), item(1, "bb"), item(2, "cccccc"), item(3, "dddddd" * 3)])
    for tokens in range(0, 130):
        budget = RunBudget(None, tokens, (ByPlace(),), kit.renderer)
        readout = await memory.recall(question("x"), budget)
        budget.check(readout, kit.render(readout.evidence))
        assert ids(readout) == ["i0", "i1", "i2", "i3"][4 - len(ids(readout)) :]


# -------------------------------------------------------------------------------------------- cards, doors, options


@pytest.mark.parametrize("name", ["null", "oracle", "full-context", "constant", *PICKING])
async def test_cards_and_doors(name: str) -> None:
    method = find("methods", name)
    assert method.card.name == name
    assert method in vars(controls).values()
    assert method.card.control is (name not in ("bm25", "dense"))
    assert method.card.embeds is name.startswith("dense")
    memory = open_memory(name, FakeKit())
    assert isinstance(memory, Control) is (name == "oracle")
    assert isinstance(memory, Answers) is (name == "constant")
    assert isinstance(memory, Recalls) is (name not in ("oracle", "constant"))
    assert method.card.track == ("answer" if name == "constant" else "evidence")
    assert await memory.load() is False
    fields = method.config_class.model_fields.values()
    assert all(field.description and field.json_schema_extra["source"] for field in fields)


@pytest.mark.parametrize(
    ("name", "options"),
    [("dense", {"item": 3}), ("bm25", {"items": 0}), ("full-context", {"keep": "best"}), ("constant", {"text": 5})],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(options))):
        open_memory(name, FakeKit(), **options)


def test_searchable_says_what_is_derived() -> None:
    shown = Item(
        "i1",
        "c",
        1,
        (Text("Look!"), Image("00ff", source="a.jpg")),
        derived=(Derived("short_caption", "a heron", 1), Derived("ocr", "", 1)),
        time="2031-05-06",
        speaker="Ada",
        place=Place("Oslo"),
        label="D7:2",
    )
    assert searchable(shown) == "2031-05-06 Ada D7:2 Oslo\nLook!\nshort caption: a heron"
    assert searchable(shown, derived=False) == "2031-05-06 Ada D7:2 Oslo\nLook!"
    assert searchable(item(1, "alone")) == "alone"
    assert searchable(question("who?")) == "who?"
