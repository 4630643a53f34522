"""What `memharness view` writes and refuses, without a browser."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.cli import command_line
from memharness.report import viewer
from memharness.report.viewer import shards
from memharness.run.folder import RunFolder
from memharness.types import UserError
from tests.cli.conftest import Said
from tests.report.viewer.conftest import written
from tests.report.viewer.test_shards import held
from tests.run.harness import run as ran


def shard(folder: Path, name: str) -> Any:
    """What a shard holds."""
    return held((folder / "data" / f"{name}.js").read_text("utf-8"))[1]


def questions(folder: Path, run: int = 0) -> list[dict[str, Any]]:
    """Every question of a run."""
    starts = shard(folder, f"r{run}-index")["starts"]["q"]
    return [one for at in range(len(starts)) for one in shard(folder, f"r{run}-q-{at}")]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A finished run on toys: two contexts, three questions each, all right."""
    return Path(ran(tmp_path / "results")["run"])


# -------------------------------------------------------------------------------------------------------- what is there


def test_every_question_is_there_with_its_story(atm: tuple[Path, Path], pages: Path) -> None:
    records = [json.loads(line) for line in (atm[0] / "records.jsonl").read_text().splitlines()]
    gold = [json.loads(line) for line in (atm[0] / "gold.jsonl").read_text().splitlines()]
    found = questions(pages)
    assert [one["id"] for one in found] == [one["question"] for one in records]
    items = shard(pages, "items-0")
    for one, record, truth in zip(found, records, gold, strict=True):
        assert (one["answer"], one["prompt"], one["spent"]) == (record["answer"], record["prompt"], record["spent"])
        assert one["answers"] == truth["answers"]
        assert [pointer[1] for pointer in one["evidence"]] == [pointer[0] for pointer in record["evidence"]]
        assert all(items[number]["id"] == item for number, item, *_ in (*one["evidence"], *one["gold"]))
    times = [item["time"] for item in items]
    assert times == sorted(times)


def test_runs_on_one_benchmark_share_its_items(pages: Path) -> None:
    contexts = [shard(pages, f"r{run}-contexts") for run in (0, 1)]
    assert contexts[0]["first"] == contexts[1]["first"] == [0]
    assert len(shard(pages, "items-0")) == contexts[0]["count"][0]


def test_uses_count_how_often_items_were_recalled_and_gold(atm: tuple[Path, Path], pages: Path) -> None:
    recalled, gold = shard(pages, "r0-use-0")
    found = questions(pages)
    for number in range(len(recalled)):
        assert recalled[number] == sum(number in {e[0] for e in one["evidence"]} for one in found)
        assert gold[number] == sum(number in {e[0] for e in one["gold"]} for one in found)


def test_pictures_are_copied_by_content_hash(pages: Path) -> None:
    import hashlib

    known = shard(pages, "pictures")
    assert known
    for name, (suffix, width, height) in known.items():
        original = pages / "media" / f"{name}.{suffix}"
        assert hashlib.sha256(original.read_bytes()).hexdigest().startswith(name)
        assert (pages / "media" / f"{name}.thumb.jpg").is_file()
        assert 0 < max(width, height) <= 480


def test_originals_may_be_left_out(atm: tuple[Path, Path], tmp_path: Path) -> None:
    folder = written(atm[:1], tmp_path / "view", originals=False)
    assert all(suffix == "" for suffix, _, _ in shard(folder, "pictures").values())
    assert {path.name.split(".", 1)[1] for path in (folder / "media").iterdir()} == {"thumb.jpg"}


def test_probability_of_a_right_answer_given_gold_shown_is_counted_over_known_questions(pages: Path) -> None:
    head = shard(pages, "r0-summary")
    found = questions(pages)
    shown = [one for one in found if one["gold"] and dict(c[:2] for c in one["chain"])["shown"] == "yes"]
    assert shown
    assert head["given"]["shown"]["n"] == len(shown)
    assert head["given"]["shown"]["value"] == pytest.approx(sum(one["right"] for one in shown) / len(shown))
    misses = [one["broke"] for one in found if one["right"] is False]
    assert sum(n for _, n in head["breaks"]) == len(misses)
    assert all(misses.count(name) == n for name, n in head["breaks"])
    assert {"recalled"} <= set(misses)


