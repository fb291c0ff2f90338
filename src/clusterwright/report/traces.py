"""What a trace holds, as text and as plain values: every row accounted for, what is not recorded said."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from clusterwright.lib.scales import DAY_S
from clusterwright.traces.counting import Finding
from clusterwright.traces.imports import Imported
from clusterwright.traces.recognising import KINDS
from clusterwright.traces.summaries import QUANTILES, SizeClass, Spread, Summary
from clusterwright.traces.tables import UNKNOWN, TraceJob

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_WORDS: Final = 8
_QUANTILE_NAMES: Final = tuple(f"p{round(quantile * 100)}" for quantile in QUANTILES)


def render_trace(
    name: str, found: Imported, summary: Summary, zone: tzinfo, width: int = 120, *, zone_assumed: bool = False
) -> str:
    """The trace for a terminal of `width` columns.

    Args:
        name: of its files.
        zone: in which times and hours of the week are shown.
        zone_assumed: whether nobody said so.
    """
    lines = [f"{name}: {KINDS[found.kind]}", *_rows(found), *_machines(found)]
    if summary.jobs:
        lines += [*_window(found, summary, zone, zone_assumed), "", *_spreads(summary), "", *_sizes(summary.sizes)]
        lines += _arrivals(summary)
        lines += ["", *_words(summary)]
    lines += _findings("rejected", found.counts.rejected, width)
    lines += _findings("kept, with a remark", found.counts.remarks, width)
    lines += _findings("parts of jobs", found.counts.parts, width, samples=False)
    lines += _gaps(found, width)
    return "\n".join(lines)


def trace_values(name: str, found: Imported, summary: Summary) -> dict[str, Any]:
    """The trace as plain values: times in POSIX seconds where dated, durations in s, null for what is not recorded."""
    counts = found.counts
    return {
        "source": name, "kind": found.kind, "zone": found.zone, "dated": found.dated, "header": dict(found.header),
        "rows": {"all": counts.rows, "jobs": counts.jobs, "parts": counts.part_rows, "rejected": counts.rejected_rows},
        "rejected": [_finding_values(finding) for finding in counts.rejected],
        "remarks": [_finding_values(finding) for finding in counts.remarks],
        "parts": [_finding_values(finding) for finding in counts.parts],
        "not_recorded": [
            {"what": gap.what, "consequence": gap.consequence, "remedy": gap.remedy} for gap in found.gaps
        ],
        "machines": {
            "nodes": len(found.machines), "gpus": sum(machine.gpus for machine in found.machines),
        },
        "jobs": summary.jobs, "window_s": list(summary.window_s), "gpu_hours": number(summary.gpu_hours),
        "lost_gpu_hours": number(summary.lost_gpu_hours), "run_s": _spread_values(summary.run_s),
        "wait_s": _spread_values(summary.wait_s), "run_to_limit": _spread_values(summary.limit_ratio),
        "sizes": [
            {
                "gpus": size.name, "jobs": size.jobs, "gpu_hours": number(size.gpu_hours),
                "run_s": _spread_values(size.run_s), "wait_s": _spread_values(size.wait_s),
            }
            for size in summary.sizes
        ],
        "arrivals": {
            "jobs_per_hour_by_hour_of_week": [number(rate) for rate in summary.hourly],
            "interarrival_cv": number(summary.interarrival_cv),
        },
        "still_running": summary.censored, "without_run_time": summary.never_ran, "states": summary.states,
        "queues": summary.queues, "accounts": summary.accounts, "users": len(summary.users),
    }  # fmt: skip


def trace_json(name: str, found: Imported) -> Iterator[str]:
    """The lines of a JSON document with every job on a line of its own; null for what is not recorded."""
    head = {"source": name, "kind": found.kind, "dated": found.dated, "zone": found.zone}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "jobs": ['
    last = len(found.trace) - 1
    for place, job in enumerate(found.trace.jobs()):
        yield json.dumps(_job_values(job), ensure_ascii=False) + ("," if place < last else "")
    yield "]}"


def span(seconds: float) -> str:
    """A duration for people: `57 s`, `13 min`, `2.4 h`, `9.9 d`; `-` where not recorded."""
    if math.isnan(seconds):
        return "-"
    for unit, size, below in (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172800.0)):
        if seconds < below:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / DAY_S:,.1f} d"


def number(value: float) -> float | None:
    """The number; None for NaN and infinity, which JSON does not have."""
    return value if math.isfinite(value) else None


def _job_values(job: TraceJob) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in job._asdict().items():
        if isinstance(value, float):
            values[name] = "inf" if math.isinf(value) else number(value)
        else:
            values[name] = None if value in (UNKNOWN, "") and name not in ("id", "line") else value
    return values


def _rows(found: Imported) -> Iterator[str]:
    counts = found.counts
    yield (
        f"  rows       {counts.rows:,} = {counts.jobs:,} of jobs + {counts.part_rows:,} parts + "
        f"{counts.rejected_rows:,} rejected"
    )
    if len(found.trace) != counts.jobs:
        yield f"  jobs       {len(found.trace):,}"


def _machines(found: Imported) -> Iterator[str]:
    if found.machines:
        gpus = sum(machine.gpus for machine in found.machines)
        yield f"  nodes      {len(found.machines):,} with {gpus:,} GPUs"


def _window(found: Imported, summary: Summary, zone: tzinfo, assumed: bool) -> Iterator[str]:
    begin_s, end_s = summary.window_s
    if found.dated:
        yield f"  window     {_date(begin_s, zone)} to {_date(end_s, zone)} ({span(end_s - begin_s)})"
    else:
        yield f"  window     {span(end_s - begin_s)}; times count from the start of the trace, which has no date"
    if found.zone:
        yield f"  local time {found.zone}{' (assumed; say which with --zone)' if assumed else ''}"
    if not math.isnan(summary.gpu_hours):
        lost = (
            f", {summary.lost_gpu_hours:,.0f} of them in attempts that were requeued" if summary.lost_gpu_hours else ""
        )
        least = ", at least: jobs still ran" if summary.censored else ""
        yield f"  GPU-hours  {summary.gpu_hours:,.0f}{lost}{least}"


def _date(second: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(second, UTC).astimezone(zone):%Y-%m-%d %H:%M %z}"


def _spreads(summary: Summary) -> list[str]:
    rows: list[tuple[str, ...]] = [("", "jobs", "mean", *_QUANTILE_NAMES, "largest")]
    for name, spread in (("run time", summary.run_s), ("wait", summary.wait_s)):
        if spread.count:
            figures = (spread.mean, *spread.quantiles, spread.largest)
            rows.append((name, f"{spread.count:,}", *map(span, figures)))
        else:
            rows.append((name, "not recorded", *("",) * (len(QUANTILES) + 2)))
    ratio = summary.limit_ratio
    if ratio.count:
        figures = (ratio.mean, *ratio.quantiles, ratio.largest)
        rows.append(("run time ÷ limit", f"{ratio.count:,}", *(f"{figure:.3g}" for figure in figures)))
    return table(rows)


def _sizes(sizes: Sequence[SizeClass]) -> list[str]:
    hours = sum(size.gpu_hours for size in sizes if not math.isnan(size.gpu_hours))
    jobs = sum(size.jobs for size in sizes)
    rows: list[tuple[str, ...]] = [
        ("GPUs", "jobs", "of jobs", "of GPU-hours", "run p50", "run p90", "wait p50", "wait p90")
    ]
    for size in sizes:
        share = "-" if math.isnan(size.gpu_hours) or not hours else f"{size.gpu_hours / hours:.1%}"
        quantiles = (
            size.run_s.quantiles[1],
            size.run_s.quantiles[2],
            size.wait_s.quantiles[1],
            size.wait_s.quantiles[2],
        )
        rows.append((size.name, f"{size.jobs:,}", f"{size.jobs / jobs:.1%}", share, *map(span, quantiles)))
    return table(rows)


def _arrivals(summary: Summary) -> Iterator[str]:
    if not summary.hourly:
        return
    yield ""
    cv = summary.interarrival_cv
    bursts = "" if math.isnan(cv) else f"; times between them have a CV of {cv:.2f} (1: Poisson)"
    yield f"  submissions per hour by hour of the day (local time){bursts}"
    for day, name in enumerate(_DAYS):
        rates = summary.hourly[24 * day : 24 * day + 24]
        yield f"  {name}  " + " ".join(map(_rate, rates))


def _rate(rate: float) -> str:
    return "   -" if math.isnan(rate) else f"{rate:>4.0f}" if rate >= 10 else f"{rate:>4.1f}"


def _words(summary: Summary) -> Iterator[str]:
    for name, words in (("states", summary.states), ("queues", summary.queues), ("accounts", summary.accounts)):
        if set(words) - {""}:
            shown = [f"{word or 'not recorded'} {count:,}" for word, count in list(words.items())[:_MOST_WORDS]]
            more = f", {len(words) - _MOST_WORDS} more" if len(words) > _MOST_WORDS else ""
            yield f"  {name:<9}  {', '.join(shown)}{more}"
    if set(summary.users) - {""}:
        yield f"  users      {len(set(summary.users) - {''}):,}"


def _findings(title: str, findings: Sequence[Finding], width: int, *, samples: bool = True) -> Iterator[str]:
    if findings:
        yield ""
        yield f"  {title}"
    for found in findings:
        yield from _folded(f"{found.count:,} × {found.rule.what} → {found.rule.done} [{found.code}]", width, "    ")
        for sample in found.samples[:2] if samples else ():
            place = f"line {sample.line}: " if sample.line else ""
            why = f" ({sample.why})" if sample.why else ""
            yield f"        {place}{sample.text}{why}"[: max(width, 40)]


def _gaps(found: Imported, width: int) -> Iterator[str]:
    if found.gaps:
        yield ""
        yield "  not recorded"
    for gap in found.gaps:
        remedy = f" → {gap.remedy}" if gap.remedy else ""
        yield from _folded(f"{gap.what}: {gap.consequence}{remedy}", width, "    ")


def _folded(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, max(width, 40), initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows under each other, the first column to the left and the others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _spread_values(spread: Spread) -> dict[str, Any]:
    quantiles = dict(zip(_QUANTILE_NAMES, map(number, spread.quantiles), strict=True))
    return {"jobs": spread.count, "mean": number(spread.mean), **quantiles, "largest": number(spread.largest)}


def _finding_values(found: Finding) -> dict[str, Any]:
    return {
        "rule": found.code, "what": found.rule.what, "done": found.rule.done, "count": found.count,
        "samples": [{"line": sample.line, "text": sample.text, "why": sample.why} for sample in found.samples],
    }  # fmt: skip
