"""A workload after all were placed: latency at its load, losses, payload, checkpoints, capacity."""

from __future__ import annotations

from dataclasses import replace

from clusterwright.lib.figures import Figure
from clusterwright.plan.capacities import serving_capacity, training_capacity
from clusterwright.plan.checkpoints import plan_checkpoint
from clusterwright.plan.drafts import Draft
from clusterwright.plan.economics import Use
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.losses import plan_losses
from clusterwright.plan.models import PlannedModel, replica_weights, served_in
from clusterwright.plan.payloads import plan_payload
from clusterwright.plan.placing import Nodes, Placement
from clusterwright.plan.prefix_reuse import plan_reuse
from clusterwright.plan.results.layouts import Assignment, Layout
from clusterwright.plan.results.money import CapacityPlan
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.plans import WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan
from clusterwright.plan.service_costs import service_costs
from clusterwright.plan.services import Load, at_load, binding, read_targets
from clusterwright.plan.serving_curves import replica_curve
from clusterwright.plan.speculation import plan_kept
from clusterwright.plan.split_services import split_at_load
from clusterwright.plan.starting import started
from clusterwright.plan.trainings import failure_rate, plan_mttf, plan_restart, plan_training


def finish_workload(
    sheet: Sheet,
    draft: Draft,
    drafts: list[Draft],
    placement: Placement,
    pools: list[Nodes],
    use: Use | Unplanned,
) -> WorkloadPlan:
    """Everything that follows from where the workloads sit."""
    mine, placed = _placed(draft, placement)
    nodes = sheet.planned(
        f"workloads.{draft.name}.nodes",
        max(1, len({a.node for a in mine})),
        "nodes",
        "nodes that this plan places it on",
    )
    wanted = draft.wanted or (draft.serve.replicas or 1 if draft.serve else 1)
    wanted += draft.first.wanted if draft.first else 0
    service: ServicePlan | Unplanned | None = None
    training: TrainingPlan | None = None
    checkpoint: CheckpointPlan | Unplanned | None = None
    capacity: CapacityPlan | Unplanned | None = None
    if draft.serve is not None:
        service = _service(sheet, draft, drafts, placement, pools, placement.placed.get(draft.name, 0))
        if isinstance(service, ServicePlan) and draft.layout and draft.lengths:
            capacity = serving_capacity(sheet, draft.name, service, draft.layout, draft.lengths, use)
    elif draft.train is not None and draft.site is not None:
        training, checkpoint, capacity = _training(sheet, draft, drafts, placement, pools, nodes, use)
    return WorkloadPlan(
        name=draft.name,
        kind=draft.workload.kind,
        model=draft.workload.model,
        pool=draft.site.name if draft.site else "",
        gpu=draft.site.gpu.name if draft.site and draft.site.gpu else "",
        layout=draft.layout,
        replicas_wanted=wanted,
        replicas_placed=placed,
        memory=started(sheet, draft, "decode" if draft.first else None),
        choices=draft.choices,
        placement=mine,
        service=service,
        training=training,
        payload=_payload(sheet, draft, mine, wanted, nodes),
        checkpoint=checkpoint,
        capacity=capacity,
        layouts=draft.front,
    )


def _placed(draft: Draft, placement: Placement) -> tuple[tuple[Assignment, ...], int]:
    """Where its replicas are, decode workers before prefill workers, and how many have a place."""
    mine = tuple(a for a in placement.assignments if a.workload == draft.name)
    placed = placement.placed.get(draft.name, 0)
    if draft.first is None:
        return mine, placed
    others = tuple(
        replace(a, workload=draft.name, replica=a.replica + placed)
        for a in placement.assignments
        if a.workload == draft.first.name
    )
    return mine + others, placed + placement.placed.get(draft.first.name, 0)


