"""Writes the ALFWorld sample: eight small games with rules of their own that TextWorld plays, and their replays.

`House` knows the same rules as the PDDL domain below, so that the replays are made here without the engine; a test
holds them against what the engine says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from samples.text import readme

FOLDER = "benchmarks/alfworld/sample"
HOLDS = (
    "{games} games of all six tasks in invented rooms, with their walkthroughs, and replays of the walkthroughs,"
    " {steps} commands in all"
)
ORIGIN = "The rules, the words and the rooms were made up"

Fact = tuple[str, ...]

DOMAIN = """
(define (domain household)
 (:requirements :adl :typing)
 (:types agent location receptacle object rtype otype)
 (:predicates
  (atLocation ?a - agent ?l - location) (receptacleAtLocation ?r - receptacle ?l - location)
  (objectAtLocation ?o - object ?l - location) (inReceptacle ?o - object ?r - receptacle)
  (receptacleType ?r - receptacle ?t - rtype) (objectType ?o - object ?t - otype)
  (openable ?r - receptacle) (opened ?r - receptacle) (checked ?r - receptacle)
  (washes ?r - receptacle) (warms ?r - receptacle) (chills ?r - receptacle)
  (holds ?a - agent ?o - object) (holdsAny ?a - agent)
  (isClean ?o - object) (isHot ?o - object) (isCool ?o - object)
  (toggleable ?o - object) (isToggled ?o - object)
  (surveyed ?l - location) (searched ?a - agent))
 (:action Survey :parameters (?a - agent ?l - location)
  :precondition (atLocation ?a ?l) :effect (surveyed ?l))
 (:action Pockets :parameters (?a - agent)
  :precondition () :effect (searched ?a))
 (:action Walk :parameters (?a - agent ?from - location ?to - location ?r - receptacle)
  :precondition (and (atLocation ?a ?from) (receptacleAtLocation ?r ?to) (not (atLocation ?a ?to)))
  :effect (and (not (atLocation ?a ?from)) (atLocation ?a ?to)))
 (:action Inspect :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)) :effect (checked ?r))
 (:action Unshut :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (not (opened ?r)))
  :effect (and (opened ?r) (checked ?r)))
 (:action Shut :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (opened ?r))
  :effect (not (opened ?r)))
 (:action Grab :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r) (not (holdsAny ?a))
   (not (toggleable ?o)) (or (not (openable ?r)) (opened ?r)))
  :effect (and (holds ?a ?o) (holdsAny ?a) (not (inReceptacle ?o ?r)) (not (objectAtLocation ?o ?l))))
 (:action Place :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o)
   (or (not (openable ?r)) (opened ?r)))
  :effect (and (inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a))))
 (:action Wash :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o) (washes ?r))
  :effect (isClean ?o))
 (:action Warm :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o) (warms ?r))
  :effect (isHot ?o))
 (:action Chill :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o) (chills ?r))
  :effect (isCool ?o))
 (:action Light :parameters (?a - agent ?l - location ?o - object)
  :precondition (and (atLocation ?a ?l) (objectAtLocation ?o ?l) (toggleable ?o) (not (isToggled ?o)))
  :effect (isToggled ?o)))
