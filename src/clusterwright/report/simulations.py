"""Simulated futures as text for a terminal; every figure in it is simulated, none is measured."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, UNDECIDED, Line
from clusterwright.ledger.ratios import allocated_share, goodput_share, useful_of_allocated
from clusterwright.lib.figures import format_amount
from clusterwright.lib.quantities import CURRENCIES
from clusterwright.lib.scales import DAY_S
from clusterwright.report.replications import (
    FIELDS,
    LEVELS,
    Estimate,
    Paired,
    Replication,
    Simulated,
    estimate_level,
    estimate_of,
    group_names,
    pair,
)

#: Groups of a field that are shown; the others are in the JSON.
_MOST_GROUPS: Final = 8
_TIMES: Final = (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172800.0))
_CELL: Final = 16


def render_simulated(found: Simulated, width: int = 100) -> str:
    """One architecture's futures, the most important first, in at most `width` columns."""
    blocks = [heading(found), *_calibration(found), _doubts(found), _waits(found), _slowdowns(found)]
    blocks += [_use(found), _ledger(found), _failures(found), _basis(found)]
    lines = [line for block in blocks if block for line in ("", *block)][1:]
    return "\n".join(line for whole in lines for line in _wrapped(whole, width))


def render_two(first: Simulated, second: Simulated, changes: Sequence[str], width: int = 100) -> str:
    """Two futures side by side over the same seeds, with what differs and by how much."""
    lines = [
        f"{first.name}: as it is, against {', '.join(changes)}",
        _spans(first) + "; both futures get the same jobs, failures and repairs by seed (common random numbers)",
        "every figure is simulated; ± is the 95 % interval, of a difference that of the pairs",
    ]
    lines += ["", *verdict(first)] if first.calibration else []
    lines += ["", f"{'':30}{'as it is':>16}{'changed':>16}   difference"]
    for title, read, say in comparisons(first.currency):
        found = pair(first.replications, second.replications, read)
        if found is not None:
            lines.append(
                f"{title:30}{say(found.first.value):>16}{say(found.second.value):>16}   {say_difference(found, say)}"
            )
    doubts = [line for line in _doubts(second) if line not in _doubts(first)]
    lines += ["", "once changed", *(f"  {line}" for line in doubts)] if doubts else []
    lines += ["", *_partial(first), *_basis(second)]
    return "\n".join(line for whole in lines for line in _wrapped(whole, width))


def render_sweep(path: str, futures: Sequence[Simulated], width: int = 100) -> str:
    """One row for each value of a parameter."""
    first = futures[0]
    lines = [
        f"{first.name}: {path}",
        f"{_spans(first)}; the same seeds for every value",
        "every figure is simulated; ± is the 95 % interval over the futures",
        *([*verdict(first)] if first.calibration else []),
        "",
    ]
    names = [future.label.rpartition("=")[2] for future in futures]
    room = max(8, min(24, max(map(len, names))))
    money = any(cost_per_hour(f) for f in futures)
    head = f"{'value':>{room}}{'p95 wait':>17}{'median wait':>14}{'useful':>14}{'allocated':>14}"
    lines.append(head + (f"{'per useful GPU-h':>17}" if money else ""))
    for name, future in zip(names, futures, strict=True):
        rs = future.replications
        cells = [
            f"{name[:room]:>{room}}",
            f"{say_time(estimate_level(rs, 'all', '', 'wait_s', 'p95')):>17}",
            f"{say_time(estimate_level(rs, 'all', '', 'wait_s', 'median')):>14}",
            f"{say_percent(estimate_of(rs, lambda r: goodput_share(r.lines))):>14}",
            f"{say_percent(estimate_of(rs, lambda r: allocated_share(r.lines))):>14}",
            f"{say_money(cost_per_hour(future), future.currency):>17}" if money else "",
        ]
        lines.append("".join(cells))
    doubts = {line: future.label for future in futures for line in _doubts(future)}
    lines += ["", *(f"{label.rpartition('=')[2]}: {line}" for line, label in doubts.items())] if doubts else []
    lines += ["", *_partial(first), *_basis(first)]
    return "\n".join(line for whole in lines for line in _wrapped(whole, width))


