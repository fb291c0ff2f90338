"""vLLM's budget as figures: share of the GPU − weights − activations − outside PyTorch (− graphs) = KV cache."""

from __future__ import annotations

import math
from dataclasses import replace

from clusterwright.lib.figures import Figure
from clusterwright.lib.scales import GIB
from clusterwright.physics.engines import vllm
from clusterwright.physics.engines import vllm_versions as versions
from clusterwright.physics.engines.activations import captured_sizes, graphs_gib
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.loading import load_weights
from clusterwright.plan.budgets.common import Asked, Budget, draft_weights, gpu_weights, loading_of, stated

_LOGS = "public vLLM start-up logs, 2024 to 2026"


def vllm_budget(asked: Asked) -> Budget:
    """Figures of the budget of one replica's GPU that binds."""
    sheet, prefix, case = asked.sheet, asked.prefix, asked.case
    settings = case.settings
    assert isinstance(settings, vllm.VllmSettings)
    memory = vllm.plan_memory(case.decoder, case.layout, case.gpu, settings, draft=case.draft, advise=asked.advise)
    step = vllm.step_of(case)
    inside = settings.version >= versions.GRAPHS_INSIDE_SINCE
    share = stated(
        asked, "memory_share", "vllm.memory_share", memory.memory_share, "share",
        f"default of {memory.engine}; the file states no memory_share",
    )  # fmt: skip
    usable = sheet.derive(
        f"{prefix}.usable", "GiB", "share × reported memory (vLLM)", lambda r, s: r * s, asked.reported, share
    )
    sequences = stated(
        asked, "max_num_seqs", f"vllm.max_num_seqs.{case.gpu.name}", step.sequences, "sequences",
        "vLLM's default for this GPU; the file states no max_num_seqs",
    )  # fmt: skip
    stage = _binding(case)
    weights = gpu_weights(asked, loading_of(case), stage)
    activations = _activations(asked, stage == case.layout.pp - 1, sequences)
    non_torch = _outside(asked, settings)
    graphs = _graphs(asked, sequences)
    parts = (
        ("weights", weights), *draft_weights(asked), ("activations", activations), ("outside PyTorch", non_torch)
    )  # fmt: skip
    taken = (*parts, ("CUDA graphs", graphs)) if inside and graphs is not None else parts
    pool = sheet.derive(
        f"{prefix}.kv_pool",
        "GiB",
        "usable − " + " − ".join(label for label, _ in taken) + " (vLLM)",
        lambda u, *p: u - math.fsum(p),
        usable,
        *(figure for _, figure in taken),
        band=(1 - memory.band.share, 1 + memory.band.share),
    )
    shared, deltas = vllm.pool_of(case), _deltas(case, stage)

    def blocks(gib: float) -> int:
        return shared.blocks([max(0.0, gib + delta) * GIB for delta in deltas])

    def requests(gib: float, tokens: float) -> float:
        each = shared.request_blocks(max(1, math.ceil(tokens)), step.tokens, case.layout.dcp)
        return blocks(gib) / each * case.layout.dp

    def tokens(gib: float) -> float:
        held = blocks(gib)
        concurrency = held / shared.request_blocks(step.length, step.tokens, case.layout.dcp)
        printed = vllm.printed_tokens(shared, settings, held, concurrency, step.length)
        return printed * (case.layout.dcp if shared.uniform else 1) * case.layout.dp

    def longest(gib: float) -> float:
        return shared.longest(blocks(gib), case.decoder.max_context, step.tokens, case.layout.dcp)

    return Budget(memory, usable, taken, (), pool, tokens, requests, longest, sequences)


def _stage_gib(case: Case) -> list[float]:
    """GiB of weights and activations of every stage."""
    step, weights = vllm.step_of(case), load_weights(case.decoder, case.layout, loading_of(case))
    last = case.layout.pp - 1
    return [
        weights.stage_bytes(index) / GIB + vllm.activation_gib(case, step, samples=index == last)
        for index in range(case.layout.pp)
    ]


def _binding(case: Case) -> int:
    """Stage whose pool holds the fewest blocks."""
    taken, shared = _stage_gib(case), vllm.pool_of(case)
    share = case.settings.memory_share or versions.default_share(case.settings.version)
    left = [case.gpu.reported_gib * share - gib for gib in taken]
    sizes = shared.block_bytes
    return min(range(len(left)), key=lambda i: left[i] / sizes[i] if sizes[i] else math.inf)


def _deltas(case: Case, stage: int) -> list[float]:
    """GiB by which the pool of every stage exceeds that of `stage`."""
    taken = _stage_gib(case)
    return [taken[stage] - gib for gib in taken]


def _activations(asked: Asked, samples: bool, sequences: Figure) -> Figure:
    sheet, case = asked.sheet, asked.case
    settings, step = case.settings, vllm.step_of(case)
    assert isinstance(settings, vllm.VllmSettings)
    constants = settings.constants
    tokens = stated(
        asked, "max_num_batched_tokens", f"vllm.max_num_batched_tokens.{case.gpu.name}", step.tokens, "tokens",
        "vLLM's default for this GPU; the file states no max_num_batched_tokens",
    )  # fmt: skip
    copies = sheet.constant(
        f"vllm.sampler_copies.{settings.version[0]}.{settings.version[1]}",
        constants.copies(settings.version),
        "logits",
        f"fp32 logits at the sampler's peak; sampler source code and {_LOGS}",
    )

    def peak(s: float, t: float, c: float) -> float:
        changed = replace(settings, constants=replace(constants, sampler_copies=(c, c, c)))
        at = vllm.Step(round(s), round(t), step.length)
        return vllm.activation_gib(replace(case, settings=changed), at, samples=samples)

    return sheet.derive(
        f"{asked.prefix}.activations",
        "GiB",
        "largest of one forward pass of the batched tokens, the sampler's logits, a tower's pass (vLLM profiling run)",
        peak,
        sequences,
        tokens,
        copies,
    )


def _outside(asked: Asked, settings: vllm.VllmSettings) -> Figure:
    """What a rank holds outside PyTorch."""
    layout, vendor = asked.case.layout, asked.case.gpu.vendor
    ranks = layout.tp * (2 if layout.pp > 1 else 1)
    return asked.sheet.assumed(
        f"vllm.non_torch.{vendor}.{ranks}",
        settings.constants.non_torch(ranks, vendor, settings.version, v0=settings.is_v0),
        "GiB",
        f"CUDA or HIP context's share, NCCL and workspaces at this width; median of {_LOGS}",
    )


def _graphs(asked: Asked, sequences: Figure) -> Figure | None:
    case, settings = asked.case, asked.case.settings
    assert isinstance(settings, vllm.VllmSettings)
    if settings.eager:
        return None
    mib = asked.sheet.assumed(
        "vllm.graph_mib",
        settings.constants.graph(settings.version, v0=settings.is_v0),
        "MiB",
        f"per captured graph and layer; median of {_LOGS}",
    )
    later = settings.version >= (0, 11)

    def graphs(s: float, m: float) -> float:
        if settings.is_v0:
            count = captured_sizes(min(round(s), 256))
        else:
            count = captured_sizes(min(2 * round(s), 512)) + (captured_sizes(min(round(s), 512)) if later else 0)
        return float(graphs_gib(case.decoder, case.layout, count, m))

    return asked.sheet.derive(
        f"{asked.prefix}.graphs", "GiB", "captured batch sizes × layers × MiB of each (vLLM)", graphs, sequences, mib
    )
