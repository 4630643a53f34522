"""Sample files read with every fault named, and splits without a leak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.datafile import Row
from memharness.methods.memo import samples as module
from memharness.methods.memo.samples import Divided, Sample, divide, hold_out, read_samples, split_of
from memharness.methods.memo.supervision import supervise
from memharness.types import DataError, UserError
from tests.methods.memo.test_supervision import ROOT, opened
from tests.methods.memo.tiny import write_rows

MANAGER: dict[str, Any] = {
    "id": "q1",
    "question": "Who sold the kiln?",
    "budget": 64,
    "units": [{"id": "u1", "content": "Ada sold the kiln.", "spans": [[0, 3], [13, 17]]}],
    "plan": {"units": [{"id": "u1", "action": "text", "confidence": 1}], "usage": 9, "templates": ["cards"]},
}
EXTRACTOR: dict[str, Any] = {
    "id": "q1",
    "question": "Who sold the kiln?",
    "records": [{"id": "p0", "text": "Ada sold the kiln.", "title": "Ada"}, {"id": "p1", "text": "Rain."}],
    "evidence": [{"source": "p0", "quotes": ["Ada"]}],
}


def read(tmp_path: Path, kind: Any, row: dict[str, Any]) -> list[Sample]:
    return read_samples(write_rows(tmp_path / "rows.jsonl", [row]), kind)


def test_a_manager_sample_is_its_prompt_and_target(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, "manager", MANAGER)
    assert sample.request.parts()[1].text.endswith("Budget: 64 tokens\nUnits:\n[u1] «Ada» sold the «kiln».")
    assert json.loads(sample.target) == {
        **MANAGER["plan"],
        "units": [{**MANAGER["plan"]["units"][0], "confidence": 1.0}],
    }
    assert (sample.group, sample.where) == ("q1", f"{tmp_path / 'rows.jsonl'}: line 1")


def test_an_extractor_sample_is_its_prompt_and_target(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, "extractor", EXTRACTOR)
    assert sample.request.parts()[1].text.endswith("Budget: none\nRecords:\n[p0] Ada: Ada sold the kiln.\n[p1] Rain.")
    assert json.loads(sample.target) == {"evidence": EXTRACTOR["evidence"]}


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("manager", {"id": None}, "id: is missing"),
        ("manager", {"question": 3}, "question: must be text"),
        ("manager", {"units": []}, "units: is empty"),
        ("manager", {"units": MANAGER["units"] * 2}, "units: 'u1' comes twice"),
        ("manager", {"units": [{"id": "u1"}]}, "units 0: content: is missing"),
        ("manager", {"units": [{"id": "u1", "content": "Ada", "spans": [[2, 9]]}]}, r"units 0: spans\[0\]: must be"),
        ("manager", {"plan": {"units": [], "usage": 0, "templates": ["cards"]}}, "plan: has no action for unit u1"),
        ("manager", {"plan": {}}, "plan: the reply has no units"),
        ("manager", {"plan": {**MANAGER["plan"], "usage": -3}}, "plan: usage is -3"),
        ("manager", {"budget": 0}, "budget: 0 is no number of tokens"),
        ("manager", {"unique": "no"}, "unique: must be true or false"),
        ("extractor", {"records": {}}, "records: must be a list"),
        ("extractor", {"records": EXTRACTOR["records"] * 2}, "records: 'p0' comes twice"),
        ("extractor", {"evidence": [{"source": "p0", "quotes": ["Bo"]}]}, "evidence: 'p0' is no record, or holds not"),
        ("extractor", {"evidence": [{"source": "p9", "quotes": []}]}, "evidence: 'p9' is no record"),
        ("extractor", {"evidence": None}, "evidence: evidence is None, not a list"),
    ],
)
def test_what_is_wrong_is_named_by_file_line_and_field(
    tmp_path: Path, kind: Any, change: dict[str, Any], said: str
) -> None:
    row = (MANAGER if kind == "manager" else EXTRACTOR) | change
    with pytest.raises(DataError, match=rf"rows\.jsonl: line 1: {said}"):
        read(tmp_path, kind, row)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(UserError, match="holds no sample"):
        read_samples(tmp_path / "none.jsonl", "manager")


# --------------------------------------------------------------------------------------------------------- the splits


def without_leaks(parts: Divided) -> bool:
    """By the words themselves: no group, question or evidence of one split in another."""

    def shares(one: Sample, other: Sample) -> bool:
        asked = one.asked and one.asked == other.asked
        return bool(one.group == other.group or asked or one.evidence & other.texts)

    held: Sequence[Sequence[Sample]] = (parts.train, parts.val, parts.test)
    return not any(shares(one, other) for a, b in permutations(held, 2) for one in a for other in b)


def sample(name: str, group: str, question: str, contents: Sequence[str]) -> Sample:
    row = {
        "id": name,
        "group": group,
        "question": question,
        "records": [{"id": f"p{at}", "text": text} for at, text in enumerate(contents)],
        "evidence": [{"source": "p0", "quotes": []}],
    }
    return module.extractor_sample(Row(row, name))


MADE = st.lists(
    st.builds(
        sample,
        st.uuids().map(str),
        st.sampled_from([f"talk {n}" for n in range(40)]),
        st.sampled_from([f"Why {n}?" for n in range(60)] + ["WHY  1?"]),
        st.lists(st.sampled_from([f"Fact {n}." for n in range(80)]), min_size=1, max_size=3, unique=True),
    ),
    max_size=60,
)


@settings(max_examples=30, deadline=None)
@given(MADE, st.integers(0, 5))
def test_nothing_leaks_and_nothing_is_lost_unsaid(made: list[Sample], seed: int) -> None:
    parts = divide(made, seed)
    assert without_leaks(parts)
    assert sum(parts.sizes.values()) == len(made)
    assert parts.sizes["test"] == sum(split_of(one.group, seed) == "test" for one in made)  # the test loses none


@settings(max_examples=30, deadline=None)
@given(MADE, MADE)
def test_a_held_out_file_costs_training_samples_and_keeps_all_its_own(made: list[Sample], held: list[Sample]) -> None:
    groups = {one.group for one in held}
    if groups & {one.group for one in made}:
        with pytest.raises(UserError, match=r"group: .* is also held out"):
            hold_out(made, held)
    made = [one for one in made if one.group not in groups]
    parts = hold_out(made, held)
    assert list(parts.test) == held
    assert without_leaks(parts)


def test_a_group_keeps_its_split_whatever_else_there_is() -> None:
    names = [f"conv-{n}" for n in (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)]
    splits = [split_of(name) for name in names]
    assert [splits.count(split) for split in ("train", "val", "test")] == [8, 1, 1]
    made = [sample(name, name, f"Why {name}?", [f"{name}."]) for name in names]
    assert {one.group for one in divide(made[:5]).train} <= {one.group for one in divide(made).train}


def test_two_questions_about_one_paragraph_are_not_divided() -> None:
    made = [sample(f"q{n}", f"q{n}", f"Why {n}?", ["The one fact."]) for n in range(60)]
    parts = divide(made)
    assert [len(parts.train), len(parts.val)] == [0, 0]
    assert parts.leaks == 60 - len(parts.test) > 0


@pytest.mark.parametrize("name", ["hotpotqa", "2wiki", "locomo"])
def test_real_data_divide_without_a_leak(shared: Path, name: str) -> None:
    files = {
        "hotpotqa": "hotpotqa/hotpot_distractor_reflexion100.json",
        "2wiki": "2wikimultihopqa/2wiki_dev_sample500.json",
        "locomo": "locomo/locomo10.json",
    }
    bench = opened(name, shared / "data" / files[name])
    limit = 60 if name == "locomo" else 200
    rows = [module.extractor_row(one, 128) for one in supervise(bench, None, limit, most=16).examples]
    made = [module.extractor_sample(Row(row, name)) for row in rows]
    parts = divide(made)
    assert without_leaks(parts)
    assert len(parts.train) > 0.7 * len(made)


def test_games_are_not_divided() -> None:
    found = supervise(opened("alfworld", ROOT / "benchmarks" / "alfworld" / "sample")).examples
    made = [module.extractor_sample(Row(module.extractor_row(one, 128), "alfworld")) for one in found]
    groups = [{one.group for one in part} for part in (lambda p: (p.train, p.val, p.test))(divide(made, 1))]
    assert not any(a & b for a, b in permutations(groups, 2))
    assert divide(made, 1).leaks == 0  # a drawer that is closed in two games is no leak
