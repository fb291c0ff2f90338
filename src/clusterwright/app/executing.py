"""The rehearsal of scheduled execution: every task of every declared workload at once, each reporting what it sees."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from clusterwright.app.running import ClusterHandle, start_cluster
from clusterwright.app.stages import (
    LOOK_S,
    PATIENCE_S,
    SETTLE_S,
    Stage,
    is_stuck,
    probe_command,
    probe_spec,
    task_groups,
    tell_up,
    why_waiting,
)
from clusterwright.judging.executing import JobReport, Report, compare_execution, parse_report
from clusterwright.judging.expecting import ExpectedJob
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.evidence import Check, Rehearsal, RehearsalOutcome
from clusterwright.model.jobs import Job, JobId, JobSpec, JobState
from clusterwright.probes.reporter import EVERYWHERE, LABEL

NAME: Final = "scheduled-execution"


def rehearse_execution(stage: Stage) -> Rehearsal:
    """Run every expected job with the reporter, all at once, and compare what the ranks say with what was expected."""
    release = stage.directory / "release"
    stores = _make_stores(stage)
    state = stage.directory / "state"
    with start_cluster(state, stage.nodes, tree=stage.tree, policy=stage.policy, restart_agents=False) as cluster:
        tell_up(stage)
        jobs = dict[str, JobId]()
        found = dict[str, JobReport]()
        for job in sorted(stage.expectation.jobs, key=lambda j: -j.priority):
            try:
                jobs[job.name] = cluster.engine.submit(_placement_spec(job, stage, stores, release))
            except InvalidInput as error:
                found[job.name] = JobReport((), note=str(error))
        found |= _collect_reports(cluster, stage, jobs)
        release.touch()
        ends = [_await_end(cluster, name, job) for name, job in jobs.items() if found[name].reports]
    checks, reading = compare_execution(stage.expectation, found)
    checks = (*checks, *ends)
    failed = [c for c in checks if not c.holds]
    total = stage.expectation.ranks
    reason = f"{len(stage.expectation.jobs)} jobs with {total} ranks ran as expected; images are not part of it"
    if failed:
        reason = f"{failed[0].name}: expected {failed[0].expected}, seen {failed[0].seen}"
        reason += f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    outcome = RehearsalOutcome.FAILED if failed else RehearsalOutcome.PASSED
    return Rehearsal(NAME, outcome, reason, checks=checks, readings=(reading,))


def _make_stores(stage: Stage) -> dict[str, dict[str, str]]:
    """A directory for every store that a job expects, one for all nodes or one on each; store → node → path.

    Directories are numbered: a store's name is the user's and need not be a file name.
    """
    shared = dict.fromkeys(s for j in stage.expectation.jobs for s in j.shared_stores)
    local = dict.fromkeys(s for j in stage.expectation.jobs for s in j.node_stores)
    paths: dict[str, dict[str, str]] = {}
    for number, store in enumerate((*shared, *local)):
        places = (EVERYWHERE,) if store in shared else tuple(n.name for n in stage.nodes)
        paths[store] = {}
        for place in places:
            path = stage.directory / "stores" / (place if place != EVERYWHERE else "shared") / str(number)
            path.mkdir(parents=True, exist_ok=True)
            (path / LABEL).write_text(store, encoding="utf-8")
            paths[store][place] = str(path)
    return paths


def _placement_spec(job: ExpectedJob, stage: Stage, stores: dict[str, dict[str, str]], release: Path) -> JobSpec:
    wanted = json.dumps({s: stores[s] for s in (*job.shared_stores, *job.node_stores)})
    argv = probe_command("reporter", "--stores", wanted, "--until", str(release), "--wait", f"{PATIENCE_S:g}")
    others = tuple(n.name for n in stage.nodes if n.name not in job.nodes)
    return replace(probe_spec(job, task_groups(job, argv)), exclude=others)


def _collect_reports(cluster: ClusterHandle, stage: Stage, jobs: dict[str, JobId]) -> dict[str, JobReport]:
    """What every job's ranks said, once all did, or as far as they did when nothing more can be expected."""
    wanted = {j.name: j.ranks for j in stage.expectation.jobs}
    found = dict[str, JobReport]()
    deadline = time.monotonic() + PATIENCE_S
    quiet_since = time.monotonic()
    while len(found) < len(jobs) and time.monotonic() < deadline:
        for name in [n for n in jobs if n not in found]:
            job = cluster.engine.job(jobs[name])
            report = _read_reports(cluster, job)
            if len(report.reports) + len(report.unreadable) >= wanted[name] or job.state.final:
                found[name] = report
                quiet_since = time.monotonic()
                where = ", ".join(job.attempt.nodes) if job.attempt else "nowhere"
                stage.tell(f"{name}: {len(report.reports)} of {wanted[name]} ranks report from {where}")
        rest = [jobs[n] for n in jobs if n not in found]
        if rest and time.monotonic() - quiet_since > SETTLE_S and all(is_stuck(cluster, j) for j in rest):
            break
        time.sleep(LOOK_S)
    for name in [n for n in jobs if n not in found]:
        job = cluster.engine.job(jobs[name])
        found[name] = replace(_read_reports(cluster, job), note=why_waiting(cluster, job))
    return found


def _read_reports(cluster: ClusterHandle, job: Job) -> JobReport:
    if job.attempt is None:
        return JobReport(())
    read = [parse_report(line.text) for line in cluster.engine.logs(job.id) if line.stream == "stdout"]
    errors = [line.text for line in cluster.engine.logs(job.id) if line.stream == "stderr"]
    note = f"{job.state}: {job.detail}" if job.state is JobState.FAILED else ""
    return JobReport(
        tuple(r for r in read if isinstance(r, Report)),
        tuple(r for r in read if isinstance(r, str)) + tuple(errors[-1:]),
        note,
    )


def _await_end(cluster: ClusterHandle, name: str, job: JobId) -> Check:
    try:
        ended = cluster.engine.wait(job, timeout_s=PATIENCE_S)
    except Unavailable as error:
        return Check(f"{name}: ends", JobState.SUCCEEDED.value, str(error), holds=False)
    seen = ended.state.value + (f": {ended.detail}" if ended.state is not JobState.SUCCEEDED else "")
    return Check(f"{name}: ends", JobState.SUCCEEDED.value, seen, ended.state is JobState.SUCCEEDED)
