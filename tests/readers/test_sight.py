"""Pictures as latents: the block partition, its granularities, and what the model's own encoder makes of them."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.media import MediaStore
from memharness.readers.frozen import Frozen, join
from memharness.readers.hf import HFConfig, HFReader
from memharness.readers.network import Encoded
from memharness.readers.sight import blocks_of, features, grid, halved, levels_of
from memharness.types import Image, ReaderError
from tests.readers.tiny import PICTURED, tiny_model

LOOP = pytest.mark.asyncio(loop_scope="module")
MISSING = Image(None)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MediaStore:
    return MediaStore(tmp_path_factory.mktemp("index") / "files.sqlite")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.getbasetemp() / "tiny"
    return lambda family: tiny_model(family, folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PICTURED)
async def reader(request: Any, tiny: Callable[[str], Path], store: MediaStore) -> AsyncIterator[HFReader]:
    made = HFReader(str(tiny(request.param)), HFConfig(dtype="f32", max_blocks=6), store)
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def picture(tmp_path: Path, store: MediaStore) -> Callable[[int, int], Image]:
    def make(width: int, height: int) -> Image:
        path = tmp_path / f"{width}x{height}.png"
        Pillow.effect_noise((width, height), 90).convert("RGB").save(path)
        return store.image(path, path.name, path.name)

    return make


def processed(reader: HFReader, pictures: list[Any], do_resize: bool = False) -> dict[str, Any]:
    """Inputs for the vision encoder by the model's own processor, whole pictures."""
    options = {"crop_to_patches": False} if reader._network.family == "internvl" else {}
    processor = reader._network.processor.image_processor
    made = processor(pictures, return_tensors="pt", do_resize=do_resize, **options)
    return {name: made[name] for name in ("pixel_values", "image_grid_thw") if name in made}


def encoded(reader: HFReader, pictures: list[Any], do_resize: bool = False) -> list[Any]:
    """What the vision encoder makes of them."""
    import torch

    with torch.no_grad():
        inputs = processed(reader, pictures, do_resize)
        return features(cast(Any, reader._network.model).get_image_features(**inputs))


@pytest.mark.parametrize(
    ("side", "merge", "levels"), [(8, 2, 3), (16, 2, 4), (2, 2, 1), (6, 2, 1), (12, 2, 2), (8, 1, 4)]
)
def test_a_block_has_as_many_levels_as_it_can_be_halved_to_one_vector(side: int, merge: int, levels: int) -> None:
    assert levels_of(side, merge) == levels


@pytest.mark.parametrize("side", [0, 1, 3, 7])
def test_a_block_is_whole_vectors(side: int) -> None:
    with pytest.raises(ValueError, match=f"a block of {side} patches: this model makes one vector of 2 × 2 patches"):
        levels_of(side, 2)


@given(
    st.integers(1, 5000), st.integers(1, 5000), st.sampled_from((32, 112, 128)), st.integers(1, 80),
    st.sampled_from((round, math.ceil)),
)  # fmt: skip
def test_a_grid_is_bounded_and_never_enlarges(width: int, height: int, size: int, most: int, whole: Any) -> None:
    columns, rows, scale = grid(width, height, size, most, whole)
    assert 1 <= columns * rows <= most and 0 < scale <= 1
    if whole(width / size) * whole(height / size) <= most and scale == 1:
        assert (columns, rows) == (max(1, whole(width / size)), max(1, whole(height / size)))
    assert columns == 1 or columns * size <= width * scale + size
    assert rows == 1 or rows * size <= height * scale + size


def test_blocks_are_the_picture_row_by_row() -> None:
    import numpy as np

    picture = Pillow.effect_noise((96, 64), 90).convert("RGB")
    pixels = np.asarray(picture, np.float32)
    for remainder in ("resize", "pad"):
        blocks = blocks_of(picture, 32, 64, cast(Any, remainder)).numpy()
        assert blocks.shape == (6, 3, 32, 32)
        for at in range(6):
            row, column = divmod(at, 3)
            want = pixels[32 * row : 32 * row + 32, 32 * column : 32 * column + 32].transpose(2, 0, 1)
            assert (blocks[at] == want).all()


def test_an_edge_that_fills_no_block_is_resized_or_padded() -> None:
    picture = Pillow.new("RGB", (70, 40), (10, 20, 30))
    assert blocks_of(picture, 32, 64, "resize").shape[0] == 2  # 70 × 40 is nearest to 64 × 32
    padded = blocks_of(picture, 32, 64, "pad")
    assert padded.shape[0] == 6
    assert padded[0].flatten(1).unique(dim=1)[:, 0].tolist() == [10, 20, 30]
    assert padded[5, :, 8:, :].unique().tolist() == [127.5]  # below the picture
    assert blocks_of(Pillow.new("RGB", (3, 2)), 32, 64, "resize").shape[0] == 1
    assert blocks_of(Pillow.new("RGB", (4000, 3)), 32, 5, "pad").shape[0] <= 5


