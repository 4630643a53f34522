"""Labels from a reader's outcomes: which action wins, what it takes to be believed, and that a kill costs little."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.media import MediaStore
from memharness.methods.memo.labels import Labeller, Labelling, Trial, choose_units, confidence, label, quality, ranked
from memharness.methods.memo.supervision import Example, supervise
from memharness.methods.memo.units import Action
from memharness.reader import Reader
from memharness.store import RequestCache
from memharness.types import Case, Gold, Question, Text, UserError
from tests.methods.memo import reading
from tests.methods.memo.test_supervision import entry, hotpot, opened

TEXT, IMAGE, DUAL, DROP = Action

TRIALS = st.dictionaries(
    st.sampled_from(list(Action)),
    st.builds(Trial, st.sampled_from([0, 0.3, 0.31, 0.5, 1]), st.integers(0, 128)),
    min_size=1,
)


@given(TRIALS, st.sampled_from([0.0, 0.02, 0.5]))
def test_the_first_is_the_cheapest_of_those_near_the_best(trials: dict[Action, Trial], near: float) -> None:
    first, *rest = ranked(trials, near)
    best = max(trial.quality for trial in trials.values())
    assert trials[first].quality >= best - near
    assert all(trials[one].tokens >= trials[first].tokens for one in rest if trials[one].quality >= best - near)
    assert {first, *rest} == set(trials)


@given(TRIALS, st.floats(0, 0.5), st.floats(0.5, 1))
def test_confidence_is_the_margin_on_its_interval(trials: dict[Action, Trial], low: float, high: float) -> None:
    values = sorted((trial.quality for trial in trials.values()), reverse=True)
    margin = values[0] - values[1] if len(values) > 1 else 1
    assert low <= confidence(trials.values(), low, high) <= high
    assert confidence(trials.values(), low, high) == pytest.approx(low + (high - low) * margin)


@pytest.mark.parametrize(
    ("benchmark", "gold", "said", "value"),
    [
        ("hotpotqa", Gold(("Porto",)), "in Porto", 2 / 3),
        ("2wiki", Gold(("Porto", "Oporto")), "Oporto", 1),
        ("hotpotqa", Gold(("yes",)), "yes, they were", 0),
        ("locomo", Gold(("a canoe, a kite",), category="1"), "canoes", 0.5),
        ("locomo", Gold((), category="5", abstain=True), "It is not mentioned.", 1),
        ("alfworld", Gold(("go to desk 1",)), "go to desk 2", 0.75),
    ],
)
def test_quality_is_by_the_rule_of_the_benchmark(benchmark: str, gold: Gold, said: str, value: float) -> None:
    case = Case(Question("q", "c", (Text("?"),)), gold)
    assert quality(benchmark, case, said) == pytest.approx(value)


# ----------------------------------------------------------------------------------------------------- with readers


def examples(tmp_path: Path, *entries: dict[str, Any]) -> list[Example]:
    return list(supervise(opened("hotpotqa", hotpot(tmp_path, *entries or (entry("a"),)))).examples)


def made(
    tmp_path: Path, reader: Reader, given: list[Example], budget: int = 64, **settings: Any
) -> list[dict[str, Any]]:
    cache = RequestCache(tmp_path / "replies.sqlite")
    labeller = Labeller(reader, cache, reader.media, "hotpotqa", "answer.v1", budget, Labelling(**settings))
    try:
        return asyncio.run(label(labeller, given, tmp_path / "labels.jsonl"))
    finally:
        cache.close()


def reader(kind: type[reading.TextOnly]) -> reading.TextOnly:
    return kind("", reading.ReadingConfig(), MediaStore())


def actions(row: dict[str, Any]) -> dict[str, str]:
    """Action by content."""
    said = {unit["id"]: unit["action"] for unit in row["plan"]["units"]}
    return {unit["content"]: said[unit["id"]] for unit in row["units"]}


def test_what_the_answer_needs_is_text_and_the_rest_dropped(tmp_path: Path) -> None:
    (row,) = made(tmp_path, reader(reading.TextOnly), examples(tmp_path))
    found = actions(row)
    assert found.pop("Ada Reis was born in Porto.") == "text"
    assert set(found.values()) == {"drop"}
    assert "It was founded by Ada Reis." in found
    needed = next(unit for unit in row["units"] if "Porto" in unit["content"])["id"]
    told = row["trials"][needed]
    assert (told["text"][0], told["drop"][0]) == (1, 0)
    assert told["text"][1] > told["drop"][1]
    sure = {unit["id"]: unit["confidence"] for unit in row["plan"]["units"]}
    assert sure.pop(needed) == 1.0
    assert set(sure.values()) == {0.5}
    assert 0 < row["plan"]["usage"] <= 64


def test_a_page_that_is_cheaper_wins_and_is_checked(tmp_path: Path) -> None:
    (row,) = made(tmp_path, reader(reading.Seeing), examples(tmp_path, entry("a", context=[["Ada Reis", [LONG]]])))
    assert actions(row) == {LONG: "image"}
    assert row["plan"]["usage"] == reading.PAGE_TOKENS


LONG = "Ada Reis, whose songs are sung to this day at every fair of the river towns, was born in Porto."


def test_a_page_that_the_reader_cannot_read_is_never_chosen(tmp_path: Path) -> None:
    (row,) = made(tmp_path, reader(reading.Blind), examples(tmp_path))
    assert "image" not in actions(row).values()
    assert actions(row)["Ada Reis was born in Porto."] == "text"


def test_two_units_that_say_the_same_are_not_both_dropped(tmp_path: Path) -> None:
    """Each alone can be spared while the other stands; the check asks what each is worth by itself."""
    twice = [["Ada Reis", ["Ada Reis was born in Porto."]], ["Reis", ["Her birth in Porto is on record: Reis."]]]
    facts = [["Ada Reis", 0], ["Reis", 0]]
    given = examples(tmp_path, entry("a", context=twice, supporting_facts=facts))
    (row,) = made(tmp_path, reader(reading.TextOnly), given)
    assert set(actions(row).values()) == {"text"}
    assert all(row["trials"][unit["id"]]["refused"] == ["drop"] for unit in row["units"])


def test_candidates_over_the_budget_are_out(tmp_path: Path) -> None:
    longer = entry(
        "a", context=[["Ada Reis", ["Ada Reis was born in Porto."]], ["Talk", [f"{'Ada Reis sang. ' * 9}Ada."]]]
    )
    given = examples(tmp_path, {**longer, "supporting_facts": [["Ada Reis", 0], ["Talk", 0]]})
    (row,) = made(tmp_path, reader(reading.TextOnly), given, budget=12)
    units = {unit["content"]: row["trials"][unit["id"]] for unit in row["units"]}
    assert actions(row)["Ada Reis was born in Porto."] == "text"
    assert [set(told) - {"refused"} for content, told in units.items() if "sang" in content] == [{"drop"}]
    assert all(tokens <= 12 for told in units.values() for name, (_, tokens) in told.items() if name != "refused")


def test_a_question_that_the_reader_always_gets_wrong_teaches_nothing(tmp_path: Path) -> None:
    assert made(tmp_path, reader(reading.TextOnly), examples(tmp_path, entry("a", answer="Lima"))) == []


def test_units_hold_the_evidence_and_their_order_does_not_tell_it(tmp_path: Path) -> None:
    (example,) = examples(tmp_path)
    units = choose_units(example, Labelling(units=3))
    texts = {record.id: record.text for record in example.records}
    assert {(source, span) for source, spans in example.found for span in spans} <= {
        (unit.source, unit.spans[0]) for unit in units
    }
    assert [unit.id for unit in units] == [f"u{at}" for at in range(1, len(units) + 1)]
    assert [unit.score for unit in units] == sorted((unit.score for unit in units), reverse=True)
    assert all(texts[unit.source][unit.start : unit.end] == unit.content for unit in units)


def test_finished_labels_and_replies_are_not_made_again(tmp_path: Path) -> None:
    given = examples(tmp_path, *(entry(name) for name in "abc"))
    first, again, other = reader(reading.TextOnly), reader(reading.TextOnly), reader(reading.TextOnly)
    rows = made(tmp_path, first, given[:2])
    assert made(tmp_path, again, given)[:2] == rows
    assert 0 < again.calls < first.calls  # the third question only
    (tmp_path / "labels.jsonl").unlink()
    assert made(tmp_path, other, given)[:2] == rows
    assert other.calls == 0


def test_labels_of_other_settings_are_made_anew(tmp_path: Path) -> None:
    given = examples(tmp_path)
    (row,) = made(tmp_path, reader(reading.TextOnly), given)
    (other,) = made(tmp_path, reader(reading.TextOnly), given, low=0.0)
    assert row["key"] != other["key"]
    assert [json.loads(line)["key"] for line in (tmp_path / "labels.jsonl").read_text().splitlines()] == [other["key"]]


def test_a_reader_that_fails_is_said_with_the_question(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"labels: question \w+: the reader failed \(the engine is gone\)"):
        made(tmp_path, reader(reading.Failing), examples(tmp_path))


def test_a_kill_loses_at_most_what_is_in_flight(tmp_path: Path) -> None:
    entries = [entry(f"q{number}") for number in range(20)]
    file = hotpot(tmp_path, *entries)
    calls = tmp_path / "calls.txt"
    plugin = f"{Path(reading.__file__)}:Slow"
    words = ["train", "memo-manager", "--bench", "hotpotqa", "--data", str(file), "--reader", plugin, "--samples-only"]
    words += ["--out", str(tmp_path / "out"), "-L", "at_once=2"]
    environment = {**os.environ, "CALLS": str(calls)}
    command = [sys.executable, "-m", "memharness", *words]
    killed = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    labels = tmp_path / "out" / "samples.jsonl"
    deadline = time.monotonic() + 120
    while not (labels.is_file() and labels.read_text().count("\n") >= 4):
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = calls.read_text().count("call")
    with labels.open("a") as torn:
        torn.write('{"key": "half a li')
    subprocess.run(command, env=environment, check=True, capture_output=True)
    resumed = [json.loads(line) for line in labels.read_text().splitlines()]
    (tmp_path / "whole").mkdir()
    undisturbed = reader(reading.TextOnly)
    rows = made(tmp_path / "whole", undisturbed, examples(tmp_path, *entries), budget=128)
    assert [row["plan"] for row in resumed] == [row["plan"] for row in rows]
    asked = calls.read_text().count("call")
    in_flight = 2 * 8  # two examples, whose units are asked beside each other
    assert before < asked <= undisturbed.calls + in_flight
