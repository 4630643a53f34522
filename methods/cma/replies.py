"""JSON objects in the replies of readers: strict, and nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


class NotInForm(ValueError):
    """A reply that is not in the form asked for. The message says what is wrong with it."""


def first_object(reply: str, *keys: str) -> dict[str, Any]:
    """The last JSON object of a reply that has all these keys; reasoning up to `</think>` is not read.

    Raises:
        NotInForm: there is none.
    """
    found = [one for one in _objects(reply.rpartition("</think>")[2]) if all(key in one for key in keys)]
    if "<think>" in reply and "</think>" not in reply:
        raise NotInForm("the reply never leaves its reasoning")
    if not found:
        raise NotInForm(f"the reply holds no JSON object with {' and '.join(keys)}")
    return found[-1]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects, outermost first to last."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)
