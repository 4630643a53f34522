"""Reports as models write them, well or badly: never an error, and always flagged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.methods.vmas.reports import Report, read_reply, split
from memharness.reader import Reply
from memharness.types import Usage

WELL = "Perception: a red kite.\nTwo boys.\nThinking: kites need wind.\nConclusion: B"


def reply(text: str, **more: str) -> Reply:
    return Reply(text, Usage(), **more)  # type: ignore[arg-type]


def test_a_report_as_asked() -> None:
    report = read_reply(reply(WELL))
    assert report == Report(
        WELL, perception="a red kite.\nTwo boys.", thinking="kites need wind.", conclusion="B", flags=()
    )


@pytest.mark.parametrize(
    "text",
    [
        "**Perception:** a kite\n**Thinking:** wind\n**Conclusion:** B",
        "**Perception**: a kite\n\n**Thinking**: wind\n\n**Conclusion**: B",
        "## Perception\na kite\n## Thinking\nwind\n## Conclusion\nB",
        "1. PERCEPTION: a kite\n2. thinking: wind\n3. Conclusion: B",
        "- Perception:a kite\n- Thinking:wind\n- Conclusion:B",
        "Perception：a kite\nThinking：wind\nConclusion：B",
    ],
)
def test_headings_in_the_hands_models_write(text: str) -> None:
    report = split(text)
    assert (report.perception, report.thinking, report.conclusion, report.flags) == ("a kite", "wind", "B", ())


@pytest.mark.parametrize(
    ("text", "perception", "thinking", "conclusion", "flags"),
    [
        ("", "", "", "", ()),
        ("B", "", "B", "B", ("unstructured", "no_conclusion")),
        ("It is windy.\nSo B.", "", "It is windy.\nSo B.", "So B.", ("unstructured", "no_conclusion")),
        ("Perception: a kite\nup high", "a kite\nup high", "", "up high", ("no_conclusion",)),
        ("Well.\nConclusion: B", "", "Well.", "B", ()),
        ("Conclusion: A\nThinking: no\nConclusion: B", "", "no", "A\nB", ()),
        ("Conclusion:", "", "", "", ("no_conclusion",)),
        ("Thinking: wind\nNext: 3", "", "wind", "wind", ("no_conclusion",)),
        ("My perception is poor: none", "", "My perception is poor: none", "My perception is poor: none",
         ("unstructured", "no_conclusion")),
    ],
)  # fmt: skip
def test_what_is_missing_is_filled_by_rule(
    text: str, perception: str, thinking: str, conclusion: str, flags: tuple[str, ...]
) -> None:
    report = split(text)
    assert (report.perception, report.thinking, report.conclusion) == (perception, thinking, conclusion)
    assert report.flags == flags


@pytest.mark.parametrize(("line", "number"), [("Next: 3", 3), ("**Next:** agent 12.", 12), ("Next: the reader", None)])
def test_who_goes_on(line: str, number: int | None) -> None:
    assert split(f"{WELL}\n{line}").next == number


def test_thinking_models() -> None:
    apart = read_reply(reply(WELL, reasoning="hm, a kite"))
    inline = read_reply(reply(f"<think>\nhm, a kite\n</think>\n\n{WELL}"))
    assert apart == inline
    assert apart.reasoning == "hm, a kite"
    assert apart.told("full") == f"hm, a kite\n{WELL}"
    assert apart.told("full", reasoning=False) == WELL
    closed_alone = read_reply(reply(f"hm\n</think>{WELL}"))  # templates that put the opening tag into the prompt
    assert (closed_alone.reasoning, closed_alone.whole) == ("hm", WELL)
    cut = read_reply(reply("<think>hm, a ki", finish="length"))
    assert (cut.whole, cut.reasoning) == ("", "hm, a ki")
    assert cut.flags == ("empty", "truncated", "unclosed_thinking")
    assert cut.told("conclusion") == ""
    bare = read_reply(reply("B", reasoning="wind"))
    assert bare.told("thinking") == "Thinking: B\nConclusion: B"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("conclusion", "Conclusion: B"),
        ("perception", "Perception: a red kite.\nTwo boys.\nConclusion: B"),
        ("thinking", "Thinking: kites need wind.\nConclusion: B"),
        ("full", WELL),
    ],
)
def test_the_four_contents(content: str, told: str) -> None:
    assert read_reply(reply(WELL)).told(content) == told  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.text(st.sampled_from("aB:*#\n </think>Perception:Conclusion:Next 3◁▷"), max_size=80), st.text(max_size=8))
def test_nothing_a_model_writes_is_an_error(text: str, reasoning: str) -> None:
    report = read_reply(reply(text, reasoning=reasoning))
    assert report.whole in text
    assert ("empty" in report.flags) == (not report.whole)
    assert "unclosed_thinking" not in report.flags or not report.whole
    if not {"empty", "no_conclusion"} & set(report.flags):
        assert report.conclusion
    if "no_conclusion" in report.flags and report.conclusion:
        assert report.conclusion in report.whole
    for content in ("conclusion", "perception", "thinking", "full"):
        said = report.told(content)  # type: ignore[arg-type]
        assert ("Conclusion:" in said) >= (content != "full" and bool(report.conclusion))
