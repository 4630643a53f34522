"""2WikiMultiHopQA: HotpotQA's form, with the chain of evidence triples that leads to each answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.benchmarks.hotpotqa import Entry, HotpotQA, mapping, pairs, read_entries, stated_facts
from memharness.benchmarks.hotpotqa import case as hotpot_case
from memharness.config import Config, option
from memharness.datafile import Row, kind, read_json, read_lines
from memharness.metric import Metric
from memharness.scoring.facts import (
    DISAGREEMENT,
    Agreement,
    Triple,
    answer_agreement,
    best_answer,
    joint,
    wiki_evidence,
    wiki_evidence_aliases,
    wiki_fact_agreement,
)
from memharness.scoring.metrics import AnswerLength, Recall, RecallReadout, backed, not_applicable
from memharness.types import Answer, Asked, Asset, Case, Finding, Readout, Score, UserError

FILES = {"dev": "dev.json", "train": "train.json"}
"""The official file of each split whose answers are public."""
SIZES = {"dev": 12576, "train": 167454}
"""Questions of each split."""
ALIASES = "id_aliases.json"
FIGURES = ("em", "f1", "prec", "recall")
TASKS = ("", "sp_", "evi_", "joint_")
NO_TRIPLES = "the answer states no evidence triples"


class TwoWikiOptions(Config):
    """Toggles of 2WikiMultiHopQA."""

    aliases: str = option(
        "",
        "The release's id_aliases.json (JSON lines), for v1.1; empty takes it from the data folder if it is there. Its "
        "content is hashed.",
        source="official evaluator v1.1",
        exclude=True,
    )


@dataclass(frozen=True)
class TwoWikiScores(Metric):
    """Both official evaluators in one pass: v1 under its own names, v1.1 behind `v11_`.

    Each gives em f1 prec recall of the answer, of the supporting facts (sp_), of the evidence triples (evi_) and of
    all three together (joint_). v1.1 takes any alias of an answer or triple; its evidence recall and F1 may pass 1.

    Facts are the answer's own `extra["sp"]`, else read off the readout. Triples are `extra["evidence"]`; an answer that
    states none has no evi_ and no joint_ figure, but `pair_` ones: the joint figures of answer and facts, as HotpotQA
    has them. In an official prediction file a question without triples counts 0, as in the official scripts.

    Source: Alab-NII/2wikimultihop, 2wikimultihop_evaluate.py and 2wikimultihop_evaluate_v1.1.py @ 13800e5.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        said, extra = asked.record.answer, asked.gold.extra
        stated = stated_facts(asked)
        shown = DISAGREEMENT if stated is None else wiki_fact_agreement(_facts(stated), _facts(extra["facts"]))
        v1 = DISAGREEMENT if said is None else answer_agreement(said, asked.gold.answers[0])
        v11 = DISAGREEMENT if said is None else best_answer(said, asked.gold.answers)
        scores = _named("", v1) | _named("sp_", shown) | _named("pair_", joint((v1, shown)))
        scores |= _named("v11_", v11) | _named("v11_sp_", shown)
        if "evidence" not in asked.record.extra:
            absent = [f"{version}{task}{name}" for version in ("", "v11_") for task in TASKS[2:] for name in FIGURES]
            return scores | dict.fromkeys(absent, not_applicable(NO_TRIPLES))
        triples = asked.record.extra["evidence"]
        evi = DISAGREEMENT if triples is None else wiki_evidence(triples, extra["triples"])
        evi11 = DISAGREEMENT if triples is None else wiki_evidence_aliases(triples, extra["spellings"])
        scores |= _named("evi_", evi) | _named("joint_", joint((v1, shown, evi)))
        return scores | _named("v11_evi_", evi11) | _named("v11_joint_", joint((v11, shown, evi11)))


def _facts(facts: Iterable[Sequence[Any]]) -> list[tuple[str, int]]:
    return [(str(title), number) for title, number in facts]


