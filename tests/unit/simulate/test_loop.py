"""Tiny scenarios whose every instant is computed by hand."""

import numpy as np
import pytest
from tests.builders.simulations import kind, logged, nodes, scenario

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Entry, Line
from clusterwright.model.jobs import Cause as Blame
from clusterwright.queueing.policies import Backfill, Policy, PreemptionPolicy, WithinQueue
from clusterwright.queueing.requests import Demand, Shape, TopologyWish
from clusterwright.simulate.attempts import plan_checkpoints
from clusterwright.simulate.durations import Duration
from clusterwright.simulate.expansions import Delivery
from clusterwright.simulate.failing import Cause, Effect
from clusterwright.simulate.jobs import Fate, Kind, SimJob
from clusterwright.simulate.loop import Simulation, simulate
from clusterwright.simulate.maintaining import Maintenance
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.scenarios import Faults, NodeLoss, Strike
from clusterwright.simulate.tallies import Fared


def gpu_s(outcome, line, why=None):
    return outcome.lines.of(line, why) / 1000


def test_the_second_job_starts_when_the_first_ends():
    outcome = simulate(scenario([SimJob(0, 100, kind()), SimJob(10, 50, kind())]))
    assert outcome.results.start_ms.tolist() == [0, 100_000]
    assert outcome.results.end_ms.tolist() == [100_000, 150_000]
    assert outcome.results.waited_ms.tolist() == [0, 90_000]
    assert outcome.ended_s == 150


def test_every_gpu_second_is_in_a_line():
    outcome = simulate(scenario([SimJob(10, 100, kind(4))], until_s=200.0))
    assert gpu_s(outcome, Line.PRODUCTIVE) == 400
    assert gpu_s(outcome, Line.FREE) == 8 * 200 - 400
    assert outcome.lines.total_gpu_ms == 8 * 200_000


def test_free_gpus_have_the_blocker_of_the_head():
    outcome = simulate(scenario([SimJob(0, 100, kind(4)), SimJob(0, 10, kind(8))]))
    assert gpu_s(outcome, Line.FREE_WITH_DEMAND, "HARDWARE_WAIT") == 4 * 100


def test_starts_and_stalls_come_on_top_of_the_work():
    saving = kind(checkpoints=plan_checkpoints(30, 5), starting_ms=20_000)
    outcome = simulate(scenario([SimJob(0, 100, saving)]))
    assert outcome.results.end_ms.tolist() == [20_000 + 100_000 + 3 * 5_000]
    assert gpu_s(outcome, Line.STARTING) == 8 * 20
    assert gpu_s(outcome, Line.CHECKPOINT) == 8 * 15
    assert gpu_s(outcome, Line.PRODUCTIVE) == 8 * 100


def test_a_time_limit_ends_a_job():
    outcome = simulate(scenario([SimJob(0, 100, kind(), limit_s=60)]))
    assert outcome.results.fared.tolist() == [Fared.TIMED_OUT]
    assert outcome.results.end_ms.tolist() == [60_000]
    assert gpu_s(outcome, Line.LOST, "time limit") == 8 * 60


def test_a_job_that_fails_is_tried_again_after_its_backoff():
    outcome = simulate(scenario([SimJob(0, 100, kind(retries=1, backoff_ms=10_000), fate=Fate.FAIL)]))
    assert outcome.results.attempts.tolist() == [2]
    assert outcome.results.end_ms.tolist() == [210_000]
    assert outcome.results.fared.tolist() == [Fared.FAILED]
    assert gpu_s(outcome, Line.FAILED, Blame.USER_CODE) == 8 * 200


def one_failure(effect, **care):
    """One node fails with a mean of 1,000 s; the seed below fails it first at the time that the log says."""
    return Faults((Cause("gpu", 1000 * 86.4, effect=effect),), care=Care(**care))


def test_a_lost_node_costs_the_work_since_the_checkpoint_and_detection():
    saving = kind(checkpoints=plan_checkpoints(100, 0), restart_ms=7_000)
    faults = one_failure(Effect.NODE, detection=Duration(30), repair=Duration(1e9))
    setting = scenario([SimJob(0, 50_000, saving)], 2, faults=faults, until_s=3_000.0)
    seed = next(s for s in range(50) if failures(setting, s)[0][1] == "n0" and len(failures(setting, s)) == 1)
    at_s, _ = failures(setting, seed)[0]
    outcome, log = logged(setting, seed)
    starts = [line.split("\t") for line in log if "\tstarted\t" in line]
    kept_s = at_s // 100 * 100
    assert [float(s[0]) for s in starts] == [0, pytest.approx(at_s + 30)]
    assert [s[4] for s in starts] == ["n0", "n1"]
    assert gpu_s(outcome, Line.LOST, Blame.HARDWARE) == pytest.approx(8 * (at_s - kept_s))
    assert gpu_s(outcome, Line.HELD_IDLE) == 8 * 30
    assert gpu_s(outcome, Line.STARTING) == 8 * 7
    assert gpu_s(outcome, Line.UNHEALTHY, "gpu") == pytest.approx(8 * (3000 - at_s - 30))


