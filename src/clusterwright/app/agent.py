"""Entry point of a node's agent: `python -m clusterwright.app.agent STATE_DIR NODE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from clusterwright.engines.local.agents import Agent
from clusterwright.engines.local.configs import read_config
from clusterwright.engines.local.identities import write_identity
from clusterwright.engines.local.layout import Layout
from clusterwright.lib.errors import ClusterwrightError


def main(argv: list[str]) -> int:
    """Serve the node until told to exit; 2 when it cannot."""
    layout, node = Layout(Path(argv[0])), argv[1]
    try:
        config = read_config(layout)
        spec = next(n for n in config.nodes if n.name == node)
        devices = () if spec.virtual else _real_devices()
    except ClusterwrightError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    write_identity(layout, f"agent-{node}")
    Agent(layout, node, os.environ["CLUSTERWRIGHT_BOOT"], config.heartbeat_s, devices).run()
    return 0


def _real_devices() -> tuple[str, ...]:
    from clusterwright.engines.local.gpus import discover_gpus  # most agents have virtual GPUs only

    return tuple(g.uuid for g in discover_gpus())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
