"""Memory of inference engines against start-up logs: bytes per token, pool given the log's weights, end to end.

Constants of `physics/engines` come from the engines' source and from medians named in planning, not from single rows;
no row is fitted. Rows whose log says the model or shape was inferred from the ratio itself are not scored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.caches_by_layer import StateFormats
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.results import GIB, EngineMemory, Gpu, Measured
from clusterwright.physics.layouts import Layout
from validation.memory_shapes import decoder_of, weights_known
from validation.scoring import Failures, Row, Scored

Raw = Mapping[str, Any]

#: Start-up failures that a planner can know from model, GPU and flags alone; listed before anything was tuned.
KNOWABLE: Final[dict[str, str]] = {
    "v002": "one sequence of 29,000 tokens exceeds the pool of a 24 GB card",
    "v003": "70B in 16 bit on two 80 GB GPUs leaves too little for 131,072 tokens",
    "v004": "the same for 24,000 tokens, whose profiling run takes more",
    "v005": "the same for 20,000 tokens",
    "v050": "gpt-oss-120b on one 80 GB GPU leaves too little for its default context",
    "v059": "6.7B in 16 bit on two T4 leaves too few blocks for its default context",
    "v111": "131,072 tokens exceed the pool of a 22 GiB card",
    "t013": "a 7B int4 engine leaves nothing on a 6 GB card",
}
#: Failures that a planner cannot know, and why.
UNKNOWABLE: Final[dict[str, str]] = {
    "v027": "out of memory in another process, later",
    "v030": "NCCL error while capturing graphs",
    "v038": "11.5 GiB held by other processes",
    "v052": "the model is not named",
    "v061": "the issue is about a wrong check of that release",
    "v102": "an unrelated import failed later",
    "v128": "the log's weights contradict the stated number of GPUs",
    "s046": "a burst of image requests, later",
}
#: Releases by the date that some logs carry instead of a version.
_DATED: Final = (
    ("2025-11", (0, 11)),
    ("2026-04", (0, 19)),
    ("2026-05", (0, 21)),
    ("2026-0", (0, 24)),
    ("2026", (0, 17)),
)
#: GPU names in logs → catalogue.
_GPUS: Final = (
    ("H100 NVL", "h100-nvl-94"),
    ("H100 96GB", "gh200-96"),
    ("H100", "h100-sxm-80"),
    ("H200", "h200-sxm-141"),
    ("H20", "h20-96"),
    ("H800", "h100-sxm-80"),
    ("A100-SXM4-40GB", "a100-sxm-40"),
    ("A100-PCIE-40GB", "a100-pcie-40"),
    ("A100 40GB", "a100-sxm-40"),
    ("A100", "a100-sxm-80"),
    ("A800", "a100-sxm-80"),
    ("L40S", "l40s"),
    ("L40", "l40"),
    ("L4", "l4"),
    ("T4", "t4"),
    ("A10", "a10g"),
    ("MI300X", "mi300x"),
    ("GH200", "gh200-96"),
)
#: Totals that CUDA reports for cards outside the catalogue, GiB (start-up logs of vLLM).
_CARDS: Final = (("RTX 3090", 23.58), ("RTX A5000", 23.67), ("V100-SXM2-32GB", 31.74), ("RTX 5060 Ti", 15.48))
#: A total that nvidia-smi prints, to what CUDA reports (catalogue entries that have both).
_SMI_SHARE: Final = 0.994


def score(cases: Path) -> list[Scored]:
    """Bytes per token, pool given the log, end to end on vLLM from 0.11, and end to end elsewhere."""
    rows = read_rows(cases)
    configs = cases / "model_configs"
    split = "no row is fitted: constants are the engines' own and medians named with their source; clusters unused"
    independent = [row for row in rows if row["calc"].get("check_kind") == "independent"]
    return [
        Scored(
            "inference memory: KV bytes per token",
            "within 0.2 % and the rounding of the printed GiB",
            split,
            tuple(_present(_per_token(row, configs) for row in independent)),
            unit="B",
        ),
        Scored(
            "inference memory: pool given the log's weights",
            "within 0.5 GiB or 5 %",
            split,
            tuple(_present(_given(row, configs) for row in independent)),
            unit="GiB",
        ),
        Scored(
            "inference memory: end to end, vLLM from 0.11, GPUs from 40 GB",
            "within 10 %",
            split,
            tuple(_present(_end_to_end(row, configs, recent=True) for row in independent)),
            unit="GiB",
        ),
        Scored(
            "inference memory: end to end, other engines and releases (no bar)",
            "listed; 25 % for orientation",
            split,
            tuple(_present(_end_to_end(row, configs, recent=False) for row in independent)),
            unit="GiB",
        ),
    ]


def failures(cases: Path) -> Failures:
    """Failures foreseen of those that can be known, and of the rows that ran how many are predicted as fitting."""
    foreseen, missed, ran, fits, unfit = [], [], 0, 0, []
    for row in read_rows(cases):
        plan = plan_row(row, cases / "model_configs")
        if row["id"] in KNOWABLE:
            if plan is not None and not plan.fits:
                foreseen.append(row["id"])
            else:
                missed.append((row["id"], KNOWABLE[row["id"]] if plan else "no plan: GPU or shape missing"))
        elif row["outcome"] == "ok" and plan is not None and comparable(row):
            ran += 1
            fits += plan.fits
            if not plan.fits:
                unfit.append(f"{row['id']} ran but is predicted not to start: {plan.why[0]}")
    return Failures("start-up failures", tuple(foreseen), tuple(missed), fits, ran, tuple(unfit))


def comparable(row: Raw) -> bool:
    """Whether the planner can be asked the row's whole question: weights known, nothing kept in host memory."""
    return weights_known(row) and "offload" not in str(row["other"])