def failures(setting, seed):
    """(time in s, nodes) of every failure."""
    _, log = logged(setting, seed)
    rows = [line.split("\t") for line in log if "\tfailure\t" in line]
    return [(float(r[0]), r[2]) for r in rows] or [(0.0, "")]


@pytest.mark.parametrize("effect", list(Effect))
def test_every_effect_is_repaired_and_the_work_gets_done(effect):
    care = {"detection": Duration(30), "repair": Duration(600), "reboot": Duration(60)}
    saving = kind(checkpoints=plan_checkpoints(50, 1), retries=None)
    setting = scenario([SimJob(0, 4000, saving)] * 2, 2, faults=one_failure(effect, **care))
    outcome, log = logged(setting, 1)
    assert outcome.failures > 0
    assert outcome.results.fared.tolist() == [Fared.SUCCEEDED] * 2
    assert outcome.results.productive_gpu_ms.tolist() == [8 * 4_000_000] * 2
    assert logged(setting, 1)[1] == log


def test_a_replaced_gang_goes_on_at_once_on_a_spare():
    gang = kind(8, 2, checkpoints=plan_checkpoints(100, 0))
    faults = one_failure(Effect.NODE, detection=Duration(30), repair=Duration(1e9))
    setting = scenario(
        [SimJob(0, 3000, gang)], nodes=nodes(3), spares=(2,), faults=faults, node_loss=NodeLoss.REPLACE, until_s=900.0
    )
    seed = next(s for s in range(50) if failures(setting, s)[0][1] in ("n0", "n1"))
    _, log = logged(setting, seed)
    lost_s = float(next(line for line in log if "\tfailure\t" in line).split("\t")[0])
    again = [line for line in log if "\tstarted\t" in line][1].split("\t")
    assert float(again[0]) == pytest.approx(lost_s + 30, abs=0.002)
    assert "n2" in again[4]
    assert again[5] == "replace lost nodes"


def test_a_smaller_gang_does_the_same_work_in_more_time():
    elastic = Kind(Demand((Shape(2, 8, least=1),)))
    setting = scenario([SimJob(0, 100, kind(8)), SimJob(1, 100, elastic)], 2)
    outcome = simulate(setting)
    assert outcome.results.start_ms.tolist() == [0, 1000]
    assert outcome.results.end_ms.tolist() == [100_000, 201_000]
    assert outcome.results.held_gpu_ms[1] == 8 * 200_000


def test_a_victim_saves_its_work_within_the_grace_and_goes_on_from_there():
    policy = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER, grace_s=60))
    low = kind(checkpoints=plan_checkpoints(1000, 10), restart_ms=5_000)
    setting = scenario([SimJob(0, 500, low), SimJob(100, 50, kind(priority=1))], policy=policy)
    outcome = simulate(setting)
    # told at 100 s, its checkpoint is written at 110 s; the other runs from 110 to 160 s; 400 s are left
    assert outcome.results.start_ms.tolist() == [0, 110_000]
    assert outcome.results.end_ms.tolist() == [160_000 + 5_000 + 400_000, 160_000]
    assert outcome.results.attempts.tolist() == [2, 1]
    assert outcome.preemptions == 1
    assert gpu_s(outcome, Line.PRODUCTIVE) == 8 * 550


def test_without_checkpoints_a_victim_loses_all_of_its_work():
    policy = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER, grace_s=60))
    setting = scenario([SimJob(0, 500, kind()), SimJob(100, 50, kind(priority=1))], policy=policy)
    outcome = simulate(setting)
    assert outcome.results.start_ms.tolist() == [0, 100_000]
    assert outcome.results.end_ms.tolist() == [650_000, 150_000]
    assert gpu_s(outcome, Line.PREEMPTED) == 8 * 100


def test_easy_backfill_keeps_the_promised_start():
    rows = [SimJob(0, 100, kind(4), 100), SimJob(1, 100, kind(8), 100), SimJob(2, 90, kind(4), 90)]
    outcome = simulate(scenario(rows, policy=Policy(backfill=Backfill.EASY)))
    assert outcome.results.start_ms.tolist() == [0, 100_000, 2_000]


def test_starts_share_the_store():
    loading = kind(bytes_each=100e9)
    outcome = simulate(scenario([SimJob(0, 10, loading), SimJob(0, 10, loading)], 2, store_bytes_per_s=10e9))
    assert outcome.results.end_ms.tolist() == [30_000, 30_000]
    assert gpu_s(outcome, Line.STARTING) == 2 * 8 * 20


