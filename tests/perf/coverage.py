"""Whether intervals cover and tests err as often as they say, at LoCoMo's cluster sizes: simulated, 50,000 times each.

Run: python tests/perf/coverage.py [--locomo locomo10.json] [--simulations 50000]
A conversation has an effect of its own on every question of it. Of a simulation only the cluster totals are drawn,
which is all that the formulas look at; that `memharness.stats` gives the same is checked on full scores of some draws.
Exits with 1 if a figure of the harness's own rule is more than a point off its nominal 95 % or 5 %.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memharness.stats import interval, paired, ratio, sign_flip
from memharness.stats.clusters import KEPT, bell_mccaffrey, lopsided, t_quantile

LOCOMO = {  # questions of each conversation, in the published order
    "LoCoMo, all": [199, 105, 193, 260, 242, 158, 190, 239, 196, 204],
    "LoCoMo, categories 1-4": [152, 81, 152, 199, 178, 123, 150, 191, 156, 158],
    "LoCoMo, category 3": [13, 8, 11, 14, 7, 13, 10, 13, 7],
    "one conversation of ten four times as long": [800, *[200] * 9],
}
EFFECTS = (0.0, 0.05, 0.15)  # standard deviation of a conversation's effect, in shares of 1
DISCORDANCE = 0.3
POINT = 0.01
CHECKED = 20
Numbers = NDArray[np.float64]


def sizes(path: Path | None) -> dict[str, list[int]]:
    """Cluster sizes by name, from the data if they are at hand."""
    if path is None:
        return LOCOMO
    categories = [[qa["category"] for qa in sample["qa"]] for sample in json.loads(path.read_text("utf-8"))]
    kinds = {"all": range(1, 6), "categories 1-4": range(1, 5), "category 3": [3]}
    counted = {f"LoCoMo, {name}": [sum(c in kind for c in one) for one in categories] for name, kind in kinds.items()}
    return LOCOMO | {name: [n for n in counts if n] for name, counts in counted.items()}


def errors(totals: Numbers, n: Numbers) -> dict[str, tuple[Numbers, float]]:
    """Standard errors and degrees of freedom by rule, from totals of shape (simulations, G)."""
    share, groups = n / n.sum(), len(n)
    residual = totals - n * (totals.sum(axis=1, keepdims=True) / n.sum())
    plain = np.sqrt((residual**2).sum(axis=1) * groups / (groups - 1)) / n.sum()
    cr2 = np.sqrt((residual**2 / (1 - share)).sum(axis=1)) / n.sum()
    df = bell_mccaffrey(n)
    unequal = bool(lopsided(n)) or df < KEPT * (groups - 1)
    found = {"CR1 t(G-1)": (plain, groups - 1.0), "CR2 t(BM)": (cr2, df)}
    return {"ours": found["CR2 t(BM)" if unequal else "CR1 t(G-1)"], **found}


def scores(rng: np.random.Generator, n: Numbers, effect: float, simulations: int) -> Numbers:
    """Right answers of each conversation: half on average, more or less by its effect."""
    chance = np.clip(0.5 + rng.normal(0, effect, (simulations, len(n))), 0, 1)
    return rng.binomial(n.astype(int), chance).astype(float)


def changes(rng: np.random.Generator, n: Numbers, effect: float, simulations: int) -> tuple[Numbers, Numbers]:
    """Answers gained and lost in each conversation by a method that is no better over all conversations."""
    lean = np.clip(rng.normal(0, effect, (simulations, len(n))), -DISCORDANCE, DISCORDANCE)
    up, down = (DISCORDANCE + lean) / 2, (DISCORDANCE - lean) / 2
    gained = rng.binomial(n.astype(int), up)
    return gained.astype(float), rng.binomial(n.astype(int) - gained, down / (1 - up)).astype(float)


def check_scores(totals: Numbers, n: Numbers) -> None:
    """That `interval` gives the bounds computed here from totals."""
    for row, error in zip(totals[:CHECKED], errors(totals[:CHECKED], n)["ours"][0], strict=True):
        values = [float(at < right) for size, right in zip(n, row, strict=True) for at in range(int(size))]
        found = interval(values, np.repeat(np.arange(len(n)), n.astype(int)).tolist())
        half = t_quantile(0.95, errors(totals[:1], n)["ours"][1]) * error
        if not np.isclose(found.low, max(0.0, row.sum() / n.sum() - half)):
            raise SystemExit(f"interval() gives {found.low}, the simulation {row.sum() / n.sum() - half}")


def check_changes(gained: Numbers, lost: Numbers, n: Numbers, flipped: Numbers) -> None:
    """That `paired` and `sign_flip` give the p values computed here from totals."""
    names = np.repeat(np.arange(len(n)), n.astype(int))
    clusters = {str(i): int(name) for i, name in enumerate(names)}
    error, df = errors(gained - lost, n)["ours"]
    for at in range(CHECKED):
        values = np.concatenate(
            [np.repeat([1.0, -1.0, 0.0], [int(u), int(d), int(size - u - d)])
             for u, d, size in zip(gained[at], lost[at], n, strict=True)]
        )  # fmt: skip
        found = paired(dict.fromkeys(clusters, 0.0), {str(i): v for i, v in enumerate(values)}, clusters)
        beyond = abs(values.mean()) > t_quantile(0.95, df) * error[at]
        if found.p is None or (found.p < 0.05) != beyond:
            raise SystemExit(f"paired() gives p {found.p}, the simulation finds {beyond}")
        if not np.isclose(sign_flip(values, names.tolist()).p, flipped[at]):
            raise SystemExit(f"sign_flip() gives {sign_flip(values, names.tolist()).p}, the simulation {flipped[at]}")


def flips(totals: Numbers) -> Numbers:
    """p values of the exact sign-flip test, shape (simulations,)."""
    groups = totals.shape[1]
    signs = 1.0 - 2.0 * ((np.arange(2 ** (groups - 1))[None, :] >> np.arange(groups)[:, None]) & 1)  # half, by symmetry
    out = [(abs(block @ signs) >= abs(block.sum(axis=1, keepdims=True)) - 1e-9).mean(axis=1)
           for block in np.array_split(totals, max(1, len(totals) // 2000))]  # fmt: skip
    return np.concatenate(out)


def covered(totals: Numbers, n: Numbers) -> dict[str, float]:
    """How often each rule's 95 % interval holds one half; and the naive one, for which items are independent."""
    mean = totals.sum(axis=1) / n.sum()
    rules = errors(totals, n) | {"items": (np.sqrt(mean * (1 - mean) / (n.sum() - 1)), n.sum() - 1)}
    return {
        name: float((abs(mean - 0.5) <= t_quantile(0.95, df) * error).mean()) for name, (error, df) in rules.items()
    }


