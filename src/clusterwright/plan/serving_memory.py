"""Memory of an inference replica per GPU, by the rules of its engine (physics/engines)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from clusterwright.lib.figures import Figure, Origin
from clusterwright.model.decoders import Decoder
from clusterwright.model.workloads import Serve
from clusterwright.physics.caches_by_layer import KV_BITS, bytes_per_token
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.results import Gpu as EngineGpu
from clusterwright.physics.engines.settings import Settings, cache_format
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.plan.budgets.common import Asked, Budget
from clusterwright.plan.budgets.sglang import sglang_budget
from clusterwright.plan.budgets.tensorrt_llm import tensorrt_llm_budget
from clusterwright.plan.budgets.vllm import vllm_budget
from clusterwright.plan.choosing import Kind
from clusterwright.plan.engines import Engine, engine_layout, engine_unknown, read_engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, served_in
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site, reported_memory
from clusterwright.plan.speculation import read_drafting

_BUDGETS: Final[dict[str, Callable[[Asked], Budget]]] = {
    "vllm": vllm_budget,
    "sglang": sglang_budget,
    "tensorrt-llm": tensorrt_llm_budget,
}
_SETTINGS: Final[dict[str, Settings]] = {
    "vllm": vllm.VllmSettings(),
    "sglang": sglang.SglangSettings(),
    "tensorrt-llm": tensorrt_llm.TrtllmSettings(),
}


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
    reported = reported_memory(sheet, site)
    if reported is None or site.gpu is None:
        return Unplanned(prefix, f"memory of the GPUs of pool {site.name} is unknown", (f"{site.path}.shape",))
    if serve.kv_precision is not None and serve.kv_precision not in KV_BITS:
        return sheet.miss(
            prefix, f"no engine is known to keep its cache in {serve.kv_precision}", f"{path}.kv_precision"
        )
    engine, served = read_engine(serve.engine), served_in(sheet, f"{path}.precision", model, serve.precision)
    if layout.pp > len(served.decoder.layers):
        return Unplanned(prefix, f"{len(served.decoder.layers)} layers do not fill {layout.pp} pipeline stages")
    gpu = EngineGpu(site.gpu.name, reported.value, site.gpu.vendor)
    advise = ".choices." not in prefix
    drafting = read_drafting(sheet.catalogue, serve, served.decoder, engine, layout) if serve.speculation else None
    if isinstance(drafting, str):
        return sheet.miss(prefix, drafting, f"{path}.speculation") if advise else Unplanned(prefix, drafting)
    settings = _settings(engine, serve, model.entry.name, drafting.tokens if drafting else 0)
    draft = drafting.model if drafting else None
    case = Case(served.decoder, engine_layout(engine.name, layout), gpu, settings, draft)
    budget = _BUDGETS[engine.name](Asked(sheet, prefix, path, serve, model, served, case, reported, advise))
    return _planned(sheet, prefix, path, serve, model, engine, case, budget, reported, advise)


def _settings(engine: Engine, serve: Serve, model: str, drafted: int) -> Settings:
    return replace(
        _SETTINGS[engine.name],
        version=engine.planned,
        memory_share=serve.memory_share.value if serve.memory_share else None,
        max_model_len=int(serve.max_model_len.value) if serve.max_model_len else None,
        kv_format=serve.kv_precision or "auto",
        max_num_seqs=serve.max_num_seqs,
        max_num_batched_tokens=serve.max_num_batched_tokens,
        speculative_tokens=drafted,
        model=model,
    )


def _planned(
    sheet: Sheet,
    prefix: str,
    path: str,
    serve: Serve,
    model: PlannedModel,
    engine: Engine,
    case: Case,
    budget: Budget,
    reported: Figure,
    advise: bool,
) -> MemoryPlan:
    pool = sheet.picked(Kind.SIZE, f"{prefix}.kv_pool", budget.pool)
    per_token = _per_token(sheet, prefix, path, serve, model, engine, case, budget.memory.kv_bytes_per_token)
    tokens, concurrency, context = _held(sheet, prefix, path, serve, budget, pool, per_token)
    cache = sheet.derive(
        f"{prefix}.cache", "GiB", "the whole pool; the engine takes it at start", lambda p: max(0.0, p), pool
    )
    parts = (*budget.before, ("KV cache", cache), *budget.after)
    total = sheet.derive(f"{prefix}.total", "GiB", "sum of the parts", lambda *p: sum(p), *(f for _, f in parts))
    longest = _longest(sheet, path, serve, model)
    # Heads that do not divide are said of the placement, once.
    why = tuple(reason for reason in budget.memory.why if "heads do not divide" not in reason)
    if pool.own_origin is Origin.MEASURED:
        short = f"one sequence of {longest} is longer than the {context} that the measured pool holds"
        why = () if context.value >= longest.value else (short,)
    for reason in why if advise else ():
        sheet.misfit(prefix, _to_change(path, reason), f"{reason}; the engine would not start")
    return MemoryPlan(
        str(engine),
        parts,
        total,
        budget.usable,
        reported,
        not why,
        per_token,
        pool,
        tokens,
        concurrency,
        budget.memory.notes,
        why,
        context,
        budget.sequences,
        budget.memory.advice,
        budget.memory.flags,
        budget.memory.extra_config,
    )


def _held(
    sheet: Sheet, prefix: str, path: str, serve: Serve, budget: Budget, pool: Figure, per_token: Figure
) -> tuple[Figure, Figure, Figure]:
    """(tokens, sequences of mean length, longest sequence) that the pool of one replica holds."""
    each = per_token.value or 1.0

    def room(gib: float, kib: float) -> float:
        return gib * each / kib if kib else gib

    tokens = sheet.derive(
        f"{prefix}.kv_tokens",
        "tokens",
        f"whole blocks of the pool as {budget.memory.engine} counts them, all groups of a replica together",
        lambda p, k: budget.tokens(room(p, k)),
        pool,
        per_token,
    )
    mean_in, mean_out = lengths(sheet, path, serve)
    concurrency = sheet.derive(
        f"{prefix}.max_concurrency",
        "sequences",
        "sequences of mean input + mean output that the pool holds, each in whole blocks of every kind of layer",
        lambda p, k, i, o: budget.requests(room(p, k), i + o),
        pool,
        per_token,
        mean_in,
        mean_out,
    )
    context = sheet.derive(
        f"{prefix}.max_context",
        "tokens",
        "longest sequence that one replica's pool holds, up to the model's own limit",
        lambda p, k: budget.longest(room(p, k)),
        pool,
        per_token,
    )
    return tokens, concurrency, context


def _to_change(path: str, reason: str) -> str:
    """The field of the file whose change would help most."""
    if "graphs" in reason or "free when it starts" in reason:
        return f"{path}.memory_share"
    return f"{path}.max_model_len" if "one sequence" in reason else f"{path}.parallel"


def _per_token(
    sheet: Sheet,
    prefix: str,
    path: str,
    serve: Serve,
    model: PlannedModel,
    engine: Engine,
    case: Case,
    each: float,
) -> Figure:
    """KiB of KV cache that one more token of a long sequence takes on one GPU."""
    form = cache_format(case.decoder, case.settings.kv_format, engine.name, case.settings.version)
    size = KV_BITS[form] / 8
    if serve.kv_precision is None:
        element = sheet.assumed(
            "kv_bytes" if size == 2 else f"kv_bytes.{form}",
            size,
            "B",
            f"kv_precision is not stated; {engine.name} {'.'.join(map(str, case.settings.version))} keeps the cache of "
            f"this model in {_words(form)}",
        )
    else:
        element = sheet.declared(f"{path}.kv_precision", size, "B")
    whole = _elements(case.decoder, form, each)
    if not whole or not each:
        return sheet.derive(
            f"{prefix}.kv_per_token", "KiB", "no layer keeps entries for every token", lambda _: 0.0, element
        )
    entries = sheet.published(
        model.entry,
        f"cached_elements{'' if size == 2 else '.' + form}",
        whole / size,
        "elements",
        "per token over all layers that keep one for each",
    )
    share = each / whole
    return sheet.derive(
        f"{prefix}.kv_per_token",
        "KiB",
        f"elements that all layers keep per token × bytes × {share:.4g}, the part of the fullest GPU of {case.layout}",
        lambda n, b: n * b * share / 1024,
        entries,
        element,
    )


def _elements(decoder: Decoder, form: str, each: float) -> float:
    """B per token over all layers on one GPU; windowed layers too where only they keep entries."""
    one = bytes_per_token(decoder, EngineLayout(), form)
    return one or (bytes_per_token(decoder, EngineLayout(), form, windows=True) if each else 0.0)


def _words(form: str) -> str:
    return {"bf16": "16 bit", "fp8_ds_mla": "fp8 with scales and 16-bit rotary part"}.get(form, form)


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
