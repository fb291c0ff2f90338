from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterwright.app.running import ClusterHandle, start_cluster
from clusterwright.model.jobs import NodeSpec


def processes_naming(text: str) -> dict[int, str]:
    """Processes of this machine with a text in command line or environment, found without the engine's own code."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
                if text.encode() in line + Path(f"/proc/{name}/environ").read_bytes():
                    found[int(name)] = line.replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterHandle]:
    """Two virtual nodes with 2 GPUs; afterwards no process may be left."""
    nodes = [NodeSpec("n1", 2, "h100"), NodeSpec("n2", 2, "h100")]
    with start_cluster(tmp_path / "state", nodes, stop_grace_s=1.0) as handle:
        yield handle
    assert processes_naming(str(tmp_path)) == {}
