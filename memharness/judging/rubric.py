"""Rubrics: versioned files that hold a judge's prompt, the schema of its reply, and how that reply is read."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.prompts import Template
from memharness.types import UserError, did_you_mean

FOLDER = Path(__file__).with_name("rubrics")
NAME = re.compile(r"[a-z0-9][a-z0-9-]*\.v[1-9][0-9]*")
MESSAGE = re.compile(r"^# (system|user)\n", re.MULTILINE)  # as in the harness's other prompts

LEVELS = ("nominal", "ordinal", "interval")
PARSERS = ("binary", "graded", "nearest", "labels", "points")
OFFICIAL = {"any-word": ("binary",), "three-levels": ("graded", "nearest")}
"""Differences that a benchmark's own parser makes, and the parsers that they go with."""


@dataclass(frozen=True)
class Rubric:
    """A rubric file: a TOML head, then the messages with `{slots}`.

    The slots are `question`, `choices`, `reference`, `answer` and `form`, which is `in_json` for a judge that is held
    to the schema, else `in_words`; a rubric with a `case` judges many answers in one call, shows them in `{cases}` and
    has its slots, and `id`, there. A rubric for what is seen shows pictures: `made` (the answer's), `brought` (the
    question's) and `earlier` (those that the question is about, where the benchmark says so).

    Attributes:
        name: name and version, such as `binary.v1`: the file's name without its ending.
        sha256: of the file's bytes; a part of the key of every score.
        template: the messages.
        about: what the rubric holds for right, in a sentence.
        source: whose judge it follows.
        score: name of the score; empty for `labels`, which give a score each.
        level: level of measurement of a verdict, for agreement between judges.
        parser: `binary` (right or wrong), `graded` (one of `levels`), `nearest` (any number from 0 to 1, taken to the
            nearest of `levels`), `labels`, or `points` (one of `levels` for each of several things; `score` is their
            mean).
        key: the field of the reply's JSON that holds the verdict; empty for `points`, which have a field each.
        schema: the JSON schema of the reply.
        in_json: asks for that JSON in words.
        in_words: asks a judge without a schema for something shorter; empty where only JSON will do.
        right: words that mean right in `key`, besides true.
        wrong: words that mean wrong in `key`, besides false.
        levels: the scores of `graded`, `nearest` and `points`, ascending.
        labels: score name of each label.
        points: score name of each thing that `points` are given for, by its field of the reply's JSON.
        optional: of these fields those that may be null, where the thing does not apply.
        official: how the benchmark's own parser differs, which `verdict=official` follows; empty if it does not.
        empty: the verdict on an empty answer, which then costs no call; None to ask the judge.
        accept: least verdict (or the label) by which an answer counts as accepted when a judge is calibrated.
        abstention: what is shown as the reference of a question whose answer is not in memory and that has no
            reference answer; empty if the rubric does not apply to such questions.
        case: how one of many answers is shown; empty for a rubric that judges one answer a call.
        max_tokens: most tokens of the reply.
    """

    name: str
    sha256: str
    template: Template
    about: str
    source: str
    level: str
    parser: str
    schema: Mapping[str, Any]
    in_json: str
    key: str = ""
    in_words: str = ""
    score: str = ""
    right: Sequence[str] = ("true", "yes")
    wrong: Sequence[str] = ("false", "no")
    levels: Sequence[float] = ()
    labels: Mapping[str, str] | None = None
    points: Mapping[str, str] | None = None
    optional: Sequence[str] = ()
    official: str = ""
    empty: float | str | None = None
    accept: float | str = 1
    abstention: str = ""
    case: str = ""
    max_tokens: int = 400

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return tuple(self.labels.values()) if self.labels else (self.score, *(self.points or {}).values())

    @property
    def sees(self) -> bool:
        """Whether the judge is shown pictures."""
        return any(f"{{{slot}}}" in body for _, body in self.template.messages for slot in SEEN)

    @property
    def values(self) -> tuple[float | str, ...]:
        """All verdicts there are."""
        if self.labels:
            return tuple(self.labels)
        return tuple(self.levels) or (0.0, 1.0)


def rubrics() -> list[str]:
    """Names of the harness's own rubrics."""
    return sorted(file.name.removesuffix(".txt") for file in FOLDER.glob("*.txt"))


@functools.cache
def rubric(name: str) -> Rubric:
    """A rubric by name and version, such as `binary.v1`, or by the path of a file of one's own, `my/own.v1.txt`.

    Raises:
        UserError: if there is none of that name, or the file is not a rubric; it names the file and the field.
    """
    path = Path(name) if name.endswith(".txt") else FOLDER / f"{name}.txt"
    if "/" in name and not name.endswith(".txt"):
        raise UserError(f"rubric {name!r}: a file of your own ends in .vN.txt")
    if not path.is_file():
        known = rubrics()
        raise UserError(f"no rubric is called {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a rubric: {error}") from None


