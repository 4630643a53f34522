from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmarks.two_wiki import TwoWiki
from memharness.types import Answer, DataError, Evidence, Status, UserError

# What the official scripts print for golden/2wiki_pred_sample500.json: v1, and v1.1 with an empty alias file.
PRINTED = {
    **{"em": 39.4, "f1": 57.51, "prec": 60.34, "recall": 58.8},
    **{"sp_em": 83.4, "sp_f1": 93.4, "sp_prec": 100.0, "sp_recall": 90.7},
    **{"evi_em": 83.4, "evi_f1": 93.28, "evi_prec": 100.0, "evi_recall": 90.59},
    **{"joint_em": 33.6, "joint_f1": 52.49, "joint_prec": 60.34, "joint_recall": 53.3},
}


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "_id": "q1",
        "type": "compositional",
        "question": "Where is the director of Salt buried?",
        "context": [["Oda", ["Oda was a director.", "She is buried in Marrow."]], ["Salt", ["A film.", "By Oda."]]],
        "entity_ids": "Q1_Q2",
        "supporting_facts": [["Salt", 1], ["Oda", 1]],
        "evidences": [["Salt", "director", "Oda"], ["Oda", "place of burial", "Marrow"]],
        "answer": "Marrow",
        "evidences_id": [["Q1", "director", "Q2"], ["Q2", "place of burial", "Q3"]],
        "answer_id": "Q3",
        **changes,
    }


def write(folder: Path, *entries: Any, aliases: list[dict[str, Any]] | None = None) -> Path:
    (folder / "dev.json").write_text(json.dumps(list(entries)))
    if aliases is not None:
        (folder / "id_aliases.json").write_text("".join(json.dumps(line) + "\n" for line in aliases))
    return folder


def scores(bench: Any, asked: Callable[..., Any], answer: str | None, **extra: Any) -> dict[str, Any]:
    (case,) = bench.episode(bench.contexts()[0]).cases
    (metric, *_) = bench.metrics()
    unit = asked(case, answer, ())
    unit.record.extra = extra
    return dict(metric.score([unit], {}))


def test_figures_equal_the_official_scripts(
    shared: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]
) -> None:
    opened = bench(TwoWiki, shared / "data/2wikimultihopqa/2wiki_dev_sample500.json")
    report = opened.report(evaluate(opened, shared / "golden/2wiki_pred_sample500.json"))
    for version in ("v1", "v1.1"):
        assert {name: report[f"{version}.{name}"] for name in PRINTED} == PRINTED


def test_an_alias_counts_in_v11_alone(tmp_path: Path, bench: Callable[..., Any], asked: Callable[..., Any]) -> None:
    aliases = [
        {"Q_id": "Q3", "aliases": ["Old Marrow"], "demonyms": ["Marrower"]},
        {"Q_id": "Q2", "aliases": ["O. Lind"], "demonyms": []},
        {"Q_id": "Q77", "aliases": ["of no question"], "demonyms": []},
    ]
    opened = bench(TwoWiki, write(tmp_path, entry(), aliases=aliases))
    assert set(opened.aliases) == {"Q2", "Q3"}
    got = scores(
        opened,
        asked,
        "marrower",
        evidence=[["Salt", "director", "O. Lind"], ["O. Lind", "place of burial", "Old Marrow"]],
        sp=[["Salt", 1], ["Oda", 1]],
    )
    assert (got["em"].value, got["v11_em"].value) == (0, 1)
    assert (got["evi_em"].value, got["v11_evi_em"].value, got["v11_joint_em"].value) == (0, 1, 1)


def test_an_answer_without_triples_has_no_evidence_figure_but_a_pair_one(
    tmp_path: Path, bench: Callable[..., Any], asked: Callable[..., Any]
) -> None:
    opened = bench(TwoWiki, write(tmp_path, entry()))
    got = scores(opened, asked, "Marrow", sp=[["Salt", 1], ["Oda", 1]])
    assert got["evi_f1"].status is got["joint_f1"].status is got["v11_joint_em"].status is Status.NOT_APPLICABLE
    assert got["pair_em"].value == 1
    missing = scores(opened, asked, "Marrow", sp=[["Salt", 1], ["Oda", 1]], evidence=None)
    assert (missing["evi_em"].value, missing["joint_f1"].value) == (0, 0)


