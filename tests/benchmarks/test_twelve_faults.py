"""Twelve faults of other evaluators, each with the input that shows it and the behaviour that is right."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmark import ScoreRow, means
from memharness.benchmarks.blink import BLINK
from memharness.benchmarks.lvbench import LVBench
from memharness.benchmarks.mmbench import MMBench
from memharness.benchmarks.mmstar import MMStar
from memharness.benchmarks.muirbench import MuirBench, interleaved
from memharness.benchmarks.mvbench import MVBench
from memharness.benchmarks.realworldqa import RealWorldQA
from memharness.datafile import Row
from memharness.media import MediaStore
from memharness.prompts import template
from memharness.report.leaderboard import asked as asked_alike
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.scoring.choice import extract_choice
from memharness.scoring.choice_metrics import ChoiceAccuracy
from memharness.scoring.choice_rules import EXTRACTORS
from memharness.types import Asked, DataError, Image, Outcome, Status, Text
from memharness.video import Clip, frames


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def test_1_the_first_letter_is_no_choice() -> None:
    assert extract_choice("The correct answer is (B)") == "B"  # was T
    assert extract_choice("Based on the picture, I cannot tell.") is None  # was B
    assert extract_choice("(A) at first, but the answer is (C).") == "C"


def test_2_an_article_and_a_part_of_a_word_are_no_letters() -> None:
    texts = {"A": "dog", "B": "cat"}
    assert extract_choice("The answer is a cat", "AB", texts) == "B"  # was A
    assert extract_choice("The answer is dog", "ABCD") is None  # was D
    assert extract_choice("The answer is dog", "AB", texts) == "A"


CHOICES = {"mmbench": MMBench, "mmstar": MMStar, "muirbench": MuirBench, "blink": BLINK, "mvbench": MVBench}
CHOICES |= {"lvbench": LVBench, "realworldqa": RealWorldQA}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("nothing", ["", "(", ")", "."])
def test_3_an_empty_answer_is_never_right(
    name: str, nothing: str, bench: Callable[..., Any], sample: Callable[[str], Path], asked: Callable[..., Asked]
) -> None:
    opened = bench(CHOICES[name], sample(name))
    (metric,) = [metric for metric in opened.metrics() if metric.unit == "question"]
    for context in opened.contexts():
        (case, *_) = opened.episode(context).cases
        score = metric.score([asked(case, nothing)], {})["accuracy"]
        assert score.value == 0.0
        assert score.status is Status.UNPARSED or not case.question.choices


def test_4_failed_rows_are_not_right_and_stay_in_the_denominator(
    bench: Callable[..., Any], sample: Callable[[str], Path], asked: Callable[..., Asked]
) -> None:
    opened = bench(MMStar, sample("mmstar"))
    cases = [opened.episode(context).cases[0] for context in opened.contexts()[:4]]
    units = [asked(cases[0], "?"), asked(cases[1], cases[1].gold.answers[0]), asked(cases[2]), asked(cases[3])]
    units[2].record.outcome, units[3].record.outcome = Outcome.READER_ERROR, Outcome.NOT_ASKED
    rows = [ScoreRow("q", "c", "", "", ChoiceAccuracy().score([unit], {})) for unit in units]
    assert means(rows)["accuracy"] == 1 / 4  # was 3/4


@pytest.mark.parametrize("rule", EXTRACTORS)
def test_5_what_cannot_be_read_is_not_drawn_at_random(rule: str) -> None:
    texts = {"A": "dog", "B": "cat", "C": "cow", "D": "hen"}
    for said in ("It would be wrong to say.", "Something else", "?"):
        assert EXTRACTORS[rule](said, "ABCD", texts) is None
    before = random.getstate()
    assert EXTRACTORS[rule]("It would be wrong to say.", "ABCD", texts) is None
    assert random.getstate() == before  # nobody drew


def test_6_and_7_the_protocol_stands_beside_each_figure_and_both_are_from_one_run(tmp_path: Path) -> None:
    spec = RunSpec(method="full-context", bench="mmbench", reader="extractive", out=str(tmp_path))
    summary = execute(spec, Quiet())
    assert {"circular", "accuracy"} <= set(summary["scores"])
    assert summary["scores"]["accuracy"]["n"] == summary["scores"]["circular"]["n"] == 10
    assert summary["scores"]["accuracy"]["unparsed"] == 10
    assert {"Overall", "vanilla.Overall", "unparsed"} <= set(summary["official"])
    manifest = json.loads((Path(summary["run"]) / "manifest.json").read_text())
    assert manifest["described"]["memory"]["options"] == {"circular": True, "extractor": "memharness"}
    other = execute(replace(spec, bench_options={"extractor": "vlmevalkit"}), Quiet())
    assert other["identity"] != summary["identity"]
    assert other["options"] == {"extractor": "vlmevalkit"}
    assert asked_alike(other) != asked_alike(summary)


def test_8_the_prompt_is_a_part_of_the_identity(tmp_path: Path) -> None:
    spec = RunSpec(method="full-context", bench="mmstar", reader="extractive", out=str(tmp_path))
    summary = execute(spec, Quiet())
    text = (Path(summary["run"]) / "manifest.json").read_text()
    assert "direct.v1" in text
    assert template("direct.v1").sha256 in text
    other = execute(replace(spec, prompt="answer.v1"), Quiet())
    assert other["identity"] != summary["identity"]
    assert asked_alike(other) != asked_alike(summary)  # the two share no table


def test_9_reasoning_reaches_no_extractor_and_unclosed_reasoning_is_counted(
    bench: Callable[..., Any], sample: Callable[[str], Path], asked: Callable[..., Asked]
) -> None:
    opened = bench(MMStar, sample("mmstar"))
    case = opened.episode(opened.contexts()[0]).cases[0]
    right = case.gold.answers[0]
    wrong = next(choice.key for choice in case.question.choices if choice.key != right)
    assert ChoiceAccuracy().score([asked(case, f"<think>{wrong}</think>{right}")], {})["accuracy"].value == 1
    cut = ChoiceAccuracy().score([asked(case, f"<think>the answer is ({right})")], {})
    assert (cut["accuracy"].status, cut["unclosed_thinking"].value) == (Status.UNPARSED, 1)


def test_10_option_text_counts_as_whole_words_the_longest_first() -> None:
    assert extract_choice("15", "AB", {"A": "5", "B": "7"}) is None  # was A
    assert extract_choice("woman", "AB", {"A": "man", "B": "woman"}) == "B"  # was none


def test_11_a_video_is_known_by_its_bytes_and_bounds_not_by_its_name(sample: Callable[[str], Path]) -> None:
    pytest.importorskip("av")
    folder = sample("mvbench") / "video"
    alike = [folder / place / "video_10009.avi" for place in ("clevrer/video_validation", "perception/videos")]
    shown = {}
    for file in alike:
        for clip in (Clip(1, 0.0, 1.0), Clip(1, 4.0, 5.0), Clip(1, 0.0, 1.0, max_side=32), Clip(2, 0.0, 1.0)):
            shown[file, clip] = [frame.image.sha256 for frame in frames(MediaStore(), file, clip, file.name, "record")]
    assert len({tuple(found) for found in shown.values()}) == len(shown) == 8


def test_12_pictures_stand_at_their_places() -> None:
    images = [Image(letter * 64) for letter in "ab"]
    row = Row({}, "data: record 0")
    question, option = interleaved(["First <image> then", "<image> or not"], images, row)
    assert [part.sha256 if isinstance(part, Image) else part.text.strip() for part in question] == [
        "First",
        images[0].sha256,
        "then",
    ]
    assert images[1] in option
    assert any(isinstance(part, Text) for part in option)
    with pytest.raises(DataError, match="record 0"):
        interleaved(["only <image>"] * 3, images, row)
