"""What does not fit: memory, heads, layers, experts, NVLink domains, servers; and what failures leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.model.language_models import LanguageModel
from clusterwright.model.workloads import Parallel, Workload
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.plans import WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("workload")
_PLAN: Final = "Clusterwright's plan; cw plan --explain prints formula and sources of every number"


def _declared(workload: Workload) -> tuple[str, Parallel] | None:
    """(path below the workload, layout) if the file gives one."""
    if workload.serve is not None and workload.serve.parallel is not None:
        return "serve.parallel", workload.serve.parallel
    if workload.train is not None and workload.train.parallel is not None:
        return "train.parallel", workload.train.parallel
    return None


def _layouts(subject: Subject) -> Iterator[tuple[str, str, Parallel, LanguageModel]]:
    """(workload, path of its layout, layout, model) of every declared layout whose model is known."""
    for name, workload in subject.workloads.items():
        found, model = _declared(workload), subject.catalogue.find_model(workload.model)
        if found is not None and model is not None:
            yield name, f"workloads.{name}.{found[0]}", found[1], model


def _planned(subject: Subject) -> Iterator[tuple[Workload, WorkloadPlan]]:
    for planned in subject.plan.workloads:
        workload = subject.workloads[planned.name]
        if (workload.serve is None) != (workload.train is None):
            yield workload, planned


@_TABLE.rule(
    "memory-does-not-fit",
    Severity.ERROR,
    100,
    why="A replica or rank that does not fit does not start, however many GPUs the cluster has in total.",
    satisfy="use more GPUs per replica, a smaller format, shorter lengths, less concurrency, or GPUs with more memory",
    example="serve: {precision: fp8, parallel: {tp: 4}, max_model_len: 8192 tokens, concurrency: 64, ...}",
    source=_PLAN,
)
def memory_does_not_fit(subject: Subject) -> Iterator[Hit]:
    """Weights, runtime and KV cache (or training state) exceed the memory of a GPU at the declared layout."""
    for workload, planned in _planned(subject):
        kind = "serve" if workload.serve is not None else "train"
        path = f"workloads.{planned.name}.{kind}"
        memory = planned.memory
        if isinstance(memory, Unplanned):
            yield undecided(path, f"the memory of {planned.name} ({memory.reason})", _supply(memory))
        elif not memory.fits:
            parts = " + ".join(f"{label} {figure.value:.1f}" for label, figure in memory.parts)
            layout = f" at {planned.layout}" if planned.layout else ""
            where = f"{path}.parallel" if planned.layout and planned.layout.declared else path
            yield Hit(
                where,
                f"{planned.name}{layout} needs {memory.total.value:.1f} GiB on its fullest GPU ({parts}); usable are "
                f"{memory.usable.value:.1f} GiB of a {planned.gpu}"
                + (f": {'; '.join(memory.why)}" if memory.why else ""),
            )


def _supply(unplanned: Unplanned) -> str:
    return f"supply {listed(unplanned.missing)}" if unplanned.missing else ""


@_TABLE.rule(
    "memory-below-concurrency",
    Severity.ERROR,
    85,
    why="Requests beyond the KV cache wait or are preempted and computed again: latency multiplies.",
    satisfy="add replicas or GPUs per replica, quantise the KV cache, or lower concurrency",
    example="serve: {concurrency: 64, replicas: 2, kv_precision: fp8, ...}",
    source=_PLAN,
)
def memory_below_concurrency(subject: Subject) -> Iterator[Hit]:
    """The KV cache of all replicas holds fewer requests than are declared in flight."""
    for workload, planned in _planned(subject):
        memory, serve = planned.memory, workload.serve
        if serve is None or serve.concurrency is None or isinstance(memory, Unplanned) or not memory.fits:
            continue
        if memory.max_concurrency is None or planned.replicas_placed < 1:
            continue
        held = memory.max_concurrency.value * planned.replicas_placed
        if held < serve.concurrency:
            verb = "holds" if planned.replicas_placed == 1 else "hold"
            message = f"{counted(planned.replicas_placed, 'replica')} {verb} {held:.0f} requests of mean length"
            path = f"workloads.{planned.name}.serve.concurrency"
            yield Hit(path, f"{message}; {planned.name} declares {serve.concurrency} in flight")


@_TABLE.rule(
    "replica-crosses-server",
    Severity.ERROR,
    75,
    why="Across servers every token waits for the network, and either server takes the replica down; for a model that "
    "fits one server both are bought for nothing.",
    satisfy="keep the replica inside one server",
    example="serve: {parallel: {tp: 8}, ...}   # one eight-GPU server",
    source="vLLM documentation, distributed serving: tensor parallelism within a node, pipeline parallelism across",
)
def replica_crosses_server(subject: Subject) -> Iterator[Hit]:
    """A replica spans servers although it fits inside one."""
    for workload, planned in _planned(subject):
        each = subject.gpus_per_node(planned.pool) if planned.pool in subject.pools else None
        if workload.serve is None or planned.layout is None or not each or planned.layout.gpus <= each:
            continue
        inside = next((c for c in planned.choices if c.level in ("gpu", "node") and c.feasible), None)
        domain = subject.domain_gpus(planned.pool) or each
        if inside is not None and planned.layout.gpus > domain:
            yield Hit(
                f"workloads.{planned.name}.serve.parallel",
                f"{planned.name} at {planned.layout} takes {planned.layout.gpus} GPUs over servers of {each}; "
                f"{inside.layout} fits inside one",
            )


@_TABLE.rule(
    "tp-does-not-divide-heads",
    Severity.ERROR,
    90,
    why="Attention heads are split whole; the engine refuses to start otherwise.",
    satisfy="choose a tensor parallel width that divides the number of heads",
    example="serve: {parallel: {tp: 8}}   # 64 heads",
    source="vLLM: 'total number of attention heads must be divisible by tensor parallel size'; Megatron-LM",
)
def tp_heads(subject: Subject) -> Iterator[Hit]:
    """Tensor parallel width does not divide the model's attention heads."""
    for name, path, layout, model in _layouts(subject):
        if model.heads % layout.tp:
            yield Hit(path, f"{name}: tp {layout.tp} does not divide {model.heads} heads of {model.name}")


