"""Memory of inference engines against start-up logs: bytes per token, pool given the log's weights, end to end.

Constants of `physics/engines` come from the engines' source and from medians over public logs, not from rows of this
set, but for one: how V0's peak grows with the prompt is from one source (FITTED), whose rows are not scored end to end.
Rows whose model or shape was inferred from the ratio itself are not scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.results import EngineMemory, Gpu
from clusterwright.physics.engines.vllm_versions import TOKENS_BY_CONCURRENCY_SINCE
from validation.memory_rows import (
    Raw,
    comparable,
    family_of,
    gpu_of,
    layout_of,
    logged_pool,
    logged_tokens,
    measured_of,
    read_rows,
    sglang_settings,
    trtllm_settings,
    version_of,
    vllm_settings,
)
from validation.memory_shapes import decoder_of
from validation.scoring import Failures, Row, Scored

#: Sources that a constant was read from.
FITTED: Final = frozenset({"https://github.com/vllm-project/vllm/issues/10517"})
#: Stands in where a row's GPU does not matter to the question.
_ANY: Final = Gpu("any", 80.0)
#: Start-up failures that a planner can know from model, GPU and flags alone; listed before anything was tuned.
KNOWABLE: Final[dict[str, str]] = {
    "v002": "one sequence of 29,000 tokens exceeds the pool of a 24 GB card",
    "v003": "70B in 16 bit on two 80 GB GPUs leaves too little for 131,072 tokens",
    "v004": "the same for 24,000 tokens, whose profiling run takes more",
    "v005": "the same for 20,000 tokens",
    "v050": "gpt-oss-120b on one 80 GB GPU leaves too little for its default context",
    "v059": "6.7B in 16 bit on two T4 leaves too few blocks for its default context",
    "v111": "131,072 tokens exceed the pool of a 22 GiB card",
    "t013": "a 7B int4 engine leaves nothing on a 6 GB card",
}
#: Failures that a planner cannot know, and why.
UNKNOWABLE: Final[dict[str, str]] = {
    "v027": "out of memory in another process, later",
    "v030": "NCCL error while capturing graphs",
    "v038": "11.5 GiB held by other processes",
    "v052": "the model is not named",
    "v061": "the issue is about a wrong check of that release",
    "v102": "an unrelated import failed later",
    "v128": "the log's weights contradict the stated number of GPUs",
    "s046": "a burst of image requests, later",
}
#: Why rows are off, where their own note does not say it.
WHY: Final[dict[str, str]] = {
    "s038": "unified memory of a desktop: what else held it at the start is not told",
    "t001": "the engine's build decides its buffers (largest batch and input), which the report does not name",
    "v018": "the log's own terms leave 17.7 GiB over: V1 0.8.3 counted memory of other processes as its own",
    "v048": "GiB as one rank printed them, tokens the fewest of all ranks",
    "v030": "V100: kernels before Ampere keep more at the peak than the release's own FlashAttention",
}


def score(cases: Path) -> list[Scored | Failures]:
    """Bytes per token, pool given the log, requests it holds, end to end by engine and release, failures."""
    rows = read_rows(cases)
    configs = cases / "model_configs"
    split = (
        "constants are the engines' own or medians with their source; the one source that gave a slope is not scored"
    )
    independent = [row for row in rows if row["calc"].get("check_kind") == "independent"]
    return [
        Scored(
            "inference memory: KV bytes per token",
            "0.2 % + print's rounding",
            split,
            tuple(_present(_per_token(row, configs) for row in independent)),
            unit="B",
        ),
        Scored(
            "inference memory: pool, weights as logged",
            "max(0.5 GiB, 5 %)",
            split,
            tuple(_present(_given(row, configs) for row in independent)),
            unit="GiB",
        ),
        Scored(
            "inference memory: requests in the pool",
            "1 %",
            split,
            tuple(_present(_concurrency(row, configs) for row in independent)),
            unit="requests",
        ),
        Scored(
            "inference memory: end to end, vLLM ≥ 0.11",
            "10 %",
            split,
            tuple(_present(_end_to_end(row, configs, recent=True) for row in independent)),
            notes=("asked with model, GPU and flags alone; GPUs from 40 GB",),
            unit="GiB",
        ),
        Scored(
            "inference memory: end to end, others",
            "none",
            split,
            tuple(_present(_end_to_end(row, configs, recent=False) for row in independent)),
            notes=("older releases and other engines have no bar; named are rows that are off by over 25 %",),
            unit="GiB",
            judged=False,
        ),
        failures(cases),
    ]


def failures(cases: Path) -> Failures:
    """Failures foreseen of those that can be known, and of the rows that ran how many are predicted as fitting."""
    foreseen, missed, ran, fits, unfit = [], [], 0, 0, []
    for row in read_rows(cases):
        plan = plan_row(row, cases / "model_configs")
        if row["id"] in KNOWABLE:
            if plan is not None and not plan.fits:
                foreseen.append(row["id"])
            else:
                missed.append((row["id"], KNOWABLE[row["id"]] if plan else "no plan: GPU or shape missing"))
        elif row["outcome"] == "ok" and plan is not None and comparable(row):
            ran += 1
            fits += starts(plan, row)
            if not starts(plan, row):
                unfit.append(f"{row['id']} ran but is predicted not to start: {plan.why[0]}")
    return Failures("start-up failures", tuple(foreseen), tuple(missed), fits, ran, tuple(unfit))


def starts(plan: EngineMemory, row: Raw) -> bool:
    """Whether the row is predicted to start; where the log names no length, one sequence of it is not asked for."""
    return plan.fits or (row["max_model_len"] is None and plan.kv_tokens > 0 and "one sequence of" in plan.why[0])


def _present(rows: Iterator[Row | None]) -> Iterator[Row]:
    return (row for row in rows if row is not None)


def plan_row(row: Raw, configs: Path, *, given: bool = False) -> EngineMemory | None:
    """The planner's answer to a row, from model, GPU and flags; with `given` also from what the log says it used."""
    decoder, gpu = decoder_of(row, configs), gpu_of(row)
    if decoder is None or (gpu is None and not given):
        return None
    gpu, layout, found = gpu or _ANY, layout_of(row), row["measured"]
    if row["engine"] == "vllm":
        return vllm.plan_memory(decoder, layout, gpu, vllm_settings(row), measured=measured_of(row) if given else None)
    if row["engine"] == "sglang":
        available = sglang.Available(found["avail_before"], found["avail_after"]) if given else None
        return sglang.plan_memory(decoder, layout, gpu, sglang_settings(row), available=available)
    free = found.get("avail_for_kv") if given else None
    return tensorrt_llm.plan_memory(decoder, layout, gpu, trtllm_settings(row), free_after_load_gib=free)


