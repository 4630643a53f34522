"""What makes two results the same result: canonical JSON, its digest, and the chain memory → readout → reply."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces. Sets are sorted, dataclasses become mappings, NaN and infinities refused.

    Raises:
        ValueError: for NaN, an infinity, or a mapping with two keys that read alike (`1` and `"1"`).
        TypeError: for a value JSON has no form for.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no place in an identity")
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        plain = {str(key): _plain(item) for key, item in value.items()}
        if len(plain) < len(value):
            raise ValueError(f"two keys of a mapping read alike: {', '.join(map(repr, value))}")
        return plain
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=canonical)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Path):
        raise TypeError(f"{value}: a path is not an identity; hash the content")
    raise TypeError(f"{type(value).__name__} has no canonical form")


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical form."""
    return hashlib.sha256(canonical(value).encode(errors="surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def opaque_id(*parts: object) -> str:
    """An id that says nothing about what it names: 12 hex digits of a hash."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True)
class Chain:
    """The identity chain of a run. Each link holds the one before it, so a change shows from its link on.

    Attributes:
        memory: method, version, config; benchmark, data, options; models by role used in observe; seed.
        readout: memory; roles used in recall; budget, counters, view.
        reply: readout; answer reader, sampling; prompt. The identity of a run.
    """

    memory: str
    readout: str
    reply: str

    @classmethod
    def of(cls, memory: Mapping[str, Any], readout: Mapping[str, Any], reply: Mapping[str, Any]) -> Chain:
        """Hash the three descriptions into a chain."""
        first = digest(memory)
        second = digest({"memory": first, **readout})
        return cls(first, second, digest({"readout": second, **reply}))


def score_key(reply: str, metric: str, judge: Mapping[str, Any] | None) -> str:
    """The key of a score: the reply, the metric as it prints, and the judge's model and rubric if one was asked."""
    return digest({"reply": reply, "metric": metric, "judge": judge})
