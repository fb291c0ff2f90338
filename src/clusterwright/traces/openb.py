"""The Alibaba openb trace (cluster-trace-gpu-v2023): pods and nodes as CSV.

Pods: `name,cpu_milli,memory_mib,num_gpu,gpu_milli` and, not in all variants, `gpu_spec` (types with `|` between),
`qos,pod_phase,creation_time,deletion_time,scheduled_time` (s since the start of the trace). A pod with one GPU may
share it: `gpu_milli` are thousandths. Nodes: `sn,cpu_milli,memory_mib,gpu,model`. A pod that was in phase Running when
it was deleted at the last instant of the trace ran on (censored); one deleted before is CANCELLED; a pod that was never
scheduled is PENDING at the last instant, else CANCELLED.

Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023; the README of the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Final

from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Gap, Imported, Lines, Machine
from clusterwright.traces.numbers import is_blank, read_count, read_number
from clusterwright.traces.rows import CsvRows, NotThisKind

PODS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIMES: Final = ("creation_time", "scheduled_time", "deletion_time")
NODES: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_STATES: Final = {"Succeeded": "COMPLETED", "Failed": "FAILED", "Running": "CANCELLED", "Pending": "CANCELLED"}
_GAPS: Final = (
    Gap("user and account", "fairness cannot be replayed"),
    Gap("time limits", "backfill by limits cannot be replayed"),
)
_ORDER_GAP: Final = Gap("times", "only the order of arrivals is known: submissions are numbered 0 s, 1 s, 2 s …")


def is_pods(header: Sequence[str]) -> bool:
    """Whether these are the columns of a list of pods."""
    return set(PODS) <= set(header)


def is_nodes(header: Sequence[str]) -> bool:
    """Whether these are the columns of a list of nodes."""
    return set(NODES) <= set(header)


def read_pods(lines: Lines) -> Imported:
    """The pods as jobs of one task each.

    Raises:
        NotThisKind: when the columns are others.
    """
    tally, builder = Tally(), TraceBuilder()
    rows = CsvRows(lines, tally)
    if not is_pods(rows.header):
        raise NotThisKind(f"columns {', '.join(PODS)} and, where they are recorded, {', '.join(TIMES)}")
    timed = set(TIMES) <= set(rows.header)
    open_ends = list[tuple[int, float, str]]()
    for number, cells in enumerate(rows):
        row = dict(zip(rows.header, cells, strict=True))
        place = _add_pod(builder, tally, rows, row, nan if timed else float(number))
        if place is not None and row.get("pod_phase") in ("Running", "Pending"):
            open_ends.append((place, read_number(row.get("deletion_time", "")) or nan, row["pod_phase"]))
    last = max((end for _, end, _ in open_ends if end == end), default=nan)
    for place, end_s, phase in open_ends:
        if end_s == last:
            builder.change(place, state=phase.upper(), censored=phase == "Running", end_s=nan)
            tally.remark("still-running" if phase == "Running" else "still-pending", 0, builder.ids[place])
        elif phase == "Pending":
            tally.remark("never-ran", 0, builder.ids[place])
    gaps = _GAPS if timed else (*_GAPS, _ORDER_GAP)
    return Imported("openb", builder.build(), tally.build(), gaps, dated=False)


def read_nodes(lines: Lines) -> Imported:
    """The nodes; there are no jobs among them.

    Raises:
        NotThisKind: when the columns are others.
    """
    tally, machines = Tally(), list[Machine]()
    rows = CsvRows(lines, tally)
    if not is_nodes(rows.header):
        raise NotThisKind(f"columns {', '.join(NODES)}")
    for cells in rows:
        row = dict(zip(rows.header, cells, strict=True))
        gpus = read_count(row["gpu"])
        cpus, memory = read_number(row["cpu_milli"]), read_number(row["memory_mib"])
        if gpus is None:
            tally.reject("bad-gpus", rows.line, rows.text, row["gpu"])
        elif cpus is None or memory is None or cpus < 0 or memory < 0:
            tally.reject("bad-number", rows.line, rows.text)
        else:
            tally.part("node", rows.line, rows.text)
            machines.append(Machine(row["sn"], gpus, row["model"].strip(), cpus / 1000.0, memory / 1024.0))
    return Imported("openb-nodes", TraceBuilder().build(), tally.build(), dated=False, machines=tuple(machines))


def _add_pod(
    builder: TraceBuilder, tally: Tally, rows: CsvRows, row: Mapping[str, str], order: float
) -> int | None:  # fmt: skip
    line, text = rows.line, rows.text
    gpus, milli = read_count(row["num_gpu"]), read_count(row["gpu_milli"])
    cpus, memory = read_number(row["cpu_milli"]), read_number(row["memory_mib"])
    moments = [_moment(row.get(name, "")) for name in TIMES]
    if not row["name"].strip():
        tally.reject("no-id", line, text)
    elif gpus is None or milli is None or (gpus > 0 and not 0 < milli <= 1000) or (gpus > 1 and milli != 1000):
        tally.reject("bad-gpus", line, text, f"num_gpu {row['num_gpu']}, gpu_milli {row['gpu_milli']}")
    elif cpus is None or memory is None or cpus < 0 or memory < 0:
        tally.reject("bad-number", line, text)
    elif None in moments:
        tally.reject("bad-time", line, text)
    else:
        created, scheduled, deleted = (nan if moment is None else moment for moment in moments)
        submit_s = created if order != order else order
        times = settle(tally, line, text, submit_s=submit_s, start_s=scheduled, end_s=deleted)
        if times is None:
            return None
        tally.job()
        return builder.add(
            row["name"].strip(), times.submit_s, start_s=times.start_s, end_s=times.end_s, run_s=times.run_s, gpus=gpus,
            gpu_milli=milli if gpus else 1000, tasks=1, gpus_per_task=gpus, cpus=cpus / 1000.0,
            memory_gib=memory / 1024.0, qos=row.get("qos", "").strip(), flavor=row.get("gpu_spec", "").strip(),
            state=_STATES.get(row.get("pod_phase", ""), ""), line=line,
        )  # fmt: skip
    return None


def _moment(text: str) -> float | None:
    """Seconds; NaN where none is printed, None for what is no number."""
    return nan if is_blank(text) else read_number(text)
