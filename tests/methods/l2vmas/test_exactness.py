"""Every family, through the method's own path: plain greedy with the trigger off, one full pass with it on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch
from PIL import Image as Pillow

from memharness.media import MediaStore
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.readers import device
from memharness.readers.hf import HFConfig, HFReader
from memharness.types import Image
from tests.methods.l2vmas.exact import apart, ask, greedy, remembered, spoken, whole
from tests.readers.tiny import FAMILIES, PICTURED, tiny_model

LOOP = pytest.mark.asyncio(loop_scope="module")
CLOSE = 1e-5
CALLING = L2VMASConfig(calls="fixed", window=4, length=5).settled()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FAMILIES)
async def reader(request: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HFReader]:
    store = MediaStore(tmp_path_factory.mktemp("index") / "files.sqlite")
    model = tiny_model(request.param, tmp_path_factory.getbasetemp() / "tiny")
    made = HFReader(str(model), HFConfig(dtype="f32"), store)
    await made.start()
    yield made
    await made.close()


@pytest.fixture(scope="module")
def pictures(reader: HFReader, tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """Two pictures, as far as the model sees any."""
    folder: Path = tmp_path_factory.mktemp("pictures")
    made = []
    for at, size in enumerate(((200, 140), (96, 96))):
        path = folder / f"{at}.png"
        Pillow.effect_noise(size, 60 + 40 * at).convert("RGB").save(path)
        made.append(reader.media.image(path, path.name, path.name))
    return made if "image" in reader.card.capabilities else []


@LOOP
async def test_with_the_trigger_off_it_is_the_models_own_greedy_decoding(
    reader: HFReader, pictures: list[Image]
) -> None:
    memory = await remembered(reader, CALLING, pictures)
    off = CALLING.model_copy(update={"triggering": False})
    request = ask(*pictures)
    made = await spoken(reader, request, off, memory)
    assert len(memory.thinking) > 0 and memory.calls == 0 and made.injections == []
    assert made.tokens == await device.run(greedy, reader, request)
    assert (made.reply.usage.latent, len(made.tokens)) == (0, made.reply.usage.output)


@LOOP
async def test_what_the_memory_gives_equals_one_full_pass(reader: HFReader, pictures: list[Image]) -> None:
    memory = await remembered(reader, CALLING, pictures)
    banks = []
    for request in (ask(*pictures), ask(*pictures[:1], words="Where was it taken?"), ask(words="One two three")):
        made = await spoken(reader, request, CALLING, memory)
        latents = {injection.after: injection.recalled.latents for injection in made.injections}
        banks += [injection.recalled.which for injection in made.injections]
        assert list(latents) == list(range(4, len(made.tokens), 4))
        assert made.reply.usage.latent == 5 * len(latents)

        full = await device.run(whole, reader, request, made.tokens, latents)
        assert apart(made.states, full.states) <= CLOSE
        assert made.tokens == full.logits.argmax(-1).tolist()
        if latents:  # they matter: without them the same tokens have other states
            bare = await device.run(whole, reader, request, made.tokens, {})
            first = min(latents)
            assert apart(full.states[:first], bare.states[:first]) <= CLOSE
            assert apart(full.states[first:], bare.states[first:]) > 100 * CLOSE
    assert len(banks) >= 3 and set(banks) == ({"perception", "thinking"} if pictures else {"thinking"})


@LOOP
async def test_what_is_injected_is_what_the_bank_holds(reader: HFReader, pictures: list[Image]) -> None:
    """From the bank to the session: the refined mean of the units nearest to the window, at the embeddings' norm."""
    config = CALLING.model_copy(update={"length": 1})
    memory = await remembered(reader, config, pictures)
    made = await spoken(reader, ask(*pictures), config, memory)
    for injection in made.injections:
        bank = memory.bank(injection.recalled.which)  # type: ignore[arg-type]
        window = made.states[injection.after - 4 : injection.after]
        keys = torch.stack([unit.key for unit in bank.units])
        query = window.float().mean(0)
        nearest = torch.nn.functional.cosine_similarity(keys, query[None]).topk(min(3, len(keys))).indices
        mean = torch.cat([bank.units[int(at)].value for at in nearest]).float().mean(0)
        torch.testing.assert_close(injection.recalled.latents[0], mean * (reader.norm / mean.norm()))


def test_all_families_are_here() -> None:
    assert set(FAMILIES) == {*PICTURED, "text"}
