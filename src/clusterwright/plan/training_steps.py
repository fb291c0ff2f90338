"""Time of a training step as figures: every term of the estimator with the rates and constants that it follows from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.model.workloads import Train
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.physics.training.calibration import CALIBRATED, SpeedConstants
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import TERMS, repeated, step_terms
from clusterwright.physics.training.systems import System, system_of
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.recipes import training_layout
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.searching.machines import inner_domain, link_bytes_s, node_link
from clusterwright.plan.searching.questions import Pool
from clusterwright.plan.sites import Site

_SOURCE: Final = f"{CALIBRATED.fitted_on}, fitted {CALIBRATED.date}"
#: Term → (what it is in words, constants, rates) that it follows from.
_MADE_OF: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "dense products": ("FLOP of dense products ÷ peak × constant", ("products",), ("peak",)),
    "expert products": ("FLOP of routed experts ÷ peak × constant", ("experts",), ("peak",)),
    "head": (
        "what the last stage takes longer than the fullest before it: FLOP of the head ÷ 16-bit peak × constant",
        ("head",),
        ("bf16",),
    ),
    "attention": ("FLOP and exponentials of attention × constant", ("attention",), ("bf16",)),
    "state scan": ("recurrent states on vector units × constant", ("scan",), ()),
    "elementwise passes": ("bytes that layers keep ÷ memory bandwidth × passes", ("passes",), ("memory",)),
    "launches": ("layer passes × time of each", ("launch_s",), ()),
    "dequantisation": ("4-bit weights made 16 bits wide ÷ memory bandwidth", (), ("memory",)),
    "tensor exchange": (
        "bytes among tensor ranks ÷ link × share that is not hidden",
        ("tensor",),
        ("link", "pcie", "nic"),
    ),
    "context exchange": (
        "keys and values of context ranks ÷ link × share not hidden",
        ("tensor",),
        ("link", "pcie", "nic"),
    ),
    "expert exchange": (
        "tokens to experts and back ÷ link × constant",
        ("exchange", "overlapped"),
        ("link", "pcie", "nic"),
    ),
    "stage exchange": ("what stages hand on ÷ link × share not hidden", ("overlapped",), ("link", "pcie", "nic")),
    "gradients and weights": (
        "gradients and weights among data ranks ÷ link × constant",
        ("gradients",),
        ("link", "pcie", "nic"),
    ),
    "optimizer": ("bytes of states ÷ memory bandwidth × constant", ("optimizer",), ("memory",)),
    "host transfers": ("states over the host's link and memory", (), ()),
}
#: Terms that wait for other GPUs.
EXCHANGES: Final = (
    "tensor exchange", "context exchange", "expert exchange", "stage exchange", "gradients and weights",
)  # fmt: skip
_SLUGS: Final = {name: name.replace(" ", "_") for name in TERMS}


@dataclass
class _Step:
    """The estimator with every input replaceable; terms of inputs that were asked for before are kept.

    Args:
        base: value of each input by name; names of SpeedConstants, `peak`, `bf16`, `memory`, `link`, `pcie`, `nic`,
            `batch`, `sequence`.
    """

    decoder: Decoder
    sizes: Mapping[str, float]
    recipe: Recipe
    system: System
    constants: SpeedConstants
    base: dict[str, float]
    known: dict[tuple[float, ...], dict[str, float]]

    def terms(self, changed: Mapping[str, float]) -> dict[str, float]:
        """Seconds of every term with some inputs changed."""
        values = self.base | dict(changed)
        key = tuple(values.values())
        if key not in self.known:
            recipe = replace(
                self.recipe, global_batch=max(1, round(values["batch"])), sequence=max(1, round(values["sequence"]))
            )
            system = self._system(values)
            constants = replace(self.constants, **{f.name: values[f.name] for f in fields(SpeedConstants)})
            found = step_terms(self.decoder, self.sizes, recipe, system, constants)
            self.known[key] = {name: float(value) for name, value in found.items()}
        return self.known[key]

    def _system(self, values: Mapping[str, float]) -> System:
        low, known = self.recipe.low_precision, self.system
        fp4 = low and self.recipe.precision == "nvfp4" and bool(known.fp4)
        return replace(
            known,
            bf16=values["bf16" if low else "peak"],
            fp8=values["peak"] if low and not fp4 else known.fp8,
            fp4=values["peak"] if fp4 else known.fp4,
            memory_bytes_s=values["memory"],
            scale_up_bytes_s=values["link"],
            nic_bytes_s=values["nic"],
            node_bytes_s=values["pcie"],
        )


def pool_of(site: Site, gpu: Gpu, nic_gbytes_s: float | None) -> Pool:
    """The site as the searches and estimators see it."""
    return Pool(gpu, site.gpus_per_node, site.domain_gpus, len(site.working), nic_gbytes_s)


def step_figures(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    decoder: Decoder,
    recipe: Recipe,
    site: Site,
    layout: Layout,
    nic: Figure | None,
) -> Figure | Unplanned:
    """s of one step as the sum of its terms, each a figure.

    Args:
        nic: GB/s per GPU between nodes; None where the job stays inside, or no network is known and it costs nothing.
    """
    gpu = site.gpu
    if gpu is None:
        return Unplanned(prefix, "the GPU is unknown")
    pool = pool_of(site, gpu, nic.value if nic else None)
    rate = nic.value * 1e9 if nic else math.inf
    try:
        system = system_of(
            gpu,
            domain=inner_domain(pool),
            link_bytes_s=link_bytes_s(pool) or math.inf,
            nic_bytes_s=rate,
            node=node_link(pool),
        )
    except ValueError as lacking:
        return sheet.miss(prefix, str(lacking), f"{path}.mfu", f"{path}.step_time")
    constants = CALIBRATED.constants(
        system.name, recipe.precision, moe=decoder.is_moe, framework=recipe.framework, graphs=recipe.graphs
    )
    sizes = _sizes(training_layout(layout))
    base = {f.name: float(getattr(constants, f.name)) for f in fields(SpeedConstants)}
    base |= {"peak": system.peak(recipe.precision), "bf16": system.bf16, "memory": system.memory_bytes_s}
    base |= {"link": system.scale_up_bytes_s, "pcie": system.node_bytes_s, "nic": system.nic_bytes_s}
    base |= {"batch": float(recipe.global_batch), "sequence": float(recipe.sequence)}
    if not recipe.low_precision:
        del base["bf16"]
    step = _Step(decoder, sizes, recipe, system, constants, base, {})
    leaves = _leaves(sheet, path, train, gpu, recipe, system, constants, nic)
    made = {
        name: _term(sheet, f"{prefix}.step_{_SLUGS[name]}", name, step, leaves)
        for name in _MADE_OF
        if step.terms({})[name]
    }
    exchanged = [made[name] for name in EXCHANGES if name in made]
    if exchanged:
        sheet.derive(
            f"{prefix}.exchange_time",
            "s",
            "sum of exchanges among GPUs that computation does not hide",
            lambda *t: sum(t),
            *exchanged,
        )
    _repeats(sheet, prefix, layout, decoder, recipe, made)
    _bubble(sheet, prefix, layout, recipe, made, leaves["batch"][0])
    return sheet.derive(
        f"{prefix}.computed_step_time", "s", "sum of its terms (physics/training/speed.py)", lambda *t: sum(t),
        *(made[name] for name in TERMS if name in made),
    )  # fmt: skip


def _sizes(layout: EngineLayout) -> dict[str, float]:
    return {n: float(getattr(layout, n)) for n in ("tp", "pp", "cp", "dp", "vp", "ep", "etp")}


#: (figure, factor from its unit to the estimator's).
Leaves = dict[str, tuple[Figure, float]]


def _leaves(
    sheet: Sheet,
    path: str,
    train: Train,
    gpu: Gpu,
    recipe: Recipe,
    system: System,
    constants: SpeedConstants,
    nic: Figure | None,
) -> Leaves:
    form = {"fp16": "bf16", "mxfp8": "fp8", "nvfp4": "fp4"}.get(recipe.precision, recipe.precision)
    form = form if getattr(system, form) else "fp8" if system.fp8 else "bf16"
    found: Leaves = {
        "batch": (sheet.declared(f"{path}.global_batch", train.global_batch, "sequences"), 1.0),
        "sequence": (sheet.declared(f"{path}.sequence", train.sequence, "tokens"), 1.0),
        "peak": (sheet.published(gpu, f"dense_{form}", system.peak(recipe.precision) / 1e12, "TFLOP/s"), 1e12),
        "memory": (sheet.published(gpu, "bandwidth", gpu.bandwidth, "GB/s"), 1e9),
    }
    found["bf16"] = (sheet.published(gpu, "dense_bf16", system.bf16 / 1e12, "TFLOP/s"), 1e12)
    if math.isfinite(system.scale_up_bytes_s):
        link = sheet.published(gpu, "link", system.scale_up_bytes_s / 1e9, "GB/s", "one direction, inside its domain")
        found["link"] = (link, 1e9)
    if system.node > system.domain:
        found["pcie"] = (sheet.published(gpu, "pcie", system.node_bytes_s / 1e9, "GB/s", "one direction"), 1e9)
    if nic is not None:
        found["nic"] = (nic, 1e9)
    name = f"training.{system.name}.{recipe.precision}.{recipe.framework}"
    for f in fields(SpeedConstants):
        value = float(getattr(constants, f.name))
        found[f.name] = (sheet.constant(f"{name}.{f.name}", value, "s" if f.name == "launch_s" else "", _SOURCE), 1.0)
    return found


def _term(sheet: Sheet, figure: str, name: str, step: _Step, leaves: Leaves) -> Figure:
    words, constants, rates = _MADE_OF[name]
    names = [n for n in (*constants, *rates, "sequence", "batch") if n in leaves]
    names = ["peak" if n == "bf16" and not step.recipe.low_precision else n for n in names]
    factors = [leaves[n][1] for n in names]

    def seconds(*values: float) -> float:
        changed = {n: v * f for n, v, f in zip(names, values, factors, strict=True)}
        return step.terms({n: v for n, v in changed.items() if v != leaves[n][0].value * leaves[n][1]})[name]

    return sheet.derive(figure, "s", f"{words} (physics/training/speed.py)", seconds, *(leaves[n][0] for n in names))


def _repeats(
    sheet: Sheet, prefix: str, layout: Layout, decoder: Decoder, recipe: Recipe, made: dict[str, Figure]
) -> None:
    again = {k: float(v) for k, v in repeated(recipe, len(decoder.layers), layout.pp).items() if k in made}
    if not again:
        return
    shares = list(again.values())
    made["recomputation"] = sheet.derive(
        f"{prefix}.step_recomputation",
        "s",
        "forward passes that run again: " + ", ".join(f"{v:.3g} of {k}" for k, v in again.items()),
        lambda *t: sum(s * v for s, v in zip(shares, t, strict=True)),
        *(made[k] for k in again),
    )


def _bubble(sheet: Sheet, prefix: str, layout: Layout, recipe: Recipe, made: dict[str, Figure], batch: Figure) -> None:
    if layout.pp == 1:
        return
    busy = [n for n in TERMS[: TERMS.index("pipeline bubble")] if n in made]
    each = layout.dp * recipe.micro_batch

    def idle(b: float, *t: float) -> float:
        return sum(t) * (layout.pp - 1) / (layout.vp * max(b / each, 1.0))

    made["pipeline bubble"] = sheet.derive(
        f"{prefix}.step_pipeline_bubble",
        "s",
        "(stages − 1) ÷ (virtual stages × micro-batches) of what a stage does (arXiv:2104.04473)",
        idle,
        batch,
        *(made[n] for n in busy),
    )
