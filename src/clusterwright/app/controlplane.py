"""Entry point of the control plane process: `python -m clusterwright.app.controlplane STATE_DIR`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path

from clusterwright.app.wiring import SystemClock
from clusterwright.engines.local.configs import read_config
from clusterwright.engines.local.controlplane import ControlPlane
from clusterwright.engines.local.layout import Layout, write_json
from clusterwright.engines.local.serving import Server
from clusterwright.lib.errors import ClusterwrightError
from clusterwright.store.sqlite import SqliteStore


def main(argv: list[str]) -> int:
    """Serve until asked to shut down; 2 when it cannot."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    layout = Layout(Path(argv[0]))
    try:
        asyncio.run(_serve(layout))
    except ClusterwrightError as error:
        logging.error("%s", error)
        return 2
    return 0


async def _serve(layout: Layout) -> None:
    try:
        config, store = read_config(layout), SqliteStore(layout.database)
    except ClusterwrightError as error:
        with contextlib.suppress(OSError):  # a full disk: the log may have it
            write_json(layout.failure, {"error": str(error)})
        raise
    await Server(ControlPlane(layout, config, store, SystemClock())).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
