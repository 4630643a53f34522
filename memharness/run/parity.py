"""Two back ends of one model, asked the same: how often they say the same, where they part, what it does to scores."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memharness.media import MediaStore
from memharness.reader import Counter
from memharness.run.api import load_summary
from memharness.run.folder import RunFolder
from memharness.run.score import rows
from memharness.run.setup import make_reader
from memharness.run.spec import RunSpec
from memharness.stats import paired
from memharness.store import read_lines
from memharness.types import Status, UserError

HOW = ("concurrency", "timeout", "fresh", "max_cost")  # of a spec, always the command's own


@dataclass(frozen=True)
class Difference:
    """A question that the two sides answered differently.

    Attributes:
        question: its id.
        native_id: its id in the source.
        character: how many characters the two replies begin with alike.
        token: how many tokens that is, or None where nothing can count them.
        a: A's reply.
        b: B's reply.
    """

    question: str
    native_id: str
    character: int
    token: int | None
    a: str
    b: str


@dataclass(frozen=True)
class Parity:
    """What a comparison found.

    Attributes:
        bench: the benchmark.
        data_state: `given`, `prepared` or `sample`.
        a: A's reader spec, run folder and reader card; the card's provenance says versions and how it batches.
        b: B's.
        n: questions asked on both sides.
        unanswered: questions without a reply on side `a`, and on side `b`.
        replied: questions that both replied to.
        identical: how many of those have the same reply, character by character.
        share: identical / replied, None if nothing was replied to.
        character: median of `Difference.character`, None if there is no difference.
        token: median of `Difference.token`, None if there is no difference or nothing can count.
        counter: what counted tokens, or empty.
        scores: by name: means `a` and `b`, `difference` b - a with its interval `low` to `high` (None where there is
            none), `n` units, and how many `changed`. Failures count 0.
        differences: what differs, in benchmark order.
    """

    bench: str
    data_state: str
    a: Mapping[str, Any]
    b: Mapping[str, Any]
    n: int
    unanswered: Mapping[str, int]
    replied: int
    identical: int
    share: float | None
    character: float | None
    token: float | None
    counter: str
    scores: Mapping[str, Mapping[str, float | None]]
    differences: Sequence[Difference]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def sides(
    a: str,
    b: str,
    spec: RunSpec,
    options: tuple[Mapping[str, Any], Mapping[str, Any]],
    execute: Callable[[RunSpec], Mapping[str, Any]],
) -> tuple[Path, Path]:
    """The run of each side. A side that is no run yet reads the other one's readouts, so that both see one memory.

    Args:
        a: a reader spec, or the folder of a run that was made elsewhere, such as in another environment.
        b: the same.
        spec: what to run if neither side is a run; otherwise that run says it, and only how to run counts.
        options: of the readers of `a` and `b`.
        execute: runs a spec to its end and returns its summary.

    Raises:
        UserError: neither side is a run and no benchmark is named; or what running raises.
    """
    found = [Path(name) if Path(name).is_dir() else None for name in (a, b)]
    for side, name in enumerate((a, b)):
        if found[side] is not None:
            continue
        other = found[1 - side]
        if other is None and not spec.bench:
            raise UserError("parity needs --bench (`memharness list benchmarks`), unless a side is the folder of a run")
        asked = spec if other is None else _again(other, spec)
        out = str(Path(spec.out) / "ab"[side])  # apart, so that one spec on both sides is asked twice, not found once
        asked = replace(asked, reader=name, reader_options={**options[side]}, out=out)
        found[side] = Path(execute(asked)["run"])
    first, second = found
    assert first is not None and second is not None
    return first, second


def _again(run: Path, spec: RunSpec) -> RunSpec:
    """What reads a run's readouts again, with the same prompt and limit of the reply."""
    folder = RunFolder(run)
    before = RunSpec.from_json(folder.manifest()["spec"], str(folder.manifest_path))
    how = {name: getattr(spec, name) for name in HOW}
    return replace(before, readouts=str(run), judge=None, workers=1, **how)


def compare(a: Path, b: Path) -> Parity:
    """Compare the replies and scores of two finished runs whose prompts are the same.

    Args:
        a: run folder of one back end.
        b: run folder of the other.

    Raises:
        UserError: a folder is no finished run; the runs differ in data, questions, prompts or length of the reply; or
            prompts cannot be known (a method of the answer track, a run without reading).
    """
    one, two = RunFolder(a), RunFolder(b)
    summary, other = load_summary(a), load_summary(b)
    _comparable(one, two)
    pairs = _matched(one, two)
    both = [(x, y) for x, y in pairs if "answer" in x and "answer" in y]
    counter = _counter(one, two)
    natives = {row.unit: row.native_id for row in rows(one)}
    differences = [
        _difference(x, y, natives.get(x["question"], ""), counter) for x, y in both if x["answer"] != y["answer"]
    ]
    return Parity(
        bench=summary["bench"],
        data_state=summary["data_state"],
        a=_side(one, summary),
        b=_side(two, other),
        n=len(pairs),
        unanswered={"a": sum("answer" not in x for x, _ in pairs), "b": sum("answer" not in y for _, y in pairs)},
        replied=len(both),
        identical=len(both) - len(differences),
        share=(len(both) - len(differences)) / len(both) if both else None,
        character=statistics.median(d.character for d in differences) if differences else None,
        token=statistics.median(d.token or 0 for d in differences) if differences and counter else None,
        counter=counter.name if counter else "",
        scores=_scores(one, two),
        differences=differences,
    )


