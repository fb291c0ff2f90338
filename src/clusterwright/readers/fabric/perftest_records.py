"""The text output of perftest: lines → one record a test, what was printed around the table included."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.perftest_tables import (
    Column,
    PerfRow,
    is_cut_header,
    looks_like_perf_row,
    parse_perf_header,
    parse_perf_row,
)
from clusterwright.readers.refusing import Refused, shorten

#: Most tests in one output.
MOST_TESTS: Final = 5_000
_MOST_ROWS: Final = 10_000
_MOST_KEPT: Final = 50
_MOST_PREFIXES: Final = 4_096

TITLE: Final = re.compile(
    r"^\s{0,60}(?P<verb>RDMA_Write(?:_With_Imm|_Imm)?|RDMA_Read|Send|Atomic \S{1,24}|Raw Ethernet\S{0,20})"
    r"(?P<how>(?: Bidirectional| Post List| Multicast| Dual-port| -| to itself){0,4})"
    r" (?P<what>BW|Latency|Lat|Burst Latency)(?:[ -]{1,4}Multicast)? Test\b"
)
COMMAND: Final = re.compile(
    r"(?:^|[\s/;(&])(?P<test>ib_(?:write|read|send|atomic)_(?:bw|lat)|raw_ethernet_(?:bw|lat|burst_lat))(?=\s|$)"
)
_KEYS: Final = (
    "Dual-port", "Device", "Number of qps", "Transport type", "Connection type", "Using SRQ", "PCIe relax order",
    "Lock-free", r"ibv_wr\* API", "Using DDP", "Using Enhanced Reorder", "TX depth", "RX depth", "CQ Moderation",
    "CQE Poll Batch", "Mtu", "Link type", "GID index", "Max inline data", "rdma_cm QPs", "Data ex. method",
    "Outstand reads", "Use ROCm memory", "Use CUDA memory", "Post List", "Recv Post List", "Number of SRs",
)  # fmt: skip
_PAIR: Final = re.compile(rf"(?P<key>{'|'.join(_KEYS)})\s{{0,24}}: ?(?P<value>\S{{1,60}})")
_ADDRESS: Final = re.compile(r"^\s*(local|remote) address: (.{1,160})")
_GID: Final = re.compile(r"^\s*GID: ([0-9a-fA-F:]{5,80})")
_GPU: Final = re.compile(r"device name = \[([^\]]{1,80})\]")
_GPU_ADDRESS: Final = re.compile(r"CUDA device (\d{1,3}): PCIe address is ([0-9A-Fa-f:.]{4,16})")
_GPU_PICKED: Final = re.compile(r"Picking device No\. (\d{1,3})")
_GPU_MEMORY: Final = re.compile(
    r"initializing CUDA|creating CUDA Ctx|allocated GPU buffer|CUDA_MEM_DEVICE|Using ROCm Device"
    r"|allocated ROCm|hipMalloc"
)
_FAILURE: Final = re.compile(
    r"Completion with error|Failed status|Failed to |Couldn't |Unable to |Port number \d+ state is Down"
    r"|not found\.?$|Did not detect devices|is higher than active mtu|Segmentation fault|BW limit.*not|cannot allocate"
    r"|Connection refused|Connection timed out|command not found",
    re.IGNORECASE,
)


@dataclass(slots=True)
class PerfRecord:
    """One test as printed.

    Args:
        title: the match of its title in words, such as ("RDMA_Write", " Bidirectional", "BW").
        settings: what stands in the block above the table, by the tool's own key.
        addresses: `local` and `remote` → address with its GID.
        closed: whether the line that ends the table is there.
        both_ends: whether client and server printed this test and were joined.
        ended_badly: whether a failure is one that only these tests print.
    """

    title: tuple[str, str, str] = ("", "", "")
    title_line: int = 0
    commands: list[tuple[str, str]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    rows: list[PerfRow] = field(default_factory=list)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    closed: bool = False
    waited: bool = False
    frequency: int = 0
    no_peak: bool = False
    gpu_memory: bool = False
    gpu_name: str = ""
    gpu_index: str = ""
    gpu_addresses: dict[str, str] = field(default_factory=dict)
    dmabuf: bool = False
    prefix: str = ""
    both_ends: bool = False
    ended_badly: bool = False

    @property
    def options(self) -> str:
        """The last command line before the test, without its program; "" when none was printed."""
        return self.commands[-1][1] if self.commands else ""


def read_perf_records(lines: Iterable[Line]) -> list[PerfRecord]:
    """Every test that has a title or a table, in order."""
    records: list[PerfRecord] = []
    followers: dict[str, _Follower] = {}
    for line in lines:
        prefix = line.prefix if line.prefix in followers or len(followers) < _MOST_PREFIXES else ""
        follower = followers.get(prefix)
        if follower is None:
            follower = followers[prefix] = _Follower(records, prefix)
        follower.feed(line.number, line.text)
    return [
        r for r in records if r.title_line or r.columns or r.settings or (r.failures and (r.commands or r.ended_badly))
    ]


class _Follower:
    """Follows the output behind one prefix."""

    def __init__(self, records: list[PerfRecord], prefix: str) -> None:
        self._records = records
        self._prefix = prefix
        self._record = self._begin()

    def feed(self, number: int, text: str) -> None:
        """Take the next line."""
        record = self._record
        title = TITLE.match(text) if " Test" in text else None
        if title is not None:
            if record.title_line or record.columns:
                record = self._begin()
            record.title, record.title_line = (title["verb"], title["how"], title["what"]), number
        elif (header := parse_perf_header(text)) is not None:
            self._take_header(header, number)
        elif record.columns and not record.closed and looks_like_perf_row(text):
            row = parse_perf_row(record.columns, text, number, cycles=_in_cycles(record))
            if isinstance(row, str):
                record.rejected.append((number, text, row))
            elif len(record.rows) < _MOST_ROWS:
                record.rows.append(row)
        elif text.strip().startswith("-----"):
            record.closed = record.closed or bool(record.rows and len(text.strip()) > 60)
        else:
            self._take_other(number, text)

    def _begin(self) -> PerfRecord:
        if len(self._records) >= MOST_TESTS:
            raise Refused(f"more than {MOST_TESTS:,} tests in one output; split it")
        self._record = PerfRecord(prefix=self._prefix)
        self._records.append(self._record)
        return self._record

    def _next(self) -> PerfRecord:
        """The record for a line that stands before a test."""
        record = self._record
        return self._begin() if record.columns or record.title_line else record

    def _take_header(self, header: tuple[Column, ...] | str, number: int) -> None:
        record = self._record
        if record.columns:
            record = self._begin()
        if not isinstance(header, str):
            record.columns = header
        elif not is_cut_header(header):
            raise Refused("a column of this table is not known", number, header)

    def _take_other(self, number: int, text: str) -> None:
        record = self._record
        address = _ADDRESS.match(text) if " address: " in text else None
        gid = _GID.match(text) if "GID:" in text else None
        named = "_bw" in text or "_lat" in text
        command = next(reversed(list(islice(COMMAND.finditer(text), 20))), None) if named else None
        if address is not None:
            record.addresses.setdefault(address[1], address[2].strip())
        elif gid is not None and record.addresses:
            side = "remote" if "remote" in record.addresses else "local"
            record.addresses[side] += f" GID {gid[1]}"
        elif "Waiting for client to connect" in text:
            self._next().waited = True
        elif "Conflicting CPU frequency" in text or "CPU Frequency is not max" in text:
            record.frequency = number
        elif "BW peak won't be measured" in text:
            self._next().no_peak = True
        elif command is not None:
            commands = self._next().commands
            commands.append((command["test"], text[command.end() : command.end() + 400]))
            del commands[:-_MOST_KEPT]
        elif not self._take_gpu(text):
            pairs = [(match["key"], match["value"]) for match in _PAIR.finditer(text)] if ": " in text else []
            if pairs:
                record.settings.update({key: value for key, value in pairs if key not in record.settings})
            elif _FAILURE.search(text) is not None and len(record.failures) < _MOST_KEPT:
                record.failures.append((number, shorten(text)))
                record.ended_badly = record.ended_badly or "Completion with error at" in text

    def _take_gpu(self, text: str) -> bool:
        """Lines of the CUDA or ROCm part, which stand before the title."""
        name, place, picked = _GPU.search(text), _GPU_ADDRESS.search(text), _GPU_PICKED.search(text)
        if not (name or place or picked or _GPU_MEMORY.search(text) or "DMA-BUF" in text):
            return False
        record = self._record if "deallocating" in text or "destroying" in text else self._next()
        record.gpu_memory = True
        if name is not None:
            record.gpu_name = name[1]
        if place is not None and len(record.gpu_addresses) < _MOST_KEPT:
            record.gpu_addresses[place[1]] = place[2]
        if picked is not None:
            record.gpu_index = picked[1]
        record.dmabuf = record.dmabuf or "DMA-BUF" in text
        return True


def _in_cycles(record: PerfRecord) -> bool:
    return re.search(r"\s(?:-C|--report-cycles)(?=\s|$)", record.options) is not None
