"""The catalogue walks itself: what every bundled benchmark holds to, whichever they are, on its sample."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmark import Benchmark, BenchmarkCard
from memharness.cli import command_line
from memharness.identity import digest
from memharness.media import MediaStore
from memharness.metric import Judged, parse_metric
from memharness.prompts import template
from memharness.registry import find
from memharness.run.api import execute
from memharness.run.data import open_benchmark, sample_path
from memharness.run.floors import GOLD, Floors, floors
from memharness.run.play import play, record_of
from memharness.run.progress import Quiet
from memharness.run.score import grouped, score_unit
from memharness.run.spec import RunSpec
from memharness.run.survey import survey
from memharness.run.wire import case_in, case_out
from memharness.types import Asked, Case, Item
from tests.run.canary import CANARY, sings
from tests.test_cards import names

NAMES = names("benchmarks")
CANARIES = Path(__file__).parents[1] / "run" / "canary.py"
CEILINGS = {  # of the primary figure on the sample, where gold as prediction does not score 1
    "locomo": 0.7956,  # category 5 has no right answer; of category 3 the scorer reads what comes before ";"
    "mem-gallery": 0.9957,  # a question has more gold turns than the ten of recall@10
    "h2hmem": 0.9167,  # gold answers made of stop words alone ("No", "Before") hold no word, as officially coded
}
PRIVATE = {  # fields of the raw data that only scoring may see, beside those that nobody knows
    "atm": {"answer"},
    "hotpotqa": {"answer", "level"},
    "locomo": {"answer", "adversarial_answer", "query"},
    "mem-gallery": {"answer", "notes", "persona_summary"},
    "2wiki": {"answer", "answer_id", "entity_ids"},
    "h2hmem": {
        *("original_answer", "difficulty", "validation_notes", "theme", "session_title", "full_summary", "main_type"),
    },
}


@dataclass(frozen=True)
class Met:
    """A case as it was asked: the items that were there, and where it stood."""

    case: Case
    there: tuple[Item, ...]
    context: str
    context_at: int
    at: int


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache for all that follows; no data prepared elsewhere are found."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("MEMHARNESS_HOME", str(folder))
        yield folder


def fresh(name: str, data: Path | None = None) -> Benchmark:
    """A benchmark on its sample, read anew."""
    return open_benchmark(name, str(data or sample_path(find("benchmarks", name))), {}, MediaStore())


@functools.cache
def opened(name: str) -> Benchmark:
    """A benchmark on its sample."""
    return fresh(name)


async def met(benchmark: Benchmark) -> list[Met]:
    """All its cases, in order, with live episodes led by gold."""
    found: list[Met] = []
    for context_at, context in enumerate(benchmark.contexts()):
        there: list[tuple[Case, tuple[Item, ...]]] = []

        def answer(case: Case, items: Sequence[Item], there: Any = there) -> Any:
            there.append((case, tuple(items)))
            return benchmark.gold_answer(case)

        await play(benchmark.episode(context), answer)
        found += [Met(case, items, context, context_at, at) for at, (case, items) in enumerate(there)]
    return found


def gold(benchmark: Benchmark, one: Met, case: Case | None = None) -> Asked:
    """A case with gold as its prediction."""
    case = case or one.case
    record = record_of(case, benchmark.gold_answer(case), one.context, one.context_at, one.at)
    return Asked(case.question, case.gold, record)


@functools.cache
def measured(name: str) -> Floors:
    """Its floors."""
    return floors(name, None, None, {})


every = pytest.mark.parametrize("name", NAMES)


# --------------------------------------------------------------------------------------------------------------- cards


@every
def test_its_card_is_complete(name: str) -> None:
    benchmark = find("benchmarks", name)
    assert issubclass(benchmark, Benchmark)
    card = benchmark.card
    assert isinstance(card, BenchmarkCard)
    assert card.name == name
    for field in ("title", "paper", "licence", "source", "revision", "cluster", "primary"):
        assert getattr(card, field), f"{name}: empty {field}"
    assert card.version >= 1
    assert card.splits
    assert all(card.splits.values())
    assert card.counts
    assert all(count > 0 for count in card.counts.values())
    assert card.assets or card.steps, "`data prepare` needs to know what to fetch, or what to tell"
    for asset in card.assets:
        assert asset.url.startswith(("https://", "http://", "hf://datasets/"))
        assert not Path(asset.path).is_absolute()
        assert ".." not in Path(asset.path).parts
    assert all(len(line) > 20 for line in (*card.reveals, *card.errata, *card.steps))
    assert template(card.prompt).messages


@every
def test_its_card_is_printed_whole(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert command_line(["show", name]) == 0
    out = capfd.readouterr().out
    card = opened(name).card
    for words in (card.licence, card.revision, card.prompt, *card.steps, *card.errata, *card.reveals):
        assert words in out
    for metric in opened(name).metrics():
        assert str(metric) in out
    for option, info in opened(name).options_class.model_fields.items():
        assert option in out
        assert str(info.description) in out
    assert "JSON lines" in out


def test_the_list_holds_them_all(capfd: pytest.CaptureFixture[str]) -> None:
    assert command_line(["list", "benchmarks", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)["benchmarks"]}
    assert set(NAMES) <= set(rows)
    assert {name: rows[name]["broken"] for name in NAMES if "broken" in rows[name]} == {}
    assert {rows[name]["data"] for name in NAMES} == {"sample"}


# ------------------------------------------------------------------------------------------------------------- samples


@every
def test_its_sample_says_who_made_it_and_checks_out(name: str) -> None:
    path = sample_path(find("benchmarks", name))
    assert path is not None
    assert any(parent.joinpath("README.md").is_file() for parent in (path, path.parent)), "who made the sample, and how"
    found = survey(opened(name))
    assert [finding for finding in found.findings if finding.level == "error"] == []
    assert found.counts["questions"] > 0
    assert found.counts["dangling evidence"] == found.counts["duplicate ids"] == 0
    assert opened(name).check(), "what `data check` says of these data"


@every
async def test_ids_are_unique_opaque_and_the_same_in_two_loads(name: str) -> None:
    first, second = [await met(fresh(name)) for _ in range(2)]
    ids = [one.case.question.id for one in first]
    native = [one.case.gold.native_id for one in first]
    assert len(set(ids)) == len(ids) == len(set(native))
    assert all(len(one) == 12 and int(one, 16) >= 0 for one in ids)
    assert [(one.context, one.case.question.id, one.case.gold.native_id) for one in second] == [
        (one.context, one.case.question.id, one.case.gold.native_id) for one in first
    ]
    assert first == second


@every
async def test_items_come_in_order_and_hold_the_gold_evidence(name: str) -> None:
    for one in await met(opened(name)):
        assert [item.order for item in one.there] == list(range(len(one.there)))
        assert {item.context for item in one.there} <= {one.context}
        assert one.case.question.context == one.context
        ids = {item.id for item in one.there}
        assert len(ids) == len(one.there)
        assert {evidence.item for evidence in one.case.gold.evidence} <= ids
        if one.there:
            assert one.case.gold.extra["items"] == len(one.there)


@every
def test_its_digest_is_plain_and_stable(name: str) -> None:
    found = fresh(name).digest()
    assert digest(found) == digest(fresh(name).digest())
    assert all(len(sha) == 64 for sha in found.values())


# ----------------------------------------------------------------------------------------------------- gold stays apart


@every
def test_gold_objects_are_not_heard_of(name: str, tmp_path: Path) -> None:
    """A canary in every field of the gold, and a run of the method that shows everything it was given."""
    bench = f"{CANARIES}:of_{name.replace('-', '_')}"
    data = str(sample_path(find("benchmarks", name)))
    spec = RunSpec(method="full-context", bench=bench, reader="extractive", data=data, out=str(tmp_path), limit="12")
    assert sings(Path(execute(spec, Quiet())["run"]), tmp_path) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name in PRIVATE])
async def test_private_fields_of_the_raw_data_are_not_heard_of(name: str, tmp_path: Path) -> None:
    """A field that no loader knows, and every field that only scoring may see, stay out of what a method is given."""
    folder = Path(shutil.copytree(str(sample_path(find("benchmarks", name))), tmp_path / "sample"))
    for path in folder.rglob("*.json"):
        lines = path.read_text("utf-8")
        whole = path.name != "id_aliases.json"  # published as JSON lines under this name
        poison = [
            json.dumps(poisoned(json.loads(one), PRIVATE[name]))
            for one in ([lines] if whole else lines.split("\n"))
            if one
        ]
        path.write_text("\n".join(poison))
    for one in await met(fresh(name, folder)):
        assert CANARY not in repr(one.there)
        assert CANARY not in repr(one.case.question)


def poisoned(value: Any, private: set[str]) -> Any:
    """JSON with the canary in private fields, and in fields nobody knows."""
    if isinstance(value, list):
        return [poisoned(one, private) for one in value]
    if not isinstance(value, dict):
        return value
    own = {
        key: f"{CANARY} 3" if key in private and isinstance(one, str | int) else poisoned(one, private)
        for key, one in value.items()
    }
    return {**own, "has_answer": CANARY, "hint": {"deep": CANARY}}


# ------------------------------------------------------------------------------------------------------------- metrics


@every
def test_metrics_print_as_they_are_parsed(name: str) -> None:
    for metric in opened(name).metrics():
        assert parse_metric(str(metric), {type(metric).__name__: type(metric)}) == metric


@every
async def test_metrics_score_gold_read_back_as_json_alike_and_under_names_of_their_own(name: str) -> None:
    benchmark = opened(name)
    metrics = [metric for metric in benchmark.metrics() if not isinstance(metric, Judged)]
    cases = await met(benchmark)
    told = [gold(benchmark, one) for one in cases]
    back = [gold(benchmark, one, case_in({**wired(one.case), "context": one.context})) for one in cases]
    scored = [await score_unit(*unit, metrics, None, override=False) for unit in grouped(told, metrics)]
    assert scored == [await score_unit(*unit, metrics, None, override=False) for unit in grouped(back, metrics)]
    judged = [metric for metric in benchmark.metrics() if isinstance(metric, Judged)]
    assert benchmark.card.primary in {score for row in scored for score in row.scores} or judged


def wired(case: Case) -> Mapping[str, Any]:
    """A case as a run's folder holds it."""
    line: dict[str, Any] = json.loads(json.dumps(case_out(case)))
    return line


