"""Speculative decoding of a service: what drafts, what the engine offers, and how many tokens a step keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import Figure
from clusterwright.model.decoders import Decoder
from clusterwright.model.workloads import Serve, Speculation
from clusterwright.physics.speculations import kept_tokens
from clusterwright.plan.engines import Engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import decoder_of
from clusterwright.plan.results.layouts import Layout

#: Last version of vLLM that runs no speculation over pipeline stages: docs.vllm.ai, features/spec_decode (0.9.1) and
#: features/speculative_decoding (0.15).
_VLLM_ONE_STAGE_UNTIL: Final = (0, 15)


@dataclass(frozen=True)
class Drafting:
    """What drafts.

    Args:
        drafter: one pass of it as a model of its own: a draft layer with the target's head, or a draft model.
        model: a draft model beside the target, None where the target's own draft layers are used.
    """

    tokens: int
    drafter: Decoder
    model: Decoder | None


def read_drafting(
    catalogue: Catalogue, serve: Serve, target: Decoder, engine: Engine, layout: Layout
) -> Drafting | str:
    """What drafts by the file, or why that cannot be."""
    asked = serve.speculation
    assert asked is not None
    refusal = _refused(asked, target, engine, layout)
    if refusal:
        return refusal
    if asked.method == "mtp":
        return Drafting(asked.tokens, replace(target, layers=target.drafts[:1], drafts=()), None)
    entry = catalogue.find_model(asked.draft or "")
    model = None if entry is None else decoder_of(catalogue, entry)
    if model is None:
        return f"the catalogue has no draft model '{asked.draft}'; give its config in a catalogue file of your own"
    if model.vocab != target.vocab:
        return f"{model.name} has {model.vocab:,} tokens in its vocabulary, the target has {target.vocab:,}"
    return Drafting(asked.tokens, model, model)


def _refused(asked: Speculation, target: Decoder, engine: Engine, layout: Layout) -> str:
    if asked.method == "mtp" and not target.drafts:
        return f"{target.name} has no draft layers of its own (multi-token prediction)"
    if asked.method == "mtp" and asked.draft is not None:
        return "mtp drafts with the model's own layers; a draft model belongs to eagle3"
    if asked.method == "eagle3" and asked.draft is None:
        return "eagle3 needs the model that drafts (speculation.draft)"
    if asked.method == "eagle3" and engine.name == "tensorrt-llm":
        return "draft models of TensorRT-LLM are not modelled; mtp is"
    if engine.name == "vllm" and layout.pp > 1 and engine.planned <= _VLLM_ONE_STAGE_UNTIL:
        return f"vLLM {engine.planned[0]}.{engine.planned[1]} runs no speculation over pipeline stages"
    return ""


def plan_kept(sheet: Sheet, name: str, prefix: str, serve: Serve) -> Figure | None:
    """Tokens that a decode step of one sequence keeps; None without speculation."""
    asked = serve.speculation
    if asked is None:
        return None
    path = f"workloads.{name}.serve.speculation"
    sheet.limit(f"the speed of {name} has no band: its constants were fitted to runs without speculation")
    count = sheet.declared(f"{path}.tokens", asked.tokens, "tokens")
    acceptance = sheet.declared(f"{path}.acceptance", asked.acceptance.value, "share")
    return sheet.derive(
        f"{prefix}.kept_tokens",
        "tokens",
        "(1 − a^(k+1)) ÷ (1 − a) with acceptance a of k drafted tokens (Leviathan et al. 2023, equation 1)",
        lambda a, k: kept_tokens(min(a, 1.0), k),
        acceptance,
        count,
    )
