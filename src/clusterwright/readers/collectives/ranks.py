"""The list of ranks that nccl-tests prints, and how many ranks took part when the list is cut or not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from clusterwright.lib.pci import pci_address

_LINE: Final = re.compile(
    r"[\s#>]*Rank +(?P<rank>\d{1,7}) +(?:Group +(?P<group>\d{1,7}) +)?(?:Pid +\d+ +)?on +(?P<node>\S+)"
    r" +device +(?P<device>\d{1,4}) +\[(?P<bus>[^\]]{1,32})\](?P<name>.*)"
)
_START: Final = re.compile(r"[\s#>]*Rank +\d{1,7} +(?:Group|Pid|on)\b")
#: Names by which a driver says that it does not know the product.
UNNAMED: Final = frozenset({"", "NVIDIA Graphics Device", "Graphics Device", "AMD Radeon Graphics", "Device"})


@dataclass(frozen=True, slots=True)
class Rank:
    """One line of the list. `pci` is "" when only a bus number is printed (versions before 2.13.10)."""

    line: int
    rank: int
    group: int
    node: str
    device: str
    pci: str
    product: str


def parse_rank(text: str, line: int) -> Rank | None:
    """The rank of a line, None when it is no whole line of the list."""
    match = _LINE.match(text)
    if match is None:
        return None
    bus = match["bus"].strip()
    try:
        pci = pci_address(bus) if bus.count(":") == 2 else ""
    except ValueError:
        pci = ""
    group = int(match["group"] or 0)
    return Rank(line, int(match["rank"]), group, match["node"], match["device"], pci, match["name"].strip())


def starts_rank(text: str) -> bool:
    """Whether a line begins as one of the list does."""
    return _START.match(text) is not None


@dataclass(frozen=True, slots=True)
class Membership:
    """Which ranks took part.

    Args:
        ranks: their number, None when nothing tells.
        known_by: how the number is known, for people.
        listed: lines of the list that are there.
        nodes: hosts in the order of the list.
        all_nodes: whether no host can be missing from `nodes`.
        groups: communicators that ran side by side.
    """

    ranks: int | None
    known_by: str
    listed: int
    nodes: tuple[str, ...]
    all_nodes: bool
    groups: int


def membership(listed: Sequence[Rank]) -> Membership:
    """What the list alone tells; ranks are numbered from 0, host by host."""
    ordered = sorted(listed, key=lambda rank: rank.rank)
    nodes = tuple(dict.fromkeys(rank.node for rank in ordered))
    groups = max(1, len({rank.group for rank in ordered}))
    if not ordered:
        return Membership(None, "", 0, (), False, 1)
    total = ordered[-1].rank + 1
    whole = len(ordered) == total
    gaps = [(a, b) for a, b in pairwise(ordered) if b.rank > a.rank + 1]
    bridged = ordered[0].rank == 0 and all(a.node == b.node for a, b in gaps)
    how = "rank list" if whole else "highest rank in a list with gaps"
    return Membership(total, how, len(ordered), nodes, whole or bridged, groups)
