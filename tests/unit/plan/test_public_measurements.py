"""The formulas against public measurements, where a folder of them lies beside the checkout.

What is asserted here is what docs/planning.md says of the accuracy; constants were not fitted to these rows.
"""

import csv
import json
import os
import statistics
from pathlib import Path

import pytest

from builders.models import LLAMA_8B, LLAMA_70B, QWEN3_235B, language_model
from clusterwright.physics.caches import kv_bytes_per_token
from clusterwright.physics.collective_fits import find_terms
from clusterwright.physics.latencies import BAND, BANDWIDTH_SHARE, MATMUL_SHARE, PREFILL_SHARE
from clusterwright.physics.parameters import count_parameters
from clusterwright.physics.weights import BYTES, weight_bytes_per_gpu
from clusterwright.plan.replica_speeds import Replica, ReplicaShape

CASES = Path(os.environ.get("CLUSTERWRIGHT_CASES", Path(__file__).parents[4] / "shared" / "cases"))
pytestmark = pytest.mark.skipif(
    not (CASES / "memory.jsonl").exists(), reason=f"no public measurements at {CASES} (set CLUSTERWRIGHT_CASES)"
)

_ELEMENT = {"bf16": 2, "fp16": 2, "fp16/bf16": 2, "fp8": 1, "fp8_e4m3": 1}


def memory_rows():
    rows = [json.loads(line) for line in (CASES / "memory.jsonl").read_text().splitlines() if line.strip()]
    full = ("gqa", "mha", "mha moe")
    return [r for r in rows if r["kind"] == "inference" and r.get("shape") and r["shape"].get("attn") in full]


def test_cache_bytes_per_token_of_45_of_46_logs():
    inside = []
    for row in memory_rows():
        calc, shape = row.get("calc") or {}, row["shape"]
        if calc.get("check_kind") != "independent" or not calc.get("kv_bytes_per_token_per_gpu"):
            continue
        logged = calc["kv_bytes_per_token_per_gpu"] * (calc.get("kv_ratio") or 1)
        element = _ELEMENT.get(row["kv_dtype"] or "bf16", 2)
        heads = shape["kv_heads"] or shape["heads"]
        ours = kv_bytes_per_token(shape["layers"], heads, shape["head_dim"], element, row["tp"] or 1, row["pp"] or 1)
        tolerance = max(0.002, calc.get("kv_ratio_rounding_tolerance") or 0)
        inside.append(abs(ours / logged - 1) <= tolerance)
    assert len(inside) == 46
    assert sum(inside) >= 45  # one log prints GiB of one rank and tokens of the smallest


def test_16_bit_weights_of_dense_models():
    errors = []
    for row in memory_rows():
        shape, measured = row["shape"], row.get("measured") or {}
        plain = row["weight_dtype"] in ("bf16", "fp16") and isinstance(shape.get("vocab"), int)
        if not plain or not measured.get("weights") or shape["attn"] == "mha moe":
            continue
        if "opt-" in row["model"] or "A3B" in row["model"]:
            continue  # learned positions; experts that the row does not describe
        model = language_model(
            row["model"],
            layers=shape["layers"],
            hidden=shape["hidden"],
            heads=shape["heads"],
            kv_heads=shape["kv_heads"] or shape["heads"],
            head_dim=shape["head_dim"],
            intermediate=shape["intermediate"],
            vocab=shape["vocab"],
            tied_embeddings=bool(shape.get("tied")),
        )
        p = count_parameters(model)
        ours = weight_bytes_per_gpu(p.linear, 0, p.norms, p.embedding + p.head, 2, 2, row["tp"] or 1, row["pp"] or 1, 1)
        errors.append(abs(ours / 2**30 / measured["weights"] - 1))
    assert len(errors) == 18
    assert statistics.median(errors) < 0.003
    assert sum(e < 0.03 for e in errors) >= 16


QWEN3_32B = language_model(
    "Qwen/Qwen3-32B",
    layers=64, hidden=5120, heads=64, kv_heads=8, head_dim=128, intermediate=25600, vocab=151936, qk_norm=True,
)  # fmt: skip
SERVED = {
    "meta-llama/Llama-3.1-70B": LLAMA_70B,
    "meta-llama/Llama-3.1-8B-Instruct": LLAMA_8B,
    "Qwen/Qwen3-32B": QWEN3_32B,
    "Qwen/Qwen3-235B-A22B-FP8": QWEN3_235B,
}
#: System → catalogue GPU, B/s, FLOP/s in bf16, fp8, fp4.
SYSTEMS = {
    "h100_sxm": ("h100-sxm-80", 3.35e12, 989e12, 1979e12, None),
    "h200_sxm": ("h200-sxm-141", 4.8e12, 989e12, 1979e12, None),
    "b200_sxm": ("b200-sxm-180", 7.7e12, 2250e12, 4500e12, 9000e12),
}
FORMATS = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "": "bf16", "bf16": "bf16"}


def replica_of(row):
    """The planner's replica of a benchmark row, None where the planner does not time the layout."""
    model, system = SERVED.get(row["model_path"]), SYSTEMS.get(row["system"])
    form = FORMATS.get(row["gemm_quant_mode"])
    if row["mode"] != "agg" or model is None or system is None or form is None or int(row["pp_size"] or 1) != 1:
        return None
    tp, dp = int(row["tp_size"] or 1), int(row["attention_dp_size"] or 1)
    counts, bytes_ = count_parameters(model), BYTES[form]
    dense = (counts.attention + counts.mlp) * bytes_ / tp + counts.head * 2 / tp
    gpus, fit = tp * dp, find_terms(system[0], "all-reduce", max(tp, 2))
    peak = {"bf16": system[2], "fp8": system[3], "nvfp4": system[4]}[form]
    moe = model.moe
    shape = ReplicaShape(
        tp,
        dp,
        gpus,
        model.layers,
        model.hidden,
        model.heads,
        model.head_dim,
        moe.experts if moe else 0,
        moe.active if moe else 0,
    )
    return Replica(
        shape,
        dense,
        counts.experts * bytes_ / gpus,
        kv_bytes_per_token(model.layers, model.kv_heads, model.head_dim, 2, tp),
        counts.multiplied,
        system[1],
        BANDWIDTH_SHARE,
        peak,
        MATMUL_SHARE[system[0]],
        PREFILL_SHARE,
        fit.latency_us,
        fit.bandwidth_gbytes_s,
        fit.root_us,
        float(row["isl"]),
        float(row["osl"]),
        float(row["isl"]),
        1024.0,
    )


def test_decode_steps_lie_in_the_band_that_is_printed():
    ratios = []
    with (CASES / "serving.csv").open() as lines:
        for row in csv.DictReader(lines):
            replica = replica_of(row)
            if replica is not None:
                ratios.append(float(row["silicon_tpot_ms"]) / 1e3 / replica.step_s(float(row["batch_size"])))
    assert len(ratios) == 923
    assert statistics.mean(abs(1 / r - 1) for r in ratios) == pytest.approx(0.367, abs=0.01)
    assert sum(BAND[0] <= r <= BAND[1] for r in ratios) / len(ratios) >= 0.80
    assert sum(r <= 1 for r in ratios) / len(ratios) >= 0.90  # the estimate is nearly always too slow
