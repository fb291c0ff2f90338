"""Optional extras of the installation: what each brings, and saying so before anything waits for it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from clusterwright.lib.errors import Unavailable

#: Modules of optional extras → the extra that brings them. NVML is looked for only where real GPUs are asked for.
_EXTRAS: Final = {"sqlalchemy": "local", "pynvml": "local", "cryptography": "evidence", "xlsxwriter": "tables"}


def missing_extra(module: str) -> Unavailable | None:
    """The error that tells how to install what brings `module`, or None when no extra does."""
    extra = _EXTRAS.get(module.partition(".")[0])
    return (
        None if extra is None else Unavailable(f"this needs the extra '{extra}': pip install 'clusterwright[{extra}]'")
    )


def require_evidence() -> None:
    """Check that the evidence store can be used.

    Raises:
        Unavailable: naming the extra that is missing.
    """
    if find_spec("sqlalchemy") is None or find_spec("cryptography") is None:
        error = missing_extra("cryptography")
        assert error is not None
        raise error


def require_engine() -> None:
    """Check that the embedded engine's control plane, a process of its own, can be started at all.

    Raises:
        Unavailable: naming the extra that is missing.
    """
    if find_spec("sqlalchemy") is None:
        error = missing_extra("sqlalchemy")
        assert error is not None
        raise error
