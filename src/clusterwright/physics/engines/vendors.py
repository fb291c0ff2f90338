"""Whose GPUs an inference engine runs on."""

from __future__ import annotations


def unserved(engine: str, vendor: str) -> str:
    """Why the engine runs on no GPU of a vendor, "" where it does.

    Source: TensorRT-LLM documentation, Support Matrix (GPUs of NVIDIA alone).
    """
    if engine == "tensorrt-llm" and vendor != "nvidia":
        return f"TensorRT-LLM runs on GPUs of NVIDIA alone, and this is one of {vendor.upper()}"
    return ""
