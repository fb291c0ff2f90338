"""First come, first served on c GPUs against the many-server recursion, and that against Erlang's C formula."""

import heapq
import math

import numpy as np
import pytest
from tests.builders.simulations import kind, nodes

from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.simulate.jobs import NONE_MS, Jobs
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.scenarios import Scenario
from clusterwright.simulate.statistics import mean_of

_SERVERS, _MEAN_S = 8, 100.0


def drawn(count, load, seed):
    """(count,) int64 ms of Poisson arrivals and exponential work."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(_MEAN_S / (_SERVERS * load), count))
    work = rng.exponential(_MEAN_S, count)
    return np.rint(arrivals * 1000).astype(np.int64), np.maximum(1, np.rint(work * 1000)).astype(np.int64)


def recursion(arrivals, work):
    """Waits in ms: each customer takes the server that is free first (Kiefer and Wolfowitz, 1955)."""
    free, waits = [0] * _SERVERS, []
    for at, length in zip(arrivals.tolist(), work.tolist(), strict=True):
        start = max(at, free[0])
        heapq.heapreplace(free, start + length)
        waits.append(start - at)
    return np.array(waits)


def erlang_c_wait_s(load):
    """Mean wait of M/M/c."""
    offered = _SERVERS * load
    term = offered**_SERVERS / math.factorial(_SERVERS) / (1 - load)
    busy = term / (sum(offered**k / math.factorial(k) for k in range(_SERVERS)) + term)
    return busy * _MEAN_S / (_SERVERS * (1 - load))


def setting(arrivals, work, **fields):
    """The same customers as jobs of one GPU in one strict queue on 8 GPUs."""
    count = len(arrivals)
    none, same = np.full(count, NONE_MS), np.zeros(count, dtype=np.int32)
    jobs = Jobs(arrivals, work, none, same, np.zeros(count, dtype=np.uint8), (kind(1),))
    tree = QueueTree((Queue("default", None, {"h100": Quota(8)}, strict=True),))
    return Scenario(nodes(1), jobs, tree=tree, **fields)


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
def test_waits_are_those_of_the_recursion(load):
    arrivals, work = drawn(3000, load, 5)
    assert np.array_equal(simulate(setting(arrivals, work)).results.waited_ms, recursion(arrivals, work))


def test_a_warm_up_takes_away_what_an_empty_beginning_makes_too_good():
    """Six mean run times are counted: from the empty cluster on, and after it was 99 % full without a queue."""
    filled_s, counted_s, load = 100 * math.log(100), 600.0, 0.7
    cold, warm = [], []
    for seed in range(200):
        arrivals, work = drawn(150, load, seed)
        for found, begin_s in ((cold, 0.0), (warm, filled_s)):
            within = arrivals < (begin_s + counted_s) * 1000
            outcome = simulate(setting(arrivals[within], work[within], counted_from_s=begin_s))
            found += (outcome.results.waited_ms[outcome.scenario.counted] / 1000).tolist()
    theory_s = erlang_c_wait_s(load)
    assert np.mean(cold) < 0.75 * theory_s
    assert np.mean(warm) == pytest.approx(theory_s, rel=0.1)


def test_the_recursion_agrees_with_erlang_c():
    means = [float(recursion(*drawn(60_000, 0.7, seed)).mean()) / 1000 for seed in range(12)]
    found = mean_of(means, 0.99)
    assert found.half_width < 0.1 * found.mean
    assert found.low < erlang_c_wait_s(0.7) < found.high
