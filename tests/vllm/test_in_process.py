"""SmolLM2 in vLLM's engine in this process: counts, agreement, schemas, cancelling, and an end without leftovers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from memharness.cli import command_line
from memharness.media import MediaStore
from memharness.reader import Message, Request, Sampling
from memharness.readers.smollm2 import SmolLM2, SmolLM2Config
from memharness.readers.vllm import VLLMConfig, VLLMReader
from memharness.types import OverWindow, ReaderError, Text, UserError
from tests.vllm.conftest import OPTIONS, WORDS, counted, engines, folder

LOOP = pytest.mark.asyncio(loop_scope="module")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "sure": {"type": "boolean"}},
    "required": ["city", "sure"],
    "additionalProperties": False,
}
CITIES = ("Oslo", "Paris", "Rome", "Lima", "Cairo", "Delhi", "Quito", "Perth")
ASKED = (
    "What is the capital of the country where {} is? Answer in one word.",
    "Ann moved to {} in May 2021. Where did Ann move to?",
    "Write one sentence about {}.",
    "Is {} a city? Answer yes or no.",
    "Bob: I love {}.\nEve: I prefer the sea.\n\nQuestion: What does Bob love?",
    "List three things to do in {}.",
)


def ask(text: str, prefill: str = "", schema: Any = None, sample: int = 0, **sampling: Any) -> Request:
    limits = Sampling(**{"max_tokens": 16, **sampling})
    return Request((Message("user", (Text(text),)),), limits, prefill=prefill, schema=schema, sample=sample)


PROMPTS = [ask(words.format(city)) for words in ASKED for city in CITIES]  # 48


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader() -> AsyncIterator[VLLMReader]:
    before = engines()
    made = VLLMReader("smollm2", VLLMConfig(**OPTIONS), MediaStore())
    await made.start()
    assert len(engines() - before) >= 2  # the engine, and a worker
    yield made
    pending = asyncio.create_task(made.generate(ask("Write a very long story about a queen.", max_tokens=1500)))
    while not made._engine.get_num_unfinished_requests():
        await asyncio.sleep(0.05)
    began = time.monotonic()
    await made.close()
    with pytest.raises(ReaderError):  # what was still asked is told so, and waits for nothing
        await pending
    assert engines() == before  # close leaves no process
    assert time.monotonic() - began < 60


@LOOP
async def test_usage_is_the_engines_and_equals_the_tokenizers_count(reader: VLLMReader) -> None:
    prompt = ask("What is the capital of France?")
    reply = await reader.generate(prompt)
    tokenizer = reader._wording.tokenizer
    told = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}], add_generation_prompt=True, tokenize=False
    )
    assert reply.usage.text == len(tokenizer.encode(told, add_special_tokens=False))
    assert reply.text == "The capital of France is Paris."
    assert reply.usage.output == len(tokenizer.encode(reply.text, add_special_tokens=False)) + 1  # and the end token
    assert (reply.finish, reply.usage.image, reply.usage.reasoning) == ("stop", 0, 0)


@LOOP
async def test_what_prompts_begin_with_alike_is_read_once(reader: VLLMReader) -> None:
    memory = " ".join(f"On day {day} Ann walked {day} miles." for day in range(1, 60))
    first = await reader.generate(ask(f"{memory} How far on day 3?"))
    second = await reader.generate(ask(f"{memory} How far on day 4?"))
    assert first.usage.cached == 0
    assert 0 < second.usage.cached < second.usage.text == first.usage.text


@LOOP
async def test_greedy_replies_in_f32_are_those_of_transformers(reader: VLLMReader) -> None:
    """At least 98 % of them: two back ends may part where two tokens are all but equally likely."""
    mine = await asyncio.gather(*map(reader.generate, PROMPTS))
    other = SmolLM2("", SmolLM2Config(), reader.media)
    await other.start()
    theirs = await asyncio.gather(*map(other.generate, PROMPTS))
    await other.close()
    same = sum(a.text == b.text and a.finish == b.finish for a, b in zip(mine, theirs, strict=True))
    assert same >= 0.98 * len(PROMPTS)
    for a, b in zip(mine, theirs, strict=True):
        assert a.usage.text == b.usage.text
        assert a.text != b.text or a.usage.output == b.usage.output


@LOOP
async def test_log_probabilities_are_those_of_transformers(reader: VLLMReader) -> None:
    import torch
    import transformers

    prompt, said = ask("What is the capital of France?"), "The capital of France is Paris."
    found, usage = await reader.log_probabilities(prompt, said)
    ids = reader._wording.encode(prompt).ids
    reply = reader._wording.tokenizer.encode(said, add_special_tokens=False)
    assert usage.text == len(ids) + len(reply)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(reader._checkpoint.source, dtype=torch.float32)
    with torch.no_grad():
        rows = model(torch.tensor([ids + reply])).logits[0, len(ids) - 1 : -1].log_softmax(-1)
    expected = [float(row[token]) for row, token in zip(rows, reply, strict=True)]
    assert found == pytest.approx(expected, abs=1e-3)


@LOOP
async def test_a_schema_is_kept_to(reader: VLLMReader) -> None:
    requests = [ask(f"Where is {city}? Say it in JSON.", schema=SCHEMA, max_tokens=64) for city in CITIES]
    for reply in await asyncio.gather(*map(reader.generate, requests)):
        value = json.loads(reply.text)
        assert value.keys() == {"city", "sure"}
        assert isinstance(value["sure"], bool)
    with pytest.raises(ReaderError, match="vLLM"):
        await reader.generate(ask("?", schema={"type": "no such type"}))


@LOOP
async def test_stop_strings_prefill_and_draws(reader: VLLMReader) -> None:
    stopped = await reader.generate(ask("What is the capital of France?", stop=(" of",)))
    assert (stopped.text, stopped.finish, stopped.usage.output) == ("The capital", "stop", 3)
    begun = await reader.generate(ask("What is the capital of France?", prefill="It is called"))
    assert begun.text.startswith("It is called Paris")
    hot: list[Request] = [ask("Tell me a story.", temperature=1.0, sample=n) for n in (0, 1, 0)]
    one, two, again = await asyncio.gather(*map(reader.generate, hot))
    assert one.text != two.text
    assert one.text == again.text


@LOOP
async def test_what_does_not_fit_is_said_and_not_run(reader: VLLMReader) -> None:
    assert reader.card.window == 2048
    with pytest.raises(OverWindow, match=r"\d+ prompt tokens and 16 for the answer exceed the window of 2048"):
        await reader.generate(ask("word " * 3000))
    with pytest.raises(OverWindow):
        await reader.generate(ask("Hello", max_tokens=2048))
    assert reader._engine.get_num_unfinished_requests() == 0


@LOOP
async def test_a_cancelled_request_leaves_the_engine(reader: VLLMReader) -> None:
    task = asyncio.create_task(reader.generate(ask("Write a very long story about a king.", max_tokens=1500)))
    while not reader._engine.get_num_unfinished_requests():
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadline = time.monotonic() + 10
    while reader._engine.get_num_unfinished_requests() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert reader._engine.get_num_unfinished_requests() == 0
    assert (await reader.generate(ask("What is the capital of France?"))).finish == "stop"


@LOOP
async def test_how_it_batches_is_recorded_and_greedy_is_not_called_deterministic(reader: VLLMReader) -> None:
    said = reader.card.provenance
    assert said["determinism"] == "replies may depend on what shares a step"
    assert said["VLLM_BATCH_INVARIANT"] == "0"
    assert said["batch"].startswith("up to ")
    assert said.keys() >= {"vllm", "torch", "device"}


def test_an_unknown_engine_argument_is_named_before_anything_starts() -> None:
    reader = VLLMReader("smollm2", VLLMConfig(engine_args={"kv_cache_dtyp": "fp8"}), MediaStore())

    async def start() -> None:
        try:
            await reader.start()
        finally:
            await reader.close()

    with pytest.raises(UserError, match=r"has no argument kv_cache_dtyp \(did you mean kv_cache_dtype\?\)"):
        asyncio.run(start())


def test_locomo_is_answered_and_agrees_with_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The whole way, by the command that compares back ends; each question's own counts are in its record."""
    monkeypatch.chdir(tmp_path)
    before = engines()
    what = ["--bench", "locomo", "--method", "bm25", "--items", "3", "--limit", "12", "--max-tokens", "16"]
    sides = [word.replace("-R", "--RA") for word in WORDS]
    assert command_line(["parity", "vllm:smollm2", f"hf:{folder()}", *what, *sides, "--json"]) == 0
    assert engines() == before  # a run leaves no process
    found = json.loads(capfd.readouterr().out)
    assert (found["n"], found["unanswered"]) == (12, {"a": 0, "b": 0})
    assert found["identical"] >= 11  # the larger comparison is above; here one near tie may part
    assert found["a"]["card"]["provenance"]["vllm"]
    for side in "ab":
        for told, answer, spent in counted(Path(found[side]["run"])).values():
            assert spent["text"] == told
            assert answer <= spent["output"] <= 16  # what is cut off around an answer was generated too
            assert spent["calls"] == 1
    assert command_line(["verify", found["a"]["run"]]) == 0
