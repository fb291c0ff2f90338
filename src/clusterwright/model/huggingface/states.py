"""Mixers with a state of fixed size: what they keep per sequence and which tensors they have.

Sources: Mamba (arXiv:2312.00752), Mamba-2 (arXiv:2405.21060), gated delta nets (arXiv:2412.06464), Kimi Linear
(arXiv:2510.26692); `modeling_mamba.py`, `modeling_mamba2.py`, `modeling_qwen3_next.py`, `modeling_kimi_linear.py` of
huggingface/transformers. A causal convolution of kernel k keeps k − 1 inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterwright.model.decoders import StateMixer
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.weights import DTYPES, Weight, Weights, matrix, norm, vector


@dataclass(frozen=True, slots=True)
class Mamba:
    """Sizes of a Mamba-2 mixer.

    Args:
        inner: width of all heads together.
        state: elements per channel.
        groups: of heads that share their inputs to the state.
        kernel: of the convolution.
        gated_norm: whether a norm follows the state.
    """

    heads: int
    inner: int
    state: int
    groups: int
    kernel: int
    conv_bias: bool = True
    bias: bool = False
    gated_norm: bool = True


def mamba2(sizes: Mamba, hidden: int, path: str) -> tuple[StateMixer, Weights]:
    """A Mamba-2 mixer and its tensors."""
    convolved = sizes.inner + 2 * sizes.groups * sizes.state
    mixer = StateMixer("mamba2", sizes.heads, sizes.inner * sizes.state, convolved * (sizes.kernel - 1))
    into = sizes.inner + convolved + sizes.heads
    weights = matrix(f"{path}in_proj", into, hidden, "state", bias=sizes.bias)
    weights += _convolution(path, convolved, sizes.kernel, bias=sizes.conv_bias)
    weights += tuple(vector(f"{path}{name}", sizes.heads, "state", "tp") for name in ("dt_bias", "A_log", "D"))
    if sizes.gated_norm:
        weights += (vector(f"{path}norm", sizes.inner, "norm", "tp"),)
    return mixer, weights + matrix(f"{path}out_proj", hidden, sizes.inner, "state", bias=sizes.bias)


def mamba1(
    hidden: int, inner: int, state: int, kernel: int, rank: int, *, path: str, conv_bias: bool, bias: bool,
    inner_norms: bool = False,
) -> tuple[StateMixer, Weights]:  # fmt: skip
    """A Mamba-1 mixer and its tensors; Jamba's has norms of its inputs to the state."""
    mixer = StateMixer("mamba1", inner, inner * state, inner * (kernel - 1))
    weights = matrix(f"{path}in_proj", 2 * inner, hidden, "state", bias=bias)
    weights += _convolution(path, inner, kernel, bias=conv_bias)
    weights += matrix(f"{path}x_proj", rank + 2 * state, inner, "state")
    weights += matrix(f"{path}dt_proj", inner, rank, "state", bias=True)
    weights += (vector(f"{path}A_log", inner * state, "state", "tp"), vector(f"{path}D", inner, "state", "tp"))
    if inner_norms:
        for name, size in (("dt_layernorm", rank), ("b_layernorm", state), ("c_layernorm", state)):
            weights += norm(f"{path}{name}", size)
    return mixer, weights + matrix(f"{path}out_proj", hidden, inner, "state", bias=bias)


def delta_net(config: Config, hidden: int, path: str = "linear_attn.") -> tuple[StateMixer, Weights]:
    """A gated delta net as Qwen3-Next and Qwen3.5 describe it."""
    key_heads, value_heads = config.whole("linear_num_key_heads"), config.whole("linear_num_value_heads")
    key, value = config.whole("linear_key_head_dim"), config.whole("linear_value_head_dim")
    kernel = config.whole("linear_conv_kernel_dim")
    keys, values = key_heads * key, value_heads * value
    convolved = 2 * keys + values
    mixer = StateMixer("gated-delta", value_heads, value_heads * key * value, convolved * (kernel - 1))
    weights = matrix(f"{path}in_proj_qkv", convolved, hidden, "state")
    weights += matrix(f"{path}in_proj_z", values, hidden, "state")
    weights += matrix(f"{path}in_proj_b", value_heads, hidden, "state")
    weights += matrix(f"{path}in_proj_a", value_heads, hidden, "state")
    weights += _convolution(path, convolved, kernel, bias=False)
    weights += (
        vector(f"{path}dt_bias", value_heads, "state", "tp"),
        vector(f"{path}A_log", value_heads, "state", "tp"),
    )
    return mixer, weights + norm(f"{path}norm", value) + matrix(f"{path}out_proj", hidden, values, "state")


def kimi_delta(
    hidden: int, heads: int, width: int, kernel: int, *, full_gate: bool, path: str = "self_attn."
) -> tuple[StateMixer, Weights]:
    """Kimi delta attention: decay and output gate by low rank, the latter of full rank in K3."""
    inner = heads * width
    # Both vLLM (`kda_state_dtype`) and SGLang keep this state in fp32, whatever the rest is in.
    mixer = StateMixer("kimi-delta", heads, inner * width, 3 * inner * (kernel - 1), "fp32")
    weights: Weights = ()
    for name in ("q_proj", "k_proj", "v_proj"):
        weights += matrix(f"{path}{name}", inner, hidden, "state")
    weights += _convolution(path, 3 * inner, kernel, bias=False)
    weights += matrix(f"{path}f_a_proj", width, hidden, "state", "none") + matrix(
        f"{path}f_b_proj", inner, width, "state"
    )
    weights += matrix(f"{path}b_proj", heads, hidden, "state")
    if full_gate:
        weights += matrix(f"{path}g_proj", inner, hidden, "state")
    else:
        weights += matrix(f"{path}g_a_proj", width, hidden, "state", "none")
        weights += matrix(f"{path}g_b_proj", inner, width, "state")
    weights += (
        vector(f"{path}A_log", heads, "state", "tp", fixed="fp32"),
        vector(f"{path}dt_bias", inner, "state", "tp", fixed="fp32"),
    )
    return mixer, weights + norm(f"{path}o_norm", width) + matrix(f"{path}o_proj", hidden, inner, "state")


def asked_format(*facts: Mapping[str, Any]) -> str:
    """Number format that a config asks recurrent states to be kept in, "" where it says nothing that is known.

    Sources: `mamba_ssm_dtype` (Qwen3.5; vLLM `Qwen3_5ForConditionalGenerationConfig`, SGLang `mamba2_state_dtype`) and
    `mamba_ssm_cache_dtype` (Nemotron-H; vLLM `NemotronHForCausalLMConfig`, TensorRT-LLM `resolve_ssm_cache_dtype`).
    """
    for source in facts:
        for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
            form = DTYPES.get(str(source.get(key) or "").removeprefix("torch."))
            if form:
                return form
    return ""


def _convolution(path: str, channels: int, kernel: int, *, bias: bool) -> Weights:
    weight = Weight(f"{path}conv1d", channels, kernel, "state", "tp", linear=False)
    return (weight, vector(f"{path}conv1d.bias", channels, "state", "tp")) if bias else (weight,)
