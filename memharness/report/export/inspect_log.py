"""A run as an inspect_ai log (`.eval`, log format version 2), which its viewer and its `read_eval_log` open.

The format is a zip: `header.json` (what was evaluated, and the figures), `samples/<id>_epoch_1.json` (one question
each), `summaries.json` (what a list shows of each), `_journal/start.json` (how it began). inspect_ai itself is not
needed. A score without a value stays out of its sample, since the format has no place for one: what failed is the
sample's error.
"""

from __future__ import annotations

import base64
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import memharness
from memharness.benchmark import ScoreRow
from memharness.identity import opaque_id
from memharness.ledger import PHASES
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.pictures import Picture, asked_pictures
from memharness.run.score import rows
from memharness.run.summary import Summary
from memharness.run.wire import case_in
from memharness.store import encode
from memharness.types import Case, Outcome, Part, part_text, parts_text

VERSION = 2
FIXED = (1980, 1, 1, 0, 0, 0)
FIT = re.compile(r"[A-Za-z0-9._-]{1,120}")  # an id that may stand in a member's name as it is
SHOWN = re.compile(r"<image ([0-9a-f]{12})>")
LISTED = 1_000  # characters of a text that the list of samples shows

Json = dict[str, Any]


def write_log(folder: RunFolder, out: Path, summary: Summary, media: Mapping[str, Picture]) -> None:
    """Write the log, question by question.

    Args:
        folder: a scored run.
        out: the file; it ends with `.eval`.
        summary: the run's summary.
        media: pictures by hash, which then stand in the samples; without them their place says `<image 1a2b…>`.
    """
    scored: dict[str, ScoreRow] = {}
    for row in rows(folder):
        scored.setdefault(row.unit, row)
    images = {sha[:12]: picture for sha, picture in media.items()}
    summaries: list[Json] = []
    names: set[str] = set()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        start = _start(folder, summary)
        _put(archive, "_journal/start.json", {"version": VERSION, **start})
        for record, line in pairs(folder):
            if record is None:
                continue
            sample = _sample(record, case_in(line), scored.get(record["question"]), summary["reader"], images)
            if not FIT.fullmatch(sample["id"]) or sample["id"] in names:  # it becomes the name of a member
                sample["id"] = sample["uuid"]
            names.add(sample["id"])
            _put(archive, f"samples/{sample['id']}_epoch_1.json", sample)
            summaries.append(_summary(sample))
        _put(archive, "summaries.json", summaries)
        start["eval"]["dataset"]["sample_ids"] = [one["id"] for one in summaries]
        _put(archive, "header.json", {"version": VERSION, **start, **_ended(folder, summary, summaries)})


