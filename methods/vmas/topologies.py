"""The communication graphs of a team, as DAGs over turns; shared by every multi-agent method.

A node is a turn: one agent's complete pass (L²-VMAS, appendix B.1). Nodes are numbered 0 … n-1 and the last decides. An
edge u → v says that v is told what u reported. Every graph is acyclic, and every node reaches the last one, so that no
agent works in vain. The shapes follow MacNet (ChatDev, branch `macnet`), whose edges run from low to high.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

Edge = tuple[int, int]
Static = Literal["linear", "layered", "centralized", "random", "complete"]
Topology = Literal["linear", "layered", "centralized", "random", "complete", "dynamic"]
Hub = Literal["last", "both"]
STATIC: tuple[str, ...] = get_args(Static)


@dataclass(frozen=True)
class Graph:
    """A DAG of n turns whose last turn, n-1, is its only sink.

    Attributes:
        n: turns, at least 1.
        edges: (from, to) pairs, sorted.
    """

    n: int
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        """Hold what every user of a graph relies on.

        Raises:
            ValueError: for no node, an edge to nowhere, a cycle, or a node from which the last cannot be reached.
        """
        if self.n < 1:
            raise ValueError("a graph needs at least one node")
        if bad := [edge for edge in self.edges if not all(0 <= node < self.n for node in edge)]:
            raise ValueError(f"edge {bad[0]} leads outside {self.n} nodes")
        if len(self.order) != self.n:
            raise ValueError(f"there is a cycle among nodes {sorted(set(range(self.n)) - set(self.order))}")
        # In a DAG every path ends in a sink, so one sink is what every node reaches.
        if lost := [node for node in range(self.n - 1) if not self.successors[node]]:
            raise ValueError(f"node {lost[0]} does not reach node {self.n - 1}, which decides")
        if self.successors[self.n - 1]:
            raise ValueError(f"node {self.n - 1} decides and yet reports to {self.successors[self.n - 1]}")

    @property
    def sink(self) -> int:
        """The node that decides."""
        return self.n - 1

    @cached_property
    def predecessors(self) -> Sequence[tuple[int, ...]]:
        """Whom each node hears, in increasing order."""
        return self._neighbours((v, u) for u, v in self.edges)

    @cached_property
    def successors(self) -> Sequence[tuple[int, ...]]:
        """Who hears each node, in increasing order."""
        return self._neighbours(self.edges)

    def _neighbours(self, pairs: Iterable[Edge]) -> Sequence[tuple[int, ...]]:
        found: list[set[int]] = [set() for _ in range(self.n)]
        for node, other in pairs:
            found[node].add(other)
        return [tuple(sorted(others)) for others in found]

    @cached_property
    def generations(self) -> Sequence[tuple[int, ...]]:
        """Nodes by the longest path that leads to them: those of one generation can work at the same time."""
        waiting = {node: len(self.predecessors[node]) for node in range(self.n)}
        out: list[tuple[int, ...]] = []
        while free := tuple(node for node, count in waiting.items() if not count):
            out.append(free)
            for node in free:
                del waiting[node]
                for heir in self.successors[node]:
                    waiting[heir] -= 1
        return out

    @cached_property
    def depth(self) -> Mapping[int, int]:
        """The generation of each node."""
        return {node: depth for depth, generation in enumerate(self.generations) for node in generation}

    @cached_property
    def order(self) -> Sequence[int]:
        """A topological order: generation by generation, by number within one."""
        return [node for generation in self.generations for node in generation]


def linear(n: int) -> Graph:
    """Each turn hears the one before it."""
    return Graph(n, tuple((node, node + 1) for node in range(n - 1)))


def complete(n: int) -> Graph:
    """Each turn hears all before it: a full mesh, which as a DAG has its edges in one direction."""
    return Graph(n, tuple((u, v) for u in range(n) for v in range(u + 1, n)))


def layered(n: int, layers: int | None = None) -> Graph:
    """Workers in layers, each layer heard by the next alone, and the last turn after them.

    Args:
        n: turns.
        layers: layers of the n-1 workers; None is MacNet's int(log2(workers)). More than there are workers is as many.
            Workers left over are in the first layer.
    """
    workers = n - 1
    if not workers:
        return linear(1)
    count = min(workers, layers or max(1, int(math.log2(workers))))
    size, left = divmod(workers, count)
    ends = [left + size * (layer + 1) for layer in range(count)]
    groups = [range(start, end) for start, end in zip([0, *ends], [*ends, n], strict=True)]  # the last: who decides
    return Graph(n, tuple((u, v) for one, other in pairwise(groups) for u in one for v in other))


def centralized(n: int, hub: Hub = "last") -> Graph:
    """Workers that speak with a hub only.

    Args:
        n: turns.
        hub: `last`: the hub collects and decides. `both`: it also hands out the work first, so its two turns are the
            first and the last; with fewer than three turns there is nobody between them and it is as `last`.
    """
    if hub == "last" or n < 3:
        return Graph(n, tuple((worker, n - 1) for worker in range(n - 1)))
    workers = range(1, n - 1)
    return Graph(n, tuple(sorted([(0, worker) for worker in workers] + [(worker, n - 1) for worker in workers])))


def random_dag(n: int, rng: random.Random) -> Graph:
    """Between n-1 and n(n-1)/2 edges drawn among all low → high pairs, as MacNet does, then repaired."""
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    drawn = rng.sample(pairs, rng.randint(n - 1, len(pairs))) if pairs else []
    return repaired(n, drawn, rng)


def repaired(n: int, edges: Iterable[Edge], rng: random.Random | None = None) -> Graph:
    """The graph of low → high edges, in which each node that nobody hears is given a hearer.

    Args:
        n: turns.
        edges: (from, to) with from < to.
        rng: draws the hearer among the later nodes; without it, it is the last.
    """
    kept = set(edges)
    heard = {u for u, _ in kept}
    for node in range(n - 1):
        if node not in heard:
            kept.add((node, rng.randint(node + 1, n - 1) if rng else n - 1))
    return Graph(n, tuple(sorted(kept)))


def reporting(n: int, edges: Iterable[Edge]) -> Graph:
    """Any acyclic edges among the workers 0 … n-2, all of whom also report to the last turn (G-Designer's decision)."""
    return Graph(n, tuple(sorted({*edges, *((worker, n - 1) for worker in range(n - 1))})))


def static(name: str, n: int, rng: random.Random, *, layers: int | None = None, hub: Hub = "last") -> Graph:
    """A topology that does not depend on the task.

    Args:
        name: of `STATIC`.
        n: turns.
        rng: used by `random` alone.
        layers: see `layered`.
        hub: see `centralized`.

    Raises:
        ValueError: for another name.
    """
    if name == "random":
        return random_dag(n, rng)
    if name == "layered":
        return layered(n, layers)
    if name == "centralized":
        return centralized(n, hub)
    plain: Mapping[str, Graph] = {"linear": linear(n), "complete": complete(n)}
    if name not in plain:
        raise ValueError(f"{name!r} is not one of {', '.join(STATIC)}")
    return plain[name]
