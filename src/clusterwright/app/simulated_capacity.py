"""What a node offers beside whole GPUs: CPU cores and memory, and slices of GPUs where a pool is shared by MIG."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.scales import GIB
from clusterwright.model.documents import Document
from clusterwright.plan.results.clusters import PoolPlan
from clusterwright.traces.tables import Trace

CPU: Final = "cpu"
MEMORY: Final = "memory"
#: Hardware threads of a core where a batch system counts threads as CPUs.
_THREADS: Final = 2
#: How much more memory than its node declares a job may ask for and still be taken to mean all of it: files and vendors
#: give installed memory in decimal or binary units, batch systems what the kernel sees. A choice.
_SLACK: Final = 1.1
#: As in 3g.40gb or nvidia_a100_3g.20gb: slices of a MIG profile (NVIDIA MIG user guide, "MIG device names").
_PROFILE: Final = re.compile(r"(?:^|[^0-9])([1-7])g\.\d+gb", re.IGNORECASE)

Resources = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Host:
    """How the CPU and memory of a trace are read, as the cluster on which it ran shows.

    Args:
        threads: CPUs of the trace for one core.
        memory_gib: that a node had; a need a little above it means all of it.
    """

    threads: int = 1
    memory_gib: float = float("inf")


def slices_of(document: Document, catalogue: Catalogue, pools: Iterable[PoolPlan]) -> dict[str, int]:
    """Slices of one GPU by pool, for pools that are shared by MIG on a GPU of the catalogue that has it."""
    found = {}
    for pool in pools:
        gpu = catalogue.find_gpu(pool.gpu) if pool.gpu else None
        if document.architecture.pools[pool.name].sharing == "mig" and gpu is not None and gpu.mig_instances:
            found[pool.name] = gpu.mig_instances
    return found


def slices_in(word: str) -> int:
    """Slices of a MIG profile that a GPU type names, 0 when it names none."""
    found = _PROFILE.search(word)
    return int(found[1]) if found else 0


def resources_of(document: Document, catalogue: Catalogue, pools: Iterable[PoolPlan]) -> dict[str, Resources]:
    """CPU cores and GiB of memory of a node by pool, as declared, else of its shape; what is not known is left out."""
    found = {}
    for planned in pools:
        pool = document.architecture.pools[planned.name]
        shape = catalogue.find_shape(pool.shape) if pool.shape else None
        hardware = pool.hardware
        cores = (
            hardware.cpu_cores if hardware and hardware.cpu_cores else shape.cpu.cores if shape and shape.cpu else None
        )
        ram = hardware.ram if hardware and hardware.ram else shape.ram if shape else None
        known = ((CPU, None if cores is None else float(cores)), (MEMORY, None if ram is None else ram.value / GIB))
        found[planned.name] = tuple((name, amount) for name, amount in known if amount)
    return found


def host_of(trace: Trace, tasks: NDArray[np.int32], resources: Mapping[str, Resources]) -> Host:
    """How to read the needs of a trace that ran on nodes like these."""
    cores = max((dict(r).get(CPU, 0.0) for r in resources.values()), default=0.0)
    memory = max((dict(r).get(MEMORY, 0.0) for r in resources.values()), default=0.0)
    each = _each(trace.cpus, tasks)
    threads = _THREADS if cores and len(each) and cores < each.max() <= _THREADS * cores else 1
    return Host(threads, memory or float("inf"))


def _each(amounts: NDArray[np.float64], tasks: NDArray[np.int32]) -> NDArray[np.float64]:
    known = np.isfinite(amounts) & (amounts > 0) & (tasks > 0)
    return np.asarray(amounts[known] / tasks[known])


@dataclass(frozen=True, eq=False)
class Needs:
    """What one task of each job needs beside GPUs, 0 where nothing is known, and what was found out about it."""

    cores: NDArray[np.float64]
    memory_gib: NDArray[np.float64]
    remarks: tuple[str, ...]


def needs_of(trace: Trace, tasks: NDArray[np.int32], resources: Mapping[str, Resources], host: Host) -> Needs:
    """CPU cores and whole GiB of one task of each job, where the nodes of every pool have a capacity to hold against.

    Args:
        tasks: (jobs,) int32, of one node each.
    """
    remarks = []
    found = []
    for name, column, words in ((CPU, trace.cpus, "CPU cores"), (MEMORY, trace.memory_gib, "memory")):
        known = np.isfinite(column) & (column > 0) & (tasks > 0)
        missing = [pool for pool, has in resources.items() if name not in dict(has)]
        field, verb = ("cpu_cores", "are") if name == CPU else ("ram", "is")
        if not known.any():
            remarks.append(f"{words} of jobs {verb} not modelled: the trace records none")
            found.append(np.zeros(len(trace)))
        elif missing:
            remarks.append(f"{words} of jobs {verb} not modelled: pools.{missing[0]}.hardware.{field} is not known")
            found.append(np.zeros(len(trace)))
        else:
            found.append(np.where(known, column / np.maximum(tasks, 1), 0.0))
    cores, memory = found[0] / host.threads, found[1]
    if host.threads > 1 and cores.any():
        remarks.append(
            f"CPUs of the trace are taken as threads, {host.threads} for each core: a job has more than cores"
        )
    over = (memory > host.memory_gib) & (memory <= _SLACK * host.memory_gib)
    whole = np.ceil(np.round(memory, 6))
    if np.isfinite(host.memory_gib):
        whole = np.where(memory <= _SLACK * host.memory_gib, np.minimum(whole, _down(host.memory_gib)), whole)
    if over.any():
        remarks.append(f"{int(over.sum()):,} jobs ask for a little more memory than a node has; taken as all of it")
    return Needs(np.ceil(np.round(cores * 1000, 3)) / 1000, whole, tuple(remarks))


def _down(amount: float) -> float:
    """Rounded down to thousandths, as the queue counts what a node has."""
    return float(np.floor(amount * 1000) / 1000)
