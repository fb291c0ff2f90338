"""Plain `nvidia-smi`: the table of GPUs, of MIG devices and of processes, drivers 418 to 610, Linux and Windows.

A cell is read by the heading that stands over it; a layout whose headings are not known is refused. `Off` under
Volatile Uncorr. ECC means that ECC is off, `On` that MIG mode hides the counter: neither is a count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.nvidia.boxes import Box, Row, boxes_of
from clusterwright.readers.nvidia.cells import as_amount, as_count, as_flag, as_text, in_unit
from clusterwright.readers.nvidia.devices import is_command, is_elision, iso_time, labels, runs_of_hosts
from clusterwright.readers.nvidia.failures import failure_score, note_failure, refuse_failure
from clusterwright.readers.nvidia.findings import Faults
from clusterwright.readers.nvidia.headless_tables import ROW, with_head
from clusterwright.readers.nvidia.table_parts import observe_mig_devices, observe_processes
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import unreadable

_BANNER: Final = re.compile(r"\|\s*NVIDIA-SMI\s+(?P<smi>\S+)\s+(?P<rest>.*)\|")
_VERSIONS: Final = {
    "driver": re.compile(r"(?:Driver|KMD) Version:\s*(\S+)"), "cuda": re.compile(r"CUDA (?:UMD )?Version:\s*(\S+)"),
}  # fmt: skip
_HEADING: Final = re.compile(
    r"GPU Name(?: (?P<third>Persistence-M|TCC/WDDM|Driver-Model))? Bus-Id Disp\.A Volatile Uncorr\. ECC "
    r"Fan Temp Perf Pwr:Usage/Cap Memory-Usage GPU-Util Compute M\.(?P<mig> MIG M\.)?"
)
_PAIR: Final = re.compile(r"(?P<used>\S+(?: \S+)?)\s*/\s*(?P<cap>\S+(?: \S+)?)")

_FIRST: Final = re.compile(
    r"(?P<fan>\S+)\s+(?P<temp>\S+)\s+(?P<perf>\S+)\s+(?P<power>[\d.]+W|N/A|ERR!|Off|Unknown Error)\s*/\s*"
    r"(?P<cap>[\d.]+W|N/A|ERR!|Off|Unknown Error)"
)


def recognise(head: Head) -> int:
    """Sure by a banner at the top, half sure by one in the midst of other text; by headings; by a failure."""
    if re.search(r"^[ \t]*\| NVIDIA-SMI ", head.text, re.MULTILINE):
        top = [line for line in head.text.split("\n", 40)[:40] if line.strip()][:8]
        if not re.search(r"\|\s*GPU\s+Name\s|\|={5}", head.text):
            return 60
        return 100 if any(line.lstrip().startswith("| NVIDIA-SMI ") for line in top) else 60
    if re.search(r"\|\s*GPU\s+Name\s.{0,40}\|\s*Bus-Id\s", head.text):
        return 95
    if re.search(r"\| MIG devices: ", head.text) or re.search(r"\| Processes: [^\n]{0,100}GPU Memory", head.text):
        return 75
    return 88 if ROW.search(head.text) else failure_score(head.text)


def read(source: Source) -> Sequence[Run]:
    """One run for each banner of each host."""
    return runs_of_hosts(source, _read_host)


def _read_host(lines: list[Line], node: str) -> list[Run]:
    starts = [n for n, line in enumerate(lines) if _BANNER.match(line.text.strip()[:400])]
    begins = [0, *(_stamp_before(lines, n) for n in starts[1:])]
    ends = [*begins[1:], len(lines)]
    return [_Table(lines[begin:end], node).read() for begin, end in zip(begins, ends, strict=True)]


def _stamp_before(lines: list[Line], banner: int) -> int:
    """Where the run of a banner begins: at its time, at most three lines before."""
    for n in range(banner - 1, max(-1, banner - 4), -1):
        if iso_time(lines[n].text) is not None:
            return n
    return banner - 1


class _Table:
    """The lines of one run."""

    def __init__(self, lines: list[Line], node: str) -> None:
        self._lines = lines
        self._node = node
        self._builder = RunBuilder("nvidia-smi")
        if node:
            self._builder.condition("node", node)

    def read(self) -> Run:
        """Every table; Refused for an unknown layout and for an output without any."""
        builder = self._builder
        lines, headless = with_head(self._lines)
        if headless:
            builder.missing("headings of the table of GPUs")
        boxes, outside = boxes_of(lines)
        self._read_outside(outside)
        for line in self._lines:
            banner = _BANNER.match(line.text.strip()[:400])
            if banner is not None:
                self._read_banner(banner)
        gpus = [box for box in boxes if "Bus-Id" in box.heading or "Fan Temp" in box.heading]
        others = [box for box in boxes if box not in gpus]
        if not gpus and not any(box.ruled for box in others):
            refuse_failure(self._lines)
            if builder.bare:
                raise Refused("no table of GPUs", self._lines[0].number if self._lines else 0)
        for box in gpus:
            self._read_gpus(box)
        if not gpus:
            builder.missing("table of GPUs")
        self._read_others(others)
        self._say_idle(any("Processes:" in box.heading for box in others))
        Faults(builder).say()
        return builder.build()

    def _read_outside(self, lines: list[Line]) -> None:
        for line in lines:
            if (stamp := iso_time(line.text)) is not None:
                self._builder.condition("started", stamp)
            elif is_elision(line.text.strip("| ")):
                self._builder.missing("rows left out at an ellipsis")
            elif line.text.strip().startswith(("|", "+")):
                self._builder.reject(line.number, line.text, "a line of the table that is cut")
            elif not is_command(line.text):
                note_failure(self._builder, line, self._node)

    def _read_banner(self, banner: re.Match[str]) -> None:
        self._builder.version = banner["smi"]
        for name, form in _VERSIONS.items():
            if (match := form.search(banner["rest"])) is not None:
                self._builder.condition(name, as_text(match[1]))

    def _read_gpus(self, box: Box) -> None:
        heading = " ".join(" ".join(zip_columns(box)).split())
        form = _HEADING.fullmatch(heading)
        if form is None:
            raise Refused("unknown layout of the table of GPUs", box.title[0].number if box.title else 0, heading)
        height = 3 if form["mig"] else 2
        for row in box.rows:
            if any(is_elision(" ".join(cells).strip()) for cells in row.cells):
                self._builder.missing("rows left out at an ellipsis")
            elif len(row.cells) < height or any(len(cells) != 3 for cells in row.cells[:height]):
                self._builder.reject(row.number, row.lines[0].text, f"a GPU has {height} lines of 3 cells")
            else:
                self._read_gpu(row, form["third"] or "", mig=height == 3)
        if not box.ruled or not box.closed:
            self._builder.missing("end of the table of GPUs")
        if not box.rows:
            self._builder.missing("rows of GPUs")

    def _read_gpu(self, row: Row, third: str, *, mig: bool) -> None:
        first, second = row.cells[0], row.cells[1]
        words = first[0].split()
        bus = (first[1].split() or [""])[0]
        if len(words) < 2 or not words[0].isdigit():
            self._builder.reject(row.number, row.lines[0].text, "no GPU index")
            return
        state = words[-1] if third and len(words) > 2 else ""
        product = " ".join(words[1:-1] if state else words[1:])
        subject = labels(gpu=words[0], pci=bus, node=self._node)
        line = row.number
        observe = self._builder.observe
        observe("gpu", as_text(product), subject, line)
        if product.endswith("..."):
            self._builder.notice("name-cut", f"GPU {words[0]}: the table cuts the product name: {product}", Weight.INFO)
        if product.lower().startswith(("err!", "unknown error")):
            self._builder.notice("gpu-error", f"GPU {words[0]}: the driver gives an error in place of its values",
                                 Weight.ERROR, line)  # fmt: skip
        if state:
            windows = third != "Persistence-M"
            observe("driver_model" if windows else "persistence_mode",
                    as_text(state) if windows else as_flag(state), subject, line)  # fmt: skip
        ecc, hidden = _ecc(first[2])
        observe("ecc_uncorrected", ecc, (*subject, ("scope", "volatile")), line)
        if hidden == "off":
            observe("ecc_mode", False, subject, line)
        self._read_second(second, subject, row.lines[1].number)
        if mig:
            observe("mig_mode", as_flag(row.cells[2][2]), subject, row.lines[2].number)

    def _read_second(self, cells: list[str], subject: Labels, line: int) -> None:
        observe = self._builder.observe
        state = _FIRST.fullmatch(cells[0])
        if state is None:
            self._builder.reject(line, " | ".join(cells), "no fan, temperature, state and power")
        else:
            observe("fan_speed", as_amount(_spaced(state["fan"])), subject, line)
            observe("temperature", as_amount(_spaced(state["temp"])), subject, line)
            observe("performance_state", as_text(state["perf"]), subject, line)
            observe("power", as_amount(_spaced(state["power"])), subject, line)
            observe("power_limit", as_amount(_spaced(state["cap"])), subject, line)
        used, total = pair_of(cells[1])
        observe("memory_used", used, subject, line)
        observe("memory_total", total, subject, line)
        util, _, mode = cells[2].partition(" ")
        observe("utilization", as_amount(_spaced(util)), (*subject, ("part", "gpu")), line)
        observe("compute_mode", as_text(mode), subject, line)

    def _read_others(self, boxes: list[Box]) -> None:
        seen = False
        for box in boxes:
            heading = box.heading
            if "MIG devices:" in heading:
                observe_mig_devices(self._builder, box, self._node)
            elif "Processes:" in heading:
                seen = True
                observe_processes(self._builder, box, self._node)
            elif box.rows:
                self._builder.reject(box.rows[0].number, box.rows[0].lines[0].text, "an unknown table")
        if not seen:
            self._builder.missing("table of processes")

    def _say_idle(self, shown: bool) -> None:
        """Utilization without any process that could cause it proves no work."""
        users = {dict(o.subject).get("gpu") for o in self._builder.observations if o.name == "process_memory"}
        for o in list(self._builder.observations):
            subject = dict(o.subject)
            if o.name != "utilization" or not isinstance(o.value, Quantity) or o.value.value < 0.05:
                continue
            if subject.get("gpu") not in users and "mig" not in subject:
                why = "no process on it is listed" if shown else "the table of processes is not there"
                said = f"GPU {subject.get('gpu')}: {o.value} busy, but {why}"
                self._builder.notice("utilization-without-process", said, Weight.INFO, o.line)


def zip_columns(box: Box) -> list[str]:
    """Heading cells with one space between words, without titles of a single cell."""
    return [" ".join(cell.split()) for cells in box.headings if len(cells) > 1 for cell in cells]


def pair_of(text: str) -> tuple[Value, Value]:
    """(used, total) of `16959MiB / 143771MiB`; both the same lack for `Not Supported`."""
    match = _PAIR.fullmatch(text.strip()) if len(text) < 100 else None
    if match is None:
        lack = as_text(text)
        lack = lack if isinstance(lack, NoValue) else unreadable(text, "not used / total")
        return lack, lack
    return in_unit("MiB")(_spaced(match["used"])), in_unit("MiB")(_spaced(match["cap"]))


def _spaced(text: str) -> str:
    """`84 C` of `84C`, so that number and unit are apart."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z%]+)", text.strip())
    return f"{match[1]} {match[2]}" if match else text


def _ecc(text: str) -> tuple[Value, str]:
    word = text.strip()
    if word.lower() == "off":
        return NoValue(Lack.ABSENT, word, "ECC is off"), "off"
    if word.lower() == "on":
        return NoValue(Lack.ABSENT, word, "MIG mode hides the counter"), "mig"
    return as_count(word), ""


READER: Final = Reader("nvidia-smi-table", "nvidia-smi: the table of GPUs, MIG devices and processes", recognise, read)
