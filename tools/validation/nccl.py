"""Collectives inside one node against measured latencies of nccl-tests, by system.

The shipped terms (`physics/collective_fits.py`) were fitted to the 16-bit rows of one file per system (FITTED); all
other files of a system are scored with them: other runs and other NCCL versions. `fit_terms` is how they were made, and
refits without one rank count or without one system's file for the splits that no second file allows.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from clusterwright.physics.ceilings import COLLECTIVES, Collective
from clusterwright.physics.collective_fits import find_terms, interpolate, most_ranks
from clusterwright.physics.collectives import (
    CollectiveTerms,
    bus_bandwidth_gbytes_s,
    bus_factor,
    collective_us,
)
from clusterwright.physics.hierarchies import Fabric, copies_between, expert_exchange_us, over_nodes_us
from clusterwright.physics.published import PUBLISHED, Published
from validation.scoring import Row, Scored, mean_error

#: File that the shipped terms of a system were fitted to, by catalogue name of the GPU.
FITTED: Final[dict[str, str]] = {
    "a100-sxm-80": "a100_sxm_nccl_2.27.3",
    "h100-sxm-80": "h100_sxm_nccl_2.27.3",
    "h200-sxm-141": "h200_sxm_nccl_2.26.2",
    "b200-sxm-180": "b200_sxm_nccl_2.27.3",
    "b300-sxm-270": "b300_sxm_nccl_2.27",
    "gb200-186": "gb200_nccl_2.23",
    "gb300-279": "gb300_nccl_2.27",
    "l40s": "l40s_nccl_2.27.3",
    "rtx-pro-6000-server": "rtx_pro_6000_server_nccl_2.29.2",
}
#: Mean error that a system may have.
BAR: Final = 0.08
#: Error of one row that still counts as inside: twice the bar.
INSIDE: Final = 0.16
_BAND: Final = f"{INSIDE:.0%}".replace("%", " %")
_NO_NVLINK: Final = ("l40s", "rtx-pro-6000-server")
#: Errors below this weigh alike in a fit: the spread of repeated runs of one file.
_NOISE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Measured:
    """One latency: message of `size_bytes` (total buffer of nccl-tests) over `ranks` GPUs."""

    file: str
    operation: Collective
    ranks: int
    size_bytes: int
    integer: bool
    time_us: float

    @property
    def id(self) -> str:
        """Name of the row."""
        return f"{self.file}/{self.operation}/{self.ranks}/{self.size_bytes}{'/int8' if self.integer else ''}"

    @property
    def added(self) -> bool:
        """Whether integers are added up, which no NVSwitch does."""
        return self.integer and self.operation in ("all-reduce", "reduce-scatter")


#: Times in µs by (file, operation, ranks, sums of integers) and size.
Series = Mapping[tuple[str, str, int, bool], Mapping[int, list[float]]]


def read_rows(path: Path) -> list[Measured]:
    """Rows of one file. The column `message_size` counts elements: two bytes each for `half`."""
    names: dict[str, Collective] = {c.replace("-", "_"): c for c in COLLECTIVES} | {"alltoall": "all-to-all"}
    with path.open() as lines:
        return [
            Measured(
                path.stem,
                names[row["op_name"]],
                int(row["num_gpus"]),
                int(row["message_size"]) * (1 if row["nccl_dtype"] == "int8" else 2),
                row["nccl_dtype"] == "int8",
                float(row["latency"]) * 1e3,
            )
            for row in csv.DictReader(lines)
        ]


def fit_terms(rows: Iterable[Measured]) -> CollectiveTerms:
    """The three terms with the least sum of relative errors over rows of one operation and rank count.

    None is negative. Reweighted least squares towards the least absolute relative error; rounded as they are printed.
    """
    chosen = list(rows)
    size = np.array([r.size_bytes for r in chosen], float)
    factor = bus_factor(chosen[0].operation, chosen[0].ranks)
    basis = np.stack([np.ones_like(size), size * factor / 1e3, np.sqrt(size)], axis=1)
    time = np.array([r.time_us for r in chosen])
    weight, terms = np.ones(len(time)), np.zeros(3)
    for _ in range(60):
        scale = np.sqrt(weight) / time
        terms = _least_squares(basis * scale[:, None], time * scale)
        weight = 1 / np.maximum(np.abs(basis @ terms / time - 1), _NOISE)
    latency, byte, root = (float(t) for t in terms)
    return CollectiveTerms(*(float(f"{t:.4g}") for t in (latency, 1 / byte, root)))


def _least_squares(basis: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Least squares without negative coefficients, by trying every set of columns."""
    columns = basis.shape[1]
    best, least = np.zeros(columns), math.inf
    for count in range(1, columns + 1):
        for chosen in combinations(range(columns), count):
            found = np.linalg.lstsq(basis[:, chosen], target, rcond=None)[0]
            rest = float(((basis[:, chosen] @ found - target) ** 2).sum())
            if (found >= 0).all() and rest < least:
                best, least = np.zeros(columns), rest
                best[list(chosen)] = found
    return best


