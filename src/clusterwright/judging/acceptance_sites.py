"""What tests need to know about a pool: its nodes, GPUs, links and engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.acceptance_tests import AcceptanceTest
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.judging.acceptance_contradictions import product_test
from clusterwright.model.architecture import Architecture
from clusterwright.model.hardware import NodeShape
from clusterwright.model.networks import Network
from clusterwright.model.pools import Pool

_RDMA: Final = frozenset({"infiniband", "roce", "efa"})
#: Kind of network → link layer that its ports say.
_LAYERS: Final = {"infiniband": "infiniband", "roce": "ethernet"}
#: Families without NVLink SHARP. Source: NCCL user guide, NCCL_NVLS_ENABLE (third generation NVSwitch, Hopper).
_BEFORE_NVLS: Final = frozenset({"volta", "turing", "ampere", "ada"})


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """One worker pool.

    Args:
        working: nodes that carry workloads; the last `spares` of the pool are kept free.
        gpus: per node; 0 for a pool without GPUs or with an unknown number.
        vendor: of the GPUs, "" when unknown.
        nvls: whether the NVSwitch can reduce; None when unknown.
        rdma: whether a compute network of the pool has RDMA.
        rails: ports of a node into the compute network, 0 when unknown.
        layer: link layer of the compute network as its ports say it, "" when unknown.
        gpu: name of the GPU in the catalogue, "" when unknown.
        is_product: whether a product as tools print it may be that GPU; None when the GPU is unknown.
    """

    name: str
    nodes: tuple[str, ...]
    working: tuple[str, ...]
    gpus: int
    vendor: str
    nvswitch: bool
    nvls: bool
    rdma: bool
    engine: str
    rails: int = 0
    layer: str = ""
    gpu: str = ""
    is_product: Callable[[str], bool] | None = None

    def lacks(self, test: AcceptanceTest) -> str:
        """Hardware that the test needs and the pool is known not to have, or ""."""
        for need in test.needs:
            if need in ("gpu", "nvidia-gpu", "amd-gpu") and not self.gpus:
                return "GPUs"
            if need == "nvidia-gpu" and self.vendor == "amd":
                return "NVIDIA GPUs"
            if need == "amd-gpu" and self.vendor != "amd":
                return "AMD GPUs"
            if need == "nvswitch" and not self.nvswitch:
                return "NVSwitch"
            if need == "rdma" and not self.rdma:
                return "an RDMA network"
        if test.engine and test.engine != self.engine:
            return test.engine
        return ""


def pool_facts(architecture: Architecture, catalogue: Catalogue) -> tuple[PoolFacts, ...]:
    """The worker pools of the file."""
    common = architecture.scheduling.engine if architecture.scheduling else ""
    return tuple(
        _facts(name, pool, architecture, catalogue, common)
        for name, pool in architecture.pools.items()
        if pool.role == "worker"
    )


def _facts(name: str, pool: Pool, architecture: Architecture, catalogue: Catalogue, common: str) -> PoolFacts:
    shape = catalogue.find_shape(pool.shape) if pool.shape else None
    hardware = pool.hardware
    gpus = hardware.gpus if hardware and hardware.gpus is not None else (shape.gpus if shape else 0)
    gpu_name = (hardware.gpu if hardware else None) or (shape.gpu if shape else None)
    gpu = catalogue.find_gpu(gpu_name) if gpu_name else None
    switch = hardware.nvswitch if hardware and hardware.nvswitch is not None else bool(shape and shape.nvswitch)
    fabric = architecture.fabric
    networks = fabric.networks.values() if fabric else ()
    reach = [n for n in networks if "compute" in n.roles and (not n.pools or name in n.pools)]
    return PoolFacts(
        name=name,
        nodes=pool.nodes,
        working=pool.nodes[: max(0, len(pool.nodes) - pool.spares)],
        gpus=gpus,
        vendor=gpu.vendor if gpu else "",
        nvswitch=switch,
        nvls=bool(switch and gpu is not None and gpu.vendor == "nvidia" and gpu.architecture not in _BEFORE_NVLS),
        rdma=any(n.kind in _RDMA for n in reach),
        engine=pool.engine or common,
        rails=_rails(pool, shape, reach),
        layer=_layer(reach),
        gpu=gpu.name if gpu else "",
        is_product=product_test(gpu.name, lambda n: found.name if (found := catalogue.find_gpu(n)) else "")
        if gpu
        else None,
    )


def _rails(pool: Pool, shape: NodeShape | None, reach: Sequence[Network]) -> int:
    """Ports as the compute network declares them, else the compute NICs of the pool, else of its shape."""
    stated = [n.ports for n in reach if n.kind in _RDMA and "ports" in n.model_fields_set]
    if stated:
        return sum(stated)
    if pool.hardware and pool.hardware.nics is not None:
        return pool.hardware.nics
    return sum(n.count for n in shape.nics if n.role == "compute") if shape else 0


def _layer(reach: Sequence[Network]) -> str:
    """The link layer where all compute networks agree."""
    layers = {_LAYERS.get(n.kind, "") for n in reach}
    return layers.pop() if len(layers) == 1 else ""
