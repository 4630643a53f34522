"""Canonical JSON, its digest, and the chain whose links show a change from where it happened on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.identity import Chain, canonical, digest, file_digest, opaque_id, score_key
from memharness.types import Outcome

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
TREES = st.recursive(
    LEAVES, lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4), max_leaves=12
)


@dataclass(frozen=True)
class Point:
    """A value with fields."""

    x: int
    names: frozenset[str] = frozenset()


# ------------------------------------------------------------------------------------------------------ canonical JSON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ((1, 2), "[1,2]"),
        ({3, 1, 2}, "[1,2,3]"),
        (frozenset({"b", "a"}), '["a","b"]'),
        ({"b", 1}, '["b",1]'),
        ({Point(2), Point(1)}, '[{"names":[],"x":1},{"names":[],"x":2}]'),
        (Point(1, frozenset("ba")), '{"names":["a","b"],"x":1}'),
        ({"p": [Point(1)]}, '{"p":[{"names":[],"x":1}]}'),
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e300, str(int(1e300))),
        (Outcome.OK, '"ok"'),
        ({7: "x"}, '{"7":"x"}'),
        ("é", '"é"'),
    ],
)
def test_canonical_form(value: Any, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {"a": [float("nan")]}])
def test_no_nan_and_no_infinity(value: Any) -> None:
    with pytest.raises(ValueError, match="no place in an identity"):
        canonical(value)


@pytest.mark.parametrize("value", [Path("x"), {"a": Path("x")}, [(Path("x"),)]])
def test_a_path_is_not_an_identity(value: Any) -> None:
    with pytest.raises(TypeError, match="hash the content"):
        canonical(value)


@pytest.mark.parametrize("value", [b"bytes", object(), Point, len])
def test_what_has_no_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="no canonical form"):
        canonical(value)


def test_keys_that_read_alike_are_refused() -> None:
    with pytest.raises(ValueError, match="read alike"):
        canonical({1: "a", "1": "b"})


def test_a_truth_value_is_no_number() -> None:
    assert digest([True]) != digest([1])
    assert digest([False]) != digest([0])
    assert digest([None]) != digest(["null"])


def test_half_a_surrogate_has_a_digest() -> None:
    assert digest("\ud83d") != digest("\ude00")


@given(TREES)
def test_canonical_form_is_json_of_the_same_value(value: Any) -> None:
    assert json.loads(canonical(value)) == json.loads(json.dumps(value))


@given(st.dictionaries(st.text(), TREES, max_size=6), st.randoms())
def test_the_order_of_keys_never_matters(value: dict[str, Any], rng: Any) -> None:
    keys = list(value)
    rng.shuffle(keys)
    assert canonical({key: value[key] for key in keys}) == canonical(value)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of a tree's leaves; an empty list or mapping is one."""
    if not isinstance(value, list | dict) or not value:
        return [path]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [leaf for step, inside in steps for leaf in leaves(inside, (*path, step))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a path."""
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The tree with another leaf at a path."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: put(value[step], tuple(rest), new)}
    return [put(item, tuple(rest), new) if index == step else item for index, item in enumerate(value)]


def same(one: Any, other: Any) -> bool:
    """Equality that tells true from 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


@settings(max_examples=200)
@given(st.data())
def test_any_changed_leaf_changes_the_digest(data: st.DataObject) -> None:
    value = data.draw(TREES)
    path = data.draw(st.sampled_from(leaves(value)))
    new = data.draw(LEAVES.filter(lambda leaf: not same(leaf, at(value, path))))
    assert digest(put(value, path, new)) != digest(value)


def test_files_and_opaque_ids(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert file_digest(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert opaque_id("a", 1) == opaque_id("a", 1)
    assert len({opaque_id("a", 1), opaque_id("a1"), opaque_id("a", 2), opaque_id(1, "a")}) == 4
    assert all(len(opaque_id(part)) == 12 for part in ("", "\ud83d", 7))


# ----------------------------------------------------------------------------------------------------------- the chain

PARTS: dict[str, dict[str, Any]] = {
    "memory": {"method": "m", "config": {"k": 10}, "data": {"a.json": "00"}, "seed": 0},
    "readout": {"budget": None, "view": "pixels"},
    "reply": {"answer": {"model": "x"}, "prompt": "answer.v1"},
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("change", [lambda part: part | {"new": 1}, lambda part: dict(list(part.items())[1:])])
def test_a_change_shows_from_its_link_on(part: str, change: Callable[[Any], Any]) -> None:
    before, after = Chain.of(**PARTS), Chain.of(**{**PARTS, part: change(PARTS[part])})
    links = list(PARTS)
    equal = [getattr(before, link) == getattr(after, link) for link in links]
    assert equal == [at < links.index(part) for at in range(3)]


def test_links_differ_even_where_their_parts_are_equal() -> None:
    chain = Chain.of({}, {}, {})
    assert len({chain.memory, chain.readout, chain.reply}) == 3


def test_a_score_is_of_a_reply_a_metric_and_a_judge() -> None:
    keys = {
        score_key("a", "F1", None),
        score_key("b", "F1", None),
        score_key("a", "EM", None),
        score_key("a", "F1", {"model": "x", "rubric": "r.v1"}),
        score_key("a", "F1", {"model": "x", "rubric": "r.v2"}),
    }
    assert len(keys) == 5
