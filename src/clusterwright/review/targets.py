"""What a brief asks for in a way that cannot be judged, or that contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.lib.figures import Figure, evaluate, format_amount
from clusterwright.model.findings import Severity
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted

_TABLE = RuleTable("workload")


@_TABLE.rule(
    "latency-without-percentile",
    Severity.ERROR,
    75,
    why="'1 s' as a mean, a median or a 99th percentile are three different clusters.",
    satisfy="name the percentile: ttft_p95, tpot_p95",
    example="target: {ttft_p95: 1 s, tpot_p95: 50 ms}",
    source="MLPerf Inference rules: server scenarios are judged at the 99th percentile of TTFT and TPOT",
)
def latency_without_percentile(subject: Subject) -> Iterator[Hit]:
    """A latency target, or a latency requirement, has no percentile."""
    for name, workload in subject.workloads.items():
        for field in ("ttft", "tpot"):
            value = getattr(workload.target, field) if workload.target else None
            if value is not None:
                yield Hit(f"workloads.{name}.target.{field}", f"target {field} of {name} is {value} at no percentile")
    acceptance = subject.architecture.acceptance
    for name, requirement in (acceptance.requirements if acceptance else {}).items():
        if requirement.metric in ("ttft", "tpot"):
            path = f"acceptance.requirements.{name}.metric"
            yield Hit(path, f"requirement {name} limits {requirement.metric} at no percentile")


@_TABLE.rule(
    "survive-untied",
    Severity.ERROR,
    60,
    why="'One node' of which pool? A loss that is tied to no dependency can be neither planned nor rehearsed.",
    satisfy="name the pools that the workload runs on",
    example="pools: [gpu]\ntarget: {survive: 1 node}",
    source="Clusterwright: a failure scenario names what fails",
)
def survive_untied(subject: Subject) -> Iterator[Hit]:
    """A loss must be survived and the file does not say of what: the workload names none of several GPU pools."""
    for name, workload in subject.workloads.items():
        survive = workload.target.survive if workload.target else None
        if survive is None or survive.value <= 0:
            continue
        if not workload.pools and len(subject.gpu_pools) > 1:
            message = f"{name} must survive {survive} and names no pool; GPU pools: {', '.join(subject.gpu_pools)}"
            yield Hit(f"workloads.{name}.target.survive", message)


@_TABLE.rule(
    "survive-above-pool",
    Severity.ERROR,
    75,
    why="When all nodes are lost nothing is left that could carry anything.",
    satisfy="survive fewer nodes than the pools have, or add nodes",
    example='pools: {gpu: {nodes: "gpu-[001-002]"}}\ntarget: {survive: 1 node}',
    source="Clusterwright: nodes of the workload's pools",
)
def survive_above_pool(subject: Subject) -> Iterator[Hit]:
    """As many nodes must be survived as the workload's pools have."""
    for name, workload in subject.workloads.items():
        survive = workload.target.survive if workload.target else None
        nodes = sum(pool.node_count for pool in subject.pools_of(name).values())
        if survive is not None and nodes and survive.value >= nodes:
            message = f"{name} must survive {survive}; its pools have {counted(nodes, 'node')}"
            yield Hit(f"workloads.{name}.target.survive", message)


@_TABLE.rule(
    "availability-untied",
    Severity.WARNING,
    45,
    why="99.9 % allows 43 minutes a month; one replacement of a server takes longer than that.",
    satisfy="declare survive: 1 node or more, or lower the availability",
    example="target: {availability: 99.9%, survive: 1 node}",
    source="arithmetic: (1 − availability) × 730 h against the pool's replacement time",
)
def availability_untied(subject: Subject) -> Iterator[Hit]:
    """An availability is promised that one node's replacement breaks, and no loss need be survived."""
    for name, workload in subject.workloads.items():
        target = workload.target
        if target is None or target.availability is None or (target.survive is not None and target.survive.value > 0):
            continue
        budget_h = (1 - target.availability.value) * 730
        for pool_name, pool in subject.pools_of(name).items():
            if pool.replacement is not None and pool.replacement.within.to("h") > budget_h:
                allowed = f"{name} promises {target.availability}: {budget_h:.1f} h of absence a month"
                message = f"{allowed}; replacing a node of {pool_name} takes {pool.replacement.within}"
                yield Hit(f"workloads.{name}.target.availability", message)
                break


