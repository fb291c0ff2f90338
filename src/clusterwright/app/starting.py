"""Which nodes `cw up` starts: those of a file, those named by hand, or this machine's own GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.running import real_nodes
from clusterwright.app.stages import virtual_nodes
from clusterwright.engines.local.gpus import Gpu, discover_gpus
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.model.jobs import NodeSpec
from clusterwright.plan.planning import plan_architecture
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.declared import declared_budgets, declared_policy, declared_tree
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import QueueTree

#: More nodes than one machine can usefully run an agent process for; a guard against a mistyped host list.
MAX_NODES: Final = 256
VIRTUAL: Final = "virtual GPUs: the processes are real, the GPUs are not"


@dataclass(frozen=True, slots=True)
class Start:
    """What to start: nodes, how they are shared, and in words why the GPUs are real or not."""

    nodes: tuple[NodeSpec, ...]
    tree: QueueTree
    note: str
    policy: Policy = field(default_factory=Policy)
    budgets: Mapping[str, Budget] = field(default_factory=dict)


def choose_start(
    files: Sequence[str | Path],
    hosts: str | None,
    gpus: int,
    gpu_model: str,
    overrides: Sequence[str],
    *,
    virtual: bool,
) -> Start:
    """Files, or named virtual nodes, or with neither this machine.

    Raises:
        InvalidInput: when both are given, or either cannot be read.
        Unavailable: when neither is given and this machine has no GPU.
    """
    if files and hosts:
        raise InvalidInput("give either architecture files or --nodes, not both")
    if files:
        return declared_start(files, overrides, virtual=virtual)
    if hosts:
        return named_start(hosts, gpus, gpu_model)
    found = real_nodes()
    return Start(found, QueueTree(), f"real GPUs: {found[0].gpus} × {found[0].gpu_model}")


def declared_start(paths: Sequence[str | Path], overrides: Sequence[str] = (), *, virtual: bool = False) -> Start:
    """The worker nodes and queues of architecture files.

    They are virtual, unless the file declares one worker node and this machine has as many GPUs as that node.

    Raises:
        InvalidInput: when a file cannot be read or declares no worker node.
    """
    document = load_document(paths, overrides)
    plan = plan_architecture(document, load_catalogue())
    nodes, scheduling = virtual_nodes(document.architecture, plan), document.architecture.scheduling
    start = Start(nodes, declared_tree(scheduling), VIRTUAL, declared_policy(scheduling), declared_budgets(scheduling))
    if not nodes:
        raise InvalidInput("the architecture declares no worker nodes; nothing can be started")
    if len(nodes) > MAX_NODES:
        raise InvalidInput(f"{len(nodes)} nodes are more than one machine can hold (at most {MAX_NODES})")
    gpus = () if virtual or len(nodes) > 1 else _gpus_if_any()
    if gpus and len(gpus) == nodes[0].gpus:
        note = f"real GPUs: {len(gpus)} × {gpus[0].model} as declared for {nodes[0].name}"
        return replace(start, nodes=(replace(nodes[0], virtual=False),), note=note)
    return start


def named_start(hosts: str, gpus: int, gpu_model: str) -> Start:
    """Virtual nodes named by a host list.

    Raises:
        InvalidInput: when the list cannot be read.
    """
    try:
        names = expand(hosts)
    except HostlistError as error:
        raise InvalidInput(f"--nodes: {error}") from error
    if len(names) > MAX_NODES:
        raise InvalidInput(f"--nodes: {len(names)} nodes are more than one machine can hold (at most {MAX_NODES})")
    nodes = tuple(NodeSpec(name, gpus, gpu_model) for name in names)
    return Start(nodes, QueueTree(), VIRTUAL)


def _gpus_if_any() -> tuple[Gpu, ...]:
    """Real GPUs, or none where they cannot be asked for: a file can always be started on virtual ones."""
    try:
        return discover_gpus()
    except Unavailable:
        return ()