def read_rows(cases: Path) -> list[Raw]:
    """Inference rows of the set."""
    lines = (cases / "memory.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [row for row in rows if row["kind"] == "inference"]


def _present(rows: Iterator[Row | None]) -> Iterator[Row]:
    return (row for row in rows if row is not None)


def plan_row(row: Raw, configs: Path, *, given: bool = False) -> EngineMemory | None:
    """The planner's answer to a row, from model, GPU and flags; with `given` also from what the log says it used."""
    decoder, gpu = decoder_of(row, configs), gpu_of(row)
    if decoder is None or (gpu is None and not given):
        return None
    gpu = gpu or Gpu(str(row["gpu"]), 80.0)
    layout = Layout(tp=row["tp"] or 1, pp=row["pp"] or 1, dcp=_dcp(row))
    measured = row["measured"]
    if row["engine"] == "vllm":
        return vllm.plan_memory(decoder, layout, gpu, vllm_settings(row), measured=_measured(row) if given else None)
    if row["engine"] == "sglang":
        available = None
        if given:
            available = sglang.Available(measured["avail_before"], measured["avail_after"])
        return sglang.plan_memory(decoder, layout, gpu, sglang_settings(row), available=available)
    free = measured.get("avail_for_kv") if given else None
    return tensorrt_llm.plan_memory(decoder, layout, gpu, trtllm_settings(row), free_after_load_gib=free)


def vllm_settings(row: Raw) -> vllm.VllmSettings:
    """Flags of a vLLM row."""
    text = str(row["other"] or "")
    version, v0 = version_of(row)
    return vllm.VllmSettings(
        version=version,
        v0=v0,
        max_num_seqs=_number(text, r"max_num_seqs (\d+)"),
        max_num_batched_tokens=_number(text, r"(?:max_num_batched_tokens|batched|chunked prefill) (\d+)"),
        speculative_tokens=_number(text, r"MTP (\d+)") or 0,
        offline="LoRA test script" in text,
        **_common(row),
    )


def sglang_settings(row: Raw) -> sglang.SglangSettings:
    """Flags of an SGLang row."""
    text = str(row["other"] or "")
    found = re.search(r"0\.(\d+)", str(row["version"]))
    return sglang.SglangSettings(
        version=(0, int(found[1])) if found else (0, 5),
        max_total_tokens=_number(text, r"max-total-tokens (\d+)"),
        states=StateFormats(),
        **_common(row),
    )


def trtllm_settings(row: Raw) -> tensorrt_llm.TrtllmSettings:
    """Flags of a TensorRT-LLM row."""
    found = re.match(r"(\d+)\.(\d+)", str(row["version"]))
    version = (int(found[1]), int(found[2])) if found else (1, 0)
    return tensorrt_llm.TrtllmSettings(version=version, **_common(row))


def _common(row: Raw) -> dict[str, Any]:
    return {
        "memory_share": row["mem_fraction"],
        "max_model_len": row["max_model_len"],
        "kv_format": _kv_format(row["kv_dtype"]),
        "block_tokens": row["block_size"] if row["engine"] == "tensorrt-llm" else None,
        "eager": bool(row["enforce_eager"]),
    }


def _kv_format(text: str | None) -> str:
    return "auto" if not text else "fp8" if "fp8" in text else "bf16"


def version_of(row: Raw) -> tuple[tuple[int, int], bool | None]:
    """(major, minor) of a vLLM row and whether the log says V0.

    Issue numbers date logs without a version; files without either are taken as recent.
    """
    text = str(row["version"] or "")
    v0 = True if "V0" in text else False if "V1" in text else None
    if (found := re.match(r"0\.(\d+)", text)) and not text.startswith("0.1.dev"):
        return (0, int(found[1])), v0
    for start, version in _DATED:
        if text.startswith(start):
            return version, v0
    issue = re.search(r"vllm-project/vllm/(?:issues|pull)/(\d+)", str(row["source"]))
    if issue:
        return ((0, 6) if int(issue[1]) < 13000 else (0, 11)), v0
    return (0, 22), v0


def _dcp(row: Raw) -> int:
    return _number(str(row["other"] or ""), r"DCP (\d+)") or 1


def _number(text: str, pattern: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None


def gpu_of(row: Raw) -> Gpu | None:
    """The row's GPU with the total that its log or the catalogue reports."""
    name = str(row["gpu"] or "")
    vendor = "amd" if re.search(r"AMD|MI\d{3}|Radeon", name) else "nvidia"
    total = row["gpu_mem_total_gib"] or next((gib for card, gib in _CARDS if card in name), None)
    if total is None:
        key = next((key for part, key in _GPUS if part in name), None)
        entry = load_catalogue().find_gpu(key) if key else None
        if entry is None or entry.reported is None:
            return None
        reported = entry.reported
        total = reported.total.value / GIB if reported.total else reported.smi.value / GIB * _SMI_SHARE
    return Gpu(name, total, vendor)


def _measured(row: Raw) -> Measured:
    found = row["measured"]
    activation = found.get("activation_peak")
    if activation is None and "peak_torch" in found:
        activation = found["peak_torch"] - found["weights"]
    return Measured(found.get("weights"), activation, found.get("non_torch"), found.get("cudagraph"))


def _pool(row: Raw) -> tuple[float, float] | None:
    """(GiB of the pool as logged, half a unit of its last place)."""
    found = row["measured"]
    if "kv_bytes" in found:
        return found["kv_bytes"] / GIB, 0.0
    if "k_size" in found:
        return found["k_size"] + found["v_size"], 0.01
    for key in ("kv_avail", "kv_size"):
        if key in found:
            return found[key], 0.005
    return None


def _tokens(row: Raw) -> float | None:
    """Tokens as logged; 16 per block in vLLM, concurrency × length where it prints neither."""
    found = row["measured"]
    if "gpu_blocks" in found and row["engine"] == "vllm":
        return found["gpu_blocks"] * (row["block_size"] or 16)
    if "kv_tokens" in found:
        return found["kv_tokens"]
    if "max_concurrency" in found and row["max_model_len"]:
        return found["max_concurrency"] * row["max_model_len"]
    return None


def _row(row: Raw, predicted: float | None, measured: float, band: float, reason: str = "") -> Row:
    inside = predicted is not None and abs(predicted - measured) <= band
    return Row(row["id"], row["engine"], predicted, measured, inside, family_of(row), reason or str(row["note"] or ""))


def family_of(row: Raw) -> str:
    """Attention family of the row's model."""
    kind = str((row["shape"] or {}).get("attn", ""))
    for part, family in (("hybrid", "hybrid"), ("mla", "MLA"), ("SWA", "sliding window")):
        if part in kind:
            return family
    return "GQA"


def _per_token(row: Raw, configs: Path) -> Row | None:
    pool, tokens, decoder = _pool(row), _tokens(row), decoder_of(row, configs)
    if pool is None or not tokens or decoder is None:
        return None
    plan = plan_row(row if gpu_of(row) else {**row, "gpu_mem_total_gib": 80.0}, configs)
    if plan is None:
        return None
    gib, half = pool
    measured = gib * GIB / tokens
    rounding = (half / gib if gib else 0.0) + _concurrency_rounding(row)
    return _row(row, plan.kv_bytes_per_token, measured, (0.002 + rounding) * measured)


def _concurrency_rounding(row: Raw) -> float:
    found = row["measured"]
    return 0.0 if "gpu_blocks" in found or "kv_tokens" in found else 0.005 / found["max_concurrency"]


def _given(row: Raw, configs: Path) -> Row | None:
    found = row["measured"]
    logged = {
        "vllm": "weights" in found and ("activation_peak" in found or "peak_torch" in found),
        "sglang": "avail_before" in found and "avail_after" in found and row["mem_fraction"] is not None,
        "tensorrt-llm": "avail_for_kv" in found,
    }[row["engine"]]
    measured = pool_gib(row, configs)
    if not logged or measured is None or (gpu_of(row) is None and row["engine"] == "vllm"):
        return None
    plan = plan_row(row, configs, given=True)
    if plan is None:
        return None
    return _row(row, allotted(plan), measured, max(0.5, 0.05 * measured))


def allotted(plan: EngineMemory) -> float:
    """GiB of the pool as engines print it: before rounding to blocks, but not above a limit on tokens."""
    return min(plan.kv_pool_gib, plan.term("KV cache")) if plan.engine.startswith("SGLang") else plan.kv_pool_gib


def pool_gib(row: Raw, configs: Path) -> float | None:
    """GiB of the pool: as logged, else tokens times bytes per token."""
    pool, tokens = _pool(row), _tokens(row)
    if pool is not None:
        return pool[0]
    plan = plan_row({**row, "gpu_mem_total_gib": row["gpu_mem_total_gib"] or 80.0}, configs)
    return tokens * plan.kv_bytes_per_token / GIB if tokens and plan else None


def _end_to_end(row: Raw, configs: Path, *, recent: bool) -> Row | None:
    gpu = gpu_of(row)
    is_recent = row["engine"] == "vllm" and version_of(row)[0] >= (0, 11) and bool(gpu and gpu.reported_gib >= 39)
    measured = pool_gib(row, configs)
    if gpu is None or measured is None or is_recent != recent or not comparable(row):
        return None
    plan = plan_row(row, configs)
    if plan is None:
        return None
    scored = _row(row, allotted(plan), measured, (0.10 if recent else 0.25) * measured)
    return scored if recent else replace(scored, group=_group(row))


def _group(row: Raw) -> str:
    if row["engine"] != "vllm":
        return str(row["engine"])
    version, v0 = version_of(row)
    return "vllm V0" if v0 or (v0 is None and version < (0, 8)) else "vllm V1"