def comparisons(currency: str) -> list[tuple[str, Callable[[Replication], float | None], Callable[[float], str]]]:
    """(title, how it is read from a replication, how it is written) of what two futures are compared by."""

    def wait(level: str) -> Callable[[Replication], float | None]:
        place = list(LEVELS).index(level)
        return lambda r: g.wait_s[place] if (g := r.group("all")) is not None and g.wait_s else None

    def slow(r: Replication) -> float | None:
        group = r.group("all")
        return group.slowdown[0] if group is not None and group.slowdown else None

    return [
        *((f"queue time, {level}", wait(level), span) for level in ("median", "p90", "p95", "p99")),
        ("slowdown, median", slow, lambda v: f"{v:.2f}"),
        ("useful share of installed", lambda r: goodput_share(r.lines), percent),
        ("allocated share", lambda r: allocated_share(r.lines), percent),
        ("useful of allocated", lambda r: useful_of_allocated(r.lines), percent),
        ("ETTR", lambda r: r.ettr, lambda v: f"{v:.3f}"),
        ("jobs unfinished", lambda r: float(g.unfinished) if (g := r.group("all")) is not None else None, _whole),
        ("jobs succeeded", lambda r: float(g.succeeded) if (g := r.group("all")) is not None else None, _whole),
        ("preemptions", lambda r: float(r.preemptions), _whole),
        ("node failures", lambda r: float(sum(r.failures.values())), _whole),
        ("cost of installed GPUs", lambda r: r.cost, lambda v: _amount(v, currency, "")),
        (
            "cost per successful GPU-h",
            lambda r: None if r.cost is None or not r.succeeded_gpu_h else r.cost / r.succeeded_gpu_h,
            lambda v: _amount(v, currency, "/GPU-h"),
        ),
    ]


def cost_per_hour(found: Simulated) -> Estimate | None:
    """Cost of all installed GPUs over the GPU-hours of work, at the measured speed, of jobs that succeeded."""
    return estimate_of(
        found.replications, lambda r: None if r.cost is None or not r.succeeded_gpu_h else r.cost / r.succeeded_gpu_h
    )


def span(seconds: float) -> str:
    """A time for people: `0 s`, `90 s`, `13 min`, `2.4 h`, `9.9 d`."""
    if math.isnan(seconds):
        return "-"
    for unit, size, below in _TIMES:
        if abs(seconds) < below:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / DAY_S:.3g} d"


def percent(share: float) -> str:
    """A share for people."""
    return f"{100 * share:.1f} %"


# -- blocks -----------------------------------------------------------------------------------------------------------


def heading(found: Simulated) -> list[str]:
    """What was simulated, on what."""
    pools = ", ".join(f"{name} {nodes:,} × {each}" for name, nodes, each in found.pools)
    lines = [
        f"{found.name}: {_spans(found)}",
        f"{found.gpus:,} GPUs (nodes × GPUs: {pools}); {found.jobs:,} job{'s' * (found.jobs != 1)} from {found.source}",
        "every figure below is simulated, none is measured; ± is the 95 % interval over the futures"
        + ("" if found.seeds > 1 else "; one future alone has none, --seeds 5 gives it"),
    ]
    return [*lines, *_partial(found)]


def _spans(found: Simulated) -> str:
    last = found.seed + found.seeds - 1
    seeds = f"seeds {found.seed} to {last}" if found.seeds > 1 else f"seed {found.seed}"
    warm = f" after a warm-up of {span(found.warm_up_s)}" if found.warm_up_s else ""
    return f"{found.days:.4g} days{warm} × {found.seeds} future{'s' * (found.seeds != 1)} ({seeds})"


