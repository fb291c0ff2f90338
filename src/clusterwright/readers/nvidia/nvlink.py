"""`nvidia-smi nvlink`: status (-s), capabilities (-c), errors (-e), traffic (-gt), remote devices (-R, -p), -info.

A link that is `<inactive>` has no rate; that is not 0 GB/s. Traffic counters are no error counters. Lists that stop
early, or leave GPUs out between two indexes, are incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.nvidia.cells import as_amount, as_count, as_flag, as_pci, as_text
from clusterwright.readers.nvidia.devices import is_command, is_cut_by, is_elision, labels, runs_of_hosts
from clusterwright.readers.nvidia.failures import note_failure, refuse_failure
from clusterwright.readers.nvidia.fields import slug
from clusterwright.readers.nvidia.nvlink_findings import full_links, say_counts, say_inactive, say_traffic
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import unreadable

GPU: Final = re.compile(r"\s*GPU (?P<index>\d{1,4}): (?P<name>.{1,120}?) ?\(UUID: (?P<uuid>[\w-]{1,80})\)\s*")
#: As GPU, also where somebody left the UUID out or cut it.
_HEADING: Final = re.compile(
    r"\s*GPU (?P<index>\d{1,4}): (?P<name>.{1,120}?)(?: ?\(UUID: (?P<uuid>[\w.…*-]{1,80})\))?\s*"
)
_WHOLE: Final = re.compile(r"[\w-]+")
#: Ends of counters of 16 and 32 bits.
_FULL_COUNTERS: Final = (65_535.0, 4_294_967_295.0)
_LINK: Final = re.compile(r"\s*Link (?P<link>\d{1,3})(?:, Lane (?P<lane>\d{1,3}))?(?P<mark>[:,])\s*(?P<rest>.*)")
_REMOTE: Final = re.compile(r"Remote Device (?P<pci>[0-9A-Fa-f:.]+)(?:: Link (?P<link>\d+))?")
_NAMED_LINKS: Final = re.compile(
    r"^[ \t]*GPU \d{1,4}: \S.{1,80}\n[ \t]+Link \d+: (?:[\d.]+ GB/s|<inactive>|(?:Replay|Recovery|CRC) Errors: )",
    re.MULTILINE,
)
_MIG: Final = re.compile(r"\s*Nvlink queries are not supported for Devices in MIG mode.*", re.IGNORECASE)
_ALL_INACTIVE: Final = re.compile(
    r"\s*(?:NVML: )?Unable to retrieve NVLink information as all links are inActive.*", re.IGNORECASE
)
_BAD_EVENTS: Final = re.compile(r"(?:.*_)?errors|link_recovery_failed_events")


def recognise(head: Head) -> int:
    """By links under a GPU with its UUID; by the refusal of a GPU in MIG mode."""
    if not re.search(r"^[ \t]*GPU \d+: .{1,120}\(UUID: ", head.text, re.MULTILINE):
        return 90 if _NAMED_LINKS.search(head.text) else 0
    links = re.search(r"^[ \t]+Link \d+(?:, Lane \d+)?[:,] ", head.text, re.MULTILINE)
    other = re.search(
        r"^[ \t]*(?:NVML: Unable to retrieve NVLink|Nvlink queries are not|NVLE: )", head.text, re.MULTILINE
    )
    return 97 if links or other else 0


def read(source: Source) -> Sequence[Run]:
    """One run for each command of each host."""
    return runs_of_hosts(source, _read_host)


def _read_host(lines: list[Line], node: str) -> list[Run]:
    found = [_Listing(node).read(part) for part in _split(lines)]
    runs = [run for run in found if run.observations or run.notices or run.missing or run.rejected]
    if not runs:
        refuse_failure(lines)
        raise Refused("no GPU with links", lines[0].number if lines else 0)
    return runs


def _split(lines: list[Line]) -> list[list[Line]]:
    """Lines of each command: at a typed command, and where the GPUs begin again."""
    parts: list[list[Line]] = [[]]
    last = -1
    for line in lines:
        gpu = _HEADING.fullmatch(line.text[:400])
        if is_command(line.text) or (gpu is not None and int(gpu["index"]) <= last):
            parts.append([])
            last = -1
        if gpu is not None:
            last = int(gpu["index"])
        parts[-1].append(line)
    named = [part for part in parts if any(_HEADING.fullmatch(line.text[:400]) for line in part)]
    return [p for p in parts if p in named or any(_LINK.fullmatch(line.text[:400]) for line in p)] if named else []


class _Listing:
    """The output of one command."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._builder = RunBuilder("nvidia-smi nvlink")
        if node:
            self._builder.condition("node", node)
        self._subject: Labels = ()
        self._gpu = ""
        self._products: dict[str, str] = {}
        self._links: dict[str, set[int]] = {}
        self._states: dict[str, dict[int, bool]] = {}
        self._elided: set[str] = set()
        self._heading = ""
        self._told: set[str] = set()
        self._subjects: dict[str, Labels] = {}
        self._traffic: dict[str, float] = {}

    def read(self, lines: list[Line]) -> Run:
        """Every line, then what the lists as a whole say."""
        for line in lines:
            if line.text.strip():
                self._take(line)
        self._say_gaps()
        whole = {gpu: states for gpu, states in self._states.items() if gpu not in self._elided}
        active = {gpu: sum(states.values()) for gpu, states in whole.items()}
        listed = {gpu: len(states) for gpu, states in whole.items()}
        say_counts(self._builder, active, listed, self._products)
        say_traffic(self._builder, self._traffic)
        self._observe_counts()
        return self._builder.build()

    def _take(self, line: Line) -> None:
        builder = self._builder
        gpu = _HEADING.fullmatch(line.text[:400])
        link = _LINK.fullmatch(line.text[:400])
        if is_command(line.text):
            if is_cut_by(line.text):
                builder.missing(f"lines that {is_cut_by(line.text)} left out")
        elif gpu is not None:
            self._begin(gpu, line)
        elif link is not None and self._gpu:
            self._told.add(self._gpu)
            self._take_link(link, line)
        elif link is not None or line.text.lstrip().startswith("Links "):
            builder.reject(line.number, line.text, "a link whose GPU is not named" if link else "no line of the tool")
        elif is_elision(line.text):
            builder.missing(f"lines left out after GPU {self._gpu}" if self._gpu else "lines left out")
            self._elided.add(self._gpu)
        elif _MIG.fullmatch(line.text[:400]) and self._gpu:
            self._told.add(self._gpu)
            lack = NoValue(Lack.ABSENT, "not supported", "NVLink queries do not work in MIG mode")
            builder.observe("nvlink_state", lack, self._subject, line.number)
            builder.notice(
                "nvlink-unknown-in-mig", f"GPU {self._gpu} is in MIG mode: its links are unknown", Weight.INFO
            )
        elif _ALL_INACTIVE.fullmatch(line.text[:400]) and self._gpu:
            self._told.add(self._gpu)
            builder.observe("nvlink_state", "inactive", self._subject, line.number)
            builder.notice(
                "nvlink-all-inactive", f"GPU {self._gpu}: all NVLinks are inactive", Weight.WARNING, line.number
            )
        elif not note_failure(builder, line, self._node) and self._gpu and line.text[:1].isspace():
            self._take_detail(line)

    def _begin(self, gpu: re.Match[str], line: Line) -> None:
        self._gpu = gpu["index"]
        uuid = gpu["uuid"] or ""
        self._subject = labels(gpu=gpu["index"], uuid=uuid if _WHOLE.fullmatch(uuid) else "", node=self._node)
        self._products[self._gpu] = gpu["name"].strip()
        self._links[self._gpu] = set()
        self._subjects[self._gpu] = self._subject
        self._heading = ""
        self._builder.observe("gpu", as_text(gpu["name"]), self._subject, line.number)

    def _take_link(self, match: re.Match[str], line: Line) -> None:
        number, rest = int(match["link"]), match["rest"].strip()
        self._links[self._gpu].add(number)
        subject = (*self._subject, ("link", match["link"]), *((("lane", match["lane"]),) if match["lane"] else ()))
        observe = self._builder.observe
        remote = _REMOTE.fullmatch(rest)
        if remote is not None or isinstance(as_pci(rest), str):
            observe("nvlink_remote", as_pci(remote["pci"] if remote else rest), subject, line.number)
            if remote is not None and remote["link"]:
                observe("nvlink_remote_link", float(int(remote["link"][:6])), subject, line.number)
        elif ": " in rest or rest.endswith(":"):
            self._take_counter(rest, subject, line)
        elif rest.lower().strip("<>") in ("inactive", "disabled", "off"):
            self._states.setdefault(self._gpu, {})[number] = False
            observe("nvlink_state", "inactive", subject, line.number)
            observe("nvlink_rate", NoValue(Lack.ABSENT, rest, "the link is inactive"), subject, line.number)
        else:
            rate = as_amount(rest)
            if isinstance(rate, Quantity) and rate.powers == (("B", 1), ("s", -1)):
                self._states.setdefault(self._gpu, {})[number] = True
                observe("nvlink_state", "up", subject, line.number)
            elif isinstance(rate, Quantity):
                rate = unreadable(rest, "not a rate in bytes")
            if isinstance(rate, NoValue) and rate.lack is Lack.UNREADABLE:
                self._builder.reject(line.number, line.text, "neither a rate, nor a state, nor a counter")
            observe("nvlink_rate", rate, subject, line.number)

    def _take_counter(self, rest: str, subject: Labels, line: Line) -> None:
        label, _, text = rest.rpartition(":")
        name, text = slug(label), text.strip()
        value: Value = as_amount(text) if re.fullmatch(r"[\d.]+ [A-Za-z]+", text) else as_count(text)
        if text.lower() in ("true", "false"):
            value = as_flag(text)
        elif name.endswith("ber"):
            value = as_text(text)
        self._builder.observe(f"nvlink_{name}", value, subject, line.number)
        if isinstance(value, Quantity) and value.powers == (("B", 1),):
            self._traffic[self._gpu] = self._traffic.get(self._gpu, 0.0) + value.value
        if isinstance(value, float) and value > 0 and _BAD_EVENTS.fullmatch(name) and not name.startswith("fec_errors"):
            end = " (the end of the counter: at least as many)" if value in _FULL_COUNTERS else ""
            said = f"GPU {self._gpu} link {dict(subject)['link']}: {label.strip()} {value:.0f}{end}"
            self._builder.notice("nvlink-errors", said, Weight.WARNING, line.number)

    def _take_detail(self, line: Line) -> None:
        """Lines of -info: `NVLE: disabled`, `Firmware Version:` with parts below."""
        self._told.add(self._gpu)
        label, mark, text = line.text.strip().partition(":")
        if not mark:
            self._builder.reject(line.number, line.text, "not a line of this listing")
        elif not text.strip():
            self._heading = slug(label)
        elif self._heading == "firmware_version":
            subject = (*self._subject, ("part", label.strip()))
            self._builder.observe("nvlink_firmware", as_text(text), subject, line.number)
        else:
            self._builder.observe(f"nvlink_{slug(label)}", as_text(text), self._subject, line.number)

    def _say_gaps(self) -> None:
        """GPUs left out between two indexes, and lists of links that stop early or skip one."""
        indexes = sorted(int(gpu) for gpu in self._products)
        for before, after in pairwise(indexes):
            if after - before > 1 and self._elided:
                span = f"GPU {before + 1}" + (f" to {after - 1}" if after - before > 2 else "")
                self._builder.missing(span)
        for gpu in self._products if self._told else ():
            if gpu not in self._told:
                self._builder.missing(f"everything about GPU {gpu}")
        most = max((len(found) for found in self._links.values()), default=0)
        for gpu, found in self._links.items():
            product = self._products[gpu]
            full = full_links(product) or (12 if "PCIe" in product and "H100" in product else 0)
            if found and (len(found) < most or len(found) < full):
                self._elided.add(gpu)
                self._builder.missing(f"links of GPU {gpu} ({len(found)} of {max(most, full)} listed)")

    def _observe_counts(self) -> None:
        for gpu, states in self._states.items():
            subject = self._subjects[gpu]
            self._builder.observe("nvlinks_active", float(sum(states.values())), subject)
            self._builder.observe("nvlinks_listed", float(len(states)), subject)
            if gpu in self._elided and not all(states.values()):
                say_inactive(self._builder, gpu, len(states) - sum(states.values()), len(states))


READER: Final = Reader("nvidia-smi-nvlink", "nvidia-smi nvlink -s, -c, -e, -gt, -R, -p, -info", recognise, read)
