"""What is true in a game: from its PDDL problem, step by step, and told as one record for each entity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memharness.types import DataError

Fact = tuple[str, ...]
"""A predicate and the names of its arguments: `("inreceptacle", "mug 1", "desk 2")`."""
YOU = "you"
_TOKEN = re.compile(r"[()]|[^\s()]+")
_PRINTED = re.compile(r"(\w+)\((.*)\)")
_STATES = {"ishot": "hot", "iscool": "cool", "isclean": "clean", "issliced": "sliced"}


@dataclass(frozen=True, slots=True)
class Record:
    """The state of one entity.

    Attributes:
        name: as the game names it, `you` for the agent.
        place: the place where it is, or was at the start.
        text: its state in sentences; equal texts mean that nothing about it changed.
    """

    name: str
    place: str
    text: str


def printed(text: str) -> Fact:
    """A fact as TextWorld prints it: `inreceptacle(mug 1: object, desk 2: receptacle)`.

    Raises:
        ValueError: for anything else.
    """
    match = _PRINTED.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no fact")
    names = (argument.rpartition(":")[0].strip() for argument in match[2].split(", ") if argument)
    return (match[1], *names)


def initial(problem: str, where: object) -> frozenset[Fact]:
    """What is true at the start, from the `:init` of a PDDL problem, in the names that the game uses.

    Raises:
        DataError: for a problem without one, or with brackets that do not match.
    """
    atoms = [atom for atom in _init(problem, where) if atom and atom[0] != "="]  # a distance is no fact
    names = _names({argument for atom in atoms for argument in atom[1:]})
    return frozenset((atom[0], *(names[argument] for argument in atom[1:])) for atom in atoms)


def _init(problem: str, where: object) -> Iterable[list[str]]:
    stack: list[list[list[str] | str]] = [[]]
    for token in _TOKEN.findall(re.sub(r";[^\n]*", "", problem).lower()):
        if token == "(":
            stack.append([])
        elif token != ")":
            stack[-1].append(token)
        elif len(stack) > 1:
            whole = stack.pop()
            if whole[:1] == [":init"]:
                return [[str(word) for word in atom] for atom in whole[1:] if isinstance(atom, list)]
            stack[-1].append(whole)  # type: ignore[arg-type]  # deeper than two, and not looked at
    raise DataError(f"{where}: pddl_problem: has no whole (:init …); fetch the file again")


def _names(ids: Iterable[str]) -> dict[str, str]:
    """ALFWorld's names: the kind before `_bar_` and a number, the highest for the first id of a kind.

    Source: alfworld.agents.utils.misc.Demangler. What stands in a basin is a kind of its own, with its name's ending.
    """
    names: dict[str, str] = {}
    count: Counter[str] = Counter()
    for one in sorted(ids, reverse=True):
        head, bar, _ = one.partition("_bar_")
        kind = head + "basin" * ("basin" in one)
        count[kind] += bool(bar)
        names[one] = f"{kind} {count[kind]}" if bar else one
    return names


def after(facts: frozenset[Fact], added: Iterable[Fact], removed: Iterable[Fact]) -> frozenset[Fact]:
    """The facts after a change."""
    return facts.difference(removed).union(added)


def records(facts: Iterable[Fact]) -> dict[str, Record]:
    """The state of every entity by its name: the agent, then receptacles, then objects, each by name and number."""
    scene = _Scene(facts)
    told = [scene.agent(), *map(scene.receptacle, scene.receptacles), *map(scene.object, scene.objects)]
    return {record.name: record for record in told}


def changed(before: Mapping[str, Record], then: Mapping[str, Record]) -> list[str]:
    """The entities whose record is another one then, or gone."""
    return [name for name, record in before.items() if then.get(name) != record]


class _Scene:
    """Facts by predicate, and what is told of them."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        by: dict[str, list[Fact]] = {}
        for predicate, *arguments in facts:
            by.setdefault(predicate, []).append(tuple(arguments))
        self.true = {predicate: {fact[0] for fact in found if len(fact) == 1} for predicate, found in by.items()}
        self.place = dict(_pairs(by, "objectatlocation") + _pairs(by, "receptacleatlocation"))
        self.inside = _pairs(by, "inreceptacle")
        self.held = [thing for _, thing in _pairs(by, "holds")]
        self.here = next((place for _, place in _pairs(by, "atlocation")), "")
        self.receptacles = _sorted({name for name, _ in _pairs(by, "receptacleatlocation")})
        known = {name for name, _ in _pairs(by, "objectatlocation") + self.inside}
        self.objects = _sorted((known | set(self.held)) - set(self.receptacles))

    def agent(self) -> Record:
        near = [name for name in self.receptacles if self.place[name] == self.here]
        at = f"You are at {_place(self.here)}" + (f", by {_list(near)}." if near else ".")
        return Record(YOU, self.here, f"{at} You hold {_list(self.held)}.")

    def receptacle(self, name: str) -> Record:
        place = self.place[name]
        said = [f"{name} is at {_place(place)}."]
        if place == self.here:
            said.append("You are there.")
        if self.is_(name, "openable"):
            said.append("It is open." if self.is_(name, "opened") else "It is closed.")
        said.append(f"In or on it: {_list(_sorted(thing for thing, where in self.inside if where == name))}.")
        return Record(name, place, " ".join(said + self.seen(name)))

    def object(self, name: str) -> Record:
        where = _sorted(receptacle for thing, receptacle in self.inside if thing == name)
        place = self.place.get(name, "")
        if name in self.held:
            said = [f"You hold {name}."]
        else:
            said = [f"{name} is in or on {_list(where)}." if where else f"{name} is at {_place(place)}."]
        states = [word for predicate, word in _STATES.items() if self.is_(name, predicate)]
        if states:
            said.append(f"It is {_list(states)}.")
        if self.is_(name, "toggleable"):
            said.append("It is switched on." if self.is_(name, "istoggled") else "It is switched off.")
        return Record(name, place, " ".join(said + self.seen(name)))

    def is_(self, name: str, predicate: str) -> bool:
        return name in self.true.get(predicate, ())

    def seen(self, name: str) -> list[str]:
        return ["You have examined it."] if self.is_(name, "checked") else []


def _pairs(by: Mapping[str, Sequence[Fact]], predicate: str) -> list[tuple[str, str]]:
    return [(fact[0], fact[1]) for fact in sorted(by.get(predicate, ())) if len(fact) == 2]


def _place(name: str) -> str:
    return f"place {name.removeprefix('loc ')}" if name else "no place"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _sorted(names: Iterable[str]) -> list[str]:
    """By name, and `drawer 2` before `drawer 10`."""
    return sorted(names, key=lambda name: [(len(word), word) if word.isdigit() else (0, word) for word in name.split()])
