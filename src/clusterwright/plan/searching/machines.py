"""A pool's GPU as each estimator wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.lib.scales import GIB
from clusterwright.model.hardware import Gpu
from clusterwright.physics.engines.results import Gpu as EngineGpu
from clusterwright.physics.serving.sides import Device
from clusterwright.plan.searching.questions import Pool

if TYPE_CHECKING:
    from clusterwright.physics.training.systems import System


def reported_gib(gpu: Gpu) -> float:
    """GiB that CUDA or HIP reports of one device; what is built where nobody published it."""
    return float((gpu.visible_memory or gpu.memory).value) / GIB


def engine_gpu(pool: Pool) -> EngineGpu:
    """The GPU of memory plans."""
    return EngineGpu(pool.gpu.name, reported_gib(pool.gpu), pool.gpu.vendor)


def inner_domain(pool: Pool) -> int:
    """GPUs that exchange in every layer without a NIC: over their own links, without any over PCIe inside a node."""
    return max(pool.domain_gpus, 1) if _linked(pool) else pool.gpus_per_node


def link_bytes_s(pool: Pool) -> float:
    """B/s and direction of one GPU to the others of its domain; 0 where the catalogue knows no link at all."""
    gpu = pool.gpu
    if _linked(pool) and gpu.scale_up is not None:
        return float(gpu.scale_up.per_direction.value)
    return float(gpu.pcie.rate.value) / 8 if gpu.pcie else 0.0


def joined(pool: Pool) -> str:
    """How many GPUs may exchange in every layer, and by what, in words."""
    domain = inner_domain(pool)
    if node_link(pool)[0] > domain:
        return f"bridges join {domain} GPUs, PCIe the others of a node"
    return f"{domain} GPUs reach each other without a NIC"


def node_link(pool: Pool) -> tuple[int, float]:
    """(GPUs of a node, B/s and direction of one of them over PCIe) where bridges join only some of them; (1, 0) else.

    Bridges of NVLink or xGMI join two or four cards; the others of the node are reached through its PCIe switches.
    """
    gpu = pool.gpu
    if not _linked(pool) or pool.domain_gpus >= pool.gpus_per_node or gpu.pcie is None:
        return 1, 0.0
    return pool.gpus_per_node, float(gpu.pcie.rate.value) / 8


def nic_bytes_s(pool: Pool) -> float:
    """B/s and direction of one GPU out of its domain, oversubscription counted; 0 where no network is known."""
    return (pool.nic_gbytes_s or 0.0) * 1e9 / pool.oversubscription


def device(pool: Pool) -> Device:
    """The GPU of serving times, as software counts GPUs (a die of MI250X is one).

    A GPU without bf16 units runs bf16 weights as fp16 (vLLM `--dtype half`). Where GPUs or nodes have no link the rate
    is a byte per second: nothing may use it.
    """
    gpu = pool.gpu
    names = ("fp32", "fp16", "bf16", "fp8", "int8", "fp4")
    rates = {name: rate.value / gpu.devices for name in names if (rate := getattr(gpu.dense, name)) is not None}
    if "fp16" in rates:
        rates.setdefault("bf16", rates["fp16"])
    node, node_rate = node_link(pool)
    return Device(
        memory_gib=reported_gib(gpu),
        bandwidth_bytes_s=gpu.bandwidth.value / gpu.devices,
        flops_s=rates,
        link_bytes_s=link_bytes_s(pool) or 1.0,
        domain=inner_domain(pool),
        nic_bytes_s=nic_bytes_s(pool) or 1.0,
        node=node,
        node_bytes_s=node_rate,
    )


def system(pool: Pool) -> System:
    """The GPU of training times; rates where there is no link as in `device`.

    Raises:
        ValueError: if the catalogue has no bf16 or fp16 rate of the GPU.
    """
    from clusterwright.physics.training.systems import system_of  # questions of inference need none of it

    return system_of(
        pool.gpu,
        domain=inner_domain(pool),
        link_bytes_s=link_bytes_s(pool) or 1.0,
        nic_bytes_s=nic_bytes_s(pool) or 1.0,
        node=node_link(pool),
    )


def _linked(pool: Pool) -> bool:
    return pool.gpu.scale_up is not None and pool.domain_gpus > 1
