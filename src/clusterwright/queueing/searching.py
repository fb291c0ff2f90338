"""The exact search for tasks of several sizes, for when best fit finds nothing.

Nodes that are equal to the rest of the gang are one class, and a state (how many nodes of each class are left, for a
number of tasks placed) that failed once is not tried again. When the step limit is reached the answer is 'unknown',
never 'impossible'.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.queueing.gangs import NoFit

#: Steps of one search before it gives up; a chosen limit (about 0.1 s), not a measured one.
SEARCH_STEPS: Final = 20_000

#: A task: index of its group, GPUs, further needs, whether it shares no node with its group.
Task = tuple[int, int, tuple[int, ...], bool]
#: A class of nodes: GPUs left, further resources left, groups that may not come again.
Kind = tuple[int, tuple[int, ...], frozenset[int]]


def search(tasks: Sequence[Task], rooms: Sequence[Kind], steps: int = SEARCH_STEPS) -> tuple[list[int] | NoFit, int]:
    """(the room of each task or why there is none, steps left); tasks are best given the largest first."""
    smallest, rest = _outlook(tasks)
    start = Counter(rooms)
    if not tasks:
        return [], steps
    if len(tasks) > steps:
        return NoFit.UNKNOWN, steps
    seen = set[tuple[int, frozenset[tuple[Kind, int]]]]()
    path = list[Kind]()
    open_choices: list[tuple[Counter[Kind], Iterator[Kind]]] = [(start, _choices(tasks[0], start))]
    while open_choices:
        state, choices = open_choices[-1]
        kind = next(choices, None)
        if kind is None:
            open_choices.pop()
            if path:
                path.pop()
            continue
        if steps <= 0:
            return NoFit.UNKNOWN, 0
        steps -= 1
        depth = len(open_choices)
        after = _after(state, kind, tasks[depth - 1])
        if depth == len(tasks):
            return _replay(tasks, rooms, [*path, kind]), steps
        key = (depth, frozenset(after.items()))
        if key in seen or sum(k[0] * n for k, n in after.items() if k[0] >= smallest[depth]) < rest[depth]:
            continue
        seen.add(key)
        path.append(kind)
        open_choices.append((after, _choices(tasks[depth], after)))
    return NoFit.IMPOSSIBLE, steps


def _outlook(tasks: Sequence[Task]) -> tuple[list[int], list[int]]:
    """By task, the smallest and the sum of the GPUs of it and those after it (tasks without GPUs aside)."""
    smallest, rest = [1], [0]
    least = 0
    for _, gpus, _, _ in reversed(tasks):
        least = min(least or gpus, gpus) if gpus else least
        smallest.append(max(least, 1))
        rest.append(rest[-1] + gpus)
    return smallest[:0:-1], rest[:0:-1]


def _choices(task: Task, state: Counter[Kind]) -> Iterator[Kind]:
    group, gpus, needs, spread = task
    fitting = [
        k
        for k in state
        if k[0] >= gpus
        and not (spread and group in k[2])
        and all(have >= need for have, need in zip(k[1], needs, strict=True))
    ]
    return iter(sorted(fitting, key=lambda k: (k[0], k[1], sorted(k[2]))))


def _after(state: Counter[Kind], kind: Kind, task: Task) -> Counter[Kind]:
    after = state.copy()
    after[kind] -= 1
    if not after[kind]:
        del after[kind]
    after[_left(kind, task)] += 1
    return after


def _left(kind: Kind, task: Task) -> Kind:
    group, gpus, needs, spread = task
    spare = tuple(have - need for have, need in zip(kind[1], needs, strict=True))
    return (kind[0] - gpus, spare, kind[2] | {group} if spread else kind[2])


def _replay(tasks: Sequence[Task], rooms: Sequence[Kind], path: Sequence[Kind]) -> list[int]:
    """The rooms that a path of classes means, of equal rooms the first."""
    pools: dict[Kind, list[int]] = defaultdict(list)
    for at in range(len(rooms) - 1, -1, -1):
        pools[rooms[at]].append(at)
    chosen = list[int]()
    for task, kind in zip(tasks, path, strict=True):
        at = pools[kind].pop()
        pools[_left(kind, task)].append(at)
        chosen.append(at)
    return chosen
