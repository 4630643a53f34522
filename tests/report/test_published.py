"""The papers' figures: all of each table, and a check that finds the ones that do not follow from the others."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memharness.report import published
from memharness.report.published import AVERAGE, FILE, Figure, doubts, figures, results
from memharness.types import DataError

ROOT = Path(__file__).resolve().parents[2]

ROWS = {  # of every table, and of the texts
    "L2-VMAS": {
        "Table 1": 200, "Table 2": 160, "Table 3": 180, "Table 4": 31, "Table 5": 40, "Table 6": 36, "Table 7": 50,
        "Table 8": 60, "Table 9": 60, "Table 10": 128, "Section 2.1": 11, "Section 4.3": 9, "Appendix D.2": 4,
    },
    "GraphMemix": {
        "Table 1": 45, "Table 2": 45, "Table 3": 25, "Table 4": 12, "Table 5": 16, "Table 6": 28, "Table 7": 20,
        "Table 8": 17, "Table 9": 30, "Table 10": 30, "official README": 18, "Figure 2": 1,
        "official code, ATM-Hard": 4,
    },
    "MEMO": {"Table 1": 9, "Table 2": 5, "Table 3": 14},
    "CMA": {"project page": 11, "draft tables": 66, "draft ablations": 31, "draft abstract": 1},
}  # fmt: skip


def test_rows_of_every_table() -> None:
    found: dict[str, dict[str, int]] = {}
    for figure in figures():
        tables = found.setdefault(figure.paper, {})
        tables[figure.table] = tables.get(figure.table, 0) + 1
    assert found == ROWS


def test_a_cell_stands_once() -> None:
    names = Counter(replace(figure, value=0.0, note="") for figure in figures())
    assert [name for name, times in names.items() if times > 1] == []


def test_only_what_is_noted_does_not_follow() -> None:
    """The known misprints are as printed and noted; the check finds those that can be recomputed, and no other."""
    found = {doubt.figure: doubt.recomputed for doubt in doubts()}
    values = {(figure.table, figure.method, figure.reader, figure.value): at for figure, at in found.items()}
    assert values == {
        ("Table 1", "Single", "InternVL-3.5-8B", 3461): 461.25,
        ("Table 1", "L2-VMAS", "InternVL-3.5-8B", 3011): 2245,
        ("Table 1", "L2-VMAS", "InternVL-3.5-8B", -25.4): 0,
        ("Table 1", "Single", "Qwen3-VL-8B-Thinking", 70.9): pytest.approx(70.65),
        ("Table 2", "Single", "Qwen3-VL-8B-Thinking", 70.9): pytest.approx(70.65),
        ("Table 8", "L2-VMAS", "Qwen3-VL-8B-Instruct", 1807): 1811.75,
    }
    assert all(re.search(r"misprint|does not recompute|follows from", figure.note) for figure in found)
    noted = {figure for figure in figures() if re.match(r"misprint|does not recompute", figure.note)}
    beyond = {(figure.table, figure.value) for figure in noted - set(found)}
    assert beyond == {("Table 9", 72.9), ("project page", 12.7)}  # a stray letter; a figure of another row


@pytest.mark.parametrize(
    ("table", "benchmark", "metric", "by"),
    [
        ("Table 1", AVERAGE, "judge_accuracy", 0.02),
        ("Table 4", "atm", "gold_no_access", 0.1),
        ("Table 5", "memeye", "recovered_question_rate", 0.1),
        ("Table 6", "h2hmem", "components", 0.1),
        ("Table 6", "atm", "hit@10_change", 0.1),
        ("Table 10", "total", "net_gold_recovered", 1),
    ],
)
def test_each_rule_finds_a_slip(table: str, benchmark: str, metric: str, by: float) -> None:
    place = ("GraphMemix", table, benchmark, metric)
    at = next(n for n, one in enumerate(figures()) if (one.paper, one.table, one.benchmark, one.metric) == place)
    slipped = list(figures())
    slipped[at] = replace(slipped[at], value=slipped[at].value + by)
    assert {doubt.figure for doubt in doubts(slipped)} - {doubt.figure for doubt in doubts()} >= {slipped[at]}


def test_a_slip_in_a_printed_change_is_found() -> None:
    at = next(n for n, one in enumerate(figures()) if one.metric == "accuracy_change" and one.unit == "points")
    slipped = list(figures())
    slipped[at] = replace(slipped[at], value=slipped[at].value + 0.1)
    assert slipped[at] in {doubt.figure for doubt in doubts(slipped)}


def printed(text: str, caption: str, *, above: bool) -> Counter[float]:
    """The numbers of the table whose caption starts so, without its first column and headings."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(caption))
    step = -1 if above else 1
    rows: list[str] = []
    while 0 < at + step < len(lines) and not (rows and "\t" not in lines[at + step]):
        at += step
        rows += [lines[at]] if "\t" in lines[at] else []
    found: Counter[float] = Counter()
    for row in rows:
        for cell in row.split("\t")[1:]:
            plain = (
                cell.replace("gray!20", "").replace(r"$\downarrow$", "-").replace(r"$\uparrow$", "").replace(",", "")
            )
            if not re.search(r"[A-Za-z]{2}|[A-Z][.@\d]", plain):
                found.update(float(one) for one in re.findall(r"(?<![\d.])-?\d+(?:\.\d+)?", plain.replace(" / ", " ")))
    return found


