"""What must be run again after a node was replaced."""

from __future__ import annotations

from datetime import timedelta

from builders.evidence import NOW, evidence, reading
from clusterwright.judging.refreshing import plan_reruns, without_replaced
from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site
from clusterwright.model.acceptance import Requirement

HOSTS = ("n1", "n2", "n3", "n4")
SITE = Site(hosts={"gpu": HOSTS}, engines={"gpu": "slurm"}, workloads={})
SIZE = {"operation": "all-reduce", "message_size": "8 GiB"}
REPLACED = {"n3": NOW - timedelta(minutes=30)}


def claim(id_, **fields):
    return Claim(id_, Requirement.model_validate(fields), f"acceptance.requirements.{id_}")


GPUS = claim("gpus", metric="gpus_present", equals=8, scope={"of": "node", "pool": "gpu"})
TOGETHER = claim("together", metric="busbw", at_least="350 GB/s", scope={"of": "pool", "pool": "gpu"}, conditions=SIZE)
PAIRS = claim("pairs", metric="busbw", at_least="350 GB/s", scope={"of": "pair", "pool": "gpu"}, conditions=SIZE)
TWO = claim(
    "two", metric="busbw", at_least="350 GB/s", scope={"of": "pool", "pool": "gpu", "nodes": 2}, conditions=SIZE
)


def each(hours_ago=1.0):
    return [evidence(reading("gpus_present", 8.0, [n]), hours_ago=hours_ago) for n in HOSTS]


def at_once(nodes, hours_ago=1.0):
    return evidence(reading("busbw", "380 GB/s", nodes, SIZE), hours_ago=hours_ago)


def reruns(claims, records, replaced=REPLACED):
    return plan_reruns(claims, records, replaced, now=NOW, site=SITE)


def test_a_claim_about_each_node_is_run_again_on_the_new_one_alone():
    (only,) = reruns([GPUS], each())
    assert only.nodes == ("n3",)
    assert "measured before n3 was replaced" in only.reason
    assert "on n3," in only.next_step


def test_a_claim_about_all_nodes_at_once_is_run_again_on_all():
    (only,) = reruns([TOGETHER], [at_once(HOSTS)])
    assert only.nodes == HOSTS


def test_a_claim_about_pairs_needs_the_new_node_and_one_partner():
    (only,) = reruns([PAIRS], [at_once(("n1", "n2")), at_once(("n3", "n4"))])
    assert only.nodes == ("n3", "n1")


def test_a_claim_that_other_nodes_prove_stands():
    assert reruns([TWO], [at_once(("n1", "n2"))]) == ()


def test_a_claim_about_two_nodes_that_only_the_old_node_proved_is_lost():
    (only,) = reruns([TWO], [at_once(("n3", "n4"))])
    assert only.nodes == ("n3", "n1")


def test_evidence_from_after_the_replacement_stands():
    assert reruns([GPUS], each(hours_ago=0.1)) == ()


def test_what_was_open_before_is_not_blamed_on_the_replacement():
    assert reruns([GPUS, TOGETHER], []) == ()


def test_nothing_replaced_nothing_to_run():
    assert reruns([GPUS, TOGETHER], [*each(), at_once(HOSTS)], {}) == ()


def test_the_order_is_that_of_the_claims():
    found = reruns([TOGETHER, GPUS], [*each(), at_once(HOSTS)])
    assert [r.claim.id for r in found] == ["together", "gpus"]


def test_readings_over_several_nodes_go_with_any_of_them_and_the_others_stay():
    records = [*each(), at_once(HOSTS)]
    kept = without_replaced(records, REPLACED)
    assert [r.nodes for e in kept for r in e.readings] == [("n1",), ("n2",), ("n4",)]


def test_a_record_that_began_before_and_ended_after_the_replacement_is_lost():
    long = evidence(reading("gpus_present", 8.0, ["n3"]), started=NOW - timedelta(hours=2), ended=NOW)
    assert without_replaced([long], REPLACED) == ()
