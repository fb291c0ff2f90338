"""The Xid codes of the NVIDIA driver and the SXid codes of NVSwitches: what each asks for, sources side by side.

Source of the buckets: NVIDIA, "Analyzing Xid Errors with the Xid Catalog", Ampere and newer, as of 2025-10-29
(immediate action). Other sources are kept beside it where they differ; none is hidden. SXids: NVIDIA Fabric Manager
user guide DU-09883-001 v1.3 (2023-10), appendix D.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Bucket(StrEnum):
    """What a code asks for at once."""

    RESTART_APP = "restart the application"
    IGNORE = "ignore"
    RESET_GPU = "reset the GPU"
    RESTART_NODE = "restart the machine"
    RESTART_VM = "restart the virtual machine"
    RESTART_FABRIC_MANAGER = "restart Fabric Manager"
    DRAIN_AND_RESET = "drain the node and reset the GPU"
    UPDATE = "update software and firmware"
    CHECK_POWER = "check the power connection"
    FAIL_NODE = "take the node out"
    WORKFLOW = "follow the workflow"
    CONTACT_SUPPORT = "contact support"
    UNKNOWN = "not in the catalogue"


#: Buckets that concern the job and not the hardware.
HARMLESS: Final = frozenset({Bucket.RESTART_APP, Bucket.IGNORE})
CATALOGUE: Final = "NVIDIA Xid catalogue, 2025-10-29"
AZURE: Final = "Azure HPC node health checks, check_gpu_xid"
MEMORY_GUIDE: Final = "NVIDIA GPU memory error management guide"
VALIDATION: Final = "NVIDIA Health Validation, Xid checks"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one source says."""

    source: str
    bucket: Bucket
    text: str = ""


