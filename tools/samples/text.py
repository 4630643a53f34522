"""The plain script in which the samples' texts are written, and the one way JSON and a README are written."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any


def as_json(value: Any) -> bytes:
    """Return `value` as indented UTF-8 JSON with a last newline."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def readme(benchmark: str, holds: str, origin: str) -> bytes:
    """Return a sample's README: what it `holds`, its `origin` and its licence."""
    words = (
        f"{holds}, in the native layout of {benchmark}. {origin} by `tools/make_samples.py` for memharness; nothing"
        f" here is taken from {benchmark}, and a result on it says nothing about {benchmark}. Code: Apache-2.0. This"
        " data: CC0-1.0. To make it again: `python tools/make_samples.py`."
    )
    return f"# {benchmark} sample\n\n{textwrap.fill(words, 100, break_on_hyphens=False)}\n".encode()


def lines(script: str) -> Iterator[tuple[str, str]]:
    """Yield (label, words) from a script of `Label: words` lines; an indented line goes on with the one before."""
    label, words = "", ""
    for line in script.strip("\n").splitlines():
        if not line.strip():
            continue
        if line.startswith(" "):
            words += " " + line.strip()
            continue
        if label:
            yield label, words
        label, _, words = line.partition(": ")
    if label:
        yield label, words
