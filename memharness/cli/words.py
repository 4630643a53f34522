"""From words to a run's spec: flags, and a config file that names the same flags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from memharness.run.spec import RunSpec
from memharness.types import UserError, did_you_mean

PAIRS = {"method_options": "-M", "bench_options": "-B", "reader_options": "-R", "models": "--model"}
NOT_IN_FILES = ("config", "help", "h", "json")


def take_config(context: typer.Context, path: Path | None) -> Path | None:
    """The callback of `--config`: its values become defaults, so that words on the command line win.

    Raises:
        UserError: see `read_config`.
    """
    if path is not None and not context.resilient_parsing:
        flags = {flag.lstrip("-"): str(option.name) for option in context.command.params for flag in option.opts}
        context.default_map = read_config(
            path, {flag: name for flag, name in flags.items() if flag not in NOT_IN_FILES}
        )
    return path


def read_config(path: Path, names: Mapping[str, str]) -> dict[str, Any]:
    """A YAML file of flags by name.

    Args:
        path: the file. `M`, `B`, `R` and `model` are mappings in it; dashes and underscores are the same.
        names: parameter by flag, without its dashes.

    Returns:
        values by parameter, as the words of a command line would give them.

    Raises:
        UserError: if it cannot be read, is no mapping, or names a flag that does not exist (with "did you mean").
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"--config {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"--config {path}: not YAML ({error})") from None
    if not isinstance(values, Mapping):
        raise UserError(f"--config {path}: expected flags by name, such as `method: bm25`")
    found: dict[str, Any] = {}
    for key, value in values.items():
        flag = str(key).replace("_", "-")
        if flag not in names:
            known = ", ".join(names)
            raise UserError(
                f"--config {path}: {key}: there is no such flag{did_you_mean(flag, names)}; there are: {known}"
            )
        if value is not None:
            found[names[flag]] = _words(f"--config {path}: {key}", value, names[flag] in PAIRS)
    return found


def _words(where: str, value: Any, pairs: bool) -> Any:
    if pairs != isinstance(value, Mapping):
        wanted = "a mapping of names to values" if pairs else "one value or a list"
        raise UserError(f"{where}: expected {wanted}, not {value!r}")
    if pairs:
        return [f"{name}={json.dumps(item, ensure_ascii=False)}" for name, item in value.items()]
    if isinstance(value, list):
        return [str(item) for item in value]
    return value if isinstance(value, bool) else str(value)


def make_spec(context: typer.Context) -> RunSpec:
    """The spec that a command's parameters state. Options of plug-ins given as words add to those of a config file.

    Raises:
        UserError: for a missing method or benchmark, a malformed pair, or a file of ids that cannot be read.
    """
    given = {name: value for name, value in context.params.items() if value not in (None, [], ())}
    from_file = context.default_map or {}
    known = {field.name for field in fields(RunSpec)}
    values: dict[str, Any] = {name: value for name, value in given.items() if name in known}
    for name, flag in PAIRS.items():
        pairs = [*(from_file.get(name) or ()), *(given.get(name) or ())]  # a later pair wins over an earlier one
        values[name] = _pairs(pairs, flag)
    before = _earlier(values["readouts"]) if "readouts" in values else {}
    for name, kind in (("method", "methods"), ("bench", "benchmarks")):
        if values.setdefault(name, before.get(name)) is None:
            raise UserError(f"run needs --{name}; `memharness list {kind}` shows what there is")
    values["models"] = _specs(values["models"])
    if "ids" in values:
        values["ids"] = read_ids(values["ids"])
    if "counters" in values:
        values["counters"] = tuple(values["counters"])
    return RunSpec(**values)


def _earlier(run: str) -> dict[str, Any]:
    """The spec of the run whose readouts are read again: it says which method and benchmark."""
    from memharness.run.folder import RunFolder

    spec: dict[str, Any] = RunFolder(Path(run)).manifest()["spec"]
    return spec


def _pairs(words: list[str], flag: str) -> dict[str, Any]:
    from memharness.config import parse_pairs  # pydantic, only where there are pairs

    return parse_pairs(words, flag) if words else {}


def _specs(words: Mapping[str, str]) -> dict[str, str]:
    if not words:
        return {}
    from memharness.config import read_word

    return {role: read_word(word) for role, word in words.items()}


def read_ids(path: Path) -> tuple[str, ...]:
    """Question ids, one a line; empty lines are left out.

    Raises:
        UserError: if the file cannot be read or holds no id.
    """
    try:
        ids = tuple(filter(None, map(str.strip, path.read_text("utf-8").splitlines())))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--ids {path}: {getattr(error, 'strerror', None) or error}") from None
    if not ids:
        raise UserError(f"--ids {path}: holds no id; write one a line")
    return ids
