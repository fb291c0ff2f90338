"""DCGM: diagnosis, health, discovery, links, samples, exporter metrics; logs of checks that call such tools."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.dcgm import check_logs, diag, discovery, dmon, health, hierarchies, metrics, nvlinks
from clusterwright.readers.hosts import of_every_host
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = (
    *map(of_every_host, (
        diag.READER, health.READER, discovery.READER, hierarchies.READER, nvlinks.READER, dmon.READER,
    )),
    metrics.READER, check_logs.READER,
)  # fmt: skip
