"""Hugging Face configs → `Decoder`: parameters and stored bytes of a model, layer by layer, exactly.

A family reads its facts into a blueprint (mixers, feed-forward blocks, named tensors); the quantisation config decides
how each named matrix is stored. No file is read here and no name of a model is asked for; what is not known is refused
by name.
"""

from clusterwright.model.huggingface.configs import UnknownArchitecture
from clusterwright.model.huggingface.parsing import known_architectures, parse_config

__all__ = ["UnknownArchitecture", "known_architectures", "parse_config"]
