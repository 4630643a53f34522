from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmarks.hotpotqa import HotpotQA, read_entries, stated_facts
from memharness.types import Answer, DataError, Evidence, Outcome, Text, UserError

OFFICIAL = ["em", "f1", "prec", "recall"]
TWELVE = [prefix + name for prefix in ("", "sp_", "joint_") for name in OFFICIAL]


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "_id": "q1",
        "question": "Which river does the mill of Anselm Roe stand on?",
        "answer": "the Orrin",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Anselm Roe", 1], ["Lower Mill", 0]],
        "context": [
            ["Quill Fair", ["A fair."]],
            ["Anselm Roe", ["Anselm Roe is a miller.", " He owns Lower Mill."]],
            ["Lower Mill", ["Lower Mill stands on the Orrin."]],
        ],
        **changes,
    }


def write(folder: Path, *entries: Any, name: str = "data.json") -> Path:
    (folder / name).write_text(json.dumps(list(entries)))
    return folder / name


def test_items_are_paragraphs_with_sentences_as_parts(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(HotpotQA, write(tmp_path, entry()))
    (context,) = opened.contexts()
    episode = opened.episode(context)
    second = episode.items[1]
    assert second.parts == (Text("Anselm Roe is a miller."), Text(" He owns Lower Mill."))
    assert (second.id, second.label, second.keys["title"]) == ("p1", "Anselm Roe", "Anselm Roe")
    gold = episode.cases[0].gold
    assert gold.evidence == (Evidence("p1", 1), Evidence("p2", 0))
    assert gold.native_id == "q1"
    assert "q1" not in repr(episode.items) + repr(episode.cases[0].question)


def columns(row: dict[str, Any]) -> dict[str, Any]:
    """The Hugging Face form of an official row."""
    facts, context = row["supporting_facts"], row["context"]
    return {
        "id": row["_id"],
        **{key: row[key] for key in ("question", "answer", "type", "level")},
        "supporting_facts": {"title": [f[0] for f in facts], "sent_id": [f[1] for f in facts]},
        "context": {"title": [c[0] for c in context], "sentences": [c[1] for c in context]},
    }


def test_column_form_and_parquet_are_the_same_data(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [entry(), entry(_id="q2", answer="yes")]
    official = write(tmp_path, *rows)
    hub = write(tmp_path, *map(columns, rows), name="hub.json")
    lines = tmp_path / "hub.jsonl"
    lines.write_text("\n".join(json.dumps(columns(row)) for row in rows))
    parquet = tmp_path / "hub.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([columns(row) for row in rows]), parquet)

    def plain(path: Path) -> list[Any]:
        return [(e.id, e.question, e.answer, e.facts, e.paragraphs, e.type, e.level) for e in read_entries(path)]

    assert plain(official) == plain(hub) == plain(lines) == plain(parquet)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question": None}, ["record 0", "question", "is missing"]),
        ({"question": ["?"]}, ["question", "must be text, not a list"]),
        ({"answer": None}, ["(q1)", "answer", "missing or empty"]),
        ({"answer": True}, ["answer", "must be a string or a number"]),
        ({"context": []}, ["context", "is empty"]),
        ({"context": [["A", "not a list"]]}, ["context[0]", "[title, [sentence"]),
        ({"supporting_facts": [["A"]]}, ["supporting_facts[0]", "[title, sentence number]"]),
        ({"supporting_facts": None}, ["supporting_facts", "must be a list"]),
    ],
)
def test_faults_are_named(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    path = write(tmp_path, entry(**changes))
    with pytest.raises(DataError) as error:
        read_entries(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_repeated_id_names_both_records(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"record 1.*'q1' is already the id of .*record 0"):
        read_entries(write(tmp_path, entry(), entry()))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'[\n{"_id": "q1",,}\n]', "line 2"),
        (b"\xff\xfe", "not UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid x", "Git LFS pointer"),
        (b"[]", "holds no question"),
        (b'{"a": 1}', "must hold a list of records, not a mapping"),
        (b"[3]", "record 0: must be a mapping"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_files_that_are_no_data(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "data.json").write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_entries(tmp_path / "data.json")


def test_missing_file_and_ambiguous_folder(tmp_path: Path, bench: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="no such file"):
        bench(HotpotQA, tmp_path / "absent.json").contexts()
    with pytest.raises(DataError, match="no such file"):
        bench(HotpotQA, tmp_path / "absent.json").digest()
    write(tmp_path, entry(), name="one.json")
    assert len(bench(HotpotQA, tmp_path).contexts()) == 1
    write(tmp_path, entry(), name="two.json")
    with pytest.raises(DataError, match=r"one\.json, two\.json"):
        bench(HotpotQA, tmp_path).contexts()
    write(tmp_path, entry(), entry(_id="q2"), name="hotpot_dev_fullwiki_v1.json")
    assert len(bench(HotpotQA, tmp_path).contexts("fullwiki")) == 2
    with pytest.raises(UserError, match=r"one\.json is one file; name the folder"):
        bench(HotpotQA, tmp_path / "one.json").contexts("fullwiki")
    with pytest.raises(UserError, match=r"fullwik.*did you mean fullwiki"):
        bench(HotpotQA, tmp_path).contexts("fullwik")


def test_unresolved_facts_stay_in_the_gold_and_are_found(tmp_path: Path, bench: Callable[..., Any]) -> None:
    lost = entry(supporting_facts=[["Anselm Roe", 9], ["Absent", 0], ["Lower Mill", 0]])
    opened = bench(HotpotQA, write(tmp_path, lost))
    gold = opened.episode(opened.contexts()[0]).cases[0].gold
    assert gold.evidence == (Evidence("p2", 0),)
    assert len(gold.extra["facts"]) == 3
    found = " ".join(finding.message for finding in opened.check())
    assert "1 supporting facts of 1 questions name a title" in found
    assert "fullwiki" in found
    assert "1 supporting facts name a sentence that their paragraph lacks, such as q1 ('Anselm Roe' 9)" in found


def test_facts_come_from_the_answer_or_else_from_the_readout(
    tmp_path: Path, bench: Callable[..., Any], asked: Callable[..., Any]
) -> None:
    opened = bench(HotpotQA, write(tmp_path, entry()))
    case = opened.episode(opened.contexts()[0]).cases[0]
    assert stated_facts(asked(case, "Orrin")) is None
    assert stated_facts(asked(case, "Orrin", [Evidence("p1"), Evidence("p2", 0), Evidence("nowhere")])) == [
        ("Anselm Roe", 0),
        ("Anselm Roe", 1),
        ("Lower Mill", 0),
    ]
    assert stated_facts(asked(case, "Orrin", [Evidence("p1")], sp=[["Lower Mill", 0]])) == [("Lower Mill", 0)]
    perfect = opened.metrics()[0].score([asked(case, "Orrin", case.gold.evidence)], {})
    assert {name: score.value for name, score in perfect.items()} == dict.fromkeys(TWELVE, 1.0)
    failed = asked(case, None, case.gold.evidence)
    failed.record.outcome = Outcome.READER_ERROR
    assert {score.value for score in opened.metrics()[0].score([failed], {}).values()} == {0.0}


def test_k_that_covers_the_paragraphs_says_nothing(
    tmp_path: Path, bench: Callable[..., Any], asked: Callable[..., Any]
) -> None:
    opened = bench(HotpotQA, write(tmp_path, entry()))
    unit = asked(opened.episode(opened.contexts()[0]).cases[0], "x", [Evidence("p1")])
    at_two, at_five = (metric.score([unit], {}) for metric in opened.metrics()[1:3])
    assert at_two["recall@2"].value == 0.5
    assert (at_five["recall@5"].value, at_five["recall@5"].note) == (None, "k covers the whole haystack")


def test_missing_answers_and_facts_stay_in_the_mean(
    tmp_path: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]
) -> None:
    opened = bench(HotpotQA, write(tmp_path, *(entry(_id=f"q{n}") for n in range(4))))
    said = tmp_path / "pred.json"
    facts = [["Anselm Roe", 1], ["Lower Mill", 0]]
    said.write_text(json.dumps({"answer": {"q0": "Orrin", "q1": "Orrin"}, "sp": {"q0": facts, "q2": facts, "x": []}}))
    answers = dict(opened.predictions(said))
    assert answers["q1"] == Answer("Orrin")
    assert answers["q2"] == Answer(None, extra={"sp": facts})
    report = opened.report(evaluate(opened, said))
    assert {name: report[name] for name in ("em", "sp_em", "joint_em")} == {"em": 0.5, "sp_em": 0.5, "joint_em": 0.25}
    assert not [name for name in report if "recall@" in name]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "must be"),
        ({"sp": {}}, "answer: is missing"),
        ({"answer": {"q1": 3}}, "q1: must be text, not a whole number"),
        ({"answer": {}, "sp": {"q1": [["A", "0"]]}}, r"sp: q1\[0\]: must be"),
    ],
)
def test_prediction_files_in_another_form(tmp_path: Path, bench: Callable[..., Any], value: Any, words: str) -> None:
    (tmp_path / "pred.json").write_text(json.dumps(value))
    with pytest.raises(DataError, match=words):
        list(bench(HotpotQA, write(tmp_path, entry())).predictions(tmp_path / "pred.json"))


def test_golden_figures(shared: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]) -> None:
    opened = bench(HotpotQA, shared / "data/hotpotqa/hotpot_distractor_reflexion100.json")
    assert len(opened.contexts()) == 100
    report = opened.report(evaluate(opened, shared / "golden/hotpot_pred_reflexion100.json"))
    expected = json.loads((shared / "golden/hotpot_expected_reflexion100.json").read_text())["metrics"]
    assert sorted(expected) == sorted(TWELVE)
    assert {name: report[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_fullwiki_is_told_from_distractor(shared: Path, bench: Callable[..., Any]) -> None:
    lost = bench(HotpotQA, shared / "data/hotpotqa/hotpot_dev_fullwiki_sample500.json").check()
    assert any("529 supporting facts of 366 questions" in finding.message for finding in lost)
    for name in ("hotpot_distractor_reflexion100", "hotpotqa_train_100"):
        found = bench(HotpotQA, shared / f"data/hotpotqa/{name}.json").check()
        assert [finding.level for finding in found] == ["info", "info"]
        assert found[1].message.startswith("distractor data")
