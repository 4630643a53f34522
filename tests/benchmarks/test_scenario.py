"""The scenario engine: gold by construction, shares, callbacks, checks by pixels, both languages, the same bytes."""

from __future__ import annotations

import io
import json
import os
import random
import re
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from memharness.benchmarks.m2ca.layouts import read_sessions
from memharness.benchmarks.m2ca.scenario import Made, Making, User, make
from memharness.benchmarks.m2ca.scenario.phrases import Told, Wording, phrase_file
from memharness.benchmarks.m2ca.scenario.planning import LONG, play_session, quotas
from memharness.benchmarks.m2ca.scenario.references import Ref, references, resolve
from memharness.benchmarks.m2ca.scenario.simulator import accepted, cleaned
from memharness.benchmarks.m2ca.scenario.story import Picture, Story
from memharness.benchmarks.m2ca.scenario.topics import DOMAINS, TOPICS
from memharness.benchmarks.m2ca.scenario.writing import census, files, sessions
from memharness.cli import command_line
from memharness.reader import Reader, Reply, Request
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.scenes import Change, Check, Scene, Thing, draw, holds, scene_of
from memharness.types import ReaderError, Usage, UserError


@pytest.fixture(scope="module")
def made() -> list[Made]:
    """Fifty-five sessions, planned and worded."""
    return list(sessions(Making(55, 20, 11)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sessions of twenty turns on disk."""
    out = tmp_path_factory.mktemp("made") / "out"
    make(Making(4, 20, 3), out)
    return out


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def told(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((folder / "sessions").iterdir()):
        yield json.loads(file.read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------------- determinism


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    outs = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "memharness", "scenario", "make", "--sessions=2", "--turns=8", "--out", out],
            check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        outs.append({file.relative_to(out): file.read_bytes() for file in out.rglob("*") if file.is_file()})
    assert outs[0] == outs[1]
    assert len(outs[0]) > 8


def test_fewer_sessions_are_the_first_of_more() -> None:
    few, more = (list(sessions(Making(n, 10, 3))) for n in (2, 4))
    assert [dict(files(one)) for one in few] == [dict(files(one)) for one in more[:2]]


def test_seeds_and_phrase_sets_share_nothing() -> None:
    """Neither a picture's bytes nor a session's words, whatever the seeds are."""
    makings = [Making(4, 12, 1), Making(4, 12, 2), Making(4, 12, 1, phrases="held-out")]
    pictures, texts, ids = [], [], []
    for making in makings:
        found = list(sessions(making))
        pictures.append({data for one in found for path, data in files(one) if path.endswith(".png")})
        texts.append({tuple(words.text for words in one.words) for one in found})
        ids.append({one.id for one in found})
    for sets in (pictures, texts, ids):
        assert all(one.isdisjoint(other) for n, one in enumerate(sets) for other in sets[n + 1 :])  # type: ignore[attr-defined]


# --------------------------------------------------------------------------------------------------- what a set holds


def test_shares_tasks_and_topics(made: list[Made]) -> None:
    for one in made:
        assert Counter(turn.difficulty for turn in one.turns) == quotas(20)
        assert Counter(turn.difficulty for turn in one.turns) == {"easy": 6, "medium": 6, "hard": 4, "very_hard": 4}
        assert sum(turn.span >= LONG for turn in one.turns) >= 3
        assert sum(turn.plan.task == "composite" for turn in one.turns) >= 2
        assert {turn.plan.negatives for turn in one.turns} == {"none", "semantic", "structural"}
        assert {turn.plan.task for turn in one.turns} == {"generate", "edit", "composite", "understand", "pure_chat"}
        assert 4 <= sum(not turn.gold for turn in one.turns) <= 8
    topics = {name for one in made for picture in one.story.pictures for name in picture.topics}
    assert len(topics) == 55
    assert {TOPICS[name].domain for name in topics} == set(DOMAINS)
    assert len(DOMAINS) == 8


def test_tags_and_difficulties_are_the_papers(made: list[Made]) -> None:
    for one in made:
        topic = ""
        for turn in one.turns:
            tags, pictures = set(turn.tags), one.story.pictures
            if turn.difficulty == "easy":
                assert not tags
                assert len(turn.gold) < 2
            if turn.difficulty == "medium":
                assert tags <= {"topic_switch"}
            if turn.difficulty == "hard":
                assert len(turn.gold) == 1
                assert tags
            if turn.difficulty in ("hard", "very_hard"):
                assert tags <= {"cross_topic", "long_term_mem"}
                assert ("long_term_mem" in tags) == (turn.span >= LONG)
                earlier = [pictures[index] for index in turn.gold if pictures[index].turn < turn.number]
                assert ("cross_topic" in tags) == any(topic not in picture.topics for picture in earlier)
            if len(turn.gold) > 1:
                assert turn.difficulty == "very_hard"
            assert turn.span == max((turn.number - pictures[index].turn for index in turn.gold), default=0)
            topic = turn.plan.topics[0] if turn.plan.topics else topic


def test_gold_is_what_the_references_mean(made: list[Made]) -> None:
    """Each turn's references, read against the pictures that were there, mean its gold set and nothing else."""
    for one in made:
        for turn in one.turns:
            story = Story(
                topics=[TOPICS[name] for name in dict.fromkeys(n for p in one.story.pictures for n in p.topics)],
                pictures=[p for p in one.story.pictures if p.turn < turn.number or p.index == turn.uploaded],
                liked=[
                    max(p.index for p in one.story.pictures if p.turn < other.number)
                    for other in one.turns[: turn.number - 1]
                    if other.plan.likes
                ],
                focus=focus(one, turn.number),
            )
            sets = [resolve(ref, story) for ref in turn.plan.refs.values()]
            assert all(sets), (one.id, turn.number)
            brought = {turn.uploaded} - {None}
            assert frozenset().union(*(found for found in sets if found), brought) == turn.gold
            if turn.plan.task in ("generate", "pure_chat"):
                assert not turn.gold
            else:
                assert turn.gold


def focus(made: Made, number: int) -> int | None:
    """The picture last made or asked about before a turn."""
    found: int | None = None
    for turn in made.turns[: number - 1]:
        if turn.made is not None:
            found = turn.made
        elif turn.plan.task == "pure_chat":
            found = found if turn.plan.likes else None
        else:
            found = min(turn.gold) if len(turn.gold) == 1 else None
    return found


def test_a_composite_is_of_what_it_needs_and_an_edit_of_one(made: list[Made]) -> None:
    for one in made:
        for turn in one.turns:
            if turn.plan.task in ("edit", "composite"):
                assert set(turn.plan.parents) == set(turn.gold)
                assert turn.made is not None
                assert one.story.pictures[turn.made].parents == turn.plan.parents


def test_near_duplicates_are_named_as_confounders(made: list[Made]) -> None:
    turns = [turn for one in made for turn in one.turns if turn.gold]
    assert sum(bool(turn.confounders) for turn in turns) > 0.6 * len(turns)
    assert all(turn.gold.isdisjoint(turn.confounders) for turn in turns)


# --------------------------------------------------------------------------------------------------------- references

STORY = Story(
    topics=[TOPICS["container harbour"], TOPICS["city park"]],
    pictures=[
        Picture(0, 1, "generated", Scene((Thing("boat", "red"),), "harbour"), ("container harbour",)),
        Picture(
            1, 2, "edited", Scene((Thing("boat", "blue"),), "harbour"), ("container harbour",), (0,),
            Change("recolour", "boat", "red", "blue"),
        ),
        Picture(2, 3, "upload", Scene((Thing("tree", "green"),), "park", "dusk"), ("city park",)),
        Picture(
            3, 4, "composed", Scene((Thing("tree", "green"), Thing("boat", "blue", place="left")), "park", "dusk"),
            ("city park", "container harbour"), (2, 1),
        ),
    ],
    liked=[1],
    focus=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("ref", "meant"),
    [
        (Ref("last"), {3}), (Ref("previous"), {2}), (Ref("same"), None), (Ref("nth", n=1), {1}),
        (Ref("nth", n=4), None), (Ref("topic_nth", topic="container harbour", n=0), {0}),
        (Ref("topic_nth", topic="container harbour", n=-1), None),
        (Ref("topic_nth", topic="container harbour", n=2), None),  # whether the composite counts is open
        (Ref("look", kind="boat", colour="red"), {0}), (Ref("look", kind="boat", colour="blue"), None),
        (Ref("look", kind="boat", light="day", colour="blue"), {1}), (Ref("look", light="dusk"), None),
        (Ref("look", topic="city park"), None), (Ref("look", kind="robot"), None),
        (Ref("before", operation="recolour", kind="boat", value="blue"), {0}),
        (Ref("before", operation="recolour", kind="boat", value="green"), None),
        (Ref("liked"), {1}), (Ref("upload"), {2}), (Ref("composed"), {3}),
        (Ref("contrast", kind="boat", colour="blue"), {0}), (Ref("contrast", kind="tree", colour="green"), None),
        (Ref("nths", n=0, m=2), {0, 2}), (Ref("nths", n=1, m=1), None), (Ref("both", topic="container harbour"), None),
        (Ref("both", kind="boat", colour="blue"), None), (Ref("both", kind="tree"), None),
        (Ref("pair", parts=(Ref("last"), Ref("liked"))), {1, 3}),
        (Ref("pair", parts=(Ref("last"), Ref("composed"))), None),
        (Ref("pair", parts=(Ref("last"), Ref("same"))), None),
    ],
)  # fmt: skip
def test_a_reference_means_one_thing_or_none(ref: Ref, meant: set[int] | None) -> None:
    assert resolve(ref, STORY) == (None if meant is None else frozenset(meant))


def test_it_means_nothing_where_nothing_is_in_view() -> None:
    assert resolve(Ref("last"), replace(STORY, focus=None)) is None
    assert resolve(Ref("last"), replace(STORY, focus=1)) is None
    assert resolve(Ref("same"), replace(STORY, focus=1)) == frozenset({1})
    assert resolve(Ref("liked"), replace(STORY, liked=[1, 2])) is None
    with pytest.raises(ValueError, match="form 'best' is none of"):
        resolve(Ref("best"), STORY)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(TOPICS)), st.integers(1, 40))
