"""How the time of a collective inside one node follows from the message and the number of GPUs.

NCCL sends short messages in lines that carry their own flags (LL, LL128: little latency, less bandwidth) and long ones
in chunks behind a fence (Simple). With either protocol, for a buffer of S bytes over n ranks, s steps, bus factor f:

    t(µs) = α + h·s + S·f·(l + p·(n−2)⁺ + q·(n−4)⁺ + e) + S·m + c·√S

α is the launch, h a hop, l a byte over the link, m a byte through memory whatever the ranks, c what lies between (short
messages: √(S/n), the part of one rank). p and q are the links that GPUs over PCIe share: a host bridge beyond two,
another socket beyond four. e is what a byte costs more when 8-bit numbers are added up: twice the additions of 16-bit.

Over NVLink the part of one rank decides what is short, so that the size from which a message is long grows as n: an
all-to-all looks at the bytes of a peer, and a ring weighs hops, of which there are n − 1, against bytes that hardly
depend on n. Over PCIe there is no LL128, and the change from LL to Simple was seen at one size.

Source: NCCL, src/graph/tuning.cc (latency per step and bandwidth per protocol; LL128 up to PATH_NVB only, which is
NVLink) and src/enqueue.cc (NCCL_P2P_LL_THRESHOLD, bytes of a peer).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from clusterwright.physics.ceilings import Collective
from clusterwright.physics.collectives import CollectiveTerms, bus_factor


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol of one operation on one GPU. Coefficients per byte are µs per kB, which is 1 ÷ (GB/s).

    Args:
        latency_us: α.
        hop_us: h.
        link: l.
        root_us: c, µs per √byte.
        memory: m.
        eight_bit: e.
        bridge: p.
        socket: q.
    """

    latency_us: float
    hop_us: float
    link: float
    root_us: float
    memory: float = 0.0
    eight_bit: float = 0.0
    bridge: float = 0.0
    socket: float = 0.0

    def terms(self, operation: Collective, ranks: float, eight_bit: bool) -> CollectiveTerms:
        """The three terms over a number of ranks."""
        factor = bus_factor(operation, ranks)
        shared = self.bridge * max(0.0, ranks - 2) + self.socket * max(0.0, ranks - 4)
        per_byte = self.link + shared + self.memory / factor + self.eight_bit * eight_bit
        latency = self.latency_us + self.hop_us * steps(operation, ranks)
        return CollectiveTerms(latency, 1 / per_byte if per_byte else math.inf, self.root_us)


@dataclass(frozen=True, slots=True)
class Law:
    """Time of one operation on one GPU over any number of ranks.

    Args:
        short: protocol of short messages; its root counts √(S/n).
        long: protocol of long ones.
        long_from_bytes: size from which a message is long; of the part of one rank where that decides.
        per_rank: whether it does.
    """

    short: Protocol
    long: Protocol
    long_from_bytes: float
    per_rank: bool = True

    def terms(self, operation: Collective, ranks: float, eight_bit: bool = False) -> CollectiveTerms:
        """Terms over a number of ranks, at least 2: those of long messages with those of short ones inside.

        Args:
            eight_bit: 8-bit numbers are added up.
        """
        short, long = (p.terms(operation, ranks, eight_bit) for p in (self.short, self.long))
        short = CollectiveTerms(short.latency_us, short.bandwidth_gbytes_s, short.root_us / math.sqrt(ranks))
        change = self.long_from_bytes * (ranks if self.per_rank else 1)
        return CollectiveTerms(long.latency_us, long.bandwidth_gbytes_s, long.root_us, short, change)


def steps(operation: Collective, ranks: float) -> float:
    """Steps of a ring, and sends of an all-to-all: 2(n−1) for all-reduce, else n−1."""
    return bus_factor(operation, ranks) * ranks
