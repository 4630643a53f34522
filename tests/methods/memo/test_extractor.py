"""The deterministic extractor: spans, links between records, and what a trained one may reply."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from memharness.methods.memo import extractor
from memharness.methods.memo.extractor import Index, Names, priority, select, sentences
from memharness.methods.memo.units import Record, Rule, materialise
from memharness.reader import Counter, ReaderCard, Reply, Request
from memharness.readers.counters import Bytes4
from memharness.types import Item, MethodError, Text, Usage

from .working import asked, paragraph

FILM = paragraph(0, "Glass Harbour (film)", "Glass Harbour is a 1961 film by Ines Calder.", "It was shot at sea.")
MAKER = paragraph(1, "Ines Calder", "Ines Calder was a director from Porto.", "She kept bees and hated boats.")
OTHERS = [
    paragraph(n, f"Person {name}", f"Person {name} was born in a town.", "They liked films about the sea.")
    for n, name in enumerate(("Oakes", "Ternent", "Vale", "Quill"), start=2)
]
ITEMS = [FILM, MAKER, *OTHERS]


def index(items: list[Item] | None = None) -> Index:
    return Index([Record.of(item) for item in items or ITEMS])


def test_spans_are_parts_and_long_parts_are_split_into_sentences() -> None:
    short = Record.of(paragraph(0, "T", "One here.", "Two there."))
    assert [short.text[a:b] for a, b in sentences(short)] == ["One here.", "Two there."]
    long = Record.of(Item("i", "c", 0, (Text("A first sentence. " * 10 + "The «last» one!\nAnd a line" + "." * 200),)))
    spans = [long.text[a:b] for a, b in sentences(long)]
    assert spans[0] == "A first sentence." and spans[10] == "The «last» one!" and spans[11].startswith("And a line")
    assert "".join("".join(spans).split()) == "".join(long.text.split())


def test_names_are_whole_words_without_brackets_and_the_longer_of_two_wins() -> None:
    names = Names(["War (novel)", "Great War", "It (film)", "Ann Lee", "Ann Lee"])
    assert names.within("In the great war it rained") == {1}
    assert names.within("war") == set()  # three letters: mostly just a word
    assert names.within("ANN LEE’s") == {3, 4}
    assert names.within("Joann Leer") == set()


def test_links_raise_what_the_question_names_and_what_that_names() -> None:
    made = index()
    question = asked("Where was the maker of Glass Harbour from?")
    flat = np.zeros(len(made.spans), dtype=np.float32)
    at = {text: n for n, text in enumerate(made.texts)}
    scores = made.linked(question, flat, hops=1)
    film = scores[at["Glass Harbour (film): Glass Harbour is a 1961 film by Ines Calder."]]
    maker = scores[at["Ines Calder: Ines Calder was a director from Porto."]]
    assert film == 0.5 and maker == 0.25
    assert scores[at["Ines Calder: She kept bees and hated boats."]] == 0.0  # no lead, and not relevant by itself
    assert made.linked(question, flat, hops=0)[at["Ines Calder: Ines Calder was a director from Porto."]] == 0.0
    assert scores[at["Person Oakes: Person Oakes was born in a town."]] == 0.0


def test_both_hops_are_chosen_before_likelier_looking_sentences() -> None:
    made = index()
    question = asked("Where was the maker of Glass Harbour born?")
    lexical = made.lexical(question)
    scores = made.linked(question, extractor.relevance(lexical, lexical), 2)
    chosen = select(made, question, scores, range(len(ITEMS)), room=1000, cost=Bytes4().text, least=0.0, most=3)
    assert [one.source for one in chosen] == ["p0", "p0", "p1"]
    plain = select(made, question, lexical, range(len(ITEMS)), room=1000, cost=Bytes4().text, least=0.0, most=3)
    assert "p1" not in [one.source for one in plain]


def test_selection_stops_at_the_room_the_share_and_the_number() -> None:
    made = index()
    question = asked("films about the sea")
    scores = np.linspace(1, 0.1, len(made.spans)).astype(np.float32)

    def taken(room: float = 1e6, least: float = 0.0, most: int = 99, rows: list[int] | None = None) -> list[str]:
        kept = rows if rows is not None else list(range(len(ITEMS)))
        found = select(made, question, scores, kept, room=room, cost=Bytes4().text, least=least, most=most)
        return [one.source for one in found]

    assert len(taken()) == len(made.spans)
    assert len(taken(most=3)) == 3
    assert len(taken(room=1)) == 1  # the best is handed on even where it is too long for the room
    assert len(taken(least=0.5)) == int(np.sum(scores >= 0.5))
    assert set(taken(rows=[2, 4])) == {"p2", "p4"}


def test_figures_that_are_asked_for_must_stay_text() -> None:
    record = Record("r", "It opened in 1961 near Porto.")
    whole = (0, len(record.text))
    assert priority(asked("When did it open?"), record, whole).key is Rule.TEXT
    assert priority(asked("Where did it open?"), record, whole).key is Rule.VISUAL
    assert priority(asked("When did it open?"), record, (18, 28)).key is Rule.VISUAL
    assert priority(asked("next?", "action"), Record("r", "desk 1"), (0, 6)).key is Rule.TEXT


def test_a_context_without_words_has_no_spans() -> None:
    made = index([Item("i", "c", 0, ())])
    assert made.spans == [] and made.linked(asked("what?"), np.zeros(0, np.float32), 2).shape == (0,)
    assert np.isneginf(made.best(np.zeros(0, np.float32))).all()


@dataclass
class Says:
    """A reader that says what it is given, one reply a call."""

    replies: list[str]
    able: frozenset[str] = frozenset()
    seen: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.card = ReaderCard("says", "", "", "test", capabilities=self.able)
        self.counter: Counter = Bytes4()

    async def generate(self, request: Request) -> Reply:
        self.seen.append(request)
        return Reply(self.replies[min(len(self.seen), len(self.replies)) - 1], Usage())


RECORDS = [Record.of(item) for item in ITEMS]


async def test_a_model_selects_by_quoting_and_what_it_made_up_is_rejected() -> None:
    reply = (
        '{"evidence": [{"source": "p1", "quotes": ["a director from Porto"]}, {"source": "p0", "quotes": ["made up"]}]}'
    )
    chosen, said = await extractor.ask(Says([reply]), asked("Where from?"), RECORDS, 128)
    units, rejected = materialise(chosen, {record.id: record for record in RECORDS})
    assert [unit.content for unit in units] == ["a director from Porto"]
    assert rejected == ("p0: it quotes nothing of its source",)
    assert said == {"attempts": 1, "schema": False}


async def test_a_reader_that_follows_schemas_is_given_one_and_a_bad_reply_is_asked_for_again() -> None:
    reader = Says(["no", '{"evidence": []}'], frozenset({"schema"}))
    chosen, said = await extractor.ask(reader, asked("?"), RECORDS, 128)
    assert chosen == [] and said == {"attempts": 2, "schema": True}
    assert all(request.schema is not None for request in reader.seen)
    assert [request.sampling.temperature for request in reader.seen] == [0.0, 0.7]
    assert len({request.sample for request in reader.seen}) == 2


async def test_replies_that_stay_out_of_form_fail_the_question() -> None:
    with pytest.raises(MethodError, match="extractor: no reply in form in 3 attempts"):
        await extractor.ask(Says(["no"]), asked("?"), RECORDS, 128)
