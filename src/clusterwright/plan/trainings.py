"""Training workloads: speed, failures, time to the target."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Target, Train
from clusterwright.physics.failures import MTTF_BAND, RATE_SOURCE, RSC1_PER_1000_NODE_DAYS, ettr, ettr_exact, mttf_h
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import BAND
from clusterwright.physics.training.work import training_work
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.recipes import read_recipe, why_not_staged
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan
from clusterwright.plan.sites import Site
from clusterwright.plan.traffic import speed_of, step_traffic
from clusterwright.plan.training_steps import step_figures

#: s from a failure until work goes on, where no recovery target is declared.
_RESTART_S = 600.0


def failure_rate(sheet: Sheet) -> Figure:
    """Node failures per 1,000 node-days that stop a job: measured on all nodes, else Meta's RSC-1."""
    published = sheet.constant("node_failures", RSC1_PER_1000_NODE_DAYS, "/1,000 node-days", RATE_SOURCE)
    return sheet.picked(Kind.SHARE, "node_failures", published, nodes=sheet.nodes)


def plan_mttf(sheet: Sheet, name: str, nodes: Figure) -> Figure:
    """h between failures of a job on these nodes."""
    computed = sheet.derive(
        f"workloads.{name}.mttf",
        "h",
        "1 ÷ (nodes × failures per node and time); 1,024-GPU jobs were seen to fail 3.6 times as often",
        mttf_h,
        nodes,
        failure_rate(sheet),
        band=MTTF_BAND,
    )
    return sheet.picked(Kind.TIME, f"workloads.{name}.mttf", computed, nodes=int(nodes.value))


def plan_restart(sheet: Sheet, name: str, target: Target | None) -> Figure:
    """s from a failure until work goes on: the declared recovery target, else assumed."""
    declared = sheet.maybe(f"workloads.{name}.target.recovery", target.recovery if target else None, "s")
    return declared or sheet.assumed(f"{name}.restart", _RESTART_S, "s", "no recovery target is declared")


def plan_training(
    sheet: Sheet,
    name: str,
    train: Train,
    model: PlannedModel | Unplanned,
    site: Site,
    nodes: Figure,
    mttf: Figure,
    restart: Figure,
    checkpoint: CheckpointPlan | Unplanned | None,
    losses: tuple[LossPlan, ...],
    layout: Layout,
) -> TrainingPlan:
    """Speed of a job and the time to its target."""
    path, prefix = f"workloads.{name}.train", f"workloads.{name}.training"
    gpus = sheet.declared(f"{path}.gpus", train.gpus, "GPUs")
    speed = _speed(sheet, name, prefix, path, train, model, site, gpus, int(nodes.value), layout)
    traffic = sheet.figures.get(f"{prefix}.network_time")
    most = any(text.startswith(f"{speed_of(name)} is an upper limit") for text in sheet.limits)
    step = None
    if isinstance(speed, Figure):
        step = sheet.derive(
            f"{prefix}.step_time",
            "s",
            "sequences per step × tokens ÷ tokens per second",
            lambda b, s, t: b * s / t,
            sheet.declared(f"{path}.global_batch", train.global_batch, "sequences"),
            sheet.declared(f"{path}.sequence", train.sequence, "tokens"),
            speed,
            band=_inverse(speed.band),
        )
    goodput = _goodput(sheet, prefix, path, train, nodes, restart, checkpoint, speed)
    time = hours = None
    if isinstance(speed, Figure) and train.tokens is not None and goodput is not None:
        tokens = sheet.declared(f"{path}.tokens", train.tokens, "Mtok")
        time = sheet.derive(
            f"{prefix}.time_to_target",
            "h",
            "tokens ÷ (tokens per second × productive share)",
            lambda n, t, g: n * 1e6 / (t * g) / 3600 if g else float("inf"),
            tokens,
            speed,
            goodput,
            band=_inverse(speed.band),
        )
        hours = sheet.derive(f"{prefix}.gpu_hours", "GPU-h", "time × GPUs", lambda t, g: t * g, time, gpus)
    deadline = sheet.maybe(f"{path}.deadline", train.deadline, "h")
    meets = None if time is None or deadline is None else time.value <= deadline.value
    if meets is False:
        sheet.misfit(prefix, f"{path}.deadline", f"the target takes {time}, the deadline is {deadline}")
    exchange = sheet.figures.get(f"{prefix}.exchange_time")
    slow = any(text.startswith(f"{speed_of(name)} has no band") for text in sheet.limits)
    return TrainingPlan(speed, step, mttf, goodput, time, hours, deadline, meets, losses, traffic, most, slow, exchange)


