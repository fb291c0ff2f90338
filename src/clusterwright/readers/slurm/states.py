"""The words of Slurm for states of nodes and jobs, as printed long, compact, with suffixes, or as flags.

Sources: man sinfo (NODE STATE CODES), man squeue and man sacct (JOB STATE CODES); `node_state_string`,
`node_state_string_compact` and `job_state_string` in Slurm's slurm_protocol_defs.c, 17.11 to 25.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.readers.memos import remembered

_BASES: Final = ("ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN")
_FLAGS: Final = (
    "BLOCKED", "CLOUD", "COMPLETING", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL", "FAIL", "INVALID_REG",
    "MAINTENANCE", "NOT_RESPONDING", "PERFCTRS", "PLANNED", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP",
    "POWER_DOWN", "POWER_UP", "POWER_DRAIN", "REBOOT_CANCEL", "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED",
    "RESUME", "UNDRAIN",
)  # fmt: skip
#: A word of a listing → state and flags. A state of "" leaves the other words of a compound to say it. DRAINED covers
#: idle and down nodes, DRAINING allocated and mixed ones: a listing does not tell them apart.
_WORDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    **{base: (base, ()) for base in _BASES},
    **{flag: ("", (flag,)) for flag in _FLAGS},
    "ALLOC": ("ALLOCATED", ()), "MIX": ("MIXED", ()), "UNK": ("UNKNOWN", ()), "FUTR": ("FUTURE", ()),
    "INVAL": ("", ("INVALID_REG",)), "INVALID": ("", ("INVALID_REG",)), "NO_RESPOND": ("", ("NOT_RESPONDING",)),
    "REBOOT": ("", ("REBOOT_REQUESTED",)), "BOOT": ("", ("REBOOT_ISSUED",)), "REBOOT^": ("", ("REBOOT_ISSUED",)),
    "POW_DN": ("", ("POWER_DOWN",)), "POW_UP": ("", ("POWERING_UP",)), "BLOCK": ("", ("BLOCKED",)),
}  # fmt: skip
#: Words that stand alone in a listing; in a compound the same words are only flags.
_ALONE: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "COMP": ("COMPLETING", ("COMPLETING",)), "COMPLETING": ("COMPLETING", ("COMPLETING",)),
    "DRAINING": ("DRAINING", ("DRAIN",)), "DRNG": ("DRAINING", ("DRAIN",)),
    "DRAINED": ("DRAINED", ("DRAIN",)), "DRAIN": ("DRAINED", ("DRAIN",)),
    "FAILING": ("FAILING", ("FAIL",)), "FAILG": ("FAILING", ("FAIL",)), "FAIL": ("FAIL", ("FAIL",)),
    "MAINT": ("MAINT", ("MAINTENANCE",)), "MAINTENANCE": ("MAINT", ("MAINTENANCE",)),
    "RESV": ("RESERVED", ("RESERVED",)), "RESERVED": ("RESERVED", ("RESERVED",)),
    "PLND": ("PLANNED", ("PLANNED",)), "PLANNED": ("PLANNED", ("PLANNED",)), "NPC": ("PERFCTRS", ("PERFCTRS",)),
}  # fmt: skip
#: What a sign after the word means.
SUFFIXES: Final = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN",
    "$": "MAINTENANCE", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED", "-": "PLANNED", "+": "COMPLETING",
}  # fmt: skip
#: Flags with which the scheduler starts no ordinary job on a node.
_KEEPS_OUT: Final = frozenset(
    {
        "BLOCKED", "DRAIN", "FAIL", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "POWERING_DOWN", "POWER_DRAIN",
        "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED",
    }
)  # fmt: skip

JOB_STATES: Final = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CG": "COMPLETING", "CD": "COMPLETED", "CF": "CONFIGURING",
    "CA": "CANCELLED", "F": "FAILED", "TO": "TIMEOUT", "NF": "NODE_FAIL", "PR": "PREEMPTED", "BF": "BOOT_FAIL",
    "DL": "DEADLINE", "OOM": "OUT_OF_MEMORY", "RQ": "REQUEUED", "RH": "REQUEUE_HOLD", "RF": "REQUEUE_FED",
    "RS": "RESIZING", "RV": "REVOKED", "SI": "SIGNALING", "SE": "SPECIAL_EXIT", "SO": "STAGE_OUT", "ST": "STOPPED",
    "RD": "RESV_DEL_HOLD", "LF": "LAUNCH_FAILED", "RC": "RECONFIG_FAIL", "UP": "UPDATE_DB", "PO": "POWER_UP_NODE",
    "EX": "EXPEDITING",
}  # fmt: skip
_LONG_JOB_STATES: Final = frozenset(JOB_STATES.values())
#: States of a job that is over.
OVER: Final = frozenset(
    {
        "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
        "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "REQUEUED",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node's state.

    Args:
        base: ALLOCATED, IDLE, MIXED, DOWN, UNKNOWN, FUTURE, ERROR, or what a listing says instead (DRAINED,
            DRAINING, MAINT …); "" where only flags were printed.
        flags: in alphabetic order.
    """

    base: str
    flags: tuple[str, ...] = ()

    @property
    def takes_jobs(self) -> bool:
        """Whether the scheduler may start ordinary jobs here; says nothing about free resources."""
        return self.base not in ("DOWN", "ERROR", "FUTURE", "UNKNOWN", "") and not _KEEPS_OUT & set(self.flags)

    def __str__(self) -> str:
        return self.base or "+".join(self.flags)


@remembered
def read_node_state(text: str) -> NodeState | None:
    """The state that a word (`drng*`, `mix-`) or a compound (`MIXED+DRAIN`) stands for; None for any other text."""
    word = text.strip().upper()
    flags: set[str] = set()
    if not word or len(word) > 200:
        return None
    while word and word[-1] in SUFFIXES and word not in _WORDS:
        flags.add(SUFFIXES[word[-1]])
        word = word[:-1]
    parts = word.split("+")
    words = _ALONE if len(parts) == 1 else {}
    base = ""
    for part in parts:
        while part and part[-1] in SUFFIXES and part not in _WORDS:  # DOWN*+DRAIN, before Slurm 21.08
            flags.add(SUFFIXES[part[-1]])
            part = part[:-1]
        known = words.get(part) or _WORDS.get(part)
        if known is None:
            return None
        base = base or known[0]
        flags.update(known[1])
    return NodeState(base, tuple(sorted(flags)))


@remembered
def read_job_state(text: str) -> str | None:
    """The long name of a job's state, None for any other text.

    `CANCELLED by 1000` and its cut form `CANCELLED+` are CANCELLED; a word cut in the middle (`RUNNI+`) is not read.
    """
    words = text.strip().split()
    word = words[0].upper() if words else ""
    if word in _LONG_JOB_STATES:
        return word
    if word in JOB_STATES:
        return JOB_STATES[word]
    if word.endswith("+") and word[:-1] == "CANCELLED":
        return "CANCELLED"
    return None
