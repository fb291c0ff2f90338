"""Names that must exist: in the file (pools, queues, stores, ...) and in the catalogue (shapes, GPUs, NICs, models)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.findings import Severity
from clusterwright.review.rules import Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("workload")
_SOURCE: Final = "the file itself: a name is declared once and referred to elsewhere"
_WHY: Final = "A reference to nothing is read by every engine as its default, and by people as what they expect."

#: (path of the reference, the name it uses)
Uses = Iterable[tuple[str, str]]


def _unknown(kind: str, uses: Uses, known: Collection[str], where: str) -> Iterator[Hit]:
    for path, name in uses:
        if name not in known:
            declared = ", ".join(known)
            other = f", or use {'one of: ' if len(known) > 1 else ''}{declared}" if known else ""
            action = did_you_mean(name, known) or f"declare it under {where}{other}"
            yield Hit(path, f"no {kind} '{name}'; declared under {where}: {declared or 'nothing'}", action)


@_TABLE.rule(
    "pool-unknown",
    Severity.ERROR,
    85,
    why=_WHY,
    satisfy="name a pool that is declared under `pools`",
    example="pools: [gpu]",
    source=_SOURCE,
    area="compute",
)
def pool_unknown(subject: Subject) -> Iterator[Hit]:
    """A workload, network, quota or requirement names a pool that is not declared."""
    return _unknown("pool", _pool_uses(subject), subject.pools, "pools")


def _pool_uses(subject: Subject) -> Uses:
    for name, workload in subject.workloads.items():
        yield from ((f"workloads.{name}.pools.{i}", pool) for i, pool in enumerate(workload.pools))
    for name, network in subject.networks.items():
        yield from ((f"fabric.networks.{name}.pools.{i}", pool) for i, pool in enumerate(network.pools))
    for name, queue in subject.queues.items():
        for field in ("guarantee", "borrow", "lend"):
            for pool in getattr(queue, field) or {}:
                yield f"scheduling.queues.{name}.{field}.{pool}", pool
    acceptance = subject.architecture.acceptance
    for name, requirement in (acceptance.requirements if acceptance else {}).items():
        if requirement.scope.pool:
            yield f"acceptance.requirements.{name}.scope.pool", requirement.scope.pool


@_TABLE.rule(
    "queue-unknown",
    Severity.ERROR,
    80,
    why=_WHY,
    satisfy="name a queue that is declared under scheduling.queues",
    example="queue: online",
    source=_SOURCE,
    area="scheduler",
)
def queue_unknown(subject: Subject) -> Iterator[Hit]:
    """A workload or a queue's parent names a queue that is not declared."""
    uses = [(f"workloads.{n}.queue", w.queue) for n, w in subject.workloads.items() if w.queue]
    uses += [(f"scheduling.queues.{n}.parent", q.parent) for n, q in subject.queues.items() if q.parent]
    return _unknown("queue", uses, subject.queues, "scheduling.queues")


@_TABLE.rule(
    "priority-unknown",
    Severity.ERROR,
    65,
    why=_WHY,
    satisfy="name a priority that is declared under scheduling.priorities",
    example="scheduling: {priorities: {production: 1000, batch: 100}}",
    source=_SOURCE,
    area="scheduler",
)
def priority_unknown(subject: Subject) -> Iterator[Hit]:
    """A workload names a priority that is not declared."""
    scheduling = subject.architecture.scheduling
    uses = [(f"workloads.{n}.priority", w.priority) for n, w in subject.workloads.items() if w.priority]
    return _unknown("priority", uses, scheduling.priorities if scheduling else {}, "scheduling.priorities")


@_TABLE.rule(
    "store-unknown",
    Severity.ERROR,
    85,
    why=_WHY,
    satisfy="name a store that is declared under storage.stores",
    example="payload: {source: object, cache: nvme, within: 90 s}",
    source=_SOURCE,
    area="storage",
)
def store_unknown(subject: Subject) -> Iterator[Hit]:
    """A payload, dataset, checkpoint, cache or use names a store that is not declared."""
    return _unknown("store", _store_uses(subject), subject.stores, "storage.stores")


def _store_uses(subject: Subject) -> Uses:
    found: list[tuple[str, str | None]] = []
    for name, workload in subject.workloads.items():
        path = f"workloads.{name}"
        if workload.payload:
            found += [
                (f"{path}.payload.source", workload.payload.source),
                (f"{path}.payload.cache", workload.payload.cache),
            ]
        if workload.train:
            found.append((f"{path}.train.data", workload.train.data))
            if workload.train.checkpoint:
                found.append((f"{path}.train.checkpoint.to", workload.train.checkpoint.to))
    storage = subject.architecture.storage
    if storage:
        found += [(f"storage.stores.{n}.cache_of", s.cache_of) for n, s in storage.stores.items()]
        if storage.uses:
            found += [(f"storage.uses.{f}", getattr(storage.uses, f)) for f in type(storage.uses).model_fields]
    return [(path, name) for path, name in found if name]


@_TABLE.rule(
    "network-unknown",
    Severity.ERROR,
    75,
    why=_WHY,
    satisfy="name a network that is declared under fabric.networks",
    example="stores: {object: {network: storage, ...}}",
    source=_SOURCE,
    area="network",
)
def network_unknown(subject: Subject) -> Iterator[Hit]:
    """A store names a network that is not declared."""
    uses = [(f"storage.stores.{n}.network", s.network) for n, s in subject.stores.items() if s.network]
    return _unknown("network", uses, subject.networks, "fabric.networks")


