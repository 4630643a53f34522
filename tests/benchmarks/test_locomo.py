from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmarks.locomo import DATE_HINT, SHA256, LoCoMo, LoCoMoRecall, LoCoMoScores, repair
from memharness.scoring.metrics import Recall
from memharness.types import Answer, Case, DataError, Derived, Evidence, Gold, Image, Question, Readout, Text, UserError


def conversation(**changes: Any) -> dict[str, Any]:
    return {
        "sample_id": "conv-9",
        "conversation": {
            "speaker_a": "Ilse",
            "speaker_b": "Bram",
            "session_10_date_time": "12:05 am on 1 January, 2024",
            "session_10": [{"speaker": "Bram", "dia_id": "D10:1", "text": "Happy new year."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ilse", "dia_id": "D2:1", "text": "I row now."},
                {
                    "speaker": "Bram",
                    "dia_id": "D2:2",
                    "text": "Look.",
                    "img_url": ["https://example.org/a.jpg"],
                    "blip_caption": "a photo of a boat",
                    "query": "rowing boat leak",
                    "re-download": True,
                },
                {"speaker": "Ilse", "dia_id": "D2:3", "text": "", "blip_caption": "a lake"},
            ],
            "session_11_date_time": "1:00 pm on 2 January, 2024",
        },
        "qa": [
            {"question": "What does Ilse do?", "answer": "rowing, singing", "evidence": ["D2:1"], "category": 1},
            {"question": "When did she start?", "answer": 2023, "evidence": ["D2:01; (D10:1)"], "category": 2},
            {"question": "Would she swim?", "answer": "Likely; she rows", "evidence": ["D"], "category": 3},
            {"question": "What did Bram show?", "answer": "a boat", "evidence": ["D2:2"], "category": 4},
            {"question": "What does Bram row?", "adversarial_answer": "a canoe", "evidence": ["D2:1"], "category": 5},
        ],
        **changes,
    }


def write(folder: Path, *samples: Any) -> Path:
    (folder / "data.json").write_text(json.dumps(list(samples)))
    return folder / "data.json"


def test_turns_by_session_number_and_never_by_dates(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(LoCoMo, write(tmp_path, conversation()))
    items = opened.episode("conv-9").items
    assert [item.id for item in items] == ["D2:1", "D2:2", "D2:3", "D10:1"]
    assert [item.time for item in items] == ["2023-05-08T13:56"] * 3 + ["2024-01-01T00:05"]
    assert [item.session for item in items] == ["session_2"] * 3 + ["session_10"]
    assert items[1].parts == (Text("Look."), Image(None, source="https://example.org/a.jpg"))
    assert items[1].derived == (Derived("caption", "a photo of a boat", 1),)
    assert items[2].parts == (Text(""), Image(None))
    assert "leak" not in repr(items)


def test_gold(tmp_path: Path, bench: Callable[..., Any]) -> None:
    many, when, would, _, trap = bench(LoCoMo, write(tmp_path, conversation())).episode("conv-9").cases
    assert (many.gold.native_id, many.gold.category, many.gold.cluster) == ("conv-9_qa0", "1", "conv-9")
    assert (when.gold.answers, when.gold.extra["answer"]) == (("2023",), 2023)
    assert when.gold.evidence == (Evidence("D2:1"), Evidence("D10:1"))
    assert when.question.instruction == DATE_HINT
    assert would.gold.evidence == ()
    assert (trap.gold.answers, trap.gold.abstain, trap.gold.extra["adversarial_answer"]) == ((), True, "a canoe")
    assert "canoe" not in repr(trap.question)
    off = bench(LoCoMo, tmp_path / "data.json", date_hint=False).episode("conv-9").cases
    assert {case.question.instruction for case in off} == {""}


@pytest.mark.parametrize(
    ("published", "turns", "lost"),
    [
        (["D8:6; D9:17"], ("D8:6", "D9:17"), ()),
        (["D9:1 D4:4 D4:6"], ("D9:1", "D4:4", "D4:6"), ()),
        (["D30:05"], ("D30:5",), ()),
        (["(D4:4)", "D4:4;"], ("D4:4",), ()),
        (["D"], (), ("D",)),
        (["D:11:26"], (), ("D:11:26",)),
        (["D4:36"], (), ("D4:36",)),
        ([], (), ()),
    ],
)
def test_evidence_repair(published: list[str], turns: tuple[str, ...], lost: tuple[str, ...]) -> None:
    known = frozenset({"D8:6", "D9:17", "D9:1", "D4:4", "D4:6", "D30:5"})
    found = repair(published, known)
    assert (found.turns, found.lost) == (turns, lost)


def test_repairs_are_said_entry_by_entry(tmp_path: Path, bench: Callable[..., Any]) -> None:
    said = conversation()
    said["qa"][3]["evidence"] = ["D2:2", "D2:01; D9:9"]
    found = [finding for finding in bench(LoCoMo, write(tmp_path, said)).check() if finding.level == "warning"]
    assert [(finding.where.rpartition(": ")[2], finding.message) for finding in found] == [
        ("qa 1", "evidence: 'D2:01; (D10:1)': read as D2:1, D10:1"),
        ("qa 2", "evidence: 'D': dropped D, which names no turn"),
        ("qa 3", "evidence: 'D2:01; D9:9': read as D2:1; dropped D9:9, which names no turn"),
    ]


def test_the_older_release_has_its_sessions_beside_the_questions(tmp_path: Path, bench: Callable[..., Any]) -> None:
    nested = conversation()
    flat = {**nested.pop("conversation"), **nested}
    old, new = (bench(LoCoMo, write(tmp_path, one)).episode("conv-9") for one in (flat, conversation()))
    assert (old.items, old.cases) == (new.items, new.cases)


def test_two_choices_are_seeded_and_read_back(
    tmp_path: Path, bench: Callable[..., Any], asked: Callable[..., Any]
) -> None:
    path = write(tmp_path, conversation())
    opened = bench(LoCoMo, path, adversarial="choice")
    case = opened.episode("conv-9").cases[4]
    texts = case.gold.extra["choices"]
    assert [choice.key for choice in case.question.choices] == ["A", "B"]
    assert sorted(texts.values()) == ["Not mentioned in the conversation", "a canoe"]
    assert texts == bench(LoCoMo, path, adversarial="choice").episode("conv-9").cases[4].gold.extra["choices"]
    right = next(key for key, words in texts.items() if words.startswith("Not"))
    wrong = "AB".replace(right, "")
    for said, value in ((right, 1), (f"({right.lower()})", 1), (wrong, 0), (f"The answer is {wrong}.", 0)):
        assert LoCoMoScores().score([asked(case, said)], {})["f1"].value == value, said
    assert bench(LoCoMo, path).episode("conv-9").cases[4].question.form == "text"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda s: s["conversation"]["session_2"][0].pop("text"), ""),
        (lambda s: s["conversation"]["session_2"][0].update(text=3), r"session_2 turn 0: text: must be text"),
        (lambda s: s["conversation"]["session_2"][1].update(dia_id="D2:1"), r"dia_id: 'D2:1' is already the id of"),
        (lambda s: s["conversation"]["session_2"][1].update(dia_id="2-1"), r"dia_id: '2-1' is not of the form"),
        (
            lambda s: s["conversation"].update(session_2_date_time="May"),
            r"session_2_date_time: 'May' is not of the form",
        ),
        (lambda s: s["conversation"].pop("session_2_date_time"), r"session_2_date_time: is missing"),
        (lambda s: s.update(conversation={}), r"conversation: holds no session"),
        (lambda s: s.update(qa=[]), r"qa: holds no question"),
        (lambda s: s["qa"][0].pop("answer"), r"qa 0: answer: is missing or empty"),
        (lambda s: s["qa"][0].update(answer={"a": 1}), r"qa 0: answer: a gold answer must be"),
        (lambda s: s["qa"][0].update(category=6), r"qa 0: category: 6 is no category"),
        (lambda s: s["qa"][0].update(category="1"), r"qa 0: category: must be a whole number"),
        (lambda s: s["qa"][0].pop("evidence"), r"qa 0: evidence: is missing"),
        (lambda s: s["qa"][4].update(adversarial_answer=[]), r"qa 4: adversarial_answer: must be text"),
    ],
)
def test_faults_are_named(tmp_path: Path, bench: Callable[..., Any], spoil: Callable[[Any], Any], words: str) -> None:
    sample = conversation()
    spoil(sample)
    opened = bench(LoCoMo, write(tmp_path, sample))
    if not words:
        assert opened.contexts() == ["conv-9"]
        return
    with pytest.raises(DataError, match=rf"data\.json: record 0 \(conv-9\).*{words}"):
        opened.contexts()


