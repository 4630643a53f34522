"""`diffusers` pictures by the real pipelines, with tiny random weights."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torch

from memharness.imaging import ImageBackend, ImageError, ImageRequest, open_images
from memharness.readers.images_diffusers import DiffusersImages
from memharness.types import UserError
from tests.readers import tiny_pipelines

MUG = ImageRequest("a blue mug", seed=1, size=(64, 64))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines")
    for make in (tiny_pipelines.stable_diffusion, tiny_pipelines.pix2pix, tiny_pipelines.flux2_klein):
        make(folder / make.__name__)
    return folder


def pair(folders: Path, **options: Any) -> ImageBackend:
    """One pipeline that generates, and one that edits."""
    options = {"edits": str(folders / "pix2pix"), "steps": 2, "guidance": 2.0, **options}
    return open_images(f"diffusers:{folders / 'stable_diffusion'}", **options)


@pytest.fixture
async def both(folders: Path) -> AsyncIterator[ImageBackend]:
    backend = pair(folders)
    await backend.start()
    yield backend
    await backend.close()


async def test_words_and_a_picture_decide_what_is_made(both: ImageBackend) -> None:
    (mug,) = await both.make(MUG)
    assert (mug.width, mug.height, mug.seed, mug.route, mug.notes) == (64, 64, 1, "generate", ())
    assert (await both.make(MUG))[0].data == mug.data
    (lamp,) = await both.make(ImageRequest("a red lamp", seed=1, size=(64, 64)))
    (green,) = await both.make(ImageRequest("make it green", (mug.data,), seed=1))
    (blue,) = await both.make(ImageRequest("make it blue", (mug.data,), seed=1))
    (other,) = await both.make(ImageRequest("make it green", (lamp.data,), seed=1))
    assert len({one.sha256 for one in (mug, lamp, green, blue, other)}) == 5
    assert (green.route, green.width) == ("edit", 64)
    with pytest.raises(ImageError, match="no route compose"):
        await both.make(ImageRequest("merge", (mug.data, lamp.data)))


async def test_each_picture_has_a_seed_of_its_own(both: ImageBackend) -> None:
    several = await both.make(ImageRequest("a mug", seed=4, size=(64, 64), n=2))
    assert [one.seed for one in several] == [4, 5]
    (second,) = await both.make(ImageRequest("a mug", seed=5, size=(64, 64)))
    assert several[1].data == second.data != several[0].data


async def test_several_references_each_matter(folders: Path) -> None:
    backend = open_images(f"diffusers:{folders / 'flux2_klein'}", steps=1)
    await backend.start()
    (made,) = await backend.make(MUG)
    (other,) = await backend.make(ImageRequest("a lamp", seed=2, size=(64, 64)))
    merge = [made.data, other.data]
    found = [
        (await backend.make(ImageRequest("merge them", tuple(images), seed=1, size=(64, 64))))[0].sha256
        for images in (merge, merge[::-1], merge[:1])
    ]
    assert len(set(found)) == 3
    small = io.BytesIO()
    PIL.Image.new("RGB", (8, 8)).save(small, "PNG")
    with pytest.raises(ImageError, match="too small"):
        await backend.make(ImageRequest("merge", (small.getvalue(),), size=(64, 64)))
    await backend.close()
    with pytest.raises(ImageError, match="not started"):
        await backend.make(MUG)


async def test_extra_options_reach_the_pipeline_or_are_named(both: ImageBackend) -> None:
    (plain,) = await both.make(MUG)
    (more,) = await both.make(ImageRequest(MUG.prompt, seed=1, size=(64, 64), extra={"guidance_scale": 9.0}))
    (negative,) = await both.make(ImageRequest(MUG.prompt, seed=1, size=(64, 64), negative="mug"))
    assert len({plain.sha256, more.sha256, negative.sha256}) == 3
    with pytest.raises(ImageError, match="takes no sharpness"):
        await both.make(ImageRequest("a mug", extra={"sharpness": 2}))


async def test_out_of_memory_and_the_safety_checker_are_outcomes(
    both: ImageBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(both, DiffusersImages)
    pipeline = next(iter(both._pipelines.values()))

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.unet, "forward", full)
        with pytest.raises(ImageError, match="out of memory"):
            await both.make(MUG)

    def blackened(image: Any, *_: Any) -> tuple[Any, list[bool]]:
        return image, [True]

    monkeypatch.setattr(pipeline, "run_safety_checker", blackened)
    with pytest.raises(ImageError, match="safety checker") as raised:
        await both.make(MUG)
    assert raised.value.refused


@pytest.mark.parametrize("name", ["QwenImagePipeline", "QwenImageEditPipeline", "QwenImageEditPlusPipeline"])
def test_qwens_guidance_is_never_without_effect(folders: Path, name: str) -> None:
    """`true_cfg_scale` does nothing unless a negative prompt is given, which only a log line says."""
    import diffusers

    backend = pair(folders)
    assert isinstance(backend, DiffusersImages)
    pipeline = object.__new__(getattr(diffusers, name))
    images = (_picture(),) if "Edit" in name else ()
    words, notes = backend._words(pipeline, ImageRequest("a mug", images, (64, 64)))
    assert (words["true_cfg_scale"], words["negative_prompt"]) == (2.0, " ")
    assert "guidance_scale" not in words
    assert notes == (("references were scaled to about one megapixel",) if images else ())
    assert isinstance(words.get("image"), list) == ("Plus" in name)
    asked, _ = backend._words(pipeline, ImageRequest("a mug", images, negative="fog"))
    assert asked["negative_prompt"] == "fog"


def test_kontext_makes_the_size_that_is_asked(folders: Path) -> None:
    import diffusers

    backend = pair(folders)
    assert isinstance(backend, DiffusersImages)
    pipeline = object.__new__(diffusers.FluxKontextPipeline)
    words, _ = backend._words(pipeline, ImageRequest("a mug", (_picture(),), (64, 32)))
    assert (words["width"], words["height"], words["max_area"], words["_auto_resize"]) == (64, 32, 2048, False)
    assert (words["guidance_scale"], "true_cfg_scale" in words) == (2.0, False)


@pytest.mark.parametrize(
    ("name", "routes", "references"),
    [
        ("QwenImagePipeline", {"generate"}, 0),
        ("QwenImageEditPipeline", {"edit"}, 1),
        ("QwenImageEditPlusPipeline", {"edit", "compose"}, 3),
        ("FluxKontextPipeline", {"generate", "edit"}, 1),
        ("Flux2KleinPipeline", {"generate", "edit", "compose"}, 10),
    ],
)
def test_what_a_pipeline_can_do_is_known_before_it_is_loaded(
    tmp_path: Path, name: str, routes: set[str], references: int
) -> None:
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": name}))
    card = open_images(f"diffusers:{tmp_path}").card
    assert (card.routes, card.max_references) == (routes, references)


def test_identity_is_of_the_weights_not_of_their_place(folders: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    tiny_pipelines.stable_diffusion(moved / "stable_diffusion")
    tiny_pipelines.pix2pix(moved / "pix2pix")
    assert pair(moved).identity() == pair(folders).identity() == pair(folders, device="cpu").identity()
    assert pair(folders, steps=3).identity() != pair(folders).identity()
    tiny_pipelines.pix2pix(moved / "pix2pix", seed=9)
    assert pair(moved).identity() != pair(folders).identity()


@pytest.mark.parametrize(
    ("index", "message"),
    [(None, "no pipeline is there"), ({"_class_name": "Nonesuch"}, "Nonesuch is not of diffusers"), ({}, "unnamed")],
)
def test_what_is_no_pipeline_is_said(tmp_path: Path, index: dict[str, str] | None, message: str) -> None:
    if index is not None:
        (tmp_path / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match=message):
        open_images(f"diffusers:{tmp_path}")
    with pytest.raises(UserError, match="which pipeline"):
        open_images("diffusers")


async def test_weights_that_are_missing_are_said(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text((folders / "stable_diffusion" / "model_index.json").read_text())
    with pytest.raises(UserError, match="cannot be loaded"):
        await open_images(f"diffusers:{tmp_path}").start()


def _picture() -> bytes:
    file = io.BytesIO()
    PIL.Image.new("RGB", (64, 64), "navy").save(file, "PNG")
    return file.getvalue()
