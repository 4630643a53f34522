"""The pages in Chromium: nothing untrusted runs, everything can be reached and read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.viewer import seer
from tests.report.viewer.browser import Window
from tests.report.viewer.conftest import ran, written

ADDRESSES = ("", "#/run/0", "#/run/0/questions", "#/memory/0", "#/memory/0/0", "#/compare/0/1")


@pytest.fixture
def window(browser: Any, pages: Path) -> Iterator[Window]:
    """A window on the ATM runs; at the end nothing may have gone wrong."""
    made = Window(browser, pages)
    yield made
    made.close()


def loaded(folder: Path, name: str) -> Any:
    """What a shard holds."""
    text = (folder / "data" / f"{name}.js").read_text("utf-8")
    return json.loads(json.loads(f"[{text[len('memharness(') : -len(');') - 1]}]")[1])


def ids(folder: Path, run: int = 0) -> list[str]:
    """Question ids of a run, in order."""
    found: list[str] = loaded(folder, f"r{run}-index")["ids"]
    return found


# ------------------------------------------------------------------------------------------------------------ safety


def test_scripts_in_every_field_stay_text(browser: Any, place: Path, wicked: Path, atm: tuple[Path, Path]) -> None:
    folder = written([wicked, atm[0]], place / "wicked")
    window = Window(browser, folder)
    page = window.page
    page.add_init_script("Object.defineProperty(window, 'pwned', {set() { console.error('ran'); }})")
    seen = ""
    for address in ("", "#/run/0", "#/run/0/questions", "#/memory/0", "#/memory/0/0", "#/compare/0/1"):
        window.go(address)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        seen += window.shown()
        assert marks(page) == 0, address
    for row in range(3):
        window.go("#/run/0/questions")
        page.locator(".row a").nth(row).click()
        page.wait_for_selector("ol.chain")
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        window.wait("[...document.querySelectorAll('details')].every((one) => one.children.length > 1)")
        seen += window.shown()
        assert marks(page) == 0
    window.go("#/memory/0/0")
    page.locator(".row button").first.click()
    seen += page.inner_text("dialog[open]")
    assert page.evaluate("({}).polluted") is None
    fields = (
        "asked gold said caption derived speaker place label session instruction option category c0 cluster group "
        "native given method bench note verdict rubric together thought trace value proto failure picture"
    )
    for field in fields.split():
        assert f"{field}</script><script>" in seen, field
    window.close()


def marks(page: Any) -> int:
    """How many elements came out of a text."""
    return int(page.evaluate("document.querySelectorAll('script:not([src]), [onerror], [onload], img[src=x]').length"))


def test_the_policy_of_the_page_refuses_markup_from_strings(window: Window) -> None:
    window.go()
    refused = window.page.evaluate(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; } })()"
    )
    assert refused
    assert [fault for fault in window.faults if "TrustedHTML" in fault]
    window.faults.clear()


# ------------------------------------------------------------------------------------------------------ what is there


def test_the_summary_says_what_was_run_and_measured(window: Window, atm: tuple[Path, Path]) -> None:
    summary = json.loads((atm[0] / "summary.json").read_text())
    window.go("#/run/0")
    shown = window.shown()
    for words in (
        "SAMPLE",
        "bm25 on atm",
        summary["identity"],
        "Where misses broke",
        "All gold shown",
        "clopper-pearson",
    ):
        assert words in shown, words
    lead = summary["scores"]["em"]
    assert f"{lead['low']:.3f} – {lead['high']:.3f}" in shown
    assert f"{summary['tokens']['read']['text']:,}" in shown


def test_a_question_shows_prompt_evidence_pictures_answer_and_scores(
    window: Window, pages: Path, atm: tuple[Path, Path]
) -> None:
    records = [json.loads(line) for line in (atm[0] / "records.jsonl").read_text().splitlines()]
    record = next(one for one in records if any(e[0].startswith("2024") for e in one["evidence"][:5]))
    window.go(f"#/q/0/{record['question']}")
    window.wait("document.querySelectorAll('ol.evidence img').length > 0")
    window.page.locator("ol.evidence img").first.scroll_into_view_if_needed()
    window.wait("[...document.querySelectorAll('ol.evidence img')].some((one) => one.complete && one.naturalWidth > 0)")
    assert record["prompt"] in window.page.locator("pre[aria-label=Prompt]").text_content()
    shown = window.shown()
    for words in (record["evidence"][0][0], "Expected", "Answered", record["answer"], "recall@10", "Tokens and calls"):
        assert words in shown, words
    original = window.page.locator("ol.evidence figure a").first.get_attribute("href")
    assert (pages / original).is_file()
    assert all(
        window.page.locator("img").nth(at).get_attribute("alt") for at in range(window.page.locator("img").count())
    )


def test_pictures_stand_in_the_prompt_where_the_reader_saw_them(browser: Any, place: Path) -> None:
    run = ran(place, bench="atm", method="oracle", reader=f"{seer.__file__}:Seer", view="pixels")
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    record = next(one for one in records if one["prompt"].count("<image ") >= 2)
    names = re.findall("<image ([0-9a-f]{12})>", record["prompt"])
    window = Window(browser, written([run], place / "pixels"))
    window.go(f"#/q/0/{record['question']}")
    shown = window.page.locator("pre[aria-label=Prompt] img")
    assert [shown.nth(at).get_attribute("src") for at in range(shown.count())] == [
        f"media/{name}.thumb.jpg" for name in names
    ]
    assert "<image" not in window.page.locator("pre[aria-label=Prompt]").text_content()
    shown.first.scroll_into_view_if_needed()
    window.wait("document.querySelector('pre img').naturalWidth > 0")
    window.close()


def test_a_forest_is_drawn_with_its_edges_and_gold(browser: Any, place: Path, wicked: Path) -> None:
    folder = written([wicked], place / "forest")
    window = Window(browser, folder)
    window.go("#/run/0/questions")
    window.page.locator(".row a").first.click()
    window.page.wait_for_selector("svg.graph")
    assert window.page.locator("svg.graph line.edge").count() == 1
    assert window.page.locator("svg.graph circle.node").count() == 2
    assert window.page.locator("svg.graph circle.isgold").count() == 1
    window.close()


def test_two_runs_beside_each_other_name_their_flips(window: Window, pages: Path) -> None:
    first, second = (loaded(pages, f"r{run}-index") for run in (0, 1))
    other = dict(zip(second["ids"], second["right"], strict=True))
    pairs = [(right, other[one]) for one, right in zip(first["ids"], first["right"], strict=True)]
    window.go("#/compare/0/1")
    numbers = [int(text) for text in window.page.locator(".flips b").all_inner_texts()]
    assert numbers[:4] == [pairs.count(pair) for pair in ((1, 0), (0, 1), (0, 0), (1, 1))]
    assert "Not alike in items" in window.shown()
    regressed = first["ids"][pairs.index((1, 0))]
    window.page.locator(".flips button").first.click()
    window.wait(f"document.querySelectorAll('.row').length === {numbers[0]}")
    window.go(f"#/pair/0/1/{regressed}")
    assert window.page.locator(".pair > section.isgood").count() == 1
    assert window.page.locator(".pair > section.isbad").count() == 1
    assert "regressed" in window.shown()


def test_what_was_expected_and_said_is_marked(window: Window, pages: Path, atm: tuple[Path, Path]) -> None:
    lines = loaded(pages, "r0-l-0")
    same, other, partly = (
        next(one for one, (_, gold, reply, _) in zip(ids(pages), lines, strict=True) if alike(gold, reply))
        for alike in (
            lambda gold, reply: gold == reply,
            lambda gold, reply: not set(gold.lower().split()) & set(reply.lower().split()),
            lambda gold, reply: gold in reply and gold != reply,
        )
    )
    for question, marked in ((same, (True, False)), (other, (False, True)), (partly, (True, False))):
        window.go(f"#/q/0/{question}")
        found = tuple(window.page.locator(f".answers mark.{kind}").count() > 0 for kind in ("same", "lost"))
        assert found == marked, question


def test_a_timeline_marks_what_was_recalled_and_gold(window: Window, pages: Path, atm: tuple[Path, Path]) -> None:
    record = json.loads((atm[0] / "records.jsonl").read_text().splitlines()[0])
    window.go(f"#/memory/0/0?q={record['question']}&show=recalled")
    assert window.page.locator(".row").count() == len(record["evidence"])
    window.wait("[...document.querySelectorAll('.row .side')].every((one) => !/^\\d{1,3}$/.test(one.textContent))")
    times = window.page.locator(".row button > .side:first-child").all_inner_texts()
    assert times == sorted(times)
    assert all(time.startswith("2024-") for time in times)
    assert "rank 1" in window.shown()
    window.page.locator(".row button").first.click()
    assert window.page.locator("dialog[open]").count() == 1
    window.press("Escape")
    assert window.page.locator("dialog[open]").count() == 0


# --------------------------------------------------------------------------------------------------- lists and keys


def test_a_long_list_keeps_few_rows_and_filters_and_searches(
    browser: Any, place: Path, town: tuple[Path, Path]
) -> None:
    folder = written(town, place / "town-pages")
    index = loaded(folder, "r0-index")
    window = Window(browser, folder)
    window.go("#/run/0/questions")
    assert window.page.locator(".row").count() < 40
    assert "1,200 questions" in window.shown()
    window.page.evaluate("document.querySelector('.list').scrollTop = 1e9")
    window.wait("[...document.querySelectorAll('.row')].some((row) => row.ariaPosInSet === '1200')")
    window.page.select_option("select[name=category]", label="kind 3")
    window.page.select_option("select[name=right]", label="wrong")
    kind = index["names"]["category"].index("kind 3")
    wrong = sum(c == kind and r == 0 for c, r in zip(index["category"], index["right"], strict=True))
    window.wait(f"document.querySelector('main').textContent.includes('{wrong:,} of 1,200 questions')")
    address = window.address()
    window.go(address, anew=True)  # a filtered list can be linked to
    assert f"{wrong:,} of 1,200 questions" in window.shown()
    window.go("#/run/0/questions?score=1&least=0.5")
    found = sum(value is not None and value >= 0.5 for value in loaded(folder, "r0-score-1"))
    assert f"{found:,} of 1,200 questions" in window.shown()
    lines = [*loaded(folder, "r0-l-0"), *loaded(folder, "r0-l-1")]
    window.press("/")
    window.page.keyboard.type("violin")
    hits = sum("violin" in " ".join(line) for line in lines)
    window.page.select_option("select[name=score]", "")
    window.wait(f"document.querySelector('main').textContent.includes('{hits:,} of 1,200 questions')")
    window.close()


def test_everything_can_be_reached_by_keys(window: Window, pages: Path) -> None:
    order = ids(pages)
    window.go("#/run/0/questions")
    window.press("j", "j", "ArrowDown", "k")
    assert window.page.evaluate("document.activeElement.closest('.row').ariaPosInSet") == "2"
    window.press("Enter")
    window.wait("location.hash.startsWith('#/q/')")
    window.page.wait_for_selector("ol.chain")
    assert window.address() == f"#/q/0/{order[1]}"
    assert window.page.evaluate("document.activeElement.tagName") == "H1"
    window.press("j")
    window.wait(f"location.hash === '#/q/0/{order[2]}' && document.querySelector('main').textContent.includes('3 of')")
    window.press("k")
    window.wait(f"location.hash === '#/q/0/{order[1]}' && document.querySelector('main').textContent.includes('2 of')")
    window.press("Escape")
    window.wait("location.hash === '#/run/0/questions' && document.querySelector('.row')")
    window.press("/")
    assert window.page.evaluate("document.activeElement.name") == "text"
    window.press("Escape", "?")
    assert window.page.locator("#help[open]").count() == 1
    window.press("Escape")
    window.go(anew=True)
    window.press("Tab")
    assert window.page.evaluate("document.activeElement.id") == "skip"
    window.press("Tab")
    assert window.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_an_address_that_leads_nowhere_says_so(window: Window) -> None:
    for address in ("#/q/0/nothing", "#/run/7", "#/memory/0/99", "#/pair/0/1/x", "#/what/0", "#/q/0/%E0%A4%A"):
        window.go(address)
        assert window.page.locator("h1").inner_text() in ("Not found", "This page cannot be shown"), address


def test_a_missing_file_of_the_folder_is_named(browser: Any, place: Path, atm: tuple[Path, Path]) -> None:
    folder = written(atm[:1], place / "holed")
    (folder / "data" / "r0-index.js").unlink()
    window = Window(browser, folder)
    window.go()
    assert "data/r0-index.js is missing or damaged" in window.shown()
    (folder / "data" / "r0-index.js").write_text('memharness("r0-index","{')
    window.go("#/run/0/questions")
    assert "data/r0-index.js is missing or damaged" in window.shown()
    window.faults.clear()  # the browser's own words about the file
    window.close()


# ------------------------------------------------------------------------------------------------------ for everyone

# The least contrast of any text with what is behind it. Colours come as rgb() or rgba(), clear ones show what is below.
CONTRAST = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if ((colour[3] ?? 1) > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const says = (one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  let worst = [99, ""];
  for (const one of document.querySelectorAll("body *")) {
    if (one.namespaceURI.endsWith("svg") || !one.checkVisibility() || !says(one)) continue;
    const pair = [light(numbers(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < worst[0]) worst = [ratio, `${one.tagName}.${one.className} ${one.textContent.slice(0, 30)}`];
  }
  return worst;
}"""
FIELDS = "[...document.querySelectorAll('main input:not([type=hidden]), main select')]"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_legible_in_light_and_dark(browser: Any, pages: Path, scheme: str) -> None:
    window = Window(browser, pages, scheme=scheme)
    for address in (*ADDRESSES, f"#/q/0/{ids(pages)[0]}", f"#/pair/0/1/{ids(pages)[0]}"):
        window.go(address)
        ratio, where = window.page.evaluate(CONTRAST)
        assert ratio >= 4.5, (address, where)
        assert window.page.evaluate("document.querySelectorAll('main, header, nav[aria-label], h1').length") >= 4
        assert window.page.evaluate(f"{FIELDS}.every((one) => one.labels.length)")
    window.close()


def test_the_theme_can_be_chosen_and_is_kept(window: Window) -> None:
    window.go()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = window.page.evaluate(paper)
    window.page.click("#theme")
    assert window.page.evaluate(paper) == light
    window.page.click("#theme")
    dark = window.page.evaluate(paper)
    assert dark != light
    window.go("#/run/0", anew=True)
    assert window.page.evaluate(paper) == dark


def test_a_phone_scrolls_down_and_not_sideways(browser: Any, pages: Path) -> None:
    window = Window(browser, pages, width=360)
    for address in (*ADDRESSES, f"#/q/0/{ids(pages)[0]}", f"#/pair/0/1/{ids(pages)[0]}"):
        window.go(address)
        assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    window.close()