def _named(prefix: str, figures: Agreement) -> dict[str, Score]:
    return {f"{prefix}{name}": Score(value) for name, value in zip(FIGURES, figures, strict=True)}


@dataclass(frozen=True, slots=True)
class Chain:
    """What 2Wiki adds to a question: its triples, and the ids under which aliases of them and of the answer stand.

    `ids` holds (subject id, object id) of each triple, or nothing where the release names none.
    """

    triples: tuple[Triple, ...]
    ids: tuple[tuple[str, str], ...]
    answer: str | None


class TwoWiki(HotpotQA):
    """Each question is a context of its own: its paragraphs are the items, its sentences their parts."""

    card = BenchmarkCard(
        name="2wiki",
        title="2WikiMultiHopQA",
        paper="Ho et al., COLING 2020, arXiv:2011.01060",
        licence="Apache-2.0",
        source="https://github.com/Alab-NII/2wikimultihop",
        revision="data_ids_april7 release (April 2021); evaluators v1 and v1.1 @ 13800e5",
        version=1,
        splits={"dev": "dev questions", "train": "training questions"},
        counts=SIZES,
        cluster="none: each question has its own paragraphs",
        primary="f1",
        assets=(Asset("https://www.dropbox.com/s/ms2m13252h6xubs/data_ids_april7.zip?dl=1", "data_ids_april7.zip"),),
        errata=(
            "19 of 500 dev questions have paragraphs with one title, 24 pairs: items go by place, facts to the first",
            "v1.1 counts matches over predictions: two spellings of one triple give recall 2 and F1 1.33; kept",
            "v1 lower-cases titles after repeats were dropped: two spellings of one fact count twice; kept",
            "both scripts print percentages rounded to two decimals: so does the report; scores are not rounded",
            "without id_aliases.json v1.1 knows no alias, and `data check` says so",
            "the labels of test.json are not public: published work reports dev",
        ),
    )
    options_class = TwoWikiOptions
    files = FILES
    sizes: ClassVar[Mapping[str, int]] = SIZES

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """Aliases and demonyms by Wikidata id, of those that the questions name.

        Raises:
            DataError: for a line that is not as published.
            UserError: if the option names no file.
        """
        file = self.alias_file()
        if file is None:
            return {}
        chains: list[Chain] = [entry.more for entry in self.entries().values()]
        named = {name for one in chains for pair in one.ids for name in pair} | {one.answer for one in chains}
        return {
            name: (*row.texts("aliases", ()), *row.texts("demonyms", ()))
            for row in read_lines(file)
            if (name := row.text("Q_id")) in named
        }

    def alias_file(self) -> Path | None:
        """The alias file: the one the option names, or the one beside the data."""
        named = cast(TwoWikiOptions, self.options).aliases
        if named and not Path(named).is_file():
            raise UserError(f"-B aliases={named}: no such file; give the release's {ALIASES}")
        folder = self.root if self.root.is_dir() else self.root.parent
        file = Path(named) if named else folder / ALIASES
        return file if file.is_file() else None

    def held(self) -> list[Path]:
        """The files of the folder that may hold questions: all but the aliases."""
        return [file for file in super().held() if file.name != ALIASES]

    def entries(self) -> Mapping[str, Entry]:
        """The questions by context id, read once.

        Raises:
            DataError: for a file that is not as published.
        """
        if self._entries is None:
            read = read_entries(self.file(), chain)
            self._entries = {entry.context: entry for entry in read}
        return self._entries

    def case(self, entry: Entry) -> Case:
        """The question of an entry, and its gold: the answer first, then its aliases."""
        made = hotpot_case(entry)
        known: Chain = entry.more
        answers = (entry.answer, *self.aliases.get(known.answer or "", ()))
        extra = {
            **made.gold.extra,
            "triples": [list(triple) for triple in known.triples],
            "spellings": [self._spellings(known, place) for place in range(len(known.triples))],
        }
        return Case(made.question, replace(made.gold, answers=tuple(dict.fromkeys(answers)), extra=extra))

    def _spellings(self, known: Chain, place: int) -> list[list[str]]:
        """All spellings of a triple: each name of its subject with each name of its object."""
        subject, relation, thing = known.triples[place]
        first, last = known.ids[place] if known.ids else ("", "")
        subjects = dict.fromkeys((subject, *self.aliases.get(first, ())))
        things = dict.fromkeys((thing, *self.aliases.get(last, ())))
        return [[one, relation, other] for one, other in itertools.product(subjects, things)]

    def metrics(self) -> Sequence[Metric]:
        """Both official evaluators, then paragraph recall and answer length."""
        return (TwoWikiScores(), Recall(k=2), Recall(k=5), RecallReadout(), AnswerLength())

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Official figures as `v1.em` … and `v1.1.em` …, in percent with two decimals; all others as means."""
        means = dict(super().report(backed(rows)))
        keys = [f"{task}{name}" for task in TASKS for name in FIGURES]
        official = {f"v1.{key}": means.pop(key) for key in keys if key in means}
        official |= {f"v1.1.{key}": means.pop(f"v11_{key}") for key in keys if f"v11_{key}" in means}
        return {key: round(value * 100, 2) for key, value in official.items()} | means

    def gold_answer(self, case: Case) -> Answer:
        """The answer with its facts and triples."""
        extra = {"sp": case.gold.extra["facts"], "evidence": case.gold.extra["triples"]}
        return Answer(case.gold.answers[0], readout=Readout(case.gold.evidence), extra=extra)

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official form: `answer`, `sp` and `evidence`, each by id.

        What an id lacks counts 0 in the official figures. `evidence` itself must be there, as the scripts demand.
        """
        file = Row(mapping(read_json(path), path), str(path))
        answers, facts, triples = file.row("answer"), file.row("sp"), file.row("evidence")
        for name in dict.fromkeys((*answers.values, *facts.values, *triples.values)):
            text = answers.text(name, "") if name in answers.values else None
            extra: dict[str, Any] = {"evidence": _triples(triples, name) if name in triples.values else None}
            if name in facts.values:
                extra["sp"] = pairs(facts, name)
            yield name, Answer(text, extra=extra)

    def remarks(self, where: str, entries: Sequence[Entry]) -> Iterable[Finding]:
        """Whether aliases are at hand."""
        if self.alias_file() is None:
            lacking = f"no {ALIASES} beside the data: v1.1 knows no alias; name it with -B aliases=PATH"
            yield Finding("warning", where, lacking)

    def digest(self) -> Any:
        """Digest of the data files, and of the aliases."""
        file = self.alias_file()
        return super().digest() | ({ALIASES: self.data.media.digest(file)} if file else {})


def chain(row: Row) -> Chain:
    """The triples of a question.

    Raises:
        DataError: if they are not triples of text, or their ids are not as many.
    """
    triples = tuple(_triples(row, "evidences"))
    ids: tuple[tuple[str, str], ...] = ()
    if row.has("evidences_id") and row.values["evidences_id"] != []:  # officially empty for two of the four types
        named = _triples(row, "evidences_id")
        if len(named) != len(triples):
            raise row.error("evidences_id", f"names {len(named)} triples where evidences has {len(triples)}")
        ids = tuple((first, last) for first, _, last in named)
    return Chain(triples, ids, row.text("answer_id", "") or None)


def _triples(row: Row, field: str) -> list[Triple]:
    value = row.values.get(field)
    if not isinstance(value, list):
        raise row.error(field, f"must be a list of [subject, relation, object], not {kind(value)}")
    for place, triple in enumerate(value):
        whole = isinstance(triple, list) and len(triple) == 3 and all(isinstance(part, str) for part in triple)
        if not whole:
            raise row.error(f"{field}[{place}]", "must be [subject, relation, object], all text")
    return [(first, relation, last) for first, relation, last in value]
