"""The embedded engine from outside: `Engine` over the control plane's socket."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from clusterwright.engines.local import wire
from clusterwright.engines.local.identities import read_identity
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.messages import BLOCKERS, EVENTS, JOB, JOBS, NODES, OUTLOOKS
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.jobs import Event, Job, JobId, JobSpec, LogLine, Node
from clusterwright.model.outlooks import Blocker, Outlook
from clusterwright.model.outputs import Lines, LogChunk

#: How long a request waits for a control plane that is being restarted.
PATIENCE_S: Final = 15.0
#: Pause while following logs of a rank that writes nothing.
FOLLOW_S: Final = 0.2
#: How much of a log is read at once.
CHUNK_BYTES: Final = 1 << 20
#: Requests that change something: one without an answer may have been taken.
CHANGING: Final = ("submit", "cancel", "requeue", "hold")


class LocalEngine:
    """`Engine` of the cluster in a state directory. Survives restarts of its control plane.

    Args:
        state_dir: where `cw up` was told to keep its state.
    """

    def __init__(self, state_dir: Path) -> None:
        self._layout = Layout(Path(state_dir).absolute())

    def submit(self, spec: JobSpec) -> JobId:
        """See `Engine.submit`. Repeating it after a lost answer gives the same job: the request carries a token."""
        return JobId(self._ask("submit", spec=asdict(spec), token=uuid.uuid4().hex))

    def jobs(self) -> tuple[Job, ...]:
        """See `Engine.jobs`."""
        return JOBS.validate_python(self._ask("jobs"))

    def job(self, job: JobId) -> Job:
        """See `Engine.job`."""
        return JOB.validate_python(self._ask("job", job=job))

    def nodes(self) -> tuple[Node, ...]:
        """See `Engine.nodes`."""
        return NODES.validate_python(self._ask("nodes"))

    def events(self, after: int = 0, *, job: JobId | None = None, wait_s: float = 0.0) -> tuple[Event, ...]:
        """See `Engine.events`."""
        return EVENTS.validate_python(self._ask("events", after=after, job=job, wait_s=wait_s))

    def why(self, job: JobId) -> tuple[Blocker, ...]:
        """See `Engine.why`."""
        return BLOCKERS.validate_python(self._ask("why", job=job))

    def outlooks(self, *jobs: JobId) -> tuple[Outlook, ...]:
        """Of each of these jobs: why it does not run, its place in its queue, and the start it is promised, if any."""
        return OUTLOOKS.validate_python(self._ask("outlooks", jobs=jobs))

    def cancel(self, job: JobId) -> None:
        """See `Engine.cancel`."""
        self._ask("cancel", job=job)

    def requeue(self, job: JobId) -> None:
        """Preempt a running job: SIGTERM, grace, SIGKILL, and back into its queue."""
        self._ask("requeue", job=job)

    def hold(self, *jobs: JobId) -> None:
        """Keep jobs from being started (again); one that runs goes on."""
        self._ask("hold", jobs=jobs, held=True)

    def release(self, *jobs: JobId) -> None:
        """Let held jobs start; of several the queue decides together, whatever their order here."""
        self._ask("hold", jobs=jobs, held=False)

    def wait(self, job: JobId, until: Callable[[Job], bool] | None = None, *, timeout_s: float) -> Job:
        """The job once a condition holds (unset: once it has ended).

        Raises:
            Unavailable: when that did not happen in time; says in what state the job is and why.
        """
        done = until or (lambda j: j.state.final)
        deadline, after = time.monotonic() + timeout_s, 0
        while not done(found := self.job(job)):
            left = deadline - time.monotonic()
            if left <= 0:
                reasons = "; ".join(f"{b.kind}: {b.message}" for b in self.why(job))
                raise Unavailable(f"job {job} is {found.state} after {timeout_s:g} s {reasons}".rstrip())
            events = self.events(after, job=job, wait_s=min(left, 5.0))
            after = events[-1].seq if events else after
        return found

    def logs(
        self, job: JobId, *, rank: int | None = None, attempt: int | None = None, follow: bool = False
    ) -> Iterator[LogLine]:
        """See `Engine.logs`."""
        return _lines(self.output(job, rank=rank, attempt=attempt, follow=follow))

    def output(
        self, job: JobId, *, rank: int | None = None, attempt: int | None = None, follow: bool = False
    ) -> Iterator[LogChunk]:
        """The same byte for byte, as it is written.

        Raises:
            InvalidInput: when the job, the attempt, or the rank in it does not exist.
        """
        found = self.job(job)
        numbers = [a.number for a in found.attempts]
        if attempt is not None and attempt not in numbers:
            raise InvalidInput(f"job {job} has no attempt {attempt}; it has {numbers or 'none yet'}")
        _require_rank(found, rank, attempt, follow=follow)
        return self._follow(found, rank, attempt) if follow else self._read(found, rank, attempt)

    def _read(self, job: Job, rank: int | None, attempt: int | None) -> Iterator[LogChunk]:
        read = dict[Path, int]()
        for a in job.attempts:
            if a.number == (attempt or len(job.attempts)):
                for r in a.ranks:
                    if rank is None or r.rank == rank:
                        yield from self._tail(job.id, a.number, r.rank, read, last=True)

    def _follow(self, job: Job, rank: int | None, attempt: int | None) -> Iterator[LogChunk]:
        read, first = dict[Path, int](), attempt or max(1, len(job.attempts))
        while True:
            job, news = self.job(job.id), False
            over = job.state.final or (attempt is not None and attempt < len(job.attempts))
            for a in job.attempts:
                if a.number == attempt or (attempt is None and a.number >= first):
                    for r in a.ranks:
                        if rank is None or r.rank == rank:
                            for chunk in self._tail(job.id, a.number, r.rank, read, last=not a.active):
                                news |= bool(chunk.data)
                                yield chunk
                if not a.active:
                    first = max(first, a.number + 1)  # all of it has been read
            if over:
                return
            if not news:
                time.sleep(FOLLOW_S)

    def _tail(self, job: JobId, attempt: int, rank: int, read: dict[Path, int], *, last: bool) -> Iterator[LogChunk]:
        """What was written since the last look; `last`: nothing will be added."""
        for stream in ("stdout", "stderr"):
            path = self._layout.rank(job, attempt, rank) / f"{stream}.log"
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(read.get(path, 0))
                while data := file.read(CHUNK_BYTES):
                    read[path] = read.get(path, 0) + len(data)
                    yield LogChunk(attempt, rank, stream, data)
                if last:
                    yield LogChunk(attempt, rank, stream, b"", last=True)

    def _ask(self, kind: str, **fields: Any) -> Any:
        """One request and its answer; asks again when the control plane dies meanwhile."""
        request = wire.encode({"type": kind, **fields})
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = self._exchange(request, float(fields.get("wait_s", 0.0)))
                break
            except (OSError, EOFError) as error:
                up = read_identity(self._layout, "supervisor") or read_identity(self._layout, "controlplane")
                if up is None:
                    raise Unavailable(f"no cluster is up in {self._layout.root}; start one with `cw up`") from error
                if time.monotonic() > deadline:
                    said = f"the control plane in {self._layout.root} does not answer: {error}"
                    if kind in CHANGING:
                        said += f"; it may still carry out this {kind}: see `cw queue` before you repeat it"
                    raise Unavailable(said) from error
                time.sleep(0.05)
        if "error" in answer:
            raise (InvalidInput if answer["error"] == "invalid" else Unavailable)(*answer["messages"])
        return answer["ok"]

    def _exchange(self, request: bytes, wait_s: float) -> dict[str, Any]:
        connection = wire.connect(self._layout.run / "cp.sock", timeout_s=PATIENCE_S + wait_s)
        with contextlib.closing(connection):
            connection.sendall(request)
            return _read_answer(connection)


def _lines(chunks: Iterator[LogChunk]) -> Iterator[LogLine]:
    lines = Lines()
    for chunk in chunks:
        yield from lines.feed(chunk)


def _require_rank(job: Job, rank: int | None, attempt: int | None, *, follow: bool) -> None:
    """Raise when a rank cannot be there: one attempt has its own number of them, later ones may have all."""
    if rank is None:
        return
    number = attempt if attempt is not None else len(job.attempts)
    count, where = job.spec.most_ranks, ""
    if number and not (follow and attempt is None):
        count, where = len(job.attempts[number - 1].ranks), f" in attempt {number}"
    if rank >= count:
        raise InvalidInput(f"job {job.id} has no rank {rank}{where}; its ranks are 0 to {count - 1}")


def _read_answer(connection: socket.socket) -> dict[str, Any]:
    with connection.makefile("rb") as file:
        line = file.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection ended before the answer")
    answer: dict[str, Any] = json.loads(line)
    return answer
