"""M2CA-Bench: long sessions of making and talking about pictures, and which earlier ones each turn needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from memharness.benchmark import Ask, Benchmark, BenchmarkCard, Episode, Fact, Floor, Observe, ScoreRow, means
from memharness.benchmarks.m2ca.layouts import TASKS, Asset, Session, Turn, inside, read_sessions
from memharness.benchmarks.m2ca.made import Made
from memharness.benchmarks.m2ca.quality import Quality
from memharness.benchmarks.m2ca.sets import LATE, LATER, PICTURE, ReadoutSet, RetrievedSet, picture_id
from memharness.config import Config, option
from memharness.datafile import Row, as_rows, read_json, read_lines
from memharness.identity import opaque_id
from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.scoring.metrics import backed
from memharness.types import (
    Answer,
    Case,
    DataError,
    Derived,
    Evidence,
    Finding,
    Gold,
    Image,
    Item,
    Question,
    Readout,
    Score,
    Text,
    UserError,
    did_you_mean,
)

COUNTS = {"contexts": 100, "questions": 2000}
FOLDS = {
    "generate": "Gen",
    "edit": "Edit",
    "composite": "Edit",
    "understand": "Understand-Chat",
    "pure_chat": "Understand-Chat",
}
OFFICIAL = {"All": "em", "Long": "em@11-20", "Hard": "em@very_hard@11-20"}
INSTRUCTION = (
    "Which of the earlier pictures does this turn need? Reply with their labels alone, separated by commas, such as "
    "{}; or with none, if it needs no earlier picture."
)


class M2CAOptions(Config):
    """Toggles of M2CA-Bench."""

    memory: Literal["forced", "free"] = option(
        "forced",
        "What memory is given of a turn: the picture and words of the data (teacher forcing, so that retrieval is "
        "measured on the same pictures for all), or what the method itself answered.",
        source="memharness; the paper does not say",
    )
    naming: Literal["explicit", "implicit"] = option(
        "explicit",
        "How WEAVEBench's words name a picture: by its number, as published, or by its caption, so that it has to be "
        "remembered which it was. Its files hold no captions: put `captions`, one an image, beside `images`.",
        source="memharness",
    )


class M2CABench(Benchmark):
    """Each session is a context, played live: a turn is asked, then what came of it is observed.

    Items are the pictures, labelled by their order of creation, and the words of each turn. A question is a turn; its
    answer is the set of earlier pictures that it needs, which may be empty.

    The set is what the reader's reply lists, where the harness read a readout out to a reader (evidence track). It is
    the pictures of the answer's own readout, where the method answered by itself (answer track) or a prediction names
    evidence: then the words and pictures of the answer are free to be the reply to the user. `readout_em` and its like
    score the readout in either case.
    """

    card = BenchmarkCard(
        name="m2ca",
        title="M2CA-Bench",
        paper="Wang et al., Cognitive-structured Multimodal Agent, arXiv:2607.08497",
        licence="none stated: the data are not published (WEAVEBench: Apache-2.0 as its code says)",
        source="https://github.com/caseclose/cma-harness (a project page: data announced, not released)",
        revision="project page @ bce472f; no data published; layout of memharness",
        version=1,
        splits={
            "all": "all sessions",
            "en zh": "the sessions of that language, where the data state it",
            "NAME": "the session of that id",
        },
        counts=COUNTS,
        cluster="the session",
        primary="em",
        reveals=(
            "WEAVEBench's words name their pictures (Image #k): there retrieval is reading, not memory; "
            "-B naming=implicit names them by caption, which whoever is shown captions can still match",
        ),
        errata=(
            "the paper calls the metric accuracy of the predicted index; gold sets are empty or plural as well, so it "
            "is equality of sets here, and two empty sets are equal",
            "the project page names the cuts All, Long and Hard, the paper Full, Medium and Hard: its Medium is turns "
            "11-20, not the difficulty",
            "the runtime of 12.7 s a turn is of the row with a 32B controller, not of the 8B one the abstract names",
            "the paper reports no trivial policies: floors stand beside every method here",
            "the judge's prompt, inputs and failure rule are not published: quality is by this project's rubric, so it "
            "cannot be compared with the paper's",
            "pictures are numbered as they were created; turns that make none have no number, so it is not the turn's",
        ),
        images=True,
        steps=(
            "M2CA-Bench is not published yet: there is nothing to fetch",
            "sessions of your own: sessions/*.json in the layout of the bundled sample, named by --data",
            "WEAVEBench: fetch https://huggingface.co/datasets/WeiChow/WEAVE and give the folder that holds its "
            "test/test.json by --data",
        ),
    )
    options_class = M2CAOptions
    options: M2CAOptions

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """The sessions in file order; `subset` may name a language or one session."""
        if subset is None or subset == "all":
            return list(self.sessions)
        chosen = [name for name, session in self.sessions.items() if subset in (name, session.lang)]
        if not chosen:
            known = [*self.sessions, *{session.lang: None for session in self.sessions.values() if session.lang}]
            hint = did_you_mean(subset, known)
            raise UserError(f"subset {subset!r}: no such session or language{hint}; there are: {', '.join(known)}")
        return chosen

    def episode(self, context: str) -> Episode:
        """One session, to be played from its first turn."""
        return LiveSession(self.sessions[context], self.pictures[context], self.options.memory)

    @cached_property
    def sessions(self) -> Mapping[str, Session]:
        """The sessions by id, validated.

        Raises:
            DataError: for data that are not in a known layout.
        """
        return {session.id: session for session in self._read[0]}

    @cached_property
    def pictures(self) -> Mapping[str, Mapping[str, Image]]:
        """The pictures of each session by asset id.

        Raises:
            DataError: for a picture that cannot be read, or is not the one the data state.
        """
        return {
            name: {asset.id: _image(asset, session, self.data.media) for asset in session.assets.values()}
            for name, session in self.sessions.items()
        }

    @cached_property
    def _read(self) -> tuple[Sequence[Session], Sequence[Path]]:
        return read_sessions(self.data.path, implicit=self.options.naming == "implicit")

    def metrics(self) -> Sequence[Metric]:
        """The set a turn was answered from, the readout's own, and the reply without a judge and with one."""
        return (RetrievedSet(), ReadoutSet(), Made(), Quality())

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """All, Long and Hard as the project page names them, `em` by task type, then the mean of every score.

        Of `quality` also the paper's own folds: Overall, Gen, Edit and Understand-Chat, each early and late as well.
        """
        rows = backed(rows)
        found = means(rows)
        official = {name: found[key] for name, key in OFFICIAL.items() if key in found}
        tasks = {name: found[name] for task in TASKS if (name := f"em.{task}") in found}
        quality = means(replace(row, category="", scores=_folded(row)) for row in rows)
        return official | tasks | quality | {name: value for name, value in found.items() if "." not in name}

    def cuts(self, gold: Gold) -> Mapping[str, Sequence[str]]:
        """The paper's cuts and tasks, and what else may make a turn hard."""
        extra, task = gold.extra, gold.category
        half, late = _half(extra["turn"]), LATE <= extra["turn"] <= LATER
        refs, back = extra["refs"], extra["span"]
        return {
            "turns": (half,),
            "very_hard": (f"very_hard@{half}",) if late and extra["difficulty"] == "very_hard" else (),
            "pictures needed": ("2 or more" if refs > 1 else str(refs),),
            "span": () if not refs else ("0-1",) if back < 2 else ("2-7",) if back < 8 else ("8 or more",),
            "task": (task,),
            "task as the paper folds": (FOLDS[task],),
            "such tasks by turns": (f"{FOLDS[task]} {half}",),
            "difficulty": (extra["difficulty"],) if extra["difficulty"] else (),
            "tag": extra["tags"],
            "negative": (extra["negatives"],),
            "language": (extra.get("lang"),) if extra.get("lang") else (),
        }

    def gold_answer(self, case: Case) -> Answer:
        """The gold set as a reply and as a readout, with the picture and the words that the data hold."""
        gold = case.gold
        words = {"reply": gold.extra["answer"]} if gold.extra["answer"] else {}
        return Answer(gold.answers[0], tuple(map(_image_in, gold.extra["output"])), Readout(gold.evidence), extra=words)

    def floors(self) -> Sequence[Floor]:
        """Policies that look at nothing, and BM25 on captions; empty and oracle are among every one's floors."""
        return (
            Floor("last picture", lambda case, items: _answer(case, _pictures(items)[-1:])),
            Floor("first picture", lambda case, items: _answer(case, _pictures(items)[:1])),
            Floor("all pictures", lambda case, items: _answer(case, _pictures(items))),
            Floor("a random picture", _random),
            Floor("BM25 on captions", self._bm25),
        )

    def _bm25(self, case: Case, items: Sequence[Item]) -> Answer:
        """The picture whose caption in the data shares most with the user's words; none where none shares any."""
        from memharness.retrieval import BM25

        captions = {picture_id(one.number): one.caption for one in self.sessions[case.question.context].assets.values()}
        pictures = _pictures(items)
        scores = BM25([captions[item.id] for item in pictures]).scores(case.question.text())
        best = [item for item, score in zip(pictures, scores, strict=True) if score > 0 and score == scores.max()]
        return _answer(case, best[:1])

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Sets in JSON or JSON lines: `{"session_id", "turn", "images": [numbers as labelled]}`.

        A record may also hold the reply: its words as `reply`, its picture as `picture`, a file beside this one.

        Raises:
            DataError: for a record without one of the three, or whose picture is not there.
        """
        rows = read_lines(path) if path.suffix == ".jsonl" else as_rows(read_json(path), str(path))
        for row in rows:
            numbers = row.values.get("images")
            if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
                raise row.error("images", "must be a list of whole numbers", "give the numbers of the labels")
            readout = Readout(tuple(Evidence(picture_id(number)) for number in numbers))
            words = row.text("reply", "") if row.has("reply") else None
            answer = Answer(words, self._picture(row, path), readout)
            yield f"{row.text('session_id')}:{row.whole('turn')}", answer

    def _picture(self, row: Row, beside: Path) -> tuple[Image, ...]:
        """The picture that a record of predictions names, kept so that its checks can be looked at."""
        if not row.has("picture"):
            return ()
        file = inside(beside.parent, row.text("picture"), row, "picture")
        if not file.is_file():
            raise row.error("picture", f"{file} is not there", "name files relative to the file of predictions")
        return (self.data.media.keep(file.read_bytes(), row.text("picture"), f"{row.where}: picture"),)

    def check(self) -> Sequence[Finding]:
        """Counts against the card, tasks, difficulties, gold sets by size, spans that differ from the data's own."""
        try:
            sessions = list(self.sessions.values())
            self.pictures  # noqa: B018
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        return list(_findings(str(self.data.path), sessions))

    def digest(self) -> Any:
        """Digests of the session files, and of the pictures by their published names."""
        files = {file.name: self.data.media.digest(file) for file in self._read[1]}
        images = (image for pictures in self.pictures.values() for image in pictures.values())
        return files | {image.source: image.sha256 for image in images if image.sha256}


