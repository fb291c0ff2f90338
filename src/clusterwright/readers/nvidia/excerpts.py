"""Pieces of `nvidia-smi -q` without the heading of their GPU, as `grep -A` and reports of faults quote them."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.nvidia.devices import is_command, is_elision
from clusterwright.readers.nvidia.trees import split_label

_BEGINS: Final = re.compile(
    r"^[ \t]*(?:Fabric|Remapped Rows|Retired Pages|ECC (?:Errors|Mode)|Clocks (?:Throttle|Event) Reasons)[ \t]*\n"
    r"[ \t]+(?:State|Correctable Error|Single Bit ECC|Volatile|Current(?: ECC)?|GPU Idle|Idle)\b *(?::|\n)",
    re.MULTILINE,
)


def holds_excerpt(text: str) -> bool:
    """Whether a section stands in it whose name and first line no other tool prints so."""
    return _BEGINS.search(text) is not None


def excerpts_of(lines: list[Line]) -> list[list[Line]]:
    """Lines of each GPU: where a section of the outermost depth comes again, the next one begins."""
    groups: list[list[Line]] = []
    inside: set[str] = set()
    if not holds_excerpt("\n".join(line.text for line in lines)):
        return []
    body = [line for line in lines if _is_part(line.text)]
    outer = min(map(_depth, body), default=0)
    for line in body:
        label, value = split_label(line.text)
        if _depth(line) == outer:
            if (value is None and label in inside) or not groups:
                groups.append([])
                inside = set()
            inside.add(label)
        if not groups:
            groups.append([])
        groups[-1].append(line)
    return groups


def _depth(line: Line) -> int:
    text = line.text.expandtabs(8)
    return len(text) - len(text.lstrip())


def _is_part(text: str) -> bool:
    """A heading or a labelled value; prose, commands and separators are none."""
    if not text.strip() or is_command(text) or is_elision(text) or len(text) > 200:
        return False
    _, value = split_label(text)
    return value is not None or re.fullmatch(r"[ \t]*[A-Z][A-Za-z]*(?: [A-Za-z]+){0,3}[ \t]*", text) is not None
