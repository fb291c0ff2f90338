"""Slurm: configuration, listings, accounting, logs."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader
from clusterwright.readers.slurm import (
    cgroup_conf,
    documents,
    gres_conf,
    listings,
    logs,
    sacct,
    scontrol,
    sessions,
    sinfo,
    slurm_conf,
    squeue,
    statistics,
    topology_conf,
)

READERS: Final[tuple[Reader, ...]] = (
    slurm_conf.READER, gres_conf.READER, cgroup_conf.READER, topology_conf.READER, sinfo.READER, squeue.READER,
    sacct.READER, scontrol.READER, documents.READER, listings.READER, statistics.READER, sessions.READER, logs.READER,
)  # fmt: skip
