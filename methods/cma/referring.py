"""How a turn calls pictures: where references stand in its words, and what each says, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memharness.methods.cma.depiction import Change, Phrase, Read, changes, negated, read
from memharness.methods.cma.lexicon import CJK, lexicon
from memharness.methods.cma.rules import CHINESE, NUMBERS, ORDINALS, PICTURES, rule


@dataclass(frozen=True)
class Reference:
    """A way a turn calls pictures.

    Attributes:
        text: as said.
        form: `last`, `previous`, `nth`, `latest`, `original`, `before`, `earlier`, `parent`,
            `liked`, `rejected`, `upload`, `composed` or `look`.
        phrases: what the pictures are to show.
        absent: what they are not to show.
        light: they are in this light, if any is said.
        view: they are seen so, if any is said.
        numbers: for `nth`, from 0; negative ones count from the end.
        count: how many are meant; None for all that fit.
        change: for `before`, what was done to them.
        inner: for `earlier`, the picture that came after them.
    """

    text: str
    form: str
    phrases: tuple[Phrase, ...] = ()
    absent: tuple[Phrase, ...] = ()
    light: str = ""
    view: str = ""
    numbers: tuple[int, ...] = ()
    count: int | None = 1
    change: Change | None = None
    inner: Reference | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is said of what they show."""
        return not (self.phrases or self.absent or self.light or self.view)


