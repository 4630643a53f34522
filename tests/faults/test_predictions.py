"""`evaluate` on files of predictions that are wrong, torn, of another benchmark, or odd."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import SAMPLES, Said, refused, toy

Cli = Callable[..., Said]


def lines(*rows: Any) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def row(name: Any, prediction: Any, **more: Any) -> dict[str, Any]:
    """One prediction."""
    return {"id": name, "prediction": prediction, **more}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no prediction"),
        ("\n\n", "holds no prediction"),
        ("nonsense", "line 1: not JSON"),
        ("[1]\n", "line 1: must be a mapping, not a list"),
        (lines({"id": "c0/0"}), "give JSONL lines"),
        (lines(row("c0/0", "x"), {"id": "c0/1"}), "line 2: prediction: must be text or null"),
        (lines(row("c0/0", "a"), row("c0/0", "b")), "line 2: id: 'c0/0' comes twice"),
        (lines(row("zz", "a")), "none of its 1 ids names a question of numbers, first 'zz'"),
        (lines(row("c1/8", "a")), "did you mean c1/"),
        (lines(row("c0/0", ["a"])), "line 1: prediction: must be text or null, not a list"),
        (lines(row("c0/0", True)), "prediction: must be text or null, not true or false"),
        (lines(row(None, "a")), "line 1: id: must be text, not nothing"),
        (lines(row(True, "a")), "line 1: id: must be text, not true or false"),
        (lines(row("c0/0", "x", evidence="i0")), "line 1: evidence: must be a list, not text"),
        (lines(row("c0/0", "x", evidence=[1])), "evidence[0]: must be text"),
        ('{"id":"c0/0","prediction":NaN}\n', "line 1: not JSON (NaN is no JSON value)"),
        (lines(row("c0/0", "x")) + '{"id":"c0/1","prediction":\n' + lines(row("c0/2", "x")), "line 2: not JSON"),
        (lines(row("c0/0", "x")) + '{"id":"c0/1","pred', "line 2: not JSON"),
        (b'{"id":"c0/0","prediction":"caf\xe9"}\n', "byte 30: not UTF-8"),
        ("\ufeff" + lines(row("c0/0", "x")), "line 1: not JSON"),
        (b"\x80\x04pickle", "byte 0: not UTF-8"),
    ],
)
def test_lines_that_are_no_predictions(cli: Cli, tmp_path: Path, text: str | bytes, message: str) -> None:
    file = tmp_path / "p.jsonl"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    refused(cli("evaluate", toy("Numbers"), "--predictions", file, "--json"), str(file), message)


def test_a_file_that_is_missing_or_a_folder(cli: Cli, tmp_path: Path) -> None:
    refused(cli("evaluate", toy("Numbers"), "--predictions", tmp_path / "no.jsonl", "--json"), "no such file")
    refused(cli("evaluate", toy("Numbers"), "--predictions", tmp_path, "--json"), "no prediction format of its own")
    refused(cli("evaluate", "hotpotqa", "--predictions", tmp_path, "--json"), "a folder, not a file")
    refused(cli("evaluate", "hotpotqa"), "--predictions")


def test_missing_null_and_unknown_ids_are_counted_and_said(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(lines(row("c0/0", "c0-0"), row("c0/1", None), row("zz", "x")))
    said = cli("evaluate", toy("Numbers"), "--predictions", file, "--json")
    found = json.loads(said.out)
    assert found["n"] == 6
    assert found["scores"]["right"] == pytest.approx(1 / 6)
    assert found["missing"] == 4
    assert found["unmatched"] == ["zz"]
    assert "no question has the id 'zz'" in said.err
    assert "4 of 6 questions have no prediction" in said.err


def test_numbers_odd_words_and_words_like_errors_are_answers(cli: Cli, tmp_path: Path) -> None:
    """Case c17, second row: what another harness wrote as an answer is scored as one."""
    file = tmp_path / "p.jsonl"
    rows = [
        row("c0/0", 4), row("c0/1", 0.5), row("c0/2", "two\nlines \u2028 \x00 你 🐈"), row("c1/0", "half \ud83d"),
        row("c1/1", "Error: unhandled errors in a TaskGroup (1 sub-exception)"), row("c1/2", "x" * 10_000_000),
    ]  # fmt: skip
    file.write_text("\n" + lines(*rows) + "\n")
    found = json.loads(cli("evaluate", toy("Numbers"), "--predictions", file, "--json").out)
    assert found["missing"] == 0
    assert found["scores"]["right"] == 0.0


@pytest.mark.parametrize("bench", ["hotpotqa", "locomo", "atm", "mem-gallery"])
@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "3", '[{"a": 1}]', '{"answer": {"x": 1}, "sp": {}}'])
def test_files_in_no_form_of_a_benchmark(cli: Cli, tmp_path: Path, bench: str, text: str) -> None:
    file = tmp_path / "predictions.json"
    file.write_text(text)
    refused(cli("evaluate", bench, "--predictions", file, "--json"), str(file))


def test_an_official_file_with_wrong_types(cli: Cli, tmp_path: Path) -> None:
    ids = [row["_id"] for row in json.loads((SAMPLES / "hotpotqa/sample/hotpot_sample.json").read_text())]
    file = tmp_path / "pred.json"
    for value, message in [
        ({"answer": {ids[0]: 4}, "sp": {}}, f"answer: {ids[0]}: must be text, not a whole number"),
        ({"answer": {ids[0]: "x"}, "sp": {ids[0]: "x"}}, f"sp: {ids[0]}: must be a list of [title, sentence]"),
        ({"answer": {}, "sp": {}}, "holds no prediction"),
    ]:
        file.write_text(json.dumps(value))
        refused(cli("evaluate", "hotpotqa", "--predictions", file, "--json"), message)


@pytest.mark.parametrize(
    ("bench", "name"),
    [
        ("hotpotqa", "2wiki_pred_sample500.json"),
        ("hotpotqa", "hotpot_pred_reflexion100.json"),  # of the published data, not of the sample
        ("hotpotqa", "mem_gallery"),
        ("locomo", "hotpot_pred_reflexion100.json"),
        ("atm", "hotpot_pred_reflexion100.json"),
        ("mem-gallery", "hotpot_pred_reflexion100.json"),
    ],
)
def test_another_benchmark_s_predictions(cli: Cli, shared: Path, bench: str, name: str) -> None:
    refused(cli("evaluate", bench, "--predictions", shared / "golden" / name, "--json"), name)
