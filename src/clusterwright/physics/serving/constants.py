"""What an engine reaches of the peaks and what it adds: the constants that calibration moves.

Each has a prior and bounds from what the hardware and the engines' code allow; a fit may not leave the bounds. Values
of an engine, version and system are data (catalogue/data/calibration.yaml), these are the starting point: round numbers
within what public microbenchmarks show (achieved shares of bandwidth and matmul peaks: stas00/ml-engineering,
compute/accelerator; custom all-reduce latency: vLLM and TensorRT-LLM communication benchmarks).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of one engine on one system.

    Args:
        weight_share: of peak bandwidth reached in reading weights.
        expert_share: of peak bandwidth reached in reading expert weights (grouped products, uneven routing).
        cache_share: of peak bandwidth reached in reading the KV cache.
        math_share: of peak FLOP/s reached in large matrix products.
        expert_math_share: of peak FLOP/s reached in the products of routed experts: grouped, of uneven size.
        attention_share: of peak FLOP/s reached in prefill attention.
        link_share: of the link's rate reached by collectives.
        collective_us: latency of one collective of a few tokens.
        layer_us: of a layer in a decode step beside the roofline: launches, norms, small kernels.
        expert_layer_us: of a layer with routed experts, on top: routing, permutation, a second launch.
        prefill_layer_us: of a layer in a prefill, which runs without graphs.
        step_ms: of a decode step: scheduling, sampling, output.
        sequence_us: per running sequence and step: sampling, detokenising, sending.
        mixing: share of a prompt's products by which it holds up the decode of others.
        alone: share of what a pass costs whatever it holds (weights read, launches) that each prompt adds to it.
        bunching: share of the other requests' prefills that a prompt waits for; the rest falls among decode steps.
        reserve: share of a request's output that must have a place in the cache before it starts: ½ where engines admit
            by what is used and take back, 1 where they keep a place for all (TensorRT-LLM GUARANTEED_NO_EVICT).
        first_ms: between a request's arrival and its turn, and between the first token and the client.
        handover_ms: from prefill to decode worker beside the bytes (disaggregated serving).
    """

    weight_share: float = 0.75
    expert_share: float = 0.55
    cache_share: float = 0.60
    math_share: float = 0.50
    expert_math_share: float = 0.35
    attention_share: float = 0.35
    link_share: float = 0.60
    collective_us: float = 8.0
    layer_us: float = 20.0
    expert_layer_us: float = 20.0
    prefill_layer_us: float = 60.0
    step_ms: float = 1.0
    sequence_us: float = 10.0
    mixing: float = 0.95
    alone: float = 0.60
    bunching: float = 0.15
    reserve: float = 0.60
    first_ms: float = 40.0
    handover_ms: float = 20.0


class Bound(NamedTuple):
    """Lowest and highest value a fit may give, and how far (natural log) data usually moves it from the prior."""

    low: float
    high: float
    spread: float


BOUNDS: Final[Mapping[str, Bound]] = {
    "weight_share": Bound(0.35, 0.95, 0.25),
    "expert_share": Bound(0.15, 0.95, 0.35),
    "cache_share": Bound(0.15, 0.95, 0.35),
    "math_share": Bound(0.12, 0.85, 0.35),
    "expert_math_share": Bound(0.05, 0.85, 0.40),
    "attention_share": Bound(0.08, 0.80, 0.40),
    "link_share": Bound(0.15, 0.95, 0.35),
    "collective_us": Bound(3.0, 40.0, 0.40),
    "layer_us": Bound(3.0, 120.0, 0.50),
    "expert_layer_us": Bound(2.0, 150.0, 0.60),
    "prefill_layer_us": Bound(10.0, 1500.0, 0.70),
    "step_ms": Bound(0.1, 8.0, 0.60),
    "sequence_us": Bound(0.5, 120.0, 0.80),
    "mixing": Bound(0.30, 1.30, 0.30),
    "alone": Bound(0.10, 1.2, 0.40),
    "bunching": Bound(0.005, 0.90, 0.80),
    "reserve": Bound(0.50, 1.0, 0.20),
    "first_ms": Bound(2.0, 500.0, 0.80),
    "handover_ms": Bound(1.0, 3000.0, 1.00),
}
NAMES: Final = tuple(f.name for f in fields(Constants))

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class ConstantColumns:
    """Constants as columns, one row per setting: `columns.mixing` has shape (rows,) or ()."""

    def __init__(self, values: Mapping[str, Array]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Array:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None


def columns_of(constants: Constants | Iterable[Constants]) -> ConstantColumns:
    """Columns of one set of constants for all rows, or of one set per row."""
    if isinstance(constants, Constants):
        return ConstantColumns({name: np.float64(getattr(constants, name)) for name in NAMES})  # type: ignore[misc]
    rows = list(constants)
    return ConstantColumns({name: np.array([getattr(row, name) for row in rows]) for name in NAMES})


def named(values: Mapping[str, float]) -> Constants:
    """Constants by name, each within its bounds.

    Values written before experts' products had a share of their own give them that of all products.
    """
    common = {"expert_math_share": values["math_share"]} if "math_share" in values else {}
    return bounded(Constants(**common | dict(values)))


def bounded(constants: Constants) -> Constants:
    """The same constants, each moved to its nearest bound where it lies outside."""
    return replace(
        constants, **{name: min(max(getattr(constants, name), BOUNDS[name].low), BOUNDS[name].high) for name in NAMES}
    )
