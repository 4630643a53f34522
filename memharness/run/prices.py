"""What hosted models cost: a dated table in this folder and the user's own beside the cache; never downloaded."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from memharness.media import home
from memharness.types import Usage, UserError

SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")  # `gpt-4o-2024-08-06`, `claude-haiku-4-5-20251001`


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. `cached` is for prompt tokens the server had cached; `as_of` an ISO date."""

    input: float
    cached: float
    output: float
    as_of: str

    def of(self, usage: Usage) -> float:
        """USD for one call's tokens. Image tokens cost as text; reasoning is a part of the output."""
        fresh = usage.text + usage.image - usage.cached
        return (fresh * self.input + usage.cached * self.cached + usage.output * self.output) / 1e6


def price_of(model: str) -> Price | None:
    """The price of a model, None if no table has it. A dated snapshot costs as its model.

    Args:
        model: its maker's name for it, alone or behind a reader's: `gpt-4o-mini`, `openai:gpt-4o-mini`.

    Raises:
        UserError: if the user's own table cannot be read.
    """
    known = table()
    for name in (model, model.partition(":")[2]):
        price = known.get(name) or known.get(SNAPSHOT.sub("", name))
        if price is not None:
            return price
    return None


def cost(model: str, usage: Usage) -> float | None:
    """USD for one call of a model, None if the model has no price.

    Raises:
        UserError: if the user's own table cannot be read.
    """
    price = price_of(model)
    return None if price is None else price.of(usage)


def dearest() -> Price:
    """The highest prices of the table: an upper bound for a model without one, so that `--max-cost` still holds."""
    prices = table().values()
    return Price(
        max(price.input for price in prices),
        max(price.cached for price in prices),
        max(price.output for price in prices),
        min(price.as_of for price in prices),
    )


def table() -> Mapping[str, Price]:
    """Prices by model name: this folder's, with the user's own in front.

    Raises:
        UserError: if the user's own table cannot be read; it names the file, the model and the field.
    """
    own = home() / "prices.toml"
    return {**_read(Path(__file__).with_name("prices.toml")), **(_read(own) if own.is_file() else {})}


@functools.cache
def _read(path: Path) -> Mapping[str, Price]:
    try:
        models = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable price table ({error})") from None
    return {model: _price(path, model, fields) for model, fields in models.items()}


def _price(path: Path, model: str, fields: Any) -> Price:
    where = f"{path}: {model}"
    if not isinstance(fields, Mapping):
        raise UserError(f"{where}: expected a table with input, output, as_of and, if it differs, cached")
    if unknown := sorted(set(fields) - {"input", "cached", "output", "as_of"}):
        raise UserError(f"{where}: unknown field {unknown[0]}; there are input, cached, output, as_of")
    values: dict[str, Any] = {name: fields.get(name) for name in ("input", "output")}
    values["cached"] = fields.get("cached", values["input"])
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise UserError(f"{where}: {name}: expected USD per million tokens, not {value!r}")
    day = fields.get("as_of")
    if not isinstance(day, date):
        raise UserError(f"{where}: as_of: expected the date of the price, such as 2026-06-20, not {day!r}")
    return Price(float(values["input"]), float(values["cached"]), float(values["output"]), day.isoformat())
