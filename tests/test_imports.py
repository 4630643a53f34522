"""What is imported, and what must not be: help is instant, and the engine brings no tensor library along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import memharness

FOLDER = Path(memharness.__file__).parent
HEAVY = {"torch", "transformers", "vllm", "datasets", "pandas", "scipy", "matplotlib", "nltk"}
NOT_FOR_HELP = (HEAVY - {"nltk"}) | {"pydantic", "numpy", "typer", "rich", "yaml", "asyncio", "sqlite3"}


def python(*words: str) -> subprocess.CompletedProcess[str]:
    """Another process, without the coverage and path settings of this one."""
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=120, check=True, env={**os.environ}
    )


def imported(report: str) -> set[str]:
    """Top-level names in what `-X importtime` says."""
    rows = [line.rpartition("|")[2].strip() for line in report.splitlines() if line.startswith("import time:")]
    return {name.partition(".")[0] for name in rows}


def test_help_imports_next_to_nothing() -> None:
    bare = imported(python("-X", "importtime", "-c", "pass").stderr)
    done = python("-X", "importtime", "-m", "memharness", "--help")
    assert done.stdout.startswith("Usage: memharness")
    found = imported(done.stderr)
    assert "memharness" in found
    assert not (found - bare) & NOT_FOR_HELP
    ours = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "memharness" in line}
    assert {name for name in ours if not name.startswith("__editable")} <= {"memharness", "memharness.cli"}


def engine() -> list[str]:
    """Every module of the engine; plug-ins live behind symlinks."""
    files = [
        file.relative_to(FOLDER.parent).with_suffix("")
        for file in FOLDER.rglob("*.py")
        if file.relative_to(FOLDER).parts[0] not in ("benchmarks", "methods", "readers") and file.stem != "__main__"
    ]
    return sorted(".".join(file.parts[:-1] if file.name == "__init__" else file.parts) for file in files)


def test_the_engine_imports_without_heavy_libraries() -> None:
    modules = engine()
    assert {"memharness.types", "memharness.run.runner", "memharness.scoring.text", "memharness.cli.app"} <= set(
        modules
    )
    code = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('memharness.')))"
    )
    tops, ours = python("-c", code).stdout.splitlines()
    assert not set(tops.split()) & HEAVY
    plugins = ("memharness.benchmarks", "memharness.methods", "memharness.readers")
    assert not [name for name in ours.split() if name.startswith(plugins)]


def test_listing_plugins_imports_none_of_them() -> None:
    code = (
        "import sys\nfrom memharness.cli import command_line\n"
        "command_line(['list'])\nprint('\\n' + ' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    assert not set(python("-c", code).stdout.splitlines()[-1].split()) & (HEAVY | {"numpy"})