def _row(row: Raw, predicted: float | None, measured: float, band: float) -> Row:
    inside = predicted is not None and abs(predicted - measured) <= band
    return Row(
        row["id"],
        row["engine"],
        predicted,
        measured,
        inside,
        family_of(row),
        WHY.get(row["id"], str(row["note"] or "")),
    )


def _per_token(row: Raw, configs: Path) -> Row | None:
    pool, tokens, decoder = logged_pool(row), logged_tokens(row), decoder_of(row, configs)
    if pool is None or not tokens or decoder is None:
        return None
    gib, half = pool
    predicted = bytes_per_printed_token(row, decoder, gib)
    measured = gib * GIB / tokens
    rounding = (half / gib if gib else 0.0) + _concurrency_rounding(row)
    return _row(row, predicted, measured, (0.002 + rounding) * measured)


def bytes_per_printed_token(row: Raw, decoder: Decoder, gib: float) -> float:
    """B of the pool per token as the engine counts tokens; blocks count where vLLM's layers differ."""
    case = _vllm_case(row, decoder)
    if case is None:
        plan = _other_plan(row, decoder)
        return plan.kv_bytes_per_token
    pool = vllm.pool_of(case)
    if pool.uniform:
        return vllm.token_bytes(case)
    step, settings = vllm.step_of(case), vllm_settings(row)
    blocks = pool.blocks([gib * GIB] * case.layout.pp)
    concurrency = blocks / pool.request_blocks(step.length, step.tokens)
    return gib * GIB / vllm.printed_tokens(pool, settings, blocks, concurrency, step.length)


