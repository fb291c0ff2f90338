"""The answer as an architecture file: the shortest form that says the same, to go on from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import CURRENCIES
from clusterwright.physics.engines.releases import NEWEST
from clusterwright.physics.serving.lengths import observed
from clusterwright.plan.engines import file_layout
from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.plan.fitting.carrying import carried
from clusterwright.plan.fitting.commands import FORMATS, stored_format
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.trainings import TrainingAnswer
from clusterwright.plan.results.layouts import Layout

_FIELDS: Final = ("tp", "pp", "dp", "ep", "cp", "dcp", "vp")
#: Percentiles of latencies that the file has targets for.
_PERCENTILES: Final = (50, 95, 99)


def architecture_text(answer: ServingAnswer | TrainingAnswer) -> str:
    """YAML of the best answer.

    Raises:
        InvalidInput: nothing holds, the catalogue has no such node, or the file cannot say the layout.
    """
    fit = answer.first
    if fit.best is None:
        raise InvalidInput("nothing holds: there is no architecture to write")
    if fit.machine.shape is None:
        problem = Problem(Place(fit.machine.asked), "", "the catalogue has no node with this GPU", "name a node shape")
        raise InvalidInput(problem)
    serving = isinstance(answer, ServingAnswer)
    lines = [
        "# What `cw fit` answered, to go on from: cw plan FILE, cw review FILE.",
        "apiVersion: clusterwright/v1alpha1",
        f"cluster: {{name: {'serving' if serving else 'training'}}}",
        "pools:",
        *_pool(fit, fit.best.nodes, 0 if isinstance(fit, ServingFit) else fit.lost.spares or 0),
        *_network(fit.machine, _gpus_per_node(fit), fit.best.nodes),
        "workloads:",
        f"  {'service' if serving else 'job'}:",
        f"    model: {answer.decoder.name}",
        "    pools: [gpu]",
        *_goal(answer),
        *(_serve(answer) if isinstance(answer, ServingAnswer) else _train(answer)),
    ]
    return "\n".join(lines) + "\n"


def _goal(answer: ServingAnswer | TrainingAnswer) -> Iterator[str]:
    """What layouts were ranked by, where it is not the cost."""
    if isinstance(answer, ServingAnswer) and answer.first.question.goal != "cost":
        yield f"    goal: {answer.first.question.goal}"


def _gpus_per_node(fit: ServingFit | TrainingFit) -> int:
    """GPUs of a node as they were asked for: fewer than the machine has make a smaller node."""
    return fit.search.question.pool.gpus_per_node if fit.search is not None else fit.machine.gpus_per_node


def _pool(fit: ServingFit | TrainingFit, working: int, spares: int) -> Iterator[str]:
    machine, price, each = fit.machine, fit.price, _gpus_per_node(fit)
    assert machine.shape is not None
    nodes = working + spares
    last = f"{nodes:03d}"
    yield "  gpu:"
    yield f'    nodes: "gpu-[001-{last}]"' if nodes > 1 else "    nodes: gpu-001"
    if spares:
        yield f"    spares: {spares}"
    yield f"    shape: {machine.shape.name}"
    if each != machine.shape.gpus:
        linked = ", nvswitch: true" if min(machine.domain_gpus, each) > 1 else ""
        yield f"    hardware: {{gpus: {each}{linked}}}"
    if price is not None:
        sign = CURRENCIES[price.currency]
        old = f"  # {price.basis}" if price.origin == "catalogue" else ""
        yield f"    price: {sign}{price.value:.6g}/GPU-h{old}"


def _network(machine: Machine, gpus: int, nodes: int) -> Iterator[str]:
    """The network that the answer counts on, one port a GPU."""
    if nodes == 1 or machine.nic_gbytes_s is None:
        return
    yield "fabric:"
    yield "  networks:"
    rate = f"{machine.nic_gbytes_s * 8:g} Gb/s"
    yield f"    compute: {{kind: infiniband, roles: [compute], rate: {rate}, ports: {gpus}}}  # kind assumed"


def _serve(answer: ServingAnswer) -> Iterator[str]:
    fit, question = answer.first, answer.first.question
    best, lengths = fit.chosen, question.lengths
    major, minor = question.version or NEWEST[question.engine]
    assumed = "" if question.version else "  # release assumed"
    yield "    serve:"
    yield f"      engine: {question.engine} {major}.{minor}{assumed}"
    yield f"      precision: {question.weights or stored_format(question.decoder)}"
    if question.kv_format in FORMATS:
        yield f"      kv_precision: {question.kv_format}"
    yield f"      in: {lengths.mean_in:g} tokens"
    yield f"      out: {lengths.mean_out:g} tokens"
    if lengths.p95_in is not None:
        yield f"      in_p95: {lengths.p95_in:g} tokens"
    if lengths.p95_out is not None:
        yield f"      out_p95: {lengths.p95_out:g} tokens"
    if lengths.prompts:
        points = ", ".join(f"{tokens:g}" for tokens in observed(lengths.prompts).points)
        yield f"      lengths: {{prompts: [{points}]}}"
    if lengths.reused_share:
        yield f"      prefix_reuse: {lengths.reused_share * 100:g}%"
    yield f"      rate: {_digits(_load(fit))} req/s"
    yield f"      replicas: {best.replicas}"
    yield f"      parallel: {_parallel(file_layout(best.layout))}"
    if question.engine == "vllm" or question.memory_share is not None:
        yield f"      memory_share: {best.memory.memory_share * 100:g}%"
    yield f"      max_model_len: {question.max_model_len} tokens"
    yield from _targets(answer)


def _load(fit: ServingFit) -> float:
    """req/s that the file asks for: the load, or what as many replicas carry of requests that arrive by themselves."""
    question = fit.question
    if question.rate is not None:
        return question.rate
    arriving = replace(question, rate=1.0, concurrency=None)
    each = carried(arriving, fit.constants, fit.chosen.layout, [{}])[0]
    return min(fit.load_s, each * fit.chosen.needed)


def _targets(answer: ServingAnswer) -> Iterator[str]:
    """Targets at the share that was asked for; the file knows three, and takes the next higher one."""
    question = answer.first.question
    level = question.quantile
    share = "" if level is None else f"_p{next((p for p in _PERCENTILES if p >= level * 100 - 1e-9), 99)}"
    yield "    target:"
    if question.ttft_s is not None:
        yield f"      ttft{share}: {question.ttft_s * 1e3:g} ms"
    if question.tpot_s is not None:
        yield f"      tpot{share}: {question.tpot_s * 1e3:g} ms"
    yield f"      survive: {question.survive_nodes} nodes"


def _train(answer: TrainingAnswer) -> Iterator[str]:
    fit, own = answer.first, answer.wants.training
    best = fit.chosen
    assert own is not None
    recipe = best.recipe
    yield "    train:"
    yield f"      framework: {recipe.framework}"
    yield f"      method: {own.method}"
    if recipe.adapter_rank is not None:
        yield f"      adapter_rank: {recipe.adapter_rank}"
    if recipe.offload != "none":
        yield f"      offload: {recipe.offload}"
    yield f"      precision: {'fp8' if recipe.precision == 'mxfp8' else recipe.precision}"
    yield f"      sequence: {recipe.sequence} tokens"
    yield f"      global_batch: {recipe.global_batch}"
    yield f"      micro_batch: {recipe.micro_batch}"
    yield f"      gpus: {best.gpus}"
    yield f"      parallel: {_parallel(file_layout(best.layout))}"
    yield f"      sharding: {_SHARDING[recipe.sharding]}"
    yield f"      recompute: {recipe.recompute}"
    if recipe.recompute == "selective":
        yield f"      recompute_modules: [{', '.join(recipe.modules)}]"
    yield f"      logits: {recipe.logits}"
    yield f"      expandable_segments: {str(recipe.expandable).lower()}"
    if own.tokens is not None:
        yield f"      tokens: {own.tokens / 1e6:.12g} Mtok"
    if own.deadline_s is not None:
        yield f"      deadline: {own.deadline_s / 3600:g} h"


#: Sharding as recipes call it → as the file does.
_SHARDING: Final = {
    "ddp": "ddp", "distributed": "zero1", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3", "fsdp": "fsdp",
}  # fmt: skip


def _parallel(layout: Layout) -> str:
    sizes = [f"{name}: {getattr(layout, name)}" for name in _FIELDS if getattr(layout, name) > 1]
    return "{" + (", ".join(sizes) or "tp: 1") + "}"


def _digits(value: float) -> str:
    """Four digits, rounded down: the file never asks for more than was answered."""
    if value <= 0:
        return "0"
    scale = 10 ** (3 - math.floor(math.log10(value)))
    return f"{math.floor(value * scale + 1e-9) / scale:g}"
