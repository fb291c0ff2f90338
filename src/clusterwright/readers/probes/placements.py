"""`clusterwright-placement`: what every rank of a job saw: its node, its GPU, the ranks that it met.

Observations with subject node, rank: device (text; absent where the rank has none), host, members (number of ranks
met), met (true when the rank met all of its world), node_rank, local_rank, world_size, pid. Condition: image (as the
environment of the job says it, not verified).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.model.observations import Labels, Lack, NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.probes.lines import number_of, read_reports, recognise_format, text_of
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import shorten

KIND: Final = "clusterwright-placement"
_VERSION: Final = 1


def _recognise(head: Head) -> int:
    return recognise_format(head.text, KIND)


def _read(source: Source) -> Sequence[Run]:
    builder = RunBuilder("placement.py", str(_VERSION))
    seen: set[Labels] = set()
    world: set[float] = set()
    for line, report in read_reports(source, builder, KIND, _VERSION):
        rank = number_of(report, "rank")
        if not isinstance(rank, float):
            builder.reject(line, str(report.get("rank")), "a report names its rank")
            continue
        subject = (("node", text_of(report, "node")), ("rank", f"{rank:.0f}"))
        if subject in seen:
            builder.notice("rank-twice", f"rank {rank:.0f} reports twice", Weight.ERROR, line)
        seen.add(subject)
        size = number_of(report, "world_size")
        if isinstance(size, float):
            world.add(size)
        _observe(report, subject, line, builder)
    if len(world) > 1:
        sizes = ", ".join(f"{w:.0f}" for w in sorted(world))
        builder.notice("worlds-differ", f"ranks were told worlds of different sizes: {sizes}", Weight.ERROR)
    return (builder.build(),)


def _observe(report: dict[str, Any], subject: Labels, line: int, builder: RunBuilder) -> None:
    if image := text_of(report, "image"):
        builder.condition("image", image)
    device = text_of(report, "device")
    builder.observe("device", device or NoValue(Lack.ABSENT, "", "the rank sees no GPU"), subject, line)
    builder.observe("host", text_of(report, "host") or NoValue(Lack.ABSENT), subject, line)
    for key in ("node_rank", "local_rank", "world_size", "pid"):
        builder.observe(key, number_of(report, key), subject, line)
    members = report.get("members")
    ranks = (
        {m[0] for m in members if isinstance(m, list) and m and isinstance(m[0], int)}
        if isinstance(members, list)
        else set()
    )
    builder.observe("members", float(len(ranks)), subject, line)
    size = number_of(report, "world_size")
    failure = text_of(report, "meeting")
    met = not failure and isinstance(size, float) and ranks == set(range(min(int(size), 1_000_000)))
    builder.observe("met", met, subject, line)
    if failure:
        builder.notice(
            "not-met", f"rank {dict(subject)['rank']} did not meet the others: {shorten(failure)}", line=line
        )


READER: Final = Reader(KIND, "ranks of a job: node, GPU, membership, by the exported script", _recognise, _read)
