"""The command line that starts a replica or a worker as planned, and what it needs besides.

Sources: vLLM documentation, NixlConnector Usage Guide (0.11 to 0.24); SGLang documentation, PD Disaggregation;
TensorRT-LLM documentation, Disaggregated Serving (`cache_transceiver_config`, `trtllm-serve disaggregated`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from clusterwright.plan.cold_starts import loading_flags
from clusterwright.plan.drafts import Draft
from clusterwright.plan.engines import Engine, engine_layout, read_engine
from clusterwright.plan.fitting.commands import another_checkpoint, cast_flags
from clusterwright.plan.fitting.spanning import started_over
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned

Half = Literal["prefill", "decode"]

#: Connector that vLLM hands caches over with, both ways by the router's word.
_NIXL: Final = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
#: What stands between the halves, by engine.
_BETWEEN: Final = {
    "vllm": "Every worker needs NIXL and VLLM_NIXL_SIDE_CHANNEL_HOST, an address that the others reach; in front of"
    " both halves stands a router that sends each request to one of each.",
    "sglang": "Every worker needs Mooncake or NIXL (--disaggregation-transfer-backend); in front of both halves stands"
    " a router (sglang_router.launch_router --pd-disaggregation).",
    "tensorrt-llm": "Every worker needs cache_transceiver_config in its file; in front of both halves stands"
    " trtllm-serve disaggregated.",
}


def started(sheet: Sheet, draft: Draft, half: Half | None = None) -> MemoryPlan | Unplanned:
    """Its memory with the command line that loads as payload and precision declare, and what else starting takes.

    Args:
        half: of a disaggregated service, which workers these are.
    """
    memory, serve, loading = draft.memory, draft.serve, loading_flags(sheet, draft.workload)
    if isinstance(memory, Unplanned) or not memory.flags or serve is None or not isinstance(draft.model, PlannedModel):
        return memory
    engine, decoder = read_engine(serve.engine), draft.model.decoder
    cast = cast_flags(decoder, serve.precision, engine.name)
    said = [another_checkpoint(decoder, serve.precision, engine.name), _spanning(draft, engine)]
    said += [_BETWEEN[engine.name]] if half == "decode" else []
    flags = (*memory.flags, *cast, *loading, *_handing(engine.name, half))
    return replace(memory, flags=flags, besides=tuple(text for text in said if text))


def _spanning(draft: Draft, engine: Engine) -> str:
    if draft.layout is None or draft.site is None or not draft.site.gpus_per_node:
        return ""
    layout = engine_layout(engine.name, draft.layout)
    return started_over(layout, draft.site.gpus_per_node, engine.name, engine.version)


def _handing(engine: str, half: Half | None) -> tuple[str, ...]:
    """Flags of a worker that hands caches over."""
    if half is None:
        return ()
    return {"vllm": ("--kv-transfer-config", _NIXL), "sglang": ("--disaggregation-mode", half)}.get(engine, ())
