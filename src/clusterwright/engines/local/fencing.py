"""The fence between two attempts: nothing of the old one may start any more, then none of its processes may be left.

Two things keep a launch that is still under way from slipping through. The epoch is closed to shims, where its file can
be written. And every agent of the attempt must say that it has dropped what it was ordered to start, or is dead: an
agent that says neither in time is declared lost and killed with everything below it. Only a search that began after
that and finds nothing counts. So the end of an attempt never waits for its checkpoint directory; only the next use of
that directory does.

Tasks run beside the control plane's loop; looking through /proc happens in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from typing import Final, Protocol

from clusterwright.engines.local import reaping
from clusterwright.engines.local.claims import Claims
from clusterwright.engines.local.identities import Identity, read_identity
from clusterwright.engines.local.layout import Layout, agent_tag, attempt_tag
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import AgentIdentity, Attempt, Job, JobId

_log = logging.getLogger(__name__)

#: Pause after the state could not be written.
RETRY_S: Final = 1.0
#: How long one round of looking and killing takes at most, before what is looked for is brought up to date.
ROUND_S: Final = 1.0
#: How long agents may take to confirm before a round of killing goes first; they need a few milliseconds.
FIRST_S: Final = 0.05
#: How long an agent that was declared lost is pursued outside a fence.
PURSUIT_S: Final = 60.0


class Plane(Protocol):
    """What the fencer needs of the control plane."""

    def fenced_job(self, job: JobId) -> Job:
        """The current state of a job."""
        ...

    def tell_drop(self, job: JobId) -> None:
        """Order the agents of the job's attempt to start nothing of it any more."""
        ...

    def lose_agent(self, job: JobId, agent: AgentIdentity, why: str) -> None:
        """Declare an agent lost."""
        ...

    def on_fenced(self, job: JobId, unclosed: str) -> None:
        """Nothing of the job's attempt is left; why its epoch is not closed, if it is not."""
        ...


