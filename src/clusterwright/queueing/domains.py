"""Where nodes are: a tree of domains of any depth, kept as arrays so that a level is summed in one pass.

Level `depth` counts from 1 (the widest) to `len(levels)`; below it every node is a domain of its own (level "node"),
and depth 0 is the whole floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Name of the tightest level, unless a declared level has it.
NODE: Final = "node"

Ints = NDArray[np.signedinteger[Any]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Layout:
    """The domains of nodes 0 … n−1; nothing of it changes.

    Args:
        levels: names, widest first.
        names: by level, the name of each domain (its path joined by `/`).
        of: by level, `(nodes,) int64`: the domain of each node.
        order: `(nodes,) int64`: the nodes, domain by domain at every level, within the tightest by index.
        starts: by level, `(domains,) int64`: where each domain begins in `order`.
    """

    levels: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    of: tuple[Ints, ...]
    order: Ints
    starts: tuple[Ints, ...]

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.order)

    @cached_property
    def depths(self) -> dict[str, int]:
        """Depth by level name, with that of single nodes."""
        return {NODE: len(self.levels) + 1, **{name: i for i, name in enumerate(self.levels, 1)}}

    @cached_property
    def sorted(self) -> bool:
        """Whether domains are ranges of node indexes."""
        return bool((self.order == np.arange(self.nodes)).all())

    @cached_property
    def position(self) -> Ints:
        """`(nodes,) int64`: where each node stands in `order`; neighbours are close."""
        found = np.empty(self.nodes, dtype=np.int64)
        found[self.order] = np.arange(self.nodes)
        return found

    @cached_property
    def _inner(self) -> tuple[Ints, ...]:
        """By level, where each domain begins among the domains of the next tighter level (the last: among nodes)."""
        found = [np.searchsorted(below, above) for above, below in zip(self.starts, self.starts[1:], strict=False)]
        return (*found, *self.starts[-1:])

    def sums(self, depth: int, values: Ints) -> Ints:
        """`(domains,)`: `values` (by node) summed over each domain of a level; depth 0 is one domain."""
        if depth == 0:
            return np.asarray(values.sum(keepdims=True))
        if depth > len(self.levels):
            return values
        return np.asarray(np.add.reduceat(self.arranged(values), self.starts[depth - 1]))

    def widen(self, depth: int, below: Ints) -> Ints:
        """`(domains,)`: sums over the domains of `depth` from sums over those of `depth + 1`."""
        if depth == 0:
            return np.asarray(below.sum(keepdims=True))
        if depth == len(self.levels):
            below = self.arranged(below)
        return np.asarray(np.add.reduceat(below, self._inner[depth - 1]))

    def arranged(self, values: Ints) -> Ints:
        """`values` (by node) in `order`."""
        return values if self.sorted else values[self.order]

    def members(self, depth: int, domain: int) -> Ints:
        """`(nodes,) int64`: the nodes of a domain by index."""
        if depth > len(self.levels):
            return np.array([domain])
        if depth == 0:
            return np.arange(self.nodes)
        starts = self.starts[depth - 1]
        end = starts[domain + 1] if domain + 1 < len(starts) else self.nodes
        if self.sorted:
            return np.arange(starts[domain], end)
        return np.sort(self.order[starts[domain] : end])

    def parts(self, depth: int, domain: int, inner: int) -> Ints:
        """`(domains,) int64`: the domains of depth `inner` within a domain of the wider `depth`."""
        nodes = self.members(depth, domain)
        return nodes if inner > len(self.levels) else np.unique(self.of[inner - 1][nodes])


def lay_out(paths: Sequence[Sequence[str]], levels: Sequence[str] = (), *, by_name: bool = True) -> Layout:
    """The layout of nodes by their paths, widest domain first.

    A node whose path ends early is a domain of its own at the levels it lacks. Levels without a name are `level1` ….

    Args:
        by_name: whether domains are in order of their names, else in order of declaration.
    """
    depth = max((len(p) for p in paths), default=0)
    names = (*levels, *(f"level{i + 1}" for i in range(len(levels), depth)))
    depth = len(names)
    full = [tuple((0, p[i], 0) if i < len(p) else (1, "", n) for i in range(depth)) for n, p in enumerate(paths)]
    ranks = _ranks(full, depth, by_name=by_name)
    order = sorted(range(len(paths)), key=lambda n: (ranks[n], n))
    of, domains, starts = [], [], []
    for level in range(1, depth + 1):
        ids = np.zeros(len(paths), dtype=np.int64)
        firsts, labels = list[int](), list[str]()
        before: tuple[object, ...] | None = None
        for at, n in enumerate(order):
            if full[n][:level] != before:
                before = full[n][:level]
                firsts.append(at)
                labels.append("/".join(paths[n][:level]))
            ids[n] = len(firsts) - 1
        of.append(ids)
        domains.append(tuple(labels))
        starts.append(np.array(firsts, dtype=np.int64))
    return Layout(names, tuple(domains), tuple(of), np.array(order, dtype=np.int64), tuple(starts))


def _ranks(full: Sequence[tuple[tuple[int, str, int], ...]], depth: int, *, by_name: bool) -> list[tuple[object, ...]]:
    """A sort key for each node under which every domain is one run."""
    if by_name:
        return list(full)
    first: dict[tuple[tuple[int, str, int], ...], int] = {}
    for n, path in enumerate(full):
        for level in range(1, depth + 1):
            first.setdefault(path[:level], n)
    return [tuple(first[path[:level]] for level in range(1, depth + 1)) for path in full]
