"""What a careful person says about a kernel log: facts and their order, not what to do about them."""

from __future__ import annotations

from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kernel.causes import NVLINK_XIDS, Happening, chains_of, happenings_of
from clusterwright.readers.kernel.following import Follower
from clusterwright.readers.kernel.observing import init_failures
from clusterwright.readers.kernel.tallies import Key, Tally

_DAY_S: Final = 86_400.0
#: Xids that report an uncorrected error of the GPU's memory or what follows from one.
_MEMORY_XIDS: Final = frozenset({"48", "63", "64", "94", "95", "171"})
#: Corrected PCIe errors per second from which a link is a storm and no background; our default.
_STORM_PER_S: Final = 1.0
_FEW: Final = 10


def say_what_it_means(run: RunBuilder, log: Follower, *, newest_first: bool) -> None:
    """Add the notices."""
    if newest_first:
        run.notice("newest-first", "the log is sorted newest first", Weight.INFO)
    _lost(run, log)
    _root_causes(run, log, newest_first)
    _several_gpus(run, log)
    _memory(run, log)
    _actions(run, log)
    _pcie(run, log)
    _host_memory(run, log)
    _amd(run, log)
    _switches(run, log)
    _adapters(run, log)
    _system(run, log)
    _times(run, log)
    if run.bare and not run.rejected and not log.tallies.kinds("mce-logged", "rate-limited", "sxid-detail"):
        run.notice("no-fault", "no fault of a GPU, a switch, PCIe or memory in these lines", Weight.INFO)


def _lost(run: RunBuilder, log: Follower) -> None:
    for (_, node, pci), gpu in sorted(log.lost.items(), key=lambda item: item[1].line):
        where = " ".join(filter(None, (pci or "that is not named", f"on {node}" if node else "")))
        run.notice(
            "gpu-lost", f"the GPU {where} does not answer any more ({', '.join(gpu.said)})", Weight.ERROR, gpu.line
        )
    for key, tally in init_failures(log):
        run.notice(
            "gpu-init-failed", f"the driver could not start GPU {key.pci or '(not named)'}", Weight.ERROR, tally.line
        )
    for key, tally in log.tallies.kinds("rate-limited"):
        run.notice(
            "rate-limited",
            f"the driver prints only 1 of {key.code} errors of its firmware (GSP) on GPU {key.pci}: counts are lower"
            " bounds, the GPU likely needs a reset",
            line=tally.line,
        )
    if "0" in log.serials:
        run.notice("serial-is-0", "a GPU reports serial number 0: it identifies nothing", Weight.INFO, log.serials["0"])


def _root_causes(run: RunBuilder, log: Follower, newest_first: bool) -> None:
    lost = [
        Happening("lost GPU", "lost", "", pci, boot, node, gpu.line, gpu.first, gpu.last)
        for (boot, node, pci), gpu in log.lost.items()
        if "Xid 79" not in gpu.said
    ]
    happenings = happenings_of(log.tallies.kinds("xid", "sxid", "aer"), lost)
    for chain in chains_of(happenings, newest_first=newest_first):
        root, *rest = chain
        later = ", then ".join(f"{h.name} on {h.pci or 'a device'} (line {h.line})" for h in rest[:_FEW])
        more = f" and {len(rest) - _FEW} more" if len(rest) > _FEW else ""
        node = f" of {root.node}" if root.node else ""
        run.notice(
            "root-cause",
            f"root cause{node}: {root.name} on {root.pci or 'a device'} (line {root.line}); consequences: "
            f"{later}{more}",
            line=root.line,
        )
    present = {h.code for h in happenings if h.kind == "xid"}
    stated: dict[tuple[str, str], list[tuple[Key, Tally]]] = {}
    for key, tally in log.tallies.kinds("xid"):
        for cause in tally.causes:
            if cause not in present:
                stated.setdefault((cause, key.code), []).append((key, tally))
    for (cause, code), found in stated.items():
        gpus = ", ".join(dict.fromkeys(key.pci for key, _ in found))
        run.notice(
            "root-cause",
            f"root cause: Xid {cause}, which these lines do not hold; Xid {code} on {gpus} names it as its cause",
            line=found[0][1].line,
        )


