"""`memharness show BENCH --floors`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import TOYS, Said

Cli = Callable[..., Said]
QUIZ = f"{TOYS.with_name('quiz.py')}:Quiz"


def test_show_prints_them_or_gives_json(cli: Cli) -> None:
    said = cli("show", QUIZ, "--floors")
    assert said.code == 0
    assert "SAMPLE" in said.out
    assert "9 questions of 1 contexts" in said.out
    rows = [line.split() for line in said.out.splitlines()]
    assert ["floor", "n", "right", "all_right", "what", "it", "is"] in rows
    assert ["always", "empty", "9", "0.000", "0.000"] in rows
    assert ["gold", "itself", "9", "1.000", "1.000"] in rows  # by question type
    assert "note: kind needs a judge; right leads here" in said.out
    assert "left out, since a judge must say: Kind" in said.out
    assert "picked with gold among 8" in said.out
    found = json.loads(cli("show", QUIZ, "--floors", "--json").out)
    assert found["floors"][0] == {"name": "always empty", "about": "", "n": 9, "figures": found["floors"][0]["figures"]}


def test_it_takes_data_subset_and_options(cli: Cli, shared: Path) -> None:
    data = shared / "data/locomo/locomo10.json"
    words = ["show", "locomo", "--floors", "--data", data, "--subset", "conv-30", "-B", "adversarial=choice", "--json"]
    found = json.loads(cli(*words).out)
    assert (found["subset"], found["data_state"], found["questions"]) == ("conv-30", "given", 105)
    assert found["options"] == {"adversarial": "choice"}
    assert {"first option", "longest option", "always A"} <= {floor["name"] for floor in found["floors"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "locomo", "--subset", "x"], "go with --floors"),
        (["show", "bm25", "--floors"], "no benchmark is called 'bm25'"),
        (["show", "locomo", "--floors", "--subset", "conv-x"], "no such conversation"),
        (["show", "locomo", "--floors", "-B", "colour=red"], "no such option"),
        (["show", "locomo", "--floors", "--data", "nowhere"], "no such file"),
    ],
)
def test_mistakes_are_said(cli: Cli, words: list[Any], message: str) -> None:
    said = cli(*words)
    assert said.code == 2
    assert message in said.err
