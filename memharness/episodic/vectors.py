"""Vectors of assets in several spaces, searched exactly; the same ranking in every process and after reopening."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memharness.episodic.database import Database
from memharness.types import DataError, UserError, did_you_mean

Floats: TypeAlias = NDArray[np.float32]
Serials: TypeAlias = NDArray[np.int64]
Block: TypeAlias = tuple[Serials, Floats, float]  # (n,), (n, width), and a bound of the rows' lengths

BLOCK = 1 << 24  # bytes of vectors that are scored, or read from the database, at a time
LONGEST = 1e18  # of a vector's length, so that no product overflows float32
_READ = 1 << 8  # rows taken into memory at a time
_EXACT = 1 << 9  # rows computed in float64 at a time
_ROUNDING = 2.0**-23  # twice that of float32, which leaves room for rounding what is compared
_SMALLEST = 2.0**-125  # below which float32 products may vanish


class Vectors:
    """The vectors of a database.

    A space that fits is held in memory once a process has searched it: blocks of float32 that are filled one after
    another, so no growing copies anything. Before each search the rows whose version is new are read, whoever wrote
    them; that costs one look at the end of a table where there are none. All spaces together take at most `cache`
    bytes: the one searched longest ago goes, and a space larger than that is read from the database block by block.
    """

    def __init__(self, db: Database, cache: int) -> None:
        """Vectors of a database, with at most `cache` bytes of them in memory."""
        self._db = db
        self._cache = cache
        self._matrices: OrderedDict[int, Matrix] = OrderedDict()
        self._too_large: set[int] = set()

    def put(self, serial: int, space: str, vector: ArrayLike) -> None:
        """Give an asset its vector in a space, inside a transaction; the space's first vector decides its width.

        Raises:
            UserError: for a vector of another width, of no or more than one dimension, not finite or too long.
        """
        value = _usable(vector, f"space {space}")
        rows = self._db.rows("SELECT number, width FROM space WHERE name=?", (space,))
        if not rows:
            made = self._db.run("INSERT INTO space (name, width) VALUES (?,?)", (space, len(value))).lastrowid
            rows = [(made, len(value))]
        number, width = rows[0]
        _same_width(space, width, value)
        self._db.run(
            "INSERT OR REPLACE INTO vector (asset, space, value) VALUES (?,?,?)", (serial, number, value.tobytes())
        )

    def withdraw(self, serial: int) -> None:
        """Take an asset out of all spaces, inside a transaction."""
        spaces = self._db.rows("SELECT space FROM vector WHERE asset=? AND value IS NOT NULL", (serial,))
        self._db.run_each(
            "INSERT OR REPLACE INTO vector (asset, space, value) VALUES (?,?,NULL)", [(serial, n) for (n,) in spaces]
        )

    def top(self, space: str, query: ArrayLike, k: int, session: str | None = None) -> list[tuple[int, float]]:
        """Serials of the `k` assets of largest inner product, and that product: (score descending, serial ascending).

        Scores are computed in float64 from the float32 values, so neither the machine's BLAS nor a vector's place
        among the others decides anything.

        Raises:
            UserError: for an unknown space, a query that does not fit it, or `k` below 1.
        """
        if k < 1:
            raise UserError(f"search: k = {k}: at least 1 is needed")
        rows = self._db.rows("SELECT number, width FROM space WHERE name=?", (space,))
        if not rows:
            known = [name for (name,) in self._db.rows("SELECT name FROM space ORDER BY name")]
            raise UserError(
                f"search: no vectors in a space called {space!r}{did_you_mean(space, known)}; "
                f"there are: {', '.join(known) or 'none yet'}"
            )
        number, width = rows[0]
        value = _usable(query, f"search in {space}")
        _same_width(space, width, value)
        return best(self._blocks(number, width, session), value, k)

    def forget(self) -> None:
        """Hold nothing in memory any more."""
        self._matrices.clear()
        self._too_large.clear()

    def _blocks(self, space: int, width: int, session: str | None) -> Iterable[Block]:
        matrix = self._matrix(space, width)
        if matrix is None:
            return self._stored(space, width, session)
        if session is None:
            return matrix.blocks()
        serials = self._db.rows("SELECT serial FROM asset WHERE session=? AND NOT deleted", (session,))
        return matrix.some([serial for (serial,) in serials])

    def _matrix(self, space: int, width: int) -> Matrix | None:
        """The space as it is in the database now; None if it is too large to be held."""
        if space in self._too_large:
            return None
        matrix = self._matrices.setdefault(space, Matrix(width))
        self._matrices.move_to_end(space)
        newest = self._db.value("SELECT max(version) FROM vector") or 0
        if newest > matrix.version:
            changed = "SELECT asset, value FROM vector WHERE version>? AND +space=? ORDER BY version"
            for rows in self._db.blocks(changed, (matrix.version, space), _READ):
                for serial, value in rows:
                    matrix.set(serial, value)
                if matrix.size > self._cache:
                    del self._matrices[space]
                    self._too_large.add(space)
                    return None
            matrix.version = newest
        while sum(one.size for one in self._matrices.values()) > self._cache:
            self._matrices.popitem(last=False)
        return matrix

    def _stored(self, space: int, width: int, session: str | None) -> Iterator[Block]:
        statement = (
            "SELECT vector.asset, vector.value FROM vector JOIN asset ON asset.serial=vector.asset "
            "WHERE vector.space=?1 AND vector.value IS NOT NULL AND (?2 IS NULL OR asset.session=?2)"
        )
        for rows in self._db.blocks(statement, (space, session), _rows(width)):
            values = np.array([_row(serial, value, width) for serial, value in rows])
            yield np.array([serial for serial, _ in rows], np.int64), values, float(_lengths(values).max())


class Matrix:
    """Vectors of one space in memory, in no order; a vector that goes leaves its place to the last one."""

    def __init__(self, width: int) -> None:
        """An empty one; `version` is that of the last change it holds."""
        self.version = 0
        self._width = width
        self._height = _rows(width)
        self._places: dict[int, int] = {}
        self._filled: list[tuple[Serials, Floats]] = []
        self._longest = 0.0

    @property
    def size(self) -> int:
        """Bytes of its vectors."""
        return 4 * self._width * len(self._places)

    def set(self, serial: int, value: bytes | None) -> None:
        """Take in a change: a vector, or None where it was withdrawn."""
        if value is None:
            self._remove(serial)
            return
        place = self._places.setdefault(serial, len(self._places))
        if place == len(self._filled) * self._height:
            # Not touched until used, so a small space does not take a whole block of memory.
            self._filled.append((np.empty(self._height, np.int64), np.empty((self._height, self._width), np.float32)))
        serials, rows = self._filled[place // self._height]
        row = _row(serial, value, self._width)
        serials[place % self._height] = serial
        rows[place % self._height] = row
        self._longest = max(self._longest, float(_lengths(row)))

    def _remove(self, serial: int) -> None:
        place = self._places.pop(serial, None)
        if place is None:
            return
        last = len(self._places)
        from_serials, from_rows = self._filled[last // self._height]
        if place != last:
            moved = int(from_serials[last % self._height])
            serials, rows = self._filled[place // self._height]
            serials[place % self._height] = moved
            rows[place % self._height] = from_rows[last % self._height]
            self._places[moved] = place
        if last % self._height == 0:
            self._filled.pop()

    def blocks(self) -> Iterator[Block]:
        """All vectors."""
        for number, (serials, rows) in enumerate(self._filled):
            count = min(self._height, len(self._places) - number * self._height)
            yield serials[:count], rows[:count], self._longest

    def some(self, serials: list[int]) -> Iterator[Block]:
        """The vectors of these assets, of those that have one."""
        here = [serial for serial in serials if serial in self._places]
        for start in range(0, len(here), self._height):
            chosen = here[start : start + self._height]
            places = np.array([self._places[serial] for serial in chosen])
            rows = np.empty((len(chosen), self._width), np.float32)
            for number in np.unique(places // self._height):
                inside = places // self._height == number
                rows[inside] = self._filled[number][1][places[inside] % self._height]
            yield np.array(chosen, np.int64), rows, self._longest


def best(blocks: Iterable[Block], query: Floats, k: int) -> list[tuple[int, float]]:
    """The `k` serials of largest inner product with the query, exactly: (score descending, serial ascending).

    BLAS scores each block in float32. What it computes is off by at most `error` (n roundings of n products, in any
    order), so whatever lies within that of the k-th best is computed again in float64, and only that decides.
    """
    serials: Serials = np.empty(0, np.int64)
    scores: NDArray[np.float64] = np.empty(0)
    length = float(_lengths(query))
    for here, rows, longest in blocks:
        error = len(query) * (_ROUNDING * length * longest + _SMALLEST)
        rough = rows @ query
        if len(scores) == k:
            least = float(scores[-1]) - error
        else:  # what this block alone has enough of, of scores that are off themselves
            count = min(k, len(rough))
            least = float(np.partition(rough, -count)[-count]) - 2 * error
        found = np.flatnonzero(rough >= least)
        serials = np.concatenate([serials, here[found]])
        scores = np.concatenate([scores, _exact(rows, found, query)])
        order = np.lexsort((serials, -scores))[:k]
        serials, scores = serials[order], scores[order]
    return list(zip(serials.tolist(), scores.tolist(), strict=True))


def _exact(rows: Floats, chosen: NDArray[np.intp], query: Floats) -> NDArray[np.float64]:
    """Inner products in float64, each row's by itself."""
    scores = np.empty(len(chosen))
    wide = query.astype(np.float64)
    for start in range(0, len(chosen), _EXACT):  # all rows, where all are equal
        some = slice(start, start + _EXACT)
        scores[some] = (rows[chosen[some]].astype(np.float64) * wide).sum(axis=1)
    return scores


