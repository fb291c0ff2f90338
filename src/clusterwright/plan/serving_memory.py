"""Memory of an inference replica per GPU, by the rules of its engine. This form knows vLLM's."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve
from clusterwright.physics.caches import BLOCK_TOKENS
from clusterwright.physics.serving_memory import (
    DEFAULT_SHARE,
    GRAPHS_GIB,
    GRAPHS_INSIDE_SINCE,
    NON_TORCH_GIB,
    NON_TORCH_ROCM_GIB,
    SPARE_GIB,
    vllm_activation_gib,
    vllm_budget_gib,
    vllm_default_batched_tokens,
    vllm_default_sequences,
    vllm_forward_gib,
    vllm_kv_pool_gib,
    vllm_sampler_gib,
)
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, cache_bytes, gpu_weights, weight_format
from clusterwright.plan.results import Layout, MemoryPlan, Unplanned
from clusterwright.plan.sites import Site, reported_memory

#: Median GiB of CUDA graphs in the 16 public vLLM logs that print them (0.13 to 8.6).
_GRAPHS_GIB = 0.44
#: Engines whose memory rules are known.
_ENGINES = ("vllm",)
#: Engines that exist and whose rules this version lacks.
_OTHERS = ("sglang", "tensorrt-llm", "tgi", "lmdeploy", "llama.cpp", "ollama", "nim", "dynamo")


@dataclass(frozen=True, slots=True)
class Engine:
    """Inference engine: lower-case name, (major, minor) or None when the file states no version."""

    name: str
    version: tuple[int, int] | None

    def __str__(self) -> str:
        return f"{self.name} {self.version[0]}.{self.version[1]}" if self.version else self.name


def read_engine(text: str) -> Engine:
    """`vllm 0.11.2` → vllm, (0, 11)."""
    name, _, rest = text.strip().partition(" ")
    found = re.search(r"(\d+)\.(\d+)", rest)
    return Engine(name.lower(), (int(found[1]), int(found[2])) if found else None)


def engine_unknown(sheet: Sheet, prefix: str, path: str, serve: Serve) -> Unplanned | None:
    """Why memory and speed under the declared engine cannot be planned, None where they can."""
    engine = read_engine(serve.engine)
    if engine.name in _ENGINES:
        return None
    if engine.name in _OTHERS:
        return sheet.miss(prefix, f"memory and speed of {engine.name} are not modelled; those of {_ENGINES[0]} are")
    near = get_close_matches(engine.name, (*_ENGINES, *_OTHERS), n=1, cutoff=0.6)
    meant = f"did you mean {near[0]}?" if near else f"it models {_ENGINES[0]} and has heard of {', '.join(_OTHERS)}"
    return sheet.miss(prefix, f"{path}.engine: this version knows no engine '{engine.name}'; {meant}")


def plan_serving_memory(
    sheet: Sheet, prefix: str, path: str, serve: Serve, model: PlannedModel, site: Site, layout: Layout
) -> MemoryPlan | Unplanned:
    """Memory of the fullest GPU of one replica.

    Args:
        prefix: dotted name under which its figures are kept.
        path: of the `serve` section.
    """
    unknown = engine_unknown(sheet, prefix, path, serve)
    if unknown is not None:
        return unknown
    engine = read_engine(serve.engine)
    reported = reported_memory(sheet, site)
    if reported is None or site.gpu is None:
        return Unplanned(prefix, f"memory of the GPUs of pool {site.name} is unknown", (f"{site.path}.shape",))
    return _vllm(sheet, prefix, path, serve, model, site, layout, engine, reported)


def _vllm(
    sheet: Sheet,
    prefix: str,
    path: str,
    serve: Serve,
    model: PlannedModel,
    site: Site,
    layout: Layout,
    engine: Engine,
    reported: Figure,
) -> MemoryPlan:
    share = sheet.maybe(f"{path}.memory_share", serve.memory_share.value if serve.memory_share else None, "share")
    share = share or sheet.assumed(
        "vllm.memory_share", DEFAULT_SHARE, "share", "vLLM's default up to 0.20; state memory_share for later releases"
    )
    usable = sheet.derive(f"{prefix}.usable", "GiB", "share × reported memory (vLLM)", vllm_budget_gib, reported, share)
    weights = gpu_weights(
        sheet, f"{prefix}.weights", model, weight_format(sheet, f"{path}.precision", serve.precision), layout
    )
    activations = _activations(sheet, prefix, model, site, layout, reported)
    non_torch = _non_torch(sheet, site, layout)
    graphs, counted = _graphs(sheet, engine)
    pool = sheet.derive(
        f"{prefix}.kv_pool",
        "GiB",
        "usable − weights − activations − outside PyTorch" + (" − CUDA graphs (vLLM)" if counted else " (vLLM)"),
        lambda u, w, a, n, g=0.0: vllm_kv_pool_gib(u, w, a, n, g),
        *(usable, weights, activations, non_torch, *((graphs,) if counted else ())),
    )
    pool = sheet.picked(Kind.SIZE, f"{prefix}.kv_pool", pool)
    per_token = cache_bytes(sheet, prefix, path, serve, model, layout)
    tokens = sheet.derive(
        f"{prefix}.kv_tokens",
        "tokens",
        f"whole blocks of {BLOCK_TOKENS} tokens in the pool, × DP{layout.dp}",
        lambda p, t: max(0, math.floor(p * 2**20 / t / BLOCK_TOKENS) * BLOCK_TOKENS) * layout.dp,
        pool,
        per_token,
    )
    longest = _longest(sheet, path, serve, model)
    mean_in, mean_out = lengths(sheet, path, serve)
    concurrency = sheet.derive(
        f"{prefix}.max_concurrency",
        "sequences",
        "tokens of the pool ÷ (mean input + mean output)",
        lambda t, i, o: t / (i + o),
        tokens,
        mean_in,
        mean_out,
    )
    cache = sheet.derive(f"{prefix}.cache", "GiB", "the whole pool; vLLM takes it at start", lambda p: max(0, p), pool)
    parts = [("weights", weights), ("activations", activations), ("outside PyTorch", non_torch)]
    parts += [("CUDA graphs", graphs)] if counted else []
    parts.append(("KV cache", cache))
    total = sheet.derive(f"{prefix}.total", "GiB", "sum of the parts", lambda *p: sum(p), *(f for _, f in parts))
    fits = pool.value > 0 and tokens.value / layout.dp >= longest.value
    _check(sheet, prefix, path, usable, pool, tokens, longest, layout)
    if not counted:
        _check_outside(sheet, prefix, path, reported, usable, graphs)
    return MemoryPlan(
        str(engine), tuple(parts), total, usable, reported, fits, per_token, pool, tokens, concurrency, _notes(model)
    )


def lengths(sheet: Sheet, path: str, serve: Serve) -> tuple[Figure, Figure]:
    """Mean input and output tokens of a request."""
    return (
        sheet.declared(f"{path}.in", serve.input, "tokens"),
        sheet.declared(f"{path}.out", serve.output, "tokens"),
    )


def _longest(sheet: Sheet, path: str, serve: Serve, model: PlannedModel) -> Figure:
    if serve.max_model_len is not None:
        return sheet.declared(f"{path}.max_model_len", serve.max_model_len, "tokens")
    return sheet.published(model.entry, "max_context", model.entry.max_context, "tokens")


def is_a100(site: Site) -> bool:
    """Whether vLLM treats the GPU as an A100 when it picks defaults."""
    return site.gpu is not None and site.gpu.name.startswith("a100")


def max_sequences(sheet: Sheet, site: Site, reported: Figure) -> Figure:
    """vLLM's default number of sequences in one step on this GPU."""
    count = vllm_default_sequences(reported.value, is_a100(site))
    return sheet.assumed(
        f"vllm.max_num_seqs.{site.name}", count, "sequences", "vLLM's default for this GPU; the file cannot state it"
    )


