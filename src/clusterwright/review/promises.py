"""The provider's promise against the design: what the contract says and what the file counts on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.rules import ACCEPT, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("compute")
_SOURCE: Final = "Clusterwright: a contract is compared with the design"


@_TABLE.rule(
    "contract-missing",
    Severity.ERROR,
    60,
    why="Accepting rented capacity means comparing it with what was promised.",
    satisfy="write down what the provider promised: nodes, GPU, NICs, topology, availability, replacement, term",
    example="contract: {provider: example-cloud, nodes: 2, gpu: h100-sxm-80, availability: 99.5%, ...}",
    source=_SOURCE,
    stages=ACCEPT,
)
def contract_missing(subject: Subject) -> Iterator[Hit]:
    """Capacity is rented or reserved and no promise, or only a part of one, is written down."""
    rented = [n for n, p in subject.gpu_pools.items() if p.ownership in ("rented", "reserved")]
    contract = subject.architecture.contract
    if rented and contract is None:
        yield Hit("contract", f"pool {listed(rented)} is rented and the file holds no contract")
    elif rented:
        for field in ("nodes", "gpu", "nics", "topology", "availability", "replacement_within", "term"):
            if getattr(contract, field) is None:
                yield Hit(f"contract.{field}", f"the contract says nothing about {field}")


@_TABLE.rule(
    "contract-differs",
    Severity.ERROR,
    75,
    why="The design is sized for what it declares; the invoice is for what the contract says.",
    satisfy="correct the design or the contract",
    example='contract: {nodes: 2, gpu: h100-sxm-80}\npools: {gpu: {nodes: "gpu-[001-002]"}}',
    source=_SOURCE,
)
def contract_differs(subject: Subject) -> Iterator[Hit]:
    """The contract promises other nodes, GPUs or NICs than the design counts on."""
    contract = subject.architecture.contract
    pools = {n: p for n, p in subject.gpu_pools.items() if p.ownership != "owned"}
    if contract is None or not pools:
        return
    nodes = sum(p.node_count for p in pools.values())
    if contract.nodes is not None and contract.nodes != nodes:
        counts = " + ".join(f"{p.node_count} ({n})" for n, p in pools.items())
        yield Hit("contract.nodes", f"the contract promises {contract.nodes} GPU nodes; the design has {counts}")
    promised = subject.catalogue.find_gpu(contract.gpu) if contract.gpu else None
    for name in pools:
        gpu = subject.gpu(name)
        if promised is not None and gpu is not None and gpu.name != promised.name:
            yield Hit("contract.gpu", f"the contract promises {contract.gpu}; pool {name} has {gpu.name}")
    yield from _nics_differ(subject, contract.nics or "", pools)


def _nics_differ(subject: Subject, nics: str, pools: Iterable[str]) -> Iterator[Hit]:
    """`8 x 400 Gb/s ...` in the contract against the compute networks; other texts are not compared."""
    match = re.search(r"(\d+)\s*[x×]\s*(\d+(?:\.\d+)?)\s*Gb(?:/s|ps|it)", nics)
    if match is None:
        return
    count, rate = int(match.group(1)), float(match.group(2))
    for name, network in subject.networks_with("compute").items():
        if not any(subject.network_reaches(name, pool) for pool in pools):
            continue
        if (network.ports, network.rate.to("Gb/s")) != (count, rate):
            message = f"the contract promises {nics}; network {name} counts on {network.ports} × {network.rate}"
            yield Hit("contract.nics", message)


@_TABLE.rule(
    "contract-weaker",
    Severity.WARNING,
    60,
    why="A target above the provider's promise has to come from spare capacity of your own, or it is a wish.",
    satisfy="hold spare capacity for the difference, or negotiate",
    example="contract: {availability: 99.9%, replacement_within: 4 h}",
    source=_SOURCE,
)
def contract_weaker(subject: Subject) -> Iterator[Hit]:
    """The contract promises less availability, or a slower replacement, than the design counts on."""
    contract = subject.architecture.contract
    if contract is None:
        return
    if contract.availability is not None:
        for name, workload in subject.workloads.items():
            target = workload.target.availability if workload.target else None
            if target is not None and target.value > contract.availability.value:
                message = f"the contract promises {contract.availability}; {name} targets {target}"
                yield Hit("contract.availability", message)
    if contract.replacement_within is not None:
        for name, pool in subject.gpu_pools.items():
            wanted = pool.replacement.within if pool.replacement else None
            if wanted is not None and contract.replacement_within.value > wanted.value:
                said = f"the contract replaces within {contract.replacement_within}"
                yield Hit("contract.replacement_within", f"{said}; pool {name} counts on {wanted}")


@_TABLE.rule(
    "contract-term-differs",
    Severity.WARNING,
    45,
    why="Unit costs are computed for one term and paid for another.",
    satisfy="use the contract's term",
    example="economics: {term: 6 months}\ncontract: {term: 6 months}",
    source=_SOURCE,
    area="economics",
)
def contract_term(subject: Subject) -> Iterator[Hit]:
    """The contract's term is not the one that economics counts on."""
    contract, economics = subject.architecture.contract, subject.architecture.economics
    if contract is None or economics is None or contract.term is None or economics.term is None:
        return
    if contract.term.value != economics.term.value:
        yield Hit("contract.term", f"the contract runs for {contract.term}; economics counts on {economics.term}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