def test_any_seed_and_length_can_be_played(seed: int, topic: str, turns: int) -> None:
    story, played = play_session(str(seed), turns, TOPICS[topic])
    assert Counter(turn.difficulty for turn in played) == {name: n for name, n in quotas(turns).items() if n}
    assert [picture.index for picture in story.pictures] == list(range(len(story.pictures)))
    for picture in story.pictures:
        for ref in references(picture.index, story):
            assert resolve(ref, story) == frozenset({picture.index})


# ------------------------------------------------------------------------------------------------------ in words


def test_phrase_sets_say_all_and_share_no_sentence() -> None:
    dev, held = (phrase_file(name) for name in ("dev", "held-out"))
    for language in ("en", "zh"):
        for group in (
            "ref",
            "change",
            "edit",
            "composite",
            "question",
            "understand",
            "generate",
            "chat",
            "light",
            "view",
        ):
            assert dev[language][group].keys() == held[language][group].keys()
            for key in dev[language][group]:
                one, other = (flat(phrases[language][group][key]) for phrases in (dev, held))
                assert one.isdisjoint(other), (language, group, key)
        for field in ("kind", "colour", "background"):
            names = [dev[language]["names"][field], held[language]["names"][field]]
            for name in names[0].keys() & names[1].keys():
                assert set(names[0][name]).isdisjoint(names[1][name]), (language, name)


