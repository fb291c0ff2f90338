"""Generic resources as Slurm prints them: `gpu:h100:8(S:0-1)`, `gpu:a100:2(IDX:0,3)`, `cpu=8,gres/gpu=2`.

Source: man sinfo (GRES, GRES_USED), man slurm.conf (Gres, AccountingStorageTRES), `gres_job_state_log` and
`gres_get_node_used` in Slurm's src/interfaces/gres.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.memos import remembered
from clusterwright.readers.values import unreadable

_COUNT: Final = re.compile(r"(\d{1,12})([KMGTP]?)", re.ASCII)
_SLICE: Final = re.compile(r"(?:^|[._-])\d{1,2}(?:g|c)\.\d{1,4}(?:gb|mb)", re.IGNORECASE)
_MOST: Final = 1000
_BINARY: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


@dataclass(frozen=True, slots=True)
class Gres:
    """One resource of a node or job.

    Args:
        name: such as `gpu`, `shard`, `mps`.
        type: such as `h100`; "" if none.
        count: None when the text gives none.
        indices: of the devices, as printed; "" if none.
    """

    name: str
    type: str
    count: int | None
    indices: str = ""

    @property
    def is_gpu(self) -> bool:
        """Whether these are whole GPUs."""
        return self.name == "gpu" and not self.is_slice

    @property
    def is_slice(self) -> bool:
        """Whether these are MIG instances: parts of GPUs that are listed as if they were GPUs."""
        return self.name == "gpu" and bool(self.type) and _is_slice(self.type)


@remembered
def _is_slice(kind: str) -> bool:
    return _SLICE.search(kind) is not None


@remembered
def read_gres(text: str) -> tuple[Gres, ...] | NoValue:
    """Every resource of a list; ABSENT for `(null)` and the like; UNREADABLE when a part is cut or has no count."""
    word = text.strip()
    if word.lower() in ("", "(null)", "n/a", "none", "null"):
        return NoValue(Lack.ABSENT, word)
    found = []
    for part in _split(word)[:_MOST]:
        gres = _read_one(part)
        if gres is None:
            return unreadable(word, "cut or without a count: not guessed")
        found.append(gres)
    return tuple(found)


def _split(text: str) -> list[str]:
    """Parts between commas outside parentheses."""
    parts, depth, start = list[str](), 0, 0
    for place, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _read_one(part: str) -> Gres | None:
    head = part.strip().replace("(null)", "")
    head = head[5:] if head.startswith(("gres/", "gres:")) else head
    main, bracket, rest = head.partition("(")
    if bracket and not rest.endswith(")"):
        return None
    fields = [field for field in main.replace("=", ":").split(":") if field != "no_consume"]
    name = fields[0].strip()
    if not re.fullmatch(r"[A-Za-z][\w.-]{0,63}", name) or len(fields) > 3:
        return None
    indices = re.search(r"IDX:([^)]*)\)", rest)
    count = _COUNT.fullmatch(fields[-1].strip()) if len(fields) > 1 else None
    if count is None:
        return None
    number = int(count.group(1)) * _BINARY[count.group(2)]
    kind = fields[1].strip() if len(fields) == 3 else ""
    listed = indices.group(1) if indices else ""
    return Gres(name, kind, number, "" if listed in ("N/A", "") else listed)


def count_indices(text: str) -> int | None:
    """How many devices `0-3,7` names; None when it is no list of numbers."""
    total = 0
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if match is None:
            return None
        total += int(match.group(2) or match.group(1)) - int(match.group(1)) + 1
    return total


def count_gpus(resources: Iterable[Gres]) -> int:
    """Whole GPUs among the resources."""
    return sum(gres.count or 0 for gres in resources if gres.is_gpu)


@remembered
def read_tres(text: str) -> Mapping[str, str] | NoValue:
    """`cpu=8,mem=64G,gres/gpu=2` as a mapping; ABSENT when empty; UNREADABLE when a part is cut."""
    word = text.strip()
    if word.lower() in ("", "(null)", "n/a", "none"):
        return NoValue(Lack.ABSENT, word)
    found: dict[str, str] = {}
    for part in word.split(",")[:_MOST]:
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals or not value or value.endswith("+") or not re.fullmatch(r"[A-Za-z][\w/:.@-]{0,127}", key.strip()):
            return unreadable(word, "cut by the column's width: not guessed")
        found[key.strip()] = value.strip()
    return MappingProxyType(found)


def gpus_in_tres(tres: Mapping[str, str]) -> int | NoValue:
    """GPUs in a list of trackable resources.

    `gres/gpu` counts all of them; typed entries (`gres/gpu:h100`) are parts of it and are added up only where the
    total is missing. ABSENT when the list names no GPU: not 0, since the cluster may not track GPUs.
    """
    typed = [value for key, value in tres.items() if key.startswith("gres/gpu:") and not _SLICE.search(key)]
    values = [tres["gres/gpu"]] if "gres/gpu" in tres else typed
    total = 0
    for value in values:
        if not value.isascii() or not value.isdigit() or len(value) > 9:
            return unreadable(value, "not a number of GPUs")
        total += int(value)
    return total if values else NoValue(Lack.ABSENT, "", "the list names no gres/gpu")


@remembered
def gpus_of(text: str) -> int | NoValue:
    """GPUs in a list of trackable resources as printed; empty is absent, not 0."""
    tres = read_tres(text)
    return tres if isinstance(tres, NoValue) else gpus_in_tres(tres)
