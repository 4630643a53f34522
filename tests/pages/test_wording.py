"""Characters to words: emoji by name, marks composed, breaks where a script allows them, what is not covered named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.pages.faces import BODY, face
from memharness.pages.wording import NO_END, NO_START, clusters, glyph_name, missing, paragraphs


def drawn(text: str) -> str:
    """What a text becomes."""
    return "".join(cluster.drawn for cluster in clusters(text))


def words(text: str, *spans: tuple[int, int]) -> list[str]:
    """The words of a text's only paragraph; a blank after one is shown."""
    (only,) = paragraphs(text, spans)
    return ["".join(piece.text for piece in word.pieces) + (" " if word.blank else "") for word in only]


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("so good 😀!", "so good [grinning face]!"),
        ("👍🏽", "[thumbs up sign]"),
        ("👩‍💻", "[woman, personal computer]"),
        ("🇫🇷🇩🇪", "[flag FR][flag DE]"),
        ("1️⃣ and 1", "[keycap 1] and 1"),
        ("✓ ❤️ ★ → ©", "✓ ❤ ★ → ©"),
        ("❤️‍🔥", "[heavy black heart, fire]"),
        ("cafe\u0301", "café"),
        ("Влади\u0301мир", "Влади\u0301мир"),
        ("\u1112\u1161\u11ab", "한"),
        ("zero\u200bwidth\u00ad\ufeff", "zerowidth"),
        ("葛\U000e0100飾", "葛飾"),
        ("a\tb\u2003c\u00a0d\u202fe", "a b c\u00a0d\u00a0e"),
        ("one\r\ntwo\u2028three\x85four", "one\ntwo\nthree\nfour"),
    ],
)
def test_what_characters_become(text: str, becomes: str) -> None:
    assert drawn(text) == becomes
    assert missing(text) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("שלום", ["U+05E9 HEBREW LETTER SHIN"]),
        ("ไทย", ["U+0E44 THAI CHARACTER SARA AI MAIMALAI"]),
        ("नमस्ते", ["U+0928 DEVANAGARI LETTER NA"]),
        ("bell\a", ["U+0007 (a character without a name)"]),
        ("\ud800", ["U+D800 (a character without a name)"]),
        ("\U0001faff", ["U+1FAFF (a character without a name)"]),
        (" \u0301", ["U+0301 COMBINING ACUTE ACCENT"]),
        ("漢\u0301", ["U+0301 COMBINING ACUTE ACCENT"]),
    ],
)
def test_what_is_not_covered_is_named(text: str, names: list[str]) -> None:
    found = [glyph_name(character) for character in missing(text)]
    assert found[:1] == names
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("two  words ", ["two ", "words "]),
        ("comedy-drama", ["comedy-", "drama"]),
        ("2023-05-08 a-1", ["2023-05-08 ", "a-1"]),
        ("and/or—both", ["and/", "or—", "both"]),
        ("http://a.org/b", ["http://", "a.org/", "b"]),
        ("東京、大阪。", ["東", "京、", "大", "阪。"]),
        ("「東京」と(大)", ["「東", "京」", "と", "(大)"]),
        ("AI技術2.0", ["AI", "技", "術", "2.0"]),
        ("한국어 문장", ["한", "국", "어 ", "문", "장"]),
        ("no\u00a0break", ["no\u00a0break"]),
    ],
)
def test_where_lines_may_break(text: str, parts: list[str]) -> None:
    assert words(text) == parts


def test_key_spans_highlight_their_characters_and_the_blanks_between() -> None:
    (only,) = paragraphs("in May 1874 it", ((3, 11),))
    assert [(piece.text, piece.key, piece.bold) for word in only for piece in word.pieces] == [
        ("in", False, False),
        ("May", True, True),
        ("1874", True, True),
        ("it", False, False),
    ]
    assert [word.blank.key for word in only if word.blank] == [False, True, False]


def test_a_key_span_counts_the_texts_own_characters() -> None:
    (only,) = paragraphs("😀 e\u0301t", ((2, 4),))  # the emoji is one character of the text, but many letters
    assert [piece.text for word in only for piece in word.pieces if piece.key] == ["é"]


COVERED = st.text(
    st.one_of(
        st.characters(min_codepoint=0x20, max_codepoint=0x24F),
        st.sampled_from("αβγЖд漢字かな한국、。「」（）…—-/ \n\t\u00a0😀👍🏽\u200d\ufe0f✓→x\u0301"),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(COVERED)
def test_no_character_is_lost_and_none_added(text: str) -> None:
    if missing(text):
        return
    for words_of_line, line in zip(paragraphs(text), drawn(text).split("\n"), strict=True):
        shown = "".join("".join(p.text for p in w.pieces) + (" " if w.blank else "") for w in words_of_line)
        assert shown.replace(" ", "") == line.replace(" ", "")
        assert "  " not in shown


@settings(deadline=None)
@given(COVERED)
def test_no_line_can_begin_or_end_with_what_must_not(text: str) -> None:
    if missing(text):
        return
    for line in paragraphs(text):
        for before, after in itertools.pairwise(line):
            if before.blank is None:
                assert after.pieces[0].text[0] not in NO_START
                assert before.pieces[-1].text[-1] not in NO_END


@settings(deadline=None)
@given(st.text(max_size=30))
def test_every_letter_of_a_text_without_missing_ones_has_a_font(text: str) -> None:
    if missing(text):
        return
    for cluster in clusters(text):
        for character in cluster.drawn.replace("\n", ""):
            assert face(character) is not None


def test_body_letters_come_from_one_font() -> None:
    assert {face(character) for character in "Aé Жю ω –“”€"} == {BODY}