class Fencer:
    """Ends attempts and lost agents for good.

    Args:
        layout: the state directory.
        cluster: the cluster's id.
        plane: the control plane.
        claims: epochs of checkpoint directories.
        patience_s: how long an agent may take to confirm before it is declared lost.
    """

    def __init__(self, layout: Layout, cluster: str, plane: Plane, claims: Claims, patience_s: float) -> None:
        self._layout, self._cluster, self._plane, self._claims = layout, cluster, plane, claims
        self._patience_s = patience_s
        self._fences: dict[JobId, asyncio.Task[None]] = {}
        self._pursuits: set[asyncio.Task[None]] = set()
        self._alive: dict[JobId, int] = {}
        self._trouble: dict[JobId, str] = {}
        self._dropped: set[tuple[JobId, int, str]] = set()
        self._heard = asyncio.Event()

    def fence(self, job: JobId) -> None:
        """Begin to end the job's attempt, unless that is under way."""
        if job not in self._fences:
            task = asyncio.create_task(self._fence(job))
            self._fences[job] = task
            task.add_done_callback(_stop_on_error)

    def on_dropped(self, job: JobId, epoch: int, boot: str) -> None:
        """An agent confirms that it starts nothing of the epoch any more."""
        self._dropped.add((job, epoch, boot))
        self._heard.set()

    def pursue(self, agent: AgentIdentity) -> None:
        """Kill an agent that was declared lost, with everything below it."""
        tag = agent_tag(self._cluster, agent.node, agent.boot)
        quarry = reaping.Quarry((tag,), frozenset({Identity(agent.pid, agent.starttime)}))
        task = asyncio.create_task(self._kill(quarry))
        self._pursuits.add(task)
        task.add_done_callback(self._pursuits.discard)
        task.add_done_callback(_stop_on_error)

    async def settle(self) -> None:
        """Return when every pursuit has ended."""
        await asyncio.gather(*self._pursuits)

    def progress(self, job: JobId) -> tuple[int | None, str]:
        """Processes last seen alive, if already looked for, and what stands in the way, if anything does."""
        return self._alive.get(job), self._trouble.get(job, "")

    async def _fence(self, job: JobId) -> None:
        self._claims.forget(job)
        attempt = self._plane.fenced_job(job).active
        if attempt is not None and attempt.opened:
            self._plane.tell_drop(job)
            await self._claims.stop(self._plane.fenced_job(job))
            if self._silent(job, attempt):
                await self._hear(FIRST_S)
        await self._clear(job)
        self._trouble[job] = "every process of it is gone; its epoch is being closed"
        unclosed = await self._claims.close(self._plane.fenced_job(job))
        await self._patiently(job, lambda: self._finish(job, unclosed))

    def _finish(self, job: JobId, unclosed: str) -> None:
        self._plane.on_fenced(job, unclosed)
        del self._fences[job]  # at once: the job may start again and need its next fence
        self._alive.pop(job, None)
        self._trouble.pop(job, None)
        self._dropped = {d for d in self._dropped if d[0] != job}

    async def _clear(self, job: JobId) -> None:
        """Kill until a search that began when no agent could start anything more has found nothing."""
        waited_s = 0.0
        while (attempt := self._plane.fenced_job(job).active) is not None:
            silent, quarry = self._silent(job, attempt), self._quarry(job, attempt)
            gone = await asyncio.to_thread(
                reaping.kill_all, quarry, timeout_s=ROUND_S, progress=lambda alive: self._alive.update({job: alive})
            )
            latest = self._plane.fenced_job(job).active
            if gone and not silent and latest is not None and self._quarry(job, latest) == quarry:
                return
            if gone and latest is not None and (silent := self._silent(job, latest)):
                waited_s += await self._await_silent(job, silent, waited_s)
            else:
                self._trouble.pop(job, None)

    async def _await_silent(self, job: JobId, silent: list[AgentIdentity], waited_s: float) -> float:
        """Wait for agents to confirm, or give them up; returns how long was waited."""
        names = ", ".join(a.node for a in silent)
        self._trouble[job] = f"waits until the agent of {names} confirms that it starts nothing of it any more"
        if waited_s > self._patience_s:
            why = f"it did not confirm within {self._patience_s:g} s that it starts nothing of job {job} any more"
            for agent in silent:
                await self._patiently(job, lambda agent=agent: self._plane.lose_agent(job, agent, why))  # type: ignore[misc]
        began = time.monotonic()
        await self._hear(ROUND_S)
        return min(time.monotonic() - began, ROUND_S)  # where this process was stopped, the agent is not to blame

    async def _hear(self, timeout_s: float) -> None:
        self._heard.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._heard.wait()

    def _silent(self, job: JobId, attempt: Attempt) -> list[AgentIdentity]:
        """Agents of the attempt that may still start something of it."""
        if not attempt.opened:
            return []
        lost = {a.boot for a in attempt.lost}
        return [a for a in attempt.agents if a.boot not in lost and (job, attempt.epoch, a.boot) not in self._dropped]

    async def _patiently(self, job: JobId, act: Callable[[], None]) -> None:
        """Do what has to be written down, as soon as the state can be written."""
        while True:
            try:
                act()
                return
            except Unavailable as error:
                self._trouble[job] = str(error)
                await asyncio.sleep(RETRY_S)

    def _quarry(self, job: JobId, attempt: Attempt) -> reaping.Quarry:
        """Processes of the attempt, and the agents that were lost under it."""
        roots = {Identity(r.pid, r.starttime) for r in attempt.ranks if r.pid is not None and r.starttime is not None}
        roots |= {Identity(a.pid, a.starttime) for a in attempt.lost}
        tags = [attempt_tag(self._cluster, job, attempt.epoch)]
        tags += [agent_tag(self._cluster, a.node, a.boot) for a in attempt.lost]
        return reaping.Quarry(tuple(tags), frozenset(roots), read_identity(self._layout, "supervisor"))

    async def _kill(self, quarry: reaping.Quarry) -> None:
        await asyncio.to_thread(reaping.kill_all, quarry, timeout_s=PURSUIT_S)


def _stop_on_error(task: asyncio.Task[None]) -> None:
    """A bug in a background task ends the process: the supervisor starts a fresh one from the stored state."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical("control plane stops", exc_info=error)
        os._exit(70)
