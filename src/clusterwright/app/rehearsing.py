"""Rehearsals: the declared workloads' jobs as real processes on virtual nodes of the embedded engine.

A rehearsal shows that the declared shape can be scheduled and can recover at all, and how the engine's mechanics behave
in time. It proves nothing about the declared cluster.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from clusterwright.app import executing, losing
from clusterwright.app.running import stop
from clusterwright.app.stages import GRACE_S, Stage, Tell, virtual_nodes
from clusterwright.engines.local.layout import Layout, cluster_tag, read_json
from clusterwright.engines.local.reaping import Quarry, find
from clusterwright.judging.expecting import expect_jobs, promise_of
from clusterwright.lib.errors import ClusterwrightError, Interrupted, Unavailable
from clusterwright.model.architecture import Architecture
from clusterwright.model.evidence import Check, Rehearsal, RehearsalOutcome
from clusterwright.plan.results.plans import Plan
from clusterwright.queueing.declared import declared_policy, declared_tree
from clusterwright.queueing.policies import Policy

#: The most that one machine rehearses. A virtual node is an agent of about 25 MB, a rank a Python process of about
#: 15 MB that takes 0.1 s of CPU time to start (measured): 128 ranks start within 10 s on two cores.
MAX_NODES: Final = 16
MAX_RANKS: Final = 128
NAMES: Final = (executing.NAME, losing.NAME)


def rehearse(name: str, architecture: Architecture, plan: Plan, directory: Path, tell: Tell) -> Rehearsal:
    """Run one rehearsal to its end; its processes are gone when this returns or raises.

    Returns:
        NOT_RUN with the reason when the declared cluster cannot be rehearsed here; FAILED when it was tried and
        something did not hold; PASSED only when every check held.
    """
    began_s = time.monotonic()
    try:
        clear(directory)
        nodes, tree = virtual_nodes(architecture, plan), declared_tree(architecture.scheduling)
        promises = {p.workload: p for w in plan.workloads if (p := promise_of(plan, w.name)) is not None}
        policy = _rehearsed(declared_policy(architecture.scheduling))
        stage = Stage(nodes, tree, expect_jobs(architecture, plan), directory, tell, promises, policy)
        reason = why_not_here(stage)
        if reason:
            return not_run(name, reason)
        if name == executing.NAME:
            found = executing.rehearse_execution(stage)
        else:
            found = losing.rehearse_loss(architecture, stage)
    except (Interrupted, KeyboardInterrupt):
        _stop_whatever_runs(directory)
        raise
    except ClusterwrightError as error:
        # The engine itself did not do its part: that says nothing about the declared cluster.
        found = not_run(name, f"the embedded engine could not rehearse it: {error}")
    found = _with_leftovers(found, directory)
    return replace(found, seconds=time.monotonic() - began_s, log_directory=str(directory))


def _rehearsed(policy: Policy) -> Policy:
    """The declared policy for jobs that are seconds old: a minimum runtime counts as over, and the grace is theirs."""
    return replace(policy, preemption=replace(policy.preemption, minimum_runtime_s=0.0, grace_s=GRACE_S))


def _stop_whatever_runs(directory: Path) -> None:
    """End the cluster there, also one that lost its owner or was interrupted while it started."""
    state = directory / "state"
    if Layout(state).config.exists():
        stop(state, grace_s=0.0)


def _with_leftovers(found: Rehearsal, directory: Path) -> Rehearsal:
    """Look for processes of the rehearsal's cluster from outside: whatever the engine says, none may be left."""
    cluster = read_json(Layout(directory / "state").config)
    left = find(Quarry((cluster_tag(str(cluster["cluster"])),))) if isinstance(cluster, dict) else []
    check = Check("no process left", "0", str(len(left)), holds=not left)
    if left:
        numbers = ", ".join(str(f.identity.pid) for f in left[:8])
        return replace(
            found,
            outcome=RehearsalOutcome.FAILED,
            reason=f"{len(left)} processes are left: {numbers}",
            checks=(*found.checks, check),
        )
    return found if found.outcome is RehearsalOutcome.NOT_RUN else replace(found, checks=(*found.checks, check))


def not_run(name: str, reason: str) -> Rehearsal:
    """A rehearsal that did not take place."""
    return Rehearsal(name, RehearsalOutcome.NOT_RUN, reason)


def why_not_here(stage: Stage) -> str:
    """Why the declared cluster cannot be rehearsed on this machine, with what would do; "" when it can."""
    ranks, nodes = stage.expectation.ranks, len(stage.nodes)
    if nodes > MAX_NODES or ranks > MAX_RANKS:
        return (
            f"scope too small: {nodes} nodes and {ranks} ranks are declared, one machine rehearses at most {MAX_NODES} "
            f"nodes and {MAX_RANKS} ranks; run the placement probe as a job of the declared scheduler, or rehearse a "
            f"smaller copy of the file"
        )
    if not stage.expectation.jobs:
        reasons = [f"{m.workload}: {m.reason}" for m in stage.expectation.missing]
        return "nothing to run: " + ("; ".join(reasons) or "the file declares no workload")
    return ""


def clear(directory: Path) -> None:
    """Remove what an earlier run left, its processes first.

    Raises:
        Unavailable: when something of it cannot be ended or removed.
    """
    if not directory.exists():
        return
    _stop_whatever_runs(directory)
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise Unavailable(
            f"{error.filename or directory}: left by an earlier run, cannot be removed: {error.strerror}"
        ) from None
