"""Writes the small original samples under benchmarks/*/sample; the same bytes every time for one version of Pillow.

Run it with `python tools/make_samples.py [--out FOLDER]`; FOLDER is the repository's root when left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from samples import (
    alfworld,
    atm,
    blink,
    h2hmem,
    hotpotqa,
    locomo,
    lvbench,
    m2ca,
    mem_gallery,
    memeye,
    mmbench,
    mmstar,
    muirbench,
    mvbench,
    realworldqa,
    simplevqa,
    two_wiki,
)
from samples.drawing import made_with

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = "tools/samples/MADE_WITH"
MODULES = (
    alfworld,
    m2ca,
    atm,
    mem_gallery,
    locomo,
    hotpotqa,
    two_wiki,
    memeye,
    h2hmem,
    blink,
    lvbench,
    muirbench,
    mvbench,
    mmbench,
    mmstar,
    realworldqa,
    simplevqa,
)


def make(out: Path) -> int:
    """Write every sample under `out` and return the number of bytes."""
    total = 0
    for module in MODULES:
        for name, body in module.files():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            total += len(body)
    path = out / VERSIONS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made_with() + "\n", encoding="utf-8")
    return total


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and make the samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT, help="where to write; default the repository's root")
    total = make(parser.parse_args(argv).out)
    print(f"{total / 1e6:.2f} MB written with {made_with()}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