@_TABLE.rule(
    "detection-above-recovery",
    Severity.ERROR,
    45,
    why="Recovery starts when the loss is noticed; the time to notice is part of it.",
    satisfy="let detection be well below recovery",
    example="target: {detection: 30 s, recovery: 10 min}",
    source="Clusterwright: recovery is counted from the loss",
)
def detection_above_recovery(subject: Subject) -> Iterator[Hit]:
    """Noticing a loss may take longer than recovering from it."""
    for name, workload in subject.workloads.items():
        target = workload.target
        if target is None or target.detection is None or target.recovery is None:
            continue
        if target.detection.value >= target.recovery.value:
            message = f"{name}: detection {target.detection} is not below recovery {target.recovery}"
            yield Hit(f"workloads.{name}.target.detection", message)


@_TABLE.rule(
    "length-above-model",
    Severity.ERROR,
    70,
    why="A request longer than the engine's limit is refused; a limit above the model's context gives nonsense.",
    satisfy="raise max_model_len up to the model's context, or shorten the requests",
    example="serve: {in_p95: 3000 tokens, out_p95: 600 tokens, max_model_len: 8192 tokens}",
    source="vLLM engine arguments, max_model_len; the model's config.json, max_position_embeddings",
)
def length_above_model(subject: Subject) -> Iterator[Hit]:
    """Requests are longer than the engine's limit, or that limit than the model's context."""
    for name, workload in subject.workloads.items():
        serve, path = workload.serve, f"workloads.{name}.serve"
        if serve is None:
            continue
        model = subject.catalogue.find_model(workload.model)
        longest = (serve.in_p95 or serve.input).value + (serve.out_p95 or serve.output).value
        if serve.max_model_len is not None and longest > serve.max_model_len.value:
            message = f"{name} has requests of {longest:g} tokens (p95); max_model_len is {serve.max_model_len}"
            yield Hit(f"{path}.max_model_len", message)
        limit = serve.max_model_len.value if serve.max_model_len is not None else longest
        if model is not None and limit > model.max_context:
            message = f"{name} wants {limit:g} tokens; {model.name} has a context of {model.max_context:,} tokens"
            yield Hit(f"{path}.max_model_len" if serve.max_model_len is not None else f"{path}.in", message)


@_TABLE.rule(
    "percentile-below-mean",
    Severity.ERROR,
    40,
    why="A 95th percentile below the mean is possible for odd distributions only; usually the two were exchanged.",
    satisfy="check the two numbers",
    example="serve: {in: 1000 tokens, in_p95: 3000 tokens, ...}",
    source="arithmetic; lengths of published traces (Azure LLM inference 2023, BurstGPT) have p95 above the mean",
)
def percentile_below_mean(subject: Subject) -> Iterator[Hit]:
    """A 95th percentile of lengths is below the mean."""
    for name, workload in subject.workloads.items():
        serve = workload.serve
        if serve is None:
            continue
        for mean_name, mean, late_name in (("in", serve.input, "in_p95"), ("out", serve.output, "out_p95")):
            late = getattr(serve, late_name)
            if late is not None and late.value < mean.value:
                path = f"workloads.{name}.serve.{late_name}"
                yield Hit(path, f"{name}: {late_name} is {late}, below the mean {mean_name} of {mean}")


