"""Hold what the task was given: say where it is and which devices it has, then wait until it is ended.

    python -P -m clusterwright.probes.holder

One line of JSON on standard output. Stands in for a workload that only has to be there; takes no CPU time while it
waits, and ends on SIGTERM as any program does that has nothing to save.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any


def look(environment: dict[str, str]) -> dict[str, Any]:
    """What this task holds."""
    devices = environment.get("CUDA_VISIBLE_DEVICES", "")
    return {
        "event": "hold",
        "at_s": time.time(),
        "job": environment.get("CLUSTERWRIGHT_JOB_NAME", ""),
        "node": environment.get("CLUSTERWRIGHT_NODE", ""),
        "devices": [d for d in devices.split(",") if d],
        "attempt": environment.get("CLUSTERWRIGHT_ATTEMPT", ""),
        "pid": os.getpid(),
    }


def main() -> int:
    """Entry point; returns only when a signal with a handler woke it."""
    sys.stdout.write(json.dumps(look(dict(os.environ))) + "\n")
    sys.stdout.flush()
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
