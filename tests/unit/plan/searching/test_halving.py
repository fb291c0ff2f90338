"""Halvings asked about together give what halvings one after the other give."""

from __future__ import annotations

import numpy as np
import pytest

from clusterwright.plan.searching.columns import Floats
from clusterwright.plan.searching.halving import at_once, halved

TOPS = np.array([1.0, 7.3, 1e6, 1e-3])
WANTED = np.array([0.3, 7.29, 12345.678, 5e-9])


@pytest.mark.parametrize("levels", [2, 4, 11])
def test_the_number_asked_about_at_once_changes_no_bit(levels: int) -> None:
    plain = halved(np.zeros(4), TOPS, lambda values: values <= WANTED, 1)
    several = halved(np.zeros(4), TOPS, lambda values: values <= WANTED, levels)
    assert [end.tolist() for end in several] == [end.tolist() for end in plain]


def test_what_is_looked_for_lies_between_both_ends() -> None:
    low, high = halved(np.zeros(4), TOPS, lambda values: values <= WANTED, 4)
    assert np.all(low <= WANTED)
    assert np.all(high > WANTED)
    assert np.all(high - low <= TOPS * 2.0**-43)


def test_each_evaluation_asks_for_all_middles() -> None:
    shapes = []

    def above(values: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        shapes.append(values.shape)
        return values <= WANTED

    halved(np.zeros(4), TOPS, above, 4)
    assert shapes == [(15, 4)] * 11


def test_many_numbers_are_asked_about_one_halving_at_a_time() -> None:
    assert [at_once(size) for size in (1, 256, 257, 1024, 1025, 10**6)] == [4, 4, 2, 2, 1, 1]
