from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memharness.benchmarks.mmbench import ABBREVIATIONS, MMBench, turning
from memharness.run.evaluate import evaluate
from memharness.scoring.choice_metrics import ChoiceAccuracy, CircularAccuracy
from memharness.types import Case, Choice, DataError, Image, Text, UserError, parts_text

COLUMNS = ("index", "question", "hint", "A", "B", "C", "D", "answer", "category", "image", "l2-category", "split")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def jpeg() -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 8), "red").save(out, "JPEG")
    return out.getvalue()


CODED = base64.b64encode(jpeg()).decode()
BASE = {
    "index": "5",
    "question": "Which?",
    "A": "a",
    "B": "b",
    "C": "c",
    "D": "d",
    "answer": "A",
    "category": "ocr",
    "image": CODED,
    "l2-category": "coarse_perception",
    "split": "dev",
}


def write(path: Path, *rows: Mapping[str, str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, "", delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows({**BASE, **row} for row in rows)
    return path


def cases(bench: Any, subset: str | None = None) -> list[list[Case]]:
    return [list(bench.episode(context).cases) for context in bench.contexts(subset)]


def shown(case: Case) -> str:
    return "".join(parts_text(choice.parts) for choice in case.question.choices)


def right(case: Case) -> str:
    return next(parts_text(one.parts) for one in case.question.choices if one.key == case.gold.answers[0])


def predicted(path: Path, answers: Mapping[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": name, "prediction": said}) + "\n" for name, said in answers.items()))
    return path


# --------------------------------------------------------------------------------------------- passes that are made


def test_passes_move_the_contents_one_letter_up(bench: Callable[..., Any], tmp_path: Path) -> None:
    (passes,) = cases(bench(MMBench, write(tmp_path / "x.tsv", {})))
    assert [shown(case) for case in passes] == ["abcd", "bcda", "cdab", "dabc"]
    assert [case.gold.answers for case in passes] == [("A",), ("D",), ("C",), ("B",)]
    assert [case.gold.native_id for case in passes] == ["5", "1000005", "2000005", "3000005"]
    assert {case.gold.group for case in passes} == {"5"}
    assert [case.gold.extra["pass"] for case in passes] == [0, 1, 2, 3]
    assert {right(case) for case in passes} == {"a"}
    assert len({case.question.id for case in passes}) == 4


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("a", "b"), 2),
        (("a", "all of them"), 2),  # two options always turn
        (("a", "b", "c"), 3),
        (("a", "b", "A and B"), 2),
        (("a", "b", "c", "A, B and C"), 3),
        (("a", "b", "c", "A and B"), 4),  # does not name C
        (("a", "b", "c", "All of the above"), 3),
        (("a", "b", "none, really", "none of these"), 2),
        (("all", "b", "c", "d"), 4),  # only last options are held
        (("a", "b", "c", "an overall view"), 4),
        (("a", "b", "c", "d", "none"), 4),
    ],
)
def test_last_options_that_name_the_others_stay(options: tuple[str, ...], wanted: int) -> None:
    assert turning([Choice(key, (Text(words),)) for key, words in zip("ABCDE", options, strict=False)]) == wanted


def test_a_held_option_keeps_its_place_whether_right_or_not(bench: Callable[..., Any], tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", {"D": "none", "answer": "D"}, {"index": "6", "D": "none", "answer": "B"})
    first, second = cases(bench(MMBench, path))
    assert [shown(case) for case in first] == ["abcnone", "bcanone", "cabnone"]
    assert [case.gold.answers[0] for case in first] == ["D", "D", "D"]
    assert [case.gold.answers[0] for case in second] == ["B", "A", "C"]


def test_the_offset_exceeds_the_largest_index(bench: Callable[..., Any], tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", {"index": "12000001", "C": "", "D": ""}, {"index": "7", "C": "", "D": ""})
    ids = [[case.gold.native_id for case in passes] for passes in cases(bench(MMBench, path))]
    assert ids == [["12000001", "112000001"], ["7", "100000007"]]


def test_each_question_once(bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]) -> None:
    opened = bench(MMBench, write(tmp_path / "x.tsv", {}), circular=False)
    ((only,),) = cases(opened)
    assert only.gold.group is None
    assert opened.metrics() == (ChoiceAccuracy(),)
    carried = cases(bench(MMBench, sample("mmbench"), circular=False), "cn")
    assert [[case.gold.native_id for case in passes] for passes in carried] == [["7"], ["12"], ["20"]]


# ------------------------------------------------------------------------------------------ passes that files carry


COPY = {"index": "1000005", "A": "d", "B": "a", "C": "b", "D": "c", "answer": "B", "image": "5"}


def test_copies_in_a_file_are_used_as_they_are(bench: Callable[..., Any], tmp_path: Path) -> None:
    (passes,) = cases(bench(MMBench, write(tmp_path / "x.tsv", {}, COPY)))
    assert [shown(case) for case in passes] == ["abcd", "dabc"]  # the other way round, and not all of them
    assert [case.gold.extra["passes"] for case in passes] == [2, 2]
    assert {part for case in passes for part in case.question.parts if isinstance(part, Image)} == {
        part for part in passes[0].question.parts if isinstance(part, Image)
    }


def test_a_copy_before_its_base_row(bench: Callable[..., Any], tmp_path: Path) -> None:
    (passes,) = cases(bench(MMBench, write(tmp_path / "x.tsv", COPY, {})))
    assert [(case.gold.native_id, case.gold.extra["pass"]) for case in passes] == [("1000005", 1), ("5", 0)]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            ({}, COPY, {**COPY, "index": "1000006"}),
            r"index 1000006\): index: marks a copy of row 6, which is not there",
        ),
        (({}, {**COPY, "question": "What?"}), r"index 1000005\): question: differs from that of row 5"),
        (({}, {**COPY, "hint": "look"}), r"index 1000005\): hint: differs from that of row 5"),
        (({}, {**COPY, "D": ""}), r"index 1000005\): A: has 3 options where row 5 has 4"),
        (({}, {}), r"record 2 .*: index: '5' is already the id of .*record 1"),
        (({"index": "x5"},), r"record 1 .*: index: must be a whole number, not 'x5'"),
        (({"index": "-5"},), r"record 1 .*: index: must be a whole number, not '-5'"),
        (({"answer": ""},), r"index 5\): answer: is missing; use a split whose answers are public"),
        (({"answer": "E"},), r"index 5\): answer: 'E' is not among the options A, B, C, D"),
        (({"B": ""},), r"index 5\): B: is missing, though there is A and C and D"),
        (({"B": "", "C": "", "D": ""},), r"index 5\): B: is missing, though there is A;"),
        (({"A": "", "B": "", "C": "", "D": ""},), r"index 5\): answer: 'A' is not among the options \(none\)"),
        (({"question": ""},), r"index 5\): question: is missing"),
        (({"image": "77"},), r"record 1 .*: image: points to row '77'"),
    ],
)
def test_what_is_wrong_with_a_row(
    bench: Callable[..., Any], tmp_path: Path, rows: Iterable[Mapping[str, str]], problem: str
) -> None:
    opened = bench(MMBench, write(tmp_path / "x.tsv", *rows))
    with pytest.raises(DataError, match=problem):
        opened.contexts()
    assert [finding.level for finding in opened.check()] == ["error"]


