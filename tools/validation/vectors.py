"""The formula vectors: each value beside the formula that gives it, called with all its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from clusterwright.model.decoders import Attention, Decoder, Layer, Mlp
from clusterwright.physics.caches_by_layer import bytes_per_token
from clusterwright.physics.collectives import CollectiveTerms, bus_bandwidth_gbytes_s, collective_us
from clusterwright.physics.failures import daly_higher_s, daly_s, ettr, mttf_h, spares, waste, young_s
from clusterwright.physics.hierarchies import hierarchical_all_reduce_us
from clusterwright.physics.layouts import Layout
from clusterwright.physics.money import gpu_hour, per_million_tokens
from clusterwright.physics.serving.steps import used_share
from clusterwright.physics.serving.traffic import BYTES
from clusterwright.physics.training.activations import kept
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.stages import bubble_share
from clusterwright.physics.training.states import checkpoint_bytes, state_bytes
from clusterwright.physics.waiting import erlang_c, mean_wait_s
from validation.scoring import Row, Scored

_GIB: Final = 2.0**30
#: Relative difference that still counts as exact: the last digits of another order of summation.
EXACT: Final = 1e-9
#: Parameters as the vectors count them, rounded to millions.
_LLAMA_70B, _LLAMA_405B = 70_554e6, 405_853e6
#: s between failures of the vectors of checkpoints, days between failures of a node of RSC-1 and RSC-2.
_M: Final = 2.34 * 3600
_RSC_1, _RSC_2 = 1000 / 6.5, 1000 / 2.34


def values() -> dict[str, float]:
    """Every vector by its path in the file, computed with the planner's formulas."""
    reduce_us = collective_us("all-reduce", 2.0**30, 8, CollectiveTerms(15.3, 517, 0.0103))
    return {
        **_memory(),
        "allreduce_us_1GiB_8xH100": reduce_us,
        "busbw_GBs": bus_bandwidth_gbytes_s(2**30, reduce_us, 8),
        "hier_allreduce_us_1GiB_16x8_H100_400G": hierarchical_all_reduce_us(
            2**30, gpus_per_node=8, nodes=16, inside_gbytes_s=360, nic_gbytes_s=45, latency_us=164
        ),
        "bubble.p8m32": bubble_share(stages=8, micro_batches=32, virtual=1),
        "bubble.p8m32v4": bubble_share(stages=8, micro_batches=32, virtual=4),
        "bubble.p16m128v8": bubble_share(stages=16, micro_batches=128, virtual=8),
        **_failures(),
        **_spares(),
        "queue.erlangC_c64_rho.9": erlang_c(servers=64, load=0.9),
        "queue.mmc": mean_wait_s(64, 0.9, service_s=3600, arrival_cv2=1, service_cv2=1),
        "queue.mgc_wait_s_c64_rho.9_mean3600s_cs2_16": mean_wait_s(64, 0.9, 3600, arrival_cv2=1, service_cv2=16),
        "tco_gpu_h_capex437k_5y_10pct_PUE1.25_8c": gpu_hour(
            capital=437e3 / 8,
            interest=0.10,
            years=5,
            power_kw=10.2 / 8,
            pue=1.25,
            energy_per_kwh=0.08,
            other_per_year=0,
            useful_share=1,
        ),
        "usd_per_Mtok.8xH100_3usd_2500tps_per_gpu_util60": per_million_tokens(3, tokens_per_s=2500, utilisation=0.6),
        "usd_per_Mtok.h100_2.5usd_1000tps_util40": per_million_tokens(2.5, tokens_per_s=1000, utilisation=0.4),
        "decode_ms_llama70_fp8_tp8_h100_b32_ctx4k": 1e3 * _decode_s(),
        "moe_unique_fraction_qwen235_b16": float(used_share(np.float64(8), np.float64(128), np.float64(16))),
    }


def _memory() -> dict[str, float]:
    tokens = 131_072
    gpt_oss = _kv(layers=18, kv_heads=8, width=64)
    return {
        "weights_GiB.llama70_bf16": _LLAMA_70B * BYTES["bf16"] / _GIB,
        "weights_GiB.llama70_fp8": _LLAMA_70B * BYTES["fp8"] / _GIB,
        "weights_GiB.llama70_nvfp4_g16": _LLAMA_70B * BYTES["nvfp4"] / _GIB,
        "kv_GiB_131072.llama70_bf16": _kv(80, 8, 128) * tokens / _GIB,
        "kv_GiB_131072.qwen3_235b_bf16": _kv(94, 4, 128) * tokens / _GIB,
        "kv_GiB_131072.deepseek_v3_mla_bf16": 61 * (512 + 64) * 2 * tokens / _GIB,
        "kv_GiB_131072.gptoss120_bf16_hybrid": gpt_oss * (tokens + 128) / _GIB,  # 18 layers whole, 18 of 128 tokens
        "kv_GiB_131072.gptoss120_bf16_no_window": 2 * gpt_oss * tokens / _GIB,
        "train_GB.llama70_18B_per_param": _LLAMA_70B * state_bytes(_DISTRIBUTED, 1) / 1e9,
        "train_GB.llama70_ckpt_14B": checkpoint_bytes(_LLAMA_70B) / 1e9,
        "train_GB.llama405_ckpt_14B": checkpoint_bytes(_LLAMA_405B) / 1e9,
        "train_GB.llama405_zero1_dp64_tp8_pp16_per_gpu": (_LLAMA_405B / (8 * 16) * state_bytes(_DISTRIBUTED, 64) / 1e9),
        "act_GB_per_layer_llama70_s8192_b1.none": _kept_gb("none", 1),
        "act_GB_per_layer_llama70_s8192_b1.selective_sp_tp8": _kept_gb("selective", 8),
        "act_GB_per_layer_llama70_s8192_b1.full": _kept_gb("full", 1),
    }


