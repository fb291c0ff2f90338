"""Memory of inference and training: one layout with all its terms, or many as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.physics.caches_by_layer import KV_BITS, sequence_bytes
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.arrays import CacheTable, Evaluated, VllmTable
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.engines.results import Gpu as EngineGpu
from clusterwright.physics.engines.settings import Settings
from clusterwright.physics.engines.vllm_versions import default_share
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import requantised
from clusterwright.physics.training.memory import training_memory_arrays
from clusterwright.physics.training.recipes import MEMORY, MemoryConstants, Recipe
from clusterwright.plan.estimating.choices import chosen
from clusterwright.plan.estimating.sizes import at_least_one, layouts_of, whole_sizes
from clusterwright.plan.searching.machines import reported_gib

Floats = NDArray[np.float64]
#: The layout where none is asked for.
ONE_GPU: Final = Layout()
#: Sizes of a layout that vLLM's memory depends on and that come as arrays.
_SIZES: Final = ("tp", "pp", "dp", "dcp")
#: Engines by name with their settings where nothing is asked for.
ENGINES: Final[Mapping[str, Settings]] = {
    "vllm": vllm.VllmSettings(),
    "sglang": sglang.SglangSettings(),
    "tensorrt-llm": tensorrt_llm.TrtllmSettings(),
}


def kv_bytes_per_token(
    model: Decoder, tp: ArrayLike = 1, pp: ArrayLike = 1, *, kv_format: str = "bf16", windows: bool = False
) -> Floats:
    """B of KV cache that one more token of a long sequence takes on the GPU of the fullest pipeline stage.

    Args:
        tp, pp: tensor ranks and pipeline stages, whole numbers; broadcast.
        kv_format: of the cache: bf16, fp8, nvfp4, fp8_ds_mla (sparse latent attention) or fp32.
        windows: count windowed layers as if they kept every token (engines without window-aware pools).

    Returns:
        float64 of the broadcast shape; of shape () for two numbers. More ranks than KV heads bring nothing.

    Raises:
        InvalidInput: unknown format, or sizes below 1.
    """
    table = CacheTable(model, chosen("format of the cache", kv_format, KV_BITS), windows)
    ranks, stages = whole_sizes(tp=tp, pp=pp)
    found = table.kv_bytes_per_token(ranks.ravel(), stages.ravel())
    return found.reshape(ranks.shape)


def kv_bytes_per_sequence(model: Decoder, tokens: int, layout: Layout = ONE_GPU, *, kv_format: str = "bf16") -> int:
    """B that one sequence of `tokens` keeps on the GPU of the fullest stage: windows and states as they are.

    Raises:
        InvalidInput: unknown format.
    """
    return sequence_bytes(model, layout, chosen("format of the cache", kv_format, KV_BITS), tokens)


def engine_memory(
    model: Decoder,
    gpu: Gpu | EngineGpu,
    layout: Layout = ONE_GPU,
    *,
    engine: str = "vllm",
    weights: str | None = None,
    advise: bool = True,
    **settings: Any,
) -> EngineMemory:
    """Memory of the GPU that binds under an engine's own rules: its bar, the cache, why not, what to change, flags.

    Args:
        engine: vllm, sglang or tensorrt-llm.
        weights: format that linear layers are served in, None as stored.
        advise: try changes where it does not fit.
        settings: fields of the engine's settings: version, max_model_len, max_num_seqs, max_num_batched_tokens,
            memory_share, kv_format, speculative_tokens, eager, ….

    Raises:
        InvalidInput: unknown engine or setting.
    """
    served = model if weights is None else requantised(model, weights)
    how = settings_of(engine, **settings)
    device = gpu if isinstance(gpu, EngineGpu) else EngineGpu(gpu.name, reported_gib(gpu), gpu.vendor)
    if isinstance(how, vllm.VllmSettings):
        return vllm.plan_memory(served, layout, device, how, advise=advise)
    if isinstance(how, sglang.SglangSettings):
        return sglang.plan_memory(served, layout, device, how, advise=advise)
    assert isinstance(how, tensorrt_llm.TrtllmSettings)
    return tensorrt_llm.plan_memory(served, layout, device, how, advise=advise)


def settings_of(engine: str, **settings: Any) -> Settings:
    """An engine's settings with some of them changed.

    Raises:
        InvalidInput: unknown engine or setting.
    """
    plain = ENGINES[chosen("engine", engine, ENGINES)]
    for name in settings:
        chosen(f"setting of {engine}", name, plain.__dataclass_fields__)
    return replace(plain, **settings)


def engine_memory_arrays(
    model: Decoder,
    gpu: Gpu | EngineGpu,
    *,
    tp: ArrayLike = 1,
    pp: ArrayLike = 1,
    dp: ArrayLike = 1,
    dcp: ArrayLike = 1,
    max_model_len: ArrayLike | None = None,
    max_num_seqs: ArrayLike | None = None,
    max_num_batched_tokens: ArrayLike | None = None,
    memory_share: ArrayLike | None = None,
    reported_gib_per_gpu: ArrayLike | None = None,
    weights: str | None = None,
    **settings: Any,
) -> Evaluated:
    """vLLM's memory of many layouts, lengths and batches, equal to `engine_memory` row by row.

    Args:
        tp, pp, dp, dcp: whole numbers; they and the next five broadcast.
        max_model_len: longest sequence, tokens; the model's own limit where None. max_num_seqs,
            max_num_batched_tokens, memory_share: vLLM's defaults on this GPU where None.
        reported_gib_per_gpu: memory as CUDA reports it, that of `gpu` where None.
        settings: other fields of vLLM's settings, one value for all.

    Returns:
        Pool in GiB, blocks, tokens, sequences of `max_model_len` at a time and whether one fits, each of the broadcast
        shape.

    Raises:
        InvalidInput: unknown setting, or sizes below 1.
    """
    how = settings_of("vllm", **settings)
    assert isinstance(how, vllm.VllmSettings)
    served = model if weights is None else requantised(model, weights)
    device = gpu if isinstance(gpu, EngineGpu) else EngineGpu(gpu.name, reported_gib(gpu), gpu.vendor)
    layouts, which = layouts_of(_SIZES, whole_sizes(tp=tp, pp=pp, dp=dp, dcp=dcp))
    step = vllm.step_of(Case(served, layouts[0], device, how))
    given = (
        which,
        device.reported_gib if reported_gib_per_gpu is None else reported_gib_per_gpu,
        default_share(how.version) if memory_share is None else memory_share,
        step.length if max_model_len is None else max_model_len,
        step.sequences if max_num_seqs is None else max_num_seqs,
        step.tokens if max_num_batched_tokens is None else max_num_batched_tokens,
    )
    columns = np.broadcast_arrays(*given)
    at_least_one(max_model_len=columns[3], max_num_seqs=columns[4], max_num_batched_tokens=columns[5])
    flat = VllmTable(served, layouts, device, how).evaluate(*(np.ascontiguousarray(c).ravel() for c in columns))
    shape = columns[0].shape
    return Evaluated(**{name: getattr(flat, name).reshape(shape) for name in Evaluated.__dataclass_fields__})


def job_memory_gib(
    model: Decoder,
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
    constants: MemoryConstants = MEMORY,
) -> Floats:
    """GiB on the fullest GPU of a training job for many layouts, equal to the peak of `job_memory` row by row.

    Args:
        tp, pp, dp, cp, ep, etp, vp, micro_batch: whole numbers; broadcast. The recipe's micro-batch where None.

    Raises:
        InvalidInput: sizes below 1.
    """
    micro = recipe.micro_batch if micro_batch is None else micro_batch
    names = ("tp", "pp", "dp", "cp", "ep", "etp", "vp", "micro_batch")
    columns = dict(
        zip(names, whole_sizes(tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, etp=etp, vp=vp, micro_batch=micro), strict=True)
    )
    flat = {name: column.ravel() for name, column in columns.items()}
    batch = flat.pop("micro_batch")
    found: Floats = training_memory_arrays(model, flat, recipe, constants, batch)
    return found.reshape(columns["tp"].shape)