def flat(value: Any) -> set[str]:
    return {value} if isinstance(value, str) else {words for one in value for words in flat(one)}


@pytest.mark.parametrize("phrases", ["dev", "held-out"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_sentence_can_be_filled(made: list[Made], language: str, phrases: str) -> None:
    """All acts and forms, by each of their sentences, without a slot left over."""
    for seed in range(2):
        wording = Wording(language, phrases, random.Random(seed))
        for one in made:
            for turn in one.turns:
                words = wording.turn(turn.plan)
                assert "{" not in words.text + words.reply
                assert words.text.strip() == words.text != ""
                assert "  " not in words.text
                assert bool(words.reply) == (turn.plan.task in ("understand", "pure_chat"))
                assert bool(re.search(r"[\u4e00-\u9fff]", words.text)) == (language == "zh")
                assert all(part.casefold() in words.text.casefold() for part in words.fixed)


def test_each_form_is_said_in_every_set() -> None:
    refs = [
        Ref("last"), Ref("previous"), Ref("same"), Ref("nth", n=2), Ref("topic_nth", topic="city park", n=1),
        Ref("topic_nth", topic="city park", n=-1), Ref("liked"), Ref("upload"), Ref("composed"),
        Ref("contrast", kind="boat", colour="red"), Ref("both", topic="city park"), Ref("both", kind="boat"),
        Ref("three", topic="city park"), Ref("three", kind="boat"), Ref("nths", n=0, m=1),
        Ref("pair", parts=(Ref("last"), Ref("liked"))),
        *(Ref("before", operation=name, kind="boat", value=value) for name, value in (
            ("recolour", "red"), ("rematerial", "wood"), ("resize", "small"), ("relight", "night"), ("view", "high"),
            ("add", ""), ("remove", ""), ("move", "left"), ("text", "OPEN"))),
        *(Ref("look", topic=topic, kind=kind, light=light) for topic in ("", "city park") for kind in ("", "boat")
          for light in ("", "night") if topic or kind or light),
    ]  # fmt: skip
    for phrases in ("dev", "held-out"):
        for language in ("en", "zh"):
            said = [Wording(language, phrases, random.Random(1)).ref(ref) for ref in refs]
            assert len(set(said)) == len(said), (phrases, language)
            assert all(words and "{" not in words for words in said)


def test_slots_of_sentences_are_known() -> None:
    words_of = "topic things old mention ref a b all thing kind question Question change Change value light view place"
    known = {*words_of.split(), "new", "nth", "mth", "number", "other", "colour", "one"}
    for phrases in ("dev", "held-out"):
        for table in phrase_file(phrases).values():
            for words in flat([value for group in table.values() for value in strings(group)]):
                assert {name for _, name, _, _ in string.Formatter().parse(words) if name} <= known, words


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [words for one in (value.values() if isinstance(value, dict) else value) for words in strings(one)]


# -------------------------------------------------------------------------------------------------------- on disk


def test_what_is_written_is_read_by_the_benchmark(folder: Path) -> None:
    found, _ = read_sessions(folder)
    assert [session.lang for session in found] == ["en", "zh", "en", "zh"]
    for session, body in zip(found, told(folder), strict=True):
        assert body["source"].startswith("synthetic")
        assert len(session.turns) == 20
        for asset in session.assets.values():
            assert asset.path is not None
            scene = scene_of(asset.path.read_bytes())
            assert scene is not None
            assert asset.caption
    words = (folder / "README.md").read_text(encoding="utf-8")
    assert "Synthetic sessions, not M2CA-Bench" in words
    assert "4 sessions, 80 turns" in words


def test_checks_hold_on_the_result_and_fail_on_what_it_was_made_from(folder: Path) -> None:
    checked = 0
    for body in told(folder):
        assets = {asset["asset_id"]: asset for asset in body["assets"]}
        for turn in body["turns"]:
            if turn["task_type"] not in ("edit", "composite"):
                assert turn["checks"] == []
                continue
            made = assets[turn["output_asset"]]
            found = [Check.from_json(check) for check in turn["checks"]]
            shown, base = (Image.open(folder / one["path"]) for one in (made, assets[made["parent_ids"][0]]))
            assert found
            assert all(holds(check, shown) for check in found), turn["user_text"]
            assert not all(holds(check, base) for check in found), turn["user_text"]
            checked += 1
    assert checked > 25


def test_answers_are_what_the_pictures_show(made: list[Made]) -> None:
    for one in made:
        for turn, words in zip(one.turns, one.words, strict=True):
            if turn.plan.act == "understand.ref" and "question" in turn.plan.about:
                (index,) = turn.gold
                scene = one.story.pictures[index].scene
                asked = turn.plan.about["question"]
                assert turn.plan.answer is not None
                if asked == "count":
                    assert words.reply.rstrip(".。") == str(len(scene.things))
                elif asked != "light":
                    (thing,) = (thing for thing in scene.things if thing.kind == turn.plan.about["kind"])
                    assert turn.plan.answer == (asked, getattr(thing, str(asked)))


def test_data_check_and_a_run(folder: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["data", "check", "m2ca", "--data", str(folder)]) == 0
    assert "no errors" in capsys.readouterr().out
    spec = RunSpec(
        method="bm25", bench="m2ca", reader="extractive", data=str(folder), limit="20", out=str(tmp_path / "out")
    )
    summary = execute(spec, Quiet())
    assert summary["outcomes"]["ok"] == 20
    assert summary["data_state"] == "given"


def test_bm25_finds_some_and_trivial_policies_few(tmp_path: Path, home: Path) -> None:
    from memharness.run.floors import floors

    out = tmp_path / "en"
    make(Making(6, 20, 21, "en"), out)
    found = {floor.name: floor.figures["em"] for floor in floors("m2ca", str(out), None, {}).floors}
    assert 0.3 <= found["BM25 on captions"] <= 0.7
    for name in ("always empty", "last picture", "first picture", "all pictures", "a random picture"):
        assert found[name] < 0.35, name
    assert found["gold itself"] == 1


# ----------------------------------------------------------------------------------------------------- a reader as user


class Talker(Reader):
    """A reader that says what it is told to, and counts how often it is asked."""

    def __init__(self, say: Callable[[str, int], str]) -> None:
        self.say, self.asked = say, 0

    async def generate(self, request: Request) -> Reply:
        self.asked += 1
        line = request.messages[0].parts[0].text.rpartition("Line: ")[2].strip()  # type: ignore[union-attr]
        return Reply(self.say(line, request.sample), Usage())


def test_a_wording_that_keeps_to_the_plan_is_taken(tmp_path: Path) -> None:
    talker = Talker(lambda line, sample: f"Line: “Well, {line}”" if sample else "Make it a red robot at night.")
    user = User("talker", reader=talker)
    found = make(Making(1, 8, 4, "en"), tmp_path / "out", user)
    plain = list(sessions(Making(1, 8, 4, "en")))
    assert [words.text for words in found[0].words] == [f"Well, {words.text}" for words in plain[0].words]
    assert [turn.gold for turn in found[0].turns] == [turn.gold for turn in plain[0].turns]
    assert user.counts == {"reader": 8, "template": 0, "refused": 8}
    assert "talker: 8 reader" in (tmp_path / "out/README.md").read_text()


def test_one_that_strays_is_asked_again_and_then_left_out(tmp_path: Path) -> None:
    talker = Talker(lambda line, sample: f"{line} And the second picture too.")
    user = User("talker", tries=2, reader=talker)
    found = make(Making(1, 6, 4, "en"), tmp_path / "out", user)
    assert [words.text for words in found[0].words] == [
        words.text for words in next(sessions(Making(1, 6, 4, "en"))).words
    ]
    assert (talker.asked, user.counts) == (12, {"reader": 0, "template": 6, "refused": 12})


def test_a_reader_that_fails_leaves_the_template(tmp_path: Path) -> None:
    def fail(line: str, sample: int) -> str:
        raise ReaderError("down")

    user = User("talker", reader=Talker(fail))
    make(Making(1, 3, 4, "en"), tmp_path / "out", user)
    assert user.counts["template"] == 3


LINE = Told("Make the boat red in the picture with the lamp.", "", ("make the boat red", "the picture with the lamp"))


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("Please make the boat red in the picture with the lamp.", True),
        ("For the picture with the lamp, make the boat red!", True),
        ("Make the boat scarlet in the picture with the lamp.", False),
        ("Make the boat red in the lamp picture.", False),
        ("Make the boat red in the picture with the lamp and the cat.", False),
        ("Make the boat red in the picture with the lamp, the second one.", False),
        ("Make the boat red in the picture with the lamp, not the new one.", False),
        ("Keep these parts exactly: make the boat red in the picture with the lamp.", False),
        ("", False),
        ("make the boat red the picture with the lamp " * 20, False),
    ],
)
def test_what_is_accepted(words: str, taken: bool) -> None:
    assert accepted(words, LINE) is taken


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ('"Hi there."\n', "Hi there."),
        ("Line: hi", "hi"),
        ("<think>x</think> hi", "hi"),
        ("“好的”", "好的"),
        ("a\n b", "a b"),
    ],
)
def test_replies_are_cleaned(reply: str, line: str) -> None:
    assert cleaned(reply) == line


