"""`pil`: drawing, changes of scenes, and edits of strangers' pictures by their pixels."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.imaging import ImageError, ImageRequest, Made, open_images
from memharness.readers.pixel_edits import beside, opened
from memharness.scenes import checks, holds, read_change, scene_of
from memharness.types import UserError

LAMP = ImageRequest("a red lamp and a blue mug in a workshop", seed=7)


async def make(request: ImageRequest, **options: object) -> Made:
    (made,) = await open_images("pil", **options).make(request)
    return made


def stranger(colour: str = "red", size: tuple[int, int] = (40, 30), kind: str = "PNG") -> bytes:
    """A picture that no scene is known of: a coloured square on grey."""
    picture = PIL.Image.new("RGB", size, "gray")
    picture.paste(PIL.Image.new("RGB", (10, 10), colour), (5, 5))
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


def shown(made: Made) -> PIL.Image.Image:
    return PIL.Image.open(io.BytesIO(made.data)).convert("RGB")


async def test_the_same_request_gives_the_same_bytes_in_any_process() -> None:
    made = await make(LAMP)
    program = (
        "import asyncio; from memharness.imaging import ImageRequest, open_images;"
        f"print(asyncio.run(open_images('pil').make(ImageRequest({LAMP.prompt!r}, seed=7)))[0].sha256)"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == made.sha256
    assert (await make(replace(LAMP, seed=8))).sha256 != made.sha256
    unseeded = replace(LAMP, seed=None)
    assert (await make(unseeded)).data == (await make(unseeded)).data


@pytest.mark.parametrize(
    "words",
    ["make the lamp green", "move the mug to the top left", "把台灯改成绿色", "show it at night", "remove the mug"],
)
async def test_a_change_is_drawn_and_can_be_seen(words: str) -> None:
    before = await make(LAMP)
    after = await make(ImageRequest(words, (before.data,)))
    change, scene = read_change(words), scene_of(before.data)
    assert change is not None and scene is not None
    wanted = checks(change, [scene])
    assert all(holds(check, shown(after)) for check in wanted)
    assert not all(holds(check, shown(before)) for check in wanted)
    assert (after.route, after.notes, (after.width, after.height)) == ("edit", (), (256, 256))


async def test_a_change_that_changes_nothing_is_noted() -> None:
    before = await make(LAMP)
    after = await make(ImageRequest("make the lamp red", (before.data,)))
    assert after.notes == ("the change leaves the picture as it was",)


async def test_several_scenes_become_one() -> None:
    lamp, bottle = await make(LAMP), await make(ImageRequest("a yellow bottle", seed=1))
    both = scene_of((await make(ImageRequest("both, please", (lamp.data, bottle.data)))).data)
    assert both is not None and [thing.kind for thing in both.things] == ["lamp", "mug", "bottle"]


async def test_strangers_pictures_are_changed_by_their_pixels() -> None:
    source = stranger()
    blue = np.asarray(shown(await make(ImageRequest("make the red square blue", (source,)))))
    assert blue[7, 7, 2] > 150 > blue[7, 7, 0] and tuple(blue[20, 20]) == (128, 128, 128)
    night = np.asarray(shown(await make(ImageRequest("show it at night", (source,)))))
    assert night.mean() < np.asarray(opened(source)).mean()
    mirrored = np.asarray(shown(await make(ImageRequest("mirror it", (source,)))))
    assert tuple(mirrored[7, 40 - 8]) == (255, 0, 0)
    turned = await make(ImageRequest("rotate it", (source,)))
    assert (turned.width, turned.height) == (30, 40)
    grey = np.asarray(shown(await make(ImageRequest("in black and white", (source,)))))
    assert (grey.max(axis=-1) == grey.min(axis=-1)).all()
    bright = np.asarray(shown(await make(ImageRequest("a bit brighter", (source,)))))
    dark = np.asarray(shown(await make(ImageRequest("调暗", (source,)))))
    assert bright[20, 20, 0] > 128 > dark[20, 20, 0]
    cropped = await make(ImageRequest("crop it", (source,)))
    assert (cropped.width, cropped.height) == (30, 24)
    lettered = np.asarray(shown(await make(ImageRequest('write "HI" on it', (source,)))))
    assert (lettered[-2:] == 255).all(axis=-1).mean() > 0.4 and lettered[-4:].min() < 160


async def test_strangers_pictures_are_put_beside_each_other() -> None:
    made = await make(ImageRequest("merge them", (stranger(), stranger("blue", (20, 60), "JPEG"))))
    assert (made.width, made.height) == (40 + 4 + 10, 30)
    assert made.notes == ("put beside each other: what the pictures show is not known",)
    sized = await make(ImageRequest("merge them", (stranger(), stranger()), size=(64, 64)))
    assert (sized.width, sized.height, sized.route) == (64, 64, "compose")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ImageRequest("make it nicer", (stranger(),)), "names no change"),
        (ImageRequest("make the green one blue", (stranger(),)), "no pixel is green"),
        (ImageRequest("make it red", (b"no picture",)), "cannot be decoded"),
        (ImageRequest("make it red", (stranger()[:60],)), "cannot be decoded"),
        (ImageRequest("a mug", size=(8, 8)), "from 16 to 4096"),
        (ImageRequest("merge", (stranger(),) * 10), "at most 9"),
    ],
)
async def test_what_cannot_be_done_is_an_error_never_a_copy(request_: ImageRequest, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        await make(request_)


def test_pictures_of_any_mode_are_taken_and_bombs_are_not() -> None:
    def saved(picture: PIL.Image.Image, kind: str, **more: object) -> bytes:
        file = io.BytesIO()
        picture.save(file, kind, **more)
        return file.getvalue()

    deep = PIL.Image.fromarray(np.full((4, 4), 257 * 100, np.uint16))
    assert opened(saved(deep, "PNG")).getpixel((0, 0)) == (100, 100, 100)
    cmyk = opened(saved(PIL.Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG"))
    assert cmyk.mode == "RGB" and cmyk.getpixel((8, 8))[0] > 200 > 60 > cmyk.getpixel((8, 8))[1]  # type: ignore[index]
    assert opened(saved(PIL.Image.new("RGBA", (4, 4), (0, 0, 0, 0)), "PNG")).getpixel((0, 0)) == (255, 255, 255)
    frames = [PIL.Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    animated = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert opened(animated).getpixel((0, 0)) == (255, 0, 0)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    assert opened(saved(PIL.Image.new("RGB", (8, 4)), "JPEG", exif=exif)).size == (4, 8)
    for side in (8200, 14000):
        with pytest.raises(ImageError, match=r"too large|cannot be decoded"):
            opened(saved(PIL.Image.new("1", (side, side)), "PNG"))
    with pytest.raises(ImageError, match="cannot be decoded"):
        opened(b"<svg xmlns='http://www.w3.org/2000/svg'/>")


async def test_n_pictures_count_the_seed_on() -> None:
    made = await open_images("pil", side=64).make(replace(LAMP, n=3))
    assert [(one.seed, one.width) for one in made] == [(7, 64), (8, 64), (9, 64)]
    assert len({one.sha256 for one in made}) == 3
    assert made[1].data == (await make(replace(LAMP, seed=8), side=64)).data
    with pytest.raises(ValueError, match="at least one"):
        await open_images("pil").make(replace(LAMP, n=0))


@given(sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_a_row_is_as_high_as_its_first_picture(sizes: list[tuple[int, int]]) -> None:
    sheet = beside([PIL.Image.new("RGB", size) for size in sizes])
    assert sheet.height == sizes[0][1]
    widths = [max(1, round(width * sheet.height / height)) for width, height in sizes]
    assert sheet.width == sum(widths) + 4 * (len(sizes) - 1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [("pil:model", "pil has no models"), ("pill", "did you mean"), ("memharness.types:Text", "not an ImageBackend")],
)
def test_a_wrong_spec_is_said(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_images(spec)