def _activations(
    sheet: Sheet, prefix: str, model: PlannedModel, site: Site, layout: Layout, reported: Figure
) -> Figure:
    sequences = max_sequences(sheet, site, reported)
    batched = sheet.assumed(
        f"vllm.max_num_batched_tokens.{site.name}",
        vllm_default_batched_tokens(reported.value, is_a100(site)),
        "tokens",
        "vLLM's default for this GPU; the file cannot state it",
    )
    vocabulary = sheet.published(model.entry, "vocab", model.entry.vocab, "tokens")
    hidden = sheet.published(model.entry, "hidden", model.entry.hidden, "")
    moe = model.entry.moe
    width = model.entry.intermediate or (moe.intermediate * moe.active + moe.shared_intermediate if moe else 0)
    middle = sheet.published(
        model.entry, "intermediate", width, "", "of all experts that one token uses" if moe else ""
    )
    return sheet.derive(
        f"{prefix}.activations",
        "GiB",
        "larger of sampler warm-up (9.7 fp32 logits) and one forward pass of the batched tokens (vLLM profiling run)",
        lambda s, v, b, h, m: vllm_activation_gib(vllm_sampler_gib(s, v), vllm_forward_gib(b, h, m, layout.tp)),
        sequences,
        vocabulary,
        batched,
        hidden,
        middle,
    )


