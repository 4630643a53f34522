"""Data that a page opened from a file can load: JSON in scripts that hand it over, since `fetch` reads no files."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memharness.store import disk_error, encode

# `<` ends no script and begins no comment; the two separators end a line in old readers of JavaScript.
_ESCAPES = str.maketrans({"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def script(name: str, value: Any) -> str:
    """A script that hands `value` over under `name`.

    The JSON stands in a string that the page parses: an object literal would take a key `__proto__` for a prototype.
    """
    return f"memharness({encode(name)},{json.dumps(encode(value), ensure_ascii=False)});\n".translate(_ESCAPES)


def put(path: Path, text: str) -> None:
    """Write a file of the page.

    Raises:
        UserError: if the disk is full or refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise disk_error(error, path) from error


class Shards:
    """A long list in files of some rows each: `NAME-0.js`, `NAME-1.js` … A page loads those it shows.

    A file is closed once it holds `rows` rows or `size` characters, so that one question with a long prompt does not
    make its neighbours slow. `starts` is the first row of every file: what a page needs to find a row.
    """

    def __init__(self, folder: Path, name: str, *, rows: int, size: int = 400_000) -> None:
        """Write into `folder` under `name`."""
        self._folder, self._name, self._rows, self._size = folder, name, rows, size
        self._lines: list[str] = []
        self._held = 0
        self.starts: list[int] = []
        self.count = 0

    def __enter__(self) -> Self:
        """Begin; leaving writes the last file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, unless something went wrong."""
        if kind is None:
            self._write()

    def add(self, value: Any) -> int:
        """Add a row; returns its number."""
        line = encode(value)
        if self._lines and (len(self._lines) == self._rows or self._held + len(line) > self._size):
            self._write()
        self._lines.append(line)
        self._held += len(line)
        self.count += 1
        return self.count - 1

    def _write(self) -> None:
        if not self._lines:
            return
        name = f"{self._name}-{len(self.starts)}"
        text = json.dumps(f"[{','.join(self._lines)}]", ensure_ascii=False)
        put(self._folder / f"{name}.js", f"memharness({encode(name)},{text});\n".translate(_ESCAPES))
        self.starts.append(self.count - len(self._lines))
        self._lines, self._held = [], 0
