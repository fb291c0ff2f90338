"""What the programs of nccl-tests measure: operation, bandwidth factor, element sizes, and what a row itself proves.

The time is t, `algbw` is size / t, `busbw` is algbw times a factor that depends on the number of ranks alone; the
`count` column holds elements of one rank's share for the operations that split their buffer.

Source: NVIDIA nccl-tests, doc/PERFORMANCE.md and src/*.cu (GetCollByteCount, GetBw), versions 2.0 to 2.17.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

#: Name of the program without `_perf` → operation.
OPERATIONS: Final = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all", "alltoallv": "all-to-all-v", "broadcast": "broadcast", "reduce": "reduce",
    "sendrecv": "sendrecv", "gather": "gather", "scatter": "scatter", "hypercube": "hypercube",
}  # fmt: skip
#: Bytes of an element, by the name in the `type` column.
ELEMENT_BYTES: Final = {
    "int8": 1, "char": 1, "uint8": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float": 4,
    "double": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "float16": 2, "float32": 4,
    "float64": 8,
}  # fmt: skip
#: Reductions in the `redop` column; `none` where the operation has none.
REDUCTIONS: Final = frozenset({"sum", "prod", "min", "max", "avg", "mulsum", "none"})
#: Largest deviation that versions before 2.12 pass, by type (`deltaMaxValue` in src/common.cu).
TOLERANCES: Final = {"half": 1e-2, "float": 1e-5, "double": 1e-12, "bfloat16": 1e-2}

_PROGRAM: Final = re.compile(
    r"(?:^|[\s/=\"'`:])(?:nccl_|rccl_)?"
    r"(all_reduce|all_gather|reduce_scatter|alltoallv|alltoall|broadcast|reduce|sendrecv|gather|scatter|hypercube)"
    r"_perf(?:_mpi)?(?=$|[\s\"'`;&|])"
)
_SPLITTING: Final = ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter")
_MOST_RANKS: Final = 4096


def program_in(text: str) -> str | None:
    """Name without `_perf` of the program that a text names, None when it names none."""
    match = _PROGRAM.search(text)
    return match.group(1) if match else None


def factor(operation: str, ranks: int) -> float | None:
    """busbw divided by algbw, None for an operation whose factor is not known."""
    if ranks < 1:
        return None
    if operation == "all-reduce":
        return 2 * (ranks - 1) / ranks
    if operation in _SPLITTING:
        return (ranks - 1) / ranks
    return 1.0 if operation in ("broadcast", "reduce", "sendrecv", "hypercube") else None


def ranks_by_count(size: int, count: int, kind: str) -> int | None:
    """Ranks that share a buffer of `size` bytes when each holds `count` elements; None when the row does not tell."""
    element = ELEMENT_BYTES.get(kind)
    if element is None or count <= 0 or size <= 0:
        return None
    ranks, rest = divmod(size, count * element)
    return ranks if rest == 0 and ranks >= 1 else None


def ranks_by_factor(operation: str, pairs: Iterable[tuple[float, float]]) -> int | None:
    """The only number of ranks that explains these (algbw, busbw), both rounded to 0.01; None when several do."""
    if operation != "all-reduce" and operation not in _SPLITTING:
        return None
    low, high = 0.0, 2.0
    for algbw, busbw in pairs:
        if algbw >= 10:
            low = max(low, (busbw - 0.006) / (algbw + 0.006))
            high = min(high, (busbw + 0.006) / (algbw - 0.006))
    if low == 0.0 or low > high:
        return None
    top = 2.0 if operation == "all-reduce" else 1.0  # the factor is top·(n-1)/n
    if low >= top or high >= top:
        return None
    first, last = math.ceil(top / (top - low) - 1e-9), math.floor(top / (top - high) + 1e-9)
    return first if first == last and 2 <= first < _MOST_RANKS else None


def operation_by_columns(
    redop: str, root: int | None, ranks: int | None, *, reduction_column: bool, in_place_checked: bool | None
) -> str | None:
    """The operation that the columns leave as the only one, None when several remain.

    Args:
        redop: of a row, "" or `none` when the operation reduces nothing.
        root: of a row, None or negative when the operation has none.
        ranks: that share the buffer, from size and count.
        reduction_column: whether the table has the column `redop`; before 2.12 all_gather had none.
        in_place_checked: whether results in place were compared as those out of place were; all-to-all and sendrecv
            never compare them. None when nothing was compared.
    """
    reducing = redop not in ("", "none")
    rooted = root is not None and root >= 0
    if reducing and rooted:
        return "reduce"
    if reducing:
        if ranks is not None and ranks > 1:
            return "reduce-scatter"
        return "all-reduce" if ranks == 1 else None
    if rooted:
        return "broadcast" if ranks == 1 else None
    if ranks is None or ranks == 1:
        return "sendrecv" if ranks == 1 else None
    if not reduction_column:
        return "all-gather"
    if redop == "":
        return "all-to-all"
    return None if in_place_checked is None else "all-gather" if in_place_checked else "all-to-all"
