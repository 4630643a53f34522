"""From what the workers wrote to `records.jsonl` and `gold.jsonl`: one line a question, in benchmark order."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from memharness.run.folder import RunFolder
from memharness.store import atomic, encode, read_lines
from memharness.types import DataError, Outcome, UserError


def gather(folder: RunFolder) -> list[str]:
    """Write both files atomically. Returns notes a reader of the figures should see.

    A finished answer is final: of several attempts the first finished one counts, else the last one. A live episode's
    records are those of the session that ended it.
    """
    notes: list[str] = []
    gold_files = folder.files("gold")
    if gold_files:
        sessions = _write_gold(folder, gold_files)
        notes += _write_records(folder, sessions)
    elif not (folder.path / "gold.jsonl").is_file():
        raise UserError(f"{folder.path}: no question of this run was finished; run it again")
    return notes


class Lines:
    """Random access to lines of several files by (file, offset)."""

    def __init__(self, paths: list[Path]) -> None:
        """Open the files."""
        self.files: list[IO[bytes]] = [path.open("rb") for path in paths]

    def at(self, file: int, offset: int) -> bytes:
        """One line."""
        handle = self.files[file]
        handle.seek(offset)
        return handle.readline()

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            file.close()


def _write_gold(folder: RunFolder, paths: list[Path]) -> dict[int, tuple[str, int]]:
    """`gold.jsonl`, and for each live context the worker and session that ended it."""
    where: dict[tuple[int, int], tuple[int, int]] = {}
    when: dict[tuple[int, int], float] = {}
    live: dict[int, tuple[str, int]] = {}
    for file, path in enumerate(paths):
        for offset, line in read_lines(path):
            key = (line["context"], line.get("unit", -1))
            if "unit" not in line or line["at"] < when.get(key, 0.0):
                continue  # of a unit asked again after failures, the last counts
            where[key], when[key] = (file, offset), line["at"]
            if "session" in line:
                live[line["context"]] = (path.stem, line["session"])
    lines = Lines(paths)

    def out() -> Iterator[str]:
        for key in sorted(where):
            unit = json.loads(lines.at(*where[key]))
            for case in unit["cases"]:
                yield encode({"context": unit["name"], "context_index": unit["context"], **case}) + "\n"
            if unit.get("facts") and unit["cases"]:  # an episode that asked nothing has nothing to score
                yield encode({"context": unit["name"], "context_index": unit["context"], "facts": unit["facts"]}) + "\n"

    try:
        with atomic(folder.path / "gold.jsonl") as target:
            target.writelines(out())
    finally:
        lines.close()
    return live


def _write_records(folder: RunFolder, live: dict[int, tuple[str, int]]) -> list[str]:
    paths = folder.files("records")
    torn: list[str] = []
    columns = [array("q") for _ in range(6)]  # context, index, attempt, final, file, offset: 48 bytes a record
    for file, path in enumerate(paths):
        for offset, line in read_lines(path, torn):
            ended = live.get(line["context_index"])
            if ended is not None and ended != (path.stem, line.get("session")):
                continue
            values = (
                line["context_index"],
                line["index"],
                line["attempt"],
                Outcome(line["outcome"]).final,
                file,
                offset,
            )
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    context, index, attempt, final, files, offsets = columns
    order = sorted(range(len(context)), key=lambda i: (context[i], index[i], attempt[i]))
    lines = Lines(paths)
    twice = 0

    def out() -> Iterator[str]:
        nonlocal twice
        start = 0
        while start < len(order):
            end = start
            while end < len(order) and (context[order[end]], index[order[end]]) == (
                context[order[start]],
                index[order[start]],
            ):
                end += 1
            group = order[start:end]
            finished = [i for i in group if final[i]]
            twice += len(finished) > 1
            chosen = finished[0] if finished else group[-1]
            raw = lines.at(files[chosen], offsets[chosen]).decode()
            if len(group) > 1:
                record = json.loads(raw)
                record["attempts"] = len(group)
                if len(finished) > 1:
                    record["flags"] = [*record.get("flags", ()), "finished_twice"]
                raw = encode(record) + "\n"
            yield raw
            start = end

    try:
        with atomic(folder.path / "records.jsonl") as target:
            target.writelines(out())
    finally:
        lines.close()
    notes = []
    if torn:
        notes.append(
            f"{len(torn)} torn last line(s) dropped ({', '.join(sorted(set(torn)))}): a worker was killed while writing"
        )
    if twice:
        notes.append(f"{twice} question(s) have more than one finished attempt; the first counts")
    return notes


def pairs(folder: RunFolder) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any]]]:
    """(record, gold line) of each question in order; a facts line comes as (None, line) after its context's questions.

    Raises:
        DataError: if the two files do not match.
    """
    records = read_lines(folder.path / "records.jsonl")
    for _, gold in read_lines(folder.path / "gold.jsonl"):
        if "facts" in gold:
            yield None, gold
            continue
        _, record = next(records, (0, None))
        if record is None or record.get("question") != gold.get("question"):
            raise _mismatch(folder, gold.get("question"))
        yield record, gold
    if (left := next(records, None)) is not None:
        raise _mismatch(folder, left[1].get("question"))


def _mismatch(folder: RunFolder, question: object) -> DataError:
    return DataError(
        f"{folder.path}: gold.jsonl and records.jsonl do not match at question {question}; one of them was changed or "
        "the run is not finished: run the same command again, with --fresh if it was finished"
    )