def _lengths(rows: Floats) -> NDArray[np.float64]:
    wide = rows.astype(np.float64)
    lengths: NDArray[np.float64] = np.sqrt(np.einsum("...d,...d->...", wide, wide))
    return lengths


def _row(serial: int, value: bytes, width: int) -> Floats:
    if len(value) != 4 * width:
        raise DataError(f"the vector of asset number {serial} is damaged; run `memharness episodic repair`")
    return np.frombuffer(value, "<f4")


def _rows(width: int) -> int:
    """How many vectors are a block."""
    return max(1, BLOCK // (4 * width))


def _usable(vector: ArrayLike, where: str) -> Floats:
    try:
        value = np.ascontiguousarray(vector, "<f4")
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: not a vector of numbers ({error})") from None
    if np.ndim(vector) != 1 or not value.size:
        raise UserError(f"{where}: a vector must have the shape (width,), not {np.shape(vector)}")
    if not np.isfinite(value).all() or _lengths(value) > LONGEST:
        raise UserError(f"{where}: the vector holds NaN or an infinity, or is longer than {LONGEST:g}")
    return value


def _same_width(space: str, width: int, value: Floats) -> None:
    if len(value) != width:
        raise UserError(f"space {space}: a vector of width {len(value)}, and the space's are {width} wide")
