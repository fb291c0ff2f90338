"""Lines of a Slurm output, whatever separates its records."""

from __future__ import annotations

from collections.abc import Iterator

from clusterwright.readers.cleaning import Line, Source


def lines_of(source: Source) -> Iterator[Line]:
    """Clean lines; the record separator 0x1E, which some scripts ask squeue for, ends a line too."""
    for line in source.lines(prefixes=False):
        if "\x1e" not in line.text:
            yield line
            continue
        for part in line.text.split("\x1e"):
            if part.strip():
                yield Line(line.number, part)
