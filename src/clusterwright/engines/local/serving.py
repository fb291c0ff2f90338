"""The control plane's socket: agents and clients in, answers out."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

from pydantic import ValidationError

from clusterwright.engines.local import wire
from clusterwright.engines.local.controlplane import ControlPlane
from clusterwright.engines.local.identities import write_identity
from clusterwright.engines.local.links import Link
from clusterwright.engines.local.messages import BLOCKERS, EVENTS, JOB, JOBS, NODES, OUTLOOKS, SPEC
from clusterwright.engines.local.scheduling import used_devices
from clusterwright.engines.local.wire import Message
from clusterwright.lib.errors import ClusterwrightError, InvalidInput, Unavailable
from clusterwright.model.jobs import Job, JobId, Node, NodeState

_log = logging.getLogger(__name__)

#: Longest wait for an event that one request may ask for.
LONGEST_WAIT_S: Final = 60.0
#: How long the name of a checkpoint directory may take to be looked up.
LOOKUP_S: Final = 5.0
#: Pause after the state could not be written.
RETRY_S: Final = 0.5


class Server:
    """One control plane behind its socket."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._done = asyncio.Event()
        self._ready = False
        self._clients: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def run(self) -> None:
        """Serve until a client asks to shut down.

        Raises:
            Unavailable: when another control plane holds this state directory.
        """
        layout = self._plane.layout
        with _lock(str(layout.lock("controlplane"))):
            try:
                write_identity(layout, "controlplane")
            except OSError as error:  # a full disk: whoever asks is told so, which takes a socket and no room
                _log.error("%s: %s", layout.run, error)
            self._recover()
            listener = wire.listen(layout.run / "cp.sock")
            server = await asyncio.start_unix_server(self._on_connection, sock=listener, limit=wire.MAX_LINE)
            loop = asyncio.create_task(self._run())
            ended = asyncio.create_task(self._done.wait())
            await asyncio.wait({loop, ended}, return_when=asyncio.FIRST_COMPLETED)
            if loop.done():  # a bug: the supervisor starts a fresh process from the stored state
                _log.critical("control plane stops", exc_info=loop.exception())
                os._exit(70)
            loop.cancel()
            server.close()
            for writer in self._clients.values():
                writer.close()
            if self._clients:
                await asyncio.wait(self._clients, timeout=1.0)
            self._plane.store.close()

    def _recover(self) -> None:
        try:
            self._plane.recover()
            self._ready = True
        except Unavailable as error:
            self._plane.trouble = str(error)

    async def _run(self) -> None:
        """Recover as soon as the state can be written, then serve."""
        while not self._ready:
            await asyncio.sleep(RETRY_S)
            self._recover()
        await self._plane.run()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients[task] = writer
        try:
            await self._serve(reader, writer)
        except (OSError, ValueError) as error:
            _log.warning("connection ended: %s", error)
        except Unavailable:  # the state cannot be written: the agent says everything again when it returns
            await asyncio.sleep(RETRY_S)
        finally:
            writer.close()
            del self._clients[task]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            message = wire.decode(line)
            if message.get("type") == "hello":
                await self._serve_agent(message, reader, writer)
                return
            writer.write(wire.encode(await self._answer(message)))
            await writer.drain()

    async def _serve_agent(self, hello: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name, boot = str(hello["node"]), str(hello["boot"])
        link = Link(boot, lambda m: writer.write(wire.encode(m)), writer.close)
        try:
            if not self._ready:
                raise Unavailable(self._plane.trouble)
            if not self._plane.on_hello(hello, link):
                await writer.drain()
                return
            while line := await reader.readline():
                message = wire.decode(line)
                self._plane.on_heartbeat(name)
                if message["type"] == "ranks":
                    self._plane.on_ranks(message["ranks"])
                elif message["type"] == "dropped":
                    self._plane.on_dropped(boot, message)
        finally:
            self._plane.on_disconnect(name, boot)

    async def _answer(self, message: Message) -> Message:
        operations: dict[str, Callable[[Message], Awaitable[Any]]] = {
            "submit": self._submit,
            "jobs": self._jobs,
            "job": self._job,
            "nodes": self._nodes,
            "events": self._events,
            "why": self._why,
            "outlooks": self._outlooks,
            "cancel": self._cancel,
            "requeue": self._requeue,
            "hold": self._hold,
            "shutdown": self._shut_down,
        }
        try:
            operation = operations.get(str(message.get("type")))
            if operation is None:
                raise InvalidInput(f"unknown request '{message.get('type')}'; known: {', '.join(operations)}")
            if not self._ready:
                raise Unavailable(self._plane.trouble)
            return {"ok": await operation(message)}
        except InvalidInput as error:
            return {"error": "invalid", "messages": [p.message for p in error.problems]}
        except ValidationError as error:
            return {"error": "invalid", "messages": [str(error)]}
        except ClusterwrightError as error:
            return {"error": "unavailable", "messages": [str(error)]}

    async def _submit(self, message: Message) -> str:
        if self._plane.stopping:
            raise Unavailable("the cluster is stopping and takes no jobs")
        spec = SPEC.validate_python(message["spec"])
        return self._plane.submit(spec, str(message["token"]), await self._real_path(spec.checkpoint_dir))

    async def _real_path(self, directory: str | None) -> str | None:
        if directory is None:
            return None
        look_up = functools.partial(os.path.realpath, directory)
        try:
            return await self._plane.directories.run(f"the name {directory}", look_up, LOOKUP_S)
        except TimeoutError as error:
            raise Unavailable(f"checkpoint directory {directory}: {error.strerror}; the job was not taken") from None

    async def _jobs(self, _message: Message) -> Any:
        return JOBS.dump_python(tuple(self._plane.jobs.values()), mode="json")

    async def _job(self, message: Message) -> Any:
        return JOB.dump_python(self._find(message), mode="json")

    async def _nodes(self, _message: Message) -> Any:
        used = used_devices(self._plane.jobs.values())
        nodes = tuple(_with_use(n, used.get(n.spec.name, frozenset())) for n in self._plane.nodes.values())
        return NODES.dump_python(nodes, mode="json")

    async def _events(self, message: Message) -> Any:
        after, job, wait_s = int(message["after"]), message.get("job"), float(message.get("wait_s", 0.0))
        if job is not None:
            self._find(message)
        deadline = asyncio.get_running_loop().time() + min(wait_s, LONGEST_WAIT_S)
        while True:
            changed = self._plane.changed
            found = self._plane.store.events(after, job=None if job is None else JobId(job))
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return EVENTS.dump_python(found, mode="json")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await changed.wait()

    async def _why(self, message: Message) -> Any:
        return BLOCKERS.dump_python(self._plane.outlook(self._find(message)).blockers, mode="json")

    async def _outlooks(self, message: Message) -> Any:
        found = []
        for job in [self._find({"job": j}) for j in message["jobs"]]:
            found.append(self._plane.outlook(self._plane.jobs[job.id]))
            await asyncio.sleep(0)  # hundreds of them take a while: agents are heard in between
        return OUTLOOKS.dump_python(tuple(found), mode="json")

    async def _cancel(self, message: Message) -> None:
        self._plane.cancel(self._find(message))

    async def _requeue(self, message: Message) -> None:
        self._plane.requeue(self._find(message))

    async def _hold(self, message: Message) -> None:
        jobs = [self._find({"job": j}) for j in dict.fromkeys(message["jobs"])]
        self._plane.hold(jobs, bool(message["held"]))

    async def _shut_down(self, message: Message) -> None:
        await self._plane.shut_down(float(message["grace_s"]))
        asyncio.get_running_loop().call_later(0.05, self._done.set)  # after the answer is out

    def _find(self, message: Message) -> Job:
        job = self._plane.jobs.get(JobId(str(message.get("job"))))
        if job is None:
            count = len(self._plane.jobs)
            known = f"jobs are 1 to {count}" if count else "there are no jobs yet"
            raise InvalidInput(f"no job '{message.get('job')}'; {known}")
        return job


def _with_use(node: Node, used: frozenset[str]) -> Node:
    in_use = tuple(d for d in node.devices if d in used)
    state = node.state
    if node.up and in_use:
        state = NodeState.ALLOCATED if len(in_use) == len(node.devices) else NodeState.MIXED
    return Node(node.spec, state, node.devices, in_use, node.reason, node.since_s, node.incarnation, node.agent)


@contextlib.contextmanager
def _lock(path: str) -> Any:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(f"{path}: another control plane runs here") from None
        yield
    finally:
        os.close(file)