def _inverse(band: tuple[float, float] | None) -> tuple[float, float] | None:
    return (round(1 / band[1], 2), round(1 / band[0], 2)) if band else None


def _speed(
    sheet: Sheet,
    workload: str,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel | Unplanned,
    site: Site,
    gpus: Figure,
    nodes: int,
    layout: Layout,
) -> Figure | Unplanned:
    name = f"{prefix}.tokens_per_s"
    if train.step_time is not None:
        stated = sheet.derive(
            name,
            "tokens/s",
            "sequences per step × tokens ÷ declared step time",
            lambda b, s, t: b * s / t,
            sheet.declared(f"{path}.global_batch", train.global_batch, "sequences"),
            sheet.declared(f"{path}.sequence", train.sequence, "tokens"),
            sheet.declared(f"{path}.step_time", train.step_time, "s"),
        )
        return sheet.picked(Kind.RATE, name, stated, nodes=nodes)
    measured = sheet.choose(Kind.RATE, name, nodes=nodes)
    if measured is not None:
        return measured
    if isinstance(model, Unplanned):
        return Unplanned(name, model.reason, (f"{path}.step_time",))
    return _estimate(sheet, workload, prefix, path, train, model, site, gpus, nodes, layout)


def _estimate(
    sheet: Sheet,
    workload: str,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    site: Site,
    gpus: Figure,
    nodes: int,
    layout: Layout,
) -> Figure | Unplanned:
    name = f"{prefix}.tokens_per_s"
    recipe = read_recipe(sheet, name, path, train)
    if isinstance(recipe, Unplanned):
        return recipe
    against = why_not_staged(layout, len(model.decoder.layers))
    if against:
        return Unplanned(name, against, (f"{path}.parallel",))
    traffic, network, qualified = step_traffic(sheet, workload, prefix, path, train, model, site, layout)
    declared = sheet.maybe(f"{path}.mfu", train.mfu.value if train.mfu else None, "share")
    utilisation = sheet.choose(Kind.SHARE, f"{path}.mfu", declared, nodes=nodes)
    if utilisation is not None:
        computed = _by_utilisation(sheet, prefix, path, train, model, recipe, site, gpus, utilisation)
        band = None
    else:
        computed = _by_steps(sheet, prefix, path, train, model, recipe, site, layout, network)
        crossed = _crossed(sheet, workload, prefix, site, layout)
        band = None if qualified or crossed else BAND
    if isinstance(computed, Unplanned):
        return computed
    if traffic is None:
        why = "as computed: no network is known" if qualified else "as computed: no network between its GPUs"
        return sheet.derive(name, "tokens/s", why, lambda c: c, computed, band=band)
    return sheet.derive(
        name,
        "tokens/s",
        "smaller of what is computed and tokens of a step ÷ what the network must move for it, perfectly overlapped",
        lambda c, t, b, s: min(c, b * s / t) if t else c,
        computed,
        traffic,
        sheet.declared(f"{path}.global_batch", train.global_batch, "sequences"),
        sheet.declared(f"{path}.sequence", train.sequence, "tokens"),
        band=band,
    )


def _crossed(sheet: Sheet, workload: str, prefix: str, site: Site, layout: Layout) -> bool:
    """Whether tensor ranks leave the domain, which the plan then says with what it costs."""
    exchange, step = (sheet.figures.get(f"{prefix}.{n}") for n in ("step_tensor_exchange", "computed_step_time"))
    if layout.tp <= site.domain_gpus or exchange is None or step is None:
        return False
    sheet.limit(
        f"{speed_of(workload)} has no band: its constants were fitted with tensor ranks inside a domain; here "
        f"{layout.tp} ranks cross domains of {site.domain_gpus}, and their exchange takes {exchange} of the {step} of "
        "a step; fewer tensor ranks with pipeline stages over nodes, or measure a step and state step_time"
    )
    return True


