"""Jobs that work faster or slower on a flavor: wall time, saved work, ledger; exact to the millisecond."""

from dataclasses import replace

import pytest
from tests.builders.simulations import kind, nodes, scenario

from clusterwright.ledger.lines import Line
from clusterwright.simulate.attempts import plan_checkpoints
from clusterwright.simulate.durations import Duration
from clusterwright.simulate.jobs import NONE_MS, SimJob, list_jobs
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.sizing import with_node_failing
from clusterwright.simulate.speeds import paces_of, slowest_of, stretch_limits, wall_ms, work_ms


def test_work_takes_its_time_divided_by_the_speed_and_the_rest_of_an_attempt_stays_as_it_is():
    fast = kind(8, speeds=(("h100", 1.3),), checkpoints=plan_checkpoints(60, 5), starting_ms=10_000)
    outcome = simulate(scenario([SimJob(0, 1300, fast)]))
    # 1,000 s at work, 16 stalls of 5 s (none at the end of the work), 10 s to start
    assert outcome.results.end_ms.tolist() == [1_000_000 + 16 * 5_000 + 10_000]
    lines = outcome.lines
    assert lines.of(Line.PRODUCTIVE) == 8 * 1_000_000
    assert (lines.of(Line.CHECKPOINT), lines.of(Line.STARTING)) == (8 * 80_000, 8 * 10_000)
    assert outcome.results.productive_gpu_ms.tolist() == [8 * 1_000_000], "the ledger is in wall time"


def test_what_was_saved_at_one_speed_is_not_done_again_at_another():
    """100 s on the fast node: 60 s are saved there, 120 s of work; the 480 s left are done on the slow one."""
    saving = kind(8, speeds=(("fast", 2.0),), checkpoints=plan_checkpoints(60, 0))
    cluster = (replace(nodes(1)[0], name="f", flavor="fast"), *nodes(1))
    base = scenario([SimJob(0, 600, saving)], nodes=cluster, until_s=5000.0)
    outcome = simulate(with_node_failing(base, 0, 100.0, Care(Duration(0), repair=Duration(5000))))
    assert outcome.results.end_ms.tolist() == [580_000]
    found = outcome.lines.by("flavor", "line")
    assert found["fast", "productive"] == 8 * 60_000
    assert found["fast", "lost since checkpoint"] == 8 * 40_000
    assert found["h100", "productive"] == 8 * 480_000


def test_time_and_work_are_whole_and_never_give_work_away():
    for work in (1, 7, 1000, 999_983):
        for pace in (1, 333_333, 999_999, 1_000_001, 3_170_000):
            took = wall_ms(work, pace)
            assert took >= 1
            assert work_ms(took, pace) >= work, "whoever ran to the end has done it all"
            assert work_ms(took - 1, pace) < work


def test_limits_leave_room_on_the_slowest_flavor_that_a_job_may_get():
    slow = kind(8, speeds=(("l4", 0.25), ("b200", 2.0)))
    only = replace(slow, demand=replace(slow.demand, flavors=("b200",)))
    jobs = list_jobs([SimJob(0, 10, slow, 12.0), SimJob(0, 10, only, 12.0), SimJob(0, 10, slow)])
    flavors = ("h100", "l4", "b200")
    assert (slowest_of(slow, flavors), slowest_of(only, flavors)) == (0.25, 2.0)
    assert stretch_limits(jobs, flavors).limit_ms.tolist() == [48_000, 12_000, NONE_MS]
    assert stretch_limits(jobs, ("h100",)) is jobs


def test_a_speed_is_above_zero():
    with pytest.raises(ValueError, match="above 0"):
        paces_of([kind(8, speeds=(("h100", 0.0),))])
