"""Sessions as files: the layout of `layouts.py`, pictures beside it, a README that says what they are, and a census."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.benchmarks.m2ca.scenario.phrases import Told, Wording
from memharness.benchmarks.m2ca.scenario.planning import LONG, Plan, Played, play_session
from memharness.benchmarks.m2ca.scenario.story import Picture, Story
from memharness.benchmarks.m2ca.scenario.topics import TOPICS
from memharness.scenes import Check, checks, describe, png
from memharness.store import whole

SOURCE = "synthetic: made by the scenario engine of memharness; not M2CA-Bench"
README = """\
# Synthetic sessions, not M2CA-Bench

{sessions} sessions of {turns} turns, made by `memharness scenario make` with seed {seed} ({phrases} phrases,
{languages}; wording: {user}). Every picture was drawn and every sentence put together by a program; no file comes from
M2CA-Bench, which is not published. A result on these sessions says nothing about M2CA-Bench.

Difficulties, tags and negatives keep to the paper's definitions (arXiv:2607.08497). It publishes no shares of the
difficulties: 30 % easy, 30 % medium, 20 % hard and 20 % very hard were chosen here. Gold sets hold by construction:
each reference was resolved against all pictures of its session and kept only where it means the gold ones alone.

{census}
"""


@dataclass(frozen=True, slots=True)
class Making:
    """What is to be made.

    Attributes:
        language: `en`, `zh` or `both` (in turn).
        phrases: `dev` or `held-out`.
    """

    sessions: int
    turns: int
    seed: int
    language: str = "both"
    phrases: str = "dev"


@dataclass(frozen=True, slots=True)
class Made:
    """A session that was made: its id, language, story, turns and their words."""

    id: str
    language: str
    story: Story
    turns: Sequence[Played]
    words: Sequence[Told]


def sessions(making: Making) -> Iterator[Made]:
    """Sessions, each from a seed of its own, so that the first of a hundred are those of ten."""
    names = sorted(TOPICS)
    random.Random(f"topics:{making.seed}").shuffle(names)  # each is the first one's of some session, if there are 55
    for number in range(making.sessions):
        language = making.language if making.language != "both" else ("en", "zh")[number % 2]
        seed = f"{making.seed}:{making.phrases}:{making.turns}:{number}"
        story, turns = play_session(seed, making.turns, TOPICS[names[number % len(names)]])
        wording = Wording(language, making.phrases, random.Random(f"words:{seed}:{language}"))
        words = [wording.turn(played.plan) for played in turns]
        yield Made(f"made-{making.seed}-{making.phrases}-{number:04d}-{language}", language, story, turns, words)


def files(made: Made) -> Iterator[tuple[str, bytes]]:
    """The files of a session by path: its pictures, then its JSON."""
    digests = []
    for picture in made.story.pictures:
        data = png(picture.scene)
        digests.append(hashlib.sha256(data).hexdigest())
        yield _path(made, picture.index), data
    body = session_json(made, digests)
    yield f"sessions/{made.id}.json", (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()


def session_json(made: Made, digests: Sequence[str]) -> dict[str, Any]:
    """A session in the native layout.

    Args:
        made: the session.
        digests: SHA-256 of each picture, in order.
    """
    topics = [TOPICS[name] for picture in made.story.pictures for name in picture.topics]
    return {
        "session_id": made.id,
        "source": SOURCE,
        "lang": made.language,
        "domains": list(dict.fromkeys(topic.domain for topic in topics)),
        "topics": list(dict.fromkeys(topic.name for topic in topics)),
        "turns": [_turn(made, played, words) for played, words in zip(made.turns, made.words, strict=True)],
        "assets": [_asset(made, picture, digest) for picture, digest in zip(made.story.pictures, digests, strict=True)],
    }


def turn_checks(played: Played, story: Story) -> tuple[Check, ...]:
    """What the picture of an edit or a composite shows, and the one it is made from does not."""
    plan = played.plan
    if plan.change is None:
        return ()
    return checks(plan.change, [story.pictures[index].scene for index in plan.parents])


def census(found: Iterable[Made]) -> str:
    """How many turns there are of each kind, as lines of text."""
    found = list(found)
    turns = [played for made in found for played in made.turns]
    spans = ["none" if not one.gold else "0-1" if one.span < 2 else "2-7" if one.span < LONG else "8+" for one in turns]
    counts: Mapping[str, Counter[str]] = {
        "task": Counter(one.plan.task for one in turns),
        "difficulty": Counter(one.difficulty for one in turns),
        "pictures needed": Counter(str(len(one.gold)) for one in turns),
        "turns back": Counter(spans),
        "negatives": Counter(one.plan.negatives for one in turns),
        "tags": Counter(tag for one in turns for tag in one.tags),
        "called by": Counter(ref.form for one in turns for ref in one.plan.refs.values()),
        "language": Counter(made.language for made in found),
    }
    pictures = sum(len(made.story.pictures) for made in found)
    topics = {name for made in found for picture in made.story.pictures for name in picture.topics}
    domains = {TOPICS[name].domain for name in topics}
    about = f"{len(topics)} topics in {len(domains)} domains"
    lines = [f"{len(found)} sessions, {len(turns)} turns, {pictures} pictures, {about}"]
    for name, counted in counts.items():
        total = len(found) if name == "language" else len(turns)
        parts = (f"{word} {count} ({100 * count / max(total, 1):.0f} %)" for word, count in sorted(counted.items()))
        lines.append(f"{name}: {', '.join(parts) or 'none'}")
    return "\n".join(lines)


def readme(making: Making, counted: str, user: str) -> bytes:
    """What lies beside the sessions, for whoever finds the folder."""
    languages = {"en": "English", "zh": "Chinese", "both": "English and Chinese"}[making.language]
    listed = "\n".join(f"- {line}" for line in counted.splitlines())
    text = README.format(
        sessions=making.sessions, turns=making.turns, seed=making.seed, phrases=making.phrases, languages=languages,
        user=user, census=listed,
    )  # fmt: skip
    return text.encode()


def write(folder: Path, path: str, data: bytes) -> None:
    """Write one file of the output whole."""
    target = folder / path
    with whole(target) as file:
        file.write_bytes(data)


def _turn(made: Made, played: Played, words: Told) -> dict[str, Any]:
    plan = played.plan
    return {
        "turn": played.number,
        "user_text": words.text,
        "uploads": [] if played.uploaded is None else [_id(made, played.uploaded)],
        "task_type": plan.task,
        "gt_images": [_id(made, index) for index in sorted(played.gold)],
        "difficulty": played.difficulty,
        "tags": list(played.tags),
        "span_max": played.span,
        "negatives": plan.negatives,
        "confounders": [_id(made, index) for index in played.confounders],
        "output_asset": None if played.made is None else _id(made, played.made),
        "gt_answer": words.reply or None,
        "checks": [check.to_json() for check in turn_checks(played, made.story)],
        "refs": _forms(plan),
    }


def _forms(plan: Plan) -> list[str]:
    return [ref.form for ref in plan.refs.values()]


def _asset(made: Made, picture: Picture, digest: str) -> dict[str, Any]:
    return {
        "asset_id": _id(made, picture.index),
        "index": picture.index,
        "created_turn": picture.turn,
        "kind": picture.kind,
        "parent_ids": [_id(made, index) for index in picture.parents],
        "path": _path(made, picture.index),
        "sha256": digest,
        "caption": describe(picture.scene, made.language),
    }


def _id(made: Made, index: int) -> str:
    return f"{made.id}-{index:02d}"


def _path(made: Made, index: int) -> str:
    return f"images/{made.id}/{index:02d}.png"