def test_repeated_conversation_and_no_data(tmp_path: Path, bench: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="'conv-9' is already the id of"):
        bench(LoCoMo, write(tmp_path, conversation(), conversation())).contexts()
    with pytest.raises(DataError, match="no such file"):
        bench(LoCoMo, tmp_path / "absent.json").digest()
    with pytest.raises(DataError, match="holds no conversation"):
        bench(LoCoMo, write(tmp_path)).contexts()
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(DataError, match=r"data\.json, other\.json; name the file"):
        bench(LoCoMo, tmp_path).contexts()
    with pytest.raises(UserError, match="no such conversation"):
        bench(LoCoMo, write(tmp_path, conversation())).contexts("conv-1")


def test_report_by_category_and_without_the_adversarial(
    tmp_path: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]
) -> None:
    opened = bench(LoCoMo, write(tmp_path, conversation()))
    said = conversation()
    for row, words in zip(said["qa"], ("rowing", "2023", "Likely", "a boat", "not mentioned"), strict=True):
        row["gpt_prediction"] = words
    said["qa"][0]["gpt_prediction_context"] = ["D2:2", "D2:1"]
    (tmp_path / "out.json").write_text(json.dumps([said]))
    assert dict(opened.predictions(tmp_path / "out.json"))["conv-9_qa0"] == Answer(
        "rowing", readout=Readout((Evidence("D2:2"), Evidence("D2:1")))
    )
    report = opened.report(evaluate(opened, tmp_path / "out.json"))
    figures = {"f1": 0.9, "f1.1": 0.5, "f1.2": 1, "f1.3": 1, "f1.4": 1, "f1.5": 1, "f1.1-4": 0.875, "abstention": 1}
    assert {name: report[name] for name in figures} == pytest.approx(figures)
    assert report["recall_official"] == 1
    assert "set_f1.5" not in report


