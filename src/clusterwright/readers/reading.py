"""Reading any output: find out what it is, let its reader read it, give the transcript or the refusal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.observations import Refusal, Transcript
from clusterwright.readers import (
    collectives,
    dcgm,
    fabric,
    kernel,
    kubernetes,
    nvidia,
    others,
    probes,
    serving,
    slurm,
    storage,
    training,
)
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten

READERS: Final[tuple[Reader, ...]] = (
    *collectives.READERS, *fabric.READERS, *nvidia.READERS, *dcgm.READERS, *kernel.READERS, *slurm.READERS,
    *kubernetes.READERS, *storage.READERS, *serving.READERS, *training.READERS, *others.READERS,
    *probes.READERS,
)  # fmt: skip
KINDS: Final[dict[str, Reader]] = {reader.kind: reader for reader in READERS}


def read_output(chunks: Iterable[bytes], *, name: str = "", kind: str = "") -> Transcript:
    """Everything that can be read from an output.

    Args:
        chunks: its bytes, in pieces of any size; read once, logs and metrics in constant memory.
        name: of the file, a hint where contents alone are ambiguous.
        kind: the reader to use; "" finds out.

    Raises:
        ValueError: for a kind that does not exist, with the nearest one.
    """
    if kind and kind not in KINDS:
        raise ValueError(f"no kind '{kind}'; {did_you_mean(kind, KINDS) or 'known are ' + ', '.join(sorted(KINDS))}")
    try:
        source = Source(chunks, name)
    except Refused as refused:
        return Transcript(kind, refusal=refused.refusal)
    reader: Reader | None = None
    try:
        reader = KINDS[kind] if kind else _find(source)
        runs = tuple(reader.read(source))
        if not runs:
            raise Refused("holds no run", found=shorten(source.head))
    except Refused as refused:
        return Transcript(reader.kind if reader else "", refusal=refused.refusal, cleaned=source.cleaned)
    return Transcript(reader.kind, runs, cleaned=source.cleaned)


def rank_kinds(text: str, name: str = "") -> list[tuple[int, str]]:
    """How sure each reader is of a beginning, surest first; readers that are not at all sure are left out."""
    head = Head(text, name.replace("\\", "/").rsplit("/", 1)[-1].lower())
    scored = ((reader.recognise(head), reader.kind) for reader in READERS)
    return sorted(((score, kind) for score, kind in scored if score > 0), key=lambda pair: (-pair[0], pair[1]))


def _find(source: Source) -> Reader:
    if source.empty:
        raise Refused("empty: nothing was measured")
    text = source.head
    ranked = rank_kinds(text, source.name)
    if not ranked and len(further := source.look_further()) > len(text):
        ranked = rank_kinds(further, source.name)
    if not ranked:
        raise Refused("no reader knows this output; name its kind with --kind", 1, text.lstrip()[:200])
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        tied = " or ".join(kind for score, kind in ranked if score == ranked[0][0])
        raise Refused(f"could be {tied}; name its kind with --kind", 1, text.lstrip()[:200])
    return KINDS[ranked[0][1]]


__all__ = ["KINDS", "READERS", "Refusal", "rank_kinds", "read_output"]
