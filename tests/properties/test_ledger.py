"""Random histories of small clusters, played with GPUs that have names, against the ledger that only counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.ledger.accounting import Ledger, Unbalanced
from clusterwright.ledger.attempts import ENTRIES, AttemptRecord, Ending, charge_attempt, charge_part
from clusterwright.ledger.lines import OUT, Account, Line, to_ms
from clusterwright.ledger.totals import Lines, merge_lines
from clusterwright.model.jobs import Cause

FLAVORS = ("h100", "b200")
BLOCKERS = ("", "ORDER", "QUOTA_WAIT", "TOPOLOGY")
pauses = st.sampled_from([0.0, 0.0, 0.0004, 0.0005, 1.0, 1 / 3, 1000.0]) | st.floats(0.0, 50.0)
shares = st.floats(0.0, 1.0)


@st.composite
def attempts(draw: st.DrawFn, gpus: int, admitted_s: float, ended_s: float) -> AttemptRecord:
    """How an attempt between two instants may have gone."""
    span = ended_s - admitted_s
    marks = [
        min(admitted_s + span * share, ended_s) for share in sorted(draw(st.lists(shares, min_size=3, max_size=3)))
    ]
    started, saved, stopped = marks
    runs = draw(st.booleans())
    saves = runs and draw(st.booleans())
    stall, since = draw(shares) * draw(shares), draw(shares)
    work_ms = (to_ms(saved) - to_ms(started), to_ms(stopped) - to_ms(saved if saves else started))
    return AttemptRecord(
        gpus,
        admitted_s,
        ended_s,
        draw(st.sampled_from(Ending)),
        started if runs else None,
        saved if saves else None,
        stopped if draw(st.booleans()) else None,
        int(work_ms[0] * stall) / 1000 if saves else 0.0,
        int(work_ms[1] * since) / 1000 if runs else 0.0,
        draw(st.sampled_from(Cause)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@dataclass
class History:
    """Calls of a ledger by time, and who ran when."""

    calls: list[tuple[float, str, tuple[Any, ...]]] = field(default_factory=list)
    ran: list[tuple[Account, AttemptRecord]] = field(default_factory=list)
    running: list[tuple[float, Account, AttemptRecord]] = field(default_factory=list)
    ended_s: float = 0.0


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A cluster whose GPUs are in exactly one place at any time."""
    made, at_s = History(), draw(st.sampled_from([0.0, 1.7e9 + 1 / 3]))
    free: dict[str, set[int]] = {f: set() for f in FLAVORS}
    out: list[tuple[str, Line, set[int]]] = []
    running: list[tuple[str, str, float, set[int]]] = []
    installed = dict.fromkeys(FLAVORS, 0)

    def call(what: str, *values: Any) -> None:
        made.calls.append((at_s, what, values))

    def say_free(flavor: str) -> None:
        call("free", at_s, flavor, len(free[flavor]), draw(st.sampled_from(BLOCKERS)))

    def grow(flavor: str, gpus: int) -> None:
        free[flavor] |= set(range(installed[flavor], installed[flavor] + gpus))
        installed[flavor] += gpus
        call("install", at_s, flavor, installed[flavor])
        say_free(flavor)

    for flavor in FLAVORS:
        grow(flavor, draw(st.integers(0, 8)))
    for _ in range(draw(st.integers(0, 14))):
        at_s += draw(pauses)
        t, flavor = at_s, draw(st.sampled_from(FLAVORS))
        kind = draw(st.sampled_from(["admit", "admit", "end", "out", "back", "grow", "why"]))
        some = {g for g in free[flavor] if draw(st.booleans())}
        if kind == "admit" and some:
            queue = draw(st.sampled_from(["a", "b"]))
            free[flavor] -= some
            running.append((flavor, queue, t, some))
            call("admit", t, flavor, len(some))
        elif kind == "end" and running:
            flavor, queue, since, gpus = running.pop(draw(st.integers(0, len(running) - 1)))
            free[flavor] |= gpus
            account, record = Account(flavor, queue), draw(attempts(len(gpus), since, t))
            made.ran.append((account, record))
            call("charge", account, record)
        elif kind == "out" and some:
            line = draw(st.sampled_from(sorted(OUT)))
            free[flavor] -= some
            out.append((flavor, line, some))
            call("put_out", t, flavor, line, len(some))
        elif kind == "back" and out:
            flavor, line, gpus = out.pop(draw(st.integers(0, len(out) - 1)))
            free[flavor] |= gpus
            call("put_out", t, flavor, line, -len(gpus))
        elif kind == "grow":
            grow(flavor, draw(st.integers(0, 4)))
        say_free(flavor)
    made.ended_s = at_s + draw(pauses)
    for flavor, queue, since, gpus in running:
        made.running.append((since, Account(flavor, queue), draw(attempts(len(gpus), since, made.ended_s))))
    return made


