"""The rehearsal of a worker loss: whether the job went on as it must, how long that took, how much work was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from clusterwright.judging.expecting import Promise
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Check, Reading


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """One line of the trainer's step log, in the order of the file."""

    epoch: int
    rank: int
    step: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another job that held GPUs beside the one that is watched.

    Args:
        apart: whether no two replicas of its workload may share a node.
        before, after: nodes it ran on at the loss, and once everything was placed again; none when it waits.
    """

    name: str
    workload: str
    apart: bool
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who went back into the queue for whom by the declared preemption, and when (POSIX seconds)."""

    winner: str
    victims: tuple[str, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class LossObservation:
    """What was seen, times in POSIX seconds; None where it was not seen.

    Args:
        job, workload: what was watched, and what it is a replica or gang of; `apart` as in `Neighbour`.
        trains: whether it trains; else it is a replica of a service, which may run on without it.
        nodes: every node the observation is about.
        victim: what was killed with -9: the agent of a node, or one process of the job where there is one node only.
        node: the node that was lost or on which the process ran; `taken` says it in words.
        killed_at_s: when.
        detected_at_s: when the engine declared the node lost, or ended the attempt.
        old_epoch, new_epoch: of the attempt that lost a node and of the last one after it.
        between: epochs of attempts between these two, which were preempted.
        new_nodes, new_ranks: where the last attempt ran, and with how many ranks.
        resumed_step: from which step it went on.
        written_by: epoch that had written the checkpoint it resumed from.
        log: the step log; `unreadable` holds lines of it that are none.
        final: weights at the end; None when the job did not end well.
        expected: weights that an undisturbed run gives.
        ended: how the job ended, in the engine's words.
        waits: why it does not run and who holds the GPUs, where it does not.
        interval_s: time between two checkpoints in this rehearsal.
        steps: how many the whole run has.
        delay_s: wait before a failed process is started again in this rehearsal.
        neighbours: the jobs beside it; `evictions` says who of all had to give way.
        promise: what the plan says about the loss of this node, None where it says nothing.
    """

    job: str
    workload: str
    trains: bool
    nodes: tuple[str, ...]
    victim: Literal["node", "process"]
    node: str
    taken: str
    killed_at_s: float
    detected_at_s: float | None
    old_epoch: int
    new_epoch: int | None
    new_nodes: tuple[str, ...]
    new_ranks: int
    resumed_step: int | None
    written_by: int | None
    log: tuple[LoggedStep, ...]
    unreadable: tuple[str, ...]
    final: tuple[int, ...] | None
    expected: tuple[int, ...]
    ended: str
    waits: str
    interval_s: float
    steps: int
    delay_s: float = 0.0
    between: tuple[int, ...] = ()
    apart: bool = False
    neighbours: tuple[Neighbour, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    promise: Promise | None = None

    @property
    def recovered_at_s(self) -> float | None:
        """When every rank of the last attempt had done its first step; None unless it then went on to the right end."""
        first: dict[int, float] = {}
        for step in self.log:
            if step.epoch == self.new_epoch:
                first.setdefault(step.rank, step.at_s)
        whole = self.new_ranks > 0 and len(first) == self.new_ranks
        return max(first.values()) if whole and self.ended_well else None

    @property
    def replicas(self) -> tuple[int, int]:
        """(replicas of the workload that run once everything is placed again, that there were)."""
        others = [n for n in self.neighbours if n.workload == self.workload]
        return (self.recovered_at_s is not None) + sum(bool(n.after) for n in others), 1 + len(others)

    @property
    def runs_on(self) -> bool:
        """Whether a service carries its load without the lost replica, which waits as the plan said it would."""
        promise = self.promise
        waits_as_planned = promise is not None and promise.again < promise.wanted and self.new_epoch is None
        return not self.trains and waits_as_planned and promise is not None and self.replicas[0] >= promise.needed

    @property
    def ended_well(self) -> bool:
        """Whether the job ended with the state of an undisturbed run."""
        return self.final is not None and self.final == self.expected

    @property
    def lost_work_s(self) -> float | None:
        """Time of work that had to be done again: from the step resumed from to the loss."""
        if self.resumed_step is None:
            return None
        old = [s for s in self.log if s.epoch == self.old_epoch]
        if self.resumed_step == 0:
            started = min((s.at_s for s in old), default=None)
            return None if started is None else max(self.killed_at_s - started, 0.0)
        saved = [s.at_s for s in old if s.step == self.resumed_step]
        return max(self.killed_at_s - min(saved), 0.0) if saved else None


def compare_loss(seen: LossObservation) -> tuple[Check, ...]:
    """Everything that must hold after a loss, whatever the speed of this host."""
    return tuple(_checks(seen))


def _checks(seen: LossObservation) -> Iterator[Check]:
    expected = f"{seen.node} declared lost" if seen.victim == "node" else "the attempt ended"
    detected = "yes" if seen.detected_at_s is not None else "no"
    yield Check("loss noticed", expected, detected, seen.detected_at_s is not None)
    if seen.runs_on and seen.promise is not None:
        count = seen.promise.needed
        needed = f"{count} replicas, which carry the load" if count != 1 else "1 replica, which carries the load"
        yield Check("service runs on", needed, f"{seen.replicas[0]} of {seen.replicas[1]} run", holds=True)
        yield from _check_neighbours(seen)
        return
    if seen.new_epoch is None:
        yield Check("job restarted", "a second attempt", seen.waits or seen.ended or "none", holds=False)
        yield from _check_neighbours(seen)
        return
    if seen.victim == "node":
        apart = bool(seen.new_nodes) and seen.node not in seen.new_nodes
        yield Check("lost node excluded", f"not on {seen.node}", f"on {', '.join(seen.new_nodes)}", apart)
    yield Check("fencing", "no step of the old attempt after one of the new", *_overlap(seen))
    yield Check("resumed from a checkpoint", f"written by epoch {seen.old_epoch}", *_resumption(seen))
    yield Check("every step done, in order", f"steps 1 to {seen.steps}", *_continuity(seen))
    found = "different" if seen.final is not None else f"no final state: {seen.waits or seen.ended}"
    found = "equal" if seen.ended_well else found
    yield Check("final state", "equal to an undisturbed run", found, seen.ended_well)
    yield from _check_neighbours(seen)


def _check_neighbours(seen: LossObservation) -> Iterator[Check]:
    """Replicas that must be apart are, and what the plan said about this loss is what happened."""
    places: dict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    if seen.apart:
        places[seen.workload].append((seen.job, seen.new_nodes))
    for neighbour in seen.neighbours:
        if neighbour.apart:
            places[neighbour.workload].append((neighbour.name, neighbour.after))
    for workload, replicas in places.items():
        on = [n for _, nodes in replicas for n in nodes]
        where = ", ".join(f"{name} on {fold(nodes)}" for name, nodes in replicas if nodes) or "none runs"
        yield Check(f"{workload}: replicas apart", "no node with two of them", where, len(set(on)) == len(on))
    if seen.promise is not None:
        yield Check("agrees with the plan", seen.promise.text, *_compare_promise(seen, seen.promise))


def _compare_promise(seen: LossObservation, promise: Promise) -> tuple[str, bool]:
    without = f"without {seen.node}"
    if seen.trains:
        works = seen.recovered_at_s is not None
        text = f"works again on {fold(seen.new_nodes)}" if works else seen.waits or f"ended: {seen.ended}"
        return f"{without} {seen.job} {text}", works == bool(promise.again)
    runs, there = seen.replicas
    text = f"{without} {runs} of {there} replicas run once everything is placed again"
    return text + (f"; {seen.job} {seen.waits}" if seen.waits else ""), runs == promise.again


def _overlap(seen: LossObservation) -> tuple[str, bool]:
    if seen.unreadable:
        return f"unreadable line in the step log: '{seen.unreadable[0][:80]}'", False
    for before, after in pairwise(seen.log):
        if after.epoch < before.epoch:
            return f"epoch {after.epoch} wrote step {after.step} after epoch {before.epoch}", False
    epochs = sorted({s.epoch for s in seen.log})
    if [e for e in epochs if e not in seen.between] != [seen.old_epoch, seen.new_epoch]:
        return f"epochs in the step log: {epochs or 'none'}", False
    return f"epoch {', then '.join(map(str, epochs))}", True


def _resumption(seen: LossObservation) -> tuple[str, bool]:
    if seen.resumed_step is None:
        return "the new attempt did not say where it started", False
    if seen.resumed_step == 0:
        return "started again from step 0", False
    good = seen.written_by in (seen.old_epoch, *seen.between)
    return f"step {seen.resumed_step}, written by epoch {seen.written_by}", good


def _continuity(seen: LossObservation) -> tuple[str, bool]:
    """Every rank of each epoch logs each step once, and the new epoch begins right after the step resumed from."""
    for epoch, first in ((seen.old_epoch, 1), (seen.new_epoch, (seen.resumed_step or 0) + 1)):
        for rank in {s.rank for s in seen.log if s.epoch == epoch}:
            steps = [s.step for s in seen.log if s.epoch == epoch and s.rank == rank]
            if steps != list(range(first, first + len(steps))):
                return f"rank {rank} of epoch {epoch} logged {steps[:6]} … from {first} on", False
    last = max((s.step for s in seen.log), default=0)
    return f"steps 1 to {last}", last == seen.steps


def time_loss(seen: LossObservation) -> tuple[Reading, ...]:
    """Rehearsed times with what they depend on here; what was not seen has no reading."""
    times = {
        "detection_time": _since(seen.killed_at_s, seen.detected_at_s),
        "recovery_time": _since(seen.killed_at_s, seen.recovered_at_s),
        "lost_work": seen.lost_work_s,
    }
    conditions = {
        "detection_time": (("seen by", f"the end of {'the agent' if seen.victim == 'node' else 'the process'}"),),
        "recovery_time": (
            ("beside", f"{len(seen.neighbours)} other job{'s' * (len(seen.neighbours) != 1)}"),
            *((("after a delay of", f"{seen.delay_s:g} s"),) if seen.victim == "process" else ()),
        ),
        "lost_work": (("checkpoints every", f"{seen.interval_s:g} s"),),
    }
    return tuple(
        Reading(metric, Quantity(value, (("s", 1),), describe_time(value)), conditions.get(metric, ()), seen.nodes)
        for metric, value in times.items()
        if value is not None
    )


def describe_time(seconds: float) -> str:
    """A time that was seen once on a shared machine, as precise as that is: never below a millisecond."""
    if seconds < 0.001:
        return "< 1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")


def _since(start_s: float, end_s: float | None) -> float | None:
    """None also where the end lies before the start: a clock was set back, and nothing was measured."""
    return None if end_s is None or end_s < start_s else end_s - start_s


def parse_step_log(lines: Sequence[str]) -> tuple[tuple[LoggedStep, ...], tuple[str, ...]]:
    """(steps in file order, lines that are none)."""
    steps, unreadable = list[LoggedStep](), list[str]()
    for line in lines:
        words = line.split()
        try:
            epoch, rank, step, at_s = words
            steps.append(LoggedStep(int(epoch), int(rank), int(step), float(at_s)))
        except ValueError:
            unreadable.append(line)
    return tuple(steps), tuple(unreadable)
