"""SGLang's memory budget per GPU.

SGLang loads weights, then gives the cache what is left above a reserve: free after loading − free before × (1 −
mem_fraction_static). The request table, captured graphs, draft model and its own pool, and activations come out of the
reserve. Hybrids divide the rest between states and cache, 0.9 : 1. It starts with fewer tokens than one sequence of the
longest length; requests are then limited to what the pool holds.

Source: SGLang `model_executor/model_runner` (profile_max_num_token, init_memory_pool), `server_args`
(_handle_gpu_memory_settings: default fraction), `mem_cache/memory_pool` (ReqToTokenPool, padded_size + 4 columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Decoder
from clusterwright.physics.caches_by_layer import Kept, kept_by, kept_on_stages
from clusterwright.physics.engines.activations import captured_sizes, graphs_gib
from clusterwright.physics.engines.advice import Case, ranked_changes
from clusterwright.physics.engines.flags import sglang_flags
from clusterwright.physics.engines.releases import NEWEST, Release
from clusterwright.physics.engines.results import Band, ByRanks, EngineMemory, Gpu, bar, by_ranks, whole
from clusterwright.physics.engines.settings import Settings, cache_format, declared_note, has_states, layout_refusal
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import Loading, load_weights

#: Parallel sizes that the engine does not have; copies of a whole replica are planned one by one.
_LACKS: Final = ("dp", "dcp", "cp", "vp", "etp")


@dataclass(frozen=True, slots=True)
class SglangConstants:
    """Constants, measured where no source code is named.

    Args:
        runtime_gib: context, NCCL and custom all-reduce before weights are loaded, by tensor ranks; medians of logs.
        graph_mib: MiB per graph and layer, before 0.5 and later; medians of logs.
        state_share: parts of the rest that states get for one part of cache (`mamba_full_memory_ratio`).
        window_share: default of `swa_full_tokens_ratio`.
        slots_per_request: state slots that one running request takes with prefix caching.
        reserve_*: MiB of the default reserve: constant, per token of a prefill chunk, per sequence of the largest
            graph, per GPU, per sequence and data-parallel rank, speculation, least on GPUs from 60 GiB (server_args).
    """

    runtime_gib: ByRanks = ((1, 0.45), (2, 0.65), (4, 1.2), (8, 2.0))
    graph_mib: tuple[float, float] = (0.5, 0.25)
    state_share: float = 0.9
    slots_per_request: int = 3
    window_share: float = 0.8
    reserve_mib: float = 512.0
    reserve_token_mib: float = 1.5
    reserve_sequence_mib: float = 2.0
    reserve_gpu_mib: float = 128.0
    reserve_attention_dp_mib: float = 3.0
    reserve_draft_mib: float = 2048.0
    reserve_least_mib: float = 10240.0

    def runtime(self, ranks: int) -> float:
        """GiB taken before weights are loaded."""
        return by_ranks(self.runtime_gib, ranks)


@dataclass(frozen=True, slots=True)
class SglangSettings(Settings):
    """SGLang's settings.

    Args:
        max_total_tokens: upper limit of the pool, None without.
        state_slots: `max_mamba_cache_size`; None: by share.
        window_share: tokens of windowed layers per token of the others (`swa_full_tokens_ratio`); None: 0.8 where
            attention is compressed or chunked, as many elsewhere (windowed models run without a pool of their own
            unless asked for).
        serves_longest: a pool that holds less than one sequence of `max_model_len` counts as too small, though SGLang
            starts with it.
        constants: measured constants and those of its source.
    """

    version: Release = NEWEST["sglang"]
    max_total_tokens: int | None = None
    state_slots: int | None = None
    window_share: float | None = None
    serves_longest: bool = False
    constants: SglangConstants = field(default_factory=SglangConstants)


@dataclass(frozen=True, slots=True)
class Available:
    """GiB free on the fullest GPU before and after weights are loaded; what the log calls avail mem."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Rest:
    """What the pools get, in bytes, and what they hold."""

    gib: float
    state_gib: float
    kv_gib: float
    tokens: int
    slots: int


def plan_memory(
    decoder: Decoder,
    layout: Layout,
    gpu: Gpu,
    settings: SglangSettings = SglangSettings(),
    *,
    draft: Decoder | None = None,
    available: Available | None = None,
    larger: Sequence[Gpu] = (),
    advise: bool = True,
) -> EngineMemory:
    """Memory of the GPU that binds, and what the pool of one replica holds.

    Args:
        draft: EAGLE or another draft model with a pool of its own.
        available: figures of a log, taken instead of estimates.
        larger: GPUs to try when it does not fit.
        advise: whether changes are tried when it does not fit.
    """
    case = Case(decoder, layout, gpu, settings, draft)
    now = _plan(case, available)
    if now.fits or not advise:
        return now
    return replace(now, advice=ranked_changes(case, now, lambda other: _plan(other, None), larger))


