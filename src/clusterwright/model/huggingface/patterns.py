"""Per-layer lists and periods of a config: which layers are windowed, which have experts.

Sources: configuration files of huggingface/transformers: `layer_types`, `use_sliding_window` with `max_window_layers`
(Qwen2), `first_k_dense_replace` with `moe_layer_freq` (DeepSeek), `decoder_sparse_step` with `mlp_only_layers`
(Qwen2-MoE).
"""

from __future__ import annotations

from typing import Any, Final

from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.models import layers_of

#: Words of `layer_types` for attention over everything, and within a window.
FULL: Final = frozenset({"full_attention", "attention", "global"})
WINDOWED: Final = frozenset({"sliding_attention", "sliding_window_attention", "local", "local_attention"})


def layer_types_of(config: Config, key: str = "layer_types") -> tuple[str, ...]:
    """The word for each layer; empty where the config has none. Lists may go on for draft layers.

    Raises:
        UnknownArchitecture: the list is shorter than the model.
    """
    types = tuple(str(t) for t in config.items(key))
    count = layers_of(config)
    if types and len(types) < count:
        raise config.refuse(f"{key} has {len(types)} entries for {count} layers", key)
    return types[:count]


def windows_of(config: Config, period: int = 0) -> tuple[int | None, ...]:
    """Window of each layer, None where it attends to everything.

    Args:
        period: every such layer attends to everything where the config has no list of its own; 0 without.
    """
    count = layers_of(config)
    window = config.maybe("sliding_window")
    types = layer_types_of(config)
    if types:
        unknown = sorted(set(types) - FULL - WINDOWED)
        if unknown:
            raise config.refuse(f"layer types {', '.join(unknown)} are not known", "layer_types")
        return tuple(window if t in WINDOWED else None for t in types)
    if period:
        return tuple(None if number % period == period - 1 else window for number in range(count))
    if config.get("use_sliding_window") is False:
        window = None
    if config.get("use_sliding_window") and config.get("max_window_layers") is not None:
        start = config.whole("max_window_layers")
        return tuple(window if number >= start else None for number in range(count))
    return (window,) * count


def sliding_period_of(config: Config, default: int) -> int:
    """Period of layers that attend to everything: a number, or a word as `LLLG` (L windowed, G full)."""
    pattern = config.get("sliding_window_pattern", "_sliding_window_pattern")
    return len(pattern) if isinstance(pattern, str) else int(pattern or default)


def periodic(count: int, period: int, *, offset: int) -> tuple[bool, ...]:
    """True for every `period`th layer, the first of them at `offset`."""
    return tuple(number >= offset and (number - offset) % period == 0 for number in range(count))


def sparse_layers_of(config: Config) -> tuple[bool, ...]:
    """Which layers have experts: the keys of DeepSeek, GLM, MiniMax, Step and Qwen."""
    count = layers_of(config)
    words = layer_types_of(config, "mlp_layer_types")
    freq: Any = config.get("moe_layer_freq", "moe_layer_frequency")
    dense = config.whole("first_k_dense_replace", default=0)
    if words:
        unknown = sorted(set(words) - {"sparse", "dense"})
        if unknown:
            raise config.refuse(f"mlp_layer_types {', '.join(unknown)} are not known", "mlp_layer_types")
        return tuple(word == "sparse" for word in words)
    if isinstance(freq, list | tuple):
        if len(freq) < count:
            raise config.refuse(f"moe_layer_freq has {len(freq)} entries for {count} layers", "moe_layer_freq")
        return tuple(bool(f) for f in freq[:count])
    step = int(freq or 1)
    sparse = tuple(number >= dense and number % step == 0 for number in range(count))
    return _qwen_sparse(config, sparse)


def _qwen_sparse(config: Config, sparse: tuple[bool, ...]) -> tuple[bool, ...]:
    step = config.whole("decoder_sparse_step", default=1)
    only = {int(number) for number in config.items("mlp_only_layers")}
    return tuple(s and number not in only and (number + 1) % step == 0 for number, s in enumerate(sparse))
