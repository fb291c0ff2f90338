"""One scrape of an exporter: its series, their duplicates, the GPUs that they name, the gaps between them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.model.observations import Labels, Lack, NoValue
from clusterwright.readers.dcgm.exposition import Comment, Sample
from clusterwright.readers.refusing import shorten
from clusterwright.readers.values import names_a_device

#: Most series that one scrape keeps; a node with 8 GPUs exports about 300.
MOST_SERIES: Final = 100_000
#: Most bytes, roughly, that the names and label sets of one scrape may need.
_MOST_BYTES: Final = 64 * 1024 * 1024
#: Most metrics whose HELP, TYPE and UNIT are kept.
_MOST_DECLARED: Final = 10_000
_LONGEST_NAME: Final = 200
_BYTES_OF_A_SERIES: Final = 300
_BYTES_OF_A_LABEL: Final = 200
_LABELS: Final = {
    "UUID": "uuid", "uuid": "uuid", "Hostname": "node", "hostname": "node", "pod_name": "pod",
    "container_name": "container", "pod_namespace": "namespace",
}  # fmt: skip
_NOT_SUBJECT: Final = frozenset({"modelName", "device", "DCGM_FI_DRIVER_VERSION", "pod_uid"})
_POD_HOST: Final = re.compile(
    r"(?:[a-z0-9-]*dcgm-exporter|[a-z0-9-]*gpu-metrics-exporter)-[a-z0-9]{5,10}(?:-[a-z0-9]{5})?"
)

SeriesKey = tuple[str, Labels]


@dataclass(slots=True)
class Row:
    """The samples of one series."""

    value: str
    timestamp: str
    line: int
    repeats: int = 0
    other: str = ""
    history: int = 0
    elided: bool = False


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as labels name it; empty where they do not."""

    index: str
    uuid: str
    pci: str
    node: str
    product: str
    instance: str = ""


class Interned:
    """Label sets, each kept once, with what they say; a set that would need too much memory is not kept."""

    def __init__(self) -> None:
        self._sets: dict[Labels, Labels] = {}
        self._gpus: dict[Labels, Gpu | None] = {}
        self._bytes = 0

    def keep(self, name: str, labels: Labels) -> Labels | None:
        """The labels for a new series of this name, None when there is no room for it."""
        known = self._sets.get(labels)
        needs = _BYTES_OF_A_SERIES + len(name)
        if known is None:
            needs += sum(_BYTES_OF_A_LABEL + len(key) + len(value) for key, value in labels)
        if self._bytes + needs > _MOST_BYTES:
            return None
        self._bytes += needs
        if known is None:
            self._sets[labels] = known = labels
        return known

    def gpu(self, labels: Labels) -> Gpu | None:
        """The GPU that labels name, None when they name none."""
        if labels not in self._gpus:
            self._gpus[labels] = gpu_of(labels)
        return self._gpus[labels]


@dataclass
class Scrape:
    """A scrape that grows line by line."""

    series: dict[SeriesKey, Row] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    first_declared: str = ""
    first_series: SeriesKey | None = None
    first_line: int = 0
    left_out: int = 0
    interned: Interned = field(default_factory=Interned)

    def begins_again(self, key: SeriesKey) -> bool:
        """Whether this series says that a new scrape begins: it is the first one, and others came between."""
        return key == self.first_series and len(self.series) > 1

    def add(self, sample: Sample, line: int) -> None:
        """Keep a sample; the first value of a duplicate stays, the last of a series with timestamps."""
        key = (sample.name, sample.labels)
        row = self.series.get(key)
        if row is None:
            labels = self.interned.keep(sample.name, sample.labels) if len(self.series) < MOST_SERIES else None
            if labels is None:
                self.left_out += 1
                return
            key = (sample.name, labels)
            if self.first_series is None:
                self.first_series, self.first_line = key, line
            self.series[key] = Row(sample.value, sample.timestamp, line, elided=sample.elided)
        elif sample.timestamp and sample.timestamp != row.timestamp:
            row.history += 1
            row.value, row.timestamp, row.line = sample.value, sample.timestamp, line
        else:
            row.repeats += 1
            row.other = row.other or (sample.value if sample.value != row.value else "")

    def declare(self, comment: Comment) -> None:
        """Keep what HELP, TYPE or UNIT says of a metric, the first of each."""
        self.first_declared = self.first_declared or comment.name
        kept = {"HELP": self.helps, "TYPE": self.types, "UNIT": self.units}[comment.kind]
        if len(kept) < _MOST_DECLARED:
            kept.setdefault(sys.intern(comment.name[:_LONGEST_NAME]), shorten(comment.text, 300))

    def gpu(self, labels: Labels) -> Gpu | None:
        """The GPU that labels of this scrape name, None when they name none."""
        return self.interned.gpu(labels)

    def names(self) -> dict[str, None]:
        """Names of the metrics, in order."""
        return {name: None for name, _ in self.series}


