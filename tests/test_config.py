"""Configs: what a word says to a field, what a mistake is called, and what enters the identity."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.config import Config, build, option, parse_pairs, read_word, resolved
from memharness.types import UserError


class Knobs(Config):
    """One of each."""

    depth: int = option(3, "how deep", source="paper §4.2", unit="hops", ge=1, le=9)
    weight: float = option(0.5, "a weight", gt=0)
    text: str = option("", "words")
    fast: bool = option(False, "whether to hurry")
    mode: Literal["no", "yes", "auto"] = option("auto", "a mode")
    limit: int | None = option(None, "a limit")
    name: str | None = option(None, "a name")
    names: list[str] = option([], "names")
    weights: dict[str, float] = option({}, "weights")
    batch: int = option(8, "calls at once", how=True)
    later: bool = option(False, "added in a later version", neutral=True)


def given_as(*words: str) -> Knobs:
    """The config that `-M` words give."""
    return build(Knobs, parse_pairs(words, "-M"), "-M", "knobs")


# ---------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("word", "field", "value"),
    [
        ("text=No", "text", "No"),
        ("text=1999", "text", "1999"),
        ("text=null", "text", "null"),
        ("text=", "text", ""),
        ("text=2024-01-01", "text", "2024-01-01"),
        ("text=passage: ", "text", "passage: "),
        ("text=a # b", "text", "a # b"),
        ("text={x", "text", "{x"),
        ("text=[a, b]", "text", "[a, b]"),
        ("text=a=b", "text", "a=b"),
        ("text='No'", "text", "No"),
        ('text="a\\nb"', "text", "a\nb"),
        ("text='tis", "text", "'tis"),
        ("text='a' or 'b'", "text", "'a' or 'b'"),
        ("mode=no", "mode", "no"),
        ("mode=yes", "mode", "yes"),
        ("fast=no", "fast", False),
        ("fast=true", "fast", True),
        ("depth=5", "depth", 5),
        ("weight=1e-5", "weight", 1e-5),
        ("weight=2", "weight", 2.0),
        ("limit=null", "limit", None),
        ("limit=7", "limit", 7),
        ("name=null", "name", None),
        ("name=No", "name", "No"),
        ("name=12", "name", "12"),
        ("name='null'", "name", "null"),
        ("names=[a, b]", "names", ["a", "b"]),
        ("weights={a: 1, b: 0.5}", "weights", {"a": 1.0, "b": 0.5}),
    ],
)
def test_a_word_says_what_its_field_wants(word: str, field: str, value: Any) -> None:
    found = getattr(given_as(word), field)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("word", "annotation", "value"),
    [
        ("5", int | str, 5),
        ("five", int | str, "five"),
        ("'5'", int | str, "5"),
        ("none", Optional[Literal["none", "fixed"]], "none"),  # noqa: UP045
        ("null", Literal["none", "fixed"] | None, None),
        ("2", Literal["auto", 2], 2),
        ("No", Annotated[str, "any"], "No"),
        ("[1, x]", Any, [1, "x"]),
        ("[1, x]", list[Any], [1, "x"]),
    ],
)
def test_a_word_and_a_type(word: str, annotation: Any, value: Any) -> None:
    assert read_word(word, annotation) == value


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]) | st.just(" ")))
def test_text_in_quotes_is_the_text_and_plain_text_is_itself(text: str) -> None:
    assert read_word(json.dumps(text, ensure_ascii=False)) == text
    if text[:1] not in ("'", '"'):
        assert read_word(text) == text


def test_values_that_are_no_words_are_left_as_they_are() -> None:
    values = {"depth": 4, "names": ["No", "1"], "fast": True, "limit": None, "text": "No"}
    assert build(Knobs, values, "-M", "knobs").model_dump(include=set(values)) == values


def test_pairs() -> None:
    assert parse_pairs(["a=1", " b =x=y", "a=2", "c= "], "-M") == {"a": "2", "b": "x=y", "c": " "}
    for word in ("a", "=1", " =1", ""):
        with pytest.raises(UserError, match=r"-M .*: expected -M KEY=VALUE"):
            parse_pairs([word], "-M")


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("detph=3", "-M detph: knobs has no such option (did you mean depth?); it has: depth, weight, text"),
        ("zzz=3", "-M zzz: knobs has no such option; it has: depth"),
        ("depth=0", "-M depth=0: Input should be greater than or equal to 1 (see `memharness show knobs`)"),
        ("depth=deep", "-M depth='deep': Input should be a valid integer"),
        ("depth=1.5", "-M depth=1.5: Input should be a valid integer"),
        ("depth={x", "-M depth={x: the value is not valid YAML"),
        ("weight=.nan", "-M weight=nan: Input should be"),
        ("weight=.inf", "-M weight=inf: Input should be a finite number"),
        ("mode=maybe", "-M mode='maybe': Input should be 'no', 'yes' or 'auto'"),
        ("fast=maybe", "-M fast='maybe': Input should be a valid boolean"),
        ("names=a", "-M names='a': Input should be a valid list"),
        ("names=[a, {b: c}]", "-M names.1={'b': 'c'}: Input should be a valid string"),
    ],
)
def test_a_mistake_names_flag_key_value_and_what_is_accepted(word: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        given_as(word)
    assert str(caught.value).startswith(message)


def test_a_config_without_fields_says_so() -> None:
    class Nothing(Config):
        """Nothing to set."""

    with pytest.raises(UserError, match="null has no such option; it has: none"):
        build(Nothing, {"k": 1}, "-M", "null")


def test_a_check_of_the_whole_config_names_its_owner() -> None:
    class Pair(Config):
        """Two that belong together."""

        low: int = option(0, "low")
        high: int = option(1, "high")

        @pydantic.model_validator(mode="after")
        def ordered(self) -> Pair:
            """Low first."""
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    with pytest.raises(UserError, match=r"-B pair=.*low is above high"):
        build(Pair, {"low": 3}, "-B", "pair")


def test_a_config_is_immutable() -> None:
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        Knobs().depth = 4


# ------------------------------------------------------------------------------------------------------------- identity


def test_what_enters_the_identity() -> None:
    plain = resolved(Knobs())
    assert "batch" not in plain
    assert "later" not in plain
    assert plain["depth"] == 3
    assert resolved(given_as("batch=64")) == plain
    assert resolved(given_as("later=false")) == plain
    assert resolved(given_as("later=true")) == plain | {"later": True}
    assert resolved(given_as("depth=3")) == plain
    assert resolved(given_as("depth=4")) == plain | {"depth": 4}
    assert resolved(given_as("text=1999")) == resolved(given_as("text='1999'"))


def test_a_field_says_what_it_is_and_where_its_default_comes_from() -> None:
    info = Knobs.model_fields["depth"]
    assert info.description == "how deep"
    assert info.json_schema_extra == {"source": "paper §4.2", "unit": "hops", "neutral": False, "how": False}
