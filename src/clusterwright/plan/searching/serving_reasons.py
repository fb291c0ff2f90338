"""Why a layout of inference is impossible or not the best, in numbers; and the layouts that people try first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.layouts import Layout
from clusterwright.plan.searching import memories
from clusterwright.plan.searching.machines import joined
from clusterwright.plan.searching.questions import Goal, ServingQuestion
from clusterwright.plan.searching.reasons import WORDS, Reason
from clusterwright.plan.searching.shapes import Shape, shape_of

if TYPE_CHECKING:
    from clusterwright.plan.searching.serving import ServingRow
    from clusterwright.plan.searching.serving_columns import Judged


def popular(question: ServingQuestion) -> list[tuple[str, Layout]]:
    """Layouts that people try first, each once."""
    found: dict[Layout, str] = {}
    for name, layout in _popular(question):
        found.setdefault(layout, name)
    return [(name, layout) for layout, name in found.items()]


def _popular(question: ServingQuestion) -> Iterator[tuple[str, Layout]]:
    node, shape = question.pool.gpus_per_node, shape_of(question.decoder)
    yield "one GPU a replica", Layout()
    if node > 1:
        yield "tensor ranks over half a node", Layout(tp=max(node // 2, 1))
        yield "tensor ranks over the node", Layout(tp=node)
        yield "pipeline over the node", Layout(pp=node)
    yield "tensor ranks over the node, pipeline over two", Layout(tp=node, pp=2)
    yield "tensor ranks over two nodes", Layout(tp=2 * node)
    if not shape.experts:
        return
    for nodes, words in ((1, "the node"), (2, "two nodes"), (4, "four nodes")):
        wide = nodes * node
        if question.engine == "vllm":
            yield f"tensor and expert ranks over {words}", Layout(tp=wide, ep=wide)
            yield f"data-parallel attention, experts over {words}", Layout(dp=wide, ep=wide)
        else:
            yield f"tensor and expert ranks over {words}", Layout(tp=wide, ep=wide)
            yield f"data-parallel attention, experts over {words}", Layout(tp=wide, ep=wide, attention_dp=wide)


def explain(
    question: ServingQuestion, layout: Layout, judged: Judged, row: ServingRow | None, best: ServingRow | None
) -> str:
    """One sentence with the numbers that decide."""
    if row is not None:
        return _compared(question.goal, row, best)
    reason = Reason(int(judged.reason[0]))
    if reason == Reason.MEMORY:
        return _too_large(question, layout, judged.memories[0])
    if reason in (Reason.TTFT, Reason.TPOT, Reason.LOAD):
        return _too_slow(question, reason, judged)
    return _structure(question, shape_of(memories.served(question)), layout, reason) or WORDS[reason]


def _too_large(question: ServingQuestion, layout: Layout, planned: EngineMemory) -> str:
    """What is missing, and a change on the same GPUs with which the wanted length fits, of settings before weights."""
    length = memories.longest_sequence(question)
    full = memories.plan(question, memories.served(question), layout, length, advise=True)
    enough = [change.what for change in full.advice if change.fits and not change.extra_gpus]
    enough = [what for what in enough if not what.startswith("at most")]
    gentle = [what for what in enough if not what.startswith("weights")] or enough
    missing = "; ".join(planned.why)
    return f"{missing}; fits with {gentle[0]}" if gentle else missing


def _too_slow(question: ServingQuestion, reason: Reason, judged: Judged) -> str:
    f = {name: float(values[0]) for name, values in judged.figures.items()}
    if reason == Reason.TTFT:
        return f"first token after {f['first_ttft_s']:.3g} s with no other load, wanted {question.ttft_s or 0:.3g} s"
    if reason == Reason.TPOT:
        wanted = (question.tpot_s or 0.0) * 1e3
        return f"{f['first_tpot_s'] * 1e3:.3g} ms per token with no other load, wanted {wanted:.3g} ms"
    if question.replicas is not None and f["nodes"] <= (question.pool.nodes or np.inf):
        lost = f" with {question.survive_nodes} nodes lost" if question.survive_nodes else ""
        return (
            f"the load takes {f['needed']:,.0f} replicas of {f['requests_s']:.3g} requests/s{lost}, "
            f"{question.replicas:,} are declared"
        )
    return (
        f"{f['replicas']:,.0f} replicas of {f['requests_s']:.3g} requests/s take {f['nodes']:,.0f} nodes, the pool has "
        f"{question.pool.nodes or 0:,}"
    )


def _structure(question: ServingQuestion, shape: Shape, layout: Layout, reason: Reason) -> str | None:
    pool, node = question.pool, question.pool.gpus_per_node
    everyone, inside = layout.tp * layout.dp, layout.tp * layout.dp // min(layout.ep, layout.tp * layout.dp)
    heads = " and ".join(str(h) for h in shape.kv_heads)
    return {
        Reason.ENGINE: f"{question.engine} does not run {layout}",
        Reason.COPIES: f"{layout.dp * layout.attention_dp} copies that share no experts are replicas of their own",
        Reason.POOL: f"takes {layout.gpus:,} GPUs, the pool has {pool.gpus or 0:,}",
        Reason.NODES: f"{layout.gpus} GPUs do not fill nodes of {node}",
        Reason.DOMAIN: f"{max(layout.attention_tp, inside)} ranks exchange in every layer, {joined(pool)}",
        Reason.NETWORK: f"{layout.gpus} GPUs leave the node of {node}, and no network between nodes is known",
        Reason.HEADS: f"{shape.heads} query heads over {layout.attention_tp} ranks",
        Reason.KV_HEADS: f"{heads} KV heads over {layout.attention_tp} ranks",
        Reason.STATES: f"{shape.state_heads} state heads over {layout.attention_tp} ranks",
        Reason.WIDTHS: f"widths of {_widths(shape, layout.tp, inside)}",
        Reason.BLOCKS: f"blocks of {shape.block} in widths of {_widths(shape, layout.tp, inside)}",
        Reason.EXPERTS: f"{shape.experts} experts over {layout.ep} of {everyone} ranks",
        Reason.LAYERS: f"{shape.layers} layers into {layout.pp} stages",
        Reason.CONTEXT: f"{memories.longest_sequence(question):,} tokens wanted, the model allows "
        f"{question.decoder.max_context:,}",
    }.get(reason)


def _widths(shape: Shape, tp: int, inside: int) -> str:
    found = [f"{shape.widths} over {tp} ranks"] if shape.widths else []
    return ", ".join([*found, *([f"{shape.expert_width} over {inside} ranks"] if shape.expert_width else [])])


def _compared(goal: Goal, row: ServingRow, best: ServingRow | None) -> str:
    if best is None or row.layout == best.layout:
        return "nothing is better"
    if goal == "latency":
        return f"fits; {_times(row.tpot_s, best.tpot_s)} the time per token of {best.layout}"
    if goal == "domain" and row.domain_gpus != best.domain_gpus:
        return f"fits; a failing node takes {row.domain_gpus} GPUs, of {best.layout} {best.domain_gpus}"
    if goal == "throughput":
        ours, theirs = row.requests_s / row.layout.gpus, best.requests_s / best.layout.gpus
        return f"fits; {ours / theirs:.3g} of the tokens per second and GPU of {best.layout}"
    ratio = row.gpu_h_per_mtok / best.gpu_h_per_mtok
    if round(ratio, 2) == 1:
        slower = f"{row.tpot_s * 1e3:.3g} ms per token, not {best.tpot_s * 1e3:.3g}"
        return f"fits; the cost per token of {best.layout}, {slower}"
    text = f"fits; {_times(row.gpu_h_per_mtok, best.gpu_h_per_mtok)} the cost per token of {best.layout}"
    return text if row.gpus == best.gpus else f"{text} ({row.gpus} GPUs, not {best.gpus})"


def _times(value: float, best: float) -> str:
    return f"{value / best:.3g} ×"
