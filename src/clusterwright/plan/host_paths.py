"""What nodes themselves let pass between their adapters and their GPUs: adapter slot, PCIe, host memory, loader."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.physics.storage_chains import (
    DEFAULT_LOADER,
    LOADER_BYTES_S,
    LOADER_SOURCE,
    MEMORY_BYTES_S,
    MEMORY_SOURCE,
    PCIE_SHARE,
    host_memory_bytes_s,
)
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.sites import Site

#: Share of the PCIe rate that is assumed, with its reason.
SHARE_REASON: Final = "of the PCIe rate, copying from and to pinned host memory"

#: (kind of link, path in the file, GB/s of all nodes together)
HostLink = tuple[str, str, Figure]


def host_links(
    sheet: Sheet,
    prefix: str,
    site: Site | None,
    nodes: Figure,
    gpus: Figure | None,
    local: bool,
    loader: Figure | None = None,
) -> list[HostLink]:
    """Links inside the nodes whose rate the catalogue gives, in the order of the way.

    Args:
        nodes, gpus: that read at once; GPUs None where nobody knows how many.
        local: the bytes lie on the node: no storage adapter is on the way.
        loader: GB/s of one process that loads weights, see `loader_rate`; None where nothing is loaded so.
    """
    if site is None:
        return []
    found = [
        None if local else _adapters(sheet, prefix, site, nodes),
        None if gpus is None else _pcie(sheet, prefix, site, gpus),
        _memory(sheet, prefix, site, nodes),
        None if gpus is None or loader is None else _loader(sheet, prefix, site, gpus, loader),
    ]
    return [link for link in found if link is not None]


def _adapters(sheet: Sheet, prefix: str, site: Site, nodes: Figure) -> HostLink | None:
    slots = next((s for s in site.shape.nics if s.role == "storage" and s.nic), None) if site.shape else None
    nic = sheet.catalogue.find_nic(slots.nic) if slots and slots.nic else None
    if slots is None or nic is None or nic.host_rate is None:
        return None
    each = sheet.published(nic, "host_rate_of_adapter", nic.host_rate.value / 8e9, "GB/s", "PCIe link of an adapter")
    rate = sheet.derive(
        f"{prefix}.nic",
        "GB/s",
        f"PCIe link of a storage adapter × {slots.count} per node × nodes",
        lambda r, n: r * slots.count * n,
        each,
        nodes,
    )
    return "nic", f"{site.path}.shape", rate


def _pcie(sheet: Sheet, prefix: str, site: Site, gpus: Figure) -> HostLink | None:
    copied = gpu_copy_rate(sheet, site)
    if copied is None:
        return None
    rate = sheet.derive(
        f"{prefix}.pcie", "GB/s", "PCIe rate of a GPU × share × GPUs", lambda r, s, n: r * s * n, *copied, gpus
    )
    return "pcie", f"{site.path}.shape", rate


def gpu_copy_rate(sheet: Sheet, site: Site) -> tuple[Figure, Figure] | None:
    """(GB/s of a GPU's host link, share of it that copies reach), None for a GPU of unknown link."""
    gpu = site.gpu
    if gpu is None or gpu.pcie is None:
        return None
    link = sheet.published(gpu, "pcie_rate", gpu.pcie.rate.value / 8e9, "GB/s", "PCIe rate after line coding")
    return link, sheet.assumed("copy_share", PCIE_SHARE, "share", SHARE_REASON)


def _memory(sheet: Sheet, prefix: str, site: Site, nodes: Figure) -> HostLink | None:
    storage = sheet.architecture.storage
    direct = storage is not None and storage.gpudirect_storage == "optimised"
    cpu = site.shape.cpu if site.shape else None
    socket = MEMORY_BYTES_S.get(cpu.model) if cpu else None
    if direct or cpu is None or socket is None:
        return None
    each = sheet.constant(f"host_memory.{cpu.model}", socket / 1e9, "GB/s", MEMORY_SOURCE)
    rate = sheet.derive(
        f"{prefix}.memory",
        "GB/s",
        f"host memory of {cpu.sockets} sockets ÷ 2 (written, then read: no GPUDirect Storage) × nodes",
        lambda r, n: host_memory_bytes_s(cpu.sockets, r, False) * n,
        each,
        nodes,
    )
    return "memory", f"{site.path}.shape", rate


def loader_rate(sheet: Sheet, name: str, stated: str | None) -> Figure:
    """GB/s of one process that loads weights.

    Args:
        name: of the workload. stated: loader that the file names, None for what engines take by themselves.
    """
    each = LOADER_BYTES_S[stated or DEFAULT_LOADER] / 1e9
    if stated is None:
        reason = f"loader is not stated; engines load with {DEFAULT_LOADER}, one thread: {LOADER_SOURCE}"
        return sheet.assumed(f"{name}.loader", each, "GB/s", reason)
    return sheet.constant(f"loader.{stated}", each, "GB/s", LOADER_SOURCE)


def _loader(sheet: Sheet, prefix: str, site: Site, gpus: Figure, each: Figure) -> HostLink:
    rate = sheet.derive(
        f"{prefix}.loader", "GB/s", "rate of a loading process, one per GPU × GPUs", lambda r, n: r * n, each, gpus
    )
    return "loader", site.path, rate
