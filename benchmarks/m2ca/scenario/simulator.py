"""A reader as the user: it words each turn that was planned, and may change nothing of what the turn means.

The plan decides what a turn needs, so a wording is taken only if every fixed part of the sentence (references, what is
asked for, what is to be drawn) stands in it word for word, and the rest brings nothing that could name a picture: no
other word of the vocabulary, no ordinal or word of time that the sentence lacks. Where no wording is taken, the
sentence from the phrase file stands. A reply that repeats the instructions is no wording either.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from memharness.benchmarks.m2ca.scenario.phrases import PHRASES, Told, phrase_file
from memharness.benchmarks.m2ca.scenario.writing import Made
from memharness.reader import Message, Reader, Request, Sampling
from memharness.scenes.reading import mentions
from memharness.types import ReaderError, Text

PROMPT = Path(__file__).with_name("simulator.v1.txt")
LANGUAGES = {"en": "English", "zh": "Chinese"}
LONGEST = 400  # characters
_WORD = re.compile(r"[^\W_]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[a-z]{2,}")
_MARKS = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|latest|newest|oldest|previous|earlier|"
    r"before|after|other|another|both|all|every|original|old|new|again|favou?rite|liked?|upload\w*|photos?|combined|"
    r"\d\w*|not|no|without|instead|except|remove|delete|add|merge|combine|compare|[A-Z]{2,})\b"
    r"|第.|最|上一|前|后|之|另|其他|两|全|旧|新|再|喜欢|上传|照片|不|没|别|除|去|删|加|合|比|\d+",
)  # fmt: skip


@dataclass
class User:
    """A reader that plays the user.

    Attributes:
        name: its spec.
        tries: wordings it may offer for a turn.
        seed: of its sampling.
        counts: turns by who worded them, and the wordings that were refused.
    """

    name: str
    tries: int = 3
    seed: int = 0
    reader: Reader | None = None
    counts: dict[str, int] = field(default_factory=lambda: {"reader": 0, "template": 0, "refused": 0})

    async def open(self) -> None:
        """Load the reader.

        Raises:
            UserError: there is no such reader, or it cannot be loaded.
        """
        if self.reader is None:
            from memharness.media import MediaStore
            from memharness.trainers import model_of

            self.reader = model_of("readers", self.name, Reader, None, MediaStore())
        await self.reader.start()

    async def close(self) -> None:
        """Let the reader go."""
        if self.reader is not None:
            await self.reader.close()

    def told_by(self) -> str:
        """The reader and the counts in words."""
        return f"{self.name}: " + ", ".join(f"{count} {name}" for name, count in self.counts.items())

    async def word(self, told: Told, language: str, turn: int) -> Told:
        """A turn in the reader's words, or as it is where none of them would do.

        Args:
            told: the turn as the phrase file has it.
            language: `en` or `zh`.
            turn: tells turns apart in the reader's seeds.
        """
        assert self.reader is not None
        for sample in range(self.tries):
            try:
                reply = await self.reader.generate(self._request(told, language, turn, sample))
            except ReaderError:
                break
            words = cleaned(reply.text)
            if accepted(words, told):
                self.counts["reader"] += 1
                return told._replace(text=words)
            self.counts["refused"] += 1
        self.counts["template"] += 1
        return told

    def _request(self, told: Told, language: str, turn: int, sample: int) -> Request:
        fixed = "; ".join(told.fixed) or "none"
        words = _prompt().format(language=LANGUAGES[language], fixed=fixed, line=told.text)
        sampling = Sampling(temperature=0.7, max_tokens=64, seed=self.seed * 100_000 + turn * 100 + sample)
        return Request((Message("user", (Text(words),)),), sampling, sample=sample)


async def reworded(made: Made, user: User) -> Made:
    """A session whose turns the user words."""
    words = [await user.word(told, made.language, place) for place, told in enumerate(made.words)]
    return replace(made, words=words)


def cleaned(reply: str) -> str:
    """A reply as a line: its reasoning, its label and the quotes around it taken away."""
    reply = reply.rpartition("</think>")[2].strip()
    reply = re.sub(r"^(?:line|new line|answer)\s*[:：]\s*", "", reply, flags=re.IGNORECASE)
    return " ".join(reply.strip("\"'“”「」 \n").split())


def accepted(words: str, told: Told) -> bool:
    """Whether a wording means what the sentence means, as far as words can be held to it."""
    if not words or len(words) > LONGEST or _echoes(words):
        return False
    rest, line = words.casefold(), told.text.casefold()
    for part in sorted(told.fixed, key=len, reverse=True):
        if part.casefold() not in rest:
            return False
        rest = rest.replace(part.casefold(), " ; ", 1)
        line = line.replace(part.casefold(), " ; ", 1)
    if _HAN.search(told.text) and _LATIN.search(rest):
        return False
    return _named(rest) <= _named(line) and _marks(rest) <= _marks(line)


def _echoes(words: str) -> bool:
    """Whether four words in a row are the prompt's."""
    prompt = " ".join(_WORD.findall(_prompt().casefold()))
    said = _WORD.findall(words.casefold())
    return any(" ".join(said[place : place + 4]) in prompt for place in range(len(said) - 3))


@functools.cache
def _prompt() -> str:
    return PROMPT.read_text(encoding="utf-8")


def _named(words: str) -> set[tuple[str, str]]:
    """What a text names, by the vocabulary's words and by the synonyms of the phrase files."""
    synonyms = {(field, name) for field, name, word in _synonyms() if word in words}
    return synonyms | {(mention.field, mention.name) for mention in mentions(words)}


@functools.cache
def _synonyms() -> tuple[tuple[str, str, str], ...]:
    tables = [table["names"] for phrases in PHRASES for table in phrase_file(phrases).values()]
    return tuple(
        (field, name, word.casefold())
        for names in tables
        for field, others in names.items()
        for name, words in others.items()
        for word in words
    )


def _marks(words: str) -> set[str]:
    return set(_MARKS.findall(words))
