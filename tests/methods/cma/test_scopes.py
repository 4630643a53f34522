"""What outlives a turn: typed preferences, feedback, the gallery."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.cma import scopes
from memharness.methods.cma.scopes import Preference


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("I like it!", "liked"),
        ("That looks great.", "liked"),
        ("真好看！", "liked"),
        ("I don't like it.", "rejected"),
        ("This is ugly, but I like the sky.", "rejected"),
        ("我不喜欢这张。", "rejected"),
        ("刚才那张图我最喜欢。", "liked"),
        ("我妹妹看了图，很喜欢。", None),
        ("My sister loved them.", None),
        ("I would like a boat.", None),
        ("I'd love to see a boat.", None),
        ("Make it red.", None),
        ("I always like flat colours.", None),
    ],
)
def test_feedback_is_read_from_the_words(words: str, said: str | None) -> None:
    assert scopes.feedback(words) == said


@pytest.mark.parametrize(
    ("words", "type"),
    [
        ("Never draw people.", "avoid"),
        ("From now on, answer in Chinese.", "language"),
        ("I prefer square pictures.", "format"),
        ("Always use warm colours.", "style"),
        ("以后都不要画人。", "avoid"),
        ("我更喜欢暖色调的颜色。", "style"),
    ],
)
def test_preferences_are_typed(words: str, type: str) -> None:
    assert [one.type for one in scopes.preferences(f"Draw a boat. {words}")] == [type]


def test_a_request_is_no_preference() -> None:
    assert scopes.preferences("Make the mug red. I like it.") == []


def test_the_gallery_is_asked_for_by_name() -> None:
    assert scopes.promotes("Please save this one to my gallery.")
    assert scopes.promotes("把这张收藏起来。")
    assert not scopes.promotes("Draw a gallery full of paintings.")


@given(st.lists(st.sampled_from("abcdefghijkl"), max_size=30))
def test_of_preferences_each_stands_once_and_the_newest_hold(words: list[str]) -> None:
    held = scopes.active([Preference("other", word) for word in words])
    expected = list(dict.fromkeys(reversed(words)))[:8][::-1]
    assert [one.words for one in held] == expected


def test_the_users_page_has_an_index_and_a_section_a_type() -> None:
    page = scopes.markdown(
        [Preference("style", "Warm."), Preference("avoid", "No people."), Preference("style", "Flat.")]
    )
    assert page == (
        "# User\n\n- [style](#style): 2\n- [avoid](#avoid): 1\n\n"
        "## style\n\n- Warm.\n- Flat.\n\n## avoid\n\n- No people.\n"
    )