def test_another_score_and_threshold_may_decide(atm: tuple[Path, Path], tmp_path: Path) -> None:
    folder = written(atm[:1], tmp_path / "view", score="recall@10", right=1.0)
    for one in questions(folder):
        (value,) = [value for name, value, _, _ in one["scores"] if name == "recall@10"]
        assert one["right"] == (None if value is None else value >= 1.0)


def test_groups_and_thinking_stand_with_their_questions(tmp_path: Path) -> None:
    run = Path(ran(tmp_path / "results", r={"reply": "<think>so</think> c0-0"})["run"])
    first = questions(written([run], tmp_path / "view"))[0]
    assert (first["answer"], first["thinking"], first["group"]) == (" c0-0", "<think>so</think>", "c0/0")
    assert first["groupscores"] == [["all_right", 0.0, "ok", ""]]


def test_judges_verdicts_and_words_are_kept(tmp_path: Path) -> None:
    from tests.run.harness import toy as plugin

    run = Path(ran(tmp_path / "results", judge=plugin("Toy"))["run"])
    first = questions(written([run], tmp_path / "view"))[0]
    assert first["replies"] == [["Verdict", "yes", "stop"]]
    assert ["verdict", 1.0, "ok", ""] in first["scores"]


def test_the_folder_names_no_place_of_this_machine(toy: Path, tmp_path: Path) -> None:
    folder = written([toy], tmp_path / "view")
    head = shard(folder, "r0-summary")
    assert head["folder"] == toy.name
    for name in ("runs", "r0-summary"):
        assert str(tmp_path) not in json.dumps(shard(folder, name))
        assert "toys.py" not in json.dumps(shard(folder, name))


# ------------------------------------------------------------------------------------------------------ what is missing


