"""Configs of plug-ins: pydantic models whose every field says what it is and where its default comes from."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pydantic

from memharness.types import UserError, did_you_mean


class Config(pydantic.BaseModel):
    """Base of every plug-in's config: immutable, unknown keys refused, no NaN."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())


C = TypeVar("C", bound=Config)


def option(
    default: Any,
    help: str,
    *,
    source: str = "memharness",
    unit: str = "",
    neutral: bool = False,
    how: bool = False,
    **limits: Any,
) -> Any:
    """A config field.

    Args:
        default: its default.
        help: what it is, in one sentence.
        source: where the default comes from (paper section, official code, or `memharness`).
        unit: of the value, if it has one.
        neutral: leave it out of the identity while it has its default (for fields added later that change nothing).
        how: it says how work is done, not what comes of it (batch, device, retries): never in the identity.
        limits: pydantic limits such as `ge=0`.
    """
    extra: Any = {"source": source, "unit": unit, "neutral": neutral, "how": how}
    return pydantic.Field(default, description=help, json_schema_extra=extra, **limits)


def parse_pairs(pairs: Iterable[str], flag: str) -> dict[str, str]:
    """`k=v` words from the command line as a mapping. What a value says depends on its field: see `read_word`.

    Raises:
        UserError: for a word without `=`.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, word = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{flag} {pair}: expected {flag} KEY=VALUE")
        values[key.strip()] = word
    return values


def read_word(word: str, annotation: Any = str) -> Any:
    """What a word of the command line says to a field: itself to one that takes text, otherwise its YAML reading.

    YAML takes `No` for false, `1999` for a number and ` #` for a comment; text stays as it was typed. Text in quotes
    is what stands between them, and a field that takes more than text (`int | str`) gets what it also takes.

    Args:
        word: as typed.
        annotation: the field's type.

    Raises:
        ValueError: if the field takes no text and the word is not YAML.
    """
    kinds = _kinds(annotation)
    if kinds == {str} and word[:1] not in ("'", '"'):
        return word
    import yaml

    try:
        value = yaml.safe_load(word)
    except yaml.YAMLError as error:
        if str in kinds:
            return word
        raise ValueError(f"the value is not valid YAML ({error})") from None
    quoted = isinstance(value, str) and word[:1] in ("'", '"')
    return value if quoted or str not in kinds or type(value) in kinds - {str} else word


def _kinds(annotation: Any) -> set[type]:
    """The types a field takes, through unions and literals."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kinds(inside[0])
    if origin is typing.Literal:
        return {type(value) for value in inside}
    if origin in (typing.Union, types.UnionType):
        return set().union(*map(_kinds, inside))
    return {origin or annotation}


def build(config_class: type[C], values: Mapping[str, Any], flag: str, owner: str) -> C:
    """A config from a mapping; words in it, which may come from a command line, are read as their fields want.

    Raises:
        UserError: naming the key, the value and what is accepted; an unknown key gets a "did you mean".
    """
    known = config_class.model_fields
    read: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            hint = did_you_mean(key, known)
            raise UserError(f"{flag} {key}: {owner} has no such option{hint}; it has: {', '.join(known) or 'none'}")
        try:
            read[key] = read_word(value, known[key].annotation) if isinstance(value, str) else value
        except ValueError as error:
            raise UserError(f"{flag} {key}={value}: {error}") from None
    try:
        return config_class.model_validate(read)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or owner
        raise UserError(
            f"{flag} {name}={first.get('input')!r}: {first['msg']} (see `memharness show {owner}`)"
        ) from None


def resolved(config: Config) -> dict[str, Any]:
    """The whole config as it enters the identity: every field but those of `how`, and neutral ones at their default."""
    values = config.model_dump(mode="json")
    for name, info in type(config).model_fields.items():
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        if extra.get("how") or (extra.get("neutral") and getattr(config, name) == info.default):
            del values[name]
    return values
