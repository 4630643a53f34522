"""Writes the HotpotQA sample: questions over an invented country, in the native distractor layout."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from typing import Any

from samples.hotpot_world import PARAGRAPHS, QUESTIONS, Question
from samples.text import as_json, lines, readme

FOLDER = "benchmarks/hotpotqa/sample"
SIZE, SMALL = 10, 4  # paragraphs a question; the last question has fewer, as some of HotpotQA's do
HOLDS = (
    "{questions} questions (bridge and comparison) over {paragraphs} paragraphs about a country that does not exist,"
    " ten paragraphs a question and four in one of them"
)
ORIGIN = "Every name, number and sentence was made up"


def world() -> dict[str, list[str]]:
    """Return sentences by title; all but the first of a paragraph begin with a space, as HotpotQA's do."""
    found = {}
    for title, words in lines(PARAGRAPHS):
        first, *rest = re.split(r"\s*\|\s*", words)
        found[title] = [first, *(" " + sentence for sentence in rest)]
    return found


def distractors(
    question: str, gold: list[str], pool: dict[str, list[str]], count: int, dice: random.Random
) -> list[str]:
    """Return the `count` titles that share most words with the question, so that retrieval has to choose."""
    asked = set(re.findall(r"\w{4,}", question.lower()))
    others = [title for title in pool if title not in gold]
    dice.shuffle(others)
    others.sort(key=lambda title: -len(asked & set(re.findall(r"\w{4,}", f"{title} {''.join(pool[title])}".lower()))))
    return others[:count]


def record(question: Question, pool: dict[str, list[str]], size: int) -> dict[str, Any]:
    """Return one question in the native layout."""
    kind, level, words, answer, facts = question
    id = hashlib.sha256(words.encode()).hexdigest()[:24]
    dice = random.Random(id)
    gold = list(dict.fromkeys(title for title, _ in facts))
    titles = gold + distractors(words, gold, pool, size - len(gold), dice)
    dice.shuffle(titles)
    return {
        "_id": id,
        "answer": answer,
        "question": words,
        "supporting_facts": [list(fact) for fact in facts],
        "context": [[title, pool[title]] for title in titles],
        "type": kind,
        "level": level,
    }


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    pool = world()
    rows = [record(q, pool, SMALL if q is QUESTIONS[-1] else SIZE) for q in QUESTIONS]
    yield f"{FOLDER}/hotpot_sample.json", as_json(rows)
    yield f"{FOLDER}/README.md", readme("HotpotQA", HOLDS.format(questions=len(rows), paragraphs=len(pool)), ORIGIN)
