"""Python's search for garbage in cycles, made rare where millions of objects live long and none is in a cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: New objects until the next look at the young ones. A choice: some tens of MB, a look of some 10 ms.
_YOUNG: Final = 200_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect after many more new objects than usual, until the end of the block; for the whole process.

    Reference counts free everything that is not in a cycle at once, as ever; a quarter of a long simulation went into
    looking at what runs. Where somebody turned the collector off or made it rarer still, nothing changes.
    """
    before = gc.get_threshold()
    if 0 < before[0] < _YOUNG:
        gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
