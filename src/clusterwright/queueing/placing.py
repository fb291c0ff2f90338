"""Where the tasks of a gang go: all of them or none.

Rule: the tightest topology domain that fits, the fullest such domain first, in it the fullest node first, so that large
domains stay whole (queueing model, 'Gangs and topology'). For one task size the answer is exact. For several sizes best
fit decreasing is tried first and then a search with a step limit; when the limit is reached the answer is 'unknown',
never 'impossible'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from clusterwright.model.jobs import TaskGroup, TaskPlacement

#: Steps of the exact search before it gives up; a chosen limit (about 0.1 s), not a measured one.
SEARCH_STEPS: Final = 20_000


class NoFit(StrEnum):
    """Why no placement came back."""

    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on one node; `topology` is the path of domains above it, widest first."""

    node: str
    free: tuple[str, ...]
    topology: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One task to be placed."""

    group: str
    index: int
    gpus: int
    spread: bool


def tasks_of(groups: Sequence[TaskGroup], counts: Mapping[str, int]) -> tuple[Task, ...]:
    """The tasks of a gang at the given sizes, in rank order."""
    return tuple(Task(g.name, i, g.gpus, g.spread) for g in groups for i in range(counts[g.name]))


def place(tasks: Sequence[Task], rooms: Sequence[Room]) -> tuple[TaskPlacement, ...] | NoFit:
    """Placements in the order of `tasks`, or why there are none.

    Every task gets `gpus` devices of one node, no device is given twice, and tasks of a spread group share no node.
    """
    answer = NoFit.IMPOSSIBLE
    for domain in _domains(rooms, whole=all(t.gpus == 0 for t in tasks)):
        nodes = _pack(tasks, domain)
        if isinstance(nodes, NoFit):
            answer = NoFit.UNKNOWN if NoFit.UNKNOWN in (answer, nodes) else NoFit.IMPOSSIBLE
        else:
            return _assign_devices(tasks, nodes, domain)
    return answer


def fit(
    groups: Sequence[TaskGroup], rooms: Sequence[Room], gpus_at_most: float = float("inf")
) -> tuple[TaskPlacement, ...] | NoFit:
    """The largest gang that fits: at least every group's minimum, then as many tasks as possible, group by group."""
    counts = {g.name: g.least for g in groups}
    best: tuple[TaskPlacement, ...] | NoFit = NoFit.IMPOSSIBLE
    if _gpus(groups, counts) <= gpus_at_most:
        best = place(tasks_of(groups, counts), rooms)
    if isinstance(best, NoFit):
        return best
    for group in groups:
        for count in range(group.count, group.least, -1):
            larger = {**counts, group.name: count}
            if _gpus(groups, larger) > gpus_at_most:
                continue
            placed = place(tasks_of(groups, larger), rooms)
            if not isinstance(placed, NoFit):
                counts, best = larger, placed
                break
    return best


def largest_count(group: TaskGroup, rooms: Sequence[Room]) -> int:
    """How many tasks of one group the rooms hold."""
    if group.gpus == 0:
        return len(rooms) if group.spread else group.count * bool(rooms)
    held = [len(r.free) // group.gpus for r in rooms]
    return sum(min(1, h) if group.spread else h for h in held)


def _gpus(groups: Sequence[TaskGroup], counts: Mapping[str, int]) -> int:
    return sum(g.gpus * counts[g.name] for g in groups)


def _domains(rooms: Sequence[Room], *, whole: bool) -> Iterator[Sequence[Room]]:
    """Candidate node sets, tightest level first, on one level the one with the least free first; last the whole."""
    if not whole:
        deepest = [replace(r, topology=(*r.topology, r.node)) for r in rooms]
        for depth in range(max((len(r.topology) for r in deepest), default=0), 0, -1):
            level: dict[tuple[str, ...], list[Room]] = {}
            for room, path in zip(rooms, deepest, strict=True):
                if len(path.topology) >= depth:
                    level.setdefault(path.topology[:depth], []).append(room)
            yield from sorted(level.values(), key=lambda d: (sum(len(r.free) for r in d), d[0].node))
    yield rooms


def _pack(tasks: Sequence[Task], rooms: Sequence[Room]) -> list[int] | NoFit:
    """The room index of each task."""
    if not rooms or sum(t.gpus for t in tasks) > sum(len(r.free) for r in rooms):
        return NoFit.IMPOSSIBLE
    order = sorted(range(len(tasks)), key=lambda i: (-tasks[i].gpus, not tasks[i].spread, i))
    greedy = _best_fit(tasks, order, rooms)
    if greedy is not None:
        return greedy
    if len({(t.gpus, t.spread, t.spread and t.group) for t in tasks}) == 1:
        return NoFit.IMPOSSIBLE
    return _search(tasks, order, rooms)


def _best_fit(tasks: Sequence[Task], order: Sequence[int], rooms: Sequence[Room]) -> list[int] | None:
    left = [len(r.free) for r in rooms]
    count = [0] * len(rooms)
    taken: set[tuple[str, int]] = set()
    chosen = [0] * len(tasks)
    for i in order:
        task = tasks[i]
        fitting = [
            r for r in range(len(rooms)) if left[r] >= task.gpus and not (task.spread and (task.group, r) in taken)
        ]
        if not fitting:
            return None
        # A task without GPUs goes where the fewest tasks of this gang are, else a gang of such would share one node.
        best = min(fitting, key=lambda r: (left[r], rooms[r].node) if task.gpus else (count[r], rooms[r].node))
        left[best] -= task.gpus
        count[best] += 1
        taken.add((task.group, best))
        chosen[i] = best
    return chosen


def _search(tasks: Sequence[Task], order: Sequence[int], rooms: Sequence[Room]) -> list[int] | NoFit:
    left = [len(r.free) for r in rooms]
    chosen = [-1] * len(tasks)
    steps = 0

    def descend(depth: int) -> bool:
        nonlocal steps
        if depth == len(order):
            return True
        task, tried = tasks[order[depth]], set[object]()
        first = _first_room(tasks, order, depth, chosen)
        for r in range(first, len(rooms)):
            held = frozenset(tasks[i].group for i in order[:depth] if chosen[i] == r and tasks[i].spread)
            if left[r] < task.gpus or (task.spread and task.group in held) or (left[r], held) in tried:
                continue
            tried.add((left[r], held))
            steps += 1
            if steps > SEARCH_STEPS:
                return False
            left[r] -= task.gpus
            chosen[order[depth]] = r
            if descend(depth + 1):
                return True
            left[r] += task.gpus
            chosen[order[depth]] = -1
        return False

    if descend(0):
        return chosen
    return NoFit.UNKNOWN if steps > SEARCH_STEPS else NoFit.IMPOSSIBLE


def _first_room(tasks: Sequence[Task], order: Sequence[int], depth: int, chosen: Sequence[int]) -> int:
    """Equal tasks take rooms in one order only: the second is never before the first."""
    if depth == 0:
        return 0
    task, before = tasks[order[depth]], tasks[order[depth - 1]]
    same = (task.group, task.gpus) == (before.group, before.gpus)
    return chosen[order[depth - 1]] if same else 0


def _assign_devices(tasks: Sequence[Task], nodes: Sequence[int], rooms: Sequence[Room]) -> tuple[TaskPlacement, ...]:
    free = [list(r.free) for r in rooms]
    placed = []
    for task, room in zip(tasks, nodes, strict=True):
        devices, free[room] = tuple(free[room][: task.gpus]), free[room][task.gpus :]
        placed.append(TaskPlacement(task.group, task.index, rooms[room].node, devices))
    return tuple(placed)
