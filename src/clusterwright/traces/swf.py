"""The Standard Workload Format of the Parallel Workloads Archive: 18 fields a job, -1 where not known.

Fields: 1 job, 2 submit s, 3 wait s, 4 run s, 5 processors allocated, 6 CPU time s, 7 memory used KB per processor,
8 processors requested, 9 time requested s, 10 memory requested KB per processor, 11 status (0 failed, 1 completed,
5 cancelled; 2, 3, 4 are partial executions inside a job's summary line), 12 user, 13 group, 14 executable, 15 queue,
16 partition, 17 preceding job, 18 think time s. Comments begin with `;`, header comments are `; Label: value`.
Times count from UnixStartTime. Processors become GPUs only where the caller says how many make one.

Source: Feitelson, "The Standard Workload Format", version 2.2, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html;
Chapin et al., Benchmarks and Standards for the Evaluation of Parallel Job Schedulers, JSSPP 1999.
"""

from __future__ import annotations

import re
from math import ceil, inf, isnan, nan
from typing import Final

from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Gap, Imported, Lines
from clusterwright.traces.numbers import read_number
from clusterwright.traces.rows import NotThisKind
from clusterwright.traces.rules import MOST_GPUS
from clusterwright.traces.tables import UNKNOWN

FIELDS: Final = 18
STATUSES: Final = {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}
_PARTIAL: Final = frozenset({2, 3, 4})
_LABEL: Final = re.compile(r";\s*([A-Za-z][\w ]{0,40}):\s*(.*)")
_KB_PER_GIB: Final = 1024.0 * 1024.0
_MOST_LABELS: Final = 100


def read_swf(lines: Lines, processors_per_gpu: int = 0) -> Imported:
    """The jobs of a log.

    Args:
        processors_per_gpu: how many processors make a GPU; 0: they are no GPUs, which stay unknown.

    Raises:
        NotThisKind: when no row has 18 fields.
    """
    tally, builder = Tally(), TraceBuilder()
    header: dict[str, str] = {}
    for line, text in lines:
        if text.lstrip().startswith(";"):
            _read_label(text.strip(), header)
        elif text.strip():
            _read_row(builder, tally, line, text, header, processors_per_gpu)
    if not tally.jobs and not any(found.code != "fields" for found in tally.build().rejected):
        raise NotThisKind(f"rows of {FIELDS} numbers with blanks between them, comments that begin with ;")
    return Imported("swf", builder.build(), tally.build(), _gaps(header, processors_per_gpu), "", bool(_base(header)),
                    header=header)  # fmt: skip


def _read_label(text: str, header: dict[str, str]) -> None:
    found = _LABEL.fullmatch(text)
    if found is not None and found[1] not in header and len(header) < _MOST_LABELS:
        header[found[1]] = found[2].strip()[:400]


def _base(header: dict[str, str]) -> float:
    base_s = read_number(header.get("UnixStartTime", ""))
    return base_s if base_s is not None and base_s > 0 else 0.0


def _read_row(
    builder: TraceBuilder, tally: Tally, line: int, text: str, header: dict[str, str], processors_per_gpu: int
) -> None:
    cells = text.split()
    if len(cells) != FIELDS:
        return tally.reject("fields", line, text, f"{len(cells)} of {FIELDS}")
    read = [read_number(cell) for cell in cells]
    if None in read:
        return tally.reject("bad-number", line, text, cells[read.index(None)])
    number = [nan if value is None or value == -1 else value for value in read]
    job, submit, wait, run, allocated, _, _, requested, limit, memory, status, user, group, _, queue = number[:15]
    if isnan(job):
        return tally.reject("no-id", line, text)
    if status in _PARTIAL:
        return tally.part("partial-run", line, text)
    base_s = _base(header)
    ran = not (status == 5 and not run > 0)
    times = settle(
        tally, line, text, submit_s=base_s + submit, start_s=base_s + submit + wait if ran else nan,
        run_s=run if ran else nan,
    )  # fmt: skip
    if times is None:
        return None
    processors = allocated if allocated > 0 else requested
    if processors < 0 or processors > MOST_GPUS:
        return tally.reject("bad-gpus", line, text, f"{processors:g} processors")
    state = STATUSES.get(int(status), "") if not isnan(status) else ""
    _remark(tally, line, text, ran=ran, state=state, status=status, limit=limit, run_s=times.run_s)
    tally.job()
    builder.add(
        cells[0], times.submit_s, start_s=times.start_s, end_s=times.end_s, run_s=times.run_s,
        limit_s=limit if limit > 0 else nan, gpus=_gpus(tally, line, text, processors, processors_per_gpu),
        cpus=processors if processors > 0 else nan,
        memory_gib=memory * processors / _KB_PER_GIB if memory > 0 else nan, queue=_word(queue, cells[14]),
        user=_word(user, cells[11]), account=_word(group, cells[12]), state=state, line=line,
    )  # fmt: skip
    return None


def _remark(
    tally: Tally, line: int, text: str, *, ran: bool, state: str, status: float, limit: float, run_s: float
) -> None:
    if not ran:
        tally.remark("never-ran", line, text)
    if not state and not isnan(status):
        tally.remark("unknown-state", line, text, f"status {status:g}")
    if over_limit(run_s, limit if limit > 0 else inf):
        tally.remark("over-limit", line, text, f"{run_s:g} s, limit {limit:g} s")


def over_limit(run_s: float, limit_s: float) -> bool:
    """Whether a job ran longer than its limit by more than a tenth and five minutes: OverTimeLimit and kill waits."""
    return run_s > limit_s * 1.1 + 300.0


def _gpus(tally: Tally, line: int, text: str, processors: float, per_gpu: int) -> int:
    if not per_gpu or isnan(processors):
        return UNKNOWN
    gpus = ceil(processors / per_gpu)
    if gpus * per_gpu != processors:
        tally.remark("processors-not-gpus", line, text, f"{processors:g} processors, {per_gpu} per GPU")
    return gpus


def _word(number: float, cell: str) -> str:
    return "" if isnan(number) else cell


def _gaps(header: dict[str, str], processors_per_gpu: int) -> tuple[Gap, ...]:
    gaps = []
    if not processors_per_gpu:
        gaps.append(Gap("GPUs", "processors are shown as cores, GPUs are unknown", "--processors-per-gpu N"))
    if not _base(header):
        gaps.append(
            Gap("the date", "times count from the start of the log", "a header line `; UnixStartTime: SECONDS`")
        )
    return tuple(gaps)
