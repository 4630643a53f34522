"""Markdown memories as blocks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.pages import Style, lay_out, markdown

MEMORY = """Before any heading.

# People
- **Ada Lovelace** wrote *notes*
- Charles `Babbage` built 2 * 3 engines; see [the page](http://a.org/x)

## Dates ##
> **1843**: snake_case_stays
***
```
# not a heading
```
"""


def bold(text: str) -> list[str]:
    """What is bold in a text's only block."""
    (block,) = markdown(text)
    return [block.text[start:end] for start, end in block.spans]


def test_a_memory() -> None:
    blocks = markdown(MEMORY)
    assert [(block.id, block.title, block.level) for block in blocks] == [
        ("m0", "", 0), ("m1", "People", 1), ("m2", "Dates", 2)
    ]  # fmt: skip
    assert blocks[0].text == "Before any heading."
    assert blocks[1].text == "• Ada Lovelace wrote notes\n• Charles Babbage built 2 * 3 engines; see the page"
    assert blocks[2].text == "1843: snake_case_stays\n# not a heading"
    assert [block.text[start:end] for block in blocks for start, end in block.spans] == ["Ada Lovelace", "1843"]


@pytest.mark.parametrize(
    ("text", "words", "key"),
    [
        ("**a b** c", "a b c", ["a b"]),
        ("__a__ and **b**", "a and b", ["a", "b"]),
        ("***both***", "both", ["both"]),
        ("**a *b* c**", "a b c", ["a ", "b", " c"]),
        (r"\*\*not\*\*", "**not**", []),
        ("`**code**`", "**code**", []),
        ("2 ** 3 ** 4", "2 ** 3 ** 4", []),
        ("a * b * c", "a * b * c", []),
        ("1. one", "1. one", []),
        ("#hashtag", "#hashtag", []),
    ],
)
def test_marks(text: str, words: str, key: list[str]) -> None:
    (block,) = markdown(text)
    assert block.text == words
    assert bold(text) == key


def test_nothing_is_no_blocks() -> None:
    assert markdown(" \n\n---\n") == ()


@settings(deadline=None)
@given(st.text("ab *_>#-[]\\\n!", max_size=60))
def test_any_text_keeps_its_letters_and_can_be_laid_out(text: str) -> None:
    blocks = markdown(text)
    letters = "".join(block.title + block.text for block in blocks)
    assert [letter for letter in letters if letter in "ab"] == [letter for letter in text if letter in "ab"]
    if blocks:
        assert lay_out(blocks, "plain", 300, 99_999, Style(key="")) is not None