def test_predictions_in_another_form(tmp_path: Path, bench: Callable[..., Any]) -> None:
    opened = bench(LoCoMo, write(tmp_path, conversation()))
    for change, words in (
        ({"gpt_prediction": "x", "mem_prediction": "y"}, "found gpt_prediction, mem_prediction"),
        ({}, "found none"),
        ({"gpt_prediction": "x", "question": "Other?"}, "question: differs from"),
    ):
        said = conversation()
        said["qa"][0] |= change
        (tmp_path / "out.json").write_text(json.dumps([said]))
        with pytest.raises(DataError, match=words):
            list(opened.predictions(tmp_path / "out.json"))


def test_errata_need_their_file(tmp_path: Path, bench: Callable[..., Any]) -> None:
    for options in ({}, {"errata_file": str(tmp_path / "absent.json")}):
        with pytest.raises(UserError, match="give the audit's errors"):
            bench(LoCoMo, write(tmp_path, conversation()), errata="corrected", **options).contexts()


def test_errata_are_applied_and_hashed(tmp_path: Path, bench: Callable[..., Any]) -> None:
    correction = {
        "question_id": "locomo_0_qa3",
        "question": "What did Bram show?",
        "correct_answer": "a photo of a boat",
        "correct_evidence": ["D2:3"],
        "error_type": "INCOMPLETE",
    }
    path = write(tmp_path, conversation(sample_id="conv-26"))
    errata = tmp_path / "errors.jsonl"
    errata.write_text(json.dumps(correction))
    opened = bench(LoCoMo, path, errata="corrected", errata_file=str(errata))
    gold = opened.episode("conv-26").cases[3].gold
    assert (gold.answers, gold.evidence, gold.extra["errata"]) == (
        ("a photo of a boat",),
        (Evidence("D2:3"),),
        "INCOMPLETE",
    )
    assert set(opened.digest()) == {"data.json", "errata"}
    assert "errata_file" not in opened.options.model_dump()
    errata.write_text(json.dumps(correction | {"question": "Another?"}))
    with pytest.raises(DataError, match="question: differs from"):
        bench(LoCoMo, path, errata="corrected", errata_file=str(errata)).contexts()


