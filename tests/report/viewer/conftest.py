"""Runs and viewers that several tests look at; made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from memharness.report import viewer
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from tests.report.viewer import big, hostile
from tests.report.viewer.browser import chromium

T = TypeVar("T")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of this module's own; the engine's cache is in it."""
    folder = tmp_path_factory.mktemp("viewer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMHARNESS_HOME", str(folder / "home"))
        yield folder


def aside(work: Callable[..., T], *given: Any, **named: Any) -> T:
    """Do something in a thread: Playwright's own loop runs in this one while a browser is open."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work, *given, **named).result()


def ran(out: Path, **words: Any) -> Path:
    """The folder of a run."""
    return Path(aside(execute, RunSpec(out=str(out), **words), Quiet())["run"])


def written(runs: Sequence[Path], out: Path, **words: Any) -> Path:
    """The folder of a viewer."""
    return aside(viewer.write, runs, out, **words).parent


@pytest.fixture(scope="session")
def atm(place: Path) -> tuple[Path, Path]:
    """Two runs on ATM's sample, which has pictures: BM25, and the four last items."""
    words = {"bench": "atm", "reader": "extractive"}
    return ran(place, method="bm25", **words), ran(place, method="recency", items=4, **words)


@pytest.fixture(scope="session")
def pages(place: Path, atm: tuple[Path, Path]) -> Path:
    """Both of them in one viewer."""
    return written(atm, place / "pages")


@pytest.fixture(scope="session")
def wicked(place: Path) -> Path:
    """A run whose every field is a script."""
    file = hostile.__file__
    words = {"bench": f"{file}:Hostile", "reader": f"{file}:Liar", "judge": f"{file}:Liar", "view": "captions"}
    return ran(place, method=f"{file}:Wicked", **words)


@pytest.fixture(scope="session")
def town(place: Path) -> tuple[Path, Path]:
    """Two runs of 1,200 questions in two contexts."""
    first, second = (
        aside(big.make, place / "town", contexts=2, questions=600, items=300, seed=seed) for seed in (0, 1)
    )
    return first, second


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for a file of tests; no longer, since no test of coroutines could run beside it."""
    with chromium() as found:
        yield found