@_TABLE.rule(
    "tp-above-kv-heads",
    Severity.WARNING,
    45,
    why="KV heads that are fewer than ranks are copied: the cache per GPU stops shrinking.",
    satisfy="keep tp at or below the KV heads, or know that the cache is replicated",
    example="serve: {parallel: {tp: 8}}   # 8 KV heads",
    source="vLLM: KV heads are replicated when tensor parallel size exceeds their number",
)
def tp_kv_heads(subject: Subject) -> Iterator[Hit]:
    """Tensor parallel width exceeds the model's KV heads."""
    for name, path, layout, model in _layouts(subject):
        if model.kv_heads is not None and layout.tp > model.kv_heads and model.heads % layout.tp == 0:
            copies = layout.tp / model.kv_heads
            message = (
                f"{name}: tp {layout.tp} over {model.kv_heads} KV heads of {model.name} keeps each {copies:g} times"
            )
            yield Hit(path, message)


@_TABLE.rule(
    "tp-crosses-nvlink",
    Severity.ERROR,
    80,
    why="Tensor parallelism reduces twice per layer and token; outside NVLink each of them waits for the network.",
    satisfy="keep tp inside one NVLink domain; use pipeline or data parallelism beyond it",
    example="train: {parallel: {tp: 8, pp: 2, dp: 8}}",
    source="Megatron-LM (Narayanan et al. 2021, section 3.2): tensor parallelism within a server, pipeline across",
)
def tp_nvlink(subject: Subject) -> Iterator[Hit]:
    """Tensor parallel width exceeds the GPUs of one NVLink domain."""
    for name, workload in subject.workloads.items():
        found = _declared(workload)
        if found is None or found[1].tp == 1:
            continue
        for pool in subject.pools_of(name):
            domain = subject.domain_gpus(pool)
            path = f"workloads.{name}.{found[0]}"
            if domain is None:
                yield undecided(path, f"how many GPUs of pool {pool} share NVLink", f"name a shape for pool {pool}")
            elif found[1].tp > domain:
                has = f"{domain} GPUs" if domain > 1 else "no link between GPUs"
                severity = (
                    Severity.WARNING if domain == 1 and found[1].tp <= (subject.gpus_per_node(pool) or 0) else None
                )
                message = f"{name}: tp {found[1].tp} on pool {pool}, whose NVLink domain has {has}"
                yield Hit(path, message, severity=severity)


