"""Events of a simulation → what each node did over time, in cells of equal length, as they come.

GPUs of a gang are drawn evenly over its nodes. What of an attempt was lost follows from its checkpoints, as in the
ledger; the ledger's own sums, not this picture, are what is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.ledger.attempts import Ending
from clusterwright.ledger.lines import Line
from clusterwright.model.jobs import JobId
from clusterwright.queueing.state import State
from clusterwright.report.replications import Picture
from clusterwright.simulate.attempts import Attempt, saved_ms
from clusterwright.simulate.happenings import Event, Happening
from clusterwright.simulate.jobs import Kind
from clusterwright.simulate.scenarios import Scenario

#: Columns and, at most, rows of the picture; more nodes share rows.
COLUMNS: Final = 120
MOST_ROWS: Final = 144
_LINES: Final = tuple(Line)
_AT: Final = {line: place for place, line in enumerate(_LINES)}
#: Work without an end, for what is saved of an attempt that was cut off.
_LONG_MS: Final = 2**60
_IDLE: Final = (Line.FREE.value, Line.FREE_WITH_DEMAND.value, Line.RESERVED.value)
#: Endings whose work all counts; of the others what was saved.
_KEPT: Final = frozenset({Ending.COMPLETED.value, Ending.RUNNING.value})
#: GPUs below which nothing is left of a node, because parts of a gang are fractions.
_NOTHING: Final = 1e-9
_ABOUT_NODES: Final = frozenset({Happening.OUT, Happening.BACK, Happening.SPARE_IN, Happening.INSTALLED})


@dataclass(slots=True)
class _Held:
    """An attempt that holds GPUs; `gpus` on each of its nodes."""

    kind: Kind
    nodes: tuple[int, ...]
    gpus: float
    since_ms: int
    starting_ms: int
    stopped_ms: int | None = None


class Painter:
    """Watches a simulation and paints what its nodes do.

    Args:
        domains: of every node, by place.
        end_s: of the simulation as planned.
    """

    def __init__(self, scenario: Scenario, domains: tuple[str, ...], end_s: float) -> None:
        self._jobs, self._nodes, self._domains = scenario.jobs, scenario.nodes, domains
        self._end_ms = max(1, round(end_s * 1000))
        self._column_ms = -(-self._end_ms // COLUMNS)
        self._rows = _rows(domains)
        self._row_of = {place: row for row, places in enumerate(self._rows) for place in places}
        self._index = {node.name: place for place, node in enumerate(scenario.nodes)}
        self._sums = np.zeros((len(self._rows), COLUMNS, len(_LINES)))
        absent, spares = {n for d in scenario.deliveries for n in d.nodes}, set(scenario.spares)
        self._line: list[Line | None] = [
            None if n in absent else Line.RESERVED if n in spares else Line.FREE for n in range(len(scenario.nodes))
        ]
        self._unheld: list[float] = [node.gpus for node in scenario.nodes]
        self._since_ms = [0] * len(scenario.nodes)
        self._runs: dict[int, _Held] = {}
        self._relieved: set[int] = set()
        self._began: set[int] = set()
        self._saved: set[int] = set()
        self._waiting: set[int] = set()
        self._unsure: set[int] = set()
        self._asked_ms = 0
        self._demand_ms = np.zeros(COLUMNS)

    def watch(self, event: Event, state: State) -> None:
        """Take an event into account; `state` tells who waits again."""
        now_ms, what = event.at_ms, event.what
        if now_ms != self._asked_ms:
            self._waiting |= {job for job in self._unsure if JobId(str(job)) in state.waiting}
            self._unsure.clear()
            if self._waiting:
                self._spread(self._demand_ms, self._asked_ms, now_ms, 1.0)
            self._asked_ms = now_ms
        if what is Happening.SUBMITTED:
            self._waiting.add(event.job)
        elif what is Happening.STARTED:
            self._start(event)
        elif what is Happening.ENDED:
            self._end(event)
        elif what is Happening.LOADED:
            run = self._runs[event.job]
            run.starting_ms += now_ms - run.since_ms
        elif what is Happening.INTERRUPTED:
            run = self._runs[event.job]
            run.stopped_ms = now_ms if run.stopped_ms is None else run.stopped_ms
        elif what in _ABOUT_NODES:
            for name in event.nodes:
                self._turn(self._index[name], now_ms, event)

    def finish(self, ended_s: float) -> Picture:
        """The picture up to the end."""
        end_ms = min(round(ended_s * 1000), self._end_ms)
        for job, run in self._runs.items():
            self._charge(job, run, end_ms, Ending.RUNNING.value)
        for place in range(len(self._nodes)):
            self._settle(place, end_ms)
        if self._waiting:
            self._spread(self._demand_ms, self._asked_ms, end_ms, 1.0)
        wanted = np.minimum(1.0, self._demand_ms / self._column_ms)
        free = self._sums[:, :, _AT[Line.FREE]].copy()
        self._sums[:, :, _AT[Line.FREE_WITH_DEMAND]] += free * wanted
        self._sums[:, :, _AT[Line.FREE]] = free * (1 - wanted)
        used = -(-end_ms // self._column_ms)
        rows = tuple(self._name(places) for places in self._rows)
        cells = tuple(tuple(_cell(self._sums[r, c]) for c in range(used)) for r in range(len(rows)))
        return Picture(rows, cells, self._column_ms / 1000, end_ms / 1000)

    def _start(self, event: Event) -> None:
        kind = self._jobs.kinds[self._jobs.kind[event.job]]
        places = tuple(self._index[name] for name in event.nodes)
        starting_ms = kind.restart_ms if event.job in self._began else kind.starting_ms
        run = _Held(kind, places, event.gpus / len(places), event.at_ms, starting_ms)
        for place in places:
            self._settle(place, event.at_ms)
            self._unheld[place] -= run.gpus
        self._runs[event.job] = run
        self._began.add(event.job)
        self._waiting.discard(event.job)
        self._unsure.discard(event.job)

    def _end(self, event: Event) -> None:
        run = self._runs.pop(event.job)
        for place in run.nodes:
            self._settle(place, event.at_ms)
            self._unheld[place] += run.gpus
        self._charge(event.job, run, event.at_ms, event.detail)
        self._unsure.add(event.job)

    def _charge(self, job: int, run: _Held, end_ms: int, ending: str) -> None:
        """Lay an attempt's time out: starting, kept, not kept, held idle."""
        stopped_ms = end_ms if run.stopped_ms is None else run.stopped_ms
        begun_ms = min(run.since_ms + run.starting_ms, stopped_ms)
        kept_ms, rest = stopped_ms, Line.LOST
        if ending not in _KEPT:
            attempt = Attempt(_LONG_MS, run.kind.checkpoints, run.starting_ms)
            kept_ms = min(stopped_ms, begun_ms + saved_ms(attempt, stopped_ms - run.since_ms))
            if kept_ms > begun_ms:
                self._saved.add(job)
            if ending == Ending.PREEMPTED.value:
                rest = Line.PREEMPTED
            elif ending.startswith(Ending.FAILED.value) and job not in self._saved:
                rest = Line.FAILED
        for line, since_ms, until_ms in (
            (Line.STARTING, run.since_ms, begun_ms),
            (Line.PRODUCTIVE, begun_ms, kept_ms),
            (rest, kept_ms, stopped_ms),
            (Line.HELD_IDLE, stopped_ms, end_ms),
        ):
            for place in run.nodes if until_ms > since_ms else ():
                self._add(place, line, since_ms, until_ms, run.gpus)

    def _turn(self, place: int, now_ms: int, event: Event) -> None:
        """A node is out of use, back, or new."""
        self._settle(place, now_ms)
        if event.what is Happening.OUT:
            word = event.detail.partition(":")[0]
            self._line[place] = next((line for line in Line if line.value == word), Line.UNKNOWN)
        elif place in self._relieved and event.what is Happening.BACK:
            self._relieved.discard(place)
            self._line[place] = Line.RESERVED
        else:
            self._line[place] = Line.FREE
        if event.what is Happening.SPARE_IN:
            self._relieved.add(self._index[event.detail.removeprefix("for ")])

    def _settle(self, place: int, now_ms: int) -> None:
        """What nobody held on a node until now."""
        line = self._line[place]
        if line is not None and self._unheld[place] > _NOTHING:
            self._add(place, line, self._since_ms[place], now_ms, self._unheld[place])
        self._since_ms[place] = now_ms

    def _add(self, place: int, line: Line, since_ms: int, until_ms: int, gpus: float) -> None:
        self._spread(self._sums[self._row_of[place], :, _AT[line]], since_ms, until_ms, gpus)

    def _spread(self, columns: NDArray[np.float64], since_ms: int, until_ms: int, weight: float) -> None:
        """Add weight × ms to every column that the interval touches."""
        until_ms = min(until_ms, self._end_ms)
        first, last = since_ms // self._column_ms, (until_ms - 1) // self._column_ms
        for column in range(first, last + 1):
            low = max(since_ms, column * self._column_ms)
            columns[column] += weight * (min(until_ms, (column + 1) * self._column_ms) - low)

    def _name(self, places: list[int]) -> tuple[str, str, int]:
        names = self._nodes[places[0]].name, self._nodes[places[-1]].name
        name = names[0] if len(places) == 1 else f"{names[0]} … {names[1]}"
        return self._domains[places[0]], name, len(places)


def _rows(domains: tuple[str, ...]) -> list[list[int]]:
    """Nodes by row: each its own, or as many as it takes to have at most `MOST_ROWS`; none is of two domains."""
    by_domain: dict[str, list[int]] = {}
    for place, domain in enumerate(domains):
        by_domain.setdefault(domain, []).append(place)
    each = 1
    while sum(-(-len(p) // each) for p in by_domain.values()) > max(MOST_ROWS, len(by_domain)):
        each += 1
    return [places[at : at + each] for places in by_domain.values() for at in range(0, len(places), each)]


def _cell(sums: NDArray[np.float64]) -> tuple[tuple[str, float], ...]:
    """GPU-seconds by line, largest first; of equal ones what nobody uses comes last."""
    found = [(line.value, float(ms) / 1000) for line, ms in zip(_LINES, sums, strict=True) if ms > 0.5]
    return tuple(sorted(found, key=lambda f: (-f[1], f[0] in _IDLE)))
