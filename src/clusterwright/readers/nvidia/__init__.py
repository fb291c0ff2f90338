"""nvidia-smi in its forms, rocm-smi and their kin."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.hosts import of_every_host
from clusterwright.readers.nvidia import amd, csv_queries, mig, nvlink, query, table, topology
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = tuple(
    of_every_host(module.READER) for module in (query, csv_queries, table, topology, nvlink, mig, amd)
)
