"""`extractive`: no weights, no randomness, at once. It copies an answer out of the prompt; a floor, and for tests."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memharness.config import Config
from memharness.media import MediaStore
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.readers.counters import Bytes4
from memharness.types import Part, ReaderError, Text, Usage, UserError

UNKNOWN = "unknown"

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")
_CHOICE = re.compile(r"^\s*\(?([A-Za-z])[.):]\s+(.*)$")
_HEADER = re.compile(r"^\s*\[\d+\]")  # how the harness begins a block of evidence: `[2] label · time · speaker`
_SPEAKER = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?(?:[A-Z][\w .'-]{0,30}:\s+)?")
# Function words carry no evidence: counting them would make every sentence a match.
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a about after all also an and any are as at be been before by can could did do does for from had has have he "
        "her his how i if in into is it its many me much my of on or our she should so some than that the their them "
        "then there these they this those to us was we were what when where which while who whom whose why will with "
        "would you your",
    )
)
_AUXILIARY = "is are was were do does did has have had can could will would should am"
_YES_NO = re.compile(rf"^(?:{'|'.join(_AUXILIARY.split())})\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no|none|cannot|nobody|nothing)\b|n['’]t\b", re.IGNORECASE)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATE = re.compile(
    rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?(?:\s+\d{{4}})?|"
    rf"{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,?\s+\d{{4}})?|{_MONTH}\s+\d{{4}}|yesterday|today|tomorrow|"
    r"(?:last|next|this)\s+(?:week(?:end)?|month|year|spring|summer|autumn|fall|winter|night|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:1[5-9]|20)\d\d)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.])[$€£]?\d[\d,]*(?:\.\d+)?%?(?!\w)|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"twenty|thirty|forty|fifty|hundred|once|twice)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][^\W\d_'’]*(?:[-\s]+(?:(?:of|the|de|van|von|la)\s+)?[A-Z][^\W\d_'’]*)*\b(?!\d)")
_KINDS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (re.compile(r"\b(?:when|(?:what|which) (?:date|day|month|year|time))\b", re.IGNORECASE), _DATE),
    (re.compile(r"\bhow (?:many|much|old|long|often|far|tall|big)\b", re.IGNORECASE), _NUMBER),
    (
        re.compile(r"\b(?:who|whom|whose|where|(?:what|which) (?:city|country|town|state|place))\b", re.IGNORECASE),
        _NAME,
    ),
)


class ExtractiveConfig(Config):
    """`extractive` has nothing to set."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A piece of evidence: its sentences, and the line above them that says whose and when (empty if none)."""

    sentences: tuple[str, ...]
    header: str = ""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt taken apart: evidence, the question, its choices by letter."""

    blocks: tuple[_Block, ...]
    question: str
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Match:
    """A sentence of the evidence, the block it stands in, and how much of the question it holds."""

    sentence: str
    block: _Block
    score: float


class Extractive(Reader):
    """Answers with a piece of the evidence in the last user message.

    The sentence that shares most with the question (each word weighed by how rare it is in the evidence, half as much
    for words that stand beside it in the same block) is the source; of it a date answers "when", a number "how many",
    a name "who" and "where", "yes" or "no" a question that asks for it, a letter one with choices, and the sentence
    anything else. Evidence that shares no word with the question, or none at all, is answered `unknown`.

    Tokens are counted by `bytes4`, since loading a tokenizer would take longer than everything else here.
    """

    config_class = ExtractiveConfig

    def __init__(self, model: str, config: ExtractiveConfig, media: MediaStore) -> None:
        """Be ready at once.

        Raises:
            UserError: the spec names a model.
        """
        if model:
            raise UserError(f"extractive:{model}: extractive has no models; write just extractive")
        super().__init__("", config, media)
        self.counter = Bytes4()
        self.card = ReaderCard("extractive", "", "1", "extractive", max_inflight=1024, cache=False)

    async def generate(self, request: Request) -> Reply:
        """Answer from the prompt's own words.

        Raises:
            ReaderError: the request needs pictures, a schema or tools.
        """
        _refuse(request)
        answer = extract(_last_user_text(request))
        if request.prefill and not answer.startswith(request.prefill):
            answer = request.prefill + answer
        text, finish = self._end(answer, request)
        prompt = sum(self.counter.text(_text_of(message.parts)) for message in request.messages)
        return Reply(text, Usage(text=prompt, output=self.counter.text(text)), finish)

    def _end(self, answer: str, request: Request) -> tuple[str, Literal["stop", "length"]]:
        ends = [at for stop in request.sampling.stop if stop and (at := answer.find(stop)) >= 0]
        answer = answer[: min(ends)] if ends else answer
        if self.counter.text(answer) <= request.sampling.max_tokens:
            return answer, "stop"
        return answer.encode()[: 4 * request.sampling.max_tokens].decode(errors="ignore"), "length"


def extract(prompt: str) -> str:
    """The answer to the question of a prompt, out of the evidence above it (`unknown` if there is none)."""
    parts = _parse(prompt)
    matches = _rank(parts.blocks, parts.question)
    if not matches:
        return UNKNOWN
    if parts.choices:
        return _choose(parts.choices, matches)
    best = matches[0]
    if _YES_NO.match(parts.question) and not re.search(r"\bor\b", parts.question):
        return "no" if _NEGATION.search(best.sentence) else "yes"
    return _span(parts.question, best) or _SPEAKER.sub("", best.sentence).strip()


def _refuse(request: Request) -> None:
    if any(not isinstance(part, Text) for part in request.parts()):
        raise ReaderError("extractive sees no pictures (capability `image`); use --view captions or another reader")
    if request.schema is not None or request.tools:
        raise ReaderError(
            "extractive writes no JSON (capabilities `schema`, `tools`); use another reader for this role"
        )


def _text_of(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def _last_user_text(request: Request) -> str:
    users = [message for message in request.messages if message.role == "user"]
    return _text_of((users or request.messages)[-1].parts) if request.messages else ""


def _parse(prompt: str) -> _Prompt:
    lines = prompt.splitlines()
    starts = [at for at, line in enumerate(lines) if line.lstrip().lower().startswith("question:")]
    if starts:
        start = starts[-1]
        asked = [lines[start].partition(":")[2], *lines[start + 1 :]]
    else:  # a prompt of someone else's making: its last line with words is the question
        start = max((at for at, line in enumerate(lines) if line.strip()), default=0)
        asked = lines[start:]
    choices = tuple((found[1], found[2]) for line in asked if (found := _CHOICE.match(line)))
    body = [line.strip() for line in asked if not _CHOICE.match(line)]
    # The question ends at an empty line; what follows it are instructions on how to answer.
    question = itertools.takewhile(bool, itertools.dropwhile(lambda line: not line, body))
    words = " ".join(line for line in question if not line.lower().startswith("answer"))
    return _Prompt(_blocks(lines[:start]), words, choices if len(choices) > 1 else ())


def _blocks(lines: Sequence[str]) -> tuple[_Block, ...]:
    groups = [list(group) for filled, group in itertools.groupby(lines, lambda line: bool(line.strip())) if filled]
    if len(groups) < 2 and not any(_HEADER.match(line) for line in lines):
        groups = [[line] for group in groups for line in group]  # nothing is set apart: each line is a block
    return tuple(_block(group) for group in groups)


def _block(lines: Sequence[str]) -> _Block:
    headers = [at for at, line in enumerate(lines[:-1]) if _HEADER.match(line)]
    if headers:  # what stands above the first header introduces the evidence and is none
        return _Block(_sentences(lines[headers[0] + 1 :]), lines[headers[0]])
    return _Block(_sentences(lines))


def _sentences(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(sentence for line in lines for sentence in _SENTENCE.split(line.strip()))


def _terms(text: str) -> set[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return {word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words if word not in _STOP} - {
        "",
        "s",
    }


def _rank(blocks: Sequence[_Block], question: str) -> list[_Match]:
    """Sentences that share a word with the question, best first; equals keep the order of the evidence."""
    wanted = _terms(question)
    words_of = [[_terms(sentence) for sentence in block.sentences] for block in blocks]
    frequency = Tally(word for block in words_of for words in block for word in words)
    total = sum(map(len, words_of))
    weight = {word: math.log(1 + total / max(frequency[word], 1)) for word in wanted}
    matches = []
    for block, sentences in zip(blocks, words_of, strict=True):
        around = _terms(block.header).union(*sentences) & wanted
        for sentence, words in zip(block.sentences, sentences, strict=True):
            own = words & wanted
            score = math.fsum(weight[word] for word in own) + math.fsum(weight[word] for word in around - own) / 2
            if score > 0:
                matches.append(_Match(sentence, block, score))
    return sorted(matches, key=lambda match: -match.score)


def _choose(choices: Sequence[tuple[str, str]], matches: Sequence[_Match]) -> str:
    """The letter whose words weigh most in the matching sentences, by the share of the choice that is found."""

    def support(text: str) -> float:
        words = _terms(text)
        return max(len(words & _terms(match.sentence)) * match.score for match in matches) / max(len(words), 1)

    return max(choices, key=lambda choice: support(choice[1]))[0]


def _span(question: str, match: _Match) -> str:
    """A date, number or name that the question does not hold: in the sentence, else in its block; '' if none."""
    asked = _terms(question)
    wanted = next((answers for asks, answers in _KINDS if asks.search(question)), None)
    if wanted is None:
        return ""
    for text in (_SPEAKER.sub("", match.sentence), *match.block.sentences, match.block.header):
        found = [span for span in wanted.finditer(text) if wanted is not _NAME or not _terms(span[0]) <= asked]
        if wanted is _NAME and len(found) > 1 and found[0].start() == 0:
            del found[0]  # the first word of a sentence is capitalised whether or not it is a name
        if found:
            return found[0][0]
    return ""