def _predict(row: Measured, terms: CollectiveTerms | None) -> float | None:
    return None if terms is None else collective_us(row.operation, row.size_bytes, row.ranks, terms)


def _row(row: Measured, gpu: str, predicted: float | None, rows: Series, *, left_out: bool = False) -> Row:
    inside = predicted is not None and abs(predicted / row.time_us - 1) <= INSIDE
    reason = "" if inside or predicted is None else reason_of(row, gpu, predicted, rows, left_out=left_out)
    return Row(row.id, gpu, predicted, row.time_us, inside, family=row.operation, reason=reason)


def _files(folder: Path, gpu: str) -> list[Path]:
    stem = FITTED[gpu].rpartition("_")[0]
    return sorted(p for p in folder.glob(f"{stem}_*.csv"))


def series_of(rows: Iterable[Measured]) -> Series:
    """Times by file, operation, ranks, sums of integers or not, and size."""
    found: dict[tuple[str, str, int, bool], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in rows:
        found[r.file, r.operation, r.ranks, r.added][r.size_bytes].append(r.time_us)
    return found


def reason_of(row: Measured, gpu: str, predicted: float, rows: Series, *, left_out: bool = False) -> str:
    """What the files themselves show about a message that is off: a repeat, its neighbours, the fitted file."""
    own = rows[row.file, row.operation, row.ranks, row.added]
    repeats = [t for t in own[row.size_bytes] if abs(t / row.time_us - 1) > INSIDE]
    if repeats:
        return f"another run in the file took {_us(repeats[0])}"
    half, twice = own.get(row.size_bytes // 2), own.get(row.size_bytes * 2)
    if half and twice:
        between = math.sqrt(fmean(half) * fmean(twice))
        off = row.time_us / between - 1
        if abs(off) > INSIDE and (off > 0) == (row.time_us > predicted):
            return f"off its series: half the size took {_us(fmean(half))}, twice {_us(fmean(twice))}"
    if left_out and row.ranks == 2 and row.operation in ("all-reduce", "reduce-scatter"):
        return "two GPUs exchange directly; the others were measured with the switch adding up"
    fitted = rows[FITTED[gpu], row.operation, row.ranks, row.added].get(row.size_bytes)
    if fitted and row.file != FITTED[gpu] and abs(fmean(fitted) / row.time_us - 1) > INSIDE:
        return f"another release: the fitted file has {_us(fmean(fitted))}"
    if gpu in _NO_NVLINK:
        return "no NVLink: what paths over PCIe and sockets share changes with size"
    if left_out:
        return "latency and rate do not grow evenly with the number of GPUs"
    return "three terms do not follow the library's change of protocol at this size"


def _us(time: float) -> str:
    return f"{time:,.0f} µs" if time >= 1000 else f"{time:.4g} µs"


def _scored(name: str, split: str, rows: Sequence[Row], notes: tuple[str, ...] = (), bars: bool = True) -> Scored:
    by_gpu = {gpu: [r for r in rows if r.group == gpu] for gpu in FITTED}
    found = tuple((f"mean error, {gpu}", mean_error(rs), BAR) for gpu, rs in by_gpu.items() if rs)
    return Scored(name, _BAND, split, tuple(rows), found if bars else (), notes, "µs")


def score(cases: Path) -> list[Scored]:
    """Scores of the shipped terms on files not fitted, on the fitted ones, without a rank count, and over nodes."""
    folder = cases / "nccl"
    files = {gpu: {p.stem: read_rows(p) for p in _files(folder, gpu)} for gpu in FITTED}
    every = series_of(r for named in files.values() for rows in named.values() for r in rows)
    other, own, integer = [], [], []
    for gpu, named in files.items():
        for stem, rows in named.items():
            for r in rows:
                terms = find_terms(gpu, r.operation, r.ranks, switch_adds=not r.added)
                found = _row(r, gpu, _predict(r, terms), every)
                if r.added and stem == FITTED[gpu]:
                    continue  # what the terms without the switch were fitted to
                (integer if r.added else own if stem == FITTED[gpu] else other).append(found)
    return [
        _scored("collectives in a node", "fitted on one file of a system, scored on its other files", other),
        _scored("collectives, fitted files", "in sample: the file that the terms were fitted to", own),
        _scored("collectives, rank count left out", "fitted on the file's other rank counts", _ranks_out(files, every)),
        _scored("sums of integers", "fitted on one file of a system, scored on its other files", integer),
        one_node(),
        over_nodes(),
        expert_exchanges(),
    ]


def _ranks_out(files: dict[str, dict[str, list[Measured]]], every: Series) -> list[Row]:
    """Every rank count predicted from terms of the others; systems with three rank counts behind one switch."""
    found = []
    for gpu in ("a100-sxm-80", "h100-sxm-80", "h200-sxm-141", "b200-sxm-180", "b300-sxm-270"):
        rows = [r for r in files[gpu][FITTED[gpu]] if not r.added]
        for operation in COLLECTIVES:
            these = [r for r in rows if r.operation == operation]
            counts = sorted({r.ranks for r in these})
            for left in counts:
                kept = {n: fit_terms(r for r in these if r.ranks == n and not r.integer) for n in counts if n != left}
                terms = interpolate(kept, left)
                found += [_row(r, gpu, _predict(r, terms), every, left_out=True) for r in these if r.ranks == left]
    return found


def one_node() -> Scored:
    """Published bus bandwidths of long messages inside one node, with and without the switch adding up."""
    rows = []
    for p in PUBLISHED:
        terms = find_terms(p.gpus[0], p.operation, p.domain_gpus, switch_adds=p.nvls is not False)
        if p.domains > 1 or terms is None or p.domain_gpus > most_ranks(p.gpus[0]):
            continue
        time = collective_us(p.operation, p.size_bytes, p.domain_gpus, terms)
        ours = bus_bandwidth_gbytes_s(p.size_bytes, time, p.domain_gpus, p.operation)
        close = abs(ours / p.busbw - 1) <= INSIDE
        rows.append(Row(f"{p.system}, {p.operation}", "one node", ours, p.busbw, close, reason=p.source))
    bars = (("mean error", fmean(r.error for r in rows), BAR),)
    return Scored("published results of one node", _BAND, "not fitted", tuple(rows), bars, (), "GB/s")


def over_nodes() -> Scored:
    """Published bus bandwidths over several nodes against the model of `physics/hierarchies.py`."""
    rows = [_published(p) for p in PUBLISHED if p.domains > 1]
    bars = (("mean error", fmean(r.error for r in rows), 0.20),)
    note = "two constants (share of a NIC's rate in rings and in all-to-all) were chosen with these rows in view"
    return Scored("collectives over nodes", _BAND, "in sample: published results", tuple(rows), bars, (note,), "GB/s")


def _published(p: Published) -> Row:
    assert p.nic_gbytes_s is not None
    gpu = p.gpus[0]
    inside = find_terms(gpu, p.operation, p.domain_gpus)
    assert inside is not None
    fabric = Fabric(p.domain_gpus, p.domains, p.nic_gbytes_s, in_network=p.sharp)
    time = over_nodes_us(p.operation, p.size_bytes, fabric, inside).time_us
    ranks = p.domain_gpus * p.domains
    ours = p.size_bytes * bus_factor(p.operation, ranks) / (time * 1e3)
    close = abs(ours / p.busbw - 1) <= INSIDE
    name = f"{gpu} {p.domain_gpus}×{p.domains} {p.operation} at {p.nic_gbytes_s:g} GB/s"
    why = "" if close else f"{p.domains} domains: every NIC is taken as busy all the time ({p.source})"
    return Row(name, "over nodes", ours, p.busbw, close, reason=why)


#: Expert-parallel ranks, GB/s of dispatch and combine per GPU; nodes of 8 H800 (160 GB/s into NVLink) with 50 GB/s per
#: GPU, 4,096 tokens of 7,168 per GPU, 8 experts of at most 4 nodes, dispatch in fp8, combine in bf16.
_DEEP_EP: Final = ((16, 43, 43), (32, 58, 57), (64, 51, 50))
_DEEP_EP_SOURCE: Final = "deepseek-ai/DeepEP, README, normal kernels, 2025-04"


def expert_exchanges() -> Scored:
    """Published rates of DeepEP over nodes; it counts every copy to a node, the own one too."""
    rows = []
    for ranks, dispatch, combine in _DEEP_EP:
        nodes = ranks // 8
        fabric = Fabric(8, nodes, 50)
        counted = copies_between(8, nodes, 4) * nodes / (nodes - 1)
        for way, element, measured in (("dispatch", 1, dispatch), ("combine", 2, combine)):
            time = expert_exchange_us(4096, 7168, element, 8, fabric, 160, 0, most_domains=4)
            ours = 4096 * 7168 * element * counted / (time * 1e3)
            close = abs(ours / measured - 1) <= INSIDE
            rows.append(Row(f"{way} over {ranks}", "DeepEP", ours, measured, close, reason=_DEEP_EP_SOURCE))
    bars = (("mean error", fmean(r.error for r in rows), BAR),)
    return Scored("expert exchange over nodes", _BAND, "not fitted", tuple(rows), bars, (), "GB/s")
