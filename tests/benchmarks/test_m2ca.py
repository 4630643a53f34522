"""M2CA-Bench: layouts, live sessions, sets read strictly, cuts, floors, and every fault of the data."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmark import Ask, Benchmark, Fact, Observe
from memharness.benchmarks.m2ca import M2CABench
from memharness.benchmarks.m2ca.layouts import read_sessions
from memharness.benchmarks.m2ca.sets import ReadoutSet, RetrievedSet, cuts, given_set, parse_set
from memharness.metric import parse_metric
from memharness.run.api import execute
from memharness.run.play import play
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import (
    Answer,
    Asked,
    Case,
    DataError,
    Evidence,
    Gold,
    Image,
    Outcome,
    Question,
    Record,
    Status,
    Text,
    UserError,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def opened(bench: Callable[..., Any], sample: Callable[[str], Path]) -> Any:
    return bench(M2CABench, sample("m2ca"))


async def events(benchmark: Benchmark, context: str, answers: Callable[[Case], Answer]) -> list[Any]:
    """What happens in a session, in order."""
    found: list[Any] = []
    playing = benchmark.episode(context).play()
    event: Observe | Ask | Fact = await anext(playing)
    try:
        while True:
            found.append(event)
            if isinstance(event, Ask):
                event = await playing.asend([answers(case) for case in event.cases])
            else:
                event = await anext(playing)
    except StopAsyncIteration:
        return found


def asked(
    gold: tuple[int, ...] = (),
    said: str | None = None,
    shown: list[str] | None = None,
    view: str | None = None,
    **extra: Any,
) -> Asked:
    """A turn that was answered."""
    about: dict[str, Any] = {
        "turn": 3, "difficulty": "easy", "tags": [], "refs": len(gold), "span": 2, "gold": list(gold),
        "numbers": [0, 1, 2, 3], "siblings": [], "confounders": [], "negatives": "none",
    }  # fmt: skip
    evidence = None if shown is None else tuple(map(Evidence, shown))
    record = Record("q", "c", 0, 0, Outcome.OK, answer=said, evidence=evidence, view=view)
    return Asked(Question("q", "c", (Text("?"),)), Gold(("none",), extra=about | extra), record)


def values(unit: Asked) -> dict[str, float | None]:
    """Scores that apply, by name."""
    scores = RetrievedSet().score([unit], {})
    return {name: score.value for name, score in scores.items() if score.status is not Status.NOT_APPLICABLE}


# ------------------------------------------------------------------------------------------------------ live sessions


async def test_a_turn_is_asked_before_what_it_makes_is_there(opened: Any) -> None:
    there: list[str] = []
    for event in await events(opened, "kiosk", opened.gold_answer):
        if isinstance(event, Observe):
            there += [item.id for item in event.items]
            continue
        (case,) = event.cases
        assert case.gold.extra["items"] == len(there)
        assert [f"image-{n}" for n in case.gold.extra["numbers"]] == [name for name in there if "image" in name]
        assert all(evidence.item in there for evidence in case.gold.evidence)
    assert len(there) == len(set(there)) == 41  # 20 turns, 5 replies in words, 16 pictures


async def test_creation_index_is_not_turn_index(opened: Any) -> None:
    played = await play(opened.episode("kiosk"), lambda case, items: opened.gold_answer(case))
    labelled = {item.label: item for item in played.items if item.label}
    assert labelled["image 5"].keys == {"turn": "6"}  # turn 5 made none, turn 6 brought one and made one
    assert labelled["image 4"].keys == {"turn": "6"}
    assert (labelled["image 4"].speaker, labelled["image 5"].speaker) == ("user", "assistant")
    assert played.cases[13][0].gold.answers == ("image 5, image 10",)
    assert played.cases[6][0].gold.answers == ("none",)
    assert played.cases[6][0].gold.abstain


async def test_uploads_come_before_their_turn_and_are_shown_with_it(opened: Any) -> None:
    order = await events(opened, "kiosk", opened.gold_answer)
    at = next(
        n for n, event in enumerate(order) if isinstance(event, Ask) and "my stall" in event.cases[0].question.text()
    )
    assert [item.id for item in order[at - 1].items] == ["image-4"]
    (case,) = order[at].cases
    assert case.question.parts[1] == order[at - 1].items[0].parts[0]
    assert case.question.derived[0].part == 1
    assert [evidence.item for evidence in case.gold.evidence] == ["image-1", "image-4"]


async def test_free_running_memory_holds_what_the_method_made(
    bench: Callable[..., Any], sample: Callable[[str], Path]
) -> None:
    opened = bench(M2CABench, sample("m2ca"), memory="free")
    mine = Image("f" * 64, "image/png", 8, 8, "mine")

    def answer(case: Case) -> Answer:
        return Answer("Here it is.", parts=(mine,) if case.gold.category == "edit" else ())

    seen = await events(opened, "lake", answer)
    items = {item.id: item for event in seen if isinstance(event, Observe) for item in event.items}
    assert items["image-1"].parts == (mine,)
    assert items["image-0"].parts == (Text("(no picture was made)"),)  # it keeps its place and its number
    assert items["image-0"].label == "image 0"
    assert items["turn-4-assistant"].text() == "Here it is."
    assert not any(item.derived for item in items.values())
    forced = await events(bench(M2CABench, opened.data.path), "lake", answer)
    words = {item.id: item for event in forced if isinstance(event, Observe) for item in event.items}
    assert words["image-1"].parts[0] != mine
    assert words["turn-4-assistant"].text() == "不难，半天就能学会。"


def test_subsets(opened: Any) -> None:
    assert opened.contexts() == opened.contexts("all") == ["kiosk", "lake"]
    assert opened.contexts("zh") == ["lake"]
    assert opened.contexts("kiosk") == ["kiosk"]
    with pytest.raises(UserError, match=r"no such session or language \(did you mean lake\?\)"):
        opened.contexts("lakes")


async def test_nothing_of_gold_is_told_beforehand(opened: Any) -> None:
    for context in opened.contexts():
        shown = [
            event for event in await events(opened, context, lambda case: Answer(None)) if not isinstance(event, Fact)
        ]
        told = repr([e.items if isinstance(e, Observe) else [case.question for case in e.cases] for e in shown])
        assert not any(word in told for word in ("very_hard", "long_term_mem", "semantic", "kiosk-0", "mug_"))


# ---------------------------------------------------------------------------------------------------- sets in a reply


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("none", set()), ("None.", set()), ("[]", set()), (" NONE \n", set()), ("no images", set()), ("无", set()),
        ("image 3", {3}), ("Image #3.", {3}), ("3", {3}), ("#3", {3}), ("rank 3", {3}),
        ("图 3", {3}), ("图片3、图片5", {3, 5}),
        ("image 3, image 5", {3, 5}), ("image 5 and image 3", {3, 5}), ("3; 5", {3, 5}), ("[0, 3]", {0, 3}),
        ("image 3\nimage 5", {3, 5}), ("3,3,5", {3, 5}), ("**image 3**", {3}), ('"image 3", "image 5"', {3, 5}),
        ("Answer: image 3", {3}), ("images: 3, 5", {3, 5}), ("<think>image 1?</think>image 2", {2}),
        ("It was red. <answer>image 2, image 4</answer>", {2, 4}), ("(image 3)", {3}), ("007", {7}),
        ("<answer>1</answer> no: <answer>none</answer>", set()),
    ],
)  # fmt: skip
def test_a_list_of_labels_is_read(reply: str, numbers: set[int]) -> None:
    assert parse_set(reply) == numbers


@pytest.mark.parametrize(
    "reply",
    [
        "", " ", "image", "The mug in image 3.", "image 3 is needed", "3-5", "image 3 to 5", "unknown", "none of them",
        "not image 3", "image three", "3.5", "-3", "<think>image 3", "1234567", "none, image 3", "yes",
        "image 3?", "image 3 5",
    ],
)  # fmt: skip
def test_anything_else_is_not_guessed_at(reply: str) -> None:
    assert parse_set(reply) is None


@given(st.frozensets(st.integers(0, 999)), st.sampled_from([", ", ";", " and ", "\n", "、"]), st.randoms())
def test_what_is_written_is_read_back(numbers: frozenset[int], between: str, dice: random.Random) -> None:
    listed = [*numbers, *list(numbers)[:2]]
    dice.shuffle(listed)
    assert parse_set(between.join(f"image {number}" for number in listed) or "none") == numbers


@given(st.text(max_size=300))
def test_no_reply_raises(reply: str) -> None:
    parse_set(reply)


def test_an_answers_own_readout_is_the_set_and_a_readers_reply_is(opened: Any) -> None:
    shown = ["turn-1-user", "image-2", "image-0"]
    assert given_set(asked(said="Here is your mug.", shown=shown)) == {0, 2}
    assert given_set(asked(said="Here is your mug.", shown=[])) == set()
    assert given_set(asked(said="image 1", shown=shown, view="captions")) == {1}
    assert given_set(asked(said="Here is your mug.", shown=shown, view="pixels")) is None
    assert given_set(asked(said="image 1")) == {1}


# ------------------------------------------------------------------------------------------------------------- scores


def test_two_empty_sets_agree() -> None:
    found = values(asked((), "none"))
    assert {name: found[name] for name in ("em", "precision", "recall", "f1", "jaccard")} == dict.fromkeys(
        ("em", "precision", "recall", "f1", "jaccard"), 1.0
    )
    assert found["abstention"] == 1
    assert "false_abstention" not in found


def test_one_empty_set_does_not() -> None:
    for unit in (asked((1,), "none"), asked((), "image 1")):
        found = values(unit)
        assert [found[name] for name in ("em", "precision", "recall", "f1", "jaccard")] == [0, 0, 0, 0, 0]
    assert values(asked((1,), "none"))["false_abstention"] == 1
    assert values(asked((), "image 1"))["abstention"] == 0


def test_sets_that_overlap() -> None:
    found = values(asked((1, 2), "image 2, image 3, image 0", siblings=[3], confounders=[0]))
    assert found["em"] == 0
    assert found["precision"] == pytest.approx(1 / 3)
    assert found["recall"] == 1 / 2
    assert found["f1"] == pytest.approx(2 / 5)
    assert found["jaccard"] == 1 / 4
    assert (found["sibling"], found["confounder"], found["retrieved"], found["unknown"]) == (1, 1, 3, 0)


def test_order_does_not_count() -> None:
    assert values(asked((2, 1), "image 2, image 1, image 2"))["em"] == 1


def test_a_picture_that_is_not_there_is_flagged() -> None:
    scores = RetrievedSet().score([asked((1,), "image 1, image 9")], {})
    assert (scores["em"].value, scores["unknown"].value) == (0, 1)
    assert scores["unknown"].note == "names picture 9, which is not there"
    assert values(asked((1,), "image 2"))["unknown"] == 0


def test_what_cannot_be_read_is_a_column_of_its_own() -> None:
    scores = RetrievedSet().score([asked((1,), "the red one")], {})
    assert all(scores[name].status is Status.UNPARSED for name in ("em", "jaccard", "false_abstention", "em@easy"))
    assert scores["em"].value == 0
    assert scores["retrieved"].status is Status.NOT_APPLICABLE


def test_no_answer_at_all_is_wrong_but_not_unparsed() -> None:
    scores = RetrievedSet().score([asked((1,), None)], {})
    assert (scores["em"].value, scores["em"].status) == (0, Status.OK)


def test_the_readout_is_scored_whatever_was_said() -> None:
    scores = ReadoutSet().score([asked((1, 2), "nonsense", ["image-1", "turn-1-user"], view="captions")], {})
    assert {name: score.value for name, score in scores.items()} == {
        "readout_em": 0, "readout_precision": 1, "readout_recall": 1 / 2, "readout_f1": pytest.approx(2 / 3),
        "readout_jaccard": 1 / 2,
    }  # fmt: skip
    missing = ReadoutSet().score([asked((1,), "image 1")], {})
    assert {score.status for score in missing.values()} == {Status.NOT_APPLICABLE}


numbers = st.frozensets(st.integers(0, 5))


@given(numbers, numbers)
def test_figures_of_sets(given: frozenset[int], gold: frozenset[int]) -> None:
    found = {name: score.value or 0.0 for name, score in RetrievedSet().figures(given, gold).items()}
    assert all(0 <= value <= 1 for value in found.values())
    assert (found["em"] == 1) == (given == gold) == (found["jaccard"] == 1) == (found["f1"] == 1)
    assert found["jaccard"] <= found["f1"]
    swapped = RetrievedSet().figures(gold, given)
    assert (swapped["precision"].value, swapped["jaccard"].value) == (found["recall"], found["jaccard"])


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, ["refs1", "span2-7", "easy"]),
        ({"turn": 10}, ["refs1", "span2-7", "easy"]),
        ({"turn": 11}, ["11-20", "refs1", "span2-7", "easy"]),
        ({"turn": 20, "difficulty": "very_hard"}, ["11-20", "very_hard@11-20", "refs1", "span2-7", "very_hard"]),
        ({"turn": 21, "difficulty": "very_hard"}, ["refs1", "span2-7", "very_hard"]),
        ({"refs": 0, "span": 0}, ["refs0", "easy"]),
        ({"refs": 3, "span": 8}, ["refs2+", "span8+", "easy"]),
        ({"span": 1, "difficulty": "", "tags": ["cross_topic"]}, ["refs1", "span0-1", "cross_topic"]),
    ],
)
def test_cuts(changed: Mapping[str, Any], found: list[str]) -> None:
    assert cuts({"turn": 3, "difficulty": "easy", "tags": [], "refs": 1, "span": 2} | changed) == found


def test_metrics_print_as_they_are_parsed(opened: Any) -> None:
    for metric in opened.metrics():
        assert parse_metric(str(metric), {type(metric).__name__: type(metric)}) == metric


# -------------------------------------------------------------------------------------------------- floors and a run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_floors_of_the_sample(home: Path) -> None:
    from memharness.run.floors import floors

    found = {floor.name: floor.figures for floor in floors("m2ca", None, None, {}).floors}
    assert {name: round(found[name]["em"], 4) for name in found if not name.startswith("always un")} == {
        "always empty": 0.2857, "always Not mentioned in the conversation": 0, "always none": 0.2857,
        "best constant by type": 0.5, "last picture": 0.2857, "first picture": 0.25, "all pictures": 0.1429,
        "a random picture": 0.1429, "BM25 on captions": 0.3571, "gold itself": 1,
    }  # fmt: skip
    gold = found["gold itself"]
    assert {name: gold[name] for name in ("All", "Long", "Hard")} == {"All": 1, "Long": 1, "Hard": 1}
    assert found["all pictures"]["recall"] == pytest.approx(22 / 28)  # all but the turns that need none and have some
    assert found["always empty"]["em@refs0"] == 1


@pytest.mark.parametrize("method", ["full-context", "recency", "bm25", "oracle"])
def test_runs_with_a_reader(home: Path, tmp_path: Path, method: str) -> None:
    spec = RunSpec(method=method, bench="m2ca", reader="extractive", out=str(tmp_path / "out"))
    summary = execute(spec, Quiet())
    assert summary["outcomes"]["ok"] == 28
    assert summary["scores"]["em"]["n"] == 28
    assert summary["scores"]["em@very_hard@11-20"]["n"] == 4
    readout = summary["scores"]["readout_em"]["value"]
    assert readout == pytest.approx({"full-context": 4 / 28, "oracle": 1}.get(method, readout))


def test_predictions_of_someone_elses(opened: Any, tmp_path: Path, home: Path) -> None:
    from memharness.run.evaluate import evaluate

    rows = [
        {"session_id": "lake", "turn": n, "images": images} for n, images in enumerate([[], [0], [], [], [1], [0]], 1)
    ]
    for name, text in (("sets.json", json.dumps(rows)), ("sets.jsonl", "\n".join(map(json.dumps, rows)))):
        (tmp_path / name).write_text(text)
        found = evaluate("m2ca", None, tmp_path / name, {}, "lake")
        assert (found.n, found.missing) == (8, 2)
        assert found.scores["em"] == 6 / 8
    (tmp_path / "bad.json").write_text(json.dumps([{"session_id": "lake", "turn": 1, "images": ["image 1"]}]))
    with pytest.raises(DataError, match="images: must be a list of whole numbers"):
        list(opened.predictions(tmp_path / "bad.json"))


def test_check_says_what_there_is(opened: Any) -> None:
    words = " | ".join(finding.message for finding in opened.check())
    assert "2 sessions, 28 turns: not the benchmark itself" in words
    assert "turns by pictures needed: 14 need 1, 5 need 2, 1 need 3, 8 need none" in words


def test_the_sample_keeps_to_the_papers_scenarios(opened: Any) -> None:
    """At least three callbacks over eight turns or more in a session of twenty."""
    kiosk = opened.sessions["kiosk"]
    spans = [turn.span for turn in kiosk.turns]
    assert len(spans) == 20
    assert sum(span is not None and span >= 8 for span in spans) >= 3
    assert {turn.task for turn in kiosk.turns} == {"generate", "edit", "composite", "understand", "pure_chat"}


def test_the_generator_makes_the_committed_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    made = dict(importlib.import_module("samples.m2ca").files())
    assert made == dict(importlib.import_module("samples.m2ca").files())
    kept = {str(file.relative_to(ROOT)) for file in (ROOT / "benchmarks/m2ca/sample").rglob("*") if file.is_file()}
    assert set(made) == kept
    for name in kept:
        if not name.endswith(".jpg"):
            assert made[name] == (ROOT / name).read_bytes(), name


# ------------------------------------------------------------------------------------------------------------ layouts


def test_native_layouts(opened: Any, bench: Callable[..., Any]) -> None:
    root = opened.data.path
    sessions = [json.loads(file.read_text()) for file in sorted((root / "sessions").iterdir())]
    one = bench(M2CABench, root / "sessions" / "lake.json")
    assert one.contexts() == ["lake"]
    assert not one.pictures["lake"]["lake-00"].missing
    shutil.rmtree(root / "sessions")
    (root / "sessions.jsonl").write_text("\n".join(json.dumps(one) for one in sessions))
    lines = bench(M2CABench, root)
    (root / "list.json").write_text(json.dumps(sessions))
    listed = bench(M2CABench, root / "list.json")
    assert lines.contexts() == listed.contexts() == ["kiosk", "lake"]
    assert set(lines.digest()) > {"sessions.jsonl", "images/lake/00.jpg"}


WEAVE = {
    "idx": 33,
    "domain": "recall",
    "images": ["a.jpg", "b.jpg", "c.jpg", "d.jpg"],
    "chats": [
        {"role": "user", "type": "text", "content": "Change the background of Image #1."},
        {"role": "assistant", "type": "image", "content": "Image #2", "key_point": {"Image #2": "<image> has it"}},
        {"role": "user", "type": "text", "content": "What is on the wall?"},
        {"role": "assistant", "type": "text", "content": "A clock."},
        {"role": "user", "type": "text", "content": "Merge the wall of Image #2 and the light of Image #1."},
        {"role": "assistant", "type": "image", "content": "Image #3"},
        {"role": "user", "type": "text", "content": "Draw a ship."},
        {"role": "assistant", "type": "image", "content": "Image #4"},
    ],
}


@pytest.fixture
def weave(tmp_path: Path, sample: Callable[[str], Path]) -> Path:
    root = tmp_path / "weave"
    (root / "test").mkdir(parents=True)
    (root / "test/test.json").write_text(json.dumps([WEAVE]))
    for name in ("a.jpg", "b.jpg"):
        shutil.copy(ROOT / "benchmarks/m2ca/sample/images/lake/00.jpg", root / name)
    return root


async def test_weavebench_is_mapped(weave: Path, bench: Callable[..., Any]) -> None:
    opened = bench(M2CABench, weave)
    assert opened.contexts() == ["33"]
    played = await play(opened.episode("33"), lambda case, items: opened.gold_answer(case))
    golds = [case.gold for case, _ in played.cases]
    assert [gold.category for gold in golds] == ["edit", "understand", "composite", "generate"]
    assert [gold.answers[0] for gold in golds] == ["Image #1", "none", "Image #1, Image #2", "none"]
    assert [gold.extra["numbers"] for gold in golds] == [[1], [1, 2], [1, 2], [1, 2, 3]]
    assert [gold.extra["span"] for gold in golds] == [0, 0, 2, 0]
    order = [(item.label, item.parts[0].missing) for item in played.items if isinstance(item.parts[0], Image)]
    assert order == [("Image #1", False), ("Image #2", False), ("Image #3", True), ("Image #4", True)]
    assert "Image #1, Image #4" in played.cases[0][0].question.instruction


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v["chats"][0].update(content="Edit Image #9."), r"names Image #9; there are 4 images"),
        (lambda v: v["chats"][0].update(content="Edit Image #3."), r"gt_images: '#3' is not there yet"),
        (lambda v: v["chats"][1].update(content="the second"), r"must be Image #k"),
        (lambda v: v["chats"].pop(), "messages of user and assistant in turn"),
        (lambda v: v["chats"].clear(), "messages of user and assistant in turn"),
        (lambda v: v.pop("idx"), "idx: is missing"),
        (lambda v: v["images"].__setitem__(0, "../../a.jpg"), "lies outside the data folder"),
        (
            lambda v: v["chats"].insert(2, {"role": "assistant", "type": "image", "content": "Image #3"}),
            "makes several pictures",
        ),
    ],
)
def test_faults_of_weavebench(weave: Path, spoil: Callable[[Any], Any], message: str) -> None:
    value = json.loads(json.dumps(WEAVE))
    spoil(value)
    (weave / "test/test.json").write_text(json.dumps([value]))
    with pytest.raises(DataError, match=message):
        read_sessions(weave)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v["turns"][1].update(task_type="paint"), r"task_type: 'paint' is none of generate, edit"),
        (lambda v: v["turns"][1].update(difficulty="veryhard"), r"difficulty: 'veryhard' .*did you mean very_hard"),
        (lambda v: v["turns"][1].update(negatives="some"), r"negatives: 'some' is none of"),
        (lambda v: v["turns"][1].update(gt_images=["lake-99"]), r"gt_images: 'lake-99' is no asset"),
        (lambda v: v["turns"][1].update(gt_images=["lake-03"]), r"gt_images: 'lake-03' is not there yet at this turn"),
        (lambda v: v["turns"][1].update(gt_images=["lake-01"]), r"gt_images: 'lake-01' is not there yet"),
        (lambda v: v["turns"][1].update(confounders=["lake-05"]), r"confounders: 'lake-05' is not there yet"),
        (lambda v: v["turns"][1].pop("gt_images"), r"turn 1: gt_images: is missing"),
        (lambda v: v["turns"][1].update(user_text=""), r"user_text: is empty"),
        (lambda v: v["turns"][1].update(turn=3), r"turn: 3 where 2 is due"),
        (lambda v: v["turns"].clear(), r"holds no turn"),
        (lambda v: v["turns"][1].update(output_asset="lake-77"), r"output_asset: 'lake-77' is no asset"),
        (lambda v: v["turns"][1].update(output_asset="lake-00"), r"'lake-00' was brought by turn 1 already"),
        (lambda v: v["turns"][1].update(output_asset=None), r"'lake-01' is no turn's upload or output"),
        (lambda v: v["turns"][1].update(uploads=["lake-01"]), r"uploads: 'lake-01' is of kind edited"),
        (lambda v: v["assets"][1].update(created_turn=3), r"'lake-01' says it was created at turn 3"),
        (lambda v: v["assets"][1].update(index=7), r"index: 2 where 1 is due"),
        (lambda v: v["assets"][1].update(kind="drawn"), r"kind: 'drawn' is none of"),
        (lambda v: v["assets"][1].update(asset_id="lake-00"), r"'lake-00' is already the id of"),
        (lambda v: v["assets"][1].update(parent_ids=["x"]), r"'lake-01': parent_ids: 'x' is no asset"),
        (lambda v: v["assets"][1].update(path="../../x.jpg"), r"path: '../../x.jpg' lies outside the data folder"),
        (lambda v: v["assets"][1].update(path="sessions/lake.json"), r"is not a readable picture"),
        (lambda v: v["assets"][1].update(sha256="0" * 64), r"is not the picture that sha256 states"),
        (lambda v: (v["assets"][0].update(index=1), v["assets"][1].update(index=0)), r"index is the order of creation"),
        (lambda v: v.pop("session_id"), r"session_id: is missing"),
        (lambda v: v.update(session_id="kiosk"), r"session_id: 'kiosk' is already the id of"),
    ],
)
def test_faults_of_the_native_layout(
    opened: Any, change: Callable[..., None], spoil: Callable[[Any], Any], message: str
) -> None:
    change(opened.data.path / "sessions/lake.json", lambda value: (spoil(value), value)[1])
    with pytest.raises(DataError, match=message):
        opened.pictures  # noqa: B018
    assert opened.check()[0].level == "error"


def test_a_span_that_differs_is_a_warning_and_a_lost_picture_is_missing(
    opened: Any, change: Callable[..., None]
) -> None:
    change(opened.data.path / "sessions/lake.json", lambda value: value["turns"][1].update(span_max=5))
    (opened.data.path / "images/lake/01.jpg").unlink()
    assert [f.message for f in opened.check() if f.level == "warning"] == [
        "span_max: 5, but the pictures needed lie 1 back"
    ]
    assert opened.pictures["lake"]["lake-01"].missing


@pytest.mark.parametrize("name", ["empty", "missing.json"])
def test_no_data(tmp_path: Path, bench: Callable[..., Any], name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no session; expected|no such file"):
        bench(M2CABench, tmp_path / name).contexts()


def test_an_empty_list(tmp_path: Path, bench: Callable[..., Any]) -> None:
    (tmp_path / "sessions.json").write_text("[]")
    with pytest.raises(DataError, match="holds no session; name"):
        bench(M2CABench, tmp_path).contexts()


def test_names_the_paper_gives_tasks_are_taken(opened: Any, change: Callable[..., None]) -> None:
    def rename(value: Any) -> None:
        value["turns"][5]["task_type"], value["turns"][6]["task_type"] = "mmu", "cross-reference-edit"

    change(opened.data.path / "sessions/lake.json", rename)
    assert [turn.task for turn in opened.sessions["lake"].turns[5:7]] == ["understand", "composite"]


def test_the_readout_of_a_prediction_decides_over_its_words() -> None:
    assert values(asked((1,), "image 2", ["image-1"]))["em"] == 1
