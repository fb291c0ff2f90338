"""Which matrices of a checkpoint are quantised and how: `quantization_config` or hf_quant_config.json → storage.

Sources: quantizers of huggingface/transformers (fp8, mxfp4, awq, gptq, fbgemm_fp8), NVIDIA modelopt's unified export
(hf_quant_config.json), compressed-tensors (`config_groups`, `ignore`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from clusterwright.model.huggingface.configs import UnknownArchitecture
from clusterwright.model.huggingface.formats import Scheme

#: What an engine writes before `layers.N`, by publisher and tower.
PREFIXES: Final = ("model.", "model.language_model.", "language_model.model.", "backbone.", "", "language_model.")

FP4_GROUP: Final = Scheme("nvfp4", (1, 16), 1, fixed=8)
#: NVIDIA modelopt's algorithms. NVFP4: an 8-bit scale per 16, two fp32 scalars; W4A16 has no scale of inputs.
MODELOPT: Final[Mapping[str, Scheme]] = {
    "NVFP4": FP4_GROUP,
    "NVFP4_AWQ": FP4_GROUP,
    "W4A16_NVFP4": replace(FP4_GROUP, fixed=4),
    "FP8": Scheme("fp8", (0, 0), 4, fixed=4),
    "FP8_PER_CHANNEL_PER_TOKEN": Scheme("fp8", (1, 0), 4),
    "MXFP8": Scheme("fp8", (1, 32), 1),
    "W4A16_AWQ": Scheme("int4", (1, 128), 2),
    "INT4_AWQ": Scheme("int4", (1, 128), 2),
}


class Names:
    """A set of module names as configs write them: exact, a module above, a component, `*` globs, `re:` patterns."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._plain: set[str] = set()
        patterns: list[str] = []
        for entry in entries:
            if entry.startswith("re:"):
                patterns.append(entry[3:])
            elif "*" in entry or "?" in entry:
                patterns.append(fnmatch.translate(entry))
                patterns.append(fnmatch.translate(f"{entry}.*"))
            else:
                self._plain.add(entry)
        self._pattern = re.compile("|".join(f"(?:{p})" for p in patterns)) if patterns else None

    def __bool__(self) -> bool:
        return bool(self._plain or self._pattern)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and any(self._holds(prefix + path) for prefix in PREFIXES)

    def _holds(self, path: str) -> bool:
        if self._pattern is not None and self._pattern.match(path):
            return True
        if not self._plain:
            return False
        steps = path.split(".")
        above = (".".join(steps[:length]) for length in range(1, len(steps) + 1))
        below = (".".join(steps[start:]) for start in range(len(steps)))
        return any(name in self._plain for names in (above, below, steps) for name in names)


@dataclass(frozen=True)
class Storage:
    """How each matrix of a checkpoint is stored.

    Args:
        base: format of everything that is not quantised.
        default: of matrices that no name excludes; None where only named ones are quantised.
        excluded: modules that stay in `base`.
        only: where given, the modules that `default` is for.
        named: formats of single modules, before everything else.
        head: whether an output head that is not excluded is quantised too.
        experts: of experts, where it differs from `default`; those of `experts_excluded` are stored as
            `experts_otherwise`.
        notes: what the config leaves open.
    """

    base: str
    default: Scheme | None = None
    excluded: Names = field(default_factory=lambda: Names(()))
    only: Names | None = None
    named: tuple[tuple[Names, Scheme], ...] = ()
    head: bool = False
    experts: Scheme | None = None
    experts_excluded: Names = field(default_factory=lambda: Names(()))
    experts_otherwise: Scheme | None = None
    notes: tuple[str, ...] = ()

    def scheme_of(self, path: str) -> Scheme | None:
        """Scheme of the matrix of this path (`layers.3.mlp.up_proj`), None where it is not quantised."""
        path = path.replace("*", "0")
        for names, scheme in self.named:
            if path in names:
                return scheme
        if self.default is None or (path in ("lm_head", "head") and not self.head) or path in self.excluded:
            return None
        if self.only is not None and path not in self.only:
            return None
        if ".experts." not in path:
            return self.default
        chosen = self.experts_otherwise if path in self.experts_excluded else self.experts or self.experts_otherwise
        return chosen or self.default


