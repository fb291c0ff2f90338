"""The scripts that every exported acceptance plan copies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import clusterwright
from clusterwright.lib.errors import Unavailable

_HERE: Final = Path(__file__).parent / "scripts"
#: Programs that run as ranks elsewhere; they are copied as text here, not imported.
_PROBES: Final = Path(clusterwright.__file__).parent / "probes"
#: Name in the export → file.
_SOURCES: Final = {
    "run.sh": _HERE / "run.sh",
    "collect.sh": _HERE / "collect.sh",
    "checkpoint.py": _PROBES / "restoring.py",
    "placement.py": _PROBES / "placing.py",
    "collective_cpu.py": _PROBES / "adding.py",
}


def load_scripts() -> dict[str, str]:
    """Name in the export → text."""
    try:
        return {name: path.read_text(encoding="utf-8") for name, path in _SOURCES.items()}
    except OSError as error:
        raise Unavailable(f"an installed script cannot be read: {error}; install clusterwright again") from error
