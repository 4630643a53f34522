from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmarks.atm.exact_match import deterministic_accuracy, list_ids, list_jaccard

TEXT = st.text(alphabet=st.sampled_from("abnoty 0123456789:.,-/£$()ADMJu"), max_size=40)


@pytest.mark.parametrize(
    ("gold", "prediction", "right"),
    [
        # abstention on both sides or on none
        ("Unknown", "There is no information about it.", True),
        ("Unknown", "Paris", False),
        ("Paris", "unknown", False),
        # alphanumeric codes, anywhere in the prediction, labels or not
        ("AB12CD", "Your code: ab12cd.", True),
        ("AB12CD", "AB12CE", False),
        ("The 1st seat", "1st seat", True),
        # dates, in any spelling; the year may be missing on either side
        ("March 5, 2024", "2024-03-05", True),
        ("5 March 2024", "It was on March 5th.", True),
        ("March 5", "20240305", True),
        ("March 5, 2024", "March 5, 2023", False),
        ("March 5, 2024", "in March", False),
        ("March 5 and March 7", "March 7 and March 5", True),
        ("March 5 and March 7", "March 5", False),
        # ranges by their ends; "between … and" is a range
        ("April 20-26", "April 20 to 26, 2024", True),
        ("April 20-26", "April 20 to 27", False),
        ("April 20-26", "April 20", False),
        ("Between April 20 and April 26", "April 20 to April 26", True),
        # times, if both have some
        ("5 pm", "17:00", True),
        ("noon", "12:00", True),
        ("noon on Monday", "Monday", True),
        ("9 am", "10 am", False),
        ("9 am to 5 pm", "9am-5pm", True),
        ("9-5 pm", "9 pm to 5 pm", True),
        # a date with other words needs the words too
        ("March 5 at the library", "at the library on 2024-03-05", True),
        ("Dinner on March 5", "On March 5 there was a dinner with Ann", True),
        # currencies and amounts
        ("£799.74", "I paid £799.74 for it", True),
        ("£799.74", "799.74 GBP", True),
        ("£799.74", "799.74", False),
        ("£799.74", "$799.74", False),
        ("£10", "£10.00", True),
        ("ten pounds", "ten pounds (£10)", True),
        ("ten pounds", "eleven pounds", False),
        ("£10 per 60-minute session, totaling £30 for three sessions", "£10 per session", True),
        ("The total cost was £190.50, comprising £110 and £80.50", "£190.50", True),
        # numbers, as a multiset, units and number words aside
        ("3", "three", True),
        ("3 hours", "3", True),
        ("3", "3 or 4", False),
        ("3", "several", False),
        ("1,000", "1000", True),
        ("12 (of 15)", "12", True),
        # lists: every item in the prediction
        ("apples, pears", "pears and also apples", True),
        ("apples, pears", "apples", False),
        ("red/blue", "blue and red", True),
        # yes and no
        ("Yes, I did", "yes", False),
        ("Yes I did", "yes", True),
        ("No I never did", "Yes.", False),
        # addresses, house number aside
        ("High Street, Oxford", "oxford, high street", True),
        ("12 Mill Road", "Mill Road", False),
        ("Mill Road", "the road by the mill", True),
        # substrings either way, from three characters on
        ("Paris", "It was Paris, France", True),
        ("Paris, France".replace(",", ""), "Paris", True),
        ("Rome", "Paris", False),
        # words in another order, and four words out of five
        ("the red car of Ann", "Ann had a car, red", True),
        ("alpha beta gamma delta epsilon", "delta gamma beta alpha", True),
        ("alpha beta gamma delta epsilon", "gamma beta alpha", False),
        ("A Star Wars event", "star wars event", True),
        ("Paris", "", False),
    ],
)
def test_gates(gold: str, prediction: str, right: bool) -> None:
    assert deterministic_accuracy(gold, prediction) is right


@pytest.mark.parametrize(
    ("gold", "prediction", "right"),
    [
        # "4:00 PM" is read as 04:00 too
        ("4:00 PM", "4 PM", False),
        # an ISO date is read as a time range too, and then differs from a real time
        ("2024-03-05", "March 5, 2024 at 4pm", False),
        ("2024-03-05", "March 5, 2024", True),
        # four digits without a comma are no number, so only the words count
        ("2019", "2019 or 2020", True),
        # a word of letters and digits is a code, "11am" too
        ("11am", "11:00 in the morning", False),
        ("5:30pm", "17:30", False),
        # the last full stop goes first, and "5 p.m" is no time but a number
        ("5 p.m.", "5 pm", False),
        # sums agree, but then the words have to as well
        ("10 pounds", "£10", False),
        # a gold without a word of three letters passes the last gate
        ("ok", "something else", True),
        ("A", "something else", True),
        # every "and" becomes "to", and so separates no list items
        ("apples and pears", "apples", True),
    ],
)
def test_official_oddities_are_kept(gold: str, prediction: str, right: bool) -> None:
    assert deterministic_accuracy(gold, prediction) is right


def test_relative_days_are_resolved_by_the_question() -> None:
    question = "It is 2024-03-04. When do I fly?"
    assert deterministic_accuracy("Tomorrow at 4pm", "March 5 at 4pm", question)
    assert deterministic_accuracy("March 5", "tomorrow", question)
    assert deterministic_accuracy("March 3", "Yesterday", question)
    assert not deterministic_accuracy("March 5", "today", question)
    assert not deterministic_accuracy("March 5", "tomorrow", "When do I fly?")
    assert not deterministic_accuracy("March 5", "tomorrow", "It is 2024-13-41. When do I fly?")


def test_list_ids() -> None:
    prose = "See 20250223_130249 and Email202411160004, twice: 20250223_130249."
    assert list_ids(prose) == {"20250223_130249", "email202411160004"}
    assert list_ids("Apples, pears; plums / figs and Dates.") == {"apples", "pears", "plums", "figs", "dates"}
    assert list_ids("") == frozenset()


def test_list_jaccard() -> None:
    gold = "email202411160004, 20250223_130249"
    assert list_jaccard(gold, "I found 20250223_130249 and email202411160004.") == 1
    assert list_jaccard(gold, "20250223_130249") == 0.5
    assert list_jaccard(gold, "20250223_130249, 20250223_130250") == pytest.approx(1 / 3)
    assert list_jaccard(gold, "") == 0
    assert list_jaccard("", "") == 1
    assert list_jaccard("", "20250223_130249") == 0


@given(TEXT, TEXT, TEXT)
def test_any_texts_give_a_verdict(gold: str, prediction: str, question: str) -> None:
    assert deterministic_accuracy(gold, prediction, question) in {True, False}
    assert 0 <= list_jaccard(gold, prediction) <= 1


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_text_matches_itself(text: str, question: str) -> None:
    assert deterministic_accuracy(text, text, question)
    assert list_jaccard(text, text) in {0, 1} or list_ids(text)


@given(st.sets(st.from_regex(r"20[0-9]{6}_[0-9]{6}", fullmatch=True), max_size=5))
def test_ids_come_out_of_any_prose(ids: set[str]) -> None:
    assert list_ids("; ".join(f"photo {one}" for one in sorted(ids))) == ids
