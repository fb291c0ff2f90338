"""Exact bounds on the rate of rare events, against published values."""

from __future__ import annotations

import pytest

from clusterwright.physics.rare_events import exposure_for, upper_rate


def test_no_event_is_the_rule_of_three():
    assert upper_rate(0, 1000.0) * 1000 == pytest.approx(2.9957, abs=1e-4)


@pytest.mark.parametrize(
    # One-sided 95 % upper limits of a Poisson mean, half of chi-squared at 2(n+1) degrees of freedom.
    ("events", "mean"),
    [(1, 4.7439), (2, 6.2958), (3, 7.7537), (10, 16.9622), (100, 118.079)],
)
def test_bounds_agree_with_tables(events, mean):
    assert upper_rate(events, 1.0) == pytest.approx(mean, rel=1e-4)


def test_exposure_and_rate_are_each_others_inverse():
    assert upper_rate(0, exposure_for(0.01)) == pytest.approx(0.01)


@pytest.mark.parametrize(("events", "exposure", "confidence"), [(-1, 1, 0.95), (0, 0, 0.95), (0, 1, 1.0)])
def test_nonsense_is_refused(events, exposure, confidence):
    with pytest.raises(ValueError, match="at least 0"):
        upper_rate(events, exposure, confidence)


def test_no_rate_at_all_can_never_be_shown():
    with pytest.raises(ValueError, match="never"):
        exposure_for(0.0)
