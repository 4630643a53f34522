"""The records of a memory as one text in order, cuts of it at a number of tokens, and pictures within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memharness.method import Budget, Images, Memory
from memharness.methods.memo.units import Record
from memharness.pages import Page, downscaled
from memharness.prompts import header
from memharness.reader import Counter
from memharness.types import Evidence, Image, Item, MethodError, ReaderError

FINEST = 1 / 256
"""How near the search for a page's size comes to the least shrinking that holds."""
MOST = 256.0
"""The strongest shrinking of a side that is tried."""


@dataclass(frozen=True, slots=True)
class History:
    """Records in order as one text.

    Attributes:
        text: a line or more for each record.
        places: where each record's own words begin in `text`, and the record.
    """

    text: str
    places: tuple[tuple[int, Record], ...]

    @classmethod
    def of(cls, items: Sequence[Item]) -> History:
        """The history of items, each with a line that says what it is, if there is anything to say."""
        text, places = "", []
        for item in items:
            record, head = Record.of(item), header(item)
            if not record.text.strip():
                continue
            text += f"{head}: " if head else ""
            places.append((len(text), record))
            text += record.text + "\n"
        return cls(text.rstrip("\n"), tuple(places))

    def shown(self, end: int) -> tuple[Evidence, ...]:
        """Where the first `end` characters come from."""
        return tuple(
            pointer
            for start, record in self.places
            if start < end
            for pointer in record.pointers(0, min(end - start, len(record.text)))
        )


class HistoryMemory(Memory):
    """Keeps items; `ready` writes them out in order."""

    def __init__(self) -> None:
        """Start empty."""
        self.items: list[Item] = []
        self.history = History("", ())

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep items."""
        self.items += items

    async def ready(self) -> None:
        """Write them out."""
        self.items.sort(key=lambda item: item.order)
        self.history = History.of(self.items)

    def stored(self) -> int:
        """Items held."""
        return len(self.items)


def beginning(text: str, fits: Callable[[str], bool]) -> int:
    """How many characters of a text fit, cut between words, without white space at the end.

    `fits` must hold for shorter texts where it holds for longer ones, up to a tokenizer's seams, which are looked at.
    """
    if fits(text):
        return len(text)
    ends = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[: ends[middle - 1]]) else (low, middle - 1)
    while low and not fits(text[: ends[low - 1]]):
        low -= 1
    return ends[low - 1] if low else 0


def chunks(text: str, tokens: int, counter: Counter) -> Iterator[str]:
    """A text in pieces of at most so many tokens, cut between words; a word longer than that is cut anywhere."""
    while text.strip():
        near = text[: 16 * tokens]  # hardly any text has more characters a token; only this much is counted at a time
        end = beginning(near, lambda piece: counter.text(piece) <= tokens)
        if not end:
            end = _within_a_word(near, tokens, counter)
        yield text[:end]
        text = text[end:].lstrip()


def _within_a_word(text: str, tokens: int, counter: Counter) -> int:
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter.text(text[:middle]) <= tokens else (low, middle - 1)
    return low


def halves(text: str, tokens: int, counter: Counter) -> str:
    """A text of more tokens than a limit as its first and last half limit, cut between words.

    Source: MemAgent's and MemOCR's evaluation code, which does so over 120,000 tokens.
    """
    if counter.text(text) <= tokens:
        return text
    half = tokens // 2
    end = beginning(text, lambda piece: counter.text(piece) <= half)
    back = beginning(text[::-1], lambda piece: counter.text(piece[::-1]) <= half)
    return f"{text[:end]}\n{text[len(text) - back :]}"


def shrunk(page: Page, budget: Budget, limit: int, *, least: int = 1) -> Page:
    """The page, made smaller by the least factor at which it holds the budget under every counter.

    Args:
        page: as drawn.
        budget: whose counters must hold.
        limit: tokens.
        least: pixels of the shorter side under which it is never brought.

    Raises:
        MethodError: some counter takes no size of it for that price.
    """

    def size(factor: float) -> tuple[int, int]:
        return tuple(  # type: ignore[return-value]
            min(side, max(least, int(side / factor + 1e-9), 1)) for side in (page.width, page.height)
        )

    def excess(factor: float) -> str:
        width, height = size(factor)
        for counter in budget.counters:
            try:
                price = counter.image(width, height)
            except ReaderError as error:
                return str(error)
            if price > limit:
                return f"{width} × {height} pixels cost {price} tokens by {counter.name}"
        return ""

    if not excess(1.0):
        return page
    low, high = 1.0, MOST
    if why := excess(high):
        raise MethodError(
            f"a page of {page.width} × {page.height} pixels holds {limit} tokens at no size ({why}); "
            f"give a larger --budget, or count by another --counter such as nominal28"
        )
    while high - low > FINEST:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) else (low, middle)
    return downscaled(page, size=size(high))


def keep(page: Page, images: Images, method: str) -> Image:
    """The page as a part of a readout."""
    return images.keep(page.png, f"page {page.sha256[:12]}", f"{method}: page")
