"""M2CA-Bench: what a turn gave back, its quality by a judge, runtime, cuts beside floors, and others' replies."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from rich.console import Console

from memharness.benchmark import ScoreRow
from memharness.benchmarks.m2ca import M2CABench
from memharness.benchmarks.m2ca.made import Made, words
from memharness.benchmarks.m2ca.quality import Quality
from memharness.media import MediaStore
from memharness.report.tables import show_summary
from memharness.report.viewer import write
from memharness.run.api import execute, verify
from memharness.run.bundle import bundle
from memharness.run.bundle import verify as verify_bundle
from memharness.run.cuts import cuts
from memharness.run.folder import RunFolder
from memharness.run.judging import judge
from memharness.run.pictures import pictures
from memharness.run.play import play
from memharness.run.progress import Quiet
from memharness.run.runtime import runtime
from memharness.run.spec import RunSpec
from memharness.scenes import Change, Scene, Thing, apply, checks, png
from memharness.types import (
    Answer,
    Asked,
    DataError,
    Gold,
    Image,
    Outcome,
    Question,
    Record,
    Score,
    Status,
    Text,
    UserError,
)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAINTER, CRITIC, SPEAKER, BLIND = (
    f"{HERE / file}" for file in ("painter.py:Painter", "critic.py:Critic", "critic.py:Speaker", "critic.py:Blind")
)
LAMP = Scene((Thing("lamp", "red", place="middle"),))
GREEN = Change("recolour", "lamp", value="green")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def opened(bench: Callable[..., Any], sample: Callable[[str], Path]) -> Any:
    return bench(M2CABench, sample("m2ca"))


def kept(data: bytes) -> Image:
    """A picture as a method makes it."""
    return MediaStore().keep(data, "made.png", "test")


def turn(
    task: str = "edit",
    said: str | None = "Here.",
    made: tuple[Image, ...] = (),
    view: str | None = None,
    outcome: Outcome = Outcome.OK,
    reply: str | None = None,
    **extra: Any,
) -> Asked:
    """A turn that was answered."""
    about = {"checks": [], "answer": "", "shown": [], "turn": 3} | extra
    more = {} if reply is None else {"reply": reply}
    record = Record("q", "c", 0, 0, outcome, answer=said, view=view, pictures=made, extra=more)
    return Asked(Question("q", "c", (Text("Make it green."),)), Gold(("none",), category=task, extra=about), record)


def values(unit: Asked) -> dict[str, float | None]:
    """Scores that apply."""
    found = Made().score([unit], {})
    return {name: score.value for name, score in found.items() if score.status is not Status.NOT_APPLICABLE}


# -------------------------------------------------------------------------------------------- pictures, by their pixels


def test_checks_are_held_by_the_pixels_of_the_picture_that_was_made() -> None:
    asked_for = [check.to_json() for check in checks(GREEN, [LAMP])]
    assert asked_for
    green, red = kept(png(apply(GREEN, [LAMP]))), kept(png(LAMP))
    assert values(turn(made=(green,), checks=asked_for)) == {"made": 1, "checks": 1}
    assert values(turn(made=(red,), checks=asked_for)) == {"made": 1, "checks": 0}
    assert values(turn(made=(red, green), checks=asked_for))["checks"] == 1, "the last counts"
    failed = Made().score([turn(made=(red,), checks=asked_for)], {})["checks"]
    assert failed.note == f"not held: {asked_for[0]['kind']}"
    plain = io.BytesIO()
    Pillow.open(io.BytesIO(png(apply(GREEN, [LAMP])))).convert("RGB").save(plain, "JPEG", quality=95)
    assert values(turn(made=(kept(plain.getvalue()),), checks=asked_for))["checks"] == 1, "never by what rides along"


def test_the_share_of_checks_that_hold() -> None:
    two = [check.to_json() for change in (GREEN, Change("relight", value="night")) for check in checks(change, [LAMP])]
    both = apply(Change("relight", value="night"), [apply(GREEN, [LAMP])])
    held = values(turn(made=(kept(png(both)),), checks=[one for one in two if one["kind"] == "light"]))
    assert held["checks"] == 1
    half = values(turn(made=(kept(png(apply(GREEN, [LAMP]))),), checks=two))
    assert half["checks"] == pytest.approx(sum(one["kind"] == "colour" for one in two) / len(two))


def test_a_picture_that_was_due_and_did_not_come() -> None:
    asked_for = [check.to_json() for check in checks(GREEN, [LAMP])]
    assert values(turn(checks=asked_for)) == {"made": 0, "checks": 0}
    assert values(turn("composite")) == {"made": 0}
    assert values(turn("understand", "red")) == {"unasked": 0}
    assert values(turn("pure_chat", made=(kept(png(LAMP)),))) == {"unasked": 1}


def test_a_picture_that_is_not_kept_is_named_and_not_scored() -> None:
    lost = Image("f" * 64, "image/png", 8, 8, "made.png")
    with pytest.raises(DataError, match=r"picture f{64} of an answer is not kept on this machine"):
        values(turn(made=(lost,), checks=[check.to_json() for check in checks(GREEN, [LAMP])]))


def test_what_was_no_reply_to_the_user_is_not_scored_as_one() -> None:
    assert values(turn("understand", "image 3", view="captions", answer="red")) == {}
    assert values(turn("edit", None)) == {}, "a prediction of sets alone"
    assert values(turn("edit", None, outcome=Outcome.TIMEOUT)) == {"made": 0}, "a failure is"


@pytest.mark.parametrize(
    ("said", "stated", "em", "f1"),
    [
        ("red", "Red.", 1, 1), ("The red one", "red", 0, 2 / 3), ("blue", "red", 0, 0), ("", "red", 0, 0),
        ("a red mug", "the red mug", 1, 1), ("红色", "红色。", 1, 1), ("是红色", "红色", 0, 4 / 5),
        ("12", "１２", 1, 1), ("red red", "red", 0, 2 / 3),
    ],
)  # fmt: skip
def test_words_against_the_answer_that_the_data_state(said: str, stated: str, em: float, f1: float) -> None:
    found = values(turn("understand", said, answer=stated))
    assert found["answer_em"] == em
    assert found["answer_f1"] == pytest.approx(f1)


def test_a_reply_beside_the_answer_is_the_reply() -> None:
    assert values(turn("understand", "image 3", reply="red", answer="red"))["answer_em"] == 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_words_are_compared_alike_from_both_sides(one: str, other: str) -> None:
    if words(one) and words(other):
        there, back = (values(turn("understand", a, answer=b)) for a, b in ((one, other), (other, one)))
        assert there == back
        assert (there["answer_em"] == 1) <= (there["answer_f1"] == 1)
        assert 0 <= (there["answer_f1"] or 0) <= 1


# -------------------------------------------------------------------------------------------------------------- runtime


def test_runtime_is_with_and_without_the_image_back_end() -> None:
    told = {"seconds": {"write": 0.5, "retrieve": 0.25, "generate": 4, "plan": 0.25}}
    assert runtime(told, 3.0) == {
        "wall": 3, "seconds": 5, "seconds_without_images": 1, "seconds_write": 0.5, "seconds_retrieve": 0.25,
        "seconds_plan": 0.25, "seconds_generate": 4,
    }  # fmt: skip


@pytest.mark.parametrize("told", [{}, {"seconds": None}, {"seconds": {}}, {"seconds": {"plan": "long", "x": -1}}])
def test_a_method_that_states_no_seconds_has_none(told: Any) -> None:
    assert runtime(told, 3.0) == {"wall": 3}


def test_runtime_is_told_by_the_summary_and_is_no_score(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    assert summary["runtime"]["seconds_without_images"] == 2
    assert summary["runtime"]["seconds_generate"] == 4
    assert not any("seconds" in name for name in summary["scores"])
    shown = io.StringIO()
    show_summary(Console(file=shown, width=200), summary)
    whole = summary["runtime"]["seconds"]
    assert f"by the method's own clock {whole:.3f}, without images 2.000 (write 0.250, " in shown.getvalue()
    assert cuts(run, ["wall"])[0].parts[0].own.value == pytest.approx(summary["runtime"]["wall"])


# ------------------------------------------------------------------------------------------------- quality, by a judge


async def test_the_judge_sees_the_earlier_pictures_that_the_turn_needs(opened: Any) -> None:
    made = kept(png(LAMP))
    played = await play(opened.episode("kiosk"), lambda case, items: opened.gold_answer(case))
    case = next(case for case, _ in played.cases if len(case.gold.evidence) == 2 and len(case.question.parts) == 1)
    record = Record(case.question.id, "kiosk", 0, 0, Outcome.OK, answer="Here.", pictures=(made,))
    parts = Quality().ask([Asked(case.question, case.gold, record)]).parts()
    there = {item.id: item.parts[0] for item in played.items}
    needed = [there[evidence.item] for evidence in case.gold.evidence]
    assert [(p.sha256, p.width) for p in parts if isinstance(p, Image)] == [
        *((image.sha256, image.width) for image in needed if isinstance(image, Image)), (made.sha256, made.width),
    ]  # fmt: skip
    told = "".join(part.text for part in parts if isinstance(part, Text))
    assert all(f"image {number}: " in told for number in case.gold.extra["gold"])
    assert case.question.text() in told


async def test_an_upload_of_the_turn_is_shown_once(opened: Any) -> None:
    played = await play(opened.episode("kiosk"), lambda case, items: opened.gold_answer(case))
    case = next(case for case, _ in played.cases if len(case.question.parts) > 1)
    record = Record(case.question.id, "kiosk", 0, 0, Outcome.OK, answer="Here.", pictures=(kept(png(LAMP)),))
    shown = [
        part.sha256
        for part in Quality().ask([Asked(case.question, case.gold, record)]).parts()
        if isinstance(part, Image)
    ]
    assert len(shown) == len(set(shown)) == len({one[1] for one in case.gold.extra["shown"]}) + 1


def test_what_needs_no_judge() -> None:
    due = Quality().score([turn("edit", "I cannot.")], {})
    assert {score.value for score in due.values()} == {0}
    assert due["quality"].note == "no picture was made"
    assert Quality().score([turn("edit", "Here.", (kept(png(LAMP)),))], {}) == {}
    assert Quality().score([turn("understand", "red")], {}) == {}
    shown = Quality().score([turn("understand", "image 1", view="pixels")], {})
    assert {score.status for score in shown.values()} == {Status.NOT_APPLICABLE}


def test_the_papers_folds(opened: Any) -> None:
    def row(task: str, number: int, quality: float) -> ScoreRow:
        return ScoreRow(f"q{number}", "s", task, "s", {"quality": Score(quality)}, None, f"s:{number}")

    found = opened.report(
        [
            row("generate", 1, 9),
            row("edit", 2, 8),
            row("composite", 11, 4),
            row("understand", 12, 7),
            row("pure_chat", 3, 5),
        ]
    )
    assert {name: value for name, value in found.items() if name.startswith("quality ")} == {
        "quality Overall": 6.6, "quality Overall 1-10": pytest.approx(22 / 3), "quality Overall 11-20": 5.5,
        "quality Gen": 9, "quality Gen 1-10": 9, "quality Edit": 6, "quality Edit 1-10": 8, "quality Edit 11-20": 4,
        "quality Understand-Chat": 6, "quality Understand-Chat 1-10": 5, "quality Understand-Chat 11-20": 7,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------------- a run to its end


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with eight sessions of the sample, for there to be clusters, and a run on them."""
    root = tmp_path_factory.mktemp("once")
    shutil.copytree(ROOT / "benchmarks/m2ca/sample/images", root / "many/images")
    (root / "many/sessions").mkdir()
    for place in range(8):
        session = json.loads((ROOT / "benchmarks/m2ca/sample/sessions/lake.json").read_text())
        (root / f"many/sessions/{place}.json").write_text(json.dumps(session | {"session_id": f"lake-{place}"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMHARNESS_HOME", str(root / "home"))
        execute(RunSpec(PAINTER, "m2ca", reader="extractive", data=str(root / "many"), out=str(root / "out")), Quiet())
    return root


@pytest.fixture
def many(once: Path, tmp_path: Path) -> Path:
    """The sessions, to be changed."""
    return Path(shutil.copytree(once / "many", tmp_path / "many"))


@pytest.fixture
def run(once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run, to be judged and spoilt, where its pictures are kept."""
    monkeypatch.setenv("MEMHARNESS_HOME", str(once / "home"))
    (made,) = (once / "out/runs").iterdir()
    return Path(shutil.copytree(made, tmp_path / "out/runs" / made.name))


def test_a_run_keeps_its_pictures_and_verifies_anywhere(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    made = {picture["image"] for record in records for picture in record.get("pictures", ())}
    assert made
    assert made <= set(pictures(RunFolder(run)))
    assert verify(run) == []
    packed = bundle(run, tmp_path / "run.zip").path
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "elsewhere"))
    assert verify_bundle(packed) == []
    assert MediaStore().open(Image(sorted(made)[0], "image/png", 16, 16)).size == (16, 16)


def test_a_run_whose_pictures_are_gone_is_not_bundled_with_them(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(DataError, match=r"an answer's picture [0-9a-f]{64} is not kept on this machine"):
        bundle(run, tmp_path / "run.zip")


def test_the_traces_of_readout_and_answer_are_both_kept(run: Path) -> None:
    record = json.loads((run / "records.jsonl").read_text().splitlines()[0])
    assert record["trace"]["seen"] == 0
    assert record["trace"]["seconds"]["plan"] == 1


def test_cuts_beside_all_floors(run: Path) -> None:
    (found,) = cuts(run)
    whole, parts = found.parts[0], {part.name: part for part in found.parts}
    floors = {"always empty", "last picture", "first picture", "all pictures", "a random picture", "BM25 on captions"}
    assert floors <= set(whole.floors)
    assert whole.ceiling
    assert whole.ceiling.value == 1
    assert whole.own == whole.floors["last picture"], "it takes the last picture"
    assert whole.own.clusters == 8
    assert whole.floors["always empty"].value == pytest.approx(3 / 8)
    assert parts["0"].floors["always empty"].value == 1
    assert {part.kind for part in found.parts} == {
        "", "turns", "pictures needed", "span", "task", "task as the paper folds", "such tasks by turns", "difficulty",
        "tag", "negative", "language",
    }  # fmt: skip
    assert (parts["zh"].own.n, parts["1-10"].own.n) == (64, 64)


def test_cuts_of_the_paper(opened: Any) -> None:
    about = {"turn": 11, "difficulty": "very_hard", "tags": ["a", "b"], "refs": 2, "span": 9, "negatives": "none"}
    found = opened.cuts(Gold(("x",), category="composite", extra=about | {"lang": "en"}))
    assert found == {
        "turns": ("11-20",), "very_hard": ("very_hard@11-20",), "pictures needed": ("2 or more",),
        "span": ("8 or more",), "task": ("composite",), "task as the paper folds": ("Edit",),
        "such tasks by turns": ("Edit 11-20",),
        "difficulty": ("very_hard",), "tag": ["a", "b"], "negative": ("none",), "language": ("en",),
    }  # fmt: skip
    early = opened.cuts(Gold(("x",), category="pure_chat", extra=about | {"turn": 10, "refs": 0, "span": 0}))
    assert (early["turns"], early["very_hard"], early["pictures needed"], early["span"]) == (("1-10",), (), ("0",), ())
    assert opened.cuts(Gold(("x",), category="edit", extra=about | {"turn": 21}))["turns"] == ("21 and later",)


def test_a_run_is_judged_by_what_its_judge_sees(run: Path) -> None:
    before = (run / "scores.jsonl").read_bytes()
    summary = judge(run, [CRITIC, SPEAKER], None, Quiet())
    one, other = summary["judgements"]
    assert one["rubric"]["rubric"] == "m2ca.v1"
    assert {one["asked"], other["asked"]} == {"schema", "words"}
    assert one["scores"] == other["scores"]
    quality = one["scores"]["quality"]
    assert (quality["n"], quality["clusters"]) == (64, 8)
    assert set(one["official"]) >= {"quality Overall", "quality Edit", "quality Understand-Chat 1-10"}
    (agreement,) = summary["agreement"]
    assert agreement["alpha"] == 1
    assert (run / "scores.jsonl").read_bytes() == before
    assert verify(run) == []
    found = cuts(run, ["quality"])
    assert [cut.score for cut in found] == [f"quality by {CRITIC}", f"quality by {SPEAKER}"]
    assert found[0].parts[0].own.value == quality["value"]
    assert not found[0].parts[0].floors


def test_a_judges_error_is_no_number(many: Path, tmp_path: Path) -> None:
    for file in (many / "sessions").iterdir():
        session = json.loads(file.read_text())
        session["turns"][3]["user_text"] = "Is a kite hard to fly?"
        file.write_text(json.dumps(session))
    spec = RunSpec(PAINTER, "m2ca", reader="extractive", data=str(many), judge=CRITIC, out=str(tmp_path / "out"))
    summary = execute(spec, Quiet())
    quality = summary["scores"]["quality"]
    assert (quality["judge_error"], quality["n"], quality["n_valid"]) == (8, 64, 56)
    assert verify(Path(summary["run"])) == []


def test_a_judge_that_sees_nothing_is_refused_before_anything_is_asked(run: Path, many: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="blind sees no pictures, and Quality shows them; name one that does"):
        judge(run, [BLIND], None, Quiet())
    spec = RunSpec(PAINTER, "m2ca", reader="extractive", data=str(many), judge=BLIND, out=str(tmp_path / "other"))
    with pytest.raises(UserError, match="sees no pictures"):
        execute(spec, Quiet())
    assert not (tmp_path / "other").exists()


def test_a_score_without_floors_says_so_and_a_score_of_0_for_all_too(run: Path) -> None:
    (seconds,) = cuts(run, ["seconds_without_images"])
    assert seconds.parts[0].own.value == 2
    assert seconds.notes == ["seconds_without_images: no floors, since an answer alone gives no such score"]
    (made,) = cuts(run, ["made"])
    assert made.notes == ["made: every floor scores 0 on it"]
    assert made.parts[0].ceiling
    assert made.parts[0].ceiling.value == 1


# -------------------------------------------------------------------------------------------- free memory, predictions


async def test_what_the_judge_is_shown_of_a_free_memory_is_what_the_method_made(
    bench: Callable[..., Any], sample: Callable[[str], Path]
) -> None:
    opened = bench(M2CABench, sample("m2ca"), memory="free")
    mine = kept(png(LAMP))
    played = await play(
        opened.episode("lake"),
        lambda case, items: Answer("Here.", (mine,) if case.gold.category == "edit" else ()),
    )
    shown = {tuple(one[:2]) for case, _ in played.cases for one in case.gold.extra["shown"]}
    assert ("image 1", mine.sha256) in shown
    assert ("image 0", None) in shown, "it was never made"
    floor = next(floor for floor in opened.floors() if floor.name == "BM25 on captions")
    played = await play(opened.episode("kiosk"), lambda case, items: Answer("No."))
    taken = [floor.answer(case, played.items[: case.gold.extra["items"]]).readout for case, _ in played.cases]
    assert any(readout and readout.evidence for readout in taken), "captions are the data's"


def test_other_peoples_replies_and_pictures(opened: Any, tmp_path: Path) -> None:
    from memharness.run.evaluate import evaluate

    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "2.png").write_bytes(png(LAMP))
    rows: list[dict[str, Any]] = [{"session_id": "lake", "turn": number, "images": []} for number in range(1, 9)]
    rows[1] |= {"picture": "2.png", "reply": "Here."}
    rows[2] |= {"reply": "I cannot."}
    (folder / "sets.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = evaluate("m2ca", None, folder / "sets.jsonl", {}, "lake")
    assert found.scores["made"] == 1 / 2, "turns without a reply are not held to have made nothing"
    for picture, said in (("3.png", "is not there"), ("../../x.png", "lies outside")):
        (folder / "bad.jsonl").write_text(json.dumps(rows[0] | {"picture": picture}))
        with pytest.raises(DataError, match=rf"picture: .*{said}"):
            list(opened.predictions(folder / "bad.jsonl"))
    (folder / "2.png").write_text("no picture")
    with pytest.raises(DataError, match=r"picture: is not a readable picture"):
        list(opened.predictions(folder / "sets.jsonl"))


# ------------------------------------------------------------------------------------------- checks of the data, naming


def test_checks_of_the_data(opened: Any, change: Callable[..., None]) -> None:
    asked_for = [check.to_json() for check in checks(GREEN, [LAMP])]
    change(opened.data.path / "sessions/lake.json", lambda value: value["turns"][1].update(checks=asked_for))
    assert opened.sessions["lake"].turns[1].checks == tuple(asked_for)
    assert opened.sessions["kiosk"].turns[1].checks == ()


@pytest.mark.parametrize(
    ("checks_given", "said"),
    [
        ([{"kind": "colour"}], r"turn 1: check 0: check: not a check"),
        (
            [{"kind": "smell", "expected": "x", "thing": None, "scene": {"things": []}}],
            r"check: check 'smell' is none of",
        ),
        (["red"], r"check 0: must be a mapping"),
        ({}, r"checks: must be a list"),
    ],
)
def test_faults_of_checks(opened: Any, change: Callable[..., None], checks_given: Any, said: str) -> None:
    change(opened.data.path / "sessions/lake.json", lambda value: value["turns"][1].update(checks=checks_given))
    with pytest.raises(DataError, match=said):
        opened.sessions  # noqa: B018


WEAVE = {
    "idx": 1,
    "domain": "recall",
    "images": ["a.jpg", "b.jpg"],
    "captions": ["A red coat.", "A green coat"],
    "chats": [
        {"role": "user", "type": "text", "content": "Make the coat of Image #1 green."},
        {"role": "assistant", "type": "image", "content": "Image #2"},
        {"role": "user", "type": "text", "content": "Is Image #1 or Image #2 warmer?"},
        {"role": "assistant", "type": "text", "content": "Neither."},
    ],
}


def weave(folder: Path, **changed: Any) -> Path:
    """A folder in WEAVEBench's layout."""
    folder.mkdir(exist_ok=True)
    (folder / "test.json").write_text(json.dumps([{k: v for k, v in (WEAVE | changed).items() if v is not None}]))
    return folder


async def test_pictures_named_by_caption_keep_their_gold(bench: Callable[..., Any], tmp_path: Path) -> None:
    opened = bench(M2CABench, weave(tmp_path / "weave"), naming="implicit")
    played = await play(opened.episode("1"), lambda case, items: opened.gold_answer(case))
    assert [case.question.text() for case, _ in played.cases] == [
        "Make the coat of the picture “A red coat” green.",
        "Is the picture “A red coat” or the picture “A green coat” warmer?",
    ]
    assert [case.gold.extra["gold"] for case, _ in played.cases] == [[1], [1, 2]]
    assert [case.gold.category for case, _ in played.cases] == ["edit", "understand"]
    plain = bench(M2CABench, weave(tmp_path / "weave"))
    assert "Image #1" in plain.sessions["1"].turns[0].text


@pytest.mark.parametrize(
    ("captions", "said"),
    [
        (
            None,
            r"captions: holds none for Image #1, which a turn names; write one an image \(WEAVEBench publishes none\)",
        ),
        (["", "x"], r"captions: holds none for Image #1"),
        (["x"], r"captions: 1 where 2 images are; write one an image"),
    ],
)
def test_captions_that_are_missing_are_named(
    bench: Callable[..., Any], tmp_path: Path, captions: Any, said: str
) -> None:
    opened = bench(M2CABench, weave(tmp_path / "weave", captions=captions), naming="implicit")
    with pytest.raises(DataError, match=said):
        opened.contexts()


def test_pages_show_what_was_made(run: Path, tmp_path: Path) -> None:
    folder = write([run], tmp_path / "look").parent
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    made = {picture["image"] for line in lines for picture in line.get("pictures", ())}
    assert made and all((folder / "media" / f"{sha[:12]}.png").is_file() for sha in made)
    shown = "".join(file.read_text() for file in sorted((folder / "data").glob("r0-q-*.js")))
    assert all(sha in shown for sha in made)
