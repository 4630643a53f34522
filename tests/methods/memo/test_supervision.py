"""Gold as the extractor's targets: per benchmark, in its native layout, and weak labels where there is no span."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmark import Benchmark, Data
from memharness.config import build
from memharness.media import MediaStore
from memharness.methods.memo import supervision
from memharness.methods.memo.supervision import Example, supervise
from memharness.registry import find
from memharness.types import UserError

ROOT = Path(__file__).resolve().parents[3]


def opened(name: str, path: Path, **options: Any) -> Benchmark:
    kind = find("benchmarks", name)
    return kind(Data(path, "given", MediaStore()), build(kind.options_class, options, "-B", name))


def quotes(example: Example) -> dict[str, list[str]]:
    """What is found, in words, by title or id."""
    records = {record.id: record for record in example.records}
    return {
        records[source].title or source: [records[source].text[slice(*span)] for span in spans]
        for source, spans in example.found
    }


def hotpot(folder: Path, *entries: dict[str, Any]) -> Path:
    path = folder / "hotpot.json"
    path.write_text(json.dumps(entries), "utf-8")
    return path


def entry(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "_id": name,
        "question": f"Where was the founder of Kiln House {name} born?",
        "answer": "Porto",
        "supporting_facts": [["Kiln House", 1], ["Ada Reis", 0]],
        "context": [
            ["Ada Reis", ["Ada Reis was born in Porto.", " She sings."]],
            ["Rain", ["Rain falls."]],
            ["Kiln House", ["Kiln House is a shop.", " It was founded by Ada Reis."]],
        ],
        "type": "bridge",
        "level": "hard",
        **changes,
    }


def test_hotpotqa_supporting_sentences_in_the_order_of_the_facts(tmp_path: Path) -> None:
    (example,) = supervise(opened("hotpotqa", hotpot(tmp_path, entry("a")))).examples
    assert quotes(example) == {
        "Kiln House": ["It was founded by Ada Reis."],
        "Ada Reis": ["Ada Reis was born in Porto."],
    }
    assert [record.title for record in example.records] == ["Ada Reis", "Rain", "Kiln House"]
    assert not example.weak
    assert example.group == example.case.question.id


def test_without_facts_the_sentence_that_says_the_answer_is_a_weak_label(tmp_path: Path) -> None:
    lost = [["Elsewhere", 0]]
    file = hotpot(
        tmp_path,
        entry("a", supporting_facts=lost),
        entry("b", supporting_facts=lost, answer="yes"),
        entry("c", supporting_facts=lost, answer="Lima"),
    )
    found = supervise(opened("hotpotqa", file))
    assert [quotes(one) for one in found.examples] == [{"Ada Reis": ["Ada Reis was born in Porto."]}]
    assert found.examples[0].weak
    assert sum(found.left_out.values()) == 2


def test_nothing_to_learn_is_an_error_that_says_why(tmp_path: Path) -> None:
    file = hotpot(tmp_path, entry("a", supporting_facts=[["Elsewhere", 0]], answer="Lima"))
    with pytest.raises(UserError, match=r"hotpot.json: nothing to learn from: 1 × no evidence in the gold"):
        supervise(opened("hotpotqa", file))


def test_locomo_turn_is_native_and_its_sentence_weak(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "Hi! How are you?"},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Fine. I bought a red canoe in Lugano. The weather is bad."},
    ]
    talk = {"speaker_a": "Ana", "speaker_b": "Bo", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    asked = {"question": "What did Bo buy?", "answer": "a canoe", "evidence": ["D1:2"], "category": 4}
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([{"sample_id": "talk-1", "conversation": talk, "qa": [asked]}]), "utf-8")
    (example,) = supervise(opened("locomo", path)).examples
    assert quotes(example) == {"D1:2": ["I bought a red canoe in Lugano."]}
    assert (example.weak, example.group) == (True, "talk-1")
    assert [(record.speaker, record.time) for record in example.records] == [
        ("Ana", "2023-05-08T13:56"),
        ("Bo", "2023-05-08T13:56"),
    ]


def test_alfworld_whole_states_of_the_entities_that_change() -> None:
    found = supervise(opened("alfworld", ROOT / "benchmarks" / "alfworld" / "sample"), limit=12)
    for example in found.examples:
        changing = [pointer.item for pointer in example.case.gold.evidence]
        assert [source for source, _ in example.found] == changing
        texts = {record.id: record.text for record in example.records}
        assert all(spans == ((0, len(texts[source])),) for source, spans in example.found)
        assert example.group == example.case.gold.cluster
        assert not example.unique


@pytest.mark.parametrize("name", ["hotpotqa", "two_wiki", "locomo", "alfworld"])
def test_the_samples_that_come_with_the_benchmarks_teach(name: str) -> None:
    folder = ROOT / "benchmarks" / name / "sample"
    found = supervise(opened("2wiki" if name == "two_wiki" else name, folder), limit=20)
    for example in found.examples:
        texts = {record.id: record.text for record in example.records}
        assert all(texts[source][start:end].strip() for source, spans in example.found for start, end in spans)


def test_of_a_long_memory_evidence_and_the_nearest_records_stay_in_order(tmp_path: Path) -> None:
    rest = [[f"Kiln {number}", [f"A founder of kiln {number}."]] for number in range(9)]
    file = hotpot(tmp_path, entry("a", context=[*rest[:4], *entry("a")["context"], *rest[4:]]))
    (example,) = supervise(opened("hotpotqa", file), most=4).examples
    assert len(example.records) == 4
    assert {source for source, _ in example.found} <= {record.id for record in example.records}
    assert "Rain" not in [record.title for record in example.records]
    assert [record.id for record in example.records] == sorted(
        (record.id for record in example.records), key=lambda name: int(name[1:])
    )


def test_a_benchmark_without_a_rule_is_refused() -> None:
    with pytest.raises(UserError, match=r"blink: there is no rule .* hotpotqa, 2wiki, locomo, alfworld"):
        supervise(opened("blink", ROOT / "benchmarks" / "blink" / "sample"))


def test_live_games_teach_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = opened("hotpotqa", hotpot(tmp_path, entry("a")))
    episode = bench.episode(bench.contexts()[0])
    episode.live = True
    monkeypatch.setattr(bench, "episode", lambda context: episode)
    with pytest.raises(UserError, match="live game shows no gold"):
        supervise(bench)


@given(st.text("ab.!? \n”)", max_size=40))
def test_sentences_hold_all_words_once(text: str) -> None:
    spans = supervision.sentences(text)
    assert "".join("".join(text[slice(*span)].split()) for span in spans) == "".join(text.split())
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_real_data_become_targets_that_read_back(shared: Path) -> None:
    from memharness.methods.memo import target

    found = supervise(opened("hotpotqa", shared / "data/hotpotqa/hotpot_distractor_reflexion100.json"))
    assert (len(found.examples), found.left_out) == (100, {})
    for example in found.examples:
        assert (
            target.read_extraction(target.extraction(example.found, example.records), example.records) == example.found
        )
