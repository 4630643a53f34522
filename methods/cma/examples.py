"""Training rows for CoRE and PAE from sessions and runs, and the rewards and turns of reinforcement learning.

    {"kind": "core", "id": "lake:5", "split": "train", "messages": [{"role": "system", "content": […]}, …],
     "completion": '{"images": [1]}', "target": {"images": [1]}, "gold": ["lake-01"], "difficulty": "medium", …}

Messages are those that the readers of a run get, word for word; pictures in them are paths.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memharness.benchmarks.m2ca.layouts import Asset as Published
from memharness.benchmarks.m2ca.layouts import Session, Turn
from memharness.episodic import Asset, Card
from memharness.episodic.words import tokens
from memharness.methods.cma.candidates import Candidate
from memharness.methods.cma.replies import NotInForm, first_object
from memharness.methods.cma.retriever_reader import line_of, retrieval_request
from memharness.methods.cma.writer import TAGS, ModelFreeWriter
from memharness.methods.cma.writer_reader import WORDS, card_request
from memharness.reader import Request
from memharness.types import DataError, Image, Text, UserError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Split = Literal["train", "test"]
Keep = Literal["all", "rl"]
Cards = Mapping[str, Mapping[int, Card]]
"""Cards by session and number of the picture."""

HARD = ("hard", "very_hard")
WEIGHT = 1.2
"""w_d of hard and very_hard turns (CMA, section 3.3); 1 for the others."""
SHARE = 0.1
"""Sessions held out: 30 of 300 (CMA, section 3.3)."""


# ------------------------------------------------------------------------------------------------------------- rewards


def jaccard(predicted: Collection[Any], gold: Collection[Any]) -> float:
    """|A ∩ B| / |A ∪ B| of two sets; two empty ones agree, so that a right abstention is rewarded."""
    one, other = set(predicted), set(gold)
    return len(one & other) / len(one | other) if one | other else 1.0


def jaccard_reward(predicted: Collection[Any] | None, gold: Collection[Any], difficulty: str = "") -> float:
    """CoRE's reward: Jaccard(R̂, R*) · w_d, with w_d = 1.2 for hard and very_hard turns, else 1.

    Args:
        predicted: R̂; None where the reply could not be read, which earns 0 even where nothing was needed.
        gold: R*.
        difficulty: of the turn.
    """
    if predicted is None:
        return 0.0
    return jaccard(predicted, gold) * (WEIGHT if difficulty in HARD else 1.0)


def card_reward(reply: str, predicted: Collection[Any] | None, gold: Collection[Any], weight: float = 1.0) -> float:
    """PAE's reward: Jaccard(R̂, R*) of a frozen CoRE that reads the card, minus the format loss.

    Args:
        reply: the card as the writer wrote it.
        predicted: what CoRE retrieved with it; None where its reply could not be read.
        gold: R*.
        weight: of the format loss, which the paper does not state.
    """
    return (0.0 if predicted is None else jaccard(predicted, gold)) - weight * format_loss(reply)


def format_loss(reply: str) -> float:
    """How far a card is out of form, in [0, 1]: 1 without the object; else the mean share that tags and words lack."""
    try:
        found = first_object(reply, "tags", "description")
    except NotInForm:
        return 1.0
    tags, description = found["tags"], found["description"]
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags) or not isinstance(description, str):
        return 1.0
    named = {tag.strip() for tag in tags if tag.strip()}
    lacking = (max(0.0, 1 - len(named) / TAGS), max(0.0, 1 - len(tokens(description)) / WORDS))
    return sum(lacking) / len(lacking)


# ---------------------------------------------------------------------------------------------------------------- rows


def split_sessions(sessions: Iterable[str], share: float = SHARE, seed: int = 0) -> dict[str, Split]:
    """Whole sessions to train and test, by a hash of their names, so that neither order nor number changes a draw much.

    Args:
        sessions: names.
        share: of the sessions that is held out, rounded; at least one session is trained on.
        seed: another draw.
    """
    names = sorted(set(sessions), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).hexdigest())
    held = min(round(share * len(names)), max(len(names) - 1, 0))
    return {name: "test" if place < held else "train" for place, name in enumerate(names)}


def for_rl(turn: Turn, predicted: Collection[int] | None, gold: Collection[int], asked: bool) -> list[str]:
    """Why a turn is among those that reinforcement learning takes: `error`, `hard`, `negative`; none if it is not.

    Args:
        turn: as the data state it.
        predicted: numbers the baseline retrieved; None where its reply could not be read.
        gold: numbers that are needed.
        asked: whether there is a baseline that was asked this turn.
    """
    why = ["error"] if asked and (predicted is None or set(predicted) != set(gold)) else []
    why += ["hard"] if turn.difficulty in HARD else []
    return why + (["negative"] if turn.negatives != "none" else [])


@dataclass(frozen=True)
class Export:
    """What rows are made of.

    Attributes:
        sessions: with their pictures on disk.
        splits: by session.
        cards: a run's, by session and number; pictures without one get a model-free card.
        predicted: a run's retrieval by `session:turn`; None where its reply could not be read.
        pixels: whether messages show pictures.
        keep: `rl` keeps the turns of `for_rl` alone.
    """

    sessions: Sequence[Session]
    splits: Mapping[str, Split]
    cards: Cards = field(default_factory=dict)
    predicted: Mapping[str, Collection[int] | None] = field(default_factory=dict)
    pixels: bool = True
    keep: Keep = "all"

    async def core(self) -> list[dict[str, Any]]:
        """A row a turn: the candidates it can choose from, and the ranks that it needs."""
        return [row for session in self.sessions for row in await self._core(session)]

    async def _core(self, session: Session) -> list[dict[str, Any]]:
        held = {name: await self._candidate(session, asset) for name, asset in session.assets.items()}
        rows = []
        for turn in session.turns:
            at_hand = [asset.id for asset in session.at_hand(turn)]
            rank = {name: place for place, name in enumerate(at_hand)}
            numbers = {session.assets[name].number for name in turn.gold}
            name = f"{session.id}:{turn.number}"
            why = for_rl(turn, self.predicted.get(name), numbers, name in self.predicted)
            if self.keep == "rl" and not why:
                continue
            shown = {name: self._image(session.assets[name]) for name in at_hand} if self.pixels else {}
            # The card of what the turn itself brings is written before its words are known, as in a run.
            held |= {one: await self._candidate(session, session.assets[one], "") for one in turn.uploads}
            lines = [line_of(place, held[one], shown.get(one)) for place, one in enumerate(at_hand)]
            held |= {one: await self._candidate(session, session.assets[one]) for one in turn.uploads}
            target = {"images": sorted(rank[one] for one in turn.gold)}
            rows.append(
                {"kind": "core", "id": name, "session": session.id, "split": self.splits[session.id]}
                | _messages(retrieval_request(turn.text, lines))
                | {"completion": json.dumps(target), "target": target, "gold": [*turn.gold], "candidates": at_hand}
                | {"difficulty": turn.difficulty, "tags": [*turn.tags], "negatives": turn.negatives, "rl": why}
            )
        return rows

    async def pae(self) -> list[dict[str, Any]]:
        """A row a picture: what its writer is asked; the card, where a run has one by a reader; who needs it later."""
        return [row for session in self.sessions for row in await self._pae(session)]

    async def _pae(self, session: Session) -> list[dict[str, Any]]:
        rows = []
        turns = {turn.number: turn for turn in session.turns}
        for asset in session.assets.values():
            needed = [f"{session.id}:{turn.number}" for turn in session.turns if asset.id in turn.gold]
            card = self.cards.get(session.id, {}).get(asset.number)
            target = _target(card)
            if self.keep == "rl" and not needed:
                continue  # no turn would tell a good card from a bad one
            words = turns[asset.created].text if asset.created in turns else ""
            facts = (await self._measured(session, asset)).facts
            request = card_request(self._image(asset) if self.pixels else None, facts, words)
            rows.append(
                {"kind": "pae", "id": asset.id, "session": session.id, "split": self.splits[session.id]}
                | _messages(request)
                | {"completion": json.dumps(target, ensure_ascii=False) if target else None, "target": target}
                | {"needed_by": needed}
            )
        return rows

    async def _candidate(self, session: Session, asset: Published, words: str | None = None) -> Candidate:
        card = self.cards.get(session.id, {}).get(asset.number) or await self._measured(session, asset, words)
        return Candidate(_asset(session, asset), card, None)

    async def _measured(self, session: Session, asset: Published, words: str | None = None) -> Card:
        """A model-free card: of pixels and the turn's words (or other `words`), never of the data's caption."""
        if words is None:
            words = next((turn.text for turn in session.turns if turn.number == asset.created), "")
        return await ModelFreeWriter().write(_asset(session, asset), _opened(asset), words, session.lang or "en")

    def _image(self, asset: Published) -> Image | None:
        return None if asset.path is None else Image(asset.source or asset.id, source=str(asset.path))


def _asset(session: Session, asset: Published) -> Asset:
    size = asset.path.stat().st_size if asset.path is not None and asset.path.is_file() else 0
    picture = _opened(asset)
    width, height = picture.size if picture is not None else (0, 0)
    return Asset(
        asset.id, session.id, asset.number, asset.created, asset.kind, asset.sha256 or None, "", width, height, size,  # type: ignore[arg-type]
        (), "", asset.source, "", True, None, False, False,
    )  # fmt: skip


def _opened(asset: Published) -> Picture | None:
    """The picture, if the data hold it.

    Raises:
        DataError: if what they hold is none.
    """
    if asset.path is None:
        return None
    from memharness.methods.cma.colours import opened

    if not asset.path.is_file():
        raise DataError(f"{asset.path}: no such file, though the session names it; complete the data")
    picture = opened(asset.path.read_bytes())
    if picture is None:
        raise DataError(f"{asset.path}: is no picture that can be read; fetch it again")
    return picture


def _target(card: Card | None) -> dict[str, Any] | None:
    """A card as a target, if it is in the form that is asked for; model-free ones are not."""
    if card is None or card.status != "ok" or len(card.tags) < TAGS or len(tokens(card.description)) < WORDS:
        return None
    return {"tags": [*card.tags], "description": card.description}


def _messages(request: Request) -> dict[str, Any]:
    """Messages in the form that trainers of vision-language models read, and the pictures in them by path."""
    messages, images = [], []
    for message in request.messages:
        content: list[dict[str, str]] = []
        for part in message.parts:
            if isinstance(part, Text):
                if content and content[-1]["type"] == "text":
                    content[-1]["text"] += part.text
                else:
                    content.append({"type": "text", "text": part.text})
            else:
                content.append({"type": "image", "image": part.source})
                images.append(part.source)
        messages.append({"role": message.role, "content": content})
    return {"messages": messages, "images": images}


# ---------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Ran:
    """What a finished run of `cma` gives: cards of one writer, retrievals by turn, and the data it ran on."""

    cards: Cards
    predicted: Mapping[str, Collection[int] | None]
    data: Path | None


def read_run(folder: Path, writer: str) -> Ran:
    """Cards and retrievals of a run.

    Args:
        folder: of the run.
        writer: whose cards: `model-free` or `reader`.

    Raises:
        UserError: if it is no finished run of `cma` on `m2ca`.
    """
    from memharness.episodic import EpisodicMemory

    def lines(name: str) -> Iterator[dict[str, Any]]:
        file = folder / name
        if not file.is_file():
            raise UserError(f"--run {folder}: no {name}; name the folder of a finished run")
        for line in file.read_text("utf-8").splitlines():
            yield json.loads(line)

    manifest = folder / "manifest.json"
    spec = json.loads(manifest.read_text("utf-8")).get("spec", {}) if manifest.is_file() else {}
    if spec.get("method") != "cma" or spec.get("bench") != "m2ca":
        raise UserError(f"--run {folder}: is no run of cma on m2ca; name the folder of one")
    native = {gold["question"]: gold["native_id"] for gold in lines("gold.jsonl")}
    predicted: dict[str, Collection[int] | None] = {}
    cards: dict[str, dict[int, Card]] = {}
    for record in lines("records.jsonl"):
        name = native.get(record["question"])
        if name is None or record["outcome"] != "ok":
            continue
        trace = record.get("trace", {})
        read = trace.get("retrieval", {}).get("outcome", "ok") in ("ok", "out_of_range")
        predicted[name] = _numbers(one[0] for one in record.get("evidence") or ()) if read else None
        memory = folder / "memory" / f"{record['context_index']:06d}" / "episodic"
        if record["context"] not in cards and (memory / "memory.sqlite").is_file():
            with EpisodicMemory.open(memory, create=False) as opened:
                found = opened.cards(record["context"], writer)
                cards[record["context"]] = {number: found[id] for id in found for number in _numbers([id])}
    data = spec.get("data")
    return Ran(cards, predicted, Path(data) if data else None)


def _numbers(items: Iterable[str]) -> list[int]:
    """The numbers of pictures by their item ids."""
    from memharness.benchmarks.m2ca.sets import PICTURE

    return [int(item.removeprefix(PICTURE)) for item in items if re.fullmatch(rf"{PICTURE}\d+", item)]


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows as JSON lines, whole or not at all; how many."""
    from memharness.store import whole

    texts = [json.dumps(row, ensure_ascii=False) for row in rows]
    with whole(file) as temporary:
        temporary.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return len(texts)
