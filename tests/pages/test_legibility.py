"""Pages are legible to a text recogniser: the quick part. `tools/legibility.py` measures all templates and sizes."""

from __future__ import annotations

import csv
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from memharness.pages import TEMPLATES, downscaled, draw

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The tool that measures."""
    spec = spec_from_file_location("legibility_tool", ROOT / "tools" / "legibility.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_recogniser_reads_cards_back_and_not_what_is_far_too_small(tool: ModuleType) -> None:
    pytest.importorskip("rapidocr", reason="RapidOCR is not installed (it is among the dev dependencies)")
    sight = tool.Sight()
    page = draw(tool.page("cards", 14))
    assert sight.recognised(page) >= 0.99
    assert sight.recognised(downscaled(page, factor=8)) < 0.5


@pytest.mark.parametrize(
    ("pairs", "share"),
    [
        ([("two words", "twowords")], 1.0),
        ([("abcd", "abxd")], 0.75),
        ([("abcd", ""), ("efgh", "efgh")], 0.5),
        ([("ab", "much longer than that")], 0.0),
    ],
)
def test_the_share_of_characters_read_back(tool: ModuleType, pairs: list[tuple[str, str]], share: float) -> None:
    assert tool.share(pairs) == share


def test_the_stored_curve_is_whole_and_meets_its_targets(tool: ModuleType) -> None:
    with (ROOT / "memharness" / "pages" / "legibility.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    keys = {(row["template"], int(row["font_px"]), float(row["factor"])) for row in rows}
    assert keys == {(one, px, factor) for one in TEMPLATES for px in tool.SIZES for factor in tool.FACTORS}
    for row in rows:
        page = tool.page(row["template"], int(row["font_px"]))
        factor = float(row["factor"])
        assert (int(row["width"]), int(row["height"])) == (round(page.width / factor), round(page.height / factor))
        if factor == 1:
            assert float(row["recognised"]) >= 0.99
            assert float(row["detected"]) >= 0.98