def _put(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    info = zipfile.ZipInfo(name, FIXED)
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    archive.writestr(info, encode(value))


def _start(folder: RunFolder, summary: Summary) -> Json:
    """What was evaluated, and the plan: the method stands where inspect_ai has its solver."""
    manifest = folder.manifest()
    memory, identity = manifest["described"]["memory"], manifest["identity"]["reply"]
    commit, _, dirty = (manifest["git"] or "").partition("+")
    asked = {name: summary.get(name) for name in ("budget", "items", "view", "seed", "subset", "prompt", "until")}
    spec: Json = {
        "eval_id": identity[:22],
        "run_id": identity[:22],
        "created": manifest["created"],
        "task": summary["bench"],
        "task_id": identity[:22],
        "task_version": memory["benchmark_version"],
        "task_args": memory["options"],
        "task_args_passed": manifest["spec"]["bench_options"],
        "solver": summary["method"],
        "solver_args": memory["config"],
        "tags": ["memharness", summary["data_state"], f"{summary['track']} track"],
        "dataset": {"name": summary["bench"], "samples": summary["n"], "shuffled": False},
        "model": summary["reader"],
        "model_generate_config": {"max_tokens": manifest["spec"]["max_tokens"], "temperature": 0.0},
        "config": {"epochs": 1},
        "packages": {"memharness": memharness.__version__},
        "metadata": {
            "identity": identity,
            "data_digest": summary["data_digest"],
            **{name: value for name, value in asked.items() if value is not None},
        },
    }
    if commit:
        spec["revision"] = {"type": "git", "origin": "", "commit": commit[:12], "dirty": bool(dirty)}
    steps = [{"solver": summary["method"], "params": memory["config"]}]
    return {"eval": spec, "plan": {"name": "plan", "steps": steps, "config": {}}}


def _ended(folder: RunFolder, summary: Summary, summaries: Sequence[Json]) -> Json:
    """How it ended: the figures, and what it cost."""
    done = folder.path / "DONE"
    created = folder.manifest()["created"]
    scores = [
        {
            "name": name,
            "scorer": name,
            "scored_samples": one["n_valid"],
            "unscored_samples": one["n"] - one["n_valid"],
            "params": {},
            "metrics": {
                label: {"name": label, "value": value, "params": {}}
                for label, value in _metrics(one)
                if value is not None
            },
        }
        for name, one in sorted(summary["scores"].items(), key=lambda pair: pair[0] != summary["primary"])
    ]
    failed = sum(summary["outcomes"].get(outcome, 0) for outcome in Outcome if not outcome.final)
    return {
        "status": "success",
        "results": {"total_samples": len(summaries), "completed_samples": len(summaries) - failed, "scores": scores},
        "stats": {
            "started_at": created,
            "completed_at": done.read_text("utf-8").strip() if done.is_file() else created,
            "model_usage": {summary["reader"]: _usage(summary["tokens"])},
        },
    }


def _metrics(one: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    yield "mean", one["value"]
    yield "mean_valid", one["value_valid"]
    yield "ci_low", one["low"]
    yield "ci_high", one["high"]


def _sample(
    record: Mapping[str, Any], case: Case, row: ScoreRow | None, model: str, images: Mapping[str, Picture]
) -> Json:
    question, gold = case.question, case.gold
    answer = record.get("answer")
    usage = _usage(record.get("spent", {}))
    reply = {"role": "assistant", "content": answer or "", "source": "generate", "model": model}
    sample: Json = {
        "id": question.id,
        "epoch": 1,
        "input": [{"role": "user", "content": _parts(question.parts, images)}],
        "target": list(gold.answers) if len(gold.answers) != 1 else gold.answers[0],
        "messages": [],
        "output": {"model": model, "choices": [], "completion": answer or ""},
        "scores": _scores(row, answer) if row else {},
        "metadata": _metadata(record, case),
        "store": {},
        "events": [],
        "model_usage": {model: usage},
        "role_usage": {},
        "attachments": {},
        "total_time": record["seconds"],
        "working_time": record["seconds"],
        "uuid": opaque_id(record["context"], question.id),
    }
    if question.choices:
        sample["choices"] = [parts_text(choice.parts) for choice in question.choices]
    if prompt := record.get("prompt"):
        sample["messages"].append({"role": "user", "content": _prompt(prompt, images), "source": "input"})
    if answer is not None:
        sample["messages"].append(reply)
        stop = "max_tokens" if "truncated" in record.get("flags", ()) else "stop"
        sample["output"] |= {"choices": [{"message": reply, "stop_reason": stop}], "usage": usage}
    if record["outcome"] != Outcome.OK:
        error = record.get("error", {})
        said = f"{record['outcome']}: {error.get('message', '')}".rstrip(": ")
        sample["error"] = {"message": said, "traceback": error.get("where", ""), "traceback_ansi": ""}
    return sample


def _metadata(record: Mapping[str, Any], case: Case) -> Json:
    """What the format has no field for, under the names of this harness."""
    gold = case.gold
    found = {
        "question": case.question.id,
        "native_id": gold.native_id,
        "context": record["context"],
        "category": gold.category,
        "cluster": gold.cluster,
        "group": gold.group,
        "outcome": record["outcome"],
        "flags": list(record.get("flags", ())),
        "evidence": [one[0] for one in record.get("evidence", ())],
        "gold_evidence": list(dict.fromkeys(one.item for one in gold.evidence)),
        "view": record.get("view"),
        "pictures": [image.sha256 for image in asked_pictures(case.question)],
    }
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def _scores(row: ScoreRow, answer: str | None) -> Json:
    return {
        name: {
            "value": score.value,
            "answer": answer,
            "explanation": score.note or None,
            "metadata": {"status": score.status.value},
            "history": [],
        }
        for name, score in row.scores.items()
        if score.value is not None
    }


def _usage(spent: Mapping[str, Mapping[str, int]]) -> Json:
    """Tokens over all phases that a question or a run has; judges are not the evaluated model."""

    def total(kind: str) -> int:
        return sum(spent.get(phase, {}).get(kind, 0) for phase in PHASES if phase != "judge")

    read, written = total("text") + total("image"), total("output")
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_cache_read": total("cached"),
        "reasoning_tokens": total("reasoning"),
    }


def _parts(parts: Sequence[Part], images: Mapping[str, Picture]) -> Any:
    """Parts as content: words alone are plain text."""
    return _prompt("".join(map(part_text, parts)), images)


def _prompt(text: str, images: Mapping[str, Picture]) -> Any:
    """Text whose `<image 1a2b…>` are the pictures themselves, where they are at hand."""
    content: list[Json] = []
    at = 0
    for found in SHOWN.finditer(text):
        if picture := images.get(found[1]):
            content += [{"type": "text", "text": text[at : found.start()]}] if found.start() > at else []
            content.append({"type": "image", "image": _inline(picture)})
            at = found.end()
    if not content:
        return text
    return content + ([{"type": "text", "text": text[at:]}] if at < len(text) else [])


def _inline(picture: Picture) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode()
    return f"data:{picture.image.mime or 'image/png'};base64,{data}"


def _summary(sample: Json) -> Json:
    """What a list of samples shows: the sample without messages, its texts cut, its pictures left out."""
    kept = ("id", "epoch", "choices", "target", "metadata", "model_usage", "role_usage", "total_time", "working_time")
    found = {name: sample[name] for name in (*kept, "uuid") if name in sample}
    said = sample["input"][0]["content"]
    text = said if isinstance(said, str) else " ".join(one.get("text", "<image>") for one in said)
    found["input"] = text[:LISTED]
    found["scores"] = {
        name: {"value": score["value"], "answer": (score["answer"] or "")[:LISTED], "history": []}
        for name, score in sample["scores"].items()
    }
    found["message_count"] = len(sample["messages"])
    found["completed"] = "error" not in sample
    return found | ({"error": sample["error"]["message"]} if "error" in sample else {})