def _read(path: Path) -> Rubric:
    """One file. Raises ValueError with what is wrong, and its field."""
    own = path.name.removesuffix(".txt")
    if not NAME.fullmatch(own):
        raise ValueError("its name has no version; call it NAME.v1.txt, in small letters, digits and dashes")
    text = path.read_text("utf-8")
    head, *pieces = MESSAGE.split(text)
    messages = tuple((role, body.rstrip("\n")) for role, body in zip(pieces[::2], pieces[1::2], strict=True))
    if not messages:
        raise ValueError("it has no message; write the prompt under lines `# system` and `# user`")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    values = _head(tomllib.loads(head))
    made = Rubric(own, sha256, Template(own, sha256, messages), **values)  # type: ignore[arg-type]
    _check(made)
    return made


TEXT = (
    *("about", "source", "score", "level", "parser", "official"),
    *("key", "schema", "in_json", "in_words", "abstention", "case"),
)
REQUIRED = ("about", "source", "level", "parser", "schema", "in_json")
MORE: dict[str, tuple[Any, str]] = {
    "right": (list, "a list of words"),
    "wrong": (list, "a list of words"),
    "levels": (list, "a list of numbers"),
    "labels": (dict, "a table of label and score name"),
    "points": (dict, "a table of field and score name"),
    "optional": (list, "a list of fields"),
    "empty": ((int, float, str), "a level or a label"),
    "accept": ((int, float, str), "a level or a label"),
    "max_tokens": (int, "a whole number"),
}


def _head(values: dict[str, Any]) -> dict[str, Any]:
    """The head's fields, each of its kind."""
    for key, value in values.items():
        if key not in TEXT and key not in MORE:
            known = (*TEXT, *MORE)
            raise ValueError(f"{key}: no such field{did_you_mean(key, known)}; there are: {', '.join(known)}")
        kind, words = MORE.get(key, (str, "text"))
        if not isinstance(value, kind):
            raise ValueError(f"{key}: must be {words}, not {value!r}")
    if lacking := [key for key in REQUIRED if key not in values]:
        raise ValueError(f"{lacking[0]}: is missing")
    try:
        values["schema"] = json.loads(values["schema"])
    except ValueError as error:
        raise ValueError(f"schema: not JSON ({error})") from None
    return values


ONE = {"question", "choices", "reference", "answer"}  # slots of one answer; a case has these and its id
SEEN = ("made", "brought", "earlier")  # slots of pictures


def _check(made: Rubric) -> None:
    """Refuse what contradicts itself, when the file is read and not at the thousandth answer."""
    for key, known in (("level", LEVELS), ("parser", PARSERS), ("official", ("", *OFFICIAL))):
        if getattr(made, key) not in known:
            raise ValueError(f"{key}: {getattr(made, key)!r} is not one of {', '.join(filter(None, known))}")
    if (made.parser == "labels") != bool(made.labels) or bool(made.labels) == bool(made.score):
        raise ValueError("score: a rubric has one, but for parser `labels`, which has a table [labels] of score names")
    if (made.parser == "points") != bool(made.points) or (made.parser == "points") == bool(made.key):
        raise ValueError("key: a rubric has one, but for parser `points`, which has a table [points] of fields")
    if strange := [field for field in made.optional if field not in (made.points or ())]:
        raise ValueError(f"optional: {strange[0]!r} is no field of [points]")
    most = float("inf") if made.points else 1
    levels = made.parser in ("graded", "nearest", "points")
    if levels != bool(made.levels) or not all(0 <= level <= most for level in made.levels):
        raise ValueError(
            "levels: parsers `graded` and `nearest`, and no others, have a list of levels from 0 to 1; `points` has "
            "one of any from 0"
        )
    if made.official and made.parser not in OFFICIAL[made.official]:
        raise ValueError(f"official: {made.official} does not go with parser {made.parser}")
    for key in ("empty", "accept"):
        verdict = getattr(made, key)
        if verdict is not None and verdict not in made.values:
            raise ValueError(f"{key}: {verdict!r} is no verdict; there are: {', '.join(map(str, made.values))}")
    shown = {slot for _, body in made.template.messages for slot in re.findall(r"\{(\w+)\}", body)}
    inside = set(re.findall(r"\{(\w+)\}", made.case))
    alone = {"form", "cases"} if made.case else {*ONE, *SEEN, "form"}
    for found, slots in ((shown, alone), (inside, ONE | {"id"})):
        if unknown := found - slots:
            raise ValueError(f"{{{min(unknown)}}}: no such slot here; there are: {', '.join(sorted(slots))}")
    needed = {"question", "answer", "made" if made.sees else "reference"} | ({"cases", "id"} if made.case else set())
    if lacking := needed - shown - inside:
        raise ValueError(f"{{{min(lacking)}}}: the prompt does not show it")
