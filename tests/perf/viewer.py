"""How long `memharness view` takes, and a large run's first pages in Chromium, opened from a file.

Run: python -m tests.perf.viewer [--records 20000] [--folder DIR]
The run is made by the real record writer (tests/report/viewer/big.py). A page's time is from asking for it in a fresh
window to its last row being drawn, as the page itself marks it; the least and the middle of five are printed.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from memharness.report import viewer
from tests.report.viewer import big
from tests.report.viewer.browser import CHROMIUM, FLAGS

PAGES = {"summary": "#/run/0", "questions": "#/run/0/questions", "misses": "#/run/0/questions?right=0",
         "memory": "#/memory/0"}  # fmt: skip
A_CONTEXT = 200  # questions
# Drawn when the page says so; the frame after it is on the screen.
DRAWN = """() => new Promise((done) => {
  const look = () => document.documentElement.dataset.ready
    ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 1);
  look();
})"""


def opened(browser: Any, folder: Path, address: str, times: int = 5) -> list[float]:
    """Milliseconds until a page is drawn, each in a window of its own."""
    found = []
    for _ in range(times):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{(folder / 'index.html').as_uri()}{address}", wait_until="commit")
        found.append(page.evaluate(DRAWN))
        page.close()
    return found


def searched(browser: Any, folder: Path) -> float:
    """Milliseconds of a search through the words of all questions."""
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri() + "#/run/0/questions?text=violin%20canoe%20zebra")
    ready: float = page.evaluate(DRAWN)
    page.close()
    return ready


def measure(records: int, folder: Path) -> None:
    """Make, write, open."""
    from playwright.sync_api import sync_playwright

    begun = time.perf_counter()
    run = big.make(folder, contexts=max(1, records // A_CONTEXT), questions=min(records, A_CONTEXT))
    made = time.perf_counter()
    page = viewer.write([run], folder / "view", force=True).parent
    ended = time.perf_counter()
    size = sum(path.stat().st_size for path in page.rglob("*") if path.is_file())
    first = sum((page / "data" / f"{name}.js").stat().st_size for name in ("runs", "r0-summary", "r0-index"))
    print(f"{records:,} records: made in {made - begun:.1f} s, viewer written in {ended - made:.1f} s, "
          f"{size / 1e6:.1f} MB in all, {first / 1e6:.2f} MB for the first page")  # fmt: skip
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        print(f"Chromium {browser.version} on {platform.machine()}, {platform.platform()}")
        for name, address in PAGES.items():
            times = opened(browser, page, address)
            print(f"  {name:10} {min(times):6.0f} ms least, {statistics.median(times):6.0f} ms middle of {len(times)}")
        print(f"  a search through all words {searched(browser, page):.0f} ms")
        browser.close()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, help="keep what is made here")
    words = parser.parse_args()
    if words.folder:
        measure(words.records, words.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(words.records, Path(folder))


if __name__ == "__main__":
    main()
