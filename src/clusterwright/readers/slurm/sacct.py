"""sacct: jobs and steps of the past, for cost and for failures.

A record is an allocation, a step of it (`.batch`, `.extern`, `.0`) or, with `--duplicates`, an earlier attempt of a
requeued job. Steps lie inside their allocation and are never added to it; attempts are added up; a record that stands
several times is counted once. A record that contradicts itself is rejected, not repaired.

Observations (subject: job, step where it is one, attempt from the second on): `job_state`, `cancelled_by`, `elapsed`,
`start_to_end` (where no elapsed time is printed), `waited`, `time_limit`, `cpu_time`, `total_cpu`, `submit`,
`eligible`, `start`, `end`, `exit_code`, `exit_signal`, `nodes`, `cpus`, `node_list`, `gpus_allocated`,
`gpus_requested`, `gpu_time` (allocations only), `memory_requested` with `memory_scope`, `max_rss`, `average_rss`,
`max_vmsize`, `consumed_energy`, `job_name`, `user`, `account`, `partition`, `qos`, `cluster`, `pending_reason`,
`attempts`, `elapsed_total` (over attempts).
Conditions: `records`, `allocations`, `gpu_time` (of all allocations, where each has it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.slurm.account_facts import Observing
from clusterwright.readers.slurm.accounting import COLUMNS, iterate_records
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.layouts import find_layout
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.states import read_job_state

#: Observations for which room is kept when records are listed one by one: sums, attempts.
_ROOM: Final = 20_000


def recognise(head: Head) -> int:
    """A header of sacct, or rows of job ids with steps and states."""
    lines = [line for line in head.text.split("\n")[:60] if line.strip()]
    for line, below in zip(lines[:3], [*lines[1:4], ""], strict=False):
        layout = find_layout(line, below, COLUMNS)
        if layout is not None and "JobID" in layout.names and len(layout.names) > 2:
            return 95
        if layout is not None and len(layout.names) > 1 and {"JobID", "JobIDRaw", "State"} & set(layout.names):
            return 80
    steps = sum(bool(re.search(r"(?:^|[\s|])\d+(?:_\d+)?\.(?:batch|extern|\d+)(?=[\s|])", line)) for line in lines)
    states = sum(any(read_job_state(w) for w in re.split(r"[\s|]+", line) if len(w) > 5) for line in lines)
    bare = steps and states * 10 >= len(lines) * 5 and (steps + 1) * 10 >= len(lines) * 3
    return 55 + 10 * ("sacct" in head.name) if bare else 0


def read_lines(lines: Iterable[Line], asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one sacct output hold."""
    run = RunBuilder("sacct")
    observing: Observing | None = None
    listed = more = 0
    for row in iterate_records(lines, run, asked):
        if more or run.room < _ROOM:
            more += 1
            continue
        listed += 1
        observing = observing or Observing(row.cells)
        run.extend(observing.observe(row))
    if more:
        run.condition("records_listed", float(listed))
        run.notice(
            "records-summarised",
            f"the first {listed:,} records are listed one by one; {more:,} more were read and count in the sums by "
            "state and account and in what is said here",
            Weight.INFO,
        )
    return [run.build()]


READER: Final = Reader("slurm-sacct", "sacct: jobs and steps of the past", recognise, lambda s: read_lines(lines_of(s)))
