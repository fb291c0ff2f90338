"""What is read from outcomes: spreads, efficiency, cost, intervals, sizing questions, calibration."""

from dataclasses import replace

import pytest
from tests.builders.simulations import kind, nodes, scenario

from clusterwright.ledger.lines import Line
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.simulate.attempts import plan_checkpoints
from clusterwright.simulate.durations import Duration
from clusterwright.simulate.expansions import Delivery
from clusterwright.simulate.jobs import Fate, SimJob
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.outcomes import (
    cost,
    count_jobs,
    deliveries,
    efficiency,
    ettr,
    queue_times,
    slowdowns,
    spread,
    spread_of_jobs,
)
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.sizing import (
    longest_acceptable_queue_time,
    longest_lead_time,
    on_another_flavor,
    one_node_failing,
    useful_against_allocated,
    with_lead_time,
    with_load,
    with_node_failing,
)
from clusterwright.simulate.statistics import mean_of, student_t, summarise


def test_waits_and_slowdowns_by_size_and_queue():
    tree = QueueTree((Queue("a", None, {"h100": Quota(8)}), Queue("b", None, {"h100": Quota(8)})))
    rows = [SimJob(0, 100, kind(8, queue="a")), SimJob(0, 100, kind(8, queue="a")), SimJob(0, 50, kind(2, queue="b"))]
    outcome = simulate(scenario(rows, 2, tree=tree))
    waits = spread_of_jobs(outcome, queue_times(outcome), "queue")
    assert (waits["a"].jobs, waits["a"].mean, waits["a"].most) == (2, 50, 100)
    assert waits["b"].most == 0
    slow = spread_of_jobs(outcome, slowdowns(outcome), "size")
    assert slow["8"].mean == 1.5
    assert slow["2-7"].mean == 1
    with pytest.raises(ValueError, match="possible are size, queue, team, user"):
        spread_of_jobs(outcome, queue_times(outcome), "moon")


def test_jobs_that_never_start_are_counted_and_have_no_wait():
    outcome = simulate(scenario([SimJob(0, 10, kind(8)), SimJob(0, 10, kind(16))]))
    counts = count_jobs(outcome)
    assert (counts.submitted, counts.succeeded, counts.waiting, counts.never_started) == (2, 1, 1, 1)
    assert spread(outcome, queue_times(outcome)).jobs == 1


def test_efficiency_tells_useful_from_allocated():
    saving = kind(8, checkpoints=plan_checkpoints(50, 10), starting_ms=30_000)
    outcome = simulate(scenario([SimJob(0, 100, saving)], until_s=280.0))
    used = efficiency(outcome)
    assert used.useful == pytest.approx(100 / 280)
    assert used.allocated == pytest.approx(140 / 280)
    assert used.useful_of_allocated == pytest.approx(100 / 140)
    assert used.ettr == pytest.approx(100 / 140)
    told = useful_against_allocated(outcome)
    assert told.allocated - told.useful == pytest.approx(sum(told.difference_by_line.values()))
    assert set(told.difference_by_line) == {Line.STARTING, Line.CHECKPOINT}


def test_ettr_counts_the_wait():
    outcome = simulate(scenario([SimJob(0, 100, kind(8)), SimJob(0, 100, kind(8))]))
    assert ettr(outcome) == pytest.approx(200 / 300)
    assert ettr(outcome, 9) is None


def test_entitlement_is_the_guarantee_and_at_most_what_is_asked_for():
    tree = QueueTree((Queue("a", None, {"h100": Quota(6)}), Queue("b", None, {"h100": Quota(2)})))
    rows = [SimJob(0, 3600, kind(2, queue="a")), SimJob(0, 7200, kind(4, queue="b"))]
    held, entitled = deliveries(simulate(scenario(rows, tree=tree, until_s=3600.0)))
    assert held == {"a": 2}
    assert entitled == {"a": 2, "b": 2}


def test_the_cost_of_a_success_is_everything_that_was_installed():
    rows = [SimJob(0, 1800, kind(8)), SimJob(0, 1800, kind(8), fate=Fate.FAIL)]
    outcome = simulate(scenario(rows, prices={"h100": 2.0}))
    paid = cost(outcome)
    assert paid.total == pytest.approx(16)
    assert paid.per_success == pytest.approx(16)
    assert paid.per_useful_gpu_h == pytest.approx(4)
    assert sum(paid.by_line.values()) == pytest.approx(paid.total)
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


def test_a_summary_leaves_out_what_has_no_value():
    outcome = simulate(scenario([SimJob(0, 10, kind(8))]))
    summary = summarise([outcome, outcome])
    assert summary.intervals["useful utilisation"].mean == 1
    assert summary.intervals["useful utilisation"].half_width == 0
    assert "cost per success" not in summary.intervals
    assert not summary.partial


def load(count):
    return scenario([SimJob(i * 10.0, 10, kind(8)) for i in range(count)])


def test_the_largest_load_with_an_acceptable_queue_time():
    base = load(40)
    outcomes = {f: [simulate(with_load(base, f))] for f in (0.5, 1.0, 1.25, 2.0)}
    found = longest_acceptable_queue_time(outcomes, 60.0, "load")
    # at 1.25 the job number i comes at 8 i and starts at 10 i: the 95th percentile of 0 … 78 s is 74.1 s
    assert found.p95_s[1.25] == pytest.approx(74.1)
    assert (found.value, found.next_value) == (1.0, 1.25)


def test_how_late_an_expansion_may_arrive():
    rows = [SimJob(0, 100, kind(8)), SimJob(0, 100, kind(8))]
    base = scenario(rows, 2, deliveries=(Delivery("more", (1,), 0),))
    outcomes = {lead: [simulate(with_lead_time(base, lead))] for lead in (10.0, 40.0, 1000.0)}
    found = longest_lead_time(outcomes, 50.0)
    assert (found.value, found.next_value) == (40.0, 1000.0)
    assert found.p95_s[1000.0] == pytest.approx(95.0)


def test_one_node_failing_mid_run():
    saving = kind(8, 2, checkpoints=plan_checkpoints(60, 0), restart_ms=20_000)
    base = scenario([SimJob(0, 600, saving)], 3, until_s=2000.0)
    failing = with_node_failing(base, 1, 100.0, Care(Duration(30), repair=Duration(300)))
    answer = one_node_failing(simulate(base), simulate(failing))
    # 40 s since the checkpoint, 30 s until it is noticed, 20 s to restore; it goes on with the third node
    assert answer.later_s == 40 + 30 + 20
    assert answer.lost_gpu_h == pytest.approx(16 * 90 / 3600)
    assert answer.out_gpu_h == pytest.approx(8 * 300 / 3600)


def test_another_flavor_is_another_pool():
    rows = [SimJob(0, 10, replace(kind(8), demand=replace(kind(8).demand, flavors=("h100",))))]
    base = scenario(rows, nodes=(*nodes(1), replace(nodes(1)[0], name="x", flavor="b200")))
    outcome = simulate(on_another_flavor(base, ["b200"]))
    assert outcome.lines.by("flavor", "line")[("b200", "productive")] == 80_000
    with pytest.raises(ValueError, match="flavors are b200, h100"):
        on_another_flavor(base, ["a100"])
