"""The one place that names concrete adapters, also for child processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path


class SystemClock:
    """`Clock` of this machine."""

    def now_s(self) -> float:
        """See `Clock.now_s`."""
        return time.time()

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return time.monotonic()


def child_command(state_dir: Path, process: str, node: str) -> list[str]:
    """The command line of a supervisor, control plane or agent of the cluster in a state directory."""
    command = [sys.executable, "-m", f"clusterwright.app.{process}", str(state_dir)]
    return [*command, node] if node else command