def default_batch(reported_gib: float, tp: int) -> tuple[int, int]:
    """(chunked prefill size, largest graph) by GPU memory and ranks."""
    mib = reported_gib * 1024
    for limit, chunk, few, many in (
        (20 * 1024, 2048, 8, 8),
        (35 * 1024, 2048, 24, 80),
        (60 * 1024, 4096, 32, 160),
        (160 * 1024, 8192, 256, 512),
    ):
        if mib < limit:
            return chunk, few if tp < 4 else many
    return 16384, 512


def default_fraction(case: Case) -> float:
    """Default `mem_fraction_static`: by ranks before 0.5, from the reserve since."""
    settings, layout = _settings(case), case.layout
    if settings.version < (0, 5):
        return next(f for least, f in ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88)) if layout.tp >= least)
    c = settings.constants
    chunk, graph = default_batch(case.gpu.reported_gib, layout.tp)
    chunk = settings.max_num_batched_tokens or chunk
    reserve = c.reserve_mib + max(chunk, 2048) * c.reserve_token_mib + graph * c.reserve_sequence_mib
    reserve += layout.tp * layout.pp * c.reserve_gpu_mib
    if layout.attention_dp > 1:
        reserve += graph * layout.attention_dp * c.reserve_attention_dp_mib * (1.5 if graph > 300 else 1.0)
    total = case.gpu.reported_gib * 1024
    if total > 60 * 1024:
        reserve = max(reserve, c.reserve_least_mib)
    if settings.speculative_tokens:
        reserve += c.reserve_draft_mib
    return round((total - reserve) / total, 3)


def rest_gib(available: Available, fraction: float) -> float:
    """GiB for states and cache; negative where SGLang refuses to start."""
    return available.after - available.before * (1 - fraction)


def request_table_gib(requests: int, context: int) -> float:
    """GiB of the table of token positions of running requests."""
    return requests * (context + 4) * 4 / GIB


def default_requests(tokens: int, context: int) -> int:
    """Default number of running requests."""
    return max(min(int(tokens / context * 512), 4096), 2048)


def _settings(case: Case) -> SglangSettings:
    assert isinstance(case.settings, SglangSettings)
    return case.settings


def token_bytes(case: Case, layers: Sequence[Kept]) -> float:
    """B of one token of the pool; windowed layers count by their share of tokens."""
    share = _settings(case).window_share
    if share is None:
        split = any(k.ratio > 1 or k.kind == "chunk" for k in layers)
        share = _settings(case).constants.window_share if split else 1.0
    kept = [k for k in layers if k.kind != "state" and k.role != "compressor"]
    return sum(k.entry_bytes / k.ratio * (1.0 if k.kind == "full" else share) for k in kept)


def divide(case: Case, layers: Sequence[Kept], gib: float) -> Rest:
    """The rest between states and cache of one stage."""
    settings = _settings(case)
    state = sum(k.entry_bytes for k in layers if k.kind == "state")
    state_gib = 0.0
    slots = 0
    if state:
        share = settings.constants.state_share
        state_gib = gib * share / (1 + share) if settings.state_slots is None else settings.state_slots * state / GIB
        slots = max(0, int(state_gib * GIB / state))
    per_token = token_bytes(case, layers)
    page = settings.block_tokens or 1
    tokens = int(max(0.0, gib - state_gib) * GIB / per_token) // page * page if per_token else 0
    if settings.max_total_tokens is not None:
        tokens = min(tokens, settings.max_total_tokens)
    return Rest(gib, state_gib, tokens * per_token / GIB, tokens, slots)