@pytest.mark.parametrize(
    ("paper", "file", "table", "caption", "above"),
    [
        *(("L2-VMAS", "000", f"Table {n}", f"Table {n}: ", False) for n in (1, 2, 3, 5, 6, 7, 8, 9, 10)),
        *(("GraphMemix", "003", f"Table {n}", f"Table {n}: ", True) for n in range(1, 11)),
    ],
)
def test_every_number_of_a_table_is_a_row(
    shared: Path, paper: str, file: str, table: str, caption: str, above: bool
) -> None:
    papers = sorted((shared / "papers").glob(f"{file}_*.txt"))
    if not papers:
        pytest.skip(f"no paper {file} in {shared}")
    text = papers[0].read_text("utf-8")
    rows = Counter(abs(one.value) for one in figures() if (one.paper, one.table) == (paper, table))
    said = Counter[float]()
    for number, times in printed(text, caption, above=above).items():
        said[abs(number)] += times
    assert said == rows


def test_results_are_scores_and_costs_of_one_benchmark() -> None:
    found = results("atm")
    assert {figure.benchmark for figure in found} == {"atm"}
    assert {figure.metric for figure in found} == {"judge_accuracy", "em", "recall@10", "hit@10", "qs"}
    assert len(found) >= 40
    assert results("nowhere") == []


def test_results_folder_shows_the_packaged_file() -> None:
    shown = ROOT / "results" / "published.csv"
    assert shown.resolve() == FILE.resolve()
    with shown.open(newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == list(Figure.__slots__)


def test_the_wheel_is_told_to_hold_the_figures_and_the_page() -> None:
    package = ROOT / "memharness"
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["memharness"]
    held = {path.relative_to(package).as_posix() for glob in globs for path in package.glob(glob)}
    assert held >= {"report/published.csv", "report/leaderboard/leaderboard.html.j2"}


def test_damaged_and_missing_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "published.csv"
    for text, message in (
        (f"{','.join(Figure.__slots__)}\nMEMO,,,,,,,,much,,,\n", "line 2: damaged"),
        (f"{','.join(Figure.__slots__)}\nMEMO,,,,,,,,1,,,,more\n", "line 2: damaged"),
        ("paper,value\nMEMO,1\n", "line 2: damaged"),
    ):
        damaged.write_text(text)
        monkeypatch.setattr(published, "FILE", damaged)
        figures.cache_clear()
        with pytest.raises(DataError, match=message):
            figures()
    monkeypatch.setattr(published, "FILE", tmp_path / "none.csv")
    with pytest.raises(DataError, match="cannot be read"):
        figures()
    figures.cache_clear()