class LiveSession(Episode):
    """One session, live: what a turn makes is observed after it was asked."""

    live = True

    def __init__(self, session: Session, pictures: Mapping[str, Image], memory: str) -> None:
        """Begin before the first turn.

        Args:
            session: what happens.
            pictures: by asset id.
            memory: `forced` or `free`, as the option.
        """
        self.context = session.id
        self.session = session
        self.pictures = pictures
        self.memory = memory
        self.planned = len(session.turns)
        self._observed = 0
        self._shown: dict[int, Image | None] = {}

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """Before each turn what the user brings; after it what was said and made."""
        self._observed, self._shown = 0, {}
        for turn in self.session.turns:
            if brought := [self._picture(asset, "user") for asset in self.session.brought(turn)]:
                yield Observe(brought)
            answers = yield Ask([self._case(turn)])
            yield Observe([self._words(turn, "user", turn.text), *self._came(turn, answers[0])])

    def _came(self, turn: Turn, answer: Answer) -> Iterable[Item]:
        """The assistant's words and picture: the data's, or the method's own."""
        said = turn.answer if self.memory == "forced" else answer.text or ""
        if said.strip():
            yield self._words(turn, "assistant", said)
        if turn.output is not None:
            asset = self.session.assets[turn.output]
            made = [part for part in answer.parts if isinstance(part, Image)]
            yield self._picture(asset, "assistant", made if self.memory == "free" else None)

    def _words(self, turn: Turn, speaker: str, words: str) -> Item:
        return self._item(f"turn-{turn.number}-{speaker}", speaker, turn.number, (Text(words),), kind="turn")

    def _picture(self, asset: Asset, speaker: str, made: Sequence[Image] | None = None) -> Item:
        """A picture as an item. Of the method's own the last counts; one it never made keeps its place and number."""
        label = self.session.label.format(asset.number)
        name = picture_id(asset.number)
        self._shown[asset.number] = self.pictures[asset.id] if made is None else made[-1] if made else None
        if made is None:
            derived = (Derived("caption", asset.caption, 0),) if asset.caption.strip() else ()
            return self._item(name, speaker, asset.created, (self.pictures[asset.id],), derived, label, "image")
        parts = (made[-1],) if made else (Text("(no picture was made)"),)
        return self._item(name, speaker, asset.created, parts, (), label, "image")

    def _item(
        self,
        name: str,
        speaker: str,
        turn: int,
        parts: tuple[Text | Image, ...],
        derived: tuple[Derived, ...] = (),
        label: str | None = None,
        kind: str = "turn",
    ) -> Item:
        order, self._observed = self._observed, self._observed + 1
        return Item(
            name, self.context, order, parts, derived, speaker=speaker, kind=kind, label=label, keys={"turn": str(turn)}
        )

    def _case(self, turn: Turn) -> Case:
        session = self.session
        uploads = [session.assets[name] for name in turn.uploads]
        captions = tuple(
            Derived("caption", asset.caption, place) for place, asset in enumerate(uploads, 1) if asset.caption.strip()
        )
        question = Question(
            id=opaque_id("m2ca", session.id, turn.number),
            context=session.id,
            parts=(Text(turn.text), *(self.pictures[asset.id] for asset in uploads)),
            instruction=INSTRUCTION.format(", ".join(map(session.label.format, (1, 4)))),
            derived=captions,
        )
        return Case(question, self._gold(turn))

    def _gold(self, turn: Turn) -> Gold:
        session = self.session
        needed = sorted((session.assets[name] for name in turn.gold), key=lambda asset: asset.number)
        there = session.at_hand(turn)
        parents = {name for asset in needed for name in asset.parents}
        siblings = [one.number for one in there if one not in needed and not parents.isdisjoint(one.parents)]
        return Gold(
            answers=(labels(session.label, (asset.number for asset in needed)),),
            evidence=tuple(Evidence(picture_id(asset.number)) for asset in needed),
            category=turn.task,
            cluster=session.id,
            native_id=f"{session.id}:{turn.number}",
            abstain=not needed,
            extra={
                "items": self._observed,
                "turn": turn.number,
                "difficulty": turn.difficulty,
                "tags": list(turn.tags),
                "negatives": turn.negatives,
                "refs": len(needed),
                "span": span(session, turn),
                "gold": [asset.number for asset in needed],
                "gold_ids": [asset.id for asset in needed],
                "numbers": [asset.number for asset in there],
                "siblings": siblings,
                "confounders": [session.assets[name].number for name in turn.confounders],
                "lang": session.lang,
                "answer": turn.answer if turn.task == "understand" else "",
                "checks": list(turn.checks),
                "output": [] if turn.output is None else [_image_out(self.pictures[turn.output])],
                "shown": [
                    [session.label.format(asset.number), *_image_out(self._shown[asset.number])[:4]] for asset in needed
                ],
            },
        )


