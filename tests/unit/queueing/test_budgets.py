"""Budgets stop admission and never a running job."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import JobId
from clusterwright.queueing.budgets import Budget, Budgets, Overdrawn
from clusterwright.queueing.quotas import Queue, QueueTree

H = 3600.0
DAY = 24 * H
TREE = QueueTree((Queue("all"), Queue("research", "all"), Queue("product", "all")))


def budgets(of: Budget, *, queue: str = "research") -> Budgets:
    return Budgets(TREE, {queue: of})


def start(on: Budgets, job: str, gpus: float, limit_h: float | None, at_h: float, queue: str = "research") -> None:
    on.start(JobId(job), queue, "ada", gpus, None if limit_h is None else limit_h * H, at_h * H)


def refusal(on: Budgets, gpus: float, limit_h: float | None, at_h: float, queue: str = "research") -> Overdrawn | None:
    return on.admits(queue, "ada", gpus, None if limit_h is None else limit_h * H, at_h * H)


def refused(on: Budgets, gpus: float, limit_h: float | None, at_h: float, queue: str = "research") -> Overdrawn:
    found = refusal(on, gpus, limit_h, at_h, queue)
    assert found is not None
    return found


def test_a_job_is_admitted_if_it_can_run_to_its_limit_within_the_budget() -> None:
    on = budgets(Budget(100))
    assert refusal(on, 8, 12.5, 0) is None
    assert refusal(on, 8, 12.6, 0) is not None
    assert refusal(on, 10_000, 100, 0, "product") is None


def test_a_refusal_tells_used_and_committed_and_needed() -> None:
    on = budgets(Budget(100, every_s=DAY))
    start(on, "ended", 10, 2, 0)
    on.end(JobId("ended"), 1 * H)
    start(on, "runs", 8, 10, 1)
    found = refused(on, 4, 5, 3)
    assert (found.account, found.budget, found.ends_s) == ("queue research", 100, DAY)
    assert (found.used, found.committed, found.needed) == pytest.approx((10 + 16, 64, 20))
    assert str(found) == ("queue research: 26.0 GPU-hours used, 64.0 committed to running jobs, 20.0 needed, of 100.0")


def test_what_a_job_did_not_run_is_free_again_when_it_ends() -> None:
    on = budgets(Budget(100))
    start(on, "a", 10, 10, 0)
    assert refusal(on, 1, 1, 4) is not None
    on.end(JobId("a"), 4 * H)
    assert refusal(on, 10, 6, 4) is None
    assert refusal(on, 10, 6.1, 4) is not None


def test_what_a_job_ran_beyond_its_limit_counts() -> None:
    on = budgets(Budget(100))
    start(on, "a", 10, 5, 0)
    assert refused(on, 10, 5, 5.5).used == pytest.approx(55)
    on.end(JobId("a"), 6 * H)
    assert refusal(on, 10, 4, 6) is None
    assert refusal(on, 10, 4.1, 6) is not None


def test_a_budget_is_renewed_and_a_job_counts_in_each_period_that_it_reaches() -> None:
    on = budgets(Budget(100, every_s=DAY))
    start(on, "today", 10, 10, 0)
    on.end(JobId("today"), 10 * H)
    # 3 hours of today and 9 of tomorrow: tomorrow has room for 100, today for nothing.
    assert refused(on, 1, 12, 21).ends_s == DAY
    assert refused(on, 10, 1, 23).used == pytest.approx(100)
    assert refusal(on, 10, 10, 24) is None


def test_what_a_job_takes_of_a_later_period_is_committed_there() -> None:
    on = budgets(Budget(100, every_s=DAY))
    start(on, "over midnight", 10, 12, 21)
    found = refused(on, 2, 6, 24)
    assert (found.used, found.committed, found.needed) == pytest.approx((0, 90, 12))
    assert refusal(on, 1, 10, 24) is None


def test_a_long_job_is_refused_for_what_it_would_take_of_later_periods() -> None:
    on = budgets(Budget(100, every_s=DAY))
    found = refused(on, 10, 20, 20)
    assert (found.needed, found.ends_s) == (160, 2 * DAY)


def test_without_a_time_limit_a_job_takes_all_that_is_left_of_each_period() -> None:
    on = budgets(Budget(100, every_s=DAY))
    assert refusal(on, 5, None, 0) is not None
    assert refusal(on, 4, None, 0) is None
    start(on, "service", 4, None, 0)
    assert refused(on, 1, 5, 12).committed == pytest.approx(48)
    assert refusal(on, 1, 4, 12) is None
    assert refused(on, 1, 5, 30).used == pytest.approx(24)
    on.end(JobId("service"), 36 * H)
    assert refusal(on, 1, 12, 36) is None
    assert refused(on, 10, 5.3, 36).used == pytest.approx(48)


def test_a_budget_without_end_does_not_admit_a_job_without_limit() -> None:
    on = budgets(Budget(100))
    assert refused(on, 1, None, 0).needed == math.inf
    assert "no time limit" in str(refused(on, 1, None, 0))
    start(on, "forced", 10, None, 0)
    assert refused(on, 10, 6, 5).used == pytest.approx(50)
    on.end(JobId("forced"), 5 * H)
    assert refusal(on, 10, 5, 5) is None
    assert refusal(on, 10, 5.1, 5) is not None


def test_nothing_is_admitted_after_the_end_and_the_last_period_holds_what_runs_beyond_it() -> None:
    on = budgets(Budget(100, until_s=10 * H))
    assert refusal(on, 10, 10, 9) is None
    assert refusal(on, 10, 11, 9) is not None
    assert str(refused(on, 1, 1, 10)) == "the budget of queue research has ended"
    renewed = budgets(Budget(100, every_s=DAY, until_s=1.5 * DAY))
    assert refusal(renewed, 4, 25, 35) is None
    assert refusal(renewed, 4, 26, 35) is not None


def test_groups_and_users_have_budgets_too() -> None:
    on = Budgets(TREE, {"all": Budget(100)}, {"ada": Budget(50)})
    start(on, "a", 10, 5, 0)
    assert refused(on, 1, 1, 0).account == "user ada"
    assert on.admits("product", "bob", 10, 5 * H, 0) is None
    found = on.admits("product", "bob", 10, 5.1 * H, 0)
    assert found is not None
    assert found.account == "queue all"
    assert on.admits("elsewhere", "bob", 1e6, None, 0) is None


def test_use_from_before_counts() -> None:
    on = budgets(Budget(100, every_s=DAY))
    on.charge("queue research", 60, 2 * H)
    on.charge("queue product", 60, 2 * H)
    found = refused(on, 10, 5, 3)
    assert (found.used, found.committed) == pytest.approx((60, 0))
    assert refusal(on, 10, 4, 3) is None
    assert refusal(on, 10, 5, 24) is None


def test_jobs_without_gpus_need_no_budget() -> None:
    on = budgets(Budget(0))
    assert refusal(on, 0, None, 0) is None
    start(on, "a", 0, None, 0)
    on.end(JobId("a"), H)
    assert refusal(on, 1, 1, 0) is not None


def test_the_next_renewal_may_admit_what_was_refused() -> None:
    assert budgets(Budget(1)).next_period_s(0) is None
    on = Budgets(TREE, {"research": Budget(1, every_s=DAY), "product": Budget(1, every_s=7 * DAY)})
    assert on.next_period_s(DAY) == 2 * DAY
    assert budgets(Budget(1, every_s=DAY, until_s=DAY)).next_period_s(2 * DAY) is None


def test_a_fork_is_a_what_if() -> None:
    on = budgets(Budget(100))
    start(on, "a", 5, 10, 0)
    fork = on.fork()
    start(fork, "b", 5, 10, 0)
    fork.end(JobId("a"), 5 * H)
    assert refusal(on, 5, 10, 0) is None
    assert refused(fork, 5, 10, 5).committed == pytest.approx(25)


@pytest.mark.parametrize("values", [{"gpu_hours": -1.0}, {"gpu_hours": math.nan}, {"gpu_hours": 1, "every_s": 60.0}])
def test_an_impossible_budget_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Budget(**values)


times = st.integers(0, 100).map(lambda x: x * H / 2)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(1, 8), times, st.none() | times, times), max_size=8),
    st.sampled_from([DAY, 10 * H, None]),
)
def test_used_and_committed_are_the_sums_over_all_jobs(
    jobs: list[tuple[int, float, float | None, float]], every_s: float | None
) -> None:
    """Against the plain sum over jobs of (GPUs, start, limit, run time), asked after each start and end."""
    jobs = [(g, b, limit, run if limit is None else min(run, limit)) for g, b, limit, run in jobs]
    budget = Budget(0, every_s=every_s, until_s=None if every_s else 200 * H)
    on = budgets(budget)
    events = [(begin, 1, i) for i, (_, begin, _, _) in enumerate(jobs)]
    events += [(begin + run, 2, i) for i, (_, begin, _, run) in enumerate(jobs)]
    done: list[tuple[float, int, int]] = []
    for now, kind, number in sorted(events):
        gpus, begin, limit, _ = jobs[number]
        if kind == 1:
            on.start(JobId(str(number)), "research", "ada", gpus, limit, now)
        else:
            on.end(JobId(str(number)), now)
        done.append((now, kind, number))
        at = now
        opens = at // every_s * every_s if every_s else 0
        closes = opens + every_s if every_s else 200 * H
        used = planned = 0.0
        for gpus, begin, limit, run, ended in (
            (*jobs[i], (jobs[i][1] + jobs[i][3], 2, i) in done) for _, k, i in done if k == 1
        ):
            last = begin + run if ended else at
            used += gpus * max(0.0, last - max(begin, opens))
            if not ended:
                until = closes if limit is None else min(begin + limit, closes)
                planned += gpus * max(0.0, until - max(at, opens))
        found = on.admits("research", "ada", 1, 1, at)
        assert found is not None
        assert found.used * H == pytest.approx(used, abs=1e-3)
        assert found.committed * H == pytest.approx(planned, abs=1e-3)