@_TABLE.rule(
    "profile-unknown",
    Severity.ERROR,
    80,
    why=_WHY,
    satisfy="name a profile that is declared under software.profiles",
    example="pools: {gpu: {software: gpu-node, ...}}",
    source=_SOURCE,
    area="compute",
)
def profile_unknown(subject: Subject) -> Iterator[Hit]:
    """A pool names a software profile that is not declared."""
    uses = [(f"pools.{n}.software", p.software) for n, p in subject.pools.items() if p.software]
    return _unknown("software profile", uses, subject.profiles, "software.profiles")


@_TABLE.rule(
    "workload-unknown",
    Severity.ERROR,
    70,
    why=_WHY,
    satisfy="name a workload that is declared under `workloads`",
    example="scope: {of: cluster, nodes: 2, workload: chat}",
    source=_SOURCE,
    area="acceptance",
)
def workload_unknown(subject: Subject) -> Iterator[Hit]:
    """A requirement is about a workload that is not declared."""
    acceptance = subject.architecture.acceptance
    claims = acceptance.requirements if acceptance else {}
    uses = [(f"acceptance.requirements.{n}.scope.workload", r.scope.workload) for n, r in claims.items()]
    return _unknown("workload", [(p, n) for p, n in uses if n], subject.workloads, "workloads")


def _not_in_catalogue(subject: Subject, kind: str, words: str, uses: Uses) -> Iterator[Hit]:
    finders = {
        "shapes": subject.catalogue.find_shape,
        "gpus": subject.catalogue.find_gpu,
        "nics": subject.catalogue.find_nic,
        "models": subject.catalogue.find_model,
    }
    for path, name in uses:
        if finders[kind](name) is None:
            near = subject.catalogue.suggest(kind, name)
            hint = f"did you mean {' or '.join(near)}? else " if near else ""
            action = f"{hint}describe it in a catalogue file of your own (--catalogue FILE)"
            yield Hit(path, f"no {words} '{name}' in the catalogue", action)


@_TABLE.rule(
    "shape-unknown",
    Severity.ERROR,
    90,
    why="Memory, links and power of the nodes come from the shape; without it nothing can be planned on the pool.",
    satisfy="use a name of the catalogue, or add the shape in a catalogue file of your own",
    example="shape: hgx-h100-sxm-8",
    source="the catalogue",
    area="compute",
)
def shape_unknown(subject: Subject) -> Iterator[Hit]:
    """A pool's node shape is not in the catalogue."""
    uses = [(f"pools.{n}.shape", p.shape) for n, p in subject.pools.items() if p.shape]
    return _not_in_catalogue(subject, "shapes", "node shape", uses)


@_TABLE.rule(
    "gpu-unknown",
    Severity.ERROR,
    90,
    why="A GPU that nobody knows has no memory, rate or price.",
    satisfy="use a name of the catalogue, or add the GPU in a catalogue file of your own",
    example="hardware: {gpu: h100-sxm-80}",
    source="the catalogue",
    area="compute",
)
def gpu_unknown(subject: Subject) -> Iterator[Hit]:
    """A GPU named in a pool, workload or contract is not in the catalogue."""
    uses = [
        (f"pools.{n}.hardware.gpu", p.hardware.gpu) for n, p in subject.pools.items() if p.hardware and p.hardware.gpu
    ]
    for name, workload in subject.workloads.items():
        uses += [(f"workloads.{name}.gpus.{i}", gpu) for i, gpu in enumerate(workload.gpus)]
    contract = subject.architecture.contract
    if contract and contract.gpu:
        uses.append(("contract.gpu", contract.gpu))
    return _not_in_catalogue(subject, "gpus", "GPU", uses)


@_TABLE.rule(
    "nic-unknown",
    Severity.ERROR,
    60,
    why="The NIC's rate, slot and drivers bound what the fabric can deliver.",
    satisfy="use a name of the catalogue, or add the NIC in a catalogue file of your own",
    example="hardware: {nic: connectx-7}",
    source="the catalogue",
    area="network",
)
def nic_unknown(subject: Subject) -> Iterator[Hit]:
    """A pool's NIC is not in the catalogue."""
    uses = [
        (f"pools.{n}.hardware.nic", p.hardware.nic) for n, p in subject.pools.items() if p.hardware and p.hardware.nic
    ]
    return _not_in_catalogue(subject, "nics", "NIC", uses)


@_TABLE.rule(
    "model-unknown",
    Severity.WARNING,
    85,
    why="Layers, heads and widths give weights, KV cache and work; for an unknown model memory and speed stay open.",
    satisfy="use the Hugging Face id of a model of the catalogue, or describe your own in a catalogue file",
    example="model: meta-llama/Llama-3.3-70B-Instruct",
    source="the catalogue",
)
def model_unknown(subject: Subject) -> Iterator[Hit]:
    """A workload's model is not in the catalogue, so what follows from its shape is undecided."""
    uses = [(f"workloads.{n}.model", w.model) for n, w in subject.workloads.items()]
    return _not_in_catalogue(subject, "models", "model", uses)


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
