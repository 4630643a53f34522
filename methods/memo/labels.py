"""Manager labels from reader outcomes (paper §3, Memory Manager Training): each unit under each action, others fixed.

Part of training: the quality of an answer is taken against gold here, for questions that are never asked in a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from memharness.config import Config, option
from memharness.identity import digest
from memharness.media import MediaStore
from memharness.methods.memo.builder import Builder, WorkingMemory
from memharness.methods.memo.extractor import Index, relevance
from memharness.methods.memo.samples import manager_row
from memharness.methods.memo.supervision import Example
from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Selection, Template, materialise
from memharness.pages import kept
from memharness.prompts import Renderer, answer_request
from memharness.reader import Reader, Request, Sampling
from memharness.scoring.text import abstains, hotpot_f1, locomo_score
from memharness.store import Appender, RequestCache, encode, read_lines, write_atomic
from memharness.types import Case, Part, ReaderError, Readout, Text, UserError

VERSION = 1  # raised when labels of equal inputs change
SHOWN = {Action.TEXT: "text", Action.IMAGE: "image", Action.DUAL: "dual", Action.DROP: "omitted"}
"""How the builder says that a unit is shown as its action wants."""
ORDER = tuple(Template)


class Labelling(Config):
    """How labels are made. The paper states none of the figures."""

    units: int = option(6, "Most units of an example, besides those with evidence.", unit="units", ge=1)
    hops: int = option(2, "Links that the choice of units follows, as in the deterministic extractor.", ge=0)
    window: int = option(0, "Characters of context around each key span.", unit="characters", ge=0)
    near: float = option(0.02, "Qualities this close are equal, and fewer tokens win.", ge=0, le=1)
    low: float = option(0.5, "Confidence where the best action is no better than the second.", ge=0, le=1)
    high: float = option(1.0, "Confidence where the best action is right and the second wrong.", ge=0, le=1)
    max_tokens: int = option(32, "Of an answer.", unit="tokens", ge=1)
    at_once: int = option(16, "Examples labelled beside each other.", unit="examples", how=True, ge=1)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a working memory: the answer's quality in [0, 1], and the tokens the memory took."""

    quality: float
    tokens: int


def quality(benchmark: str, case: Case, said: str) -> float:
    """How good an answer is, in [0, 1]: token F1 against the best gold answer, by the benchmark's own rule.

    Where the right answer is that memory holds none, declining is 1 and anything else 0.
    """
    if case.gold.abstain:
        return float(abstains(said))
    if benchmark == "locomo":
        figures = [locomo_score(int(case.gold.category), said, answer) for answer in case.gold.answers]
    else:
        figures = [hotpot_f1(said, answer).f1 for answer in case.gold.answers]
    return max(figures, default=0.0)


def ranked(trials: Mapping[Action, Trial], near: float) -> list[Action]:
    """Actions, best first: those near the best quality by tokens, then the others by quality; else in their order."""
    best = max(trial.quality for trial in trials.values())
    order = list(Action)

    def place(action: Action) -> tuple[float, int, int]:
        trial = trials[action]
        equal = trial.quality >= best - near
        return (-1.0 - best if equal else -trial.quality), trial.tokens, order.index(action)

    return sorted(trials, key=place)


def confidence(trials: Iterable[Trial], low: float, high: float) -> float:
    """Best minus second best quality, in [0, 1], rescaled to [low, high]; `high` where there is no second."""
    best = sorted((trial.quality for trial in trials), reverse=True)
    return low + (high - low) * (best[0] - best[1] if len(best) > 1 else 1.0)


def choose_units(example: Example, settings: Labelling) -> tuple[EvidenceUnit, ...]:
    """The units to label: those with evidence, and the spans that the deterministic extractor holds best, by words.

    They are ordered by its scores, so that a unit's place does not tell whether it holds evidence.
    """
    index = Index(example.records)
    question = example.case.question
    lexical = index.lexical(question)
    scores = index.linked(question, relevance(lexical, np.zeros_like(lexical)), settings.hops)
    wanted = {(source, span) for source, spans in example.found for span in spans}
    chosen: dict[tuple[str, tuple[int, int]], float] = dict.fromkeys(wanted, 0.0)
    for at in np.argsort(-scores, kind="stable").tolist():
        row, (start, end) = index.spans[at]
        source = index.records[row].id
        own = [span for name, span in wanted if name == source and span[0] < end and start < span[1]]
        for span in own:
            chosen[source, span] = max(chosen[source, span], float(scores[at]))
        if not own and len(chosen) < len(wanted) + settings.units and scores[at] > 0:
            chosen[source, (start, end)] = float(scores[at])
    place = {record.id: at for at, record in enumerate(example.records)}
    best = sorted(chosen, key=lambda one: (-chosen[one], place[one[0]], one[1]))
    selections = [Selection(source, (span,), chosen[source, span]) for source, span in best]
    units, _ = materialise(selections, {record.id: record for record in example.records}, settings.window)
    return units


