"""Counted events of a kernel log → observations."""

from __future__ import annotations

from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Value
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kernel.following import Follower
from clusterwright.readers.kernel.tallies import Key, Tally
from clusterwright.readers.values import quantity, read_quantity

_TIME_UNKNOWN: Final = NoValue(Lack.ABSENT, "", "the line has no time")


def observe(run: RunBuilder, log: Follower) -> None:
    """Add everything that was counted."""
    _codes(run, log)
    for (boot, node, pci), gpu in sorted(log.lost.items(), key=lambda item: item[1].line):
        subject = _subject(log, Key(boot, node, "lost", "", pci, ""))
        run.observe("lost_device", ", ".join(gpu.said), subject, gpu.line)
        run.observe("lost_device_first", gpu.first.time or _TIME_UNKNOWN, subject, gpu.line)
    _pcie(run, log)
    for key, tally in log.tallies.kinds("edac", "mce"):
        part = (("memory", key.what),) if key.what else ()
        subject = (*_subject(log, key), *part, ("count", str(tally.count)))
        run.observe(key.kind, key.code, subject, tally.line)
        run.observe(
            f"{key.kind}_count", float(tally.count), (*_subject(log, key), *part, ("severity", key.code)), tally.line
        )
    _adapters(run, log)
    _system(run, log)
    if log.tallies.left_out:
        run.missing(f"{log.tallies.left_out:,} events of further devices or codes")


def _codes(run: RunBuilder, log: Follower) -> None:
    for key, tally in log.tallies.kinds("xid", "sxid"):
        about = _subject(log, key)
        extra = [("instance", key.what)] if key.kind == "xid" and key.what else []
        if tally.links:
            extra.append(("link", ",".join(tally.links)))
        subject = (*about, *extra)
        run.observe(key.kind, float(key.code), (*subject, ("count", str(tally.count))), tally.line)
        named = (*subject, (key.kind, key.code))
        run.observe(f"{key.kind}_count", float(tally.count), named, tally.line)
        run.observe(f"{key.kind}_first", tally.first.time or _TIME_UNKNOWN, named, tally.line)
        run.observe(f"{key.kind}_last", tally.last.time or _TIME_UNKNOWN, named, tally.line)
        if key.kind == "sxid":
            run.observe("sxid_severity", _severity(key), named, tally.line)
        if tally.detail:
            run.observe(f"{key.kind}_detail", tally.detail, named, tally.line)
        for link in tally.links:
            run.observe(f"{key.kind}_link", link, named, tally.line)
        for cause, count in tally.causes.items():
            run.observe("xid_cause", float(cause), (*named, ("count", str(count))), tally.line)
        if tally.processes:
            run.observe("xid_processes", ", ".join(tally.processes), named, tally.line)
        if key.kind == "xid" and key.code == "154":
            run.observe("recovery_action", tally.detail, about, tally.line)


def _severity(key: Key) -> Value:
    return key.what or NoValue(Lack.ABSENT, "", "the line does not say; it is to be looked up by the code")


def _pcie(run: RunBuilder, log: Follower) -> None:
    """Each PCIe error once, although the kernel prints it as received and as decoded."""
    decoded = {(k.boot, k.node, k.pci, k.code): t for k, t in log.tallies.kinds("aer")}
    for key, tally in log.tallies.kinds("aer", "aer-received"):
        same = (key.boot, key.node, key.pci, key.code)
        if key.kind == "aer-received" and same in decoded:
            continue
        received = log.tallies.of.get(Key(key.boot, key.node, "aer-received", key.code, key.pci, key.what))
        count = max(tally.count, received.count if received else 0)
        about = _subject(log, key)
        run.observe("aer", key.code, (*about, ("count", str(count))), tally.line)
        named = (*about, ("severity", key.code))
        run.observe("aer_count", float(count), named, tally.line)
        run.observe("aer_first", tally.first.time or _TIME_UNKNOWN, named, tally.line)
        run.observe("aer_last", tally.last.time or _TIME_UNKNOWN, named, tally.line)
    for key, tally in log.tallies.kinds("recovery"):
        run.observe("device_recovery", key.code, (*_subject(log, key), ("driver", key.what)), tally.line)


def _adapters(run: RunBuilder, log: Follower) -> None:
    for key, tally in log.tallies.kinds("nic"):
        part = (("port", key.what),) if key.what else ()
        run.observe("nic_event", key.code, (*_subject(log, key), *part, ("count", str(tally.count))), tally.line)
        named = (*_subject(log, key), *part, ("event", key.code))
        run.observe("nic_event_first", tally.first.time or _TIME_UNKNOWN, named, tally.line)
        run.observe("nic_event_last", tally.last.time or _TIME_UNKNOWN, named, tally.line)
    for (node, pci, port), seconds in log.downtimes.items():
        subject = tuple((k, v) for k, v in (("node", node), ("pci", pci), ("port", port)) if v)
        run.observe("link_down_longest", quantity(round(seconds, 6), "s"), subject)


def _system(run: RunBuilder, log: Follower) -> None:
    kills: dict[str, tuple[int, int]] = {}
    for key, tally in log.tallies.kinds("oom", "oom-event"):
        killed, invoked = kills.get(key.node, (0, 0))
        kills[key.node] = (killed + tally.count, invoked) if key.kind == "oom" else (killed, invoked + tally.count)
    for node, (killed, invoked) in kills.items():
        run.observe("oom_kills", float(max(killed, invoked)), (("node", node),) if node else ())
    for key, tally in log.tallies.kinds("segfault"):
        about = (*_subject(log, key), ("process", key.what), ("count", str(tally.count)))
        run.observe("segfault", key.code, about, tally.line)
    for key, tally in log.tallies.kinds("panic"):
        run.observe("panic", key.code, _subject(log, key), tally.line)
        run.observe("panic_first", tally.first.time or _TIME_UNKNOWN, _subject(log, key), tally.line)
    for key, tally in init_failures(log):
        run.observe("gpu_init_failure", key.code, (*_subject(log, key), ("count", str(tally.count))), tally.line)
    for key, tally in log.tallies.kinds("amd"):
        named = (*_subject(log, key), ("event", key.code))
        run.observe("gpu_event", key.code, (*_subject(log, key), ("count", str(tally.count))), tally.line)
        run.observe("gpu_event_first", tally.first.time or _TIME_UNKNOWN, named, tally.line)
        run.observe("gpu_event_last", tally.last.time or _TIME_UNKNOWN, named, tally.line)
    for key, tally in log.tallies.kinds("pcie-limited"):
        run.observe("pcie_bandwidth", read_quantity(key.code, "Gb/s"), _subject(log, key), tally.line)
        run.observe("pcie_bandwidth_capable", read_quantity(key.what, "Gb/s"), _subject(log, key), tally.line)


def init_failures(log: Follower) -> list[tuple[Key, Tally]]:
    """Failed starts of GPUs; the driver reports each in two steps, of which the one seen more often counts."""
    found: dict[tuple[int, str, str], tuple[Key, Tally]] = {}
    for key, tally in log.tallies.kinds("init-failure"):
        place = (key.boot, key.node, key.pci)
        if place not in found or found[place][1].count < tally.count:
            found[place] = (key, tally)
    return list(found.values())


def _subject(log: Follower, key: Key) -> Labels:
    pairs = [("node", key.node), ("pci", key.pci), ("uuid", log.uuids.get((key.node, key.pci), ""))]
    if key.boot:
        pairs.append(("boot", str(key.boot + 1)))
    return tuple((name, value) for name, value in pairs if value)