"""

RULES: dict[str, list[dict[str, str]]] = {
    "intro": [{"rhs": "#survey#\n\nYour task is to: GOAL"}],
    "survey": [
        {"rhs": "You stand in a small house and count: [{#one(r)# | receptacleatlocation(r:receptacle, l:location)}]."}
    ],
    "pockets": [
        {"condition": "holdsany(a:agent)", "rhs": "In your hand: [{#one(o)# | holds(a:agent, o:object)}]."},
        {"rhs": "Your hands are empty."},
    ],
    "inside": [
        {
            "condition": "inreceptacle(o:object, r:receptacle)",
            "rhs": "There you find [{#one(o)# | inreceptacle(o:object, r:receptacle)}].",
        },
        {"rhs": "There is nothing."},
    ],
    "inspect": [
        {"condition": "openable(r:receptacle) & opened(r:receptacle)", "rhs": "The {r.name} stands open. #inside#"},
        {"condition": "openable(r:receptacle)", "rhs": "The {r.name} is shut."},
        {"rhs": "#inside#"},
    ],
    "one(o)": [{"rhs": "{o.indefinite} {o.name}"}],
    "one(r)": [{"rhs": "{r.indefinite} {r.name}"}],
    "list_empty": [{"rhs": "nothing"}],
    "list_separator": [{"rhs": ", "}],
    "list_last_separator": [{"rhs": ", and "}],
}
ACTIONS = {  # of the domain: the command, and what is then said
    "Survey": ("look", "#survey#"),
    "Pockets": ("inventory", "#pockets#"),
    "Walk": ("go to {r}", "You walk to {r.name}. #inspect#"),
    "Inspect": ("examine {r}", "You look closely. #inspect#"),
    "Unshut": ("open {r}", "It creaks. #inspect#"),
    "Shut": ("close {r}", "{r.name} falls shut."),
    "Grab": ("take {o} from {r}", "Now you hold {o.name}, and {r.name} is lighter by it."),
    "Place": ("move {o} to {r}", "You leave {o.name} with {r.name}."),
    "Wash": ("clean {o} with {r}", "You scrub {o.name} in {r.name} until it shines."),
    "Warm": ("heat {o} with {r}", "{r.name} hums, and {o.name} is hot."),
    "Chill": ("cool {o} with {r}", "A minute in {r.name}, and {o.name} is cold."),
    "Light": ("use {o}", "{o.name} lights up."),
}
APPLIANCES = {"Tub": "washes", "Stove": "warms", "Cooler": "chills"}
OPENABLE = ("Cupboard", "Chest", "Stove", "Cooler")
LAMPS = ("Lantern",)


@dataclass(frozen=True)
class Plan:
    """A game to be written.

    Attributes:
        split: `valid_seen` or `valid_unseen`.
        folder: the task, its object, movable, receptacle and room, as published folders are called.
        receptacles: kinds, one receptacle each, in the order of places; a kind may come twice.
        things: kind of an object, and the receptacle in which it is (`chest 1`).
        goal: what must hold, in PDDL.
        words: the task.
        walkthrough: commands that win.
    """

    split: str
    folder: str
    receptacles: tuple[str, ...]
    things: tuple[tuple[str, str], ...]
    goal: str
    words: str
    walkthrough: tuple[str, ...]


def put(kind: str, where: str, state: str = "") -> str:
    """The goal that something of a kind, in a state, is in something of a kind."""
    states = f"({state} ?o) " if state else ""
    return (
        f"(exists (?o - object ?r - receptacle) (and (objectType ?o {kind}Type) {states}(inReceptacle ?o ?r)"
        f" (receptacleType ?r {where}Type)))"
    )


def put_two(kind: str, where: str) -> str:
    """The goal that two things of a kind are in one of a kind."""
    return (
        "(exists (?o - object ?other - object ?r - receptacle) (and (not (= ?o ?other))"
        f" (objectType ?o {kind}Type) (objectType ?other {kind}Type) (inReceptacle ?o ?r) (inReceptacle ?other ?r)"
        f" (receptacleType ?r {where}Type)))"
    )


def held_in_light(kind: str) -> str:
    """The goal that something of a kind is held beside a lamp that is lit."""
    return (
        "(exists (?lamp - object ?o - object ?a - agent ?l - location) (and (toggleable ?lamp) (isToggled ?lamp)"
        f" (objectAtLocation ?lamp ?l) (atLocation ?a ?l) (objectType ?o {kind}Type) (holds ?a ?o)))"
    )


KITCHEN = ("Table", "Cupboard", "Cupboard", "Tub", "Stove", "Cooler", "Ledge")
STUDY = ("Table", "Chest", "Ledge", "Ledge", "Basket")
PLANS = (
    Plan(
        "valid_seen", "pick_and_place_simple-Spoon-None-Basket-901", STUDY,
        (("Spoon", "ledge 2"), ("Candle", "ledge 1"), ("Lantern", "table 1"), ("Coin", "chest 1")),
        put("Spoon", "Basket"), "put a spoon in the basket.",
        ("go to ledge 2", "take spoon 1 from ledge 2", "go to basket 1", "move spoon 1 to basket 1"),
    ),
    Plan(
        "valid_seen", "look_at_obj_in_light-Map-None-Lantern-902", STUDY,
        (("Map", "chest 1"), ("Lantern", "table 1"), ("Coin", "ledge 1"), ("Candle", "basket 1")),
        held_in_light("Map"), "read a map by the lantern.",
        ("go to chest 1", "open chest 1", "take map 1 from chest 1", "go to table 1", "use lantern 1"),
    ),
    Plan(
        "valid_seen", "pick_clean_then_place_in_recep-Mug-None-Cupboard-903", KITCHEN,
        (("Mug", "table 1"), ("Plate", "ledge 1"), ("Plum", "cooler 1"), ("Spoon", "cupboard 1")),
        put("Mug", "Cupboard", "isClean"), "put a clean mug in a cupboard.",
        ("go to table 1", "take mug 1 from table 1", "go to tub 1", "clean mug 1 with tub 1", "go to cupboard 2",
         "open cupboard 2", "move mug 1 to cupboard 2"),
    ),
    Plan(
        "valid_seen", "pick_heat_then_place_in_recep-Bun-None-Table-903", KITCHEN,
        (("Bun", "cupboard 1"), ("Mug", "tub 1"), ("Plum", "table 1"), ("Bun", "cooler 1")),
        put("Bun", "Table", "isHot"), "bring a hot bun to the table.",
        ("go to cupboard 1", "open cupboard 1", "take bun 1 from cupboard 1", "go to stove 1",
         "heat bun 1 with stove 1", "go to table 1", "move bun 1 to table 1"),
    ),
    Plan(
        "valid_unseen", "pick_cool_then_place_in_recep-Plum-None-Ledge-904", KITCHEN,
        (("Plum", "table 1"), ("Bun", "table 1"), ("Mug", "ledge 1"), ("Plate", "cupboard 2")),
        put("Plum", "Ledge", "isCool"), "put a cold plum on the ledge.",
        ("go to table 1", "take plum 1 from table 1", "go to cooler 1", "cool plum 1 with cooler 1", "go to ledge 1",
         "move plum 1 to ledge 1"),
    ),
    Plan(
        "valid_unseen", "pick_two_obj_and_place-Coin-None-Chest-905", STUDY,
        (("Coin", "ledge 1"), ("Coin", "basket 1"), ("Lantern", "ledge 2"), ("Map", "table 1")),
        put_two("Coin", "Chest"), "put two coins in the chest.",
        ("go to chest 1", "open chest 1", "go to ledge 1", "take coin 1 from ledge 1", "go to chest 1",
         "move coin 1 to chest 1", "go to basket 1", "take coin 2 from basket 1", "go to chest 1",
         "move coin 2 to chest 1"),
    ),
    Plan(
        "valid_unseen", "look_at_obj_in_light-Book-None-Lantern-905", STUDY,
        (("Book", "ledge 1"), ("Lantern", "ledge 2"), ("Book", "chest 1"), ("Candle", "table 1")),
        held_in_light("Book"), "hold a book under the lantern.",
        ("go to ledge 1", "take book 1 from ledge 1", "go to ledge 2", "use lantern 1"),
    ),
    Plan(
        "valid_unseen", "pick_and_place_simple-Plate-None-Tub-904", KITCHEN,
        (("Plate", "cupboard 1"), ("Mug", "cupboard 2"), ("Spoon", "table 1"), ("Bun", "stove 1")),
        put("Plate", "Tub"), "put a plate in the tub.",
        ("go to cupboard 1", "open cupboard 1", "take plate 1 from cupboard 1", "go to tub 1",
         "move plate 1 to tub 1"),
    ),
)  # fmt: skip


class House:
    """A game as it goes: what is true, what may be said, and what is then answered."""

    def __init__(self, plan: Plan) -> None:
        """Stand at the start, in the last place, where nothing else is."""
        self.plan = plan
        self.receptacles = _numbered(plan.receptacles)
        self.things = dict(
            zip(_numbered([kind for kind, _ in plan.things]), (at for _, at in plan.things), strict=True)
        )
        self.place = {name: f"loc {n}" for n, name in enumerate(self.receptacles, 1)}
        self.facts: set[Fact] = set(self._start())

    def _start(self) -> Iterator[Fact]:
        yield "atlocation", "agent1", f"loc {len(self.receptacles) + 1}"
        for name in self.receptacles:
            yield "receptacleatlocation", name, self.place[name]
            yield "receptacletype", name, f"{name.split()[0]}type"
            if name.split()[0].title() in OPENABLE:
                yield "openable", name
            if makes := APPLIANCES.get(name.split()[0].title()):
                yield makes, name
        for name, where in self.things.items():
            yield "objectatlocation", name, self.place[where]
            yield "inreceptacle", name, where
            yield "objecttype", name, f"{name.split()[0]}type"
            if name.split()[0].title() in LAMPS:
                yield "toggleable", name

    def true(self, *fact: str) -> bool:
        """Whether something holds."""
        return fact in self.facts

    def commands(self) -> dict[str, tuple[str, list[Fact]]]:
        """What may be said now, and each command's action and effects (`not_…` for what ends)."""
        here = next(fact[2] for fact in self.facts if fact[0] == "atlocation")
        held = next((fact[2] for fact in self.facts if fact[0] == "holds"), None)
        found: dict[str, tuple[str, list[Fact]]] = {
            "look": ("Survey", [("surveyed", here)]),
            "inventory": ("Pockets", [("searched", "agent1")]),
        }
        for name in self.receptacles:
            place = self.place[name]
            if place == here:
                found |= self._near(name, here, held)
            else:
                walked = [("not_atlocation", "agent1", here), ("atlocation", "agent1", place)]
                found[f"go to {name}"] = ("Walk", walked)
        for thing in self.things:
            lit = self.true("istoggled", thing) or not self.true("toggleable", thing)
            if self.true("objectatlocation", thing, here) and not lit:
                found[f"use {thing}"] = ("Light", [("istoggled", thing)])
        return found

    def _near(self, name: str, here: str, held: str | None) -> dict[str, tuple[str, list[Fact]]]:
        found: dict[str, tuple[str, list[Fact]]] = {f"examine {name}": ("Inspect", [("checked", name)])}
        if self.true("openable", name) and self.true("opened", name):
            found[f"close {name}"] = ("Shut", [("not_opened", name)])
        elif self.true("openable", name):
            found[f"open {name}"] = ("Unshut", [("opened", name), ("checked", name)])
        if held:
            for made, action, word in (
                ("washes", "Wash", "clean"),
                ("warms", "Warm", "heat"),
                ("chills", "Chill", "cool"),
            ):
                if self.true(made, name):
                    state = {"clean": "isclean", "heat": "ishot", "cool": "iscool"}[word]
                    found[f"{word} {held} with {name}"] = (action, [(state, held)])
        if self.true("openable", name) and not self.true("opened", name):
            return found
        if held:
            found[f"move {held} to {name}"] = (
                "Place",
                [("inreceptacle", held, name), ("objectatlocation", held, here), ("not_holds", "agent1", held),
                 ("not_holdsany", "agent1")],
            )  # fmt: skip
            return found
        for thing in self.things:
            if self.true("inreceptacle", thing, name) and not self.true("toggleable", thing):
                found[f"take {thing} from {name}"] = (
                    "Grab",
                    [("holds", "agent1", thing), ("holdsany", "agent1"), ("not_inreceptacle", thing, name),
                     ("not_objectatlocation", thing, here)],
                )  # fmt: skip
        return found

    def do(self, command: str) -> str:
        """Give a command and return what is answered."""
        action, effects = self.commands()[command]
        for predicate, *names in effects:
            opposite = predicate.removeprefix("not_") if predicate.startswith("not_") else f"not_{predicate}"
            self.facts.discard((opposite, *names))
            self.facts.add((predicate, *names))
        receptacle = next((name for name in self.receptacles if command.endswith(name)), "")
        thing = next((name for name in self.things if name in command), "")
        said = ACTIONS[action][1].replace("{r.name}", receptacle).replace("{o.name}", thing)
        said = said.replace("#inspect#", self._inspected(receptacle)).replace("#survey#", self.survey())
        return said.replace("#pockets#", self._pockets())

    def survey(self) -> str:
        """What stands around."""
        return f"You stand in a small house and count: {_listed(self.receptacles)}."

    def _pockets(self) -> str:
        held = [fact[2] for fact in self.facts if fact[0] == "holds"]
        return f"In your hand: {_listed(held)}." if held else "Your hands are empty."

    def _inspected(self, name: str) -> str:
        if not self.true("openable", name):
            return self._inside(name)
        return f"The {name} stands open. {self._inside(name)}" if self.true("opened", name) else f"The {name} is shut."

    def _inside(self, name: str) -> str:
        found = [thing for thing in self.things if self.true("inreceptacle", thing, name)]
        return f"There you find {_listed(found)}." if found else "There is nothing."

    def replay(self) -> list[dict[str, Any]]:
        """The walkthrough, as stored replays tell it."""
        seen = f"{self.survey()}\n\nYour task is to: {self.plan.words}"
        steps = []
        for number, command in enumerate(self.plan.walkthrough):
            before, admissible = set(self.facts), sorted(self.commands())
            then = self.do(command)
            last = number == len(self.plan.walkthrough) - 1
            steps.append(
                {
                    "t": number,
                    "observation": seen,
                    "admissible_commands": admissible,
                    "action": command,
                    "next_observation": then,
                    "facts_added": sorted(self._print(fact) for fact in self.facts - before),
                    "facts_removed": sorted(self._print(fact) for fact in before - self.facts),
                    "done": last,
                    "won": last,
                }
            )
            seen = then
        return steps

    def _print(self, fact: Fact) -> str:
        """A fact as TextWorld prints it; a name without a number ends with a space there."""
        typed = (f"{name}{' ' * (name == 'agent1')}: {self._type(name)}" for name in fact[1:])
        return f"{fact[0]}({', '.join(typed)})"

    def _type(self, name: str) -> str:
        known = (
            {"agent1": "agent"} | dict.fromkeys(self.receptacles, "receptacle") | dict.fromkeys(self.things, "object")
        )
        return known.get(name, "location")

    def problem(self) -> str:
        """The start and the goal in PDDL, under ids from which ALFWorld makes these names."""
        ids = _ids([*self.receptacles, *self.things, *(f"loc {n + 1}" for n in range(len(self.receptacles) + 1))])
        kinds = {name.split()[0].title(): "rtype" for name in self.receptacles}
        kinds |= {name.split()[0].title(): "otype" for name in self.things}
        objects = [f"{ids.get(name, name)} - {self._type(name)}" for name in ("agent1", *ids)]
        objects += [f"{kind}Type - {type_}" for kind, type_ in kinds.items()]
        facts = [" ".join((fact[0], *(ids.get(name, name) for name in fact[1:]))) for fact in self._start()]
        return (
            f"(define (problem {self.plan.folder})\n (:domain household)\n (:objects\n  "
            + "\n  ".join(objects)
            + ")\n (:init\n  "
            + "\n  ".join(f"({fact})" for fact in facts)
            + f")\n (:goal {self.plan.goal}))\n"
        )

    def grammar(self) -> str:
        """What is said, in TextWorld's grammar."""
        rules = json.loads(json.dumps(RULES))
        rules["intro"][0]["rhs"] = rules["intro"][0]["rhs"].replace("GOAL", self.plan.words)
        rules |= {f"{name}.said": [{"rhs": said}] for name, (_, said) in ACTIONS.items()}
        told = [f'grammar :: """\n{json.dumps(rules, indent=1)}\n""";\n']
        for name, (command, _) in ACTIONS.items():
            told.append(f'action {name} {{\n    template :: "{command}";\n    feedback :: "#{name}.said#";\n}}\n')
        return "\n".join(told)


