"""Headless Chromium on a viewer's folder, by file address, which notes everything that a page must not do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("Playwright for Python is not installed")
    if not CHROMIUM.is_file():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


class Window:
    """One window on a folder. `faults` are errors of the console and of scripts, dialogs, and requests elsewhere."""

    def __init__(self, browser: Any, folder: Path, *, width: int = 1280, scheme: str = "light") -> None:
        """Open none yet."""
        self.folder, self.faults = folder, list[str]()
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(5000)
        self.page.on("console", lambda message: self.faults.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self._asked)
        self.page.on("popup", lambda popup: self.faults.append(f"popup: {popup.url}"))

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.folder.as_uri()):
            self.faults.append(f"request: {request.url}")

    def go(self, address: str = "", *, anew: bool = False) -> None:
        """Open an address such as `#/run/0`, and wait until it is drawn; `anew` loads the whole page again."""
        if anew or self.page.url == "about:blank":
            self.page.goto("about:blank")
            self.page.goto(f"{(self.folder / 'index.html').as_uri()}{address}")
            self.drawn(0)
        elif self.address() != (address or "#/"):
            before = int(self.page.evaluate("document.documentElement.dataset.ready"))
            self.page.evaluate("(to) => { location.hash = to; }", address or "#/")
            self.drawn(before)

    def drawn(self, before: int) -> None:
        """Wait until a page was drawn after the `before`th."""
        self.wait(f"Number(document.documentElement.dataset.ready ?? 0) > {before}")

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def shown(self) -> str:
        """The words of the page's content."""
        return str(self.page.inner_text("main"))

    def wait(self, condition: str, seconds: float = 10.0) -> None:
        """Wait for a condition in JavaScript. Playwright's own way evaluates strings, which the policy forbids."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"not within {seconds:.0f} s: {condition}"
            self.page.wait_for_timeout(10)

    def address(self) -> str:
        """What follows `#` in the address."""
        return str(self.page.evaluate("location.hash"))

    def close(self) -> None:
        """Close it; everything that happened has to be fine.

        Raises:
            AssertionError: if the page did what it must not.
        """
        self.page.wait_for_timeout(50)
        self.context.close()
        assert self.faults == []
