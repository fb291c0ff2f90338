"""Headers of Slurm's listings → how their rows are split: by a delimiter, by dashes under the header, or by blanks.

Source: man sinfo, squeue, sacct (--format, --parsable2, --delimiter); print_fields in Slurm's src/common.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: Delimiters that are tried, longest and surest first.
DELIMITERS: Final = ("\x1f", "|#", "|", "\t", ";", ",")
_WIDEST: Final = 400
_DASHES: Final = re.compile(r"-{2,}(?: +-{2,})* *")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a listing's rows are split.

    Args:
        names: of the columns as printed, in order; a name may stand twice.
        delimiter: between cells; "" for blanks.
        spans: of the columns (start, end) where dashes give them; empty otherwise.
        starts: of the header's words, for rows with blank cells.
    """

    names: tuple[str, ...]
    delimiter: str
    spans: tuple[tuple[int, int], ...] = ()
    starts: tuple[tuple[int, int], ...] = ()


def find_layout(header: str, below: str, known: frozenset[str]) -> Layout | None:
    """The layout that a header line gives, None when it is no header of a tool with these column names.

    Args:
        below: the next line, which holds the dashes of sacct.
    """
    if len(header) > 20_000:
        return None
    if _DASHES.fullmatch(below.strip() and below) and "--" in below:
        spans = tuple((m.start(), m.end()) for m in re.finditer(r"-+", below))
        names = tuple(header[a:b].strip() for a, b in spans)
        if _knows(names, known):
            return Layout(names, "", spans)
    for delimiter in DELIMITERS:
        if delimiter in header:
            names = tuple(name.strip() for name in header.split(delimiter))
            names = names[:-1] if names and not names[-1] else names
            if _knows(names, known):
                return Layout(names, delimiter)
    words = list(re.finditer(r"\S+", header))
    names = tuple(word.group() for word in words)
    if _knows(names, known):
        return Layout(names, "", starts=tuple((w.start(), w.end()) for w in words))
    return None


def _knows(names: tuple[str, ...], known: frozenset[str]) -> bool:
    """Whether nearly all names are the tool's own (users may label some columns themselves)."""
    hits = sum(name in known for name in names)
    return 0 < len(names) <= _WIDEST and hits * 10 >= len(names) * 6
