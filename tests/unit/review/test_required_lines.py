"""Deleting a required line of the example gives its rule id, or is refused with its place."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest

from builders.reviews import document, findings, review
from clusterwright.lib.errors import InvalidInput
from clusterwright.review.rulebook import BY_ID

TABLE: Final = Path(__file__).parents[2] / "cases" / "required_lines.txt"
LINES: Final = [tuple(line.split()) for line in TABLE.read_text(encoding="utf-8").splitlines()]

#: Lines that may be absent, with the reason.
OPTIONAL: Final = {
    # The model's default is the usual case, and it is printed.
    "*.train.method": "full",
    "*.train.micro_batch": "1",
    "*.train.sharding": "fsdp",
    "*.train.recompute": "selective",
    "*.checkpoint.mode": "sync",
    "*.scope.of": "cluster",
    "*.provider": "renter",
    "*.rights": "user",
    "pools.*.role": "worker",
    "*.preemption.within_queue": "never",
    "*.preemption.reclaim": "never",
    "*.ports": "1",
    # The plan chooses, or follows the engine's default.
    "workloads.chat.serve.replicas": "what load and failures need",
    "workloads.chat.serve.spread": "preferred",
    "workloads.chat.serve.memory_share": "the engine's default",
    "workloads.chat.serve.max_model_len": "the model's context",
    "workloads.*.pools*": "every GPU pool, and there is one",
    "fabric.networks.ib.pools*": "every pool",
    # One entry of a list of several.
    "workloads.*.gpus.1": "one of two",
    "workloads.*.payload.artifacts.*": "one of several; the tokenizer is asked for",
    "observability.labels.*": "one of several",
    # Asked for only where it decides something.
    "workloads.*.payload.cache": "a cache is a choice",
    "storage.uses.cache": "a cache is a choice",
    "workloads.chat.target.availability": "survive, detection and recovery are asked for",
    "*.checkpoint.keep": "needed only against the store's capacity",
    "pools.gpu.hardware.gpu_subrevision": "asked for when the VBIOS is too old for one subrevision",
    "pools.control.shape": "control-plane nodes carry no workload",
    "fabric.multi_node_nvlink": "asked for when an NVLink domain spans nodes",
    "fabric.networks.storage.qos": "asked for when roles share a network",
    "fabric.networks.in-band.benchmark": "asked for on networks of GPU and storage traffic",
    "software.profiles.gpu-node.doca_ofed": "the network operator may bring it",
    "software.images*": "workloads name their images",
    "scheduling.queues.*.parent": "a queue may stand alone",
    "scheduling.queues.*.borrow*": "unlimited",
    "scheduling.queues.*.lend*": "everything",
    "*.preemption.minimum_runtime": "0",
    "*.retries.backoff": "the engine's default",
    "economics.exit.resale": "rented hardware has none",
    "economics.costs.storage": "the store that is paid for has price and capacity",
    "contract*": "asked for at stage accept",
    # Conditions that narrow a claim, and claims that are one of several.
    "*.conditions.duration": "narrows the claim",
    "*.conditions.data_type": "narrows the claim",
    "*.conditions.transport": "narrows the claim",
    "acceptance.requirements.no-xid.conditions": "narrows the claim",
    "acceptance.requirements.chat-after-node-loss.conditions": "narrows the claim",
    "*.scope.pool": "there is one GPU pool",
    "acceptance.requirements.checkpoint-*.scope.workload": "there is one training workload",
    "acceptance.requirements.chat-image.scope.workload": "checked by digest",
}


@pytest.mark.parametrize(("path", "rule"), [row for row in LINES if row[1] != "refused"])
def test_without_the_line_its_rule_speaks(path: str, rule: str) -> None:
    said = Counter((f.path, f.message) for f in findings(rule))
    new = Counter((f.path, f.message) for f in findings(rule, f"{path}=")) - said
    assert new, f"without {path} {rule} is silent"


@pytest.mark.parametrize("path", [row[0] for row in LINES if row[1] == "refused"])
def test_what_the_file_cannot_do_without_is_refused_with_its_place(path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        document(f"{path}=")
    problem = caught.value.problems[0]
    assert problem.place.line > 0
    assert problem.path == path or path.startswith(problem.path + ".")


def test_every_line_is_required_or_optional_for_a_reason() -> None:
    required = {path for path, _ in LINES}
    whole_claims = {f"acceptance.requirements.{name}" for name in _claims()}
    open_points = [
        path
        for path in document().places.values
        if path and path not in required | whole_claims and not any(fnmatch(path, p) for p in OPTIONAL)
    ]
    assert not open_points


def test_the_table_names_rules_and_lines_that_exist() -> None:
    present = document().places.values
    assert not [path for path, _ in LINES if path not in present]
    assert not [rule for _, rule in LINES if rule != "refused" and rule not in BY_ID]


def test_at_acceptance_the_contract_is_asked_for() -> None:
    for field in ("nodes", "gpu", "nics", "topology", "availability", "replacement_within", "term"):
        (found,) = findings("contract-missing", f"contract.{field}=", stage="accept")
        assert found.path == f"contract.{field}"
    assert findings("contract-missing", "contract=", stage="accept")
    assert not review("contract=").errors


def _claims() -> list[str]:
    acceptance = document().architecture.acceptance
    return list(acceptance.requirements) if acceptance else []
