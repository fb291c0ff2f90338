"""Usable nodes by their number of free GPUs, so that the best node for one task is found without a look at the others.

For each number there is a heap of node indexes, cleaned of nodes that moved on when it is read; a bit mask says which
numbers occur.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from clusterwright.queueing.domains import Ints


class Shelves:
    """The free GPUs of every node, and the usable nodes sorted by them.

    Args:
        free: `(nodes,) int32`, of unusable nodes too.
        free_gpus: of usable nodes.
        on: by node, its free GPUs, −1 when it is not usable.
    """

    def __init__(self, total: Ints, *, emptiest: bool = False) -> None:
        self.free: NDArray[np.int32] = total.astype(np.int32)
        self.free_gpus = 0
        self.on = [-1] * len(total)
        self._emptiest = emptiest
        self._view = self.free.data
        most = int(total.max(initial=0))
        self._counts = [0] * (most + 1)
        self._mask = 0
        self._heaps: list[list[int]] = [[] for _ in range(most + 1)]
        self._queued: list[bytearray | None] = [None] * (most + 1)

    def fork(self) -> Shelves:
        """A copy that shares nothing."""
        twin = object.__new__(Shelves)
        twin.free, twin.free_gpus, twin.on = self.free.copy(), self.free_gpus, self.on.copy()
        twin._emptiest, twin._mask = self._emptiest, self._mask
        twin._view = twin.free.data
        twin._counts = self._counts.copy()
        twin._heaps = [heap.copy() for heap in self._heaps]
        twin._queued = [None if queued is None else queued.copy() for queued in self._queued]
        return twin

    @property
    def nodes(self) -> int:
        """Usable nodes."""
        return sum(self._counts)

    @property
    def most(self) -> int:
        """The most free GPUs of a usable node."""
        return max(self._mask.bit_length() - 1, 0)

    def slots(self, gpus: int) -> int:
        """Tasks of this many GPUs (1 or more) that the usable nodes hold."""
        if not self._mask >> gpus:
            return 0
        return sum(self._counts[free] * (free // gpus) for free in range(gpus, len(self._counts)))

    def holds(self, gpus: int, tasks: int) -> bool:
        """Whether the usable nodes hold so many tasks of this many GPUs; without GPUs, whether there is a node."""
        if gpus <= 0:
            return bool(self._mask)
        return bool(self._mask >> gpus) and (tasks <= 1 or self.slots(gpus) >= tasks)

    def pick(self, gpus: int) -> int:
        """The fullest (or emptiest) node with this many free GPUs, the first of equals; −1 when there is none."""
        above = self._mask >> gpus
        if not above:
            return -1
        free = self._mask.bit_length() - 1 if self._emptiest else gpus + (above & -above).bit_length() - 1
        heap, on = self._heaps[free], self.on
        node = heap[0]
        while on[node] != free:
            heappop(heap)
            queued = self._queued[free]
            assert queued is not None
            queued[node] = 0
            node = heap[0]
        return node

    def put(self, node: int, free: int) -> None:
        """Set the free GPUs of a node."""
        before = self.on[node]
        self._view[node] = free
        if before < 0:
            return
        self.on[node] = free
        self.free_gpus += free - before
        counts = self._counts
        counts[before] -= 1
        if not counts[before]:
            self._mask ^= 1 << before
        if not counts[free]:
            self._mask |= 1 << free
        counts[free] += 1
        queued = self._queued[free]
        if queued is None:
            queued = self._queued[free] = bytearray(len(self.on))
        if not queued[node]:
            queued[node] = 1
            heappush(self._heaps[free], node)

    def admit(self, node: int) -> None:
        """Count a node among the usable ones."""
        free = self._view[node]
        # On a shelf of none for a moment, so that putting it on its own counts it once.
        self.on[node] = 0
        self._counts[0] += 1
        self._mask |= 1
        self.put(node, free)

    def dismiss(self, node: int) -> None:
        """Count a node no longer; its free GPUs stay known."""
        free, self.on[node] = self.on[node], -1
        self.free_gpus -= free
        self._counts[free] -= 1
        if not self._counts[free]:
            self._mask ^= 1 << free
