"""From a spec to everything a run needs, checked before anything is spent, and to its identity."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memharness.benchmark import Ask, Benchmark, Episode, Recorded
from memharness.budget import counters
from memharness.config import build, resolved
from memharness.identity import Chain, digest
from memharness.media import MediaStore
from memharness.method import Method
from memharness.metric import must_see
from memharness.prompts import View, template
from memharness.reader import Embedder, Reader, Sampling
from memharness.registry import find, plugin, short_name, split_spec
from memharness.run.data import open_benchmark, prepared_note
from memharness.run.folder import RunFolder, code_digest, folder_name
from memharness.run.spec import RunSpec, parse_limit
from memharness.types import UserError, did_you_mean


@dataclass
class Setup:
    """Everything a run needs. Nothing is started: no weights are loaded yet."""

    spec: RunSpec
    benchmark: Benchmark
    method: Method[Any]
    roles: dict[str, str]
    readers: dict[str, Reader]
    embedder: Embedder | None
    media: MediaStore
    view: View
    chain: Chain
    described: dict[str, Any]
    code: str
    folder: RunFolder

    @property
    def sampling(self) -> Sampling:
        """How the answer reader decodes."""
        return Sampling(max_tokens=self.spec.max_tokens)

    @property
    def hosted(self) -> list[str]:
        """Specs of models in use whose calls cost money."""
        cards = {spec: reader.card for spec, reader in self.readers.items()}
        if self.embedder is not None:
            cards[self.spec.embedder] = self.embedder.card
        return sorted(spec for spec, card in cards.items() if card.hosted)

    @property
    def reads(self) -> bool:
        """Whether this run asks the answer reader."""
        return self.spec.until != "recall"


def inherit(spec: RunSpec) -> RunSpec:
    """With `--readouts RUN`, everything up to the readout is that run's."""
    if not spec.readouts:
        return spec
    before = RunSpec.from_json(RunFolder(Path(spec.readouts)).manifest()["spec"], spec.readouts)
    kept = ("method", "bench", "data", "subset", "embedder", "budget", "items", "counters", "method_options",
            "bench_options", "seed", "limit", "ids")  # fmt: skip
    return replace(spec, **{name: getattr(before, name) for name in kept})


def setup(spec: RunSpec) -> Setup:
    """Resolve a spec.

    Raises:
        UserError: for anything in it that cannot be: a name, option, path, role, capability or combination.
    """
    if "answer" in spec.models:  # the answer reader by its role
        others = {role: name for role, name in spec.models.items() if role != "answer"}
        spec = replace(spec, reader=spec.models["answer"], models=others)
    media = MediaStore()
    benchmark = open_benchmark(spec.bench, spec.data, dict(spec.bench_options), media)
    spec = replace(spec, prompt=spec.prompt or benchmark.card.prompt)
    method_class = find("methods", spec.method)
    if not (isinstance(method_class, type) and issubclass(method_class, Method)):
        raise UserError(f"--method {spec.method}: {method_class!r} is not a Method class")
    with plugin(f"method {spec.method}"):
        card = method_class.card
    _check_words(spec, card.track)
    method = _method(spec, method_class, media)
    roles = _roles(spec, method)
    readers = {
        name: make_reader(name, spec.reader_options if name == spec.reader else {}, media)
        for name in dict.fromkeys(roles.values())
    }
    if spec.judge:
        judge = readers.setdefault(spec.judge, make_reader(spec.judge, {}, media))
        must_see(spec.judge, judge.card.capabilities, benchmark.metrics())
    embedder = make_embedder(spec.embedder, media) if method.embeds() else None
    for role, needed in card.needs.items():
        if role in method.roles() and (lacking := needed - readers[roles.get(role, spec.reader)].card.capabilities):
            raise UserError(
                f"{card.name}: role {role} needs a reader with the capability {', '.join(sorted(lacking))}; "
                f"{roles.get(role, spec.reader)} has it not: bind another with --model {role}=SPEC, "
                f"or choose options that need none (`memharness show {spec.method}`)"
            )
    view = _view(spec, readers[spec.reader])
    described = _describe(spec, benchmark, method, roles, readers, embedder, view)
    chain = Chain.of(described["memory"], described["readout"], described["reply"])
    if spec.readouts:
        before = RunFolder(Path(spec.readouts)).manifest()
        if before["described"]["readout"]["view"] != view:
            raise UserError(
                f"--readouts {spec.readouts}: was made for --view {before['described']['readout']['view']}; keep it"
            )
        links = before["identity"]
        chain = Chain(links["memory"], links["readout"], digest({"readout": links["readout"], **described["reply"]}))
    plugins = [type(benchmark), method_class, *(type(reader) for reader in readers.values())]
    name = folder_name(benchmark.card.name, short_name(card.name), short_name(spec.reader), chain.reply)
    return Setup(
        spec, benchmark, method, roles, readers, embedder, media, view, chain, described,
        code_digest({Path(inspect.getfile(plugin)) for plugin in plugins}), RunFolder(Path(spec.out) / "runs" / name),
    )  # fmt: skip


