"""Plug-ins by name, by class path and by file, and what is said about one that cannot be loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memharness import registry
from memharness.registry import Entry, entries, find, is_class_path, plugin, short_name, split_spec
from memharness.types import DataError, UserError

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts entry points, as (name, target, distribution), in the place of the installed ones."""

    def put(*found: tuple[str, str, str], kind: str = "methods") -> None:
        points = [Point(name, target, f"memharness.{kind}", dist) for name, target, dist in found]
        monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
        entries.cache_clear()

    yield put
    entries.cache_clear()


class Point(EntryPoint):
    """An entry point of a distribution that is not installed."""

    def __init__(self, name: str, value: str, group: str, dist: str) -> None:
        """As `EntryPoint`, with the distribution's name; empty for none."""
        super().__init__(name, value, group)
        vars(self)["dist"] = SimpleNamespace(name=dist) if dist else None


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a plug-in file with a name of its own."""

    def write(text: str, name: str = "plugin_of_a_test") -> Path:
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        return path

    return write


# ----------------------------------------------------------------------------------------------------------- by name


def test_every_installed_plugin_is_found_by_its_name_and_loads() -> None:
    for kind in ("methods", "benchmarks", "readers", "embedders", "metrics"):
        for name, entry in entries(kind).items():
            assert entry.name == name
            assert isinstance(find(kind, name), type)


def test_listing_imports_nothing(install: Install) -> None:
    install(("a", "no.such.module:A", "dist"))
    assert entries("methods")["a"] == Entry("methods", "a", "no.such.module:A", "dist")
    assert "no.such" not in sys.modules


def test_names_stand_in_order_and_kinds_apart(install: Install) -> None:
    install(("b", "json:JSONDecoder", "two"), ("a", "json:JSONEncoder", "one"))
    assert list(entries("methods")) == ["a", "b"]
    assert not entries("readers")


def test_two_distributions_with_one_name_are_refused(install: Install) -> None:
    install(("a", "one:A", "first"), ("a", "two:A", "second"))
    with pytest.raises(UserError, match=r"both first \(one:A\) and second \(two:A\) bring one named a; uninstall"):
        entries("methods")


def test_one_plugin_seen_twice_is_one(install: Install) -> None:
    install(("a", "json:JSONEncoder", "first"), ("a", "json:JSONEncoder", ""))
    assert list(entries("methods")) == ["a"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jsn", "no method is called 'jsn' (did you mean json?); there are: json, torn, wrong"),
        ("q", "no method is called 'q'; there are: json, torn, wrong"),
        ("torn", "method torn (from dist): cannot import no_such_module: No module named 'no_such_module'"),
        ("wrong", "method wrong (from dist): json has no JSONEncodr (did you mean JSONEncoder?)"),
    ],
)
def test_a_name_that_cannot_be_loaded(install: Install, name: str, message: str) -> None:
    install(
        ("json", "json:JSONEncoder", "dist"), ("torn", "no_such_module:A", "dist"), ("wrong", "json:JSONEncodr", "dist")
    )
    with pytest.raises(UserError, match=re.escape(message)):
        find("methods", name)


def test_nothing_installed_says_how(install: Install) -> None:
    install()
    with pytest.raises(UserError, match=r"no methods are installed; run `pip install -e \.`"):
        find("methods", "bm25")


# ----------------------------------------------------------------------------------------------------- by class path


def test_a_class_in_a_module_or_a_file(module: Callable[..., Path]) -> None:
    path = module("class Outer:\n    class Inner: pass\n")
    assert find("methods", "json.encoder:JSONEncoder").__name__ == "JSONEncoder"
    found = find("methods", f"{path}:Outer")
    assert found.__name__ == "Outer"
    assert find("methods", f"{path}:Outer") is found
    assert registry._load_target(f"{path}:Outer.Inner", "x") is found.Inner


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    for at, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"class Method:\n    n = {at}\n")
    assert [find("methods", f"{tmp_path}/{folder}/mine.py:Method").n for folder in ("a", "b", "a")] == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1 / 0", r"ZeroDivisionError: division by zero \(plugin_of_a_test.py:1\)"),
        ("def f(:\n", r"SyntaxError: .*plugin_of_a_test.py, line 1\)"),
        ("raise SystemExit(3)", r"SystemExit: 3 \(plugin_of_a_test.py:1\)"),
        ("class Mthod: pass", r"has no Method \(did you mean Mthod\?\)"),
    ],
)
def test_a_file_that_cannot_be_loaded(module: Callable[..., Path], text: str, message: str) -> None:
    path = module(text)
    for _ in range(2):  # a broken module must not stay behind as if it had been loaded
        with pytest.raises(UserError, match=message):
            find("methods", f"{path}:Method")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"nowhere.py: no such file"):
        find("methods", "nowhere.py:Method")


@pytest.mark.parametrize(
    ("name", "is_path"),
    [
        ("pkg.mod:Class", True),
        ("file.py:Class", True),
        ("/a b/file.py:Class", True),
        ("C:/a/file.py:Class", True),
        ("bm25", False),
        ("openai:gpt-4o-mini", False),
        ("openai:gpt", False),
        ("openai:org/model.v1:latest", False),
        ("hf/model.gguf:Q8_0", False),
        ("pkg.mod:", False),
        ("pkg.mod", False),
    ],
)
def test_a_class_path_is_told_from_a_spec(name: str, is_path: bool) -> None:
    assert is_class_path(name) == is_path


def test_a_spec_is_a_plugin_and_a_model(install: Install) -> None:
    install(("openai", "json:JSONEncoder", "dist"), kind="readers")
    assert split_spec("readers", "openai:gpt-x") == ("openai", "gpt-x")
    assert split_spec("readers", "openai:org/m:latest") == ("openai", "org/m:latest")
    assert split_spec("readers", "openai") == ("openai", "")
    assert split_spec("readers", "file.py:Reader") == ("file.py:Reader", "")
    assert split_spec("readers", "nobody:m") == ("nobody", "m")


def test_short_names() -> None:
    assert [short_name(name) for name in ("bm25", "pkg.mod:Class", "a/b.py:Class")] == ["bm25", "Class", "Class"]


# -------------------------------------------------------------------------------------------------- a plug-in's faults


def raised(error: BaseException) -> Any:
    """What becomes of an exception that a plug-in raises."""
    with pytest.raises(BaseException) as caught, plugin("method x"):
        raise error
    return caught.value


def test_faults_of_a_plugin_are_the_users_to_read() -> None:
    assert re.fullmatch(r"method x: ValueError: no \(test_registry.py:\d+\)", str(raised(ValueError("no"))))
    assert isinstance(raised(SystemExit(2)), UserError)
    assert str(raised(DataError("f: r"))) == "f: r"
    assert isinstance(raised(KeyboardInterrupt()), KeyboardInterrupt)
