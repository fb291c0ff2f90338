"""Which part of a trace is simulated: a window, what ran and waited when it began, and how long a cluster fills."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Final

import numpy as np

from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.quantities import UnitError, parse_kind
from clusterwright.lib.scales import DAY_S
from clusterwright.traces.tables import Trace

#: Instants before a window: at the first one what already ran begins, at the second what already waited comes, so that
#: what ran has its GPUs before anybody else asks. Both are before the window, which is the third.
_STEP_S: Final = 0.001
#: Share of its steady occupancy to which a cluster is filled after a warm-up; a choice.
_FILLED: Final = 0.99


@dataclass(frozen=True, eq=False)
class Cut:
    """A trace, or a window of it.

    Args:
        trace: jobs of the window, after those that ran or waited when it began. Of these the first have what was left
            of their run time and limit, and none has a recorded wait.
        origin_s: time of instant 0 of a simulation, in the trace's own times.
        lead_s: from instant 0 to the beginning of the window, 0 where nothing ran or waited before.
        window_s: length of the window.
    """

    trace: Trace
    origin_s: float
    lead_s: float
    window_s: float
    remarks: tuple[str, ...] = ()


def whole(trace: Trace) -> Cut:
    """All of a trace, from its first submission to the last thing that it tells of."""
    begin_s, end_s = trace.window_s
    return Cut(trace, begin_s, 0.0, end_s - begin_s)


def cut_trace(trace: Trace, since_s: float | None, until_s: float | None) -> Cut:
    """The jobs that were ready to run within [since, until), and those that ran or waited at its beginning.

    A job that ran then had begun its last attempt and had not ended it; it goes on with what was left. One that waited
    began its last attempt later; it comes as a whole. A job that was ready before and has no recorded start is neither.

    Raises:
        InvalidInput: when the window is empty or outside of the trace.
    """
    first_s, last_s = trace.window_s
    begin_s, end_s = first_s if since_s is None else since_s, last_s if until_s is None else until_s
    if not begin_s < end_s or begin_s >= last_s or end_s <= first_s:
        raise InvalidInput("--since and --until leave nothing of the trace; cw trace inspect shows what it spans")
    ready_s = np.where(np.isnan(trace.eligible_s), trace.submit_s, np.maximum(trace.eligible_s, trace.submit_s))
    ended_s = np.where(np.isnan(trace.end_s), trace.start_s + trace.run_s, trace.end_s)
    began_s = ended_s - trace.run_s
    before = ready_s < begin_s
    inside = ~before & (ready_s < end_s)
    running = before & (began_s < begin_s) & (ended_s > begin_s)
    waiting = before & (began_s >= begin_s) & trace.ran
    unknown = before & trace.ran & np.isnan(began_s)
    if not (running | waiting).any():
        return Cut(trace.take(inside), begin_s, 0.0, end_s - begin_s, _told(trace, running, waiting, unknown))
    first, second = (np.flatnonzero(mask) for mask in (running, waiting))
    first, second = first[np.argsort(began_s[first], kind="stable")], second[np.argsort(ready_s[second], kind="stable")]
    places = np.concatenate((first, second, np.flatnonzero(inside)))
    early, old = len(first), len(first) + len(second)
    taken = trace.take(places)
    submit_s, run_s, limit_s = taken.submit_s.copy(), taken.run_s.copy(), taken.limit_s.copy()
    start_s, eligible_s = taken.start_s.copy(), taken.eligible_s.copy()
    submit_s[:early], submit_s[early:old] = begin_s - 2 * _STEP_S, begin_s - _STEP_S
    lead_s = 2 * _STEP_S
    run_s[:early] = ended_s[first] - begin_s + lead_s
    limit_s[:early] = np.maximum(_STEP_S, limit_s[:early] - (begin_s - began_s[first]) + lead_s)
    start_s[:old], eligible_s[:old] = np.nan, np.nan
    carried = replace(
        taken, submit_s=submit_s, run_s=run_s, limit_s=limit_s, start_s=start_s, eligible_s=eligible_s
    )  # fmt: skip
    return Cut(carried, begin_s - lead_s, lead_s, end_s - begin_s, _told(trace, running, waiting, unknown))


def _told(trace: Trace, *masks: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[str, ...]:
    running, waiting, unknown = (int((mask & (trace.gpus > 0)).sum()) for mask in masks)
    told = []
    if running or waiting:
        told.append(
            f"when the window begins {running:,} jobs run, with what was left of them, and {waiting:,} wait; they are "
            "in the cluster and not in the statistics of jobs"
        )
    if unknown:
        told.append(
            f"{unknown:,} jobs came before the window and have no recorded start; they are not in it, begin "
            "earlier and give --warm-up to have them in the cluster"
        )
    return tuple(told)


def moment_s(option: str, text: str, trace: Trace, zone: tzinfo, *, dated: bool) -> float | None:
    """A point of time of a trace: a date, a date and a time, or a time since its first submission; None for "".

    Args:
        zone: of times that name none.
        dated: whether the trace has dates at all.

    Raises:
        InvalidInput: when it is none of them.
    """
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            return float(trace.submit_s[0]) + parse_kind(text, "duration").value if len(trace) else None
        except UnitError:
            raise InvalidInput(
                f"{option} is '{text}', must be a date such as 2026-05-04 or 2026-05-04T08:00, or a time since the "
                "first submission of the trace such as '2 d'"
            ) from None
    if not dated:
        raise InvalidInput(f"{option} is a date, and the trace has none; write a time since its beginning, such as 2 d")
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC).timestamp()


def fill_time_s(trace: Trace) -> float:
    """How long an empty cluster needs until jobs like these hold 99 % of the GPUs that they hold in the long run.

    Without a queue the mean occupancy after t is Σ GPUs·min(run time, t) ÷ Σ GPUs·run time of the steady one, whatever
    the distribution of the run times (M/G/∞: Eick, Massey, Whitt, "The Physics of the Mt/G/∞ Queue", Operations
    Research 41(4), 1993, section 1: the occupancy of a system that starts empty follows the stationary excess of the
    service time). A queue takes longer to build up; near saturation no warm-up of this length is enough.
    """
    chosen = trace.ran & (trace.gpus > 0)
    order = np.argsort(trace.run_s[chosen], kind="stable")
    run_s, gpus = trace.run_s[chosen][order], trace.gpus[chosen][order].astype(np.float64)
    if not len(run_s) or not run_s[-1] > 0:
        return 0.0
    done = np.cumsum(gpus * run_s)
    longer = gpus.sum() - np.cumsum(gpus)
    filled = done + run_s * longer
    wanted = _FILLED * done[-1]
    place = int(np.searchsorted(filled, wanted))
    if place == 0:
        return float(wanted / gpus.sum())
    return float(run_s[place - 1] + (wanted - filled[place - 1]) / longer[place - 1])


def whole_days_s(seconds: float) -> float:
    """Rounded up to whole days, so that days and hours of the week stay where they are."""
    return float(np.ceil(seconds / DAY_S) * DAY_S)