class Labeller:
    """Labels the units of one benchmark's examples with one frozen reader, whose replies are kept by content."""

    def __init__(
        self,
        reader: Reader,
        cache: RequestCache,
        media: MediaStore,
        benchmark: str,
        prompt: str,
        budget: int,
        settings: Labelling,
    ) -> None:
        """Bind.

        Args:
            reader: started.
            cache: of replies.
            media: where pages are kept.
            benchmark: by whose rule answers are scored.
            prompt: the benchmark's answer prompt.
            budget: tokens of a working memory, by the reader's counter.
            settings: how.
        """
        self.settings = settings
        self.budget = budget
        self._reader = reader
        self._cache = cache
        self._media = media
        self._benchmark = benchmark
        self._prompt = prompt
        self._places = asyncio.Semaphore(max(1, reader.card.max_inflight))
        self._sees = "image" in reader.card.capabilities
        self.identity: dict[str, Any] = {
            "version": VERSION,
            "reader": reader.identity(),
            "benchmark": benchmark,
            "prompt": prompt,
            "budget": budget,
            "settings": settings.model_dump(exclude={"at_once"}),
        }

    @property
    def actions(self) -> tuple[Action, ...]:
        """What can be tried: a reader that sees no pictures cannot say what a page is worth."""
        return tuple(Action) if self._sees else (Action.TEXT, Action.DROP)

    async def row(self, example: Example) -> dict[str, Any] | None:
        """A labelled example, as a line of a file.

        None if it has no units, or if the reader is wrong whatever it is shown: such a question would teach to drop
        everything, and says nothing about evidence.

        Raises:
            UserError: the reader failed.
        """
        units = choose_units(example, self.settings)
        if not units:
            return None
        try:
            async with asyncio.TaskGroup() as group:
                asking = _Asking(self, example, units)
                tasks = {unit.id: group.create_task(asking.unit(unit)) for unit in units}
        except* ReaderError as errors:
            first = _first(errors)
            raise UserError(
                f"labels: question {example.case.question.id}: the reader failed ({first}); what it answered is kept, "
                "run the same command again"
            ) from first
        found = {name: task.result() for name, task in tasks.items()}
        if not any(trial.quality for label in found.values() for trial in label.trials.values()):
            return None
        plan = Plan(
            {name: label.action for name, label in found.items()},
            {name: round(label.confidence, 2) for name, label in found.items()},
        )
        plan = replace(plan, templates=await asking.templates(plan))
        plan = replace(plan, target_usage=asking.tokens(asking.builder.build(units, plan)))
        told = {"trials": {name: label.told() for name, label in found.items()}, "reader": self._reader.card.name}
        return manager_row(example, self.budget, units, plan, told)

    async def ask(self, case: Case, parts: tuple[Part, ...]) -> float:
        """The quality of the reader's answer to a question with these parts as its memory."""
        shown = Renderer({}, "pixels" if self._sees else "captions")
        sampling = Sampling(max_tokens=self.settings.max_tokens)
        request = answer_request(case.question, Readout((), parts), shown, sampling, self._prompt)
        key = digest({"reader": self._reader.identity(), "request": asdict(request)})
        reply, _ = await self._cache.reply(key, lambda: self._call(request))
        return quality(self._benchmark, case, str(reply["text"]))

    async def _call(self, request: Request) -> dict[str, Any]:
        async with self._places:
            return {"text": (await self._reader.generate(request)).text}

    def parts(self, memory: WorkingMemory) -> tuple[Part, ...]:
        """A working memory as the reader is shown it."""
        parts: list[Part] = [Text(memory.text)] if memory.text else []
        if memory.layout is not None:
            page = kept(memory.layout)
            parts.append(self._media.keep(page.png, f"page {page.sha256[:12]}", "memo: page"))
        return tuple(parts)

    def builder(self, example: Example) -> Builder:
        """The builder of an example's working memories."""
        return Builder(example.records, (self._reader.counter,), self.budget, pictures=self._sees)

    def tokens(self, memory: WorkingMemory) -> int:
        """What a working memory takes by the reader's counter."""
        counter, page = self._reader.counter, memory.layout
        text = counter.text(memory.text) if memory.text else 0
        return text + (counter.image(page.width, page.height) if page else 0)


@dataclass(frozen=True, slots=True)
class Label:
    """A unit's label: the action, its confidence, what came of each action that was tried, and what the checks said."""

    action: Action
    confidence: float
    trials: Mapping[Action, Trial]
    refused: tuple[Action, ...]

    def told(self) -> dict[str, Any]:
        """As JSON: [quality, tokens] by action, and actions whose check failed."""
        trials = {action.value: [round(one.quality, 4), one.tokens] for action, one in self.trials.items()}
        return trials | ({"refused": [action.value for action in self.refused]} if self.refused else {})