def _comparable(one: RunFolder, two: RunFolder) -> None:
    """Refuse runs of which it is known without looking at their prompts that they were not asked the same."""
    a, b = (folder.manifest()["described"] for folder in (one, two))
    for folder, described in ((one, a), (two, b)):
        if described["track"] != "evidence":
            raise UserError(
                f"parity {folder.path}: a method of the answer track writes its own prompts, so it cannot be told "
                "whether both sides were asked the same; use one of the evidence track"
            )
        if described["reply"]["until"] is not None:
            raise UserError(f"parity {folder.path}: nothing was read (--until {described['reply']['until']})")
    for what, x, y in (
        ("benchmark", a["memory"]["benchmark"], b["memory"]["benchmark"]),
        ("options of the benchmark", a["memory"]["options"], b["memory"]["options"]),
        ("data", a["memory"]["data"], b["memory"]["data"]),
        ("--prompt", a["reply"]["prompt"], b["reply"]["prompt"]),
        ("--max-tokens", a["reply"]["sampling"], b["reply"]["sampling"]),
    ):
        if x != y:
            raise UserError(f"parity: {one.path} and {two.path} differ in {what} ({x} and {y}), not only in the reader")


def _matched(one: RunFolder, two: RunFolder) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Records of both runs by question.

    Raises:
        UserError: if one lacks a question of the other, or a prompt differs.
    """
    a, b = ({line["question"]: line for _, line in read_lines(f.path / "records.jsonl")} for f in (one, two))
    for run, asked, other in ((two, a, b), (one, b, a)):
        if lacking := [question for question in asked if question not in other]:
            raise UserError(
                f"parity {run.path}: {len(lacking)} questions of the other run are not in it, first {lacking[0]}; "
                "ask both the same (--limit)"
            )
    for question, line in a.items():
        x, y = line.get("prompt"), b[question].get("prompt")
        if x != y and x is not None and y is not None:
            at = _common(x, y)
            raise UserError(
                f"parity: question {question}: the prompts differ from character {at} on "
                f"({x[at : at + 40]!r} and {y[at : at + 40]!r}); to have the second side read the first one's "
                "readouts, give its run folder and a reader"
            )
    return [(line, b[question]) for question, line in a.items()]


def _difference(a: Mapping[str, Any], b: Mapping[str, Any], native: str, counter: Counter | None) -> Difference:
    at = _common(a["answer"], b["answer"])
    token = counter.text(a["answer"][:at]) if counter else None
    return Difference(a["question"], native, at, token, a["answer"], b["answer"])


def _common(a: str, b: str) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _counter(*folders: RunFolder) -> Counter | None:
    """The counter of a side's reader; of one that is not installed here there is none."""
    for folder in folders:
        spec = RunSpec.from_json(folder.manifest()["spec"], str(folder.manifest_path))
        try:
            counter = make_reader(spec.reader, spec.reader_options, MediaStore()).counter
            counter.text("")  # some read their tokenizer only now
        except UserError:
            continue
        return counter
    return None


def _side(folder: RunFolder, summary: Mapping[str, Any]) -> dict[str, Any]:
    """A side as the result names it. The card of a loaded model knows more than that of the manifest."""
    card = folder.manifest()["described"]["readers"][summary["reader"]]
    for path in folder.files("ledger"):
        for _, line in read_lines(path):
            if line["kind"] == "model" and line["spec"] == summary["reader"]:
                card = line["card"]
    return {"reader": summary["reader"], "run": str(folder.path), "card": card}


def _scores(one: RunFolder, two: RunFolder) -> dict[str, dict[str, float | None]]:
    """Scores that both runs have, paired by unit; clustered if the benchmark says what clusters."""
    a, b = (_values(folder) for folder in (one, two))
    clusters = {row.unit: row.cluster for row in rows(one)}
    known = clusters if any(clusters.values()) else None
    out: dict[str, dict[str, float | None]] = {}
    for name in a:
        if name not in b:
            continue
        found = paired(a[name], b[name], known)
        out[name] = {
            "a": found.a,
            "b": found.b,
            "difference": found.difference.value,
            "low": found.difference.low,
            "high": found.difference.high,
            "n": len(found.matched),
            "changed": sum(a[name][unit] != b[name][unit] for unit in found.matched),
        }
    return out


def _values(folder: RunFolder) -> dict[str, dict[str, float]]:
    """Value by unit of each score; a failure is 0, and what does not apply is left out."""
    values: dict[str, dict[str, float]] = {}
    for row in rows(folder):
        for name, score in row.scores.items():
            if score.status is not Status.NOT_APPLICABLE:
                values.setdefault(name, {})[row.unit] = score.value or 0.0
    return values
