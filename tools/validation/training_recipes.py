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
#: Models and formats of which the recipe of one system recomputes nothing.
_NOTHING: Final = (("GPT OSS 120B", "DGX-GB200", "mxfp8"),)


def set_by_recipe(run: Run) -> dict[str, Any]:
    """Fields of `Recipe` that the recipe of a run sets."""
    found: dict[str, Any] = {"gradient_accumulation_bytes": GRADIENT_BYTES}
    modules = RECOMPUTED.get((run.model, run.system)) or RECOMPUTED.get((run.model, ""))
    if modules and (run.model, run.system, run.precision) not in _NOTHING:
        found |= {"recompute": "selective", "modules": modules}
    return found