# ---------------------------------------------------------------------------------------------------- floors and a run


@every
def test_gold_as_prediction_scores_its_known_ceiling(name: str) -> None:
    found = measured(name)
    assert found.leading == found.primary or found.judged
    ceiling = next(floor for floor in found.floors if floor.name == GOLD)
    assert ceiling.n == found.questions
    assert ceiling.figures[found.leading] == pytest.approx(CEILINGS.get(name, 1), abs=5e-5)


@every
def test_every_floor_runs_and_stays_below_the_ceiling(name: str) -> None:
    found = measured(name)
    rows = {floor.name: floor for floor in found.floors}
    assert len(rows) == len(found.floors)
    assert {"always empty", *(floor.name for floor in opened(name).floors())} <= set(rows)
    for floor in rows.values():
        assert floor.n > 0
        assert floor.figures
        assert floor.figures.get(found.leading, 0) <= rows[GOLD].figures[found.leading] + 1e-9


@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in NAMES), ("alfworld", {"live": True, "steps": 3})]
)
def test_the_whole_context_is_read_to_the_end(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    if options.get("live"):
        pytest.importorskip("textworld")
    spec = RunSpec(method="full-context", bench=name, bench_options=options, reader="extractive", out=str(tmp_path))
    summary = execute(spec, Quiet())
    assert summary["complete"]
    assert {outcome for outcome, n in summary["outcomes"].items() if n} == {"ok"}
    assert summary["scores"]
    assert summary["data_state"] == "sample"


def test_the_table_of_ceilings_knows_no_other_benchmark() -> None:
    assert set(CEILINGS) | set(PRIVATE) <= set(NAMES)
