"""vLLM's memory budget per GPU.

vLLM takes a share of the total that CUDA reports. From it come weights, the peak of a profiling run, memory outside
PyTorch's allocator and, from 0.21 on, an estimate of the graphs; the rest is the block pool, whose blocks are the
fewest over ranks and stages. Before 0.21 the graphs come on top of the share, in what the profiling run left free.

Source: vLLM `v1/worker/gpu_worker.determine_available_memory`, `worker/worker.determine_num_available_blocks` (V0);
`vllm_versions` says what changed when.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Decoder, LatentAttention
from clusterwright.physics.caches_by_layer import Kept, StateFormats, kept_on_stages
from clusterwright.physics.engines import vllm_versions as versions
from clusterwright.physics.engines.activations import captured_sizes, forward_gib, graphs_gib, sampler_gib
from clusterwright.physics.engines.advice import Case, ranked_changes
from clusterwright.physics.engines.blocks import Pool, share_blocks
from clusterwright.physics.engines.flags import vllm_flags
from clusterwright.physics.engines.releases import NEWEST, Release
from clusterwright.physics.engines.results import Band, EngineMemory, Gpu, Measured, bar, known, whole
from clusterwright.physics.engines.settings import (
    Settings,
    cache_format,
    declared_note,
    has_states,
    layout_refusal,
    state_mixers,
)
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import Loading, load_weights

#: Parallel sizes that the engine does not have; copies of a whole replica are planned one by one.
LACKS: Final = ("attention_dp", "cp", "vp", "etp")


@dataclass(frozen=True, slots=True)
class VllmSettings(Settings):
    """vLLM's settings; blocks of 16 tokens unless stated, of 64 for latent attention.

    Args:
        version: the newest that is modelled, unless stated: what is installed today, and old ones lack new models.
        v0: the engine before V1; None: by version.
        offline: batch defaults of the `LLM` class instead of the server's.
        windows: whether windowed layers give blocks back; None: by version.
        text_only: towers are not loaded (`--limit-mm-per-prompt` 0 for every kind).
        constants: measured constants.
    """

    version: Release = NEWEST["vllm"]
    v0: bool | None = None
    offline: bool = False
    windows: bool | None = None
    text_only: bool = False
    states: StateFormats = field(default_factory=lambda: StateFormats(unasked="bf16"))
    constants: versions.VllmConstants = field(default_factory=versions.VllmConstants)

    @property
    def is_v0(self) -> bool:
        """Whether the engine before V1 runs."""
        return self.version < versions.V1_SINCE if self.v0 is None else self.v0


@dataclass(frozen=True, slots=True)
class Step:
    """What one step may hold, and the longest sequence."""

    sequences: int
    tokens: int
    length: int


def plan_memory(
    decoder: Decoder,
    layout: Layout,
    gpu: Gpu,
    settings: VllmSettings = VllmSettings(),
    *,
    draft: Decoder | None = None,
    measured: Measured | None = None,
    larger: Sequence[Gpu] = (),
    advise: bool = True,
) -> EngineMemory:
    """Memory of the GPU that binds, and what the pool of one replica holds.

    Args:
        draft: EAGLE or another draft model; its layers join the pool and its weights the last stage.
        measured: figures of a log, taken instead of estimates.
        larger: GPUs to try when it does not fit.
        advise: whether changes are tried when it does not fit.
    """
    case = Case(decoder, layout, gpu, settings, draft)
    now = _plan(case, measured or Measured())
    if now.fits or not advise:
        return now
    return replace(now, advice=ranked_changes(case, now, lambda other: _plan(other, Measured()), larger))


def step_of(case: Case) -> Step:
    """Batch and length that vLLM runs with, its defaults filled in."""
    settings = _settings(case)
    length = settings.max_model_len or case.decoder.max_context
    tokens = settings.max_num_batched_tokens or versions.default_batched_tokens(
        settings.version,
        length,
        case.gpu.reported_gib,
        is_a100=case.gpu.is_a100,
        v0=settings.is_v0,
        offline=settings.offline,
    )
    sequences = settings.max_num_seqs or versions.default_sequences(
        case.gpu.reported_gib, is_a100=case.gpu.is_a100, v0=settings.is_v0
    )
    return Step(min(sequences, tokens), tokens, length)


def pool_of(case: Case) -> Pool:
    """How the model's layers, with those that draft, share vLLM's pool.

    Before groups of windowed layers, V1 gave blocks back only where every layer has a window.
    """
    return _pool(case, _kept(case))


def _pool(case: Case, kept: Sequence[tuple[int, Kept]]) -> Pool:
    settings = _settings(case)
    alike = not settings.is_v0 and all(k.kind == "window" for _, k in kept)
    return share_blocks(
        kept,
        case.layout.pp,
        block_tokens=settings.block_tokens or _default_block(case.decoder),
        window_aware=alike or _window_aware(settings),
        state_blocks=(2 if _keeps_prefixes(settings) else 1) + settings.speculative_tokens,
        limit=1.25 if settings.version < (0, 12) else 1.5,
        packed=settings.version >= versions.PACKED_SINCE,
    )


def _kept(case: Case) -> list[tuple[int, Kept]]:
    """(stage, what a layer keeps), in order, draft layers last."""
    settings = case.settings
    drafts = case.decoder.drafts if settings.speculative_tokens and case.draft is None else ()
    extra = (*drafts, *(case.draft.layers if case.draft else ()))
    form = cache_format(case.decoder, settings.kv_format, "vllm", settings.version)
    held = kept_on_stages(case.decoder, case.layout, form, _states(case), extra)
    return [(stage, kept) for stage, own in enumerate(held) for kept in own]


def _states(case: Case) -> StateFormats:
    """Formats of states: as the config asks, where the release can; 16 bit where it says nothing."""
    settings = _settings(case)
    own = replace(settings.states, drafted=settings.speculative_tokens)
    if settings.version < versions.STATE_FORMATS_SINCE:
        return replace(own, recurrent=own.recurrent or "bf16")
    nemotron = case.decoder.architecture == "NemotronHForCausalLM"
    wide = nemotron and settings.version >= versions.NEMOTRON_STATES_SINCE
    return replace(own, unasked="fp32" if wide else own.unasked)


def _default_block(decoder: Decoder) -> int:
    """16 tokens; 64 for latent attention, whose kernels (FlashMLA) want it."""
    return 64 if any(isinstance(layer.mixer, LatentAttention) for layer, _ in decoder.groups) else 16


def _settings(case: Case) -> VllmSettings:
    assert isinstance(case.settings, VllmSettings)
    return case.settings


def _window_aware(settings: VllmSettings) -> bool:
    return settings.version >= versions.WINDOWS_SINCE if settings.windows is None else settings.windows


def _keeps_prefixes(settings: VllmSettings) -> bool:
    if settings.prefix_caching is None:
        return settings.version >= versions.STATE_PREFIXES_SINCE
    return settings.prefix_caching


@dataclass(frozen=True, slots=True)
class _Stage:
    weights: float
    activation: float

    def pool(self, budget: float, non_torch: float, graphs: float) -> float:
        return budget - self.weights - self.activation - non_torch - graphs


def _plan(case: Case, measured: Measured) -> EngineMemory:
    settings, gpu, step = _settings(case), case.gpu, step_of(case)
    constants = settings.constants
    share = settings.memory_share or versions.default_share(settings.version)
    budget = gpu.reported_gib * share
    ranks = case.layout.tp * (2 if case.layout.pp > 1 else 1)
    non_torch = known(
        measured.non_torch_gib, constants.non_torch(ranks, gpu.vendor, settings.version, v0=settings.is_v0)
    )
    graphs = known(measured.graphs_gib, estimated_graphs_gib(case, step))
    inside = settings.version >= versions.GRAPHS_INSIDE_SINCE
    by_stage = _stages(case, step, measured)
    pools = [s.pool(budget, non_torch, graphs if inside else 0.0) for s in by_stage]
    kept = _kept(case)
    pool = _pool(case, kept)
    blocks = pool.blocks([max(0.0, gib) * GIB for gib in pools])
    binding = _binding(pools, pool)
    stage = by_stage[binding]
    needed = pool.request_blocks(step.length, step.tokens, case.layout.dcp)
    concurrency = blocks / needed
    longest = pool.longest(blocks, case.decoder.max_context, step.tokens, case.layout.dcp)
    why = layout_refusal(case.decoder, case.layout, without=LACKS) + _reasons(
        case, budget, pools[binding], blocks, needed, longest, step
    )
    if not inside:
        why += _graphs_outside(gpu, constants, budget, stage.activation, graphs)
    return EngineMemory(
        engine=f"vLLM {settings.version[0]}.{settings.version[1]}",
        terms=bar(
            (
                ("weights", stage.weights),
                ("activations", stage.activation),
                ("outside PyTorch", non_torch),
                ("CUDA graphs", graphs),
                ("KV cache", blocks * pool.block_bytes[binding] / GIB),
            ),
            gpu.reported_gib,
        ),
        reported_gib=whole(gpu.reported_gib),
        memory_share=share,
        kv_pool_gib=pools[binding],
        kv_bytes_per_token=_token_bytes(case, kept),
        kv_tokens=printed_tokens(pool, settings, blocks, concurrency, step.length)
        * (case.layout.dcp if pool.uniform else 1)
        * case.layout.dp,
        max_concurrency=concurrency * case.layout.dp,
        max_context=longest,
        why=why,
        band=_band(settings.version, gpu),
        flags=vllm_flags(case, step.length, share, step.sequences, step.tokens),
        notes=_notes(case, pool),
    )


def token_bytes(case: Case) -> float:
    """B of one more token of a long sequence on the fullest GPU, drafting layers included, blocks not rounded."""
    return _token_bytes(case, _kept(case))


def _token_bytes(case: Case, held: Sequence[tuple[int, Kept]]) -> float:
    kinds = ("full",) if _window_aware(_settings(case)) else ("full", "window", "chunk")
    sizes = [0.0] * case.layout.pp
    for stage, kept in held:
        if kept.kind in kinds and kept.role != "compressor":
            sizes[stage] += kept.entry_bytes / kept.ratio
    return max(sizes) / case.layout.dcp


def estimated_graphs_gib(case: Case, step: Step) -> float:
    """GiB of captured graphs: up to 512 tokens piecewise, and from 0.11 on whole graphs of every decode batch too."""
    settings = _settings(case)
    if settings.eager:
        return 0.0
    if settings.is_v0:
        count = captured_sizes(min(step.sequences, 256))
    else:
        count = captured_sizes(min(2 * step.sequences, 512))
        count += captured_sizes(min(step.sequences, 512)) if settings.version >= (0, 11) else 0
    mib = settings.constants.graph(settings.version, v0=settings.is_v0)
    return float(graphs_gib(case.decoder, case.layout, count, mib))


def _stages(case: Case, step: Step, measured: Measured) -> list[_Stage]:
    settings = _settings(case)
    loading = Loading(drafts=settings.speculative_tokens > 0 and case.draft is None, towers=not settings.text_only)
    weights = load_weights(case.decoder, case.layout, loading)
    extra = load_weights(case.draft, replace(case.layout, pp=1)).largest if case.draft else 0
    last = case.layout.pp - 1
    peaks = {samples: activation_gib(case, step, samples=samples) for samples in {True, last == 0}}
    found = []
    for index in range(case.layout.pp):
        own = weights.stage_bytes(index) + (extra if index == last else 0)
        peak = known(measured.activation_gib, peaks[index == last])
        found.append(_Stage(known(measured.weights_gib, own / GIB), peak))
    return found


def activation_gib(case: Case, step: Step, *, samples: bool = True) -> float:
    """Peak of the profiling run: the largest of forward pass, sampler and the tower's forward pass."""
    settings = _settings(case)
    residuals = settings.constants.residuals(case.layout.tp, v0=settings.is_v0)
    peaks = [forward_gib(case.decoder, case.layout, step.tokens, residuals)]
    if samples:
        copies = settings.constants.copies(settings.version)
        hidden = 2 * step.tokens * case.decoder.hidden / GIB
        peaks.append(sampler_gib(step.sequences, case.decoder.vocab, copies) + hidden)
    if case.decoder.towers and not settings.text_only:
        peaks.append(settings.constants.encoder_gib)
    return max(peaks)


