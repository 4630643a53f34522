"""How long `memharness --help` takes from a cold process, beside a Python that does nothing.

Run: python tests/perf/startup.py
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

RUNS = 15
WANTED = 0.150  # seconds
SLOWEST = 8
QUIET = 1.5  # a bare start that swings more than this between its quartiles says that the machine is busy

SCRIPT = Path(sys.executable).with_name("memharness")
HELP = [str(SCRIPT), "--help"] if SCRIPT.exists() else [sys.executable, "-m", "memharness", "--help"]
WAYS = {"memharness --help": HELP, "python -c pass": [sys.executable, "-c", "pass"]}


def seconds(command: list[str]) -> float:
    """Wall-clock seconds of one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def slowest_imports() -> list[tuple[int, str]]:
    """The modules that take longest by themselves: (microseconds, name)."""
    command = [sys.executable, "-X", "importtime", "-m", "memharness", "--help"]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    rows = [line.removeprefix("import time:").split("|") for line in report.splitlines()[1:] if line.count("|") == 2]
    return sorted(((int(own), name.strip()) for own, _, name in rows if own.strip().isdigit()), reverse=True)


def main() -> int:
    """Print the medians of 15 interleaved rounds; return 1 if help takes over 150 ms on a quiet machine."""
    for command in WAYS.values():  # byte code is compiled and files are read once, as for any installed program
        seconds(command)
    walls: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(RUNS):
        for name, command in WAYS.items():
            walls[name].append(seconds(command))
    print(f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}")
    for name, times in walls.items():
        print(f"{name:18} median {1000 * median(times):6.1f} ms, best {1000 * min(times):6.1f} ms, {RUNS} runs")
    print(f"slowest imports of their own, of {len(slowest_imports())}:")
    for own, name in slowest_imports()[:SLOWEST]:
        print(f"  {own / 1000:6.2f} ms  {name}")
    bare = sorted(walls["python -c pass"])
    quiet = bare[3 * RUNS // 4] < QUIET * bare[RUNS // 4]
    late = median(walls["memharness --help"]) > WANTED
    verdict = "over" if late else "within"
    print(f"{verdict} {1000 * WANTED:.0f} ms" + ("" if quiet else "; the machine was busy, which says little"))
    return int(late and quiet)


if __name__ == "__main__":
    sys.exit(main())
