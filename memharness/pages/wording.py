"""From text to words that can be drawn: what each character becomes, in which font, and where a line may break.

- Blanks in a row are drawn as one; a no-break space stays one. Format characters (joiners, direction marks, soft
  hyphens, byte-order marks, presentation selectors) have no shape and are left out.
- A letter with marks is drawn in its composed form; where there is none, marks U+0300 to U+036F are struck over it.
- **Emoji** that no bundled font covers are named in square brackets, `[grinning face]`, by the Unicode name in lower
  case: readers of pages read names, and a name stays legible small. A joined sequence is one bracket, `[woman, personal
  computer]`; a flag of a country is `[flag FR]`; a keycap is `[keycap 1]`. Skin tones are left out.
- What is left uncovered is an error that names it, as is an emoji whose name this Python does not know.

Lines break at blanks, after hyphens between letters, slashes and dashes, and between CJK characters, except before
closing and after opening punctuation (kinsoku).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from memharness.pages.faces import BODY, BOLD, face, width

PICTOGRAPHS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297"
    "\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
PICTOGRAPH = re.compile(f"[{PICTOGRAPHS}]")
_EMOJI = f"[{PICTOGRAPHS}][\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
CLUSTER = re.compile(
    "(?P<newline>\r\n|[\n\r\v\f\x85\u2028\u2029])"
    "|(?P<flag>[\U0001f1e6-\U0001f1ff]{2})"
    "|(?P<keycap>[0-9#*]\ufe0f?\u20e3)"
    f"|(?P<emoji>{_EMOJI}(?:\u200d{_EMOJI})*)"
    "|(?P<other>.[\u0300-\u036f\u0483-\u0487\u3099\u309a\u1160-\u11ff]*)",
    re.DOTALL,
)
STRUCK = re.compile(".[\u0300-\u036f]+", re.DOTALL)
NO_START = frozenset(
    "、。，．・：；？！゛゜ヽヾゝゞ々ー’”）〕］｝〉》」』】〙〗〟｠»ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ…‥,.:;?!)]}%°℃％"
)
NO_END = frozenset("‘“（〔［｛〈《「『【〘〖〝｟«([{$£¥￥")
LATE = frozenset("/\\—–")


@dataclass(frozen=True, slots=True)
class Piece:
    """Letters of one font, weight, colour and highlight."""

    text: str
    face: str
    bold: bool
    key: bool
    colour: str

    def width(self, px: int) -> float:
        """Pixels it advances."""
        return width(self.text, self.font, px)

    @property
    def font(self) -> str:
        """The file it is drawn in: of bold ones there is one for Latin, Greek and Cyrillic only."""
        return BOLD if self.bold and self.face == BODY else self.face


@dataclass(frozen=True, slots=True)
class Word:
    """What stays on one line; `blank` is the space after it, None where a line may break without one."""

    pieces: tuple[Piece, ...]
    blank: Piece | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a few characters of a text become. `start` is where they stand in it."""

    drawn: str
    start: int


def clusters(text: str) -> Iterator[Cluster]:
    """What each character, or group that is drawn as one, becomes: a newline for any line break, `""` if left out."""
    if text.isascii() and text.isprintable():
        yield from (Cluster(character, at) for at, character in enumerate(text))
        return
    for match in CLUSTER.finditer(text):
        drawn = match.group()
        match match.lastgroup:
            case "newline":
                drawn = "\n"
            case "flag":
                drawn = f"[flag {''.join(chr(ord(letter) - 0x1F1E6 + ord('A')) for letter in drawn)}]"
            case "keycap":
                drawn = f"[keycap {drawn[0]}]"
            case "emoji":
                drawn = _emoji(drawn)
            case _:
                drawn = _composed(drawn)
        yield Cluster(drawn, match.start())


def missing(text: str) -> tuple[str, ...]:
    """The characters of a text that cannot be drawn, each once, in order."""
    if text.isascii() and text.isprintable():
        return ()
    return tuple(dict.fromkeys(character for cluster in clusters(text) for character in _uncovered(cluster.drawn)))


