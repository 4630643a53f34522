"""The leaderboard as Parquet, Markdown and HTML: what is written is what was measured, whatever words runs carry."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from memharness.report.leaderboard import (
    Standing,
    boards,
    rows,
    write_csv,
    write_html,
    write_markdown,
    write_parquet,
)
from memharness.report.leaderboard.page import page
from memharness.report.published import results
from memharness.types import UserError
from tests.report.runs import summary

CHROMIUM = shutil.which("chromium")
HOSTILE = "</td><script>document.title='hit'</script>|*x*`y`\n<img src=x onerror=\"document.title='hit'\">"


def runs() -> list[dict[str, Any]]:
    """Runs of two limits, a control and a sample."""
    return [
        summary(0.412, run="a", date="2026-11-30"),
        summary(0.5, run="b", method="dense", config={}),
        summary(0.09, run="c", method="bm25", config={}, price=None),
        summary(0.6, run="d", method="dense", config={}, budget=500),
        summary(0.2, run="e", method="random", config={}, control=True),
        summary(0.3, run="f", bench="locomo", data_state="sample"),
    ]


def ties(of: list[dict[str, Any]]) -> dict[str, Standing]:
    """Standings by hand."""
    found = {run["run"]: Standing("ab") for run in of}
    return found | {"c": Standing("", "3 of 100 cells missing"), "e": Standing("", "control")}


def test_parquet_holds_the_rows_with_their_types(tmp_path: Path) -> None:
    from pyarrow import parquet

    made = rows(runs(), ties(runs()), results("mem-gallery"))
    write_parquet(tmp_path / "deep" / "board.parquet", made)
    table = parquet.read_table(tmp_path / "deep" / "board.parquet")
    assert table.column_names == list(made[0])
    assert table.num_rows == len(made)
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["primary_value"], types["n"], types["control"], types["judge"]) == (
        "double", "int64", "bool", "string",
    )  # fmt: skip
    for row, back in zip(made, table.to_pylist(), strict=True):
        assert {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in back.items()
        } == row


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_file_that_cannot_be_written_is_named(write: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/board"):
        write(tmp_path / "file" / "board", rows(runs()))


def test_markdown_shows_every_board_and_escapes_what_runs_carry(tmp_path: Path) -> None:
    of = [*runs(), summary(0.1, run="x", method=HOSTILE, config={})]
    write_markdown(tmp_path / "board.md", boards(of), ties(of), published=True)
    text = (tmp_path / "board.md").read_text()
    assert text.startswith("# Leaderboard\n\nValues are shares of 1")
    assert "## mem-gallery · evidence track · f1\n" in text
    assert "## locomo · evidence track · f1 · SAMPLE" in text
    assert re.search(r"\| ab \| graphmemix .* \| 0\.412 \\\[0\.331, 0\.496\\\] \| 100 \| 10 \| 0\.0 % ", text)
    assert "not ranked: bm25, 2,000 tokens and 10 items, captions: 3 of 100 cells missing" in text
    assert "**Published: not measured here, never ranked with runs**" in text
    assert "<script" not in text
    assert "\\|\\*x\\*\\`y\\`" in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_across_benchmarks_a_row_with_a_missing_cell_has_no_mean() -> None:
    of = [
        summary(0.2, run="a"),
        summary(0.4, run="b", bench="locomo"),
        summary(0.9, run="c", method="dense", config={}),
        summary(0.9, run="d", budget=500, bench="locomo"),
    ]
    first = page(boards(of), ties(of)).sections[0]
    assert first.title == "Across benchmarks · evidence track"
    grid = first.grids[0]
    assert grid.columns == ("method", "reader", "limits", "locomo · f1", "mem-gallery · f1", "mean")
    rows_ = {(row[0], row[2].split()[0]): (row[3].split()[0], row[4].split()[0], row[5]) for row in grid.texts}
    assert rows_ == {
        ("dense", "2,000"): ("–", "0.900", "–"),
        ("graphmemix verifier=similarity", "2,000"): ("0.400", "0.200", "0.300"),
        ("graphmemix verifier=similarity", "500"): ("0.900", "–", "–"),
    }
    other = [of[0], summary(0.4, run="b", bench="locomo", primary="em")]
    assert [row[-1] for row in page(boards(other), ties(other)).sections[0].grids[0].texts] == ["–"]
    assert page(boards(of[:1]), ties(of)).sections[0].title == "mem-gallery · evidence track · f1"


class Tables(HTMLParser):
    """Rows of words, and the tags that were met."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_html_is_one_file_with_escaped_words(tmp_path: Path) -> None:
    of = [*runs(), summary(0.1, run="x", method=HOSTILE, bench=HOSTILE, reader=HOSTILE, config={"a": HOSTILE})]
    write_html(tmp_path / "board.html", boards(of), ties(of), published=True)
    text = (tmp_path / "board.html").read_text()
    read = Tables()
    read.feed(text)
    assert read.tags.count("script") == 1
    assert "img" not in read.tags
    assert read.links == ["data:,"]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", text)
    assert any(HOSTILE in cell for row in read.rows for cell in row)
    assert any("0.412 [0.331, 0.496]" in cell for row in read.rows for cell in row)
    assert "default-src 'none'" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[tuple[Any, list[str]]]:
    """The page, and what its console said."""
    of = [*runs(), summary(0.01, run="x", method=HOSTILE, config={"a": HOSTILE})]
    write_html(tmp_path / "board.html", boards(of), ties(of), published=True)
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "request", lambda request: said.append(request.url) if not request.url.startswith(("file:", "data:")) else None
    )
    page.goto((tmp_path / "board.html").as_uri())
    yield page, said
    page.close()