@_TABLE.rule(
    "concurrency-below-load",
    Severity.WARNING,
    50,
    why="By Little's law requests in flight are rate × time in the system; memory planned for fewer is too small.",
    satisfy="raise concurrency to what rate and latency imply, or lower the rate",
    example="serve: {rate: 8 req/s, concurrency: 64, ...}",
    source="Little's law; time in the system at the planned speed",
)
def concurrency_below_load(subject: Subject) -> Iterator[Hit]:
    """Declared concurrency is below what the declared rate implies at the planned speed."""
    for planned in subject.plan.workloads:
        serve = subject.workloads[planned.name].serve
        service = planned.service
        if serve is None or serve.concurrency is None or service is None or isinstance(service, Unplanned):
            continue
        if service.in_flight is None or planned.replicas_placed < 1 or service.unreachable:
            continue
        implied = service.in_flight.value * planned.replicas_placed
        if implied > serve.concurrency:
            message = f"{serve.rate} of {planned.name} keep {implied:.0f} requests in flight"
            path = f"workloads.{planned.name}.serve.concurrency"
            yield Hit(path, f"{message}; declared are {serve.concurrency}")


@_TABLE.rule(
    "deadline-missed",
    Severity.ERROR,
    80,
    why="More GPUs, more time or less work: one of the three must move, and better now than in week two.",
    satisfy="add GPUs, extend the deadline, or lower the target work",
    example="train: {gpus: 8, tokens: 200 Mtok, deadline: 3 days, ...}",
    source="Clusterwright's plan: tokens ÷ (planned rate × goodput)",
)
def deadline_missed(subject: Subject) -> Iterator[Hit]:
    """The planned training does not finish by its deadline."""
    for planned in subject.plan.workloads:
        train, training = subject.workloads[planned.name].train, planned.training
        if train is None or train.tokens is None or train.deadline is None:
            continue
        path = f"workloads.{planned.name}.train.deadline"
        if training is None or isinstance(training, Unplanned):
            reason = training.reason if training is not None else "the training is not planned"
            yield undecided(path, f"how long the training takes ({reason})")
        elif training.meets_deadline is None or training.time_to_target is None:
            reason = getattr(training.tokens_per_s, "reason", "its speed is not known")
            yield undecided(path, f"how long the training takes ({reason})")
        elif not training.meets_deadline:
            hours = training.time_to_target.value
            yield Hit(
                path,
                f"{train.tokens} on {counted(train.gpus, 'GPU')} take {hours:.0f} h; the deadline is {train.deadline}",
            )


#: Part of a step from which moving its bytes is called what limits it; our default: less hides behind computation.
MOVED: Final = 0.5


@_TABLE.rule(
    "training-network-slow",
    Severity.WARNING,
    70,
    why="GPUs that wait for gradients and weights are paid for like those that compute; published training speeds come "
    "from fabrics with one 400 Gb/s NIC per GPU.",
    satisfy="raise the rate of the compute network, lower its oversubscription, keep tp, cp and shards inside nodes, "
    "or measure a step and state train.step_time",
    example="networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8, oversubscription: 1}}",
    source="Clusterwright's plan: bytes that cross the edge of a node per step ÷ its NICs, a lower bound",
    area="network",
)
def training_network(subject: Subject) -> Iterator[Hit]:
    """Moving the bytes of a training step takes much of it, or the network is slower than its speed was seen on."""
    for planned in subject.plan.workloads:
        training = planned.training
        if not isinstance(training, TrainingPlan) or training.network_time is None or training.step_time is None:
            continue
        path = f"workloads.{planned.name}.train"
        part = training.network_time.value / training.step_time.value if training.step_time.value else 0.0
        moved = f"moving its bytes takes at least {training.network_time} of a step of {training.step_time}"
        waits = training.exchange_time
        if waits is not None and waits.value >= MOVED * training.step_time.value:
            share = waits.value / training.step_time.value
            said = f"exchanges among GPUs take {waits} of a step of {training.step_time}"
            yield Hit(path, f"{planned.name}: {said} ({share:.0%}, beside computation); {moved}", weight=80)
        elif part >= MOVED:
            yield Hit(path, f"{planned.name}: {moved} ({part:.0%}, if nothing of it is hidden)", weight=80)
        elif training.slow_network:
            slow = "the network is slower than those that the constants of training speed were fitted on"
            yield Hit(path, f"{planned.name}: {training.tokens_per_s} has no band, {slow}; {moved}")


