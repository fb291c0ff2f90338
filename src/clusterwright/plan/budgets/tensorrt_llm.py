"""TensorRT-LLM's budget as figures: a fraction of what weights, one step and the runtime leave free."""

from __future__ import annotations

import math
from dataclasses import replace

from clusterwright.lib.figures import Figure
from clusterwright.lib.scales import GIB
from clusterwright.physics.caches_by_layer import kept_on_stages
from clusterwright.physics.engines import tensorrt_llm as trtllm
from clusterwright.physics.engines.activations import captured_sizes, graphs_gib
from clusterwright.physics.engines.settings import cache_format
from clusterwright.physics.loading import load_weights
from clusterwright.plan.budgets.common import Asked, Budget, gpu_weights, loading_of, stated


def tensorrt_llm_budget(asked: Asked) -> Budget:
    """Figures of the budget of one replica's GPU that binds."""
    sheet, prefix, case = asked.sheet, asked.prefix, asked.case
    settings, layout = case.settings, case.layout
    assert isinstance(settings, trtllm.TrtllmSettings)
    memory = trtllm.plan_memory(case.decoder, layout, case.gpu, settings, advise=asked.advise)
    constants = settings.constants
    fraction = stated(
        asked, "memory_share", "tensorrt-llm.free_gpu_memory_fraction", memory.memory_share, "share",
        "TensorRT-LLM's default of free memory; the file states no memory_share",
    )  # fmt: skip
    sequences = stated(
        asked, "max_num_seqs", "tensorrt-llm.max_batch_size", constants.batch, "sequences",
        "TensorRT-LLM's default; the file states no max_num_seqs",
    )  # fmt: skip
    activations = _activations(asked, settings, sequences)
    runtime = sheet.assumed(
        f"tensorrt-llm.runtime.{layout.tp}", constants.runtime(layout.tp), "GiB",
        "context, NCCL and workspaces; documentation's example and few public logs, 2025",
    )  # fmt: skip
    form = cache_format(case.decoder, settings.kv_format, "tensorrt-llm", settings.version)
    drafting = case.decoder.drafts if settings.speculative_tokens else ()
    kept = kept_on_stages(case.decoder, layout, form, settings.states, drafting)
    loaded = load_weights(case.decoder, layout, loading_of(case))
    block = settings.block_tokens or constants.block[settings.version >= (1, 0)]
    length = settings.max_model_len or case.decoder.max_context
    held = [trtllm.held(k, length) for k in kept]

    def blocks(stage: int, gib: float) -> int:
        per_token = held[stage][0]
        return int(max(0.0, gib) * GIB // (per_token * block)) if per_token else 0

    taken = [loaded.stage_bytes(i) / GIB + activations.value + runtime.value for i in range(layout.pp)]
    left = [(case.gpu.reported_gib - gib) * fraction.value for gib in taken]
    stage = min(range(layout.pp), key=lambda i: blocks(i, left[i]))
    weights = gpu_weights(asked, loading_of(case), stage)
    pool = sheet.derive(
        f"{prefix}.kv_pool",
        "GiB",
        "(reported − weights − activations − runtime) × fraction (TensorRT-LLM)",
        lambda r, w, a, n, f: (r - w - a - n) * f,
        asked.reported, weights, activations, runtime, fraction,
        band=(1 - memory.band.share, 1 + memory.band.share),
    )  # fmt: skip
    graphs = _graphs(asked, settings, round(sequences.value))

    def tokens(gib: float) -> float:
        return blocks(stage, gib) * block * layout.attention_dp

    def requests(gib: float, each: float) -> float:
        per_token, fixed = held[stage]
        request = math.ceil(each / block) * block + (fixed / per_token if per_token else 0.0)
        return min(blocks(stage, gib) * block / request, round(sequences.value)) * layout.attention_dp

    def longest(gib: float) -> float:
        return min(blocks(stage, gib) * block, case.decoder.max_context)

    before = (("weights", weights), ("activations", activations), ("runtime", runtime))
    return Budget(
        memory, asked.reported, before, (("CUDA graphs", graphs),), pool, tokens, requests, longest, sequences
    )


def _activations(asked: Asked, settings: trtllm.TrtllmSettings, sequences: Figure) -> Figure:
    case, constants = asked.case, settings.constants
    batched = stated(
        asked, "max_num_batched_tokens", "tensorrt-llm.max_num_tokens", constants.tokens, "tokens",
        "TensorRT-LLM's default; the file states no max_num_batched_tokens",
    )  # fmt: skip
    copies = asked.sheet.constant(
        "tensorrt-llm.sampler_copies", constants.sampler_copies, "logits", "PyTorch backend of TensorRT-LLM 1.0, 2025"
    )

    def peak(s: float, t: float, c: float) -> float:
        changed = replace(
            settings,
            max_num_seqs=round(s),
            max_num_batched_tokens=round(t),
            constants=replace(constants, sampler_copies=c),
        )
        return trtllm.activation_gib(replace(case, settings=changed))

    words = "larger of a forward pass of the batched tokens and the sampler (TensorRT-LLM)"
    return asked.sheet.derive(f"{asked.prefix}.activations", "GiB", words, peak, sequences, batched, copies)


def _graphs(asked: Asked, settings: trtllm.TrtllmSettings, sequences: int) -> Figure:
    case, captured = asked.case, captured_sizes(min(sequences, 128))
    mib = asked.sheet.assumed(
        "tensorrt-llm.graph_mib", settings.constants.graph_mib, "MiB", "per captured graph and layer, as in vLLM"
    )
    return asked.sheet.derive(
        f"{asked.prefix}.graphs", "GiB", "captured batch sizes × layers × MiB of each (TensorRT-LLM)",
        lambda m: float(graphs_gib(case.decoder, case.layout, captured, m)), mib,
    )  # fmt: skip
