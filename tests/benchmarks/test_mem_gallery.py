from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memharness.benchmarks.mem_gallery import COUNTS, INSTRUCTIONS, MemGallery, read_dialogue
from memharness.scoring.metrics import Recall, RecallReadout
from memharness.types import DataError, Derived, Evidence, Image, Status, Text, UserError


def dialogue() -> dict[str, Any]:
    return {
        "character_profile": {"name": "Odile", "persona_summary": "private", "traits": ["private"]},
        "multi_session_dialogues": [
            {
                "session_id": "D1",
                "date": "2024-06-24",
                "dialogues": [
                    {"round": "D1:1", "user": "Hello.", "assistant": "Hello, Odile."},
                    {
                        "round": "D1:2",
                        "user": "My new kite.",
                        "assistant": "It is red.",
                        "image_id": ["D1:IMG_001"],
                        "input_image": ["../image/Kites/D1_IMG_001.png"],
                        "image_caption": ["A red kite."],
                    },
                ],
            }
        ],
        "human-annotated QAs": [
            {
                "point": "VS",
                "question": "Which picture?",
                "answer": "D1:IMG_001",
                "session_id": ["D1"],
                "clue": ["D1:2"],
            },
            {"point": "AR", "question": "Any dog?", "answer": "Not mentioned.", "session_id": ["D1"], "clue": []},
            {
                "point": "VR",
                "question": "Is it this?",
                "answer": 0,
                "session_id": ["D1"],
                "clue": ["D1:2", "D1:1"],
                "question_image": "../image/Kites/QA_IMG_001.png",
                "image_caption": "A kite again.",
            },
        ],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "gallery"
    (root / "dialog").mkdir(parents=True)
    (root / "image/Kites").mkdir(parents=True)
    (root / "dialog/Kites.json").write_text(json.dumps(dialogue()))
    Pillow.new("RGB", (8, 6), "red").save(root / "image/Kites/D1_IMG_001.png")
    return root


def test_role_split_items(folder: Path, bench: Callable[..., Any]) -> None:
    episode = bench(MemGallery, folder).episode("Kites")
    assert [item.id for item in episode.items] == [
        "profile",
        "D1:1/user",
        "D1:1/assistant",
        "D1:2/user",
        "D1:2/assistant",
    ]
    profile, *_, shown, reply = episode.items
    assert (profile.text(), profile.kind, "private" in repr(episode.items)) == ("Odile", "profile", False)
    text, picture = shown.parts
    assert text == Text("My new kite.")
    assert isinstance(picture, Image)
    assert (picture.width, picture.height, picture.source) == (8, 6, "image/Kites/D1_IMG_001.png")
    assert shown.derived == (Derived("caption", "A red kite.", 1),)
    assert (shown.speaker, shown.time, shown.label) == ("Odile", "2024-06-24", "D1:IMG_001")
    assert (shown.session, dict(shown.keys)) == ("D1", {"round": "D1:2", "session": "D1"})
    assert (reply.speaker, reply.label, reply.derived) == ("assistant", None, ())


def test_round_items(folder: Path, bench: Callable[..., Any]) -> None:
    episode = bench(MemGallery, folder, units="round").episode("Kites")
    assert [item.id for item in episode.items] == ["D1:1", "D1:2"]
    assert episode.items[1].text() == "user (Odile): My new kite.\nassistant: It is red."
    assert episode.items[1].derived == (Derived("caption", "A red kite.", 1),)
    assert episode.cases[2].gold.evidence == (Evidence("D1:2"), Evidence("D1:1"))


def test_questions_and_gold(folder: Path, bench: Callable[..., Any]) -> None:
    search, refuse, look = bench(MemGallery, folder).episode("Kites").cases
    assert search.question.instruction == INSTRUCTIONS["VS"]
    assert search.gold.evidence == (Evidence("D1:2/user"), Evidence("D1:2/assistant"))
    assert (search.gold.native_id, search.gold.category, search.gold.cluster) == ("Kites:0", "VS", "Kites")
    assert (refuse.gold.abstain, refuse.gold.evidence) == (True, ())
    assert (look.gold.answers, look.gold.extra["answer"], look.question.instruction) == (("0",), 0, "")
    words, picture = look.question.parts
    assert isinstance(picture, Image)
    assert (words, picture.missing) == (Text("Is it this?"), True)
    assert look.question.derived == (Derived("caption", "A kite again.", 1),)


def test_instructions_can_be_switched_off(folder: Path, bench: Callable[..., Any]) -> None:
    opened = bench(MemGallery, folder, instructions=False)
    assert {case.question.instruction for case in opened.episode("Kites").cases} == {""}
    assert any("instructions=false" in line for line in MemGallery.card.reveals)


@pytest.mark.parametrize("at", ["", "dialog", "dialog/Kites.json"])
def test_folder_dialog_or_file(folder: Path, bench: Callable[..., Any], at: str) -> None:
    opened = bench(MemGallery, folder / at)
    assert opened.contexts() == ["Kites"]
    assert not opened.episode("Kites").items[3].parts[1].missing
    assert list(opened.digest()) == ["dialog/Kites.json", "image/Kites/D1_IMG_001.png"]


@pytest.mark.parametrize("path", ["../gallery", "dialog", "dialog/../dialog/Kites.json"])
def test_relative_paths(folder: Path, bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(folder)
    picture = bench(MemGallery, Path(path)).episode("Kites").items[3].parts[1]
    assert (picture.missing, picture.source) == (False, "image/Kites/D1_IMG_001.png")


def test_subset_is_a_dialogue(folder: Path, bench: Callable[..., Any]) -> None:
    assert bench(MemGallery, folder).contexts("Kites") == ["Kites"]
    with pytest.raises(UserError, match="did you mean Kites"):
        bench(MemGallery, folder).contexts("Kite")


def at(value: Any, *path: Any) -> Any:
    for step in path:
        value = value[step]
    return value


ROUND = ("multi_session_dialogues", 0, "dialogues", 1)
QA = ("human-annotated QAs", 0)


@pytest.mark.parametrize(
    ("path", "key", "new", "words"),
    [
        (ROUND, "round", "D1:1", ["round 1", "'D1:1' is already the id of"]),
        (ROUND, "user", 7, ["round 1", "user: must be text"]),
        (ROUND, "image_id", ["a", "b"], ["input_image", "as many as the pictures"]),
        (ROUND, "input_image", ["../../../etc/passwd"], ["input_image", "outside the data folder"]),
        (("multi_session_dialogues", 0), "date", None, ["session 0", "date: is missing"]),
        (("multi_session_dialogues", 0), "dialogues", [], ["multi_session_dialogues", "holds no round"]),
        (("character_profile",), "name", "", ["character_profile", "name: is empty"]),
        (QA, "clue", ["D7:1"], ["question 0", "clue", "'D7:1' is no round"]),
        (QA, "clue", None, ["question 0", "clue: is missing"]),
        (QA, "answer", "", ["question 0", "answer: is empty"]),
        (QA, "answer", None, ["question 0", "answer: is empty"]),
        (QA, "point", "XX", ["question 0", "'XX' is no category"]),
        ((), "human-annotated QAs", [], ["human-annotated QAs", "holds no question"]),
        ((), "multi_session_dialogues", {}, ["multi_session_dialogues", "must be a list, not a mapping"]),
    ],
)
def test_faults_are_named(
    folder: Path, bench: Callable[..., Any], path: Any, key: str, new: Any, words: list[str]
) -> None:
    value = dialogue()
    at(value, *path)[key] = new
    file = folder / "dialog/Kites.json"
    file.write_text(json.dumps(value))
    with pytest.raises(DataError) as error:
        bench(MemGallery, folder).contexts()
    for word in ["Kites.json", *words]:
        assert word in str(error.value)
    (finding,) = bench(MemGallery, folder).check()
    assert finding.level == "error"


def test_unreadable_picture_is_named(folder: Path, bench: Callable[..., Any]) -> None:
    (folder / "image/Kites/D1_IMG_001.png").write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(DataError, match=r"Kites\.json.*round 1: input_image.*not a readable picture"):
        bench(MemGallery, folder).contexts()


def test_no_data(tmp_path: Path, bench: Callable[..., Any]) -> None:
    for path, words in ((tmp_path / "absent", "no such file or folder"), (tmp_path, "holds no dialogue")):
        with pytest.raises(DataError, match=words):
            bench(MemGallery, path).contexts()


def test_recall_at_both_grains(folder: Path, bench: Callable[..., Any], asked: Callable[..., Any]) -> None:
    opened = bench(MemGallery, folder)
    search, refuse, look = opened.episode("Kites").cases

    def scores(case: Any, *items: str) -> dict[str, Any]:
        unit = asked(case, "x", map(Evidence, items))
        return {name: score for metric in opened.metrics() for name, score in metric.score([unit], {}).items()}

    found = scores(look, "D1:2/user", "profile")
    assert Recall(k=2).score([asked(look, "x", [Evidence("D1:2/user")])], {})["recall@2"].value == 0.25
    assert (found["recall@10_official"].value, found["hit@10_official"].value) == (0.5, 1.0)
    assert found["precision@10_official"].value == 0.5
    assert found["recall@10"].note == "k covers the whole haystack"
    none = scores(refuse, "D1:2/user")
    assert none["recall@10"].status is Status.NOT_APPLICABLE
    assert none["recall@10_official"].value == 0
    assert scores(search)["em"].value == 0


def results(**changes: Any) -> list[dict[str, Any]]:
    rows = [{"question": row["question"], "system_answer": "D1:IMG_001"} for row in dialogue()["human-annotated QAs"]]
    rows[0] |= changes
    return rows


def test_predictions_are_matched_by_place_and_words(
    folder: Path, tmp_path: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]
) -> None:
    opened = bench(MemGallery, folder)
    file = tmp_path / "Kites_results.json"
    file.write_text(json.dumps(results()[:1]))
    report = opened.report(evaluate(opened, tmp_path))
    assert (report["em"], report["em.VS"], report["em.AR"]) == (pytest.approx(1 / 3), 1.0, 0.0)
    assert "recall@10_official" not in report
    for rows, words in (
        (results(question="Another?"), "row 0: question: differs from question 0"),
        (results() * 2, "has 6 rows for the 3 questions"),
        ({"a": 1}, "must be the list of rows"),
        ([3], "row 0: must be a mapping"),
    ):
        file.write_text(json.dumps(rows))
        with pytest.raises(DataError, match=words):
            list(opened.predictions(file))
    file.rename(tmp_path / "Ships_results.json")
    with pytest.raises(DataError, match="for any dialogue of the data"):
        list(opened.predictions(tmp_path))


def test_real_counts_and_ceiling(shared: Path, bench: Callable[..., Any], asked: Callable[..., Any]) -> None:
    opened = bench(MemGallery, shared / "data/mem_gallery")
    cases = [case for context in opened.contexts() for case in opened.episode(context).cases]
    assert (len(opened.contexts()), len(cases), sum(bool(case.gold.evidence) for case in cases)) == (12, 1137, 1021)
    found = [Recall(k=10).one(asked(case, "x", case.gold.evidence)) for case in cases]
    values = [score.value for score in found if score.value is not None]
    assert len(values) == 1021
    assert sum(values) / len(values) == pytest.approx(0.97276, abs=5e-6)
    assert sum(value < 1 for value in values) == 104
    whole = [RecallReadout().score([asked(c, "x", c.gold.evidence)], {})["recall_readout"].value for c in cases]
    assert {value for value in whole if value is not None} == {1.0}
    assert "12 of 20 contexts" in opened.check()[0].message
    assert COUNTS["questions"] == MemGallery.card.counts["questions"] == 1711


def test_golden_figures(shared: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]) -> None:
    opened = bench(MemGallery, shared / "data/mem_gallery")
    rows = evaluate(opened, shared / "golden/mem_gallery")
    for context in opened.contexts():
        report = opened.report(row for row in rows if row.context == context)
        recorded = json.loads((shared / f"golden/mem_gallery/{context}_evaluate_result.json").read_text())
        for name, value in recorded["avg_overall_metrics_final"].items():
            assert report[name.lower()] == pytest.approx(value, abs=1e-9), (context, name)
        for category, figures in recorded["avg_category_metrics_final"].items():
            for name, value in (pair for figure in figures for pair in figure.items()):
                assert report[f"{name.lower()}.{category}"] == pytest.approx(value, abs=1e-9), (context, category, name)


def test_read_dialogue_needs_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(DataError, match="must be a mapping with multi_session_dialogues, not a list"):
        read_dialogue(tmp_path / "x.json")
