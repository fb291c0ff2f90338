"""What replicas must load before they work, link by link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from clusterwright.lib.figures import Figure
from clusterwright.plan.results.refusals import Unplanned

#: Each kind of link of a payload's way in words.
LINK_WORDS: Final[dict[str, str]] = {
    "source": "source",
    "network": "network",
    "cache": "cache",
    "nic": "storage adapters",
    "pcie": "GPUs' host links",
    "memory": "host memory",
    "loader": "loader",
}


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """One link on the way of a payload: a store, the network, or what the nodes let pass (`plan/host_paths.py`).

    Args:
        path: path in the file of what it is.
        rate: GB/s for all concurrent readers together.
        time: s for all bytes through this link alone.
        enough: rate ≥ required.
    """

    kind: Literal["source", "network", "cache", "nic", "pcie", "memory", "loader"]
    path: str
    rate: Figure
    time: Figure
    enough: bool

    @property
    def words(self) -> str:
        """The kind of link as people say it."""
        return LINK_WORDS[self.kind]


@dataclass(frozen=True, slots=True)
class PayloadPlan:
    """What all replicas must load before they work.

    Args:
        size: GB per reader.
        required_rate: GB/s; bytes of all concurrent readers ÷ allowed time.
        links: every link whose rate is known.
        binding: the slowest link on the way from the source, None if none is known.
        time: s through the way from the source: its slowest link.
        time_cached: s from the cache, None without one.
        startup: s of process and engine start beside the transfer.
        cold_start: s from the source until the replicas work; cold_start_cached the same from the cache.
        target: declared cold start, s.
        node_class: class of NVIDIA's reference node (good, better, best) that the way reaches per node, "" if unknown.
        unknown: links whose rate the file does not give, with the path that would.
        rate_for_target: GB/s that the way must give for the declared cold start; None without one.
    """

    size: Figure
    readers: Figure
    required_rate: Figure
    within: Figure
    links: tuple[LinkPlan, ...]
    binding: LinkPlan | None
    time: Figure | None
    time_cached: Figure | None
    startup: Figure
    cold_start: Figure | None
    cold_start_cached: Figure | None
    target: Figure | None
    meets_rate: bool | None
    meets_target: bool | None
    node_class: str = ""
    unknown: tuple[Unplanned, ...] = ()
    rate_for_target: Figure | None = None
