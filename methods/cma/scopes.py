"""What outlives a turn besides pictures and words: preferences of the user, feedback on pictures, the gallery."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from memharness.episodic import Feedback

Kind = Literal["avoid", "language", "format", "style", "other"]

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")
_LASTING = re.compile(
    r"\b(?:i (?:always|usually|generally) (?:want|like|prefer)|i prefer|always (?:use|make|keep|draw|answer|write|put)|"
    r"from now on|never (?:use|make|draw|put|show|write)|in all (?:my|the|future) pictures|for all pictures|"
    r"my (?:favou?rite|preferred) (?:colou?rs?|styles?|formats?|fonts?))\b"
    r"|我(?:一向|总是|通常|更)?(?:偏好|偏爱|更喜欢)|以后(?:都|一律|请)|从现在起|今后|所有的?图都|永远不要|一律",
    re.IGNORECASE,
)
_TYPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("avoid", re.compile(r"\b(?:never|avoid|no more|without|don't|do not)\b|不要|别|避免|永远不", re.IGNORECASE)),
    ("language", re.compile(r"\b(?:english|chinese|language|answer in|reply in)\b|英文|英语|中文|语言", re.IGNORECASE)),
    (
        "format",
        re.compile(r"\b(?:size|portrait|landscape|square|format|wide|ratio)\b|尺寸|横版|竖版|方形", re.IGNORECASE),
    ),
    (
        "style",
        re.compile(
            r"\b(?:style|colou?rs?|palette|tones?|light|dark|flat|realistic)\b|风格|颜色|色调|光", re.IGNORECASE
        ),
    ),
)
_REJECTED = re.compile(
    r"\b(?:i (?:really )?(?:don'?t|do not) (?:really )?like|i (?:dislike|hate)|not what i (?:wanted|meant|asked)|"
    r"(?:looks?|is) (?:ugly|wrong|bad|awful|terrible)|no good)\b"
    r"|不喜欢|不好看|不满意|太丑|难看|不是我(?:要|想要)的",
    re.IGNORECASE,
)
_LIKED = re.compile(
    r"\b(?:i (?:really |do )?(?:like|love)|(?:looks?|is) (?:good|great|nice|lovely|perfect|beautiful|wonderful)|"
    r"well done|perfect)\b"
    r"|我(?:真的?|很|最|更|也|特别|非常|就|挺|都)*喜欢|^(?:真|很)?喜欢|真?好看|很?满意|完美|真棒|漂亮",
    re.IGNORECASE,
)
_LIKED_IN_GENERAL = re.compile(r"\bi (?:would|'d) (?:like|love)\b|\bwould (?:like|love)\b|\blike to\b", re.IGNORECASE)
_POINTS = re.compile(
    r"\b(?:it|this|that|these|those|last|latest|newest|just (?:made|drew|did))\b|这|它|刚才|刚刚|最后|最新",
    re.IGNORECASE,
)
_GALLERY = re.compile(
    r"\b(?:(?:save|keep|put|add|pin|promote)\b[^.?!]*\b(?:gallery|favou?rites|collection|album))\b"
    r"|收藏|(?:存|加|放)[入到进]?(?:我的)?(?:图库|相册|画廊|收藏夹)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Preference:
    """Something the user said to hold for good."""

    type: Kind
    words: str


def preferences(words: str) -> list[Preference]:
    """The sentences that say what is to hold beyond this turn, by type."""
    found = (sentence.strip() for sentence in _SENTENCE.findall(words) if _LASTING.search(sentence))
    return [Preference(_type(sentence), sentence) for sentence in found]


def _type(sentence: str) -> Kind:
    return next((kind for kind, pattern in _TYPES if pattern.search(sentence)), "other")


def feedback(words: str) -> Feedback | None:
    """What the words say of a picture they are about: liked, rejected, or nothing. A dislike wins over a like."""
    if _REJECTED.search(words):
        return "rejected"
    plain = _LIKED_IN_GENERAL.sub("", words)
    return "liked" if _LIKED.search(plain) and not _LASTING.search(words) else None


def promotes(words: str) -> bool:
    """Whether the words ask for a picture to be kept in the gallery."""
    return bool(_GALLERY.search(words))


def active(said: Iterable[Preference], most: int = 8) -> Sequence[Preference]:
    """The preferences that hold: each once, the newest `most`, in the order in which they were last said."""
    latest = {one.words: one for one in reversed(list(said))}
    return list(reversed(list(latest.values())[:most]))


def markdown(held: Sequence[Preference]) -> str:
    """The user's scope as a page: a section a type under an index."""
    kinds = list(dict.fromkeys(one.type for one in held))
    index = "\n".join(f"- [{kind}](#{kind}): {sum(one.type == kind for one in held)}" for kind in kinds)
    sections = (f"## {kind}\n\n" + "\n".join(f"- {one.words}" for one in held if one.type == kind) for kind in kinds)
    return "\n\n".join(("# User", index or "(nothing yet)", *sections)) + "\n"


def points(words: str) -> bool:
    """Whether the words point at the last picture: `it`, `this`, `the one you just made`."""
    return bool(_POINTS.search(words))
