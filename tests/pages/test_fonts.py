"""The bundled fonts: what they cover, that nothing covered is drawn as a blank box, and their licence's conditions."""

from __future__ import annotations

import random

import pytest
from fontTools.ttLib import TTFont

from memharness.pages.faces import BODY, BOLD, FALLBACKS, FOLDER, face, font

FILES = (BODY, BOLD, *FALLBACKS)


@pytest.mark.parametrize(("codec", "last"), [("gb2312", 0xFE), ("euc_jp", 0xFE), ("euc_kr", 0xFE), ("big5", 0xC6)])
def test_characters_in_common_use_of_china_japan_korea_and_taiwan(codec: str, last: int) -> None:
    pairs = (bytes((high, low)) for high in range(0xA1, last + 1) for low in range(0x40, 0xFF))
    letters = {text for pair in pairs if len(text := pair.decode(codec, "ignore")) == 1 and text.isalpha()}
    assert len(letters) > 5000
    assert not [letter for letter in letters if face(letter) is None]


def test_alphabets() -> None:
    ranges = [(0x20, 0x7F), (0xA0, 0x180), (0x391, 0x3A2), (0x3A3, 0x3CA), (0x400, 0x460), (0x1EA0, 0x1EFA)]
    assert not [hex(code) for low, high in ranges for code in range(low, high) if face(chr(code)) is None]
    assert all(face(chr(code)) for code in range(0xAC00, 0xD7A4)), "every Hangul syllable"


def test_what_is_covered_is_not_drawn_as_the_box_of_a_missing_glyph() -> None:
    rng = random.Random(5)
    for file in FILES:
        opened = font(file, 24)
        box = bytes(opened.getmask("\U0010fffd"))
        with TTFont(FOLDER / file, lazy=True) as source:
            codes = [code for code in sorted(source.getBestCmap()) if chr(code).isprintable()]
        for code in rng.sample(codes, 150):
            assert bytes(opened.getmask(chr(code))) != box, f"{file}: U+{code:04X}"


def test_bold_covers_what_body_covers() -> None:
    with TTFont(FOLDER / BODY, lazy=True) as body, TTFont(FOLDER / BOLD, lazy=True) as bold:
        assert set(body.getBestCmap()) == set(bold.getBestCmap())


def test_the_licence_lies_beside_them_and_their_names_are_not_reserved() -> None:
    licence = (FOLDER / "OFL.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "Reserved Font Name" in licence
    for file in FILES:
        with TTFont(FOLDER / file, lazy=True) as opened:
            names = {number: opened["name"].getDebugName(number) for number in (1, 4, 6)}
        assert all("Memharness" in name.replace(" ", "") for name in names.values())
        assert not any(word in name for name in names.values() for word in ("Noto", "Source"))
        assert names[1] in " ".join(licence.split())  # the licence says what it covers


def test_they_stay_small() -> None:
    assert sum((FOLDER / file).stat().st_size for file in FILES) < 8_000_000
