"""Parallel sizes as arrays: checked, broadcast, and each layout that occurs once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clusterwright.lib.errors import InvalidInput
from clusterwright.physics.layouts import Layout

Ints = NDArray[np.int64]


def whole_sizes(**sizes: ArrayLike) -> tuple[Ints, ...]:
    """Whole numbers of at least 1, broadcast, in the order given.

    Raises:
        InvalidInput: for other numbers.
    """
    columns = {}
    for name, given in sizes.items():
        column = np.asarray(given)
        if column.dtype.kind not in "iu":
            raise InvalidInput(f"{name} holds {column.dtype}; whole numbers are wanted")
        columns[name] = column.astype(np.int64, copy=False)
    at_least_one(**columns)
    return np.broadcast_arrays(*columns.values())


def at_least_one(**columns: NDArray[Any]) -> None:
    """Nothing, where every number is at least 1.

    Raises:
        InvalidInput: where one is not; names the smallest.
    """
    for name, column in columns.items():
        if column.size and column.min() < 1:
            raise InvalidInput(f"{name} = {column.min()}; it is at least 1")


def layouts_of(names: Sequence[str], sizes: Sequence[Ints]) -> tuple[list[Layout], Ints]:
    """Each layout that occurs once, and the position of every row's, of the sizes' shape.

    Args:
        names: of the sizes, each an array of the same shape.

    Ranks are counted, not sorted: a million rows of a few layouts take milliseconds.
    """
    codes = np.zeros(sizes[0].shape, dtype=np.int64)
    values: list[Ints] = []
    for column in sizes:
        known = np.flatnonzero(np.bincount(column.ravel()))
        places = np.zeros(int(known[-1]) + 1, dtype=np.int64)
        places[known] = np.arange(len(known))
        codes = codes * len(known) + places[column]
        values.append(known)
    present = np.flatnonzero(np.bincount(codes.ravel()))
    positions = np.zeros(int(present[-1]) + 1, dtype=np.int64)
    positions[present] = np.arange(len(present))
    each = np.unravel_index(present, [len(known) for known in values])
    rows = zip(*(known[index] for known, index in zip(values, each, strict=True)), strict=True)
    return [Layout(**dict(zip(names, map(int, row), strict=True))) for row in rows], positions[codes]
