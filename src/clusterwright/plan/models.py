"""The model of a workload as figures: what it has layer by layer, what it stores, what it caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import Figure
from clusterwright.model.decoders import BITS, Decoder, Part, Role
from clusterwright.model.language_models import LanguageModel
from clusterwright.model.plain_decoders import PLAIN, plain_decoder
from clusterwright.model.workloads import Workload
from clusterwright.physics.loading import LINEAR, requantised
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.refusals import Unplanned

_COUNTED: Final = "counted layer by layer from config.json"
#: Kinds of parameters that figures are kept of: field of the catalogue entry → roles.
KINDS: Final[Mapping[str, frozenset[Role]]] = {
    "dense": frozenset({"attention", "indexer", "compressor", "state", "mlp", "shared", "projection", "other"}),
    "experts": frozenset({"experts"}),
    "replicated": frozenset({"norm", "router"}),
    "vocabulary": frozenset({"embedding", "head"}),
    "towers": frozenset({"vision"}),
}


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model that is known layer by layer.

    Args:
        dense: parameters of attention, states, MLPs and shared experts.
        experts: parameters of routed experts.
        replicated: parameters of norms and routers, on every tensor rank.
        vocabulary: parameters of embedding and head.
        towers: parameters of vision and audio towers.
        total, multiplied: all parameters; those that one token is multiplied with.
    """

    entry: LanguageModel
    decoder: Decoder
    dense: Figure
    experts: Figure
    replicated: Figure
    vocabulary: Figure
    towers: Figure
    total: Figure
    multiplied: Figure

    @property
    def is_moe(self) -> bool:
        """Whether it has routed experts."""
        return self.decoder.is_moe

    def of(self, kind: str) -> Figure:
        """Parameters of a kind of KINDS."""
        return {k: getattr(self, k) for k in KINDS}[kind]  # type: ignore[no-any-return]


def find_model(sheet: Sheet, name: str, workload: Workload) -> PlannedModel | Unplanned:
    """The workload's model, or why it cannot be planned: unknown, or not known layer by layer."""
    path = f"workloads.{name}.model"
    entry = sheet.catalogue.find_model(workload.model)
    if entry is None:
        return sheet.miss(path, f"the catalogue has no model '{workload.model}'", path, "a catalogue file of your own")
    decoder = decoder_of(sheet.catalogue, entry)
    if decoder is None:
        return sheet.miss(
            path,
            f"{entry.name} has {entry.attention} attention, which a few numbers do not describe, and its catalogue "
            "entry gives no config",
            f"catalogue models.{entry.name}.config",
        )

    def parameters(field: str, value: int) -> Figure:
        return sheet.published(entry, field, value, "parameters", _COUNTED)

    counts = {kind: _count(decoder, roles) for kind, roles in KINDS.items()}
    return PlannedModel(
        entry,
        decoder,
        parameters("dense_parameters", counts["dense"]),
        parameters("expert_parameters", counts["experts"]),
        parameters("replicated_parameters", counts["replicated"]),
        parameters("vocabulary_parameters", counts["vocabulary"]),
        parameters("tower_parameters", counts["towers"]),
        parameters("parameters", decoder.parameters),
        parameters("multiplied_parameters", decoder.multiplied),
    )


def decoder_of(catalogue: Catalogue, entry: LanguageModel) -> Decoder | None:
    """The model layer by layer: from its config, else from its few numbers; None where neither describes it.

    An entry that starts from another one (`like`) and states other layers, widths or vocabulary is no longer what its
    config says.
    """
    found = catalogue.find_decoder(entry.name)
    if found is not None and _same(found, entry):
        return replace(found, max_context=entry.max_context) if found.max_context != entry.max_context else found
    return plain_decoder(entry) if entry.attention in PLAIN else None


def _same(decoder: Decoder, entry: LanguageModel) -> bool:
    return (len(decoder.layers), decoder.hidden, decoder.vocab) == (entry.layers, entry.hidden, entry.vocab)