def test_maintenance_keeps_jobs_away_and_is_drained_time():
    work = Maintenance("firmware", (0,), 100, 50)
    rows = [SimJob(0, 60, kind(), 60), SimJob(10, 60, kind(), 60)]
    outcome = simulate(scenario(rows, maintenance=(work,)))
    assert outcome.results.start_ms.tolist() == [0, 150_000]
    assert gpu_s(outcome, Line.DRAINED, "maintenance") == 8 * 50


def test_capacity_that_arrives_late_counts_from_then_on():
    late = Delivery("rack 2", (1,), 40, Duration(60))
    outcome = simulate(scenario([SimJob(0, 10, kind(8, 2))], 2, deliveries=(late,)))
    assert outcome.results.start_ms.tolist() == [100_000]
    assert outcome.lines.total_gpu_ms == 8 * 110_000 + 8 * 10_000


def test_a_job_that_fits_nowhere_does_not_keep_the_simulation_going():
    faults = one_failure(Effect.NODE, repair=Duration(60))
    outcome = simulate(scenario([SimJob(0, 10, kind(8, 2))], faults=faults), 1)
    assert outcome.results.fared.tolist() == [Fared.WAITING]


def test_without_an_end_the_last_job_ends_the_simulation_however_much_fails():
    faults = one_failure(Effect.NODE, repair=Duration(5_000))
    outcome = simulate(scenario([SimJob(0, 10, kind(8))], 50, faults=faults), 1)
    assert outcome.results.fared.tolist() == [Fared.SUCCEEDED]
    assert outcome.ended_s < 60_000


def test_jobs_that_run_at_the_end_are_charged_as_undecided():
    outcome = simulate(scenario([SimJob(0, 100, kind())], until_s=30.0))
    assert outcome.results.fared.tolist() == [Fared.RUNNING]
    assert outcome.lines.of(Line.PRODUCTIVE, "not saved yet") == 8 * 30_000


def test_stopping_gives_a_partial_outcome_whose_ledger_balances():
    rows = [SimJob(i, 10, kind(1)) for i in range(3000)]
    seen = []
    outcome = simulate(scenario(rows), watch=lambda p: seen.append(p) or p.submitted > 1000)
    assert outcome.partial
    assert outcome.lines.partial
    assert seen
    assert outcome.results.count(Fared.NOT_SUBMITTED) > 0
    assert outcome.lines.total_gpu_ms == round(outcome.ended_s * 1000) * 8


def test_a_domain_that_is_used_alone_is_charged_whole():
    alone = Kind(Demand((Shape(1, 8),), topology=TopologyWish("rack", exclusive=True)))
    outcome = simulate(scenario([SimJob(0, 10, alone)], nodes=nodes(4, rack=2), levels=("rack",)))
    assert gpu_s(outcome, Line.PRODUCTIVE) == 16 * 10
    assert gpu_s(outcome, Line.FREE) == 16 * 10


def test_a_simulation_starts_what_the_cycle_says_and_nothing_else():
    rows = [SimJob(i * 7 % 40, 5 + i % 9, kind(1 + i % 8)) for i in range(60)]
    simulation = Simulation(scenario(rows, 2))
    held = []
    state = simulation.state
    start = state.start
    state.start = lambda request, placement, now_s, **more: (
        held.append((request.id, now_s)),
        start(request, placement, now_s, **more),
    )[1]
    outcome = simulation.run()
    assert {int(j): round(at * 1000) for j, at in held} == dict(enumerate(outcome.results.start_ms.tolist()))
    assert np.all(outcome.results.fared == Fared.SUCCEEDED)


def test_a_gpu_hour_is_3600000_gpu_milliseconds():
    outcome = simulate(scenario([SimJob(0, 3600, kind(8))]))
    assert outcome.lines.by_line()[Line.PRODUCTIVE] == 8 * GPU_MS_PER_GPU_H
    assert Entry(Line.PRODUCTIVE) in {entry for _, entry in outcome.lines.amounts}


def test_a_gang_on_a_node_that_is_drained_can_still_be_struck_there():
    gang = kind(8, 2, retries=None)
    drain = Strike(10.0, (0,), "ecc", Effect.DRAIN)
    faults = Faults((Cause("software", 1000 * 864.0, effect=Effect.JOB),), strikes=(drain,))
    _, log = logged(scenario([SimJob(0, 2000, gang)], 2, faults=faults, until_s=2000.0), 4)
    drained = next(i for i, line in enumerate(log) if "\tout\tn0\t" in line)
    struck = next(i for i, line in enumerate(log) if "\tfailure\tn0\tsoftware" in line)
    assert drained < struck
    assert "\tinterrupted\tjob 0\t16 GPUs\tsoftware" in log[struck + 1]
