"""A trace in the Standard Workload Format. What a field cannot hold is -1, and the header says what was left out.

Processors are GPUs; times are whole seconds from UnixStartTime; words (users, groups, queues) become numbers, with the
names in the header.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Final

from clusterwright.traces.swf import STATUSES
from clusterwright.traces.tables import Trace, TraceJob, Words

_STATUS: Final = {word: number for number, word in STATUSES.items()}
_CODED: Final = {"TIMEOUT": 0, "NODE_FAIL": 0, "OUT_OF_MEMORY": 0, "PREEMPTED": 5, "DEADLINE": 0, "BOOT_FAIL": 0}
#: Names of a column that the header lists.
_MOST_NAMES: Final = 1000
_KB_PER_GIB: Final = 1024.0 * 1024.0


def swf_lines(trace: Trace, *, dated: bool, title: str) -> Iterator[str]:
    """The lines of the log, without ends; rejected rows of its source are in none of them.

    Args:
        dated: whether the times are POSIX seconds.
        title: what the trace is, for the header.
    """
    base_s = trace.window_s[0] if dated else 0.0
    base_s = float(int(base_s))
    users, groups, queues = (_numbers(column) for column in (trace.user, trace.account, trace.queue))
    yield "; Version: 2.2"
    yield f"; Computer: {title}"
    yield f"; UnixStartTime: {base_s:.0f}" if dated else "; Note: times count from the start of the trace"
    yield f"; MaxJobs: {len(trace)}"
    yield f"; MaxRecords: {len(trace)}"
    yield "; Note: processors are GPUs; times are rounded to whole seconds"
    for label, column in (("User", trace.user), ("Group", trace.account), ("Queue", trace.queue)):
        for number, word in enumerate(column.words[1 : _MOST_NAMES + 1], 1):
            yield f"; {label}: {number} {_one_line(word)}"
    for number, job in enumerate(trace.jobs(), 1):
        yield _line(number, job, base_s, users[job.user], groups[job.account], queues[job.queue])


def _numbers(column: Words) -> dict[str, int]:
    return {word: code or -1 for code, word in enumerate(column.words)}


def _one_line(word: str) -> str:
    return " ".join(word.split())


def _line(number: int, job: TraceJob, base_s: float, user: int, group: int, queue: int) -> str:
    status = _STATUS.get(job.state, _CODED.get(job.state, -1))
    memory = job.memory_gib * _KB_PER_GIB / job.gpus if job.gpus > 0 else -1.0
    wait_s = max(job.start_s - job.submit_s, 0.0)  # NaN stays NaN: it is the first
    fields = (
        float(number), job.submit_s - base_s, wait_s, job.run_s, float(job.gpus), -1.0,
        -1.0, float(job.gpus), job.limit_s, memory, float(status), float(user), float(group), -1.0, float(queue), -1.0,
        -1.0, -1.0,
    )  # fmt: skip
    return " ".join(f"{round(value)}" if isfinite(value) else "-1" for value in fields)
