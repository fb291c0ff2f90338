"""SIGINT and SIGTERM as an exception, once, so that what was begun is ended in order."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final, Self

from clusterwright.lib.errors import Interrupted


class Stop:
    """Turns the first SIGINT or SIGTERM into `Interrupted` and ignores the next: cleaning up is not interrupted.

    Outside the main thread Python allows no handler, so nothing changes there.
    """

    _NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.reason = ""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {n: signal.getsignal(n) for n in self._NUMBERS}
            for number in self._NUMBERS:
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def ignore_more(self) -> None:
        """From now on nothing is interrupted."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def check(self) -> None:
        """Raise what came while Python had to swallow it: in a finaliser an exception is only printed."""
        if self.reason:
            raise Interrupted(self.reason)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.ignore_more()
        self.reason = f"stopped by {signal.Signals(number).name}"
        raise Interrupted(self.reason)
