"""What a tool is: a name, what it can do, typed arguments, and a function that runs on the desk of one turn."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from memharness.types import Image

if TYPE_CHECKING:
    from memharness.methods.cma.tools.desk import Desk


class ToolError(Exception):
    """A call that cannot be done; the message is for the model that called."""


class Arguments(pydantic.BaseModel):
    """Base of a tool's arguments: unknown keys are refused, and every field says what it is."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Result:
    """What a call gave: words for the model, and pictures it may look at."""

    text: str
    shown: tuple[Image, ...] = ()


@dataclass(frozen=True)
class Tool:
    """A tool of the loop.

    Attributes:
        name: what a model calls it by.
        does: what it can do, in a sentence or two.
        arguments: the class of its arguments.
        run: does it.
        read_only: whether it changes nothing, so that calls may run beside each other.
        online: whether it asks the web, which is off unless a run names one.
    """

    name: str
    does: str
    arguments: type[Arguments]
    run: Callable[[Desk, Any], Awaitable[Result]]
    read_only: bool
    online: bool = False

    def function(self) -> dict[str, Any]:
        """As an OpenAI function."""
        return {"name": self.name, "description": self.does, "parameters": schema(self.arguments)}

    def read(self, arguments: Mapping[str, Any] | str) -> Arguments:
        """Arguments as the tool's own class.

        Raises:
            ToolError: naming each field that is missing, unknown or wrong, and what the tool takes.
        """
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
        except json.JSONDecodeError as error:
            raise ToolError(f"{self.name}: the arguments are no JSON ({error})") from None
        if not isinstance(values, Mapping):
            raise ToolError(f"{self.name}: the arguments must be a JSON object, not {type(values).__name__}")
        try:
            return self.arguments.model_validate(values)
        except pydantic.ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()
            )
            takes = ", ".join(self.arguments.model_fields) or "nothing"
            raise ToolError(f"{self.name}: {faults}. It takes: {takes}") from None


def schema(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of arguments, without the titles that pydantic adds."""

    def plain(value: Any, names: bool = False) -> Any:
        if isinstance(value, dict):
            kept = value.items() if names else ((key, one) for key, one in value.items() if key != "title")
            return {key: plain(one, names=key == "properties" and not names) for key, one in kept}
        return [plain(one) for one in value] if isinstance(value, list) else value

    made: dict[str, Any] = plain(arguments.model_json_schema())
    made.pop("description", None)  # the tool says it
    return made
