"""Entry point of the supervisor: `python -m clusterwright.app.supervisor STATE_DIR GRACE_S [LIFELINE_FD]`."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path

from clusterwright.app.wiring import child_command
from clusterwright.engines.local.configs import read_config
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.supervisor import Supervisor
from clusterwright.lib.errors import ClusterwrightError


def main(argv: list[str]) -> int:
    """Keep the cluster up until told to stop; 2 when it cannot."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    layout, grace_s = Layout(Path(argv[0])), float(argv[1])
    lifeline = int(argv[2]) if len(argv) > 2 else None
    _close_inherited({0, 1, 2, lifeline})
    try:
        Supervisor(
            layout, read_config(layout), lambda p, node: child_command(layout.root, p, node), lifeline, grace_s
        ).run()
    except ClusterwrightError as error:
        logging.error("%s", error)
        return 2
    return 0


def _close_inherited(kept: set[int | None]) -> None:
    """Close what the shell of `cw up` had open: a lock or a pipe held here would be held as long as the cluster is up.

    All other processes of the cluster descend from this one; what Python opens itself is closed at an exec.
    """
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd not in kept:
            with contextlib.suppress(OSError):  # the listing's own
                os.close(fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
