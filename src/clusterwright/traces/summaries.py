"""What a trace holds, in numbers: its window, sizes, run times, waits, GPU-hours and arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.traces.tables import Floats, Mask, Trace

#: Quantiles that are shown.
QUANTILES: Final = (0.1, 0.5, 0.9, 0.99)
#: Lower ends of the size classes, in GPUs; a class reaches to the next one.
CLASSES: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
_HOURS: Final = 168
#: A quarter of an hour: local hours of every zone begin with one.
_SLOT_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity over jobs.

    Args:
        count: jobs in which it is recorded; the other numbers are of these, NaN without any.
        quantiles: at `QUANTILES`.
    """

    count: int
    mean: float
    quantiles: tuple[float, ...]
    largest: float


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs of one class of sizes.

    Args:
        name: `1`, `2-3`, `4-7` …, in GPUs; `not recorded`.
        gpu_hours: held by them, over all attempts; NaN where nothing of it is recorded.
    """

    name: str
    jobs: int
    gpu_hours: float
    run_s: Spread
    wait_s: Spread


@dataclass(frozen=True, slots=True)
class Summary:
    """What a trace holds.

    Args:
        window_s: as in `Trace`.
        gpu_hours: over all attempts of the jobs whose GPUs and run time are recorded; a lower bound where some ran on.
        hourly: jobs per hour by hour of the week, (168,) from Monday 0 h local time; empty without dates.
        interarrival_cv: standard deviation ÷ mean of the times between submissions; 1 is Poisson. NaN below 3 jobs.
        states, queues, accounts, users: jobs by word, the most frequent first; "" is: not recorded.
    """

    jobs: int
    window_s: tuple[float, float]
    gpu_hours: float
    lost_gpu_hours: float
    run_s: Spread
    wait_s: Spread
    limit_ratio: Spread
    sizes: tuple[SizeClass, ...]
    hourly: tuple[float, ...]
    interarrival_cv: float
    censored: int
    never_ran: int
    states: dict[str, int]
    queues: dict[str, int]
    accounts: dict[str, int]
    users: dict[str, int]


def summarise(trace: Trace, zone: tzinfo = UTC, *, dated: bool = True) -> Summary:
    """The summary of a trace.

    Args:
        zone: in which hours of the week are counted.
        dated: whether its times are POSIX seconds.
    """
    hours = trace.held_s * trace.whole_gpus / 3600.0
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where((trace.limit_s > 0) & np.isfinite(trace.limit_s), trace.run_s / trace.limit_s, np.nan)
    return Summary(
        jobs=len(trace), window_s=trace.window_s, gpu_hours=_total(hours),
        lost_gpu_hours=_total(trace.lost_s * trace.whole_gpus / 3600.0),
        run_s=spread(trace.run_s[~trace.censored]), wait_s=spread(trace.wait_s),
        limit_ratio=spread(ratio[~trace.censored]),
        sizes=tuple(_class(name, trace, mask, hours) for name, mask in size_classes(trace)),
        hourly=tuple(arrivals_by_hour(trace, zone).tolist()) if dated and len(trace) else (),
        interarrival_cv=interarrival_cv(trace), censored=int(np.count_nonzero(trace.censored)),
        never_ran=int(np.count_nonzero(~trace.ran)), states=trace.state.counts(), queues=trace.queue.counts(),
        accounts=trace.account.counts(), users=trace.user.counts(),
    )  # fmt: skip


def spread(values: Floats) -> Spread:
    """Mean, quantiles and maximum of what is recorded."""
    known = values[~np.isnan(values)]
    if not len(known):
        nothing = float("nan")
        return Spread(0, nothing, (nothing,) * len(QUANTILES), nothing)
    quantiles = np.quantile(known, QUANTILES)
    return Spread(len(known), float(known.mean()), tuple(quantiles.tolist()), float(known.max()))


def size_classes(trace: Trace) -> list[tuple[str, Mask]]:
    """(name, jobs) of every class of sizes that has some."""
    found = []
    for low, high in zip(CLASSES, (*CLASSES[1:], None), strict=True):
        mask = trace.gpus >= low if high is None else (trace.gpus >= low) & (trace.gpus < high)
        name = f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}-{high - 1}"
        found.append((name, mask))
    found.append(("not recorded", trace.gpus < 0))
    return [(name, mask) for name, mask in found if mask.any()]


def arrivals_by_hour(trace: Trace, zone: tzinfo) -> Floats:
    """Submissions per hour by hour of the week, (168,) float64 jobs/h from Monday 0 h.

    Each hour of the week is divided by how often the window of submissions holds it, parts of an hour as such; NaN
    where it never does.
    """
    begin_s, end_s = float(trace.submit_s[0]), float(trace.submit_s[-1])
    slots = np.arange(np.floor(begin_s / _SLOT_S), np.floor(end_s / _SLOT_S) + 1) * _SLOT_S
    covered_s = np.minimum(slots + _SLOT_S, end_s) - np.maximum(slots, begin_s)
    exposure = np.zeros(_HOURS)
    np.add.at(exposure, hours_of_week(slots, zone), np.maximum(covered_s, 0.0) / 3600.0)
    counted = np.bincount(hours_of_week(trace.submit_s, zone), minlength=_HOURS).astype(np.float64)
    rates = np.full(_HOURS, np.nan)
    np.divide(counted, exposure, out=rates, where=exposure > 0)
    return rates


def hours_of_week(times_s: NDArray[np.float64], zone: tzinfo) -> NDArray[np.int64]:
    """Hour of the week in local time, 0 to 167 from Monday 0 h, (times,) int64.

    The zone is looked up once for every hour of UTC: clocks are changed at the start of one.
    """
    hours, inverse = np.unique(np.floor(times_s / 3600.0).astype(np.int64), return_inverse=True)
    offsets = np.array([_offset_s(hour * 3600, zone) for hour in hours.tolist()])
    local = times_s + offsets[inverse]
    return np.asarray((np.floor(local / 3600.0).astype(np.int64) + 72) % _HOURS)  # 1 January 1970 was a Thursday


def interarrival_cv(trace: Trace) -> float:
    """Coefficient of variation of the times between submissions; NaN below three jobs, or when all are at once."""
    gaps = np.diff(trace.submit_s)
    return float(gaps.std() / gaps.mean()) if len(gaps) > 1 and gaps.mean() > 0 else float("nan")


def _offset_s(second: int, zone: tzinfo) -> float:
    offset = datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _total(hours: NDArray[Any]) -> float:
    return float(np.nansum(hours)) if not np.all(np.isnan(hours)) else float("nan")


def _class(name: str, trace: Trace, mask: Mask, hours: Floats) -> SizeClass:
    ended = mask & ~trace.censored
    return SizeClass(
        name, int(np.count_nonzero(mask)), _total(hours[mask]), spread(trace.run_s[ended]), spread(trace.wait_s[mask])
    )
