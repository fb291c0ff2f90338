"""Messages of the kernel about GPUs, NVSwitches, PCIe, memory and adapters → events.

Sources: NVRM and nvidia-nvswitch of the NVIDIA drivers 450 to 595 (Xid with and without `PCI:`, MIG instances inside
the parentheses), drivers/pci/pcie/aer.c and drivers/acpi/apei of Linux 4 to 6, drivers/edac, mlx5_core, mm/oom_kill.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.readers.kernel.amd_messages import amd_event

_XID: Final = re.compile(
    r"Xid \((?:PCI:)?(?P<pci>[^()\s]{1,24})(?P<instance>(?: GPU-C?I:? ?\w{1,6}){0,2})\): "
    r"(?P<code>\d{1,5})(?P<end>[,. :;])?(?P<rest>.*)"
)
_SXID: Final = re.compile(r"SXid \((?:PCI:)?(?P<pci>[^()\s]{1,24})\): (?P<code>\d{4,6})(?P<end>[, :])?(?P<rest>.*)")
_PID: Final = re.compile(r"pid='?(?P<pid>[^',\s]{1,20})'?(?:, name=(?P<name>[^,]{1,64}))?")
_CAUSED: Final = re.compile(r"caused by previous Xid (?P<code>\d{1,5})")
_LINK: Final = re.compile(r"\b[Ll]ink (?P<link>\d{1,3})\b")
_ACTION: Final = re.compile(
    r"recovery action changed from \S{1,12} \((?P<before>[^)]{1,60})\) to \S{1,12} \((?P<after>[^)]{1,60})\)"
)
_GPU_AT: Final = re.compile(r"NVRM: GPU at (?:PCI:)?(?P<pci>[0-9a-fA-F:.]{5,20}): (?P<uuid>GPU-[0-9a-f-]{8,40})")
_SERIAL: Final = re.compile(
    r"NVRM: (?:GPU (?P<pci>[0-9a-fA-F:.]{5,20}): )?GPU (?:Board Serial Number: |serial number is )(?P<serial>\w{1,24})"
)
_LOST: Final = re.compile(r"fallen off the bus|[Ff]ell off the bus|GPU (?:is )?lost from the bus|GPU is lost", re.I)
_LOST_AT: Final = re.compile(r"GPU (?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)")
_PROBED: Final = re.compile(r"NVRM: The NVIDIA GPU (?P<pci>[0-9a-fA-F:.]{5,20})")
_INIT_FAILED: Final = re.compile(
    r"NVRM: (?:GPU (?P<pci>[0-9a-fA-F:.]{5,20}): )?(?P<step>RmInitAdapter|rm_init_adapter) failed"
)
_RATE_LIMITED: Final = re.compile(
    r"NVRM: Rate limiting .{0,60}GPU at (?:PCI:)?(?P<pci>[0-9a-fA-F:.]{5,20})"
    r" \(printing 1 of every (?P<every>\d{1,6})\)"
)
_LIMITED: Final = re.compile(
    r"(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): (?P<available>\d{1,5}\.\d{1,3}) Gb/s"
    r" available PCIe bandwidth, limited by (?P<link>\d[\d.]{0,5} GT/s PCIe x\d{1,2}) link"
    r" at (?P<at>[0-9a-fA-F:.]{7,16})"
    r" \(capable of (?P<capable>\d{1,5}\.\d{1,3}) Gb/s"
)
_AER: Final = re.compile(
    r"(?P<driver>\S{1,32}) (?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): (?P<rest>(?:AER: )?.*)"
)
_SEVERITY: Final = r"Corrected|Correctable|Uncorrect(?:ed|able) \(\w[\w-]{2,10}\)"
_AER_RECEIVED: Final = re.compile(
    rf"AER: (?:(?P<several>Multiple) )?(?P<severity>{_SEVERITY})"
    r" error (?:message )?received(?:(?: from|:) (?P<source>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]))?"
)
_AER_ERROR: Final = re.compile(
    rf"(?:AER: )?PCIe Bus Error: severity=(?P<severity>{_SEVERITY}),"
    r" type=(?P<layer>[\w ]{3,30})"
)
_AER_STATUS: Final = re.compile(r"\s*device \[[0-9a-f]{4}:[0-9a-f]{4}\] error status/mask=(?P<masks>.*)$")
_RECOVERY: Final = re.compile(
    r"AER: (?:device recovery (?P<state>failed|successful)|(?P<cannot>can't recover[^\n]{0,60}))"
)
_GHES: Final = re.compile(
    r"\{\d{1,9}\}\[Hardware Error\]: +(?:event severity: (?P<severity>\w+)|device_id: (?P<pci>[0-9a-f:.]{7,16})"
    r"|section_type: (?P<section>.{3,40}))"
)
_EDAC: Final = re.compile(r"EDAC (?P<controller>[A-Za-z]+\d{0,3}): (?P<count>\d{1,9}) (?P<kind>CE|UE)\b(?P<rest>.*)")
_DIMM: Final = re.compile(r" on (?P<label>\S{1,60})")
_MCE: Final = re.compile(
    r"mce: \[Hardware Error\]: .{0,24}Machine Check|(?P<bad>Uncorrected hardware memory error)|Memory failure: 0x"
    r"|\[Hardware Error\]: (?P<word>Corrected|Uncorrected) error"
)
_MLX5: Final = re.compile(r"mlx5_core (?P<pci>[0-9a-fA-F:.]{7,16})(?: (?P<port>[\w.-]{1,16}))?: (?P<rest>.*)")
_OOM: Final = re.compile(
    r"(?P<kill>(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process (?P<pid>\d{1,9})(?P<rest>.*))"
    r"|(?P<event>oom-kill:constraint=)"
)
_SEGFAULT: Final = re.compile(
    r"(?P<process>[^\[\s]{1,32})\[\d{1,9}\]: segfault at .{0,200}? in (?P<library>[^\[\s]{1,80})"
)
_PANIC: Final = re.compile(
    r"(?P<panic>Kernel panic - not syncing|BUG: unable to handle|Oops: |general protection fault)"
    r"|sysrq: (?:SysRq : )?Trigger a crash"
)
_DRIVER: Final = re.compile(
    r"NVRM: loading NVIDIA UNIX (?P<open>Open )?(?:\S{1,10} )?Kernel Module (?:for \S{1,10} )? *"
    r"(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,3})?)"
)
_MISMATCH: Final = re.compile(r"NVRM: API mismatch: the client has the version (?P<client>\d[\d.]{1,14}), ?(?:but)?")
_KERNEL: Final = re.compile(r"Linux version (?P<version>\S{1,80}) ")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that the kernel says.

    Args:
        kind: xid, sxid, lost, aer, aer-received, recovery, edac, mce, nic, oom, oom-event, segfault, panic, sysrq,
            init-failure, amd, pcie-limited, peermem, detail, cut, or a fact: rate-limited, uuid, serial, probed,
            driver, mismatch, kernel, boot.
        code: of an Xid or SXid; severity, state or name of the others.
        pci: of the device, in one form, "" when not named.
        what: what makes events of one kind and code differ: MIG instance, DIMM, process.
        count: how many it reports at once.
        detail: words worth keeping.
        cause: code of the Xid that the message itself names as the cause.
    """

    kind: str
    code: str = ""
    pci: str = ""
    what: str = ""
    count: int = 1
    detail: str = ""
    cause: str = ""
    link: str = ""


