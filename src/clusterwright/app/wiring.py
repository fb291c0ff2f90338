"""The one place that names concrete adapters, also for child processes."""

from __future__ import annotations

import os
import site
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import clusterwright


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
    command = [sys.executable, *_isolation(), "-m", f"clusterwright.app.{process}", str(state_dir)]
    return [*command, node] if node else command


def _isolation() -> list[str]:
    """Options that keep modules of the user out of a process of ours.

    Never from the working directory; from PYTHONPATH or the user's site directory only if that is where this package
    itself was installed.
    """
    home = Path(clusterwright.__file__).parents[1]
    options = ["-P"]
    if not _holds(os.environ.get("PYTHONPATH", "").split(os.pathsep), home):
        options.append("-E")
    if not _holds([site.getusersitepackages()], home):
        options.append("-s")
    return options


def _holds(directories: Iterable[str], package_home: Path) -> bool:
    return any(d and os.path.realpath(d) == os.path.realpath(package_home) for d in directories)