def _binding(pools: Sequence[float], pool: Pool) -> int:
    """Stage with the fewest blocks."""
    return min(range(len(pools)), key=lambda i: pools[i] / pool.block_bytes[i] if pool.block_bytes[i] else math.inf)


def printed_tokens(pool: Pool, settings: VllmSettings, blocks: int, concurrency: float, length: int) -> int:
    """Tokens of one rank's pool as vLLM prints them, decode context parallelism left out.

    Blocks × block size; where layers differ that over the number of groups, in later releases concurrency × length.
    """
    if pool.uniform:
        return blocks * pool.block_tokens
    if settings.version >= versions.TOKENS_BY_CONCURRENCY_SINCE:
        return int(concurrency * length)
    return blocks // sum(group.count for group in pool.groups) * pool.block_tokens


def _reasons(
    case: Case, budget: float, kv_gib: float, blocks: int, needed: int, longest: int, step: Step
) -> tuple[str, ...]:
    found = []
    free = free_gib(case)
    if _settings(case).version >= versions.FREE_CHECKED_SINCE and budget > free:
        found.append(f"the engine wants {budget:.2f} GiB of the GPU, {free:.2f} GiB are free when it starts")
    if kv_gib <= 0:
        found.append(f"weights, activations and runtime exceed the budget by {-kv_gib:.2f} GiB; no KV cache is left")
    elif needed > blocks:
        found.append(
            f"one sequence of {step.length:,} tokens takes {needed:,} blocks, the pool has {blocks:,}; "
            f"{longest:,} tokens would fit"
        )
    return tuple(found)


