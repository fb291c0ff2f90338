"""Reading: files → what their tools printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.files.streams import find_outputs, stream_bytes
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.reading import KINDS, READERS, read_output
from clusterwright.report.transcripts import render_transcript, transcript_values


@dataclass(frozen=True)
class ReadFile:
    """A file with what was read from it."""

    path: str
    transcript: Transcript


def read_files(
    paths: Sequence[str], *, kind: str = "", progress: Callable[[str], None] | None = None
) -> list[ReadFile]:
    """Read every file, in the order given; a directory stands for the files below it.

    Args:
        kind: the reader for all of them; "" finds out for each.
        progress: told the path before each file is read.

    Raises:
        InvalidInput: when a path is not there or cannot be read, or the kind does not exist.
    """
    if kind and kind not in KINDS:
        try:
            read_output([], kind=kind)
        except ValueError as error:
            raise InvalidInput(str(error)) from None
    read = []
    for path in find_outputs(paths):
        if progress is not None:
            progress(path)
        read.append(ReadFile(path, read_output(stream_bytes(path), name=path, kind=kind)))
    return read


def all_read(files: Sequence[ReadFile]) -> bool:
    """Whether every file was read whole."""
    return all(file.transcript.outcome is Outcome.READ for file in files)


def describe_files(files: Sequence[ReadFile], *, whole: bool = False, width: int = 120) -> str:
    """The transcripts as text, for a terminal of `width` columns."""
    return "\n\n".join(render_transcript(file.path, file.transcript, whole=whole, width=width) for file in files)


def values_of_files(files: Sequence[ReadFile]) -> list[dict[str, Any]]:
    """The transcripts as plain values."""
    return [{"file": file.path, **transcript_values(file.transcript)} for file in files]


def describe_kinds() -> str:
    """Every kind that can be read, on one line each."""
    width = max((len(reader.kind) for reader in READERS), default=0)
    return "\n".join(f"{reader.kind:<{width}}  {reader.title}" for reader in sorted(READERS, key=lambda r: r.kind))


def values_of_kinds() -> list[dict[str, str]]:
    """Every kind that can be read, as plain values."""
    return [{"kind": reader.kind, "title": reader.title} for reader in sorted(READERS, key=lambda r: r.kind)]
