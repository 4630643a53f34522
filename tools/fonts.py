"""Make the fonts of `memharness/pages/fonts` again: subsets of Noto from two Debian packages.

    apt-get download fonts-noto-core fonts-noto-cjk
    for package in fonts-noto-*.deb; do dpkg-deb -x "$package" unpacked; done
    python tools/fonts.py unpacked

Pages draw glyph by glyph, so shaping tables are dropped; hints stay. The subsets are modified versions under the SIL
Open Font License and carry names of their own, as its third condition asks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont

FONTS = Path(__file__).parents[1] / "memharness" / "pages" / "fonts"
CORE, CJK = "usr/share/fonts/truetype/noto/", "usr/share/fonts/opentype/noto/"

ALPHABETS = (
    (0x0020, 0x024F),  # Latin, to Extended-B
    (0x0250, 0x02FF),  # phonetic letters and modifiers
    (0x0300, 0x036F),  # marks, for the letters that have no composed form
    (0x0370, 0x03FF),  # Greek
    (0x0400, 0x052F),  # Cyrillic
    (0x1D00, 0x1DBF),  # phonetic extensions
    (0x1E00, 0x1FFF),  # Latin Extended Additional, Greek Extended
    (0x2000, 0x214F),  # punctuation, superscripts, currency, letterlike
    (0x2150, 0x218F),  # number forms
    (0x2C60, 0x2C7F),  # Latin Extended-C
    (0xA720, 0xA7FF),  # Latin Extended-D
    (0xFB00, 0xFB06),  # ligatures
    (0xFFFD, 0xFFFD),
)
SYMBOLS = ((0x2190, 0x27BF), (0x27C0, 0x2BFF), (0x1D400, 0x1D7FF), (0x1F100, 0x1F12F))
CJK_RANGES = (
    (0x2010, 0x2044),  # dashes, quotation marks, dots
    (0x2100, 0x24FF),  # letterlike, arrows, mathematics, enclosed
    (0x2500, 0x26FF),  # boxes, blocks, geometric shapes
    (0x3000, 0x303F),  # punctuation
    (0x3040, 0x30FF),  # kana
    (0x3100, 0x312F),  # bopomofo
    (0x3130, 0x318F),  # Hangul letters
    (0x31A0, 0x31FF),  # more bopomofo, kana
    (0x3200, 0x33FF),  # enclosed, compatibility
    (0xAC00, 0xD7A3),  # every Hangul syllable
    (0xFE30, 0xFE4F),  # vertical punctuation
    (0xFF00, 0xFFEF),  # full and half width
)
CJK_CHARSETS = (  # Han characters in common use, by the last first byte of the standard's part that is taken
    ("gb2312", 0xFE),  # simplified
    ("euc_jp", 0xFE),  # JIS X 0208, levels 1 and 2
    ("euc_kr", 0xFE),  # KS X 1001
    ("big5", 0xC6),  # traditional, level 1
)


def characters(ranges: Iterable[tuple[int, int]]) -> set[int]:
    """Every code point of some ranges, ends included."""
    return {code for first, last in ranges for code in range(first, last + 1)}


def charset(codec: str, last: int) -> set[int]:
    """Every character that two bytes of a national standard encode, up to a last first byte."""
    pairs = (bytes((high, low)) for high in range(0xA1, last + 1) for low in range(0x40, 0xFF))
    decoded = (pair.decode(codec, "ignore") for pair in pairs)
    return {ord(text) for text in decoded if len(text) == 1}


def write(font: TTFont, codes: set[int], name: str, file: str) -> TTFont:
    """Cut a font down to some characters, rename it and write it."""
    options = subset.Options()
    options.layout_features = []
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "BASE", "VORG", "vhea", "vmtx", "DSIG", "MATH", "meta"]
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
    options.name_languages = [0x409]
    options.notdef_outline = True
    options.hinting = True
    options.desubroutinize = False
    font.recalcTimestamp = False
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    style = "Bold" if file.endswith("bold.ttf") else "Regular"
    for record in font["name"].names:
        changed = {1: name, 2: style, 3: f"{name} {style}", 4: f"{name} {style}", 6: f"{name}-{style}".replace(" ", "")}
        if record.nameID in changed:
            record.string = changed[record.nameID]
    if "CFF " in font:
        cff = font["CFF "].cff
        cff.fontNames = [f"{name}-{style}".replace(" ", "")]
        top = cff.topDictIndex[0]
        for field in ("FullName", "FamilyName"):
            if hasattr(top, field):
                setattr(top, field, name)
    font.save(FONTS / file)
    print(f"{file:20} {len(font.getBestCmap()):6} characters {(FONTS / file).stat().st_size:10,} bytes")
    return font


def main() -> int:
    """Write the five fonts; print what each holds."""
    unpacked = Path(sys.argv[1])
    for weight in ("Regular", "Bold"):
        font = TTFont(unpacked / CORE / f"NotoSans-{weight}.ttf")
        write(font, characters(ALPHABETS), "Memharness Page Sans", f"sans-{weight.lower()}.ttf")
    collection = TTCollection(unpacked / CJK / "NotoSansCJK-Regular.ttc")
    chinese = next(font for font in collection.fonts if font["name"].getDebugName(1) == "Noto Sans CJK SC")
    codes = characters(CJK_RANGES).union(*(charset(*part) for part in CJK_CHARSETS)) - characters(
        [(0x20, 0x24F), (0x370, 0x52F)]
    )
    write(chinese, codes, "Memharness Page CJK", "cjk.otf")
    for source, name, file in (
        ("NotoSansMath-Regular.ttf", "Memharness Page Math", "math.ttf"),
        ("NotoSansSymbols-Regular.ttf", "Memharness Page Symbols", "symbols.ttf"),
        ("NotoSansSymbols2-Regular.ttf", "Memharness Page Symbols Two", "symbols2.ttf"),
    ):
        write(TTFont(unpacked / CORE / source), characters(SYMBOLS), name, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
