"""The rehearsal of a worker loss: whether the job went on as it must, how long that took, how much work was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

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
class LossObservation:
    """What was seen, times in POSIX seconds; None where it was not seen.

    Args:
        nodes: every node the observation is about.
        victim: what was killed with -9: the agent of a node, or one process of the job where there is one node only.
        node: the node that was lost or on which the process ran.
        killed_at_s: when.
        detected_at_s: when the engine declared the node lost, or ended the attempt.
        restarted_at_s: when every rank of the next attempt ran.
        old_epoch, new_epoch: of the attempt that lost a node and of the next one.
        new_nodes: where the next attempt ran.
        resumed_step: from which step it went on.
        written_by: epoch that had written the checkpoint it resumed from.
        log: the step log; `unreadable` holds lines of it that are none.
        final: weights at the end; None when the job did not end well.
        expected: weights that an undisturbed run gives.
        ended: how the job ended, in the engine's words.
        waits: why it does not run, where it does not.
        interval_s: time between two checkpoints in this rehearsal.
        steps: how many the whole run has.
        delay_s: wait before a failed process is started again in this rehearsal.
    """

    nodes: tuple[str, ...]
    victim: Literal["node", "process"]
    node: str
    killed_at_s: float
    detected_at_s: float | None
    restarted_at_s: float | None
    old_epoch: int
    new_epoch: int | None
    new_nodes: tuple[str, ...]
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

    @property
    def recovered_at_s(self) -> float | None:
        """When every rank of the new attempt had done its first step; None where it did none."""
        first: dict[int, float] = {}
        for step in self.log:
            if step.epoch == self.new_epoch:
                first.setdefault(step.rank, step.at_s)
        return max(first.values(), default=None)

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
    if seen.new_epoch is None:
        yield Check("job restarted", "a second attempt", seen.waits or seen.ended or "none", holds=False)
        return
    if seen.victim == "node":
        apart = bool(seen.new_nodes) and seen.node not in seen.new_nodes
        yield Check("lost node excluded", f"not on {seen.node}", f"on {', '.join(seen.new_nodes)}", apart)
    yield Check("fencing", "no step of the old attempt after one of the new", *_overlap(seen))
    yield Check("resumed from a checkpoint", f"written by epoch {seen.old_epoch}", *_resumption(seen))
    yield Check("every step done, in order", f"steps 1 to {seen.steps}", *_continuity(seen))
    same = seen.final is not None and seen.final == seen.expected
    found = "equal" if same else ("different" if seen.final is not None else f"no final state: {seen.ended}")
    yield Check("final state", "equal to an undisturbed run", found, same)


def _overlap(seen: LossObservation) -> tuple[str, bool]:
    if seen.unreadable:
        return f"unreadable line in the step log: '{seen.unreadable[0][:80]}'", False
    for before, after in pairwise(seen.log):
        if after.epoch < before.epoch:
            return f"epoch {after.epoch} wrote step {after.step} after epoch {before.epoch}", False
    epochs = sorted({s.epoch for s in seen.log})
    if epochs != [seen.old_epoch, seen.new_epoch]:
        return f"epochs in the step log: {epochs or 'none'}", False
    return f"epoch {seen.old_epoch}, then {seen.new_epoch}", True


def _resumption(seen: LossObservation) -> tuple[str, bool]:
    if seen.resumed_step is None:
        return "the new attempt did not say where it started", False
    if seen.resumed_step == 0:
        return "started again from step 0", False
    return f"step {seen.resumed_step}, written by epoch {seen.written_by}", seen.written_by == seen.old_epoch


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
        "recovery_time": (("after a delay of", f"{seen.delay_s:g} s"),) if seen.victim == "process" else (),
        "lost_work": (("checkpoints every", f"{seen.interval_s:g} s"),),
    }
    return tuple(
        Reading(metric, Quantity(value, (("s", 1),)), conditions.get(metric, ()), seen.nodes)
        for metric, value in times.items()
        if value is not None
    )


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
