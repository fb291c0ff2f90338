"""What goes into a command: values of the file, of the plan, and of the claims that the test serves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.acceptance_tests import AcceptanceTest
from clusterwright.judging.acceptance_plans import Group
from clusterwright.judging.acceptance_sites import PoolFacts
from clusterwright.judging.acceptance_units import BINARIES, FILE_BYTES, concurrency_of, wishes_of
from clusterwright.judging.requirements import Claim
from clusterwright.model.architecture import Architecture
from clusterwright.model.workloads import Workload
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.results.trainings import CheckpointPlan

#: Requests below which a 99th percentile rests on fewer than ten of them.
_FEWEST_REQUESTS: Final = 1000
#: Most bytes that one process writes before it reads: more would take longer to write than to measure.
_LARGEST_FILE: Final = 16 * 2**30
#: Message size of an RDMA test where the claim names none: 1 MiB.
_RDMA_SIZE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Purpose:
    """A test for some claims.

    Args:
        pool: that it runs on, None for several pools at once.
    """

    test: AcceptanceTest
    pool: PoolFacts | None
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a command template by name, and what else follows from the claims.

    Args:
        conditions: values that say under which conditions the test runs.
    """

    texts: Mapping[str, str]
    store: str = ""
    workload: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def values_for(
    architecture: Architecture, plan: Plan | None, purpose: Purpose, rounds: Sequence[Sequence[Group]], duration: float
) -> Values | str:
    """The values of a test's command, or why there can be no such test."""
    wanted = set(purpose.test.placeholders)
    texts: dict[str, str] = {}
    notes: list[str] = []
    workload = _workload(architecture, purpose)
    gpus = purpose.pool.gpus if purpose.pool else 0
    if duration:
        texts["seconds"] = str(math.ceil(duration))
    if gpus:
        texts["gpus"] = str(gpus)
    if "binary" in wanted:
        operation = _first(purpose, "operation")
        if not operation:
            return "the claim names no collective operation"
        texts |= {"operation": operation, "binary": BINARIES[operation]}
    if wanted & {"max_size", "size"}:
        sizes = wishes_of(purpose.claims)
        size = sizes.largest if sizes.sizes else _RDMA_SIZE
        texts |= {"min_size": str(sizes.smallest), "max_size": str(sizes.largest), "size": str(size)}
    for name in ("data_type", "transport"):
        if found := _first(purpose, name):
            texts[name] = found.upper() if name == "transport" else found
    nodes = len({n for groups in rounds for group in groups for n in group})
    if "processes" in wanted:
        count = _processes(purpose, workload, nodes, gpus)
        if isinstance(count, str):
            return count
        texts["processes"] = str(count)
    if "file_size" in wanted:
        found_size, note = _file_size(architecture, plan, workload)
        texts["file_size"] = str(found_size)
        notes += [note] if note else []
    if "bytes_per_node" in wanted:
        total = _checkpoint_bytes(plan, workload)
        if total is None:
            return "neither the file nor the plan says how large a checkpoint is"
        texts["bytes_per_node"] = str(math.ceil(total / max(1, nodes)))
    if "model" in wanted:
        served = _serving(workload, purpose, duration)
        if isinstance(served, str):
            return served
        texts |= served
    name = next((n for n, w in architecture.workloads.items() if w is workload), "")
    if workload is not None:
        texts["workload"] = name
    store = _store(architecture, purpose, workload) if "store" in wanted else ""
    conditions = tuple((k, v) for k, v in texts.items())
    return Values(texts, store, name if _about_a_workload(purpose) else "", conditions, tuple(notes))


def _about_a_workload(purpose: Purpose) -> bool:
    wanted = set(purpose.test.placeholders)
    return bool({"workload", "model", "bytes_per_node"} & wanted) or any(
        c.requirement.scope.workload for c in purpose.claims
    )


def _first(purpose: Purpose, condition: str) -> str:
    found = (getattr(c.requirement.conditions, condition) for c in purpose.claims)
    return next((str(v) for v in found if v is not None), "")