def make_reader(spec: str, options: Mapping[str, Any], media: MediaStore) -> Reader:
    """A reader from its spec, not started.

    Raises:
        UserError: for an unknown name or option, or what the reader itself refuses.
    """
    name, model = split_spec("readers", spec)
    found = find("readers", name)
    if not (isinstance(found, type) and issubclass(found, Reader)):
        raise UserError(f"--reader {spec}: {found!r} is not a Reader class")
    with plugin(f"reader {spec}"):
        return found(model, build(found.config_class, options, "-R", short_name(name)), media)


def make_embedder(spec: str, media: MediaStore) -> Embedder:
    """An embedder from its spec, not started.

    Raises:
        UserError: as `make_reader`.
    """
    name, model = split_spec("embedders", spec)
    found = find("embedders", name)
    if not (isinstance(found, type) and issubclass(found, Embedder)):
        raise UserError(f"--embedder {spec}: {found!r} is not an Embedder class")
    with plugin(f"embedder {spec}"):
        return found(model, build(found.config_class, {}, "--embedder", short_name(name)), media)


def _method(spec: RunSpec, method_class: type[Method[Any]], media: MediaStore) -> Method[Any]:
    """The method with its config settled by what the readers can do."""

    def able(role: str) -> frozenset[str]:
        name = spec.models.get(role, spec.reader)
        return make_reader(name, spec.reader_options if name == spec.reader else {}, media).card.capabilities

    with plugin(f"method {spec.method}"):
        config = build(method_class.config_class, spec.method_options, "-M", spec.method)
        return method_class(method_class.settle(config, able))


def _check_words(spec: RunSpec, track: str) -> None:
    if spec.until not in (None, "recall"):
        raise UserError(f"--until {spec.until}: the only stage to stop at is recall")
    if spec.until == "recall" and track == "answer":
        raise UserError("--until recall: a method of the answer track has no recall stage")
    if spec.readouts and track == "answer":
        raise UserError("--readouts: a method of the answer track has no readouts to read again")
    if spec.readouts and spec.until:
        raise UserError("--readouts with --until recall would do nothing; leave one out")
    if spec.view not in (None, "pixels", "captions"):
        raise UserError(f"--view {spec.view}: expected pixels or captions")
    for name in ("budget", "items", "max_tokens", "concurrency", "workers"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} {value}: must be at least 1")
    if spec.timeout is not None and not spec.timeout > 0:
        raise UserError(f"--timeout {spec.timeout:g}: must be more than 0 seconds")
    if spec.max_failures < 0:
        raise UserError(f"--max-failures {spec.max_failures}: must be at least 0")
    if spec.limit is not None:
        parse_limit(spec.limit)
    template(spec.prompt)


def _roles(spec: RunSpec, method: Method[Any]) -> dict[str, str]:
    used = {**method.roles(), "answer": ("read",), "captioner": ("observe",)}
    for role in spec.models:
        if role not in used:
            raise UserError(
                f"--model {role}=…: {method.card.name} has no role {role}{did_you_mean(role, used)}; "
                f"it has: {', '.join(used)}"
            )
    bound = {"answer": spec.reader}
    bound |= {role: spec.models.get(role, bound["answer"]) for role in method.roles()}
    return bound | dict(spec.models)


def _view(spec: RunSpec, reader: Reader) -> View:
    sees = "image" in reader.card.capabilities
    if spec.view == "pixels" and not sees:
        raise UserError(f"--view pixels: {spec.reader} does not see pictures; use --view captions or another --reader")
    if spec.view is None:
        return "pixels" if sees else "captions"
    return "pixels" if spec.view == "pixels" else "captions"