def refused(gained: Numbers, lost: Numbers, n: Numbers, flipped: Numbers) -> dict[str, float]:
    """How often each test at 5 % finds a difference that is not there."""
    total, mean = n.sum(), (gained - lost).sum(axis=1) / n.sum()
    spread = np.sqrt(((gained + lost).sum(axis=1) / total - mean**2) / (total - 1))
    rules = errors(gained - lost, n) | {"items": (spread, total - 1)}
    found = {name: float((abs(mean) > t_quantile(0.95, df) * error).mean()) for name, (error, df) in rules.items()}
    return found | {"sign flips": float((flipped <= 0.05).mean())}


def costs(rng: np.random.Generator, n: Numbers, effect: float, simulations: int) -> tuple[Numbers, Numbers, float]:
    """Tokens of two methods by conversation, and the ratio of what they cost over all conversations there could be."""
    own, more = (np.exp(rng.normal(0, effect, (simulations, len(n)))) for _ in range(2))
    return 1000 * n * own, 2000 * n * own * more, 2 * float(np.exp(effect**2 / 2))


def ratios(a: Numbers, b: Numbers, truth: float) -> dict[str, float]:
    """How often the 95 % interval of a ratio of totals holds the true one, conversations as the units."""
    groups, below, above = a.shape[1], a.sum(axis=1, keepdims=True), b.sum(axis=1, keepdims=True)
    error = np.sqrt(((b / above - a / below) ** 2).sum(axis=1) * groups / (groups - 1))
    log = np.log(above / below)[:, 0]
    for at in range(CHECKED):
        sides = ({str(i): float(x) for i, x in enumerate(side[at])} for side in (a, b))
        low = np.exp(log[at] - t_quantile(0.95, groups - 1) * error[at])
        if not np.isclose(found := ratio(*sides).low, low):
            raise SystemExit(f"ratio() gives {found}, the simulation {low}")
    return {"ours": float((abs(log - np.log(truth)) <= t_quantile(0.95, groups - 1) * error).mean())}


def show(title: str, rows: list[tuple[str, float, dict[str, float]]]) -> None:
    """Print a table."""
    names = list(rows[0][2])
    print(f"\n{title}\n{'clusters':44}{'effect':>8}" + "".join(f"{name:>12}" for name in names))
    for where, effect, found in rows:
        print(f"{where:44}{effect:8.2f}" + "".join(f"{100 * found[name]:11.1f}%" for name in names))


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="locomo10.json as published, to count questions in")
    parser.add_argument("--simulations", type=int, default=50_000)
    arguments = parser.parse_args()
    if arguments.simulations < 5000:
        parser.error("a figure to a point needs 5,000 simulations or more")
    begun, rng = time.perf_counter(), np.random.default_rng(8)
    cover, false, cost = [], [], []
    for where, counts in sizes(arguments.locomo).items():
        n = np.asarray(counts, dtype=float)
        for effect in EFFECTS:
            totals = scores(rng, n, effect, arguments.simulations)
            gained, lost = changes(rng, n, effect, arguments.simulations)
            flipped = flips(gained - lost)
            check_scores(totals, n)
            check_changes(gained, lost, n, flipped)
            cover.append((where, effect, covered(totals, n)))
            false.append((where, effect, refused(gained, lost, n, flipped)))
            if effect and where.startswith("LoCoMo"):
                cost.append((where, effect, ratios(*costs(rng, n, effect, arguments.simulations))))
    tables = (("coverage", cover, 0.95), ("false positives", false, 0.05), ("coverage of ratios", cost, 0.95))
    off = [
        f"{what}, {where}, effect {effect}: {100 * found['ours']:.1f} %"
        for what, rows, nominal in tables
        for where, effect, found in rows
        if where.startswith("LoCoMo") and abs(found["ours"] - nominal) > POINT
    ]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}; "
          f"{arguments.simulations:,} simulations a row, {time.perf_counter() - begun:.1f} s")  # fmt: skip
    show("coverage of the 95 % interval of one score", cover)
    show(f"false positives of the paired test at 5 %, discordance {DISCORDANCE:.0%}", false)
    show("coverage of the 95 % interval of a ratio of totals, conversations as the units", cost)
    for line in off:
        print(f"over a point off: {line}")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
