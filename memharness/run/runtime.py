"""Runtime of a question: from question to answer by the harness's clock, and part by part by the method's own.

A method writes `trace["seconds"] = {part: seconds}` of a question, what it did before it was asked included. Runtime is
kept apart from scores, since no two runs take the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

IMAGES = "generate"  # the part that is the image back end's
WALL, WHOLE, WITHOUT = "wall", "seconds", "seconds_without_images"


def runtime(trace: Mapping[str, Any], wall: float) -> dict[str, float]:
    """Seconds by name.

    Args:
        trace: of a record.
        wall: its seconds from question to answer by the harness's clock, waiting for other questions included.

    Returns:
        `wall`; and, where the method states its parts, `seconds` of all, `seconds_without_images` of all but the image
        back end's, and `seconds_PART` of each.
    """
    told = trace.get("seconds")
    parts = told if isinstance(told, Mapping) else {}
    known = {str(name): float(value) for name, value in parts.items() if type(value) in (int, float) and value >= 0}
    found = {WALL: wall}
    if known:
        whole = sum(known.values())
        found |= {WHOLE: whole, WITHOUT: whole - known.get(IMAGES, 0.0)}
    return found | {f"{WHOLE}_{name}": value for name, value in known.items()}
