import itertools
import math

import numpy as np
import pytest

from clusterwright.simulate.failing import Cause, Effect, Failing, Failure, Lemons, Population
from clusterwright.simulate.streams import Streams

DAY = 86400.0
GPU = Cause("gpu", 6.5)
RACKS = Population(64, {"rack": np.repeat(np.arange(4), 16)})


def events(process: Failing, until_s: float) -> list[Failure]:
    found = []
    while process.next_s < until_s:
        failure = process.pop()
        if failure is not None:
            found.append(failure)
    return found


def test_failures_come_at_the_declared_rate() -> None:
    seen = events(Failing([GPU], Population(1000), Streams(1)), 1000 * DAY)
    assert len(seen) == pytest.approx(6500, abs=4 * math.sqrt(6500))
    assert all(a.at_s < b.at_s for a, b in itertools.pairwise(seen))
    per_node = np.bincount([f.target for f in seen], minlength=1000)
    assert per_node.var() == pytest.approx(6.5, rel=0.2)  # Poisson: every node alike


def test_the_same_seed_gives_the_same_failures() -> None:
    causes = [GPU, Cause("nic", 2.0, shape=0.7)]
    one, two = (events(Failing(causes, Population(50), Streams(7), Lemons(0.1, 5)), 300 * DAY) for _ in "ab")
    assert one == two != events(Failing(causes, Population(50), Streams(8), Lemons(0.1, 5)), 300 * DAY)
    assert one != events(Failing(causes, Population(50), Streams(7, 1), Lemons(0.1, 5)), 300 * DAY)


def test_a_further_cause_moves_no_other() -> None:
    alone = events(Failing([GPU], Population(50), Streams(7)), 300 * DAY)
    causes = [Cause("nic", 9.0, shape=0.7), GPU, Cause("psu", 3.0)]
    together = events(Failing(causes, Population(50), Streams(7)), 300 * DAY)
    assert [f for f in together if f.cause == GPU] == alone
    assert len(together) > len(alone) > 0


def test_a_domain_takes_the_running_nodes_in_it() -> None:
    process = Failing([Cause("switch", 5.0, level="rack")], RACKS, Streams(3))
    process.stop(17, 0.0)
    seen = events(process, 1000 * DAY)
    assert {f.target for f in seen} == {0, 1, 2, 3}
    for failure in seen:
        assert failure.nodes == tuple(n for n in range(failure.target * 16, failure.target * 16 + 16) if n != 17)


def test_nodes_outside_every_domain_are_not_taken() -> None:
    population = Population(4, {"rack": np.array([-1, 1, 1, -1])})
    assert [m.tolist() for m in population.members("rack")] == [[], [1, 2]]
    seen = events(Failing([Cause("power", 50.0, level="rack")], population, Streams(3)), 500 * DAY)
    assert {f.nodes for f in seen} == {(1, 2)}


@pytest.mark.parametrize("shape", [1.0, 0.7])
def test_what_does_not_run_does_not_fail(shape: float) -> None:
    process = Failing([Cause("gpu", 20.0, shape=shape)], Population(10), Streams(3), absent=range(5))
    assert {n for f in events(process, 500 * DAY) for n in f.nodes} <= {5, 6, 7, 8, 9}
    for node in range(10):
        process.stop(node, 500 * DAY)
    assert events(process, 1000 * DAY) == []
    process.start(2, 1000 * DAY)
    later = events(process, 3000 * DAY)
    assert {n for f in later for n in f.nodes} == {2}
    assert all(f.at_s > 1000 * DAY for f in later)


@pytest.mark.parametrize(("shape", "variance"), [(0.7, 2.14), (1.0, 1.0), (2.0, 0.273)])
def test_the_time_between_failures_has_the_declared_mean_and_form(shape: float, variance: float) -> None:
    process = Failing([Cause("gpu", 10.0, shape=shape)], Population(40), Streams(5))
    seen = events(process, 40_000 * DAY)
    assert len(seen) == pytest.approx(16_000, rel=0.03)
    gaps = np.concatenate([np.diff([f.at_s for f in seen if f.target == n]) for n in range(40)]) / (100 * DAY)
    assert gaps.mean() == pytest.approx(1, rel=0.03)
    assert gaps.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("shape", [0.5, 3.0])
def test_ageing_nodes_start_in_equilibrium(shape: float) -> None:
    """The first tenth of a mean life has its tenth of the failures: neither burn-in nor grace by accident."""
    first = sum(
        len(events(Failing([Cause("gpu", 10.0, shape=shape)], Population(500), Streams(s)), 10 * DAY))
        for s in range(40)
    )
    assert first == pytest.approx(40 * 50, rel=0.1)


