"""What NVIDIA's performance recipes set beside what its tables print.

Read in Megatron-Bridge, `scripts/performance/configs` (`grad_reduce_in_fp32 = False` for every model) and
`src/megatron/bridge/perf_recipes`, 2025-10 to 2026-07. Recipes change from release to release and tables do not say
which version they are of: recomputation is used only where every version that was read recomputes the same.
"""

from __future__ import annotations

from typing import Any, Final

from validation.training_tables import Run

#: Formats whose recipes keep weights in 8 bits; those of NVFP4 keep 16 bits (`training/mixed_precision.py`).
FP8_WEIGHTS: Final = ("fp8", "mxfp8")
#: B of accumulated and reduced gradients.
GRADIENT_BYTES: Final = 2.0
#: (model, system or "" for all) → what is recomputed. DeepSeek-V4 also recomputes what hyper-connections mix.
RECOMPUTED: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("DeepSeekV4 Flash", ""): ("layernorm", "mla_up_proj", "mlp", "moe_act"),
    ("GPT OSS 120B", "DGX-B200"): ("layernorm", "moe_act"),
    ("GPT OSS 120B", "DGX-GB200"): ("layernorm", "moe_act"),
    ("GPT OSS 120B", "DGX-H100"): ("layernorm", "moe_act"),
    ("Kimi_K2", ""): ("mla_up_proj",),
    ("Nemotron_3_Ultra", ""): ("moe_act",),
}
#: Models of experts on systems whose recipes use no CUDA graphs; "" for all systems.
EAGER: Final = (
    ("DeepSeekV3", "DGX-H100"),
    ("GPT OSS 120B", "DGX-B200"),
    ("GPT OSS 120B", "DGX-GB200"),
    ("GPT OSS 120B", "DGX-H100"),
    ("Kimi_K2", ""),
    ("Nemotron_3_Super", "DGX-B200"),
    ("Nemotron_3_Ultra", ""),
    ("Qwen3_235B_a22B", "DGX-B200"),
    ("Qwen3_235B_a22B", "DGX-B300"),
    ("Qwen3_235B_a22B", "DGX-H100"),
    ("Qwen3_30B_a3B", "DGX-H100"),
)
#: Models and formats whose recipe on one system recomputes nothing and runs from one CUDA graph.
_NOTHING: Final = (("GPT OSS 120B", "DGX-GB200", "mxfp8"),)


def without_graphs(run: Run) -> bool:
    """Whether the recipe of a run launches expert layers kernel by kernel; DeepSeek-V3 on B200 does in 16 stages."""
    if (run.model, run.system, run.precision) in _NOTHING:
        return False
    known = (run.model, run.system) in EAGER or (run.model, "") in EAGER
    return known or (run.model == "DeepSeekV3" and run.system == "DGX-B200" and run.pp == 16)


def set_by_recipe(run: Run) -> dict[str, Any]:
    """Fields of `Recipe` that the recipe of a run sets."""
    found: dict[str, Any] = {"gradient_accumulation_bytes": GRADIENT_BYTES, "graphs": not without_graphs(run)}
    modules = RECOMPUTED.get((run.model, run.system)) or RECOMPUTED.get((run.model, ""))
    if modules and (run.model, run.system, run.precision) not in _NOTHING:
        found |= {"recompute": "selective", "modules": modules}
    return found