def _workload(architecture: Architecture, purpose: Purpose) -> Workload | None:
    """The workload that the claims name, else the only one of the kind that the test is about."""
    named = next((c.requirement.scope.workload for c in purpose.claims if c.requirement.scope.workload), None)
    if named is not None:
        return architecture.workloads.get(named)
    kind = "inference" if "model" in purpose.test.placeholders else "training"
    fitting = [w for w in architecture.workloads.values() if w.kind == kind]
    return fitting[0] if len(fitting) == 1 else None


def _processes(purpose: Purpose, workload: Workload | None, nodes: int, gpus: int) -> int | str:
    """Processes on each node: the readers that the claim asks for, else one per GPU."""
    asked = next((n for c in purpose.claims if (n := concurrency_of(c.requirement)) is not None), None)
    if asked is None:
        return max(1, gpus)
    if asked % max(1, nodes):
        return f"{asked} at once do not divide over {nodes} nodes; ask for a multiple in scope.concurrency"
    return asked // max(1, nodes)


def _file_size(architecture: Architecture, plan: Plan | None, workload: Workload | None) -> tuple[int, str]:
    """Bytes that one reader loads: the largest payload that is known, else what is assumed, with a note."""
    chosen = [n for n, w in architecture.workloads.items() if workload is None or w is workload]
    sizes = []
    for name in chosen:
        payload = architecture.workloads[name].payload
        planned = plan.workload(name) if plan else None
        if payload is not None and payload.size is not None:
            sizes.append(payload.size.value)
        elif planned is not None and isinstance(planned.payload, PayloadPlan):
            sizes.append(planned.payload.size.value * 1e9)
    if not sizes:
        return FILE_BYTES, f"each process uses a file of {FILE_BYTES // 2**30} GiB (assumed; no payload is declared)"
    whole = max(4096, math.ceil(max(sizes) / 2**20) * 2**20)
    if whole <= _LARGEST_FILE:
        return whole, ""
    shown = f"{_LARGEST_FILE // 2**30} GiB of a payload of {max(sizes) / 2**30:,.0f} GiB"
    return _LARGEST_FILE, f"each process uses {shown}; storage servers with more cache than all files hide their disks"


def _checkpoint_bytes(plan: Plan | None, workload: Workload | None) -> float | None:
    if workload is None or workload.train is None:
        return None
    checkpoint = workload.train.checkpoint
    if checkpoint is not None and checkpoint.size is not None:
        return float(checkpoint.size.value)
    for planned in plan.workloads if plan else ():
        if planned.model == workload.model and isinstance(planned.checkpoint, CheckpointPlan):
            return planned.checkpoint.size.value * 1e9
    return None


def _serving(workload: Workload | None, purpose: Purpose, duration: float) -> dict[str, str] | str:
    if workload is None or workload.serve is None:
        return "the claim names no workload that serves"
    serve = workload.serve
    rate = serve.rate.to("req/s")
    asked = next((n for c in purpose.claims if (n := concurrency_of(c.requirement)) is not None), None)
    texts = {
        "model": workload.model,
        "input": str(math.ceil(serve.input.to("tokens"))),
        "output": str(math.ceil(serve.output.to("tokens"))),
        "rate": f"{rate:.6g}",
        "requests": str(max(_FEWEST_REQUESTS, math.ceil(rate * duration))),
    }
    return texts | ({"concurrency": str(asked)} if asked is not None else {})


def _store(architecture: Architecture, purpose: Purpose, workload: Workload | None) -> str:
    """Store that the test uses: of checkpoints, of the payload, or what `storage.uses` says; "" when nothing does."""
    uses = architecture.storage.uses if architecture.storage else None
    stores = architecture.storage.stores if architecture.storage else {}
    candidates: list[str | None] = []
    if purpose.test.suite == "checkpoint":
        training = workload.train.checkpoint if workload and workload.train else None
        candidates += [training.to if training else None, uses.checkpoints if uses else None]
    else:
        named = [workload] if workload else list(architecture.workloads.values())
        candidates += [w.payload.source for w in named if w.payload]
        candidates += [uses.weights, uses.datasets] if uses else []
    candidates += [n for n, s in stores.items() if s.durable]
    return next((c for c in candidates if c and c in stores), "")
