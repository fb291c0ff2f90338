"""Time as an argument."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Two times: `now_s` (POSIX seconds, may jump) to record, `monotonic_s` (never jumps) to measure and to wait."""

    def now_s(self) -> float:
        """POSIX seconds."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since some fixed moment."""
        ...
