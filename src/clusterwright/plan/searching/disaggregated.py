"""Prefill and decode on workers of their own: which layout for each, how many of each, and what both together cost.

The two sides meet only in the handover of the cache over the NICs, so each takes the layout that carries the load with
the fewest GPUs: prefill workers within the time to the first token, every one with its own queue; decode workers within
the time per token and their caches. Source of the split: DistServe, OSDI 2024; Splitwise, ISCA 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.plan.searching.columns import Floats, Ints, layout_at
from clusterwright.plan.searching.machines import nic_bytes_s
from clusterwright.plan.searching.open_loop import DecodeLoop, OpenLoop
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving_columns import Judged, arrives, workers_of
from clusterwright.plan.searching.sizing import replicas_for, sized
from clusterwright.plan.searching.workers import Workers

#: Reasons of layouts that fit the GPU's memory.
_FITTING: Final = (Reason.NONE, Reason.TTFT, Reason.TPOT, Reason.LOAD)
#: Engines whose usual connector hands over no cache that lies in several stages: vLLM's NixlConnector
#: (vllm-project/vllm#40674, #52913; from #45880 on only one that pushes, and only from prefill workers).
_ONE_STAGE: Final = ("vllm",)
#: Last vLLM that is known to refuse prefill workers with more tensor ranks than decode workers have
#: (vllm-project/vllm#43523, lifted by #27274).
_NO_WIDER_PREFILL_UNTIL: Final = (0, 11)
#: Most prefill workers of one unit where no load says how many there are.
_MOST: Final = 8
#: Share of the best rate per GPU that narrower or fewer workers may carry and still be taken where there is no load.
_NEARLY: Final = 0.9


@dataclass(frozen=True)
class Split:
    """Prefill workers and decode workers for one load.

    Args:
        prefill, decode: layouts; prefill_workers, decode_workers: for the load; with those that may be lost in `gpus`,
            `nodes`, `charged_gpus`.
        ttft_s, tpot_s: at the load, at the wanted quantile. requests_s: that all workers carry together.
        handover_s: of a prompt of mean length.
    """

    prefill: Layout
    decode: Layout
    prefill_workers: int
    decode_workers: int
    ttft_s: float
    tpot_s: float
    requests_s: float
    handover_s: float
    gpus: int
    charged_gpus: float
    nodes: int
    gpu_h_per_mtok: float
    cost_per_h: float | None
    cost_per_mtok_output: float | None


def split_service(question: ServingQuestion, constants: Constants, judged: Judged) -> Split | None:
    """The cheapest split; None where no network hands caches over, no rate or quantile is asked for, a target cannot
    be met, or the pool is too small.
    """
    fits = np.isin(judged.reason, [int(reason) for reason in _FITTING])
    rows = np.flatnonzero(fits & ((judged.sizes["pp"] == 1) | (question.engine not in _ONE_STAGE)))
    if not arrives(question) or not len(rows) or not nic_bytes_s(question.pool):
        return None
    held = workers_of(question, constants, judged, rows)
    decode, prefill = DecodeLoop(held), OpenLoop(held)
    handover = (
        constants.handover_ms * 1e-3
        + question.lengths.mean_in * held.columns.hand_bytes / nic_bytes_s(question.pool) / constants.link_share
    )
    running = decode.largest()
    decoded = np.where(running > 0, decode.at(np.maximum(running, 1e-6)).rate, 0.0)
    if not decoded.max() > 0:
        return None
    second = _cheapest(question, decoded, held.wide)
    step = float(decode.at(np.maximum(running, 1e-6)).tpot_mean_s[second])
    prefilled = np.where(
        _reads_from(question, judged.sizes["tp"][rows], second), prefill.largest_arriving(step, handover), 0.0
    )
    if not prefilled.max() > 0:
        return None
    first = _cheapest(question, prefilled, held.wide)
    counts = _counts(question, float(prefilled[first]), float(decoded[second]), held.wide[[first, second]])
    return _split(question, judged, rows, held, (prefill, decode), (first, second), counts, handover)


def _reads_from(question: ServingQuestion, tensor: Ints, decode: int) -> Any:
    """Whether the decode worker can read caches of prefill workers with so many tensor ranks each."""
    if question.engine != "vllm" or question.version is None or question.version > _NO_WIDER_PREFILL_UNTIL:
        return np.ones(len(tensor), dtype=bool)
    return tensor <= tensor[decode]


def _cheapest(question: ServingQuestion, each: Floats, wide: Ints) -> int:
    """Row that carries the load with the fewest charged GPUs; without a load the narrowest of those that carry nearly
    as much per GPU as any.
    """
    safe = np.maximum(each, 1e-12)
    if question.rate is None:
        per_gpu = each / wide
        near = per_gpu >= per_gpu.max() * _NEARLY
        return int(np.lexsort((-per_gpu, np.where(near, wide, np.iinfo(np.int64).max)))[0])
    size = sized(question, replicas_for(question.rate, safe), np.ones_like(safe), wide)
    return int(np.lexsort((wide, np.where(each > 0, size["charged_gpus"], np.inf)))[0])


def _counts(question: ServingQuestion, prefilled: float, decoded: float, wide: Ints) -> tuple[int, int, float]:
    """(prefill workers, decode workers, requests per second)."""
    if question.rate is not None:
        each = np.array([prefilled, decoded])
        first, second = (int(n) for n in replicas_for(question.rate, each))
        return first, second, question.rate
    found = []
    for first in range(1, _MOST + 1):
        for second in {max(1, int(first * prefilled / decoded)), int(first * prefilled / decoded) + 1}:
            carried = min(first * prefilled, second * decoded)
            found.append((first * int(wide[0]) + second * int(wide[1]), first, second, carried))
    best = max(carried / gpus for gpus, _, _, carried in found)
    _, first, second, carried = min(each for each in found if each[3] / each[0] >= best * _NEARLY)
    return first, second, carried


def _split(
    question: ServingQuestion,
    judged: Judged,
    rows: Ints,
    held: Workers,
    loops: tuple[OpenLoop, OpenLoop],
    chosen: tuple[int, int],
    counts: tuple[int, int, float],
    handover: Floats,
) -> Split | None:
    rate, each = counts[2], np.ones(len(rows))
    prefill, decode = loops
    at = decode.at(np.maximum(decode.running_at(each * rate / counts[1]), 1e-6))
    arriving = prefill.arriving(each * rate / counts[0], each * at.tpot_mean_s[chosen[1]], at.tpot_s, handover)
    sizes = [
        {name: float(column[0]) for name, column in sized(question, np.array([float(n)]), each[:1], wide).items()}
        for n, wide in ((counts[side], held.wide[[chosen[side]]]) for side in (0, 1))
    ]
    charged = sum(size["charged_gpus"] for size in sizes)
    # workers of both halves share nodes; widths divide a node, so that whatever is left of one is filled
    nodes = max(*(size["nodes"] for size in sizes), np.ceil(charged / question.pool.gpus_per_node))
    if question.pool.nodes is not None and nodes > question.pool.nodes:
        return None
    hours, price = charged / (rate * max(question.lengths.mean_out, 1.0) * 3600) * 1e6, question.pool.price_per_gpu_h
    return Split(
        prefill=layout_at(judged.sizes, int(rows[chosen[0]])),
        decode=layout_at(judged.sizes, int(rows[chosen[1]])),
        prefill_workers=counts[0],
        decode_workers=counts[1],
        ttft_s=float(prefill.ttft_s(arriving)[chosen[0]]),
        tpot_s=float(at.tpot_s[chosen[1]]),
        requests_s=rate,
        handover_s=float(handover[chosen[0]]),
        gpus=int(sum(size["gpus"] for size in sizes)),
        charged_gpus=charged,
        nodes=int(nodes),
        gpu_h_per_mtok=hours,
        cost_per_h=None if price is None else price * charged,
        cost_per_mtok_output=None if price is None else price * hours,
    )
