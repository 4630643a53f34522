"""The extractive reader: what it picks, and that its usage is its counter's."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.media import MediaStore
from memharness.reader import Message, Request, Sampling
from memharness.readers.counters import Bytes4
from memharness.readers.extractive import Extractive, ExtractiveConfig, extract
from memharness.types import Image, ReaderError, Text, UserError

EVIDENCE = """Evidence:
[1] D1:3 · 2023-05-08 · Caroline
I went to a support group yesterday and it was powerful.

[2] D2:1 · 2023-06-02 · Melanie
We adopted three cats from the shelter in Denver. Robert Miller drove us there. I never liked dogs.

[3] D4:7 · 2023-07-01 · Caroline
The pottery class starts on 17 July 2023 at the community centre."""

CHOICES = "A. a dog park\nB. a shelter\nC. the zoo\n"


def prompt(question: str, after: str = "") -> str:
    return f"{EVIDENCE}\n\nAnswer in a few words.\nQuestion: {question}\n{after}Answer:"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When does the pottery class start?", "17 July 2023"),
        ("How many cats were adopted from the shelter?", "three"),
        ("Who drove Melanie?", "Robert Miller"),
        ("Where is the shelter with the cats?", "Denver"),
        ("Did Caroline go to a support group?", "yes"),
        ("Has Melanie adopted cats?", "yes"),
        ("Has Melanie ever liked dogs?", "no"),
        ("What was powerful?", "I went to a support group yesterday and it was powerful."),
        ("When did Melanie adopt cats?", "2023-06-02"),
        ("Which submarine sank?", "unknown"),
    ],
)
def test_answers(question: str, answer: str) -> None:
    assert extract(prompt(question)) == answer


def test_choices() -> None:
    assert extract(prompt("From where were the cats adopted?", CHOICES)) == "B"
    assert extract(prompt("From where were the cats adopted?", CHOICES.replace(". ", ") "))) == "B"
    assert extract(f"Evidence:\n(none)\n\nQuestion: From where were the cats adopted?\n{CHOICES}Answer:") == "unknown"


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Question:", "Question: who?", "Evidence:\n(none)\n\nQuestion: Who ran?\nAnswer:"]
)
def test_nothing_to_go_on(text: str) -> None:
    assert extract(text) == "unknown"


def test_a_prompt_without_the_word_question() -> None:
    assert extract("Ann lives in Oslo.\nBob lives in Rome.\n\nWhere does Bob live, in which city of lives?") == "Rome"


def test_a_question_inside_the_evidence_is_not_the_question() -> None:
    text = "Question: who eats plums?\nThe plums are in the icebox.\n\nQuestion: What is in the icebox?\nAnswer:"
    assert extract(text) == "The plums are in the icebox."


def make(media: MediaStore) -> Extractive:
    return Extractive("", ExtractiveConfig(), media)


async def test_usage_is_the_counters(media: MediaStore) -> None:
    reader = make(media)
    messages = (Message("system", (Text("Be brief."),)), Message("user", (Text(prompt("Who drove Melanie?")),)))
    reply = await reader.generate(Request(messages))
    counter = Bytes4()
    assert reply.text == "Robert Miller"
    assert reply.usage.output == counter.text("Robert Miller") == 4
    assert reply.usage.text == sum(
        counter.text(part.text) for part in Request(messages).parts() if isinstance(part, Text)
    )
    cut = await reader.generate(Request(messages, Sampling(max_tokens=2)))
    assert (cut.text, cut.finish, cut.usage.output) == ("Robert M", "length", 2)
    stopped = await reader.generate(Request(messages, Sampling(stop=(" ",)), prefill="It is "))
    assert stopped.text == "It"


async def test_refuses_what_it_cannot_do(media: MediaStore) -> None:
    reader = make(media)
    assert not reader.card.cache and not reader.card.hosted
    with pytest.raises(ReaderError, match="image"):
        await reader.generate(Request((Message("user", (Image("ab"),)),)))
    with pytest.raises(ReaderError, match="schema"):
        await reader.generate(Request((Message("user", (Text("x"),)),), schema={}))
    with pytest.raises(UserError, match="just extractive"):
        Extractive("large", ExtractiveConfig(), media)


async def test_starts_at_once(media: MediaStore) -> None:
    begun = time.perf_counter()
    reader = make(media)
    await reader.start()
    assert time.perf_counter() - begun < 0.05


def test_does_not_depend_on_the_hash_seed() -> None:
    code = (
        f"from memharness.readers.extractive import extract; print(extract({prompt('What do cats and dogs like?')!r}))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1 and runs.pop().strip()


@given(st.text(max_size=300))
def test_any_prompt_is_answered_the_same_twice(text: str) -> None:
    assert extract(text) == extract(text) != ""


@given(st.text(max_size=200), st.integers(1, 20))
async def test_length_holds_in_any_script(text: str, limit: int) -> None:
    reader = Extractive("", ExtractiveConfig(), MediaStore())
    request = Request(
        (Message("user", (Text(f"{text} cats\n\nQuestion: What about cats?"),)),), Sampling(max_tokens=limit)
    )
    reply = await reader.generate(request)
    assert reply.usage.output == Bytes4().text(reply.text) <= limit
