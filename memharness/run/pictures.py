"""The pictures of a run: those its questions show, those of the evidence recalled, and those that answers brought."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memharness.benchmark import Ask, Episode, Observe
from memharness.identity import digest, file_digest
from memharness.media import MediaStore
from memharness.registry import plugin
from memharness.run.data import open_benchmark
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.spec import RunSpec
from memharness.run.wire import case_in, image_in
from memharness.types import Answer, DataError, Image, Part, Question

SUFFIXES = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif", "image/bmp": ".bmp"}


@dataclass(frozen=True)
class Picture:
    """A picture and the file that holds it, whose bytes have its hash."""

    image: Image
    path: Path

    @property
    def name(self) -> str:
        """`<sha256>.jpg`: a file name that says nothing of where it came from."""
        return f"{self.image.sha256}{SUFFIXES.get(self.image.mime, '')}"


@dataclass
class _Wanted:
    """What is looked for in a context: items by id, pictures of questions by hash; and what was answered there."""

    made: bool = False
    items: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    answers: dict[str, Answer] = field(default_factory=dict)


def pictures(folder: RunFolder) -> dict[str, Picture]:
    """Pictures by hash, in order of hashes. Videos are not among them, nor pictures a method made and never showed.

    Raises:
        DataError: if the run's data are not at hand or not the same any more, or a picture's file is gone or changed.
    """
    wanted = _wanted(folder)
    if not wanted:
        return {}
    manifest = folder.manifest()
    spec = RunSpec.from_json(manifest["spec"], str(folder.manifest_path))
    media = MediaStore()
    benchmark = open_benchmark(spec.bench, spec.data, dict(spec.bench_options), media)
    with plugin(f"benchmark {spec.bench}"):
        same = digest(benchmark.digest()) == manifest["described"]["memory"]["data"]
    if not same:
        raise DataError(f"{benchmark.data.path}: not the data of this run; without them its pictures cannot be found")
    found = _made(folder, media)
    with plugin(f"benchmark {spec.bench}"):
        benchmark.contexts(spec.subset)
    for context, sought in wanted.items():
        with plugin(f"benchmark {spec.bench}: context {context}"):
            episode = benchmark.episode(context)
            images = [] if episode.live and not benchmark.card.images else asyncio.run(_images(episode, sought))
        for image in images:
            found.setdefault(str(image.sha256), Picture(image, media.path(image)))
    for sha, picture in found.items():
        if file_digest(picture.path) != sha:
            raise DataError(f"{picture.path}: is not the picture that the run saw; fetch the data again")
    return dict(sorted(found.items()))


def _made(folder: RunFolder, media: MediaStore) -> dict[str, Picture]:
    """The pictures that answers brought."""
    found: dict[str, Picture] = {}
    for record, _ in pairs(folder):
        for image in map(image_in, record.get("pictures", ()) if record else ()):
            try:
                found.setdefault(str(image.sha256), Picture(image, media.path(image)))
            except DataError:
                raise DataError(
                    f"{folder.path}: an answer's picture {image.sha256} is not kept on this machine; run again with "
                    "--fresh, or leave pictures out"
                ) from None
    return found


def _wanted(folder: RunFolder) -> Mapping[str, _Wanted]:
    wanted: dict[str, _Wanted] = {}
    for record, gold in pairs(folder):
        if record is None:
            continue
        sought = wanted.setdefault(record["context"], _Wanted())
        sought.items.update(row[0] for row in record.get("evidence", ()))
        sought.shown.update(str(image.sha256) for image in asked_pictures(case_in(gold).question))
        brought = tuple(map(image_in, record.get("pictures", ())))
        sought.made = sought.made or bool(brought)
        sought.answers[record["question"]] = Answer(record.get("answer"), brought)
    return {context: sought for context, sought in wanted.items() if sought.items or sought.shown or sought.made}


def asked_pictures(question: Question) -> list[Image]:
    """The pictures that a question and its options show, as far as they are at hand."""
    return _at_hand([*question.parts, *(part for choice in question.choices for part in choice.parts)])


def _at_hand(parts: Iterable[Part]) -> list[Image]:
    return [part for part in parts if isinstance(part, Image) and not part.missing]


async def _images(episode: Episode, sought: _Wanted) -> list[Image]:
    """The pictures sought in an episode, which is played with the answers given then.

    A benchmark may make pictures only as they are asked about (frames of videos), and a live one shows what comes of an
    answer.
    """
    found: dict[str, Image] = {}
    events = episode.play()
    answers: list[Answer] | None = None
    try:
        while True:
            event = await (anext(events) if answers is None else events.asend(answers))
            answers = None
            if isinstance(event, Observe):
                parts = [part for item in event.items if item.id in sought.items for part in item.parts]
                found |= {str(image.sha256): image for image in _at_hand(parts)}
            elif isinstance(event, Ask) and episode.live:
                questions = [case.question for case in event.cases]
                found |= _shown(sought, questions)
                answers = [sought.answers.get(question.id, Answer(None)) for question in questions]
            elif isinstance(event, Ask):
                found |= _shown(sought, (case.question for case in event.cases))
    except StopAsyncIteration:
        return list(found.values())
    finally:
        await events.aclose()


def _shown(sought: _Wanted, questions: Iterable[Question]) -> dict[str, Image]:
    """Pictures of questions, until all that are sought are found: later ones need not be made."""
    found: dict[str, Image] = {}
    images = (image for question in questions for image in asked_pictures(question))
    while len(found) < len(sought.shown) and (image := next(images, None)) is not None:
        if str(image.sha256) in sought.shown:
            found[str(image.sha256)] = image
    return found
