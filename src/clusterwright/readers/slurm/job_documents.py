"""`sacct --json` job by job, in the memory of one job, as the records that sacct's tables have.

A month of accounting is gigabytes of JSON, far above what is read as a whole document.
Source: OpenAPI dbv0.0.38 to dbv0.0.44 (Slurm 22.05 to 25.11), data_parser: array.task, het.job_offset, time.limit in
minutes, allocation_nodes, required.memory_per_node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.account_documents import record_cells, step_name
from clusterwright.readers.slurm.job_rows import Describing, JobRow
from clusterwright.readers.slurm.wrapped import entries, epoch, infinite, inner, number, plain, text

#: Where the list of jobs begins.
_JOBS: Final = re.compile(r'"jobs"\s*:\s*\[')
_BLANKS: Final = re.compile(r"[\s,]*")
#: Longest beginning without jobs, and the most that one job takes, in characters.
_MOST_BEFORE: Final = 1 << 20
_MOST_OF_ONE: Final = 1 << 26


def stream_jobs(pieces: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The objects of the list `jobs`, one after the other.

    Args:
        pieces: the text, in pieces of any size.

    Raises:
        Refused: when there is no such list, or it is cut or no JSON in the middle.
    """
    source = iter(pieces)
    held, place = _find_list(source)
    decoder = json.JSONDecoder()
    while True:
        blanks = _BLANKS.match(held, place)
        place = blanks.end() if blanks is not None else place
        if held[place : place + 1] == "]":
            return
        found: Any = None
        try:
            found, place = decoder.raw_decode(held, place)
        except RecursionError:
            raise Refused("a job is nested too deeply", found=held[place : place + 60]) from None
        except ValueError as error:
            more = next(source, None)
            if more is None or len(held) - place > _MOST_OF_ONE:
                raise Refused(f"the list of jobs ends in the middle or is no JSON: {error}", found=held[-60:]) from None
            held, place = held[place:] + more, 0
            continue
        if isinstance(found, dict):
            yield found


def describe_jobs(jobs: Iterable[dict[str, Any]]) -> Iterator[tuple[JobRow, str, str]]:
    """Every allocation and step, as `accounting.describe_records` gives those of a table.

    Raises:
        Refused: when these are jobs of the queue, which have no accounting.
    """
    describing = Describing()
    for job in jobs:
        if "job_state" in job and "time" not in job:
            raise Refused("these are jobs of squeue or scontrol, not of accounting; print sacct --json")
        name = _name_of(job, plain(job.get("job_id")))
        yield _describe(describing, name, job, {**record_cells(job), **_more_cells(job)})
        for step in entries(job.get("steps")):
            cells = record_cells({"cluster": job.get("cluster"), **step})
            yield _describe(describing, f"{name}.{step_name(step)}", step, cells)


def _describe(
    describing: Describing, name: str, record: dict[str, Any], cells: dict[str, str]
) -> tuple[JobRow, str, str]:
    row = describing.describe(name, cells)
    wrong = describing.contradiction(row) if row.job else "a job without an id"
    return row, wrong, f"job {name} " + " ".join(f"{key}={value}" for key, value in cells.items())


def _find_list(source: Iterator[str]) -> tuple[str, int]:
    held = ""
    for piece in source:
        held += piece
        if (found := _JOBS.search(held)) is not None:
            return held, found.end()
        if len(held) > _MOST_BEFORE:
            break
    raise Refused('holds no list "jobs", which `sacct --json` prints', found=held[:100])


def _name_of(job: dict[str, Any], own: str) -> str:
    array, task = plain(inner(job, "array", "job_id")), plain(inner(job, "array", "task_id"))
    waiting = text(inner(job, "array", "task"))
    if array not in ("", "0"):
        if task:
            return f"{array}_{task}"
        return f"{array}_[{waiting}]" if waiting else own
    base = plain(inner(job, "het", "job_id"))
    return f"{base}+{plain(inner(job, 'het', 'job_offset')) or 0}" if base not in ("", "0") else own


def _more_cells(job: dict[str, Any]) -> dict[str, str]:
    limit = inner(job, "time", "limit")
    minutes = number(limit)
    cells = {
        "Eligible": epoch(inner(job, "time", "eligible")), "Partition": text(job.get("partition")),
        "QOS": text(job.get("qos")), "NNodes": plain(job.get("allocation_nodes")),
        "Priority": plain(job.get("priority")), "Restarts": plain(job.get("restart_cnt")),
        "NodeList": text(job.get("nodes")), "Timelimit": "UNLIMITED" if infinite(limit) else "",
        "TimelimitRaw": "" if minutes is None else f"{minutes:.15g}",
    }  # fmt: skip
    return {key: value for key, value in cells.items() if value}
