"""Rows of memory.jsonl about training as decoder, layout and recipe: what a row says, else what its engine does.

Nothing is guessed from what was measured. A row of an engine or a model that is not known here has no estimate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clusterwright.model.decoders import Attention, Decoder, Layer, Mlp, Part
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.memory import StageMemory
from clusterwright.physics.training.recipes import Recipe
from validation.memory_shapes import decoder_of

#: Word in a row's engine → framework of the estimate; first match wins. Engines on PyTorch's own sharding are planned
#: as torchtitan is.
_FRAMEWORKS: Final = (
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("deepspeed", "deepspeed"),
    ("megatron", "megatron"),
    ("nemo", "megatron"),
    ("torchtitan", "torchtitan"),
    ("torchtune", "torchtitan"),
    ("fsdp", "torchtitan"),
    ("pytorch", "torchtitan"),
    ("transformers", "torchtitan"),
    ("hf", "torchtitan"),
)
#: Models without a config beside the rows: layers, hidden, heads, KV heads, head, width, vocabulary of config.json.
_SHAPES: Final = {
    "Qwen2.5-7B": (28, 3584, 28, 4, 128, 18944, 152064),
    "Qwen2.5-14B": (48, 5120, 40, 8, 128, 13824, 152064),
    "Qwen2.5-32B": (64, 5120, 40, 8, 128, 27648, 152064),
    "Qwen2.5-72B": (80, 8192, 64, 8, 128, 29568, 152064),
    "Qwen3-14B": (40, 5120, 40, 8, 128, 17408, 151936),
}
#: Rank of adapters where a row names none (`peft.LoraConfig`).
_RANK: Final = 8


def read_case(case: Mapping[str, Any], configs: Path) -> tuple[Decoder, Layout, Recipe] | None:
    """What a row ran; None where its engine or its model is not known."""
    framework = next((ours for theirs, ours in _FRAMEWORKS if theirs in case["engine"].lower()), None)
    decoder = _decoder(case, configs)
    if framework is None or decoder is None:
        return None
    layout = _layout(case)
    return decoder, layout, Recipe(**_recipe(case, framework, layout))


def shown_gib(case: Mapping[str, Any], peak: StageMemory) -> float:
    """What the row's tool shows: nvidia-smi counts CUDA's context, PyTorch's reserved memory does not, its allocated
    memory neither that nor what is reserved beside.
    """
    terms, unit = dict(peak.terms), str(case["unit"])
    if "allocated" in unit:
        return peak.total_gib - terms["CUDA context and NCCL"] - terms["allocator reserve"]
    return peak.total_gib - (terms["CUDA context and NCCL"] if "reserved" in unit else 0.0)


def _layout(case: Mapping[str, Any]) -> Layout:
    sizes = {k: int(case["parallel"].get(k) or 1) for k in ("tp", "pp", "cp", "ep", "vp", "etp")}
    inner = sizes["tp"] * sizes["pp"] * sizes["cp"]
    return Layout(dp=int(case["parallel"].get("dp") or max(int(case["num_gpus"] or 1) // inner, 1)), **sizes)


def _recipe(case: Mapping[str, Any], framework: str, layout: Layout) -> dict[str, Any]:
    said, batch = _said(case), int(case["local_batch"] or 1)
    fp8 = "fp8" in said
    found: dict[str, Any] = {
        "framework": framework,
        "sharding": _sharding(case, framework, layout),
        "precision": "fp8" if fp8 else "fp16" if "fp16" in _text(case, "param_dtype") else "bf16",
        "fp8_weights": fp8,
        "sequence": int(case["seq_len"]),
        "micro_batch": batch,
        "global_batch": int(case["global_batch"] or batch * layout.dp),
        "recompute": _recompute(_text(case, "activation_ckpt")),
        "logits": _logits(said, framework),
        "in_place": "liger" in said,
        "expandable": "expandable" in said or "ms-swift" in said,
        "offload": _offload(case),
    }
    if framework == "megatron-deepspeed":
        found |= {"sequence_parallel": False, "flash": False, "dropout": True}
        if "fp32 gradient accumulation" in said:
            found["gradient_accumulation_bytes"] = 4.0
    return found | _optimizer(case, said, fp8) | _adapters(said)


def _said(case: Mapping[str, Any]) -> str:
    """Everything that a row says in words about how it ran."""
    keys = ("engine", "model", "param_dtype", "optimizer", "techniques", "activation_ckpt")
    return " ".join(_text(case, key) for key in keys)


def _text(case: Mapping[str, Any], key: str) -> str:
    return str(case.get(key) or "").lower()


def _offload(case: Mapping[str, Any]) -> str:
    moved = str(case["parallel"].get("offload") or "").lower()
    if "param" in moved:
        return "parameters"
    return "optimizer" if moved or re.search(r"cpu|offload", _text(case, "optimizer")) else "none"


def _sharding(case: Mapping[str, Any], framework: str, layout: Layout) -> str:
    zero = case["parallel"].get("zero")
    if framework in ("deepspeed", "megatron-deepspeed"):
        return f"zero{zero}" if zero else "ddp"
    if framework == "megatron":
        return "fsdp" if case["parallel"].get("fsdp") else "ddp" if zero == 0 else "distributed"
    return "fsdp" if layout.dp * layout.cp > 1 and "ddp" not in case["parallel"] else "ddp"


def _recompute(said: str) -> str:
    if said.startswith("full"):
        return "full"
    return "selective" if re.search(r"selective|sac|per.op", said) else "none"


def _logits(said: str, framework: str) -> str:
    """Liger and other chunked losses; fused where a row says so or its framework's examples switch it on."""
    if re.search(r"liger|chunk|cut.cross", said):
        return "chunked"
    return "fused" if framework == "megatron" or re.search(r"compile|fused (ce|cross|loss)", said) else "unfused"


