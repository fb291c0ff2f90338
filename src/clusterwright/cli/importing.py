"""Importing the modules of a command quickly."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Read by the linear algebra that numpy brings, when it is loaded.
_THREADS: Final = "OPENBLAS_NUM_THREADS"


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import without looking for garbage and without starting threads; processes started later see no difference.

    Nothing that a module makes is garbage yet, and looking for some takes a tenth of the time. numpy's linear algebra
    starts a thread per core, a quarter of numpy's import on two cores; no command multiplies matrices that need them.
    """
    wanted = os.environ.get(_THREADS)
    os.environ.setdefault(_THREADS, "1")
    gc.disable()
    try:
        yield
    finally:
        if wanted is None:
            del os.environ[_THREADS]
        gc.freeze()
        gc.enable()
