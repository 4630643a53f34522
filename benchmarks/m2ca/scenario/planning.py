"""What happens in a session: each turn's task, the pictures it needs, and what comes of it, before any words.

A session is dealt a hand of acts (see `HANDS`), which fixes its difficulties; each act is then made to fit the story so
far, and must come out as hard as the hand says. A hand that cannot be played is dealt again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import TypeAlias

from memharness.benchmarks.m2ca.scenario.references import AMBIGUOUS, Ref, plurals, references, resolve
from memharness.benchmarks.m2ca.scenario.story import Picture, Story
from memharness.benchmarks.m2ca.scenario.topics import TOPICS, Topic
from memharness.identity import opaque_id
from memharness.scenes import Change, Scene, Thing, apply
from memharness.scenes.vocabulary import COLOURS, LAYOUTS, LIGHTS, MATERIALS, PLACES, SIZES

DIFFICULTIES = ("easy", "medium", "hard", "very_hard")
SHARES = (0.3, 0.3, 0.2, 0.2)  # chosen: the paper defines the four and publishes no shares
HANDS: Mapping[str, Sequence[str]] = {  # acts by difficulty; a session takes from the front, round and round
    "easy": ("first", "edit_last", "chat_semantic", "understand_last", "edit_last", "easy_any"),
    "medium": ("switch", "edit_near", "structural", "switch", "understand_near", "medium_any"),
    "hard": ("edit_far", "understand_far", "edit_far", "hard_any"),
    "very_hard": ("composite", "compare", "composite", "ambiguous"),
}
ANY = {
    "easy_any": ("edit_last", "understand_last", "chat_like"),
    "medium_any": ("upload", "edit_near", "upload"),
    "hard_any": ("edit_far", "understand_far"),
    "composite": ("composite_thing", "composite_merge", "composite_all", "composite_upload", "composite_thing"),
    "compare": ("compare", "compare_all", "share", "compare"),
    "ambiguous": ("edit_ambiguous", "understand_ambiguous", "edit_ambiguous"),
}
LONG = 8  # turns back from which a callback counts as long (paper, the scenarios' constraint)
CALLBACKS = 3  # such callbacks, at least, in a session of twenty turns; fewer in a shorter one
WEIGHTS = {"look": 7.0, "topic_nth": 1.5, "nth": 1.0, "previous": 2.0, "same": 5.0, "upload": 5.0, "composed": 5.0}
LOOKS = 0.8  # how often a picture is called by what it shows, where one of those that would do can be
AHEAD = 4  # acts of the hand that may be played next: the first of them that fits is
_TRIES = 400  # hands dealt before a session is given up
_DRAWS = 40  # ways tried to play one act


@dataclass(frozen=True, slots=True)
class Plan:
    """A turn before its words.

    Attributes:
        act: the sentence that is due: `edit.ref`, `generate.switch` and so on, as in the phrase files.
        task: as in the data's layout.
        refs: how the pictures it needs are called, by the sentence's slot.
        about: what else the sentence says, by slot: names of the vocabulary, things, topics.
        change: that is asked for; of the first parent.
        parents: of the picture it makes, the one that is changed first.
        makes: the picture that comes of it; None for words.
        upload: the picture the user brings.
        topics: of the picture it makes or brings.
        answer: what is asked, for turns that are answered in words: a field and the name that is right.
        chosen: the topic that begins with it.
        likes: whether the user says that the last picture pleases.
    """

    act: str
    task: str
    refs: Mapping[str, Ref] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)
    change: Change | None = None
    parents: tuple[int, ...] = ()
    makes: Scene | None = None
    upload: Scene | None = None
    topics: tuple[str, ...] = ()
    answer: tuple[str, object] | None = None
    negatives: str = "none"
    chosen: Topic | None = None
    likes: bool = False


@dataclass(frozen=True, slots=True)
class Played:
    """A plan that was played: what it needs, by construction, and how hard that is."""

    plan: Plan
    number: int
    gold: frozenset[int]
    difficulty: str
    tags: tuple[str, ...]
    span: int
    confounders: tuple[int, ...]
    uploaded: int | None
    made: int | None


Act: TypeAlias = Callable[["Table"], Plan | None]


class Unplayable(Exception):
    """A hand cannot be played to its end."""


def play_session(seed: str, turns: int, first: Topic) -> tuple[Story, Sequence[Played]]:
    """A session's story and turns.

    Args:
        seed: decides everything.
        turns: how many, at least 1.
        first: the topic it begins with.

    Raises:
        Unplayable: if no hand could be played.
    """
    for attempt in range(_TRIES):
        table = Table(random.Random(f"{seed}:{attempt}"), seed, turns, first)
        try:
            return table.story, table.play()
        except Unplayable:
            continue
    raise Unplayable(f"no session of {turns} turns could be made from seed {seed}")


def quotas(turns: int) -> dict[str, int]:
    """Turns of each difficulty: the shares, rounded so that they add up, the easier first."""
    counts = {name: int(share * turns) for name, share in zip(DIFFICULTIES, SHARES, strict=True)}
    for name in DIFFICULTIES[: turns - sum(counts.values())]:
        counts[name] += 1
    return counts


class Table:
    """One attempt at a session."""

    def __init__(self, dice: random.Random, seed: str, turns: int, first: Topic) -> None:
        """Begin an empty story."""
        self.dice = dice
        self.seed = seed
        self.turns = turns
        self.first = first
        self.story = Story()
        self.number = 0

    def play(self) -> Sequence[Played]:
        """All turns.

        Raises:
            Unplayable: none of the next acts fits, or the session lacks what each must have.
        """
        hand, played = list(self._deal()), []
        while hand:
            self.number += 1
            for place, (act, difficulty) in enumerate(hand[:AHEAD]):
                if (turn := self._turn(act, difficulty)) is not None:
                    played.append(turn)
                    del hand[place]
                    break
            else:
                raise Unplayable(f"turn {self.number}: none of {', '.join(act for act, _ in hand[:AHEAD])}")
        callbacks = sum(one.span >= LONG for one in played)
        if callbacks < CALLBACKS * max(0, self.turns - LONG) // (20 - LONG):
            raise Unplayable("too few long callbacks")
        return played

    def _deal(self) -> Sequence[tuple[str, str]]:
        """The acts in order: what needs a long story comes late, and a second topic before the first callback."""
        hand = [(act, name) for name, count in quotas(self.turns).items() for act in islice(cycle(HANDS[name]), count)]
        opening, rest = hand[0], [("easy_any" if act == "first" else act, name) for act, name in hand[1:]]
        early = {"edit_last": 1.0, "switch": 2.0, "understand_last": 3.0, "edit_near": 3.5, "structural": 5.0}
        late = {"easy": 5.0, "medium": 6.0, "hard": 11.0, "very_hard": 9.0}
        spread = 0.3 * self.turns
        places = []
        seen: dict[str, int] = {}
        for act, name in rest:
            repeat = seen[act] = seen.get(act, -1) + 1
            start = early.get(act, late[name]) + 4.5 * repeat * (name in ("easy", "medium"))
            places.append((start * self.turns / 20 + self.dice.uniform(0, spread), act, name))
        return [opening, *((act, name) for _, act, name in sorted(places))]

    def _turn(self, act: str, difficulty: str) -> Played | None:
        """Play an act, if it fits the story and comes out as hard as it should."""
        names = list(ANY.get(act, (act,)))
        self.dice.shuffle(names)
        for name in dict.fromkeys(names):
            for _ in range(_DRAWS):
                plan = _ACTS[name](self)
                if plan is None:
                    break
                played = self._judge(plan)
                if played is not None and played.difficulty == difficulty:
                    self._happen(played)
                    return played
        return None

    def _judge(self, plan: Plan) -> Played | None:
        """What a plan needs and how hard it is; None if a reference is open, or the picture is there already."""
        story = self.story
        shown = self._with_upload(plan)
        sets = [resolve(ref, shown) for ref in plan.refs.values()]
        if any(one is None for one in sets):
            return None
        needed = frozenset().union(*(one for one in sets if one is not None))
        if len(needed) < sum(len(one) for one in sets if one is not None):
            return None  # two names for one picture
        uploaded = len(story.pictures) if plan.upload is not None else None
        gold = needed | ({uploaded} if uploaded is not None else set())
        if plan.makes is not None and any(plan.makes == picture.scene for picture in shown.pictures):
            return None
        span = max((self.number - shown.pictures[index].turn for index in gold), default=0)
        cross = any(story.topic not in story.pictures[index].topics for index in needed)
        switch = plan.chosen is not None and self.number > 1
        near = tuple(shown.near(gold))
        easy = bool(plan.refs) and all(ref.form == "last" for ref in plan.refs.values())
        if len(gold) > 1 or any(ref.form in AMBIGUOUS for ref in plan.refs.values()):
            difficulty = "very_hard"
        elif needed and (cross or span >= LONG):
            difficulty = "hard"
        elif switch or plan.negatives == "structural" or (near and not easy):
            difficulty = "medium"
        else:
            difficulty = "easy"
        tags = ["topic_switch"] if difficulty == "medium" and switch else []
        if difficulty in ("hard", "very_hard"):
            tags += ["cross_topic"] * cross + ["long_term_mem"] * (span >= LONG)
        made = None if plan.makes is None else len(shown.pictures)
        return Played(plan, self.number, gold, difficulty, tuple(tags), span, near[:3], uploaded, made)

    def _with_upload(self, plan: Plan) -> Story:
        if plan.upload is None:
            return self.story
        brought = Picture(len(self.story.pictures), self.number, "upload", plan.upload, plan.topics)
        return replace(self.story, pictures=[*self.story.pictures, brought])

    def _happen(self, played: Played) -> None:
        """Let the story go on by a turn."""
        plan, story = played.plan, self.story
        if plan.chosen is not None and plan.chosen not in story.topics:
            story.topics.append(plan.chosen)
        story.pictures[:] = self._with_upload(plan).pictures
        if plan.makes is not None:
            kind = {"generate": "generated", "edit": "edited", "composite": "composed"}[plan.task]
            change = plan.change if plan.task == "edit" else None
            index = len(story.pictures)
            made = Picture(index, played.number, kind, plan.makes, plan.topics, plan.parents, change)
            story.pictures.append(made)
            story.focus = index
        elif plan.likes:
            story.liked.append(len(story.pictures) - 1)
        elif plan.task == "pure_chat":
            story.focus = None
        else:
            story.focus = next(iter(played.gold)) if len(played.gold) == 1 else None
        if plan.topics:
            story.topic = plan.topics[0]

    # ------------------------------------------------------------------------------------------- parts of plans

    def pick(self, indices: Iterable[int], forms: Sequence[str] = tuple(WEIGHTS)) -> tuple[int, Ref] | None:
        """A picture among some, and a way to call it among some forms."""
        order = list(indices)
        self.dice.shuffle(order)
        seen = "look" in forms and self.dice.random() < LOOKS
        for wanted, index in [(("look",), index) for index in order if seen] + [
            (tuple(forms), index) for index in order
        ]:
            refs = [ref for ref in references(index, self.story) if ref.form in wanted]
            if refs:
                by_form: dict[str, list[Ref]] = {}
                for ref in refs:
                    by_form.setdefault(ref.form, []).append(ref)
                (form,) = self.dice.choices(list(by_form), [WEIGHTS.get(name, 1.0) for name in by_form])
                return index, self.dice.choice(by_form[form])
        return None

    def new_scene(self, topic: Topic) -> Scene:
        """A scene of a topic: two or three of its things, each of its own colour."""
        kinds = self.dice.sample(topic.kinds, self.dice.choice((2, 2, 3)))
        colours = self.dice.sample(tuple(COLOURS), len(kinds))
        things = tuple(
            Thing(kind, colour, self.dice.choice(tuple(MATERIALS)) if self.dice.random() < 0.35 else "plain", place)
            for kind, colour, place in zip(kinds, colours, PLACES, strict=False)
        )
        light = self.dice.choice(("dusk", "night")) if self.dice.random() < 0.15 else "day"
        variant = int(opaque_id(self.seed, topic.name), 16) % 2**48  # one view of a setting for a session, and no other
        return Scene(things, topic.background, light, variant=variant)

    def new_topic(self) -> Topic | None:
        """A topic that has not come up, in a setting that has not either."""
        used = {topic.background for topic in self.story.topics}
        left = [topic for topic in TOPICS.values() if topic.background not in used]
        return self.dice.choice(left) if left else None

    def new_change(self, picture: Picture) -> Change:
        """A change that makes a near-duplicate more often than not."""
        scene, topic = picture.scene, TOPICS[picture.topics[0]]
        operations = ["recolour"] * 5 + ["relight"] * 3 + ["rematerial"] * 3 + ["add"] * 2 + ["resize", "view", "move"]
        operations += ["remove"] * (len(scene.things) > 2) + ["text"] * (not scene.text)
        operation = self.dice.choice(operations)
        thing = self.dice.choice(scene.things)
        whole = {"relight": (LIGHTS, scene.light), "view": (LAYOUTS, scene.layout)}
        of_thing = {
            "recolour": (COLOURS, {one.colour for one in scene.things}),
            "rematerial": (MATERIALS, {thing.material, "plain"}),
            "resize": (SIZES, {thing.size, "medium"}),
        }
        if operation in whole:
            names, old = whole[operation]
            return Change(operation, value=self._other(names, {old}))  # type: ignore[arg-type]
        if operation in of_thing:
            others, used = of_thing[operation]
            return Change(operation, thing.kind, thing.colour, self._other(others, used))  # type: ignore[arg-type]
        if operation == "move":
            return Change("move", thing.kind, thing.colour, self.dice.choice(scene.free()))
        if operation == "remove":
            return Change("remove", thing.kind, thing.colour)
        if operation == "text":
            return Change(
                "text", value=self.dice.choice(("OPEN", "NEW", "HELLO", "WELCOME", "TODAY", "A7", "24", "SALE"))
            )
        kinds = [kind for kind in topic.kinds if kind not in {one.kind for one in scene.things}]
        colour = self._other(COLOURS, {one.colour for one in scene.things})
        kind = self.dice.choice(kinds or list(topic.kinds))
        return Change("add", thing=Thing(kind, colour, place=self.dice.choice(scene.free())))

    def _other(self, names: Iterable[str], used: set[str]) -> str:
        return self.dice.choice([name for name in names if name not in used])

    def near(self) -> Sequence[int]:
        """Pictures of the present topic, not the last, not long ago."""
        pictures = self.story.pictures
        return [
            one.index
            for one in pictures[:-1]
            if self.story.topic in one.topics and self.number - one.turn < LONG and len(one.topics) == 1
        ]

    def far(self) -> Sequence[int]:
        """Pictures of long ago, or where there are none of another topic."""
        pictures = self.story.pictures
        old = [one.index for one in pictures if self.number - one.turn >= LONG]
        other = [one.index for one in pictures if self.story.topic not in one.topics]
        return old if old and self.dice.random() < 0.75 else other


# ---------------------------------------------------------------------------------------------------------- acts


def _generate(act: str, negatives: str = "none") -> Act:
    def plan(table: Table) -> Plan | None:
        again = act == "structural" and table.dice.random() < 0.4
        topic = table.first if act == "first" else table.dice.choice(table.story.topics) if again else table.new_topic()
        if topic is None:
            return None
        about: dict[str, object] = {"topic": topic, "scene": (scene := table.new_scene(topic))}
        if act == "structural":
            about |= _mention(table)
        chosen = None if topic in table.story.topics else topic
        return Plan(
            f"generate.{act}",
            "generate",
            about=about,
            makes=scene,
            topics=(topic.name,),
            negatives=negatives,
            chosen=chosen,
        )

    return plan


def _mention(table: Table) -> dict[str, object]:
    """Something of earlier pictures, to be spoken of without being needed."""
    picture = table.dice.choice(table.story.pictures)
    return {"old": TOPICS[picture.topics[0]], "mention": table.dice.choice(picture.scene.things)}


def _chat_semantic(table: Table) -> Plan | None:
    if not table.story.pictures:
        return None
    return Plan("chat.semantic", "pure_chat", about=_mention(table), negatives="semantic")


def _chat_like(table: Table) -> Plan | None:
    story = table.story
    if story.focus != len(story.pictures) - 1 or story.liked:
        return None
    thing = table.dice.choice(story.pictures[-1].scene.things)
    about = {"kind": thing.kind, "colour": thing.colour}
    return Plan("chat.like", "pure_chat", about=about, negatives="semantic", likes=True)


def _edit(choose: Callable[[Table], tuple[int, Ref] | None], act: str) -> Act:
    def plan(table: Table) -> Plan | None:
        found = choose(table)
        if found is None:
            return None
        picture = table.story.pictures[found[0]]
        if len(picture.scene.things) > 7 or not picture.scene.things:
            return None
        change = table.new_change(picture)
        return Plan(
            f"edit.{act}",
            "edit",
            {"ref": found[1]},
            {"scene": picture.scene},
            change,
            (picture.index,),
            apply(change, (picture.scene,)),
            topics=picture.topics,
        )

    return plan


def _understand(choose: Callable[[Table], tuple[int, Ref] | None], act: str) -> Act:
    def plan(table: Table) -> Plan | None:
        found = choose(table)
        if found is None:
            return None
        picture = table.story.pictures[found[0]]
        asked = _question(table, picture.scene, found[1])
        if asked is None:
            return None
        about, answer = asked
        return Plan(f"understand.{act}", "understand", {"ref": found[1]}, about, topics=picture.topics, answer=answer)

    return plan


def _question(table: Table, scene: Scene, ref: Ref | None) -> tuple[dict[str, object], tuple[str, object]] | None:
    """A question about a scene that its reference does not answer."""
    said = {ref.kind: ref.colour or ref.form == "contrast"} if ref else {}
    single = [thing for thing in scene.things if sum(one.kind == thing.kind for one in scene.things) == 1]
    fields = ["count"] + ["light"] * (scene.light in ("day", "dusk", "night") and not (ref and ref.light))
    about = [("colour", thing) for thing in single if not said.get(thing.kind)]
    about += [("place", thing) for thing in single]
    about += [
        ("material", thing)
        for thing in single
        if thing.material in ("wood", "metal", "glass", "stone", "fabric") and not (ref and ref.material)
    ]
    if about and table.dice.random() < 0.75:
        name, thing = table.dice.choice(about)
        return {"question": name, "kind": thing.kind}, (name, getattr(thing, name))
    name = table.dice.choice(fields)
    return {"question": name}, (name, scene.light if name == "light" else len(scene.things))


def _upload(table: Table) -> Plan | None:
    topic = table.new_topic()
    if topic is None or any(picture.kind == "upload" for picture in table.story.pictures):
        return None
    scene = table.new_scene(topic)
    picture = Picture(len(table.story.pictures), table.number, "upload", scene, (topic.name,))
    if table.dice.random() < 0.4:
        asked = _question(table, scene, None)
        if asked is not None:
            return Plan(
                "understand.upload", "understand", about=asked[0], upload=scene, topics=picture.topics, answer=asked[1],
                chosen=topic,
            )  # fmt: skip
    change = table.new_change(picture)
    return Plan(
        "edit.upload",
        "edit",
        about={"topic": topic, "scene": scene},
        change=change,
        parents=(picture.index,),
        makes=apply(change, (scene,)),
        upload=scene,
        topics=picture.topics,
        chosen=topic,
    )


def _two(table: Table) -> tuple[Picture, Ref, Picture, Ref] | None:
    """Two pictures and ways to call them: often the last one is the first of them, seldom are both of one topic."""
    pictures = table.story.pictures
    forms = ("last", *WEIGHTS)
    one = table.pick([len(pictures) - 1] if table.dice.random() < 0.35 else range(len(pictures)), forms)
    if one is None:
        return None
    others = [picture.index for picture in pictures if picture.index != one[0]]
    two = table.pick(others)
    return None if two is None else (pictures[one[0]], one[1], pictures[two[0]], two[1])


def _composite(act: str) -> Act:
    def plan(table: Table) -> Plan | None:
        found = _two(table)
        if found is None:
            return None
        one, one_ref, two, two_ref = found
        topics = tuple(dict.fromkeys((*one.topics, *two.topics)))
        parents = (one.index, two.index)
        if act == "merge":
            if one.topics == two.topics or len(one.scene.things) + len(two.scene.things) > 7:
                return None
            change = Change("fuse")
            about: dict[str, object] = {}
        else:
            kinds = {thing.kind for thing in one.scene.things}
            things = [thing for thing in two.scene.things if thing.kind not in kinds]
            if not things or len(one.scene.things) > 6:
                return None
            thing = table.dice.choice(things)
            change, about = Change("fuse", thing.kind, thing.colour), {"thing": thing, "scene": two.scene}
        return Plan(
            f"composite.{act}", "composite", {"a": one_ref, "b": two_ref}, about, change, parents,
            apply(change, (one.scene, two.scene)), topics=topics,
        )  # fmt: skip

    return plan


def _composite_all(table: Table) -> Plan | None:
    many = _many(table)
    if many is None:
        return None
    ref, pictures = many
    source = tuple(picture.scene for picture in pictures)
    topics = tuple(dict.fromkeys(topic for picture in pictures for topic in picture.topics))
    if len(topics) < 2 or sum(len(scene.things) for scene in source) > 8:
        return None
    change = Change("fuse")
    parents = tuple(picture.index for picture in pictures)
    return Plan(
        "composite.all",
        "composite",
        {"all": ref},
        {},
        change,
        parents,
        apply(change, source),
        topics=topics,
    )


def _composite_upload(table: Table) -> Plan | None:
    topic, found = table.new_topic(), table.pick(range(len(table.story.pictures)))
    if topic is None or found is None or any(picture.kind == "upload" for picture in table.story.pictures):
        return None
    scene, other = table.new_scene(topic), table.story.pictures[found[0]]
    things = [thing for thing in other.scene.things if thing.kind not in {one.kind for one in scene.things}]
    if not things:
        return None
    thing = table.dice.choice(things)
    parents = (len(table.story.pictures), other.index)
    change = Change("fuse", thing.kind, thing.colour)
    return Plan(
        "composite.upload", "composite", {"b": found[1]}, {"topic": topic, "thing": thing, "scene": other.scene},
        change, parents, apply(change, (scene, other.scene)), upload=scene, topics=(topic.name, *other.topics),
        chosen=topic,
    )  # fmt: skip


def _many(table: Table) -> tuple[Ref, Sequence[Picture]] | None:
    by_form: dict[str, list[Ref]] = {}
    for ref in plurals(table.story):
        by_form.setdefault(ref.form, []).append(ref)
    if not by_form:
        return None
    ref = table.dice.choice(by_form[table.dice.choice(list(by_form))])
    found = resolve(ref, table.story) or frozenset()
    return ref, [table.story.pictures[index] for index in sorted(found)]


def _compare(table: Table) -> Plan | None:
    found = _two(table)
    if found is None:
        return None
    one, one_ref, two, two_ref = found
    if one.topics != two.topics or one.scene == two.scene:
        return None
    refs = {"a": one_ref, "b": two_ref}
    return Plan(
        "understand.compare", "understand", refs, {}, topics=one.topics, answer=("compare", (one.scene, two.scene))
    )


def _compare_all(table: Table) -> Plan | None:
    many = _many(table)
    if many is None or len(many[1]) != 2 or many[1][0].topics != many[1][1].topics:
        return None
    one, two = many[1]
    answer = ("compare", (one.scene, two.scene))
    return Plan("understand.compare_all", "understand", {"all": many[0]}, {}, topics=one.topics, answer=answer)


def _share(table: Table) -> Plan | None:
    found = _two(table)
    if found is None:
        return None
    one, one_ref, two, two_ref = found
    kinds = [thing.kind for picture in (one, two) for thing in picture.scene.things]
    kind = table.dice.choice(kinds)
    if kind in (one_ref.kind, two_ref.kind):
        return None
    both = all(any(thing.kind == kind for thing in picture.scene.things) for picture in (one, two))
    refs = {"a": one_ref, "b": two_ref}
    return Plan("understand.share", "understand", refs, {"kind": kind}, topics=one.topics, answer=("share", both))


def _last(table: Table) -> tuple[int, Ref] | None:
    last = len(table.story.pictures) - 1
    return (last, Ref("last")) if last >= 0 and table.story.focus == last else None


def _near(table: Table) -> tuple[int, Ref] | None:
    return table.pick(table.near())


def _far(table: Table) -> tuple[int, Ref] | None:
    return table.pick(table.far())


def _ambiguous(table: Table) -> tuple[int, Ref] | None:
    return table.pick(range(len(table.story.pictures)), AMBIGUOUS)


_ACTS: Mapping[str, Act] = {
    "first": _generate("first"),
    "switch": _generate("switch"),
    "structural": _generate("structural", "structural"),
    "chat_semantic": _chat_semantic,
    "chat_like": _chat_like,
    "edit_last": _edit(_last, "last"),
    "edit_near": _edit(_near, "ref"),
    "edit_far": _edit(_far, "ref"),
    "edit_ambiguous": _edit(_ambiguous, "ref"),
    "understand_last": _understand(_last, "last"),
    "understand_near": _understand(_near, "ref"),
    "understand_far": _understand(_far, "ref"),
    "understand_ambiguous": _understand(_ambiguous, "ref"),
    "upload": _upload,
    "composite_thing": _composite("thing"),
    "composite_merge": _composite("merge"),
    "composite_all": _composite_all,
    "composite_upload": _composite_upload,
    "compare": _compare,
    "compare_all": _compare_all,
    "share": _share,
}
