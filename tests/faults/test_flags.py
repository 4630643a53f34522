"""Every flag given a wrong name, type or value: one line that says what and what to do, and nothing done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memharness.registry import entries
from tests.faults.conftest import Said, hostile, refused, run_words, summary, toy

Cli = Callable[..., Said]
REAL = ["run", "--method", "bm25", "--bench", "hotpotqa", "--reader", "extractive", "--json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rum"], "did you mean run?"),
        (["run", "--metod", "x"], "--method"),
        ([*REAL, "--method", "bm26"], "did you mean bm25?"),
        ([*REAL, "--bench", "hotpot-qa"], "did you mean hotpotqa?"),
        ([*REAL, "--reader", "extractiv"], "did you mean extractive?"),
        ([*REAL, "--judge", "extractiv"], "did you mean extractive?"),
        ([*REAL, "--method", "dense", "--embedder", "minilmm"], "did you mean minilm?"),
        ([*REAL, "--model", "answer=extractiv"], "did you mean extractive?"),
        ([*REAL, "--model", "answr=extractive"], "did you mean answer?"),
        ([*REAL, "--model", "verifier=extractive"], "bm25 has no role verifier; it has: answer, captioner"),
        ([*REAL, "-M", "derivd=true"], "did you mean derived?"),
        ([*REAL, "--bench", "locomo", "-B", "adversaria=choice"], "did you mean adversarial?"),
        ([*REAL, "-R", "temperature=1"], "extractive has no such option; it has: none"),
        ([*REAL, "--subset", "distracter"], "distractor"),
        (["show", "graphmemx"], "did you mean graphmemix?"),
        (["list", "method"], "did you mean methods?"),
        (["data", "check", "hotpot-qa"], "did you mean hotpotqa?"),
        (["evaluate", "hotpot-qa", "--predictions", "pyproject.toml"], "no such file"),
    ],
)
def test_an_unknown_name_gets_a_did_you_mean(cli: Cli, words: list[str], message: str) -> None:
    refused(cli(*words), message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-M", "derived"], "-M derived: expected -M KEY=VALUE"),
        (["-M", "=1"], "expected -M KEY=VALUE"),
        (["-M", "derived=["], "not valid YAML"),
        (["-M", "derived=7x"], "-M derived='7x'"),
        (["-M", "items=-1"], "-M items=-1"),
        (["-B", "zzz=1"], "-B zzz: hotpotqa has no such option"),
        (["-R", "zzz"], "-R zzz: expected -R KEY=VALUE"),
        (["--model", "answer"], "--model answer: expected --model KEY=VALUE"),
        (["--model", "answer="], "no reader is called"),
        (["--reader", "extractive:large"], "extractive has no models"),
        (["--reader", ""], "no reader is called ''"),
        (["--view", "pixel"], "--view pixel: expected pixels or captions"),
        (["--view", "pixels"], "extractive does not see pictures; use --view captions"),
        (["--until", "reading"], "--until reading"),
        (["--budget", "0"], "--budget 0: must be at least 1"),
        (["--budget", "many"], "--budget"),
        (["--items", "0"], "--items 0: must be at least 1"),
        (["--items", "1.5"], "--items"),
        (["--workers", "0"], "--workers 0: must be at least 1"),
        (["--concurrency", "0"], "--concurrency 0: must be at least 1"),
        (["--max-tokens", "0"], "--max-tokens 0: must be at least 1"),
        (["--timeout", "-1"], "--timeout -1: must be more than 0"),
        (["--timeout", "nan"], "--timeout nan: must be more than 0"),
        (["--max-failures", "-1"], "--max-failures -1: must be at least 0"),
        (["--max-cost", "nan"], "--max-cost"),
        (["--seed", "soon"], "--seed"),
        (["--counter", "words"], "--counter words: there are reader, nominal28"),
        (["--prompt", "zzz"], "no prompt is called zzz"),
        (["--limit", ""], "--limit : expected a number"),
        (["--limit", "0"], "--limit 0: expected a number"),
        (["--limit", "5-3"], "--limit 5-3: expected"),
        (["--limit", "9000-9001"], "nothing to ask"),
        (["--ids", "/nowhere/ids"], "--ids /nowhere/ids: No such file"),
        (["--ids", "/"], "--ids /: Is a directory"),
        (["--config", "/nowhere/c.yaml"], "--config /nowhere/c.yaml: No such file"),
        (["--config", "/"], "--config /: Is a directory"),
        (["--readouts", "/"], "/: not a run folder"),
        (["--data", "/nowhere/data"], "--data /nowhere/data: no such file or folder"),
    ],
)
def test_a_wrong_value_is_named(cli: Cli, tmp_path: Path, words: list[str], message: str) -> None:
    refused(cli(*REAL, *words), message)
    assert not list(tmp_path.glob("results/runs/*/records/*"))


def test_data_that_may_not_be_read(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()

    def refuse(self: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)  # root may read everything
    refused(cli(*REAL, "--data", folder), f"--data {folder}: cannot be read (Permission denied); make it readable")


@pytest.mark.parametrize("words", [["score"], ["verify"], ["show"], ["leaderboard"], ["work"]])
@pytest.mark.parametrize("what", ["nothing", "file", "empty"])
def test_what_is_no_run_is_said_to_be_none(cli: Cli, tmp_path: Path, words: list[str], what: str) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("not a folder")
    elif what == "empty":
        path.mkdir()
    refused(cli(*words, path), str(path))


@pytest.mark.parametrize("out", ["file", "file/below", "/dev/null", "/proc/nowhere"])
def test_an_out_that_cannot_be_written(cli: Cli, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("in the way")
    refused(cli(*run_words(), "--out", out), out, "run the same command again")


def test_a_csv_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    summary(cli(*run_words()))
    refused(cli("leaderboard", "results/runs", "--csv", ""), "is a folder; name a file")
    refused(cli("leaderboard", "results/runs", "--csv", tmp_path), "is a folder; name a file")
    refused(cli("leaderboard", "results/runs", "--csv", "/dev/null/board.csv", "--json"), "/dev/null/board.csv")


@pytest.mark.parametrize("broken", ["a file stands there", "not a database"])
def test_a_home_that_cannot_be_used(cli: Cli, home: Path, broken: str) -> None:
    if broken == "not a database":
        home.mkdir()
        (home / "files.sqlite").write_text("junk" * 1000)
    else:
        home.write_text("in the way")
    refused(cli(*REAL), "files.sqlite", "set MEMHARNESS_HOME")


# ------------------------------------------------------------------------------------------------- plug-ins by class


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (:", "SyntaxError"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("x = 1 / 0", "division by zero (plug.py:1)"),
        ("import sys\nsys.exit(7)", "SystemExit: 7 (plug.py:2)"),
        ("x = 1", "has no Thing"),
        ("class Things: pass", "did you mean Things?"),
        ("class Thing: pass", "is not a Method class"),
        ("Thing = 3", "is not a Method class"),
        ("from memharness.method import Method\nclass Thing(Method):\n    pass", "card"),
        ("x = '\udcff'", "plug.py"),
    ],
)
def test_a_class_file_that_is_wrong(cli: Cli, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plug.py"
    file.write_bytes(text.encode(errors="surrogateescape"))
    refused(cli(*run_words(f"{file}:Thing")), "plug.py", message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (run_words("no.such.module:Class"), "cannot import no.such.module"),
        (run_words("/nowhere/plug.py:Class"), "/nowhere/plug.py: no such file"),
        (run_words(hostile("Odd")), "is not a Method class"),
        (run_words(bench=hostile("Rude")), "is not a Benchmark class"),
        (run_words(reader=hostile("Rude")), "is not a Reader class"),
        ([*run_words(hostile("Embedding")), "--embedder", hostile("Rough")], "is not an Embedder class"),
        ([*run_words(hostile("Rude")), "-M", "how=init"], "no weights in this box (hostile.py:"),
        ([*run_words(hostile("Rude")), "-M", "how=start"], "cannot load weights (hostile.py:"),
        ([*run_words(reader=hostile("Rough")), "-R", "how=init"], "no such graphics card (hostile.py:"),
        ([*run_words(reader=hostile("Rough")), "-R", "how=start"], "No space left on device"),
    ],
)
def test_a_plugin_of_the_wrong_kind_or_that_cannot_begin(cli: Cli, words: list[str], message: str) -> None:
    refused(cli(*words), message)


def test_two_packages_that_bring_one_name(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("first", "second"):
        folder = tmp_path / f"{package}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[memharness.methods]\ntwin = {package}:Class\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entries.cache_clear()
    try:
        refused(cli(*run_words("twin")), "both first (first:Class) and second (second:Class) bring one named twin")
    finally:
        monkeypatch.undo()
        entries.cache_clear()


def test_a_config_file_of_every_wrong_kind(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    for content, message in [
        (b"", "expected flags by name"),
        (b"\xff\xfe", "not YAML"),
        (b"method: [bm25", "not YAML"),
        (b"!!python/object/apply:os.system ['true']", "not YAML"),
        (b"bidget: 3", "did you mean budget?"),
        (b"budget: lots", "--budget"),
        (b"budget: .nan", "--budget"),
        (b"limit: {a: 1}", "limit: expected one value"),
    ]:
        file.write_bytes(content)
        refused(cli(*run_words(), "--config", file), message)


def test_a_metric_that_is_none(cli: Cli) -> None:
    run = summary(cli(*run_words()))["run"]
    for text in ("Recal@5", "Recall@x", "F1(norm", ""):
        refused(cli("score", run, "--metric", text), f"metric {text!r}")
    refused(cli("score", run, "--judge", "extractiv"), "did you mean extractive?")
    refused(cli("score", run, "--judge", hostile("Rude")), "is not a Reader class")


def test_the_smallest_budgets_run_and_say_what_came_of_it(cli: Cli) -> None:
    """One token holds no evidence: methods that fit show nothing, one that cannot is over the budget, none crashes."""
    found = summary(cli(*REAL, "--budget", "1", "--limit", "2"))
    assert found["outcomes"] == {"ok": 2}
    assert found["flags"]["empty_readout"] == 2
    whole = summary(cli(*REAL, "--method", "full-context", "--budget", "1", "--limit", "2"))
    assert whole["outcomes"] == {"over_budget": 2}
    assert json.loads((Path(whole["run"]) / "records.jsonl").read_text().splitlines()[0])["error"]["where"] == "recall"
    greedy = summary(cli(*run_words(), "--items", "1", "-M", "duplicate_k=true"))
    assert greedy["outcomes"] == {"over_budget": 6}
    assert toy("Toy") == greedy["reader"]
