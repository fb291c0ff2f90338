"""A config.json as the families read it: facts by name, what is missing, what nobody understood.

A key that a family did not read and that could change a count (a size, a number of heads, a bias) stops the reading: a
model is counted exactly or refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusterwright.lib.errors import InvalidInput, Place, Problem

#: Names that could change a parameter count or the cache.
_COUNTING: Final = re.compile(
    r"(^|_)(size|dim|dims|rank|heads?|layers?|bias|norm|norms|experts?|shared|share|tie|tied|proj|lora|mtp|nextn|conv|gate"
    r"|sinks?|freq|step|interval|pattern|types?|groups?|ratios?|modules|width|expand|kernel|intermediate|window|ffn|hash)"
    r"(_|$)"
)
#: Of those, names that never do: how numbers are computed, sampled or trained.
_HARMLESS: Final = re.compile(
    r"^_|rope|rotary|rms_norm_eps|norm_eps|norm_epsilon|layernorm_epsilon|norm_topk|topk_|_topk_|n_group$|n_groups_per|token|^hidden_act|activation_"
    r"|dropout|init|router_aux|router_z|router_jitter|scoring|routed_scaling|mscale|pretraining|output_router|"
    r"moe_router|model_type|tokenizer|transformers|^num_beam|no_repeat_ngram_size|chunk_size_feed_forward|cross_attention"
    r"|^tie_encoder|_swiglu|max_window_layers|use_sliding|ep_size|seq_aux|aux_loss|num_return|num_labels|dtype"
    r"|problem_type|qk_clip|bidirectional|router_dtype|renormalize|mask|checkpoint|softcap|scale|_act$|max_position"
)


#: Largest size that makes sense: a thousand times the longest context that a config ever stated.
_LARGEST: Final = 10**10


class UnknownArchitecture(InvalidInput):
    """A config.json that cannot be counted exactly.

    Args:
        name: of the model, as given.
        reason: in one sentence.
        missing: keys that are missing or not understood, or the nearest families known.
    """

    def __init__(self, name: str, reason: str, missing: Sequence[str] = ()) -> None:
        self.name, self.reason, self.missing = name, reason, tuple(missing)
        super().__init__(Problem(Place(name or "config.json"), "", reason, ", ".join(self.missing)))


class Config:
    """Facts of one model (of its text part, where a config nests it), remembering which were read.

    Args:
        name: of the model, for messages.
        outer: facts beside the nested ones.
    """

    def __init__(self, facts: Mapping[str, Any], name: str, outer: Mapping[str, Any] | None = None) -> None:
        self._facts = facts
        self.name = name
        self.outer: Mapping[str, Any] = facts if outer is None else outer
        self._read: set[str] = {"architectures", "quantization_config", "model_type", "auto_map"}

    def whole(self, *keys: str, default: int | None = None) -> int:
        """The whole number of the first of these names that is there and not null.

        Raises:
            UnknownArchitecture: none is there and there is no default, or it is not a whole number.
        """
        value = self.get(*keys)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            reason = f"config.json has no {' or '.join(keys)}" if value is None else f"{keys[0]} is not a whole number"
            raise UnknownArchitecture(self.name, reason, keys)
        if not -1 <= value <= _LARGEST:  # -1 is what some configs write for "none"
            raise UnknownArchitecture(
                self.name, f"{keys[0]} is {value:.3g}, from 0 to {_LARGEST:.0e} makes sense", keys
            )
        return value

    def maybe(self, *keys: str) -> int | None:
        """The whole number of the first of these names that is there; None if there is none or it is 0."""
        return self.whole(*keys, default=0) or None

    def flag(self, *keys: str, default: bool = False) -> bool:
        """Yes or no; the default where no name is there or it is null."""
        value = self.get(*keys)
        return default if value is None else bool(value)

    def text(self, key: str, default: str = "") -> str:
        """A word; the default where it is not there or null."""
        value = self.get(key)
        return default if value is None else str(value)

    def items(self, *keys: str) -> tuple[Any, ...]:
        """A list; empty where it is not there or null."""
        value = self.get(*keys)
        if value is None:
            return ()
        if isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(value)
        raise UnknownArchitecture(self.name, f"{keys[0]} is not a list", keys)

    def nested(self, key: str) -> Config | None:
        """Facts inside of a key, None where it is not there; unknown ones inside are left to whoever reads it."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return Config(value, f"{self.name}: {key}")
        raise UnknownArchitecture(self.name, f"{key} is not a mapping", (key,))

    def get(self, *keys: str) -> Any:
        """The first value that is there and not null; marks all these names as understood."""
        self._read.update(keys)
        return next((self._facts[k] for k in keys if self._facts.get(k) is not None), None)

    def ignore(self, *keys: str) -> None:
        """Marks names that do not change what is counted, though they sound like it."""
        self._read.update(keys)

    def assume(self, **defaults: Any) -> None:
        """Facts for names that the config leaves out: defaults of the family's configuration class."""
        self._facts = {**defaults, **{k: v for k, v in self._facts.items() if v is not None or k not in defaults}}

    def refuse(self, reason: str, *keys: str) -> UnknownArchitecture:
        """The exception for this model."""
        return UnknownArchitecture(self.name, reason, keys)

    def check_all_read(self) -> None:
        """Raise UnknownArchitecture for keys that could change a count and that nobody read."""
        unread = [k for k, v in self._facts.items() if k not in self._read and _could_count(k, v)]
        if unread:
            raise UnknownArchitecture(self.name, "config.json has keys that could change the count", unread)


def _could_count(key: str, value: Any) -> bool:
    if value is None or value is False or value == 0 or value == [] or value == {} or isinstance(value, str | float):
        return False
    return bool(_COUNTING.search(key)) and not _HARMLESS.search(key)