def _split(
    sheet: Sheet, draft: Draft, drafts: list[Draft], placement: Placement, pools: list[Nodes]
) -> ServicePlan | Unplanned:
    """A service whose prefill and decode workers are apart."""
    name, first, serve = draft.name, draft.first, draft.serve
    if first is None or serve is None or not isinstance(draft.rate, Figure):
        return Unplanned(f"workloads.{name}.service", "prefill and decode workers cannot be planned")
    found = split_at_load(sheet, draft, (placement.placed.get(first.name, 0), placement.placed.get(name, 0)))
    if isinstance(found, Unplanned):
        return found
    every = [d for d in drafts if d.request]
    losses = [
        replace(loss, reason=f"{what} workers {loss.reason}")
        for what, group in (("prefill", first), ("decode", draft))
        for loss in plan_losses(sheet, group, every, placement, pools, group.rate)
    ]
    targets = read_targets(sheet, name, draft.workload.target)
    prefix = f"workloads.{name}.service"
    memory = None if isinstance(first.memory, Unplanned) else first.memory.kv_tokens
    plan = ServicePlan(
        sheet.declared(f"workloads.{name}.serve.rate", serve.rate, "req/s"),
        draft.rate, draft.for_load, draft.for_failures, found.capacity, found.ttft, found.tpot, found.in_flight,
        *targets, tuple(losses), "", plan_reuse(sheet, first.name, prefix, serve, memory),
        plan_kept(sheet, name, prefix, serve), found.curve, found.split, found.rate_gpus,
    )  # fmt: skip
    _check_service(sheet, draft, plan, placement.placed.get(name, 0))
    return plan


def _service(
    sheet: Sheet, draft: Draft, drafts: list[Draft], placement: Placement, pools: list[Nodes], placed: int
) -> ServicePlan | Unplanned:
    name, serve, rate = draft.name, draft.serve, draft.rate
    if draft.first is not None:
        return _split(sheet, draft, drafts, placement, pools)
    if serve is None or draft.site is None or rate is None:
        reason = draft.memory.reason if isinstance(draft.memory, Unplanned) else "the model cannot be planned"
        return Unplanned(f"workloads.{name}.service", reason)
    prefix = f"workloads.{name}.service"
    count = sheet.planned(f"{prefix}.placed", max(1, placed), "replicas", "replicas that this plan places")
    capacity = None
    if isinstance(rate, Figure) and rate.value and placed:
        capacity = sheet.derive(
            f"{prefix}.capacity", "req/s", "placed replicas × rate of one", lambda n, r: n * r, count, rate
        )
    load = sheet.declared(f"workloads.{name}.serve.rate", serve.rate, "req/s")
    first, step = read_targets(sheet, name, draft.workload.target)
    seen: tuple[Figure | None, Figure | None, Figure | None] = (None, None, None)
    if isinstance(draft.load, Load) and placed:
        seen = at_load(sheet, prefix, draft.load, count, len(draft.site.nodes))
    losses = plan_losses(sheet, draft, [d for d in drafts if d.request], placement, pools, rate)
    batch = sheet.figures.get(f"{prefix}.batch")
    ours = isinstance(rate, Figure) and rate.own_origin is None
    binds = binding(draft.load, batch) if isinstance(draft.load, Load) and batch and ours else ""
    reused = plan_reuse(
        sheet, name, prefix, serve, None if isinstance(draft.memory, Unplanned) else draft.memory.kv_tokens
    )
    carried = capacity is not None and capacity.value >= load.value
    costs = service_costs(sheet, name, serve, draft.site, draft.layout, placed) if draft.layout and carried else None
    plan = ServicePlan(
        load, rate, draft.for_load, draft.for_failures, capacity, *seen, first, step, losses, binds, reused,
        plan_kept(sheet, name, prefix, serve),
        replica_curve(draft.load, draft.layout.gpus) if isinstance(draft.load, Load) and draft.layout else None,
        costs=costs,
    )  # fmt: skip
    _check_service(sheet, draft, plan, placed)
    return plan


def _check_service(sheet: Sheet, draft: Draft, plan: ServicePlan, placed: int) -> None:
    prefix, path = f"workloads.{draft.name}.service", f"workloads.{draft.name}"
    if plan.capacity is not None and plan.capacity.value < plan.rate.value:
        sheet.misfit(
            f"{prefix}.capacity",
            f"{path}.serve.{'disaggregated' if plan.split else 'replicas'}",
            f"the placed {'workers' if plan.split else 'replicas'} carry {plan.capacity}, the load is {plan.rate}",
        )
    elif plan.capacity is not None and False in (plan.ttft_met, plan.tpot_met):
        sheet.misfit(f"{prefix}.latency", f"{path}.target", _missed(plan))
    asked, room = draft.serve.concurrency if draft.serve else None, sheet.figures.get(f"{prefix}.most_in_flight")
    if asked is not None and room is not None and asked > room.value * max(1, placed):
        sheet.misfit(
            f"{prefix}.most_in_flight",
            f"{path}.serve.concurrency",
            f"{asked} requests are to be in flight, a replica holds {room}",
        )
    if plan.unreachable:
        return  # said of the rate; no number of survivors would do
    for loss in plan.losses:
        counted = draft.serve is not None and draft.serve.replicas is not None
        unknown = isinstance(plan.replica_rate, Unplanned) and (loss.surviving > 0 or not counted)
        if draft.survive and loss.nodes_lost <= draft.survive and not loss.carries and not unknown:
            sheet.misfit(f"{prefix}.losses", f"{path}.target.survive", loss.reason)


