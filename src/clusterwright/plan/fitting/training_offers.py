"""What training frameworks do not offer together, by option.

Sources: Megatron-Core "Optimizer CPU offload" (the optimizer only); PyTorch FSDP2, `CPUOffloadPolicy` (parameters,
gradients and optimizer together); DeepSpeed configuration, `offload_optimizer` and `offload_param` (the latter with
ZeRO-3, which is what is planned); Megatron-Bridge "Parameter-Efficient Fine-Tuning" (LoRA and DoRA over weights as they
are loaded); bitsandbytes "FSDP-QLoRA"; QLoRA, arXiv:2305.14314, section 3 (4-bit weights are multiplied in 16 bits).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clusterwright.plan.fitting.wants import TrainingWants


def refused(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(option, what is wrong, what to do) of every option that does not go with another.

    Args:
        values: options that were understood, by name.
    """
    named = ("framework", "method", "offload")
    own = TrainingWants(**{name: values[name] for name in named if name in values})
    if own.method == "qlora" and own.trainer == "megatron":
        yield "method", "megatron trains no adapters over 4-bit weights", "--method lora, or --framework torchtitan"
    if own.offload == "parameters" and own.trainer == "megatron":
        yield "offload", "megatron offloads the optimizer only", "--offload optimizer, or --framework torchtitan"
    if own.offload == "optimizer" and own.trainer == "torchtitan" and not own.adapters:
        hint = "--offload parameters, or --framework megatron or deepspeed"
        yield "offload", "FSDP2 offloads parameters, gradients and optimizer together", hint
    if own.offload == "optimizer" and own.adapters:
        yield "offload", "the optimizer of adapters is too small to be worth it", "--offload parameters"
    if "rank" in values and not own.adapters:
        yield "rank", "only adapters have a rank", "add --method lora or qlora"
    if own.method == "qlora" and values.get("precision", "bf16") not in ("bf16", "fp16"):
        yield "precision", "4-bit weights are multiplied in 16 bits", "--precision bf16, or --method lora"
