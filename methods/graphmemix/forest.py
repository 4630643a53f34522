"""The evidence forest: which items to show, and by which relations they hang together.

For a set of nodes S and a forest F over it (GraphMemix, set-level optimisation):

    J(S, F) = sum of u_i over S  -  root_cost * |S|  +  sum over F of [root_cost - edge_weight * (-ln r_e)]

Every component pays one root, every edge used saves one root for the price of its unreliability. The best forest of a
given S is Kruskal's; S itself is found by local search (`solve`), by enumeration when it may only shrink (`prune`), or
by an integer program (`solve_exact`, slow, the oracle of the tests).

Utilities and benefits are rounded once to multiples of 2^-50 and added as integers, so a sum does not depend on the
order of its terms and a tie is a tie on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ROOT_COST = 0.2
PRUNING_ROOT_COST = 0.12
EDGE_WEIGHT = 0.1

_ONE = 1 << 50
_IMPROVES = round(1e-12 * _ONE)
_LEAST_RELIABILITY = 1e-6

# A bond is an edge seen by Kruskal: (-benefit, left, right, the two nodes as a bit mask). Sorting bonds gives the order
# of the specification.
_Bond = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """An undirected relation between two items, with the reliability r in (0, 1] of using one to reach the other."""

    left: str
    right: str
    reliability: float


@dataclass(frozen=True, slots=True)
class Forest:
    """A chosen set of items and the relations that hold it together.

    Attributes:
        items: ids in reading order: components by their best item, each breadth first from it.
        edges: the relations used, in the order in which Kruskal accepted them.
        components: number of trees, single items included.
        objective: J of this forest.
        gains: cumulative benefit after each of `edges` (Figure 2b).
        climb: J of the start and after each accepted swap (Figure 2a); only `solve` gives more than one value.
    """

    items: tuple[str, ...]
    edges: tuple[Edge, ...]
    components: int
    objective: float
    gains: tuple[float, ...]
    climb: tuple[float, ...]


def benefit(reliability: float, root_cost: float = ROOT_COST, edge_weight: float = EDGE_WEIGHT) -> float:
    """Return what an edge adds to J, root_cost - edge_weight * (-ln r); one that adds nothing is never used."""
    return root_cost + edge_weight * math.log(max(reliability, _LEAST_RELIABILITY))


def solve(
    utilities: Mapping[str, float],
    edges: Iterable[Edge],
    size: int = 10,
    *,
    root_cost: float = ROOT_COST,
    edge_weight: float = EDGE_WEIGHT,
) -> Forest:
    """Choose min(size, n) items by best-improvement 1-swap search, each node set with its exact forest.

    The search starts from the items of largest utility (ties: earlier in the pool). Each step takes, of all swaps of
    one item inside for one outside that raise J by more than 1e-12, the largest by (J, id removed, id added).

    Args:
        utilities: u in pool order, one per candidate id.
        edges: relations between candidates; of several on one pair the most reliable counts, others are ignored, and so
            are edges that leave the pool.
        size: K, the most items to show.
        root_cost: price of a component.
        edge_weight: price of unreliability, per nat.

    Raises:
        ValueError: `size` is below 1, or a utility or reliability is not a finite number.
    """
    if size < 1:
        raise ValueError(f"size = {size}: at least 1 is needed")
    graph = _Graph(utilities, edges, root_cost, edge_weight)
    chosen = _mask(graph.by_utility[:size])
    value = graph.value(chosen)
    climb = [value]
    while swap := _best_swap(graph, chosen, value):
        value, removed, added = swap
        chosen ^= 1 << removed | 1 << added
        climb.append(value)
    return graph.forest(chosen, climb=climb)


def prune(
    items: Sequence[str],
    utilities: Mapping[str, float],
    edges: Iterable[Edge],
    *,
    root_cost: float = PRUNING_ROOT_COST,
    edge_weight: float = EDGE_WEIGHT,
    node_cost: float = 0.0,
) -> Forest:
    """Keep the non-empty subset of `items` with the largest J, exactly; ties go to fewer items, then to earlier ones.

    J adds up over the connected parts of the graph of useful edges, so enumerating the subsets of each part gives the
    same answer as enumerating the subsets of the whole. The order of `items` is kept.

    Args:
        items: ids in reading order (the forest of `solve`).
        utilities: u of at least those ids.
        edges: as in `solve`.
        root_cost: price of a component.
        edge_weight: price of unreliability, per nat.
        node_cost: price of an item.

    Raises:
        ValueError: no items, or a utility or reliability is not a finite number.
    """
    if not items:
        raise ValueError("there is nothing to prune: no items")
    graph = _Graph({item: utilities[item] - node_cost for item in items}, edges, root_cost, edge_weight)
    rank = {graph.number[item]: at for at, item in enumerate(items)}

    def merit(nodes: int) -> tuple[int, int, int]:
        return graph.value(nodes), -nodes.bit_count(), sum(1 << (len(items) - rank[n]) for n in _bits(nodes))

    parts = [_subsets(part) for part in graph.parts(_mask(range(len(items))))]
    best = sum(max([0, *subsets], key=merit) for subsets in parts)
    chosen = best or max((nodes for subsets in parts for nodes in subsets), key=merit)
    return graph.forest(chosen, order=[graph.number[item] for item in items])


def solve_exact(
    utilities: Mapping[str, float],
    edges: Iterable[Edge],
    size: int = 10,
    *,
    root_cost: float = ROOT_COST,
    edge_weight: float = EDGE_WEIGHT,
    seconds: float | None = None,
) -> Forest:
    """Choose min(size, n) items and their forest by integer programming (scipy's HiGHS): the optimum of J at that size.

    Each chosen item is a root or has one incoming arc; one unit of flow from outside to every chosen item, entering at
    roots only and running along chosen arcs, rules out cycles. Arguments as in `solve`.

    Args:
        utilities: as in `solve`.
        edges: as in `solve`.
        size: as in `solve`.
        root_cost: as in `solve`.
        edge_weight: as in `solve`.
        seconds: time limit, default none.

    Raises:
        ValueError: as in `solve`.
        RuntimeError: the solver stopped without an optimum, for instance at the time limit.
    """
    if size < 1:
        raise ValueError(f"size = {size}: at least 1 is needed")
    graph = _Graph(utilities, edges, root_cost, edge_weight)
    return graph.forest(_mask(_milp(graph, min(size, len(graph.ids)), seconds)))


class _Graph:
    """The candidates as numbers 0 .. n-1 in order of id, with what they are worth in units of 2^-50."""

    def __init__(
        self, utilities: Mapping[str, float], edges: Iterable[Edge], root_cost: float, edge_weight: float
    ) -> None:
        self.ids = sorted(utilities)
        self.number = {name: at for at, name in enumerate(self.ids)}
        (root,) = _units([root_cost])
        self.worth = [utility - root for utility in _units(utilities[name] for name in self.ids)]
        self.by_utility = [self.number[name] for name in sorted(utilities, key=lambda name: -utilities[name])]
        self.place = {n: at for at, n in enumerate(self.by_utility)}
        self.edges = self._best_edges(edges)
        self.bonds = self._bonds(root_cost, edge_weight)
        self.near: list[list[_Bond]] = [[] for _ in self.ids]
        self.around = [0] * len(self.ids)
        for bond in self.bonds:
            for end in bond[1:3]:
                self.near[end].append(bond)
                self.around[end] |= bond[3]

    def _best_edges(self, edges: Iterable[Edge]) -> dict[tuple[int, int], Edge]:
        best: dict[tuple[int, int], Edge] = {}
        for edge in edges:
            left, right = self.number.get(edge.left), self.number.get(edge.right)
            if left is None or right is None or left == right:
                continue
            pair = (left, right) if left < right else (right, left)
            if pair not in best or edge.reliability > best[pair].reliability:
                best[pair] = edge
        return best

    def _bonds(self, root_cost: float, edge_weight: float) -> list[_Bond]:
        gains = _units(benefit(edge.reliability, root_cost, edge_weight) for edge in self.edges.values())
        pairs = zip(self.edges, gains, strict=True)
        return sorted((-gain, left, right, 1 << left | 1 << right) for (left, right), gain in pairs if gain > 0)

    def value(self, nodes: int) -> int:
        """J of the best forest on `nodes` (a bit mask)."""
        return sum(self.worth[n] for n in _bits(nodes)) + _total(_kruskal(self.within(nodes)))

    def within(self, nodes: int) -> list[_Bond]:
        """The useful edges with both ends in `nodes`, in Kruskal's order."""
        return [bond for bond in self.bonds if bond[3] & nodes == bond[3]]

    def parts(self, nodes: int) -> list[int]:
        """The connected parts of `nodes` as bit masks."""
        return _merge([1 << n for n in _bits(nodes)], self.within(nodes))

    def forest(self, nodes: int, *, order: Sequence[int] | None = None, climb: Sequence[int] = ()) -> Forest:
        """Write out the best forest on `nodes`, in breadth-first order unless another is given."""
        tree = _kruskal(self.within(nodes))
        value = sum(self.worth[n] for n in _bits(nodes)) + _total(tree)
        gains, total = [], 0
        for bond in tree:
            total -= bond[0]
            gains.append(total / _ONE)
        return Forest(
            items=tuple(self.ids[n] for n in (order or self._breadth_first(nodes, tree)) if nodes >> n & 1),
            edges=tuple(self.edges[left, right] for _, left, right, _ in tree),
            components=nodes.bit_count() - len(tree),
            objective=value / _ONE,
            gains=tuple(gains),
            climb=tuple(v / _ONE for v in climb or [value]),
        )

    def _breadth_first(self, nodes: int, tree: list[_Bond]) -> list[int]:
        """Components by their best item; in each, neighbours in order of (-u, position in the pool)."""
        ordered: list[int] = []
        seen = 0
        for root in sorted(_bits(nodes), key=self.place.__getitem__):
            if seen >> root & 1:
                continue
            queue = [root]
            for n in queue:
                seen |= 1 << n
                others = {left + right - n for _, left, right, pair in tree if pair >> n & 1}
                queue += sorted((o for o in others if not seen >> o & 1), key=self.place.__getitem__)
            ordered += queue
        return ordered


def _best_swap(graph: _Graph, chosen: int, value: int) -> tuple[int, int, int] | None:
    """Return (J after it, removed, added) of the best improving swap, or None at a local optimum.

    A newcomer changes the forest only through its edges to what stays, and what it adds is at most their sum (exactly
    that, where they lead to different trees). So newcomers are tried from the largest bound down, against the items
    of least worth first, and both loops end where no bound reaches the best swap found.
    """
    worth, inside = graph.worth, graph.within(chosen)
    members = sorted(_bits(chosen), key=worth.__getitem__)
    least = worth[members[0]] if members else 0
    newcomers = []
    for added, around in enumerate(graph.around):
        if not chosen >> added & 1:
            bound, links = worth[added], []
            if around & chosen:
                for bond in graph.near[added]:
                    if bond[3] & chosen:
                        bound -= bond[0]
                        links.append(bond)
            if bound > least:
                newcomers.append((bound, added, links))
    newcomers.sort(key=lambda newcomer: newcomer[:2], reverse=True)

    tree, bonded = _kruskal(inside), _union(bond[3] for bond in inside)
    best = (value + _IMPROVES, len(worth), len(worth))
    for removed in members:
        if not newcomers or value - worth[removed] + newcomers[0][0] < best[0]:
            break
        bit = 1 << removed
        kept = _kruskal([bond for bond in inside if not bond[3] & bit]) if bonded & bit else tree
        held = _total(kept)
        base = value - worth[removed] - _total(tree) + held
        for bound, added, links in newcomers:
            if base + bound < best[0]:
                break
            left = [bond for bond in links if not bond[3] & bit]
            gain = _total(_kruskal(sorted(kept + left))) - held if len(left) > 1 else _total(left)
            best = max(best, (base + worth[added] + gain, removed, added))
    return best if best[1] < len(worth) else None


def _kruskal(bonds: Iterable[_Bond]) -> list[_Bond]:
    """Return the bonds of the maximum-weight forest; `bonds` must come sorted."""
    parent: dict[int, int] = {}
    taken = []
    for bond in bonds:
        _, a, b, _ = bond
        while a in parent:
            a = parent[a]
        while b in parent:
            b = parent[b]
        if a != b:
            parent[b] = a
            taken.append(bond)
    return taken


def _merge(parts: list[int], bonds: Iterable[_Bond]) -> list[int]:
    for *_, pair in bonds:
        touched = [part for part in parts if part & pair]
        parts = [part for part in parts if not part & pair] + [_union(touched)]
    return parts


def _milp(graph: _Graph, size: int, seconds: float | None) -> list[int]:
    """Return the nodes of an optimal forest of exactly `size` nodes."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n = len(graph.ids)
    arcs = [(a, b, -gain) for gain, left, right, _ in graph.bonds for a, b in ((left, right), (right, left))]
    m = len(arcs)
    # Columns: chosen (n), root (n), arc (m), flow in from outside (n), flow along an arc (m).
    root, arc, inflow, flow = n, 2 * n, 2 * n + m, 3 * n + m
    columns = 3 * n + 2 * m
    entries: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def row(terms: Iterable[tuple[int, float]], least: float, most: float) -> None:
        entries.extend((len(low), column, factor) for column, factor in terms)
        low.append(least)
        high.append(most)

    row(((i, 1.0) for i in range(n)), size, size)
    for i in range(n):
        into = [at for at, (_, b, _) in enumerate(arcs) if b == i]
        out = [at for at, (a, _, _) in enumerate(arcs) if a == i]
        row([(i, 1.0), (root + i, -1.0), *((arc + at, -1.0) for at in into)], 0, 0)
        row(
            [(inflow + i, 1.0), (i, -1.0), *((flow + at, 1.0) for at in into), *((flow + at, -1.0) for at in out)], 0, 0
        )
        row([(inflow + i, 1.0), (root + i, -float(size))], -np.inf, 0)
    for at in range(0, m, 2):
        # An edge runs one way at most, and only between chosen items: twice as tight as each arc for itself.
        both = [(arc + at, 1.0), (arc + at + 1, 1.0)]
        for end in arcs[at][:2]:
            row([*both, (end, -1.0)], -np.inf, 0)
    for at in range(m):
        row([(flow + at, 1.0), (arc + at, 1.0 - size)], -np.inf, 0)

    cost = np.zeros(columns)
    cost[:n] = [-w / _ONE for w in graph.worth]
    cost[arc : arc + m] = [-gain / _ONE for _, _, gain in arcs]
    whole = np.zeros(columns)
    whole[:inflow] = 1
    upper = np.ones(columns)
    upper[inflow:] = size
    at_row, at_column, factor = zip(*entries, strict=True)
    matrix = coo_array((factor, (at_row, at_column)), shape=(len(low), columns)).tocsr()
    options = {"mip_rel_gap": 0.0} | ({} if seconds is None else {"time_limit": seconds})
    found = milp(
        cost,
        integrality=whole,
        bounds=Bounds(0, upper),
        constraints=LinearConstraint(matrix, low, high),
        options=options,
    )
    if not found.success:
        raise RuntimeError(f"the integer program was not solved: {found.message}")
    return [i for i in range(n) if found.x[i] > 0.5]


def _units(values: Iterable[float]) -> list[int]:
    numbers = list(values)
    if not math.isfinite(sum(numbers)):
        raise ValueError("a utility, reliability or cost is not a finite number")
    return [round(number * _ONE) for number in numbers]


def _total(bonds: Iterable[_Bond]) -> int:
    return -sum(bond[0] for bond in bonds)


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def _mask(nodes: Iterable[int]) -> int:
    return sum(1 << n for n in nodes)


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _subsets(mask: int) -> list[int]:
    """Every non-empty subset of `mask`."""
    found, subset = [], mask
    while subset:
        found.append(subset)
        subset = (subset - 1) & mask
    return found
