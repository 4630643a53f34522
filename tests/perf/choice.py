"""A table of MMBench's size, 4,377 rows with pictures in their cells, streamed: memory, and rows a second.

Beside it, in one run: Python's bare csv reader over the same file, and pandas, which VLMEvalKit reads such tables with.

Run: python tests/perf/choice.py
"""

from __future__ import annotations

import base64
import csv
import io
import os
import platform
import random
import resource
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

ROWS, SMALL = 4377, 400
GROWTH = 1.5  # peak memory of the large table over that of the small one, at most
COLUMNS = ("index", "question", "hint", "A", "B", "C", "D", "answer", "category", "image", "l2-category", "split")


def pictures(count: int) -> Iterable[str]:
    """Yield `count` different JPEG files of about 22 kB, MMBench's mean, as base64."""
    from PIL import Image

    dice = random.Random(0)
    base = Image.effect_noise((420, 420), 60)
    for _ in range(count):
        left, top = dice.randrange(220), dice.randrange(220)
        out = io.BytesIO()
        base.crop((left, top, left + 200, top + 200)).resize((250, 190)).save(out, "JPEG", quality=80)
        yield base64.b64encode(out.getvalue()).decode()


def write(path: Path, rows: int) -> Path:
    """Write a table of base questions, as VLMEvalKit writes it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(COLUMNS)
        for index, cell in enumerate(pictures(rows)):
            between = " " if index % 20 else "\n"  # one question in twenty has options of several lines, as in MMBench
            options = [f"option {letter} of {index}{between}in two parts" for letter in "ABCD"]
            writer.writerow(
                [index, f"What is in picture {index}?", "", *options, "ABCD"[index % 4], "ocr", cell, "l2", "dev"]
            )
    return path


def timed(read: Callable[[], int]) -> tuple[int, float]:
    """Rows read, and seconds."""
    start = time.perf_counter()
    return read(), time.perf_counter() - start


def peak(read: Callable[[], int]) -> int:
    """Bytes that Python held at most while reading."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def resident() -> float:
    """Most memory this process ever held, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e6 if sys.platform == "darwin" else 1e3)


def bare(path: Path) -> int:
    """Python's own reader, which keeps nothing and names nothing."""
    csv.field_size_limit(1 << 28)
    with path.open(newline="", encoding="utf-8") as file:
        return sum(1 for _ in csv.reader(file, delimiter="\t")) - 1


def main() -> int:
    """Print the figures; return 0 if memory does not grow with the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["MEMHARNESS_HOME"] = str(folder / "home")
        return measure(folder)


def measure(folder: Path) -> int:
    """Measure in a folder."""
    from memharness.benchmark import Data
    from memharness.benchmarks.mmbench import MMBench, MMBenchOptions
    from memharness.media import MediaStore
    from memharness.tsv import read_pictured, read_tsv

    def opened(path: Path) -> int:
        bench = MMBench(Data(path, "given", MediaStore()), MMBenchOptions(circular=False))
        return len(bench.contexts())

    def streamed(path: Path) -> int:
        return sum(1 for _ in read_tsv(path))

    def pictured(path: Path) -> int:
        return sum(len(images) for _, images in read_pictured(path, MediaStore()))

    large, small = write(folder / "large.tsv", ROWS), write(folder / "small.tsv", SMALL)
    size = large.stat().st_size / 1e6
    print(f"machine    {platform.machine()}, {os.cpu_count()} CPUs, {platform.platform()}")
    print(f"versions   Python {platform.python_version()}")
    print(f"table      {ROWS:,} rows, {size:.0f} MB, {size / ROWS * 1e3:.0f} kB a row")
    before = resident()
    ways: dict[str, Callable[[], int]] = {
        "bare csv": partial(bare, large),
        "read_tsv": partial(streamed, large),
        "pictured, first time": partial(pictured, large),
        "pictured, again": partial(pictured, large),
        "MMBench, opened": partial(opened, large),
    }
    for name, way in ways.items():
        rows, seconds = timed(way)
        assert rows == ROWS, (name, rows)
        print(f"{name:<21} {rows / seconds:8,.0f} rows/s  {size / seconds:6.0f} MB/s  {seconds:5.2f} s")
    print(f"resident   {before:.0f} MB before, {resident():.0f} MB at most while all of these read")
    held = {read.__name__: (peak(partial(read, small)), peak(partial(read, large))) for read in (streamed, pictured)}
    for name, (little, much) in held.items():
        print(f"{name:<10} holds {little / 1e6:.2f} MB over {SMALL} rows, {much / 1e6:.2f} MB over {ROWS:,}")
    print(
        f"MMBench    holds {peak(lambda: opened(large)) / 1e6:.2f} MB over {ROWS:,}: its questions, without a picture"
    )
    beside_pandas(large, size)
    # What grows a little is the map from an index to its picture's reference.
    kept = 1000 * (ROWS - SMALL)
    good = all(much <= GROWTH * little + kept for little, much in held.values())
    print(f"constant   {'yes' if good else 'NO'} (at most {GROWTH} times, and a reference a row)")
    return 0 if good else 1


def beside_pandas(path: Path, size: float) -> None:
    """What the reader of VLMEvalKit takes."""
    import pandas as pd

    rows, seconds = timed(lambda: len(pd.read_csv(path, sep="\t")))
    print(f"pandas {pd.__version__:<8} {rows / seconds:8,.0f} rows/s  {size / seconds:6.0f} MB/s  {seconds:5.2f} s, "
          f"resident then {resident():.0f} MB")  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