def _partial(found: Simulated) -> list[str]:
    if not found.partial:
        return []
    whole = sum(not r.partial for r in found.replications)
    cut = [r for r in found.replications if r.partial]
    reached = f", {len(cut)} cut off after {', '.join(span(r.simulated_s) for r in cut[:4])}" if cut else ""
    return [f"PARTIAL: stopped; {whole} of {found.seeds} futures are whole{reached}; figures are of what was simulated"]


def _calibration(found: Simulated) -> list[list[str]]:
    calibration = found.calibration
    if calibration is None:
        return []
    rows = [
        f"{'replayed against real waits':34}{'jobs':>8}{'median real':>13}{'simulated':>11}"
        f"{'p90 real':>11}{'simulated':>11}"
    ]
    for row in calibration.compared[: 2 * _MOST_GROUPS]:
        said = {True: "", False: "  outside", None: "  few jobs"}[calibration.within(row)]
        name = _title(row.field, row.name)
        rows.append(
            f"  {name[:31]:32}{row.jobs:>8,}{span(row.real_s[0]):>13}{span(row.simulated_s[0]):>11}"
            f"{span(row.real_s[1]):>11}{span(row.simulated_s[1]):>11}{said}"
        )
    return [[*verdict(found), *rows]]


def verdict(found: Simulated) -> list[str]:
    """What the calibration says, in one sentence."""
    calibration = found.calibration
    assert calibration is not None
    limits = calibration.tolerance
    wide = f"{limits.share:.0%} of the real waits, or {span(limits.least_s)}"
    judged = f"{len(calibration.judged)} groups of {limits.fewest_jobs} jobs or more"
    if calibration.holds is None:
        return [f"NOT TO BE RELIED ON: no group has {limits.fewest_jobs} jobs whose real wait is recorded"]
    if calibration.holds:
        return [f"CALIBRATED: the replay's median and p90 in all of {judged} are within {wide}"]
    outside = sum(calibration.within(row) is False for row in calibration.judged)
    return [
        f"NOT TO BE RELIED ON: in {outside} of {judged} the replay's median or p90 is not within {wide}; the model of "
        "this site is not good enough for what-ifs on waits (see docs/simulate.md)"
    ]


def _doubts(found: Simulated) -> list[str]:
    lines = _never(found)
    lines += [f"left out: {count:,} rows of the trace: {reason}" for reason, count in found.left_out.items()]
    return lines + [f"note: {remark}" for remark in found.remarks]


def _never(found: Simulated) -> list[str]:
    lines = []
    for never in found.never_fit[:_MOST_GROUPS]:
        jobs = f"{never.jobs:,} jobs" if never.jobs != 1 else "1 job"
        lines.append(
            f"NEVER FITS: {jobs} of {never.gpus:,} GPUs in queue {never.queue} (such as {never.example}): {never.why}"
        )
    return lines


def _waits(found: Simulated) -> list[str]:
    return _table(found, "queue time", "wait_s", say_time, FIELDS)


def _slowdowns(found: Simulated) -> list[str]:
    return _table(found, "slowdown", "slowdown", say_ratio, FIELDS)


def _table(
    found: Simulated, title: str, what: str, say: Callable[[Estimate | None], str], fields: Iterable[str]
) -> list[str]:
    lines = [f"{title:20}" + "".join(f"{level:>{_CELL}}" for level in LEVELS)]
    for field in fields:
        names = group_names(found.replications, field)
        if field in ("queue", "team") and len(names) < 2:
            continue
        for name in names[:_MOST_GROUPS]:
            cells = (estimate_level(found.replications, field, name, what, level) for level in LEVELS)
            lines.append(f"  {_title(field, name)[:17]:18}" + "".join(f"{say(cell):>{_CELL}}" for cell in cells))
        if len(names) > _MOST_GROUPS:
            lines.append(f"  {len(names) - _MOST_GROUPS} more {field}s: --format json")
    if what == "slowdown":
        lines.append("  (from submission to the end ÷ work, of jobs that ended; work below 10 s counts as 10 s)")
    elif any(g.waiting for r in found.replications for g in r.groups):
        lines.append("  ≥: jobs that still wait at the end count with what they have waited so far")
    return lines if len(lines) > 2 else []


