"""The ranks of a job meet: every rank learns what every other rank says, through rank 0.

The membership that comes out was observed on the wire; nothing is taken from the environment but where to meet and who
one is. The variables are torchrun's (PyTorch documentation, torchrun, 'Environment Variables').
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

#: Seconds between two tries to reach rank 0, which may start later than the others.
RETRY_S = 0.05
#: Longest message of one rank, bytes: a guard against something else talking on the port.
MAX_BYTES = 16 * 2**20


class MeetingFailed(Exception):
    """The ranks did not meet; says who is missing or what came instead."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Who a rank is and where it meets the others.

    Args:
        run: identifies one attempt of one job; ranks of another attempt are refused.
    """

    rank: int
    world_size: int
    address: str
    port: int
    run: str

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Self:
        """The seat that torchrun's variables describe.

        Raises:
            MeetingFailed: naming the variable that is missing or no number.
        """
        name = ""
        try:
            numbers = {}
            for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
                numbers[name] = int(environment[name])
            name = "MASTER_ADDR"
            address = environment[name]
        except KeyError:
            raise MeetingFailed(f"{name} is not set") from None
        except ValueError:
            raise MeetingFailed(f"{name} is '{environment[name]}', no number") from None
        run = environment.get("TORCHELASTIC_RUN_ID", "")
        return cls(numbers["RANK"], numbers["WORLD_SIZE"], address, numbers["MASTER_PORT"], run)


@dataclass(slots=True)
class _Line:
    """A connection on which each message is one line of JSON."""

    socket: socket.socket
    rest: bytes = b""

    def send(self, value: Any) -> None:
        self.socket.sendall(json.dumps(value, separators=(",", ":")).encode() + b"\n")

    def receive(self) -> Any:
        while b"\n" not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                raise MeetingFailed("the other side has gone")
            self.rest += data
            if len(self.rest) > MAX_BYTES:
                raise MeetingFailed("a message without end")
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError:
            raise MeetingFailed(f"not a message of a rank: {line[:60]!r}") from None


@dataclass(slots=True)
class Meeting:
    """All ranks of one attempt, connected through rank 0. Use as a context manager.

    Args:
        wait_s: how long to wait for the others, when meeting and in every exchange.
    """

    seat: Seat
    wait_s: float = 60.0
    _lines: dict[int, _Line] = field(default_factory=dict)

    def __enter__(self) -> Self:
        try:
            if self.seat.rank == 0:
                self._gather()
            elif self.seat.world_size > 1:
                self._join()
        except OSError as error:
            self.close()
            raise MeetingFailed(f"rank {self.seat.rank} at {self._where}: {error}") from error
        except MeetingFailed:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave; the others notice at their next exchange."""
        for line in self._lines.values():
            line.socket.close()
        self._lines.clear()

    def exchange(self, value: Any) -> list[Any]:
        """What every rank says, in rank order; returns when all have said it.

        Raises:
            MeetingFailed: when a rank has gone or says nothing for `wait_s`.
        """
        try:
            if self.seat.rank:
                self._lines[0].send(value)
                return list(self._lines[0].receive())
            said = [value, *(self._lines[rank].receive() for rank in range(1, self.seat.world_size))]
            for line in self._lines.values():
                line.send(said)
        except OSError as error:
            raise MeetingFailed(f"rank {self.seat.rank}: {error or type(error).__name__}") from error
        return said

    @property
    def _where(self) -> str:
        return f"{self.seat.address}:{self.seat.port}"

    def _gather(self) -> None:
        """Rank 0 waits until every other rank has come, each once."""
        if self.seat.world_size == 1:
            return
        deadline = time.monotonic() + self.wait_s
        with socket.create_server((self.seat.address, self.seat.port), backlog=self.seat.world_size) as server:
            while len(self._lines) < self.seat.world_size - 1:
                server.settimeout(max(deadline - time.monotonic(), 0.01))
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    missing = sorted(set(range(1, self.seat.world_size)) - set(self._lines))
                    raise MeetingFailed(f"ranks {missing} did not come within {self.wait_s:g} s") from None
                self._welcome(connection)

    def _welcome(self, connection: socket.socket) -> None:
        """Take in one rank; strangers and ranks of another attempt are sent away."""
        connection.settimeout(self.wait_s)
        line = _Line(connection)
        try:
            hello = line.receive()
            rank, run = int(hello["rank"]), hello["run"]
        except (MeetingFailed, OSError, KeyError, TypeError, ValueError):
            connection.close()
            return
        if run != self.seat.run or not 0 < rank < self.seat.world_size or rank in self._lines:
            connection.close()
            return
        self._lines[rank] = line
        line.send("welcome")

    def _join(self) -> None:
        """Reach rank 0, which may not be there yet or may still be another attempt's."""
        deadline = time.monotonic() + self.wait_s
        why = "nobody there"
        while time.monotonic() < deadline:
            try:
                connection = socket.create_connection((self.seat.address, self.seat.port), timeout=self.wait_s)
            except OSError as error:
                why = str(error)
                time.sleep(RETRY_S)
                continue
            line = _Line(connection)
            try:
                line.send({"rank": self.seat.rank, "run": self.seat.run})
                line.receive()
            except (MeetingFailed, OSError) as error:
                connection.close()
                why = f"rank 0 refused: {error}"
                time.sleep(RETRY_S)
                continue
            self._lines[0] = line
            return
        raise MeetingFailed(f"rank {self.seat.rank} did not reach rank 0 at {self._where} in {self.wait_s:g} s: {why}")
