"""The state of InfiniBand and RDMA ports and fabrics, whichever tool printed it; several may stand in one output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.fabric.adapter_listings import read_adapters, score_adapters
from clusterwright.readers.fabric.adapters import describe_adapters
from clusterwright.readers.fabric.counter_sources import collect_sysfs, score_sysfs_states
from clusterwright.readers.fabric.guid_lists import read_guids, score_guids
from clusterwright.readers.fabric.interfaces import read_interfaces, score_interfaces
from clusterwright.readers.fabric.looking import holds
from clusterwright.readers.fabric.mlxlink import read_mlxlink, score_mlxlink
from clusterwright.readers.fabric.short_listings import read_short, score_short
from clusterwright.readers.fabric.switch_listings import read_switch, score_switch
from clusterwright.readers.fabric.topologies import read_topology, score_topology
from clusterwright.readers.fabric.troubles import with_troubles
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

Read = Callable[[Sequence[Line], str], list[Run]]


def read_sysfs_states(lines: Sequence[Line], node: str) -> list[Run]:
    """What sysfs says about ports, where it is listed without their counters."""
    listing = collect_sysfs(lines)
    if not listing.adapters or listing.ports:
        return []
    run = RunBuilder("sysfs")
    describe_adapters(run, listing.adapters, node)
    return [run.build()]


#: What recognises a form, what reads it, and words of which every output of that form holds one.
_FORMS: Final[tuple[tuple[Callable[[str], int], Read, tuple[str, ...]], ...]] = (
    (score_adapters, read_adapters, ("CA '", "hca_id:", "Infiniband device '", "port:")),
    (score_interfaces, read_interfaces, ("==>", "state ", "<", "Settings for ")),
    (score_topology, read_topology, ('"S-', '"H-', '"R-', "0x", "==(")),
    (score_switch, read_switch, ("|",)),
    (score_mlxlink, read_mlxlink, ("Operational Info",)),
    (score_short, read_short, (": 0x", "node GUID", "Port info")),
    (score_sysfs_states, read_sysfs_states, ("infiniband/",)),
)
#: Keys that stand alone before a colon in these listings and are no host.
_KEYS: Final = frozenset(
    {"State", "Rate", "LMC", "Port", "Speed", "Width", "FEC", "Switch", "CA", "Duplex", "transport"}
)
_MOST_LINES: Final = 2_000_000
_MOST_HOSTS: Final = 20_000


def recognise_states(head: Head) -> int:
    """How sure it is that a tool for the state of ports printed this."""
    return max(max(score(head.text) for score, _, _ in _FORMS), score_guids(head.text))


def read_states(source: Source) -> Sequence[Run]:
    """Every listing in an output, host by host where lines name their host."""
    hosts: dict[str, list[Line]] = {}
    for count, line in enumerate(source.lines(), 1):
        if count > _MOST_LINES:
            raise Refused(f"more than {_MOST_LINES:,} lines; split it")
        if line.prefix in _KEYS:
            line = Line(line.number, f"{line.prefix}: {line.text}")
        host = line.prefix if line.prefix in hosts or len(hosts) < _MOST_HOSTS else ""
        hosts.setdefault(host, []).append(line)
    runs: list[Run] = []
    for host, lines in hosts.items():
        found = [run for _, read, words in _FORMS if holds(lines, *words) for run in read(lines, _node(host))]
        runs += with_troubles(found, lines)
    if not runs:
        runs = [run for host, lines in hosts.items() for run in read_guids(lines, _node(host))]
    if not runs:
        raise Refused("no port, link or switch in it that is known", 1, source.head)
    return runs


def _node(prefix: str) -> str:
    return f"task {prefix}" if prefix[:1].isdigit() else prefix


READER: Final = Reader(
    "ib-state",
    "InfiniBand and RDMA ports, links and switches: ibstat, ibv_devinfo, iblinkinfo, …",
    recognise_states,
    read_states,
)