def events_of(message: str) -> Event | None:
    """What a message says, None when nothing that is known here."""
    if "Xid" in message:
        return _xid(message)
    for reading in (_nvrm, _pcie_limit, _aer, _memory, _amd, _mlx5, _system):
        found = reading(message)
        if found is not None:
            return found
    return None


def address(text: str) -> str:
    """A PCI address in one form, "" when the text is none."""
    try:
        return pci_address(text.strip().rstrip("."))
    except ValueError:
        return ""


def severity_of(text: str) -> str:
    """`corrected`, `uncorrected non-fatal` or `uncorrected fatal` for any wording of the kernel."""
    word = text.lower()
    if word.startswith(("corrected", "correctable")):
        return "corrected"
    return "uncorrected non-fatal" if "non" in word or "recoverable" in word else "uncorrected fatal"


def _xid(message: str) -> Event | None:
    if (match := _SXID.search(message)) is not None:
        rest = match["rest"].strip(" ,")
        if not match["end"]:
            return Event("cut", match["code"], address(match["pci"]))
        detail = re.match(r"(?:Data \{|Severity \d|.{0,40}\bdata\[\d)", rest) is not None
        fatal = re.match(r"(Fatal|Non-fatal)\b", rest, re.I)
        link = _LINK.search(rest)
        return Event(
            "sxid-detail" if detail else "sxid", match["code"], address(match["pci"]),
            fatal[1].lower() if fatal else "", int(not rest.startswith("Severity")), rest,
            link=link["link"].lstrip("0") or "0" if link else "",
        )  # fmt: skip
    match = _XID.search(message)
    if match is None:
        return Event("cut") if re.search(r"NVRM: Xid \(", message) else None
    rest = match["rest"].strip(" ,")
    if not match["end"]:
        return Event("cut", match["code"], address(match["pci"]))
    caused, action, link = _CAUSED.search(rest), _ACTION.search(rest), _LINK.search(rest)
    instance = " ".join(match["instance"].split())
    return Event(
        "xid", match["code"], address(match["pci"]), instance, detail=action["after"] if action else rest,
        cause=caused["code"] if caused else "", link=link["link"].lstrip("0") or "0" if link else "",
    )  # fmt: skip


def process_of(detail: str) -> str:
    """Name of the process that an Xid names, "" when unknown."""
    match = _PID.search(detail)
    name = (match["name"] or "").strip() if match else ""
    return "" if name in ("", "<unknown>") else name


