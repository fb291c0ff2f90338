"""`clusterwright-checkpoint`: one checkpoint written by several processes of a node, flushed, and restored.

Observations: write_time and restore_time (duration), checkpoint_write_rate and checkpoint_restore_rate (byte rate) with
subject node; rank_write, rank_restore and rank_fsync (duration) with subject node, rank. Conditions: node, started,
ended, write_started, write_ended, restore_started, restore_ended, file_size (bytes of the whole checkpoint), jobs
(processes), filesystem, direct and direct_restore (whether O_DIRECT was taken), verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.probes.lines import (
    moment_of,
    number_of,
    part_of,
    read_reports,
    recognise_format,
    text_of,
)
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.values import quantity

KIND: Final = "clusterwright-checkpoint"
_VERSION: Final = 1
#: File systems that live in main memory: nothing of them survives the node.
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})


def _recognise(head: Head) -> int:
    return recognise_format(head.text, KIND)


def _read(source: Source) -> Sequence[Run]:
    guard = RunBuilder("checkpoint.py", str(_VERSION))
    runs = []
    for line, report in read_reports(source, guard, KIND, _VERSION):
        builder = RunBuilder("checkpoint.py", str(_VERSION))
        _read_report(report, line, builder)
        runs.append(builder.build())
    if guard.rejected:
        runs.append(guard.build())
    return runs


def _read_report(report: dict[str, Any], line: int, builder: RunBuilder) -> None:
    node = text_of(report, "node")
    write, restore = part_of(report, "write"), part_of(report, "restore")
    for name, text in (
        ("node", node),
        ("started", moment_of(write, "started")),
        ("ended", moment_of(restore, "ended") or moment_of(write, "ended")),
        ("write_started", moment_of(write, "started")),
        ("write_ended", moment_of(write, "ended")),
        ("restore_started", moment_of(restore, "started")),
        ("restore_ended", moment_of(restore, "ended")),
        ("filesystem", text_of(report, "filesystem")),
        ("directory", text_of(report, "directory")),
    ):
        if text:
            builder.condition(name, text)
    size = number_of(report, "bytes", "B")
    builder.condition("file_size", size)
    builder.condition("jobs", number_of(report, "processes"))
    if error := text_of(report, "error"):
        builder.notice("failed", f"the script ended with an error: {error}", Weight.ERROR, line)
    for part, name in ((write, "write"), (restore, "restore")):
        _read_part(part, name, node, size, line, builder)
    _judge_report(report, write, restore, line, builder)


def _read_part(part: dict[str, Any], name: str, node: str, size: object, line: int, builder: RunBuilder) -> None:
    subject = (("node", node),) if node else ()
    if not part:
        builder.missing(f"the {name}")
        return
    seconds = number_of(part, "seconds", "s")
    if isinstance(seconds, Quantity) and seconds.value <= 0:
        seconds = NoValue(Lack.UNREADABLE, "0", "no time passed")
    builder.observe(f"{name}_time", seconds, subject, line)
    if isinstance(seconds, Quantity) and isinstance(size, Quantity):
        rate = quantity(size.value / seconds.value / 1e9, "GB/s")
        builder.observe(f"checkpoint_{name}_rate", rate, subject, line)
    direct = part.get("direct")
    if isinstance(direct, bool):
        builder.condition("direct" if name == "write" else "direct_restore", direct)
    ranks = part.get("ranks")
    for rank in ranks if isinstance(ranks, list) else ():
        if not isinstance(rank, dict):
            builder.reject(line, str(rank), "a rank is an object")
            continue
        who = (*subject, ("rank", f"{rank.get('rank')}"[:12]))
        builder.observe(f"rank_{name}", number_of(rank, "seconds", "s"), who, line)
        if "fsync_seconds" in rank:
            builder.observe("rank_fsync", number_of(rank, "fsync_seconds", "s"), who, line)
    count = number_of({"n": len(ranks)} if isinstance(ranks, list) else {}, "n")
    if count != builder.conditions().get("jobs"):
        builder.missing(f"ranks of the {name}: {count} of {builder.conditions().get('jobs')}")


def _judge_report(
    report: dict[str, Any], write: dict[str, Any], restore: dict[str, Any], line: int, builder: RunBuilder
) -> None:
    verified = restore.get("verified")
    if isinstance(verified, bool):
        builder.condition("verified", verified)
        if not verified:
            builder.notice("not-verified", "what was restored is not what was written", Weight.ERROR, line)
    kind = text_of(report, "filesystem")
    if kind in _IN_MEMORY:
        builder.notice(
            "in-memory", f"the directory is on {kind}, in main memory; no store was measured", Weight.ERROR, line
        )
    if restore.get("direct") is False:
        message = "the file system takes no O_DIRECT: the restore may have come from the page cache"
        builder.notice("page-cache", message, Weight.WARNING, line)
    if write.get("direct") is False:
        builder.notice("buffered", "written through the page cache and flushed (fsync)", Weight.INFO, line)


READER: Final = Reader(KIND, "checkpoint write and restore, by the exported script", _recognise, _read)
