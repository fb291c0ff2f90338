"""Placing a gang the slow and obvious way, one task after the other, to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Spot:
    """A node: its free GPUs and the path of domains above it."""

    name: str
    free: int
    path: tuple[str, ...] = ()


#: A task: its group, its GPUs, whether it shares no node with its group.
Task = tuple[int, int, bool]


def can_place(tasks: Sequence[Task], free: Sequence[int]) -> bool:
    """Whether all tasks find a node, by trying everything."""
    order = sorted(tasks, key=lambda t: -t[1])

    @cache
    def descend(at: int, state: tuple[tuple[int, frozenset[int]], ...]) -> bool:
        if at == len(order):
            return True
        group, gpus, spread = order[at]
        for i, (left, held) in enumerate(state):
            if left < gpus or (spread and group in held) or (i and state[i - 1] == state[i]):
                continue
            after = (left - gpus, held | {group} if spread else held)
            rest = sorted([*state[:i], after, *state[i + 1 :]], key=lambda s: (s[0], sorted(s[1])))
            if descend(at + 1, tuple(rest)):
                return True
        return False

    none = frozenset[int]()
    return descend(0, tuple((f, none) for f in sorted(free)))


def place_equal(count: int, gpus: int, spots: Sequence[Spot]) -> Counter[str] | None:
    """Tasks by node: the tightest domain that fits, the least free first, in it the fullest node first."""
    for domain in _domains(spots):
        left, found = {s.name: s.free for s in domain}, Counter[str]()
        for _ in range(count):
            fitting = [n for n, f in left.items() if f >= gpus]
            if not fitting:
                break
            best = min(fitting, key=lambda n: (left[n], n))
            left[best] -= gpus
            found[best] += 1
        else:
            return found
    return None


def _domains(spots: Sequence[Spot]) -> Iterator[Sequence[Spot]]:
    """Single nodes, then domain by domain, tightest level first, on one level the least free first; last the whole."""
    depth = max(len(s.path) for s in spots)
    for level in range(depth + 1, 0, -1):
        groups: dict[tuple[str, ...], list[Spot]] = {}
        for spot in spots:
            path = (*spot.path, spot.name)
            if len(path) >= level:
                groups.setdefault(path[:level], []).append(spot)
        yield from sorted(groups.values(), key=lambda d: (sum(s.free for s in d), d[0].name))
    yield spots
