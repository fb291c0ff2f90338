"""SGLang's budget as figures: what loading leaves above the reserve, divided between states and KV cache."""

from __future__ import annotations

from dataclasses import replace

from clusterwright.lib.figures import Figure
from clusterwright.lib.scales import GIB
from clusterwright.physics.caches_by_layer import kept_on_stages
from clusterwright.physics.engines import sglang
from clusterwright.physics.engines.activations import captured_sizes, graphs_gib
from clusterwright.physics.engines.settings import cache_format
from clusterwright.physics.loading import Loading, load_weights
from clusterwright.plan.budgets.common import Asked, Budget, draft_weights, gpu_weights, stated

_LOGS = "public SGLang start-up logs, 2025 to 2026"


def sglang_budget(asked: Asked) -> Budget:
    """Figures of the budget of one replica's GPU that binds."""
    sheet, prefix, case = asked.sheet, asked.prefix, asked.case
    settings = case.settings
    assert isinstance(settings, sglang.SglangSettings)
    memory = sglang.plan_memory(case.decoder, case.layout, case.gpu, settings, draft=case.draft, advise=asked.advise)
    constants, layout = settings.constants, case.layout
    length = settings.max_model_len or case.decoder.max_context
    fraction = stated(
        asked, "memory_share", f"sglang.mem_fraction_static.{layout.tp}", memory.memory_share, "share",
        f"default of {memory.engine} for this GPU and width; the file states no memory_share",
    )  # fmt: skip
    runtime = sheet.assumed(
        f"sglang.runtime.{layout.tp}", constants.runtime(layout.tp), "GiB",
        f"context, NCCL and custom all-reduce before weights are loaded; median of {_LOGS}",
    )  # fmt: skip
    form = cache_format(case.decoder, settings.kv_format, "sglang", settings.version)
    kept = kept_on_stages(case.decoder, layout, form, settings.states)
    loaded = load_weights(case.decoder, layout, Loading())

    def rest(stage: int) -> float:
        before = case.gpu.reported_gib - runtime.value
        after = before - loaded.stage_bytes(stage) / GIB
        return sglang.rest_gib(sglang.Available(before, after), fraction.value)

    stage = min(range(layout.pp), key=lambda i: sglang.divide(case, kept[i], rest(i)).tokens)
    weights = gpu_weights(asked, Loading(), stage)
    left = sheet.derive(
        f"{prefix}.pools",
        "GiB",
        "free after loading − (1 − share) × free before (SGLang)",
        lambda r, n, w, f: (r - n) * f - w,
        asked.reported, runtime, weights, fraction,
    )  # fmt: skip
    has_states = any(k.kind == "state" for k in kept[stage])
    states = _states(asked, constants.state_share, left) if has_states else None
    pool = sheet.derive(
        f"{prefix}.kv_pool",
        "GiB",
        "what is left above the reserve" + (" − states" if states else "") + " (SGLang)",
        lambda p, s=0.0: p - s,
        *((left, states) if states else (left,)),
        band=(1 - memory.band.share, 1 + memory.band.share),
    )
    running = sglang.running_requests(case, sglang.divide(case, kept[stage], rest(stage)), length)
    sequences = stated(
        asked, "max_num_seqs", f"sglang.max_running_requests.{prefix}", running, "sequences",
        "SGLang's default; the file states no max_num_seqs",
    )  # fmt: skip
    table = sheet.derive(
        f"{prefix}.request_table", "GiB", "running requests × (longest length + 4) × 4 B",
        lambda n: sglang.request_table_gib(round(n), length), sequences,
    )  # fmt: skip
    graphs = _graphs(asked, constants.graph_mib[settings.version >= (0, 5)], running)
    per_token = sglang.token_bytes(case, kept[stage])
    whole = replace(settings, state_slots=0) if has_states else settings

    def tokens(gib: float) -> float:
        held = sglang.divide(replace(case, settings=whole), kept[stage], gib).tokens
        return held * layout.attention_dp if per_token else 0.0

    def requests(gib: float, each: float) -> float:
        return min(tokens(gib) / max(each, 1.0), running * layout.attention_dp)

    def longest(gib: float) -> float:
        return min(tokens(gib) / layout.attention_dp, case.decoder.max_context)

    before = (("runtime", runtime), ("weights", weights), *((("states", states),) if states else ()))
    after = (("request table", table), ("CUDA graphs", graphs), *_drafts(asked, dict(memory.terms), pool))
    return Budget(memory, asked.reported, before, after, pool, tokens, requests, longest, sequences, states)


def _states(asked: Asked, share: float, left: Figure) -> Figure:
    ratio = asked.sheet.constant(
        "sglang.state_share", share, "", "server_args.py of SGLang 0.5, mamba_full_memory_ratio, 2025"
    )
    words = "states : cache = ratio : 1 (SGLang)"
    return asked.sheet.derive(f"{asked.prefix}.states", "GiB", words, lambda p, s: p * s / (1 + s), left, ratio)


def _graphs(asked: Asked, each_mib: float, running: int) -> Figure:
    case = asked.case
    mib = asked.sheet.assumed("sglang.graph_mib", each_mib, "MiB", f"per captured graph and layer; median of {_LOGS}")
    captured = captured_sizes(min(sglang.default_batch(case.gpu.reported_gib, case.layout.tp)[1], running))
    return asked.sheet.derive(
        f"{asked.prefix}.graphs", "GiB", "captured batch sizes × layers × MiB of each (SGLang)",
        lambda m: float(graphs_gib(case.decoder, case.layout, captured, m)), mib,
    )  # fmt: skip


def _drafts(asked: Asked, terms: dict[str, float], pool: Figure) -> tuple[tuple[str, Figure], ...]:
    """What drafts and its own pool, both out of the reserve; none without speculation."""
    if not terms.get("draft pool"):
        return ()
    weights, beside = terms.get("draft weights", 0.0), terms["draft pool"] / pool.value
    held = asked.sheet.derive(
        f"{asked.prefix}.draft_pool", "GiB", "layers that draft keep every token of the pool, too (SGLang)",
        lambda p: p * beside, pool,
    )  # fmt: skip
    own = draft_weights(asked)
    if not own and weights:
        count = sum(layer.parameters for layer in asked.case.decoder.drafts)
        drafts = asked.sheet.published(asked.model.entry, "draft_parameters", count, "parameters", "of draft layers")
        each = weights / count
        name = f"{asked.prefix}.draft_weights"
        own = (
            ("draft weights", asked.sheet.derive(name, "GiB", "draft layers on one GPU", lambda n: n * each, drafts)),
        )
    return (*own, ("draft pool", held))
