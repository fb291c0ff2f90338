"""When a file was last written."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def written_at(path: str) -> datetime | None:
    """Aware time of the last change of the file, None where there is none (standard input, or it is gone)."""
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None
