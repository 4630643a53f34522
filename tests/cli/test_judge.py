"""`memharness judge` and `calibrate`, and how `score`, `run`, `show` and `verify` go with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RUN, TOYS, Said
from tests.judging.test_asking import kind, spec

Cli = Callable[..., Said]
LOCOMO = ["run", "--method", "recency", "--bench", "locomo", "--reader", "extractive", "--json"]


@pytest.fixture
def run(cli: Cli) -> Path:
    """A finished run on the toys: right answers all."""
    return Path(json.loads(cli(*RUN, "--json").out)["run"])


def found(said: Said) -> dict[str, Any]:
    """What a command printed as JSON."""
    assert said.code == 0, said.err
    value: dict[str, Any] = json.loads(said.out)
    return value


def refused(said: Said, *words: str) -> None:
    """A user's mistake, in one line that says these words."""
    assert said.code == 2
    assert said.err.strip().splitlines()[-1].startswith("error: ")
    for word in words:
        assert word in said.err


def rows(run: Path, name: str = "scores.jsonl") -> list[dict[str, Any]]:
    """Lines of a file of a run."""
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def files(run: Path) -> dict[str, bytes]:
    """Every file of a run but what judging may change."""
    kept = (path for path in run.rglob("*") if path.is_file() and "judgements" not in path.parts)
    return {str(path.relative_to(run)): path.read_bytes() for path in kept if path.name != "summary.json"}


# ---------------------------------------------------------------------------------------------------------- a judgement


def test_a_judge_s_verdicts_stand_beside_the_run_and_change_nothing_of_it(cli: Cli, run: Path) -> None:
    before, summary = files(run), json.loads((run / "summary.json").read_text())
    said = found(cli("judge", run, "--judge", spec("Perfect"), "--rubric", "binary.v1", "--json"))
    (one,) = said["judgements"]
    assert (one["judge"], one["rubric"]["rubric"], one["asked"]) == (spec("Perfect"), "binary.v1", "words")
    assert one["scores"]["judge"]["value"] == 1
    assert (one["calls"], one["new"], one["price"]) == (6, 6, 0)
    assert {name: one["official"][name] for name in ("judge", "judge.even", "judge.odd")} == {
        "judge": 1, "judge.even": 1, "judge.odd": 1,
    }  # fmt: skip
    assert said["agreement"] == []
    assert files(run) == before
    after = json.loads((run / "summary.json").read_text())
    assert {name: after[name] for name in summary if name not in ("judgements", "agreement")} == {
        name: value for name, value in summary.items() if name not in ("judgements", "agreement")
    }
    head, *lines = rows(run, one["file"])
    assert head["key"] == one["key"]
    assert [line["unit"] for line in lines] == [line["question"] for line in rows(run, "records.jsonl")]
    assert cli("verify", run).code == 0
    assert found(cli("score", run, "--json"))["judgements"] == said["judgements"]
    shown = cli("show", run).out
    assert "Perfect" in shown
    assert "binary.v1: Right or wrong against the reference" in shown


def test_judging_again_asks_nothing(cli: Cli, run: Path) -> None:
    words = ("judge", run, "--judge", spec("Perfect"), "--rubric", "binary.v1", "--json")
    (first,) = found(cli(*words))["judgements"]
    before = kind("Perfect").calls
    (again,) = found(cli(*words))["judgements"]
    assert kind("Perfect").calls == before
    assert again == first | {"new": 0}


def test_two_judges_give_their_agreement(cli: Cli, run: Path) -> None:
    cli(*RUN, "-R", "reply=c0-1")
    other = next(path for path in run.parent.iterdir() if path != run)
    words = ("judge", other, "--judge", spec("Perfect"), "--judge", spec("Yes"), "--rubric", "binary.v1")
    said = found(cli(*words, "--json"))
    (agreement,) = said["agreement"]
    assert agreement["judges"] == [spec("Perfect"), spec("Yes")]
    assert (agreement["n"], agreement["unparsed"], agreement["level"]) == (6, [0, 0], "nominal")
    assert agreement["equal"] == pytest.approx(1 / 6)
    assert agreement["alpha"] < 0
    assert {name: one["n"] for name, one in agreement["categories"].items()} == {"even": 4, "odd": 2}
    shown = cli(*words).out
    assert "Krippendorff's alpha" in shown
    assert "Perfect and Yes" in shown
    assert "binary.v1 is nominal" in shown
    third = found(cli("judge", other, "--judge", spec("Garbage"), "--rubric", "binary.v1", "--json"))
    assert len(third["judgements"]) == 3
    assert [one["judges"] for one in third["agreement"]][-1] == [spec("Garbage"), spec("Perfect"), spec("Yes")]
    assert third["agreement"][0]["unparsed"] == [6, 0]
    assert third["agreement"][0]["note"] == "no question has verdicts of two judges"
    assert cli("verify", other).code == 0


