"""Who a value belongs to: labels of a GPU, the time of a log, lines of several hosts in one file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.nvidia.cells import as_pci
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import names_a_device

#: Longest output of these tools that is read, in characters; a day of `nvidia-smi -q -l 60` for eight GPUs fits.
LARGEST: Final = 64 * 1024 * 1024

_MONTHS: Final = {
    "Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6, "Jul": 7, "Aug": 8, "Sep": 9, "Oct": 10, "Nov": 11,
    "Dec": 12,
}  # fmt: skip
_CTIME: Final = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s+(?P<month>[A-Z][a-z]{2})\s+(?P<day>\d{1,2})\s+"
    r"(?P<clock>\d{2}:\d{2}:\d{2})\s+(?P<year>\d{4})"
)
_STAMP: Final = re.compile(r"(\d{4})/(\d{2})/(\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)")
_PROMPT: Final = re.compile(r"^[^|=+]{0,80}?(?:[$#>%]\s*)?\b(?:nvidia-smi|rocm-smi|amd-smi|npu-smi)\b(?! has failed)")
_DOTS: Final = re.compile(
    r"(?:\[?(?:\.{3,}|…)\]?|<snip>|\[snip\]|\(?(?:output )?(?:truncated|omitted)\)?)", re.IGNORECASE
)


def labels(*, gpu: str = "", uuid: str = "", pci: str = "", node: str = "", **more: str) -> Labels:
    """Labels of a device, leaving out those that are not printed or blotted out; a PCI address in one form."""
    address = as_pci(pci) if pci else ""
    uuid = uuid if names_a_device(uuid) else ""
    known = {"node": node, "gpu": gpu, "uuid": uuid, "pci": address if isinstance(address, str) else "", **more}
    return tuple((key, value) for key, value in known.items() if value)


def iso_time(text: str) -> str | None:
    """`2026-07-14T09:00:44` of `Tue Jul 14 09:00:44 2026` or `2026/07/14 09:00:44.123`; None for anything else.

    These tools print local time without its zone; so does this.
    """
    word = text.strip()
    if (stamp := _STAMP.fullmatch(word)) is not None:
        return f"{stamp[1]}-{stamp[2]}-{stamp[3]}T{stamp[4]}"
    match = _CTIME.fullmatch(word)
    if match is None or match["month"] not in _MONTHS:
        return None
    return f"{match['year']}-{_MONTHS[match['month']]:02d}-{int(match['day']):02d}T{match['clock']}"


def name_of(subject: Iterable[tuple[str, str]]) -> str:
    """A device for people: `GPU 3 (0000:1b:00.0)`."""
    known = dict(subject)
    index, pci, uuid = known.get("gpu", ""), known.get("pci", ""), known.get("uuid", "")
    where = f" on {known['node']}" if known.get("node") else ""
    if index:
        return f"GPU {index}" + (f" ({pci})" if pci else "") + where
    return f"GPU {pci or uuid or 'without a name'}" + where


def by_host(source: Source) -> Iterator[tuple[str, list[Line]]]:
    """Lines of each host or rank of the file, in order of appearance; one group without a name where there are none.

    Raises:
        Refused: when the file is larger than LARGEST.
    """
    groups: dict[str, list[Line]] = {}
    size = 0
    for line in source.lines():
        size += len(line.text) + 1
        if size > LARGEST:
            raise Refused(f"larger than {LARGEST // 2**20} MiB; split it", line.number)
        groups.setdefault(line.prefix, []).append(line)
    yield from groups.items()


def runs_of_hosts(source: Source, read: Callable[[list[Line], str], Iterable[Run]]) -> list[Run]:
    """The runs of every host; one whose output is refused beside others is a run that says so.

    Args:
        read: gives the runs of the lines of one host, whose name is the second argument, "" when unknown.

    Raises:
        Refused: as `by_host`, and when no host's output can be read.
    """
    runs: list[Run] = []
    refused: list[tuple[str, Refused]] = []
    for prefix, lines in by_host(source):
        try:
            runs.extend(read(lines, host_of(prefix)))
        except Refused as error:
            refused.append((prefix, error))
    if refused and not runs:
        raise refused[0][1]
    return [*runs, *(_failed(prefix, error) for prefix, error in refused)]


def _failed(prefix: str, error: Refused) -> Run:
    builder = RunBuilder("nvidia-smi")
    if node := host_of(prefix):
        builder.condition("node", node)
    where = prefix or "lines without a host"
    refusal = error.refusal
    said = f": {refusal.found}" if refusal.found else ""
    builder.notice("host-not-read", f"{where}: {refusal.reason}{said}", Weight.ERROR, refusal.line)
    builder.missing(f"the output of {where}")
    return builder.build()


def host_of(prefix: str) -> str:
    """The node named by a prefix; launcher ranks name none."""
    return "" if re.fullmatch(r"(?:rank|default|worker)\d*|\d+(?:,\d+)?|", prefix) else prefix


def is_command(text: str) -> bool:
    """Whether a line is the command that was typed, with or without its prompt."""
    head = text[:400]
    return "-smi" in head and _PROMPT.match(head) is not None and ": " not in head.split("-smi", 1)[1]


def is_cut_by(text: str) -> str:
    """`head` when the typed command pipes its output through something that shortens it, else ""."""
    match = re.search(r"\|\s*(head|tail|grep|sed|awk|less|more)\b", text[:400])
    return match[1] if match else ""


def is_elision(text: str) -> bool:
    """Whether a line stands for lines left out: `...`, `[...]`."""
    return 0 < len(text) < 64 and _DOTS.fullmatch(text.strip()) is not None


def selects(text: str) -> bool:
    """Whether the typed command asks for some of the GPUs only (`-i`, `--id`)."""
    return re.search(r"\s(?:-i\b|--id\b)", text[:400]) is not None
