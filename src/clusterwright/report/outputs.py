"""The output of several ranks as one text, every line with the rank that wrote it."""

from __future__ import annotations

from clusterwright.model.outputs import LogChunk

Origin = tuple[int, int, str]


class Interleaver:
    """Chunks in, text out at once, also of a line that has not ended: a progress bar never ends one.

    A line that another rank interrupts is continued on a line of its own. After a carriage return, which takes a
    terminal back to the start of the line, the rank is named again.
    """

    def __init__(self) -> None:
        self._open: Origin | None = None
        self._returns = set[Origin]()

    def feed(self, chunk: LogChunk) -> bytes:
        """What is to be shown now."""
        origin = (chunk.attempt, chunk.rank, chunk.stream)
        data = b"\r" + chunk.data if origin in self._returns else chunk.data
        self._returns.discard(origin)
        if data.endswith(b"\r"):  # whether a newline follows is not known yet
            data = data[:-1]
            if not chunk.last:
                self._returns.add(origin)
        if not data:
            return b""
        before, name = self._begin(origin), _name(origin)
        ended = data.endswith(b"\n")
        self._open = None if ended else origin
        named = _with_name(data, name)
        return before + (named[: -len(name)] if ended else named)

    def end(self) -> bytes:
        """What closes the text."""
        return b"" if self._open is None else b"\n"

    def _begin(self, origin: Origin) -> bytes:
        if self._open == origin:
            return b""
        return (b"" if self._open is None else b"\n") + _name(origin)


def _with_name(text: bytes, name: bytes) -> bytes:
    """Every further line of a text with a name before it."""
    named = text.replace(b"\n", b"\n" + name)
    if b"\r" not in named:
        return named
    return named.replace(b"\r", b"\r" + name).replace(b"\r" + name + b"\n", b"\r\n")


def _name(origin: Origin) -> bytes:
    _, rank, stream = origin
    return f"[{rank}] ".encode() if stream == "stdout" else f"[{rank} err] ".encode()
