"""The rehearsal of a worker loss told to people: how it ended, why, and what happened when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from clusterwright.judging.recovering import LossObservation, compare_loss, time_loss
from clusterwright.model.evidence import Check, Moment, MomentKind, Reading, Rehearsal, RehearsalOutcome
from clusterwright.model.jobs import Event, JobId
from clusterwright.model.outlooks import BlockerKind

#: In place of a time without reading.
_UNKNOWN: Final = "an unknown time (the clock was set back)"
#: Kinds of events that are told; the others are the engine's own steps.
_TOLD: Final = frozenset(
    {"submitted", "admitted", "started", "node_lost", "fencing", "fenced", "requeued", "blocked_by", "ended"}
)


def conclude_loss(name: str, seen: LossObservation, timeline: tuple[Moment, ...]) -> Rehearsal:
    """Passed when every check holds; else failed with the true reason: who holds the GPUs, where there is no room."""
    checks = compare_loss(seen)
    readings = tuple(r for r in time_loss(seen) if seen.trains or r.metric != "lost_work")
    failed = [c for c in checks if not c.holds]
    reason = "; ".join([_why_failed(seen, failed) if failed else _summary(seen, readings), *_notes(seen)])
    outcome = RehearsalOutcome.FAILED if failed else RehearsalOutcome.PASSED
    return Rehearsal(name, outcome, reason, workload=seen.workload, checks=checks, readings=readings, timeline=timeline)


def _summary(seen: LossObservation, readings: Sequence[Reading]) -> str:
    times: defaultdict[str, object] = defaultdict(lambda: _UNKNOWN, {r.metric: r.value for r in readings})
    text = f"noticed in {times['detection_time']}, "
    if seen.runs_on:
        runs, there = seen.replicas
        on = "runs on and carries" if runs == 1 else "run on and carry"
        return text + f"{runs} of {there} replicas {on} the load as planned; {seen.job} {seen.waits}"
    text += f"working again after {times['recovery_time']}"
    if "lost_work" in times:
        text += f", {times['lost_work']} of work done again with checkpoints every {seen.interval_s:g} s here"
    return text


def _why_failed(seen: LossObservation, failed: Sequence[Check]) -> str:
    if seen.waits:
        return f"without {seen.node} {seen.job} {seen.waits}"
    return f"{failed[0].name}: expected {failed[0].expected}, seen {failed[0].seen}"


def _notes(seen: LossObservation) -> Iterator[str]:
    """Who beside the job gave way or is without a place, and what the rehearsal could not be."""
    gave = list(dict.fromkeys(v for e in seen.evictions for v in e.victims))
    if gave:
        yield f"{', '.join(gave)} gave way by the declared preemption"
    waits = [n.name for n in seen.neighbours if n.before and not n.after and n.name not in gave]
    if waits:
        yield f"{', '.join(waits)} find{'s' * (len(waits) == 1)} no place"
    if seen.victim == "process":
        yield "the pool has one node, so a process was taken and not the node"
    if not seen.trains:
        yield "no workload trains, so a replica of a service was lost"


def tell_loss(
    seen: LossObservation, events: Sequence[Event], names: Mapping[JobId, str], began_s: float
) -> tuple[Moment, ...]:
    """What happened to the watched job, and to all others once a worker was lost, since `began_s` (POSIX seconds)."""
    moments = [
        Moment(e.at_s - began_s, _describe(e, names), _kind(seen, e))
        for e in events
        if _is_told(e) and (e.job is None or names.get(e.job) == seen.job or e.at_s >= seen.killed_at_s)
    ]
    moments.append(Moment(seen.killed_at_s - began_s, f"{seen.taken} killed with -9", MomentKind.LOSS))
    moments += [
        Moment(e.at_s - began_s, f"{', '.join(e.victims)} to give way to {e.winner} (declared preemption)")
        for e in seen.evictions
    ]
    if seen.recovered_at_s is not None:
        again = f"every rank of {seen.job} has done a step again"
        moments.append(Moment(seen.recovered_at_s - began_s, again, MomentKind.RECOVERED))
    return tuple(sorted(moments, key=lambda m: m.at_s))


def _is_told(event: Event) -> bool:
    """Not the moment in which jobs wait for each other so that they are queued again together."""
    held = any(b["kind"] == BlockerKind.HELD for b in event.data.get("blockers", ()))
    return event.kind in _TOLD and not held


def _kind(seen: LossObservation, event: Event) -> MomentKind:
    noticed = event.kind == ("node_lost" if seen.victim == "node" else "fencing") and event.at_s == seen.detected_at_s
    return MomentKind.NOTICED if noticed else MomentKind.EVENT


def _describe(event: Event, names: Mapping[JobId, str]) -> str:
    who = names.get(event.job, "") if event.job is not None else event.node or ""
    epoch = f" (epoch {event.epoch})" if event.epoch is not None else ""
    data = event.data
    blocked = next((b["message"] for b in data.get("blockers", ())), "")
    detail = data.get("detail") or data.get("why") or data.get("state") or blocked
    return f"{who} {event.kind.replace('_', ' ')}{epoch}".strip() + (f": {detail}" if detail else "")
