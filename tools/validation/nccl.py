"""Collectives inside one node against measured latencies of nccl-tests, by system.

The shipped laws (`physics/collective_fits.py`) were fitted to one file per system (`nccl_fitting`); all other files of
a system are scored with them: other runs, most of them named after another NCCL version. For what no second file
allows, the laws are fitted again without one rank count of their file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Final

from clusterwright.physics.ceilings import COLLECTIVES
from clusterwright.physics.collective_fits import SPREADS, find_terms, most_ranks
from clusterwright.physics.collectives import (
    CollectiveTerms,
    bus_bandwidth_gbytes_s,
    bus_factor,
    collective_us,
)
from clusterwright.physics.hierarchies import (
    ALL_TO_ALL_SHARE,
    RING_SHARE,
    Fabric,
    copies_between,
    expert_exchange_us,
    over_nodes_us,
)
from clusterwright.physics.published import PUBLISHED, Published
from validation.nccl_fitting import FITTED, NO_NVLINK, Measured, fit_law, in_switch, read_rows, rows_of_law
from validation.scoring import Row, Scored, mean_error

#: Mean error that a system may have.
BAR: Final = 0.08
#: The same of published results over nodes.
_NODES_BAR: Final = 0.20
#: Error of one row that still counts as inside: twice the bar.
INSIDE: Final = 0.16
_BAND: Final = f"{INSIDE:.0%}".replace("%", " %")
#: Times in µs by (file, operation, ranks, sums of integers) and size.
Series = Mapping[tuple[str, str, int, bool], Mapping[int, list[float]]]


def _row(row: Measured, gpu: str, terms: CollectiveTerms | None, rows: Series, *, left_out: bool = False) -> Row:
    if terms is None:
        return Row(row.id, gpu, None, row.time_us, False, family=row.operation)
    predicted = collective_us(row.operation, row.size_bytes, row.ranks, terms)
    inside = _inside(predicted, row)
    reason = "" if inside else reason_of(row, gpu, terms, rows, left_out=left_out)
    return Row(row.id, gpu, predicted, row.time_us, inside, family=row.operation, reason=reason)


def _inside(time_us: float, row: Measured) -> bool:
    return abs(time_us / row.time_us - 1) <= INSIDE


def _other_protocol_us(row: Measured, terms: CollectiveTerms) -> float:
    """What the protocol gives that is not the one of the row's size; infinite far from the change and without one."""
    if terms.short is None or abs(math.log2(row.size_bytes / terms.short_below_bytes)) > 2:
        return math.inf
    other = replace(terms, short=None) if row.size_bytes < terms.short_below_bytes else terms.short
    return collective_us(row.operation, row.size_bytes, row.ranks, other)


def _files(folder: Path, gpu: str) -> list[Path]:
    stem = FITTED[gpu].rpartition("_")[0]
    return sorted(p for p in folder.glob(f"{stem}_*.csv"))


