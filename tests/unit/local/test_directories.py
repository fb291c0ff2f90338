"""Access to directories that answer late or never."""

from __future__ import annotations

import asyncio
import threading

import pytest

from clusterwright.engines.local.directories import Directories


def test_what_hangs_holds_up_its_own_directory_only_and_is_never_overtaken() -> None:
    gate, order = threading.Event(), list[str]()

    def slow() -> None:
        gate.wait(30)
        order.append("slow")

    async def scene() -> None:
        directories = Directories()
        with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
            await directories.run("/a", slow, 0.05)
        with pytest.raises(TimeoutError):
            await directories.run("/a", lambda: order.append("never"), 0.05)
        assert await directories.run("/b", lambda: 7, 30) == 7
        last = asyncio.create_task(directories.run("/a", lambda: order.append("last"), 30))
        await asyncio.sleep(0)
        assert order == []
        gate.set()
        await last

    asyncio.run(scene())
    assert order == ["slow", "last"]


def test_what_is_taken_back_before_its_turn_never_runs() -> None:
    gate, order = threading.Event(), list[object]()

    async def scene() -> None:
        directories = Directories()
        directories.start("/a", lambda: gate.wait(30), 30, order.append)
        await asyncio.sleep(0)
        cancel = directories.start("/a", lambda: order.append("never"), 30, order.append)
        await asyncio.sleep(0)
        cancel()
        gate.set()
        await directories.run("/a", lambda: order.append("last"), 30)

    asyncio.run(scene())
    assert order == [True, "last"]


def test_errors_arrive_where_they_are_waited_for() -> None:
    def fail() -> None:
        raise PermissionError(13, "no", "/a")

    async def scene() -> object:
        directories = Directories()
        with pytest.raises(PermissionError):
            await directories.run("/a", fail, 30)
        ended = asyncio.get_running_loop().create_future()
        directories.start("/a", fail, 30, ended.set_result)
        return await ended

    assert isinstance(asyncio.run(scene()), PermissionError)
