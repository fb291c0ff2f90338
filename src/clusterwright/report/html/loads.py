"""Load, speed, payload and checkpoints of each workload: the numbers, each beside what it must reach."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure, format_value
from clusterwright.plan.results.clusters import CollectivePlan
from clusterwright.plan.results.payloads import LinkPlan, PayloadPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan
from clusterwright.report.html.derivations import Derivations, inline_figure
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table
from clusterwright.report.html.load_curves import render_curve
from clusterwright.report.html.words import count_words

Row = tuple[Child, Figure | None]
_LINKS: Final = {
    "source": "Source",
    "network": "Network",
    "cache": "Cache",
    "nic": "Storage adapters of",
    "pcie": "GPU host links of",
    "memory": "Host memory of",
    "loader": "Loader on",
}


def render_loads(plan: Plan, derivations: Derivations) -> Html:
    """Service or training, capacity, payload chain and checkpoints of every workload; "" when nothing was planned."""
    return markup(
        (_workload(w, derivations) for w in plan.workloads), _together(plan, derivations), _network(plan, derivations)
    )


def _workload(workload: WorkloadPlan, derivations: Derivations) -> Html:
    parts = [
        _speed(workload, derivations),
        _curve(workload),
        _payload(workload.payload, derivations) if isinstance(workload.payload, PayloadPlan) else Html(""),
        _checkpoint(workload.checkpoint, derivations) if isinstance(workload.checkpoint, CheckpointPlan) else Html(""),
    ]
    if not any(parts):
        return Html("")
    kind = {"inference": "serving", "training": "training"}.get(workload.kind, "")
    return markup(h("h3", workload.name, h("span", f" {kind}", cls="soft")), parts)


def _curve(workload: WorkloadPlan) -> Html:
    service = workload.service
    if not isinstance(service, ServicePlan) or service.curve is None:
        return Html("")
    what = "all prefill and decode workers" if service.split is not None else "one replica"
    return render_curve(service.curve, f"Latency against requests in flight, {what}", f"curve-{workload.name}")


def _speed(workload: WorkloadPlan, derivations: Derivations) -> Html:
    rows: list[Row] = []
    if isinstance(workload.service, ServicePlan):
        rows += _service(workload.service)
    if isinstance(workload.training, TrainingPlan):
        rows += _training(workload.training)
    capacity = workload.capacity
    if capacity is not None and not isinstance(capacity, Unplanned):
        rows += [
            ("target work", capacity.target_work),
            ("useful work of a paid GPU-month", capacity.useful_per_gpu_month),
            ("paid GPU-months that the target needs", capacity.gpu_months),
        ]
    return derivations.ledger(rows)


def _service(service: ServicePlan) -> list[Row]:
    rate = service.replica_rate
    rows: list[Row] = [
        ("declared load", service.rate),
        ("what one replica carries within the targets", rate if isinstance(rate, Figure) else None),
        ("capacity of the placed replicas", service.capacity),
        ("requests in flight per replica", service.in_flight),
        (_beside(f"time to first token, {service.ttft_is}", service.ttft_target, service.ttft_met), service.ttft),
        (_beside(f"time per output token, {service.tpot_is}", service.tpot_target, service.tpot_met), service.tpot),
    ]
    if service.split is not None:
        split = service.split
        rows += [
            (
                f"what one of {split.prefill.wanted} prefill workers carries ({split.prefill.layout})",
                split.prefill.rate,
            ),
            (f"what one of {split.decode.wanted} decode workers carries ({split.decode.layout})", split.decode.rate),
            ("handover of a mean prompt's cache", split.handover),
            (f"{split.gpus} GPUs of all workers, per hour", split.per_h),
            ("per million output tokens at the declared load", split.per_mtok),
        ]
    return rows


def _training(training: TrainingPlan) -> list[Row]:
    speed = training.tokens_per_s
    late = (
        {True: " (met)", False: " (missed)"}.get(training.meets_deadline, "")
        if training.meets_deadline is not None
        else ""
    )
    target = f"wall time to the target{late}"
    return [
        ("tokens per second while it runs", speed if isinstance(speed, Figure) else None),
        ("step", training.step_time),
        ("of it the network needs at least", training.network_time),
        ("mean time between failures that stop it", training.mttf),
        ("share of wall time that moves it forward", training.goodput),
        (target, training.time_to_target),
        ("deadline", training.deadline),
        ("GPU-hours of that time", training.gpu_hours),
    ]


def _beside(said: str, target: tuple[str, Figure] | None, met: bool | None) -> str:
    if target is None:
        return said
    verdict = {True: "", False: ", missed", None: "; a mean proves no percentile"}[met]
    return f"{said} (target {target[0].replace('_', ' ')} {target[1]}{verdict})"


def _payload(payload: PayloadPlan, derivations: Derivations) -> Html:
    stops = [_stop(link, payload) for link in payload.links]
    each = f"{format_value(payload.readers.value)} × {payload.size}"
    stops.append(h("li", h("div", h("b", "Replicas"), each, cls="stop")))
    return markup(
        h("h4", "Payload: what every replica must load"),
        h("p", _payload_words(payload)),
        h("ol", stops, cls="chain", aria_label="The way of the payload"),
        _folded(
            "Payload",
            derivations,
            [
                ("required rate", payload.required_rate),
                *((f"{_LINKS[link.kind].lower()} {_name(link.path)}", link.rate) for link in payload.links),
                ("time from the source", payload.time),
                ("time from the cache", payload.time_cached),
                ("start of the engine", payload.startup),
                ("cold start from the source", payload.cold_start),
                ("cold start from the cache", payload.cold_start_cached),
                ("declared cold start", payload.target),
            ],
        ),
        _unknown(payload.unknown),
    )


def _folded(title: str, derivations: Derivations, rows: list[Row]) -> Html:
    summary = (f"{title} ", h("span", "every number with its derivation", cls="soft"))
    return fold(summary, derivations.ledger(rows), cls="fold")


def _payload_words(payload: PayloadPlan) -> Child:
    count = payload.readers.value
    readers = "1 reader needs" if count == 1 else f"{format_value(count)} readers need"
    size, within = str(payload.size), str(payload.within)
    rate = f"{readers} {size} each within {within}: {payload.required_rate}."
    if payload.meets_rate is None:
        return f"{rate} Whether the way carries that is unknown."
    if payload.meets_rate:
        return (f"{rate} Every known link from the source carries that.", _cold_words(payload))
    binding = payload.binding
    carries = f"The way carries only {binding.rate}." if binding else "The way does not carry that."
    return (rate, " ", h("b", carries), _cold_words(payload))


def _cold_words(payload: PayloadPlan) -> str:
    if payload.cold_start is None:
        return ""
    beside = f", target {payload.target}" if payload.target is not None else ""
    missed = ", missed" if payload.meets_target is False else ""
    return f" Cold start from the source {payload.cold_start}{beside}{missed}."


def _stop(link: LinkPlan, payload: PayloadPlan) -> Html:
    binding = payload.binding is not None and link.path == payload.binding.path and link.kind == payload.binding.kind
    enough = "" if link.enough else ", not enough"
    note = h("em", f" binding{enough}") if binding else enough
    return h(
        "li",
        h(
            "div",
            h("b", f"{_LINKS[link.kind]} {_name(link.path)}"),
            f"{link.rate}, {link.time}",
            note,
            cls="stop binding" if binding else "stop",
        ),
    )


def _name(path: str) -> str:
    """What a path names below its section: `object` of `storage.stores.object.read`."""
    parts = path.split(".")
    if parts[0] == "pools":
        return parts[1]
    return parts[2] if len(parts) > 2 else path


def _checkpoint(checkpoint: CheckpointPlan, derivations: Derivations) -> Html:
    return markup(
        h("h4", f"Checkpoints, {checkpoint.mode}hronous"),
        derivations.ledger(
            [
                ("size of one checkpoint", checkpoint.size),
                ("declared interval", checkpoint.every),
                ("time to write", checkpoint.write_time),
                (_limit("stall per checkpoint", checkpoint.stall_within, checkpoint.meets_stall), checkpoint.stall),
                ("share of wall time stalled", checkpoint.stall_share),
                (_limit("restore", checkpoint.restore_within, checkpoint.meets_restore), checkpoint.restore),
                ("best interval by Young", checkpoint.young),
                ("best interval by Daly", checkpoint.daly),
                ("share of time lost at the declared interval", checkpoint.waste),
                ("share of time lost at the best interval", checkpoint.best_waste),
                (
                    _limit("most work lost by one failure", checkpoint.lost_work_target, checkpoint.meets_lost_work),
                    checkpoint.lost_work,
                ),
            ]
        ),
        _unknown(checkpoint.unknown),
    )


def _limit(said: str, limit: Figure | None, holds: bool | None) -> str:
    if limit is None:
        return said
    verdict = {True: ", planned to hold", False: ", does not hold"}[holds] if holds is not None else ""
    return f"{said} (at most {limit}{verdict})"


def _unknown(unknown: tuple[Unplanned, ...]) -> Html:
    if not unknown:
        return Html("")
    return h("ul", (h("li", "Unknown: ", u.reason) for u in unknown), cls="small")


def _together(plan: Plan, derivations: Derivations) -> Html:
    if plan.payload_rate is None:
        return Html("")
    return markup(
        h("h3", "All workloads loading at once"),
        derivations.ledger([("rate that storage and network must deliver", plan.payload_rate)]),
    )


def _network(plan: Plan, derivations: Derivations) -> Html:
    """Bounds as a table of operations by scope; the derivations folded below."""
    collectives = plan.network.collectives
    if not collectives and not plan.network.unknown:
        return Html("")
    scopes = list(dict.fromkeys((c.pool, c.nodes) for c in collectives))
    known = {(c.operation, c.pool, c.nodes): c for c in collectives}
    operations = list(dict.fromkeys(c.operation for c in collectives))
    rows = ((op, *(_bounds(known.get((op, pool, nodes))) for pool, nodes in scopes)) for op in operations)
    heads = ("Operation", *(f"{count_words(nodes, 'node')} of {pool}" for pool, nodes in scopes))
    ledger: list[Row] = []
    for c in collectives:
        where = f"{c.operation}, {count_words(c.nodes, 'node')} of {c.pool}"
        ledger += [(f"{where}: bound", c.bound), (f"{where}: reference", c.reference)]
    return markup(
        h("h3", "Collectives, bus bandwidth"),
        h("p", "Evidence above a bound is invalid. Above a reference look again; far below it look for the cause."),
        table(heads, rows, caption="Bound and reference per collective", cls="stack") if collectives else None,
        _folded("Collectives", derivations, ledger) if ledger else None,
        _unknown(plan.network.unknown),
    )


def _bounds(collective: CollectivePlan | None) -> Child:
    if collective is None:
        return None
    return (
        h("p", "bound ", inline_figure(collective.bound)),
        h("p", "reference ", inline_figure(collective.reference)),
    )
