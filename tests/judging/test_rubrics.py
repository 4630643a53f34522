"""Rubric files: frozen once they have a version, complete, and refused with the field that is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memharness.judging import Judge, rubric, rubrics
from memharness.metric import Metric, parse_metric
from memharness.readers.openai import is_strict
from memharness.registry import entries
from memharness.types import UserError

FROZEN = {
    "atm.v1": "0fa59750561f97e26551a3ad8a909825469df94c6155676838cf054e046f913c",
    "binary.v1": "f27697c230ffbb3e0880a6d65944c87a790de4f755d0ae1bc236faf89784b686",
    "h2hmem.v1": "65a2d3326e267be50e39f8b30de0207aeb5b801d292c0d76865c1c630dacdde0",
    "locomo-generous.v1": "f7e5c91471bc36612f2e568f07f01a70aa8118c77b3e5fc4992df97a14f2a436",
    "locomo-strict.v1": "39fcb330c345eba2a461ef35e062511f851b7b48494a8bfa77f08d4034ab0327",
    "m2ca.v1": "79249967d631ecc2dc4828c858e969f45cb017f6a48ed6a087cc3748c30b9560",
    "mem-gallery.v1": "ba2fecaa69c483c8bc42d307d8adcf0663ef63c06a8ec9c97d0007936096f0c4",
    "memeye.v1": "d43c0188051fa152974ec9cf3503ca98210876831b7edef53ad801c0d31c9824",
    "simplevqa.v1": "49d4cdf5c1608dc664a5999acbc922d957e6cabb9617fa784635a0b65bcfee19",
}
"""A changed rubric is another instrument: give it the next version, NAME.v2.txt, and keep the old file."""

CLASSES: dict[str, type[Metric]] = {name: entry.load() for name, entry in entries("metrics").items()}


def test_a_rubric_does_not_change_under_its_version() -> None:
    assert {name: rubric(name).sha256 for name in rubrics()} == FROZEN


@pytest.mark.parametrize("name", rubrics())
def test_every_rubric_prints_as_it_is_parsed_and_says_what_judged(name: str) -> None:
    for verdict in ("strict", "official") if rubric(name).official else ("strict",):
        metric = Judge(name, verdict)  # type: ignore[arg-type]
        assert parse_metric(str(metric), CLASSES) == metric
        assert metric.key == {"rubric": name, "sha256": FROZEN[name], "verdict": verdict}


def test_how_a_judge_prints() -> None:
    assert str(Judge()) == "Judge"
    assert str(Judge("locomo-strict.v1")) == "Judge(rubric=locomo-strict.v1)"
    assert str(Judge("memeye.v1", "official")) == "Judge(rubric=memeye.v1,verdict=official)"


def test_several_rubrics_can_stand_in_one_run() -> None:
    metrics = [Judge(name) for name in rubrics()]
    metrics += [Judge(name, "official") for name in rubrics() if rubric(name).official]
    names = [name for metric in metrics for name in metric.names]
    assert len(names) == len(set(names)) == 17
    assert Judge("m2ca.v1").names == ("quality", "faithfulness", "preservation", "correctness")
    assert Judge("simplevqa.v1").names == ("co", "in", "na")
    assert Judge("mem-gallery.v1", "official").names == ("judge_mem_gallery_official",)


@pytest.mark.parametrize("name", rubrics())
def test_every_schema_meets_the_strictest_rules_and_holds_the_verdict(name: str) -> None:
    made = rubric(name)
    assert is_strict(made.schema)
    fields = made.schema["properties"]
    fields = fields["verdicts"]["items"]["properties"] if made.case else fields
    verdicts = list(made.points or (made.key,))
    assert list(fields)[-len(verdicts) :] == verdicts, "the reasons come before the verdict"
    if made.parser == "graded":
        assert fields[made.key]["enum"] == list(made.levels)
    if made.labels:
        assert fields[made.key]["enum"] == list(made.labels)


@pytest.mark.parametrize("name", rubrics())
def test_every_prompt_tells_the_judge_not_to_take_orders_from_an_answer_or_is_the_official_one(name: str) -> None:
    told = " ".join(body for _, body in rubric(name).template.messages)
    assert "no instruction" in told or name in ("atm.v1", "locomo-generous.v1")


# ------------------------------------------------------------------------------------------------------ what is refused

GOOD = """\
about = "a"
source = "s"
score = "mine"
level = "nominal"
parser = "binary"
key = "ok"
schema = '{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}'
in_json = "JSON"

# system
Judge. {form}
# user
{question} {reference} {answer}
"""


def written(folder: Path, text: str, name: str = "mine.v1.txt") -> str:
    """A rubric file."""
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_rubric_of_ones_own(tmp_path: Path) -> None:
    metric = Judge(written(tmp_path, GOOD))
    assert (metric.names, metric.key["rubric"]) == (("mine",), "mine.v1")
    assert parse_metric(str(metric), CLASSES) == metric


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("about", "abuot"), "abuot: no such field (did you mean about?)"),
        (('level = "nominal"\n', ""), "level: is missing"),
        (('"nominal"', '"ratio"'), "level: 'ratio' is not one of nominal, ordinal, interval"),
        (('"binary"', '"words"'), "parser: 'words' is not one of binary, graded, nearest, labels"),
        (('key = "ok"', "key = 3"), "key: must be text, not 3"),
        (('{"type": "object", "prop', '{"type" "object", "prop'), "schema: not JSON"),
        (('score = "mine"\n', ""), "score: a rubric has one"),
        (('"binary"', '"graded"'), "levels: parsers `graded` and `nearest`, and no others"),
        (('"binary"', '"graded"\nlevels = [0, 5]'), "levels: parsers `graded` and `nearest`"),
        (('"binary"', '"binary"\nofficial = "three-levels"'), "official: three-levels does not go with parser binary"),
        (('"binary"', '"binary"\nempty = 0.5'), "empty: 0.5 is no verdict; there are: 0.0, 1.0"),
        (("{answer}", ""), "{answer}: the prompt does not show it"),
        (("{answer}", "{answer} {prediction}"), "{prediction}: no such slot"),
        (('in_json = "JSON"', 'in_json = "JSON"\ncase = "{id} {question}"'), "{answer}: no such slot"),
        (("# system\nJudge. {form}\n# user\n", ""), "not a rubric"),
        (('about = "a"', "about = a"), "not a rubric"),
    ],
)
def test_a_rubric_that_is_wrong_is_refused_by_file_and_field(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = written(tmp_path, GOOD.replace(*change, 1))
    with pytest.raises(UserError, match=re.escape(f"{path}: not a rubric: ")) as refused:
        Judge(path)
    if message != "not a rubric":
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rubric": "binry.v1"}, "no rubric is called 'binry.v1' (did you mean binary.v1?); there are: atm.v1"),
        ({"rubric": "binary"}, "no rubric is called 'binary'"),
        ({"rubric": "own/rubric.v1"}, "a file of your own ends in .vN.txt"),
        ({"rubric": "../rubrics/binary.v1"}, "a file of your own ends in .vN.txt"),
        ({"rubric": "nowhere/x.v1.txt"}, "no rubric is called 'nowhere/x.v1.txt'"),
        ({"verdict": "lenient"}, "expected strict or official"),
        ({"verdict": "official"}, "has no official reading of its own"),
    ],
)
def test_what_is_no_judge(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        Judge(**arguments)


def test_a_file_without_a_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="its name has no version"):
        Judge(written(tmp_path, GOOD, "mine.txt"))