def _title(field: str, name: str) -> str:
    return {"all": "all jobs", "size": f"{name} GPUs", "queue": f"queue {name}", "team": f"team {name or '-'}"}[field]


def _use(found: Simulated) -> list[str]:
    rs = found.replications
    allocated = estimate_of(rs, lambda r: allocated_share(r.lines))
    useful = estimate_of(rs, lambda r: goodput_share(r.lines))
    lines = [
        f"allocated   {say_percent(allocated)} of the installed GPU time",
        f"useful      {say_percent(useful)} of the installed (goodput), "
        f"{say_percent(estimate_of(rs, lambda r: useful_of_allocated(r.lines)))} of the allocated",
        f"ETTR        {_plain(estimate_of(rs, lambda r: r.ettr), 3)}  productive ÷ (held + queued), weighted by GPUs",
    ]
    open_h, saved = estimate_of(rs, not_saved_gpu_h), estimate_of(rs, lambda r: r.ettr_saved)
    if open_h is not None and open_h.value:
        lines.append(
            f"            {open_h.value:,.1f} productive GPU-h are of jobs that still ran at the end, since their last "
            f"checkpoint; ETTR would be {_plain(saved, 3)} if all of them were lost"
        )
    fair, spread = estimate_of(rs, lambda r: r.fairness), estimate_of(rs, lambda r: r.spread)
    if fair is not None:
        lines.append(f"fairness    {_plain(fair, 3)}  Jain's index of delivered ÷ entitled over the queues")
    if spread is not None:
        lines.append(f"            {_plain(spread, 2)}  largest ÷ smallest mean slowdown of a queue")
    lines += _cost(found)
    fared = {word: estimate_of(rs, lambda r, w=word: float(r.fared.get(w, 0))) for r in rs for word in r.fared}  # type: ignore[misc]
    told = ", ".join(f"{_plain(n, 1)} {word}" for word, n in fared.items())
    return [*lines, f"jobs        {told} (mean of the futures)"]


def _cost(found: Simulated) -> list[str]:
    cost = estimate_of(found.replications, lambda r: r.cost)
    if cost is None:
        return ["cost        not known: a pool has no price (pools.*.price)"]
    each = cost_per_hour(found)
    per = "no job succeeded" if each is None else f"{say_money(each, found.currency)} per successful GPU-hour"
    lines = [f"cost        {_amount(cost.value, found.currency, '')} for all installed GPUs; {per}"]
    jobs = estimate_of(
        found.replications,
        lambda r: r.cost / r.succeeded if r.cost is not None and r.succeeded else None,
    )
    if jobs is not None:
        lines.append(f"            {_amount(jobs.value, found.currency, '')} per job that succeeded")
    return lines


def _ledger(found: Simulated) -> list[str]:
    rs = found.replications
    lines = [f"{'GPU-hours, mean of the futures':34}{'GPU-h':>16}{'share':>18}"]
    for line in Line:
        hours = estimate_of(rs, lambda r, x=line: r.lines.of(x) / GPU_MS_PER_GPU_H)  # type: ignore[misc]
        if hours is None or not hours.value:
            continue
        share = estimate_of(rs, lambda r, x=line: r.lines.share(x))  # type: ignore[misc]
        lines.append(f"  {line.value:32}{hours.value:>16,.1f}{say_percent(share):>18}")
    total, installed = sums(found)
    same = "=" if total == installed else "≠"
    lines.append(f"  {'sum of the lines':32}{total / GPU_MS_PER_GPU_H / len(rs):>16,.1f}")
    lines.append(f"  {'installed GPUs × time':32}{installed / GPU_MS_PER_GPU_H / len(rs):>16,.1f}")
    lines.append(f"  over all futures {installed:,} GPU-ms {same} {total:,} GPU-ms, exactly")
    return lines


