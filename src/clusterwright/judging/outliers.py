"""Which node differs from its peers, per metric and conditions: median and MAD, not mean and standard deviation.

One bad node among few moves a mean and inflates a standard deviation enough to hide itself; median and median absolute
deviation (MAD) do not move until half of the nodes are bad. A node's score is 0.6745·(x − median)/MAD, so that it
counts standard deviations of a normal distribution; above 3.5 the node differs. Where more than half of the nodes read
the same and MAD is 0, the mean absolute deviation takes its place, times 1.2533.
A difference below a hundredth of the median is not called one, whatever its score: benchmarks repeat no better.
Facts (counts, flags, text) have no spread: the nodes that do not say what most say differ.

Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC 1993 (modified z-score, 3.5); IBM SPSS Statistics
Algorithms, Anomaly Detection (mean absolute deviation where MAD is 0); smallest sample and smallest difference are
our defaults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from clusterwright.judging.alignment import Alike, align
from clusterwright.lib.quantities import KINDS, Quantity
from clusterwright.model.evidence import Evidence
from clusterwright.model.metrics import METRICS

#: Nodes that can be compared; with fewer, no one can say which of them is the odd one.
FEWEST: Final = 5
#: Score above which a node differs.
CUT: Final = 3.5
#: Share of the median below which a difference is none.
SMALLEST: Final = 0.01
_MAD_SCALE: Final = 0.6745
_MEAN_SCALE: Final = 1.2533
#: Plain numbers that vary like measurements.
_MEASURED_COUNTS: Final = frozenset({"gpu_temperature_margin"})

Value = Quantity | float | bool | str


@dataclass(frozen=True, slots=True)
class Outlier:
    """A node that differs from its peers.

    Args:
        value: of the node; the median of its readings where it has several.
        usual: median of the peers, or what most of them say.
        score: standard deviations away from the median by the MAD; infinite for facts.
        worse: on the bad side of its peers, as the metric is better; a node that is far better is looked at again.
    """

    node: str
    metric: str
    conditions: tuple[tuple[str, str], ...]
    value: Value
    usual: Value
    score: float
    worse: bool
    peers: int


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes whose readings were compared, or why they could not be.

    Args:
        why_not: "" when they were compared.
    """

    metric: str
    conditions: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]
    outliers: tuple[Outlier, ...] = ()
    why_not: str = ""


def find_outliers(evidence: Iterable[Evidence], *, fewest: int = FEWEST) -> tuple[Group, ...]:
    """Every metric that was read on single nodes, with the nodes that differ, worst first.

    Readings over several nodes at once say nothing about one of them and are left out.

    Args:
        fewest: nodes below which nothing is compared.
    """
    groups: dict[Alike, dict[str, list[Value]]] = {}
    for record in evidence:
        for reading in record.readings:
            nodes = reading.nodes or record.nodes
            if len(nodes) == 1 and reading.value is not None:
                groups.setdefault(align(reading), {}).setdefault(nodes[0], []).append(reading.value)
    return tuple(_compare(alike, values, fewest) for alike, values in groups.items())


def _compare(alike: Alike, values: Mapping[str, Sequence[Value]], fewest: int) -> Group:
    nodes = tuple(values)
    if len(nodes) < fewest:
        why = f"{len(nodes)} node{'s' if len(nodes) != 1 else ''}: fewer than {fewest} cannot be compared"
        return Group(alike.metric, alike.conditions, nodes, why_not=why)
    measured = METRICS[alike.metric].kind in KINDS or alike.metric in _MEASURED_COUNTS
    found = _compare_magnitudes(alike, values) if measured else _compare_facts(alike, values)
    if isinstance(found, str):
        return Group(alike.metric, alike.conditions, nodes, why_not=found)
    return Group(alike.metric, alike.conditions, nodes, tuple(sorted(found, key=lambda o: (not o.worse, -o.score))))


def _compare_magnitudes(alike: Alike, values: Mapping[str, Sequence[Value]]) -> list[Outlier] | str:
    each = {node: median(float(_bare(v)) for v in found) for node, found in values.items()}
    first = next(iter(values.values()))[0]
    centre = median(each.values())

    def like_first(number: float) -> Value:
        return Quantity(number, first.powers) if isinstance(first, Quantity) else number

    return [
        Outlier(
            node,
            alike.metric,
            alike.conditions,
            like_first(value),
            like_first(centre),
            score,
            _is_worse(alike.metric, value, centre),
            len(each) - 1,
        )
        for node, (value, score) in score_nodes(each).items()
        if score > CUT
    ]


def score_nodes(values: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Node → (its value, standard deviations from the median by the MAD; 0 for a difference too small to matter)."""
    usual = spread_of(values.values())
    return {node: (value, usual.score(value)) for node, value in values.items()}


@dataclass(frozen=True, slots=True)
class Spread:
    """How values lie around their median.

    Args:
        deviation: the standard deviation of a normal distribution with this MAD; where MAD is 0, with this mean
            absolute deviation.
    """

    median: float
    mad: float
    deviation: float

    def score(self, value: float) -> float:
        """Standard deviations away from the median; 0 for a difference too small to matter."""
        distance = abs(value - self.median)
        if distance <= SMALLEST * abs(self.median):
            return 0.0
        return distance / self.deviation if self.deviation else float("inf")


def spread_of(values: Iterable[float]) -> Spread:
    """Median and spread of at least one value."""
    known = list(values)
    centre = median(known)
    apart = [abs(value - centre) for value in known]
    mad = median(apart)
    return Spread(centre, mad, mad / _MAD_SCALE if mad else fmean(apart) * _MEAN_SCALE)


def _compare_facts(alike: Alike, values: Mapping[str, Sequence[Value]]) -> list[Outlier] | str:
    """Nodes that do not say what most say; a node that contradicts itself counts with its worst value."""
    each = {node: max(found, key=lambda v: _rank(alike.metric, v)) for node, found in values.items()}
    (usual, count), *others = Counter(each.values()).most_common()
    if 2 * count <= len(each):
        return f"no value is that of most nodes: {', '.join(str(v) for v, _ in [(usual, count), *others][:4])}"
    return [
        Outlier(
            node,
            alike.metric,
            alike.conditions,
            value,
            usual,
            float("inf"),
            _is_worse(alike.metric, _bare(value), _bare(usual)),
            len(each) - 1,
        )
        for node, value in each.items()
        if value != usual
    ]


def _bare(value: Value) -> float | bool | str:
    return value.value if isinstance(value, Quantity) else value


def _rank(metric: str, value: Value) -> float:
    if isinstance(value, str | Quantity):
        return 0.0
    return -float(value) if METRICS[metric].better == "more" else float(value)


def _is_worse(metric: str, value: float | bool | str, usual: float | bool | str) -> bool:
    """On the bad side; for an exact metric every difference is."""
    better = METRICS[metric].better
    if better == "equal" or isinstance(value, str) or isinstance(usual, str):
        return True
    return value < usual if better == "more" else value > usual
