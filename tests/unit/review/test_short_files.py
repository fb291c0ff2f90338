"""Short files: one finding for a section that nobody has begun, and at stage quote only what a quote needs."""

from __future__ import annotations

from collections import Counter

import pytest

from builders.reviews import TODAY, catalogue, findings, review
from clusterwright.model.findings import AREAS, Stage
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.plan.planning import plan_architecture
from clusterwright.review.requiring import WHOLE
from clusterwright.review.reviewing import review_document
from clusterwright.review.reviews import Review

SHORT = """\
apiVersion: clusterwright/v1alpha1
cluster: prod-ams
pools:
  h100: {nodes: "gpu-[1-4]", shape: hgx-h100-sxm-8, price: $2.40/GPU-h}
workloads:
  chat:
    model: meta-llama/Llama-3.3-70B-Instruct
    serve: {engine: vllm 0.11, precision: fp8, in: 2000 tokens, out: 500 tokens, rate: 20 req/s}
    target: {ttft_p95: 2 s, tpot_p95: 50 ms, survive: 1 node}
scheduling: {engine: slurm}
owners: {default: me@example.com}
"""
#: Section → the rule that asks for the whole of it.
SPEAKS = {
    "owners": "owner-missing",
    "fabric": "network-missing",
    "storage": "durable-store-missing",
    "scheduling": "engine-missing",
    "software": "software-missing",
    "access": "access-missing",
    "observability": "observability-missing",
    "acceptance": "acceptance-missing",
    "economics": "economics-missing",
}


def review_text(text: str, stage: Stage = "build") -> Review:
    document = parse_architecture(Source("short.yaml", text))
    plan = plan_architecture(document, catalogue())
    return review_document(document, catalogue(), plan, today=TODAY, stage=stage)


def test_eleven_lines_give_a_review_that_a_person_can_act_on() -> None:
    found = review_text(SHORT)
    assert len(found.errors) <= 35
    rules = Counter(f.rule for f in found.errors)
    for section in ("fabric", "storage", "software", "access", "observability", "acceptance", "economics"):
        assert rules[SPEAKS[section]] == 1
        assert not [f.path for f in found.errors if f.path.startswith(f"{section}.")]
    assert not {"duty-unowned", "nobody-operates", "survive-untied", "pool-price-missing"} & set(rules)


def test_a_quote_needs_less() -> None:
    rules = {f.rule for f in review_text(SHORT, "quote").errors}
    assert rules == {
        "durable-store-missing", "network-missing", "concurrency-missing", "model-loading-missing",
        "lengths-without-distribution", "gpu-range-missing", "replacement-missing", "term-missing", "site-missing",
    }  # fmt: skip


def test_a_self_managed_site_is_asked_for_its_power_in_a_quote_already() -> None:
    text = SHORT.replace("cluster: prod-ams", "cluster: {name: prod-ams, site: ams1, delivery: self-managed}")
    rules = {f.rule for f in review_text(text, "quote").errors}
    assert {"site-power-missing", "node-power-missing"} <= rules


@pytest.mark.parametrize("section", WHOLE)
def test_an_absent_section_is_one_finding(section: str) -> None:
    found = [f for f in review(f"{section}=").errors if f.path == section or f.path.startswith(f"{section}.")]
    assert [f.rule for f in found if f.path == section] == [SPEAKS[section]]
    named = {"software.profiles", "scheduling.queues", "scheduling.priorities", "storage.stores", "fabric.networks"}
    assert not [f.path for f in found if f.path != section and not f.path.startswith(tuple(named))]


@pytest.mark.parametrize("section", WHOLE)
def test_an_empty_section_is_an_absent_one(section: str) -> None:
    if section != "scheduling":  # it cannot be empty: it names an engine
        assert [f.path for f in findings(SPEAKS[section], f"{section}={{}}")] == [section]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("software.lifecycle", "lifecycle-missing"),
        ("economics.costs", "cost-left-out"),
        ("economics.shares", "share-left-out"),
        ("economics.exit", "exit-missing"),
        ("storage.uses", "storage-use-missing"),
        ("owners.duties", "duty-unowned"),
        ("pools.gpu.hardware", "host-missing"),
        ("pools.gpu.replacement", "replacement-missing"),
        ("acceptance.requirements", "claim-class-uncovered"),
    ],
)
def test_an_absent_part_of_a_section_is_one_finding(path: str, rule: str) -> None:
    (found,) = findings(rule, f"{path}=")
    assert found.path == path


def test_without_hardware_one_finding_asks_for_all_that_the_shape_leaves_open() -> None:
    (found,) = findings("host-missing", "pools.gpu.hardware=")
    for words in ("CPUs", "memory", "NUMA", "reads its NVMe", "NIC"):
        assert words in found.message
    for rule in ("local-storage-missing", "nics-missing", "node-power-missing"):
        assert not findings(rule, "pools.gpu.hardware=")


def test_a_default_owner_has_every_duty_without_an_owner_of_its_own() -> None:
    assert not findings("duty-unowned", "owners={default: me@example.com}")
    assert not findings("nobody-operates", "owners={default: me@example.com}")
    (found,) = findings("duty-unowned", "owners.duties.on_call=")
    assert found.path == "owners.duties.on_call"
    assert not findings("duty-unowned", "owners.duties.on_call=", "owners.default=me@example.com")


def test_price_and_ownership_are_asked_for_one_by_one() -> None:
    assert [f.path for f in findings("pool-ownership-missing", "pools.gpu.ownership=")] == ["pools.gpu.ownership"]
    assert not findings("pool-price-missing", "pools.gpu.ownership=")
    assert [f.path for f in findings("pool-price-missing", "pools.gpu.price=")] == ["pools.gpu.price"]
    assert not findings("pool-ownership-missing", "pools.gpu.price=")


def test_one_gpu_pool_needs_no_naming() -> None:
    assert not findings("survive-untied", "workloads.chat.pools=")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (("economics.costs.storage=",), None),
        (("economics.costs.storage=", "storage.stores.object.price="), "what object costs"),
        (("economics.costs.storage=", "storage.stores.object.capacity="), "what object costs"),
        (("economics.costs.storage=", "storage.stores.scratch={kind: file, durable: false}"), "what scratch costs"),
        (("economics.costs.storage=", "storage="), "what storage costs"),
    ],
)
def test_a_store_with_price_and_capacity_says_what_it_costs(changes: tuple[str, ...], says: str | None) -> None:
    said = [f.message for f in findings("cost-left-out", *changes)]
    assert (says in said[0]) if says else not said


def test_a_file_without_owners_names_every_area_that_has_none() -> None:
    (found,) = findings("owner-missing", "owners=")
    assert all(area in found.message for area in AREAS)
