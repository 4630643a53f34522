"""The two memories of a question: units of key and value, retrieved by similarity, and the thinking bank kept small."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Compress = Callable[[torch.Tensor], torch.Tensor]


@dataclass(slots=True, eq=False)
class Unit:
    """One memory unit.

    Attributes:
        key: (width,), f32.
        value: (l, width).
        since: calls on the memory system before it was taken in.
        called: how often it was retrieved.
        merged: of a merged unit, what its value was made of, (n, width); else None.
    """

    key: torch.Tensor
    value: torch.Tensor
    since: int = 0
    called: int = 0
    merged: torch.Tensor | None = None


def similarity(keys: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Cosines, (m, n), of keys (m, width) with others (n, width); a key of norm 0 is like nothing. sim() of eq. 6."""
    unit = torch.nn.functional.normalize
    return unit(keys.float(), dim=-1) @ unit(others.float(), dim=-1).T


class Bank:
    """Units in the order of their coming."""

    def __init__(self) -> None:
        """An empty bank."""
        self.units: list[Unit] = []

    def __len__(self) -> int:
        """How many units."""
        return len(self.units)

    @property
    def vectors(self) -> int:
        """Vectors held, keys included."""
        return sum(len(unit.value) + 1 for unit in self.units)

    @property
    def bytes(self) -> int:
        """Bytes held: keys, values, and what merged values were made of, which training needs."""
        held = (tensor for unit in self.units for tensor in (unit.key, unit.value, unit.merged) if tensor is not None)
        return sum(tensor.nbytes for tensor in held)

    def nearest(self, query: torch.Tensor, k: int) -> list[Unit]:
        """The k units whose keys are most like a query, (width,), best first; all if there are fewer.

        Of equal ones the older comes first.
        """
        if not self.units:
            return []
        alike = similarity(query[None], torch.stack([unit.key for unit in self.units]))[0]
        order = torch.argsort(alike, descending=True, stable=True)[:k]
        return [self.units[int(at)] for at in order]


class Thinking(Bank):
    """The thinking bank, of at most `capacity` units (section 3.2).

    On overflow, units are ranked by triggering rate r, highest first, and split into five sets as equal as can be, the
    first ones larger. What no call has had a chance to retrieve is too new to be ranked, and stays. Of Set 5 the units
    go whose mean similarity s to all others is below the bank's average. Each such unit of Set 4 is merged into the
    unit of Set 1 most like it, which keeps its r and gets a new key. s is not computed again in between. If the bank is
    still too large, the unit of the lowest (r, s) goes, the ranked ones first and the older of equals, until it is not.
    (The sets' direction, new units, the order of ties and the last step are ours: the paper leaves them open.)
    """

    def __init__(self, capacity: int, key: Compress, merge: Compress) -> None:
        """An empty bank.

        Args:
            capacity: N, at least 1.
            key: C, makes the key of a value.
            merge: C_merge, makes one value of several.
        """
        super().__init__()
        self._capacity = capacity
        self._key = key
        self._merge = merge

    def add(self, unit: Unit, calls: int) -> None:
        """Take a unit in, and make room where that is one too many.

        Args:
            unit: to remember.
            calls: on the memory system so far.
        """
        self.units.append(unit)
        if len(self.units) > self._capacity:
            self._manage(calls)

    def _manage(self, calls: int) -> None:
        spread = self._spread()
        average = sum(spread.values()) / len(spread)
        weak = {unit for unit in self.units if spread[unit] < average}
        ranked = [unit for unit in self.units if calls > unit.since]
        rates = {unit: unit.called / (calls - unit.since) for unit in ranked}
        sets = quintiles(sorted(ranked, key=lambda unit: -rates[unit]))
        gone = {unit for unit in sets[4] if unit in weak}
        merged = [unit for unit in sets[3] if unit in weak]
        self._merge_into(sets[0], merged)
        self.units = [unit for unit in self.units if unit not in gone and unit not in merged]
        while len(self.units) > self._capacity:
            self.units.remove(min(self.units, key=lambda unit: (unit not in rates, rates.get(unit, 0.0), spread[unit])))

    def _spread(self) -> dict[Unit, float]:
        """Each unit's s: its mean similarity to the others; 0 for one alone (eq. 6, the second of that number)."""
        keys = torch.stack([unit.key for unit in self.units])
        alike = similarity(keys, keys)
        total = alike.sum(1) - alike.diagonal()
        return dict(zip(self.units, (total / max(1, len(keys) - 1)).tolist(), strict=True))

    def _merge_into(self, bases: Sequence[Unit], units: Sequence[Unit]) -> None:
        if not units:
            return
        alike = similarity(torch.stack([unit.key for unit in units]), torch.stack([base.key for base in bases]))
        for at, base in enumerate(bases):
            joining = [unit.value for unit, best in zip(units, alike.argmax(1).tolist(), strict=True) if best == at]
            if joining:
                base.merged = torch.cat([base.value, *joining])
                base.value = self._merge(base.merged)
                base.key = self._key(base.value).float()


def quintiles(ranked: Sequence[Unit]) -> list[list[Unit]]:
    """Five sets in order, as equal as can be, the first ones larger; the last are empty where there are under five."""
    small, extra = divmod(len(ranked), 5)
    ends = [0]
    for at in range(5):
        ends.append(ends[-1] + small + (at < extra))
    return [list(ranked[begin:end]) for begin, end in itertools.pairwise(ends)]