def not_saved_gpu_h(found: Replication) -> float:
    """Productive GPU-hours of attempts that still ran at the end, since their last checkpoint."""
    return found.lines.of(Line.PRODUCTIVE, UNDECIDED) / GPU_MS_PER_GPU_H


def sums(found: Simulated) -> tuple[int, int]:
    """(sum of the ledger's lines, installed GPUs × time) of all futures, GPU-ms."""
    total = sum(r.lines.total_gpu_ms for r in found.replications)
    return total, sum(sum(r.lines.installed_gpu_ms.values()) for r in found.replications)


def _failures(found: Simulated) -> list[str]:
    rs = found.replications
    causes = list(dict.fromkeys(c for r in rs for c in r.failures))
    if not causes:
        return ["failures    none"]
    whole = _plain(estimate_of(rs, lambda r: float(sum(r.failures.values()))), 1)
    means = sorted(((sum(r.failures.get(c, 0) for r in rs) / len(rs), c) for c in causes), reverse=True)
    told = ", ".join(f"{c} {n:.3g}" for n, c in means[:_MOST_GROUPS])
    more = f", {len(means) - _MOST_GROUPS} more causes" if len(means) > _MOST_GROUPS else ""
    requeued = _plain(estimate_of(rs, lambda r: float(r.requeued)), 1)
    left = _plain(estimate_of(rs, lambda r: float(r.preemptions)), 1)
    return [
        f"failures    {whole} per future: {told}{more}",
        f"            {requeued} jobs started more than once, {left} preemptions",
    ]


def _basis(found: Simulated) -> list[str]:
    lines = ["what carries the result"]
    for figure in found.figures:
        lines.append(
            f"  {figure.origin.word:9} {figure.name} = {format_amount(figure.value, figure.unit)}: {figure.basis}"
        )
    return lines + [f"  limit     {limit}" for limit in found.limits]


# -- cells ------------------------------------------------------------------------------------------------------------


def say_difference(found: Paired, say: Callable[[float], str]) -> str:
    """The second minus the first, with the interval of the pairs; shares differ by points."""
    value, half = found.difference.value, found.difference.half
    sign = "+" if value > 0 else "−" if value < 0 else ""
    told = f"{sign}{say(abs(value))}" + ("" if half is None else f" ± {say(half)}")
    clear = half is None or found.clear or not (value or half)
    return told.replace(" %", " points") + ("" if clear else "  (not clear)")


def say_time(found: Estimate | float | None) -> str:
    """A time, with its interval where it has one."""
    if found is None:
        return "-"
    if not isinstance(found, Estimate):
        return span(found)
    told = ("≥" if found.bound else "") + span(found.value)
    return told if not found.half else f"{told} ±{span(float(f'{found.half:.1e}')).replace(' ', '')}"


def say_ratio(found: Estimate | None) -> str:
    """A plain number, with its interval."""
    return _plain(found, 2)


def _plain(found: Estimate | None, digits: int) -> str:
    if found is None:
        return "-"
    told = f"{found.value:,.{digits}f}"
    half = "" if not found.half else f"{found.half:,.{digits}f}"
    return f"{told} ±{half}" if half.strip("0.") else told


def say_percent(found: Estimate | None) -> str:
    """A share, with its interval."""
    if found is None:
        return "-"
    return percent(found.value) if not found.half else f"{100 * found.value:.1f} ±{100 * found.half:.1f} %"


def _whole(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def say_money(found: Estimate | None, currency: str) -> str:
    """A price of a GPU-hour, with its interval."""
    if found is None:
        return "-"
    half = "" if not found.half else f" ±{found.half:.2g}"
    return _amount(found.value, currency, "") + half


def _amount(value: float, currency: str, per: str) -> str:
    return format_amount(value, f"{CURRENCIES.get(currency, currency)}{per}")


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = " " * (12 if line.startswith(" ") else 4)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
