"""Sizes as storage tools take and print them: `4k`, `16m`, `1 MiB`, `9.46 TiB`; k, m, g, t are powers of 1024."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue
from clusterwright.readers.values import quantity, unreadable

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtTpP]?)(i?)([bB]?|bytes)")


def read_size(text: str) -> Quantity | NoValue:
    """A size in bytes; a bare letter counts 1024, as in fio (kb_base 1024), ior and elbencho."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or len(text) > 40:
        return unreadable(text, "not a size")
    number, letter, _, _ = found.groups()
    unit = f"{letter.upper()}iB" if letter else "B"
    return quantity(float(number), unit)
