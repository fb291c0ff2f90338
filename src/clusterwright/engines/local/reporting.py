"""What agents report of ranks, as changes of jobs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from clusterwright.engines.local.lifecycles import Change, Started, on_exited, on_started, parse_exit, then
from clusterwright.engines.local.wire import Message
from clusterwright.model.jobs import Attempt, Exit, Job, JobId

#: Job, epoch, rank.
RankKey = tuple[str, int, int]


def ranks_of(reports: Sequence[Message]) -> set[RankKey]:
    """The ranks that an agent knows."""
    return {(str(r["job"]), int(r["epoch"]), int(r["rank"])) for r in reports}


def rank_changes(jobs: Mapping[JobId, Job], reports: Sequence[Message], now_s: float) -> list[Change]:
    """Ranks started or ended; reports of jobs that are not known change nothing."""
    changes = []
    for job_id, epoch in sorted({(str(r["job"]), int(r["epoch"])) for r in reports}):
        job = jobs.get(JobId(job_id))
        if job is None:
            continue
        mine = [r for r in reports if r["job"] == job_id and r["epoch"] == epoch]
        started = [
            Started(r["rank"], r["pid"], r["starttime"], r["started_at_s"]) for r in mine if r["pid"] is not None
        ]
        exits = {r["rank"]: (parse_exit(r["exit"]), r["ended_at_s"] or now_s) for r in mine if r["exit"]}
        first = on_started(job, epoch, started, now_s)
        changes.append(then(first, on_exited(first.job, epoch, exits, now_s)))
    return changes


def forgotten_change(job: Job, attempt: Attempt, node: str, known: Collection[RankKey], now_s: float) -> Change:
    """Ranks that should run on a node have ended where its agent, which is back, does not know them."""
    unknown = {
        r.rank: (Exit(error="its agent no longer knows this rank"), now_s)
        for r in attempt.ranks
        if attempt.node_of(r) == node and r.exit is None and (job.id, attempt.epoch, r.rank) not in known
    }
    return on_exited(job, attempt.epoch, unknown, now_s)