def test_a_new_node_has_the_age_of_a_new_node() -> None:
    """With k = 0.5 the first days of a new node are its worst; an ageless process does not care."""
    early = []
    for seed in range(30):
        process = Failing([Cause("gpu", 10.0, shape=0.5)], Population(200), Streams(seed), absent=range(200))
        for node in range(200):
            process.start(node, 0.0, new=True)
        early.append(len({f.target for f in events(process, 2 * DAY)}))
    share = 1 - math.exp(-math.sqrt(2 / (100 / math.gamma(3))))  # Weibull of mean 100 days at 2 days
    assert np.mean(early) / 200 == pytest.approx(share, rel=0.1)


def test_time_stands_still_for_a_node_that_is_down() -> None:
    ageing = Cause("fan", 10.0, shape=8.0)
    for pause in (0.0, 50 * DAY):
        process = Failing([ageing], Population(1), Streams(1))
        first = process.next_s
        process.stop(0, first / 2)
        process.start(0, first / 2 + pause)
        assert process.next_s == pytest.approx(first + pause)


@pytest.mark.parametrize("shape", [1.0, 0.8])
def test_lemons_fail_more_often_and_the_mean_stays(shape: float) -> None:
    process = Failing([Cause("gpu", 6.5, shape=shape)], Population(1000), Streams(2), Lemons(0.02, 10))
    assert process.lemons.sum() == 20
    lemons = process.lemons.copy()
    counts = np.bincount([f.target for f in events(process, 2000 * DAY)], minlength=1000)
    assert counts.sum() == pytest.approx(13_000, rel=0.03)
    assert counts[lemons].mean() / counts[~lemons].mean() == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("shape", [1.0, 0.8])
def test_an_evicted_lemon_comes_back_as_a_good_node(shape: float) -> None:
    process = Failing([Cause("gpu", 65.0, shape=shape)], Population(400), Streams(2), Lemons(0.5, 10))
    before = process.lemons.copy()
    for node in np.flatnonzero(before):
        process.stop(int(node), 0.0)
        process.replace(int(node), 4 * DAY)
        process.start(int(node), 5 * DAY, new=True)
    assert not process.lemons.any()
    counts = np.bincount([f.target for f in events(process, 4000 * DAY)], minlength=400)
    assert counts[before].mean() / counts[~before].mean() == pytest.approx(1, rel=0.1)


def test_new_nodes_have_their_lemons_too() -> None:
    process = Failing([Cause("gpu", 6.5)], Population(1000), Streams(2), Lemons(0.02, 10), absent=range(1000))
    for node in range(1000):
        process.start(node, 0.0, new=True)
    lemons = process.lemons
    assert lemons.sum() == 20
    counts = np.bincount([f.target for f in events(process, 2000 * DAY)], minlength=1000)
    assert counts[lemons].mean() / counts[~lemons].mean() == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("shape", [1.0, 0.8])
def test_a_node_that_is_replaced_while_it_runs_goes_on(shape: float) -> None:
    process = Failing([Cause("gpu", 65.0, shape=shape)], Population(1), Streams(2), Lemons(1, 10))
    process.replace(0, 3 * DAY)
    assert len(events(process, 4000 * DAY)) == pytest.approx(260, rel=0.3)


def test_causes_that_spare_lemons_strike_everybody_alike() -> None:
    cause = Cause("software", 6.5, effect=Effect.JOB, lemons=False)
    process = Failing([cause], Population(1000), Streams(2), Lemons(0.02, 50))
    lemons = process.lemons.copy()
    counts = np.bincount([f.target for f in events(process, 2000 * DAY)], minlength=1000)
    assert counts[lemons].mean() == pytest.approx(13, rel=0.2)


def test_nothing_fails_without_a_rate_or_without_nodes() -> None:
    for causes, nodes in (([], 10), ([Cause("gpu", 0.0)], 10), ([Cause("gpu", 0.0, shape=0.7)], 10), ([GPU], 0)):
        process = Failing(causes, Population(nodes), Streams(1))
        assert process.next_s == math.inf
        assert process.pop() is None


def test_causes_have_names_of_their_own_and_levels_that_exist() -> None:
    with pytest.raises(ValueError, match="same name"):
        Failing([GPU, GPU], Population(1), Streams(1))
    with pytest.raises(ValueError, match="levels are rack"):
        Failing([Cause("power", 1.0, level="row")], RACKS, Streams(1))
    with pytest.raises(ValueError, match="rate"):
        Cause("gpu", -1.0)
    with pytest.raises(ValueError, match="lemons"):
        Lemons(0.5, 0.5)
