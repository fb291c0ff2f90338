"""What the budgets of all engines share: the question, the answer, weights of the fullest GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.lib.scales import GIB
from clusterwright.model.workloads import Serve
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.loading import Loading, load_weights
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, Served, scaled

#: Term of loaded weights → (kind of parameters that it follows, whether the format of linear layers applies).
_TERMS: Final = {
    "attention": ("dense", True),
    "MLP": ("dense", True),
    "experts": ("experts", True),
    "padding of experts": ("experts", True),
    "embedding": ("vocabulary", False),
    "head": ("vocabulary", False),
    "towers": ("towers", False),
    "absorbed MLA projections": ("dense", False),
    "rotary table": ("vocabulary", False),
    "other": ("replicated", False),
}


@dataclass(frozen=True)
class Asked:
    """What a budget is made from.

    Args:
        prefix: dotted name under which figures are kept. path: of the `serve` section.
        case: model as served, layout, GPU and settings, as the engine's estimator takes them.
        reported: GiB of one GPU as a program sees it.
        advise: whether changes are tried where it does not fit.
    """

    sheet: Sheet
    prefix: str
    path: str
    serve: Serve
    model: PlannedModel
    served: Served
    case: Case
    reported: Figure
    advise: bool

    @property
    def tp(self) -> int:
        """Tensor ranks."""
        return self.case.layout.tp


@dataclass(frozen=True)
class Budget:
    """An engine's budget.

    Args:
        memory: the estimator's plan: why it does not start, flags, advice, notes, band.
        usable: GiB that the parts may fill.
        before, after: parts of the bar before and after the cache, GiB.
        pool: GiB of KV cache on the GPU that binds.
        states: GiB of recurrent states beside the pool, None where they are within it or there are none.
        tokens: of the replica, from GiB of the pool. requests: of so many tokens each, from GiB and tokens.
        longest: tokens of the longest sequence, from GiB.
        sequences: that the engine runs at a time on one attention group.
    """

    memory: EngineMemory
    usable: Figure
    before: tuple[tuple[str, Figure], ...]
    after: tuple[tuple[str, Figure], ...]
    pool: Figure
    tokens: Callable[[float], float]
    requests: Callable[[float, float], float]
    longest: Callable[[float], float]
    sequences: Figure
    states: Figure | None = None


def stated(asked: Asked, field: str, name: str, default: float, unit: str, reason: str) -> Figure:
    """A setting of the file, else the engine's default as an assumption."""
    value = getattr(asked.serve, field)
    if value is not None:
        number = value.value if field == "memory_share" else value
        return asked.sheet.declared(f"{asked.path}.{field}", number, unit)
    return asked.sheet.assumed(name, default, unit, reason)


def loading_of(case: Case) -> Loading:
    """What the engine loads: the model's own draft layers where they draft."""
    return Loading(drafts=case.settings.speculative_tokens > 0 and case.draft is None)


def draft_weights(asked: Asked) -> tuple[tuple[str, Figure], ...]:
    """Part of the bar that a draft model of its own takes on the last stage, GiB; none without one."""
    draft = asked.case.draft
    if draft is None:
        return ()
    size = load_weights(draft, replace(asked.case.layout, pp=1)).largest / GIB
    entry = asked.sheet.catalogue.find_model(draft.name) or asked.model.entry
    parameters = asked.sheet.published(entry, "parameters", draft.parameters, "parameters", "of the draft model")
    scale = size / parameters.value
    figure = asked.sheet.derive(
        f"{asked.prefix}.draft_weights", "GiB", "parameters of the draft model as it is stored, on one GPU",
        lambda n: n * scale, parameters,
    )  # fmt: skip
    return (("draft weights", figure),)


def gpu_weights(asked: Asked, loading: Loading, stage: int) -> Figure:
    """GiB of weights on one GPU of a stage, as the engine loads them: the sum of its terms."""
    case = asked.case
    loaded = load_weights(case.decoder, case.layout, loading).stages[stage]
    where = f", on one GPU of {case.layout}" + (
        f", stage {stage + 1} of {case.layout.pp}" if case.layout.pp > 1 else ""
    )
    parts = []
    for term, size in loaded:
        kind, linear = _TERMS[term]
        if not asked.model.of(kind).value:
            kind = "dense"
        name = f"{asked.prefix}.weights.{term.lower().replace(' ', '_')}"
        parts.append(
            scaled(asked.sheet, name, "GiB", size / GIB, asked.model, asked.served, kind, linear, f"{where} ({term})")
        )
    return asked.sheet.derive(
        f"{asked.prefix}.weights", "GiB", "sum of what the engine loads (physics/loading.py)", lambda *p: sum(p), *parts
    )
