"""Which event is the cause and which the consequence, by their order on one node and what is known of each.

Rules: what the driver says itself (`caused by previous Xid n`) counts first. A PCIe error before a lost GPU is its
cause; a lost GPU before errors of switches, of the GPU's firmware (GSP) or before the killing of channels is theirs; a
link error of NVLink or of a switch before killed channels and contained errors likewise; so is an uncorrected memory
error before retired or remapped rows, and a fault of the application before the end of its channels.
Source: NVIDIA Xid catalogue (45, 154 are reported after another event), NVSwitch SXid notes in the Fabric Manager user
guide (a fatal SXid reaches the GPU as Xid 74, channels end with Xid 45), Linux PCI error recovery documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.readers.kernel.stamps import Stamped
from clusterwright.readers.kernel.tallies import Key, Tally, seconds_between

#: A consequence that follows later than this after the last of its cause is none.
WINDOW_S: Final = 600.0
NVLINK_XIDS: Final = frozenset({"74", "137", *(str(code) for code in range(144, 151))})
_LINK: Final = NVLINK_XIDS
_ENDED: Final = frozenset({"43", "45", "154"})
_GSP: Final = frozenset({"119", "120", "109", "143"})
_MEMORY: Final = frozenset({"63", "64", "94", "95", "92", "140", "160", "161", "171", "172"})
#: Code of the cause → codes of its consequences, beside those that end channels.
_XID_RULES: Final[dict[str, frozenset[str]]] = {
    "79": _ENDED | _GSP | frozenset({"13", "31", "32", "38", "61", "62", "74", "94", "95", "110"}),
    "48": _ENDED | _MEMORY,
    "95": _ENDED,
    "94": _ENDED,
    "13": _ENDED | frozenset({"109"}),
    "31": _ENDED | frozenset({"109"}),
    "119": _ENDED | frozenset({"109", "120"}),
    "120": _ENDED | frozenset({"109", "119"}),
    "62": _ENDED | _GSP,
    "109": frozenset({"154", "45"}),
    **{code: _ENDED | frozenset({"94", "95"}) | (_LINK - {code}) for code in _LINK},
}


@dataclass(frozen=True, slots=True)
class Happening:
    """One kind of event on one node in one boot."""

    name: str
    kind: str
    code: str
    pci: str
    boot: int
    node: str
    line: int
    first: Stamped
    last: Stamped
    causes: tuple[str, ...] = ()


def happenings_of(events: Sequence[tuple[Key, Tally]], lost: Sequence[Happening]) -> list[Happening]:
    """Events that can be causes or consequences, in order."""
    found = list(lost)
    for key, tally in events:
        if key.kind == "xid":
            name = f"Xid {key.code}"
        elif key.kind == "sxid":
            name = f"SXid {key.code}"
        elif key.kind == "aer":
            name = f"PCIe error ({key.code})"
        else:
            continue
        causes = tuple(tally.causes)
        found.append(
            Happening(
                name, key.kind, key.code, key.pci, key.boot, key.node, tally.line, tally.first, tally.last, causes
            )
        )
    return sorted(found, key=lambda h: (h.boot, h.line))


def chains_of(happenings: Sequence[Happening], *, newest_first: bool = False) -> Iterator[list[Happening]]:
    """Each root cause with its consequences behind it, in order.

    Args:
        newest_first: whether the log is sorted backwards.
    """
    ordered = list(reversed(happenings)) if newest_first else list(happenings)
    groups: dict[tuple[int, str], list[Happening]] = {}
    for one in ordered:
        groups.setdefault((one.boot, one.node), []).append(one)
    for group in groups.values():
        yield from _chains(group[:200])


def _chains(group: list[Happening]) -> Iterator[list[Happening]]:
    root_of: dict[int, int] = {}
    for index, later in enumerate(group):
        for earlier_index, earlier in enumerate(group):
            if earlier_index == index or (earlier_index > index and not _named(earlier, later)):
                continue
            if _named(earlier, later) or _may_cause(earlier, later):
                chosen = _worst(group, earlier_index, index)
                root_of[index] = root_of.get(chosen, chosen)
                break
    chains: dict[int, list[Happening]] = {}
    for index, root in root_of.items():
        if root != index:
            chains.setdefault(root, [group[root]]).append(group[index])
    yield from chains.values()


def _worst(group: list[Happening], found: int, later: int) -> int:
    """For a corrected PCIe error that may be the cause: an uncorrected one that may be it too, if there is one."""
    if group[found].kind != "aer" or group[found].code != "corrected":
        return found
    worse = (
        i
        for i, one in enumerate(group[:later])
        if one.kind == "aer" and one.code != "corrected" and _may_cause(one, group[later])
    )
    return next(worse, found)


def _named(earlier: Happening, later: Happening) -> bool:
    """Whether the later event names the earlier one as its cause."""
    return later.kind == "xid" and earlier.kind == "xid" and earlier.code in later.causes and earlier.pci == later.pci


def _may_cause(earlier: Happening, later: Happening) -> bool:
    if later.causes:
        return False
    gap = seconds_between(earlier.last, later.first)
    reach = seconds_between(earlier.first, later.first)
    if gap is not None and gap > WINDOW_S and (reach is None or reach > WINDOW_S):
        return False
    if earlier.kind == "aer":
        return later.kind == "lost" or (later.kind == "xid" and later.code == "79")
    if earlier.kind == "lost":
        return later.kind == "sxid" or (
            later.kind == "xid" and later.code != "79" and _ruled(earlier, later, "79", gap)
        )
    if earlier.kind == "sxid":
        return later.kind == "xid" and later.code in _LINK | {"45", "94", "154"}
    if later.kind == "lost":
        return False
    if earlier.code == "79" and later.kind == "sxid":
        return True
    if earlier.code in _LINK and later.kind == "sxid":
        return True
    return later.kind == "xid" and _ruled(earlier, later, earlier.code, gap)


def _ruled(earlier: Happening, later: Happening, code: str, gap: float | None) -> bool:
    """Whether the rule of a code covers the later event: on the same GPU, or on any in time for link errors."""
    if later.code not in _XID_RULES.get(code, frozenset()):
        return False
    return earlier.pci == later.pci or not earlier.pci or (code in _LINK and gap is not None)
