"""What is read from outcomes: slowdowns, ETTR, entitlement, cost, intervals; scenarios that differ in one thing."""

from dataclasses import replace

import numpy as np
import pytest
from tests.builders.simulations import kind, nodes, scenario

from clusterwright.ledger.lines import UNDECIDED, Line
from clusterwright.ledger.ratios import allocated_share, goodput_share
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.simulate.attempts import plan_checkpoints
from clusterwright.simulate.durations import Duration
from clusterwright.simulate.jobs import Fate, SimJob
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.outcomes import cost, deliveries, ettr, slowdowns
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.sizing import on_another_flavor, with_node_failing
from clusterwright.simulate.statistics import mean_of, student_t


def test_slowdown_is_the_time_to_the_end_over_the_work_of_jobs_that_ended():
    rows = [SimJob(0, 100, kind(8)), SimJob(0, 100, kind(8)), SimJob(0, 50, kind(8))]
    found = slowdowns(simulate(scenario(rows, until_s=220.0)))
    assert found[:2].tolist() == [1.0, 2.0]
    assert np.isnan(found[2])


def test_useful_time_is_less_than_allocated_time():
    saving = kind(8, checkpoints=plan_checkpoints(50, 10), starting_ms=30_000)
    outcome = simulate(scenario([SimJob(0, 100, saving)], until_s=280.0))
    assert goodput_share(outcome.lines) == pytest.approx(100 / 280)
    assert allocated_share(outcome.lines) == pytest.approx(140 / 280)
    assert ettr(outcome) == pytest.approx(100 / 140)


def test_ettr_counts_the_wait():
    outcome = simulate(scenario([SimJob(0, 100, kind(8)), SimJob(0, 100, kind(8))]))
    assert ettr(outcome) == pytest.approx(200 / 300)
    assert ettr(outcome, 9) is None


def test_work_that_is_not_saved_when_the_window_ends_is_productive_as_in_the_ledger_or_none_of_it():
    saving = kind(8, checkpoints=plan_checkpoints(50, 0))
    outcome = simulate(scenario([SimJob(0, 1000, saving)], until_s=130.0))
    assert outcome.results.unsaved_gpu_ms.tolist() == [8 * 30_000]
    assert outcome.results.lost_gpu_ms.tolist() == [0]
    assert outcome.lines.of(Line.PRODUCTIVE, UNDECIDED) == 8 * 30_000
    assert ettr(outcome) == pytest.approx(1.0)
    assert ettr(outcome, saved_only=True) == pytest.approx(100 / 130)


def test_entitlement_is_the_guarantee_and_at_most_what_is_asked_for():
    tree = QueueTree((Queue("a", None, {"h100": Quota(6)}), Queue("b", None, {"h100": Quota(2)})))
    rows = [SimJob(0, 3600, kind(2, queue="a")), SimJob(0, 7200, kind(4, queue="b"))]
    held, entitled = deliveries(simulate(scenario(rows, tree=tree, until_s=3600.0)))
    assert held == {"a": 2}
    assert entitled == {"a": 2, "b": 2}


def test_the_cost_is_of_everything_that_was_installed():
    rows = [SimJob(0, 1800, kind(8)), SimJob(0, 1800, kind(8), fate=Fate.FAIL)]
    assert cost(simulate(scenario(rows, prices={"h100": 2.0}))) == pytest.approx(16)
    assert cost(simulate(scenario(rows))) is None


# two-sided t of 95 %: standard tables, e.g. NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (100, 1.984)])
def test_students_t(freedom, t):
    assert student_t(0.95, freedom) == pytest.approx(t, abs=6e-4)


def test_a_mean_over_replications_has_an_interval():
    interval = mean_of([1.0, 2.0, 3.0, 4.0])
    assert interval.mean == 2.5
    assert interval.half_width == pytest.approx(3.18245 * (5 / 3) ** 0.5 / 2, rel=1e-5)
    assert mean_of([7.0]).half_width is None
    assert mean_of([]) is None


def test_one_node_failing_mid_run():
    saving = kind(8, 2, checkpoints=plan_checkpoints(60, 0), restart_ms=20_000)
    base = scenario([SimJob(0, 600, saving)], 3, until_s=2000.0)
    without, failing = (
        simulate(base),
        simulate(with_node_failing(base, 1, 100.0, Care(Duration(30), repair=Duration(300)))),
    )
    # 40 s since the checkpoint, 30 s until it is noticed, 20 s to restore; it goes on with the third node
    assert failing.results.end_ms[0] - without.results.end_ms[0] == 90_000
    gained = {x: failing.lines.of(x) - without.lines.of(x) for x in (Line.LOST, Line.HELD_IDLE, Line.STARTING)}
    assert gained == {Line.LOST: 16 * 40_000, Line.HELD_IDLE: 16 * 30_000, Line.STARTING: 16 * 20_000}
    assert failing.lines.of(Line.UNHEALTHY) == 8 * 300_000


def test_another_flavor_is_another_pool_with_its_own_speed_and_limits_that_allow_it():
    moved = replace(kind(8), demand=replace(kind(8).demand, flavors=("h100",)), speeds=(("b200", 2.0), ("l4", 0.3)))
    other = (replace(nodes(1)[0], name="x", flavor="b200"), replace(nodes(1)[0], name="y", flavor="l4"))
    base = scenario([SimJob(0, 10, moved, 12.0)], nodes=(*nodes(1), *other))
    faster = on_another_flavor(base, ["b200"])
    assert simulate(faster).lines.by("flavor", "line")["b200", "productive"] == 40_000
    assert faster.jobs.limit_ms.tolist() == [12_000]
    slower = on_another_flavor(base, ["l4"])
    assert slower.jobs.limit_ms.tolist() == [40_000]
    assert on_another_flavor(slower, ["h100"]).jobs.limit_ms.tolist() == [12_000]
    (end_ms,) = simulate(slower).results.end_ms.tolist()
    assert end_ms == 33_334
    with pytest.raises(ValueError, match="flavors are b200, h100, l4"):
        on_another_flavor(base, ["a100"])
