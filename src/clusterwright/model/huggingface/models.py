"""What most families share: tables, norms, the order of layers, keys with several names."""

from __future__ import annotations

from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.weights import Weight, Weights, matrix, norm

#: Ten times the layers of the deepest decoder that was published.
_MOST_LAYERS = 2000


def hidden_of(config: Config) -> int:
    """Width of the residual stream."""
    return _counted(config, "hidden_size", "n_embd", "d_model")


def layers_of(config: Config) -> int:
    """Number of decoder layers."""
    return _counted(config, "num_hidden_layers", "n_layer", "num_layers", "n_layers", most=_MOST_LAYERS)


def heads_of(config: Config) -> int:
    """Number of query heads."""
    return _counted(config, "num_attention_heads", "n_head", "n_heads")


def kv_heads_of(config: Config) -> int:
    """Number of heads of keys and values; that of queries where the config does not say."""
    return _counted(config, "num_key_value_heads", "num_kv_heads", default=heads_of(config))


def head_dim_of(config: Config) -> int:
    """Width of one head: `head_dim` where it is there, the hidden width divided among heads otherwise."""
    return config.maybe("head_dim", "attention_head_dim") or hidden_of(config) // heads_of(config)


def context_of(config: Config) -> int:
    """Tokens that the config allows."""
    return config.whole("max_position_embeddings", "n_positions", "seq_length", "max_sequence_length", default=0)


def vocab_of(config: Config) -> int:
    """Rows of the embedding."""
    return _counted(config, "vocab_size", "padded_vocab_size")


def _counted(config: Config, *keys: str, default: int | None = None, most: int | None = None) -> int:
    """A size that a model has at least one of."""
    value = config.whole(*keys, default=default)
    if value < 1 or (most is not None and value > most):
        raise config.refuse(
            f"{keys[0]} is {value}, from 1 to {most:,} makes sense" if most else f"{keys[0]} is {value}", *keys
        )
    return value


def tables_of(
    config: Config, *, tied: bool, norm_bias: bool = False, head_bias: bool = False, final_norm: bool = True
) -> Weights:
    """Embedding, last norm and, where it is not tied, the head."""
    hidden, vocab = hidden_of(config), vocab_of(config)
    embedding = Weight("embed_tokens", vocab, hidden, "embedding", "tp", used=0, linear=False)
    last = norm("norm", hidden, bias=norm_bias) if final_norm else ()
    head = () if tied else matrix("lm_head", vocab, hidden, "head", bias=head_bias)
    return (embedding, *last, *head)


def norms(hidden: int, count: int, *, bias: bool = False) -> Weights:
    """A layer's norms over the hidden width."""
    names = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    return tuple(w for name in names[:count] for w in norm(name, hidden, bias=bias))