def _optimizer(case: Mapping[str, Any], said: str, fp8: bool) -> dict[str, float]:
    """B of master weights and of one moment, where they are not fp32.

    Paged states are managed memory, which PyTorch does not count; an optimizer in the backward pass keeps no gradients.
    Scripts of ms-swift under `fp8/` set Megatron's precision-aware optimizer with 16-bit moments, which keeps what
    master weights have beyond 16-bit ones; torchtune trains in the format of its weights.
    """
    named = _text(case, "optimizer")
    eight = {"moment_bytes": 0.0} if "paged" in named else {"moment_bytes": 1.0} if re.search(r"8.?bit", named) else {}
    if re.search(r"in.(the.)?(backward|bwd)", said):
        eight["gradient_accumulation_bytes"] = 0.0
    if "torchtune" in said and "bf16" in _text(case, "param_dtype"):
        return {"master_bytes": 0.0, "moment_bytes": 2.0} | eight
    if "precision-aware" in named or "/fp8/" in str(case.get("source")):
        return {"master_bytes": 4.0 if fp8 else 2.0, "moment_bytes": 2.0} | eight
    return eight


def _adapters(said: str) -> dict[str, Any]:
    if "lora" not in said:
        return {}
    rank = re.search(r"(?:rank|r)\s*[= ]?\s*(\d+)", said[said.index("lora") :])
    base = "nf4" if re.search(r"qlora|4.?bit|nf4", said) else "bf16"
    return {"adapter_rank": int(rank[1]) if rank else _RANK, "base": base}


def _decoder(case: Mapping[str, Any], configs: Path) -> Decoder | None:
    shape, name = case["shape"] or {}, str(case["model"])
    if "BLOOM" in name:
        layers = shape["layers"] or _layers_of_size(name, shape["hidden"], case["parallel"]["pp"])
        return gpt(name, layers, shape["hidden"], shape["heads"] or 96, 250880)
    found = decoder_of({"model": name, "weight_dtype": "", "shape": shape or {"layers": 1}}, configs)
    known = next((llama(name, *sizes) for part, sizes in _SHAPES.items() if part in name), None)
    return found or known


def _layers_of_size(model: str, hidden: int, pp: int) -> int:
    """Layers of a model known by its size, "194B", which fill pp stages evenly: 12·h² parameters each."""
    found = re.search(r"(\d+)B", model)
    size = float(found[1]) * 1e9 if found else 200e9
    return round(size / (12 * hidden**2) / pp) * pp


def gpt(name: str, layers: int, hidden: int, heads: int, vocab: int) -> Decoder:
    """A GPT-2 shaped decoder with tied embedding."""
    width, key = 4 * hidden, hidden / heads
    parts = (
        Part("attention", 4 * hidden * hidden + 3 * hidden, 4 * hidden * hidden, "tp"),
        Part("mlp", 2 * hidden * width + width, 2 * hidden * width, "tp"),
        Part("norm", 6 * hidden, 6 * hidden, "none"),
    )
    layer = Layer(Attention(heads, heads, round(key), round(key)), Mlp(width, 2), parts)
    table = (Part("embedding", vocab * hidden, 0, "tp"), Part("norm", 2 * hidden, 2 * hidden, "none"))
    return Decoder(name, "GPT", hidden, vocab, 2048, (layer,) * layers, table, tied=True)


def llama(name: str, layers: int, hidden: int, heads: int, kv_heads: int, key: int, width: int, vocab: int) -> Decoder:
    """A Llama shaped decoder with its own head."""
    query, cached = hidden * heads * key, 2 * hidden * kv_heads * key
    parts = (
        Part("attention", 2 * query, 2 * query, "tp"),
        Part("attention", cached, cached, "kv", copies=kv_heads),
        Part("mlp", 3 * hidden * width, 3 * hidden * width, "tp"),
        Part("norm", 2 * hidden, 2 * hidden, "none"),
    )
    layer = Layer(Attention(heads, kv_heads, key, key), Mlp(width), parts)
    table = (
        Part("embedding", vocab * hidden, 0, "tp"),
        Part("head", vocab * hidden, vocab * hidden, "tp"),
        Part("norm", hidden, hidden, "none"),
    )
    return Decoder(name, "LlamaForCausalLM", hidden, vocab, 131072, (layer,) * layers, table, tied=False)
