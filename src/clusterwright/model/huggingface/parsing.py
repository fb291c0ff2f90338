"""config.json → Decoder: the family reads its facts, storage follows from the quantisation config."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from clusterwright.model.decoders import Decoder, Layer, Part, StateMixer
from clusterwright.model.huggingface.configs import Config, UnknownArchitecture
from clusterwright.model.huggingface.families import FAMILIES, SAME_ARCHITECTURE
from clusterwright.model.huggingface.formats import Scheme
from clusterwright.model.huggingface.quantisation import Storage, declared_cache, parse_quantisation
from clusterwright.model.huggingface.states import asked_format
from clusterwright.model.huggingface.weights import DTYPES, Block, Blueprint, Weight, gathered

#: Keys under which a config nests its text model.
_NESTS: Final = ("text_config", "llm_config", "language_config")
#: Tokens where a config states no limit: what vLLM takes then (`_get_and_verify_max_len`, "assuming the model's maximum
#: length is 2048"), and what a recurrent model of such a config was tested to by its maker (Mistral AI, "Codestral
#: Mamba", 2024-07-16: 256k): a state has no limit of its own.
_ASSUMED_CONTEXT: Final = 2048
_RECURRENT_CONTEXT: Final = 262144


def parse_config(
    config: Mapping[str, Any], *, name: str = "", quantization: Mapping[str, Any] | None = None
) -> Decoder:
    """A model layer by layer, counted exactly.

    Args:
        config: config.json as a value.
        name: Hugging Face id, or how the user names it.
        quantization: hf_quant_config.json as a value; it goes before config.json's own `quantization_config`.

    Raises:
        UnknownArchitecture: the family, a key that could change the count or a format is not known, or a fact is
            missing; nothing is approximated.
    """
    architecture = _architecture(config, name)
    family = FAMILIES[SAME_ARCHITECTURE.get(architecture, architecture)]
    facts = _text_facts(config)
    reading = Config(facts, name or architecture, config)
    blueprint = family(reading)
    reading.check_all_read()
    own = config.get("quantization_config") or facts.get("quantization_config") or {}
    if not isinstance(own, Mapping):
        raise reading.refuse("quantization_config is not a mapping", "quantization_config")
    # A checkpoint requantised in part keeps its first method beside that of its experts, in config.json alone.
    how = own if own.get("moe_quant_algo") else quantization or own
    storage = parse_quantisation(how, _base(config, facts), reading.name, blueprint.scale_bytes)
    asked = asked_format(facts, config)
    if storage.default is not None and storage.default.format == "fp8":
        storage = replace(storage, experts_otherwise=blueprint.experts)
    if asked:
        blueprint = _asking(blueprint, asked)
    decoder = _decoder(blueprint, storage, name or architecture, architecture)
    kv_format, kv_by = next((found for found in map(declared_cache, (quantization, own)) if found[0]), ("", ""))
    return replace(decoder, kv_format=kv_format, kv_declared_by=kv_by) if kv_format else decoder


def known_architectures() -> tuple[str, ...]:
    """Names of `architectures` that can be counted."""
    return tuple(sorted({*FAMILIES, *SAME_ARCHITECTURE}))


def _architecture(config: Mapping[str, Any], name: str) -> str:
    known = known_architectures()
    named = config.get("architectures") or ()
    written = [named] if isinstance(named, str) else [str(a) for a in named] if isinstance(named, list | tuple) else []
    for architecture in written:
        if architecture in known:
            return architecture
    wanted = written[0] if written else str(config.get("model_type") or "")
    near = [f"nearest: {n}" for n in difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)]
    if not written:
        kind = f"; its model_type is '{wanted}'" if wanted else ""
        raise UnknownArchitecture(name, f"the config has no 'architectures'{kind}", near or ("architectures",))
    raise UnknownArchitecture(name or wanted, f"architecture '{wanted}' is not known", near)


def _text_facts(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in _NESTS:
        nested = config.get(key)
        if isinstance(nested, Mapping):
            tied = {"tie_word_embeddings": config["tie_word_embeddings"]} if "tie_word_embeddings" in config else {}
            return {**tied, **nested}
    return config


def _base(config: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    for source in (config, facts):
        for key in ("dtype", "torch_dtype"):
            if source.get(key):
                return DTYPES.get(str(source[key]).removeprefix("torch."), "bf16")
    return "bf16"


@dataclass(frozen=True)
class _Storing:
    """Parts of blocks, each different block of a path worked out once."""

    storage: Storage

    def layer(self, block: Block, path: str) -> Layer:
        return Layer(block.mixer, block.feed, self.parts(block.weights, path), block.streams)

    def parts(self, weights: Iterable[Weight], path: str) -> tuple[Part, ...]:
        return gathered(weights, lambda w: self._scheme(path + w.path), self.storage.base)

    def _scheme(self, path: str) -> Scheme | None:
        return self.storage.scheme_of(path)


def _asking(blueprint: Blueprint, asked: str) -> Blueprint:
    """The model with the format that its config asks recurrent states to be kept in."""
    made = dict[int, Block]()  # by identity: comparing all the weights of a block takes long

    def asking(block: Block) -> Block:
        if isinstance(block.mixer, StateMixer) and not block.mixer.asked:
            return replace(block, mixer=replace(block.mixer, asked=asked))
        return block

    for block in (*blueprint.blocks, *blueprint.drafts):
        if id(block) not in made:
            made[id(block)] = asking(block)
    return replace(
        blueprint,
        blocks=tuple(made[id(block)] for block in blueprint.blocks),
        drafts=tuple(made[id(block)] for block in blueprint.drafts),
    )


def _unstated_context(layers: tuple[Layer, ...]) -> int:
    """Tokens of a model whose config states no limit."""
    recurrent = all(layer.mixer is None or isinstance(layer.mixer, StateMixer) for layer in layers)
    return _RECURRENT_CONTEXT if recurrent else _ASSUMED_CONTEXT


def _decoder(blueprint: Blueprint, storage: Storage, name: str, architecture: str) -> Decoder:
    storing = _Storing(storage)
    count = len(blueprint.blocks)
    drafts = tuple(
        storing.layer(block, blueprint.draft_path.format(number=number, layer=count + number))
        for number, block in enumerate(blueprint.drafts)
    )
    layers = tuple(storing.layer(block, f"layers.{number}.") for number, block in enumerate(blueprint.blocks))
    return Decoder(
        name=name,
        architecture=architecture,
        hidden=blueprint.hidden,
        vocab=blueprint.vocab,
        max_context=blueprint.max_context or _unstated_context(layers),
        layers=layers,
        tables=storing.parts(blueprint.tables, ""),
        tied=blueprint.tied,
        drafts=drafts,
        towers=storing.parts(blueprint.towers, ""),
        notes=(*blueprint.notes, *storage.notes),
    )