def glyph_name(character: str) -> str:
    """`U+05D0 HEBREW LETTER ALEF`."""
    return f"U+{ord(character):04X} {unicodedata.name(character, '(a character without a name)')}"


@functools.lru_cache(4096)
def paragraphs(
    text: str, spans: tuple[tuple[int, int], ...] = (), *, bold: bool = False, colour: str = "#000000"
) -> tuple[tuple[Word, ...], ...]:
    """The words of each line of a text. Characters within `spans` are highlighted.

    Every character must be covered: ask `missing` before.
    """
    made: list[list[Word]] = [[]]
    word: list[Piece] = []
    last = ""

    def close(blank: Piece | None) -> None:
        nonlocal word
        if word:
            made[-1].append(Word(tuple(word), blank))
            word = []
        elif blank and made[-1] and made[-1][-1].blank is None:
            made[-1][-1] = Word(made[-1][-1].pieces, blank)

    for cluster in clusters(text):
        key = any(start <= cluster.start < end for start, end in spans)
        if cluster.drawn == "\n":
            close(None)
            made.append([])
            last = ""
            continue
        for at, character in enumerate(cluster.drawn):
            if character == " ":
                close(Piece(" ", BODY, bold or key, key, colour))
                last = ""
                continue
            if last and at == 0 and _breaks(last, character):
                close(None)
            mark = at and "\u0300" <= character <= "\u036f"
            _add(word, character, word[-1].face if word and mark else face(character) or BODY, bold or key, key, colour)
            last = _last(last, character)
    close(None)
    return tuple(tuple(words) for words in made)


def _add(word: list[Piece], character: str, file: str, bold: bool, key: bool, colour: str) -> None:
    if word and word[-1].face == file and word[-1].key == key:
        word[-1] = Piece(word[-1].text + character, file, bold, key, colour)
    else:
        word.append(Piece(character, file, bold, key, colour))


def _last(last: str, character: str) -> str:
    """What the next break depends on: the last character, and before a hyphen also the one before it."""
    return (last[-1:] + character) if character in "-\u2010" else character


def _breaks(last: str, character: str) -> bool:
    """Whether a line may end after `last`, without a blank, and the next begin with `character`."""
    end = last[-1]
    if character in NO_START or end in NO_END:
        return False
    if _ideographic(end) or _ideographic(character):
        return True
    if end in LATE:
        return character.isalnum()
    return end in "-\u2010" and len(last) > 1 and last[0].isalpha() and character.isalpha()


def _ideographic(character: str) -> bool:
    """Han, kana, bopomofo, Hangul, and full-width forms: a line may break on either side."""
    code = ord(character)
    return 0x2E80 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3 or 0xF900 <= code <= 0xFAFF or 0xFF00 <= code <= 0xFFEF


def _emoji(sequence: str) -> str:
    """A pictograph as a covered character, or the names of what a sequence joins in brackets."""
    bases = [character for character in sequence if PICTOGRAPH.match(character)]
    if len(bases) == 1 and face(bases[0]):
        return bases[0]
    names = [unicodedata.name(base, "").lower() for base in bases]
    if not all(names):
        return bases[names.index("")]
    return f"[{', '.join(names)}]"


@functools.lru_cache(1 << 14)
def _composed(text: str) -> str:
    first, marks = text[0], text[1:]
    if unicodedata.category(first) == "Cf" or "\ufe00" <= first <= "\ufe0f" or "\U000e0100" <= first <= "\U000e01ef":
        return marks
    if first in "\u2007\u202f":
        return "\u00a0" + marks
    if first.isspace() and first not in "\u00a0\u3000":
        return " " + marks
    return unicodedata.normalize("NFC", text)


@functools.lru_cache(1 << 14)
def _uncovered(drawn: str) -> tuple[str, ...]:
    """Characters that no font covers, and marks that have nothing to be struck over."""
    if drawn in {"", " ", "\n"}:
        return ()
    if STRUCK.fullmatch(drawn) and face(drawn[0]) == BODY and drawn[0].isalpha():
        return tuple(character for character in drawn if face(character) is None)
    return tuple(c for c in drawn if face(c) is None or unicodedata.category(c) in {"Mn", "Me", "Mc"})