def test_a_run_under_way_shows_what_was_answered_and_is_left_alone(toy: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    shutil.copytree(toy, begun)
    for name in ("DONE", "summary.json", "scores.jsonl", "records.jsonl"):
        (begun / name).unlink()
    lines = [json.loads(line) for line in (begun / "gold.jsonl").read_text().splitlines()]
    (begun / "gold.jsonl").unlink()
    cases = [line for line in lines if line["context_index"] == 0]
    unit = {"context": 0, "unit": 0, "name": "c0", "at": 1.0, "cases": cases}
    (begun / "gold").mkdir()
    (begun / "gold" / "w1.jsonl").write_text(json.dumps(unit) + "\n")  # the second context's is not written yet
    before = {path: path.read_bytes() for path in begun.rglob("*") if path.is_file()}
    folder = written([begun], tmp_path / "view")
    assert len(questions(folder)) == len(cases) == 3
    head = shard(folder, "r0-summary")
    assert head["unfinished"] and "not finished" in head["notes"][0]
    assert head["summary"]["scores"]["right"]["value"] == 1.0
    assert {path: path.read_bytes() for path in begun.rglob("*") if path.is_file()} == before


def test_failed_questions_are_shown_with_their_error(tmp_path: Path) -> None:
    run = Path(ran(tmp_path / "results", r={"fail_on": "What is word 1?"})["run"])
    folder = written([run], tmp_path / "view")
    failed = [one for one in questions(folder) if one["outcome"] == "reader_error"]
    assert [one["broke"] for one in failed] == ["read", "read"]
    assert all(one["error"]["message"] and one["right"] is False for one in failed)
    assert "same command asks those again" in shard(folder, "r0-summary")["notes"][0]


def test_data_that_were_moved_leave_ids_alone_and_say_so(shared: Path, tmp_path: Path) -> None:
    data = tmp_path / "locomo.json"
    shutil.copyfile(Path(__file__).parents[3] / "benchmarks/locomo/sample/locomo_sample.json", data)
    from tests.report.viewer.conftest import ran as run_of

    run = run_of(tmp_path / "results", bench="locomo", method="recency", reader="extractive", data=str(data))
    whole = written([run], tmp_path / "whole")
    data.write_text(data.read_text().replace("canoe", "kayak"))
    changed = written([run], tmp_path / "changed")
    data.unlink()
    gone = written([run], tmp_path / "gone")
    assert "parts" in shard(whole, "items-0")[0]
    for folder, why in ((changed, "not those that the run read"), (gone, "not at hand")):
        assert all(set(item) == {"id"} for item in shard(folder, "items-0"))
        assert why in shard(folder, "r0-summary")["notes"][-1]
        first = questions(folder)[0]
        assert first["memory"][3] is False
        assert all(pointer[0] is not None for pointer in first["evidence"])
        assert dict(c[:2] for c in first["chain"])["shown"] in ("unknown", "no")


def test_a_live_episode_s_items_are_not_made_again(tmp_path: Path) -> None:
    folder = written([Path(ran(tmp_path / "results", bench="Corridor")["run"])], tmp_path / "view")
    assert questions(folder)[0]["groupscores"][0][:2] == ["won", 1.0]
    assert "live episode" in shard(folder, "r0-summary")["notes"][-1]


# ---------------------------------------------------------------------------------------------------- what is refused


Cli = Callable[..., Said]


@pytest.fixture
def cli(place: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line."""

    def run(*words: str | Path) -> Said:
        capfd.readouterr()
        code = command_line([str(word) for word in words])
        return Said(code, *capfd.readouterr())

    return run


def refused(said: Said, *words: str) -> None:
    """A user's mistake, in one line that says these words."""
    assert said.code == 2, said.err
    assert said.err.strip().splitlines()[-1].startswith("error: ")
    for word in words:
        assert word in said.err


def test_the_command_prints_the_page_and_writes_it_anew_only_when_told(cli: Cli, toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "view"
    said = cli("view", toy, "--out", out)
    assert (said.code, said.out.strip()) == (0, str(out / "index.html"))
    assert (out / "index.html").is_file()
    refused(cli("view", toy, "--out", out), "holds a viewer already", "--force")
    stray = out / "data" / "old.js"
    stray.write_text("")
    said = cli("view", toy, "--out", out, "--force", "--json")
    assert json.loads(said.out) == {"page": str(out / "index.html"), "runs": [str(toy)]}
    assert not stray.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".view")] == []


def test_what_is_no_viewer_s_folder_is_never_replaced(cli: Cli, toy: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.tex").write_text("years of work")
    for words in ((), ("--force",)):
        refused(cli("view", toy, "--out", taken, *words), "something else than a viewer")
        refused(cli("view", toy, "--out", toy, *words), "something else than a viewer")
        refused(cli("view", toy, "--out", taken / "thesis.tex", *words), "is a file")
    assert (taken / "thesis.tex").read_text() == "years of work"


def test_mistakes_are_told(cli: Cli, toy: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "view")
    refused(cli("view", *out), "name a run's folder")
    refused(cli("view", toy, toy, *out), "named twice")
    refused(cli("view", tmp_path / "none", *out), "not a run folder")
    refused(cli("view", toy, "--score", "beauty", *out), "--score beauty", "right")
    (toy / "records.jsonl").write_text('{"question": 1}\n' + (toy / "records.jsonl").read_text())
    refused(cli("view", toy, *out), "records.jsonl", "do not match")
    assert not (tmp_path / "view").exists()


def test_a_damaged_record_is_named(cli: Cli, toy: Path, tmp_path: Path) -> None:
    lines = (toy / "records.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    del first["outcome"]
    (toy / "records.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    refused(cli("view", toy, "--out", tmp_path / "view"), "records.jsonl", first["question"], "damaged")


def test_a_full_disk_is_told_and_leaves_the_old_folder(
    cli: Cli, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "view"
    assert cli("view", toy, "--out", out).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def full(self: Path, *given: Any, **named: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shards.Path, "write_text", full)
    refused(cli("view", toy, "--out", out, "--force"), "the disk is full")
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".view")] == []


def test_a_run_that_answered_nothing_is_told(toy: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copyfile(toy / "manifest.json", empty / "manifest.json")
    assert RunFolder(empty).manifest()
    with pytest.raises(UserError, match="no question of this run was finished"):
        viewer.write([empty], tmp_path / "view")
