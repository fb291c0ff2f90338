"""The text output of nccl-tests and rccl-tests: lines → one record a run.

A run prints in this order: version, name, parameters, ranks, header, rows, two sums, name. Whatever would go back in
this order begins another run. Lines of different launcher prefixes are followed apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.collectives.alone import join_alone
from clusterwright.readers.collectives.programs import OPERATIONS, program_in
from clusterwright.readers.collectives.ranks import parse_rank, starts_rank
from clusterwright.readers.collectives.records import Record
from clusterwright.readers.collectives.rows import (
    is_strongly_row,
    looks_like_row,
    looks_like_tail,
    parse_header,
    parse_row,
)
from clusterwright.readers.refusing import Refused

#: How far an output has come, by what was printed last.
STAGES: Final = {
    "nothing": 0, "command": 1, "version": 2, "starting": 3, "parameters": 4, "devices": 5, "ranks": 6, "header": 7,
    "rows": 8, "bounds": 9, "average": 10, "concluded": 11,
}  # fmt: skip
_REPEATABLE: Final = frozenset({"ranks", "rows"})
#: Most runs in one file.
MOST_RUNS: Final = 2_000
_MOST_PREFIXES: Final = 4_096

_LABEL: Final = re.compile(
    r"\s*(?:\[\d+,\d+\]<std\w{3,4}>:? ?|\[\d{1,5}\] ?(?=\s|\S+:\d+:\d+ |[#\d])"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?)"
)
_PARAMETERS: Final = re.compile(r"nThreads? +\d+ +nGpus +\d+ +minBytes\b")
_PAIR: Final = re.compile(r"([A-Za-z][A-Za-z ]{1,24}?):? +(-?\d[^\s]*)")
_BOUNDS: Final = re.compile(r"Out of bounds values *: *(\S{1,40}) *(\w{0,12})")
_AVERAGE: Final = re.compile(r"Avg bus bandwidth *: *(\S{1,40}) *(\w{0,12})")
_STARTING: Final = re.compile(r"Collective test (starting|concluded): *(\S{1,80})")
_TESTS_VERSION: Final = re.compile(r"(nccl|rccl)-tests(?: version|: Version) +(\S{1,80})")
_LIBRARY: Final = re.compile(r"(?:nccl|rccl)-library=(\d{3,8})")
_VERSIONS: Final = (
    ("nccl", re.compile(r"\bNCCL version +(\d[\w.+-]{0,60})")),
    ("rccl", re.compile(r"\bRCCL version *:? +(\d[\w.+:-]{0,80})")),
    ("hip", re.compile(r"\bHIP version *: +(\S{1,80})")),
    ("rocm", re.compile(r"\bROCm version *: +(\S{1,80})")),
    ("host", re.compile(r"^Hostname *: +(\S{1,80})")),
)
_TASKS: Final = re.compile(r"(?:SLURM_NTASKS=|SLURM_NPROCS=|(?:^|\s)-(?:np|-ntasks=?) *)(\d{1,7})\b")
#: `-n` of a launcher; behind the program it is the number of iterations.
_LAUNCHED: Final = re.compile(r"\b(?:mpirun|mpiexec|prterun|srun)\b.{0,400}?\s-n +(\d{1,7})\s")
_PROMPT: Final = re.compile(r"\[?\w[\w.-]{0,63}@[^\s$#%]{1,80}(?: [^\s$#%]{1,80})?[$#%] +\S|[$#%] +\S")
_NRANKS: Final = re.compile(r"\bnranks (\d{1,7})\b")
_SWITCHES: Final = re.compile(
    r"\b(NCCL_(?:P2P_DISABLE|SHM_DISABLE|IB_DISABLE|NET_GDR_LEVEL|NVLS_ENABLE|ALGO|PROTO))=(\w{1,24})"
)
_NETWORK: Final = re.compile(r"NCCL INFO Using network (\S{1,40}(?: Libfabric)?)")
_FAILURE: Final = re.compile(
    r"Test (?:NCCL |CUDA |HIP )?failure\b|unhandled (?:cuda|system|hip) error|Segmentation fault|out of memory"
    r"|\berror: |exited (?:on signal|with (?:error|exit) code)|DUE TO TIME LIMIT|terminated by signal"
    r"|Invalid number of GPUs|remote process exited|core dumped|Aborted\b|Bus error"
)
_DOTS: Final = frozenset({".", "…", "⋮", "·"})
_LEFT_OUT: Final = frozenset(
    {"snip", "truncated", "omitted", "skipped", "output truncated", "output omitted", "lines omitted", "rows omitted"}
)


#: What a line of the tool itself, apart from ranks and rows, has at least one of; a quick look before patterns.
_FRAME_WORDS: Final = ("Out of", "Avg bus", "Collective test", "-tests", "minBytes", "Using devices", "busbw")


def read_tables(lines: Iterable[Line]) -> list[Record]:
    """Every run that left a trace, in the order of their first lines."""
    readers: dict[str, _Reader] = {}
    records: list[Record] = []
    for line in lines:
        prefix = line.prefix if line.prefix in readers or len(readers) < _MOST_PREFIXES else ""
        reader = readers.get(prefix)
        if reader is None:
            reader = readers[prefix] = _Reader(records)
        reader.feed(line.number, line.text)
    for reader in readers.values():
        reader.close()
    return join_alone([record for record in records if _is_run(record)])


def is_elision(text: str) -> bool:
    """Whether a line says that somebody left lines out: `...`, `[...]`, `<snip>`."""
    core = text[:80].strip("[](){}<>*#|- \t").lower()
    return 0 < len(core) < 30 and (core in _LEFT_OUT or (len(core) < 12 and set(core) <= {*_DOTS, " "}))


def _is_run(record: Record) -> bool:
    """Commands and stray lines alone are no run; a failure under a program's name is one."""
    traces = record.ranks or record.rows or record.rejections or record.zero_rows or record.bounds or record.average
    return bool(
        traces or record.parameters or record.layout or (record.failures and (record.program or record.versions))
    )