_EARLIER = rule("earlier")
_CLAUSE = rule("clause")
_ANCHOR = rule("anchor")
_DETERMINER = rule("determiner")
_STARTS = rule("starts")
_RANK_OF = rule("rank_of")
_ZH_RANKS = re.compile(r"[里中]面?的?(?=(?:第|最[新后早近]|末))")
_LINKS = rule("links")
_LIT = rule("lit")
_THE_ONE = rule("the_one")
_SETS = rule("sets")
_ANOTHER = re.compile(
    rf"\s*(?:the|that|this) (?:[\w'’-]+ ){{0,4}}{PICTURES}(?: (?:with|of|at|in) [^.]*)?\s*", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|isn't|without|other than|except|no longer|no)\b|不是|没有|并非|非", re.IGNORECASE)
_MADE_ZH = re.compile(r"[合拼]成$|(?<!最)新的?$|另$|再画$|画$|成$")
_ZH_WIDE = re.compile(r"[,:;.!?。]|^在|用|请看|看一下")
_ZH_JOINS = re.compile(r"[,:;.!?。]|[和与跟把用在看]")
CALLS = ("picture", "one", "version", "scene")
"""Names of the lexicon that stand for a picture itself."""
_ZH_STARTS = rule("zh_starts")


def segments(text: str) -> Iterator[tuple[int, int]]:
    """Where references stand, in order, without overlap.

    Args:
        text: in NFKC, with single blanks.
    """
    if re.search(f"[{CJK}]", text):
        yield from _chinese(text)
        return
    fixed = [match.span() for match in _EARLIER.finditer(text)]
    anchors = [match for match in _ANCHOR.finditer(text) if match["en"] and not _within(match.span(), fixed)]
    starts = list({_np_start(text, one.start()): one.end() for one in anchors if _definite(text, one)}.items())
    starts += _lit(text, [*fixed, *starts])
    starts += _ranked(text, [*fixed, *starts])
    if starts or fixed:  # beside another reference a pronoun is one, too
        said = [match.span(name) for match in _PRONOUN.finditer(text) for name in ("after", "object") if match[name]]
        starts += [span for span in said if not _within(span, [*fixed, *starts])]
    starts.sort()
    found = list(fixed)
    for place, (start, anchor) in enumerate(starts):
        if any(low <= start < high for low, high in found):
            continue
        following = [other for other, _ in [*starts[place + 1 :], *fixed] if other >= anchor]
        found.append((start, _np_end(text, anchor, min(following, default=len(text)))))
    yield from _joined(text, sorted(found))


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """`the picture before` and `the dusk one` are one; so are `the shop picture` and `, the one with a bag`."""
    held: list[tuple[int, int]] = []
    for start, end in spans:
        before = held and (_JOINS.search(text[held[-1][0] : start]) or _LEADS.match(text[start:end]))
        if held and (before or _APPOSED.fullmatch(text[held[-1][1] : start + 7])):
            held[-1] = held[-1][0], end
        else:
            held.append((start, end))
    yield from held


_LEADS = re.compile(r"(?:right |just |immediately |directly )?(?:before|prior to|preceding)\b", re.IGNORECASE)
_JOINS = re.compile(r"\b(?:before|prior to|preceding)\s*$", re.IGNORECASE)
_APPOSED = re.compile(r"\s*,\s*(?:take |use |pick |choose )?the one\b.*", re.IGNORECASE)
_PRONOUN = rule("pronoun")
_RANKED = rule("ranked")


_POINTS = frozenset(
    [
        "the",
        "this",
        "that",
        "these",
        "those",
        "my",
        "your",
        "our",
        "both",
        "all",
        "last",
        "latest",
        "two",
        "three",
        "whichever",
    ]
)
_VAGUE = frozenset(["a", "an", "one", "single", "new", "another", "any", "some", "each", "no", "every", "same"])
_BREAKS = frozenset(["in", "from", "with", "into", "and", "to", "at", "is", "are"])
_LOOSE = frozenset(["scene", "scenes", "results", "result", "shot", "shots"])  # `set the scene in fog` calls no picture


def _definite(text: str, match: re.Match[str]) -> bool:
    """Whether a word for picture calls one that there is: `the park picture`, `picture 3`, but not `a new picture`."""
    before = text[: match.start()]
    word = match["en"].casefold().rstrip(".")
    if word in ("number", "no", "nr"):
        return re.match(r"\s*#?\d", text[match.end() :]) is not None
    if word in ("one", "ones") and not _THE_ONE.search(before):
        return False
    if word in _LOOSE and _SETS.search(before):
        return False
    near = re.search(r"((?:[\w'-]+\s+){0,5})$", before)
    for lead in reversed(near[1].casefold().split() if near else []):
        if lead in _POINTS:
            return True
        if lead in _VAGUE:
            return re.search(r"\b(?:photo|picture|image)s? of mine", text[match.start() :], re.I) is not None
        if lead in _BREAKS:
            break
    if re.match(rf"\s*(?:#|number|no\.?|nr\.?)?\s*#?(?:\d|(?:{'|'.join(NUMBERS)})\b)", text[match.end() :]):
        return True
    return re.search(rf"\b(?:{'|'.join(ORDINALS)})\s+$", before, re.I) is not None


def _np_start(text: str, at: int) -> int:
    """Where the noun phrase of an anchor begins: at its determiner, which must be in the same clause."""
    low = max((match.end() for match in re.finditer(r"[,:;.!?]", text[:at])), default=0)
    found = [match.span() for match in _DETERMINER.finditer(text, low, at)]
    bound = max((match.end() for match in _STARTS.finditer(text, low, at)), default=low)
    if not found or found[-1][1] <= bound:
        start = bound + len(text[bound:at]) - len(text[bound:at].lstrip())
    else:
        start = found[-1][0]
        for earlier, _ in reversed(found[:-1]):  # `both of the`, `all the`, `all of these`
            if re.fullmatch(r"(?:both|all)\s+(?:of\s+)?", text[earlier:start], re.I):
                start = earlier
    # `the first and the third picture` is one reference, to two.
    pair = re.search(rf"(?:\bthe )?\b(?:{'|'.join(ORDINALS)}) (?:and|or|,) $", text[low:start], re.I)
    # So is `the second of the park pictures`.
    pair = pair or _RANK_OF.search(text[low:start])
    return low + pair.start() if pair else start


def _np_end(text: str, anchor: int, limit: int) -> int:
    """Where what belongs to an anchor ends: with its clause, at `into`, or at what joins it to the next one."""
    rest = text[anchor:limit]
    ends = [match.start() for match in _CLAUSE.finditer(rest)]
    ends += [
        match.start()
        for match in re.finditer(r"\b(?:into|onto|(?<!prior )to)\b(?! the view)", rest)
        if not re.search(r"\b(?:light|changed?|set|turned|moved|switch\w*)\b", rest[: match.start()])
    ]
    if limit < len(text):
        ends += [match.start() for match in _LINKS.finditer(rest)]
    return anchor + min(ends, default=len(rest))


_ASKED = frozenset(["make", "is", "so", "turn", "set", "to", "from", "into"])


def _lit(text: str, taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """References by place and light, without a word for picture: `the corner shop at dusk`."""
    found = []
    for match in _LIT.finditer(text):
        tokens = lexicon().tokens(text[match.start("np") :])
        at = next((place for place, token in enumerate(tokens[:8]) if token.sort == "light"), None)
        if at is None or not any(token.sort in ("setting", "word") for token in tokens[1:at]):
            continue
        lead = tokens[:at]
        if any(token.sort in ("mark", *CALLS) or token.text.casefold() in _ASKED for token in lead):
            continue
        found.append((match.start("np"), match.start("np") + tokens[at].end))
    return [span for span in found if not _within(span, taken)]


def _within(span: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    return any(low < span[1] and span[0] < high for low, high in taken)


def _ranked(text: str, taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """References by rank without a word for picture: `the very first mug`."""
    found = []
    for match in _RANKED.finditer(text):
        tokens = lexicon().tokens(match[0])
        at = next((place for place, token in enumerate(tokens) if token.sort in ("thing", "setting")), None)
        if at is not None and not any(token.sort in CALLS for token in tokens):
            found.append((match.start(), match.start() + tokens[at].end))
    return [span for span in found if not _within(span, taken)]


def _chinese(text: str) -> Iterator[tuple[int, int]]:
    """A Chinese reference ends at its word for picture; what is said of the picture stands before it."""
    fixed = [match.span() for match in _EARLIER.finditer(text)]
    found = list(fixed)
    last = 0
    for match in _ANCHOR.finditer(text):
        if not match["zh"] or _MADE_ZH.search(text[: match.start()]) or _within(match.span(), fixed):
            continue
        last = max([last, *(high for _, high in fixed if high <= match.start())])
        head = match.start() + match["zh"].startswith("的")
        start = max((one.end() for one in _ZH_STARTS.finditer(text, last, head)), default=last)
        if _BEFORE.search(text[start : match.end()]):  # `把…移到…之前的那张图` keeps its 把 and 移到
            start = max((one.end() for one in _ZH_WIDE.finditer(text, last, match.start())), default=last)
        if pair := re.search(rf"第[{CHINESE}\d]+[和与跟及同、]$", text[last:start]):  # `第三和第五张图`
            start = last + pair.start()
        wide = max((one.end() for one in _ZH_JOINS.finditer(text, last, match.start())), default=last)
        if wide < start and _UPLOADED.search(text[wide : match.end()]):  # `我发给你的照片` keeps its 给
            start = wide
        if match.end() > start:
            found.append((start, match.end()))
            last = match.end()
    found.sort()
    joined: list[tuple[int, int]] = []
    for start, end in found:  # `两张` and `海滩图` are one reference
        near = joined and joined[-1][1] == start and text[start - 1] in "张幅个" and text[start] not in "的里中"
        if near or (joined and _ZH_RANKS.match(text[joined[-1][1] : start + 2])):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    yield from joined


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text without some spans of it; ¶ marks where they were."""
    out, at = [], 0
    for start, end in spans:
        out.append(text[at:start])
        at = end
    return " ¶ ".join([*out, text[at:]])


_PARENT = rule("parent")
_LIKED = rule("liked")
_DISLIKED = rule("disliked")
_UPLOADED = rule("uploaded")
_COMPOSED = rule("composed")
_BEFORE = rule("before")
_LATEST = re.compile(r"\b(?:latest|newest|most recent|last|final|current|recent|youngest)\b|最新|最后|最近|末", re.I)
_ORIGINAL = rule("original")
_ORDINAL = rule("ordinal")
_MANY = rule("many")
_COUNTS = {
    "both": 2, "two": 2, "pair": 2, "couple": 2, "three": 3, "trio": 3, "four": 4, "两": 2, "俩": 2, "三": 3, "四": 4,
}  # fmt: skip


def read_reference(text: str) -> Reference:
    """One reference taken apart."""
    if match := _EARLIER.search(text):
        return Reference(text, "previous", _described(text.replace(match[0], " ")))
    if _PARENT.search(text):
        return Reference(text, "parent")
    if before := _BEFORE.search(text):
        chinese = re.search(f"[{CJK}]", text)
        told = text[: before.start()] + " " * bool(chinese) + text[before.end() :] if chinese else text[before.end() :]
        if _ANOTHER.fullmatch(told):
            return Reference(text, "earlier", inner=read_reference(told.strip()))
        if made := changes(told):
            return Reference(text, "before", change=made[0])
    said = _said(text)
    if _DISLIKED.search(text):
        return Reference(text, "rejected")
    if _LIKED.search(text):
        return Reference(text, "liked")
    for form, pattern in (("composed", _COMPOSED), ("upload", _UPLOADED)):
        if pattern.search(text):
            return replace(said, form=form, phrases=tuple(one for one in said.phrases if one.sort != "word"))
    if said.numbers:
        return replace(said, form="nth", count=len(said.numbers))
    if _ORIGINAL.search(text):
        return replace(said, form="original")
    if _LATEST.search(text):
        return replace(said, form="latest")
    return replace(said, form="last") if said.says_nothing and said.count == 1 else said


def _said(text: str) -> Reference:
    """What a reference says of the pictures, and of how many."""
    bare = _ORDINAL.sub(" ", text)
    absent: tuple[Phrase, ...] = ()
    if negated(bare):
        bare, _, denied = _NOT.sub("\0", bare, count=1).partition("\0")
        absent = _denied(bare, denied)
    found = read(_WORDING.sub(" ", bare))
    lights = {token.sort: token.name for _, token in found.lights}
    phrases = (*found.phrases, *_predicated(found))
    numbers = tuple(dict.fromkeys(_ordinals(text)))
    light, view = lights.get("light", ""), lights.get("view", "")
    return Reference(text, "look", phrases, absent, light, view, numbers, _counted(text))


_WORDING = rule("wording")


def _described(text: str) -> tuple[Phrase, ...]:
    return tuple(phrase for phrase in read(_WORDING.sub(" ", text)).phrases if phrase.sort != "word")


def _predicated(found: Read) -> tuple[Phrase, ...]:
    """`whose lamp is red`: attributes said of the last thing."""
    things = [phrase for phrase in found.phrases if phrase.sort == "thing"]
    after = [token for at, token in found.floating if things and at >= found.phrases[-1].end]
    if not after:
        return ()
    return (Phrase(things[-1].name, "thing", things[-1].marks | {(token.sort, token.name) for token in after}),)


def _denied(before: str, denied: str) -> tuple[Phrase, ...]:
    """What is said not to be: attributes of the thing named last before the denial, or a thing of their own."""
    said = read(denied)
    if said.phrases and said.phrases[0].sort != "word":
        return (said.phrases[0],)
    named = [phrase for phrase in read(before).phrases if phrase.sort == "thing"]
    marks = frozenset((token.sort, token.name) for _, token in said.floating)
    return (Phrase(named[-1].name, "thing", marks),) if named and marks else ()


def _counted(text: str) -> int | None:
    """How many pictures are meant: one, as many as are said, or None for all that fit."""
    if re.search(r"\bthe one\b", text, re.I):
        return 1
    many, chinese = _PLURAL.search(text), re.search(f"[{CJK}]", text)
    if not many and not chinese:
        return 1  # `both` in `both the first picture and the second` counts references
    if not (match := _MANY.search(text)):
        return None if many else 1
    word = (match["n"] or match["zh"]).casefold()
    return next((count for name, count in _COUNTS.items() if name in word), None)


_PLURAL = re.compile(
    r"\b(?:pictures|images|photos|photographs|ones|versions|drawings|paintings|shots|scenes|snapshots|these|those|"
    r"of them)\b",
    re.IGNORECASE,
)


def _ordinals(text: str) -> Iterator[int]:
    for match in _ORDINAL.finditer(text):
        if match["word"]:
            yield ORDINALS.index(match["word"].casefold())
        elif match["spelt"]:
            yield from (NUMBERS.index(one.casefold()) for one in (match["spelt"], match["second"]) if one)
        elif chinese := match["chinese"] or match["numbered"]:
            yield (int(chinese) if chinese.isdigit() else _chinese_number(chinese)) - 1
        else:
            yield int(match["figure"] or match["number"] or match["more"]) - 1


def _chinese_number(word: str) -> int:
    tens, ten, ones = word.partition("十")
    if not ten:
        return CHINESE.index(word[0]) + 1
    return 10 * (CHINESE.index(tens) + 1 if tens else 1) + (CHINESE.index(ones) + 1 if ones else 0)
