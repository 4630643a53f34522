"""What each analysis varies, and what it is called in a plot. Nothing here runs or reads anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memharness.types import UserError, did_you_mean

Options = Mapping[str, Any]
Values = Mapping[str, Sequence[Any]]

TURNS = tuple(range(1, 11))
CONTENTS = ("conclusion", "perception", "thinking", "full")
SWEPT: Values = {
    "window": (4, 8, 16, 32),
    "threshold": (0.3, 0.4, 0.5, 0.6, 0.7),
    "length": (2, 4, 8, 16, 32),
}
WITHOUT: Mapping[str, Options] = {
    "w/o triggering": {"calls": "fixed"},
    "w/o attribution": {"attribution": "none"},
    "w/o perception": {"banks": "thinking"},
    "w/o thinking": {"banks": "perception"},
}
WHOLE = "L²-VMAS"


@dataclass(frozen=True)
class Arm:
    """A run of an analysis: a method and the options that make it this one."""

    method: str
    options: Options


@dataclass(frozen=True)
class Study:
    """One analysis.

    Attributes:
        title: what it shows.
        source: where the paper has it.
        varied: options in which its runs may differ.
        values: what those take, where that can be said otherwise with `--at`.
        arms: its runs.
        methods: whose runs it is about.
    """

    title: str
    source: str
    varied: frozenset[str]
    values: Values
    arms: Callable[[Values, Sequence[str]], list[Arm]]
    methods: tuple[str, ...]


def _turns(values: Values, methods: Sequence[str]) -> list[Arm]:
    return [Arm(method, {"turns": turns}) for method in methods for turns in values["turns"]]


def _contents(values: Values, methods: Sequence[str]) -> list[Arm]:
    return [Arm("vmas", {"content": content, "turns": n}) for content in values["content"] for n in values["turns"]]


def _triggering(values: Values, methods: Sequence[str]) -> list[Arm]:
    return [Arm("l2vmas", {})]


def _ablations(values: Values, methods: Sequence[str]) -> list[Arm]:
    return [Arm("l2vmas", options) for options in ({}, *WITHOUT.values())]


def _sensitivity(values: Values, methods: Sequence[str]) -> list[Arm]:
    swept = [Arm("l2vmas", {name: value}) for name in SWEPT for value in values[name]]
    return [*(Arm(method, {}) for method in methods if method != "l2vmas"), *swept]


STUDIES: Mapping[str, Study] = {
    "turns": Study(
        "score and tokens against turns", "L²-VMAS, Fig. 2, 6, 7 and 11", frozenset({"turns"}), {"turns": TURNS},
        _turns, ("vmas", "l2vmas"),
    ),
    "contents": Study(
        "what agents pass on in words", "L²-VMAS, Fig. 3 and 8", frozenset({"turns", "content"}),
        {"content": CONTENTS, "turns": TURNS}, _contents, ("vmas",),
    ),
    "triggering": Study(
        "how often each memory is called on, and where in a reply", "L²-VMAS, Fig. 5(b) and 10", frozenset(), {},
        _triggering, ("l2vmas",),
    ),
    "ablations": Study(
        "without one part each", "L²-VMAS, Table 6", frozenset({"calls", "attribution", "banks"}), {}, _ablations,
        ("l2vmas",),
    ),
    "sensitivity": Study(
        "window W, threshold λ and length L", "L²-VMAS, Tables 7–9",
        frozenset({*SWEPT, "modules", "modules_sha256"}), SWEPT, _sensitivity, ("vmas", "l2vmas"),
    ),
}  # fmt: skip


def study_of(name: str) -> Study:
    """An analysis by name.

    Raises:
        UserError: there is none (with "did you mean").
    """
    if name not in STUDIES:
        there = "; ".join(f"{known} ({study.title})" for known, study in STUDIES.items())
        raise UserError(f"vmas-analyse {name}: no such analysis{did_you_mean(name, STUDIES)}; there are: {there}")
    return STUDIES[name]


def values_of(study: Study, words: Mapping[str, str]) -> Values:
    """The values an analysis varies, with those of `--at FIELD=V,V` in the place of its own; `1-10` is a range.

    Raises:
        UserError: a field that it does not vary, or no value.
    """
    values = dict(study.values)
    for name, text in words.items():
        if name not in values:
            there = ", ".join(values) or "nothing that could be said otherwise"
            raise UserError(f"--at {name}={text}: it varies {there}{did_you_mean(name, values)}")
        first, dash, last = text.partition("-")
        if dash and first.isdigit() and last.isdigit() and int(first) <= int(last):
            values[name] = tuple(range(int(first), int(last) + 1))
        else:
            values[name] = tuple(word.strip() for word in text.split(",") if word.strip())
        if not values[name]:
            raise UserError(f"--at {name}={text}: names no value; write --at {name}=1,3,5")
    return values


def without(config: Options) -> str:
    """What an l2vmas run is called among ablations: what it lacks, or `L²-VMAS` whole."""
    lacks = [name for name, options in WITHOUT.items() if all(config.get(key) == v for key, v in options.items())]
    return ", ".join(lacks) or WHOLE
