"""Releases of engines that memory and flags are modelled for; what is older or newer is planned as the nearest of them.

Sources: start-up logs that the memory of each engine was held to (docs/accuracy.md): vLLM 0.4 to 0.28, SGLang 0.2 to
0.5, TensorRT-LLM 0.5 to 1.2; what changed between them is in `physics.engines`.
"""

from __future__ import annotations

from typing import Final

Release = tuple[int, int]

#: Engine → oldest and newest release.
MODELLED: Final[dict[str, tuple[Release, Release]]] = {
    "vllm": ((0, 4), (0, 28)),
    "sglang": ((0, 2), (0, 5)),
    "tensorrt-llm": ((0, 5), (1, 2)),
}
#: Engine → the release that is planned where nobody says one.
NEWEST: Final[dict[str, Release]] = {engine: newest for engine, (_, newest) in MODELLED.items()}


def modelled(engine: str, asked: Release) -> Release:
    """The release itself, or the nearest one that is modelled."""
    oldest, newest = MODELLED[engine]
    return min(max(asked, oldest), newest)


def instead(engine: str, asked: Release) -> str:
    """What is planned instead of a release that is not modelled, in words; "" where it is."""
    planned = modelled(engine, asked)
    if planned == asked:
        return ""
    side = "newer" if asked > planned else "older"
    end = "newest" if asked > planned else "oldest"
    written, own = (".".join(str(part) for part in release) for release in (asked, planned))
    return f"{engine} {written} is {side} than any release that is modelled: planned as {own}, the {end} modelled"
