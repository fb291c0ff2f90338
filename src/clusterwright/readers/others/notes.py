"""Prose about a cluster. It is refused by name: it proves nothing, and figures taken out of sentences are guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'’-]*[.,;:)]?")
_ABOUT: Final = re.compile(
    r"\b(?:GPUs?|nodes?|cluster|InfiniBand|NVLink|partition|racks?|Slurm|Lustre|switch\w*)\b", re.I
)
_TABLE_BAR: Final = re.compile(r"^\|.*\|[ \t]*$", re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,6} \w", re.MULTILINE)
#: What no sentence holds and outputs do: JSON, XML, pairs of key=value, times, labels, boxes, PCI addresses.
_OUTPUT: Final = re.compile(
    r"^[ \t]*[\[{<]|^\w+=\S+ \w+=|\d\d:\d\d:\d\d|^[ \t]*[\w.-]+: *$|^[ \t]*- \w+: |\w\{\w+=|\+[-=]{3}"
    r"|[0-9a-f]{4}:[0-9a-f]{2}:|^(?:#|//) ?\w+ +\w+ +\w+ *$|\.(?:go|cc|cpp|py|c):\d+",
    re.MULTILINE,
)
#: Lines such as `key : value`; a note has few of them.
_FIELD: Final = re.compile(
    r"^[ \t]*+[\w/()-][\w /()-]{1,40}: +\S+(?: \S+)?[ \t]*$|^\S++(?: {2,}+\S++){2,}+[ \t]*$", re.MULTILINE
)


def recognise(head: Head) -> int:
    """Weak: sentences about a cluster that no other reader claims."""
    text = head.text[:16_384]
    if not _ABOUT.search(text) or _OUTPUT.search(text) or len(_FIELD.findall(text)) > 3:
        return 0
    pieces = text.split()
    if len(pieces) < 12:
        return 0
    words = sum(_WORD.fullmatch(piece) is not None for piece in pieces)
    sentences = len(re.findall(r"[a-z)][.;:](?:\s|$)", text))
    markdown = head.name.endswith((".md", ".rst", ".adoc")) or _HEADING.search(text) or _TABLE_BAR.search(text)
    if words >= 0.45 * len(pieces) and sentences >= 1:
        return 12
    return 8 if markdown and (words >= 0.3 * len(pieces) or _TABLE_BAR.search(text)) else 0


def read(source: Source) -> Sequence[Run]:
    """Refuse, with the reason."""
    first = next((line for line in source.lines(prefixes=False) if line.text.strip()), None)
    raise Refused(
        "this is prose about a cluster, not the output of a tool: nothing in it was measured. Put what it says "
        "into the "
        "architecture file as declared, and read what the tools print (nvidia-smi, sinfo, kubectl get nodes) as "
        "evidence",
        first.number if first else 0,
        first.text if first else "",
    )


READERS: Final[tuple[Reader, ...]] = (Reader("cluster-notes", "prose about a cluster (refused)", recognise, read),)
