"""Checkpoints: never half written, never read when damaged, never written by an attempt that is over."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The engine's file in a checkpoint directory: `EPOCH open` or `EPOCH closed`.
EPOCH_FILE: Final = ".clusterwright-epoch"


class Fenced(Exception):
    """A newer attempt owns the checkpoint directory; nothing more may be written there."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State after `step` steps, written by the attempt with this epoch."""

    step: int
    epoch: int
    weights: tuple[int, ...]


def check_fence(directory: Path, epoch: int) -> None:
    """Return while this epoch owns the directory.

    A directory without epoch file is owned by whoever writes there: outside the engine nobody else does.

    Raises:
        Fenced: when a newer epoch was opened, or this one closed.
    """
    try:
        words = (directory / EPOCH_FILE).read_text(encoding="ascii").split()
        newest, state = int(words[0]), words[1]
    except FileNotFoundError:
        return
    except (ValueError, IndexError):
        raise Fenced(f"the epoch file in {directory} cannot be read") from None
    if newest != epoch or state != "open":
        raise Fenced(f"epoch {epoch} is over: {directory} belongs to {newest} ({state})")


def write_checkpoint(directory: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write atomically and drop all but the newest `keep`.

    Raises:
        Fenced: when another attempt owns the directory; nothing was written then.
    """
    body = _body(checkpoint)
    path = directory / f"step-{checkpoint.step:08d}.json"
    temporary = directory / f".{path.name}.{checkpoint.epoch}"
    with temporary.open("w", encoding="ascii") as file:
        file.write(json.dumps({"body": body, "sha256": _digest(body)}))
        file.flush()
        os.fsync(file.fileno())
    try:
        check_fence(directory, checkpoint.epoch)
    except Fenced:
        temporary.unlink()
        raise
    temporary.replace(path)
    for old in sorted(directory.glob("step-*.json"))[:-keep]:
        old.unlink(missing_ok=True)
    return path


def read_latest(directory: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole, or None; damaged ones are passed over."""
    for path in sorted(directory.glob("step-*.json"), reverse=True):
        found = _read(path)
        if found is not None:
            return found
    return None


def _read(path: Path) -> Checkpoint | None:
    try:
        record = json.loads(path.read_text(encoding="ascii"))
        body = record["body"]
        if _digest(body) != record["sha256"]:
            return None
        found = json.loads(body)
        return Checkpoint(int(found["step"]), int(found["epoch"]), tuple(int(w) for w in found["weights"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _body(checkpoint: Checkpoint) -> str:
    return json.dumps({"step": checkpoint.step, "epoch": checkpoint.epoch, "weights": list(checkpoint.weights)})


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
