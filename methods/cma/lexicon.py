"""Words of pictures in English and Chinese: what they name, so that a scarlet lamp is the red light of before."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

CJK = "\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+(?:['’-][^\W_{CJK}]+)*|[^\s]")
_EMPTY = ("stop", "mark", "picture", "one", "version", "scene")
_WORDS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text, by what it names.

    Attributes:
        sort: `colour`, `material`, `size`, `light`, `view`, `place`, `thing`, `stop`, `mark` (punctuation) or `word`.
        name: what it names, the same for synonyms; a word that the lexicon does not know is its own name.
        text: as written.
        start: first character.
        end: after the last.
    """

    sort: str
    name: str
    text: str
    start: int
    end: int


class Lexicon:
    """Finds the longest known words of a text; what is left between them are words by themselves."""

    def __init__(self, table: str) -> None:
        """Read lines of `name: words, … | words, …` under lines of `# sort`; a word may be several in a row."""
        self._en: dict[str, list[tuple[tuple[str, ...], str, str]]] = {}
        self._zh: dict[str, list[tuple[str, str, str]]] = {}
        sort = ""
        for line in table.splitlines():
            if line.startswith("# "):
                sort = line[2:].strip()
            elif line.strip():
                name, _, words = line.partition(":")
                english, _, chinese = words.partition("|")
                for word in filter(None, (one.strip() for one in english.split(","))):
                    key = tuple(map(stem, _WORDS.findall(word.casefold())))
                    self._en.setdefault(key[0], []).append((key, sort, name.strip()))
                for word in filter(None, (one.strip() for one in chinese.split(","))):
                    self._zh.setdefault(word[0], []).append((word, sort, name.strip()))
        for known in self._en.values():
            known.sort(key=lambda entry: -len(entry[0]))
        for terms in self._zh.values():
            terms.sort(key=lambda entry: -len(entry[0]))

    def tokens(self, text: str) -> list[Token]:
        """The words of a text in order; offsets are into the text in NFKC."""
        text = unicodedata.normalize("NFKC", text)
        raw = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
        return list(self._scan(raw))

    def content(self, text: str) -> tuple[str, ...]:
        """What a text names, as written, in small letters, each once; without stop words and marks."""
        found = (token for token in self.tokens(text) if token.sort not in _EMPTY)
        return tuple(dict.fromkeys(token.text.casefold() for token in found if len(token.text) > 1))

    def _scan(self, raw: list[tuple[str, int]]) -> Iterator[Token]:
        at = 0
        while at < len(raw):
            word, start = raw[at]
            if re.match(f"[{CJK}]", word):
                yield from self._chinese(word, start)
                at += 1
                continue
            if not word[0].isalnum():
                yield Token("mark", word, word, start, start + len(word))
                at += 1
                continue
            count, sort, name = self._english([stem(one.casefold()) for one, _ in raw[at : at + 4]])
            last, begun = raw[at + count - 1]
            text = " ".join(one for one, _ in raw[at : at + count])
            yield Token(sort, name, text, start, begun + len(last))
            at += count

    def _english(self, words: list[str]) -> tuple[int, str, str]:
        for key, sort, name in self._en.get(words[0], ()):
            if tuple(words[: len(key)]) == key:
                return len(key), sort, name
        return 1, "word", words[0]

    def _chinese(self, run: str, start: int) -> Iterator[Token]:
        at = since = 0
        while at < len(run):
            known = next((entry for entry in self._zh.get(run[at], ()) if run.startswith(entry[0], at)), None)
            if known is None:
                at += 1
                continue
            if since < at:
                yield Token("word", run[since:at], run[since:at], start + since, start + at)
            word, sort, name = known
            yield Token(sort, name, word, start + at, start + at + len(word))
            at += len(word)
            since = at
        if since < at:
            yield Token("word", run[since:at], run[since:at], start + since, start + at)


_IRREGULAR: Mapping[str, str] = {
    "leaves": "leaf", "knives": "knife", "shelves": "shelf", "wolves": "wolf", "mice": "mouse", "geese": "goose",
    "children": "child", "men": "man", "women": "woman", "feet": "foot", "buses": "bus",
}  # fmt: skip
_AS_IT_IS = frozenset((
    "this", "its", "was", "has", "does", "as", "us", "yes", "bus", "gas", "canvas", "less", "woods", "grounds",
    "glasses",
))  # fmt: skip


def stem(word: str) -> str:
    """An English noun in the singular, without a possessive ending."""
    word = re.sub(r"['’]s$|['’]$", "", word)
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _AS_IT_IS or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


@cache
def lexicon() -> Lexicon:
    """The lexicon of this method."""
    return Lexicon((resources.files(__package__) / "lexicon.v1.txt").read_text("utf-8"))
