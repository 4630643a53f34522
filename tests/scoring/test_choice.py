from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.scoring.choice import extract_choice


def test_case_article_is_no_option(shared: Path) -> None:
    rows = json.loads((shared / "cases/c19_article_is_option_a.json").read_text())["rows"]
    found = [extract_choice(row["reply"]) for row in rows]
    assert found == [None, "C", "B", "D", "C", "C"]
    for row, letter in zip(rows, found, strict=True):
        right = str(row["right"])
        allowed = {None if right == "unparsed" else right[0].upper()}
        assert letter in allowed | ({None} if "or unparsed" in right else set()), row


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("a", "A"),
        ("(b).", "B"),
        ("**C**", "C"),
        ("Option D", "D"),
        ("B. the dog", "B"),
        ("(B) the dog", "B"),
        ("The correct answer is (B)", "B"),
        ("The correct choice is:\n(C) Point C", "C"),
        ("Answer: D. A quiet evening suits them.", "D"),
        ("Answer: A", "A"),
        ("The answer is A because the sky is blue.", "A"),
        ("The answer is B because A is wrong.", "B"),
        ("I would go with option C", "C"),
        ("The answer is (A). Wait, the answer is (B).", "B"),
        ("(B), and not (A)", "B"),
        ("<final_answer>(c)</final_answer>", "C"),
        ("(a) or (b)? <answer>b</answer>", "B"),
        ("<answer>a</answer> no, <answer>B</answer>", "B"),
        (r"So \boxed{B}.", "B"),
        (r"\boxed{\text{C}}", "C"),
        ("<think>(A) looks right, so (A)</think>The answer is (B).", "B"),
        ("(D) 0</s>", "D"),
    ],
)
def test_declared_letters(reply: str, letter: str) -> None:
    assert extract_choice(reply) == letter


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "(",
        ".",
        "A cat sat on the mat.",
        "I cannot give a definite answer.",
        "The answer is a cat",
        "Answer: A cat",
        "Based on the image, it is unclear.",
        "The answer is not B.",
        "I don't think the answer is (B).",
        "The answer is (A) or (B).",
        "The answer is B and C.",
        "Both (A) and (B) are fine.",
        "None of (A) 4, (B) 3, (C) 5 or (D) 6.",
        "Option (A) is wrong.",
        "A. cat\nB. dog",
        "The answer is E.",
        "The answer is dog",
        "<final_answer>I am not sure</final_answer> (B)",
        "<think>so (A)",
        "A-levels and B-movies",
        "E",
    ],
)
def test_nothing_is_guessed(reply: str) -> None:
    assert extract_choice(reply) is None


def test_only_this_questions_letters_count() -> None:
    assert extract_choice("(C)", "AB") is None
    assert extract_choice("The answer is (E)", "ABCDE") == "E"


def test_option_text_is_the_last_resort() -> None:
    texts = {"A": "5", "B": "7", "C": "woman", "D": "man"}
    assert extract_choice("15", texts=texts) is None
    assert extract_choice("It is 7.", texts=texts) == "B"
    assert extract_choice("a woman", texts=texts) == "C"
    assert extract_choice("a woman and a man", texts=texts) is None
    assert extract_choice("It is not 7", texts=texts) is None
    assert extract_choice("7, so (A)", texts=texts) == "A"
    nested = {"A": "kite", "B": "a red kite"}
    assert extract_choice("It was a red kite", "AB", nested) == "B"
    assert extract_choice("A red kite or another kite", "AB", nested) is None
    assert extract_choice("anything", "AB", {"A": "", "B": "?"}) is None


def test_real_replies(shared: Path) -> None:
    # Replies of 21 models on BLINK with the letter its authors read ("Z" for none): wrong letters and invented ones
    # must stay rare, whatever that costs in replies left unread.
    seen: Counter[tuple[str, str]] = Counter()
    for line in (shared / "data/blink/blink_val_predictions_sample.jsonl").read_text().splitlines():
        if not line.strip():
            continue
        row = json.loads(line)
        wanted, found = row["extracted"][1], extract_choice(row["full_prediction"])
        seen[row["kind"], "none" if found is None else "agree" if found == wanted else "other"] += 1

    def share(kind: str, outcome: str) -> float:
        return seen[kind, outcome] / sum(count for (other, _), count in seen.items() if other == kind)

    assert share("letter_short", "agree") >= 0.9
    assert share("letter_long", "agree") >= 0.65
    assert share("letter_short", "other") + share("letter_long", "other") <= 0.01
    # What is left declares "(C) None of the above" in questions of two options, which the sample does not tell.
    assert share("Z_long", "other") <= 0.06


def test_long_blanks_and_repeats_take_no_time() -> None:
    for filler in (" ", "\n", "(", "answer is ", "option ", "so ", "*", "A ", ".", "<answer>", "\\boxed{"):
        assert extract_choice(filler * 20_000) is None


@given(st.text(max_size=60))
def test_any_text_gives_a_letter_of_the_question_or_none(reply: str) -> None:
    assert extract_choice(reply) in {None, "A", "B", "C", "D"}


@given(st.text(alphabet="bcdefghijklmnopqrstuvwxyz ", max_size=40), st.sampled_from("ABCD"))
def test_a_final_declaration_is_read_after_anything(prose: str, letter: str) -> None:
    assert extract_choice(f"{prose}. The answer is ({letter}).") == letter
