"""`openai` pictures against a real local server."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import PIL.Image
import pytest

from memharness.imaging import ImageBackend, ImageError, ImageRequest, open_images
from memharness.types import UserError
from tests.readers.images_server import Asked, Server, images_server, said

Open = Callable[..., Awaitable[ImageBackend]]
LAMP = ImageRequest("a red lamp on a beach", seed=5, size=(64, 48))


def encoded(width: int = 8, height: int = 8, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    mode = "RGB" if width < 1000 else "1"  # quick to make, if large
    PIL.Image.new(mode, (width, height)).save(file, kind)
    return file.getvalue()


def gives(*pictures: bytes, **more: object) -> Callable[[Asked], tuple[int, object, dict[str, str]]]:
    return said(200, {"data": [{"b64_json": base64.b64encode(one).decode()} for one in pictures], **more})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with images_server() as running:
        yield running


@pytest.fixture
async def backend(server: Server) -> AsyncIterator[Open]:
    opened: list[ImageBackend] = []

    async def open_backend(**options: object) -> ImageBackend:
        opened.append(open_images(f"openai:tiny@{server.url}", **{"first_wait": 0.01, **options}))
        await opened[-1].start()
        return opened[-1]

    yield open_backend
    for one in opened:
        await one.close()


async def test_words_become_a_picture(server: Server, backend: Open) -> None:
    (made,) = await (await backend(seeded=True)).make(LAMP)
    assert (made.width, made.height, made.seed, made.route, made.notes) == (64, 48, 5, "generate", ())
    (pil,) = await open_images("pil").make(LAMP)
    assert made.data == pil.data and made.sha256 == pil.sha256
    assert server.asked[0].path == "/v1/images/generations"
    assert server.asked[0].fields == {"model": "tiny", "prompt": LAMP.prompt, "n": 1, "size": "64x48", "seed": 5}


async def test_every_reference_is_a_part_of_its_own(server: Server, backend: Open) -> None:
    one = await backend(b64_json=True)
    (lamp,) = await one.make(LAMP)
    (mug,) = await one.make(ImageRequest("a blue mug", seed=6))
    (both,) = await one.make(ImageRequest("merge them", (lamp.data, mug.data)))
    asked = server.asked[-1]
    assert (asked.path, both.route) == ("/v1/images/edits", "compose")
    assert asked.images == (lamp.data, mug.data)
    assert asked.fields == {"model": "tiny", "prompt": "merge them", "n": "1", "response_format": "b64_json"}
    (green,) = await one.make(ImageRequest("make the lamp green", (lamp.data,)))
    assert green.route == "edit" and green.data != lamp.data


async def test_the_seed_is_not_sent_where_the_server_takes_none(server: Server, backend: Open) -> None:
    (made,) = await (await backend()).make(ImageRequest("a mug", seed=5, negative="people"))
    assert made.seed is None
    assert made.notes == (
        "the seed was not sent: the server takes none",
        "the negative prompt was not sent: the server takes none",
    )
    assert {"seed", "negative_prompt"}.isdisjoint(server.asked[0].fields)


async def test_another_server_edits(server: Server, backend: Open) -> None:
    with images_server() as editor:
        one = await backend(edit_url=editor.url, edit_model="editor", seeded=True, negatives=True)
        (lamp,) = await one.make(LAMP)
        await one.make(
            ImageRequest("make the lamp green", (lamp.data,), seed=1, negative="fog", extra={"true_cfg_scale": 4.0})
        )
    assert [asked.path for asked in server.asked] == ["/v1/images/generations"]
    assert [asked.path for asked in editor.asked] == ["/v1/images/edits"]
    assert editor.asked[0].fields == {
        "model": "editor", "prompt": "make the lamp green", "n": "1", "seed": "1", "negative_prompt": "fog",
        "true_cfg_scale": "4.0",
    }  # fmt: skip


async def test_a_server_that_makes_one_at_a_time_is_asked_again(server: Server, backend: Open) -> None:
    server.answers = [gives(encoded(8)), gives(encoded(9)), gives(encoded(10), encoded(11))]
    made = await (await backend(seeded=True)).make(ImageRequest("mugs", n=3, seed=7))
    assert [(one.width, one.seed) for one in made] == [(8, 7), (9, 8), (10, 9)]
    assert [asked.fields["n"] for asked in server.asked] == [3, 2, 1]
    assert [one.notes for one in made] == [
        ("1 of 3 pictures came in one call",),
        ("1 of 2 pictures came in one call",),
        ("2 of 1 pictures came in one call",),
    ]


async def test_what_came_back_is_measured_not_trusted(server: Server, backend: Open) -> None:
    usage = {"total_tokens": 9, "input_tokens_details": {"image_tokens": 0}}
    server.answers = [gives(encoded(20, 10, "JPEG"), size="64x48", usage=usage)]
    (made,) = await (await backend()).make(ImageRequest("a mug", size=(64, 48)))
    assert (made.width, made.height, made.notes) == (20, 10, ("20x10 came back for 64x48",))
    assert made.usage == {"total_tokens": 9}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (gives(b"<svg/>"), "no picture"),
        (gives(encoded(64, 64)[:-40]), "damaged or cut short"),
        (gives(encoded(9000, 9000)), "9,000 × 9,000"),
        (said(200, {"data": [{"b64_json": "not base64!"}]}), "not base64"),
        (said(200, {"data": [{"url": "http://elsewhere/x.png"}]}), "b64_json=true"),
        (said(200, {"data": []}), "holds no picture"),
        (said(200, {"data": "x"}), "holds no picture"),
        (said(200, b"<html>"), "malformed reply"),
        (said(400, {"error": {"message": "size is not one of"}}), "size is not one of"),
    ],
)
async def test_what_is_no_picture_is_an_error(
    server: Server, backend: Open, answer: Callable[[Asked], tuple[int, object, dict[str, str]]], message: str
) -> None:
    server.answers = [answer]
    with pytest.raises(ImageError, match=message) as raised:
        await (await backend()).make(ImageRequest("a mug"))
    assert not raised.value.refused and len(server.asked) == 1


@pytest.mark.parametrize("code", ["moderation_blocked", "content_policy_violation"])
async def test_a_refusal_is_said(server: Server, backend: Open, code: str) -> None:
    server.answers = [said(400, {"error": {"message": "not that", "code": code}})]
    with pytest.raises(ImageError, match=r"refused.*not that") as raised:
        await (await backend()).make(ImageRequest("a mug"))
    assert raised.value.refused


async def test_a_busy_server_is_asked_again_with_the_same_pictures(server: Server, backend: Open) -> None:
    busy = said(429, {"error": {"message": "slow down"}}, **{"retry-after": "0.01"})
    server.answers = [busy, said(500, b"oops"), gives(encoded())]
    await (await backend()).make(ImageRequest("make it green", (encoded(9), encoded(10))))
    assert [asked.images for asked in server.asked] == [(encoded(9), encoded(10))] * 3
    server.answers = [said(503, b"oops")]
    with pytest.raises(ImageError, match="2 tries"):
        await (await backend(attempts=2)).make(ImageRequest("a mug"))


async def test_routes_follow_from_what_the_servers_do(server: Server, backend: Open) -> None:
    editor = await backend(generates=False, max_references=1)
    assert (editor.card.routes, editor.card.max_references) == (frozenset({"edit"}), 1)
    with pytest.raises(ImageError, match="no route generate"):
        await editor.make(ImageRequest("a mug"))
    several = await backend(max_references=2)
    with pytest.raises(ImageError, match="at most 2 pictures, not 3"):
        await several.make(ImageRequest("merge", (encoded(), encoded(), encoded())))
    assert server.asked == []


async def test_identity_says_server_and_model_but_no_patience(server: Server, backend: Open) -> None:
    one, patient = await backend(), await backend(attempts=9)
    other = await backend(edit_model="editor")
    assert one.identity() == patient.identity() != other.identity()
    assert "openai@local" in one.card.model and not one.card.hosted


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("openai", {}, "which model"),
        ("openai:m@ftp://x", {}, "expected http"),
        ("openai:m@http://127.0.0.1:9/v1", {"sizes": "1"}, "no such option"),
    ],
)
def test_a_wrong_spec_is_said(spec: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_images(spec, **options)


async def test_no_server_is_said() -> None:
    one = open_images("openai:m@http://127.0.0.1:9/v1")
    with pytest.raises(UserError, match="no server answers"):
        await one.start()
    await one.close()
