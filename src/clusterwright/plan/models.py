"""The model of a workload as figures: parameters by kind, bytes of a format, bytes of the cache."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.model.language_models import LanguageModel
from clusterwright.model.workloads import Serve, Workload
from clusterwright.physics.caches import kv_bytes_per_token
from clusterwright.physics.parameters import Parameters, count_parameters
from clusterwright.physics.weights import BYTES, PLAIN_BYTES, weight_bytes_per_gpu
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results import Layout, Unplanned

_COUNTED = "counted from config.json"


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model that the planner has formulas for.

    Args:
        dense: parameters of attention, MLPs and shared experts.
        experts: parameters of routed experts.
        replicated: parameters of norms and routers, on every tensor rank.
        vocabulary: parameters of embedding and head.
        total, multiplied: all parameters; those that one token is multiplied with.
    """

    entry: LanguageModel
    counts: Parameters
    dense: Figure
    experts: Figure
    replicated: Figure
    vocabulary: Figure
    total: Figure
    multiplied: Figure

    @property
    def kv_heads(self) -> int:
        """KV heads; plannable models have them."""
        return self.entry.kv_heads or self.entry.heads

    @property
    def head_dim(self) -> int:
        """Width of a head; plannable models have it."""
        return self.entry.head_dim or self.entry.hidden // self.entry.heads

    @property
    def is_moe(self) -> bool:
        """Whether it has routed experts."""
        return self.entry.moe is not None


def find_model(sheet: Sheet, name: str, workload: Workload) -> PlannedModel | Unplanned:
    """The workload's model, or why it cannot be planned: unknown, or attention without a formula here."""
    path = f"workloads.{name}.model"
    entry = sheet.catalogue.find_model(workload.model)
    if entry is None:
        return sheet.miss(path, f"the catalogue has no model '{workload.model}'", path, "a catalogue file of your own")
    if not entry.plannable:
        return sheet.miss(
            path,
            f"{entry.name} has {entry.attention} attention, whose cache and weights this version has no formula for "
            "(it plans mha and gqa)",
        )
    counts = count_parameters(entry)

    def parameters(field: str, value: int) -> Figure:
        return sheet.published(entry, field, value, "parameters", _COUNTED)

    return PlannedModel(
        entry,
        counts,
        parameters("dense_parameters", counts.attention + counts.mlp),
        parameters("expert_parameters", counts.experts),
        parameters("replicated_parameters", counts.norms + counts.router),
        parameters("vocabulary_parameters", counts.embedding + counts.head),
        parameters("parameters", counts.total),
        parameters("multiplied_parameters", counts.multiplied),
    )


@dataclass(frozen=True, slots=True)
class Format:
    """Bytes per parameter as figures: of dense layers and of experts."""

    dense: Figure
    experts: Figure


def weight_format(sheet: Sheet, path: str, precision: str) -> Format:
    """Bytes per parameter of the precision declared at `path`; mxfp4 checkpoints quantize experts only."""
    experts = sheet.declared(path, BYTES[precision], "B/parameter")
    if precision != "mxfp4":
        return Format(experts, experts)
    dense = sheet.constant(
        "mxfp4.dense_bytes", PLAIN_BYTES, "B/parameter", "gpt-oss model card: only expert weights are mxfp4, 2025-08"
    )
    return Format(dense, experts)


def replica_weights(sheet: Sheet, name: str, model: PlannedModel, format_: Format) -> Figure:
    """GB of one copy of the weights, as they are stored and loaded."""
    return sheet.derive(
        name,
        "GB",
        "dense layers and experts × bytes per parameter, norms, routers and vocabulary in 16 bit",
        lambda d, e, r, v, bd, be: (d * bd + e * be + (r + v) * max(PLAIN_BYTES, bd)) / 1e9,
        model.dense,
        model.experts,
        model.replicated,
        model.vocabulary,
        format_.dense,
        format_.experts,
    )


def gpu_weights(sheet: Sheet, name: str, model: PlannedModel, format_: Format, layout: Layout) -> Figure:
    """GiB of weights on the fullest GPU of a replica."""
    tp, pp, ep = layout.tp, layout.pp, layout.ep
    return sheet.derive(
        name,
        "GiB",
        f"weights by format, layers ÷ TP{tp}·PP{pp}, experts ÷ {max(tp, ep)}, norms on every rank (physics/weights.py)",
        lambda d, e, r, v, bd, be: weight_bytes_per_gpu(d, e, r, v, bd, be, tp, pp, ep) / 2**30,
        model.dense,
        model.experts,
        model.replicated,
        model.vocabulary,
        format_.dense,
        format_.experts,
    )


def cache_bytes(
    sheet: Sheet, prefix: str, serve_path: str, serve: Serve, model: PlannedModel, layout: Layout
) -> Figure:
    """KiB of KV cache per token on one GPU."""
    if serve.kv_precision is None:
        element = sheet.assumed("kv_bytes", 2.0, "B", "kv_precision is not stated; engines keep the cache in 16 bit")
    else:
        element = sheet.declared(f"{serve_path}.kv_precision", BYTES[serve.kv_precision], "B")
    layers = sheet.published(model.entry, "layers", model.entry.layers, "layers")
    heads = sheet.published(model.entry, "kv_heads", model.kv_heads, "heads")
    width = sheet.published(model.entry, "head_dim", model.head_dim, "")
    return sheet.derive(
        f"{prefix}.kv_per_token",
        "KiB",
        f"2 · layers/PP{layout.pp} · max(1, kv_heads/TP{layout.tp}) · head_dim · bytes (physics/caches.py)",
        lambda n, k, d, b: kv_bytes_per_token(n, k, d, b, layout.tp, layout.pp) / 1024,
        layers,
        heads,
        width,
        element,
    )
