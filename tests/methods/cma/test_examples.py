"""Training rows for CoRE and PAE: rewards, splits, filters, and the command that writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmarks.m2ca.layouts import Session, read_sessions
from memharness.cli import command_line
from memharness.episodic import Card, EpisodicMemory
from memharness.methods.cma.examples import (
    Export,
    card_reward,
    for_rl,
    format_loss,
    jaccard,
    jaccard_reward,
    read_run,
    split_sessions,
)
from memharness.methods.cma.retriever_reader import read_ranks
from memharness.methods.cma.writer_reader import WORDS, read_card

SAMPLE = Path(__file__).parents[3] / "benchmarks" / "m2ca" / "sample"
GOOD = json.dumps({"tags": ["a", "b", "c", "d", "e"], "description": "word " * WORDS})
sets = st.frozensets(st.integers(0, 8))


@pytest.fixture(scope="module")
def sessions() -> list[Session]:
    return list(read_sessions(SAMPLE)[0])


# ------------------------------------------------------------------------------------------------------------- rewards


@given(sets, sets)
def test_jaccard_is_a_similarity(one: frozenset[int], other: frozenset[int]) -> None:
    value = jaccard(one, other)
    assert 0 <= value <= 1
    assert value == jaccard(other, one)
    assert (value == 1) == (one == other)
    assert (value == 0) == (not one & other and bool(one | other))


@given(sets, sets, st.sampled_from(["", "easy", "medium", "hard", "very_hard"]))
def test_the_reward_weighs_hard_turns(predicted: frozenset[int], gold: frozenset[int], difficulty: str) -> None:
    weight = 1.2 if difficulty in ("hard", "very_hard") else 1.0
    assert jaccard_reward(predicted, gold, difficulty) == pytest.approx(weight * jaccard(predicted, gold))


def test_a_right_abstention_is_rewarded_and_an_unreadable_reply_is_not() -> None:
    assert jaccard_reward([], []) == 1.0
    assert jaccard_reward([], [], "very_hard") == 1.2
    assert jaccard_reward([1], []) == 0.0
    assert jaccard_reward(None, []) == 0.0
    assert jaccard_reward([1, 1, 2], [2, 3]) == pytest.approx(1 / 3)


@given(st.text())
def test_the_format_loss_is_a_share_and_none_where_a_card_is_in_form(reply: str) -> None:
    assert 0 <= format_loss(reply) <= 1


@given(st.lists(st.text("abc", min_size=1), max_size=8), st.integers(0, 2 * WORDS))
def test_the_format_loss_is_zero_just_where_the_card_can_be_read(tags: list[str], count: int) -> None:
    reply = json.dumps({"tags": tags, "description": "word " * count})
    loss = format_loss(reply)
    if loss == 0:
        read_card(reply)
    else:
        with pytest.raises(ValueError, match=r"tags|words"):
            read_card(reply)


def test_a_card_earns_what_it_helps_to_find_less_its_form() -> None:
    assert card_reward(GOOD, [1], [1]) == 1.0
    assert card_reward("no card", [1], [1]) == 0.0
    assert card_reward("no card", None, [1]) == -1.0
    assert card_reward("no card", [1], [1], weight=0.5) == 0.5
    half = json.dumps({"tags": ["a", "b", "c", "d", "e"], "description": "word " * (WORDS // 2)})
    assert card_reward(half, [], []) == pytest.approx(0.75)


# ---------------------------------------------------------------------------------------------------------------- rows


@given(st.sets(st.text("abcdef", min_size=1, max_size=6), max_size=40), st.floats(0, 0.9), st.integers(0, 5))
def test_sessions_are_split_whole_whatever_their_order(names: set[str], share: float, seed: int) -> None:
    split = split_sessions(names, share, seed)
    assert split == split_sessions(sorted(names, reverse=True), share, seed)
    held = [name for name, part in split.items() if part == "test"]
    assert len(held) == min(round(share * len(names)), max(len(names) - 1, 0))


def test_the_split_of_300_is_270_and_30() -> None:
    split = split_sessions(f"s{number}" for number in range(300))
    assert list(split.values()).count("test") == 30
    assert split != split_sessions((f"s{number}" for number in range(300)), seed=1)


def export(sessions: list[Session], **more: Any) -> Export:
    return Export(sessions, split_sessions(one.id for one in sessions), **more)


async def test_core_rows_hold_what_a_reader_is_asked_and_its_right_reply(sessions: list[Session]) -> None:
    rows = {row["id"]: row for row in await export(sessions).core()}
    assert len(rows) == sum(len(one.turns) for one in sessions)
    row = rows["kiosk:6"]
    assert row["target"] == {"images": [1, 4]}
    assert row["gold"] == ["kiosk-01", "kiosk-04"]
    assert read_ranks(row["completion"], len(row["candidates"])) == ("ok", (1, 4), ())
    assert row["candidates"] == [f"kiosk-0{number}" for number in range(5)]
    assert len(row["images"]) == 5
    assert all(Path(image).is_file() for image in row["images"])
    assert row["messages"][0]["role"] == "system"
    text = "".join(part.get("text", "") for part in row["messages"][1]["content"])
    assert "Request: Here is a photo of my stall. Put the red mug on its counter." in text
    assert text.count("photo of my stall") == 1  # the upload's card does not know its turn's words yet
    assert rows["kiosk:1"]["target"] == {"images": []}
    for one in rows.values():
        ranks = {name: place for place, name in enumerate(one["candidates"])}
        assert one["target"]["images"] == sorted(ranks[name] for name in one["gold"])


async def test_captions_of_the_data_are_in_no_row(sessions: list[Session]) -> None:
    told = json.dumps([*await export(sessions).core(), *await export(sessions).pae()], ensure_ascii=False)
    said = " ".join(turn.text for one in sessions for turn in one.turns)
    captions = [asset.caption for one in sessions for asset in one.assets.values() if asset.caption not in said]
    assert len(captions) > 20
    assert not [caption for caption in captions if caption in told]


async def test_rows_without_pixels_hold_no_picture(sessions: list[Session]) -> None:
    for row in [*await export(sessions, pixels=False).core(), *await export(sessions, pixels=False).pae()]:
        assert row["images"] == []
        assert all(part["type"] == "text" for message in row["messages"] for part in message["content"])


async def test_pae_rows_take_a_teachers_cards_and_no_others(sessions: list[Session]) -> None:
    teacher = Card(("a", "b", "c", "d", "e"), "word " * WORDS)
    short = Card(("a", "b", "c", "d", "e"), "word")
    rows = {row["id"]: row for row in await export(sessions, cards={"kiosk": {0: teacher, 1: short}}).pae()}
    assert rows["kiosk-00"]["target"] == {"tags": [*"abcde"], "description": "word " * WORDS}
    assert read_card(rows["kiosk-00"]["completion"])[0] == tuple("abcde")
    assert rows["kiosk-01"]["completion"] is None
    assert rows["kiosk-00"]["needed_by"] == ["kiosk:2", "kiosk:5", "kiosk:11", "kiosk:15"]
    text = "".join(part.get("text", "") for part in rows["lake-00"]["messages"][1]["content"])
    assert "画一只白帆小木船" in text
    core = {row["id"]: row for row in await export(sessions, cards={"kiosk": {0: teacher}}).core()}
    assert "[0] tags: a, b, c, d, e | description: word" in json.dumps(core["kiosk:2"]["messages"])


async def test_what_reinforcement_learning_takes(sessions: list[Session]) -> None:
    turns = {turn.number: turn for turn in sessions[0].turns} if sessions[0].id == "kiosk" else {}
    kiosk = turns or {turn.number: turn for one in sessions if one.id == "kiosk" for turn in one.turns}
    assert for_rl(kiosk[1], [0], [0], asked=True) == []
    assert for_rl(kiosk[1], [1], [0], asked=True) == ["error"]
    assert for_rl(kiosk[1], None, [], asked=True) == ["error"]
    assert for_rl(kiosk[1], None, [], asked=False) == []
    assert for_rl(kiosk[3], [], [], asked=True) == ["negative"]
    assert for_rl(kiosk[14], [], [5, 10], asked=True) == ["error", "hard"]
    rows = await export(sessions, keep="rl", predicted={"kiosk:2": [3]}).core()
    assert rows
    assert all(row["rl"] for row in rows)
    assert {row["id"]: row["rl"] for row in rows}["kiosk:2"] == ["error"]
    assert all(row["needed_by"] for row in await export(sessions, keep="rl").pae())


# ---------------------------------------------------------------------------------------------------------- the command


def finished(folder: Path, data: Path | None) -> Path:
    """What a run leaves behind, as far as it is read."""
    folder.mkdir()
    spec = {"method": "cma", "bench": "m2ca", "data": str(data) if data else None}
    (folder / "manifest.json").write_text(json.dumps({"spec": spec}))
    gold = [{"question": "q1", "native_id": "kiosk:2"}, {"question": "q2", "native_id": "kiosk:4"}]
    (folder / "gold.jsonl").write_text("".join(json.dumps(one) + "\n" for one in gold))
    trace = {"retrieval": {"outcome": "parse_error"}}
    records = [
        {"question": "q1", "context": "kiosk", "context_index": 0, "outcome": "ok", "evidence": [["image-3"]]},
        {"question": "q2", "context": "kiosk", "context_index": 0, "outcome": "ok", "evidence": [], "trace": trace},
    ]
    (folder / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    with EpisodicMemory.open(folder / "memory" / "000000" / "episodic") as memory:
        memory.add(None, session="kiosk", id="image-0")
        memory.write_card("image-0", "reader", Card(("a", "b", "c", "d", "e"), "word " * WORDS))
    return folder


def test_a_run_gives_cards_and_errors(tmp_path: Path) -> None:
    ran = read_run(finished(tmp_path / "run", SAMPLE), "reader")
    assert ran.predicted == {"kiosk:2": [3], "kiosk:4": None}
    assert ran.cards["kiosk"][0].tags == tuple("abcde")
    assert ran.data == SAMPLE


def test_the_command_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tmp_path / "run", SAMPLE)
    assert command_line(["cma-export", "--run", str(run), "--out", str(tmp_path / "rows"), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["core"]["completions"] == 28
    assert counts["pae"]["completions"] == 1
    rows = [json.loads(line) for line in (tmp_path / "rows" / "core.jsonl").read_text("utf-8").splitlines()]
    assert {row["id"]: row["rl"] for row in rows}["kiosk:4"] == ["error"]
    assert command_line(["cma-export", "--data", str(SAMPLE), "--out", str(tmp_path / "more"), "--keep", "rl"]) == 0
    assert "core.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nowhere"], "--data nowhere: no such file or folder"),
        ([], "name them with --data PATH"),
        (["--run", "nowhere"], "no run of cma on m2ca"),
    ],
)
def test_what_is_missing_is_said(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(["cma-export", "--out", str(tmp_path), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_run_on_bundled_data_must_be_told_where_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tmp_path / "run", None)
    assert command_line(["cma-export", "--run", str(run), "--out", str(tmp_path)]) == 2
    assert "ran on bundled data" in capsys.readouterr().err


def test_an_unfinished_run_and_a_missing_picture_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tmp_path / "run", SAMPLE)
    (run / "gold.jsonl").unlink()
    assert command_line(["cma-export", "--run", str(run), "--out", str(tmp_path)]) == 2
    assert "no gold.jsonl; name the folder of a finished run" in capsys.readouterr().err
    data = tmp_path / "data"
    (data / "sessions").mkdir(parents=True)
    (data / "sessions" / "lake.json").write_text((SAMPLE / "sessions" / "lake.json").read_text("utf-8"), "utf-8")
    assert command_line(["cma-export", "--data", str(data), "--out", str(tmp_path)]) == 2
    assert "no such file, though the session names it" in capsys.readouterr().err
