"""Layouts of inference: those that are tried, and which of them model, engine and pool allow.

Placement: tensor ranks stay in the domain without NICs, since they exchange in every layer; pipeline stages and expert
ranks may leave it. Copies of dense layers inside a replica earn their place only where experts spread over them.

Sources: vLLM documentation "Parallelism and scaling", "Expert parallel deployment" (experts over all tp·dp ranks),
"Context parallel deployment" (decode: over ranks that repeat KV heads; latent attention from 0.10.2 on, pull request
23734, others from 0.11.1 on, 25438); SGLang server arguments (dp-size and ep-size
divide tp-size); TensorRT-LLM `Mapping` (moe_tp·moe_ep = tp; attention DP over all ranks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from clusterwright.plan.searching.columns import Bools, Ints, as_columns, gpus, widths
from clusterwright.plan.searching.machines import inner_domain
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.shapes import Shape

#: Widest replica that is tried where the pool has no limit of its own.
WIDEST: Final = 1024
#: Longest pipeline that is tried; longer ones are judged when asked for.
_LONGEST: Final = 32
#: vLLM release from which ranks may share a cache by position: of latent attention, of other attention.
_SHARED_SINCE: Final = {True: (0, 10), False: (0, 11)}
_NAMES: Final = ("tp", "pp", "dp", "ep", "attention_dp", "dcp")


def serving_layouts(question: ServingQuestion, shape: Shape) -> dict[str, Ints]:
    """Columns of all sizes that are tried."""
    pool = question.pool
    most = min(question.replica_gpus_at_most or WIDEST, pool.gpus or WIDEST)
    node = pool.gpus_per_node
    rows = []
    for tp in widths(most, node, node // 2, inner_domain(pool)):
        for pp in widths(min(most // tp, _LONGEST, shape.layers), 3, 6):
            for dp, ep, attention_dp, dcp in _groups(question, shape, tp, most // (tp * pp)):
                rows.append((tp, pp, dp, ep, attention_dp, dcp))
    return as_columns(rows, _NAMES)


def _groups(question: ServingQuestion, shape: Shape, tp: int, most: int) -> list[tuple[int, int, int, int]]:
    """(dp, ep, attention_dp, dcp) beside tensor ranks: caches shared by as many ranks as repeat them, experts over all
    ranks, over none, or over the domains.
    """
    repeats = _repeats(question, shape, tp)
    # Of layouts that are equally good the first is taken: no sharing of caches where it gains nothing.
    found = [(1, 1, 1, dcp) for dcp in (sorted({1, repeats}) if question.engine == "vllm" and repeats else (1,))]
    if not shape.experts and not shape.latent:
        return found
    if question.engine == "vllm":
        found += [(dp, tp * dp, 1, 1) for dp in widths(most) if tp * dp > 1]
        return found
    spread = sorted({1, tp, max(tp // inner_domain(question.pool), 1)})
    groups = (a for a in widths(tp) if tp % a == 0)
    return found + [(1, ep, group, 1) for group in groups for ep in spread if (group, ep) != (1, 1)]


def _repeats(question: ServingQuestion, shape: Shape, tp: Ints | int) -> Any:
    """Tensor ranks that hold the same KV head, which may share its cache by position where vLLM does so."""
    if question.version is not None and question.version < _SHARED_SINCE[shape.latent]:
        return tp * 0 + 1
    return tp if shape.latent else tp // max(shape.kv_heads, default=1)


def structural(question: ServingQuestion, shape: Shape, columns: Mapping[str, Ints]) -> Ints:
    """(n,) reasons that model, engine and pool give before any memory or time is counted."""
    reason = np.full(len(columns["tp"]), int(Reason.NONE), dtype=np.int64)
    for code, broken in _rules(question, shape, columns):
        reason = np.where((reason == Reason.NONE) & broken, int(code), reason)
    return reason


def _rules(question: ServingQuestion, shape: Shape, c: Mapping[str, Ints]) -> list[tuple[Reason, Bools]]:
    pool, total = question.pool, gpus(c)
    attention_tp, everyone = c["tp"] // c["attention_dp"], c["tp"] * c["dp"]
    inside = everyone // np.minimum(c["ep"], everyone)
    domain, node = inner_domain(pool), pool.gpus_per_node
    return [
        (Reason.ENGINE, _engine(question, shape, c)),
        (Reason.COPIES, _copies(shape, c)),
        (Reason.POOL, total > (pool.gpus or total.max(initial=1))),
        (Reason.NODES, (total > node) & (total % node != 0)),
        (Reason.DOMAIN, (attention_tp > domain) | ((inside > domain) & (inside > 1))),
        (Reason.NETWORK, (total > max(domain, node)) & (pool.nic_gbytes_s is None)),
        (Reason.HEADS, uneven(shape.heads, attention_tp)),
        (Reason.KV_HEADS, kv_uneven(shape, attention_tp)),
        (Reason.STATES, uneven(shape.state_heads, attention_tp)),
        (Reason.WIDTHS, uneven(shape.widths, c["tp"]) | uneven(shape.expert_width, inside)),
        (Reason.BLOCKS, _cuts_blocks(shape, c, inside)),
        (Reason.EXPERTS, _experts(question.engine, shape, c["ep"])),
        (Reason.LAYERS, c["pp"] > shape.layers),
    ]


def uneven(blocks: int, ranks: Ints) -> Bools:
    """Whether so many blocks do not divide; a model without them has nothing to divide."""
    return np.asarray(blocks % ranks != 0) if blocks else np.zeros(len(ranks), dtype=np.bool_)


def kv_uneven(shape: Shape, ranks: Ints) -> Bools:
    """Whether KV heads neither divide over so many ranks nor repeat evenly on them."""
    uneven = np.zeros(len(ranks), dtype=np.bool_)
    for heads in shape.kv_heads:
        uneven |= (heads % ranks != 0) & (ranks % heads != 0)
    return uneven


def _engine(question: ServingQuestion, shape: Shape, c: Mapping[str, Ints]) -> Bools:
    other, engine = (c["cp"] > 1) | (c["vp"] > 1) | (c["etp"] > 1), question.engine
    if engine == "vllm":
        everyone = c["tp"] * c["dp"]
        repeats = _repeats(question, shape, c["tp"])
        unshared = (c["dcp"] > repeats) | (shape.state_heads > 0) | (c["tp"] % c["dcp"] != 0)
        wrong = (c["attention_dp"] > 1) | ((c["ep"] > 1) & (c["ep"] != everyone)) | ((c["dcp"] > 1) & unshared)
        return np.asarray(other | wrong)
    other |= (c["dp"] > 1) | (c["dcp"] > 1) | (c["tp"] % c["ep"] != 0)
    if engine == "tensorrt-llm":
        other |= (c["attention_dp"] > 1) & (c["attention_dp"] != c["tp"])
    return other


def _copies(shape: Shape, c: Mapping[str, Ints]) -> Bools:
    spread = (c["ep"] > 1) & (shape.experts > 0)
    pointless = (c["dp"] > 1) & ~spread
    if not shape.experts and not shape.latent:
        pointless |= c["attention_dp"] > 1
    return pointless


def _cuts_blocks(shape: Shape, c: Mapping[str, Ints], inside: Ints) -> Bools:
    """Whether a rank gets part of a block of fp8 weights, which engines refuse ("not divisible by weight quantization
    block_n"); dense blocks beside data-parallel attention may stay whole.
    """
    cut = np.zeros(len(inside), dtype=np.bool_)
    if not shape.block:
        return cut
    if shape.expert_width:
        cut |= (shape.expert_width // inside) % shape.block != 0
    if shape.widths:
        cut |= (c["attention_dp"] == 1) & ((shape.widths // c["tp"]) % shape.block != 0)
    return cut


def _experts(engine: str, shape: Shape, ep: Ints) -> Bools:
    """vLLM places a remainder on the first ranks; the others want whole numbers."""
    if not shape.experts:
        return np.asarray(ep > 1)
    return np.asarray(ep > shape.experts) if engine == "vllm" else uneven(shape.experts, ep)
