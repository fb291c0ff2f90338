"""Jobs with their reasons, and nodes, as tables for a terminal and as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.lib.hostlists import HostlistError, fold
from clusterwright.model.jobs import AttemptState, Job, JobId, Node
from clusterwright.model.outlooks import Blocker, Outlook

Outlooks = Mapping[JobId, Outlook]

#: Said under every table that shows a virtual node.
VIRTUAL_NOTE: Final = "virtual: the processes are real, the GPUs are not"


def render_jobs(jobs: Sequence[Job], outlooks: Outlooks, virtual: frozenset[str], now_s: float) -> str:
    """One line per job, under it its place, the first reason why it does not run and its promise, or why it ended.

    Args:
        jobs: in the order in which they are shown.
        outlooks: by job, of those that do not run.
        virtual: names of virtual nodes.
        now_s: POSIX seconds, for the time column: since the attempt began, or since the job was queued.
    """
    if not jobs:
        return "no jobs"
    rows: list[tuple[str, ...]] = [("JOB", "NAME", "QUEUE", "STATE", "TRY", "GPUS", "TIME", "NODES")]
    below: list[list[str]] = [[]]
    for job in jobs:
        rows.append(_job_row(job, virtual, now_s))
        below.append(_standing(job, outlooks.get(job.id, Outlook()), now_s) or _outcome(job))
    lines = _table(rows)
    text = [line for row, notes in zip(lines, below, strict=True) for line in (row, *(f"    {n}" for n in notes))]
    shown = {n for j in jobs if j.active is not None for n in j.active.nodes}
    return "\n".join([*text, *([VIRTUAL_NOTE] if shown & virtual else [])])


def render_nodes(nodes: Sequence[Node]) -> str:
    """One line per node: state, GPUs in use, model, whether they are real, incarnation of its agent, reason."""
    rows = [("NODE", "STATE", "GPUS", "MODEL", "KIND", "AGENT", "REASON")]
    for node in nodes:
        rows.append(
            (
                node.spec.name,
                str(node.state),
                f"{len(node.used)}/{len(node.devices)}",
                node.spec.gpu_model or "-",
                "virtual" if node.spec.virtual else "real",
                f"#{node.incarnation}" if node.incarnation else "-",
                node.reason or "-",
            )
        )
    note = [VIRTUAL_NOTE] if any(n.spec.virtual for n in nodes) else []
    return "\n".join([*_table(rows), *note])


def render_reasons(reasons: Sequence[Blocker]) -> list[str]:
    """One line for every reason why a job does not run."""
    return [_reason(b) for b in reasons]


def render_why(job: Job, outlook: Outlook, now_s: float) -> str:
    """Every reason why a job does not run, with its numbers and when it was looked at; place and promise."""
    name = json.dumps(job.spec.name, ensure_ascii=False)
    if not outlook.blockers:
        return "\n".join(
            [
                f"job {job.id} {name} is {job.state}" + ("" if job.state.final else "; nothing keeps it from running"),
                *_outcome(job),
            ]
        )
    where = f", position {outlook.position} in queue '{job.spec.queue}'" if outlook.position is not None else ""
    lines = [f"job {job.id} {name} is {job.state}{where}"]
    for blocker in outlook.blockers:
        lines.append(f"    {_reason(blocker)}")
        numbers = ", ".join(f"{name} {value:g}" for name, value in blocker.numbers.items())
        looked_at = datetime.fromtimestamp(blocker.evaluated_at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        lines.append(f"        {numbers}{'; ' * bool(numbers)}looked at {looked_at}")
    return "\n".join([*lines, *(f"    {text}" for text in _promise(outlook, now_s))])


def job_values(job: Job, outlook: Outlook) -> dict[str, Any]:
    """A job with its place, its reasons and its promise as plain values."""
    values: dict[str, Any] = asdict(job)
    return {**values, **outlook_values(outlook)}


def outlook_values(outlook: Outlook) -> dict[str, Any]:
    """Where a job stands as plain values; `promise` is null where there is none."""
    return asdict(outlook)


def node_values(node: Node) -> dict[str, Any]:
    """A node as plain values."""
    return asdict(node)


def _job_row(job: Job, virtual: frozenset[str], now_s: float) -> tuple[str, ...]:
    attempt = job.active
    state = str(job.state)
    since = job.queued_at_s
    nodes, gpus = "-", f"{job.spec.most_gpus}"
    if attempt is not None:
        since = attempt.started_at_s or attempt.admitted_at_s
        nodes = _fold(attempt.nodes) + (" (virtual)" if virtual & set(attempt.nodes) else "")
        gpus = f"{attempt.gpus}" if attempt.gpus == job.spec.most_gpus else f"{attempt.gpus} of {job.spec.most_gpus}"
        if attempt.state is AttemptState.FENCING:
            state = f"{state}/FENCING"
    until = now_s if job.ended_at_s is None else job.ended_at_s
    since = job.submitted_at_s if job.ended_at_s is not None else since
    name = json.dumps(job.spec.name, ensure_ascii=False)[1:-1]
    return (job.id, name, job.spec.queue, state, f"{len(job.attempts)}", gpus, _duration(until - since), nodes)


def _standing(job: Job, outlook: Outlook, now_s: float) -> list[str]:
    """The first reason with the place, and the promise."""
    if not outlook.blockers:
        return []
    place = "" if outlook.position is None else f"position {outlook.position}; "
    more = len(outlook.blockers) - 1
    rest = f"; {more} more reason{'s' * (more > 1)}: `cw why {job.id}`" if more else ""
    return [f"{place}{_reason(outlook.blockers[0])}{rest}", *_promise(outlook, now_s)]


def _promise(outlook: Outlook, now_s: float) -> list[str]:
    promise = outlook.promise
    return [] if promise is None else [f"starts in {_duration(promise.at_s - now_s)} {promise.basis}"]


def _reason(blocker: Blocker) -> str:
    text = f"{blocker.kind}: {blocker.message}"
    if blocker.holders:
        text += f"; held by job{'s' * (len(blocker.holders) > 1)} {', '.join(blocker.holders)}"
    return text + (f"; {blocker.next_step}" if blocker.next_step else "")


def _outcome(job: Job) -> list[str]:
    if not job.state.final or not job.detail:
        return []
    return [f"{job.cause}: {job.detail}" if job.cause else job.detail]


def _fold(nodes: Sequence[str]) -> str:
    try:
        return fold(nodes)
    except HostlistError:
        return ",".join(nodes)


def _duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {whole % 60:02} s"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
