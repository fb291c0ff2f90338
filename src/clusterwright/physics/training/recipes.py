"""How a model is trained: framework, sharding, number formats, batch, recomputation, offload, adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Framework = Literal["megatron", "megatron-deepspeed", "torchtitan", "deepspeed"]
Sharding = Literal["ddp", "distributed", "zero1", "zero2", "zero3", "fsdp"]
Precision = Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]
Recompute = Literal["none", "selective", "full"]
Logits = Literal["unfused", "fused", "chunked"]
Offload = Literal["none", "optimizer", "parameters"]
Base = Literal["bf16", "fp8", "nf4"]

#: Sharding that divides the weights themselves.
SHARDS_WEIGHTS: Final = ("zero3", "fsdp")
#: Parts of a layer that Megatron's selective recomputation can drop (`--recompute-modules`).
MODULES: Final = ("core_attn", "layernorm", "moe_act", "mla_up_proj", "mlp", "moe")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a training job does on every GPU.

    Args:
        sharding: ddp; distributed (Megatron's distributed optimizer); zero1, zero2, zero3 (DeepSpeed); fsdp (FSDP2).
        shard_ranks: data-parallel ranks that share states, None for all (hybrid sharding, optimizer instances).
        precision: of matrix products; everything but fp16 keeps bf16 weights unless `fp8_weights`.
        fp8_weights: primary weights are fp8 (Megatron `--fp8-param-gather`); else products cast and keep casts.
        sequence: tokens of one sequence; micro_batch: sequences per GPU group at once; global_batch: per step.
        recompute_layers: layers of each stage that full recomputation covers, None for all.
        modules: what selective recomputation drops, of MODULES.
        sequence_parallel: tensor ranks split what they would otherwise copy.
        flash: attention never stores its score matrix.
        in_place: gated products overwrite their inputs with the gradients (Liger kernels, arXiv:2410.10989, section 3).
        dropout: masks are kept (GPT-3 and BLOOM; not Llama and later).
        logits: unfused; fused (loss in one kernel, gradient in place); chunked (never whole).
        master_bytes, moment_bytes: B per parameter of master weights and of one of two moments (precision-aware
            optimizers hold less than 4).
        gradient_accumulation_bytes: B of accumulated gradients, None for what the framework does.
        expandable: PyTorch's expandable segments, which leave next to nothing reserved but unused.
        offload: what the host holds.
        adapter_rank: rank of LoRA adapters on all linear layers outside experts; None trains everything.
        base: format of frozen weights under adapters; nf4 is QLoRA.
        expert_imbalance: tokens of the fullest expert rank ÷ mean; 1 is forced balance or capacity factor 1.
        drafts: multi-token-prediction layers are trained too.
        stage_layers: layers per pipeline stage where they are not even.
        graphs: layers are launched as CUDA graphs, as NVIDIA's recipes for Blackwell do; without them (Megatron's
            default) the host launches every kernel of an expert layer and waits for how many tokens each expert gets.
    """

    framework: Framework = "megatron"
    sharding: Sharding = "distributed"
    shard_ranks: int | None = None
    precision: Precision = "bf16"
    fp8_weights: bool = False
    sequence: int = 4096
    micro_batch: int = 1
    global_batch: int = 256
    recompute: Recompute = "none"
    recompute_layers: int | None = None
    modules: tuple[str, ...] = ("core_attn",)
    sequence_parallel: bool = True
    flash: bool = True
    in_place: bool = False
    dropout: bool = False
    logits: Logits = "unfused"
    master_bytes: float = 4.0
    moment_bytes: float = 4.0
    gradient_accumulation_bytes: float | None = None
    expandable: bool = False
    offload: Offload = "none"
    adapter_rank: int | None = None
    base: Base = "bf16"
    expert_imbalance: float = 1.0
    drafts: bool = False
    stage_layers: tuple[int, ...] = ()
    graphs: bool = False

    def __post_init__(self) -> None:
        for name in ("sequence", "micro_batch", "global_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}; at least 1")
        if unknown := set(self.modules) - set(MODULES):
            raise ValueError(f"modules {sorted(unknown)}; of {', '.join(MODULES)}")
        if self.offload == "parameters" and self.sharding not in SHARDS_WEIGHTS:
            raise ValueError(f"parameters cannot be offloaded under {self.sharding}; only under zero3 or fsdp")

    @property
    def low_precision(self) -> bool:
        """Whether matrix products run below 16 bits."""
        return self.precision in ("fp8", "mxfp8", "nvfp4")


@dataclass(frozen=True, slots=True)
class MemoryConstants:
    """Constants of training memory: documented, or counted; only the reserves were set in view of measured runs.

    Args:
        reserve: reserved ÷ allocated at the peak. Megatron 1.2 (published runs of 2022 to 2024, default allocator).
        reserve_fsdp: the same of what comes and goes in a step under PyTorch's own sharding and DeepSpeed, which put
            torchtitan's published runs of Llama 3.1 8B (2024-12) on both sides of the estimate.
        reserve_expandable: the same with expandable segments, and temporaries that are not counted: what dense Megatron
            runs of Qwen2.5 7B, 14B and 72B and Qwen3 32B take (ms-swift, `examples/megatron`, 2025).
        context_gib: CUDA context with the kernels of cuBLAS, cuDNN and NCCL loaded.
        communicator_gib: NCCL buffers of one communicator: 4 MiB (NCCL_BUFFSIZE) + 4.6 MiB (LL128) + .5 MiB (LL) for
            16 channels in both directions (NCCL environment documentation).
        unfused, fused, compiled: B per logit: bf16 2, fp32 copy 4, softmax 4, gradient 4; fused bf16 2 and fp32
            gradient 4; compiled by PyTorch, which widens in registers, bf16 2 and bf16 gradient 2.
        bucket_elements: DeepSpeed's default `reduce_bucket_size` and `allgather_bucket_size`.
        bucket_copies: factor for both under `overlap_comm` ("4.5x", 9 GB; Hugging Face DeepSpeed guide).
        frozen_bytes: B per frozen parameter under adapters; nf4 with double quantisation 4.127 bits
            (QLoRA, arXiv:2305.14314, section 3).
    """

    reserve: float = 1.2
    reserve_fsdp: float = 1.1
    reserve_expandable: float = 1.1
    context_gib: float = 0.6
    communicator_gib: float = 0.3
    unfused: float = 14.0
    fused: float = 6.0
    compiled: float = 4.0
    bucket_elements: float = 5e8
    bucket_copies: float = 4.5
    frozen_bf16: float = 2.0
    frozen_fp8: float = 1.0
    frozen_nf4: float = 4.127 / 8

    def reserved(self, recipe: Recipe) -> float:
        """Reserved ÷ allocated of a recipe."""
        if recipe.expandable:
            return self.reserve_expandable
        plain = recipe.sharding in SHARDS_WEIGHTS or recipe.framework in ("torchtitan", "deepspeed")
        return self.reserve_fsdp if plain else self.reserve

    def frozen(self, base: str) -> float:
        """B per frozen parameter."""
        return {"bf16": self.frozen_bf16, "fp8": self.frozen_fp8, "nf4": self.frozen_nf4}[base]


MEMORY: Final = MemoryConstants()
