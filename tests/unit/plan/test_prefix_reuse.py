"""Reuse of prefixes by the size of a cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.plan.prefix_reuse import reuse_at

ROWS = [(1e5, 0.1), (1e6, 0.3), (1e7, 0.35)]


@pytest.mark.parametrize(
    ("tokens", "share"), [(1e5, 0.1), (5e4, 0.05), (10**5.5, 0.2), (1e6, 0.3), (1e9, 0.35), (0, 0)]
)
def test_between_sizes_the_share_follows_the_logarithm(tokens, share):
    assert reuse_at(ROWS, tokens) == pytest.approx(share)


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_larger_cache_never_saves_less(one, two):
    small, large = sorted((one, two))
    assert reuse_at(ROWS, small) <= reuse_at(ROWS, large) + 1e-12