def _nvrm(message: str) -> Event | None:
    if _LOST.search(message):
        match = _LOST_AT.search(message)
        return Event("lost", "fallen off the bus", address(match["pci"]) if match else "")
    if "NVRM" not in message and "nvidia" not in message:
        return None
    if match := _GPU_AT.search(message):
        return Event("uuid", match["uuid"], address(match["pci"]))
    if match := _SERIAL.search(message):
        return Event("serial", match["serial"], address(match["pci"] or ""))
    if match := _PROBED.search(message):
        return Event("probed", pci=address(match["pci"]))
    if match := _INIT_FAILED.search(message):
        return Event("init-failure", "initialisation failed", address(match["pci"] or ""), match["step"])
    if match := _RATE_LIMITED.search(message):
        return Event("rate-limited", match["every"], address(match["pci"]))
    if match := _DRIVER.search(message):
        return Event("driver", match["version"], what="open" if match["open"] else "proprietary")
    if match := _MISMATCH.search(message):
        return Event("mismatch", match["client"])
    if "nvidia-peermem" in message or "nvidia_peermem" in message:
        return Event("peermem", "invalid context") if "ERROR" in message else None
    return None


def _aer(message: str) -> Event | None:
    if match := _GHES.search(message):
        if match["severity"]:
            return Event("ghes-severity", match["severity"])
        return (
            Event("ghes-device", pci=address(match["pci"])) if match["pci"] else Event("ghes-section", match["section"])
        )
    match = _AER.search(message)
    if match is None:
        return None
    pci, rest = address(match["pci"]), match["rest"]
    if found := _AER_ERROR.match(rest):
        return Event("aer", severity_of(found["severity"]), pci, detail=found["layer"].strip())
    if found := _AER_RECEIVED.match(rest):
        source = address(found["source"] or "")
        named = source if source and not source.endswith(":00:00.0") else pci
        several = "several" if found["several"] else ""
        return Event("aer-received", severity_of(found["severity"]), named, detail=several)
    if found := _AER_STATUS.match(rest.removeprefix("AER: ")):
        whole = re.fullmatch(r"[0-9a-f]{8}/[0-9a-f]{8}\s*", found["masks"]) is not None
        return Event("aer-status" if whole else "cut", pci=pci)
    if found := _RECOVERY.match(rest):
        return Event("recovery", found["state"] or "impossible", pci, match["driver"], detail=found["cannot"] or "")
    return None


def _pcie_limit(message: str) -> Event | None:
    match = _LIMITED.search(message) if "available PCIe" in message else None
    if match is None:
        return None
    limit = f"{match['available']} of {match['capable']} Gb/s, limited by the {match['link']} link at {match['at']}"
    return Event("pcie-limited", match["available"], address(match["pci"]), match["capable"], detail=limit)


def _amd(message: str) -> Event | None:
    found = amd_event(message)
    if found is None:
        return None
    code, pci = found
    return Event("init-failure" if code == "initialisation failed" else "amd", code, address(pci) if pci else "")


def _memory(message: str) -> Event | None:
    if match := _EDAC.search(message):
        dimm = _DIMM.search(match["rest"])
        kind = "corrected" if match["kind"] == "CE" else "uncorrected"
        what = f"{match['controller']} {dimm['label']}" if dimm else match["controller"]
        return Event("edac", kind, what=what, count=int(match["count"]), detail=match["rest"].strip())
    match = _MCE.search(message)
    if "Machine check events logged" in message:
        return Event("mce-logged", "logged")
    if match is None:
        return None
    bad = match["bad"] or match["word"] == "Uncorrected" or "Memory failure" in message
    return Event("mce", "uncorrected" if bad else ("corrected" if match["word"] else "machine check"))


_NIC_STATES: Final = tuple(
    (re.compile(form), state)
    for form, state in (
        (r"Link down", "link down"),
        (r"Link up", "link up"),
        (r"health compromised|[Ff]atal (?:error|FW)", "health compromised"),
        (r"Cable error|module event\[error\]", "cable error"),
        (r"Cable unplugged", "cable unplugged"),
        (r"[Hh]igh temperature|temp_warn", "high temperature"),
        (r"insufficient power", "insufficient power"),
        (r"assert_var|health_error|firmware (?:internal )?error|print_health_info", "firmware error"),
        (r"PCIe? (?:error|slot is unavailable)|pci_err_detected|timeout\. Will cause a leak", "command or PCI error"),
    )
)


def _mlx5(message: str) -> Event | None:
    match = _MLX5.search(message)
    if match is None:
        return None
    for form, state in _NIC_STATES:
        if form.search(match["rest"]):
            return Event("nic", state, address(match["pci"]), match["port"] or "", detail=match["rest"][:160])
    return None


def _system(message: str) -> Event | None:
    if match := _OOM.search(message):
        if match["event"]:
            return Event("oom-event")
        name = re.search(r"\((?P<name>[^)]{1,32})\)", match["rest"])
        return Event("oom", "killed", what=name["name"] if name else "")
    if match := _SEGFAULT.search(message):
        return Event("segfault", match["library"], what=match["process"])
    if match := _PANIC.search(message):
        return Event("panic", match["panic"].strip(" :")) if match["panic"] else Event("sysrq")
    if match := _KERNEL.search(message):
        return Event("kernel", match["version"])
    if message.startswith(("-- Boot ", "-- Reboot --")):
        return Event("boot")
    return None
