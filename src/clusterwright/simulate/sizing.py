"""The sizing questions by name, each answered from outcomes of scenarios that differ in one thing.

The scenarios come from here (pure values); who runs them, in how many processes and with how many replications, is up
to the caller. A sweep's answer holds for the values that were tried, and says so by naming its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Line
from clusterwright.simulate.jobs import Jobs
from clusterwright.simulate.loop import Outcome
from clusterwright.simulate.outcomes import count_jobs, efficiency, queue_times, spread
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.scenarios import Scenario, Strike
from clusterwright.simulate.statistics import measures


@dataclass(frozen=True, slots=True)
class Acceptable:
    """The answer to: up to which load, or from which capacity on, is the queue time acceptable.

    Args:
        value: the best value that was tried and acceptable; None when none was.
        next_value: the nearest value that was tried and not acceptable; None when all were.
        p95_s: the 95th percentile of the queue time by value that was tried; infinite where jobs never started.
    """

    value: float | None
    next_value: float | None
    p95_s: Mapping[float, float]


def longest_acceptable_queue_time(
    outcomes: Mapping[float, Sequence[Outcome]], at_most_s: float, swept: Literal["load", "capacity"]
) -> Acceptable:
    """The largest load, or smallest capacity, at which 95 % of the jobs start within `at_most_s`.

    A value is acceptable only if every value on its easier side is, so that chance in one point is not an answer.

    Args:
        outcomes: replications by the value of the swept parameter.
    """
    p95_s = {value: _p95_s(parts) for value, parts in outcomes.items()}
    from_easy = sorted(p95_s, reverse=swept == "capacity")
    best, beyond = None, None
    for value in from_easy:
        if p95_s[value] > at_most_s:
            beyond = value
            break
        best = value
    return Acceptable(best, beyond, p95_s)


def _p95_s(parts: Sequence[Outcome]) -> float:
    """Mean over replications; infinite as soon as more than 5 % of the jobs of one never started."""
    found = []
    for outcome in parts:
        counts, waits = count_jobs(outcome), spread(outcome, queue_times(outcome))
        if waits.p95 is None or counts.never_started > 0.05 * counts.submitted:
            return float("inf")
        found.append(waits.p95)
    return sum(found) / len(found) if found else float("inf")


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure in two futures; `change` is the second minus the first, None unless both have it."""

    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """What the second future adds."""
        return None if self.before is None or self.after is None else self.after - self.before


def compare_futures(before: Outcome, after: Outcome) -> dict[str, Difference]:
    """Two futures side by side, by measure; with one seed they have the same arrivals and the same bad luck."""
    ours, theirs = measures(before), measures(after)
    return {name: Difference(ours.get(name), theirs.get(name)) for name in ours}


def with_node_failing(scenario: Scenario, node: int, at_s: float, care: Care) -> Scenario:
    """The same scenario in which one node fails at an instant.

    Args:
        care: how long it takes to notice and to repair it.
    """
    strike = Strike(at_s, (node,))
    faults = scenario.faults
    care_of = {**faults.care_of, strike.name: care}
    return replace(scenario, faults=replace(faults, care_of=care_of, strikes=(*faults.strikes, strike)))


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """What one failing node costs.

    Args:
        lost_gpu_h: work lost, starts repeated and GPUs held idle that there would not have been.
        out_gpu_h: of nodes out of use.
        later_s: how much later the last job ended that ended in both futures; None without one.
    """

    lost_gpu_h: float
    out_gpu_h: float
    later_s: float | None
    differences: Mapping[str, Difference]


def one_node_failing(without: Outcome, failing: Outcome) -> NodeFailure:
    """A future in which one node fails against the same future in which it does not."""

    def more(*lines: Line) -> float:
        return sum(failing.lines.of(line) - without.lines.of(line) for line in lines) / GPU_MS_PER_GPU_H

    both = (without.results.end_ms >= 0) & (failing.results.end_ms >= 0)
    later = failing.results.end_ms[both].max(initial=0) - without.results.end_ms[both].max(initial=0)
    return NodeFailure(
        more(Line.LOST, Line.FAILED, Line.STARTING, Line.HELD_IDLE),
        more(Line.UNHEALTHY, Line.DRAINED),
        float(later) / 1000.0 if both.any() else None,
        compare_futures(without, failing),
    )


def on_another_flavor(scenario: Scenario, flavors: Sequence[str]) -> Scenario:
    """The same jobs on other GPU classes, tried in this order; how fast they are there is not changed.

    Raises:
        ValueError: when the cluster has none of a flavor.
    """
    known = {n.flavor for n in scenario.nodes}
    if unknown := [f for f in flavors if f not in known]:
        raise ValueError(f"no node is of flavor '{unknown[0]}'; flavors are {', '.join(sorted(known))}")
    kinds = tuple(replace(k, demand=replace(k.demand, flavors=tuple(flavors))) for k in scenario.jobs.kinds)
    return replace(scenario, jobs=replace(scenario.jobs, kinds=kinds))


def with_lead_time(scenario: Scenario, lead_s: float) -> Scenario:
    """The same expansion, its deliveries planned `lead_s` after instant 0."""
    return replace(scenario, deliveries=tuple(replace(d, planned_s=lead_s) for d in scenario.deliveries))


def longest_lead_time(outcomes: Mapping[float, Sequence[Outcome]], at_most_s: float) -> Acceptable:
    """How late an expansion may arrive so that 95 % of the jobs still start within `at_most_s`.

    Args:
        outcomes: replications by lead time in s, of scenarios from `with_lead_time`.
    """
    return longest_acceptable_queue_time(outcomes, at_most_s, "load")


def with_load(scenario: Scenario, factor: float) -> Scenario:
    """The same jobs, arriving `factor` times as fast.

    Raises:
        ValueError: if the factor is not above 0.
    """
    if not factor > 0:
        raise ValueError(f"a load is above 0, not {factor}")
    jobs: Jobs = scenario.jobs
    return replace(
        scenario, jobs=replace(jobs, submit_ms=(jobs.submit_ms / factor).round().astype(jobs.submit_ms.dtype))
    )


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Useful against allocated utilisation, shares of all installed GPU time, and where the difference went."""

    useful: float | None
    allocated: float | None
    difference_by_line: Mapping[Line, float]


def useful_against_allocated(outcome: Outcome) -> Utilisation:
    """What allocation hides: lines that attempts hold and that are no work that was kept."""
    used = efficiency(outcome)
    lines = (Line.STARTING, Line.CHECKPOINT, Line.HELD_IDLE, Line.LOST, Line.FAILED, Line.PREEMPTED)
    shares = {line: share for line in lines if (share := outcome.lines.share(line))}
    return Utilisation(used.useful, used.allocated, shares)
