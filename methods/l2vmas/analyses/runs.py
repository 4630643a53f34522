"""The runs of an analysis: performed, where they are not finished yet, or given; and held to what they must share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memharness.config import build
from memharness.methods.l2vmas.analyses.studies import Arm, Study
from memharness.registry import find
from memharness.run.spec import RunSpec
from memharness.types import UserError, did_you_mean

Summary = dict[str, Any]
Execute = Callable[[RunSpec], Mapping[str, Any]]

ALIKE = ("reader", "seed", "view", "budget", "items", "prompt", "subset", "data_digest", "selection", "judge")
BOTH = ("topology", "agents", "roles", "agent_tokens", "temperature", "memory")  # of any team: what must be compared


def specs(arms: Sequence[Arm], base: RunSpec, benches: Sequence[str]) -> list[RunSpec]:
    """A run's spec for each arm and benchmark. An option of `base` goes to the methods that have it; an arm's own wins.

    Arms that come to the same, such as the default of each option that is swept, are one run.

    Raises:
        UserError: an option that no method of these has, that the analysis varies itself, or a value that is none.
    """
    configs = {arm.method: find("methods", arm.method).config_class for arm in arms}
    fields = {method: set(config.model_fields) for method, config in configs.items()}
    known = set().union(*fields.values())
    for name in base.method_options:
        if name not in known:
            raise UserError(f"-M {name}: none of {', '.join(fields)} has this option{did_you_mean(name, known)}")
        if all(name in arm.options for arm in arms):
            raise UserError(f"-M {name}: is what this analysis varies; say its values with --at {name}=…")
    made: dict[str, RunSpec] = {}
    for bench in benches:
        for arm in arms:
            shared = {name: v for name, v in base.method_options.items() if name in fields[arm.method]}
            options = {**shared, **arm.options}
            config = build(configs[arm.method], options, "-M", arm.method)  # a wrong value is said before any run
            key = f"{bench} {arm.method} {config.model_dump_json()}"
            made.setdefault(key, replace(base, method=arm.method, bench=bench, method_options=options))
    return list(made.values())


def performed(
    planned: Sequence[RunSpec], execute: Execute, say: Callable[[str], None], metric: str | None = None
) -> list[Summary]:
    """The summaries of these runs; one that is finished is not repeated.

    Raises:
        UserError: a run lacks the score that is to be shown, said before the next run.
    """
    found = []
    for at, spec in enumerate(planned):
        options = " ".join(f"{name}={value}" for name, value in spec.method_options.items())
        say(f"run {at + 1} of {len(planned)}: {spec.method} on {spec.bench}, {options}")
        found.append(dict(execute(spec)))
        metric_of(found[-1:], metric)
    return found


def chosen(study: Study, summaries: Sequence[Summary]) -> list[Summary]:
    """Those summaries that an analysis is about, held to what they must share.

    Runs of one benchmark are asked the same questions by the same reader, and teams differ in nothing but what the
    analysis varies.

    Raises:
        UserError: none is of its methods, or two differ in something else; the message names both and the field.
    """
    mine = [summary for summary in summaries if summary["method"] in study.methods]
    if not mine:
        raise UserError(f"vmas-analyse: none of {len(summaries)} runs is of {' or '.join(study.methods)}")
    first: dict[tuple[str, str], Summary] = {}
    for summary in mine:
        config = summary["config"]
        for key, fields in (
            ((summary["bench"], ""), {**{name: summary.get(name) for name in ALIKE}, **_some(config, BOTH, study)}),
            ((summary["bench"], summary["method"]), _some(config, config, study)),
        ):
            before = first.setdefault(key, {"run": summary["run"], **fields})
            for name in fields:
                if name in before and before[name] != fields[name]:
                    raise UserError(
                        f"vmas-analyse: {before['run']} and {summary['run']} differ in {name} ({_short(before[name])} "
                        f"and {_short(fields[name])}), which this analysis does not vary; leave one out"
                    )
    _distinct(study, mine)
    return mine


def _some(config: Mapping[str, Any], names: Any, study: Study) -> dict[str, Any]:
    return {name: config[name] for name in names if name in config and name not in study.varied}


def _distinct(study: Study, summaries: Sequence[Summary]) -> None:
    seen: dict[str, str] = {}
    for summary in summaries:
        varied = {name: value for name, value in summary["config"].items() if name in study.varied}
        key = json.dumps([summary["bench"], summary["method"], varied], sort_keys=True)
        if key in seen:
            raise UserError(f"vmas-analyse: {seen[key]} and {summary['run']} are runs of the same; leave one out")
        seen[key] = summary["run"]


def _short(value: object) -> str:
    words = str(value)
    return words if len(words) <= 40 else f"{words[:37]}…"


def metric_of(summaries: Sequence[Summary], named: str | None) -> dict[str, str]:
    """The score shown for each benchmark: the one that was named, or that leads the benchmark.

    Raises:
        UserError: a run lacks it.
    """
    shown: dict[str, str] = {}
    for summary in summaries:
        metric = shown.setdefault(summary["bench"], named or summary["primary"])
        if summary["scores"].get(metric, {}).get("value") is None:
            guess = did_you_mean(metric, summary["scores"])
            raise UserError(f"vmas-analyse: {summary['run']} has no score {metric}{guess}; name one with --metric")
    return shown
