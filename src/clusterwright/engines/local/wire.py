"""JSON lines over a Unix socket, between clients, agents and the control plane."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: Longest line that is read: a job's environment and a cluster's job list fit, a runaway writer does not.
MAX_LINE: Final = 64 * 2**20

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """One line. Bytes that are not UTF-8 in arguments survive as surrogates."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line.

    Raises:
        ValueError: when it is not a JSON object.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not a JSON object")
    return message


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name for a socket that fits in 108 bytes (unix(7), sun_path) however deep its directory is.

    Raises:
        OSError: when the directory is not there.
    """
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def connect(path: Path, timeout_s: float | None = None) -> socket.socket:
    """A connected socket.

    Raises:
        OSError: when nobody listens.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        with short_path(path) as name:
            connection.connect(name)
    except BaseException:
        connection.close()
        raise
    return connection


def listen(path: Path) -> socket.socket:
    """A listening socket that only its owner can reach; replaces one left behind.

    Raises:
        OSError: when the directory is not writable.
    """
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(path) as name:
            listener.bind(name)
        path.chmod(0o600)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


class LineBuffer:
    """Bytes in, whole lines out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Lines that are complete now, without newline."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("line too long")
        return lines
