"""Which node is bad, from tests over pairs or groups of nodes, and what to run next where that is not known yet.

Three things are looked at: how a pair compares with the other pairs, whether a group reaches a bound where one is
given, and whether its results were right. A node that differs from its peers in a test of its own is named too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, Literal

from clusterwright.judging.alignment import Alike, align
from clusterwright.judging.conditions import magnitude
from clusterwright.judging.derivations.facts import same_host
from clusterwright.judging.outliers import Outlier, find_outliers
from clusterwright.judging.searching import (
    PairFindings,
    Slow,
    Step,
    next_pairs,
    next_step,
    pair_rounds,
    read_pairs,
)
from clusterwright.lib.quantities import Powers, Quantity
from clusterwright.model.evidence import Evidence, Reading
from clusterwright.model.metrics import METRICS

By = Literal["pairs", "halves"]
Group = frozenset[str]
#: What is compared over nodes, in the order in which it is chosen when several were measured as often.
SPEEDS: Final = ("busbw", "gpudirect_rdma_write", "rdma_write", "rdma_read", "rdma_latency", "algbw")
_ERRORS: Final = "collective_errors"
#: What is asked of a group beside its speed.
RIGHT: Final = "right results"
#: Conditions by which two runs may differ and still be compared: the size is chosen, the ranks follow from the nodes.
_CHOSEN: Final = frozenset({"message_size", "in_place", "ranks"})


@dataclass(frozen=True, slots=True)
class Bound:
    """What a group must reach: at least for what is better when it is more, at most otherwise.

    Args:
        text: as given.
    """

    value: Quantity
    text: str

    def holds(self, metric: str, value: float) -> bool:
        """Whether a value in base units is on its good side."""
        return value >= self.value.value if METRICS[metric].better == "more" else value <= self.value.value

    def tell(self, metric: str) -> str:
        """What is asked of the metric, in words."""
        return f"{metric} {'at least' if METRICS[metric].better == 'more' else 'at most'} {self.text}"


@dataclass(frozen=True, slots=True)
class Table:
    """One metric under one set of conditions over groups of nodes.

    Args:
        size: message size as printed, "" when there is none.
        results: group → its values in base units, one per run.
        powers: unit of the values.
    """

    metric: str
    conditions: tuple[tuple[str, str], ...]
    size: str
    results: Mapping[Group, tuple[float, ...]]
    powers: Powers

    @property
    def pairs(self) -> dict[tuple[str, str], float]:
        """The groups of two, each with the median of its runs."""
        named = {tuple(sorted(group)): median(values) for group, values in self.results.items() if len(group) == 2}
        return {(pair[0], pair[1]): value for pair, value in named.items()}

    def quantity(self, value: float) -> Quantity:
        """A value with its unit."""
        return Quantity(value, self.powers)


@dataclass(frozen=True, slots=True)
class Compared:
    """The pairs of a table beside each other."""

    table: Table
    findings: PairFindings


@dataclass(frozen=True, slots=True)
class Tried:
    """Groups that passed or failed, and where the search among them stands.

    Args:
        what: that was asked of each group.
    """

    what: str
    results: Mapping[Group, bool]
    step: Step


@dataclass(frozen=True, slots=True)
class Found:
    """What the results say.

    Args:
        alone: nodes that differ from their peers in tests of one node, on the bad side.
        runs: what to run next, on disjoint nodes; () when nothing is left to find out.
        lacking: groups whose run gave no value, with the reason.
        unnamed: outputs that name no hosts; strangers: hosts of results that are not among the nodes.
        records: results that were looked at.
    """

    nodes: tuple[str, ...]
    by: By
    compared: tuple[Compared, ...] = ()
    tried: tuple[Tried, ...] = ()
    alone: tuple[Outlier, ...] = ()
    runs: tuple[tuple[str, ...], ...] = ()
    lacking: tuple[tuple[Group, str], ...] = ()
    unnamed: int = 0
    strangers: tuple[str, ...] = ()
    records: int = 0
    bad: tuple[str, ...] = field(default=())

    @property
    def bad_paths(self) -> tuple[Slow, ...]:
        """Pairs of good nodes that are slow."""
        return tuple(slow for c in self.compared for slow in c.findings.bad_pairs)

    @property
    def conflicts(self) -> tuple[str, ...]:
        """What fails and is the fault of no single node."""
        return tuple(dict.fromkeys(t.step.conflict for t in self.tried if t.step.conflict))

    @property
    def exit_code(self) -> int:
        """1 when a node, a path or a group is bad; 3 when more runs are needed; else 0."""
        if self.bad or self.bad_paths or self.conflicts:
            return 1
        return 3 if self.runs or not self.records else 0


def plan_search(nodes: Sequence[str], by: By) -> Found:
    """What to run before anything is known: all rounds of pairs are in `rounds_of`, the first test of halves is all."""
    first = pair_rounds(nodes)[:1] if by == "pairs" else ()
    runs = first[0] if first else (tuple(nodes),)
    return Found(tuple(nodes), by, runs=tuple(runs))


def find_bad_nodes(
    nodes: Sequence[str],
    evidence: Iterable[Evidence],
    *,
    by: By = "pairs",
    metric: str = "",
    bound: Bound | None = None,
) -> Found:
    """Bad nodes and paths among the nodes, or what to run next.

    Args:
        nodes: at least two.
        evidence: of tests over the nodes; what it says about others is left out.
        metric: that is compared; all that were measured as often as the most frequent one when "".
        bound: that every group must meet; needed for halves.
    """
    records = [record for record in evidence if record.devices == "real" and record.basis == "measured"]
    mine, unnamed, strangers = _about(nodes, records)
    if not mine:
        return replace(plan_search(nodes, by), unnamed=unnamed, strangers=strangers)
    tables = tabulate(mine, metric)
    compared = tuple(Compared(t, read_pairs(nodes, t.pairs, better=METRICS[t.metric].better)) for t in tables)
    if by == "halves":
        compared = ()
    tried = tuple(_try(nodes, tables, mine, bound))
    alone = tuple(o for g in find_outliers(_single(mine)) for o in g.outliers if o.worse)
    bad = {n for c in compared for slow in c.findings.bad_nodes for n in slow.nodes}
    bad |= {n for t in tried for n in t.step.bad} | {o.node for o in alone}
    found = Found(
        tuple(nodes),
        by,
        compared,
        tried,
        alone,
        (),
        tuple(_lacking(mine, tables)),
        unnamed,
        strangers,
        len(mine),
        tuple(n for n in nodes if n in bad),
    )
    return replace(found, runs=_next_runs(found))


def _about(nodes: Sequence[str], records: Sequence[Evidence]) -> tuple[list[Evidence], int, tuple[str, ...]]:
    """(records whose readings are of the nodes alone, how many name no host, other hosts)."""
    known = set(nodes)
    mine, unnamed, strangers = [], 0, dict[str, None]()
    for record in records:
        readings = []
        for reading in record.readings:
            hosts = tuple(dict.fromkeys(same_host(n, nodes) for n in reading.nodes or record.nodes))
            strangers.update(dict.fromkeys(n for n in hosts if n not in known))
            if hosts and known.issuperset(hosts):
                readings.append(replace(reading, nodes=hosts))
        if readings:
            mine.append(replace(record, readings=tuple(readings)))
        elif record.readings and not any(r.nodes or record.nodes for r in record.readings):
            unnamed += 1
    return mine, unnamed, tuple(strangers)


def tabulate(records: Iterable[Evidence], metric: str = "") -> tuple[Table, ...]:
    """The results over several nodes, most groups first; of each table the largest message that most groups have.

    Of one run the worse of in and out of place counts. Without a metric, bus bandwidth stands for algorithm bandwidth.
    """
    found: dict[Alike, dict[str, dict[Group, dict[str, list[Quantity]]]]] = {}
    for record in records:
        for reading in record.readings:
            if reading.metric not in ((metric,) if metric else SPEEDS) or not isinstance(reading.value, Quantity):
                continue
            if len(reading.nodes) > 1:
                size = dict(reading.conditions).get("message_size", "")
                groups = found.setdefault(_kind_of(reading), {}).setdefault(size, {})
                groups.setdefault(frozenset(reading.nodes), {}).setdefault(record.id, []).append(reading.value)
    tables = [_largest(alike, sizes) for alike, sizes in found.items()]
    if not metric and any(t.metric == "busbw" for t in tables):
        tables = [t for t in tables if t.metric != "algbw"]
    return tuple(sorted(tables, key=lambda t: (-len(t.results), SPEEDS.index(t.metric) if t.metric in SPEEDS else 99)))


def _kind_of(reading: Reading) -> Alike:
    """What is compared: the same load on each node, whatever the message and the number of nodes."""
    kept = [c for c in reading.conditions if c[0] not in _CHOSEN]
    ranks = dict(reading.conditions).get("ranks", "")
    if ranks.isdecimal():
        kept.append(("ranks_per_node", f"{int(ranks) / len(reading.nodes):g}"))
    return align(replace(reading, conditions=tuple(kept)))


def _largest(alike: Alike, sizes: Mapping[str, Mapping[Group, Mapping[str, list[Quantity]]]]) -> Table:
    size = max(sizes, key=lambda s: (len(sizes[s]), magnitude(s, "bytes") or 0.0))
    worst = min if METRICS[alike.metric].better == "more" else max
    results = {
        group: tuple(worst(v.value for v in values) for values in runs.values()) for group, runs in sizes[size].items()
    }
    first = next(iter(next(iter(sizes[size].values())).values()))[0]
    return Table(alike.metric, alike.conditions, size, results, first.powers)


def _try(
    nodes: Sequence[str], tables: Sequence[Table], records: Sequence[Evidence], bound: Bound | None
) -> Iterator[Tried]:
    """The tables against the bound, then whether results were right; one failing run makes a group fail."""
    if bound is not None:
        for table in tables:
            if table.powers == bound.value.powers:
                results = {g: all(bound.holds(table.metric, v) for v in values) for g, values in table.results.items()}
                yield Tried(bound.tell(table.metric), results, next_step(nodes, results))
    right: dict[Group, bool] = {}
    for record in records:
        for reading in record.readings:
            if reading.metric == _ERRORS and len(reading.nodes) > 1 and isinstance(reading.value, float):
                group = frozenset(reading.nodes)
                right[group] = right.get(group, True) and reading.value == 0
    if not all(right.values()):
        yield Tried(RIGHT, right, next_step(nodes, right))


def _single(records: Iterable[Evidence]) -> list[Evidence]:
    return [
        replace(record, readings=tuple(r for r in record.readings if len(r.nodes) == 1))
        for record in records
        if any(len(r.nodes) == 1 for r in record.readings)
    ]


def _lacking(records: Iterable[Evidence], tables: Iterable[Table]) -> Iterator[tuple[Group, str]]:
    """Groups of which no run gave a value."""
    valued = {group for table in tables for group in table.results}
    told: set[Group] = set()
    for record in records:
        for reading in record.readings:
            group = frozenset(reading.nodes)
            empty = reading.value is None and reading.metric in SPEEDS
            if empty and len(group) > 1 and group not in valued and group not in told:
                told.add(group)
                yield group, reading.unreadable


def _next_runs(found: Found) -> tuple[tuple[str, ...], ...]:
    """The search that failed first says what to run; without one, pairs for the nodes that are still open."""
    for tried in found.tried:
        if tried.step.tests:
            return tried.step.tests
    if any(t.what != RIGHT for t in found.tried):
        return ()
    if found.by == "halves":
        return (found.nodes,)
    if not found.compared:
        return pair_rounds(found.nodes)[0]
    first = found.compared[0]
    tried_pairs = [frozenset(pair) for pair in first.table.pairs]
    candidates = [n for n in found.nodes if n not in found.bad]
    return next_pairs(candidates, tried_pairs, [n for n in first.findings.open if n not in found.bad])
