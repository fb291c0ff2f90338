"""Rows of public start-up logs as questions to the planner: engine settings, layout, GPU, and what the log measured."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.scales import GIB
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.results import Gpu, Measured
from clusterwright.physics.layouts import Layout
from validation.memory_shapes import weights_known

Raw = Mapping[str, Any]

#: Engines whose budgets are known.
ENGINES: Final = ("vllm", "sglang", "tensorrt-llm")

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
    ("GB200", "gb200-186"),
    ("GB300", "gb300-279"),
    ("B200", "b200-sxm-180"),
    ("B300", "b300-sxm-270"),
    ("MI325X", "mi325x"),
    ("MI355X", "mi355x"),
    ("RTX PRO 6000", "rtx-pro-6000-server"),
    ("A40", "a40"),
    ("A30", "a30"),
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
_CARDS: Final = (
    ("RTX 3090", 23.58),
    ("RTX 4090", 23.52),
    ("RTX 5090", 31.37),
    ("RTX A5000", 23.67),
    ("RTX A6000", 47.4),
    ("RTX 6000 Ada", 47.4),
    ("L20", 44.5),
    ("V100-SXM2-32GB", 31.74),
    ("RTX 5060 Ti", 15.48),
    ("GB10", 121.69),
)
#: A total that nvidia-smi prints, to what CUDA reports (catalogue entries that have both).
_SMI_SHARE: Final = 0.994


def read_rows(cases: Path) -> list[Raw]:
    """Inference rows of the set."""
    lines = (cases / "memory.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [row for row in rows if row["kind"] == "inference" and row["engine"] in ENGINES]


def comparable(row: Raw) -> bool:
    """Whether the planner can be asked the row's whole question: weights known, nothing kept in host memory."""
    return weights_known(row) and "offload" not in str(row["other"])


def layout_of(row: Raw) -> Layout:
    """Parallel sizes; SGLang's and TensorRT-LLM's data parallelism is that of attention inside the tensor ranks."""
    tp, dp, ep = row["tp"] or 1, row["dp"] or 1, row["ep"] or 1
    if row["engine"] != "vllm":
        return Layout(tp=tp, pp=row["pp"] or 1, ep=min(ep, tp), attention_dp=dp if tp % dp == 0 else 1)
    dcp = dcp_of(row)
    return Layout(tp=tp, pp=row["pp"] or 1, dp=dp, ep=min(ep, tp * dp), dcp=dcp if tp % dcp == 0 else 1)


def vllm_settings(row: Raw) -> vllm.VllmSettings:
    """Flags of a vLLM row."""
    text = str(row["other"] or "")
    version, v0 = version_of(row)
    return vllm.VllmSettings(
        version=version,
        v0=v0,
        max_num_seqs=_number(text, r"max[-_]num[-_]seqs[ =]+(\d+)"),
        max_num_batched_tokens=_number(text, r"(?:max[-_]num[-_]batched[-_]tokens|batched|chunked prefill)[ =]+(\d+)"),
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
        state_slots=_number(text, r"max-mamba-cache-size (\d+)"),
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
    if (found := re.match(r"v?0\.(\d+)", text)) and not text.startswith("0.1.dev"):
        return (0, int(found[1])), v0
    for start, version in _DATED:
        if text.startswith(start):
            return version, v0
    issue = re.search(r"vllm-project/vllm/(?:issues|pull)/(\d+)", str(row["source"]))
    if issue:
        return ((0, 6) if int(issue[1]) < 13000 else (0, 11)), v0
    return (0, 22), v0


def dcp_of(row: Raw) -> int:
    """Decode context parallel size."""
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


def measured_of(row: Raw) -> Measured:
    """What a vLLM log says of weights, activation, memory outside PyTorch and graphs."""
    found = row["measured"]
    activation = found.get("activation_peak")
    if activation is None and "peak_torch" in found:
        activation = found["peak_torch"] - found["weights"]
    return Measured(found.get("weights"), activation, found.get("non_torch"), found.get("cudagraph"))


def logged_pool(row: Raw) -> tuple[float, float] | None:
    """(GiB of the pool as logged, half a unit of its last place)."""
    found = row["measured"]
    if "kv_bytes" in found:
        return found["kv_bytes"] / GIB, 0.0
    if "k_size" in found and "v_size" in found:
        return found["k_size"] + found["v_size"], 0.01
    for key in ("kv_avail", "kv_size"):
        if key in found:
            return found[key], 0.005
    return None


def family_of(row: Raw) -> str:
    """Attention family of the row's model."""
    kind = str((row["shape"] or {}).get("attn", ""))
    for part, family in (("hybrid", "hybrid"), ("mla", "MLA"), ("SWA", "sliding window")):
        if part in kind:
            return family
    return "GQA"


def logged_tokens(row: Raw) -> float | None:
    """Tokens as logged; 16 per block in vLLM, concurrency × length where it prints neither."""
    found = row["measured"]
    if "gpu_blocks" in found and row["engine"] == "vllm":
        return found["gpu_blocks"] * (row["block_size"] or 16)
    if "kv_tokens" in found:
        return found["kv_tokens"]
    if "max_concurrency" in found and row["max_model_len"]:
        return found["max_concurrency"] * row["max_model_len"]
    return None