def _count(decoder: Decoder, roles: frozenset[Role]) -> int:
    return sum(part.parameters * count for part, count in decoder.parts() if part.role in roles)


@dataclass(frozen=True)
class Served:
    """A model with its linear layers in the format that a file declares.

    Args:
        each: B per parameter of linear layers, scales included, as figures: by kind of KINDS.
    """

    decoder: Decoder
    each: Mapping[str, Figure]


def served_in(sheet: Sheet, path: str, model: PlannedModel, precision: str) -> Served:
    """The model in the precision declared at `path`: as it is stored where that is it, else converted."""
    decoder = model.decoder
    stored = {p.stored for p, _ in decoder.parts(towers=False) if p.role in LINEAR}
    if precision == "fp32":
        decoder = _widened(decoder)
    elif precision not in stored and not (precision == "fp16" and stored == {"bf16"}):
        decoder = requantised(decoder, precision)
    values = {kind: _bytes_each(decoder, kind) for kind in ("dense", "experts")}
    each = {"dense": sheet.declared(path, values["dense"], "B/parameter")}
    if values["experts"] in (0.0, values["dense"]):
        return Served(decoder, each | {"experts": each["dense"]})
    return Served(decoder, each | {"experts": sheet.declared(f"{path}.experts", values["experts"], "B/parameter")})


def _bytes_each(decoder: Decoder, kind: str) -> float:
    """B per parameter of the linear layers of a kind, scales included; 0 where it has none."""
    parts = [(p, n) for p, n in decoder.parts(towers=False) if p.role in KINDS[kind] & LINEAR]
    count = sum(n * p.parameters for p, n in parts)
    return sum(n * (p.parameters * BITS[p.stored] / 8 + p.scale_bytes) for p, n in parts) / count if count else 0.0


def _widened(decoder: Decoder) -> Decoder:
    def wide(part: Part) -> Part:
        return replace(part, stored="fp32", scale_bytes=0)

    kinds = {old: replace(old, parts=tuple(wide(p) for p in old.parts)) for old in {*decoder.layers, *decoder.drafts}}
    return replace(
        decoder,
        layers=tuple(kinds[old] for old in decoder.layers),
        drafts=tuple(kinds[old] for old in decoder.drafts),
        tables=tuple(wide(p) for p in decoder.tables),
    )


def replica_weights(sheet: Sheet, name: str, model: PlannedModel, served: Served) -> Figure:
    """GB of one copy of the weights, as they are stored and read."""
    stored = dict.fromkeys(((kind, linear) for kind in KINDS for linear in (False, True)), 0.0)
    for part, count in served.decoder.parts():
        kind = next(k for k, roles in KINDS.items() if part.role in roles)
        stored[kind, part.role in LINEAR] += (part.parameters * BITS[part.stored] / 8 + part.scale_bytes) * count
    parts = [
        scaled(sheet, f"{name}.{kind}{'' if linear else '_16_bit'}", "GB", size / 1e9, model, served, kind, linear)
        for (kind, linear), size in stored.items()
        if size
    ]
    return sheet.derive(
        name, "GB", "sum over kinds of parameters, in the format that each has", lambda *p: sum(p), *parts
    )


def scaled(
    sheet: Sheet,
    name: str,
    unit: str,
    size: float,
    model: PlannedModel,
    served: Served,
    kind: str,
    linear: bool,
    where: str = "",
) -> Figure:
    """A size of weights as a figure of the parameters of their kind and, in linear layers, of the declared format."""
    count, each = model.of(kind), served.each.get(kind)
    if linear and each is not None and each.value:
        scale = size / (count.value * each.value)
        return sheet.derive(
            name, unit, f"parameters × bytes of their format{where}", lambda n, b: n * b * scale, count, each
        )
    scale = size / count.value
    return sheet.derive(
        name, unit, f"parameters × bytes that they keep in any format{where}", lambda n: n * scale, count
    )
