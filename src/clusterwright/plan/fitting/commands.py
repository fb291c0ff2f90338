"""The command line of a replica, and what must be done before it runs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from clusterwright.model.decoders import Decoder
from clusterwright.physics.loading import LINEAR
from clusterwright.plan.fitting.serving import ServingFit

#: Formats of weights as files and engines call them.
FORMATS: Final = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4")
#: Formats that an engine casts a 16-bit checkpoint to as it loads (vLLM and SGLang `--quantization fp8`).
_CAST: Final = {"vllm": ("fp8",), "sglang": ("fp8",)}


def command_of(fit: ServingFit) -> tuple[str, ...]:
    """Arguments that start one replica of the best layout."""
    question, flags = fit.question, fit.chosen.memory.flags
    if _requantised(fit) and question.weights in _CAST.get(question.engine, ()):
        return (*flags, "--quantization", str(question.weights))
    return flags


def before(fit: ServingFit) -> str:
    """What must be done before the command holds, "" where nothing."""
    question = fit.question
    if not _requantised(fit) or question.weights in _CAST.get(question.engine, ()):
        return ""
    return f"The command names the original model: put the name of a checkpoint in {question.weights} there."


def _requantised(fit: ServingFit) -> bool:
    weights = fit.question.weights
    return weights is not None and weights != stored_format(fit.question.decoder)


def stored_format(decoder: Decoder) -> str:
    """Format of most parameters of linear layers, as the file calls it."""
    held = Counter[str]()
    for part, count in decoder.parts(towers=False):
        if part.role in LINEAR:
            held[part.stored] += part.parameters * count
    found = held.most_common(1)[0][0] if held else "bf16"
    return found if found in FORMATS else "bf16"