def test_halving_is_plain_bilinear() -> None:
    import torch

    pixels = torch.arange(16.0).reshape(1, 1, 4, 4).expand(1, 3, 4, 4)
    assert halved(pixels, 0) is pixels
    assert halved(pixels, 1)[0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]  # means of 2 × 2
    assert halved(pixels, 2)[0, 0].tolist() == [[7.5]]  # the middle four


@LOOP
async def test_blocks_are_encoded_by_the_models_own_encoder_at_each_level(
    reader: HFReader, picture: Callable[[int, int], Image], store: MediaStore
) -> None:
    import torch

    network = reader._network
    patch = {"qwen3_vl": 16}.get(network.family, 14)
    image = picture(24 * patch, 16 * patch)
    latents = await reader.see(image, 8)
    assert latents.shape == (6, 21, reader.width) and latents.dtype == reader.dtype and not latents.requires_grad
    assert (await reader.see(image, 8, levels=1)).shape == (6, 16, reader.width)
    assert (await reader.see(image, 16)).shape == (2, 85, reader.width)  # 64 + 16 + 4 + 1 at g = 4
    assert (await reader.see(picture(400, 200), 2)).shape[0] <= 6  # max_blocks
    assert (await reader.see(picture(3, 2), 8)).shape == (1, 21, reader.width)  # one block, and no further up

    blocks = blocks_of(store.open(image), 8 * patch, 6, "resize")
    for level, part in enumerate((slice(0, 16), slice(16, 20), slice(20, 21))):
        want = encoded(reader, list(halved(blocks, level)))[0]
        torch.testing.assert_close(latents[:, part].reshape(want.shape), want)


@LOOP
async def test_a_whole_picture_in_one_block_is_what_the_prompt_would_have(
    reader: HFReader, picture: Callable[[int, int], Image], store: MediaStore
) -> None:
    import torch

    network = reader._network
    patch = {"qwen3_vl": 16}.get(network.family, 14)
    side = 16  # 256 pixels are the least of Qwen3-VL, 224 a tile of the tiny InternVL
    image = picture(side * patch, side * patch)
    want = encoded(reader, [store.open(image)], do_resize=True)
    got = await reader.see(image, side, levels=1, deepstack=True)
    assert got.shape == (1, side * side // 4, 1 + (3 if network.family == "qwen3_vl" else 0), reader.width)
    torch.testing.assert_close(got[0], torch.stack(want, 1), atol=1e-5, rtol=1e-5)


@LOOP
async def test_injected_with_deepstack_a_picture_is_as_in_the_prompt(
    reader: HFReader, picture: Callable[[int, int], Image], store: MediaStore
) -> None:
    import torch

    network, frozen = reader._network, Frozen(reader._network)
    image_token = cast(Any, network.config).image_token_id
    patch = {"qwen3_vl": 16}.get(network.family, 14)
    image = picture(2 * patch, 2 * patch)  # one vector, whose three positions are one
    extras = processed(reader, [store.open(image)])
    if network.family != "internvl":
        extras["mm_token_type_ids"] = torch.tensor([[0, 0, 0, 1, 0, 0]])
    with torch.no_grad():
        prompt, positions, following = frozen.prompt(Encoded([5, 6, 7, image_token, 8, 9], extras))
        want = frozen.states(prompt, positions)
        seen = (await reader.see(image, 2, deepstack=True))[0]
        pieces = join([frozen.tokens([5, 6, 7]), frozen.latents(seen), frozen.tokens([8, 9])])
        places = frozen.places(torch.zeros_like(following), len(pieces))
        torch.testing.assert_close(frozen.states(pieces, places), want, atol=1e-5, rtol=1e-5)
        bare = join([frozen.tokens([5, 6, 7]), frozen.latents(seen[:, 0]), frozen.tokens([8, 9])])
        away = float((frozen.states(bare, places) - want).abs().max())
        assert away > 1e-2 if network.family == "qwen3_vl" else away < 1e-5  # what DeepStack is worth
        if network.family == "qwen3_vl":
            with pytest.raises(ValueError, match=r"expected \(n, 32\) or \(n, 4, 32\)"):
                frozen.latents(seen[:, :2])


@LOOP
async def test_see_says_what_is_wrong(
    reader: HFReader, picture: Callable[[int, int], Image], tiny: Callable[[str], Path], store: MediaStore
) -> None:
    with pytest.raises(ValueError, match=r"levels=4: a block of 8 patches has 1 … 3"):
        await reader.see(picture(64, 64), 8, levels=4)
    with pytest.raises(ValueError, match="a block of 3 patches"):
        await reader.see(picture(64, 64), 3)
    blind = HFReader(str(tiny("text")), HFConfig(dtype="f32"), store)
    with pytest.raises(ReaderError, match="not started"):
        await blind.see(picture(64, 64), 8)
    await blind.start()
    with pytest.raises(ReaderError, match="sees no pictures"):
        await blind.see(picture(64, 64), 8)
    await blind.close()