def parse_quantisation(facts: Mapping[str, Any] | None, base: str, name: str, scale_bytes: int = 4) -> Storage:
    """Storage of a checkpoint from its quantisation config.

    Args:
        facts: `quantization_config` of config.json, or hf_quant_config.json; None where nothing is quantised.
        base: format of what is not quantised.
        name: of the model, for messages.
        scale_bytes: B of one scale of an 8-bit float block.

    Raises:
        UnknownArchitecture: a method or a format that is not known.
    """
    if not facts:
        return Storage(base)
    inner = facts.get("quantization")
    facts = {**facts, **inner} if isinstance(inner, Mapping) else facts
    method = str(facts.get("quant_method") or ("modelopt" if "quant_algo" in facts else ""))
    if facts.get("quant_algo") and method in ("", "modelopt", "modelopt_mixed", "modelopt_fp4"):
        return _modelopt(facts, base, name)
    if method not in _METHODS:
        raise UnknownArchitecture(name, f"quantisation method '{method}' is not known", tuple(sorted(_METHODS)))
    return _METHODS[method](facts, base, name, scale_bytes)


def declared_cache(facts: Mapping[str, Any] | None) -> tuple[str, str]:
    """(format of the KV cache that a checkpoint brings scales for, the quantiser that wrote so); ("", "") without.

    Only fp8 is read: what else may stand there (INT8, NVFP4) no engine takes up by itself.

    Sources: modelopt's hf_quant_config.json writes `kv_cache_quant_algo: FP8`, its part of config.json
    `kv_cache_scheme` with 8 float bits, as compressed-tensors does.
    """
    if not facts:
        return "", ""
    inner = facts.get("quantization")
    facts = {**facts, **inner} if isinstance(inner, Mapping) else facts
    written = facts.get("kv_cache_quant_algo") or facts.get("kv_cache_scheme")
    if isinstance(written, Mapping):
        is_fp8 = (written.get("num_bits"), written.get("type")) == (8, "float")
    else:
        is_fp8 = str(written or "").upper() == "FP8"
    if not is_fp8:
        return "", ""
    return "fp8", "compressed-tensors" if facts.get("quant_method") == "compressed-tensors" else "modelopt"


def _excluded(facts: Mapping[str, Any]) -> Names:
    keys = ("modules_to_not_convert", "exclude_modules", "ignore", "ignored_layers")
    return Names(str(entry) for key in keys for entry in facts.get(key) or ())


def _fp8(facts: Mapping[str, Any], base: str, name: str, scale_bytes: int) -> Storage:
    block = facts.get("weight_block_size")
    scheme = Scheme("fp8", (int(block[0]), int(block[1])), scale_bytes) if block else Scheme("fp8", (0, 0), 4)
    if facts.get("activation_scheme") == "static":
        scheme = replace(scheme, fixed=4)
    if facts.get("moe_quant_algo"):
        experts = _algorithm(str(facts["moe_quant_algo"]), name)
        return Storage(base, scheme, experts=experts, experts_excluded=_excluded(facts))
    return Storage(base, scheme, _excluded(facts))


def _mxfp4(facts: Mapping[str, Any], base: str, name: str, scale_bytes: int) -> Storage:
    return Storage(base, Scheme("mxfp4", (1, 32), 1), _excluded(facts))


def _fbgemm(facts: Mapping[str, Any], base: str, name: str, scale_bytes: int) -> Storage:
    return Storage(base, Scheme("fp8", (1, 0), 4), _excluded(facts))


