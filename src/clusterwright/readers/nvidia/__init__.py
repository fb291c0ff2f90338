"""nvidia-smi in its forms, rocm-smi and their kin."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.nvidia import amd, csv_queries, mig, nvlink, query, table, topology
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = (
    query.READER, csv_queries.READER, table.READER, topology.READER, nvlink.READER, mig.READER, amd.READER,
)  # fmt: skip