def test_graded_verdicts_agree_on_an_interval_scale(cli: Cli, run: Path) -> None:
    words = ("--judge", spec("Perfect"), "--judge", spec("No"), "--rubric", "memeye.v1", "--json")
    (agreement,) = found(cli("judge", run, *words))["agreement"]
    assert agreement["level"] == "interval"


def test_a_batch_rubric_asks_once_a_group_and_scores_each_question(cli: Cli, run: Path) -> None:
    (one,) = found(cli("judge", run, "--judge", spec("Schema"), "--rubric", "h2hmem.v1", "--json"))["judgements"]
    assert (one["calls"], one["scores"]["judge_h2hmem"]["n"]) == (4, 6)
    assert one["scores"]["judge_h2hmem"]["value"] == 1
    assert cli("verify", run).code == 0


def test_the_official_reading_is_another_score(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_TEST_SCRIPT", '{"score": 0.75}')
    words = ("judge", run, "--judge", spec("Scripted"), "--rubric", "mem-gallery.v1", "--json")
    cli(*words)
    said = found(cli(*words, "--official"))["judgements"]
    values = {name: score["value"] for one in said for name, score in one["scores"].items()}
    assert values == {"judge_mem_gallery": 0.75, "judge_mem_gallery_official": 1}
    assert cli("verify", run).code == 0


def test_a_killed_judging_goes_on_where_it_was(cli: Cli, run: Path) -> None:
    words = ["judge", str(run), "--judge", spec("Mortal"), "--rubric", "binary.v1", "--json"]
    killed = subprocess.run(
        [sys.executable, "-m", "memharness", *words], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(TOYS.parents[2])},
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    assert not list((run / "judgements").glob("*.jsonl"))
    os.environ["MEMHARNESS_TEST_IMMORTAL"] = "1"
    try:
        (one,) = found(cli(*words))["judgements"]
    finally:
        del os.environ["MEMHARNESS_TEST_IMMORTAL"]
    assert one["calls"] == 6
    assert one["new"] == 2
    ledger = [line for file in (run / "judgements/ledger").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert sum(not json.loads(line)["hit"] for line in ledger) == 6, "what was bought before the kill is in the ledger"
    assert cli("verify", run).code == 0


def test_a_failure_is_asked_again_and_a_reply_that_says_nothing_is_not(
    cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case c26 for judges: a reply is final; only what never came is asked for again."""
    words = ("judge", run, "--judge", spec("Moody"), "--rubric", "binary.v1", "--json")
    monkeypatch.setenv("MEMHARNESS_TEST_DOWN", "1")
    (down,) = found(cli(*words))["judgements"]
    assert down["scores"]["judge"]["judge_error"] == 6
    monkeypatch.delenv("MEMHARNESS_TEST_DOWN")
    (up,) = found(cli(*words))["judgements"]
    assert (up["new"], up["scores"]["judge"]["judge_error"], up["scores"]["judge"]["value_valid"]) == (6, 3, 1)
    kind("Moody").calls = 1000
    (again,) = found(cli(*words))["judgements"]
    assert (again["new"], again["scores"]) == (0, up["scores"])


def test_a_failing_reader_s_questions_are_not_the_judge_s_errors(cli: Cli) -> None:
    cli(*RUN, "-R", "fail_on=What is word 1", "--max-failures", "9")
    (run,) = Path("results/runs").iterdir()
    (one,) = found(cli("judge", run, "--judge", spec("Yes"), "--rubric", "binary.v1", "--json"))["judgements"]
    score = one["scores"]["judge"]
    assert (score["n"], score["n_valid"], score["value"], score["value_valid"]) == (6, 4, pytest.approx(4 / 6), 1)
    assert "judge_error" not in score
    assert one["calls"] == 4


@pytest.mark.parametrize("script", ["refuse", "window", "error", "I cannot judge this."])
def test_what_is_no_verdict_is_a_column(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setenv("MEMHARNESS_TEST_SCRIPT", script)
    (one,) = found(cli("judge", run, "--judge", spec("Scripted"), "--rubric", "binary.v1", "--json"))["judgements"]
    assert one["scores"]["judge"] | {"n": 6, "n_valid": 0, "judge_error": 6} == one["scores"]["judge"]
    assert cli("verify", run).code == 0


def test_c01_c02_c17_end_to_end(cli: Cli, run: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = json.loads((shared / "cases/c01_verdict_words.json").read_text())["replies"]
    booleans = json.loads((shared / "cases/c02_json_booleans.json").read_text())["replies"]
    scores = json.loads((shared / "cases/c17_errors_as_answers.json").read_text())["rows"]
    decimal, fraction = (row["judge_reply"] for row in scores if "judge_reply" in row)
    cases = [("binary.v1", text, right) for text, right in words]
    cases += [("binary.v1", json.dumps(value), right) for value, right in booleans]
    cases += [("memeye.v1", decimal, 0.5), ("memeye.v1", fraction, "unparsed")]
    for rubric, text, right in cases:
        monkeypatch.setenv("MEMHARNESS_TEST_SCRIPT", text)
        said = found(cli("judge", run, "--judge", spec("Scripted"), "--rubric", rubric, "--json"))
        one = next(one for one in said["judgements"] if one["rubric"]["rubric"] == rubric)
        (score,) = one["scores"].values()
        assert score.get("judge_error", 0) == (6 if right == "unparsed" else 0), text
        assert score["value_valid"] == {"right": 1, "wrong": 0, "unparsed": None}.get(right, right), text


# --------------------------------------------------------------------------------------------------------------- verify


def test_verify_reads_every_verdict_again(cli: Cli, run: Path) -> None:
    (one,) = found(cli("judge", run, "--judge", spec("Perfect"), "--rubric", "binary.v1", "--json"))["judgements"]
    file = run / one["file"]
    whole = file.read_text()
    head, *lines = rows(run, one["file"])
    lines[0]["scores"]["judge"] = 0.0
    file.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    said = cli("verify", run)
    assert said.code == 1
    assert f"{lines[0]['unit']}: judge: stored 0.0, read again 1.0" in said.out
    assert "summary.json: judgements" in said.out
    file.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines[1:]]))
    assert f"no line for {lines[0]['unit']}" in cli("verify", run).out
    file.write_text(whole.replace(one["rubric"]["sha256"], "0" * 64))
    assert "the rubric is another one than when it was judged" in cli("verify", run).out
    file.write_text(whole.partition("\n")[2])
    refused(cli("verify", run), "line 1: has no judge; judge the run again")
    file.unlink()
    assert "summary.json: judgements" in cli("verify", run).out


def test_verify_reads_the_verdicts_of_a_run_s_own_judge_again(cli: Cli) -> None:
    run = Path(found(cli(*LOCOMO, "--judge", spec("Perfect")))["run"])
    assert cli("verify", run).code == 0
    lines = rows(run)
    changed = next(line for line in lines if line["scores"]["judge_strict"] == 0)
    changed["scores"]["judge_strict"] = 1.0
    (run / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = cli("verify", run)
    assert said.code == 1
    assert f"{changed['unit']}: judge_strict: stored 1.0, recomputed 0.0" in said.out


# ------------------------------------------------------------------------------------------------------- run and score


def test_a_run_s_own_judge_and_rubrics_are_named(cli: Cli) -> None:
    said = found(cli(*LOCOMO, "--judge", spec("Perfect")))
    assert said["judge"] == spec("Perfect")
    assert {key["rubric"] for key in said["rubrics"].values()} == {"locomo-strict.v1", "locomo-generous.v1"}
    assert said["scores"]["judge_strict"]["n"] == said["scores"]["judge_generous"]["n"] == 30
    assert said["calls"]["judge"] == 60
    assert "rubric locomo-strict.v1" in cli("show", said["run"]).out
    plain = found(cli(*LOCOMO[:-1], "--method", "null", "--json"))
    assert (plain["judge"], plain["rubrics"]) == (None, {})


def test_scoring_again_with_a_judge_does_not_double_its_cost(cli: Cli, run: Path) -> None:
    words = ("score", run, "--judge", spec("Perfect"), "--metric", "Judge(rubric=binary.v1)", "--json")
    first = found(cli(*words))
    again = found(cli(*words))
    assert first["scores"]["judge"]["value"] == 1
    assert first["calls"]["judge"] == again["calls"]["judge"]
    assert first["tokens"]["judge"] == again["tokens"]["judge"]
    assert again["spent"]["calls"] == first["spent"]["calls"], "the second time everything was known"
    assert again["rubrics"]["Judge"]["rubric"] == "binary.v1"
    assert cli("verify", run).code == 0


def test_a_judged_metric_without_a_judge_is_refused(cli: Cli, run: Path) -> None:
    refused(cli("score", run, "--metric", "Judge(rubric=memeye.v1)"), "--metric Judge(rubric=memeye.v1)", "--judge")
    refused(cli("score", run, "--judge", spec("Yes"), "--metric", "Judge(rubric=memey.v1)"), "did you mean memeye.v1?")


# ------------------------------------------------------------------------------------------------------------- mistakes


def test_what_judge_refuses(cli: Cli, run: Path, tmp_path: Path) -> None:
    yes = ("--judge", spec("Yes"))
    refused(cli("judge", run, "--rubric", "binary.v1"), "name who judges with --judge R")
    refused(cli("judge", run, *yes), "--rubric: name one; numbers has none of its own: take binary.v1")
    refused(cli("judge", run, *yes, "--rubric", "binry.v1"), "did you mean binary.v1?", "there are: atm.v1")
    refused(cli("judge", run, *yes, "--rubric", "binary.v1", "--official"), "has no official reading")
    refused(cli("judge", tmp_path / "nowhere", *yes, "--rubric", "binary.v1"), "not a run folder")
    refused(cli("judge", run, "--judge", "smolm2", "--rubric", "binary.v1"), "did you mean smollm2?")
    hosted = ("judge", run, "--judge", spec("Hosted"), "--rubric", "binary.v1")
    refused(cli(*hosted), "Hosted: calls cost money; give --max-cost USD")
    refused(cli(*hosted, "--max-cost", "0.0000000001"), "USD are spent; finished work is kept")
    assert not list((run / "judgements").glob("*.jsonl"))
    assert found(cli(*hosted, "--max-cost", "1", "--json"))["judgements"][0]["price"] > 0
    recalled = found(cli(*RUN, "--until", "recall", "--json"))["run"]
    refused(cli("judge", recalled, *yes, "--rubric", "binary.v1"), "stopped at recall; there are no answers to judge")
    locomo = found(cli(*LOCOMO, "--limit", "2"))["run"]
    refused(cli("judge", locomo, *yes), "locomo has several: locomo-strict.v1, locomo-generous.v1")


def test_a_benchmark_s_only_rubric_need_not_be_named(cli: Cli) -> None:
    words = ("--method", "null", "--bench", "mem-gallery", "--reader", "extractive", "--limit", "3", "--json")
    run = found(cli("run", *words))["run"]
    (one,) = found(cli("judge", run, "--judge", spec("No"), "--json"))["judgements"]
    assert one["rubric"]["rubric"] == "mem-gallery.v1"
    official = found(cli("run", *words, "-B", "verdict=official", "--judge", spec("Schema")))
    assert "judge_mem_gallery_official" in official["scores"]
    assert official["rubrics"]["Judge(rubric=mem-gallery.v1,verdict=official)"]["verdict"] == "official"


# ------------------------------------------------------------------------------------------------------------ calibrate


def bank(folder: Path) -> Path:
    """Twelve questions in six conversations, three answers each."""
    path = folder / "bank.jsonl"
    lines = []
    for n in range(12):
        about = {"id": f"q{n}", "question": "When?", "gold": f"{n + 1} May 2023", "category": "ab"[n % 2]}
        about |= {"conversation": f"c{n // 2}"}
        answers = {"wrong-specific": f"{n + 1} June 2023", "wrong-vague": "sometime in spring", "right": about["gold"]}
        lines += [about | {"kind": kind, "answer": answer} for kind, answer in answers.items()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_judge_that_always_says_yes_is_shown_to_be_useless(cli: Cli, tmp_path: Path) -> None:
    words = ("calibrate", "--judge", spec("Yes"), "--bank", bank(tmp_path))
    shown = cli(*words).out
    assert "USELESS: no better than a constant: it accepts every answer, right or wrong (false accept 100 %)" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["false", "accept,", "vague", "100.00", "%", "54.1", "–", "100.0", "%", "12", "0"] in lines
    assert ["all", "wrong", "0.000", "-0.459", "–", "0.459", "0.500"] in lines
    said = found(cli(*words, "--json"))
    assert said["verdict"]["word"] == "useless"
    assert (said["rubric"]["rubric"], said["new"], said["calls"]) == ("binary.v1", 0, 36)
    assert said["banks"][0]["path"].endswith("bank.jsonl")
    assert Path(said["file"]).is_file()


def test_a_judge_that_knows_the_reference_is_useful_and_one_that_likes_vague_words_is_found_out(
    cli: Cli, tmp_path: Path
) -> None:
    words = ("--bank", bank(tmp_path), "--rubric", "locomo-strict.v1", "--json")
    assert found(cli("calibrate", "--judge", spec("Perfect"), *words))["verdict"]["word"] == "useful"
    vague = found(cli("calibrate", "--judge", spec("ByVague"), *words))
    assert vague["verdict"]["word"] == "partly useful"
    assert vague["kinds"]["wrong-vague"]["value"] == 1
    assert "does not tell wrong-vague answers" in vague["verdict"]["text"]


def test_garbage_is_no_verdict(cli: Cli, tmp_path: Path) -> None:
    shown = cli("calibrate", "--judge", spec("Garbage"), "--bank", bank(tmp_path)).out
    assert "USELESS: no verdict could be read on 100 % of the answers" in shown
    assert "judge errors: 36 of 36 answers (100.00 %)" in shown


def test_both_audits_at_once_with_the_recorded_judge_beside(cli: Cli, shared: Path) -> None:
    banks = [word for n in (1, 2) for word in ("--bank", shared / f"data/locomo/locomo_audit_ap_v{n}.json")]
    words = ("calibrate", "--judge", spec("ByLength"), *banks, "--rubric", "locomo-generous.v1", "--limit", "40")
    shown = cli(*words).out
    assert "120 answers to 40 questions" in shown
    assert "recorded in the bank, by gpt-4o-mini: false accept, specific" in shown
    assert "cluster-t, 10 clusters" in shown
    said = found(cli(*words, "--json"))
    assert set(said["recorded"]) == {"wrong-specific", "wrong-vague"}
    assert set(said["categories"]) <= {"1", "2", "3", "4"}


def test_what_calibrate_refuses(cli: Cli, tmp_path: Path) -> None:
    path = bank(tmp_path)
    refused(cli("calibrate", "--bank", path), "name the judge with --judge R")
    refused(cli("calibrate", "--judge", spec("Yes")), "name a bank with --bank FILE")
    refused(cli("calibrate", "--judge", spec("Yes"), "--bank", tmp_path / "no.jsonl"), "no.jsonl: no such file")
    refused(cli("calibrate", "--judge", spec("Yes"), "--bank", path, "--limit", "0"), "--limit 0: must be at least 1")
    refused(cli("calibrate", "--judge", spec("Yes"), "--bank", path, "--rubric", "x"), "no rubric is called 'x'")
    refused(cli("calibrate", "--judge", spec("Hosted"), "--bank", path), "give --max-cost USD")
    refused(cli("calibrate", "--judge", "nobody", "--bank", path), "no reader is called 'nobody'")


@pytest.mark.model
def test_a_real_small_model_is_measured(cli: Cli, tmp_path: Path) -> None:
    said = found(cli("calibrate", "--judge", "smollm2", "--bank", bank(tmp_path), "--limit", "1", "--json"))
    assert said["answers"] == said["calls"] == 3
    assert said["asked"] == "words"
    assert sum(one["n"] + one["judge_error"] for one in said["kinds"].values()) == 3
    assert said["tokens"]["text"] > 300
