"""Whose GPUs, and which of them, an inference engine runs on."""

from __future__ import annotations

from typing import Final

#: First vLLM that is built with CUDA 13 by default, which has no code for compute capability 7.0.
_CUDA_13_SINCE: Final = (0, 20)
_TOO_OLD: Final = "7.0"


def unserved(engine: str, vendor: str, capability: str | None = None, version: tuple[int, int] | None = None) -> str:
    """Why the engine does not run on a GPU at all, "" where it does.

    Sources: TensorRT-LLM documentation, Support Matrix (GPUs of NVIDIA alone); vllm-project/vllm#39878 (CUDA 13 by
    default, April 2026); CUDA Toolkit 13.0 release notes, deprecated architectures.

    Args:
        capability: CUDA compute capability of the GPU, None where it has none.
        version: release of the engine, None where it is not known: then only the vendor tells.
    """
    if engine == "tensorrt-llm" and vendor != "nvidia":
        return f"TensorRT-LLM runs on GPUs of NVIDIA alone, and this is one of {vendor.upper()}"
    if engine == "vllm" and capability == _TOO_OLD and version is not None and version >= _CUDA_13_SINCE:
        return "vLLM from 0.20 on is built with CUDA 13, which has no code for this GPU; vllm 0.19 runs on it"
    return ""
