"""What to change when a model does not fit: every change is planned anew, then ranked by what it brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.model.decoders import Attention, Decoder, LatentAttention
from clusterwright.physics.caches_by_layer import KV_BITS
from clusterwright.physics.engines.results import Change, EngineMemory, Gpu
from clusterwright.physics.engines.settings import Settings
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import LINEAR, requantised

#: Highest share of GPU memory that advice goes to.
_HIGHEST_SHARE: Final = 0.95
#: Sequences per step that a smaller batch is tried with, and tokens.
_FEWER_SEQUENCES, _FEWER_TOKENS = 64, 2048


@dataclass(frozen=True, slots=True)
class Case:
    """Everything a plan is made from.

    Args:
        draft: a draft model of its own (EAGLE); draft layers that belong to the model (MTP) are in `decoder`.
    """

    decoder: Decoder
    layout: Layout
    gpu: Gpu
    settings: Settings
    draft: Decoder | None = None


Planner = Callable[[Case], EngineMemory]


def ranked_changes(case: Case, now: EngineMemory, plan: Planner, larger: Sequence[Gpu] = ()) -> tuple[Change, ...]:
    """Changes that help, best first: those that fit before the others, fewer GPUs first, then the larger pool."""
    found = []
    for what, changed, replaces_gpu in _changes(case, now, larger):
        result = plan(changed)
        if result.fits or result.kv_pool_gib > now.kv_pool_gib or result.kv_tokens > now.kv_tokens:
            extra = changed.layout.gpus - case.layout.gpus
            change = Change(
                what, result.fits, result.kv_tokens, result.max_concurrency, result.max_context, max(0, extra)
            )
            found.append((not result.fits, extra, replaces_gpu, -result.kv_tokens, what, change))
    return tuple(change for *_, change in sorted(found, key=lambda row: row[:5]))


def _changes(case: Case, now: EngineMemory, larger: Sequence[Gpu]) -> Iterator[tuple[str, Case, bool]]:
    settings = case.settings
    if KV_BITS.get(settings.kv_format, 16) > 8:
        yield "KV cache in fp8", replace(case, settings=replace(settings, kv_format="fp8")), False
    if now.memory_share < _HIGHEST_SHARE:
        raised = replace(settings, memory_share=_HIGHEST_SHARE)
        yield f"memory share {_HIGHEST_SHARE}", replace(case, settings=raised), False
    if 0 < now.max_context < (settings.max_model_len or case.decoder.max_context):
        shorter = replace(settings, max_model_len=now.max_context)
        yield f"at most {now.max_context:,} tokens per sequence", replace(case, settings=shorter), False
    fewer = replace(settings, max_num_seqs=_FEWER_SEQUENCES, max_num_batched_tokens=_FEWER_TOKENS)
    words = f"steps of {_FEWER_SEQUENCES} sequences and {_FEWER_TOKENS:,} tokens"
    yield words, replace(case, settings=fewer), False
    yield from _smaller_weights(case)
    if case.layout.tp * 2 <= _most_ranks(case.decoder):
        yield f"TP{case.layout.tp * 2}", replace(case, layout=replace(case.layout, tp=case.layout.tp * 2)), False
    for gpu in larger:
        if gpu.reported_gib > case.gpu.reported_gib:
            yield f"{gpu.name} ({gpu.reported_gib:.4g} GiB)", replace(case, gpu=gpu), True


def _smaller_weights(case: Case) -> Iterator[tuple[str, Case, bool]]:
    stored = {part.stored for part, _ in case.decoder.parts(towers=False) if part.role in LINEAR}
    if stored & {"bf16", "fp16", "fp32"}:
        yield "weights in fp8", replace(case, decoder=requantised(case.decoder, "fp8")), False
    if stored & {"bf16", "fp16", "fp32", "fp8", "int8"}:
        yield "weights in int4 (group 128)", replace(case, decoder=requantised(case.decoder, "int4")), False


def _most_ranks(decoder: Decoder) -> int:
    heads = [layer.mixer.heads for layer, _ in decoder.groups if isinstance(layer.mixer, Attention | LatentAttention)]
    return min(heads, default=1)
