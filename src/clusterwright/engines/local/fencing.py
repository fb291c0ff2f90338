"""The fence between two attempts: close the epoch, then wait until no process of the old one is left.

Tasks run beside the control plane's loop; looking through /proc happens in threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from clusterwright.engines.local import fences, reaping
from clusterwright.engines.local.identities import Identity, read_identity
from clusterwright.engines.local.layout import Layout, agent_tag, attempt_tag
from clusterwright.model.jobs import AgentIdentity, Attempt, Job, JobId

_log = logging.getLogger(__name__)

#: Pause after an epoch file could not be written.
RETRY_S: Final = 1.0
#: How long one round of looking and killing takes at most, before what is looked for is brought up to date.
ROUND_S: Final = 1.0
#: How long an agent that was declared lost is pursued outside a fence.
PURSUIT_S: Final = 60.0


class Fencer:
    """Ends attempts and lost agents for good.

    Args:
        layout: the state directory.
        cluster: the cluster's id.
        job: gives the current state of a job.
        on_fenced: called once when nothing of a job's attempt is left.
    """

    def __init__(
        self, layout: Layout, cluster: str, job: Callable[[JobId], Job], on_fenced: Callable[[JobId], None]
    ) -> None:
        self._layout, self._cluster, self._job, self._on_fenced = layout, cluster, job, on_fenced
        self._fences: dict[JobId, asyncio.Task[None]] = {}
        self._pursuits: set[asyncio.Task[None]] = set()
        self._alive: dict[JobId, int] = {}
        self._trouble: dict[JobId, str] = {}

    def fence(self, job: JobId) -> None:
        """Begin to end the job's attempt, unless that is under way."""
        if job not in self._fences:
            task = asyncio.create_task(self._fence(job))
            self._fences[job] = task
            task.add_done_callback(_stop_on_error)

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
        await self._close(job)
        while (attempt := self._job(job).active) is not None:
            quarry = self._quarry(job, attempt)
            gone = await asyncio.to_thread(
                reaping.kill_all, quarry, timeout_s=ROUND_S, progress=lambda alive: self._alive.update({job: alive})
            )
            latest = self._job(job).active
            if gone and latest is not None and self._quarry(job, latest) == quarry:
                break
        self._alive.pop(job, None)
        del self._fences[job]
        self._on_fenced(job)

    async def _close(self, job: JobId) -> None:
        """First of all, so that nothing of this epoch starts while it is looked for."""
        while (attempt := self._job(job).active) is not None:
            try:
                fences.close_epoch(self._job(job).checkpoint_dir, attempt.epoch)
                break
            except OSError as error:
                _log.error("job %s: cannot close epoch %d: %s; trying again", job, attempt.epoch, error)
                self._trouble[job] = f"its epoch cannot be closed: {error}"
                await asyncio.sleep(RETRY_S)
        self._trouble.pop(job, None)

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
