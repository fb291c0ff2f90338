"""Parameter counts of dense and mixture-of-experts transformers with MHA or GQA.

Per layer: attention h·H·hd + 2·h·kv·hd + H·hd·h; gated MLP 3·h·ff (2·h·ff without gate); MoE E·3·h·mff + shared experts
+ router h·E; norms 2h. Once: embedding V·h, head V·h unless tied, last norm h.

Source: the published architectures (Llama 3, arXiv:2407.21783; Mixtral, arXiv:2401.04088; Qwen3, arXiv:2505.09388),
checked against the parameter counts that their publishers state.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.model.language_models import LanguageModel


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a whole model by where they sit; counts, exact.

    Args:
        attention: projections of all layers with their biases.
        mlp: dense MLPs and shared experts of all layers.
        experts: routed experts of all layers.
        router: gates of all MoE layers.
        norms: all of them, with per-head query and key norms.
        embedding: input table.
        head: output projection, 0 when it shares the table.
        active_experts: routed experts that one token uses, all layers.
    """

    attention: int
    mlp: int
    experts: int
    router: int
    norms: int
    embedding: int
    head: int
    active_experts: int

    @property
    def total(self) -> int:
        """All parameters."""
        return self.linear + self.router + self.norms + self.embedding + self.head

    @property
    def linear(self) -> int:
        """Parameters of the linear layers that quantization touches: attention, MLPs, experts."""
        return self.attention + self.mlp + self.experts

    @property
    def plain(self) -> int:
        """Parameters that usually stay in 16 bit: embedding, head, norms, routers."""
        return self.router + self.norms + self.embedding + self.head

    @property
    def active(self) -> int:
        """Parameters that one token uses, both embeddings counted (the convention of model cards)."""
        return self.total - self.experts + self.active_experts

    @property
    def multiplied(self) -> int:
        """Parameters that one token is multiplied with: active without the input table (tied or not)."""
        head = self.head or self.embedding
        return self.attention + self.mlp + self.active_experts + self.router + head


def count_parameters(model: LanguageModel) -> Parameters:
    """Parameters of a model with MHA or GQA.

    Raises:
        ValueError: for attention that these formulas do not cover; ask `model.plannable` first.
    """
    if not model.plannable or model.kv_heads is None or model.head_dim is None:
        raise ValueError(f"no parameter formula for attention {model.attention}")
    layers, hidden, moe = model.layers, model.hidden, model.moe
    query, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    attention = 2 * hidden * query + 2 * hidden * kv
    attention += (query + 2 * kv if model.qkv_bias else 0) + (hidden if model.output_bias else 0)
    dense = model.mlp_matrices * hidden * (model.intermediate or 0)
    moe_layers = layers - moe.dense_layers if moe else 0
    expert = model.mlp_matrices * hidden * moe.intermediate if moe else 0
    shared = model.mlp_matrices * hidden * moe.shared_intermediate if moe else 0
    return Parameters(
        attention=layers * attention,
        mlp=(layers - moe_layers) * dense + moe_layers * shared,
        experts=moe_layers * expert * moe.experts if moe else 0,
        router=moe_layers * hidden * moe.experts if moe else 0,
        norms=layers * (2 * hidden + (2 * model.head_dim if model.qk_norm else 0)) + hidden,
        embedding=model.vocab * hidden,
        head=0 if model.tied_embeddings else model.vocab * hidden,
        active_experts=moe_layers * expert * moe.active if moe else 0,
    )