@_TABLE.rule(
    "layout-impossible",
    Severity.ERROR,
    85,
    why="Stages, experts and batches are split whole; a layout that does not divide does not start.",
    satisfy="correct the layout",
    example="train: {gpus: 64, parallel: {tp: 4, pp: 8, dp: 2}, global_batch: 64, micro_batch: 1}",
    source="Megatron-LM argument checks: world size, layers per stage, experts per rank, global batch",
)
def layout_impossible(subject: Subject) -> Iterator[Hit]:
    """Pipeline, expert or data parallel widths do not divide layers, experts, GPUs or batch."""
    for name, path, layout, model in _layouts(subject):
        if layout.pp > model.layers:
            yield Hit(path, f"{name}: pp {layout.pp} exceeds the {counted(model.layers, 'layer')} of {model.name}")
        if layout.ep > 1 and model.moe is None:
            yield Hit(path, f"{name}: ep {layout.ep}, and {model.name} has no experts")
        if layout.ep > 1 and model.moe is not None and model.moe.experts % layout.ep:
            yield Hit(path, f"{name}: ep {layout.ep} does not divide {model.moe.experts} experts of {model.name}")
        if layout.ep > 1 and (layout.tp * layout.dp * layout.cp) % layout.ep:
            ranks = layout.tp * layout.dp * layout.cp
            yield Hit(path, f"{name}: ep {layout.ep} does not divide the {ranks} ranks of a stage")
    for name, workload in subject.workloads.items():
        train = workload.train
        if train is None or train.parallel is None:
            continue
        path, layout = f"workloads.{name}.train", train.parallel
        if layout.gpus != train.gpus:
            product = f"tp {layout.tp} × pp {layout.pp} × cp {layout.cp} × dp {layout.dp}"
            yield Hit(f"{path}.parallel", f"{name}: {product} = {counted(layout.gpus, 'GPU')}; gpus says {train.gpus}")
        if train.global_batch % (layout.dp * train.micro_batch):
            steps = f"dp {layout.dp} × micro_batch {train.micro_batch}"
            yield Hit(f"{path}.global_batch", f"{name}: global_batch {train.global_batch} is no multiple of {steps}")


@_TABLE.rule(
    "parallelism-undeclared",
    Severity.ERROR,
    65,
    why="Memory of many GPUs is an inventory total; only a parallelism strategy makes them one device.",
    satisfy="declare the layout",
    example="train: {gpus: 64, parallel: {tp: 4, pp: 8, dp: 2}}",
    source="Clusterwright: aggregate memory is not usable memory",
)
def parallelism_undeclared(subject: Subject) -> Iterator[Hit]:
    """A workload on several GPUs declares no layout; the planner chooses one, which for inference is a warning."""
    for workload, planned in _planned(subject):
        if _declared(workload) is not None:
            continue
        if workload.train is not None and workload.train.gpus > 1:
            path = f"workloads.{planned.name}.train.parallel"
            chosen = f"; {planned.layout} was chosen for it" if planned.layout else ""
            yield Hit(path, f"{planned.name} trains on {workload.train.gpus} GPUs and declares no layout{chosen}")
        elif workload.serve is not None and workload.serve.disaggregated is not None:
            continue  # halves that are left open are left to the search on purpose
        elif workload.serve is not None and planned.layout is not None and planned.layout.gpus > 1:
            yield Hit(
                f"workloads.{planned.name}.serve.parallel",
                f"{planned.name} needs several GPUs and declares no layout; {planned.layout} was chosen for it",
                "declare the layout that is really used",
                severity=Severity.WARNING,
            )


