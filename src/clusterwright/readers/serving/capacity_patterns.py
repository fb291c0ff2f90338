"""What servers log about their memory: one table of patterns, by engine.

vLLM before 1.0 prints `GB` and divides by 2**30 (`worker/model_runner.py`): those are GiB. TensorRT-LLM and newer
vLLM print GiB. SGLang prints `GB` for memory of torch divided by 2**30 (`get_available_gpu_memory`): GiB too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pattern:
    """One value of a log line.

    Args:
        unit: of the number as it is meant; "" is a plain number, "token" a count of tokens.
        label: of the unit as it is printed, where that is another.
        starts: whether the line begins the start of a server.
    """

    form: re.Pattern[str]
    name: str
    unit: str
    engine: str
    label: str = ""
    starts: bool = False


def _pattern(form: str, name: str, unit: str, engine: str, label: str = "", starts: bool = False) -> Pattern:
    return Pattern(re.compile(form), name, unit, engine, label, starts)


PATTERNS: Final = (
    _pattern(r"Loading model weights took ([\d.]+) GB", "weight_memory", "GiB", "vllm", "GB", True),
    _pattern(r"Model loading took ([\d.]+) GB", "weight_memory", "GiB", "vllm", "GB", True),
    _pattern(r"Model loading took ([\d.]+) GiB", "weight_memory", "GiB", "vllm", "", True),
    _pattern(r"Model loading took [\d.]+ Gi?B(?: memory)? and ([\d.]+) s", "load_time", "s", "vllm"),
    _pattern(r"Loading weights took ([\d.]+) s", "weight_load_time", "s", "vllm"),
    _pattern(r"model weights take ([\d.]+)GiB", "weight_memory", "GiB", "vllm"),
    _pattern(r"PyTorch activation peak memory takes ([\d.]+)GiB", "activation_memory", "GiB", "vllm"),
    _pattern(r"reserved for KV Cache is ([\d.]+)GiB", "kv_cache_memory", "GiB", "vllm"),
    _pattern(r"\btotal_gpu_memory[=( ]+([\d.]+)GiB", "memory_total", "GiB", "vllm"),
    _pattern(r"\bkv_cache_size=([\d.]+)GiB", "kv_cache_memory", "GiB", "vllm"),
    _pattern(r"\bpeak_torch_memory=([\d.]+)GiB", "peak_torch_memory", "GiB", "vllm"),
    _pattern(r"\bgpu_memory_utilization[= (]+(0?\.\d+|1\.0+)", "memory_share", "", "vllm"),
    _pattern(r"Available KV cache memory: ([\d.]+) GiB", "kv_cache_memory", "GiB", "vllm"),
    _pattern(r"GPU KV cache size: ([\d,]+) tokens", "kv_cache_tokens", "token", "vllm"),
    _pattern(r"(?:# )?(?:GPU|cuda|CUDA) blocks: (\d+)", "kv_cache_blocks", "", "vllm"),
    _pattern(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x", "max_concurrency", "", "vllm"),
    _pattern(r"init engine \([^)]*\) took ([\d.]+) s", "engine_start_time", "s", "vllm"),
    _pattern(r"Graph capturing finished in ([\d.]+) sec", "graph_capture_time", "s", "vllm"),
    _pattern(r"Graph capturing finished in [\d.]+ secs?, took ([\d.]+) GiB", "graph_memory", "GiB", "vllm"),
    _pattern(r"KV Cache is allocated\..*?#tokens: (\d+)", "kv_cache_tokens", "token", "sglang"),
    _pattern(r"KV Cache is allocated\..*?K size: ([\d.]+) GB", "kv_cache_k_memory", "GiB", "sglang", "GB"),
    _pattern(r"KV Cache is allocated\..*?V size: ([\d.]+) GB", "kv_cache_v_memory", "GiB", "sglang", "GB"),
    _pattern(r"\bmax_total_num_tokens=(\d+)", "kv_cache_tokens", "token", "sglang"),
    _pattern(r"\bmax_running_requests=(\d+)", "max_running_requests", "", "sglang"),
    _pattern(r"Load weight end\..*avail mem=([\d.]+) GB", "memory_left_after_weights", "GiB", "sglang", "GB", True),
    _pattern(r"Load weight end\..*mem usage=([\d.]+) GB", "weight_memory", "GiB", "sglang", "GB"),
    _pattern(r"Memory pool end\. avail mem=([\d.]+) GB", "memory_left", "GiB", "sglang", "GB"),
    _pattern(r"Allocated ([\d.]+) GiB for max tokens in paged KV cache", "kv_cache_memory", "GiB", "tensorrt-llm"),
    _pattern(r"for max tokens in paged KV cache \((\d+)\)", "kv_cache_tokens", "token", "tensorrt-llm"),
    _pattern(r"Loaded engine size: (\d+) MiB", "weight_memory", "MiB", "tensorrt-llm", "", True),
    _pattern(r"(?:max_?[tT]okens|Max tokens) in paged KV cache: (\d+)", "kv_cache_tokens", "token", "tensorrt-llm"),
    _pattern(r"Number of tokens per block: (\d+)", "block_size", "", "tensorrt-llm"),
    _pattern(r"TRTGptModel maxNumSequences: (\d+)", "max_running_requests", "", "tensorrt-llm"),
)

#: Lines with which a server says that it does not start, and what they mean.
FAILURES: Final = (
    (
        re.compile(r"No available memory for the cache blocks"),
        "no-kv-memory",
        "no memory is left for the KV cache: weights, activations and KV cache must be planned together",
    ),
    (
        re.compile(
            r"max seq len \((?P<asked>[\d,]+)\) is larger than the maximum number of tokens"
            r".{0,300}?KV cache \((?P<room>[\d,]+)\)"
        ),
        "length-does-not-fit",
        "one request of full length does not fit into the KV cache",
    ),
    (
        re.compile(
            r"max seq(?:uence)? len(?:gth)? \((?P<asked>[\d,]+)\).{0,300}?(?P<room>[\d.]+ GiB) KV cache is needed"
        ),
        "length-does-not-fit",
        "one request of full length does not fit into the KV cache",
    ),
    (
        re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static"),
        "no-kv-memory",
        "no memory is left",
    ),
    (
        re.compile(r"(?:torch\.OutOfMemoryError|CUDA out of memory|cudaErrorMemoryAllocation|out of memory)"),
        "out-of-memory",
        "the GPU ran out of memory",
    ),
    (
        re.compile(r"Free memory on device .{0,200}? is less than desired GPU memory"),
        "memory-in-use",
        "others use the memory",
    ),
)
CONDITIONS: Final = (
    (re.compile(r"Initializing an? (?:V1 )?LLM engine \(v?([\w.+-]+)\)"), "version"),
    (re.compile(r"vLLM API server version ([\w.+-]+)"), "version"),
    (re.compile(r"(?:\bmodel='|--model[ =]|vllm serve |model_path=')([\w./-]+)"), "model"),
    (re.compile(r"(?:\bmax_seq_len=|\bmax_model_len=|--max-model-len[ =])(\d+)"), "max_model_length"),
    (re.compile(r"(?:tensor_parallel_size=|--tensor-parallel-size[ =]|\btp_size=)(\d+)"), "tensor_parallel"),
    (re.compile(r"(?:--max-num-seqs[ =]|\bmax_num_seqs=)(\d+)"), "max_sequences"),
    (re.compile(r"TensorRT-LLM version: ([\w.]+)"), "version"),
)
ENGINE_START: Final = re.compile(r"Initializing an? (?:V1 )?LLM engine|vLLM API server version|server_args=ServerArgs")
OVERRIDE: Final = re.compile(r"Overriding num_gpu_blocks=(\d+) with num_gpu_blocks_override=(\d+)")
CONCURRENCY: Final = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
WORKER: Final = re.compile(
    r"\((?P<a>(?:VllmWorker|Worker|EngineCore|RayWorkerWrapper)[\w =]*?)(?:,? pid=\d+)?\)|\bTP(?P<b>\d+)\]"
)
