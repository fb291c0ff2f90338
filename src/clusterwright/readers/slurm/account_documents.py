"""JSON of `sacct --json`: the same records as sacct's tables, through the same accounting."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.model.observations import Labels
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.slurm.accounts import Attempts
from clusterwright.readers.slurm.amounts import read_time
from clusterwright.readers.slurm.gres import gpus_of
from clusterwright.readers.slurm.job_rows import Describing
from clusterwright.readers.slurm.states import read_job_state
from clusterwright.readers.slurm.wrapped import entries, epoch, inner, number, plain, text, words
from clusterwright.readers.values import quantity, unreadable

_TEXTS: Final = {"user": "user", "account": "account", "partition": "partition", "qos": "qos", "cluster": "cluster",
                 "name": "job_name", "nodes": "node_list"}  # fmt: skip
_MOST_STEPS: Final = 10_000


def read_jobs(listed: list[dict[str, Any]], run: RunBuilder) -> None:
    """Write the jobs and their steps into the run."""
    attempts, describing = Attempts(run), Describing()
    for job in listed:
        own = plain(job.get("job_id"))
        if not own:
            run.reject(0, str(sorted(job))[:100], "a job without an id")
            continue
        array = plain(inner(job, "array", "job_id"))
        task = plain(inner(job, "array", "task_id"))
        name = f"{array}_{task}" if array not in ("", "0") and task else own
        _read_one(job, name, run, attempts, describing)
        for step in list(entries(job.get("steps")))[:_MOST_STEPS]:
            inside = {"cluster": job.get("cluster"), **step}
            _read_one(inside, f"{name}.{step_name(step)}", run, attempts, describing)
    attempts.finish()


def step_name(step: dict[str, Any]) -> str:
    """What follows the point in the id of a step: `batch`, `extern`, `0`."""
    found = inner(step, "step", "id")
    label = found if isinstance(found, str) else plain(found)
    return label.rpartition(".")[2] or text(inner(step, "step", "name")) or "?"


def _read_one(record: dict[str, Any], name: str, run: RunBuilder, attempts: Attempts, describing: Describing) -> None:
    cells = record_cells(record)
    row = describing.describe(name, cells)
    if wrong := describing.contradiction(row):
        run.reject(0, name, wrong)
        return
    kept = attempts.keep(row, hash((name, *cells.items())))
    if kept is not None:
        _observe(record, cells, run, kept.subject)
        if kept.gpu_seconds is not None and not kept.step:
            run.observe("gpu_time", quantity(kept.gpu_seconds / 3600, "GPU-h"), kept.subject)


def record_cells(record: dict[str, Any]) -> dict[str, str]:
    """The record in the words of sacct's columns."""
    states = words(inner(record, "state", "current")) or words(record.get("state"))
    cells = {
        "State": states[0] if states else "", "ElapsedRaw": plain(inner(record, "time", "elapsed")),
        "Submit": epoch(inner(record, "time", "submission")), "Start": epoch(inner(record, "time", "start")),
        "End": epoch(inner(record, "time", "end")), "AllocTRES": _tres(inner(record, "tres", "allocated")),
        "ReqTRES": _tres(inner(record, "tres", "requested")), "User": text(record.get("user")),
        "Cluster": text(record.get("cluster")),
    }  # fmt: skip
    if "account" in record:
        cells["Account"] = text(record.get("account"))
    if cells["Start"] and not cells["End"]:
        cells["End"] = "Unknown"
    return {key: value for key, value in cells.items() if value or key == "AllocTRES"}


def _tres(value: Any) -> str:
    """`cpu=8,gres/gpu=2` of a list of {type, name, count}."""
    parts = []
    for entry in entries(value):
        name = text(entry.get("name"))
        count = number(entry.get("count"))
        if count is not None:
            parts.append(f"{text(entry.get('type'))}{'/' + name if name else ''}={count:.15g}")
    return ",".join(parts)


def _observe(record: dict[str, Any], cells: dict[str, str], run: RunBuilder, subject: Labels) -> None:
    word = cells.get("State")
    if word:
        run.observe("job_state", read_job_state(word) or unreadable(word, "no state that Slurm documents"), subject)
    for key, name in _TEXTS.items():
        value = text(record.get(key))
        if value and value != "None assigned":
            run.observe(name, value, subject)
    for column, name in (("Submit", "submit"), ("Start", "start"), ("End", "end")):
        if column in cells:
            run.observe(name, read_time(cells[column]), subject)
    elapsed = number(inner(record, "time", "elapsed"))
    if elapsed is not None:
        run.observe("elapsed", quantity(elapsed, "s"), subject)
    limit = number(inner(record, "time", "limit"))
    if limit is not None:
        run.observe("time_limit", quantity(limit * 60, "s"), subject)
    for column, name in (("AllocTRES", "gpus_allocated"), ("ReqTRES", "gpus_requested")):
        if cells.get(column):
            count = gpus_of(cells[column])
            run.observe(name, float(count) if isinstance(count, int) else count, subject)
    code = number(inner(record, "exit_code", "return_code"))
    if code is not None:
        run.observe("exit_code", code, subject)
