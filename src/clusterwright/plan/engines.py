"""The inference engine that a file names: which one, which version, and its layout in the engine's own terms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.spelling import nearest
from clusterwright.model.workloads import Serve
from clusterwright.physics.engines.releases import MODELLED, NEWEST
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.refusals import Unplanned

#: Other spellings.
_ALIASES: Final = {"trtllm": "tensorrt-llm", "trt-llm": "tensorrt-llm", "tensorrt_llm": "tensorrt-llm"}
#: Engines that exist and whose rules this version lacks.
_OTHERS: Final = ("tgi", "lmdeploy", "llama.cpp", "ollama", "nim", "dynamo")


@dataclass(frozen=True, slots=True)
class Engine:
    """Inference engine: lower-case name, (major, minor) or None when the file states no version."""

    name: str
    version: tuple[int, int] | None

    @property
    def planned(self) -> tuple[int, int]:
        """The version that is planned."""
        return self.version or NEWEST[self.name]

    def __str__(self) -> str:
        return f"{self.name} {self.version[0]}.{self.version[1]}" if self.version else self.name


def read_engine(text: str) -> Engine:
    """`vllm 0.11.2` → vllm, (0, 11)."""
    name, _, rest = text.strip().partition(" ")
    found = re.search(r"(\d+)\.(\d+)", rest)
    lower = name.lower()
    return Engine(_ALIASES.get(lower, lower), (int(found[1]), int(found[2])) if found else None)


def engine_unknown(sheet: Sheet, prefix: str, path: str, serve: Serve) -> Unplanned | None:
    """Why memory and speed under the declared engine cannot be planned, None where they can."""
    engine = read_engine(serve.engine)
    if engine.name in MODELLED:
        return None
    known = ", ".join(MODELLED)
    if engine.name in _OTHERS:
        return sheet.miss(prefix, f"memory and speed of {engine.name} are not modelled; those of {known} are")
    near = nearest(engine.name, (*MODELLED, *_ALIASES, *_OTHERS))
    meant = f"did you mean {near}?" if near else f"it models {known} and has heard of {', '.join(_OTHERS)}"
    return sheet.miss(prefix, f"{path}.engine: this version knows no engine '{engine.name}'; {meant}")


def engine_layout(engine: str, layout: Layout) -> EngineLayout:
    """The layout as the engine groups ranks.

    vLLM's data-parallel ranks are engines of their own whose experts may spread over all of them. SGLang and
    TensorRT-LLM count all ranks as tensor ranks, which form `dp` groups for attention.
    """
    if engine == "vllm":
        return EngineLayout(tp=layout.tp, pp=layout.pp, dp=layout.dp, ep=layout.ep, cp=layout.cp, dcp=layout.dcp)
    wide = layout.tp * layout.dp
    return EngineLayout(tp=wide, pp=layout.pp, ep=layout.ep, cp=layout.cp, attention_dp=layout.dp, dcp=layout.dcp)


def file_layout(layout: EngineLayout) -> Layout:
    """The layout as the file groups ranks: what `engine_layout` turns back, for any engine."""
    groups = layout.dp * layout.attention_dp
    return Layout(
        tp=layout.attention_tp, pp=layout.pp, dp=groups, cp=layout.cp, ep=layout.ep, vp=layout.vp, dcp=layout.dcp
    )
