"""Speed of inference, training and collectives: one setting with its terms, or many as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.physics.ceilings import COLLECTIVES
from clusterwright.physics.collective_fits import FITS, find_terms
from clusterwright.physics.collectives import collective_us
from clusterwright.physics.hierarchies import Fabric, over_nodes_us, share_of_leaf
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.closed import aggregated, load
from clusterwright.physics.serving.constants import Constants, columns_of
from clusterwright.physics.serving.sides import side, stack
from clusterwright.physics.training.calibration import SpeedConstants
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import StepTime, step_time, step_time_arrays
from clusterwright.plan.estimating.choices import chosen
from clusterwright.plan.estimating.memories import Floats, engine_memory
from clusterwright.plan.estimating.sizes import whole_sizes
from clusterwright.plan.searching.machines import device, system
from clusterwright.plan.searching.memories import groups, served
from clusterwright.plan.searching.questions import Lengths, Pool, ServingQuestion
from clusterwright.plan.searching.serving import PRIOR
from clusterwright.plan.searching.workers import served_traffic


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """What requests meet at a concurrency, float64 of the broadcast shape.

    Args:
        ttft_s, tpot_s: means. requests_s: completed per second and replica; output_tokens_s: of all of them.
        ttft_terms, tpot_terms: seconds by term, which add up to the two.
    """

    ttft_s: Floats
    tpot_s: Floats
    requests_s: Floats
    output_tokens_s: Floats
    ttft_terms: dict[str, Floats]
    tpot_terms: dict[str, Floats]


def engine_speed(
    model: Decoder,
    pool: Pool,
    layout: Layout,
    concurrency: ArrayLike,
    *,
    prompt: ArrayLike,
    output: ArrayLike,
    cached: float = 0.0,
    engine: str = "vllm",
    constants: Constants = PRIOR,
    weights: str | None = None,
    kv_format: str = "auto",
    **settings: Any,
) -> EngineSpeed:
    """TTFT and TPOT of one replica at so many requests in flight, each sent when the last of its client has ended.

    Args:
        concurrency, prompt, output: requests in flight, mean tokens of prompt and output; broadcast.
        cached: prompt tokens whose cache is found again.
        constants: of the engine on this GPU (`planner.constants`); the prior, of which nothing was measured, if absent.
        settings: of the engine, as `engine_memory` takes them.

    Raises:
        InvalidInput: the model does not fit so, the GPU has no unit for the format, or an unknown engine or setting.
    """
    asked = ServingQuestion(model, pool, Lengths(1.0, 1.0), engine=engine, weights=weights, kv_format=kv_format)
    requests, tokens_in, tokens_out = np.broadcast_arrays(
        *(np.asarray(a, np.float64) for a in (concurrency, prompt, output))
    )
    longest = int(np.max(tokens_in + tokens_out))
    settings.setdefault("max_model_len", longest)
    memory = engine_memory(model, pool.gpu, layout, engine=engine, weights=weights, kv_format=kv_format, **settings)
    if not memory.fits:
        raise InvalidInput(f"{model.name or 'the model'} on {layout} does not fit: {'; '.join(memory.why)}")
    moved = served_traffic(asked, served(asked))
    worker = stack([side(moved, layout, device(pool), cache_tokens=memory.kv_tokens / groups(layout))])
    work = load(requests.ravel(), tokens_in.ravel(), tokens_out.ravel(), cached=cached)
    found, shape = aggregated(worker, columns_of(constants), work), requests.shape
    each = found.requests_s(work)
    return EngineSpeed(
        found.ttft_s.reshape(shape),
        found.tpot_s.reshape(shape),
        each.reshape(shape),
        (each * work.output).reshape(shape),
        {name: np.broadcast_to(value, requests.size).reshape(shape) for name, value in found.ttft.items()},
        {name: np.broadcast_to(value, requests.size).reshape(shape) for name, value in found.tpot.items()},
    )


def job_speed(
    model: Decoder, pool: Pool, layout: Layout, recipe: Recipe, constants: SpeedConstants | None = None
) -> StepTime:
    """Time of one step with its terms, tokens per second and MFU.

    Args:
        constants: as calibrated for the GPU where None.

    Raises:
        ValueError: if the catalogue has no rates of the GPU.
    """
    return step_time(model, layout, recipe, system(pool), constants)


def job_step_s(
    model: Decoder,
    pool: Pool,
    recipe: Recipe,
    *,
    tp: ArrayLike = 1,
    pp: ArrayLike = 1,
    dp: ArrayLike = 1,
    cp: ArrayLike = 1,
    ep: ArrayLike = 1,
    etp: ArrayLike = 1,
    vp: ArrayLike = 1,
    micro_batch: ArrayLike | None = None,
    constants: SpeedConstants | None = None,
) -> Floats:
    """Seconds of a step for many layouts, equal to `job_speed` row by row; arguments as `job_memory_gib`.

    Raises:
        InvalidInput: sizes below 1.
    """
    micro = recipe.micro_batch if micro_batch is None else micro_batch
    named = {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep, "etp": etp, "vp": vp, "micro_batch": micro}
    columns = dict(zip(named, whole_sizes(**named), strict=True))
    flat = {name: column.ravel() for name, column in columns.items()}
    batch = flat.pop("micro_batch")
    found: Floats = step_time_arrays(model, flat, recipe, system(pool), constants, batch)
    return found.reshape(columns["tp"].shape)


def collective_time_us(
    gpu: Gpu | str,
    operation: str,
    size_bytes: ArrayLike,
    ranks: int = 8,
    *,
    nodes: int = 1,
    nic_gbytes_s: float | None = None,
    oversubscription: float = 1.0,
    leaf_ports: int | None = None,
    rails: bool = True,
    switch_adds: bool = True,
    eight_bit: bool = False,
) -> NDArray[np.float64]:
    """µs of a collective over `ranks` GPUs of each of `nodes` nodes.

    Args:
        gpu: whose node was measured; a catalogue name or entry.
        operation: all-reduce, all-gather, reduce-scatter or all-to-all.
        size_bytes: as nccl-tests counts it; any shape.
        nic_gbytes_s: of one GPU, one direction; needed for several nodes.
        oversubscription: of the leaf switches.
        leaf_ports: ports of a leaf switch to nodes, None: no two nodes share a leaf. rails: GPU i of every node is on
            leaf i; False: all of a node are on one leaf.
        switch_adds: False where NVLS is off.
        eight_bit: numbers of 8 bit are added up, which no switch does and which costs more per byte.

    Returns:
        float64 of the shape of `size_bytes`.

    Raises:
        InvalidInput: unknown operation, a GPU whose node nobody measured, or several nodes without `nic_gbytes_s`.
    """
    name = gpu if isinstance(gpu, str) else gpu.name
    kind: Any = chosen("collective", operation, COLLECTIVES)
    terms = find_terms(name, kind, ranks, switch_adds, eight_bit)
    if terms is None:
        raise InvalidInput(f"nobody measured collectives of '{name}'; known: {', '.join(FITS)}")
    sizes = np.asarray(size_bytes, dtype=np.float64)
    if nodes == 1:
        return np.asarray(collective_us(kind, sizes, ranks, terms))
    if nic_gbytes_s is None:
        raise InvalidInput(f"{nodes} nodes need nic_gbytes_s, the rate of the NIC of one GPU in GB/s")
    shared = 1.0 if leaf_ports is None else share_of_leaf(leaf_ports, ranks, rails)
    fabric = Fabric(ranks, nodes, nic_gbytes_s, oversubscription, shared)
    each = [over_nodes_us(kind, float(size), fabric, terms).time_us for size in sizes.ravel()]
    return np.array(each, dtype=np.float64).reshape(sizes.shape)
