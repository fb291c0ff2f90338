"""Bus bandwidth that a collective cannot exceed, and the reference beside it; GB/s per GPU.

g GPUs per NVLink domain, k domains, n = g·k ranks, r = NIC rate of one GPU in GB/s (400 Gb/s = 50), no in-network
reduction on the fabric. A measurement above the *bound* is invalid evidence: all bytes that must leave a domain cross
its g NICs. The *reference* is the flat ring, which every library can reach: above it look again, far below it look
for the cause. In-network reduction (SHARP) lifts the all-reduce bound; then only the reference applies.

Source: counting argument above; bus bandwidth factors as in nccl-tests PERFORMANCE.md: all-reduce 2(n−1)/n, all-gather,
reduce-scatter and all-to-all (n−1)/n.
"""

from __future__ import annotations

from typing import Final, Literal

Collective = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
COLLECTIVES: Final[tuple[Collective, ...]] = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")


def busbw_bound(operation: Collective, domain_gpus: float, domains: float, nic_gbytes_s: float) -> float:
    """Upper bound of bus bandwidth over two or more domains.

    All-reduce, all-gather, reduce-scatter: r·(n−1)/(k−1). All-to-all: r·(n−1)/(n−g).
    """
    ranks = domain_gpus * domains
    if domains < 2:
        raise ValueError("one domain: its bound follows from the link (busbw_bound_inside)")
    if operation == "all-to-all":
        return nic_gbytes_s * (ranks - 1) / (ranks - domain_gpus)
    return nic_gbytes_s * (ranks - 1) / (domains - 1)


def busbw_bound_inside(operation: Collective, ranks: float, link_gbytes_s: float, switch_reduces: bool) -> float:
    """Upper bound of bus bandwidth inside one domain.

    Args:
        link_gbytes_s: rate of one GPU into the domain, one direction.
        switch_reduces: switches add up in the network (NVLS): an all-reduce then moves its data once, so that
            algbw ≤ link·n/(n+1) and busbw is 2(n−1)/n of it.
    """
    if operation == "all-reduce" and switch_reduces:
        return link_gbytes_s * ranks / (ranks + 1) * 2 * (ranks - 1) / ranks
    return link_gbytes_s


def busbw_reference(domain_gpus: float, domains: float, nic_gbytes_s: float, link_gbytes_s: float) -> float:
    """Bus bandwidth of a flat ring: g·r over several domains, never above the link; the link inside one domain."""
    if domains < 2:
        return link_gbytes_s
    return min(domain_gpus * nic_gbytes_s, link_gbytes_s)