class _Reader:
    """Follows the output behind one prefix."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._record = self._begin()
        self._last_line = 0
        self._width = self._width_before = 0
        self._last_row = ""

    def feed(self, number: int, text: str) -> None:
        """Take the next line."""
        label = _LABEL.match(text) if text.lstrip()[:1] in ("[", "1", "2") else None
        text = text[label.end() :] if label else text
        if text.count("|") > 4:
            text = text.replace("|", " ")
        text = text.rstrip(" |").removeprefix("- ") if text.endswith("|") or text.startswith("- ") else text
        if not text.strip(" \t#>|"):
            return
        self._last_line = number
        if "NCCL INFO" in text or "NCCL WARN" in text or "NCCL TRACE" in text:
            self._take_log(number, text)
        elif self._take_frame(number, text) or self._take_row(number, text):
            return
        else:
            self._take_other(number, text)

    def close(self) -> None:
        """The output ends here."""
        record = self._record
        if record.ranks and record.ranks[-1].line == self._last_line:
            record.cut_rank = self._last_line
        if record.rows and record.rows[-1].line == self._last_line and self._width < self._width_before:
            row = record.rows.pop()
            record.reject(row.line, self._last_row, "the output ends in it, short of the width of the rows above")

    def _begin(self) -> Record:
        if len(self._records) >= MOST_RUNS:
            raise Refused(f"more than {MOST_RUNS:,} runs in one output; split it")
        record = Record()
        self._records.append(record)
        return record

    def _enter(self, stage: str) -> Record:
        """The record that a line of this stage belongs to."""
        place, record = STAGES[stage], self._record
        if record.stage > place or (record.stage == place and stage not in _REPEATABLE):
            self._record = record = self._begin()
        record.stage = place
        return record

    def _aside(self) -> Record:
        """The record for a line that has no place in the order: after the end of a run it belongs to the next."""
        if self._record.stage >= STAGES["bounds"]:
            self._record = self._begin()
        return self._record

    def _take_frame(self, number: int, text: str) -> bool:
        """Lines of the tool itself, apart from rows."""
        if "Rank" in text and starts_rank(text):
            self._take_rank(number, text)
        elif not any(word in text for word in _FRAME_WORDS):
            return False
        elif (match := _BOUNDS.search(text)) is not None:
            self._enter("bounds").bounds = (number, match[1], match[2])
        elif (match := _AVERAGE.search(text)) is not None:
            self._enter("average").average = (number, match[1], match[2])
        elif (match := _STARTING.search(text)) is not None:
            self._take_name(match[1], match[2])
        elif (match := _TESTS_VERSION.search(text)) is not None:
            self._take_version(match[1], match[2], text)
        elif _PARAMETERS.search(text) is not None:
            self._enter("parameters").parameters = {k.strip(): v for k, v in _PAIR.findall(text)}
        elif "Using devices" in text:
            self._enter("devices")
        elif (layout := parse_header(text)) is not None:
            self._enter("header").layout = layout
        else:
            return False
        return True

    def _take_name(self, event: str, program: str) -> None:
        record = self._enter(event)
        name = program_in(program)
        if name is not None:
            record.program, record.named_by = name, "the tool"

    def _take_version(self, library: str, version: str, text: str) -> None:
        staged = "headers=" in text or self._record.stage < STAGES["parameters"]
        record = self._enter("version") if staged and self._record.stage != STAGES["starting"] else self._aside()
        record.library = library
        record.versions[f"{library}-tests"] = version
        code = _LIBRARY.search(text)
        if code is not None:
            record.versions.setdefault(library, _version_of(int(code[1])))

    def _take_rank(self, number: int, text: str) -> None:
        rank = parse_rank(text, number)
        if rank is None:
            record = self._enter("ranks")
            record.cut_rank = number
            record.reject(number, text, "a line of the rank list that is cut")
            return
        record = self._record
        if record.stage == STAGES["ranks"] and any(r.rank == rank.rank for r in record.ranks[-1:] + record.ranks[:1]):
            self._record = self._begin()
        self._enter("ranks").ranks.append(rank)

    def _take_row(self, number: int, text: str) -> bool:
        record = self._record
        inside = record.layout is not None and STAGES["header"] <= record.stage <= STAGES["rows"]
        if looks_like_row(text):
            row = parse_row(record.layout if inside else None, text, number)
            if isinstance(row, str):
                known = inside or record.stage == STAGES["rows"] or is_strongly_row(text)
                if known:
                    self._enter("rows").reject(number, text, row)
                return known
            self._enter("rows").keep_row(row)
            self._last_row, self._width_before, self._width = text, self._width, len(text.rstrip())
            return True
        if inside and looks_like_tail(text):
            self._enter("rows").reject(number, text, "the second part of a row that was torn")
            return True
        return False

    def _take_log(self, number: int, text: str) -> None:
        """A line of the library's log, perhaps with a piece of a row in it."""
        record = self._record
        if looks_like_row(text) or looks_like_tail(text):
            self._enter("rows").reject(number, text, "NCCL's own log was written into this row")
        if "NCCL WARN" in text:
            record.warn(number, text)
        network = _NETWORK.search(text) if "Using network" in text else None
        if network is not None:
            record.transport = network[1]
        ranks = _NRANKS.search(text) if "nranks" in text else None
        if ranks is not None:
            record.declared_ranks.setdefault("nranks in NCCL's log", int(ranks[1]))
        self._take_versions(text)

    def _take_other(self, number: int, text: str) -> None:
        record = self._record
        if is_elision(text):
            record.elide(number)
            return
        if _FAILURE.search(text) is not None:
            record.fail(number, text)
            return
        self._take_versions(text)
        program = program_in(text) if "_perf" in text else None
        if program is not None and _is_command(text):
            self._take_command(text, program, "the command")
        elif (
            " -t " in text
            and (match := re.search(r"\bnccl\S{0,60} .{0,120}?-t +(\w{4,20})\b", text))
            and match[1] in OPERATIONS
        ):
            self._take_command(text, match[1], "the command")
        tasks = _TASKS.search(text) if "-n" in text or "SLURM_N" in text else None
        tasks = tasks or (_LAUNCHED.search(text.split("_perf")[0]) if " -n" in text else None)
        if tasks is not None:
            self._aside().declared_ranks.setdefault("number of tasks at launch", int(tasks[1]))

    def _take_command(self, text: str, program: str, by: str) -> None:
        record = self._record
        if record.stage > STAGES["command"]:
            self._record = record = self._begin()
        record.stage = STAGES["command"]
        record.program, record.named_by, record.command = program, by, text.strip()[:400]
        record.settings.update(_SWITCHES.findall(text))

    def _take_versions(self, text: str) -> None:
        if "version" not in text and "Hostname" not in text:
            return
        for name, pattern in _VERSIONS:
            match = pattern.search(text)
            if match is not None:
                record = self._aside()
                if "+" in match[1] or name not in record.versions:
                    record.versions[name] = match[1]
                if name in ("rccl", "hip", "rocm"):
                    record.library = "rccl"


def _is_command(text: str) -> bool:
    """Whether a line that names a program starts it, rather than speaks of it."""
    start = text.strip()
    if re.search(r"\s--?[A-Za-z]", text) or start[:1] in "./$+" or "=" in start.split("_perf")[0]:
        return True
    return _PROMPT.match(start) is not None


def _version_of(code: int) -> str:
    """`2.29.3` for 22903, `2.7.8` for 2708. Source: NCCL_VERSION in nccl.h, which changed with 2.9."""
    if code < 10_000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10_000}.{code // 100 % 100}.{code % 100}"
