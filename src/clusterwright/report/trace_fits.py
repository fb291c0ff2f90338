"""Fitted distributions as text: what was chosen, how far it is from the data, and from what else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.report.traces import span, table
from clusterwright.traces.distributions import FAR, PROBABILITIES, Fitted
from clusterwright.traces.fits import Fit, RunTimes

_MOST_KINDS: Final = 12


def render_fit(fit: Fit) -> str:
    """The fit for a terminal."""
    return "\n".join([*_head(fit), *_arrivals(fit), *_run_times(fit), *_kinds(fit), *_limits(fit)])


def _head(fit: Fit) -> Iterator[str]:
    left = f", {fit.left_out:,} left out (never ran, or GPUs or run time not recorded)" if fit.left_out else ""
    yield f"{fit.source}: fitted to {fit.jobs:,} jobs in {fit.days:,.1f} d{left}"


def _arrivals(fit: Fit) -> Iterator[str]:
    arrivals = fit.arrivals
    busiest, mean = max(arrivals.hourly), sum(arrivals.hourly) / len(arrivals.hourly)
    hours = "the rate of each hour of the week" if len(arrivals.hourly) > 1 else "one rate for all hours"
    zone = f" in {fit.zone}" if fit.zone else ""
    yield ""
    yield f"  arrivals: {hours}{zone}; mean {mean:.3g}, busiest {busiest:.3g} jobs/h"
    poisson = arrivals.chosen.family == "exponential" and not arrivals.zero_share
    name = "Poisson" if poisson else f"renewals, {arrivals.chosen.family}"
    yield (
        f"  {name}: CV {arrivals.cv:.2f} once the hours are taken out, {arrivals.zero_share:.1%} at once; "
        f"KS {_distances(arrivals.chosen, *arrivals.others)}"
    )


def _run_times(fit: Fit) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("GPUs", "jobs", "chosen", "KS", "median", "mean", "others by KS")]
    for of_class in fit.run_times:
        chosen = of_class.chosen
        typical = (span(chosen.quantile(0.5)), span(chosen.mean))
        figures = (f"{of_class.jobs:,}", chosen.family, f"{chosen.distance:.3f}", *typical)
        rows.append((_size(of_class), *figures, _distances(*of_class.others)))
    yield ""
    yield "  run times by size"
    yield from table(rows)
    yield f"  empirical where every other family is farther than {FAR:g} (largest difference of probabilities)"


def _size(of_class: RunTimes) -> str:
    low, high = of_class.gpus
    size = f"{low}+" if high < 0 else f"{low}" if low == high else f"{low}-{high}"
    notes = [f"{of_class.censored:,} still ran"] if of_class.censored else []
    notes += [f"{of_class.zero_share:.1%} ran 0 s"] if of_class.zero_share else []
    return f"{size} ({', '.join(notes)})" if notes else size


def _kinds(fit: Fit) -> Iterator[str]:
    ranked = sorted(fit.kinds, key=lambda kind: -kind.share)
    rows: list[tuple[str, ...]] = [("kinds of jobs", "share", "GPUs", "GPU type")]
    for kind in ranked[:_MOST_KINDS]:
        gpus = f"{kind.gpus}" if kind.gpu_milli == 1000 else f"{kind.gpus} × {kind.gpu_milli / 1000:g}"
        rows.append((kind.queue or "any queue", f"{kind.share:.1%}", gpus, kind.flavor or "any"))
    yield ""
    yield from table(rows)
    if len(ranked) > _MOST_KINDS:
        rest = sum(kind.share for kind in ranked[_MOST_KINDS:])
        yield f"  {len(ranked) - _MOST_KINDS} more, {rest:.1%} of the jobs"


def _limits(fit: Fit) -> Iterator[str]:
    limits = fit.limits
    yield ""
    if not limits.ratio:
        yield f"  time limits: {limits.unlimited_share:.0%} have none, {limits.unknown_share:.0%} are not recorded"
        return
    middle, high = (limits.ratio[PROBABILITIES.index(probability)] for probability in (0.5, 0.9))
    yield (
        f"  run time ÷ limit: p50 {middle:.2f}, p90 {high:.2f}; {limits.unlimited_share:.0%} have no limit, "
        f"{limits.unknown_share:.0%} are not recorded"
    )


def _distances(*fits: Fitted) -> str:
    return ", ".join(f"{fitted.family} {fitted.distance:.3f}" for fitted in fits)
