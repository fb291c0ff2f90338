"""The Microsoft Philly trace in its two flattened forms (CSV).

`timestamp,duration,num_gpus,gpu_time,cluster` and `vc,gpu_num,submit_time,duration`: submission as local time of the
cluster, duration in s, GPUs, GPU time in GPU-s, virtual cluster. Neither has starts, so waits are not recorded.

Source: Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019;
the README of msr-fiddle/philly-traces, whose utilisation logs carry PDT and PST, hence US Pacific time. Submissions are
equal in both forms for all 68,503 jobs that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from math import nan
from typing import Final

from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Gap, Imported, Lines
from clusterwright.traces.numbers import is_blank, read_count, read_number
from clusterwright.traces.rows import CsvRows, NotThisKind
from clusterwright.traces.stamps import Clock

#: The zone of the cluster.
ZONE: Final = "America/Los_Angeles"
#: Column of the submission → the columns of the same form: duration, GPUs, virtual cluster, GPU time ("" for none).
FORMS: Final = {
    "timestamp": ("duration", "num_gpus", "cluster", "gpu_time"),
    "submit_time": ("duration", "gpu_num", "vc", ""),
}
_GAPS: Final = (
    Gap("start and wait", "replayed waits cannot be compared with real ones"),
    Gap("user, state and time limit", "failures, fairness among users and backfill by limits cannot be replayed"),
    Gap("nodes of a job", "how its GPUs were spread is unknown"),
)


def is_philly(header: Sequence[str]) -> bool:
    """Whether these are the columns of one of the forms."""
    return any(set(header) == {submit, *filter(None, columns)} for submit, columns in FORMS.items())


def read_philly(lines: Lines, zone: tzinfo) -> Imported:
    """The jobs of the trace; ids are its rows, counted from 1.

    Args:
        zone: of its local times, US Pacific.

    Raises:
        NotThisKind: when the columns are others.
    """
    tally, builder = Tally(), TraceBuilder()
    rows = CsvRows(lines, tally)
    if not is_philly(rows.header):
        raise NotThisKind(
            "columns of a Philly trace: " + "; or ".join(f"{k}, {', '.join(v)}" for k, v in FORMS.items())
        )
    submit = next(name for name in FORMS if name in rows.header)
    place = {name: rows.header.index(name) for name in (submit, *filter(None, FORMS[submit]))}
    duration, gpus, queue, gpu_time = FORMS[submit]
    clock = Clock(zone)
    for number, cells in enumerate(rows, 1):
        spent = cells[place[gpu_time]] if gpu_time else ""
        row = (cells[place[submit]], cells[place[duration]], cells[place[gpus]], spent)
        _add(builder, tally, rows, clock, number, row, cells[place[queue]].strip())
    return Imported("philly", builder.build(), tally.build(), _GAPS, str(zone))


def _add(
    builder: TraceBuilder, tally: Tally, rows: CsvRows, clock: Clock, number: int, row: tuple[str, ...], queue: str
) -> None:
    submit, run_s, gpus = clock.read(row[0].strip()), read_number(row[1]), read_count(row[2])
    line, text = rows.line, rows.text
    if submit is None:
        return tally.reject("no-submit" if is_blank(row[0]) else "bad-time", line, text, row[0])
    if run_s is None and not is_blank(row[1]):
        return tally.reject("bad-number", line, text, f"duration {row[1]}")
    if gpus is None:
        return tally.reject("bad-gpus", line, text, row[2])
    submit_s, odd = submit
    times = settle(tally, line, text, submit_s=submit_s, run_s=nan if run_s is None else run_s)
    if times is None:
        return None
    if odd:
        tally.remark(odd, line, text)
    spent_s = read_number(row[3])
    if spent_s is not None and run_s is not None and abs(spent_s - run_s * gpus) > max(1.0, 0.001 * spent_s):
        tally.remark("gpu-time-differs", line, text, f"{spent_s:g} GPU-s, {gpus} × {run_s:g} s")
    tally.job()
    builder.add(str(number), times.submit_s, run_s=times.run_s, gpus=gpus, queue=queue, line=line)
    return None