def _other_plan(row: Raw, decoder: Decoder) -> EngineMemory:
    gpu = gpu_of(row) or _ANY
    if row["engine"] == "sglang":
        return sglang.plan_memory(decoder, layout_of(row), gpu, sglang_settings(row))
    return tensorrt_llm.plan_memory(decoder, layout_of(row), gpu, trtllm_settings(row))


def _vllm_case(row: Raw, decoder: Decoder) -> Case | None:
    if row["engine"] != "vllm":
        return None
    return Case(decoder, layout_of(row), gpu_of(row) or _ANY, vllm_settings(row))


def _concurrency(row: Raw, configs: Path) -> Row | None:
    """Requests of the longest length in the logged pool, by vLLM's blocks."""
    found, decoder = row["measured"], decoder_of(row, configs)
    case = _vllm_case(row, decoder) if decoder else None
    if case is None or "kv_avail" not in found or "max_concurrency" not in found or not row["max_model_len"]:
        return None
    pool, step = vllm.pool_of(case), vllm.step_of(case)
    blocks = pool.blocks([found["kv_avail"] * GIB] * case.layout.pp)
    held = blocks / pool.request_blocks(step.length, step.tokens, case.layout.dcp)
    return _row(row, held, found["max_concurrency"], 0.01 * found["max_concurrency"] + 0.005)


def _concurrency_rounding(row: Raw) -> float:
    found = row["measured"]
    return 0.0 if "gpu_blocks" in found or "kv_tokens" in found else 0.005 / found["max_concurrency"]


def _given(row: Raw, configs: Path) -> Row | None:
    found = row["measured"]
    logged = {
        "vllm": "weights" in found and ("activation_peak" in found or "peak_torch" in found),
        "sglang": "avail_before" in found and "avail_after" in found and row["mem_fraction"] is not None,
        "tensorrt-llm": "avail_for_kv" in found,
    }[row["engine"]]
    measured = pool_gib(row, configs)
    if not logged or measured is None or (gpu_of(row) is None and row["engine"] == "vllm"):
        return None
    plan = plan_row(row, configs, given=True)
    if plan is None:
        return None
    return _row(row, allotted(plan), measured, max(0.5, 0.05 * measured))


def allotted(plan: EngineMemory) -> float:
    """GiB of the pool as engines print it: before rounding to blocks, but not above a limit on tokens."""
    return min(plan.kv_pool_gib, plan.term("KV cache")) if plan.engine.startswith("SGLang") else plan.kv_pool_gib


def pool_gib(row: Raw, configs: Path) -> float | None:
    """GiB of the pool: as logged, else what its tokens or requests take."""
    pool, tokens, decoder = logged_pool(row), logged_tokens(row), decoder_of(row, configs)
    if pool is not None:
        return pool[0]
    if not tokens or decoder is None:
        return None
    case = _vllm_case(row, decoder)
    shared = vllm.pool_of(case) if case else None
    if case is None or shared is None or shared.uniform:
        return tokens * bytes_per_printed_token(row, decoder, 0.0) / GIB
    if version_of(row)[0] < TOKENS_BY_CONCURRENCY_SINCE:
        blocks = tokens / shared.block_tokens * sum(group.count for group in shared.groups)
    else:
        step = vllm.step_of(case)
        blocks = tokens / step.length * shared.request_blocks(step.length, step.tokens)
    return blocks * max(shared.block_bytes) / GIB


def _end_to_end(row: Raw, configs: Path, *, recent: bool) -> Row | None:
    gpu = gpu_of(row)
    is_recent = row["engine"] == "vllm" and version_of(row)[0] >= (0, 11) and bool(gpu and gpu.reported_gib >= 39)
    measured = pool_gib(row, configs)
    if gpu is None or measured is None or is_recent != recent or not comparable(row) or row["cluster"] in FITTED:
        return None
    plan = plan_row(row, configs)
    if plan is None:
        return None
    scored = _row(row, allotted(plan), measured, (0.10 if recent else 0.25) * measured)
    return scored if recent else replace(scored, group=_group(row))


def _group(row: Raw) -> str:
    """Engine and release: few rows each, listed rather than scored."""
    if row["engine"] != "vllm":
        return str(row["engine"])
    (major, minor), v0 = version_of(row)
    return f"vllm {major}.{minor}" + (" V0" if v0 and minor >= 8 else "")
