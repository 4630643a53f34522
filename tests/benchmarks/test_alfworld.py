from __future__ import annotations

import asyncio
import io
import json
import lzma
import os
import signal
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmarks.alfworld import ALFWorld, playing, replays, states
from memharness.benchmarks.alfworld.commands import command, f1, nearest, spelled
from memharness.benchmarks.alfworld.playing import Engine, EngineError
from memharness.benchmarks.alfworld.replays import Replay
from memharness.benchmarks.alfworld.scores import ActionScores, GameScores
from memharness.metric import parse_metric
from memharness.run.api import execute
from memharness.run.play import play
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import Answer, DataError, Evidence, Status, UserError

needs_engine = pytest.mark.skipif(bool(playing.missing()), reason=f"no engine: {playing.INSTALL}")
GAME = "game.tw-pddl"
SPOON = "pick_and_place_simple-Spoon-None-Basket-901"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpacked and replayed stays with the test."""
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(sample: Callable[[str], Path]) -> Path:
    return sample("alfworld")


def game_of(folder: Path, name: str = SPOON) -> Path:
    return next(folder.rglob(f"{name}/*/{GAME}"))


def alone(folder: Path, name: str = SPOON) -> Path:
    """A folder with one game of the sample and no replay."""
    source = game_of(folder, name)
    target = folder.parent / "alone" / source.relative_to(folder / "json_2.1.1")
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes())
    return target


def by_gold(bench: ALFWorld) -> Callable[..., Answer]:
    return lambda case, items: bench.gold_answer(case)


def saying(*said: str | None) -> Callable[..., Answer]:
    rest = iter(said)
    return lambda case, items: Answer(next(rest))


# -------------------------------------------------------------------------------------------------------- next commands


def test_each_command_of_an_expert_is_asked_for_before_the_state_it_was_given_in(
    bench: Callable[..., Any], folder: Path
) -> None:
    opened = bench(ALFWorld, folder)
    contexts = opened.contexts()
    assert len(contexts) == len(set(contexts)) == 48
    assert len(opened.contexts("valid_seen")) == 23
    assert len(opened.contexts("valid_unseen")) == 25
    cases = [case for context in opened.contexts() for case in opened.episode(context).cases]
    assert Counter(case.gold.category for case in cases).keys() == {
        "pick_and_place_simple", "look_at_obj_in_light", "pick_clean_then_place_in_recep",
        "pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep", "pick_two_obj_and_place",
    }  # fmt: skip
    assert len({case.gold.cluster for case in cases}) == 8
    assert all(command(case.gold.answers[0]) in case.gold.extra["admissible"] for case in cases)
    assert {case.question.form for case in cases} == {"action"}


def test_records_tell_the_state_before_and_evidence_is_what_changes(bench: Callable[..., Any], folder: Path) -> None:
    opened = bench(ALFWorld, folder)
    context = next(c for c in opened.contexts("valid_seen") if SPOON in case_of(opened, c).gold.native_id)
    steps = [
        opened.episode(c) for c in opened.contexts() if case_of(opened, c).gold.cluster == cluster(opened, context)
    ]
    told = [{item.label: item.text() for item in step.items} for step in steps]
    assert [case.gold.answers[0] for step in steps for case in step.cases] == [
        "go to ledge 2", "take spoon 1 from ledge 2", "go to basket 1", "move spoon 1 to basket 1",
    ]  # fmt: skip
    assert told[0]["you"] == "You are at place 6. You hold nothing."
    assert told[1]["you"] == "You are at place 4, by ledge 2. You hold nothing."
    assert told[1]["ledge 2"] == "ledge 2 is at place 4. You are there. In or on it: spoon 1."
    assert told[0]["chest 1"] == "chest 1 is at place 2. It is closed. In or on it: coin 1."
    assert told[2]["ledge 2"].endswith("In or on it: nothing.")
    assert told[2]["spoon 1"] == "You hold spoon 1."
    assert told[0]["lantern 1"] == "lantern 1 is in or on table 1. It is switched off."
    assert changes(steps[0]) == {"you", "ledge 2"}
    assert changes(steps[1]) == {"you", "ledge 2", "spoon 1"}
    assert changes(steps[3]) == {"you", "basket 1", "spoon 1"}
    assert steps[0].items[0].label == "you"
    assert {item.kind for item in steps[0].items} == {"state"}
    assert steps[0].items[1].keys == {"place": "loc 5"}  # basket 1


def case_of(opened: Any, context: str) -> Any:
    return opened.episode(context).cases[0]


def cluster(opened: Any, context: str) -> str:
    return str(case_of(opened, context).gold.cluster)


def changes(step: Any) -> set[str]:
    names = {item.id: item.label for item in step.items}
    return {names[evidence.item] for evidence in step.cases[0].gold.evidence}


def test_history_is_what_was_seen_and_done(bench: Callable[..., Any], folder: Path) -> None:
    opened = bench(ALFWorld, folder, memory="history")
    episodes = [opened.episode(context) for context in opened.contexts("valid_seen")]
    second = next(
        one for one in episodes if one.cases[0].gold.native_id.endswith("901/trial_T20260101_000000_100000/1")
    )
    assert [item.kind for item in second.items] == ["observation"] * 2
    assert second.items[1].text() == "Command 1: go to ledge 2\nYou walk to ledge 2. There you find a spoon 1."
    assert "Your task is to: put a spoon in the basket." in second.items[0].text()
    assert second.cases[0].gold.evidence == ()


def test_the_question_shows_what_is_asked_for(bench: Callable[..., Any], folder: Path) -> None:
    plain = bench(ALFWorld, folder)
    shown = bench(ALFWorld, folder, observation="shown", admissible="shown")
    context = plain.contexts()[1]
    said, more = case_of(plain, context).question, case_of(shown, context).question
    assert said.text() == "Your task in this game: read a map by the lantern.\nWhich command do you give next?"
    assert "What you see now: You walk to chest 1. The chest 1 is shut." in more.text()
    assert "\nopen chest 1\n" in more.text()
    assert said.id == more.id


def test_gold_scores_the_ceiling_and_metrics_print_as_they_are_parsed(
    bench: Callable[..., Any], folder: Path, asked: Any
) -> None:
    for opened in (bench(ALFWorld, folder), bench(ALFWorld, folder, live=True)):
        for metric in opened.metrics():
            assert parse_metric(str(metric), {type(metric).__name__: type(metric)}) == metric
    opened = bench(ALFWorld, folder)
    for context in opened.contexts():
        case = case_of(opened, context)
        answer = opened.gold_answer(case)
        got = {}
        for metric in opened.metrics():
            got |= metric.score([asked(case, answer.text, answer.readout.evidence)], {})
        assert {score.value for score in got.values() if score.status is Status.OK} == {1.0}


def test_floors_read_nothing(bench: Callable[..., Any], folder: Path) -> None:
    opened = bench(ALFWorld, folder)
    floors = {floor.name: floor.answer for floor in opened.floors()}  # before contexts: nothing is known yet
    opened.contexts()
    floors = {floor.name: floor.answer for floor in opened.floors()}
    case = case_of(opened, opened.contexts()[0])
    assert floors["constant look"](case, ()).text == "look"
    assert floors["first admissible"](case, ()).text == case.gold.extra["admissible"][0]
    assert floors["random admissible"](case, ()) == floors["random admissible"](case, ())
    assert floors["most frequent by task"](case, ()).text == "use lantern 1"  # of six commands, each once but this


def test_data_check_counts_and_digest_holds_every_file(bench: Callable[..., Any], folder: Path) -> None:
    opened = bench(ALFWorld, folder)
    said = [finding.message for finding in opened.check()]
    assert "4 games of valid_seen: a part of the 140" in said
    assert "4 stored replays; 0 not won, left out" in said
    assert len(opened.digest()) == 10
    assert all(len(sha) == 64 for sha in opened.digest().values())


# ------------------------------------------------------------------------------------------------- commands and scores


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("go to desk 1", "go to desk 1"),
        ("  Go to Desk 1.  ", "go to desk 1"),
        ("Action: take mug 1 from desk 1\nbecause it is there", "take mug 1 from desk 1"),
        ("\n\n> open drawer 3", "open drawer 3"),
        ('"use desklamp 1"', "use desklamp 1"),
        ("`command:  heat  egg 1 with microwave 1`", "heat egg 1 with microwave 1"),
        ("put tomato 1 in/on fridge 1", "move tomato 1 to fridge 1"),
        ("put tomato 1 on countertop 1", "move tomato 1 to countertop 1"),
        ("put tomato 1 into fridge 1", "move tomato 1 to fridge 1"),
        ("I would go to desk 1", "i would go to desk 1"),
        ("", ""),
        ("…", "…"),
    ],
)
def test_a_reply_is_read_as_a_command_and_nothing_is_guessed(reply: str, wanted: str) -> None:
    assert command(reply) == wanted


@given(st.text(max_size=80))
def test_reading_a_command_twice_changes_nothing(reply: str) -> None:
    once = command(reply)
    assert command(once) == once
    assert "\n" not in once


WORD = st.sampled_from(["go", "to", "desk", "mug", "1", "2", "take", "from"])
WORDS = st.lists(WORD, min_size=1, max_size=5).map(" ".join)


@given(WORDS, st.lists(WORDS, max_size=6))
def test_what_a_reply_is_nearest_to_is_admissible_and_nearer_than_all_others(said: str, admissible: list[str]) -> None:
    found = nearest(said, admissible)
    if said in admissible:
        assert found == said
    others = [f1(said, one) for one in set(admissible) - {found}]
    if found is None:
        best = max(others, default=0)
        assert best == 0 or others.count(best) > 1
    else:
        assert found in admissible
        assert found == said or all(f1(said, found) > other for other in others)
    assert f1(said, said) == 1
    assert all(0 <= f1(said, one) == f1(one, said) <= 1 for one in admissible)


def test_a_game_is_told_a_command_in_its_own_spelling() -> None:
    assert spelled("move egg 1 to fridge 1", ["look", "put egg 1 in/on fridge 1"]) == "put egg 1 in/on fridge 1"
    assert spelled("move egg 1 to fridge 1", ["look"]) == "move egg 1 to fridge 1"


def test_next_command_scores(bench: Callable[..., Any], folder: Path, asked: Any) -> None:
    opened = bench(ALFWorld, folder)
    case = next(c for c in (case_of(opened, x) for x in opened.contexts()) if c.gold.answers == ("go to ledge 2",))

    def figures(said: str | None) -> dict[str, float | None]:
        scores = ActionScores().score([asked(case, said)], {})
        return {name: score.value for name, score in scores.items()}

    right = {"em": 1.0, "f1": 1.0, "admissible_accuracy": 1.0, "admissible": 1.0}
    assert figures("go to ledge 2") == right
    assert figures("Go to ledge 2.") == right
    assert figures("go to ledge 1") == {"em": 0.0, "f1": 0.75, "admissible_accuracy": 0.0, "admissible": 1.0}
    assert figures("walk to ledge 2") == {"em": 0.0, "f1": 0.75, "admissible_accuracy": 1.0, "admissible": 0.0}
    assert figures("go to ledge") == {"em": 0.0, "f1": 6 / 7, "admissible_accuracy": 0.0, "admissible": 0.0}  # a tie
    assert figures(None) == dict.fromkeys(right, 0.0)
    tie = ActionScores().score([asked(case, "go to ledge")], {})["admissible_accuracy"]
    assert tie.status is Status.UNPARSED
    assert ActionScores().score([asked(case, "?")], {})["admissible_accuracy"].status is Status.UNPARSED


def test_game_scores(bench: Callable[..., Any], folder: Path, asked: Any) -> None:
    unit = [asked(case_of(opened := bench(ALFWorld, folder), opened.contexts()[0]), "look")]
    played = {"won": 1.0, "steps": 4.0, "admissible": 3.0, "crashed": 0.0}
    got = GameScores().score(unit, played)
    assert {name: score.value for name, score in got.items()} == {
        "success": 1.0, "admissible": 0.75, "steps": 4.0, "steps_won": 4.0,
    }  # fmt: skip
    assert GameScores().score(unit, played | {"won": 0.0})["steps_won"].status is Status.NOT_APPLICABLE
    stopped = GameScores().score(unit, played | {"crashed": 1.0, "won": 0.0})
    assert {(score.value, score.status) for score in stopped.values()} == {(None, Status.OK)}
    assert {score.status for score in GameScores().score(unit, {}).values()} == {Status.NOT_APPLICABLE}


# --------------------------------------------------------------------------------------------------------------- states

FACTS = st.frozensets(
    st.tuples(st.sampled_from(["ishot", "opened", "checked"]), st.sampled_from(["mug 1", "desk 2"])), max_size=6
)


@given(FACTS, FACTS)
def test_a_change_and_its_opposite_lead_back(before: frozenset[Any], then: frozenset[Any]) -> None:
    assert states.after(before, then - before, before - then) == then
    assert states.after(then, before - then, then - before) == before


def test_facts_as_printed() -> None:
    assert states.printed("atlocation(agent1 : agent, loc 24: location)") == ("atlocation", "agent1", "loc 24")
    assert states.printed("nothing()") == ("nothing",)
    with pytest.raises(ValueError, match="is no fact"):
        states.printed("atlocation agent1")


def test_names_are_those_of_alfworld_and_distances_are_no_facts() -> None:
    problem = """(define (problem p) (:domain d)
      (:objects Mug_bar_minus_1 Mug_bar_plus_2 - object) ; a note (with brackets
      (:init (= (distance a b) 3) (inReceptacle Mug_bar_plus_2 Sink_bar_1_bar_SinkBasin) (isHot Mug_bar_minus_1)
             (objectType Mug_bar_minus_1 MugType))
      (:goal (isHot Mug_bar_plus_2)))"""
    assert states.initial(problem, "p") == {
        ("inreceptacle", "mug 1", "sinkbasin 1"), ("ishot", "mug 2"), ("objecttype", "mug 2", "mugtype"),
    }  # fmt: skip
    for broken in ("(define (problem p))", "(:init (a b)", "", ")(:init"):
        with pytest.raises(DataError, match=r"p: pddl_problem: has no whole \(:init"):
            states.initial(broken, "p")


def test_drawer_10_stands_behind_drawer_2() -> None:
    facts = [("receptacleatlocation", f"drawer {n}", f"loc {n}") for n in (10, 2, 1)]
    assert list(states.records([*facts, ("openable", "drawer 2")])) == ["you", "drawer 1", "drawer 2", "drawer 10"]
    assert "It is closed" in states.records([*facts, ("openable", "drawer 2")])["drawer 2"].text


# ------------------------------------------------------------------------------------------------------ faulty files


def without(field: str) -> Callable[[dict[str, Any]], None]:
    return lambda value: value.__delitem__(field)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (without("solvable"), r"solvable: is missing, so nobody checked"),
        (lambda value: value.update(solvable=False), r"solvable: is False: the game cannot be won"),
        (lambda value: value.update(solvable="yes"), r"solvable: is 'yes': the game cannot be won"),
        (without("grammar"), r"grammar: is missing"),
        (without("pddl_problem"), r"pddl_problem: is missing"),
        (lambda value: value.update(pddl_domain=3), r"pddl_domain: must be text, not a whole number"),
        (lambda value: value.update(walkthrough="look"), r"walkthrough: must be a list, not text"),
        (lambda value: value.update(walkthrough=["look"]), r"steps: are not the walkthrough in the game file"),
        (lambda value: [value], r"must be a mapping, not a list"),
    ],
)
def test_a_faulty_game_is_named(
    bench: Callable[..., Any], folder: Path, change: Any, fault: Callable[[Any], Any], said: str
) -> None:
    change(game_of(folder), fault)
    opened = bench(ALFWorld, folder)
    with pytest.raises(DataError, match=said):
        opened.contexts()
    (finding,) = bench(ALFWorld, folder).check() if "walkthrough in" not in said else (None,)
    assert finding is None or (finding.level == "error" and GAME in finding.where)


def test_a_game_that_is_not_json_is_named(bench: Callable[..., Any], folder: Path) -> None:
    game_of(folder).write_text("{")
    with pytest.raises(DataError, match=rf"{SPOON}.*line 1 column 2: not JSON"):
        bench(ALFWorld, folder).contexts()
    game_of(folder).write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        bench(ALFWorld, folder).contexts()


def test_many_faulty_games_are_counted(bench: Callable[..., Any], folder: Path) -> None:
    for n in range(12):
        path = folder / f"valid_seen/pick_two_obj_and_place-A-None-B-{n}/trial/{GAME}"
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    found = bench(ALFWorld, folder).check()
    assert len(found) == 11
    assert found[-1].message == "12 of 20 game files are faulty; 10 are named"


def test_a_folder_that_says_no_task_is_named(bench: Callable[..., Any], folder: Path) -> None:
    game_of(folder).parent.parent.rename(folder / "json_2.1.1/valid_seen/my-game")
    with pytest.raises(DataError, match=r"my-game/.*: folder: expected SPLIT/TASK-OBJECT"):
        bench(ALFWorld, folder).contexts()


def test_one_game_twice_and_nothing_at_all(bench: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    target = folder / "copy" / game_of(folder).relative_to(folder)
    target.parent.mkdir(parents=True)
    target.write_bytes(game_of(folder).read_bytes())
    with pytest.raises(DataError, match="is the same game as"):
        bench(ALFWorld, folder).contexts()
    (tmp_path / "empty").mkdir()
    for live in (False, True):
        with pytest.raises((DataError, UserError), match=r"holds no game; name the folder|needs? the TextWorld engine"):
            bench(ALFWorld, tmp_path / "empty", live=live).contexts()
    assert [finding.level for finding in bench(ALFWorld, tmp_path / "empty").check()] == ["error"]
    with pytest.raises(DataError, match="no such file or folder"):
        bench(ALFWorld, tmp_path / "nowhere").contexts()


def test_an_unknown_subset_is_refused(bench: Callable[..., Any], folder: Path) -> None:
    with pytest.raises(UserError, match=r"holds valid_seen, valid_unseen \(did you mean valid_seen\?\)"):
        bench(ALFWorld, folder).contexts("valid_sen")


def test_train_is_asked_about_only_by_name(bench: Callable[..., Any], folder: Path) -> None:
    (folder / "walkthrough_replay_valid_unseen.jsonl").unlink()
    (folder / "json_2.1.1/valid_unseen").rename(folder / "json_2.1.1/train")
    file = folder / "walkthrough_replay_valid_seen.jsonl"
    file.write_text(file.read_text().replace("valid_unseen", "train"))
    assert len(bench(ALFWorld, folder).contexts()) == 23
    assert {one.split for one in bench(ALFWorld, folder).sources.games("train")} == {"train"}


# ------------------------------------------------------------------------------------------------------ stored replays


def rewrite(path: Path, function: Callable[[dict[str, Any]], Any]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    function(rows[0])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (without("gamefile"), "line 1: gamefile: is missing"),
        (lambda row: row.update(gamefile="a/b/game.tw-pddl"), "gamefile: folder: expected SPLIT"),
        (without("won"), "won: must be true or false"),
        (lambda row: row.update(steps=[]), "steps: is empty"),
        (lambda row: row["steps"][1].update(action="fly"), "step 1: action: 'fly' is not among admissible_commands"),
        (lambda row: row["steps"][0].update(facts_added=["?"]), r"facts_added: '\?' is no fact"),
        (lambda row: row["steps"][0].update(facts_removed=["ishot(sun 1: object)"]), "were not true in"),
    ],
)
def test_a_faulty_replay_is_named(
    bench: Callable[..., Any], folder: Path, fault: Callable[[dict[str, Any]], Any], said: str
) -> None:
    rewrite(folder / "walkthrough_replay_valid_seen.jsonl", fault)
    opened = bench(ALFWorld, folder)
    with pytest.raises(DataError, match=said):
        for context in opened.contexts():
            opened.episode(context)


def test_a_damaged_or_repeated_replay_file_is_named(bench: Callable[..., Any], folder: Path) -> None:
    plain = folder / "walkthrough_replay_valid_seen.jsonl"
    packed = folder / "walkthrough_replay_valid_seen.jsonl.xz"
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    with pytest.raises(DataError, match=r"jsonl\.xz: line 1: gamefile: .* is also .*jsonl: line 1"):
        bench(ALFWorld, folder).contexts()
    plain.unlink()
    assert len(bench(ALFWorld, folder).contexts()) == 48
    packed.write_bytes(packed.read_bytes()[:200])
    with pytest.raises(DataError, match=r"jsonl\.xz: cannot be read"):
        bench(ALFWorld, folder).contexts()
    for content, said in ((b"{", "line 1: not JSON"), (b"[]", "line 1: must be a mapping")):
        packed.write_bytes(lzma.compress(content))
        with pytest.raises(DataError, match=said):
            bench(ALFWorld, folder).contexts()


def handcoded(folder: Path) -> Path:
    """Turn the replays of one split into what the hand-coded expert leaves: no plan, no changes, not all won."""
    rows = [json.loads(line) for line in (folder / "walkthrough_replay_valid_seen.jsonl").read_text().splitlines()]
    for row in rows:
        del row["walkthrough"]
        for step in row["steps"]:
            del step["facts_added"], step["facts_removed"]
    rows[3]["won"] = False
    path = folder / "handcoded_expert_valid_seen.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_handcoded_expert_is_asked_about_where_it_won(
    bench: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="no game of the expert handcoded; put its stored replays"):
        bench(ALFWorld, folder, expert="handcoded").contexts()
    path = handcoded(folder)
    opened = bench(ALFWorld, path, expert="handcoded", memory="history")
    assert len({case_of(opened, context).gold.cluster for context in opened.contexts()}) == 3
    said = [finding.message for finding in bench(ALFWorld, folder).check()]
    assert "3 stored replays; 1 not won, left out" in said
    with pytest.raises(DataError, match=r"the game file of .* is not at hand, .*or use -B memory=history"):
        bench(ALFWorld, path, expert="handcoded").contexts()
    monkeypatch.setattr(playing, "missing", lambda: ["textworld"])
    with pytest.raises(
        UserError, match=r"no stored replay says what happens.*pip install \"memharness-bench\[alfworld"
    ):
        bench(ALFWorld, folder, expert="handcoded").contexts()


def test_without_the_engine_stored_replays_do_and_all_else_says_what_to_install(
    bench: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "missing", lambda: ["textworld", "fast_downward"])
    assert len([bench(ALFWorld, folder).episode(c) for c in bench(ALFWorld, folder).contexts()]) == 48
    assert "no engine here" in bench(ALFWorld, folder).check()[-1].message
    said = r"the TextWorld engine, and textworld, fast_downward cannot be found; pip install \"memharness-bench\[alf"
    with pytest.raises(UserError, match=f"live games need {said}"):
        bench(ALFWorld, folder, live=True).contexts()
    (folder / "walkthrough_replay_valid_seen.jsonl").unlink()
    with pytest.raises(UserError, match=f"no stored replay says what happens, and playing it needs {said}"):
        bench(ALFWorld, folder).contexts()


def test_a_walkthrough_that_is_missing_is_named(bench: Callable[..., Any], folder: Path, change: Any) -> None:
    path = alone(folder)
    change(path, without("walkthrough"))
    with pytest.raises(DataError, match="walkthrough: is missing or empty; only live games"):
        bench(ALFWorld, path).contexts()


# ------------------------------------------------------------------------------------------------------------ archives


def packed(folder: Path, name: str, *extra: tuple[str, bytes]) -> Path:
    """The sample's games in an archive, and more."""
    path = folder.parent / name
    members = [(f"./{p.relative_to(folder)}", p.read_bytes()) for p in sorted(folder.rglob(GAME))] + list(extra)
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as zipped:
            for member, content in members:
                zipped.writestr(member, content)
        return path
    with tarfile.open(path, f"w:{name.rpartition('.')[2]}") as tarred:  # type: ignore[call-overload]
        for member, content in members:
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tarred.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo(f"valid_seen/pick_two_obj_and_place-A-None-B-1/trial/{GAME}")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tarred.addfile(link)
    return path


@pytest.mark.parametrize("name", ["games.tar.xz", "games.zip"])
def test_an_archive_is_what_its_games_are(bench: Callable[..., Any], folder: Path, name: str) -> None:
    path = packed(folder, name, ("valid_seen/readme.txt", b"not a game"))
    plain, inside = bench(ALFWorld, folder).sources.games(), bench(ALFWorld, path).sources.games()
    assert [game.name for game in inside] == [game.name for game in plain]
    assert all(game.path.is_file() and not game.path.is_symlink() for game in inside)
    assert list(bench(ALFWorld, path).digest()) == [name]
    for game in folder.rglob(GAME):
        game.unlink()
    path.rename(folder / name)  # beside the replays
    opened = bench(ALFWorld, folder)
    assert len(opened.contexts()) == 48
    assert set(opened.digest()) == {name, *(f"walkthrough_replay_valid_{one}.jsonl" for one in ("seen", "unseen"))}


@pytest.mark.parametrize("name", ["games.tar.xz", "games.zip"])
@pytest.mark.parametrize("place", [f"../../{GAME}", f"/tmp/{GAME}", f"a\\..\\{GAME}/{GAME}"])
def test_an_archive_that_leads_out_of_its_folder_is_refused(
    bench: Callable[..., Any], folder: Path, tmp_path: Path, name: str, place: str
) -> None:
    path = packed(folder, name, (place, b"{}"))
    with pytest.raises(DataError, match="leads out of its folder; fetch it again, or unpack it"):
        bench(ALFWorld, path).contexts()
    assert not [*(tmp_path / "home").rglob(GAME)]
    (finding,) = bench(ALFWorld, path).check()
    assert finding.level == "error"


def test_an_archive_that_is_too_large_damaged_or_empty_is_refused(
    bench: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    bomb = packed(folder, "bomb.tar.xz", (f"a/{GAME}", bytes((8 << 20) + 1)))
    with pytest.raises(DataError, match="is larger than a game can be"):
        bench(ALFWorld, bomb).contexts()
    torn = tmp_path / "torn.tar.xz"
    whole = packed(folder, "games.tar.xz").read_bytes()
    torn.write_bytes(whole[: len(whole) // 2])
    nothing = tmp_path / "nothing.zip"
    with zipfile.ZipFile(nothing, "w") as zipped:
        zipped.writestr("readme.txt", "no game")
    for path, said in ((torn, "it is damaged"), (nothing, "it holds no game.tw-pddl")):
        with pytest.raises(DataError, match=said):
            bench(ALFWorld, path).contexts()
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.suffix != ".sqlite"]


# ----------------------------------------------------------------------------------------------------------- the engine


@pytest.fixture(scope="module")
def engine() -> Engine:
    """One process for all tests: what costs is its imports."""
    return Engine(2)


@pytest.fixture
def played_in(bench: Callable[..., Any], engine: Engine) -> Callable[..., Any]:
    """Opens the benchmark so that it plays in that process."""

    def opened(path: Path, **options: Any) -> Any:
        benchmark = bench(ALFWorld, path, **options)
        benchmark.engine = engine
        return benchmark

    return opened


@needs_engine
async def test_the_engine_says_what_the_samples_replays_say(
    bench: Callable[..., Any], folder: Path, engine: Engine
) -> None:
    async def same(trail: Any) -> None:
        made = await replays.replay(engine, trail.game, "walkthrough", trail.commands)
        assert (made.goal, made.task, made.split) == (trail.stored.goal, trail.stored.task, trail.stored.split)
        same_steps(made, trail.stored)

    await asyncio.gather(*map(same, bench(ALFWorld, folder).sources.trails("walkthrough")))


def same_steps(made: Replay, stored: Replay) -> None:
    for ours, theirs in zip(made.steps, stored.steps, strict=True):
        assert ours.observation == theirs.observation
        assert ours.admissible == theirs.admissible
        assert [*map(set, ours.change or ())] == [*map(set, theirs.change or ())]


@needs_engine
async def test_without_stored_replays_the_walkthrough_is_played_once_and_kept(
    played_in: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = played_in(folder)
    wanted = {case.gold.native_id: case for c in plain.contexts() for case in plain.episode(c).cases}
    opened = played_in(alone(folder))
    contexts = opened.contexts()
    assert len(contexts) == 4
    for context in contexts:
        played = await play(opened.episode(context), by_gold(opened))
        ((case, _),) = played.cases
        assert case == wanted[case.gold.native_id]
    assert len([*(tmp_path / "home/alfworld/replays").iterdir()]) == 1
    again = played_in(folder.parent / "alone")
    monkeypatch.setattr(Engine, "play", None)
    assert (await play(again.episode(again.contexts()[3]), by_gold(again))).items


@needs_engine
async def test_the_handcoded_experts_states_come_from_playing_its_commands(
    played_in: Callable[..., Any], folder: Path
) -> None:
    handcoded(folder)
    plain, opened = played_in(folder), played_in(folder, expert="handcoded")
    context = opened.contexts()[6]
    played = await play(opened.episode(context), by_gold(opened))
    ((case, _),) = played.cases
    plain.contexts()
    assert plain.episode(context).items == played.items
    assert plain.episode(context).cases[0].gold == case.gold


@needs_engine
async def test_a_walkthrough_that_the_engine_does_not_take_or_that_does_not_win(
    played_in: Callable[..., Any], folder: Path, change: Any
) -> None:
    path = alone(folder)
    for commands, said in (
        (["go to ledge 2", "take sun 1 from ledge 2"], r"walkthrough\[1\]: the engine does not take 'take sun 1"),
        (["look"], "walkthrough: does not win the game; data and engine do not fit"),
    ):
        change(path, lambda value, commands=commands: value.update(walkthrough=commands))
        opened = played_in(path)
        with pytest.raises(DataError, match=said):
            await play(opened.episode(opened.contexts()[0]), by_gold(opened))
    change(path, lambda value: value.update(pddl_problem="(define"))
    opened = played_in(path)
    with pytest.raises(DataError, match="cannot be played: the engine cannot go on"):
        await play(opened.episode(opened.contexts()[0]), by_gold(opened))


@needs_engine
async def test_a_walkthrough_wins_its_live_game(played_in: Callable[..., Any], folder: Path) -> None:
    opened = played_in(folder, live=True)
    contexts = opened.contexts("valid_seen")
    assert len(contexts) == 4
    episode = opened.episode(contexts[-1])
    assert (episode.live, episode.planned) == (True, 50)
    played = await play(episode, by_gold(opened))
    assert played.facts == {"won": 1.0, "steps": 7.0, "admissible": 7.0, "crashed": 0.0}
    assert [item.order for item in played.items] == list(range(8))
    assert [case.gold.extra["items"] for case, _ in played.cases] == list(range(1, 8))
    assert len({case.question.id for case, _ in played.cases}) == 7
    assert played.items[1].text().startswith("Command 1: go to cupboard 1\nYou walk to cupboard 1.")


@needs_engine
async def test_a_live_game_hears_every_answer_and_counts_it(played_in: Callable[..., Any], folder: Path) -> None:
    opened = played_in(alone(folder), live=True, steps=5, admissible="shown", observation="shown")
    (context,) = opened.contexts()
    said = ("Action: go to LEDGE 2.", "fly away", "", "put spoon 1 in/on ledge 1", "look")
    played = await play(opened.episode(context), saying(*said))
    assert played.facts == {"won": 0.0, "steps": 5.0, "admissible": 2.0, "crashed": 0.0}
    seen = [item.text().splitlines() for item in played.items]
    assert seen[1] == ["Command 1: go to ledge 2", "You walk to ledge 2. There you find a spoon 1."]
    assert [lines[-1] for lines in seen[2:5]] == ["Nothing happens."] * 3
    assert seen[4][0] == "Command 4: move spoon 1 to ledge 1"
    cases = [case for case, _ in played.cases]
    assert "take spoon 1 from ledge 2" in cases[1].question.text()
    assert "There you find a spoon 1." in cases[1].question.text()
    assert [case.gold.answers for case in cases] == [("go to ledge 2",), ("take spoon 1 from ledge 2",), (), (), ()]


@needs_engine
async def test_a_question_without_an_answer_ends_the_game(played_in: Callable[..., Any], folder: Path) -> None:
    opened = played_in(alone(folder), live=True)
    played = await play(opened.episode(opened.contexts()[0]), saying("look", None))
    assert played.facts == {"won": 0.0, "steps": 1.0, "admissible": 1.0, "crashed": 0.0}


@needs_engine
async def test_a_game_of_the_older_grammar_is_told_to_put(
    played_in: Callable[..., Any], folder: Path, change: Any
) -> None:
    path = alone(folder)
    change(path, lambda value: value.update(grammar=value["grammar"].replace("move {o} to {r}", "put {o} in/on {r}")))
    opened = played_in(path, live=True)
    assert "1 games of the older grammar" in opened.check()[-1].message
    played = await play(opened.episode(opened.contexts()[0]), by_gold(opened))
    assert played.facts["won"] == 1.0
    assert played.items[-1].text().startswith("Command 4: put spoon 1 in/on basket 1")


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@needs_engine
async def test_an_engine_that_stops_ends_its_game_and_no_other(bench: Callable[..., Any], folder: Path) -> None:
    opened = bench(ALFWorld, folder, live=True, games=2)
    first, second, *_ = opened.contexts("valid_unseen")
    games = [opened.episode(first), opened.episode(second)]
    events = [game.play() for game in games]
    for one in events:
        await anext(one)  # the first observation
    await anext(events[0])
    process = opened.engine._process
    assert process is not None
    victim = children(process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    stopped = await events[0].asend([Answer("look")])
    assert stopped.facts == {"won": 0.0, "steps": 1.0, "admissible": 1.0, "crashed": 1.0}
    await events[0].aclose()
    await events[1].aclose()
    assert (await play(opened.episode(second), by_gold(opened))).facts["won"] == 1.0
    process.kill()  # the whole process: the next game starts another
    process.wait()
    assert (await play(opened.episode(second), by_gold(opened))).facts["won"] == 1.0


@needs_engine
def test_a_game_that_cannot_be_played_fails_alone_in_a_run(folder: Path, change: Any, tmp_path: Path) -> None:
    change(game_of(folder), lambda value: value.update(pddl_problem="(define"))
    spec = RunSpec(
        method="full-context", bench="alfworld", reader="extractive", data=str(folder), subset="valid_seen",
        bench_options={"live": "true", "steps": "2"}, out=str(tmp_path / "out"),
    )  # fmt: skip
    summary = execute(spec, Quiet())
    assert summary["outcomes"] == {"ok": 7}
    success = summary["scores"]["success"]
    assert (success["value"], success["n"], success["n_valid"]) == (0.0, 4, 3)
    assert summary["primary"] == "success"


@needs_engine
async def test_a_grammar_that_would_run_code_is_not_played(
    folder: Path, change: Any, tmp_path: Path, engine: Engine
) -> None:
    path, trace = alone(folder), tmp_path / "trace"
    code = f"open('{trace}', 'w')"
    for expression in (code, "o.name.__class__", "o.__class__", "o.name * 9"):
        content = json.loads(path.read_text())
        content["grammar"] = content["grammar"].replace("You stand in", f"{{{expression}}} You stand in")
        with pytest.raises(EngineError, match=r"more than names and texts"):
            async with engine.play(content):
                pass
    assert not trace.exists()


@needs_engine
async def test_many_games_that_start_at_once_all_reach_the_engine() -> None:
    """More than a socket keeps waiting; the games are broken, so that each costs nothing."""
    engine = Engine(40)

    async def reached() -> bool:
        with pytest.raises(EngineError, match=r"the engine cannot go on \(KeyError: 'grammar'\)"):
            async with engine.play({"pddl_domain": ""}):
                pass
        return True

    assert sum(await asyncio.gather(*(reached() for _ in range(40)))) == 40


@needs_engine
async def test_an_engine_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(UserError, match="the TextWorld engine does not start: it says nothing"):
        async with Engine(1).play(json.loads(game_of(folder).read_text())):
            pass


@needs_engine
def test_the_engines_process_ends_with_its_object() -> None:
    engine = Engine(1)
    engine._table().close()
    process, folder = engine._process, engine._folder
    assert process is not None and process.poll() is None and folder.is_dir()
    del engine
    assert process.poll() is not None
    assert not folder.exists()


# ------------------------------------------------------------------------------------------------------------ real data


@pytest.fixture
def real(shared: Path, bench: Callable[..., Any]) -> Callable[..., Any]:
    """The benchmark on the validation games and their stored replays, without the train archive."""
    source = shared / "data/alfworld"

    def opened(folder: Path, **options: Any) -> Any:
        folder.mkdir(exist_ok=True)
        for path in source.iterdir():
            if "train" not in path.name and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
        return bench(ALFWorld, folder, **options)

    return opened


def test_next_commands_of_the_validation_games(real: Callable[..., Any], tmp_path: Path) -> None:
    opened = real(tmp_path / "real")
    assert len(opened.contexts("valid_seen")) == 812
    assert len(opened.contexts("valid_unseen")) == 788
    contexts = opened.contexts()
    assert len(set(contexts)) == 1600
    cases = [case_of(opened, context) for context in contexts[::40]]
    assert all(case.gold.evidence for case in cases)
    assert not [finding for finding in opened.check() if finding.level not in ("info", "warning")]
    games = opened.sources.games("valid_unseen")
    assert Counter(game.task.split("_")[1] if game.task[0] == "p" else "light" for game in games) == {
        "clean": 31, "and": 24, "heat": 23, "cool": 21, "light": 18, "two": 17,
    }  # fmt: skip
    expert = real(tmp_path / "real", expert="handcoded", memory="history")
    names = {case_of(expert, context).gold.cluster for context in expert.contexts("valid_unseen")}
    assert len(names) == 119


@needs_engine
@pytest.mark.timeout(900)  # seconds of two cores that others use too
async def test_real_games_are_won_and_say_what_was_stored(
    real: Callable[..., Any], tmp_path: Path, engine: Engine
) -> None:
    """24 of the 274: the four smallest of each task. tests/perf/alfworld.py plays them all."""
    opened, live = real(tmp_path / "real"), real(tmp_path / "real", live=True)
    live.engine = engine
    trails = {trail.name: trail for trail in opened.sources.trails("walkthrough")}
    by_task: dict[str, list[str]] = {}
    for name in sorted(trails, key=lambda name: trails[name].game.path.stat().st_size):
        by_task.setdefault(trails[name].task, []).append(name)
    chosen = [name for names in by_task.values() for name in names[:4]]
    contexts = dict(zip((game.name for game in live.sources.games()), live.contexts(), strict=True))

    async def won(name: str) -> bool:
        played = await play(live.episode(contexts[name]), by_gold(live))
        steps = trails[name].stored.steps
        assert played.facts == {"won": 1.0, "steps": len(steps), "admissible": len(steps), "crashed": 0.0}
        for item, (case, _), step in zip(played.items[:-1], played.cases, steps, strict=True):
            assert item.parts[-1].text == step.observation  # type: ignore[union-attr]
            assert tuple(case.gold.extra["admissible"]) == step.admissible
        return bool(played.facts["won"])

    assert sum(await asyncio.gather(*map(won, chosen))) == 24
    for name in chosen[:2]:
        trail = trails[name]
        made = await replays.replay(engine, trail.game, "walkthrough", trail.commands)
        same_steps(made, trail.stored)
        async with engine.play(trail.game.content(), facts=True) as game:
            facts = frozenset(map(states.printed, game.scene.facts))
        assert facts == states.initial(trail.game.content()["pddl_problem"], name)


def test_evidence_is_what_state_differencing_finds(bench: Callable[..., Any], folder: Path) -> None:
    opened = bench(ALFWorld, folder)
    opened.contexts()
    for context in opened.contexts():
        episode = opened.episode(context)
        assert set(episode.cases[0].gold.evidence) <= {Evidence(item.id) for item in episode.items}
        assert 1 <= len(episode.cases[0].gold.evidence) < len(episode.items)
