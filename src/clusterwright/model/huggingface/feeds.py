"""Feed-forward blocks: dense ones and mixtures of experts.

Sources: `modeling_llama.py`, `modeling_mixtral.py`, `modeling_qwen2_moe.py`, `modeling_deepseek_v3.py`,
`modeling_gpt_oss.py` of huggingface/transformers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterwright.model.decoders import Experts, Mlp, Role
from clusterwright.model.huggingface.weights import Weight, Weights, matrix, vector

_GATED = ("gate_proj", "up_proj", "down_proj")
_PLAIN = ("up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Routing:
    """Small weights that families add to a mixture of experts.

    Args:
        router: its module's name.
        correction: a bias per expert that steers the choice, kept in fp32 by most.
        correction_format: its format where it is not the checkpoint's own.
        router_bias, expert_bias: biases of the linear layers.
        shared: module of the shared experts.
        shared_gate: whether the shared experts' output has a gate of one number per token.
        names: of an expert's matrices (gate, up, down).
    """

    router: str = "mlp.gate"
    router_format: str | None = None
    correction: bool = False
    correction_format: str | None = "fp32"
    router_bias: bool = False
    expert_bias: bool = False
    shared: str = "mlp.shared_experts"
    shared_gate: bool = False
    experts: str = "mlp.experts"
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")


SIMPLE = Routing()


def dense(hidden: int, mlp: Mlp, *, path: str = "mlp.", bias: bool = False, role: Role = "mlp") -> Weights:
    """Weights of a dense feed-forward block."""
    *into, out = _GATED if mlp.matrices == 3 else _PLAIN
    weights: Weights = ()
    for name in into:
        weights += matrix(f"{path}{name}", mlp.width, hidden, role, bias=bias)
    return weights + matrix(f"{path}{out}", hidden, mlp.width, role, bias=bias)


def mixture(hidden: int, feed: Experts, routing: Routing = SIMPLE) -> Weights:
    """Weights of routed experts, their router and shared experts.

    A token that works in a narrower space (`feed.hidden` below `hidden`) needs projections there and back; the family
    adds them.
    """
    router = Weight(routing.router, feed.experts, hidden, "router", "none", linear=False, fixed=routing.router_format)
    weights: Weights = (router,)
    if routing.router_bias:
        weights += (vector(f"{routing.router}.bias", feed.experts, "router"),)
    if routing.correction:
        bias = f"{routing.router}.e_score_correction_bias"
        weights += (vector(bias, feed.experts, "router", fixed=routing.correction_format),)
    gate, up, down = routing.names
    into = (gate, up) if feed.matrices == 3 else (up,)
    one = [Weight(f"{routing.experts}.*.{name}", feed.width, feed.hidden, "experts", "experts") for name in into]
    one.append(Weight(f"{routing.experts}.*.{down}", feed.hidden, feed.width, "experts", "experts"))
    if routing.expert_bias:
        one += [replace(w, path=f"{w.path}.bias", columns=1, linear=False) for w in tuple(one)]
    weights += tuple(replace(w, copies=feed.experts, used=feed.active, blocks=feed.experts) for w in one)
    if feed.shared_width:
        shared = Mlp(feed.shared_width, feed.matrices)
        weights += dense(hidden, shared, path=f"{routing.shared}.", role="shared")
    if routing.shared_gate:
        weights += (Weight("mlp.shared_expert_gate", 1, hidden, "shared", "none", linear=False),)
    return weights
