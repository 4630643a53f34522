"""One run written out for the page: an index that is loaded at once, and shards that are loaded when they are shown."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.prompts import Renderer
from memharness.registry import short_name
from memharness.report.tables import conditions
from memharness.report.viewer.links import Known, Link, State, chain, first_break, named
from memharness.report.viewer.memories import Memories, Memory, Uses
from memharness.report.viewer.pictures import Pictures
from memharness.report.viewer.reading import Run, Told, counts, deciding
from memharness.report.viewer.shards import Shards, put, script
from memharness.run.wire import part_out
from memharness.scoring.choice import after_thinking
from memharness.stats import interval
from memharness.types import Evidence, parts_text

ROWS = 64  # questions of a shard
LINES = 1000  # rows of a list whose words are loaded together
WORDS = 300  # characters of a question or answer in lists and searches
PICTURE = re.compile(r"<image ([0-9a-f]{12})>")
SUMMARY = (
    *("identity", "method", "bench", "reader", "data_state", "data_digest", "track", "control", "n", "outcomes"),
    *("flags", "scores", "official", "primary", "tokens", "calls", "seconds", "price", "spent", "seed", "budget"),
    *("items", "view", "judge", "rubrics", "judgements", "agreement", "embedder", "models", "config", "options"),
    *("prompt", "until", "subset", "selection", "complete", "unmeasured"),
)
PROVENANCE = ("created", "memharness", "git", "code", "python", "versions", "identity")


@dataclass
class Columns:
    """What lists show and filter by, one value a question; names are numbers into lists of names."""

    ids: list[str] = field(default_factory=list)
    coded: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in ("category", "outcome", "broke")})
    names: dict[str, dict[str, int]] = field(default_factory=lambda: {"category": {}, "outcome": {}, "broke": {}})
    right: list[int] = field(default_factory=list)  # 1, 0, or -1 where nothing decides
    scores: dict[str, list[float | None]] = field(default_factory=dict)
    context: list[int] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    shown: array[int] = field(default_factory=lambda: array("b"))  # gold shown: 1, 0, -1 unknown, -2 no gold

    def code(self, column: str, name: str) -> None:
        """Add a name to a column of names."""
        names = self.names[column]
        self.coded[column].append(names.setdefault(name, len(names)))


class RunWriter:
    """Writes the files of one run."""

    def __init__(
        self,
        number: int,
        run: Run,
        folder: Path,
        memories: Memories,
        pictures: Pictures,
        score: str | None,
        right: float,
    ) -> None:
        """Write into `folder` as run `number` of the page; see `viewer.write` for `score` and `right`."""
        self.name = f"r{number}"
        self.run, self.folder, self.memories, self.pictures = run, folder, memories, pictures
        self.score, self.threshold = deciding(run, score), right
        self.columns, self.uses = Columns(scores={name: [] for name in run.names}), Uses()
        self.missing: dict[str, int] = {}  # why items are missing, and in how many contexts
        self.reads = run.summary["until"] is None
        judged = [({row.unit: row for row in one.rows}, one.head) for one in run.judgements]
        self.judged: list[tuple[dict[str, ScoreRow], Mapping[str, Any]]] = judged

    def write(self) -> dict[str, Any]:
        """Write everything but what needs all items: see `uses`. Returns what the list of runs shows."""
        contexts: list[list[Any]] = []
        with (
            Shards(self.folder, f"{self.name}-q", rows=ROWS) as questions,
            Shards(self.folder, f"{self.name}-l", rows=LINES) as lines,
        ):
            told = groupby(self.run.questions(), key=lambda one: one.asked.record.context_index)
            for (_, members), (ids, recalled) in zip(told, self.run.held(), strict=True):
                self._context(contexts, members, ids, recalled, questions, lines)
        self._put("contexts", {name: [row[at] for row in contexts] for at, name in enumerate(CONTEXT)})
        self._put("index", self._index(questions.starts, lines.starts))
        for at, name in enumerate(self.run.names):
            self._put(f"score-{at}", self.columns.scores[name])
        head = self._head()
        self._put("summary", head)
        figure = self.run.summary["scores"].get(self.run.summary["primary"])
        short = ("method", "bench", "reader", "data_state", "control", "n", "primary", "identity", "track")
        return {name: head["summary"][name] for name in short} | {"folder": head["folder"], "figure": figure}

    def write_uses(self, starts: Sequence[int], count: int) -> None:
        """How often items were recalled and gold, in files of the same rows as the items'."""
        for at, start in enumerate(starts):
            end = starts[at + 1] if at + 1 < len(starts) else count
            self._put(f"use-{at}", self.uses.rows(start, end))

    def _put(self, name: str, value: Any) -> None:
        put(self.folder / f"{self.name}-{name}.js", script(f"{self.name}-{name}", value))

    # ------------------------------------------------------------------------------------------------- one context

    def _context(
        self,
        contexts: list[list[Any]],
        members: Iterable[Told],
        ids: Sequence[str],
        recalled: set[str],
        questions: Shards,
        lines: Shards,
    ) -> None:
        begin, memory, right = questions.count, None, 0
        for one in members:
            if memory is None:
                name = one.asked.record.context
                memory, why = self.memories.context(self.run.source, name, ids)
                if why:
                    self.missing[why] = self.missing.get(why, 0) + 1
                contexts.append([name, memory.first, len(memory.numbers), begin, 0, 0, memory.items is not None])
                rendered = self._rendered(memory)
            verdict = self._question(one, len(contexts) - 1, memory, recalled, rendered, questions, lines)
            right += bool(verdict)
        contexts[-1][4:6] = [questions.count - begin, right]

    def _rendered(self, memory: Memory) -> Callable[[Evidence], str] | None:
        """How this run's view shows a pointer, below the numbered line that heads it."""
        if memory.items is None:
            return None
        renderer = Renderer(memory.items, self.run.summary["view"])
        return lambda pointer: parts_text(renderer.evidence((pointer,))).partition("\n")[2]

    # ------------------------------------------------------------------------------------------------ one question

    def _question(
        self,
        told: Told,
        context: int,
        memory: Memory,
        recalled: set[str],
        rendered: Callable[[Evidence], str] | None,
        questions: Shards,
        lines: Shards,
    ) -> bool | None:
        asked, line = told.asked, told.line
        right = counts(told.row, self.score, self.threshold)
        gold = {pointer.item for pointer in asked.gold.evidence}
        known = Known(
            memory.items,
            (recalled & gold) | named(line.get("trace", {}), gold),
            line.get("prompt"),
            rendered,
            self.run.summary["track"],
            self.reads,
            told.row.scores.get(self.score) if told.row and self.score else None,
            right,
        )
        links = chain(asked, known)
        broke = "" if right else first_break(links)
        self._column(told, context, right, links, broke)
        self._use(asked.record.evidence or (), asked.gold.evidence, memory)
        self._pictures(told, memory)
        questions.add(self._row(told, context, memory, right, links, broke))
        shorts = (asked.question.text(), " | ".join(asked.gold.answers), said(asked.record.answer))
        lines.add([*map(_short, shorts), asked.gold.native_id])
        return right

    def _column(self, told: Told, context: int, right: bool | None, links: Sequence[Link], broke: str) -> None:
        columns, asked = self.columns, told.asked
        columns.ids.append(asked.question.id)
        columns.code("category", asked.gold.category)
        columns.code("outcome", asked.record.outcome.value)
        columns.code("broke", broke)
        columns.right.append(-1 if right is None else int(right))
        columns.context.append(context)
        columns.clusters.append(asked.gold.cluster)
        for name, column in columns.scores.items():
            score = told.row.scores.get(name) if told.row else None
            column.append(None if score is None or score.value is None else round(score.value, 6))
        shown = next(link.state for link in links if link.name == "shown")
        known = {State.YES: 1, State.NO: 0, State.PARTLY: 0}
        columns.shown.append(known.get(shown, -1) if asked.gold.evidence else -2)

    def _use(self, evidence: Iterable[Evidence], gold: Iterable[Evidence], memory: Memory) -> None:
        for pointers, is_gold in ((evidence, False), (gold, True)):
            numbers = (memory.numbers.get(pointer.item) for pointer in pointers)
            self.uses.count((number for number in numbers if number is not None), gold=is_gold)

    def _pictures(self, told: Told, memory: Memory) -> None:
        asked, media = told.asked, self.run.source.media
        self.pictures.add_parts(asked.question.parts, media)
        self.pictures.add_parts(asked.record.pictures, media)
        for choice in asked.question.choices:
            self.pictures.add_parts(choice.parts, media)
        for pointer in (*(asked.record.evidence or ()), *asked.gold.evidence):
            if memory.items is not None and pointer.item in memory.items:
                self.pictures.add_parts(memory.items[pointer.item].parts, media)
        self.pictures.add_named(PICTURE.findall(told.line.get("prompt", "")))

    def _row(
        self, told: Told, context: int, memory: Memory, right: bool | None, links: Sequence[Link], broke: str
    ) -> dict[str, Any]:
        asked, line = told.asked, told.line
        question, gold, record = asked.question, asked.gold, asked.record
        answer = record.answer
        row: dict[str, Any] = {
            "id": question.id,
            "context": record.context,
            "memory": [context, memory.first, len(memory.numbers), memory.items is not None],
            "parts": [part_out(part) for part in question.parts],
            "answers": list(gold.answers),
            "gold": [self._pointer(pointer, memory) for pointer in gold.evidence],
            "outcome": record.outcome.value,
            "seconds": record.seconds,
            "attempts": line.get("attempts", record.attempt),
            "right": right,
            "broke": broke,
            "chain": [[link.name, link.state.value, link.why] for link in links],
            "scores": _scores(told.row),
        }
        said_ = said(answer)
        more = {
            "native": gold.native_id,
            "category": gold.category,
            "cluster": gold.cluster,
            "group": gold.group,
            "abstain": gold.abstain,
            "about": gold.extra,
            "time": question.time,
            "instruction": question.instruction,
            "choices": [[choice.key, [part_out(part) for part in choice.parts]] for choice in question.choices],
            "derived": [[d.kind, d.text, d.part] for d in question.derived],
            "thinking": answer[: len(answer) - len(said_)] if answer is not None else "",
            "groupscores": _scores(told.group),
            "replies": _replies(told.row),
            "made": [part_out(picture) for picture in record.pictures],
            "judges": [self._verdict(rows[question.id], head) for rows, head in self.judged if question.id in rows],
        }
        kept = ("flags", "error", "extra", "requested", "cost", "view", "prompt", "trace", "spent")
        row |= {name: value for name, value in more.items() if value}
        row |= {name: line[name] for name in kept if name in line}
        if answer is not None:
            row["answer"] = said_
        if record.evidence is not None:
            row["evidence"] = [self._pointer(pointer, memory) for pointer in record.evidence]
        return row

    @staticmethod
    def _pointer(pointer: Evidence, memory: Memory) -> list[Any]:
        """[number, id, part, span, score]: the number is None for an item that is in no data."""
        span = list(pointer.span) if pointer.span else None
        return [memory.numbers.get(pointer.item), pointer.item, pointer.part, span, pointer.score]

    @staticmethod
    def _verdict(row: ScoreRow, head: Mapping[str, Any]) -> dict[str, Any]:
        return {"judge": head["judge"], "rubric": head["metric"], "scores": _scores(row), "replies": _replies(row)}

    # ------------------------------------------------------------------------------------------------ the whole run

    def _index(self, questions: Sequence[int], lines: Sequence[int]) -> dict[str, Any]:
        columns = self.columns
        return {
            "ids": columns.ids,
            "names": {column: list(names) for column, names in columns.names.items()},
            **columns.coded,
            "right": columns.right,
            "context": columns.context,
            "score": columns.scores[self.score] if self.score else None,
            "starts": {"q": questions, "l": lines},
        }

    def _head(self) -> dict[str, Any]:
        run, summary = self.run, self.run.summary
        missing = [f"{why}: {n:,} context{'s' if n > 1 else ''} without items" for why, n in self.missing.items()]
        return {
            "folder": run.path.resolve().name,  # not where it lay: a page is given to others
            "summary": {name: summary.get(name) for name in SUMMARY} | _called(summary),
            "provenance": {name: run.manifest.get(name) for name in PROVENANCE},
            "features": run.manifest["described"].get("features", {}),
            "conditions": conditions({**summary, **_called(summary)}),
            "notes": [note[:1].upper() + note[1:] for note in run.notes + missing],
            "score": self.score,
            "threshold": self.threshold,
            "names": run.names,
            "categories": self._categories(),
            "breaks": self._breaks(),
            "given": self._given(),
            "unfinished": not run.folder.done,
        }

    def _categories(self) -> list[dict[str, Any]]:
        """Each category: how many questions, how many right, and the deciding score with its interval."""
        columns = self.columns
        values = columns.scores[self.score] if self.score else []
        members: dict[int, list[int]] = {}
        for at, code in enumerate(columns.coded["category"]):
            members.setdefault(code, []).append(at)
        out = []
        for name, code in columns.names["category"].items():
            mine = members[code]
            decided = [at for at in mine if columns.right[at] >= 0]
            figure = self._figure(decided, [values[at] or 0.0 for at in decided])
            rights = sum(columns.right[at] == 1 for at in decided)
            out.append({"name": name, "n": len(mine), "right": rights, "decided": len(decided), **figure})
        return out

    def _breaks(self) -> list[list[Any]]:
        """Where misses broke and how many did, the most first."""
        columns, tally = self.columns, dict[str, int]()
        names = list(columns.names["broke"])
        for code, right in zip(columns.coded["broke"], columns.right, strict=True):
            if right == 0:
                tally[names[code]] = tally.get(names[code], 0) + 1
        return [list(pair) for pair in sorted(tally.items(), key=lambda pair: -pair[1])]

    def _given(self) -> dict[str, Any]:
        """How often answers are right where all gold evidence was shown, where it was not, where that is unknown."""
        columns = self.columns
        out = {}
        for name, code in (("shown", 1), ("not_shown", 0), ("unknown", -1), ("no_gold", -2)):
            mine = [at for at, shown in enumerate(columns.shown) if shown == code and columns.right[at] >= 0]
            out[name] = self._figure(mine, [float(columns.right[at]) for at in mine]) | {"n": len(mine)}
        return out

    def _figure(self, members: Sequence[int], values: Sequence[float]) -> dict[str, Any]:
        clusters = [self.columns.clusters[at] for at in members]
        found = interval(values, clusters if any(clusters) else None)
        return {"value": found.value, "low": found.low, "high": found.high, "method": found.method, "note": found.note}


CONTEXT = ("name", "first", "count", "begin", "questions", "right", "known")


def _called(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Models by their short names: a plug-in of a file is named by its place on this machine."""
    one = {role: summary[role] and short_name(summary[role]) for role in ("reader", "judge", "embedder")}
    return one | {"models": {role: short_name(spec) for role, spec in summary["models"].items()}}


def said(answer: str | None) -> str:
    """An answer without its thinking; all of it where the thinking never ends."""
    after = after_thinking(answer or "")
    return (answer or "") if after is None else after


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= WORDS else words[: WORDS - 1] + "…"


def _scores(row: ScoreRow | None) -> list[list[Any]]:
    """[name, value, status, note] of each score."""
    found = row.scores.items() if row is not None else ()
    return [[name, score.value, score.status.value, score.note] for name, score in found]


def _replies(row: ScoreRow | None) -> list[list[Any]]:
    """[metric, text, why it ended] of each reply of a judge."""
    return [[name, *reply] for name, reply in (row.extra.get("replies", {}) if row is not None else {}).items()]