def test_a_copy_whose_right_option_is_another_is_found(bench: Callable[..., Any], tmp_path: Path) -> None:
    opened = bench(MMBench, write(tmp_path / "x.tsv", {}, {**COPY, "answer": "C"}))
    assert any("passes hold different answers right: 'a' and 'b'" in finding.message for finding in opened.check())


# ------------------------------------------------------------------------------------------------------ other layouts


def test_the_hugging_face_form(bench: Callable[..., Any], tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    published = {**BASE, "L2-category": BASE["l2-category"], "hint": "nan", "D": "nan", "C": "c"}
    del published["l2-category"]
    copy = {**published, "index": "1000005", "A": "b", "B": "c", "C": "a", "answer": "C"}
    for language, index in (("en", str), ("cn", int)):
        (tmp_path / language).mkdir()
        rows = [
            {**row, "index": index(row["index"]), "image": {"bytes": jpeg(), "path": None}} for row in (published, copy)
        ]
        for shard, part in enumerate((rows[:1], rows[1:])):
            name = tmp_path / language / f"dev-0000{shard}-of-00002.parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), name)
        (passes,) = cases(bench(MMBench, tmp_path), language)
        assert [shown(case) for case in passes] == ["abc", "bca"]
        assert passes[0].gold.category == "dev/coarse_perception/ocr"
        assert [type(part) for part in passes[0].question.parts] == [Image, Text]  # no hint
        assert passes[0].question.parts[0] == passes[1].question.parts[0]
    with pytest.raises(DataError, match=r"holds no CCBench.tsv or cc/test-\*.parquet"):
        bench(MMBench, tmp_path).contexts("cc")
    with pytest.raises(UserError, match="subset 'fr': mmbench has en, cn, cc"):
        bench(MMBench, tmp_path).contexts("fr")


def test_ccbench_has_no_l2_category(bench: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "CCBench.tsv"
    columns = ("index", "question", "A", "B", "answer", "category", "image")
    path.write_text("\t".join(columns) + f"\n1\t谁？\tx\ty\tB\tfood_clothes\t{CODED}\n")
    (passes,) = cases(bench(MMBench, tmp_path), "cc")
    assert passes[0].gold.category == "//food_clothes"
    said = evaluate("mmbench", str(path), predicted(tmp_path / "p.jsonl", {"1": "B", "1000001": "A"}), {}).scores
    assert {key: said[key] for key in ("Overall", "food_clothes", "vanilla.Overall")} == {
        "Overall": 1,
        "food_clothes": 1,
        "vanilla.Overall": 1,
    }


def test_hint_and_instruction_are_shown_and_nothing_else(bench: Callable[..., Any], tmp_path: Path) -> None:
    (passes,) = cases(bench(MMBench, write(tmp_path / "x.tsv", {"hint": "Look left.", "category": "zanzibar"})))
    question = passes[0].question
    assert [type(part) for part in question.parts] == [Image, Text, Text]
    assert question.text() == "Hint: Look left.\nWhich?"
    assert question.instruction == "Answer with the letter of the right option."
    assert "zanzibar" not in repr(question)


# ------------------------------------------------------------------------------------------------------------ figures


@pytest.mark.parametrize("language", ["EN", "CN"])
def test_real_questions(bench: Callable[..., Any], shared: Path, language: str) -> None:
    passes = cases(bench(MMBench, shared / f"data/mmbench/MMBench_samples_{language}.tsv"))
    assert len(passes) == 20
    assert sum(map(len, passes)) == 78
    for group in passes:
        assert len({right(case) for case in group}) == 1
        assert len({shown(case) for case in group}) == len(group) == len(group[0].question.choices)
    assert len({case.gold.category.split("/")[1] for group in passes for case in group}) == 6
    assert {case.gold.category.split("/")[0] for group in passes for case in group} == {"dev"}


def test_circular_and_vanilla_from_one_run(shared: Path, bench: Callable[..., Any], tmp_path: Path) -> None:
    path = shared / "data/mmbench/MMBench_samples_EN.tsv"
    groups = cases(bench(MMBench, path))
    answers: dict[str, str] = {}
    vanilla, circular = [], []
    for place, group in enumerate(groups):
        # Right in every pass, in the first only, in all but the first, or silent in one.
        kind = place % 4
        for turn, case in enumerate(group):
            right_here = kind == 0 or (kind == 1 and turn == 0) or (kind == 2 and turn > 0) or (kind == 3 and turn != 1)
            wrong = (
                "I cannot tell." if kind == 3 else next(c.key for c in case.question.choices if c.key != right_of(case))
            )
            answers[case.gold.native_id] = right_of(case) if right_here else wrong
        vanilla.append(float(kind in (0, 1, 3)))
        circular.append(float(kind == 0))
    found = evaluate("mmbench", str(path), predicted(tmp_path / "p.jsonl", answers), {}).scores
    assert found["vanilla.Overall"] == pytest.approx(sum(vanilla) / 20) == 0.75
    assert found["Overall"] == pytest.approx(sum(circular) / 20) == 0.25
    assert found["unparsed"] == 0  # the silence was in a later pass
    for l2, short in ABBREVIATIONS.items():
        own = [n for n, group in enumerate(groups) if group[0].gold.category.split("/")[1] == l2]
        assert found[short] == pytest.approx(sum(circular[n] for n in own) / len(own))
        assert found[f"vanilla.{short}"] == pytest.approx(sum(vanilla[n] for n in own) / len(own))
    assert not any("@" in key for key in found)


def right_of(case: Case) -> str:
    return case.gold.answers[0]


def test_figures_by_split(tmp_path: Path) -> None:
    two = {"C": "", "D": ""}
    path = write(
        tmp_path / "x.tsv", two, {**two, "index": "6", "split": "test"}, {**two, "index": "8", "split": "test"}
    )
    answers = {"5": "A", "1000005": "B", "6": "A", "1000006": "A", "8": "no idea", "1000008": "B"}
    found = evaluate("mmbench", str(path), predicted(tmp_path / "p.jsonl", answers), {}).scores
    assert found["Overall"] == pytest.approx(1 / 3)
    assert (found["Overall@dev"], found["Overall@test"]) == (1, 0)
    assert (found["vanilla.CP@dev"], found["vanilla.CP@test"]) == (1, 0.5)
    assert found["unparsed"] == pytest.approx(1 / 3)


def test_a_missing_prediction_counts_nothing_and_stays_in_the_denominator(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", {}, {"index": "6"})
    found = evaluate("mmbench", str(path), predicted(tmp_path / "p.jsonl", {"5": "A"}), {}).scores
    assert (found["vanilla.Overall"], found["Overall"]) == (0.5, 0)


def test_the_official_rule_is_a_toggle(bench: Callable[..., Any], tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", {"A": "dog", "B": "cat", "C": "", "D": ""})
    answers = predicted(tmp_path / "p.jsonl", {"5": "The answer is a cat", "1000005": "B"})
    assert evaluate("mmbench", str(path), answers, {}).scores["vanilla.Overall"] == 0
    official = evaluate("mmbench", str(path), answers, {"extractor": "vlmevalkit"}).scores
    assert (official["vanilla.Overall"], official["Overall"]) == (1, 1)
    metrics = bench(MMBench, path, extractor="vlmevalkit").metrics()
    assert metrics == (CircularAccuracy("vlmevalkit"), ChoiceAccuracy("vlmevalkit"))
    with pytest.raises(UserError, match="extractor"):
        bench(MMBench, path, extractor="vlm")


def test_vlmevalkit_predictions(bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]) -> None:
    data = sample("mmbench") / "MMBench_DEV_CN.tsv"
    said = {case.gold.native_id: right_of(case) for group in cases(bench(MMBench, data)) for case in group}
    path = tmp_path / "model_MMBench_DEV_CN.tsv"
    path.write_text("index\tprediction\n" + "".join(f"{name}\t{letter}\n" for name, letter in said.items()))
    found = evaluate("mmbench", str(data), path, {}).scores
    assert (found["Overall"], found["vanilla.Overall"], found["unparsed"]) == (1, 1, 0)


def test_the_sample_holds_both_ways(bench: Callable[..., Any], sample: Callable[[str], Path]) -> None:
    opened = bench(MMBench, sample("mmbench"))
    english, chinese = cases(opened), cases(opened, "cn")
    assert [len(group) for group in english] == [4, 4, 3, 2, 3, 3, 4, 3, 3, 3]
    assert [len(group) for group in chinese] == [4, 3, 2]
    for group in (*english, *chinese):
        assert len({right(case) for case in group}) == 1
        assert len({case.gold.answers for case in group}) > 1 or group[0].gold.answers == ("D",)
    assert not [finding for finding in opened.check() if finding.level == "error"]