@dataclass(frozen=True, slots=True)
class XidEntry:
    """A code.

    Args:
        opinions: the catalogue first, then the others.
        note: what to know beyond the bucket.
    """

    code: int
    name: str
    opinions: tuple[Opinion, ...]
    note: str = ""

    @property
    def bucket(self) -> Bucket:
        """What the catalogue says."""
        return self.opinions[0].bucket

    @property
    def disputed(self) -> bool:
        """Whether sources differ."""
        return len({opinion.bucket for opinion in self.opinions}) > 1


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about an event, with every source that says something else."""

    bucket: Bucket
    why: str
    opinions: tuple[Opinion, ...] = ()


_BUCKETS: Final[dict[Bucket, tuple[int, ...]]] = {
    Bucket.RESTART_APP: (
        8, 11, 13, 25, 31, 32, 39, 40, 41, 60, *range(68, 73), *range(75, 78), 80, *range(82, 87), 88, 89, 94,
        *range(96, 106), *range(126, 136), 139,
    ),
    Bucket.IGNORE: (
        14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152, 153, 157, 160, 161,
    ),
    Bucket.RESET_GPU: (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
    Bucket.RESTART_NODE: (79,),
    Bucket.RESTART_VM: (151,),
    Bucket.UPDATE: (78,),
    Bucket.CHECK_POWER: (54,),
    Bucket.WORKFLOW: (45, 48, 74, *range(144, 151), 154, 159),
}  # fmt: skip
#: Codes that the catalogue lists with "contact support", nearly all unused.
_SUPPORT: Final = (
    *range(1, 8), 9, 10, 12, *range(15, 25), *range(26, 31), *range(33, 37), 42, 47, *range(49, 54), *range(55, 60), 61,
    65, 73, 81, 87, 90, 91, *range(111, 119), *range(122, 126), 138, 142,
)  # fmt: skip
_NAMES: Final = {
    8: "GPU stopped processing", 11: "invalid or corrupted push buffer stream", 13: "graphics engine exception",
    25: "invalid or illegal push buffer stream", 31: "GPU memory page fault",
    32: "invalid or corrupted push buffer stream", 38: "driver firmware error", 43: "GPU stopped processing",
    44: "graphics engine fault during context switch", 45: "preemptive cleanup, due to previous errors",
    46: "GPU stopped processing", 48: "double bit ECC error", 54: "auxiliary power is not connected",
    62: "internal micro-controller halt", 63: "GPU memory remapping event", 64: "GPU memory remapping failure",
    69: "graphics engine class error", 74: "NVLink error", 78: "vGPU start error", 79: "GPU has fallen off the bus",
    80: "corrupted data sent to GPU", 92: "high single-bit ECC error rate", 94: "contained memory error",
    95: "uncontained memory error", 109: "context switch timeout", 110: "security fault", 119: "GSP RPC timeout",
    120: "GSP error", 121: "C2C error", 136: "link training failed", 137: "NVLink privilege error",
    140: "unrecovered ECC error", 143: "GPU initialization error", 144: "NVLink SAW error", 145: "NVLink RLW error",
    146: "NVLink TLW error", 147: "NVLink TREX error", 148: "NVLink NVLPW_CTRL error", 149: "NVLink NETIR error",
    150: "NVLink MSE error", 151: "key rotation error", 154: "GPU recovery action changed",
    155: "NVLink software defined error", 156: "resource retirement event", 157: "resource retirement failure",
    158: "GPU fatal timeout", 159: "CHI non-data error", 160: "channel retirement event",
    161: "channel retirement failure", 171: "uncorrectable DRAM error", 172: "uncorrectable SRAM error",
}  # fmt: skip
_NOTES: Final = {
    13: "on one GPU in different applications it points to the hardware",
    31: "on one GPU in different applications it points to the hardware",
    45: "alone: restart Fabric Manager; after another Xid: that one decides",
    48: "alone: reset the GPU; with 63 or 64: drain the node and reset the GPU",
    63: "the remapping becomes active with the next reset of the GPU",
    64: "a remapping that fails again means that the GPU is to be replaced",
    74: "the registers name the link; check the link, its partner and the switch",
    79: "look for a PCIe error before it; a GPU that is lost again is to be replaced",
    94: "on several GPUs together with link errors it is no fault of their memories",
    137: "follows from another error on the link partner in most cases",
    154: "the text names the action",
    159: "check UVM; alone report it, with another Xid that one decides",
    171: "tells that the Xid 48 with it is of DRAM",
    172: "tells that the Xid 48 with it is of SRAM",
    **dict.fromkeys(
        range(144, 151), "unit and status decide, which newer drivers (575 on) print; else Xid 154 with it"
    ),
}
_AZURE_FAILS: Final = (48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 119, 120)
_OTHERS: Final[dict[int, tuple[Opinion, ...]]] = {
    63: (
        Opinion(MEMORY_GUIDE, Bucket.RESET_GPU, "reset at the next opportunity, so that the remapping becomes active"),
    ),
    46: (Opinion(VALIDATION, Bucket.DRAIN_AND_RESET, "drain, reset the GPU, then service if it comes again"),),
}
#: Texts of Xid 154. Source: GPU recovery actions of NVML (NVML_GPU_RECOVERY_ACTION_*).
_RECOVERY: Final = (
    ("drain and reset", Bucket.DRAIN_AND_RESET),
    ("drain p2p", Bucket.DRAIN_AND_RESET),
    ("node reboot", Bucket.RESTART_NODE),
    ("gpu reset", Bucket.RESET_GPU),
    ("none", Bucket.IGNORE),
)


def look_up_xid(code: int) -> XidEntry:
    """The entry of a code; one that no source lists is UNKNOWN, never harmless."""
    bucket = next((bucket for bucket, codes in _BUCKETS.items() if code in codes), None)
    if bucket is None:
        bucket = Bucket.CONTACT_SUPPORT if code in _SUPPORT else Bucket.UNKNOWN
    opinions = [Opinion(CATALOGUE, bucket), *_OTHERS.get(code, ())]
    if code in _AZURE_FAILS:
        opinions.append(Opinion(AZURE, Bucket.FAIL_NODE))
    return XidEntry(code, _NAMES.get(code, ""), tuple(opinions), _NOTES.get(code, ""))


def advise_xid(code: int, others: Collection[int] = (), recovery_action: str = "") -> Advice:
    """What to do about a code, given what else was reported for the same GPU.

    Args:
        others: codes of the same GPU at the same time.
        recovery_action: text of an Xid 154 of the same GPU, "" when there was none.
    """
    entry = look_up_xid(code)
    if recovery_action and (code == 154 or entry.bucket is Bucket.WORKFLOW):
        found = next((b for word, b in _RECOVERY if word in recovery_action.lower()), Bucket.UNKNOWN)
        return Advice(found, f"Xid 154 asks for '{recovery_action}'", entry.opinions)
    apart = set(others) - {code, 154}
    if code == 45:
        if apart:
            return Advice(Bucket.IGNORE, f"follows from Xid {_listed(apart)}, which decides", entry.opinions)
        return Advice(Bucket.RESTART_FABRIC_MANAGER, "alone, without another Xid", entry.opinions)
    if code == 48:
        if apart & {63, 64}:
            return Advice(Bucket.DRAIN_AND_RESET, f"together with Xid {_listed(apart & {63, 64})}", entry.opinions)
        return Advice(Bucket.RESET_GPU, "alone, without a remapping event", entry.opinions)
    return Advice(entry.bucket, entry.note or entry.name, entry.opinions)


class Severity(StrEnum):
    """How much an SXid ends."""

    ALWAYS_FATAL = "fatal to the whole fabric"
    FATAL = "fatal to the port and its partitions"
    NOTABLE = "not fatal, others may follow"
    NON_FATAL = "non-fatal"
    UNKNOWN = "not in the guide"


GUIDE: Final = "NVIDIA Fabric Manager user guide DU-09883-001 v1.3, appendix D"
SWITCH_DRIVER: Final = "NVSwitch driver (open-gpu-kernel-modules, ls10): handled as a fatal interrupt of the controller"
_SXIDS: Final[dict[Severity, tuple[int, ...]]] = {
    Severity.ALWAYS_FATAL: (10003, 12020, 22003, 22011, *range(23001, 23018)),
    Severity.FATAL: (
        11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, *range(12024, 12028), 12030, 12031, 12032, 14017,
        15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063, 19064, 19066,
        19067, 19069, 19070, 20034, 22012, *range(24004, 24008),
    ),
    Severity.NOTABLE: (10001, 10002, 10004, 10005),
    Severity.NON_FATAL: (  # 20009 is in no guide: the driver prints it as non-fatal
        11004, 11012, 11021, 11022, 11023, 12021, 12023, 12028, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065,
        19068, 19071, 19084, 20001, 20009, 20012, 22013, 24001, 24002, 24003,
    ),
}  # fmt: skip
#: The controller of the switch (SOE) stopped: the guide does not list it, the driver treats it as fatal.
_CONTROLLER: Final = range(26001, 26009)


@dataclass(frozen=True, slots=True)
class SXidEntry:
    """An SXid by the guide."""

    code: int
    severity: Severity
    bucket: Bucket
    source: str


def look_up_sxid(code: int, printed: str = "") -> SXidEntry:
    """Severity of an SXid and what it asks for.

    Args:
        printed: `fatal` or `non-fatal` as the line says; it decides where the guide does not list the code.
    """
    if code in _CONTROLLER:
        return SXidEntry(code, Severity.ALWAYS_FATAL, Bucket.RESTART_NODE, SWITCH_DRIVER)
    severity = next((s for s, codes in _SXIDS.items() if code in codes), Severity.UNKNOWN)
    source = GUIDE
    if severity is Severity.UNKNOWN and printed:
        severity, source = (Severity.NON_FATAL if printed == "non-fatal" else Severity.FATAL), "the line itself"
    buckets = {
        Severity.ALWAYS_FATAL: Bucket.RESTART_NODE,
        Severity.FATAL: Bucket.DRAIN_AND_RESET,
        Severity.NOTABLE: Bucket.IGNORE,
        Severity.NON_FATAL: Bucket.IGNORE,
    }
    return SXidEntry(code, severity, buckets.get(severity, Bucket.UNKNOWN), source)


def _listed(codes: Collection[int]) -> str:
    return ", ".join(map(str, sorted(codes)))
