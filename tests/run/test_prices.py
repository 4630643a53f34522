"""Prices: dated, the user's own in front, unknown ones unknown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memharness.run import prices
from memharness.types import Usage, UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without a price table, and no table remembered from another test."""
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path))
    prices._read.cache_clear()
    yield tmp_path
    prices._read.cache_clear()


def test_every_price_is_dated_and_cached_tokens_cost_no_more() -> None:
    for model, price in prices.table().items():
        assert price.as_of.startswith("202"), model
        assert 0 <= price.cached <= price.input, model


def test_a_call_costs_its_tokens() -> None:
    usage = Usage(text=1_000_000, image=500_000, cached=500_000, output=100_000, reasoning=50_000)
    assert prices.cost("gpt-4o-mini", usage) == pytest.approx(1.0 * 0.15 + 0.5 * 0.075 + 0.1 * 0.6)


@pytest.mark.parametrize(
    "name", ["gpt-4o", "openai:gpt-4o", "gpt-4o-2024-08-06", "openai:gpt-4o-2024-08-06", "gpt-4o-20240806"]
)
def test_a_snapshot_costs_as_its_model_with_or_without_its_reader(name: str) -> None:
    assert prices.price_of(name) == prices.table()["gpt-4o"]


def test_a_snapshot_that_is_listed_has_its_own_price() -> None:
    price = prices.price_of("openai:gpt-4o-2024-05-13")
    assert price is not None
    assert price.input == 5.0


@pytest.mark.parametrize("name", ["smollm2", "openai:my-own", "gpt-4o-audio", ""])
def test_an_unknown_model_has_no_price(name: str) -> None:
    assert prices.price_of(name) is None
    assert prices.cost(name, Usage(text=10)) is None


def test_the_dearest_bounds_every_model() -> None:
    worst = prices.dearest()
    usage = Usage(text=1000, cached=300, output=200)
    assert all(price.of(usage) <= worst.of(usage) for price in prices.table().values())


def test_the_users_own_price_wins(home: Path) -> None:
    (home / "prices.toml").write_text(
        "[gpt-4o]\ninput = 1\noutput = 2.5\nas_of = 2026-11-01\n[mine]\ninput=0\noutput=0\nas_of=2026-11-02\n"
    )
    assert prices.price_of("gpt-4o") == prices.Price(1.0, 1.0, 2.5, "2026-11-01")
    assert prices.cost("openai:mine", Usage(text=10)) == 0.0
    assert prices.price_of("gpt-4o-mini") is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[m]\ninput = 1\noutput = 1", "m: as_of"),
        ("[m]\ninput = -1\noutput = 1\nas_of = 2026-01-01", "m: input"),
        ("[m]\ninput = 1\nas_of = 2026-01-01", "m: output"),
        ("[m]\ninput = 1\noutput = 1\nas_of = 2026-01-01\ncahced = 1", "unknown field cahced"),
        ("m = 3", "m: expected a table"),
        ("[m", "not a readable price table"),
    ],
)
def test_a_table_of_ones_own_that_is_wrong(home: Path, text: str, message: str) -> None:
    (home / "prices.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        prices.price_of("m")