def _plan(case: Case, available: Available | None) -> EngineMemory:
    settings, gpu, layout = _settings(case), case.gpu, case.layout
    fraction = settings.memory_share or default_fraction(case)
    length = settings.max_model_len or case.decoder.max_context
    before = available.before if available else gpu.reported_gib - settings.constants.runtime(layout.tp)
    weights = load_weights(case.decoder, layout, Loading())
    form = cache_format(case.decoder, settings.kv_format, "sglang", settings.version)
    rests = []
    for index, kept in enumerate(kept_on_stages(case.decoder, layout, form, settings.states)):
        after = available.after if available else before - weights.stage_bytes(index) / GIB
        rests.append((divide(case, kept, rest_gib(Available(before, after), fraction)), after, kept))
    rest, after, kept = min(rests, key=lambda row: row[0].tokens)
    running = running_requests(case, rest, length)
    chunk, graph = default_batch(gpu.reported_gib, layout.tp)
    chunk = settings.max_num_batched_tokens or chunk
    table = request_table_gib(running, length)
    graphs = 0.0 if settings.eager else _graphs_gib(case, min(graph, running))
    drafted = _draft_gib(case, rest.tokens, form)
    reserve = before * (1 - fraction)
    why = layout_refusal(case.decoder, case.layout, without=_LACKS) + _reasons(
        rest, reserve, table, graphs, sum(drafted), length if settings.serves_longest else 1
    )
    concurrency = min(rest.tokens / length, running)
    terms = [
        ("runtime", gpu.reported_gib - before),
        ("weights", before - after),
        ("states", rest.state_gib if rest.gib > 0 else 0.0),
        ("KV cache", rest.kv_gib),
        ("request table", table),
        ("CUDA graphs", graphs),
        ("draft weights", drafted[0]),
        ("draft pool", drafted[1]),
    ]
    return EngineMemory(
        engine=f"SGLang {settings.version[0]}.{settings.version[1]}",
        terms=bar([(name, gib) for name, gib in terms if gib or name == "KV cache"], gpu.reported_gib),
        reported_gib=whole(gpu.reported_gib),
        memory_share=fraction,
        kv_pool_gib=rest.gib - rest.state_gib,
        kv_bytes_per_token=token_bytes(case, kept),
        kv_tokens=rest.tokens * layout.attention_dp,
        max_concurrency=concurrency * layout.attention_dp,
        max_context=min(rest.tokens, case.decoder.max_context),
        why=why,
        band=Band(
            0.10, "public start-up logs of SGLang given free memory before and after loading; wider from flags only"
        ),
        flags=sglang_flags(case, length, fraction, settings.max_num_seqs, chunk),
        notes=_notes(case, rest, length),
    )


def running_requests(case: Case, rest: Rest, length: int) -> int:
    """Requests that one attention group runs at a time: as set, else the default, at most what state slots allow."""
    settings = _settings(case)
    running = settings.max_num_seqs or default_requests(rest.tokens, length)
    if rest.slots:
        running = min(running, max(1, rest.slots // settings.constants.slots_per_request))
    return running


def _graphs_gib(case: Case, largest: int) -> float:
    settings = _settings(case)
    mib = settings.constants.graph_mib[0 if settings.version < (0, 5) else 1]
    return float(graphs_gib(case.decoder, case.layout, captured_sizes(largest), mib))


def _draft_gib(case: Case, tokens: int, form: str) -> tuple[float, float]:
    """(weights, pool) of what drafts, beside the target's pool."""
    if not case.settings.speculative_tokens:
        return 0.0, 0.0
    layers = case.draft.layers if case.draft else case.decoder.drafts
    per_token = token_bytes(case, kept_by(layers, case.layout, form, case.settings.states))
    if case.draft:
        weights: float = load_weights(case.draft, replace(case.layout, pp=1)).largest
    else:
        with_drafts = load_weights(case.decoder, case.layout, Loading(drafts=True)).stage_bytes(case.layout.pp - 1)
        weights = with_drafts - load_weights(case.decoder, case.layout).stage_bytes(case.layout.pp - 1)
    return weights / GIB, tokens * per_token / GIB


def _reasons(rest: Rest, reserve: float, table: float, graphs: float, drafts: float, wanted: int) -> tuple[str, ...]:
    if rest.gib <= 0:
        return (f"weights leave {-rest.gib:.2f} GiB less than the reserve wants; no cache is left",)
    if rest.tokens == 0:
        return ("the cache holds not even one token",)
    if table + graphs + drafts > reserve:
        taken = table + graphs + drafts
        return (f"request table, graphs and draft model take {taken:.2f} GiB, the reserve is {reserve:.2f} GiB",)
    if rest.tokens < wanted:
        return (f"the pool holds {rest.tokens:,} tokens, one sequence of the wanted length has {wanted:,}",)
    return ()


def _notes(case: Case, rest: Rest, length: int) -> tuple[str, ...]:
    found = []
    if rest.tokens < length:
        found.append(f"starts, but no request may be longer than the pool's {rest.tokens:,} tokens")
    if has_states(case.decoder):
        found.append(f"states take {rest.slots:,} slots; with prefix caching a request uses several")
    found += declared_note(case.decoder, case.settings, "sglang")
    if case.layout.attention_dp > 1:
        found.append("tokens and concurrency are of all data-parallel attention groups together")
    return tuple(found)
