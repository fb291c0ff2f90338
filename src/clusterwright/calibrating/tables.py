"""A CSV of measured rows (the columns of aiconfigurator's silicon tables, also under plain names) → measurements.

Columns are found by name; further ones are ignored. A row needs backend, model, system, lengths, concurrency, sizes and
one of the two times. Some published tables give GPUs × expert ranks as the tensor size; see `_sizes`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from typing import Final

from clusterwright.calibrating.measurements import Left, Measured, Measurement, Worker
from clusterwright.physics.layouts import Layout

#: Names of one column, the first that a table has.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id",),
    "engine": ("backend", "engine", "framework"),
    "version": ("backend_version", "version", "engine_version"),
    "model": ("model_path", "model"),
    "gpu": ("system", "gpu", "gpu_name"),
    "weights": ("precision", "weights", "weight_dtype"),
    "cache": ("kv_cache_dtype", "kv_dtype", "cache"),
    "mode": ("mode",),
    "prompt": ("isl", "input_length", "prompt_tokens"),
    "output": ("osl", "output_length", "output_tokens"),
    "concurrency": ("concurrency", "max_concurrency"),
    "batch": ("batch_size",),
    "source": ("silicon_data_source", "source"),
    "ttft": ("silicon_ttft_ms", "ttft_ms", "mean_ttft_ms"),
    "tpot": ("silicon_tpot_ms", "tpot_ms", "mean_tpot_ms"),
}
ENGINES: Final[Mapping[str, str]] = {
    "trtllm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm", "tensorrt-llm": "tensorrt-llm", "trt": "tensorrt-llm",
    "vllm": "vllm", "sglang": "sglang",
}  # fmt: skip
#: Words of a precision column → weight format; "" and "auto" are the checkpoint's own.
FORMATS: Final[Mapping[str, str | None]] = {
    "": None, "auto": None, "bf16": "bf16", "bfloat16": "bf16", "fp16": "bf16", "fp8": "fp8", "fp8_block": "fp8",
    "fp4": "nvfp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "int8": "int8", "int4": "int4",
}  # fmt: skip
_IN_SOURCE: Final = re.compile(r"concurrency=(\d+)")
#: Sequences per attention rank above which an unlabelled decode worker of several GPUs is taken to use attention DP:
#: below, splitting each token over all GPUs is faster and is what published recipes choose.
_SPREAD_FROM: Final = 64


def read_table(text: str, name: str = "table") -> Measured:
    """Measurements of a CSV; rows that lack something needed are left out with the reason."""
    rows: list[Measurement] = []
    left: list[Left] = []
    for number, raw in enumerate(csv.DictReader(text.splitlines()), start=2):
        row = {key: (value or "").strip() for key, value in raw.items() if key}
        ident = _text(row, "id") or f"{name}:{number}"
        try:
            rows.append(_measurement(ident, row))
        except (ValueError, KeyError) as problem:
            left.append(Left(ident, str(problem.args[0]) if problem.args else "not readable"))
    return Measured(tuple(rows), tuple(left))


def _measurement(ident: str, row: Mapping[str, str]) -> Measurement:
    engine = ENGINES.get(_text(row, "engine").lower())
    if engine is None:
        raise ValueError(f"engine {_text(row, 'engine')!r} is not one of vllm, sglang, tensorrt-llm")
    word = _text(row, "weights").lower()
    if word not in FORMATS:
        raise ValueError(f"precision {word!r} is not known")
    times = {name: _number(row, name) for name in ("ttft", "tpot")}
    if not any(times.values()):
        raise ValueError("neither TTFT nor TPOT")
    weights = FORMATS[word]
    prefill, decode, concurrency, notes = _workers(row)
    return Measurement(
        id=ident,
        engine=engine,
        version=_text(row, "version"),
        model=_needed(row, "model"),
        gpu=_needed(row, "gpu"),
        weights=weights,
        cache=_cache(row, engine, weights),
        prompt=float(_needed(row, "prompt")),
        output=float(_needed(row, "output")),
        concurrency=concurrency,
        decode=decode,
        prefill=prefill,
        ttft_s=_seconds(times["ttft"]),
        tpot_s=_seconds(times["tpot"]),
        notes=notes,
    )


def _workers(row: Mapping[str, str]) -> tuple[Worker | None, Worker, float, tuple[str, ...]]:
    """Prefill and decode workers, requests in flight, and what had to be assumed."""
    told = _number(row, "concurrency") or _in_source(row)
    if not _text(row, "mode").lower().startswith("dis"):
        layout, notes = _sizes(row, "")
        concurrency = told or (_number(row, "batch") or 0) * layout.attention_dp
        return None, Worker(layout), _positive(concurrency), notes
    counts = [int(float(row.get(f"{kind}_num_workers") or 0)) for kind in ("prefill", "decode")]
    first, notes = _sizes(row, "prefill_")
    if all(counts):
        second, more = _sizes(row, "decode_")
        batch = float(row.get("decode_batch_size") or 0) * counts[1] * second.attention_dp
        return Worker(first, counts[0]), Worker(second, counts[1]), _positive(told or batch), notes + more
    concurrency = _positive(told or 0)
    return (
        Worker(first, 0),
        Worker(_unlabelled(row, first, concurrency)),
        concurrency,
        ("worker counts are not told: one decode worker and enough prefill workers assumed",),
    )


def _unlabelled(row: Mapping[str, str], first: Layout, concurrency: float) -> Layout:
    """Decode layout where only the worker's size is told (its MoE sizes repeat the prefill worker's)."""
    gpus = int(float(row["decode_tp_size"] or 1)) * int(float(row.get("decode_attention_dp_size") or 1))
    ranks = gpus if first.ep > 1 else 1
    spread = gpus if concurrency / gpus >= _SPREAD_FROM else 1
    return Layout(tp=gpus, ep=ranks, attention_dp=spread)


def _sizes(row: Mapping[str, str], prefix: str) -> tuple[Layout, tuple[str, ...]]:
    """Layout from tp, attention DP and MoE sizes.

    Tables that were derived from (tp, ep) pairs meaning "tp GPUs, experts over ep of them" hold tp·ep as the tensor (or
    attention) size where tp = ep; such a row is only consistent with tp GPUs, since no run is published for both.
    """

    def size(name: str) -> int:
        return max(int(float(row.get(f"{prefix}{name}") or 1)), 1)

    tp, copies, split, ranks = (size(n) for n in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"))
    if split == ranks > 2 and max(tp, copies) == split * ranks and min(tp, copies) == 1:
        tp, copies, split = (ranks if tp > 1 else 1), (ranks if copies > 1 else 1), 1
        layout = Layout(tp=tp * copies, pp=size("pp_size"), attention_dp=copies, ep=ranks)
        return layout, ("tensor size is GPUs × expert ranks: taken as expert ranks",)
    gpus = tp * copies
    ranks = ranks if gpus % ranks == 0 else 1
    return Layout(tp=gpus, pp=size("pp_size"), attention_dp=copies, ep=ranks), ()


def _cache(row: Mapping[str, str], engine: str, weights: str | None) -> str:
    """Cache format: as told, else fp8 for quantised checkpoints under TensorRT-LLM, which follows them, else bf16."""
    told = FORMATS.get(_text(row, "cache").lower())
    if told is not None:
        return told
    return "fp8" if engine == "tensorrt-llm" and weights not in (None, "bf16") else "bf16"


def _text(row: Mapping[str, str], what: str) -> str:
    return next((row[name] for name in COLUMNS[what] if row.get(name)), "")


def _needed(row: Mapping[str, str], what: str) -> str:
    value = _text(row, what)
    if not value:
        raise ValueError(f"no {COLUMNS[what][0]}")
    return value


def _number(row: Mapping[str, str], what: str) -> float | None:
    text = _text(row, what)
    value = float(text) if text else math.nan
    return value if math.isfinite(value) and value > 0 else None


def _in_source(row: Mapping[str, str]) -> float | None:
    found = _IN_SOURCE.search(_text(row, "source"))
    return float(found[1]) if found else None


def _positive(value: float) -> float:
    if value <= 0:
        raise ValueError("no concurrency")
    return value


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3