@_TABLE.rule(
    "workload-not-placed",
    Severity.ERROR,
    90,
    why="What has no place on the nodes stays pending.",
    satisfy="add nodes, lower replicas or GPUs, or let fewer workloads share the pool",
    example="pools: {gpu: {nodes: 'gpu-[001-002]'}}",
    source=_PLAN,
)
def workload_not_placed(subject: Subject) -> Iterator[Hit]:
    """All workloads together do not fit on the pool's GPUs."""
    for workload, planned in _planned(subject):
        if isinstance(planned.memory, Unplanned) or not planned.memory.fits or planned.layout is None:
            continue  # memory-does-not-fit says so
        if planned.chosen is not None and not planned.chosen.feasible:
            continue  # a rule about layouts says why
        if planned.replicas_placed < planned.replicas_wanted and not subject.all_spare(planned.pool):
            apart = workload.serve is not None and workload.serve.disaggregated is not None
            field = "train.gpus" if workload.serve is None else f"serve.{'disaggregated' if apart else 'replicas'}"
            wanted = f"{planned.replicas_wanted} × {planned.layout.gpus} GPUs"
            if apart:
                wanted = f"{planned.replicas_wanted} prefill and decode workers on {planned.wanted_gpus} GPUs"
            message = f"{planned.name} wants {wanted}; with all other workloads {planned.replicas_placed} find a place"
            yield Hit(f"workloads.{planned.name}.{field}", message)


@_TABLE.rule(
    "load-above-capacity",
    Severity.ERROR,
    90,
    why="Above capacity queues grow without end: there is no latency to speak of.",
    satisfy="add replicas, or lower the load",
    example="serve: {rate: 8 req/s, replicas: 2, replica_rate: 9 req/s, ...}",
    source=_PLAN,
)
def load_above_capacity(subject: Subject) -> Iterator[Hit]:
    """All replicas together carry less than the declared load."""
    for workload, planned in _planned(subject):
        service = planned.service
        if workload.serve is None or isinstance(planned.memory, Unplanned) or not planned.memory.fits:
            continue  # memory-does-not-fit says so
        if subject.all_spare(planned.pool) or (isinstance(service, ServicePlan) and service.unreachable):
            continue  # spares-cover-pool or latency-unreachable says so
        if not isinstance(service, ServicePlan) or service.capacity is None:
            rate = service.replica_rate if isinstance(service, ServicePlan) else service
            reason = getattr(rate, "reason", "it is not planned")
            path = f"workloads.{planned.name}.serve.replica_rate"
            yield undecided(path, f"what {planned.name} carries ({reason})", "declare serve.replica_rate, measured")
            continue
        if service.capacity.value < service.rate.value * (1 - 1e-9):
            apart = workload.serve.disaggregated is not None
            path = f"workloads.{planned.name}.serve.{'disaggregated' if apart else 'replicas'}"
            message = (
                f"{counted(planned.replicas_placed, 'worker' if apart else 'replica')} of {planned.name} "
                f"{'carries' if planned.replicas_placed == 1 else 'carry'} {service.capacity}"
            )
            yield Hit(path, f"{message}{_basis(service)}; the load is {workload.serve.rate}")


def _basis(service: ServicePlan) -> str:
    """Where the rate of one replica comes from, for messages: an estimate should be replaced by a measurement."""
    rate = service.replica_rate
    return "" if isinstance(rate, Unplanned) else f" ({rate} each, {rate.origin.word})"


