"""A judge that is shown pictures: which it is given, what needs no call, and how points become scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from memharness.judging import Judge, rubric
from memharness.metric import must_see
from memharness.reader import Reply
from memharness.types import Asked, Image, Status, Text, UserError

Make = Callable[..., Asked]
JUDGE = Judge("m2ca.v1")
MADE, BROUGHT, LOST = Image("a" * 64, "image/png", 8, 8), Image("b" * 64, "image/png", 4, 4), Image(None, source="lost")


def drawn(unit: Asked, *pictures: Image) -> Asked:
    """The same with pictures in its answer."""
    return Asked(unit.question, unit.gold, replace(unit.record, pictures=pictures))


def test_the_judge_is_shown_what_was_brought_and_made(asked: Make) -> None:
    unit = drawn(asked("Here.", question="Draw her house."), MADE)
    unit = Asked(replace(unit.question, parts=(Text("Draw her house."), BROUGHT, LOST)), unit.gold, unit.record)
    parts = JUDGE.ask([unit]).messages[-1].parts
    assert [part for part in parts if isinstance(part, Image)] == [BROUGHT, MADE]
    words = "".join(part.text for part in parts if isinstance(part, Text))
    assert "The user said: Draw her house." in words
    assert words.count("(none)") == 1, "there are no earlier pictures"
    bare = JUDGE.ask([asked("No.")]).messages[-1].parts
    assert "".join(part.text for part in bare if isinstance(part, Text)).count("(none)") == 3


def test_only_rubrics_for_what_is_seen_show_pictures(asked: Make) -> None:
    assert JUDGE.sees
    assert not Judge().sees
    assert not any(isinstance(part, Image) for part in Judge().ask([drawn(asked("x"), MADE)]).parts())


def test_nothing_at_all_scores_0_without_a_call_and_a_picture_alone_is_judged(asked: Make) -> None:
    for answer in ("", None):
        assert {score.value for score in JUDGE.score([asked(answer)], {}).values()} == {0}
        assert JUDGE.score([drawn(asked(answer), MADE)], {}) == {}
    assert JUDGE.score([asked("words", ())], {}) == {}, "a reference is not needed"


def test_the_mean_is_over_the_points_that_apply(asked: Make, reply: Callable[..., Reply]) -> None:
    unit = [drawn(asked("Here."), MADE)]
    found = JUDGE.read(unit, reply(json.dumps({"faithfulness": 8, "preservation": 6, "correctness": 10})))
    assert {name: score.value for name, score in found.items()} == {
        "quality": 8, "faithfulness": 8, "preservation": 6, "correctness": 10,
    }  # fmt: skip
    found = JUDGE.read(unit, reply(json.dumps({"faithfulness": 8, "preservation": None, "correctness": 9})))
    assert found["quality"].value == 8.5
    assert found["preservation"].status is Status.NOT_APPLICABLE
    assert JUDGE.said(found) == 8.5
    assert JUDGE.accepts(8.5)
    assert not JUDGE.accepts(5.5)


def test_a_reply_that_cannot_be_read_is_a_judges_error_and_no_number(asked: Make, reply: Callable[..., Reply]) -> None:
    found = JUDGE.read([asked()], reply("A fine picture. 9/10"))
    assert {(score.value, score.status) for score in found.values()} == {(None, Status.JUDGE_ERROR)}


def test_a_judge_that_sees_nothing_is_refused() -> None:
    must_see("mute", frozenset(), [Judge()])
    must_see("eyes", frozenset({"image"}), [JUDGE])
    with pytest.raises(UserError, match=r"judge mute sees no pictures, and Judge\(rubric=m2ca.v1\) shows them; name"):
        must_see("mute", frozenset({"schema"}), [JUDGE])


GOOD = """\
about = "a"
source = "s"
score = "mine"
level = "interval"
parser = "points"
levels = [0, 1, 2]
optional = ["b"]
schema = '{"type": "object"}'
in_json = "JSON"
[points]
"a" = "mine_a"
"b" = "mine_b"

# user
{question} {answer} {made}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[points]\n"a" = "mine_a"\n"b" = "mine_b"\n', "", r"key: a rubric has one, but for parser `points`"),
        ('parser = "points"', 'parser = "points"\nkey = "a"', r"key: a rubric has one, but for parser `points`"),
        ('optional = ["b"]', 'optional = ["c"]', r"optional: 'c' is no field of \[points\]"),
        ("levels = [0, 1, 2]\n", "", r"`points` has one of any from 0"),
        ("levels = [0, 1, 2]", "levels = [-1, 2]", r"`points` has one of any from 0"),
        (" {made}", "", r"\{reference\}: the prompt does not show it"),
        ("{answer} ", "", r"\{answer\}: the prompt does not show it"),
    ],
)
def test_a_rubric_of_points_that_contradicts_itself_is_refused(tmp_path, old: str, new: str, said: str) -> None:  # type: ignore[no-untyped-def]
    good, bad = tmp_path / "good.v1.txt", tmp_path / "bad.v1.txt"
    good.write_text(GOOD)
    assert rubric(str(good)).names == ("mine", "mine_a", "mine_b")
    assert GOOD.replace(old, new) != GOOD
    bad.write_text(GOOD.replace(old, new))
    with pytest.raises(UserError, match=said):
        rubric(str(bad))