def is_pod_name(host: str) -> bool:
    """Whether the Hostname label holds the name of the exporter's pod and not of the node."""
    return _POD_HOST.fullmatch(host) is not None


def subject_of(labels: Labels) -> Labels:
    """Labels as a subject: known ones by their common names, without those that only repeat the GPU's description."""
    subject: list[tuple[str, str]] = []
    for key, value in labels:
        if key in _NOT_SUBJECT or not value or (key in ("UUID", "uuid") and not names_a_device(value)):
            continue
        if key == "pci_bus_id":
            subject.append(("pci", _address(value)))
        elif key in ("Hostname", "hostname") and is_pod_name(value):
            subject.append(("exporter", value))
        else:
            subject.append((_LABELS.get(key, key), value))
    return tuple(subject)


def gpu_of(labels: Labels) -> Gpu | None:
    """The GPU that labels name, None when they name none."""
    found = dict(labels)
    uuid = found.get("UUID", "") or found.get("uuid", "")
    uuid = uuid if names_a_device(uuid) else ""
    index = found.get("gpu", "")
    if not index and not uuid.startswith("GPU-"):
        return None
    host = found.get("Hostname", "") or found.get("hostname", "")
    return Gpu(
        index=index,
        uuid=uuid,
        pci=_address(found.get("pci_bus_id", "")),
        node="" if is_pod_name(host) else host,
        product=found.get("modelName", ""),
        instance=found.get("GPU_I_ID", ""),
    )


def gpus_of(scrape: Scrape) -> list[Gpu]:
    """Every physical GPU once, in order; rows with labels left out count for the GPU with their index."""
    known: dict[tuple[str, str], Gpu] = {}
    indices: set[str] = set()
    for _, labels in scrape.series:
        gpu = scrape.gpu(labels)
        if gpu is not None and gpu.uuid:
            known.setdefault((gpu.node, gpu.uuid), gpu)
            indices.add(gpu.index)
    for _, labels in scrape.series:
        gpu = scrape.gpu(labels)
        if gpu is not None and not gpu.uuid and gpu.index not in indices:
            known.setdefault((gpu.node, f"index {gpu.index}"), gpu)
    return list(known.values())


def gaps_of(scrape: Scrape, gpus: list[Gpu]) -> dict[str, list[Gpu]]:
    """Device metrics that most GPUs have → the GPUs without them.

    Only fields of the device (DCGM_FI_DEV_, DCGM_FI_PROF_): counters of the exporter itself appear with an event.
    A metric that fewer than half of the GPUs have belongs to some product or partition and is no gap.
    """
    seen: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for name, labels in scrape.series:
        gpu = scrape.gpu(labels)
        if gpu is not None and name.startswith(("DCGM_FI_DEV_", "DCGM_FI_PROF_")) and not gpu.instance:
            seen.setdefault(name, set()).update((f"{gpu.node} {gpu.uuid}", f"index {gpu.index}"))
            counts[name] += 1
    indices = Counter(gpu.index for gpu in gpus)
    gaps: dict[str, list[Gpu]] = {}
    for name, ids in seen.items():
        if 2 * counts[name] < len(gpus):
            continue
        absent = [
            g
            for g in gpus
            if f"{g.node} {g.uuid}" not in ids and not (f"index {g.index}" in ids and indices[g.index] == 1)
        ]
        if absent and 2 * len(absent) <= len(gpus):
            gaps[name] = absent
    return gaps


def absent_marks(values: dict[SeriesKey, object]) -> Counter[tuple[str, str]]:
    """(metric, what it means) → how many series hold a mark for no value."""
    counts: Counter[tuple[str, str]] = Counter()
    for (name, _), value in values.items():
        if isinstance(value, NoValue) and value.lack is Lack.ABSENT and value.why and value.text:
            counts[(name, value.why)] += 1
    return counts


def moment_of(timestamp: str) -> str:
    """A timestamp as ISO text: milliseconds, or seconds where it has a fraction (OpenMetrics); "" when it is none."""
    try:
        seconds = float(timestamp) if "." in timestamp else int(timestamp) / 1000
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _address(text: str) -> str:
    try:
        return pci_address(text)
    except ValueError:
        return text
