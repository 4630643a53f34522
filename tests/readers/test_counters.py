"""Token counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow
from tokenizers import Tokenizer, models, pre_tokenizers

from memharness.media import MediaStore
from memharness.reader import Message, Request, count
from memharness.readers.counters import Bytes4, NetworkCounter, picture_rule, tokenizer_counter
from memharness.readers.network import Network
from memharness.types import Image, ReaderError, Text, UserError
from tests.readers.tiny import FAMILIES, PICTURED, tiny_model

SIDE = st.one_of(st.integers(1, 60), st.integers(1, 2000), st.integers(1, 30_000))
SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


@given(st.text())
def test_bytes4_is_a_quarter_of_the_bytes_rounded_up(text: str) -> None:
    n = len(text.encode("utf-8", "surrogatepass"))
    assert 4 * Bytes4().text(text) - 3 <= n <= 4 * Bytes4().text(text)


def test_bytes4_pictures() -> None:
    assert Bytes4().image(0, 0) == 0
    assert Bytes4().image(1, 32) == 1
    assert Bytes4().image(33, 64) == 4
    assert count(Bytes4(), (Text("ab"), Text("cd"), Image("x", "", 32, 32), Text("e"))) == 3


def test_a_users_tokenizer(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = tokenizer_counter(tmp_path / "tokenizer.json")
    assert counter.text("the cat sat down") == 4  # what the file truncates is counted all the same
    assert counter.name.startswith("tokenizer-")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(UserError, match=r"bad\.json"):
        tokenizer_counter(tmp_path / "bad.json")


def test_a_templates_mark_in_a_text_counts_as_words(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<end of turn>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert tokenizer_counter(tmp_path / "tokenizer.json").text("<end of turn>") == 5


# ---------------------------------------------------------------------------------------------- transformers' models


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.getbasetemp() / "tiny"
    return lambda family: tiny_model(family, folder)


@pytest.fixture(scope="module", params=[*PICTURED, "internvl at 448", "qwen3_vl cut short"])
def processor(request: Any, tiny: Callable[[str], Path]) -> Any:
    """Real processors, with their published settings and with others."""
    import transformers

    family, _, change = request.param.partition(" ")
    made = transformers.AutoProcessor.from_pretrained(tiny(family))
    if change == "at 448":
        made.image_processor.size = {"height": 448, "width": 448}
        made.image_seq_length = 256
    elif change == "cut short":
        made.image_processor.size = {"shortest_edge": 5 * 1024, "longest_edge": 99 * 1024}
    return made


def placeholders(processor: Any, width: int, height: int) -> int:
    """How many tokens a processor really puts into a prompt for a picture."""
    made = processor(text=[processor.image_token], images=[Pillow.new("RGB", (width, height))])
    return list(made["input_ids"][0]).count(processor.image_token_id)


@SLOW
@given(SIDE, SIDE)
def test_the_rule_is_the_processors_own_at_any_size(processor: Any, width: int, height: int) -> None:
    pictures = processor.image_processor
    try:
        patches = pictures.get_number_of_image_patches(height, width, {"crop_to_patches": True})
    except ValueError:
        with pytest.raises(ReaderError, match="aspect"):
            picture_rule(processor)(width, height)
        return
    tiles = type(processor).__name__ == "InternVLProcessor"
    want = patches * processor.image_seq_length if tiles else patches // pictures.merge_size**2
    assert picture_rule(processor)(width, height) == want


@settings(SLOW, max_examples=8)
@given(st.integers(1, 700), st.integers(1, 700))
def test_the_rule_is_what_stands_in_the_prompt(processor: Any, width: int, height: int) -> None:
    if max(width, height) <= 200 * min(width, height):
        assert picture_rule(processor)(width, height) == placeholders(processor, width, height)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 3), (1, 200), (2, 399), (600, 3), (3000, 2000)])
def test_the_rule_at_the_limits(processor: Any, width: int, height: int) -> None:
    assert picture_rule(processor)(width, height) == placeholders(processor, width, height)
    assert picture_rule(processor)(0, height) == 0


def test_a_family_without_a_formula_is_asked(tiny: Callable[[str], Path]) -> None:
    import transformers

    class Other(transformers.Qwen3VLProcessor):
        pass

    made = transformers.AutoProcessor.from_pretrained(tiny("qwen3_vl"))
    rule = picture_rule(made)
    made.__class__ = Other
    asked = picture_rule(made)
    for size in ((300, 200), (31, 257), (1, 1), (0, 5)):
        assert asked(*size) == rule(*size)


@pytest.mark.parametrize("family", FAMILIES)
def test_text_and_pictures_cost_what_the_network_reads(
    family: str, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    network = Network.load(tiny(family))
    counter = NetworkCounter("own", str(tiny(family)), None)
    store = MediaStore(tmp_path / "files.sqlite")
    Pillow.new("RGB", (131, 77)).save(tmp_path / "odd.png")
    picture = store.image(tmp_path / "odd.png", "odd.png", "odd.png")

    def prompt(*parts: Text | Image) -> Any:
        return network.encode(Request((Message("user", parts),)), store)

    def frame(*parts: Text | Image) -> int:
        """Tokens of a prompt that are neither words of these parts nor pictures: the template's own."""
        return int(prompt(*parts).text - sum(counter.text(part.text) for part in parts if isinstance(part, Text)))

    template = frame(Text("x"))

    @settings(SLOW, max_examples=60)
    @given(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(network.wording._specials))
    def agrees(text: str) -> None:
        assert frame(Text(f"x{text}")) == template

    agrees()
    if network.sees:
        parts = (picture, Text(" and "), picture, Text(f"{network.wording._specials[-1]} words"))
        assert prompt(*parts).image == 2 * counter.image(131, 77) > 0
        around = frame(picture, Text("x")) - template  # the marks around a picture
        assert frame(*parts) == template + 2 * around


def test_a_counter_without_its_model_is_a_users_error(tmp_path: Path) -> None:
    counter = NetworkCounter("own", str(tmp_path), None)
    for asked in (lambda: counter.text("Hi"), lambda: counter.image(1, 1)):
        with pytest.raises(UserError, match="its tokenizer cannot be loaded"):
            asked()