def _by_steps(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    recipe: Recipe,
    site: Site,
    layout: Layout,
    network: Figure | None,
) -> Figure | Unplanned:
    """tokens/s by the estimated time of a step."""
    step = step_figures(sheet, prefix, path, train, model.decoder, recipe, site, layout, network)
    if isinstance(step, Unplanned):
        return step
    return sheet.derive(
        f"{prefix}.computed_tokens_per_s",
        "tokens/s",
        "sequences per step × tokens ÷ computed step time",
        lambda b, s, t: b * s / t,
        sheet.declared(f"{path}.global_batch", train.global_batch, "sequences"),
        sheet.declared(f"{path}.sequence", train.sequence, "tokens"),
        step,
    )


def _by_utilisation(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    recipe: Recipe,
    site: Site,
    gpus: Figure,
    utilisation: Figure,
) -> Figure | Unplanned:
    """tokens/s by a declared or measured share of peak."""
    gpu = site.gpu
    form = {"fp16": "bf16", "mxfp8": "fp8", "nvfp4": "fp4"}.get(recipe.precision, recipe.precision)
    peak = gpu.dense.of(form) if gpu else None  # type: ignore[arg-type]  # formats of recipes are catalogue formats
    if gpu is None or peak is None:
        return sheet.miss(
            f"{prefix}.tokens_per_s", f"the catalogue gives no {form} rate of the pool's GPUs", f"{path}.step_time"
        )
    rest = training_work(model.decoder, recipe.sequence).total - 6 * model.multiplied.value

    def gflop(parameters: float, sequence: float) -> float:
        return (6 * parameters + rest * sequence / recipe.sequence) / 1e9

    work = sheet.derive(
        f"{prefix}.flops_per_token",
        "GFLOP",
        "6 · multiplied parameters + attention over the sequence (physics/training/work.py)",
        gflop,
        model.multiplied,
        sheet.declared(f"{path}.sequence", train.sequence, "tokens"),
    )
    return sheet.derive(
        f"{prefix}.computed_tokens_per_s",
        "tokens/s",
        "GPUs × peak × MFU ÷ FLOP per token",
        lambda g, p, m, w: g * p * 1e12 * m / (w * 1e9),
        gpus,
        sheet.published(gpu, f"dense_{form}", peak, "TFLOP/s"),
        utilisation,
        work,
    )


def _goodput(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    nodes: Figure,
    restart: Figure,
    checkpoint: CheckpointPlan | Unplanned | None,
    speed: Figure | Unplanned,
) -> Figure | None:
    name = f"{prefix}.goodput"
    if train.checkpoint is None:
        return _without_checkpoints(sheet, prefix, path, train, nodes, restart, speed)
    if not isinstance(checkpoint, CheckpointPlan) or checkpoint.stall is None:
        sheet.miss(name, "the stall of a checkpoint is unknown", f"{path}.checkpoint")
        return None
    computed = sheet.derive(
        name,
        "share",
        "(1 − failures × (restart + interval/2)) ÷ (1 + stall/interval), ETTR of arXiv:2410.21680",
        ettr,
        nodes,
        failure_rate(sheet),
        restart,
        checkpoint.every,
        checkpoint.stall,
    )
    return sheet.picked(Kind.SHARE, name, computed, nodes=int(nodes.value))


def _without_checkpoints(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    nodes: Figure,
    restart: Figure,
    speed: Figure | Unplanned,
) -> Figure | None:
    """Productive share of a run that every failure starts again from its first token."""
    name = f"{prefix}.goodput"
    if train.tokens is None or isinstance(speed, Unplanned):
        reason = "without checkpoints every failure starts the run again, and how long the run is, is unknown"
        sheet.miss(name, reason, f"{path}.checkpoint", f"{path}.tokens")
        return None
    computed = sheet.derive(
        name,
        "share",
        "t ÷ (M·e^(R/M)·(e^(t/M) − 1)): without checkpoints every failure starts the run of t again (Daly 2006, one "
        "interval)",
        lambda k, f, r, n, v: ettr_exact(k, f, r, n * 1e6 / v, 0.0) if v and n else 0.0,
        nodes,
        failure_rate(sheet),
        restart,
        sheet.declared(f"{path}.tokens", train.tokens, "Mtok"),
        speed,
    )
    return sheet.picked(Kind.SHARE, name, computed, nodes=int(nodes.value))