def play(history: History, since_s: float, until_s: float, counted_until_s: float | None = None) -> Lines:
    """The lines of an interval; what is not over at `until_s` is cut off there."""
    ledger = Ledger(since_s, counted_until_s)
    for at_s, call, values in history.calls:
        if at_s <= until_s:
            getattr(ledger, call)(*values)
    held: dict[str, int] = {}
    later = [(a, r) for a, r in history.ran if r.admitted_s <= until_s < r.ended_s]
    for account, record in later + [(a, r) for since, a, r in history.running if since <= until_s]:
        ledger.charge(account, cut(record, until_s))
        held[account.flavor] = held.get(account.flavor, 0) + record.gpus
    return ledger.close(until_s)


def cut(record: AttemptRecord, at_s: float) -> AttemptRecord:
    """What was known of an attempt at an instant."""

    def known(instant: float | None) -> float | None:
        return instant if instant is not None and instant <= at_s else None

    saved, started = known(record.saved_s), known(record.started_s)
    kept = saved is not None
    return replace(
        record,
        ended_s=at_s,
        ending=Ending.RUNNING,
        started_s=started,
        saved_s=saved,
        stopped_s=known(record.stopped_s),
        stalled_s=record.stalled_s if kept else 0.0,
        stalled_since_s=0.0,
    )


def holds(lines: Lines) -> None:
    """No negative line, and for every flavor the lines sum to what was installed."""
    assert min(lines.amounts.values(), default=0) >= 0
    sums = lines.by("flavor")
    assert all(sums.get((f,), 0) == n for f, n in lines.installed_gpu_ms.items())
    assert sum(lines.installed_gpu_ms.values()) == lines.total_gpu_ms == sum(lines.by_line().values())


@settings(deadline=None, max_examples=100)
@given(histories())
def test_the_lines_sum_to_installed_gpus_times_time(history: History) -> None:
    holds(play(history, 0.0, history.ended_s))


@settings(deadline=None, max_examples=100)
@given(histories(), shares, shares)
def test_a_history_cut_at_any_time_keeps_the_sum(history: History, until: float, since: float) -> None:
    first_s = history.calls[0][0]
    span = history.ended_s - first_s
    until_s = first_s + span * until
    holds(play(history, first_s + span * until * since, until_s))


@settings(deadline=None, max_examples=100)
@given(histories(), shares)
def test_an_interval_split_in_two_gives_the_same_lines(history: History, share: float) -> None:
    first_s, last_s = history.calls[0][0], history.ended_s
    middle_s = first_s + (last_s - first_s) * share
    whole = play(history, first_s, last_s)
    parts = [play(history, first_s, last_s, middle_s), play(history, middle_s, last_s)]
    for part in parts:
        holds(part)
    assert merge_lines(parts) == whole


@settings(deadline=None, max_examples=200)
@given(st.data(), st.integers(0, 64), st.floats(0.0, 1e6), st.floats(0.0, 1e5), st.lists(shares, max_size=4))
def test_an_attempt_split_anywhere_gives_the_same_lines(
    data: st.DataObject, gpus: int, admitted_s: float, span: float, cuts: list[float]
) -> None:
    record = data.draw(attempts(gpus, admitted_s, admitted_s + span))
    whole, parts = [0] * len(ENTRIES), [0] * len(ENTRIES)
    charge_attempt(whole, record)
    marks = sorted(to_ms(admitted_s + span * c) for c in [0.0, 1.0, *cuts])
    for low, high in pairwise(marks):
        charge_part(parts, record, low, high)
    assert parts == whole
    assert min(whole) >= 0
    assert sum(whole) == gpus * (to_ms(admitted_s + span) - to_ms(admitted_s))


@settings(deadline=None, max_examples=100)
@given(histories(), st.integers(1, 5), st.data())
def test_a_gpu_counted_twice_never_passes(history: History, more: int, data: st.DataObject) -> None:
    at_s = history.calls[0][0]
    flavor = data.draw(st.sampled_from(FLAVORS))
    history.calls.insert(0, (at_s, "install", (at_s, flavor, 0)))
    history.calls.insert(1, (at_s, "admit", (at_s, flavor, more)))
    if to_ms(history.ended_s) > to_ms(at_s):
        with pytest.raises(Unbalanced):
            play(history, 0.0, history.ended_s)