def _describe(
    spec: RunSpec,
    benchmark: Benchmark,
    method: Method[Any],
    roles: Mapping[str, str],
    readers: Mapping[str, Reader],
    embedder: Embedder | None,
    view: View,
) -> dict[str, Any]:
    """What enters each link of the identity chain, in words that stand in the manifest."""

    def models(*phases: str) -> dict[str, Any]:
        return {
            role: readers[roles[role]].identity() for role, used in method.roles().items() if set(used) & set(phases)
        }

    named = counters(spec.counters, readers[spec.reader].counter)  # refuses an unknown name even where none counts
    bound = named if spec.budget is not None else ()
    memory = {
        "method": method.card.name,
        "class": f"{type(method).__module__}:{type(method).__qualname__}",
        "version": method.card.version,
        "config": resolved(method.config),
        "benchmark": benchmark.card.name,
        "benchmark_version": benchmark.card.version,
        "options": resolved(benchmark.options),
        "data": digest(benchmark.digest()),
        "subset": spec.subset,
        "models": models("observe"),
        "embedder": embedder.identity() if embedder else None,
        "seed": spec.seed,
    }
    readout = {
        "models": models("recall"),
        "budget": spec.budget,
        "items": spec.items,
        "counters": [counter.name for counter in bound],
        "view": view,
    }
    prompt = template(spec.prompt)
    reply = {
        "answer": readers[spec.reader].identity() if spec.until is None else None,
        "models": models("read", "answer"),
        "sampling": {"temperature": 0.0, "max_tokens": spec.max_tokens},
        "prompt": {"name": prompt.name, "sha256": prompt.sha256},
        "until": spec.until,
        "readouts": RunFolder(Path(spec.readouts)).manifest()["identity"]["reply"] if spec.readouts else None,
        "selection": {"limit": spec.limit, "ids": sorted(spec.ids) if spec.ids is not None else None},
    }
    data = benchmark.data
    return {
        "memory": memory,
        "readout": readout,
        "reply": reply,
        "track": method.card.track,
        "control": method.card.control,
        "features": dict(method.features()),
        "data": {"state": data.state, "name": data.path.name, "files": benchmark.digest(), **prepared_note(data)},
        "readers": {
            name: {**vars(reader.card), "capabilities": sorted(reader.card.capabilities)}
            for name, reader in readers.items()
        },
    }


# ------------------------------------------------------------------------------------------------------- selection


@dataclass(frozen=True)
class Pick:
    """A context and the questions of it that are asked; None is all of them."""

    context: str
    index: int
    live: bool
    planned: int | None
    chosen: frozenset[int] | None = None

    @property
    def count(self) -> int | None:
        """How many questions are asked, if known beforehand."""
        return self.planned if self.chosen is None else len(self.chosen)


async def picks(setup: Setup) -> list[Pick]:
    """The contexts of a run with the questions that `--limit` and `--ids` leave.

    Raises:
        UserError: for ids that no question has, or a limit that leaves nothing.
        DataError: for data that is not as published.
    """
    spec, benchmark = setup.spec, setup.benchmark
    ids = set(spec.ids) if spec.ids is not None else None
    start, stop = parse_limit(spec.limit) if spec.limit is not None else (0, None)
    out: list[Pick] = []
    found: set[str] = set()
    position = 0
    with plugin(f"benchmark {spec.bench}"):
        contexts = benchmark.contexts(spec.subset)
    for index, context in enumerate(contexts):
        with plugin(f"benchmark {spec.bench}: context {context}"):
            episode = benchmark.episode(context)
        if ids is None and spec.limit is None:
            out.append(Pick(context, index, episode.live, episode.planned))
            continue
        if episode.live and ids is not None:
            raise UserError("--ids: a live benchmark is played by whole episodes; use --limit")
        names = await _question_names(episode) if ids is not None or episode.planned is None else None
        size = len(names) if names is not None else episode.planned or 0
        chosen = {
            at
            for at in range(size)
            if position + at >= start
            and (stop is None or position + at < stop)
            and (ids is None or names is None or not ids.isdisjoint(names[at]))
        }
        if names is not None and ids is not None:
            found |= {name for at in chosen for name in names[at]}
        position += size
        if chosen:
            out.append(Pick(context, index, episode.live, episode.planned, None if episode.live else frozenset(chosen)))
        if stop is not None and position >= stop and ids is None:
            break
    if ids is not None and (unknown := sorted(ids - found)):
        raise UserError(
            f"--ids: {len(unknown)} of {len(ids)} ids name no question of {spec.bench}, first {unknown[0]!r}"
        )
    if not out or all(pick.count == 0 for pick in out):
        raise UserError(f"nothing to ask: {spec.bench} with these data and this selection has no question")
    return out


async def _question_names(episode: Episode) -> list[tuple[str, str]]:
    """Opaque and native id of each question of a recorded episode."""
    if episode.live:
        raise UserError(f"--limit: live episode {episode.context} does not say how many questions it plans")
    if isinstance(episode, Recorded):  # its play() may prepare pictures
        return [(case.question.id, case.gold.native_id) for case in episode.cases]
    names: list[tuple[str, str]] = []
    async for event in episode.play():
        if isinstance(event, Ask):
            names += [(case.question.id, case.gold.native_id) for case in event.cases]
    return names