class _Asking:
    """The trials of one example."""

    def __init__(self, labeller: Labeller, example: Example, units: Sequence[EvidenceUnit]) -> None:
        self._labeller = labeller
        self._case = example.case
        self.units = units
        self.builder = labeller.builder(example)
        self.tokens: Callable[[WorkingMemory], int] = labeller.tokens

    def others(self, unit: EvidenceUnit) -> dict[str, Action]:
        """What the other units keep: text, best first, as many as fit beside this unit as text; the rest is dropped."""
        everything = dict.fromkeys((one.id for one in self.units), Action.TEXT)
        shown = self.builder.build(self.units, Plan(everything, {unit.id: 1.0})).shown
        return {name: Action.TEXT if how == SHOWN[Action.TEXT] else Action.DROP for name, how in shown.items()}

    async def unit(self, unit: EvidenceUnit) -> Label:
        """A unit's label: of the candidates within the budget the best that its check, if it needs one, confirms."""
        settings = self._labeller.settings
        others = self.others(unit)
        tried = {action: await self.trial({**others, unit.id: action}) for action in self._labeller.actions}
        trials = {action: trial for action, trial in tried.items() if trial is not None}
        refused: list[Action] = []
        for action in ranked(trials, settings.near) if trials else ():
            if await self._confirmed(unit, action):
                held = [trial for other, trial in trials.items() if other not in refused]
                return Label(action, confidence(held, settings.low, settings.high), trials, tuple(refused))
            refused.append(action)
        return Label(Action.DROP, settings.low, trials, tuple(refused))  # it helps, and the budget has no place for it

    async def trial(self, actions: Mapping[str, Action], templates: tuple[Template, ...] = ORDER) -> Trial | None:
        """What comes of a plan; None where the budget does not hold it as planned."""
        memory = self.builder.build(self.units, Plan(dict(actions), templates=templates))
        if any(memory.shown[name] != SHOWN[action] for name, action in actions.items()):
            return None
        return Trial(await self._labeller.ask(self._case, self._labeller.parts(memory)), self._labeller.tokens(memory))

    async def _confirmed(self, unit: EvidenceUnit, action: Action) -> bool:
        """The extra check of `image` and `drop`, with the unit alone, where other units cannot hide what it is worth.

        `image` needs that the reader answers from the unit's page as well as from its text; `drop` that the unit's text
        answers no better than no memory at all.
        """
        if action not in (Action.IMAGE, Action.DROP):
            return True
        alone = {one.id: Action.DROP for one in self.units}
        text = await self.trial({**alone, unit.id: Action.TEXT})
        if text is None:  # not even alone does it fit as text
            return True
        other = await self.trial({**alone, unit.id: action})
        if other is None:
            return False
        near = self._labeller.settings.near
        return other.quality >= text.quality - near

    async def templates(self, plan: Plan) -> tuple[Template, ...]:
        """Templates by quality of the answer from the page in each, then fewer tokens; as they are without a page."""
        if not any(action in (Action.IMAGE, Action.DUAL) for action in plan.actions.values()):
            return ORDER
        tried: dict[Template, Trial] = {}
        for template in ORDER:
            memory = self.builder.build(self.units, Plan(plan.actions, plan.confidence, templates=(template,)))
            if memory.layout is not None:
                said = await self._labeller.ask(self._case, self._labeller.parts(memory))
                tried[template] = Trial(said, self._labeller.tokens(memory))
        best = sorted(tried, key=lambda one: (-tried[one].quality, tried[one].tokens, ORDER.index(one)))
        return (*best, *(template for template in ORDER if template not in tried))


async def label(
    labeller: Labeller, examples: Sequence[Example], file: Path, told: Callable[[int], None] = lambda n: None
) -> list[dict[str, Any]]:
    """Label examples into a file of JSON lines, in their order; what the file has of them already is not made again.

    A finished example is a line at once, and every reply is in the cache at once: a kill loses what is in flight.

    Args:
        labeller: with its reader started.
        examples: to label.
        file: of labels; lines made otherwise (other reader, settings or units) are replaced.
        told: is told how many are done.
    """
    keys = [_key(labeller, example) for example in examples]
    known = {line.get("key"): line for _, line in read_lines(file, [])} if file.is_file() else {}
    if file.is_file():  # a torn last line must not be continued
        write_atomic(file, "".join(f"{encode(line)}\n" for line in known.values()))
    out = Appender(file)
    limit = asyncio.Semaphore(labeller.settings.at_once)
    done = 0

    async def one(key: str, example: Example) -> None:
        nonlocal done
        async with limit:
            if key not in known:
                row = await labeller.row(example)
                known[key] = {"key": key, **(row or {"units": []})}
                out.add(known[key])
        done += 1
        told(done)

    try:
        async with asyncio.TaskGroup() as group:
            for key, example in zip(keys, examples, strict=True):
                group.create_task(one(key, example))
    except* UserError as errors:
        raise _first(errors) from None
    finally:
        out.close()
    rows = [known[key] for key in dict.fromkeys(keys) if known[key]["units"]]
    write_atomic(file, "".join(f"{encode(row)}\n" for row in rows))
    return rows


def _key(labeller: Labeller, example: Example) -> str:
    """What a label depends on, by content."""
    gold = example.case.gold
    asked = [example.case.question, example.records, example.found, gold.answers, gold.abstain, gold.category]
    return digest([labeller.identity, asked])


def _first(errors: BaseExceptionGroup[Any]) -> Exception:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error
