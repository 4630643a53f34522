"""`diffusers` pictures by the real pipelines, with tiny random weights."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
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


async def test_qwens_guidance_is_never_without_effect(tmp_path: Path) -> None:
    """`true_cfg_scale` does nothing unless a negative prompt is given, which only a log line says."""
    folder = tiny_pipelines.qwen_image(tmp_path / "qwen")
    made = {}
    for guidance in (1.0, 4.0):
        backend = open_images(f"diffusers:{folder}", steps=2, guidance=guidance)
        await backend.start()
        (plain,) = await backend.make(MUG)
        (negative,) = await backend.make(replace(MUG, negative="fog"))
        made[guidance] = plain.sha256, negative.sha256, plain.notes + negative.notes
        (more,) = await backend.make(replace(MUG, extra={"true_cfg_scale": 9.0}))
        await backend.close()
        assert more.sha256 not in made[guidance]
    assert made[1.0][0] == made[1.0][1] != made[4.0][0] != made[4.0][1]
    assert made[1.0][2] == ("the negative prompt has no effect: true_cfg_scale is not above 1",)
    assert made[4.0][2] == ()


async def test_qwen_edits_one_picture_or_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as module

    for name in ("VAE_IMAGE_SIZE", "CONDITION_IMAGE_SIZE"):  # a megapixel takes half a minute here
        monkeypatch.setattr(module, name, 64 * 64)
    backend = open_images(f"diffusers:{tiny_pipelines.qwen_edit_plus(tmp_path / 'qwen')}", steps=1)
    await backend.start()
    navy, red = _picture(), _picture("red")
    edits = [("green", (navy,)), ("blue", (navy,)), ("green", (red,)), ("merge", (navy, red)), ("merge", (red, navy))]
    made = [(await backend.make(ImageRequest(words, images, (64, 64), seed=1, n=2)))[0] for words, images in edits]
    assert len({one.sha256 for one in made}) == len(edits)
    assert {one.notes for one in made} == {("references were scaled to about one megapixel",)}
    await backend.close()


async def test_without_guidance_a_negative_prompt_does_nothing_and_that_is_noted(folders: Path) -> None:
    backend = pair(folders, guidance=1.0)
    await backend.start()
    (plain,) = await backend.make(MUG)
    (negative,) = await backend.make(replace(MUG, negative="mug"))
    assert negative.data == plain.data
    assert negative.notes == ("the negative prompt has no effect: guidance_scale is not above 1",)
    await backend.close()


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
    assert card.routes == routes and card.max_references == references


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
    [
        (None, "no pipeline is there"),
        ({"_class_name": "Nonesuch"}, "Nonesuch is not of diffusers"),
        ({}, "names no pipeline"),
    ],
)
def test_what_is_no_pipeline_is_said(tmp_path: Path, index: dict[str, str] | None, message: str) -> None:
    if index is not None:
        (tmp_path / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match=message):
        open_images(f"diffusers:{tmp_path}")
    with pytest.raises(UserError, match="which pipeline"):
        open_images("diffusers")


@pytest.mark.parametrize(
    ("spec", "message"),
    [("/no/such/folder", "no such folder"), ("owner/name@v1", "not on this machine, and the hub cannot be reached")],
)
def test_a_pipeline_that_is_not_there_is_said(spec: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=message):
        open_images(f"diffusers:{spec}")


def test_a_pipeline_of_the_hub_is_pinned_to_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(name: str, file: str, revision: str | None) -> str:
        index = tmp_path / f"{name.replace('/', '-')}-{revision}" / file
        index.parent.mkdir(exist_ok=True)
        index.write_text(
            json.dumps({"_class_name": "QwenImageEditPlusPipeline" if "edit" in name else "ZImagePipeline"})
        )
        return str(index)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fetched)
    backend = open_images("diffusers:qwen/image@c1", edits="qwen/edit@c2")
    assert (backend.card.model, backend.card.max_references) == ("qwen/image + qwen/edit", 3)
    assert backend.card.routes == {"generate", "edit", "compose"}
    assert backend.identity()["weights"] == ["qwen-image-c1", "qwen-edit-c2"]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(UserError, match=r"pip install 'memharness-bench\[diffusion\]'"):
        open_images(f"diffusers:{tmp_path}")


async def test_weights_that_are_missing_are_said(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text((folders / "stable_diffusion" / "model_index.json").read_text())
    with pytest.raises(UserError, match="cannot be loaded"):
        await open_images(f"diffusers:{tmp_path}").start()


def _picture(colour: str = "navy") -> bytes:
    file = io.BytesIO()
    PIL.Image.new("RGB", (64, 64), colour).save(file, "PNG")
    return file.getvalue()