def test_one_prediction_file_may_miss_what_another_has(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(TwoWiki, write(tmp_path, entry()))
    file = tmp_path / "pred.json"
    file.write_text(json.dumps({"answer": {"q1": "Marrow"}, "sp": {}, "evidence": {"q1": [["a", "b", "c"]]}}))
    assert dict(opened.predictions(file)) == {"q1": Answer("Marrow", extra={"evidence": [("a", "b", "c")]})}
    file.write_text(json.dumps({"answer": {"q1": "Marrow"}, "sp": {}}))
    with pytest.raises(DataError, match="evidence: is missing"):
        list(opened.predictions(file))


def test_gold_as_prediction_is_perfect(sample: Callable[[str], Path], bench: Callable[..., Any], asked: Any) -> None:
    opened = bench(TwoWiki, sample("two_wiki"))
    for context in opened.contexts():
        (case,) = opened.episode(context).cases
        assert len(case.gold.evidence) == len(case.gold.extra["facts"])
        answer = opened.gold_answer(case)
        (metric, *_) = opened.metrics()
        unit = asked(case, answer.text, answer.readout.evidence)
        unit.record.extra = answer.extra
        got = metric.score([unit], {})
        assert {score.value for score in got.values()} == {1.0}
    assert not [finding for finding in opened.check() if finding.level != "info"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"evidences": [["a", "b"]]}, r"evidences\[0\]: must be \[subject, relation, object\]"),
        ({"evidences": None}, "evidences: must be a list"),
        ({"evidences_id": [["Q1", "director", "Q2"]]}, "evidences_id: names 1 triples where evidences has 2"),
        ({"answer": ""}, "answer: is missing or empty"),
        ({"supporting_facts": [["Salt", "1"]]}, r"supporting_facts\[0\]"),
    ],
)
def test_bad_records_are_named(tmp_path: Path, bench: Callable[..., Any], changes: dict[str, Any], said: str) -> None:
    opened = bench(TwoWiki, write(tmp_path, entry(**changes)))
    with pytest.raises(DataError, match=f"q1.*{said}"):
        opened.contexts()


def test_aliases_are_named_and_missed_aloud(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(TwoWiki, write(tmp_path, entry()))
    assert any("id_aliases.json" in finding.message for finding in opened.check())
    with pytest.raises(UserError, match="no such file"):
        bench(TwoWiki, tmp_path, aliases=str(tmp_path / "none.json")).digest()
    before = opened.digest()
    (tmp_path / "id_aliases.json").write_text('{"Q_id": "Q3", "aliases": [], "demonyms": []}\n')
    assert bench(TwoWiki, tmp_path).digest() != before
    (tmp_path / "id_aliases.json").write_text('{"aliases": []}\n')
    with pytest.raises(DataError, match="line 1: Q_id: is missing"):
        _ = bench(TwoWiki, tmp_path).aliases


def test_the_release_is_found_in_the_folder_that_its_archive_makes(tmp_path: Path, bench: Callable[..., Any]) -> None:
    inner = tmp_path / "data_ids"
    inner.mkdir()
    write(inner, entry(), aliases=[{"Q_id": "Q3", "aliases": ["Old Marrow"], "demonyms": []}])
    (inner / "test.json").write_text("[]")
    (tmp_path / "data_ids_april7.zip").write_bytes(b"packed")
    opened = bench(TwoWiki, tmp_path)
    assert len(opened.contexts()) == len(opened.contexts("dev")) == 1
    assert opened.aliases == {"Q3": ("Old Marrow",)}
    assert set(opened.digest()) == {"dev.json", "test.json", "id_aliases.json"}


def test_two_paragraphs_of_one_title_are_told_apart_by_place(tmp_path: Path, bench: Callable[..., Any]) -> None:
    twice = entry(context=[["Oda", ["One."]], *entry()["context"]])
    opened = bench(TwoWiki, write(tmp_path, twice))
    (case,) = opened.episode(opened.contexts()[0]).cases
    assert case.gold.evidence == (Evidence("p2", 1), Evidence("p1", 1))
    assert any(
        "two paragraphs of one title (facts go to the first), such as q1 ('Oda')" in f.message for f in opened.check()
    )
