"""One attempt of a job, exactly: where its time went, and what of its work is saved.

An attempt starts (container, load of weights or of a checkpoint), then works; after every interval of work it stops for
the stall, in which the state is copied. The copy is durable once it is written, in the background while work goes on;
the next one cannot begin before, so the interval is at least that time. What was done since the last durable checkpoint
is lost when the attempt is interrupted. The end of the work needs no further checkpoint: writing the result is part of
the work.

Times are whole milliseconds (int), so that the parts of an attempt add up to its length exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.ledger.lines import to_ms


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """How a job saves its work.

    Args:
        interval_ms: work between two checkpoints; None never saves; 0 keeps all work at once (a service, or tasks that
            count one by one), and then nothing stalls.
        stall_ms: for which a checkpoint stops the work: the whole write, or the copy to host memory.
        write_ms: from the end of the stall until the checkpoint is durable.
    """

    interval_ms: int | None
    stall_ms: int = 0
    write_ms: int = 0

    def __post_init__(self) -> None:
        if min(self.interval_ms or 0, self.stall_ms, self.write_ms) < 0:
            raise ValueError("no time of a checkpoint is negative")
        if self.interval_ms == 0 and (self.stall_ms or self.write_ms):
            raise ValueError("where all work is kept at once, no checkpoint stalls")

    @property
    def every_ms(self) -> int | None:
        """Work between two checkpoints as it happens: a slow write stretches the interval."""
        return max(self.interval_ms, self.write_ms) if self.interval_ms else self.interval_ms


#: Nothing is saved before the end.
NEVER: Final = Checkpoints(None)
#: Everything done counts at once.
ALWAYS: Final = Checkpoints(0)


def plan_checkpoints(
    interval_s: float, stall_s: float, size_bytes: float = 0.0, write_bytes_per_s: float = 0.0
) -> Checkpoints:
    """Checkpoints from seconds, a size and a rate; without a size each is durable at the end of its stall.

    Raises:
        ValueError: if a size has no rate, or the interval is below 1 ms.
    """
    if size_bytes and not write_bytes_per_s > 0:
        raise ValueError("a checkpoint with a size needs a rate above 0 at which it is written")
    if to_ms(interval_s) < 1:
        raise ValueError("the interval between checkpoints is at least 1 ms")
    write_s = size_bytes / write_bytes_per_s if size_bytes else 0.0
    return Checkpoints(to_ms(interval_s), to_ms(stall_s), to_ms(write_s))


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an attempt sets out to do.

    Args:
        work_ms: left to do, in time at work, at least 1.
        starting_ms: until work begins: launch, load, restore.
    """

    work_ms: int
    checkpoints: Checkpoints = NEVER
    starting_ms: int = 0

    def __post_init__(self) -> None:
        if self.work_ms < 1 or self.starting_ms < 0:
            raise ValueError("an attempt has at least 1 ms of work, and its start takes no negative time")

    @property
    def length_ms(self) -> int:
        """Until it ends, when nothing interrupts it."""
        every = self.checkpoints.every_ms
        stalls = (self.work_ms - 1) // every if every else 0
        return self.starting_ms + self.work_ms + stalls * self.checkpoints.stall_ms


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time of an attempt went, in order; the six parts add up to its length.

    Args:
        productive_ms: work that is saved, and need not be done again.
        stalled_ms: in stalls of checkpoints up to the last one that is durable, its own included.
        lost_ms: work since, which must be done again.
        stalled_since_ms: in stalls since.
        held_ms: between the end of the work and the release of the GPUs: a hang that nobody has noticed yet.
    """

    starting_ms: int
    productive_ms: int = 0
    stalled_ms: int = 0
    lost_ms: int = 0
    stalled_since_ms: int = 0
    held_ms: int = 0
    finished: bool = False

    @property
    def blocked_ms(self) -> int:
        """In stalls of checkpoints."""
        return self.stalled_ms + self.stalled_since_ms

    @property
    def saved_at_ms(self) -> int:
        """From the beginning to the instant up to which work is safe, the end of a stall."""
        return self.starting_ms + self.productive_ms + self.stalled_ms

    @property
    def total_ms(self) -> int:
        """Length of the attempt."""
        return self.saved_at_ms + self.lost_ms + self.stalled_since_ms + self.held_ms


@dataclass(frozen=True, slots=True)
class _Progress:
    """After some time at work and in stalls: work done, time in stalls, how far the running stall is, None outside."""

    done_ms: int
    blocked_ms: int
    in_stall_ms: int | None


def spend(attempt: Attempt, ran_ms: int, held_ms: int = 0, wrong_after_ms: int | None = None) -> Spent:
    """Where the time went when an attempt is interrupted, or ends.

    Args:
        ran_ms: from its beginning to the interruption; at or after `length_ms` it finished before.
        held_ms: from the interruption until its GPUs are free.
        wrong_after_ms: from its beginning to a silent failure: work since then, and every checkpoint that was not
            complete by then, is worth nothing. An attempt with such a failure does not count as finished.
    """
    if ran_ms < 0 or held_ms < 0:
        raise ValueError("an attempt takes no negative time")
    wrong = wrong_after_ms is not None and wrong_after_ms < min(ran_ms, attempt.length_ms)
    if ran_ms >= attempt.length_ms and not wrong:
        stalled = attempt.length_ms - attempt.starting_ms - attempt.work_ms
        return Spent(attempt.starting_ms, attempt.work_ms, stalled, held_ms=held_ms, finished=True)
    ran_ms = min(ran_ms, attempt.length_ms)
    if ran_ms <= attempt.starting_ms:
        return Spent(ran_ms, held_ms=held_ms)
    now = _progress(attempt, ran_ms - attempt.starting_ms)
    saved = saved_ms(attempt, ran_ms)
    if wrong and wrong_after_ms is not None:
        saved = min(saved, _complete_ms(attempt, wrong_after_ms - attempt.starting_ms))
    every = attempt.checkpoints.every_ms
    stalled = saved // every * attempt.checkpoints.stall_ms if every else 0
    return Spent(attempt.starting_ms, saved, stalled, now.done_ms - saved, now.blocked_ms - stalled, held_ms)


def saved_ms(attempt: Attempt, ran_ms: int) -> int:
    """Work that is durable once an attempt has run so long and has not finished."""
    return _complete_ms(attempt, ran_ms - attempt.starting_ms - attempt.checkpoints.write_ms)


def leave(attempt: Attempt, notice_ms: int, grace_ms: int) -> tuple[int, Spent]:
    """When an attempt that is told to leave has left, from its beginning, and where its time went.

    It saves a last checkpoint when that is durable within the grace; one whose stall has begun is completed instead.
    When it cannot, it waits for the checkpoint that is being written, if that is durable within the grace; else, or
    with nothing to save, it leaves at once. An attempt that would end before it is told ends.

    Args:
        notice_ms: from its beginning to the notice (SIGTERM).
        grace_ms: until it is killed (SIGKILL).
    """
    every, stall, write = attempt.checkpoints.every_ms, attempt.checkpoints.stall_ms, attempt.checkpoints.write_ms
    if not every or notice_ms >= attempt.length_ms or notice_ms <= attempt.starting_ms:
        return min(notice_ms, attempt.length_ms), spend(attempt, notice_ms)
    at_work = notice_ms - attempt.starting_ms
    now, copied = _progress(attempt, at_work), _complete_ms(attempt, at_work)
    save = stall - (now.in_stall_ms or 0)
    if save + write <= grace_ms and now.done_ms > copied:
        spent = Spent(attempt.starting_ms, now.done_ms, now.blocked_ms + save, stalled_since_ms=write)
        return notice_ms + save + write, spent
    stalled = copied // every * stall
    wait = copied + stalled + write - at_work
    if not 0 < wait <= grace_ms or not copied:
        return notice_ms, spend(attempt, notice_ms)
    since = now.blocked_ms - stalled + wait
    return notice_ms + wait, Spent(attempt.starting_ms, copied, stalled, now.done_ms - copied, since)


def _progress(attempt: Attempt, at_work_ms: int) -> _Progress:
    every = attempt.checkpoints.every_ms
    if not every:
        return _Progress(at_work_ms, 0, None)
    stall = attempt.checkpoints.stall_ms
    stalls = min(at_work_ms // (every + stall), (attempt.work_ms - 1) // every)
    rest = at_work_ms - stalls * (every + stall)
    if stalls == (attempt.work_ms - 1) // every or rest <= every:
        return _Progress(stalls * every + rest, stalls * stall, None)
    return _Progress((stalls + 1) * every, stalls * stall + rest - every, rest - every)


def _complete_ms(attempt: Attempt, at_work_ms: int) -> int:
    """Work in checkpoints whose stall ended in so much time at work and in stalls; all of it where all is kept."""
    every = attempt.checkpoints.every_ms
    if every is None or at_work_ms <= 0:
        return 0
    if every == 0:
        return at_work_ms
    complete = min(at_work_ms // (every + attempt.checkpoints.stall_ms), (attempt.work_ms - 1) // every)
    return complete * every