def test_official_vectors(shared: Path, asked: Callable[..., Any]) -> None:
    vectors = json.loads((shared / "golden/locomo_vectors.json").read_text())
    for row in vectors["answer_vectors"]:
        gold = Gold((row["answer"],), category=str(row["category"]), extra={"evidence": []})
        unit = asked(Case(Question("q", "c", (Text("?"),)), gold), row["prediction"])
        assert LoCoMoScores().score([unit], {})["f1"].value == pytest.approx(row["score"], abs=1e-12), row
    for row in vectors["recall_vectors"]:
        gold = Gold(("x",), category="4", extra={"evidence": row["evidence"]})
        unit = asked(Case(Question("q", "c", (Text("?"),)), gold), "x", map(Evidence, row["context"]))
        assert LoCoMoRecall().score([unit], {})["recall_official"].value == row["recall"], row


def test_real_counts(shared: Path, bench: Callable[..., Any], asked: Callable[..., Any]) -> None:
    opened = bench(LoCoMo, shared / "data/locomo/locomo10.json")
    episodes = [opened.episode(context) for context in opened.contexts()]
    cases = [case for episode in episodes for case in episode.cases]
    assert sum(len(episode.items) for episode in episodes) == 5882
    assert sum(len({item.session for item in episode.items}) for episode in episodes) == 272
    assert Counter(case.gold.category for case in cases) == {"1": 282, "2": 321, "3": 96, "4": 841, "5": 446}
    assert sum(isinstance(case.gold.extra.get("answer"), int) for case in cases) == 6
    assert opened.digest() == {"locomo10.json": SHA256}
    findings = opened.check()
    assert "the whole release" in findings[0].message
    assert sum(finding.level == "warning" for finding in findings) == 9
    recalled = [Recall(k=10, abstentions=True).one(asked(case, "x", case.gold.evidence)).value for case in cases]
    values = [value for value in recalled if value is not None]
    assert sum(values) / len(values) == pytest.approx(0.9995, abs=5e-5)


def test_constant_and_gold_answers_give_the_known_figures(
    shared: Path, tmp_path: Path, bench: Callable[..., Any], evaluate: Callable[..., Any]
) -> None:
    data = json.loads((shared / "data/locomo/locomo10.json").read_text())
    opened = bench(LoCoMo, shared / "data/locomo/locomo10.json")

    def report(answer: Callable[[Any], str]) -> Any:
        for sample in data:
            for row in sample["qa"]:
                row["m_prediction"] = answer(row)
        (tmp_path / "out.json").write_text(json.dumps(data))
        return opened.report(evaluate(opened, tmp_path / "out.json"))

    constant = report(lambda row: "Not mentioned in the conversation")
    assert (constant["f1"], constant["f1.5"], constant["f1.1-4"]) == pytest.approx((0.2330, 1.0, 0.0108), abs=5e-5)
    perfect = report(lambda row: str(row.get("answer", row.get("adversarial_answer"))))
    names = ("f1.1", "f1.2", "f1.3", "f1.4", "f1.5", "f1", "f1.1-4")
    assert [perfect[name] for name in names] == pytest.approx([1, 1, 0.9274, 1, 0.0045, 0.7729, 0.9955], abs=5e-5)


def test_real_errata(shared: Path, bench: Callable[..., Any]) -> None:
    folder = shared / "data/locomo"
    audit = str(folder / "locomo_audit_errors.json")
    opened = bench(LoCoMo, folder / "locomo10.json", errata="corrected", errata_file=audit)
    cases = [case for context in opened.contexts() for case in opened.episode(context).cases]
    corrected = [case.gold for case in cases if "errata" in case.gold.extra]
    assert len(corrected) == 156
    assert sum(gold.extra["errata"] != "WRONG_CITATION" for gold in corrected) == 99
