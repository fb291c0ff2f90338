"""Orders and Pareto fronts of rows."""

from __future__ import annotations

import numpy as np

from clusterwright.plan.searching.columns import Floats, Ints


def order(keys: tuple[Floats, ...], rows: Ints) -> Ints:
    """The rows by the first key, equal ones by the next; smaller is better."""
    return rows[np.lexsort(tuple(key[rows] for key in reversed(keys)))]


def front(first: Floats, second: Floats, rows: Ints) -> Ints:
    """Rows that no other is at least as good as in both and better in one; smaller is better, by the first ascending.

    Of rows equal in both the earliest stays.
    """
    kept: list[int] = []
    best = np.inf
    for row in order((first, second), rows):
        if second[row] < best:
            kept.append(int(row))
            best = second[row]
    return np.array(kept, dtype=np.int64)
