"""What a careful person says about a run of nccl-tests: correctness, jitter, dips, rows that do not add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from clusterwright.model.observations import NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.collectives.counting import Participants
from clusterwright.readers.collectives.programs import TOLERANCES
from clusterwright.readers.collectives.records import Record
from clusterwright.readers.collectives.rows import Half, Row, agrees, unknown_columns

#: Below this size time is latency and should not jump from row to row.
_LATENCY_BOUND: Final = 1 << 20
_BANDWIDTH_BOUND: Final = 64 << 20
_JUMP: Final = 2.5
_FEWEST_ITERATIONS: Final = 5


def check_correctness(run: RunBuilder, record: Record) -> None:
    """Conditions `validation` and `correctness`, and an ERROR for every wrong result."""
    printed = record.parameters.get("validation", "")
    checked = [half for row in record.rows for half in row.halves.values() if _is_checked(half)]
    wrong = [(row, place, count) for row, place, count in _wrong(record)]
    bounds = record.bounds[1] if record.bounds else ""
    counted = int(bounds) if bounds.isdecimal() and len(bounds) < 19 else None
    validated = bool(checked) if record.rows else (printed not in ("", "0") or None)
    if validated is not None:
        run.condition("validation", validated)
    if wrong:
        first = wrong[0][0]
        total = sum(count for _, _, count in wrong)
        run.notice(
            "wrong-values",
            f"{len(wrong)} of {len(checked)} checked results are wrong, first at {first.size:,} B:"
            f" {total:,.0f} wrong elements in all: data corruption",
            Weight.ERROR,
            first.line,
        )
    if validated and counted:
        run.notice(
            "out-of-bounds", f"the tool counts {counted:,} values out of bounds", Weight.ERROR, _line(record.bounds)
        )
    if record.rows and not validated:
        said = f"; 'Out of bounds values : {bounds}' then means nothing" if record.bounds else ""
        run.notice(
            "validation-off",
            "results were not compared (validation 0, N/A or no such column): bandwidth only, correctness unknown"
            + said,
        )
    elif record.rows and len(checked) < _comparable(record):
        run.notice("partly-checked", f"only {len(checked)} results were compared, others say N/A", Weight.INFO)
    if printed == "0" and checked:
        run.notice("validation-contradicts", "validation is 0 and yet results carry numbers of errors")
    right = "right" if counted == 0 or not record.footer else "right in the rows shown"
    bad = wrong or (validated and counted)
    run.condition("correctness", "wrong" if bad else right if validated and record.rows else "unknown")


def _is_checked(half: Half) -> bool:
    return isinstance(half.values.get("wrong"), float) or isinstance(half.values.get("error"), float)


def _comparable(record: Record) -> int:
    """Results that the tool can compare: all-to-all and sendrecv are compared out of place only."""
    halves = [half for row in record.rows for half in row.halves.items()]
    in_place = any(_is_checked(half) for place, half in halves if place == "in")
    return sum(in_place or place == "out" for place, _ in halves) if halves else 0


def _wrong(record: Record) -> Iterator[tuple[Row, str, float]]:
    """Wrong results: a count above 0, or in the old column a deviation above what the type allows."""
    for row in record.rows:
        for place, half in row.halves.items():
            count, error = half.values.get("wrong"), half.values.get("error")
            if isinstance(count, float) and count > 0:
                yield row, place, count
            elif isinstance(error, float) and error > TOLERANCES.get(row.type, 0.0):
                yield row, place, 1


def check_rows(run: RunBuilder, record: Record) -> None:
    """Rows that contradict themselves, were edited, repeat or have columns that nobody knows."""
    for name in unknown_columns(record.layout) if record.layout else ():
        run.notice("unknown-column", f"column '{name}' is not known and was not read")
    edited = [row for row in record.rows if row.edited]
    absent = [n for n in ("count", "type", "wrong") if record.layout and n not in record.layout.columns]
    if "wrong" in absent and record.layout and "error" in record.layout.columns:
        absent.remove("wrong")
    if edited or absent:
        broken = sum(row.edited == "wrong digit groups" for row in edited)
        parts = [f"{len(edited)} sizes carry digit groups ({broken} of them wrong)"] if edited else []
        parts += [f"the columns {', '.join(absent)} were removed"] if absent else []
        run.notice("hand-edited", f"no version prints this table: {' and '.join(parts)}", Weight.WARNING)
    for name in absent:
        run.missing(f"column {'#wrong' if name == 'wrong' else name}")
    odd = [r for r in record.rows if not all(agrees(r, h) for h in r.halves.values())]
    if odd:
        sizes = ", ".join(f"{row.size:,}" for row in odd[:3])
        run.notice(
            "row-contradicts",
            f"algbw is not size over time in {len(odd)} rows (sizes {sizes})",
            Weight.ERROR,
            odd[0].line,
        )
    keys = Counter((row.size, row.type, row.redop, row.root) for row in record.rows)
    twice = sum(count > 1 for count in keys.values())
    if twice and not record.alone:
        run.notice("rows-repeat", f"{twice} sizes stand more than once: cycles, or tables of several processes in one")


def check_speed(run: RunBuilder, record: Record, who: Participants) -> None:
    """Jitter of small messages, dips of large ones, too few iterations, one rank, sockets."""
    jumps, steps, low, high = _jumps(record)
    if jumps >= 4 and jumps * 5 >= steps:
        run.notice(
            "jitter",
            f"time of messages up to 1 MiB jumps by more than {_JUMP:g} times in {jumps} of {steps} steps,"
            f" between {low:.0f} and {high:.0f} µs: two modes, not one latency",
        )
    best, line = 0.0, 0
    for row in sorted(record.rows, key=lambda row: row.size):
        speeds = [s for half in row.halves.values() if (s := half.number("busbw", "GB/s")) is not None]
        if row.size >= _BANDWIDTH_BOUND and speeds and min(speeds) < 0.75 * best:
            run.notice("bandwidth-dip", f"{min(speeds):g} GB/s at {row.size:,} B after {best:g} GB/s", line=row.line)
        if speeds and max(speeds) > best:
            best, line = max(speeds), row.line
    iterations = record.parameters.get("iters", "")
    if iterations.isdecimal() and int(iterations[:9]) < _FEWEST_ITERATIONS:
        run.notice("few-iterations", f"each time is the mean of only {iterations} iterations")
    if record.alone:
        run.notice(
            "processes-alone",
            f"{record.alone} processes each ran alone as rank 0 of 1 (built without MPI?): nothing crosses a link,"
            " busbw says nothing",
            Weight.ERROR,
            line,
        )
    elif who.members.ranks == 1:
        run.notice("single-rank", "one rank: nothing crosses a link, busbw says nothing", Weight.ERROR, line)
    if record.transport.lower().startswith("socket"):
        run.notice("sockets", "NCCL used TCP sockets between nodes, not RDMA")
    for name, value in record.settings.items():
        if name.endswith("_DISABLE") and value not in ("0", ""):
            run.notice("path-disabled", f"{name}={value}: a faster path was switched off for this run")


def _jumps(record: Record) -> tuple[int, int, float, float]:
    """(jumps, steps, shortest, longest time in µs after the first row) of small messages in the order measured."""
    times = [
        time
        for row in record.rows[1:]
        if row.size <= _LATENCY_BOUND
        for half in row.halves.values()
        if (time := half.number("time", "µs")) is not None and time > 0
    ]
    pairs = list(pairwise(times))
    jumps = sum(b > _JUMP * a or a > _JUMP * b for a, b in pairs)
    return jumps, len(pairs), min(times, default=0.0), max(times, default=0.0)


def check_average(run: RunBuilder, record: Record) -> None:
    """Whether the printed average is the mean of the rows that are there; where not, rows were left out."""
    value = run.conditions().get("average_busbw")
    if value is None or isinstance(value, (NoValue, str, bool, float)):
        return
    printed = value.to("GB/s")
    speeds = [
        s for row in record.rows for half in row.halves.values() if (s := half.number("busbw", "GB/s")) is not None
    ]
    halves = max((len(row.halves) for row in record.rows), default=2)
    counted = len(speeds) + record.zero_rows * halves
    if not speeds or record.rejections or record.rows_left_out:
        return
    mean = sum(speeds) / counted
    if abs(mean - printed) > max(0.01, 0.003 * printed):
        run.missing(f"rows: the printed average {printed:g} GB/s is not the mean of the rows shown, {mean:.4g} GB/s")
    elif max(speeds) > 2 * printed:
        run.notice(
            "average-over-sizes",
            f"the average {printed:g} GB/s is over all sizes down to {min(row.size for row in record.rows):,} B;"
            f" the best row has {max(speeds):g} GB/s",
            Weight.INFO,
        )


def _line(place: tuple[int, str, str] | None) -> int:
    return place[0] if place else 0
