"""Collective benchmarks: nccl-tests and rccl-tests."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.collectives.recognising import recognise_nccl, recognise_rccl
from clusterwright.readers.collectives.reporting import read_collectives
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = (
    Reader("nccl-tests", "NCCL tests (all_reduce_perf and its kin), text or JSON", recognise_nccl, read_collectives),
    Reader(
        "rccl-tests", "RCCL tests (all_reduce_perf and its kin on AMD), text or JSON", recognise_rccl, read_collectives
    ),
)