def _several_gpus(run: RunBuilder, log: Follower) -> None:
    by_code: dict[tuple[int, str, str], list[tuple[Key, Tally]]] = {}
    for key, tally in log.tallies.kinds("xid"):
        by_code.setdefault((key.boot, key.node, key.code), []).append((key, tally))
        for cause in tally.causes:
            by_code.setdefault((key.boot, key.node, cause), []).append((key, tally))
    for (boot, node, code), found in by_code.items():
        gpus = dict.fromkeys(key.pci for key, _ in found)
        if len(gpus) < 2:
            continue
        if code in NVLINK_XIDS:
            run.notice(
                "xid-on-several-gpus",
                f"Xid {code} concerns {len(gpus)} GPUs ({', '.join(gpus)}): an error of the links between them, which "
                "a reset of one GPU does not end",
                line=found[0][1].line,
            )
        linked = any((boot, node, other) in by_code for other in NVLINK_XIDS)
        if code == "94" and linked:
            run.notice(
                "contained-errors-with-link-errors",
                f"Xid 94 on {len(gpus)} GPUs together with link errors: one fault of NVLink, not {len(gpus)} bad "
                "memories",
                line=found[0][1].line,
            )


def _memory(run: RunBuilder, log: Follower) -> None:
    by_gpu: dict[tuple[str, str], list[tuple[Key, Tally]]] = {}
    for key, tally in log.tallies.kinds("xid"):
        if key.code in _MEMORY_XIDS:
            by_gpu.setdefault((key.node, key.pci), []).append((key, tally))
    for (_, pci), found in by_gpu.items():
        repeated = [(k, t) for k, t in found if t.incidents > 1 and (t.span_s or 0) <= _DAY_S * (t.incidents - 1)]
        if repeated:
            key, tally = repeated[0]
            codes = ", ".join(dict.fromkeys(k.code for k, _ in found))
            run.notice(
                "memory-errors-repeat",
                f"GPU {pci} reports memory errors (Xid {codes}) again: {tally.incidents} incidents within "
                f"{(tally.span_s or 0) / 3600:.1f} h; each alone could be recovered from",
                Weight.ERROR,
                tally.line,
            )


def _actions(run: RunBuilder, log: Follower) -> None:
    for key, tally in log.tallies.kinds("xid"):
        if key.code == "154" and tally.detail:
            run.notice("recovery-action", f"the driver asks for '{tally.detail}' on GPU {key.pci}", line=tally.line)
        if key.what:
            run.notice(
                "mig-instance",
                f"Xid {key.code} concerns {key.what} of GPU {key.pci} only, not the whole GPU",
                Weight.INFO,
                tally.line,
            )


def _pcie(run: RunBuilder, log: Follower) -> None:
    unable = [key for key, _ in log.tallies.kinds("recovery") if key.code == "impossible"]
    for key, tally in log.tallies.kinds("recovery"):
        if key.code == "failed":
            victims = ", ".join(f"{k.what} {k.pci}" for k in unable if k.node == key.node)
            below = f"; {victims} cannot recover and cannot be used" if victims else ""
            run.notice(
                "recovery-failed", f"recovery after a PCIe error at {key.pci} failed{below}", Weight.ERROR, tally.line
            )
    if unable and not any(key.code == "failed" for key, _ in log.tallies.kinds("recovery")):
        victims = ", ".join(f"{key.what} {key.pci}" for key in unable)
        run.notice("recovery-impossible", f"{victims} cannot recover from a PCIe error", Weight.ERROR)
    decoded = {(k.boot, k.node, k.pci, k.code) for k, _ in log.tallies.kinds("aer")}
    for key, tally in log.tallies.kinds("aer", "aer-received"):
        span = tally.span_s
        if key.kind == "aer-received" and (key.boot, key.node, key.pci, key.code) in decoded:
            continue
        if key.code == "corrected":
            rate = "" if span is None else f" within {max(span, 1.0):.3g} s"
            storm = span is not None and tally.count > 2 and tally.count / max(span, 1.0) >= _STORM_PER_S
            code = "pcie-corrected-storm" if storm else "pcie-corrected"
            run.notice(
                code, f"{tally.count:,} corrected PCIe errors at {key.pci}{rate}; they often come before a lost device",
                Weight.WARNING if storm else Weight.INFO, tally.line,
            )  # fmt: skip
        else:
            run.notice(
                "pcie-uncorrected", f"{tally.count:,} × {key.code} PCIe error at {key.pci}", Weight.ERROR, tally.line
            )

    for key, tally in log.tallies.kinds("pcie-limited"):
        run.notice("pcie-limited", f"PCIe of {key.pci}: {tally.detail}", line=tally.line)