def _missed(plan: ServicePlan) -> str:
    """Estimates at the declared load that miss their targets."""
    said = []
    if plan.ttft_met is False and plan.ttft_target:
        said.append(f"TTFT ({plan.ttft_is}) is estimated at {plan.ttft} of {plan.ttft_target[1]}")
    if plan.tpot_met is False and plan.tpot_target:
        said.append(f"TPOT ({plan.tpot_is}) is estimated at {plan.tpot} of {plan.tpot_target[1]}")
    return f"at the declared load {' and '.join(said)}"


def _training(
    sheet: Sheet,
    draft: Draft,
    drafts: list[Draft],
    placement: Placement,
    pools: list[Nodes],
    nodes: Figure,
    use: Use | Unplanned,
) -> tuple[TrainingPlan | None, CheckpointPlan | Unplanned | None, CapacityPlan | Unplanned | None]:
    name, train, site = draft.name, draft.train, draft.site
    if train is None or site is None:
        return None, None, None
    mttf = plan_mttf(sheet, name, nodes)
    restart = plan_restart(sheet, name, draft.workload.target)
    target, rate = draft.workload.target, failure_rate(sheet)
    checkpoint = plan_checkpoint(sheet, name, train, target, draft.model, site, nodes, mttf, restart, rate)
    losses = plan_losses(sheet, draft, [d for d in drafts if d.request], placement, pools, None)
    layout = draft.layout or Layout(dp=train.gpus)
    training = plan_training(sheet, name, train, draft.model, site, nodes, mttf, restart, checkpoint, losses, layout)
    for loss in losses:
        if draft.survive and loss.nodes_lost <= draft.survive and not loss.carries:
            sheet.misfit(f"workloads.{name}.losses", f"workloads.{name}.target.survive", loss.reason)
    tokens = sheet.maybe(f"workloads.{name}.train.tokens", train.tokens, "Mtok")
    return training, checkpoint, training_capacity(sheet, name, training, train.gpus, tokens, use)


def _payload(
    sheet: Sheet, draft: Draft, mine: tuple[Assignment, ...], wanted: int, nodes: Figure
) -> PayloadPlan | Unplanned:
    payload = draft.workload.payload
    if payload is None:
        return sheet.miss(
            f"workloads.{draft.name}.payload_plan",
            "what is loaded, from where and how fast, is not stated: payload and cold start are unknown",
            f"workloads.{draft.name}.payload",
        )
    path = f"workloads.{draft.name}"
    if draft.serve is not None:
        readers = sheet.planned(f"{path}.readers", wanted, "readers", "every replica reads the whole payload")
        weights_path, precision = f"{path}.serve.precision", draft.serve.precision
    else:
        readers = _training_readers(sheet, draft, path)
        weights_path, precision = f"{path}.train.precision", draft.train.precision if draft.train else "bf16"
    weights = None
    if isinstance(draft.model, PlannedModel):
        served = served_in(sheet, weights_path, draft.model, precision)
        weights = replica_weights(sheet, f"{path}.weights", draft.model, served)
    runs = draft.layout is not None and (isinstance(draft.memory, Unplanned) or draft.memory.fits)
    count = sum(len(a.gpus) for a in mine) or (wanted * draft.layout.gpus if runs and draft.layout else 0)
    gpus = sheet.planned(f"{path}.placed_gpus", count, "GPUs", "GPUs that load it by this plan") if count else None
    return plan_payload(sheet, draft.name, payload, draft.workload.target, draft.site, weights, readers, nodes, gpus)


def _training_readers(sheet: Sheet, draft: Draft, path: str) -> Figure:
    """Copies of the weights that a job reads where the file states no readers."""
    layout, train = draft.layout, draft.train
    if train is not None and train.sharding in ("fsdp", "zero3"):
        return sheet.assumed(f"{draft.name}.readers", 1, "readers", "a sharded job reads one copy, each rank its part")
    copies = layout.dp * layout.cp if layout else 1
    return sheet.assumed(f"{draft.name}.readers", copies, "readers", "every data-parallel replica reads one copy")