def free_gib(case: Case) -> float:
    """GiB free at start: as stated, else all but the driver's context."""
    constants = _settings(case).constants
    if case.gpu.free_gib is not None:
        return case.gpu.free_gib
    return case.gpu.reported_gib * (1 - constants.context_share) - constants.context_gib


def _graphs_outside(
    gpu: Gpu, constants: versions.VllmConstants, budget: float, activation: float, graphs: float
) -> tuple[str, ...]:
    """Graphs are captured when the peak of the profiling run is over: its memory and what the share left are free."""
    room = gpu.reported_gib * (1 - constants.context_share) - constants.context_gib - budget + activation
    if graphs == 0 or room >= graphs + constants.spare_gib:
        return ()
    return (f"CUDA graphs take about {graphs:.2f} GiB outside the engine's share, {room:.2f} GiB are free there",)


def _band(version: versions.Version, gpu: Gpu) -> Band:
    if version >= (0, 11) and gpu.reported_gib >= 39:
        return Band(0.10, "public start-up logs of vLLM from 0.11 on, GPUs from 40 GB")
    return Band(0.25, "public start-up logs of vLLM before 0.11 or on small GPUs; a wide spread")


def _notes(case: Case, pool: Pool) -> tuple[str, ...]:
    found = []
    if has_states(case.decoder):
        formats = sorted({_states(case).of(m) for m in state_mixers(case.decoder)})
        found.append(
            f"attention blocks grow to {pool.block_tokens} tokens to hold a state; a request takes blocks for states "
            f"whatever its length; recurrent states are planned in {' and '.join(formats)}"
        )
    found += declared_note(case.decoder, case.settings, "vllm")
    if len(pool.groups) > 1 and not has_states(case.decoder):
        found.append("layers with windows share the pool in groups; the token count is concurrency × length")
    if 1 < case.layout.ep < case.layout.tp * case.layout.dp:
        found.append(
            f"vLLM spreads experts over all {case.layout.tp * case.layout.dp} ranks; it has no EP{case.layout.ep}"
        )
    if case.layout.dp > 1:
        found.append("tokens and concurrency are of all data-parallel ranks together; one request has one rank's pool")
    return tuple(found)