@_TABLE.rule(
    "no-failure-capacity",
    Severity.ERROR,
    95,
    why="Two replicas that both need their full capacity absorb nothing: with one lost half of the load is refused. "
    "Control-plane nodes add no GPU capacity.",
    satisfy="add replicas on other nodes until what is left carries the load, or lower what must be survived",
    example="serve: {rate: 8 req/s, replicas: 2, replica_rate: 9 req/s, ...}\ntarget: {survive: 1 node}",
    source=_PLAN,
)
def no_failure_capacity(subject: Subject) -> Iterator[Hit]:
    """With the declared nodes lost, the remaining replicas do not carry the declared load."""
    for workload, planned in _planned(subject):
        survive = workload.target.survive if workload.target else None
        if survive is None or survive.value <= 0 or subject.all_spare(planned.pool):
            continue
        if isinstance(planned.service, ServicePlan) and planned.service.unreachable:
            continue  # latency-unreachable says so
        path, lost = f"workloads.{planned.name}.target.survive", int(survive.value)
        losses = _losses(planned)
        if losses is None:
            reason = getattr(planned.service or planned.training, "reason", "") or getattr(planned.memory, "reason", "")
            yield undecided(path, f"what {planned.name} carries after a loss ({reason or 'it is not planned'})")
            continue
        scenario = next((loss for loss in losses if loss.nodes_lost == lost), None)
        nodes = sum(pool.node_count for pool in subject.pools_of(planned.name).values())
        if lost >= nodes:
            yield Hit(path, f"with {lost} of {counted(nodes, 'node')} lost nothing is left that carries {planned.name}")
        elif scenario is None:
            yield undecided(path, f"a plan of losing {survive}; {len(losses)} scenarios are planned")
        elif scenario.capacity is None and workload.serve is not None and scenario.surviving > 0:
            yield undecided(
                path, f"what one replica of {planned.name} carries", "declare serve.replica_rate, measured if you can"
            )
        elif not scenario.carries:
            yield Hit(path, _loss_message(planned, scenario))


def _losses(planned: WorkloadPlan) -> tuple[LossPlan, ...] | None:
    part = planned.service if isinstance(planned.service, ServicePlan) else planned.training
    return part.losses if isinstance(part, ServicePlan | TrainingPlan) else None


def _loss_message(planned: WorkloadPlan, loss: LossPlan) -> str:
    lost = f"with {counted(loss.nodes_lost, 'node')} lost ({', '.join(loss.worst)})"
    basis = _basis(planned.service) if isinstance(planned.service, ServicePlan) else ""
    placed = counted(planned.replicas_placed, "replica")
    left = f"{planned.name} keeps {loss.surviving} of {placed}{basis} and needs {loss.needed}"
    return f"{lost} {left}: {loss.reason}"


@_TABLE.rule(
    "training-cannot-restart",
    Severity.WARNING,
    60,
    why="A gang that finds no room after a loss waits for the repair, not for the scheduler.",
    satisfy="keep a spare node, make the job elastic (min_gpus), or accept the wait knowingly",
    example="pools: {gpu: {nodes: 'gpu-[001-010]', spares: 1}}   # or train: {min_gpus: 32, gpus: 64}",
    source=_PLAN,
)
def training_cannot_restart(subject: Subject) -> Iterator[Hit]:
    """After one node is lost the training job finds no place on what is left."""
    for workload, planned in _planned(subject):
        if workload.train is None or not isinstance(planned.training, TrainingPlan):
            continue
        loss = next((x for x in planned.training.losses if x.nodes_lost == 1), None)
        if loss is not None and not loss.carries and planned.replicas_placed:
            yield Hit(f"workloads.{planned.name}.train.gpus", f"{planned.name}: {loss.reason}")


@_TABLE.rule(
    "control-plane-counted",
    Severity.ERROR,
    80,
    why="Control-plane, login and storage nodes add no GPU capacity, whatever a total of nodes suggests.",
    satisfy="name worker pools",
    example="pools: [gpu]",
    source="Clusterwright: only pools with role worker carry workloads",
)
def control_plane_counted(subject: Subject) -> Iterator[Hit]:
    """A workload or a guarantee counts on a pool that is not made of workers."""
    others = {n: p.role for n, p in subject.pools.items() if p.role != "worker"}
    for name, workload in subject.workloads.items():
        for index, pool in enumerate(workload.pools):
            if pool in others:
                yield Hit(
                    f"workloads.{name}.pools.{index}", f"workload {name} may run on {pool}, a {others[pool]} pool"
                )
    for name, queue in subject.queues.items():
        for pool, gpus in queue.guarantee.items():
            if pool in others and gpus:
                path = f"scheduling.queues.{name}.guarantee.{pool}"
                yield Hit(path, f"queue {name} guarantees {counted(gpus, 'GPU')} of {pool}, a {others[pool]} pool")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
