"""What evidence proves, and above all what it does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site
from clusterwright.judging.verdicts import cover, exit_code, judge
from clusterwright.lib.quantities import Quantity, parse_quantity
from clusterwright.model.acceptance import Requirement
from clusterwright.model.evidence import (
    Evidence,
    Outcome,
    Reading,
    Rehearsal,
    RehearsalOutcome,
    Verdict,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NODES = ("gpu-001", "gpu-002")
SITE = Site(
    hosts={"gpu": NODES},
    engines={"gpu": "kubernetes"},
    workloads={"chat": "inference", "finetune": "training"},
    network_kinds=frozenset({"infiniband"}),
)
AT_16_GIB = (("operation", "all_reduce"), ("message_size", "17179869184 B"), ("data_type", "float"))


def claim(**fields: Any) -> Claim:
    body = {
        "metric": "busbw",
        "at_least": "350 GB/s",
        "scope": {"of": "pool", "pool": "gpu", "nodes": 2},
        "conditions": {"operation": "all-reduce", "message_size": "16 GiB", "data_type": "float32"},
        "max_age": "30 days",
    } | fields
    return Claim("it", Requirement.model_validate({k: v for k, v in body.items() if v is not None}), "acceptance.x")


def bandwidth(text: str = "382 GB/s", **fields: Any) -> Reading:
    body = {"metric": "busbw", "value": parse_quantity(text), "conditions": AT_16_GIB, "nodes": NODES} | fields
    return Reading(**body)


def evidence(*readings: Reading, **fields: Any) -> Evidence:
    body = {
        "id": "sha256:e",
        "requirements": ("it",),
        "tool": "nccl-tests",
        "readings": readings,
        "basis": "measured",
        "engine": "kubernetes",
        "devices": "real",
        "nodes": NODES,
        "started": NOW - timedelta(hours=2),
        "ended": NOW - timedelta(hours=1),
    } | fields
    return Evidence(**body)


def verdict(of: Claim, *records: Evidence, rehearsals: tuple[Rehearsal, ...] = (), **more: Any) -> Verdict:
    (only,) = judge([of], records, rehearsals, now=NOW, site=more.pop("site", SITE), **more)
    return only


def test_a_fresh_reading_over_the_whole_scope_on_the_declared_engine_is_met() -> None:
    found = verdict(claim(), evidence(bandwidth()))
    assert found.outcome is Outcome.MET
    assert found.evidence_id == "sha256:e"
    assert found.age_s == 3600
    assert "382 GB/s, required at least 350 GB/s" in found.reason


def test_the_wrong_side_of_the_threshold_is_not_met() -> None:
    found = verdict(claim(), evidence(bandwidth("349.9 GB/s")))
    assert found.outcome is Outcome.NOT_MET
    assert "349.9 GB/s on gpu-[001-002], required at least 350 GB/s" in found.reason


NOT_PROOF = {
    "nothing": ((), "not run"),
    "no readings": ((evidence(),), "unparsable: the output of nccl-tests holds no reading"),
    "unreadable": (
        (evidence(bandwidth(value=None, unreadable="NCCL WARN Timeout")),),
        "unparsable: 'NCCL WARN Timeout'",
    ),
    "skipped": ((evidence(bandwidth(value=None, unreadable="skipped: no peer")),), "skipped"),
    "n/a as text": ((evidence(bandwidth(value="N/A")),), "unparsable"),
    "a bare number": ((evidence(bandwidth(value=382.0)),), "unit unknown"),
    "bits for bytes": ((evidence(bandwidth("3056 Gb/s")),), "unit unknown"),
    "negative": ((evidence(bandwidth("-1 GB/s")),), "impossible value"),
    "infinite": (
        (evidence(bandwidth(value=Quantity(float("inf"), (("B", 1), ("s", -1))))),),
        "impossible value",
    ),
    "virtual devices": ((evidence(bandwidth(), devices="virtual"),), "virtual"),
    "a rehearsal": ((evidence(bandwidth(), basis="rehearsed"),), "virtual"),
    "the embedded engine": ((evidence(bandwidth(), engine="local"),), "wrong engine: run on local"),
    "no engine": ((evidence(bandwidth(), engine=""),), "wrong engine: run on no engine"),
    "old": ((evidence(bandwidth(), ended=NOW - timedelta(days=31), started=NOW - timedelta(days=32)),), "stale"),
    "from the future": ((evidence(bandwidth(), ended=NOW + timedelta(days=1)),), "impossible value"),
    "ended before it began": ((evidence(bandwidth(), started=NOW),), "impossible value"),
    "without time zone": (
        (evidence(bandwidth(), started=datetime(2026, 11, 30), ended=datetime(2026, 11, 30)),),
        "impossible value",
    ),
    "one node of two": ((evidence(bandwidth(nodes=NODES[:1])),), "scope too small: 1 of 2"),
    "each node alone": (
        (evidence(bandwidth(nodes=NODES[:1]), bandwidth(nodes=NODES[1:])),),
        "scope too small",
    ),
    "no node named": ((evidence(bandwidth(nodes=()), nodes=()),), "scope too small: no node"),
    "hosts of another cluster": (
        (evidence(bandwidth(nodes=("x1", "x2")), nodes=("x1", "x2")),),
        "other nodes: x[1-2]",
    ),
    "hosts that the record lacks": ((evidence(bandwidth(), nodes=NODES[:1]),), "impossible value"),
    "no message size": (
        (evidence(bandwidth(conditions=(("operation", "all-reduce"), ("data_type", "float")))),),
        "message size unknown",
    ),
    "another message size": (
        (evidence(bandwidth(conditions=(*AT_16_GIB[:1], ("message_size", "16 MiB"), AT_16_GIB[2]))),),
        "other conditions: message size 16 MiB",
    ),
    "16 GB is not 16 GiB": (
        (evidence(bandwidth(conditions=(*AT_16_GIB[:1], ("message_size", "16 GB"), AT_16_GIB[2]))),),
        "other conditions",
    ),
    "another operation": (
        (evidence(bandwidth(conditions=(("operation", "all-gather"), *AT_16_GIB[1:]))),),
        "other conditions: operation all-gather",
    ),
    "another class": (
        (evidence(Reading("ttft_p95", parse_quantity("1 s"), (), NODES)),),
        "not run: nccl-tests gave ttft_p95, which does not prove busbw",
    ),
    "a part of the record lost": (
        (evidence(bandwidth(), bandwidth(value=None, unreadable="garbled")),),
        "unparsable: 'garbled'",
    ),
}


@pytest.mark.parametrize(("records", "reason"), NOT_PROOF.values(), ids=NOT_PROOF.keys())
def test_what_is_not_proof_is_not_measured_and_says_why(records: tuple[Evidence, ...], reason: str) -> None:
    found = verdict(claim(), *records)
    assert found.outcome is Outcome.NOT_MEASURED
    assert reason in found.reason
    assert "all_reduce_perf" in found.next_step


def test_a_later_pass_does_not_overwrite_a_failure() -> None:
    early = evidence(bandwidth("100 GB/s"), id="sha256:early", ended=NOW - timedelta(minutes=90))
    late = evidence(bandwidth("390 GB/s"), id="sha256:late", ended=NOW - timedelta(minutes=1))
    for order in ((early, late), (late, early)):
        found = verdict(claim(), *order)
        assert found.outcome is Outcome.NOT_MET
        assert found.evidence_id == "sha256:early"


def test_a_failure_counts_even_where_a_part_of_the_record_is_lost() -> None:
    found = verdict(claim(), evidence(bandwidth("10 GB/s"), bandwidth(value=None, unreadable="garbled")))
    assert found.outcome is Outcome.NOT_MET


def test_a_garbled_run_does_not_spoil_a_clean_one() -> None:
    garbled = evidence(bandwidth(value=None, unreadable="killed"), id="sha256:g")
    assert verdict(claim(), garbled, evidence(bandwidth())).outcome is Outcome.MET


def test_readings_at_other_sizes_of_the_same_run_do_not_disturb() -> None:
    small = bandwidth("2 GB/s", conditions=(AT_16_GIB[0], ("message_size", "1 MiB"), AT_16_GIB[2]))
    assert verdict(claim(), evidence(small, bandwidth())).outcome is Outcome.MET


def test_a_failure_counts_even_when_the_record_names_other_requirements() -> None:
    found = verdict(claim(), evidence(bandwidth()), evidence(bandwidth("5 GB/s"), requirements=("other",)))
    assert found.outcome is Outcome.NOT_MET


def health(**fields: Any) -> Claim:
    scope = {"of": "node", "pool": "gpu", "nodes": 2}
    return claim(metric="dcgm_failures", at_least=None, at_most=0, scope=scope, conditions=None, **fields)


def on(node: str, value: Any, metric: str = "dcgm_failures") -> Reading:
    return Reading(metric, value, (), (node,))


def test_a_node_silently_dropped_from_the_set_is_named() -> None:
    found = verdict(health(), evidence(on("gpu-001", 0.0), tool="dcgmi"))
    assert found.outcome is Outcome.NOT_MEASURED
    assert "1 of 2 nodes, without gpu-002" in found.reason


def test_records_of_single_nodes_add_up_to_a_node_scope() -> None:
    records = [evidence(on(n, 0.0), nodes=(n,), id=f"sha256:{n}") for n in NODES]
    assert verdict(health(), *records).outcome is Outcome.MET


def test_the_first_node_does_not_speak_for_the_others() -> None:
    found = verdict(health(), evidence(on("gpu-001", 0.0), on("gpu-002", 3.0)))
    assert found.outcome is Outcome.NOT_MET
    assert "3 on gpu-002" in found.reason


def test_a_reading_over_both_nodes_is_not_about_each_alone() -> None:
    inside = claim(scope={"of": "node", "pool": "gpu", "nodes": 2})
    assert "other scope" in verdict(inside, evidence(bandwidth("470 GB/s"))).reason


@pytest.mark.parametrize("value", [True, "0", 0.5, -1.0])
def test_what_is_no_count_does_not_count(value: Any) -> None:
    found = verdict(health(), evidence(on("gpu-001", value), on("gpu-002", 0.0)))
    assert found.outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"at_least": "0 GB/s"}, "threshold proves nothing"),
        ({"at_least": None, "at_most": "400 GB/s"}, "threshold points the wrong way"),
        ({"conditions": {"operation": "all-reduce"}}, "message size unknown"),
        ({"scope": {"of": "pool", "pool": "gpus", "nodes": 2}}, "no worker pool 'gpus'; declared are gpu"),
        ({"scope": {"of": "pool", "pool": "gpu", "nodes": 2, "workload": "chatt"}}, "no workload 'chatt'"),
        ({"scope": {"of": "pool", "pool": "gpu", "nodes": 3}}, "scope too large"),
        ({"scope": {"of": "rack", "pool": "gpu"}}, "how many nodes a rack has"),
    ],
)
def test_a_requirement_that_nothing_could_prove_is_not_measured(fields: dict[str, Any], reason: str) -> None:
    found = verdict(claim(**fields), evidence(bandwidth()))
    assert found.outcome is Outcome.NOT_MEASURED
    assert reason in found.reason
    assert "correct acceptance.x" in found.next_step


def test_gpus_at_most_eight_is_no_threshold_for_presence() -> None:
    upper = health().requirement.model_copy(update={"metric": "gpus_present", "at_most": 8.0})
    found = verdict(Claim("it", upper, "acceptance.x"), evidence(*(on(n, 0.0, "gpus_present") for n in NODES)))
    assert "points the wrong way" in found.reason


def test_a_value_above_what_the_hardware_can_do_is_no_measurement() -> None:
    found = verdict(claim(), evidence(bandwidth("838 GB/s")), limits={"it": parse_quantity("350 GB/s")})
    assert found.outcome is Outcome.NOT_MEASURED
    assert "impossible value: 838 GB/s is above 350 GB/s" in found.reason


def test_a_latency_of_zero_was_not_measured() -> None:
    quick = claim(metric="cold_start", at_least=None, at_most="5 min", conditions=None)
    found = verdict(quick, evidence(Reading("cold_start", parse_quantity("0 s"), (), NODES)))
    assert "impossible value" in found.reason


def test_a_reading_must_say_which_workload_it_is_of() -> None:
    scope = {"of": "cluster", "nodes": 2, "workload": "chat"}
    cold = claim(metric="cold_start", at_least=None, at_most="5 min", conditions=None, scope=scope)
    reading = Reading("cold_start", parse_quantity("2 min"), (), NODES)
    assert verdict(cold, evidence(reading)).outcome is Outcome.MET  # the record names the requirement
    assert verdict(cold, evidence(reading, requirements=())).outcome is Outcome.NOT_MEASURED
    said = replace(reading, conditions=(("workload", "chat"),))
    assert verdict(cold, evidence(said, requirements=())).outcome is Outcome.MET
    other = replace(reading, conditions=(("workload", "finetune"),))
    assert "of finetune, required chat" in verdict(cold, evidence(other)).reason


def test_a_run_longer_than_required_counts_and_a_shorter_does_not() -> None:
    sustained = claim(metric="dcgm_failures", at_least=None, at_most=0, conditions={"duration": "2 h"})
    for length, outcome in (("3 h", Outcome.MET), ("1 h", Outcome.NOT_MEASURED)):
        reading = Reading("dcgm_failures", 0.0, (("duration", length),), NODES)
        assert verdict(sustained, evidence(reading)).outcome is outcome


def test_an_image_is_its_digest_wherever_it_was_pulled_from() -> None:
    image = claim(metric="image_digest", at_least=None, equals="sha256:" + "a" * 64, conditions=None)
    same = Reading("image_digest", "mirror.example/vllm@sha256:" + "a" * 64, (), NODES)
    assert verdict(image, evidence(same)).outcome is Outcome.MET
    other = replace(same, value="mirror.example/vllm@sha256:" + "b" * 64)
    assert verdict(image, evidence(other)).outcome is Outcome.NOT_MET


def test_what_makes_no_sense_for_the_workload_is_not_applicable() -> None:
    scope = {"of": "cluster", "nodes": 2, "workload": "chat"}
    steps = claim(metric="step_time", at_least=None, at_most="5 s", conditions=None, scope=scope)
    found = verdict(steps)
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert "chat is inference" in found.reason


def rehearsal(outcome: RehearsalOutcome, *readings: Reading, name: str = "worker-loss", **more: Any) -> Rehearsal:
    return Rehearsal(name=name, outcome=outcome, reason="as observed", readings=readings, **more)


def recovery() -> Claim:
    scope = {"of": "cluster", "nodes": 2, "workload": "finetune"}
    return claim(metric="recovery_time", at_least=None, at_most="15 min", conditions=None, scope=scope)


def test_a_rehearsal_has_its_own_column_and_never_makes_a_claim_met() -> None:
    reading = Reading("recovery_time", parse_quantity("3 s"), (), NODES)
    ran = rehearsal(RehearsalOutcome.PASSED, reading, workload="finetune")
    found = verdict(recovery(), rehearsals=(ran,))
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.rehearsal is RehearsalOutcome.PASSED
    assert found.rehearsed == "3 s on virtual nodes; target at most 15 min"


def test_a_slow_rehearsal_does_not_refute_what_depends_on_the_host() -> None:
    reading = Reading("recovery_time", parse_quantity("20 min"), (), NODES)
    found = verdict(recovery(), rehearsals=(rehearsal(RehearsalOutcome.PASSED, reading),))
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.rehearsal is RehearsalOutcome.FAILED


def test_a_rehearsal_of_another_workload_says_nothing() -> None:
    reading = Reading("recovery_time", parse_quantity("3 s"), (), NODES)
    found = verdict(recovery(), rehearsals=(rehearsal(RehearsalOutcome.PASSED, reading, workload="chat"),))
    assert found.rehearsal is RehearsalOutcome.NOT_RUN
    assert found.rehearsed == ""


def test_tasks_that_land_elsewhere_refute_the_claim_on_any_host() -> None:
    tasks = claim(metric="tasks_as_expected", at_least="100%", conditions=None)
    reading = Reading("tasks_as_expected", parse_quantity("83%"), (), NODES)
    ran = rehearsal(RehearsalOutcome.FAILED, reading, name="scheduled-execution")
    found = verdict(tasks, rehearsals=(ran,))
    assert found.outcome is Outcome.NOT_MET
    assert "refuted by the rehearsal: 83%" in found.reason
    perfect = rehearsal(
        RehearsalOutcome.PASSED, replace(reading, value=parse_quantity("100%")), name="scheduled-execution"
    )
    assert verdict(tasks, rehearsals=(perfect,)).outcome is Outcome.NOT_MEASURED


def test_a_rehearsal_that_broke_before_it_saw_anything_refutes_nothing() -> None:
    tasks = claim(metric="tasks_as_expected", at_least="100%", conditions=None)
    found = verdict(tasks, rehearsals=(rehearsal(RehearsalOutcome.FAILED, name="scheduled-execution"),))
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.rehearsal is RehearsalOutcome.FAILED


def test_exit_codes_follow_from_what_is_required() -> None:
    met = verdict(claim(), evidence(bandwidth()))
    not_met = verdict(claim(), evidence(bandwidth("1 GB/s")))
    missing = verdict(claim())
    informational = verdict(claim(required=False))
    assert exit_code(cover([met])) == 0
    assert exit_code(cover([met, informational])) == 0
    assert exit_code(cover([met, missing])) == 3
    assert exit_code(cover([met, missing, not_met])) == 1
    assert exit_code(cover([])) == 3, "nothing required is nothing proven"
    assert exit_code(cover([informational])) == 3


def test_coverage_counts_by_class_and_names_the_oldest() -> None:
    found = cover([verdict(claim(), evidence(bandwidth())), verdict(health())])
    assert (found.met, found.not_measured, found.oldest_age_s) == (1, 1, 3600)
    assert dict(found.by_class)["data-path"] == (1, 0, 0, 0)
    assert dict(found.by_class)["hardware-health"] == (0, 0, 1, 0)


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(allow_nan=True),
    st.sampled_from(["", "382 GB/s", "pass", "skipped"]),
    st.builds(
        Quantity,
        st.floats(allow_nan=False),
        st.sampled_from([(("B", 1), ("s", -1)), (("b", 1), ("s", -1)), (), (("s", 1),)]),
    ),
)
_READINGS = st.builds(
    Reading,
    metric=st.sampled_from(["busbw", "algbw", "ttft_p95"]),
    value=_VALUES,
    conditions=st.sampled_from([AT_16_GIB, AT_16_GIB[:1], ()]),
    nodes=st.sampled_from([NODES, NODES[:1], (), ("x",)]),
    unreadable=st.sampled_from(["", "skipped", "boom"]),
)
_EVIDENCE = st.builds(
    evidence,
    _READINGS,
    _READINGS,
    basis=st.sampled_from(["measured", "rehearsed"]),
    engine=st.sampled_from(["kubernetes", "local", ""]),
    devices=st.sampled_from(["real", "virtual"]),
    nodes=st.sampled_from([NODES, NODES[:1], ()]),
    ended=st.sampled_from([NOW - timedelta(days=d) for d in (0, 1, 29, 31, 400)] + [NOW + timedelta(days=3)]),
    started=st.just(NOW - timedelta(days=500)),
    requirements=st.sampled_from([("it",), (), ("other",)]),
)


def proves(record: Evidence) -> bool:
    """An independent, plain statement of what a proof of the claim needs."""
    return (
        (record.basis, record.engine, record.devices, record.nodes) == ("measured", "kubernetes", "real", NODES)
        and timedelta(0) <= NOW - record.ended <= timedelta(days=30)
        and any(
            r.metric == "busbw"
            and isinstance(r.value, Quantity)
            and r.value.powers == (("B", 1), ("s", -1))
            and 350e9 <= r.value.value < float("inf")
            and r.conditions == AT_16_GIB
            and r.nodes in (NODES, ())
            for r in record.readings
        )
    )


@given(st.lists(_EVIDENCE, max_size=4))
@settings(max_examples=300, deadline=None)
def test_no_evidence_without_a_matching_measured_reading_is_met(records: list[Evidence]) -> None:
    if verdict(claim(), *records).outcome is Outcome.MET:
        assert any(proves(r) for r in records)


@given(st.lists(_EVIDENCE, min_size=1, max_size=3), st.sampled_from(["virtual", "rehearsed", "stale", "one node"]))
@settings(max_examples=200, deadline=None)
def test_evidence_spoilt_in_one_way_is_never_met(records: list[Evidence], how: str) -> None:
    spoil = {
        "virtual": {"devices": "virtual"},
        "rehearsed": {"basis": "rehearsed"},
        "stale": {"ended": NOW - timedelta(days=31)},
        "one node": {"nodes": NODES[:1]},
    }[how]
    assert verdict(claim(), *(replace(r, **spoil) for r in records)).outcome is not Outcome.MET


@given(st.lists(_EVIDENCE, max_size=3), st.randoms())
@settings(max_examples=100, deadline=None)
def test_the_order_of_evidence_decides_nothing(records: list[Evidence], random: Any) -> None:
    shuffled = list(records)
    random.shuffle(shuffled)
    assert verdict(claim(), *records).outcome is verdict(claim(), *shuffled).outcome