def _non_torch(sheet: Sheet, site: Site, layout: Layout) -> Figure:
    if site.gpu is not None and site.gpu.vendor == "amd":
        high = NON_TORCH_ROCM_GIB[1]
        return sheet.assumed(
            "vllm.non_torch.rocm", high, "GiB", "highest of public start-up logs on ROCm (0.25 to 0.60)"
        )
    width = max(w for w in NON_TORCH_GIB if w <= layout.tp)
    low, high = NON_TORCH_GIB[width]
    reason = f"highest of public vLLM logs at TP{width} ({low:g} to {high:g})"
    if width != layout.tp:
        reason += f"; no current log at TP{layout.tp}"
    return sheet.assumed(f"vllm.non_torch.tp{layout.tp}", high, "GiB", reason)


def _graphs(sheet: Sheet, engine: Engine) -> tuple[Figure, bool]:
    """CUDA graphs, and whether the engine counts them inside its budget; without a version they are counted."""
    low, high = GRAPHS_GIB
    graphs = sheet.assumed(
        "vllm.graphs", _GRAPHS_GIB, "GiB", f"median of 16 public vLLM start-up logs ({low:g} to {high:g})"
    )
    return graphs, engine.version is None or engine.version >= GRAPHS_INSIDE_SINCE


def _check(
    sheet: Sheet,
    prefix: str,
    path: str,
    usable: Figure,
    pool: Figure,
    tokens: Figure,
    longest: Figure,
    layout: Layout,
) -> None:
    if ".choices." in prefix:
        return
    if pool.value <= 0:
        sheet.misfit(
            prefix,
            f"{path}.parallel",
            f"weights, activations and runtime exceed the {usable} that the engine may use by {-pool.value:.4g} GiB "
            "per GPU; the engine would not start",
        )
    elif tokens.value / layout.dp < longest.value:
        sheet.misfit(
            prefix,
            f"{path}.max_model_len",
            f"the cache of {tokens.value / layout.dp:,.0f} tokens holds no sequence of the longest length {longest}; "
            "the engine would not start",
        )


def _check_outside(sheet: Sheet, prefix: str, path: str, reported: Figure, usable: Figure, outside: Figure) -> None:
    left = reported.value - usable.value
    if left < outside.value + SPARE_GIB and ".choices." not in prefix:
        sheet.misfit(
            prefix,
            f"{path}.memory_share",
            f"{left:.2g} GiB stay outside the engine's share, its CUDA graphs need about "
            f"{outside.value + SPARE_GIB:.2g} GiB there",
        )


def _notes(model: PlannedModel) -> tuple[str, ...]:
    if model.entry.window is None:
        return ()
    return (
        f"{model.entry.window.layers} of {model.entry.layers} layers attend to a window; the cache is planned as if "
        "all attended to everything, which is an upper bound",
    )
