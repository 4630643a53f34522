"""The OpenAI reader and embedder against a real local server."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import io
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.media import MediaStore
from memharness.reader import Message, Request, Sampling
from memharness.readers.openai import (
    EmbedderConfig,
    OpenAIConfig,
    OpenAIEmbedder,
    OpenAIReader,
    cut_at,
    is_strict,
    share,
)
from memharness.readers.server import is_loopback, retry_after
from memharness.types import OverWindow, ReaderError, Text, Usage, UserError, Video
from tests.readers.conftest import USAGE, Answer, Api, chat

KEY = "sk-test-0123456789abcdef"
Open = Callable[..., Awaitable[OpenAIReader]]


def ask(text: str = "Where?", **more: Any) -> Request:
    return Request((Message("system", (Text("Be brief."),)), Message("user", (Text(text),))), **more)


@pytest.fixture
async def reader(api: Api, media: MediaStore) -> AsyncIterator[Open]:
    opened: list[OpenAIReader] = []

    async def open_reader(model: str = "tiny", **options: Any) -> OpenAIReader:
        options = {"base_url": api.url, "first_wait": 0.01, **options}
        made = OpenAIReader(model, OpenAIConfig(**options), media)
        opened.append(made)
        await made.start()
        return made

    yield open_reader
    for made in opened:
        await made.close()


async def test_plain_reply(api: Api, reader: Open) -> None:
    usage = {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    api.answers = [Answer(chat("Paris", usage=usage, reasoning_content="It is in France."))]
    one = await reader()
    reply = await one.generate(ask(sampling=Sampling(max_tokens=9, stop=("\n",), seed=5), sample=2))
    assert (reply.text, reply.finish, reply.reasoning) == ("Paris", "stop", "It is in France.")
    assert reply.usage == Usage(text=11, cached=8, output=3, reasoning=2)
    assert api.asked == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"}],
            "max_tokens": 9,
            "temperature": 0.0,
            "stop": ["\n"],
            "seed": 7,
        }
    ]
    assert api.keys == ["Bearer none"]
    assert one.card.provenance["base_url"] == api.url
    assert one.card.provenance["served"] == "tiny-2026-01-01"
    assert "not promised" in one.card.provenance["determinism"]


async def test_reasoning_models_get_what_they_accept(api: Api, reader: Open) -> None:
    api.answers = [Answer(chat("a\nb"))]
    one = await reader("gpt-5-mini", reasoning_effort="low", reasoning_room=500)
    reply = await one.generate(ask(sampling=Sampling(max_tokens=20, stop=("\n",))))
    sent = api.asked[0]
    assert {"temperature", "top_p", "stop", "max_tokens"}.isdisjoint(sent)
    assert (sent["max_completion_tokens"], sent["reasoning_effort"]) == (520, "low")
    assert reply.text == "a"  # the stop string holds all the same
    assert one.identity()["options"]["reasoning_effort"] == "low" and one.identity()["options"]["reasoning_room"] == 500
    always = await reader("gpt-5-mini", send_temperature="always")
    await always.generate(ask())
    assert api.asked[1]["temperature"] == 0.0


async def test_retry_after_is_honoured_and_attempts_are_counted_once(api: Api, reader: Open) -> None:
    busy = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}
    api.answers = [Answer(busy, 429, {"retry-after": "0.3"}), Answer("oops", 500), Answer(chat())]
    reply = await (await reader()).generate(ask())
    assert reply.text == "Paris"
    assert len(api.asked) == 3  # the client itself must not retry
    assert 0.3 <= api.times[1] - api.times[0] < 2


async def test_gives_up_after_its_attempts(api: Api, reader: Open) -> None:
    api.answers = [Answer({"error": {"message": "overloaded"}}, 503)]
    one = await reader(attempts=3)
    with pytest.raises(ReaderError, match=r"overloaded.*3 tries"):
        await one.generate(ask())
    assert len(api.asked) == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer({"error": {"message": "no money", "code": "insufficient_quota"}}, 429), "no money"),
        (Answer({"error": {"message": "busy"}}, 429, {"retry-after": "900"}), "asks to wait 900 s"),
        (Answer({"error": {"message": "no such model", "code": "model_not_found"}}, 404), "no such model"),
        (Answer(chat(usage=None)), "says no usage"),
        (Answer(chat(usage={"prompt_tokens": None})), "says no usage"),
        (Answer({"error": {"message": "upstream died"}}), "malformed reply.*upstream died"),
        (Answer("{not json"), "malformed reply"),
        (Answer("<html>", headers={"content-type": "text/html"}), "malformed reply"),
        (Answer({**chat(), "choices": []}), "malformed reply"),
        (Answer([1, 2]), "malformed reply"),
    ],
)
async def test_failures_that_no_retry_mends(api: Api, reader: Open, answer: Answer, words: str) -> None:
    api.answers = [answer]
    with pytest.raises(ReaderError, match=words) as caught:
        await (await reader()).generate(ask())
    assert not isinstance(caught.value, OverWindow)
    assert len(api.asked) == 1


async def test_time_outs_and_lost_servers_are_tried_again(api: Api, reader: Open) -> None:
    api.answers = [Answer(chat(), delay=1.0), Answer(chat("late"))]
    assert (await (await reader(timeout=0.3)).generate(ask())).text == "late"
    api.answers = [Answer(chat(), delay=1.0)]
    with pytest.raises(ReaderError, match=r"timed out.*2 tries"):
        await (await reader(timeout=0.1, attempts=2)).generate(ask())


@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "This model's maximum context length is 2048 tokens. However, you requested 3000.", "code": 400},
        {"message": "the request exceeds the available context size, try increasing it"},
        {"message": "prompt (9000) is longer than max_model_len 4096"},
    ],
)
async def test_over_window(api: Api, reader: Open, error: dict[str, Any]) -> None:
    api.answers = [Answer({"error": error}, 400)]
    with pytest.raises(OverWindow):
        await (await reader()).generate(ask())
    assert len(api.asked) == 1


async def test_refusals(api: Api, reader: Open) -> None:
    api.answers = [
        Answer(chat(None, refusal="I cannot help with that.")),
        Answer(chat("", finish="content_filter")),
        Answer({"error": {"message": "filtered", "code": "content_filter"}}, 400),
        Answer(chat(None)),
        Answer(chat("and so on", finish="length")),
    ]
    one = await reader()
    replies = [await one.generate(ask()) for _ in range(5)]
    assert [reply.finish for reply in replies] == ["refused", "refused", "refused", "stop", "length"]
    assert replies[0].text == "I cannot help with that."
    assert replies[0].usage.output == 3
    assert replies[2].usage == Usage()
    assert replies[3].text == ""


async def test_schema_tools_and_prefill(api: Api, reader: Open) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    api.answers = [Answer(chat(None, finish="tool_calls", tool_calls=[call])), Answer(chat("4"))]
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tool = {"name": "look", "parameters": {"type": "object"}}
    reply = await (await reader()).generate(ask(schema=closed, tools=(tool,)))
    assert api.asked[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": closed, "strict": True},
    }
    assert api.asked[0]["tools"] == [{"type": "function", "function": tool}]
    assert (reply.finish, reply.tools) == ("tool", ({"id": "t1", "name": "look", "arguments": '{"at": 1}'},))
    with pytest.raises(ReaderError, match="continue_prefill"):
        await (await reader()).generate(ask(prefill="Score: "))
    assert (await (await reader(continue_prefill=True)).generate(ask(prefill="Score: "))).text == "Score: 4"
    assert api.asked[1]["messages"][-1] == {"role": "assistant", "content": "Score: "}
    assert api.asked[1]["continue_final_message"] is True


async def test_pictures(api: Api, reader: Open, media: MediaStore, tmp_path: Path) -> None:
    plain, turned, bitmap = tmp_path / "a.png", tmp_path / "b.jpg", tmp_path / "c.bmp"
    picture = PIL.Image.new("RGB", (40, 20), "red")
    picture.save(plain)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    picture.save(turned, exif=exif)
    picture.save(bitmap)
    images = [media.image(path, path.name, path.name) for path in (plain, turned, bitmap)]
    api.answers = [Answer(chat())]
    one = await reader(image_detail="low")
    reply = await one.generate(Request((Message("user", (Text("see "), *images)),)))
    sent = api.asked[0]["messages"][0]["content"]
    assert sent[0] == {"type": "text", "text": "see "}
    assert [part["image_url"]["detail"] for part in sent[1:]] == ["low"] * 3
    urls = [part["image_url"]["url"] for part in sent[1:]]
    contents = [base64.b64decode(url.partition(",")[2]) for url in urls]
    assert contents[0] == plain.read_bytes()
    sizes = [PIL.Image.open(io.BytesIO(content)).size for content in contents]
    assert sizes == [(40, 20), (20, 40), (40, 20)]
    assert all(url.startswith("data:image/png;base64,") for url in urls)
    assert reply.usage == Usage(text=5, image=6, output=3)  # 2 + 2 + 2 patches of 32 pixels; the sum is the server's

    told = {**USAGE, "prompt_tokens_details": {"image_tokens": 10}}
    api.answers = [Answer(chat(usage=told))]
    assert (await one.generate(Request((Message("user", tuple(images)),)))).usage == Usage(text=1, image=10, output=3)
    vllm = {**USAGE, "prompt_tokens_details": {"multimodal_tokens": {"image": 9}}}
    api.answers = [Answer(chat(usage=vllm))]
    assert (await one.generate(Request((Message("user", tuple(images)),)))).usage == Usage(text=2, image=9, output=3)
    local = await reader(image_parts="file")
    await local.generate(Request((Message("user", (images[0],)),)))
    assert api.asked[-1]["messages"][0]["content"][0]["image_url"]["url"] == plain.resolve().as_uri()
    with pytest.raises(ReaderError, match="images=false"):
        await (await reader(images=False)).generate(Request((Message("user", tuple(images)),)))
    with pytest.raises(ReaderError, match="no video"):
        await one.generate(Request((Message("user", (Video("ab"),)),)))
    with pytest.raises(ReaderError, match="not at hand"):
        await one.generate(Request((Message("user", (media.image(tmp_path / "no.png", "no.png", "x"),)),)))


async def test_keys_are_never_shown(
    api: Api, reader: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    api.answers = [Answer({"error": {"message": f"bad key {KEY}, or sk-other-99999999"}}, 500)]
    one = await reader(attempts=2)
    with pytest.raises(ReaderError) as caught:
        await one.generate(ask())
    assert api.keys == [f"Bearer {KEY}"] * 2
    shown = str(caught.value) + repr(caught.value.__context__) + caplog.text + repr(one.card)
    assert "bad key <key>, or <key>" in str(caught.value)
    assert KEY not in shown and "sk-other" not in shown

    api.models = Answer({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401)
    with pytest.raises(UserError, match="refuses the key in OPENAI_API_KEY") as refused:
        await reader()
    assert KEY not in str(refused.value)


async def test_start(api: Api, reader: Open, monkeypatch: pytest.MonkeyPatch, media: MediaStore) -> None:
    api.models = Answer({"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 4096}]})
    assert (await reader()).card.window == 4096
    assert (await reader(window=100)).card.window == 100
    api.models = Answer("not found", 404)
    assert (await reader()).card.window is None
    with pytest.raises(UserError, match="set OPENAI_API_KEY to your key, or base_url"):
        await reader(base_url="")
    with pytest.raises(UserError, match="no server answers at http://127"):
        await reader(base_url="http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", api.url)
    assert (await reader(base_url="")).card.provenance["base_url"] == api.url
    with pytest.raises(UserError, match="which model"):
        OpenAIReader("", OpenAIConfig(), media)
    with pytest.raises(UserError, match="expected http"):
        OpenAIReader("m", OpenAIConfig(base_url="127.0.0.1:8000/v1"), media)
    with pytest.raises(UserError, match="no such file"):
        OpenAIReader("m", OpenAIConfig(tokenizer="nowhere.json"), media)


async def test_a_password_and_a_query_in_the_address_are_used_and_not_shown(api: Api, reader: Open) -> None:
    api.answers = [Answer(chat())]
    one = await reader(base_url=api.url.replace("//", "//me:p%40ss@") + "?version=2")
    assert (await one.generate(ask())).text == "Paris"
    assert api.keys == ["Basic " + base64.b64encode(b"me:p@ss").decode()]
    assert one.card.provenance["base_url"] == api.url
    assert one._server._address("/models") == api.url + "/models?version=2"


async def test_a_proxy_of_the_environment_is_gone_through(
    api: Api, reader: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answers = [Answer(chat())]
    monkeypatch.setenv("http_proxy", api.url.removesuffix("/v1"))  # it answers whatever it is asked, for any host
    one = await reader(base_url="http://nowhere.invalid/v1", key_env="NO_SUCH_KEY")
    assert (await one.generate(ask())).text == "Paris"
    assert len(api.asked) == 1


async def test_tool_calls_of_another_form_are_none(api: Api, reader: Open) -> None:
    message = {"role": "assistant", "content": "x", "tool_calls": 5}
    api.answers = [Answer({**chat(), "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})]
    assert (await (await reader()).generate(ask())).tools == ()


def test_cards(media: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def reader(**options: Any) -> OpenAIReader:
        return OpenAIReader("m", OpenAIConfig(**options), media)

    def card(**options: Any) -> Any:
        return reader(**options).card

    assert (card().hosted, card().backend) == (True, "openai@api.openai.com")
    local = reader(base_url="http://localhost:8000/v1")
    assert (local.card.hosted, local.card.backend) == (False, "openai@local")
    assert local.identity() == reader(base_url="http://127.0.0.1:9000/v1", max_inflight=2, timeout=5).identity()
    assert card(base_url="http://node7:8000/v1", hosted=False, server="cluster").backend == "openai@cluster"
    assert not card(base_url="http://node7:8000/v1", hosted=False).hosted
    assert "secret" not in repr(card(base_url="https://me:secret@host/v1?key=secret"))
    assert card(revision="awq").revision == "awq"
    assert card().capabilities == {"schema", "tools", "image"}
    assert card(images=False).capabilities == {"schema", "tools"}


def test_retry_after_forms() -> None:
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({}) is None
    for nonsense in ("soon", "nan", "inf", "-3"):
        assert retry_after({"retry-after": nonsense}) is None
    later = retry_after({"retry-after": email.utils.formatdate(time.time() + 30, usegmt=True)})
    assert later is not None and 28 <= later <= 31


def test_small_rules() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.1.2.3", "::1", "api.openai.com", "10.0.0.1")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert cut_at("a\n\nb", ("zzz", "\n\n", "")) == "a"
    assert not is_strict({"type": "object", "properties": {"a": {}}, "required": ["a"]})
    assert not is_strict({"anyOf": [{"type": "object", "properties": {}}]})
    assert is_strict({"type": "array", "items": {"type": "string"}})


@given(st.integers(0, 10_000), st.lists(st.integers(0, 500), min_size=1, max_size=20))
def test_share_adds_up_and_is_fair(total: int, weights: list[int]) -> None:
    shares = share(total, weights)
    assert sum(shares) == total
    if sum(weights):
        for part, weight in zip(shares, weights, strict=True):
            assert abs(part - total * weight / sum(weights)) < 1


# ---------------------------------------------------------------------------------------------------------- embedder


def vectors(body: dict[str, Any]) -> Answer:
    rows = [
        {"object": "embedding", "index": at, "embedding": [3.0, 4.0, float(len(text))]}
        for at, text in enumerate(body["input"])
    ]
    usage = {"prompt_tokens": 2 * len(rows) + 1, "total_tokens": 0}
    return Answer({"object": "list", "model": "e", "data": rows[::-1], "usage": usage})


async def test_embedder(api: Api, media: MediaStore) -> None:
    api.answers = [vectors]
    config = EmbedderConfig(base_url=api.url, batch=2, query_prefix="query: ", first_wait=0.01)
    one = OpenAIEmbedder("e", config, media)
    await one.start()
    try:
        assert one.width == 3
        got, tokens = await one.embed([(Text("a"),), (Text("bb"), Text("c")), ()], "item")
        assert sorted(body["input"] for body in api.asked[1:]) == [[" "], ["a", "bbc"]]  # asked side by side
        assert got.dtype == np.float32 and np.allclose(np.linalg.norm(got, axis=1), 1)
        want = np.array([[3, 4, 1], [3, 4, 3], [3, 4, 1]], np.float32)
        assert np.allclose(got, want / np.linalg.norm(want, axis=1, keepdims=True))
        assert sum(tokens) == 5 + 3
        await one.embed([(Text("a"),)], "query")
        assert api.asked[-1]["input"] == ["query: a"]
        empty, none = await one.embed([], "item")
        assert empty.shape == (0, 3) and list(none) == []
        with pytest.raises(ReaderError, match="words only"):
            await one.embed([(Video("ab"),)], "item")
        api.answers = [Answer({"object": "list", "model": "e", "data": [], "usage": {"prompt_tokens": 1}})]
        with pytest.raises(ReaderError, match="0 vectors"):
            await one.embed([(Text("a"),)], "item")
        api.answers = [Answer({"error": {"message": "maximum context length is 8192 tokens"}}, 400)]
        with pytest.raises(OverWindow):
            await one.embed([(Text("a"),)], "item")
    finally:
        await one.close()


async def test_calls_run_beside_each_other(api: Api, reader: Open) -> None:
    together = threading.Barrier(4, timeout=20)

    def wait_for_the_others(_: dict[str, Any]) -> Answer:
        together.wait()
        return Answer(chat())

    api.answers = [wait_for_the_others]
    one = await reader()
    replies = await asyncio.gather(*(one.generate(ask(str(at))) for at in range(4)))
    assert [reply.text for reply in replies] == ["Paris"] * 4
