"""Multiple choice about pictures without a memory: what the benchmarks of that form share."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from memharness.benchmark import Benchmark, Recorded, ScoreRow
from memharness.identity import opaque_id
from memharness.media import tree_digest
from memharness.metric import Metric
from memharness.scoring.choice_metrics import ChoiceAccuracy
from memharness.tsv import marked, read_tsv
from memharness.types import (
    Answer,
    Case,
    Choice,
    DataError,
    Finding,
    Gold,
    Image,
    Part,
    Question,
    Status,
)

LETTER = "Answer with the letter of the right option."
"""The answer-format words of data that come with none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One published question. Pictures are references into the media store, so that a list of entries stays small.

    Attributes:
        id: the source's own id.
        parts: words and pictures, interleaved as asked.
        choices: the options; empty for a question with a free answer.
        answers: the right option's key, or the accepted free answers.
        category: the finest category the official report names; further levels before it, with a slash after each.
        context: what passes of one question share; its own id where there is one pass.
        group: as `Gold.group`.
        instruction: the answer-format words.
        extra: what the official scorer needs besides.
        cluster: what questions share for statistics (a video, a pair); empty is their context.
        prefill: as `Question.prefill`.
    """

    id: str
    parts: tuple[Part, ...]
    answers: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
    category: str = ""
    context: str = ""
    group: str | None = None
    instruction: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    prefill: str = ""


class ChoiceBenchmark(Benchmark):
    """Questions that each stand alone: a context holds no item, and one question or the passes of one."""

    _read: Mapping[str, list[Entry]] | None = None
    _subset: str | None = None

    @abstractmethod
    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions in file order, streamed.

        Raises:
            DataError: for a file that is missing or not as published.
            UserError: for an unknown subset.
        """

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """One context a question, or a group of passes, in file order.

        Raises:
            DataError: as `entries`, or if there is no question at all.
            UserError: for an unknown subset.
        """
        if self._read is None or subset != self._subset:
            self._read, self._subset = None, subset
            read: dict[str, list[Entry]] = {}
            for entry in self.entries(subset):
                read.setdefault(opaque_id(self.card.name, entry.context or entry.id), []).append(entry)
            if not read:
                of = f" of subset {subset!r}" if subset else ""
                raise DataError(f"{self.data.path}: holds no question{of}; name other data with --data")
            self._read = read
        return list(self._read)

    def episode(self, context: str) -> Recorded:
        """Nothing to remember, then the question or its passes."""
        if self._read is None:
            self.contexts(self._subset)
        assert self._read is not None
        cases = [self.case(context, place, entry) for place, entry in enumerate(self._read[context])]
        return Recorded(context, (), cases)

    def case(self, context: str, place: int, entry: Entry) -> Case:
        """An entry as the runner takes it."""
        question = Question(
            opaque_id(self.card.name, context, place),
            context,
            entry.parts,
            entry.choices,
            entry.instruction,
            form="choice" if entry.choices else "text",
            prefill=entry.prefill,
        )
        gold = Gold(
            answers=entry.answers,
            category=entry.category,
            group=entry.group,
            cluster=entry.cluster or context,
            native_id=entry.id,
            extra={"items": 0, **entry.extra},
        )
        return Case(question, gold)

    def metrics(self) -> Sequence[Metric]:
        """Accuracy over all questions."""
        return (ChoiceAccuracy(),)

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers by native id from a VLMEvalKit prediction file saved as TSV: columns `index` and `prediction`.

        Raises:
            DataError: for a file in another form, or an index that comes twice.
        """
        if path.suffix != ".tsv":
            raise DataError(
                f"{path}: expected a .tsv with the columns index and prediction; save VLMEvalKit's .xlsx as one, or "
                "give JSON lines"
            )
        seen: set[str] = set()
        for row in read_tsv(path, ("index", "prediction")):
            name = row.text("index").strip()
            if name in seen:
                raise row.error("index", f"{name!r} comes twice", "give each question one prediction")
            seen.add(name)
            yield name, Answer(row.text("prediction", ""))

    def check(self) -> Sequence[Finding]:
        """Counts, options a row, pictures that are not at hand, byte-order marks; of the subset read last."""
        try:
            self.contexts(self._subset)
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        assert self._read is not None
        entries = [entry for entries in self._read.values() for entry in entries]
        return list(_findings(str(self.data.path), self.card.counts, self._read, entries, self.files()))

    def digest(self) -> Any:
        """Digests of the data files, and of the pictures that a JSON file names beside it."""
        found = tree_digest(self.data.path, self.data.media)
        if self.data.path.suffix in (".json", ".jsonl"):
            self.contexts(self._subset)
            images = (part for read in (self._read or {}).values() for entry in read for part in entry.parts)
            found |= {i.source: i.sha256 for i in images if isinstance(i, Image) and i.source and i.sha256}
        return found

    def files(self) -> Sequence[Path]:
        """The data files that were named, for what is to be said about them; pictures apart."""
        path = self.data.path
        return [path] if path.is_file() else sorted(path.rglob("*.tsv"))


def _findings(
    where: str,
    published: Mapping[str, int],
    contexts: Mapping[str, Sequence[Entry]],
    entries: Sequence[Entry],
    files: Iterable[Path],
) -> Iterator[Finding]:
    size = next((name for name, n in published.items() if n in (len(contexts), len(entries))), None)
    whole = f"as many as the published {size}" if size else "a part of the release"
    yield Finding("info", where, f"{len(contexts)} questions in {len(entries)} rows: {whole}")
    options = Counter(len(entry.choices) for entry in entries)
    yield Finding("info", where, "options a row: " + ", ".join(f"{n} with {k or 'none'}" for k, n in options.items()))
    images = [part for entry in entries for part in entry.parts if isinstance(part, Image)]
    if lost := [image.source for image in images if image.missing]:
        yield Finding("warning", where, f"{len(lost)} of {len(images)} pictures are not at hand, first {lost[0]}")
    for file in files:
        if file.suffix == ".tsv" and marked(file):
            yield Finding(
                "warning", str(file), "starts with a byte-order mark, which is passed over; a spreadsheet that saved "
                "it may have cut long cells",
            )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- figures


def by_task(rows: Iterable[ScoreRow], *, pooled: str, mean: str) -> dict[str, float]:
    """Accuracy of each category, of all questions and as the mean of the categories, which are not the same.

    Args:
        rows: scored questions; one that failed counts 0.
        pooled: name of the figure over all questions.
        mean: name of the unweighted mean over the categories.

    Returns:
        the categories in order, the two means, every other score's mean, and `unparsed`, the share of questions whose
        answer declares no option.
    """
    values: dict[str, list[float]] = {}
    tasks: dict[str, list[float]] = {}
    unparsed: list[float] = []
    for row in rows:
        for name, score in row.scores.items():
            if score.status is not Status.NOT_APPLICABLE:
                values.setdefault(name, []).append(score.value or 0.0)
        if "accuracy" in row.scores:
            tasks.setdefault(row.category, []).append(row.scores["accuracy"].value or 0.0)
            unparsed.append(float(row.scores["accuracy"].status is Status.UNPARSED))
    if not tasks:
        return {}
    figures = {task: fmean(tasks[task]) for task in sorted(tasks)}
    both = {mean: fmean(figures.values()), pooled: fmean(values.pop("accuracy"))}
    return {**figures, **both, **{name: fmean(values[name]) for name in values}, "unparsed": fmean(unparsed)}
