"""Command lines that realise a plan, by engine and version.

Sources: vLLM `engine/arg_utils`, SGLang `server_args`, TensorRT-LLM `trtllm-serve` and its LLM API YAML.
"""

from __future__ import annotations

from typing import Final

from clusterwright.physics.caches_by_layer import KV_BITS
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.settings import asked_state
from clusterwright.physics.engines.vllm_versions import STATE_FORMATS_READ_SINCE, STATE_FORMATS_SINCE

#: Our format → what the engines call it.
_KV_NAMES = {"fp8": "fp8", "fp8_ds_mla": "fp8", "bf16": "bfloat16", "fp16": "auto", "nvfp4": "nvfp4"}

_STATE_NAMES: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
#: First TensorRT-LLM that reads the format of recurrent states from the config (pull request 11582, February 2026).
_TRTLLM_READS_STATES: Final = (1, 3)


def _argument(name: str, value: float | int | str) -> tuple[str, str]:
    return (name, f"{value:g}" if isinstance(value, float) else str(value))


def _model(case: Case) -> str:
    return case.settings.model or case.decoder.name


def vllm_flags(case: Case, length: int, share: float, sequences: int, tokens: int) -> tuple[str, ...]:
    """`vllm serve …`; before 0.5.3 the module of the API server."""
    layout, settings = case.layout, case.settings
    start: tuple[str, ...] = ("vllm", "serve", _model(case))
    if settings.version < (0, 6):
        start = ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", _model(case))
    found = [*start, *_argument("--tensor-parallel-size", layout.tp)]
    if layout.pp > 1:
        found += _argument("--pipeline-parallel-size", layout.pp)
    if layout.dp > 1:
        found += _argument("--data-parallel-size", layout.dp)
    if layout.ep > 1:
        found.append("--enable-expert-parallel")
    if layout.dcp > 1:
        found += _argument("--decode-context-parallel-size", layout.dcp)
    found += _argument("--max-model-len", length)
    found += _argument("--gpu-memory-utilization", share)
    found += _argument("--max-num-seqs", sequences)
    found += _argument("--max-num-batched-tokens", tokens)
    if settings.kv_format != "auto":
        found += _argument("--kv-cache-dtype", _vllm_kv(settings.kv_format, settings.version))
    asked = asked_state(case.decoder)
    if asked and STATE_FORMATS_SINCE <= settings.version < STATE_FORMATS_READ_SINCE:
        found += _argument("--mamba-ssm-cache-dtype", _STATE_NAMES[asked])
    if settings.block_tokens:
        found += _argument("--block-size", settings.block_tokens)
    if settings.eager:
        found.append("--enforce-eager")
    if settings.prefix_caching is not None:
        found.append("--enable-prefix-caching" if settings.prefix_caching else "--no-enable-prefix-caching")
    if settings.speculative_tokens:
        found += _argument("--speculative-config", _speculative(case))
    return tuple(found)


def _vllm_kv(kv_format: str, version: tuple[int, int]) -> str:
    if KV_BITS[kv_format] == 16:
        return "bfloat16" if kv_format == "bf16" and version >= (0, 11) else "auto"
    return _KV_NAMES[kv_format]


def _speculative(case: Case) -> str:
    count = case.settings.speculative_tokens
    if case.draft is not None:
        return f'{{"method": "eagle3", "model": "{case.draft.name}", "num_speculative_tokens": {count}}}'
    method = "mtp" if case.settings.version >= (0, 11) else "deepseek_mtp"
    return f'{{"method": "{method}", "num_speculative_tokens": {count}}}'


def sglang_flags(case: Case, length: int, share: float, running: int | None, chunk: int) -> tuple[str, ...]:
    """`python -m sglang.launch_server …`."""
    layout, settings = case.layout, case.settings
    found = ["python", "-m", "sglang.launch_server", "--model-path", _model(case)]
    found += _argument("--tp-size", layout.tp)
    if layout.pp > 1:
        found += _argument("--pp-size", layout.pp)
    if layout.attention_dp > 1:
        found += [*_argument("--dp-size", layout.attention_dp), "--enable-dp-attention"]
    if layout.ep > 1:
        found += _argument("--ep-size", layout.ep)
        found += ["--enable-ep-moe"] if settings.version < (0, 5) else []
    found += _argument("--context-length", length)
    found += _argument("--mem-fraction-static", share)
    found += _argument("--chunked-prefill-size", chunk)
    if running is not None:
        found += _argument("--max-running-requests", running)
    if settings.kv_format != "auto":
        eight = KV_BITS[settings.kv_format] == 8
        found += _argument(
            "--kv-cache-dtype", "fp8_e4m3" if eight else "bf16" if settings.version >= (0, 5) else "auto"
        )
    if settings.block_tokens:
        found += _argument("--page-size", settings.block_tokens)
    if settings.eager:
        found.append("--disable-cuda-graph")
    if settings.speculative_tokens:
        found += _argument("--speculative-algorithm", "EAGLE3" if case.draft is not None else "EAGLE")
        if case.draft is not None:
            found += _argument("--speculative-draft-model-path", case.draft.name)
        found += _argument("--speculative-num-steps", settings.speculative_tokens)
        found += _argument("--speculative-eagle-topk", 1)
        found += _argument("--speculative-num-draft-tokens", settings.speculative_tokens + 1)
    return tuple(found)


def trtllm_flags(case: Case, length: int, sequences: int, tokens: int) -> tuple[str, ...]:
    """`trtllm-serve …`; cache settings are in the YAML beside it."""
    layout = case.layout
    found = ["trtllm-serve", _model(case), "--backend", "pytorch"]
    found += _argument("--tp_size", layout.tp)
    if layout.pp > 1:
        found += _argument("--pp_size", layout.pp)
    if layout.ep > 1:
        found += _argument("--ep_size", layout.ep)
    found += _argument("--max_seq_len", length)
    found += _argument("--max_batch_size", sequences)
    found += _argument("--max_num_tokens", tokens)
    name = "--extra_llm_api_options" if case.settings.version < (1, 2) else "--config"
    return (*found, name, "extra.yaml")


def trtllm_yaml(case: Case, fraction: float, block_tokens: int) -> str:
    """Extra YAML of `trtllm-serve`: cache, DP attention, speculation, graphs."""
    settings = case.settings
    eight = KV_BITS.get(settings.kv_format, 16) == 8
    lines = ["kv_cache_config:", f"  free_gpu_memory_fraction: {fraction:g}", f"  tokens_per_block: {block_tokens}"]
    lines.append(f"  dtype: {'fp8' if eight else 'auto'}")
    asked = asked_state(case.decoder)
    if asked and settings.version < _TRTLLM_READS_STATES:
        lines.append(f"  mamba_ssm_cache_dtype: {_STATE_NAMES[asked]}")
    if settings.prefix_caching is not None:
        lines.append(f"  enable_block_reuse: {str(settings.prefix_caching).lower()}")
    if case.layout.attention_dp > 1:
        lines.append("enable_attention_dp: true")
    if settings.speculative_tokens and case.draft is None:
        lines += [
            "speculative_config:", "  decoding_type: MTP", f"  num_nextn_predict_layers: {settings.speculative_tokens}"
        ]  # fmt: skip
    if settings.eager:
        lines.append("cuda_graph_config: null")
    return "\n".join(lines) + "\n"