@_TABLE.rule(
    "latency-unreachable",
    Severity.ERROR,
    90,
    why="A target below what one request alone takes on an idle replica is missed at any load: no number of replicas "
    "carries it.",
    satisfy="speed up one request, or take a target that one request can meet; replicas do not help",
    example="serve: {parallel: {tp: 8}, precision: fp8, ...}",
    source="Clusterwright's plan: roofline of a request alone; at the declared load a warning, since queues are "
    "modelled with a larger error than a rule should refuse on",
)
def latency_unreachable(subject: Subject) -> Iterator[Hit]:
    """A latency target is below what one request alone takes; a warning where only the declared load misses it."""
    for planned in subject.plan.workloads:
        service = planned.service
        if not isinstance(service, ServicePlan):
            continue
        if service.unreachable:
            yield from _unreachable(subject, planned.name, service)
        elif service.capacity is None or service.capacity.value >= service.rate.value:  # else load-above-capacity
            yield from _missed_at_load(subject, planned.name, service)


#: What shortens a request, by the latency: prefill is bound by FLOP/s, a decode step by bytes read.
_HELPS: Final = {
    "ttft": "more GPUs per replica, shorter or cached prompts, a format or GPU with more FLOP/s, or a longer target; "
    "more replicas do not help",
    "tpot": "more GPUs per replica, a smaller format, GPUs with more memory bandwidth, or a longer target; "
    "more replicas do not help",
}


def _latencies(service: ServicePlan) -> Iterator[tuple[str, Figure, Figure]]:
    """(label, planned, target) of each latency that has both; s or ms by their own units."""
    for found, goal in ((service.ttft, service.ttft_target), (service.tpot, service.tpot_target)):
        if found is not None and goal is not None:
            yield goal[0], found, goal[1]


def _seconds(value: float, unit: str) -> float:
    return value / 1e3 if unit == "ms" else value


def _unreachable(subject: Subject, name: str, service: ServicePlan) -> Iterator[Hit]:
    """What a request alone takes: the planned latency at (nearly) no rate, so that neither queue nor batch is in it."""
    found = False
    for label, planned, target in _latencies(service):
        alone = _seconds(evaluate(planned, {service.rate.name: service.rate.value * 1e-9}), planned.unit)
        goal = _seconds(target.value, target.unit)
        if alone > goal:
            found = True
            stated = getattr(subject.workloads[name].target, label)
            message = f"one request of {name} alone takes {_time(alone)} ({_part(label)}); target {label} is {stated}"
            path = f"workloads.{name}.target.{label}"
            yield Hit(path, f"{message}: {alone / goal:.3g} times as long, at any load", _HELPS[label[:4]])
    if not found:
        label = service.binds or "its latency targets"
        path = f"workloads.{name}.target" + (f".{service.binds}" if service.binds else "")
        yield Hit(path, f"no rate of {name} keeps {label}: even a replica with one request in flight misses it")


def _part(label: str) -> str:
    return "prefill and one step" if label.startswith("ttft") else "one decode step"


def _time(seconds: float) -> str:
    return format_amount(seconds * 1e3, "ms") if seconds < 1 else format_amount(seconds, "s")


def _missed_at_load(subject: Subject, name: str, service: ServicePlan) -> Iterator[Hit]:
    for label, planned, target in _latencies(service):
        if _seconds(planned.value, planned.unit) > _seconds(target.value, target.unit):
            stated = getattr(subject.workloads[name].target, label)
            message = f"{name} would see {label.split('_')[0]} of {planned} at its load; target {label} is {stated}"
            remedy = "more replicas, more GPUs per replica, a smaller format, or another target"
            yield Hit(f"workloads.{name}.target.{label}", message, remedy, severity=Severity.WARNING, weight=70)


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
