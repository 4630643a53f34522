"""Data as scripts: nothing ends a script early, every row is found again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.report.viewer.shards import Shards, put, script
from memharness.types import UserError

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("__proto__"), inner),
    max_leaves=8,
)


def held(text: str) -> tuple[str, Any]:
    """Name and value of a script, read as JavaScript reads its two strings, which JSON holds too."""
    name, value = json.loads("[" + text.removeprefix("memharness(").removesuffix(");\n") + "]")
    return name, json.loads(value)


@given(VALUES)
def test_a_script_hands_over_what_was_given_and_ends_nothing(value: Any) -> None:
    text = script("name", value)
    assert held(text) == ("name", value)
    assert "<" not in text
    assert not {"\u2028", "\u2029"} & set(text)
    text.encode()


def test_what_would_end_a_script_is_escaped() -> None:
    text = script("n", {"</script>": "<!--\u2028\ud800"})
    assert "</script>" not in text and "<!--" not in text
    assert held(text)[1] == {"</script>": "<!--\u2028\ud800"}


@settings(max_examples=30)
@given(st.lists(st.text(max_size=60)), st.integers(1, 7), st.integers(1, 200))
def test_every_row_is_in_the_shard_that_starts_before_it(rows: list[str], most: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Shards(Path(folder), "s", rows=most, size=size) as shards:
            assert [shards.add(row) for row in rows] == list(range(len(rows)))
        found: list[str] = []
        for at, start in enumerate(shards.starts):
            name, part = held((Path(folder) / f"s-{at}.js").read_text("utf-8"))
            assert (name, start) == (f"s-{at}", len(found))
            assert 1 <= len(part) <= most
            found += part
        assert found == rows
        assert len(list(Path(folder).iterdir())) == len(shards.starts)


def test_nothing_is_written_after_a_fault(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), Shards(tmp_path, "s", rows=9) as shards:
        shards.add("row")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(UserError, match=r"data/x\.js"):
        put(tmp_path / "data" / "x.js", "")
