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
#: Formats without a scale, and what both engines call them (`--dtype`).
_TYPES: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def command_of(fit: ServingFit) -> tuple[str, ...]:
    """Arguments that start one replica of the best layout."""
    question = fit.question
    return (*fit.chosen.memory.flags, *cast_flags(question.decoder, question.weights, question.engine))


def before(fit: ServingFit) -> str:
    """What must be done before the command holds, "" where nothing."""
    return another_checkpoint(fit.question.decoder, fit.question.weights, fit.question.engine)


def cast_flags(decoder: Decoder, weights: str | None, engine: str) -> tuple[str, ...]:
    """Flags that make the engine cast a checkpoint to the wanted format as it loads; none where it need not, or cannot.

    Args:
        weights: wanted format, None for that of the checkpoint.
    """
    if not _requantised(decoder, weights) or stored_format(decoder) not in _TYPES:
        return ()
    if weights in _CAST.get(engine, ()):
        return ("--quantization", str(weights))
    return ("--dtype", _TYPES[str(weights)]) if engine in _CAST and weights in _TYPES else ()


def another_checkpoint(decoder: Decoder, weights: str | None, engine: str) -> str:
    """That the command must name another checkpoint, "" where it need not."""
    if not _requantised(decoder, weights) or cast_flags(decoder, weights, engine):
        return ""
    return f"The command names the original model: put the name of a checkpoint in {weights} there."


def _requantised(decoder: Decoder, weights: str | None) -> bool:
    """Whether no linear layer is stored in the wanted format."""
    held = {part.stored for part, _ in decoder.parts(towers=False) if part.role in LINEAR}
    return weights is not None and weights not in held and weights != stored_format(decoder)


def stored_format(decoder: Decoder) -> str:
    """Format of most parameters of linear layers, as the file calls it."""
    held = Counter[str]()
    for part, count in decoder.parts(towers=False):
        if part.role in LINEAR:
            held[part.stored] += part.parameters * count
    found = held.most_common(1)[0][0] if held else "bf16"
    return found if found in FORMATS else "bf16"
