"""Cards of plug-ins for people: paper, licence, needs, and every option with its default and where that is from."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from memharness.report.tables import put, show_lines, table

if TYPE_CHECKING:
    from rich.console import Console

ASSETS = 3  # that a card shows: `data prepare` names each
LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "length ≥", "max_length": "length ≤"}


def show_card(
    console: Console, kind: str, name: str, target: str, plugin: Any, more: Iterable[tuple[str, str]] = ()
) -> None:
    """Print a plug-in's card and options.

    Args:
        console: where to.
        kind: `method`, `benchmark`, `reader`, `embedder`, `metric` or `command`.
        name: how it is called on the command line.
        target: `module:Class`, and the distribution that brings it.
        plugin: the class.
        more: what its card does not hold, as (name, words).
    """
    from rich.text import Text

    console.print(Text.assemble((name, "bold cyan"), f" ({kind})  ", (target, "dim")))
    card = getattr(plugin, "card", None)
    about = list(_card_lines(card)) if is_dataclass(card) else _doc_lines(plugin)
    show_lines(console, [*about, *more])
    metric = kind == "metric" and is_dataclass(plugin)
    options = list(_metric_rows(plugin) if metric else _config_rows(_config_class(plugin)))
    if not options:
        console.print("no options")
        return
    made = table(console, "option", "type", "default", "what it is", "default from")
    for row in options:
        made.add_row(*row)
    put(console, made)


def _card_lines(card: Any) -> Iterable[tuple[str, str]]:
    for field in fields(card):
        value = getattr(card, field.name)
        if field.name == "name" or value in (None, "", (), [], {}):
            continue
        if field.name == "assets" and len(value) > ASSETS:
            yield field.name, f"{_value(value[:ASSETS])}\n… {len(value)} in all"
            continue
        yield field.name, _value(value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        words = [_value(item) for item in ordered]
        return ("\n" if any(len(word) > 30 for word in words) else ", ").join(words)
    if is_dataclass(value):
        return ", ".join(
            f"{field.name} {_value(item)}"
            for field in fields(value)
            if (item := getattr(value, field.name)) not in (None, "")
        )
    return str(value)


def _doc_lines(plugin: Any) -> list[tuple[str, str]]:
    text = inspect.getdoc(plugin) or "no description"
    return [("about", text.split("\n\n")[0].replace("\n", " "))]


def _config_class(plugin: Any) -> Any:
    return getattr(plugin, "config_class", None) or getattr(plugin, "options_class", None)


def _config_rows(config: Any) -> Iterable[tuple[str, ...]]:
    for name, info in getattr(config, "model_fields", {}).items():
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        unit = f" {extra['unit']}" if extra.get("unit") and info.default is not None else ""
        limits = "".join(
            f", {LIMITS[key]} {bound}"
            for item in info.metadata
            for key in LIMITS
            if (bound := getattr(item, key, None)) is not None
        )
        default = "required" if info.is_required() else _default(info.get_default(call_default_factory=True))
        yield (
            name,
            type_words(info.annotation) + limits,
            default + unit,
            info.description or "",
            str(extra.get("source", "")),
        )


def _metric_rows(metric: Any) -> Iterable[tuple[str, ...]]:
    for field in fields(metric):
        default = "required" if field.default is MISSING else _default(field.default)
        yield field.name, field.type if isinstance(field.type, str) else type_words(field.type), default, "", ""


def _default(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else "empty"


def type_words(annotation: Any) -> str:
    """A type as a user writes it: `int`, `a | b`, `none`, `list of str`."""
    if annotation is type(None):
        return "none"
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return type_words(inside[0])
    if origin is typing.Literal:
        return " | ".join(_default(value) for value in inside)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_words, inside))
    if origin in (list, tuple, set, frozenset):
        return f"list of {type_words(inside[0])}"
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"mapping of {type_words(inside[0])} to {type_words(inside[1])}"
    return getattr(annotation, "__name__", str(annotation))
