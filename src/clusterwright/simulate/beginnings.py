"""Attempts begin: on the placement that the queue gave them they load, start and work, until something ends them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from clusterwright.ledger.lines import Account
from clusterwright.queueing.requests import Placement, Request
from clusterwright.simulate.agenda import Call, Order
from clusterwright.simulate.happenings import Happening
from clusterwright.simulate.jobs import NONE_MS, Kind
from clusterwright.simulate.loading import Load, SharedStore
from clusterwright.simulate.running import LOADING_MS, Run, Stop, Terms
from clusterwright.simulate.speeds import paces_of, wall_ms
from clusterwright.simulate.tallies import Fared
from clusterwright.simulate.world import World

_RUNNING: Final = int(Fared.RUNNING)
_ATTEMPT: Final = int(Order.ATTEMPT)


class Beginnings:
    """Begins attempts.

    Args:
        end: what the agenda calls when an attempt is over.
    """

    def __init__(self, world: World, end: Call) -> None:
        scenario = world.scenario
        jobs, rate = scenario.jobs, scenario.store_bytes_per_s
        self._world, self._end, self._agenda, self._books = world, end, world.agenda, world.books
        self._tallies, self._running, self._rotten = world.tallies, world.running, world.rotten
        self._terms = _terms_of(jobs.kinds)
        self._kind, self._fate = jobs.kind.data, jobs.fate.data
        self._limit, self._work = jobs.limit_ms.data, jobs.work_ms.data
        self._saves = scenario.policy.preemption.active
        self._store = None if rate is None else SharedStore(rate)
        self._store_s = 0.0

    def begin(self, request: Request, placement: Placement, borrowed: bool, now_ms: int) -> Run:
        """An attempt of a job begins on a placement that the queue holds for it."""
        number, tallies = int(request.id), self._tallies
        terms, fate, tries = self._terms[self._kind[number]], self._fate[number], tallies.attempts[number]
        tallies.attempts[number] = tries + 1
        tallies.waited_ms[number] += now_ms - tallies.queued_ms[number]
        tallies.fared[number] = _RUNNING
        if tries:
            starting_ms = terms.kind.restart_ms
        else:
            starting_ms, tallies.start_ms[number] = terms.kind.starting_ms, now_ms
        flavor, gpus, left = placement.flavor, placement.gpus, tallies.left_ms[number]
        resumed = left < self._work[number]
        if terms.paces and (pace := terms.paces.get(flavor)):
            left = wall_ms(left, pace)
        if gpus != terms.full_gpus:
            left = -(-left * terms.full_gpus // gpus)
        shares = self._books.take(number, placement, request.demand)
        if placement.domain is not None:
            gpus = sum(shares.values())
        run = Run(
            number, terms, fate, request, placement, borrowed, terms.sums.get(flavor) or self._open(terms, flavor),
            now_ms, gpus, left + 1 if fate else left, starting_ms, shares, resumed,
        )  # fmt: skip
        self._running[number] = run
        if self._rotten and not self._rotten.isdisjoint(shares):
            run.wrong_ms = now_ms
        if self._store is not None and terms.kind.bytes_each:
            self._load(run, now_ms)
        self._expect(run)
        return run

    def _open(self, terms: Terms, flavor: str) -> list[int]:
        kind = terms.kind
        sums = terms.sums[flavor] = self._world.ledger.sums_of(Account(flavor, kind.queue, kind.team, kind.size))
        return sums

    def _expect(self, run: Run) -> None:
        """Enter when an attempt ends if nothing happens to it, and its checkpoints where the queue asks for them."""
        ends_ms, limit_ms = run.natural_end_ms, self._limit[run.number]
        if limit_ms != NONE_MS and ends_ms > run.admitted_ms + limit_ms:
            ends_ms, run.stop = run.admitted_ms + limit_ms, Stop.LIMIT
        elif run.starting_ms == LOADING_MS:
            return
        run.due = self._agenda.enter(ends_ms, _ATTEMPT, self._end, run)
        if self._saves and run.terms.every_ms and run.starting_ms != LOADING_MS:
            self._expect_save(run, run.admitted_ms + run.starting_ms)

    def _expect_save(self, run: Run, since_ms: int) -> None:
        terms = run.terms
        durable_ms = since_ms + terms.every_ms + terms.stall_ms + terms.kind.checkpoints.write_ms
        if durable_ms < run.natural_end_ms:
            self._agenda.enter(durable_ms, _ATTEMPT, self._save, run)

    def _save(self, now_ms: int, _: int, run: Run) -> None:
        """A checkpoint is durable; the queue prefers victims that lose little."""
        if self._running.get(run.number) is run and run.stopped_ms is None:
            since_ms = now_ms - run.terms.kind.checkpoints.write_ms
            self._world.state.saved(run.request.id, since_ms / 1000)
            self._expect_save(run, since_ms)

    # -- loading ----------------------------------------------------------------------------------------------

    @property
    def loads(self) -> bool:
        """Whether attempts load from a shared store."""
        return self._store is not None

    def loaded_ms(self, now_ms: int) -> float:
        """When the next attempt has read all, not before now; infinite when none reads."""
        due_s = math.inf if self._store is None else self._store.next_s
        return math.inf if math.isinf(due_s) else max(now_ms, math.ceil(due_s * 1000))

    def load_until(self, now_ms: int) -> bool:
        """Let every start go on that has read all; whether there was one."""
        found = False
        while self._store is not None and self.loaded_ms(now_ms) <= now_ms:
            self._store_s = self._store.next_s
            number = self._store.pop()
            assert isinstance(number, int)
            self._loaded(self._running[number], now_ms)
            found = True
        return found

    def stop_loading(self, run: Run, now_s: float) -> None:
        """An attempt reads no more, if it did."""
        if self._store is not None and run.starting_ms == LOADING_MS:
            self._store.cancel(run.number, max(now_s, self._store_s))

    def _load(self, run: Run, now_ms: int) -> None:
        assert self._store is not None
        load = Load(len({node for _, node, _ in run.placement.runs}), run.kind.bytes_each)
        self._store.begin(run.number, max(now_ms / 1000, self._store_s), load, run.kind.reader_bytes_per_s)
        run.starting_ms = LOADING_MS

    def _loaded(self, run: Run, now_ms: int) -> None:
        first = self._tallies.attempts[run.number] == 1
        run.starting_ms = now_ms - run.admitted_ms + (run.kind.starting_ms if first else run.kind.restart_ms)
        self._expect(run)
        self._world.tell_job(now_ms, Happening.LOADED, run, "")


def _terms_of(kinds: Sequence[Kind]) -> list[Terms]:
    by_kind: list[dict[str, int]] = [{} for _ in kinds]
    for (place, flavor), pace in paces_of(kinds).items():
        by_kind[place][flavor] = pace
    return [Terms.of(kind, paces) for kind, paces in zip(kinds, by_kind, strict=True)]
