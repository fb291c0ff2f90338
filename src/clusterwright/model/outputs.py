"""What ranks write: bytes as they come, and lines."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.model.jobs import LogLine


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes that a rank wrote to one stream, 'stdout' or 'stderr'; `last`: nothing follows in this attempt."""

    attempt: int
    rank: int
    stream: str
    data: bytes
    last: bool = False


class Lines:
    """Chunks in, lines out: a line ends with a newline, or where its stream does."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, int, str], list[bytes]] = {}

    def feed(self, chunk: LogChunk) -> list[LogLine]:
        """The lines that this chunk completes; bytes that are not UTF-8 become the replacement character."""
        origin = (chunk.attempt, chunk.rank, chunk.stream)
        begun = self._begun.pop(origin, [])
        if b"\n" not in chunk.data and not chunk.last:
            self._begun[origin] = [*begun, chunk.data] if chunk.data else begun
            return []
        *whole, rest = b"".join([*begun, chunk.data]).split(b"\n")
        if rest and chunk.last:
            whole.append(rest)
        elif rest:
            self._begun[origin] = [rest]
        return [LogLine(*origin, line.decode(errors="replace")) for line in whole]