def column(page: Any, name: str, part: int = 0) -> list[str]:
    """The cells of a column of the first table, in one of its parts."""
    names = page.locator("table").first.locator("thead button").all_inner_texts()
    cells = page.locator("table").first.locator("tbody").nth(part).locator(f"tr td:nth-child({names.index(name) + 1})")
    return [text.split()[0] for text in cells.all_inner_texts()]


def test_tables_sort_by_mouse_and_keyboard_within_their_parts(opened: tuple[Any, list[str]]) -> None:
    page, said = opened
    first = page.locator("table").first
    assert column(page, "f1", 1) == ["0.500", "0.412", "0.090", "0.010"]
    assert column(page, "f1", 0) == ["0.600"]
    first.get_by_role("button", name="price").focus()
    page.keyboard.press("Enter")
    assert column(page, "price", 1) == ["0.00", "0.00", "0.00", "unknown"]  # what has no value stays last
    button = first.get_by_role("button", name="f1")
    button.click()
    assert first.locator("th[aria-sort=descending]").inner_text() == "f1"
    page.keyboard.press("Space")
    assert column(page, "f1", 1) == ["0.010", "0.090", "0.412", "0.500"]
    assert first.locator("th[aria-sort=ascending]").count() == 1
    first.get_by_role("button", name="method").click()
    assert column(page, "method", 1)[1:] == ["bm25", "dense", "graphmemix"]
    assert page.title() == "memharness leaderboard"
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_have_contrast_in_light_and_dark(opened: tuple[Any, list[str]], scheme: Any) -> None:
    page, said = opened
    page.emulate_media(color_scheme=scheme)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 20
    assert min(ratios) >= 4.5
    assert said == []


CONTRAST = """() => {
  const light = rgb => { const [r, g, b] = rgb.match(/[\\d.]+/g).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = node => { for (let at = node; at; at = at.parentElement) {
    const seen = getComputedStyle(at).backgroundColor; if (!/, 0\\)$/.test(seen)) return seen; }
    return "rgb(255,255,255)"; };
  return [...document.querySelectorAll("h1, h2, p, th button, td, summary")].map(node => {
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); });
}"""
