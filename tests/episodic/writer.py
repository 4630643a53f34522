"""A process that writes to a memory, and says after each write that it is done: `writer FOLDER ACKS WHO FIRST LAST`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from memharness.episodic import Asset, Card, EpisodicMemory, Parent
from memharness.types import UserError
from tests.episodic.pictures import numbered

SHARED = 3  # pictures that all processes add and delete


def write(memory: EpisodicMemory, who: int, n: int) -> None:
    """The n-th write of a process: a picture, its vector, its card, an edit with a picture of others, then an end."""
    first = n - n % 5
    name, edit = f"w{who}-{first}", f"w{who}-{first}-edit"
    match n % 5:
        case 0:
            memory.add(numbered(1000 + who * 100_000 + n), session=f"s{who}", id=name, prompt=f"number {n}")
        case 1:
            memory.put_vector(name, "x", np.full(8, n, np.float32))
        case 2:
            memory.write_card(name, "w", Card((f"tag{n}",)))
        case 3:
            shared, parents = numbered(n % SHARED), [Parent(name, "edit")]
            memory.add(shared, session="all", id=edit, kind="edited", parents=parents)
        case 4 if first % 2:
            memory.delete(edit)
        case 4:
            memory.mark(edit, gallery=True)


def holds(memory: EpisodicMemory, who: int, done: int) -> None:
    """Whether the first `done` writes of a process are all there."""
    assets = {asset.id: asset for asset in memory.assets(deleted=True)}
    cards = memory.cards(f"s{who}", "w")
    vectors: dict[str, tuple[Asset, float]] = {}
    if any(id.startswith("w") for id in assets) and done > 1:
        found = memory.search("x", np.ones(8, np.float32), 10_000, session=f"s{who}")
        vectors = {asset.id: (asset, score) for asset, score in found}
    for n in range(done):
        first = n - n % 5
        name, edit = f"w{who}-{first}", f"w{who}-{first}-edit"
        match n % 5:
            case 0:
                assert memory.original(assets[name]) == numbered(1000 + who * 100_000 + n)
            case 1:
                assert vectors[name][1] == 8.0 * n
            case 2:
                assert cards[name] == Card((f"tag{n}",))
            case 3:
                assert assets[edit].parents == (Parent(name, "edit"),)
                if not assets[edit].deleted:
                    assert memory.original(assets[edit]) == numbered(n % SHARED)
            case 4:
                assert assets[edit].deleted if first % 2 else assets[edit].gallery


def main() -> int:
    """Write; exit with 3 at the first refusal, which is told."""
    folder, acks, who, first, last = sys.argv[1:]
    told = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        with EpisodicMemory.open(Path(folder), edge=16) as memory:
            for n in range(int(first), int(last)):
                write(memory, int(who), n)
                os.write(told, b".")
    except UserError as error:
        print(error)
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
