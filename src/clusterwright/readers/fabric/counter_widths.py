"""How large a port counter can grow: at its ceiling it has stopped and no longer says how many.

Source: InfiniBand Architecture Specification 1.4, volume 1, tables PortCounters (4 to 32 bits) and
PortCountersExtended (64 bits); kernel drivers/infiniband/core/sysfs.c reads error counters from the former.
"""

from __future__ import annotations

from typing import Final

from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.memos import remembered

#: Bits of a counter in PortCounters, by its name in small letters without underscores.
_BITS: Final = {
    "symbolerrorcounter": 16, "symbolerror": 16, "linkerrorrecoverycounter": 8, "linkerrorrecovery": 8,
    "linkdownedcounter": 8, "linkdowned": 8, "portrcverrors": 16, "portrcvremotephysicalerrors": 16,
    "portrcvswitchrelayerrors": 16, "portxmitdiscards": 16, "portxmitconstrainterrors": 8, "portrcvconstrainterrors": 8,
    "locallinkintegrityerrors": 4, "excessivebufferoverrunerrors": 4, "vl15dropped": 16, "portxmitwait": 32,
    "qp1dropped": 16,
}  # fmt: skip
_DATA: Final = frozenset(
    {"portxmitdata", "portrcvdata", "portxmitpkts", "portrcvpkts", "portxmitpackets", "portrcvpackets"}
)
_BAD_ENDINGS: Final = ("err", "error", "errors", "discards", "dropped", "retrans", "retransto", "timeout")
_LONG: Final = (1 << 64) - 1
#: Counters of errors, by the same names; traffic and waiting are none.
ERRORS: Final = frozenset(_BITS) - {"portxmitwait"}


@remembered
def plain(name: str) -> str:
    """The name by which the tables here are read."""
    return name.lower().replace("_", "").replace(" ", "")


@remembered
def is_error(name: str) -> bool:
    """Whether a counter counts errors, by the specification or by how RDMA drivers name theirs."""
    bare = plain(name)
    bare = bare.removesuffix("extended").removesuffix("ext")
    return bare in ERRORS or bare.endswith(_BAD_ENDINGS)


@remembered
def is_data(name: str) -> bool:
    """Whether a counter counts data in words of four bytes."""
    return plain(name) in ("portxmitdata", "portrcvdata")


def read_counter(name: str, text: str, *, extended: bool = False) -> float | NoValue:
    """A count, or why there is none.

    Args:
        extended: whether the counters are 64 bits wide.
    """
    word = text.strip()
    digits = word.isascii() and word.isdecimal()
    if (
        word[1:2] in "xX"
        and word.lower().startswith("0x")
        and len(word) <= 18
        and all(c in "0123456789abcdef" for c in word[2:].lower())
    ):
        number = int(word, 16) if len(word) > 2 else None
    else:
        number = int(word) if digits and len(word) <= 20 else None
    if number is None:
        absent = not word or word.lower().startswith(("n/a", "-", "none"))
        why = "no counter there" if absent else "not a count"
        return NoValue(Lack.ABSENT if absent else Lack.UNREADABLE, word[:40], why)
    ceiling = _ceiling(plain(name), extended)
    if number in (ceiling, _LONG):
        return NoValue(Lack.UNREADABLE, word, f"saturated: at least {number:,}, growth can no longer be seen")
    return float(number)


def _ceiling(bare: str, extended: bool) -> int:
    if extended:
        return _LONG
    if bare in _DATA:
        return (1 << 32) - 1
    return (1 << _BITS[bare]) - 1 if bare in _BITS else _LONG