def _numbered(kinds: Sequence[str]) -> list[str]:
    """`mug 1`, `mug 2` … in order."""
    count: Counter[str] = Counter()
    names = []
    for kind in kinds:
        count[kind] += 1
        names.append(f"{kind.lower()} {count[kind]}")
    return names


def _ids(names: Sequence[str]) -> dict[str, str]:
    """Ids by name. ALFWorld gives the highest number of a kind to the first id."""
    most = Counter(name.split()[0] for name in names)
    parts = {name: name.split() for name in names}
    return {name: f"{kind.title()}_bar_{most[kind] - int(n) + 1:02d}" for name, (kind, n) in parts.items()}


def _listed(names: Sequence[str]) -> str:
    """`a mug 2, a mug 1, and a spoon 1`: in the order of ids, as TextWorld lists them."""
    ordered = sorted(names, key=lambda name: (name.split()[0], -int(name.split()[1])))
    ones = [f"a {name}" for name in ordered]
    return ", and ".join(filter(None, (", ".join(ones[:-1]), ones[-1])))


def files() -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every file of the sample."""
    replays: dict[str, list[str]] = {}
    steps = 0
    for number, plan in enumerate(PLANS):
        house = House(plan)
        name = f"json_2.1.1/{plan.split}/{plan.folder}/trial_T20260101_{number:06d}_{100000 + number}/game.tw-pddl"
        game = {
            "pddl_domain": DOMAIN,
            "grammar": house.grammar(),
            "pddl_problem": house.problem(),
            "solvable": True,
            "walkthrough": list(plan.walkthrough),
        }
        yield f"{FOLDER}/{name}", (json.dumps(game) + "\n").encode()
        told = {
            "gamefile": name,
            "split": plan.split,
            "task_type": plan.folder.split("-")[0],
            "task": plan.words,
            "n_steps": len(plan.walkthrough),
            "won": True,
            "walkthrough": list(plan.walkthrough),
            "steps": house.replay(),
        }
        steps += len(plan.walkthrough)
        replays.setdefault(plan.split, []).append(json.dumps(told) + "\n")
    for split, lines in replays.items():
        yield f"{FOLDER}/walkthrough_replay_{split}.jsonl", "".join(lines).encode()
    holds = HOLDS.format(games=len(PLANS), steps=steps)
    yield f"{FOLDER}/README.md", readme("ALFWorld", holds, ORIGIN)