def _packed_int(facts: Mapping[str, Any], base: str, name: str, scale_bytes: int) -> Storage:
    """AWQ and GPTQ: fp16 scales and packed zero points per group; GPTQ has an index per input, too."""
    bits, group = int(facts.get("bits") or 4), int(facts.get("group_size") or 128)
    if bits not in (4, 8):
        raise UnknownArchitecture(name, f"{bits}-bit integers are not known", ("4", "8"))
    scheme = Scheme("int4" if bits == 4 else "int8", (1, max(group, 0)), 2, zero_bits=bits)
    per_input = 4 if facts.get("quant_method") == "gptq" else 0
    return Storage(base, replace(scheme, input_bytes=per_input), _excluded(facts))


def _compressed(facts: Mapping[str, Any], base: str, name: str, scale_bytes: int) -> Storage:
    named: list[tuple[Names, Scheme]] = []
    default: Scheme | None = None
    groups = facts.get("config_groups") or {}
    for group in groups.values():
        scheme = _compressed_scheme(group, str(group.get("format") or facts.get("format") or ""), name)
        targets = [str(t) for t in group.get("targets") or ("Linear",)]
        if "Linear" in targets:
            default = scheme
        else:
            named.append((Names(targets), scheme))
    return Storage(base, default, _excluded(facts), named=tuple(named), head=True)


def _compressed_scheme(group: Mapping[str, Any], layout: str, name: str) -> Scheme:
    weights = group.get("weights") or {}
    bits, kind = weights.get("num_bits"), weights.get("type")
    size = int(weights.get("group_size") or 0)
    strategy = str(weights.get("strategy") or ("group" if size else "tensor"))
    static = 4 if (group.get("input_activations") or {}).get("dynamic") is False else 0
    if layout.startswith("mxfp4"):
        return Scheme("mxfp4", (1, 32), 1)
    if (bits, kind) == (4, "float"):
        return Scheme("nvfp4", (1, size or 16), 1, fixed=4 + static)
    if (bits, kind) == (4, "int"):
        return Scheme("int4", (1, size), 2, fixed=8, zero_bits=0 if weights.get("symmetric", True) else 4)
    if bits == 8 and kind in ("float", "int"):
        block = {"block": tuple(weights.get("block_structure") or (128, 128)), "channel": (1, 0), "tensor": (0, 0)}
        if strategy in block:
            high, wide = block[strategy]
            return Scheme("fp8" if kind == "float" else "int8", (int(high), int(wide)), 2, fixed=static)
    raise UnknownArchitecture(name, f"compressed-tensors format {bits}-bit {kind} by {strategy} is not known")


def _modelopt(facts: Mapping[str, Any], base: str, name: str) -> Storage:
    algorithm = str(facts["quant_algo"])
    excluded = _excluded(facts)
    layers = facts.get("quantized_layers") or {}
    if algorithm == "MIXED_PRECISION":
        if not layers:
            raise UnknownArchitecture(name, "MIXED_PRECISION without its list of layers", ("quantized_layers",))
        by_algorithm: dict[str, list[str]] = {}
        for path, how in layers.items():
            by_algorithm.setdefault(str(how["quant_algo"]), []).append(str(path))
        return Storage(base, named=tuple((Names(p), _algorithm(a, name)) for a, p in by_algorithm.items()))
    notes = () if excluded else ("quantisation config names no module that stays in 16 bits: taken as the head alone",)
    return Storage(base, _algorithm(algorithm, name), excluded, head=bool(excluded), notes=notes)


def _algorithm(algorithm: str, name: str) -> Scheme:
    if algorithm not in MODELOPT:
        raise UnknownArchitecture(name, f"quantisation '{algorithm}' is not known", tuple(MODELOPT))
    return MODELOPT[algorithm]


_METHODS: Final[Mapping[str, Callable[[Mapping[str, Any], str, str, int], Storage]]] = {
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "fbgemm_fp8": _fbgemm,
    "awq": _packed_int,
    "gptq": _packed_int,
    "compressed-tensors": _compressed,
}
