"""The builder: never over budget under any named counter, text first, each action and each template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.methods.memo import manager
from memharness.methods.memo.builder import FINE, Builder, Entry, WorkingMemory
from memharness.methods.memo.extractor import sentences
from memharness.methods.memo.units import (
    Action,
    EvidenceUnit,
    Plan,
    Priority,
    Record,
    Rule,
    Selection,
    Template,
    materialise,
)
from memharness.pages import draw
from memharness.reader import Counter, count
from memharness.types import Image, Item, Part, Text

from .working import ALL, asked, named, paragraph, turn

PEOPLE = [
    paragraph(0, "Ada Lovelace", "Ada Lovelace was born in 1815.", "She wrote notes on an engine.", "She loved birds."),
    paragraph(1, "Kiln", "A kiln is an oven.", "It bakes clay at 1,200 degrees."),
    paragraph(2, "Éire", "Éire is an island.", "Its parliament sits in Dublin, and its west is wet all year round."),
]
TALK = [
    turn(1, "Ada", "2023-05-08T13:56", "I bought a red kayak."),
    turn(2, "Bo", "2023-05-08T13:56", "Nice, which size?"),
    turn(3, "Ada", "2023-06-01T09:00", "The kayak is leaking, 3 litres an hour."),
]


def made(
    items: Sequence[Item], limit: int, counters: Sequence[Counter], pictures: bool = True
) -> tuple[Builder, tuple[EvidenceUnit, ...]]:
    """A builder over items, and every sentence as a unit, scores falling."""
    records = [Record.of(item) for item in items]
    chosen = [
        Selection(record.id, (span,), 1 / (1 + n + at))
        for n, record in enumerate(records)
        for at, span in enumerate(sentences(record))
    ]
    units, rejected = materialise(chosen, {record.id: record for record in records})
    assert not rejected
    return Builder(records, counters, limit, pictures=pictures), units


def parts(memory: WorkingMemory) -> tuple[Part, ...]:
    """What the reader would be shown."""
    page = memory.layout
    picture = (Image("0" * 64, "image/png", page.width, page.height),) if page else ()
    return ((Text(memory.text),) if memory.text else ()) + picture


def all_of(units: Sequence[EvidenceUnit], action: Action) -> Plan:
    return Plan({unit.id: action for unit in units})


# --------------------------------------------------------------------------------------------------------- the budget


@settings(max_examples=25, deadline=None)
@given(
    limit=st.integers(0, 420),
    actions=st.lists(st.sampled_from(list(Action)), min_size=7, max_size=7),
    sure=st.lists(st.floats(0, 1), min_size=7, max_size=7),
    usage=st.integers(0, 300),
    order=st.permutations(list(Template)),
    rules=st.lists(st.sampled_from(list(Rule)), min_size=7, max_size=7),
    names=st.sets(st.sampled_from([counter.name for counter in ALL]), min_size=1),
)
def test_no_plan_exceeds_any_named_counter(
    limit: int,
    actions: list[Action],
    sure: list[float],
    usage: int,
    order: list[Template],
    rules: list[Rule],
    names: set[str],
) -> None:
    counters = tuple(counter for counter in ALL if counter.name in names)
    builder, units = made(PEOPLE, limit, counters)
    units = tuple(replace(unit, priority=Priority(rule)) for unit, rule in zip(units, rules, strict=True))
    ids = [unit.id for unit in units]
    plan = Plan(dict(zip(ids, actions, strict=True)), dict(zip(ids, sure, strict=True)), usage, tuple(order[:2]))
    memory = builder.build(units, plan)
    most = min(limit, usage) if usage else limit
    assert all(count(counter, parts(memory)) <= most for counter in counters)
    assert set(memory.shown) == set(ids)
    for unit in units:
        shown = memory.shown[unit.id]
        record = builder.records[unit.source]
        if plan.action(unit) is Action.DROP:
            assert shown == "omitted"
        if shown in ("text", "dual"):
            assert unit.content.strip() in memory.text
        if shown in ("image", "dual"):
            assert memory.layout and any(unit.content.strip() in block.text for block in memory.layout.blocks)
        if shown != "omitted":
            assert set(record.pointers(unit.start, unit.end)) <= set(memory.evidence)


@settings(max_examples=12, deadline=None)
@given(limit=st.integers(1, 300), names=st.sets(st.sampled_from([counter.name for counter in ALL]), min_size=1))
def test_the_deterministic_manager_plans_what_can_be_built(limit: int, names: set[str]) -> None:
    counters = tuple(counter for counter in ALL if counter.name in names)
    builder, units = made(PEOPLE, limit, counters)
    plan = manager.decide(asked("Which is older, the kiln or Éire?"), units, builder)
    memory = builder.build(units, plan)
    assert all(count(counter, parts(memory)) <= limit for counter in counters)
    assert {unit.id: memory.shown[unit.id] for unit in units} == {
        unit.id: {"drop": "omitted"}.get(plan.action(unit), plan.action(unit).value) for unit in units
    }
    assert all(0 <= sure <= 1 for sure in plan.confidence.values())


@settings(max_examples=40, deadline=None)
@given(limit=st.integers(0, 60))
def test_without_extractor_and_manager_the_text_is_cut_between_words_at_the_budget(limit: int) -> None:
    builder, units = made(PEOPLE, limit, ALL)
    entries = builder.cut(units)
    text = builder.packet(entries)
    assert all(counter.text(text) <= limit for counter in ALL)
    assert [entry.unit.id for entry in entries] == [unit.id for unit in units[: len(entries)]]
    if len(entries) < len(units):  # one word more of the next unit would be too much
        unit = units[len(entries)] if not entries or entries[-1].end == entries[-1].unit.end else entries[-1].unit
        before = entries[:-1] if entries and entries[-1].unit is unit else entries
        end = entries[-1].end if before is not entries else unit.start
        rest = builder.records[unit.source].text[end : unit.end]
        more = end + len(rest) - len(rest.lstrip()) + len(rest.split()[0])
        assert not builder.text_holds([*before, Entry(unit, unit.start, more)])


# -------------------------------------------------------------------------------------------------------- the actions


def test_text_is_written_once_a_source_and_a_title_is_not_repeated() -> None:
    builder, units = made(PEOPLE, 1000, ALL)
    memory = builder.build(units, all_of(units, Action.TEXT))
    assert memory.text.splitlines() == [
        "Ada Lovelace was born in 1815. She wrote notes on an engine. She loved birds.",
        "Kiln: A kiln is an oven. It bakes clay at 1,200 degrees.",
        "Éire is an island. Its parliament sits in Dublin, and its west is wet all year round.",
    ]
    assert memory.layout is None and set(memory.shown.values()) == {"text"}


def test_dated_records_stand_in_their_own_order_under_their_time() -> None:
    builder, units = made(TALK, 1000, ALL)
    memory = builder.build(units[::-1], all_of(units, Action.TEXT))
    assert memory.text.splitlines() == [
        "2023-05-08 13:56",
        "Ada: I bought a red kayak.",
        "Bo: Nice, which size?",
        "2023-06-01 09:00",
        "Ada: The kayak is leaking, 3 litres an hour.",
    ]


def test_unit_ids_stand_in_the_text_if_asked_for_and_with_dual_units() -> None:
    records = [Record.of(item) for item in PEOPLE]
    builder, units = made(PEOPLE, 1000, named("nominal28"))
    plain = Builder(records, named("nominal28"), 1000, pictures=True, unit_ids=True)
    assert "[u1] Ada Lovelace was born" in plain.build(units, all_of(units, Action.TEXT)).text
    both = builder.build(units, Plan({"u1": Action.DUAL, "u2": Action.TEXT}))
    assert "[u1] Ada Lovelace was born in 1815." in both.text and "[u2]" not in both.text
    assert both.shown["u1"] == "dual" and both.layout is not None


def test_a_dual_unit_is_paid_for_twice() -> None:
    builder, units = made(PEOPLE, 1000, named("nominal28"))
    cost = {
        action: count(named("nominal28")[0], parts(builder.build(units, all_of(units[:1], action))))
        for action in Action
    }
    assert cost[Action.DROP] == 0
    assert cost[Action.DUAL] > max(cost[Action.TEXT], cost[Action.IMAGE])
    assert cost[Action.DUAL] >= cost[Action.TEXT] + cost[Action.IMAGE]


def test_text_comes_first_and_what_it_leaves_fixes_the_page() -> None:
    rich = made(PEOPLE, 1000, named("nominal28"))
    units = rich[1]
    plan = Plan({**{unit.id: Action.IMAGE for unit in units}, "u1": Action.TEXT})
    roomy = rich[0].build(units, plan)
    tight = made(PEOPLE, 75, named("nominal28"))[0].build(units, plan)
    assert roomy.text == tight.text  # the text does not give way
    assert roomy.layout and tight.layout and tight.layout.style.font_px < roomy.layout.style.font_px
    assert [unit for unit, shown in tight.shown.items() if shown == "image"]


def test_of_templates_the_first_that_fits_is_kept() -> None:
    builder, units = made(PEOPLE, 1000, named("nominal28"))
    costs = {}
    for template in Template:
        layout = builder.layout(units, [template], styles=FINE)
        assert layout is not None and layout.template == template.value
        costs[template] = -(-layout.width * layout.height // 784)
    dear, cheap = max(costs, key=lambda t: costs[t]), min(costs, key=lambda t: costs[t])
    roomy = builder.layout(units, [dear, cheap], styles=FINE)
    assert roomy is not None and roomy.template == dear.value
    narrow, _ = made(PEOPLE, costs[dear] - 5, named("nominal28"))  # a page may cost up to 4 more than the least
    tight = narrow.layout(units, [dear, cheap], styles=FINE)
    assert tight is not None and tight.template == cheap.value


def test_a_text_unit_that_does_not_fit_moves_to_the_page_unless_it_must_stay_text() -> None:
    builder, units = made(PEOPLE, 60, named("nominal28"))
    plan = Plan({unit.id: Action.TEXT for unit in units}, {unit.id: unit.score for unit in units})
    small = made(PEOPLE, 40, named("nominal28"))[0].build(units, plan)
    assert "omitted" in small.shown.values() and "text" in small.shown.values()
    strict = [EvidenceUnit(u.id, u.content, u.spans, u.source, Priority(Rule.TEXT), u.start, u.score) for u in units]
    assert "image" not in builder.build(strict, plan).shown.values()


def test_context_is_left_out_before_a_key_span_is() -> None:
    text = "The harbour of Porto was rebuilt in 1961 after a long and costly argument."
    record = Record("r", text, title="Harbour", kind="paragraph", pieces=((0, len(text), 0),))
    at = text.index("rebuilt")
    (unit,), _ = materialise([Selection("r", ((at, at + 15),))], {"r": record}, 300)
    memory = Builder([record], ALL, 7, pictures=False).build([unit], Plan({"u1": Action.TEXT}))
    assert memory.text == "Harbour: rebuilt in 1961" and memory.shown == {"u1": "key"}
    (pointer,) = memory.evidence
    assert pointer.span == (at, at + 15)
    kept = replace(unit, priority=Priority(Rule.TEXT, Rule.TEXT))
    assert Builder([record], ALL, 7, pictures=False).build([kept], Plan({"u1": Action.TEXT})).shown == {"u1": "omitted"}


# ------------------------------------------------------------------------------------------------ when no page can be


def test_where_the_least_picture_is_too_dear_everything_is_text_and_it_is_said() -> None:
    builder, units = made(PEOPLE, 128, named("internvl"))
    memory = builder.build(units, all_of(units, Action.IMAGE))
    assert memory.layout is None and set(memory.shown.values()) == {"text"}
    assert memory.note == "a picture costs 256 tokens or more by internvl+bytes4, 128 are left: text only"
    assert made(PEOPLE, 300, named("internvl"))[0].build(units, all_of(units, Action.IMAGE)).layout is not None


def test_a_reader_without_eyes_gets_text_only_and_it_is_said() -> None:
    builder, units = made(PEOPLE, 128, named("nominal28"), pictures=False)
    memory = builder.build(units, all_of(units, Action.DUAL))
    assert memory.layout is None and "text only" in memory.note and "[u1]" not in memory.text
    plan = manager.decide(asked("?"), units, made(PEOPLE, 30, named("nominal28"), pictures=False)[0])
    assert set(plan.actions.values()) <= {Action.TEXT, Action.DROP}


def test_characters_that_no_font_covers_stay_text_and_are_counted() -> None:
    items = [paragraph(0, "Sign", "The stone says \U000132bd here."), paragraph(1, "Kiln", "A kiln is an oven.")]
    builder, units = made(items, 128, named("nominal28"))
    memory = builder.build(units, all_of(units, Action.IMAGE))
    assert memory.shown == {"u1": "text", "u2": "image"}
    assert memory.note == "1 units hold characters that the page's fonts lack: not on the page"


# --------------------------------------------------------------------------------------------------------- the manager


@pytest.mark.parametrize(
    ("items", "question", "first"),
    [
        (PEOPLE, "Who wrote notes?", Template.CARDS),
        (PEOPLE, "Is the kiln older than Éire?", Template.TABLE),
        (TALK, "When did the kayak leak first?", Template.TIMELINE),
        (TALK, "Who has a kayak?", Template.CARDS),
        ([Item("e0", "c", 0, (Text("desk 1 holds a pen"),), kind="state")], "What next?", Template.CHECKLIST),
    ],
)
def test_templates_are_ordered_by_what_is_asked_and_remembered(
    items: Sequence[Item], question: str, first: Template
) -> None:
    builder, units = made(items, 128, ALL)
    order = manager.templates(asked(question), units, builder.records)
    assert order[0] is first and sorted(order) == sorted(Template)


def test_all_is_text_where_all_fits_and_a_page_is_made_only_where_it_shows_more() -> None:
    builder, units = made(PEOPLE, 400, named("nominal28"))
    assert set(manager.decide(asked("?"), units, builder).actions.values()) == {Action.TEXT}
    long = [
        paragraph(n, f"Town {n}", *(f"Fact {k} of town {n} is of some length." for k in range(9))) for n in range(3)
    ]
    builder, units = made(long, 75, named("nominal28"))
    plan = manager.decide(asked("Tell me of the towns"), units, builder)
    memory = builder.build(units, plan)
    alone = builder.plain(units, builder.fill(units)[0])

    def worth(shown: WorkingMemory) -> float:
        return sum(unit.score for unit in units if shown.shown[unit.id] != "omitted")

    assert memory.layout is not None and worth(memory) > worth(alone)


def test_on_a_timeline_what_must_stay_text_is_shown_on_the_page_as_well() -> None:
    talk = [
        turn(n, "Ada", f"2023-05-{n + 1:02}T10:00", f"On walk {n} we saw {n + 20} herons and a very old ferry boat.")
        for n in range(12)
    ]
    builder, units = made(talk, 226, named("nominal28"))
    units = (replace(units[0], priority=Priority(Rule.TEXT)), *units[1:])
    plan = manager.decide(asked("When were there 25 herons first?"), units, builder)
    assert plan.templates[0] is Template.TIMELINE
    assert plan.action(units[0]) is Action.DUAL and Action.IMAGE in plan.actions.values()
    assert builder.build(units, plan).shown["u1"] == "dual"


# -------------------------------------------------------------------------------------------------------- the pictures


@pytest.mark.parametrize("template", list(Template))
def test_each_template_draws_every_unit(template: Template, tmp_path: Path) -> None:
    """What the page says stands on it: ink where its lines are, none in the margin; looked at when it was written."""
    builder, units = made(TALK if template is Template.TIMELINE else PEOPLE, 400, named("nominal28"))
    memory = builder.build(units, Plan({unit.id: Action.IMAGE for unit in units}, templates=(template,)))
    assert memory.layout is not None and memory.layout.template == template.value
    page = draw(memory.layout)
    (tmp_path / f"{template.value}.png").write_bytes(page.png)
    with Pillow.open(tmp_path / f"{template.value}.png") as picture:
        grey = np.asarray(picture.convert("L"))
    assert grey.shape == (page.height, page.width)
    for line in memory.layout.lines:
        box = grey[line.y : line.y + line.height, line.x : line.x + max(1, round(line.width))]
        assert box.size and box.min() < 128, f"{line.text!r} is not drawn"
    assert grey[:, :3].min() == 255 and grey[:3].min() == 255
    drawn = " ".join(line.text for line in memory.layout.lines)
    for unit in units:
        assert all(word in drawn for word in unit.content.split())


def test_a_key_span_within_its_context_is_highlighted_on_the_page() -> None:
    text = "The harbour of Porto was rebuilt in 1961 after a long and costly argument."
    record = Record("r", text, title="Harbour", kind="paragraph", pieces=((0, len(text), 0),))
    at = text.index("rebuilt")
    (unit,), _ = materialise([Selection("r", ((at, at + 15),))], {"r": record}, 300)
    memory = Builder([record], named("nominal28"), 200, pictures=True).build([unit], Plan({"u1": Action.IMAGE}))
    assert memory.layout is not None
    assert "".join(run.text for line in memory.layout.lines for run in line.runs if run.key).split() == [
        "rebuilt",
        "in",
        "1961",
    ]