def _image_out(image: Image | None) -> list[Any]:
    image = image or Image(None)
    return [image.sha256, image.mime, image.width, image.height, image.source]


def _image_in(value: Sequence[Any]) -> Image:
    return Image(*value)


def _half(turn: int) -> str:
    """The turns that the paper tells apart, and what a longer session has after them."""
    return f"1-{LATE - 1}" if turn < LATE else f"{LATE}-{LATER}" if turn <= LATER else f"{LATER + 1} and later"


def _folded(row: ScoreRow) -> Mapping[str, Score]:
    """The quality of a turn under every name that the paper reports it by."""
    quality = row.scores.get("quality")
    if quality is None:
        return {}
    half = _half(int(row.native_id.rpartition(":")[2]))
    folds = ("Overall", FOLDS[row.category])
    return {f"quality {name}": quality for fold in folds for name in (fold, f"{fold} {half}")}


def span(session: Session, turn: Turn) -> int:
    """Turns back to the oldest picture that a turn needs; 0 if it needs none."""
    return max((turn.number - session.assets[name].created for name in turn.gold), default=0)


def labels(label: str, numbers: Iterable[int]) -> str:
    """A set of pictures as a reply."""
    return ", ".join(map(label.format, numbers)) or "none"


def _image(asset: Asset, session: Session, media: MediaStore) -> Image:
    where = f"{session.where}: asset {asset.id}: path"
    if asset.path is None:
        return Image(None, source=asset.source or asset.id)
    image = media.image(asset.path, asset.source, where)
    if asset.sha256 and not image.missing and image.sha256 != asset.sha256:
        raise DataError(f"{where}: {asset.path} is not the picture that sha256 states; fetch it again")
    return image


