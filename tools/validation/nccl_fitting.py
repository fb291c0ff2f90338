"""How the laws of `physics/collective_fits.py` were fitted: latencies of nccl-tests in, coefficients out.

usage: python tools/validation/nccl_fitting.py CASES prints the laws and spreads of every system as Python.

A law is fitted to one file of a system over all its rank counts at once: 16-bit rows, and 8-bit rows where they are
added up, which tells what that costs and, on eight GPUs, what a ring does where a switch adds up 16-bit numbers. The
all-reduce in the switch has a law of its own. The size from which a message is long is the one with the least error.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.physics.ceilings import COLLECTIVES, Collective
from clusterwright.physics.collective_fits import SWITCHED_RANKS
from clusterwright.physics.collective_laws import Law, Protocol, steps
from clusterwright.physics.collectives import bus_factor, collective_us

Array = NDArray[np.float64]

#: File that the laws of a system are fitted to, by catalogue name of the GPU.
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
NO_NVLINK: Final = ("l40s", "rtx-pro-6000-server")
#: Systems whose switch adds up in the all-reduce over SWITCHED_RANKS.
SWITCHED: Final = ("h100-sxm-80", "h200-sxm-141", "b200-sxm-180", "b300-sxm-270")
#: Coefficients that a law may have, of short and of long messages: NVLink, PCIe, in the switch.
_NVLINK: Final = (("latency_us", "hop_us", "link", "root_us"), ("latency_us", "hop_us", "link", "root_us", "memory"))
_PCIE: Final = (("latency_us", "hop_us", "link", "root_us", "bridge", "socket"),) * 2
_IN_SWITCH: Final = (("latency_us", "link", "root_us"), ("latency_us", "link"))
_SUMS: Final = ("all-reduce", "reduce-scatter")
#: Errors below this weigh alike in a fit: the spread of repeated runs of one file.
_NOISE: Final = 0.01
#: Rounds of reweighting.
_ROUNDS: Final = 12
#: Sizes from which a message may be long, between the powers of two that are measured; and the least and the most that
#: this may come to on any number of ranks.
_CHANGES: Final = tuple(2.0 ** (power + 0.5) for power in range(10, 26))
_LEAST_CHANGE, _MOST_CHANGE = 2.0**13, 2.0**26
#: Parts of the sizes that are left out in turn, and the share of rows that a spread holds.
_FOLDS: Final = 5
_HELD: Final = 0.90


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
        """Whether 8-bit numbers are added up, which no NVSwitch does (NCCL src/include/device.h, ncclNvlsSupported)."""
        return self.integer and self.operation in _SUMS


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


def in_switch(gpu: str, row: Measured) -> bool:
    """Whether the switch of a system adds a row up."""
    return gpu in SWITCHED and row.operation == "all-reduce" and row.ranks == SWITCHED_RANKS and not row.integer


def rows_of_law(gpu: str, rows: Iterable[Measured]) -> list[Measured]:
    """Of one operation's rows those that its law is fitted to: 16-bit, and 8-bit where they are added up."""
    return [r for r in rows if (r.added or not r.integer) and not in_switch(gpu, r)]


def fit_law(gpu: str, rows: Sequence[Measured]) -> Law:
    """The law with the least sum of relative errors over an operation's rows: `rows_of_law`, or those in the switch."""
    if any(in_switch(gpu, r) for r in rows):
        return _fit(rows, _IN_SWITCH, per_rank=False)
    if gpu in NO_NVLINK:
        return _fit(rows, _PCIE, per_rank=False)
    return _fit(rows, _NVLINK, per_rank=True)


def times_us(law: Law, rows: Sequence[Measured]) -> Array:
    """What a law says of rows of one operation."""
    found = np.empty(len(rows))
    for ranks, added in {(r.ranks, r.added) for r in rows}:
        these = [i for i, r in enumerate(rows) if (r.ranks, r.added) == (ranks, added)]
        sizes = np.array([rows[i].size_bytes for i in these], float)
        operation = rows[0].operation
        found[these] = collective_us(operation, sizes, ranks, law.terms(operation, ranks, added))
    return found


def _fit(rows: Sequence[Measured], names: tuple[tuple[str, ...], tuple[str, ...]], *, per_rank: bool) -> Law:
    """Try every size for the change; sums have what a byte costs more in 8 bit."""
    short, long = ((*n, "eight_bit") if any(r.added for r in rows) else n for n in names)
    size, ranks = (np.array([getattr(r, name) for r in rows], float) for name in ("size_bytes", "ranks"))
    time = np.array([r.time_us for r in rows])
    bases = _basis(rows, short, of_rank=True), _basis(rows, long, of_rank=False)
    best, least = None, math.inf
    for start in _CHANGES:
        change = start * (ranks if per_rank else np.ones_like(ranks))
        if change.min() < _LEAST_CHANGE or change.max() > _MOST_CHANGE:
            continue
        below = size < change
        law = Law(
            _protocol(short, bases[0][below], time[below]),
            _protocol(long, bases[1][~below], time[~below]),
            start,
            per_rank,
        )
        error = float(np.abs(times_us(law, rows) / time - 1).sum())
        if error < least:
            best, least = law, error
    assert best is not None
    return best


