"""The answer as an architecture file: the shortest form that says the same, to go on from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import CURRENCIES
from clusterwright.physics.layouts import Layout
from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.plan.fitting.commands import stored_format
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import HourPrice
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.trainings import TrainingAnswer

_FIELDS: Final = ("tp", "pp", "dp", "ep", "cp")


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
        *_pool(fit.machine, fit.best.nodes, fit.price, 0 if isinstance(fit, ServingFit) else fit.lost.spares or 0),
        "workloads:",
        f"  {'service' if serving else 'job'}:",
        f"    model: {answer.decoder.name}",
        "    pools: [gpu]",
        *(_serve(answer) if isinstance(answer, ServingAnswer) else _train(answer)),
    ]
    return "\n".join(lines) + "\n"


def _pool(machine: Machine, working: int, price: HourPrice | None, spares: int) -> Iterator[str]:
    assert machine.shape is not None
    nodes = working + spares
    last = f"{nodes:03d}"
    yield "  gpu:"
    yield f'    nodes: "gpu-[001-{last}]"' if nodes > 1 else "    nodes: gpu-001"
    if spares:
        yield f"    spares: {spares}"
    yield f"    shape: {machine.shape.name}"
    if machine.gpus_per_node != machine.shape.gpus:
        yield f"    hardware: {{gpus: {machine.gpus_per_node}}}"
    if price is not None:
        sign = CURRENCIES[price.currency]
        old = f"  # {price.basis}" if price.origin == "catalogue" else ""
        yield f"    price: {sign}{price.value:.6g}/GPU-h{old}"


def _serve(answer: ServingAnswer) -> Iterator[str]:
    fit, question = answer.first, answer.first.question
    best, lengths = fit.chosen, question.lengths
    if best.layout.attention_dp > 1 or best.layout.dcp > 1:
        raise InvalidInput(f"the file cannot say attention groups within tensor ranks ({best.layout})")
    version = question.version or (None, None)
    name = question.engine if version[0] is None else f"{question.engine} {version[0]}.{version[1]}"
    yield "    serve:"
    yield f"      engine: {name}"
    yield f"      precision: {question.weights or stored_format(question.decoder)}"
    if question.kv_format in ("fp8",):
        yield f"      kv_precision: {question.kv_format}"
    yield f"      in: {lengths.mean_in:g} tokens"
    yield f"      out: {lengths.mean_out:g} tokens"
    if lengths.p95_in is not None:
        yield f"      in_p95: {lengths.p95_in:g} tokens"
    if lengths.p95_out is not None:
        yield f"      out_p95: {lengths.p95_out:g} tokens"
    yield f"      rate: {_digits(fit.load_s)} req/s"
    yield f"      replicas: {best.replicas}"
    yield f"      parallel: {_parallel(best.layout)}"
    if question.engine == "vllm":
        yield f"      memory_share: {best.memory.memory_share * 100:g}%"
    yield f"      max_model_len: {question.max_model_len} tokens"
    yield from _targets(answer)


def _targets(answer: ServingAnswer) -> Iterator[str]:
    question = answer.first.question
    yield "    target:"
    if question.ttft_s is not None:
        yield f"      ttft_p95: {question.ttft_s * 1e3:g} ms"
    if question.tpot_s is not None:
        yield f"      tpot_p95: {question.tpot_s * 1e3:g} ms"
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
    yield f"      parallel: {_parallel(best.layout, virtual=True)}"
    yield f"      sharding: {_SHARDING[recipe.sharding]}"
    yield f"      recompute: {recipe.recompute}"
    if own.tokens is not None:
        yield f"      tokens: {own.tokens / 1e6:.12g} Mtok"
    if own.deadline_s is not None:
        yield f"      deadline: {own.deadline_s / 3600:g} h"


#: Sharding as recipes call it → as the file does.
_SHARDING: Final = {
    "ddp": "ddp", "distributed": "zero1", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3", "fsdp": "fsdp",
}  # fmt: skip


def _parallel(layout: Layout, *, virtual: bool = False) -> str:
    names = (*_FIELDS, "vp") if virtual else _FIELDS
    sizes = [f"{name}: {getattr(layout, name)}" for name in names if getattr(layout, name) > 1]
    return "{" + (", ".join(sizes) or "tp: 1") + "}"


def _digits(value: float) -> str:
    """Four digits, rounded down: the file never asks for more than was answered."""
    if value <= 0:
        return "0"
    scale = 10 ** (3 - math.floor(math.log10(value)))
    return f"{math.floor(value * scale + 1e-9) / scale:g}"
