"""`ls -l` of a checkpoint directory: shards of zero bytes, short ones, files that were never renamed.

A checkpoint is complete when every shard is there, none is empty or short, and no temporary file is left. A listing
does not say how many shards there should be unless their names do (`model-00001-of-00030`): without that, finding no
fault proves nothing, and completeness is absent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.sizes import read_size

_ROW: Final = re.compile(
    r"\s*(?P<mode>[-dlbcps][rwxsStT-]{9}[.+@]?)\s+\d+\s+(?:\S+\s+){1,2}?(?P<size>\d+(?:[.,]\d+)?[KMGTP]?)\s+"
    r"(?P<time>(?:[A-Z][a-z]{2}\s+\d{1,2}|\d{1,2}\s+[A-Z][a-z]{2})\s+(?:\d{1,2}:\d{2}|\d{4})|\d{4}-\d{2}-\d{2}\s+\d{2}:\d{2}(?:[:.\d]*)?"
    r"(?:\s+[+-]\d{4})?)\s+(?P<name>\S.*)"
)
_SHARD: Final = re.compile(
    r"\.(?:pt|pth|ckpt|distcp|safetensors|bin|tmp|partial|incomplete)\b|shard|mp_rank|zero_pp_rank|iter_\d+|global_step"
    r"|\.metadata$|latest_checkpointed"
)
_DIRECTORY: Final = re.compile(r"(\S.*):")
_TEMPORARY: Final = re.compile(r"(?:\.(?:tmp|partial|incomplete|part)|~)$|^\.?tmp|\.tmp\.")
_OF: Final = re.compile(r"(\d{1,6})-of-(\d{1,6})")
_PART: Final = re.compile(r"[-_.](?=model_part|shard|rank_?\d|mp_rank|zero_pp_rank|\d{1,6}-of-)")
#: Names that begin with their part: the checkpoint is the directory.
_PART_FIRST: Final = ("mp_rank", "zero_pp_rank", "bf16_zero", "layer_", "__")
#: From this many files of one size on, one of another size is odd.
_MANY: Final = 3
_MOST_FILES: Final = 200_000
_MOST_NAMED: Final = 20


@dataclass(slots=True)
class _File:
    name: str
    size: Value
    line: int
    exact: bool


@dataclass(slots=True)
class _Checkpoint:
    files: list[_File] = field(default_factory=list)


def recognise(head: Head) -> int:
    """Strong when most rows of a listing are named like shards."""
    rows = [m for m in map(_ROW.fullmatch, head.text.split("\n")[:400]) if m]
    shards = [m for m in rows if _SHARD.search(m["name"])]
    if not shards:
        return 0
    return 88 if 2 * len(shards) >= len(rows) else 60


def read(source: Source) -> Sequence[Run]:
    """The one run of the file, with every checkpoint in it."""
    builder = RunBuilder("ls")
    found: dict[str, _Checkpoint] = {}
    directory, count = "", 0
    for line in source.lines(prefixes=False):
        if row := _ROW.fullmatch(line.text):
            if row["mode"][0] != "-":
                continue
            count += 1
            if count <= _MOST_FILES:
                _keep(found, directory, row, line)
        elif head := _DIRECTORY.fullmatch(line.text.strip()):
            directory = head[1]
        elif line.text.strip() in ("...", "[...]"):
            builder.missing("files that were cut out of the listing")
        elif re.match(r"\s*-[rwx-]{9}", line.text):
            builder.reject(line.number, line.text, "a row without size, time and name")
    if not found:
        raise Refused("no row of a listing that names a file")
    if count > _MOST_FILES:
        builder.missing(f"files beyond the first {_MOST_FILES:,}")
    for name, checkpoint in found.items():
        _judge(builder, name, checkpoint)
    return [builder.build()]


def _keep(found: dict[str, _Checkpoint], directory: str, row: re.Match[str], line: Line) -> None:
    name = row["name"].split(" -> ")[0].rstrip()
    path, _, base = name.rpartition("/")
    part = _PART.search(base)
    owner = base[: part.start()] if part and part.start() > 0 and not base.startswith(_PART_FIRST) else ""
    key = "/".join(filter(None, (directory, path, owner))) or "."
    exact = row["size"].isdecimal()
    found.setdefault(key, _Checkpoint()).files.append(_File(name, read_size(row["size"]), line.number, exact))


def _judge(builder: RunBuilder, name: str, checkpoint: _Checkpoint) -> None:
    faults = 0
    for file in checkpoint.files:
        builder.observe("file_size", file.size, (("file", file.name), ("checkpoint", name)), file.line)
    empty = [f for f in checkpoint.files if f.exact and isinstance(f.size, Quantity) and f.size.value == 0]
    left = [f for f in checkpoint.files if _TEMPORARY.search(f.name.rpartition("/")[2])]
    short = _short(checkpoint)
    for code, files, what in (
        ("zero-size-shard", [f for f in empty if _SHARD.search(f.name)], "is empty"),
        ("temporary-file", left, "was never renamed: it was being written"),
        ("short-shard", short, "is shorter than its peers"),
    ):
        faults += len(files)
        for file in files[:_MOST_NAMED]:
            builder.notice(code, f"{file.name} {what} ({file.size})", Weight.ERROR, file.line)
    lacking = _lacking(checkpoint)
    if lacking:
        faults += 1
        message = f"{name}: {lacking[0]} of {lacking[1]} shards are there"
        builder.notice("shards-missing", message, Weight.ERROR)
    if faults:
        builder.notice("checkpoint-incomplete", f"{name} is incomplete; resume from an older one", Weight.ERROR)
    builder.observe("checkpoint_complete", _completeness(checkpoint, faults), (("checkpoint", name),))


def _completeness(checkpoint: _Checkpoint, faults: int) -> Value:
    if faults:
        return False
    if any(_OF.search(f.name) for f in checkpoint.files):
        return True
    return NoValue(Lack.ABSENT, "", "no fault in the listing, which does not say how many shards there should be")


def _short(checkpoint: _Checkpoint) -> list[_File]:
    """Files below the size that most of their family have; families of different sizes by design are left alone."""
    families: dict[str, list[_File]] = {}
    for file in checkpoint.files:
        if file.exact and isinstance(file.size, Quantity) and file.size.value > 0 and not _OF.search(file.name):
            base = _TEMPORARY.sub("", file.name)
            families.setdefault(re.sub(r"\d+", "#", base), []).append(file)
    odd = []
    for files in families.values():
        sizes = Counter(f.size.value for f in files if isinstance(f.size, Quantity))
        usual, count = sizes.most_common(1)[0]
        if count >= _MANY and 2 * count > len(files):
            odd += [f for f in files if isinstance(f.size, Quantity) and f.size.value < usual]
    return odd


def _lacking(checkpoint: _Checkpoint) -> tuple[int, int] | None:
    """(shards there, shards named) where names count them and some are missing."""
    numbers: dict[int, set[int]] = {}
    for file in checkpoint.files:
        if found := _OF.search(file.name):
            numbers.setdefault(int(found[2]), set()).add(int(found[1]))
    for wanted, there in numbers.items():
        if len(there) < wanted:
            return len(there), wanted
    return None


CHECKPOINTS: Final = Reader("checkpoint-listing", "ls -l of a checkpoint directory", recognise, read)