_DISTRIBUTED: Final = Recipe(sharding="distributed")


def _kv(layers: int, kv_heads: int, width: int, form: str = "bf16", tp: int = 1) -> float:
    """B per token on one rank of a model of such layers."""
    layer = Layer(Attention(kv_heads, kv_heads, width, width), None, ())
    model = Decoder("vector", "", 1, 1, 1, (layer,) * layers, (), tied=True)
    return bytes_per_token(model, Layout(tp=tp), form)


def _kept_gb(recompute: Literal["none", "selective", "full"], tp: int) -> float:
    """GB that one layer of the formula's model keeps of 8,192 tokens: two matrices of 4 × hidden, dropout, no flash."""
    recipe = Recipe(sequence=8192, flash=False, dropout=True, recompute=recompute)
    part = kept(Layer(Attention(64, 64, 128, 128), Mlp(4 * 8192, 2), ()), 8192, recipe)
    each = part.entry_at(tp, recipe) if recompute == "full" else part.at(tp, 1, recipe, recipe.sequence)
    return float(each * recipe.sequence / 1e9)


def _decode_s() -> float:
    """Weights without the embedding over 8 ranks and the fp8 cache of 32 sequences, at 0.77 of 3.35 TB/s."""
    weights = (_LLAMA_70B - 128_256 * 8192) * BYTES["fp8"] / 8
    cache = 32 * 4096 * _kv(80, 8, 128, form="fp8", tp=8)
    return (weights + cache) / (0.77 * 3.35e12)


def _failures() -> dict[str, float]:
    young = young_s(60, _M)
    return {
        "ettr.rsc1_16k_60min_ckpt": ettr(2000, 6.50, restart_s=300, interval_s=3600, stall_s=10),
        "ettr.rsc1_16384_5min": ettr(2048, 6.50, restart_s=300, interval_s=300, stall_s=10),
        "mttf_job_h.rsc1_16384": mttf_h(16384 / 8, 6.50),
        "mttf_job_h.rsc1_131072": mttf_h(131072 / 8, 6.50),
        "mttf_job_h.llama3_16384": mttf_h(16384 / 8, 3.79),
        "ckpt.young_60s_2.34h": young,
        "ckpt.daly": daly_s(60, _M),
        "ckpt.daly_ho": daly_higher_s(60, _M),
        "ckpt.waste_R600": waste(young, 60, _M, restart_s=600),
        "ckpt.waste_R0": waste(young, 60, _M, restart_s=0),
        "ckpt.w10": waste(young_s(10, _M), 10, _M, restart_s=300),
    }


def _spares() -> dict[str, float]:
    cases = [
        (128, "153.8", _RSC_1, 1),
        (2048, "153.8", _RSC_1, 1),
        (2048, "153.8", _RSC_1, 7),
        (2048, "427.4", _RSC_2, 1),
    ]
    return {
        f"spares.N{nodes}_mtbf{label}d_mttr{repair}d_{target:g}": spares(nodes, mtbf, repair, target)
        for nodes, label, mtbf, repair in cases
        for target in (0.95, 0.99, 0.999)
    }


def read_vectors(cases: Path) -> dict[str, float]:
    """Path → published value; those without a number are left out."""
    found: dict[str, float] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, part in value.items():
                walk(f"{prefix}.{key}" if prefix else key, part)
        elif value is not None:
            found[prefix] = float(value)

    walk("", json.loads((cases / "formula_vectors.json").read_text(encoding="utf-8")))
    return found


def score(cases: Path) -> Scored:
    """Every vector of the file; one that no formula computes has no prediction."""
    ours = values()
    rows = tuple(_row(name, ours.get(name), value) for name, value in read_vectors(cases).items())
    return Scored("formula vectors", "exact", "not fitted", rows)


def _row(name: str, ours: float | None, published: float) -> Row:
    inside = ours is not None and abs(ours / published - 1) <= EXACT
    return Row(name, "formulas", ours, published, inside, reason="" if ours is not None else "no formula")


def render(scored: Scored) -> str:
    """One line per vector."""
    lines = [f"{r.id:60} {r.predicted!r:>24} {r.measured!r:>24} {'ok' if r.inside else 'NO'}" for r in scored.rows]
    return "\n".join(lines)