def series_of(rows: Iterable[Measured]) -> Series:
    """Times by file, operation, ranks, sums of integers or not, and size."""
    found: dict[tuple[str, str, int, bool], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in rows:
        found[r.file, r.operation, r.ranks, r.added][r.size_bytes].append(r.time_us)
    return found


def reason_of(row: Measured, gpu: str, terms: CollectiveTerms, rows: Series, *, left_out: bool = False) -> str:
    """What the files themselves show about a message that is off: a repeat, its neighbours, the fitted file."""
    own = rows[row.file, row.operation, row.ranks, row.added]
    repeats = [t for t in own[row.size_bytes] if abs(t / row.time_us - 1) > INSIDE]
    if repeats:
        return f"another run in the file took {_us(repeats[0])}"
    if _inside(_other_protocol_us(row, terms), row):
        return "the library changes protocol at another size here"
    predicted = collective_us(row.operation, row.size_bytes, row.ranks, terms)
    half, twice = own.get(row.size_bytes // 2), own.get(row.size_bytes * 2)
    if half and twice:
        between = math.sqrt(fmean(half) * fmean(twice))
        off = row.time_us / between - 1
        if abs(off) > INSIDE and (off > 0) == (row.time_us > predicted):
            return f"off its series: half the size took {_us(fmean(half))}, twice {_us(fmean(twice))}"
    if left_out and in_switch(gpu, row):
        return "added up in the switch; fewer GPUs do not show what that gains"
    fitted = rows[FITTED[gpu], row.operation, row.ranks, row.added].get(row.size_bytes)
    if fitted and row.file != FITTED[gpu] and abs(fmean(fitted) / row.time_us - 1) > INSIDE:
        return f"another run: the fitted file has {_us(fmean(fitted))}"
    if gpu in NO_NVLINK:
        return "no NVLink: what paths over PCIe and sockets share changes with size"
    if left_out:
        return "latency and rate do not grow evenly with the number of GPUs"
    return "two protocols of three terms each do not follow the library at this size"


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
    found = defaultdict[tuple[bool, bool], list[Row]](list)
    for gpu, named in files.items():
        for stem, rows in named.items():
            for r in rows:
                terms = find_terms(gpu, r.operation, r.ranks, eight_bit=r.added)
                found[r.added, stem == FITTED[gpu]].append(_row(r, gpu, terms, every))
    split, sample = "fitted on one file of a system, scored on its other files", "in sample: the file that was fitted"
    return [
        _scored("collectives in a node", split, found[False, False], _spreads(found[False, False])),
        _scored("collectives, fitted files", sample, found[False, True]),
        _scored("collectives, rank count left out", "fitted on the file's other rank counts", _ranks_out(files, every)),
        _scored("sums of integers", split, found[True, False]),
        _scored("sums of integers, fitted files", sample, found[True, True]),
        one_node(),
        over_nodes(),
        nodes_left_out(),
        expert_exchanges(),
    ]


def _spreads(rows: Sequence[Row]) -> tuple[str, ...]:
    """How many rows the spread holds that is printed with an estimate, nine of ten rows left out of the fitted file."""
    held = {gpu: [r.error <= spread for r in rows if r.group == gpu] for gpu, spread in SPREADS.items()}
    each = [f"{gpu} {100 * SPREADS[gpu]:.1f} % holds {100 * fmean(h):.0f} %" for gpu, h in held.items() if h]
    return (
        f"spread that estimates are printed with (from the fitted file alone), and rows it holds: {', '.join(each)}",
        "all scored files are other runs; their column `version` names another release than that of the fitted file in "
        "B200's 2.27.5 and 2.28.9 alone (H100's and H200's 2.23 name none, the others 2.29.2 whatever they are called)",
    )


def _ranks_out(files: dict[str, dict[str, list[Measured]]], every: Series) -> list[Row]:
    """Every rank count predicted from terms of the others; systems with three rank counts behind one switch."""
    found = []
    for gpu in ("a100-sxm-80", "h100-sxm-80", "h200-sxm-141", "b200-sxm-180", "b300-sxm-270"):
        rows = files[gpu][FITTED[gpu]]
        for operation in COLLECTIVES:
            these = [r for r in rows if r.operation == operation]
            for left in sorted({r.ranks for r in these}):
                law = fit_law(gpu, rows_of_law(gpu, (r for r in these if r.ranks != left)))
                out = [r for r in these if r.ranks == left and not r.added]
                found += [_row(r, gpu, law.terms(operation, left), every, left_out=True) for r in out]
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
    rows = [_published(p, RING_SHARE, ALL_TO_ALL_SHARE) for p in _OVER_NODES]
    bars = (("mean error", fmean(r.error for r in rows), _NODES_BAR),)
    note = "two constants (share of a NIC's rate in rings and in all-to-all) were chosen with these rows in view"
    return Scored("collectives over nodes", _BAND, "in sample: published results", tuple(rows), bars, (note,), "GB/s")


def nodes_left_out() -> Scored:
    """The same, each with the share of a NIC's rate that the others of its kind agree with best."""
    rows = []
    for p in _OVER_NODES:
        pairs = p.operation == "all-to-all"
        others = [q for q in _OVER_NODES if q is not p and (q.operation == "all-to-all") == pairs]
        chosen = min(_SHARES, key=lambda share: median(_published(q, share, share).error for q in others))
        rows.append(_published(p, chosen, chosen))
    split = "shares of a NIC's rate chosen without the result"
    bars = (("mean error", fmean(r.error for r in rows), _NODES_BAR),)
    return Scored("collectives over nodes, left out", _BAND, split, tuple(rows), bars, (), "GB/s")


_OVER_NODES: Final = tuple(p for p in PUBLISHED if p.domains > 1)
_SHARES: Final = tuple(hundredth / 100 for hundredth in range(60, 101))


def _published(p: Published, ring: float, pairs: float) -> Row:
    assert p.nic_gbytes_s is not None
    gpu = p.gpus[0]
    inside = find_terms(gpu, p.operation, p.domain_gpus)
    assert inside is not None
    fabric = Fabric(
        p.domain_gpus, p.domains, p.nic_gbytes_s, in_network=p.sharp, ring_share=ring, all_to_all_share=pairs
    )
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
