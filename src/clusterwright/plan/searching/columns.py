"""Layouts as columns of integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.physics.layouts import Layout

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
#: Sizes of a layout, in the order of its fields.
SIZES: Final = tuple(f.name for f in fields(Layout))


def as_columns(rows: Sequence[Sequence[int]], names: Sequence[str]) -> dict[str, Ints]:
    """Rows of sizes → (n,) int64 by name; sizes that are not named are 1."""
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(names))
    ones = np.ones(len(rows), dtype=np.int64)
    return dict.fromkeys(SIZES, ones) | {name: table[:, i] for i, name in enumerate(names)}


def of_layouts(layouts: Iterable[Layout]) -> dict[str, Ints]:
    """Layouts → columns."""
    return as_columns([[getattr(layout, size) for size in SIZES] for layout in layouts], SIZES)


def layout_at(columns: Mapping[str, Ints], row: int) -> Layout:
    """The layout of one row."""
    return Layout(**{size: int(columns[size][row]) for size in SIZES})


def gpus(columns: Mapping[str, Ints]) -> Ints:
    """GPUs of each replica or job."""
    return columns["tp"] * columns["pp"] * columns["cp"] * columns["dp"]


def widths(most: int, *also: int) -> list[int]:
    """Powers of two up to `most`, with `also` where they are not larger."""
    found = {1 << i for i in range(max(most, 1).bit_length()) if 1 << i <= most}
    return sorted(found | {each for each in also if 1 <= each <= most})
