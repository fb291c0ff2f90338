"""What the catalogue knows about open language models: the numbers that memory, traffic and work follow from.

Names follow Hugging Face's config.json where it has one. Traps that this type removes: gpt-oss writes the expert's
width as `intermediate_size`; nested `text_config`; three names for the expert count; `head_dim` absent or unused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from clusterwright.model.entries import Entry, Natural, Positive, Record, Text, matching, within

#: mha, gqa: full attention, planned. mla: DeepSeek's latent attention. hybrid: linear attention or Mamba layers among
#: attention layers. sparse: attention over an indexed or compressed selection (DSA, CSA). chunked: within blocks.
#: mixed: layers of different sizes, or parts that a few numbers do not describe.
AttentionKind = Literal["mha", "gqa", "mla", "hybrid", "sparse", "chunked", "mixed"]


@dataclass(frozen=True, kw_only=True)
class Moe(Record):
    """Mixture of experts in a model's feed-forward layers.

    Args:
        experts: routed experts per layer.
        active: routed experts used per token.
        intermediate: width of one expert.
        shared_experts: experts that every token uses.
        shared_intermediate: width of all shared experts together; 0 without them.
        dense_layers: leading layers with an ordinary MLP of the model's `intermediate`.
    """

    experts: Positive
    active: Positive
    intermediate: Positive
    shared_experts: Natural = 0
    shared_intermediate: Natural = 0
    dense_layers: Natural = 0

    def __post_init__(self) -> None:
        if self.active > self.experts:
            raise ValueError(f"{self.active} active experts of {self.experts}")
        if bool(self.shared_experts) != bool(self.shared_intermediate):
            raise ValueError("shared_experts and shared_intermediate belong together")


@dataclass(frozen=True, kw_only=True)
class Window(Record):
    """Sliding-window attention: tokens a windowed layer looks back, number of layers that are windowed."""

    tokens: Positive
    layers: Positive


@dataclass(frozen=True, kw_only=True)
class Latent(Record):
    """MLA's ranks and head widths; q_rank None where queries are not compressed."""

    kv_rank: Positive
    q_rank: Positive | None = None
    rope_dim: Positive
    nope_dim: Positive
    value_dim: Positive


@dataclass(frozen=True, kw_only=True)
class LanguageModel(Entry):
    """One model's shape; `name` is its Hugging Face id.

    Args:
        family: lower-case (llama, qwen3).
        config: facts of config.json that count, by its own names; fields that are not given follow from them.
        revision: commit of the repository that was read, where known.
        attention: kind; only mha and gqa are complete enough to plan with.
        layers, hidden, heads, kv_heads, head_dim, vocab: as in config.json; head_dim always explicit. kv_heads and
            head_dim are None for MLA, whose cache does not follow from them.
        intermediate: width of the dense MLP; None when every layer is MoE.
        mlp_matrices: 3 for gated MLPs (SwiGLU), 2 otherwise.
        tied_embeddings: output head shares the embedding's weights.
        qkv_bias, output_bias, qk_norm: small terms of the parameter count.
        moe, window, latent: None when the model has none.
        max_context: tokens that config.json allows.
        native_precision: of the published weights; experts' format for mxfp4.
        parameters, active_parameters: as the publisher states them; None if not stated.
        parameters_source: where they are stated.
    """

    family: Text
    config: dict[str, Any] | None = None
    revision: Annotated[str, matching(r"[0-9a-f]{7,40}")] | None = None
    attention: AttentionKind
    layers: Positive
    hidden: Positive
    heads: Positive
    kv_heads: Positive | None = None
    head_dim: Positive | None = None
    intermediate: Positive | None = None
    mlp_matrices: Annotated[int, within(2, 3)] = 3
    vocab: Positive
    tied_embeddings: bool
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    moe: Moe | None = None
    window: Window | None = None
    latent: Latent | None = None
    max_context: Positive
    native_precision: Literal["bf16", "fp8", "mxfp4", "nvfp4", "int4"] = "bf16"
    parameters: Positive | None = None
    active_parameters: Positive | None = None
    parameters_source: Text | None = None

    @property
    def id(self) -> str:
        """Hugging Face id."""
        return self.name

    @classmethod
    def written_out(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fill fields that are not given from `config`."""
        if not isinstance(fields.get("config"), Mapping) or "layers" in fields:
            return fields
        # Most commands need no config counted: these modules are read when one is.
        from clusterwright.model.huggingface import UnknownArchitecture, parse_config
        from clusterwright.model.huggingface.facts import typed
        from clusterwright.model.huggingface.summaries import summary_of

        try:
            decoder = parse_config(typed(fields["config"]), name=str(fields.get("name", "")))
        except UnknownArchitecture as unknown:
            raise ValueError(f"config: {unknown.reason} ({', '.join(unknown.missing)})") from unknown
        return {**summary_of(decoder), **fields}

    def __post_init__(self) -> None:
        if self.attention in ("mha", "gqa") and (self.kv_heads is None or self.head_dim is None):
            raise ValueError(f"attention {self.attention} needs kv_heads and head_dim")
        if self.attention == "mla" and self.latent is None:
            raise ValueError("attention mla needs latent: its ranks and head widths")
        if self.intermediate is None and self.moe is None:
            raise ValueError("a model without moe needs intermediate")
        if self.moe is not None and self.moe.dense_layers and self.intermediate is None:
            raise ValueError("dense_layers need intermediate")
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads do not divide among {self.kv_heads} kv_heads")
        if self.window is not None and self.window.layers > self.layers:
            raise ValueError(f"{self.window.layers} windowed layers of {self.layers}")
        if (self.parameters or self.active_parameters) and self.parameters_source is None:
            raise ValueError("published parameters need parameters_source")
