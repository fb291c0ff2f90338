"""Halving of many intervals at once, several halvings in one evaluation.

The middles that the next k halvings may come by are known beforehand, 2^k − 1 of them. Asking about all of them in one
evaluation gives the same answer as asking one after the other, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from clusterwright.plan.searching.columns import Bools, Floats

_HALVINGS: Final = 44
#: Halvings whose middles may be asked about in one evaluation, and how many numbers that may take: calls cost more than
#: the numbers in them as long as those are few.
_AT_ONCE: Final = (4, 2, 1)
_FEW: Final = 4096


def at_once(size: int) -> int:
    """Halvings that are worth being asked about in one evaluation of `size` numbers each."""
    return next((count for count in _AT_ONCE if size * 2**count <= _FEW), _AT_ONCE[-1])


def halved(low: Floats, high: Floats, above: Callable[[Floats], Bools], levels: int) -> tuple[Floats, Floats]:
    """Both ends of what is left of (n,) intervals after `_HALVINGS`.

    Args:
        above: whether what is looked for lies above (m, n) values.
        levels: halvings whose middles are asked about at once; the answer does not depend on it.
    """
    columns = np.arange(len(low))
    for _ in range(_HALVINGS // levels):
        ends = np.stack([low, high])
        for _ in range(levels):
            finer = np.empty((2 * len(ends) - 1, len(low)))
            finer[::2], finer[1::2] = ends, (ends[:-1] + ends[1:]) / 2
            ends = finer
        higher = above(ends[1:-1])
        first = np.zeros_like(columns)
        for level in reversed(range(levels)):
            first = first + higher[first + (2**level - 1), columns] * 2**level
        low, high = ends[first, columns], ends[first + 1, columns]
    return low, high
