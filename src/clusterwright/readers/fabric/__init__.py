"""InfiniBand and RDMA: ports, links, counters, perftest."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.fabric import counters, perftest, states
from clusterwright.readers.hosts import of_every_host
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = (
    perftest.READER,
    of_every_host(states.READER),
    of_every_host(counters.READER),
)
