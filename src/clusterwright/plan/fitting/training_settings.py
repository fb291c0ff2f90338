"""What to set in the framework so that a job runs as it was found.

Sources: Megatron-LM `megatron/training/arguments.py` (core 0.13); Megatron-Core "Optimizer CPU offload";
Megatron-Bridge "Parameter-Efficient Fine-Tuning"; torchtitan `config/job_config.py` (0.2); DeepSpeed "Configuration
JSON"; PyTorch "CUDA semantics", PYTORCH_CUDA_ALLOC_CONF; Accelerate "Fully Sharded Data Parallel"; PEFT "LoRA"
(`all-linear`); bitsandbytes "FSDP-QLoRA".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.recipes import Recipe
from clusterwright.plan.fitting.training_fits import TrainingFit

#: Framework → where its settings go.
_PLACES: Final = {
    "megatron": "Megatron's arguments",
    "torchtitan": "torchtitan's options",
    "deepspeed": "DeepSpeed's configuration",
}
_ALLOCATOR: Final = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def place_of(fit: TrainingFit) -> str:
    """Where the settings go."""
    recipe = fit.chosen.recipe
    return "Accelerate's FSDP configuration" if _with_peft(recipe) else _PLACES[recipe.framework]


def settings_of(fit: TrainingFit) -> tuple[str, ...]:
    """Options of the best layout as the framework calls them, one an entry; DeepSpeed's are one JSON object."""
    layout, recipe = fit.chosen.layout, fit.chosen.recipe
    assert fit.search is not None
    if _with_peft(recipe):
        return tuple(_accelerate(recipe))
    if recipe.framework == "torchtitan":
        return tuple(_torchtitan(layout, recipe))
    if recipe.framework == "deepspeed":
        return (json.dumps(_deepspeed(layout, recipe)),)
    return tuple(_megatron(layout, recipe, len(fit.search.question.decoder.layers)))


def beside_settings(fit: TrainingFit) -> tuple[str, ...]:
    """What to set elsewhere: the allocator, adapters, their 4-bit base."""
    recipe, found = fit.chosen.recipe, list[str]()
    if recipe.expandable:
        found.append(f"in the environment: {_ALLOCATOR}")
    if recipe.adapter_rank is not None:
        experts = " outside routed experts" if _has_experts(fit) else ""
        found.append(f"adapters of rank {recipe.adapter_rank} on all linear layers of attention and MLP{experts}")
        megatron = recipe.framework == "megatron"
        found.append("Megatron-Bridge calls the rank peft.dim" if megatron else "PEFT calls them r and all-linear")
    if _with_peft(recipe):
        each = max(recipe.global_batch // (recipe.micro_batch * fit.chosen.layout.dp), 1)
        found.append(f"per_device_train_batch_size {recipe.micro_batch}, gradient_accumulation_steps {each}")
    if recipe.base == "nf4":
        found.append("the base in nf4, double quantised; bitsandbytes shards it with bnb_4bit_quant_storage=bfloat16")
    if recipe.framework == "deepspeed" and recipe.recompute != "none":
        found.append("activation checkpointing of every layer, in the model's code")
    return tuple(found)


def _with_peft(recipe: Recipe) -> bool:
    """Whether adapters run on FSDP2, outside torchtitan, which has none."""
    return recipe.framework == "torchtitan" and recipe.adapter_rank is not None


def _accelerate(recipe: Recipe) -> Iterator[str]:
    yield "fsdp_version: 2"
    yield "fsdp_reshard_after_forward: true"
    yield "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP"
    yield f"fsdp_activation_checkpointing: {'true' if recipe.recompute == 'full' else 'false'}"
    yield f"fsdp_offload_params: {'true' if recipe.offload == 'parameters' else 'false'}"


def _has_experts(fit: TrainingFit) -> bool:
    assert fit.search is not None
    return fit.search.question.decoder.is_moe


def _megatron(layout: Layout, recipe: Recipe, layers: int) -> Iterator[str]:
    sizes = {"tensor-model": layout.tp, "pipeline-model": layout.pp, "context": layout.cp, "expert-model": layout.ep}
    yield from (f"--{name}-parallel-size {size}" for name, size in sizes.items() if size > 1)
    if layout.ep > 1:
        yield f"--expert-tensor-parallel-size {layout.etp}"
    if layout.vp > 1:
        yield f"--num-virtual-stages-per-pipeline-rank {layout.vp}"
    if layout.pp > 1 and layers % (layout.pp * layout.vp):
        yield "--account-for-embedding-in-pipeline-split"
        yield "--account-for-loss-in-pipeline-split"
    if layout.tp > 1 and recipe.sequence_parallel:
        yield "--sequence-parallel"
    yield f"--seq-length {recipe.sequence}"
    yield f"--micro-batch-size {recipe.micro_batch}"
    yield f"--global-batch-size {recipe.global_batch}"
    yield "--fp16" if recipe.precision == "fp16" else "--bf16"
    if recipe.precision in ("fp8", "mxfp8"):
        yield "--fp8-format hybrid" if recipe.precision == "fp8" else "--fp8-format e4m3 --fp8-recipe mxfp8"
    if recipe.precision == "nvfp4":
        yield "--fp4-format e2m1"
    yield "--use-distributed-optimizer"
    yield "--cross-entropy-loss-fusion"
    if recipe.recompute == "full":
        yield "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
    elif recipe.recompute == "selective":
        yield f"--recompute-granularity selective --recompute-modules {' '.join(recipe.modules)}"
    if recipe.offload == "optimizer":
        yield "--optimizer-cpu-offload --optimizer-offload-fraction 1.0 --use-precision-aware-optimizer"


def _torchtitan(layout: Layout, recipe: Recipe) -> Iterator[str]:
    yield f"--parallelism.data_parallel_shard_degree {layout.dp}"
    sizes = {"tensor": layout.tp, "pipeline": layout.pp, "context": layout.cp, "expert": layout.ep}
    yield from (f"--parallelism.{name}_parallel_degree {size}" for name, size in sizes.items() if size > 1)
    yield f"--training.seq_len {recipe.sequence}"
    yield f"--training.local_batch_size {recipe.micro_batch}"
    yield f"--training.global_batch_size {recipe.global_batch}"
    yield f"--activation_checkpoint.mode {recipe.recompute}"
    if recipe.precision in ("fp8", "mxfp8"):
        yield f"--model.converters {'float8' if recipe.precision == 'fp8' else 'mx'}"
    if recipe.offload == "parameters":
        yield "--training.enable_cpu_offload"


def _deepspeed(layout: Layout, recipe: Recipe) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": 3, "overlap_comm": True}
    if recipe.offload != "none":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if recipe.offload == "parameters":
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    found: dict[str, Any] = {
        "zero_optimization": zero,
        ("fp16" if recipe.precision == "fp16" else "bf16"): {"enabled": True},
        "train_micro_batch_size_per_gpu": recipe.micro_batch,
        "train_batch_size": recipe.global_batch,
        "gradient_accumulation_steps": max(recipe.global_batch // (recipe.micro_batch * layout.dp), 1),
    }
    if layout.tp > 1:
        found["tensor_parallel"] = {"autotp_size": layout.tp}
    return found
