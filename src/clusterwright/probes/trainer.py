"""A small data-parallel training job that checkpoints: what an undisturbed run would give, it gives after any loss.

    python -P -m clusterwright.probes.trainer --steps N --every K [--pace S] [--keep K] [--wait S]

Least squares by gradient descent on a fixed problem. Each rank computes the gradient of its own samples, the ranks sum
them through rank 0, every rank applies the sum. Gradients are integers in fixed point, so the sum does not depend on
how samples were shared out: the state after step n is the same for every number of ranks and after every restart
(deterministic reduction by fixed-point accumulation). `final_weights` computes it without any rank.

Rank 0 writes a checkpoint after every K steps into $CLUSTERWRIGHT_CHECKPOINT_DIR. Every rank appends one line per step
to `steps.log` there: epoch, rank, step, time. Exit code 75 when a newer attempt owns the directory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from clusterwright.probes.checkpoints import Checkpoint, Fenced, check_fence, read_latest, write_checkpoint
from clusterwright.probes.meeting import Meeting, MeetingFailed, Seat

#: Fixed point: one is 2^32. Products are brought back by an exact floor division.
ONE: Final = 1 << 32
DIMENSIONS: Final = 8
SAMPLES: Final = 256
#: Step width as a fraction: small enough to converge for the problem below (checked by a test).
RATE: Final = (1, 4)

FENCED: Final = 75  # EX_TEMPFAIL of BSD sysexits.h: another attempt has taken over
STEP_LOG: Final = "steps.log"
FINAL: Final = "final.json"


@cache
def features(sample: int) -> tuple[int, ...]:
    """Inputs of a sample in fixed point, −1 to 1, from a linear congruential sequence (Knuth, TAOCP 2, MMIX)."""
    state, values = sample * 2654435761 + 1, []
    for _ in range(DIMENSIONS):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        values.append((state >> 31) - ONE)
    return tuple(values)


def answer(inputs: Sequence[int]) -> int:
    """What the model has to learn: the weights 1, 2, 3, …"""
    return sum(x * (i + 1) for i, x in enumerate(inputs))


def gradient(weights: Sequence[int], samples: Iterable[int]) -> list[int]:
    """Sum of the gradients of these samples, fixed point; exact, so sums of parts equal the whole."""
    total = [0] * DIMENSIONS
    for sample in samples:
        inputs = features(sample)
        error = sum(w * x // ONE for w, x in zip(weights, inputs, strict=True)) - answer(inputs)
        for i, x in enumerate(inputs):
            total[i] += error * x // ONE
    return total


def apply(weights: Sequence[int], total: Sequence[int]) -> tuple[int, ...]:
    """Weights after one step."""
    return tuple(w - g * RATE[0] // (RATE[1] * SAMPLES) for w, g in zip(weights, total, strict=True))


def final_weights(steps: int) -> tuple[int, ...]:
    """What an undisturbed run gives, computed in one place."""
    weights: tuple[int, ...] = (0,) * DIMENSIONS
    for _ in range(steps):
        weights = apply(weights, gradient(weights, range(SAMPLES)))
    return weights


@dataclass(frozen=True, slots=True)
class Run:
    """What one rank was asked to do; `pace_s` is the least time of one step, in place of a larger model."""

    directory: Path
    epoch: int
    steps: int
    every: int
    keep: int
    pace_s: float


def say(event: str, **fields: Any) -> None:
    """One line of JSON on standard output, with the time."""
    sys.stdout.write(json.dumps({"event": event, "at_s": time.time()} | fields) + "\n")
    sys.stdout.flush()


def train(run: Run, meeting: Meeting) -> None:
    """Train from the newest whole checkpoint to the last step.

    Raises:
        Fenced: when another attempt owns the checkpoint directory.
        MeetingFailed: when a rank is lost, or ranks do not agree where to start.
    """
    check_fence(run.directory, run.epoch)
    start = read_latest(run.directory) or Checkpoint(0, run.epoch, (0,) * DIMENSIONS)
    if len({tuple(s) for s in meeting.exchange([start.step, start.epoch, *start.weights])}) != 1:
        raise MeetingFailed("the ranks resume from different checkpoints")
    say("start", step=start.step, epoch=run.epoch, written_by=start.epoch, rank=meeting.seat.rank, pid=os.getpid())
    weights = start.weights
    for step in range(start.step + 1, run.steps + 1):
        weights = _step(run, meeting, step, weights)
    if meeting.seat.rank == 0:
        _write_final(run, weights)
    meeting.exchange("done")
    say("done", step=run.steps, epoch=run.epoch, rank=meeting.seat.rank)


def _step(run: Run, meeting: Meeting, step: int, weights: tuple[int, ...]) -> tuple[int, ...]:
    began = time.monotonic()
    mine = range(meeting.seat.rank, SAMPLES, meeting.seat.world_size)
    part = gradient(weights, mine)
    time.sleep(max(0.0, run.pace_s - (time.monotonic() - began)))
    parts = meeting.exchange(part)
    weights = apply(weights, [sum(column) for column in zip(*parts, strict=True)])
    check_fence(run.directory, run.epoch)
    _append(run, meeting.seat.rank, step)
    if meeting.seat.rank == 0 and (step % run.every == 0 or step == run.steps):
        write_checkpoint(run.directory, Checkpoint(step, run.epoch, weights), run.keep)
        say("checkpoint", step=step, epoch=run.epoch)
    say("step", step=step, epoch=run.epoch, rank=meeting.seat.rank, seconds=time.monotonic() - began)
    return weights


def _append(run: Run, rank: int, step: int) -> None:
    """One whole line per write: appends of one write each do not mix (POSIX write, O_APPEND)."""
    file = os.open(run.directory / STEP_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{run.epoch} {rank} {step} {time.time():.6f}\n".encode("ascii"))
    finally:
        os.close(file)


def _write_final(run: Run, weights: tuple[int, ...]) -> None:
    check_fence(run.directory, run.epoch)
    temporary = run.directory / f".{FINAL}.{run.epoch}"
    temporary.write_text(json.dumps({"step": run.steps, "epoch": run.epoch, "weights": weights}), encoding="ascii")
    temporary.replace(run.directory / FINAL)


def main(argv: list[str]) -> int:
    """Entry point: 0 done, 1 a rank was lost, 2 usage, 75 another attempt owns the directory."""
    parser = argparse.ArgumentParser(prog="clusterwright.probes.trainer", description=__doc__)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--keep", type=int, default=3)
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--wait", type=float, default=60.0)
    arguments = parser.parse_args(argv)
    if min(arguments.steps, arguments.every, arguments.keep) < 1:
        parser.error("--steps, --every and --keep must be 1 or more")
    directory = os.environ.get("CLUSTERWRIGHT_CHECKPOINT_DIR", "")
    if not directory:
        parser.error("CLUSTERWRIGHT_CHECKPOINT_DIR is not set")
    epoch = int(os.environ.get("CLUSTERWRIGHT_EPOCH", "0"))
    run = Run(Path(directory), epoch, arguments.steps, arguments.every, arguments.keep, arguments.pace)
    try:
        with Meeting(Seat.of_environment(os.environ), arguments.wait) as meeting:
            train(run, meeting)
    except Fenced as error:
        say("fenced", why=str(error), epoch=epoch)
        return FENCED
    except MeetingFailed as error:
        say("lost", why=str(error), epoch=epoch)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
