"""Access to directories of users, which may be slow or never answer: in threads, beside the control plane's loop.

Per directory one access at a time, in threads of their own: one that hangs takes no other with it. An access that has
begun cannot be taken back; whoever comes next in that directory waits until it has ended, so that nothing late undoes
what came after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: What an access came to: its value, or why not.
Outcome = Any | OSError


class Directories:
    """Accesses under way, by directory."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[tuple[Any, BaseException | None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, directory: str, work: Callable[[], T], timeout_s: float) -> T:
        """What `work` returns or raises.

        Cancelled, or past its time, before its turn came, it never runs; after that its end is not waited for here.

        Raises:
            TimeoutError: when it has not ended in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while (busy := self._running.get(directory)) is not None:
                    await asyncio.wait((busy,))
                value, error = await asyncio.shield(self._begin(directory, work))
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {timeout_s:g} s", directory) from None
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def start(
        self, directory: str, work: Callable[[], T], timeout_s: float, done: Callable[[T | OSError], None]
    ) -> Callable[[], object]:
        """The same without waiting: `done` is called with the outcome, unless the returned function is called first."""
        task = asyncio.create_task(self._report(directory, work, timeout_s, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task.cancel

    async def _report(
        self, directory: str, work: Callable[[], T], timeout_s: float, done: Callable[[T | OSError], None]
    ) -> None:
        outcome: T | OSError
        try:
            outcome = await self.run(directory, work, timeout_s)
        except OSError as error:
            outcome = error
        done(outcome)

    def _begin(self, directory: str, work: Callable[[], Any]) -> asyncio.Future[tuple[Any, BaseException | None]]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def end(value: Any, error: BaseException | None) -> None:
            del self._running[directory]
            ended.set_result((value, error))

        def body() -> None:
            try:
                outcome: tuple[Any, BaseException | None] = work(), None
            except Exception as error:  # noqa: BLE001 - raised again in the loop
                outcome = None, error
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, *outcome)

        self._running[directory] = ended
        try:
            threading.Thread(target=body, name=f"access to {directory}", daemon=True).start()
        except RuntimeError:  # no more threads
            end(None, OSError(errno.EAGAIN, "no thread left to look at it", directory))
        return ended
