"""Writes the ATM sample in the layout of ATM-Bench: questions, a NIAH pool, raw and processed memory."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from samples.atm_mail import EMAILS
from samples.atm_media import FILMS, PHOTOS, PLACES, Film, Photo
from samples.atm_questions import HARD, QUESTIONS, Question
from samples.avi import motion_jpeg
from samples.drawing import exif, jpeg
from samples.text import as_json, readme

FOLDER = "benchmarks/atm/sample"
MAKER, MODEL = "Fernlight", "F4"
FRAMES, RATE, LARGEST = 10, 2, 58_000  # stills, stills a second, bytes a film
POOL = 25
CAMERA: dict[str, dict[str, float]] = {
    "day": {"f_number": 1.8, "exposure_time": 0.002, "iso": 50, "focal_length": 5.4, "flash": 16, "white_balance": 0},
    "room": {"f_number": 1.8, "exposure_time": 0.02, "iso": 250, "focal_length": 5.4, "flash": 16, "white_balance": 0},
    "night": {"f_number": 1.8, "exposure_time": 0.1, "iso": 1250, "focal_length": 5.4, "flash": 16, "white_balance": 0},
}
HOLDS = (
    "{emails} e-mails, {photos} photos and {films} films of one invented year, with {questions} questions, {hard} hard"
    " questions and a needle-in-a-haystack pool of {pool} items for each of these"
)
ORIGIN = (
    "The person, the addresses, the firms, every sentence and every picture were made up and drawn, and the captions"
    " written by hand to read like a captioning model's,"
)


def taken(id: str) -> str:
    """Return the local time in a media id, `20240106_101512`, as "2024-01-06 10:15:12"."""
    return f"{id[:4]}-{id[4:6]}-{id[6:8]} {id[9:11]}:{id[11:13]}:{id[13:]}"


def in_utc(local: str) -> str:
    """Return a British or Portuguese local time of 2024 in UTC, as film files keep it: one hour back in summer."""
    summer = "2024-03-31 01" <= local < "2024-10-27 02"
    return str(datetime.fromisoformat(local + ("+01:00" if summer else "+00:00")).astimezone(UTC))


def record(question: Question) -> dict[str, Any]:
    """Return one question in the native layout."""
    kind, words, answer, evidence, note = question
    id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"memharness/atm-sample/{words}"))
    return {
        "id": id,
        "question": words,
        "answer": answer,
        "notes": note,
        "evidence_ids": evidence.split(),
        "qtype": kind,
    }


def pooled(questions: list[dict[str, Any]], everything: list[str]) -> list[dict[str, Any]]:
    """Return the questions with pools of `POOL` ids: the evidence, and others drawn by the question's id."""
    rows = []
    for question in questions:
        dice = random.Random(question["id"])
        others = [id for id in everything if id not in question["evidence_ids"]]
        pool = question["evidence_ids"] + dice.sample(others, POOL - len(question["evidence_ids"]))
        dice.shuffle(pool)
        rows.append({**question, "niah_evidence_ids": pool})
    return rows


def where(place: str | None) -> dict[str, Any]:
    """Return the location fields of a photo or film; all null where there is no GPS."""
    if place is None:
        return {"location": None, "location_name": None, "city": None}
    found = PLACES[place]
    return {"location": list(found.spot), "location_name": found.address, "city": found.city}


def derived(item: Photo | Film) -> dict[str, Any]:
    """Return the fields that a captioning model would have filled in."""
    pairs = [pair.rsplit(":", 1) for pair in item.entities.split("; ") if pair]
    return {
        "caption": item.caption,
        "short_caption": item.short,
        "tags": item.tags.split(", "),
        "entities": [{"entity": name, "type": kind} for name, kind in pairs],
        "ocr_text": item.ocr,
        "safety_content": "safe",
    }


def photo(item: Photo) -> tuple[bytes, dict[str, Any]]:
    """Return a photo's file and its processed row."""
    settings, time = CAMERA[item.light], taken(item.id)
    spot = PLACES[item.place].spot if item.place else None
    body = jpeg(item.draw().done(shift=item.shift, light=item.bright), exif=exif(time, spot, MAKER, MODEL, settings))
    row = {
        "image_path": f"data/raw_memory/image/{item.id}.jpg",
        "file_size": len(body),
        "file_modified": time,
        "processed_at": "2025-01-02 09:00:00",
        "timestamp": time,
        **where(item.place),
        "camera_settings": settings,
        **derived(item),
        "processing_version": "1.1",
        "model_used": "none:written-by-hand",
    }
    return body, row


def film(item: Film) -> tuple[bytes, dict[str, Any]]:
    """Return a film's file and its processed row."""
    stills = [item.draw(step).done() for step in range(FRAMES)]
    width, height = stills[0].size
    for quality in (64, 54, 44, 34):
        body = motion_jpeg([jpeg(still, quality=quality) for still in stills], width, height, RATE, taken(item.id))
        if len(body) < LARGEST:
            break
    row = {
        "video_path": f"data/raw_memory/video/{item.id}.avi",
        "file_size": len(body),
        "file_modified": taken(item.id),
        "processed_at": "2025-01-02 09:30:00",
        "timestamp": in_utc(taken(item.id)),
        **where(item.place),
        "has_gps": item.place is not None,
        "duration": FRAMES / RATE,
        "duration_formatted": f"{FRAMES / RATE:.1f}s",
        "width": width,
        "height": height,
        "rotation": 0,
        "codec": "mjpeg",
        "device": f"{MAKER} {MODEL}",
        **derived(item),
        "processing_version": "1.0",
        "model_used": "none:written-by-hand",
        "num_frames_analyzed": 8,
    }
    return body, row


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    questions, hard = [record(q) for q in QUESTIONS], [record(q) for q in HARD]
    photos, films = sorted(PHOTOS, key=lambda item: item.id), sorted(FILMS, key=lambda item: item.id)
    everything = [mail[0] for mail in EMAILS] + [item.id for item in photos] + [item.id for item in films]
    names = ("id", "timestamp", "short_summary", "detail")
    yield f"{FOLDER}/data/atm-bench/atm-bench.json", as_json(questions)
    yield f"{FOLDER}/data/atm-bench/atm-bench-hard.json", as_json(hard)
    yield f"{FOLDER}/data/atm-bench/niah/atm-bench-hard-niah{POOL}.json", as_json(pooled(hard, everything))
    yield f"{FOLDER}/data/raw_memory/email/emails.json", as_json([dict(zip(names, m, strict=True)) for m in EMAILS])
    rows: dict[str, list[dict[str, Any]]] = {"image": [], "video": []}
    for item in photos:
        body, row = photo(item)
        rows["image"].append(row)
        yield f"{FOLDER}/{row['image_path']}", body
    for clip in films:
        body, row = film(clip)
        rows["video"].append(row)
        yield f"{FOLDER}/{row['video_path']}", body
    for kind, found in rows.items():
        yield f"{FOLDER}/data/processed_memory/{kind}_batch_results.json", as_json(found)
    counts = {"emails": len(EMAILS), "photos": len(photos), "films": len(films), "questions": len(questions),
              "hard": len(hard), "pool": POOL}  # fmt: skip
    yield f"{FOLDER}/README.md", readme("ATM-Bench", HOLDS.format(**counts), ORIGIN)
