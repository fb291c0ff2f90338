"""Engines that the contract holds for: a new one adds an entry to ENGINES and nothing else.

An entry gives, for a directory, an engine with two nodes of two GPUs each, and takes it down again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from clusterwright.app.running import start_cluster
from clusterwright.model.jobs import NodeSpec
from clusterwright.ports.engines import Engine


@contextmanager
def local(directory: Path) -> Iterator[Engine]:
    nodes = [NodeSpec(name, 2, "h100") for name in ("n1", "n2")]
    with start_cluster(directory / "state", nodes, stop_grace_s=0.5) as cluster:
        yield cluster.engine


ENGINES: dict[str, Callable[[Path], AbstractContextManager[Engine]]] = {"local": local}


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with ENGINES[request.param](tmp_path_factory.mktemp("engine")) as found:
        yield found
