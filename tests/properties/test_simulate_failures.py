"""Failures and attempts: parts add up, same seed same events, rates are additive, checkpoints never lose saved work."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.many_attempts import spend_many
from clusterwright.ledger.attempts import ENTRIES, Ending, charge_attempt
from clusterwright.ledger.lines import Line
from clusterwright.simulate.attempts import ALWAYS, NEVER, Attempt, Checkpoints, leave, saved_ms, spend
from clusterwright.simulate.failing import Cause, Failing, Failure, Lemons, Population
from clusterwright.simulate.loading import Load, SharedStore
from clusterwright.simulate.records import record_spent
from clusterwright.simulate.repairs import Crew
from clusterwright.simulate.streams import Streams

DAY = 86400.0

checkpoints = st.one_of(
    st.sampled_from([NEVER, ALWAYS]),
    st.builds(Checkpoints, st.integers(1, 5000), st.integers(0, 500), st.integers(0, 9000)),
)
attempts = st.builds(Attempt, st.integers(1, 100_000), checkpoints, st.integers(0, 3000))
moments = st.integers(0, 150_000)


@settings(deadline=None)
@given(attempts, moments, st.integers(0, 5000), st.none() | moments)
def test_the_parts_of_an_attempt_add_up(attempt: Attempt, ran: int, held: int, wrong: int | None) -> None:
    spent = spend(attempt, ran, held, wrong)
    assert spent.total_ms == min(ran, attempt.length_ms) + held
    parts = (spent.starting_ms, spent.productive_ms, spent.stalled_ms, spent.lost_ms, spent.stalled_since_ms)
    assert min(parts) >= 0
    assert spent.productive_ms + spent.lost_ms <= attempt.work_ms
    assert spent.finished == (ran >= attempt.length_ms and (wrong is None or wrong >= attempt.length_ms))


@settings(deadline=None)
@given(attempts, moments, moments)
def test_saved_work_never_shrinks_and_wrong_work_is_never_saved(attempt: Attempt, one: int, two: int) -> None:
    early, late = sorted((one, two))
    assert spend(attempt, early).productive_ms <= spend(attempt, late).productive_ms
    assert spend(attempt, late, wrong_after_ms=early).productive_ms <= spend(attempt, early).productive_ms + (
        (attempt.checkpoints.every_ms or 0)  # complete at `early`, written by `late`
        * math.ceil(attempt.checkpoints.write_ms / (attempt.checkpoints.every_ms or 1))
    )
    if late < attempt.length_ms:
        assert spend(attempt, late).productive_ms == saved_ms(attempt, late)


@settings(deadline=None)
@given(attempts, st.lists(moments, min_size=1, max_size=40))
def test_a_job_needs_no_more_work_than_it_set_out_with(attempt: Attempt, ends: list[int]) -> None:
    """Interrupted attempts one after the other: what is saved, and what is left, is the whole work."""
    left, saved = attempt.work_ms, 0
    for end in ends:
        spent = spend(Attempt(left, attempt.checkpoints, attempt.starting_ms), end)
        saved += spent.productive_ms
        left -= spent.productive_ms
        if spent.finished:
            break
        assert left > 0
    assert saved + left == attempt.work_ms


@settings(deadline=None)
@given(attempts, moments, st.integers(0, 20_000))
def test_who_leaves_is_gone_within_the_grace_and_loses_no_more_than_who_is_killed(
    attempt: Attempt, notice: int, grace: int
) -> None:
    gone, spent = leave(attempt, notice, grace)
    assert min(notice, attempt.length_ms) <= gone <= notice + grace
    assert spent.total_ms == gone
    assert spent.productive_ms >= spend(attempt, notice).productive_ms
    assert spent.lost_ms <= spend(attempt, notice).lost_ms


@settings(deadline=None)
@given(checkpoints, st.lists(st.tuples(st.integers(1, 50_000), st.integers(0, 3000), moments), min_size=1))
def test_many_attempts_at_once_are_the_same_as_one_by_one(plan: Checkpoints, rows: list[tuple[int, int, int]]) -> None:
    work, starting, ran = (list(column) for column in zip(*rows, strict=True))
    many = spend_many(work, starting, plan, ran)
    for n, row in enumerate(rows):
        one = spend(Attempt(row[0], plan, row[1]), row[2])
        for part in ("starting_ms", "productive_ms", "stalled_ms", "lost_ms", "stalled_since_ms", "total_ms"):
            assert getattr(many, part)[n] == getattr(one, part), (part, row)


@settings(deadline=None)
@given(
    attempts, moments, st.integers(0, 5000), st.integers(0, 10**10), st.integers(1, 4096), st.sampled_from(list(Ending))
)
def test_the_ledger_charges_each_part_to_its_line(
    attempt: Attempt, ran: int, held: int, admitted_ms: int, gpus: int, ending: Ending
) -> None:
    spent = leave(attempt, ran, held)[1] if ending is Ending.PREEMPTED else spend(attempt, ran, held)
    sums = [0] * len(ENTRIES)
    charge_attempt(sums, record_spent(attempt, spent, gpus, admitted_ms / 1000, ending))
    assert sum(sums) == gpus * spent.total_ms
    lines = {line: sum(s for s, e in zip(sums, ENTRIES, strict=True) if e.line is line) for line in Line}
    assert lines[Line.CHECKPOINT] == gpus * spent.blocked_ms
    assert lines[Line.HELD_IDLE] == gpus * spent.held_ms
    if spent.starting_ms == attempt.starting_ms and ending is Ending.FAILED:
        assert lines[Line.STARTING] == gpus * spent.starting_ms
        assert lines[Line.PRODUCTIVE] == gpus * spent.productive_ms
        assert lines[Line.LOST] + lines[Line.FAILED] == gpus * spent.lost_ms


causes = st.lists(
    st.builds(
        Cause,
        st.sampled_from(["gpu", "nic", "switch", "psu", "software"]),
        st.floats(0, 50),
        st.sampled_from(["", "", "rack"]),
        st.sampled_from([0.6, 1.0, 1.0, 2.5]),
    ),
    max_size=4,
    unique_by=lambda c: c.name,
)
lemons = st.builds(Lemons, st.floats(0, 1), st.floats(1, 30))


def population(nodes: int) -> Population:
    return Population(nodes, {"rack": np.arange(nodes) // 8})


def first(process: Failing, count: int) -> list[Failure | None]:
    return [process.pop() for _ in range(count) if process.next_s < math.inf]


@settings(deadline=None, max_examples=50)
@given(causes, st.integers(1, 60), lemons, st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_events_in_order(few: list[Cause], nodes: int, bad: Lemons, seed: int) -> None:
    one, two = (first(Failing(few, population(nodes), Streams(seed), bad), 80) for _ in "ab")
    assert one == two
    times = [f.at_s for f in one if f is not None]
    assert times == sorted(times)
    shuffled = first(Failing(few[::-1], population(nodes), Streams(seed), bad), 80)
    assert shuffled == one


@settings(deadline=None, max_examples=50)
@given(causes, st.integers(1, 40), st.integers(0, 2**32), st.data())
def test_only_running_nodes_are_struck_and_time_never_goes_back(
    few: list[Cause], nodes: int, seed: int, data: st.DataObject
) -> None:
    process = Failing(few, population(nodes), Streams(seed), Lemons(0.2, 10))
    down: set[int] = set()
    now = 0.0
    for _ in range(60):
        if process.next_s == math.inf:
            return
        node = data.draw(st.integers(0, nodes - 1))
        if node in down:
            if data.draw(st.booleans()):
                process.replace(node, now)
            process.start(node, now, new=data.draw(st.booleans()))
            down.discard(node)
        else:
            process.stop(node, now)
            down.add(node)
        if process.next_s == math.inf:
            return
        assert process.next_s >= now
        now = process.next_s
        failure = process.pop()
        if failure is not None:
            assert failure.at_s == now
            assert failure.nodes
            assert not down & set(failure.nodes)


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 6), st.floats(0.2, 3), st.sampled_from([0.8, 1.0, 1.5]), lemons, st.integers(0, 2**32))
def test_more_nodes_and_higher_rates_give_failures_in_proportion(
    hundreds: int, rate: float, shape: float, bad: Lemons, seed: int
) -> None:
    """The expected number is nodes × rate × days, lemons or not; five standard deviations of a Weibull count."""
    nodes, days = 100 * hundreds, 2000 / rate
    process = Failing([Cause("gpu", rate, shape=shape)], population(nodes), Streams(seed), bad)
    count = 0
    while process.next_s < days * DAY:
        process.pop()
        count += 1
    expected = nodes * rate * days / 1000
    spread = math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1
    assert count == pytest.approx(expected, abs=5 * math.sqrt(max(1.0, spread) * expected))


@settings(deadline=None)
@given(st.integers(1, 3000), lemons, st.integers(0, 2**32))
def test_lemons_keep_the_mean(nodes: int, bad: Lemons, seed: int) -> None:
    weights, chosen = bad.draw(nodes, Streams(seed).of("lemons"))
    assert weights.mean() == pytest.approx(1)
    assert chosen.sum() == round(bad.share * nodes)
    if 0 < chosen.sum() < nodes:
        assert weights[chosen].mean() / weights[~chosen].mean() == pytest.approx(bad.multiple)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.integers(1, 40), st.floats(1, 1e4), st.sampled_from([3.0, 50.0, 1e9])),
        min_size=1,
        max_size=25,
    ),
    st.floats(10, 1000),
)
def test_a_store_gives_no_more_than_it_has_and_every_start_ends(
    starts: list[tuple[float, int, float, float]], rate: float
) -> None:
    store = SharedStore(rate)
    waiting = sorted((s, n) for n, s in enumerate(starts))
    ended: dict[object, float] = {}
    while waiting or store.next_s < math.inf:
        if waiting and waiting[0][0][0] <= store.next_s:
            (at_s, readers, size, own), number = waiting.pop(0)
            store.begin(number, at_s, Load(readers, size), own)
        else:
            at_s = store.next_s
            ended[store.pop()] = at_s
    assert set(ended) == set(range(len(starts)))
    for number, (at_s, readers, size, own) in enumerate(starts):
        alone = size / min(own, rate / readers)
        assert ended[number] >= (at_s + alone) * (1 - 1e-9)
    begin = min(s[0] for s in starts)
    assert max(ended.values()) - begin >= sum(s[1] * s[2] for s in starts) / rate * (1 - 1e-6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), min_size=1, max_size=30), st.integers(1, 4))
def test_a_crew_never_has_more_repairs_at_once_than_hands(work: list[tuple[float, float]], hands: int) -> None:
    crew = Crew(hands)
    spans = []
    for at_s, takes_s in sorted(work):
        done_s = crew.take(at_s, takes_s)
        assert done_s >= at_s + takes_s
        spans.append((done_s - takes_s, done_s))
    for _, end in spans:
        assert sum(b + 1e-9 < end <= e for b, e in spans) <= hands
