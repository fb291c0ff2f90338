"""What the trainer of a rehearsal left behind: its step log, its last state, what its ranks said."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clusterwright.app.running import ClusterHandle
from clusterwright.model.jobs import Job
from clusterwright.probes.trainer import FINAL, STEP_LOG


def step_log(job: Job) -> list[str]:
    """Whole lines of the trainer's step log."""
    try:
        text = (Path(job.checkpoint_dir) / STEP_LOG).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return []
    return text[: text.rfind("\n") + 1].splitlines()


def said(cluster: ClusterHandle, job: Job, attempt: int, event: str) -> Iterator[dict[str, Any]]:
    """What the ranks of an attempt say about an event of this name."""
    for line in cluster.engine.logs(job.id, attempt=attempt):
        with contextlib.suppress(ValueError):
            found = json.loads(line.text)
            if isinstance(found, dict) and found.get("event") == event:
                yield found


def read_final(job: Job, steps: int) -> tuple[int, ...] | None:
    """Weights after the last step; None where that was not reached."""
    try:
        found = json.loads((Path(job.checkpoint_dir) / FINAL).read_text(encoding="ascii"))
        return tuple(int(w) for w in found["weights"]) if found["step"] == steps else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
