"""Ordering tests in time: early stages first, disjoint nodes in parallel, within the declared window."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.judging.acceptance_plans import Interval, PlannedTest


def order_tests(tests: Sequence[PlannedTest], window_s: float | None) -> tuple[Interval, ...]:
    """When each test runs, in the order of their beginnings.

    A test begins when its nodes are free, when every blocking test of an earlier stage that shares a node with it is
    over, and when the test that it follows is over. What ends after the window is kept, and marked.

    Args:
        window_s: seconds from the opening of the window to its end, None without one.
    """
    ordered = sorted(tests, key=lambda t: (t.kind.stage, not t.kind.blocking))
    free: dict[str, float] = {}
    gate: dict[str, float] = {}
    ends: dict[str, float] = {}
    shared: dict[str, float] = {}
    found = []
    for test in ordered:
        begins = max((max(free.get(n, 0.0), gate.get(n, 0.0)) for n in test.busy), default=0.0)
        begins = max(begins, *(ends.get(t.id, 0.0) for t in tests if _precedes(t, test)), 0.0)
        if test.store:
            begins = max(begins, shared.get(test.store, 0.0))
        end = begins + test.seconds
        for node in test.busy:
            free[node] = max(free.get(node, 0.0), end)
            if test.kind.blocking:
                gate[node] = max(gate.get(node, 0.0), end)
        if test.store:
            shared[test.store] = end
        ends[test.id] = end
        found.append(Interval(test.id, begins, end, window_s is None or end <= window_s))
    return tuple(sorted(found, key=lambda i: i.begins_s))


def _precedes(other: PlannedTest, test: PlannedTest) -> bool:
    """Whether `test` needs the other one to be over: a control its measurement, a log the load before it."""
    if test.control_of:
        return other.id == test.control_of
    return bool(test.kind.follows) and other.kind.name == test.kind.follows and bool(set(other.nodes) & set(test.nodes))
