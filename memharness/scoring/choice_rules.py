"""How other evaluators read an option from a reply: named toggles beside `extract_choice`, which stays the default.

They are kept so that a published figure can be had from the same replies. None of them is the default, since each
gives letters to replies that chose nothing. Reasoning is cut before any of them, and where the original asks a judge
or draws a letter at random, these return None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from memharness.scoring.choice import after_thinking, extract_choice
from memharness.types import UserError, did_you_mean

Extractor = Callable[[str, str, Mapping[str, str]], str | None]
"""(reply, letters, option texts by letter) → one of the letters, or None."""

_PUNCTUATION = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_STATED = re.compile(r"answer\s+is\s+\**([ABCD])\**", re.IGNORECASE)


def vlmevalkit(reply: str, letters: str, texts: Mapping[str, str]) -> str | None:
    """VLMEvalKit without a judge (matching_util.py: can_infer, with the fallback of pull request 1552).

    The only option letter among the words, if its first place is among the last five words; else "answer is X" in any
    case and with no word boundary; else the only option whose text is a substring, in a reply of at most twice the
    options' length. A known refusal chooses nothing.
    """
    answer = after_thinking(reply)
    if answer is None or any(refusal in answer for refusal in _REFUSALS):
        return None
    words = answer.translate(_PUNCTUATION).split()
    named = [letter for letter in letters if letter in words]
    if len(named) == 1 and words.index(named[0]) > len(words) - 5:
        return named[0]
    if stated := _STATED.search(answer):
        return stated[1].upper() if stated[1].upper() in letters else None
    if len(answer) > 2 * sum(map(len, texts.values())):
        return None
    held = [letter for letter, text in texts.items() if text.lower() in answer.lower()]
    return held[0] if len(held) == 1 else None


def mmstar(reply: str, letters: str, texts: Mapping[str, str]) -> str | None:
    """MMStar's evaluate/mmstar.py: the first character, or the one after "(", "option " or "the answer is ".

    In any case and with no word boundary, so "Because" is B.
    """
    said = (after_thinking(reply) or "").lower().strip().replace("\n", " ")
    for lead in ("", "(", "option ", "the answer is "):
        letter = said[len(lead) : len(lead) + 1].upper()
        if said.startswith(lead) and letter and letter in letters:
            return letter
    return None


EXTRACTORS: Mapping[str, Extractor] = {"memharness": extract_choice, "vlmevalkit": vlmevalkit, "mmstar": mmstar}


def extractor(name: str) -> Extractor:
    """An extractor by name.

    Raises:
        UserError: for an unknown name.
    """
    if name not in EXTRACTORS:
        raise UserError(f"extractor {name!r}: there are {', '.join(EXTRACTORS)}{did_you_mean(name, EXTRACTORS)}")
    return EXTRACTORS[name]
