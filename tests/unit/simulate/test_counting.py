"""What happens before counting begins fills the cluster and is in no figure; budgets gate admission."""

from dataclasses import replace

import pytest
from tests.builders.simulations import kind, nodes, scenario

from clusterwright.ledger.lines import Line
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import Policy, PreemptionPolicy, WithinQueue
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Shape
from clusterwright.simulate.jobs import Kind, SimJob
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.outcomes import deliveries, ettr
from clusterwright.simulate.tallies import Fared


def test_a_warm_up_changes_what_is_counted_and_nothing_that_happens():
    rows = [SimJob(i * 100, 300, kind(8)) for i in range(5)]
    cold, warm = simulate(scenario(rows)), simulate(scenario(rows, counted_from_s=350.0))
    assert warm.results.equal(cold.results)
    assert warm.scenario.counted.tolist() == [False] * 4 + [True]
    assert cold.lines.total_gpu_ms - warm.lines.total_gpu_ms == 8 * 350_000
    assert warm.lines.of(Line.PRODUCTIVE) == 8 * (1_500_000 - 350_000)
    # the last one came at 400 s and ran from 1,200 s on
    assert ettr(warm) == pytest.approx(300 / (300 + 800))
    assert ettr(cold) == pytest.approx(1500 / (1500 + 2000))


def test_what_a_queue_wants_of_the_counted_time_is_what_was_left_to_do():
    tree = QueueTree((Queue("a", None, {"h100": Quota(8)}),))
    rows = [SimJob(0, 3600, kind(8, queue="a")), SimJob(3600, 1800, kind(8, queue="a"))]
    held, entitled = deliveries(simulate(scenario(rows, tree=tree, counted_from_s=2700.0, until_s=7200.0)))
    assert held == entitled == {"a": 8 * (900 + 1800) / 3600}


def test_preemptions_of_the_warm_up_are_not_counted():
    policy = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER))
    rows = [SimJob(0, 900, kind(8)), SimJob(10, 50, kind(8, priority=5)), SimJob(200, 50, kind(8, priority=5))]
    tree = QueueTree((Queue("default", None, {"h100": Quota(8)}),))
    assert simulate(scenario(rows, policy=policy, tree=tree)).preemptions == 2
    assert simulate(scenario(rows, policy=policy, tree=tree, counted_from_s=100.0)).preemptions == 1


def test_counting_begins_before_the_end():
    with pytest.raises(ValueError, match="not between 0 and the end"):
        scenario([SimJob(0, 1, kind(8))], counted_from_s=10.0, until_s=10.0)


def test_a_budget_gates_admission_until_its_next_period_and_the_ledger_says_so():
    tree = QueueTree((Queue("a", None, {"h100": Quota(8)}),))
    rows = [SimJob(0, 1800, kind(8, queue="a"), 1800.0)] * 3
    outcome = simulate(scenario(rows, tree=tree, budgets={"a": Budget(8.0, every_s=7200.0)}, until_s=20_000.0))
    assert outcome.results.start_ms.tolist() == [0, 1_800_000, 7_200_000]
    assert outcome.lines.of(Line.FREE_WITH_DEMAND, "BUDGET") == 8 * 3_600_000


def test_gpus_that_stay_free_for_want_of_cpu_wait_for_hardware():
    host = (replace(nodes(1)[0], resources=(("cpu", 12.0),)),)
    needing = Kind(Demand((Shape(1, 2, resources=(("cpu", 8.0),)),)))
    outcome = simulate(scenario([SimJob(0, 60, needing), SimJob(0, 60, needing)], nodes=host))
    assert outcome.results.start_ms.tolist() == [0, 60_000]
    assert outcome.lines.of(Line.FREE_WITH_DEMAND, "HARDWARE_WAIT") == 6 * 60_000


def test_what_a_budget_never_admits_waits_and_holds_up_nobody():
    tree = QueueTree((Queue("a", None, {"h100": Quota(8)}), Queue("b", None, {"h100": Quota(8)})))
    rows = [SimJob(0, 1800, kind(8, queue="a"), 1800.0), SimJob(1, 60, kind(8, queue="b"))]
    outcome = simulate(scenario(rows, tree=tree, budgets={"a": Budget(1.0)}))
    assert outcome.results.fared.tolist() == [Fared.WAITING, Fared.SUCCEEDED]