# ----------------------------------------------------------------------------------------------------------- command


def test_the_command_prints_a_census(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert command_line(["scenario", "make", "--sessions=1", "--turns=5", "--lang=zh", "--out", out, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["sessions"] == 1
    assert said["census"][0].startswith("1 sessions, 5 turns")
    assert command_line(["scenario", "make", "--sessions=1", "--out", out]) == 2
    assert "is not an empty folder" in capsys.readouterr().err
    assert command_line(["scenario", "make", "--sessions=0", "--out", out + "2"]) == 2
    assert command_line(["scenario", "make", "--lang=fr", "--out", out + "2"]) == 2
    assert command_line(["scenario", "make", "--user=nobody", "--out", out + "3"]) == 2
    assert "nobody" in capsys.readouterr().err


def test_bad_orders_are_refused(tmp_path: Path) -> None:
    for making in (Making(0, 20, 1), Making(1, 0, 1)):
        with pytest.raises(UserError, match="at least one of each"):
            make(making, tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not an empty folder"):
        make(Making(1, 1, 1), tmp_path / "file")


def test_a_census_counts(made: list[Made]) -> None:
    lines = dict(line.split(": ", 1) for line in census(made).splitlines()[1:])
    assert lines["difficulty"] == "easy 330 (30 %), hard 220 (20 %), medium 330 (30 %), very_hard 220 (20 %)"
    assert set(lines) == {
        "task", "difficulty", "pictures needed", "turns back", "negatives", "tags", "called by", "language"
    }  # fmt: skip


def test_pictures_are_small_and_drawn_as_they_say(folder: Path) -> None:
    file = next((folder / "images").rglob("*.png"))
    data = file.read_bytes()
    scene = scene_of(data)
    assert scene is not None
    assert len(data) < 40_000
    assert Image.open(io.BytesIO(data)).convert("RGB").tobytes() == draw(scene).tobytes()