def _host_memory(run: RunBuilder, log: Follower) -> None:
    for key, tally in log.tallies.kinds("edac", "mce"):
        bad = key.code != "corrected"
        lost = "; the counter ran over, there were more" if "OVERFLOW" in tally.detail else ""
        where = f" on {key.what}" if key.what else ""
        name = "memory errors of the host" if key.kind == "edac" else "machine checks of the host"
        run.notice(
            "host-memory-uncorrected" if bad else "host-memory-corrected",
            f"{tally.count:,} {'undecoded' if key.code == 'machine check' else key.code} {name}{where}{lost}",
            Weight.ERROR if bad else Weight.WARNING,
            tally.line,
        )
    if log.tallies.kinds("mce-logged") and not log.tallies.kinds("edac", "mce"):
        run.notice(
            "machine-checks-logged",
            "machine checks were logged elsewhere (mcelog, rasdaemon); look there",
            Weight.WARNING,
        )


def _amd(run: RunBuilder, log: Follower) -> None:
    bad = ("GPU reset failed", "uncorrected error", "memory lost in a reset", "bad pages at their limit")
    for key, tally in log.tallies.kinds("amd"):
        if key.code != "GPU reset succeeded":
            run.notice(
                "gpu-event",
                f"GPU {key.pci or '(not named)'}: {key.code}, {tally.count:,} times",
                Weight.ERROR if key.code in bad else Weight.WARNING,
                tally.line,
            )


def _switches(run: RunBuilder, log: Follower) -> None:
    details = {id(tally) for _, tally in log.tallies.kinds("sxid-detail")}
    for key, tally in log.tallies.kinds("sxid"):
        if not key.what and id(tally) not in details:
            run.notice(
                "sxid-severity-not-printed",
                f"SXid {key.code} at {key.pci} is printed without Fatal or Non-fatal: its code decides",
                line=tally.line,
            )
        if key.what == "fatal":
            run.notice(
                "sxid-fatal", f"SXid {key.code} at {key.pci} is fatal: {tally.detail[:80]}", Weight.ERROR, tally.line
            )
    events = {(k.node, k.code) for k, tally in log.tallies.kinds("sxid") if id(tally) not in details}
    for key, tally in log.tallies.kinds("sxid-detail"):
        if (key.node, key.code) not in events:
            run.notice(
                "sxid-detail-alone",
                f"of SXid {key.code} at {key.pci} only details are here, not the line that says how severe it is",
                line=tally.line,
            )


def _adapters(run: RunBuilder, log: Follower) -> None:
    for node, pci, port in log.links_still_down():
        run.notice(
            "link-still-down",
            f"the link of {pci} {port} {('on ' + node) if node else ''} went down and did not come up",
        )
    for key, tally in log.tallies.kinds("nic"):
        if key.code not in ("link up", "link down"):
            run.notice("adapter", f"{key.pci}: {key.code}, {tally.count:,} times", line=tally.line)


def _system(run: RunBuilder, log: Follower) -> None:
    for key, tally in log.tallies.kinds("segfault"):
        run.notice(
            "segfault",
            f"{key.what} crashed in {key.code}, {tally.count:,} times: a fault of a program, not of the hardware",
            Weight.INFO,
            tally.line,
        )
    pressed = bool(log.tallies.kinds("sysrq"))
    for key, tally in log.tallies.kinds("panic"):
        by_hand = "; it was triggered by hand (sysrq)" if pressed else ""
        run.notice(
            "panic",
            f"the kernel crashed ({key.code}){by_hand}: the node restarted for this reason",
            Weight.ERROR,
            tally.line,
        )
    if log.tallies.kinds("oom", "oom-event"):
        run.notice(
            "out-of-memory", "the kernel killed processes for want of host memory: no fault of a GPU", Weight.INFO
        )
    for key, tally in log.tallies.kinds("peermem"):
        run.notice("peermem", f"nvidia-peermem met an {key.code}, {tally.count:,} times", Weight.INFO, tally.line)


def _times(run: RunBuilder, log: Follower) -> None:
    without = [t for _, t in log.tallies.kinds("xid", "sxid", "aer") if not t.first.time]
    unread = [t for _, t in log.tallies.kinds("xid", "sxid", "aer") if t.first.time and t.first.seconds is None]
    if without:
        run.notice(
            "no-time", f"{len(without)} kinds of event have no time: their order is that of the lines", Weight.INFO
        )
    if unread:
        run.notice(
            "time-unknown",
            f"the time '{unread[0].first.time}' is kept as written: its month is not English, or it is relative",
            Weight.INFO,
            unread[0].line,
        )
