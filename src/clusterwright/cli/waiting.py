"""`cw queue|why`: which jobs there are, and why one waits."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from clusterwright.app.running import connect, default_state_dir
from clusterwright.cli.output import Format, say, say_json
from clusterwright.cli.running import Output, State
from clusterwright.model.jobs import Job, JobId, JobState
from clusterwright.model.outlooks import Outlook
from clusterwright.report.queues import job_values, outlook_values, render_jobs, render_why


def queue(
    jobs: Annotated[list[str] | None, typer.Argument(help="Only these jobs.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also jobs that have ended.")] = False,
    state: State = None,
    output: Output = Format.text,
) -> None:
    """List jobs; under each that waits its place in its queue, the first reason why, and the start it is promised.

    A start is promised only where nobody may delay it: to the job that backfilling waits for, and to one for which
    others leave. It is said with what it rests on; no other time is guessed. `cw why` gives every reason.
    """
    engine = connect(state or default_state_dir())
    found = (
        [engine.job(JobId(j)) for j in jobs] if jobs else [j for j in engine.jobs() if everything or not j.state.final]
    )
    waiting = [j.id for j in found if _may_wait(j)]
    outlooks = dict(zip(waiting, engine.outlooks(*waiting), strict=True))
    if output is Format.json:
        say_json([job_values(j, outlooks.get(j.id, Outlook())) for j in found])
        return
    virtual = frozenset(n.spec.name for n in engine.nodes() if n.spec.virtual)
    say(render_jobs(found, outlooks, virtual, time.time()))


def why(
    job: Annotated[str, typer.Argument(help="The job's number.")],
    state: State = None,
    output: Output = Format.text,
) -> None:
    """Say everything that keeps a job from running: numbers, who holds what it needs, the next step, when looked at.

    Exit code 0 whether it waits or not.
    """
    engine = connect(state or default_state_dir())
    found = engine.job(JobId(job))
    (outlook,) = engine.outlooks(found.id)
    if output is Format.json:
        say_json({"job": found.id, "state": found.state, "queue": found.spec.queue, **outlook_values(outlook)})
    else:
        say(render_why(found, outlook, time.time()))


def _may_wait(job: Job) -> bool:
    return not job.state.final and job.state is not JobState.RUNNING
