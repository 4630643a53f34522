"""Token counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from memharness.reader import count
from memharness.readers.counters import Bytes4, tokenizer_counter
from memharness.types import Image, Text, UserError


@given(st.text())
def test_bytes4_is_a_quarter_of_the_bytes_rounded_up(text: str) -> None:
    n = len(text.encode("utf-8", "surrogatepass"))
    assert 4 * Bytes4().text(text) - 3 <= n <= 4 * Bytes4().text(text)


def test_bytes4_pictures() -> None:
    assert Bytes4().image(0, 0) == 0
    assert Bytes4().image(1, 32) == 1
    assert Bytes4().image(33, 64) == 4
    assert count(Bytes4(), (Text("ab"), Text("cd"), Image("x", "", 32, 32), Text("e"))) == 3


def test_a_users_tokenizer(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = tokenizer_counter(tmp_path / "tokenizer.json")
    assert counter.text("the cat sat down") == 4  # what the file truncates is counted all the same
    assert counter.name.startswith("tokenizer-")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(UserError, match=r"bad\.json"):
        tokenizer_counter(tmp_path / "bad.json")
