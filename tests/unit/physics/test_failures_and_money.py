import math

import numpy as np
import pytest

from clusterwright.physics.failures import (
    daly_higher_s,
    daly_s,
    ettr,
    ettr_exact,
    mttf_h,
    spares,
    waste,
    young_s,
)
from clusterwright.physics.money import capital_recovery, gpu_hour, per_million_tokens
from clusterwright.physics.transfers import network_rate, required_rate, transfer_s
from clusterwright.physics.waiting import erlang_c, mean_wait_s

M = 2.34 * 3600


@pytest.mark.parametrize(
    ("gpus", "rate", "hours"),
    [(16384, 6.50, 1.8028846153846154), (131072, 6.50, 0.22536057692307693), (16384, 3.79, 3.092018469656992)],
)
def test_mean_time_to_failure(gpus, rate, hours):
    assert mttf_h(gpus / 8, rate) == pytest.approx(hours, rel=1e-12)


def test_nothing_fails_at_rate_zero():
    assert mttf_h(100, 0) == math.inf


@pytest.mark.parametrize(
    ("nodes", "interval", "stall", "expected"),
    [
        (2000, 3600, 10, 0.6821329639889195),
        (2048, 300, 10, 0.9006451612903225),
        (2000, 300, 0, 0.9322916666666666),
    ],
)
def test_effective_training_time_at_rsc1(nodes, interval, stall, expected):
    assert ettr(nodes, 6.50, 300, interval, stall) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("nodes", "interval", "stall", "published"),
    [(2000, 3600, 10, 0.6821), (2048, 300, 10, 0.9006), (2000, 300, 0, 0.932)],
)
def test_published_effective_times_are_drawn_by_their_own_accounting(nodes, interval, stall, published):
    """Failures at any wall time; each takes the restart and the work since the last checkpoint, whatever came before.

    That is the accounting of arXiv:2410.21680. The process itself loses less where failures follow each other closely:
    see the test of `ettr_exact` below, and the simulator's runs against it.
    """
    random = np.random.default_rng(20241)
    wall_s, lives = 30 * 86400.0, 400
    failures = random.poisson(nodes * 6.50 / 1000 / 86400 * wall_s, lives)
    lost = [np.sum(300 + random.uniform(0, interval, count)) for count in failures]
    productive = (wall_s - np.array(lost)) / (1 + stall / interval) / wall_s
    assert productive.mean() == pytest.approx(published, rel=0.02)


def test_effective_time_is_never_negative():
    assert ettr(1_000_000, 6.5, 3600, 3600, 0) == 0


@pytest.mark.parametrize(
    ("nodes", "interval", "stall", "expected"),
    [(2000, 3600, 10, 0.71766), (2048, 300, 10, 0.90214), (2000, 300, 0, 0.93445), (0, 300, 10, 300 / 310)],
)
def test_effective_training_time_of_the_process_itself(nodes, interval, stall, expected):
    assert ettr_exact(nodes, 6.50, 300, interval, stall) == pytest.approx(expected, abs=5e-6)


def test_both_effective_times_agree_where_failures_are_rare():
    assert ettr_exact(8, 6.50, 300, 600, 10) == pytest.approx(ettr(8, 6.50, 300, 600, 10), rel=1e-4)
    assert ettr_exact(1e9, 6.5, 3600, 3600, 0) == 0


def test_checkpoint_intervals():
    assert young_s(60, M) == pytest.approx(1005.4252831513637, rel=1e-12)
    assert daly_s(60, M) == pytest.approx(945.4252831513637, rel=1e-12)
    assert daly_higher_s(60, M) == pytest.approx(965.8231247480524, rel=1e-12)


def test_a_stall_longer_than_the_time_between_failures_leaves_only_that_time():
    assert daly_s(100, 100) == 100
    assert daly_higher_s(500, 100) == 100


@pytest.mark.parametrize(
    ("stall", "restart", "expected"),
    [(60, 0, 0.11935247900657214), (60, 600, 0.19057755023164336), (10, 300, 0.08433798112959279)],
)
def test_waste_at_youngs_interval(stall, restart, expected):
    assert waste(young_s(stall, M), stall, M, restart) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("nodes", "repair", "expected"),
    [(128, 1, (3, 4, 5)), (2048, 1, (20, 23, 26)), (2048, 7, (110, 117, 125))],
)
def test_spares_at_rsc1(nodes, repair, expected):
    mtbf = 1000 / 6.5
    assert tuple(spares(nodes, mtbf, repair, t) for t in (0.95, 0.99, 0.999)) == expected


def test_spares_at_rsc2():
    assert tuple(spares(2048, 1000 / 2.34, 1, t) for t in (0.95, 0.99, 0.999)) == (9, 11, 13)


def test_no_spares_are_needed_when_nothing_is_down_and_certainty_is_refused():
    assert spares(100, 100, 0, 0.999) == 0
    with pytest.raises(ValueError, match="always enough"):
        spares(10, 100, 1, 1.0)


def test_owned_gpu_hour():
    """$437k per 8-GPU node, 5 years, 10 %, 10.2 kW, PUE 1.25, 8 ¢/kWh, every hour useful."""
    assert gpu_hour(437e3 / 8, 0.10, 5, 10.2 / 8, 1.25, 0.08, 0, 1) == pytest.approx(1.7724700215083284, rel=1e-9)


def test_capital_without_interest_is_paid_back_evenly():
    assert capital_recovery(0, 5) == 0.2


def test_price_of_a_million_tokens():
    assert per_million_tokens(3, 2500, 0.6) == pytest.approx(0.5555555555555555, rel=1e-12)
    assert per_million_tokens(2.5, 1000, 0.4) == pytest.approx(1.7361111111111112, rel=1e-12)


def test_waiting_as_erlang_and_allen_cunneen_have_it():
    assert erlang_c(64, 0.9) == pytest.approx(0.3106633165329593, rel=1e-9)
    assert mean_wait_s(64, 0.9, 3600) == pytest.approx(174.74811554978965, rel=1e-9)
    assert mean_wait_s(64, 0.9, 3600, 1, 16) == pytest.approx(1485.358982173212, rel=1e-9)
    assert erlang_c(4, 1.0) == 1
    assert mean_wait_s(4, 1.0, 10) == math.inf


def test_eight_replicas_of_120_gb_in_90_seconds():
    assert required_rate(120e9, 8, 90) / 1e9 == pytest.approx(32 / 3, rel=1e-12)  # 10.7 GB/s


def test_links():
    assert network_rate(200e9, 2, 2, 2) == 50e9
    assert transfer_s(100e9, 2, 20e9) == 10
    assert transfer_s(1, 1, 0) == math.inf