def _pictures(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if item.id.startswith(PICTURE)]


def _answer(case: Case, pictures: Sequence[Item]) -> Answer:
    said = ", ".join(item.label or item.id for item in pictures) or "none"
    return Answer(said, readout=Readout(tuple(Evidence(item.id) for item in pictures)))


def _random(case: Case, items: Sequence[Item]) -> Answer:
    """One picture, drawn by the question's id, so that a rerun draws the same."""
    pictures = _pictures(items)
    drawn = int(opaque_id("random", case.question.id), 16)
    return _answer(case, [pictures[drawn % len(pictures)]] if pictures else [])


def _findings(where: str, sessions: Sequence[Session]) -> Iterable[Finding]:
    turns = [(session, turn) for session in sessions for turn in session.turns]
    whole = {"contexts": len(sessions), "questions": len(turns)} == COUNTS
    size = f"{len(sessions)} sessions, {len(turns)} turns"
    yield Finding("info", where, f"{size}: {'the size of the benchmark' if whole else 'not the benchmark itself'}")
    counted: dict[str, Counter[str]] = {
        "tasks": Counter(turn.task for _, turn in turns),
        "difficulties": Counter(turn.difficulty or "not stated" for _, turn in turns),
        "turns by pictures needed": Counter(f"need {len(turn.gold) or 'none'}" for _, turn in turns),
        "negatives": Counter(turn.negatives for _, turn in turns),
    }
    for name, counts in counted.items():
        yield Finding("info", where, f"{name}: {', '.join(f'{n} {word}' for word, n in sorted(counts.items()))}")
    for session, turn in turns:
        if turn.span is not None and turn.span != span(session, turn):
            yield Finding(
                "warning", turn.where, f"span_max: {turn.span}, but the pictures needed lie {span(session, turn)} back"
            )
