"""Which checkpoint directories this cluster uses: opens and closes epochs, and knows which directories are in trouble.

A directory that cannot be used now holds up the jobs that want it and nothing else. It is looked at again and again
until it can be used; so long its jobs wait in the queue without GPUs.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from clusterwright.engines.local import fences
from clusterwright.engines.local.directories import Directories
from clusterwright.engines.local.fences import DirectoryBusy, Over, Owner
from clusterwright.model.jobs import Attempt, Job, JobId

_log = logging.getLogger(__name__)

#: How long the opening of an epoch may take before the job gives its GPUs back and waits.
OPEN_S: Final = 10.0
#: How long the end of an attempt waits for the epoch file before it goes on without.
CLOSE_S: Final = 2.0
#: First and longest pause between looks at a directory in trouble.
FIRST_LOOK_S: Final = 1.0
LONGEST_LOOK_S: Final = 10.0
#: How long one such look may take before it is said again that nothing answers.
LOOK_S: Final = 30.0
#: What helps, by error number (errno(3)).
_HELP: Final = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or have the quota raised",
    errno.EROFS: "have it mounted for writing",
    errno.EACCES: "let the user of the cluster write there",
    errno.EPERM: "let the user of the cluster write there",
}


class Claims:
    """Epochs of one cluster.

    Args:
        directories: how directories are reached.
        cluster: the cluster's id.
        state_dir: where it keeps its state, written beside the epoch for people.
        over: whether a job's epoch has no process any more.
        on_free: called when a directory that was in trouble can be used.
    """

    def __init__(
        self, directories: Directories, cluster: str, state_dir: str, over: Over, on_free: Callable[[], None]
    ) -> None:
        self._directories, self._cluster, self._state_dir = directories, cluster, state_dir
        self._over, self._on_free = over, on_free
        self._opening: dict[JobId, Callable[[], object]] = {}
        self._troubles: dict[str, str] = {}
        self._looks: set[asyncio.Task[None]] = set()

    @property
    def troubles(self) -> Mapping[str, str]:
        """Directories that cannot be used now, and why."""
        return self._troubles

    def open(self, job: Job, attempt: Attempt, done: Callable[[int | OSError], None]) -> None:
        """Open the attempt's epoch unless that is under way; `done` gets its final number, or why not."""
        if job.id in self._opening:
            return

        def ended(outcome: int | OSError) -> None:
            self._opening.pop(job.id, None)
            done(outcome)

        self._opening[job.id] = lambda: None
        work = partial(fences.open_epoch, job.checkpoint_dir, self._owner(job), attempt.epoch, self._over)
        cancel = self._directories.start(job.checkpoint_dir, work, OPEN_S, ended)
        if job.id in self._opening:
            self._opening[job.id] = cancel

    def forget(self, job: JobId) -> None:
        """Open nothing for the job any more; what is just being opened is closed by `close`."""
        if (cancel := self._opening.pop(job, None)) is not None:
            cancel()

    async def stop(self, job: Job) -> str:
        """Let nothing of the job's epoch start any more; returns what prevents that, if anything does."""
        return await self._try(job, fences.stop_epoch)

    async def close(self, job: Job) -> str:
        """Give the directory up, now or as soon as that is possible; returns what prevents it now."""
        why = await self._try(job, fences.close_epoch)
        if why:
            self.watch(job, f"the last epoch there could not be closed: {why}")
        return why

    def watch(self, job: Job, trouble: str) -> None:
        """Let no job use the job's directory until it is closed and another epoch could be opened there."""
        known = job.checkpoint_dir in self._troubles
        self._troubles[job.checkpoint_dir] = trouble
        if not known:
            task = asyncio.create_task(self._watch(job))
            self._looks.add(task)
            task.add_done_callback(self._looks.discard)

    async def _watch(self, job: Job) -> None:
        directory, pause_s = job.checkpoint_dir, FIRST_LOOK_S
        work = partial(fences.settle, directory, self._owner(job), self._over)
        while True:
            try:
                await self._directories.run(directory, work, LOOK_S)
                break
            except OSError as error:
                self._troubles[directory] = describe(error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_LOOK_S)
        del self._troubles[directory]
        self._on_free()

    async def _try(self, job: Job, work: Callable[[str, Owner], None]) -> str:
        try:
            await self._directories.run(
                job.checkpoint_dir, partial(work, job.checkpoint_dir, self._owner(job)), CLOSE_S
            )
        except OSError as error:
            _log.warning("job %s: %s: %s", job.id, job.checkpoint_dir, error)
            return describe(error)
        return ""

    def _owner(self, job: Job) -> Owner:
        return Owner(self._cluster, job.id, self._state_dir)


def describe(error: OSError) -> str:
    """What is wrong with a directory, with the path, and what helps where that is known."""
    if isinstance(error, TimeoutError):
        return f"{error.filename}: {error.strerror}; it is waited for"
    help_ = _HELP.get(error.errno or 0, "")
    return f"{error.filename or 'the epoch file'}: {error.strerror}{help_ and '; '}{help_}"


def passes(error: OSError) -> bool:
    """Whether waiting may help without anybody mending anything here: nobody answers, or somebody else is there."""
    return isinstance(error, TimeoutError | DirectoryBusy)
