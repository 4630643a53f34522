"""Configs of plug-ins: pydantic models whose every field says what it is and where its default comes from."""

from __future__ import annotations

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


def parse_pairs(pairs: Iterable[str], flag: str) -> dict[str, Any]:
    """`k=v` words from the command line as a mapping; values are read as YAML scalars, lists and mappings.

    Raises:
        UserError: for a word without `=` or a value that is not YAML.
    """
    import yaml

    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{flag} {pair}: expected {flag} KEY=VALUE")
        try:
            values[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UserError(f"{flag} {pair}: the value is not valid YAML ({error})") from None
    return values


def build(config_class: type[C], values: Mapping[str, Any], flag: str, owner: str) -> C:
    """A config from a mapping.

    Raises:
        UserError: naming the key, the value and what is accepted; an unknown key gets a "did you mean".
    """
    known = list(config_class.model_fields)
    for key in values:
        if key not in known:
            hint = did_you_mean(key, known)
            raise UserError(f"{flag} {key}: {owner} has no such option{hint}; it has: {', '.join(known) or 'none'}")
    try:
        return config_class.model_validate(dict(values))
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