def _protocol(names: tuple[str, ...], basis: Array, time: Array) -> Protocol:
    """Coefficients of one protocol, none negative; reweighted towards the least absolute relative error."""
    weight, found = np.ones(len(time)), np.zeros(len(names))
    for _ in range(_ROUNDS):
        scale = np.sqrt(weight) / time
        found = _least_squares(basis * scale[:, None], time * scale)
        weight = 1 / np.maximum(np.abs(basis @ found / time - 1), _NOISE)
    given = {name: float(f"{value:.4g}") for name, value in zip(names, found, strict=True)}
    return Protocol(**({"hop_us": 0.0, "root_us": 0.0} | given))


def _basis(rows: Sequence[Measured], names: tuple[str, ...], *, of_rank: bool) -> Array:
    """What each coefficient is multiplied with: (rows, coefficients) float64."""
    return np.array([[_multiplied(name, r, of_rank) for name in names] for r in rows], float)


def _multiplied(name: str, row: Measured, of_rank: bool) -> float:
    factor = bus_factor(row.operation, row.ranks)
    moved = row.size_bytes * factor / 1e3
    return {
        "latency_us": 1.0,
        "hop_us": steps(row.operation, row.ranks),
        "link": moved,
        "root_us": math.sqrt(row.size_bytes / (row.ranks if of_rank else 1)),
        "memory": row.size_bytes / 1e3,
        "eight_bit": moved * row.added,
        "bridge": moved * max(0, row.ranks - 2),
        "socket": moved * max(0, row.ranks - 4),
    }[name]


def _least_squares(basis: Array, target: Array) -> Array:
    """Least squares without negative coefficients.

    Source: Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23 (active set), on normal equations.
    """
    norm = np.sqrt((basis * basis).sum(axis=0))
    norm[norm == 0] = 1.0
    square, right = (basis / norm).T @ (basis / norm), (basis / norm).T @ target
    found, used = np.zeros(len(right)), np.zeros(len(right), bool)
    for _ in range(3 * len(right)):
        gain = np.where(used, -math.inf, right - square @ found)
        if gain.max() <= 1e-9:
            break
        used[int(gain.argmax())] = True
        found = _without_negative(square, right, found, used)
    solved: Array = found / norm
    return solved


def _without_negative(square: Array, right: Array, found: Array, used: NDArray[np.bool_]) -> Array:
    """Solve for the columns in use; step back to where the first turns negative and drop it, until none does."""
    while True:
        count = int(used.sum())
        wanted = np.zeros(len(right))
        wanted[used] = np.linalg.solve(square[np.ix_(used, used)] + 1e-12 * np.eye(count), right[used])
        bad = used & (wanted <= 0)
        if not bad.any():
            return wanted
        found = found + (found[bad] / (found[bad] - wanted[bad])).min() * (wanted - found)
        used &= found > 1e-14
        found[~used] = 0.0


def left_out_errors(gpu: str, rows: Iterable[Measured]) -> list[float]:
    """Errors of the rows of one file, a part of the message sizes left out of the fit at a time."""
    found: list[float] = []
    kept = [r for r in rows if r.added or not r.integer]
    for operation in COLLECTIVES:
        these = [r for r in kept if r.operation == operation]
        for part in (rows_of_law(gpu, these), [r for r in these if in_switch(gpu, r)]):
            sizes = sorted({r.size_bytes for r in part})
            for fold in range(_FOLDS if part else 0):
                out = set(sizes[fold::_FOLDS])
                law = fit_law(gpu, [r for r in part if r.size_bytes not in out])
                left = [r for r in part if r.size_bytes in out]
                found += np.abs(times_us(law, left) / np.array([r.time_us for r in left]) - 1).tolist()
    return found


def spread(errors: Sequence[float]) -> float:
    """What nine of ten errors stay within, to a thousandth."""
    ordered = sorted(errors)
    return round(ordered[math.ceil(_HELD * len(ordered)) - 1], 3)


def _as_python(law: Law) -> str:
    def protocol(p: Protocol) -> str:
        required = [f"{getattr(p, f.name):g}" for f in fields(p)[:4]]
        extra = [f"{f.name}={getattr(p, f.name):g}" for f in fields(p)[4:] if getattr(p, f.name)]
        return f"Protocol({', '.join(required + extra)})"

    power = math.log2(law.long_from_bytes)
    return f"Law({protocol(law.short)}, {protocol(law.long)}, 2**{power:g}{'' if law.per_rank else ', per_rank=False'})"


def main() -> None:
    """Print the laws and spreads of every system."""
    folder = Path(sys.argv[1]) / "nccl"
    for gpu, file in FITTED.items():
        rows = read_rows(folder / f"{file}.csv")
        for operation in COLLECTIVES:
            these = [r for r in rows if r.operation == operation]
            print(gpu, operation, _as_python(fit_law(gpu, rows_of_law(gpu, these))), sep="\t")
            switched = [r for r in these if in_switch(gpu, r)]
            if switched:
                print(gpu, "in the switch", _as_python(fit_law(gpu, switched)), sep="\t")
        print(gpu, "spread", spread(left_out_errors(gpu, rows)), sep="\t")


if __name__ == "__main__":
    main()
