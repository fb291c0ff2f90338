"""What came back of an acceptance → evidence and verdicts: nothing passes that was not measured."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from builders.acceptance import NOON, a_run, nccl_output, planned, returned
from clusterwright.judging.acceptance_pods import parse_pod
from clusterwright.judging.acceptance_runs import State, parse_run
from clusterwright.judging.acceptance_stale import stale_after_replacement
from clusterwright.judging.acceptance_verdicts import explain_verdicts, gather_findings
from clusterwright.judging.requirements import collect_claims
from clusterwright.judging.sites import site_of
from clusterwright.judging.verdicts import judge
from clusterwright.model.evidence import Outcome

ENGINE = "scheduling.engine=slurm"
RECORD = {
    "format": "clusterwright-run/1", "test": "t", "reader": "fio", "unit": "n1", "attempt": 1, "role": "", "node": "n1",
    "nodes": "n1", "engine": "slurm", "started": "2026-11-02T12:00:00Z", "ended": "2026-11-02T12:01:00Z",
    "exit_code": 0, "timed_out": False, "lacking": "", "files": "fio.json ../../etc/passwd",
}  # fmt: skip


def findings_of(*runs):
    return gather_findings(planned(ENGINE).plan, runs)


def verdict_on(claim, *runs):
    made = planned(ENGINE)
    architecture = made.document.architecture
    found = gather_findings(made.plan, runs)
    claims = collect_claims(architecture)
    verdicts = judge(claims, found.evidence, (), now=NOON + timedelta(hours=1), site=site_of(architecture))
    commands = {t.id: f"sh submit.sh {t.id}" for t in made.plan.tests}
    return next(v for v in explain_verdicts(verdicts, made.plan, found, commands) if v.id == claim)


def in_node(unit, text=None, **changes):
    run = a_run("collective-in-node", unit, (unit,), **changes)
    return returned(run, nccl_output() if text is None else text)


def test_a_record_is_read_and_names_no_file_elsewhere():
    run = parse_run(json.dumps(RECORD))
    assert (run.node, run.exit_code, run.files) == ("n1", 0, ("fio.json",))
    assert run.ended - run.started == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ('{"format": "clusterwright-run/1", "test"', "cut off"),
        ("[]", "not a record"),
        (json.dumps(RECORD | {"format": "clusterwright-run/2"}), "another format"),
        (json.dumps(RECORD | {"started": "yesterday"}), "without the times"),
        (json.dumps(RECORD | {"started": "2026-11-02T12:00:00"}), "without the times"),
        (json.dumps(RECORD | {"exit_code": "0"}), "exit code"),
        ("[" * 100_000, "larger than any record"),
    ],
)
def test_a_broken_record_says_what_is_wrong(text, said):
    assert said in parse_run(text)


def test_a_claim_about_every_node_is_met_when_every_node_reports():
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), in_node("gpu-002"))
    assert verdict.outcome is Outcome.MET, verdict.reason


def test_a_node_that_did_not_report_leaves_the_claim_not_measured_and_is_named():
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "did not report (gpu-002)" in verdict.reason
    assert "sh submit.sh collective-in-node on gpu-002" in verdict.next_step


def test_missing_hardware_is_the_reason_and_never_a_failure():
    runs = [
        returned(a_run("collective-in-node", n, (n,), exit_code=None, lacking="no such hardware: no GPU"))
        for n in ("gpu-001", "gpu-002")
    ]
    verdict = verdict_on("all-reduce-in-node", *runs)
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert verdict.reason == "no such hardware: no GPU (gpu-[001-002])"


def test_a_command_that_failed_gives_no_pass():
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), in_node("gpu-002", exit_code=1))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "exit code 1" in verdict.reason


def test_a_command_that_failed_still_counts_where_it_measured_too_little():
    slow = in_node("gpu-002", nccl_output(busbw=200.0), exit_code=1)
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), slow)
    assert verdict.outcome is Outcome.NOT_MET


def test_a_run_that_was_ended_after_its_limit_gives_no_pass():
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), in_node("gpu-002", timed_out=True, exit_code=124))
    assert verdict.outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize("text", ["", "srun: error: Unable to create step\n", nccl_output()[:700]])
def test_an_empty_foreign_or_cut_output_is_not_measured(text):
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), in_node("gpu-002", text))
    assert verdict.outcome is Outcome.NOT_MEASURED


def test_a_later_pass_does_not_overwrite_a_failure():
    slow = in_node("gpu-002", nccl_output(busbw=200.0))
    again = returned(a_run("collective-in-node", "gpu-002", ("gpu-002",), attempt=2), nccl_output())
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), slow, again)
    assert verdict.outcome is Outcome.NOT_MET


def test_wrong_results_are_a_failure_of_correctness():
    run = in_node("gpu-001", nccl_output(wrong="12"))
    found = findings_of(run)
    errors = [r.value for e in found.evidence for r in e.readings if r.metric == "collective_errors"]
    assert errors
    assert all(value is None or value > 0 for value in errors)


def test_files_that_were_altered_on_the_way_are_not_used():
    run = returned(a_run("collective-in-node", "gpu-001"), problem="stdout.txt was altered after it was collected")
    found = findings_of(run)
    unit = next(u for u in found.units if (u.test, u.unit) == ("collective-in-node", "gpu-001"))
    assert (unit.state, unit.reason) == (State.UNREAD, "stdout.txt was altered after it was collected")
    assert not found.evidence


def test_a_run_on_another_engine_does_not_count():
    verdict = verdict_on("all-reduce-in-node", *(in_node(n, engine="local") for n in ("gpu-001", "gpu-002")))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "wrong engine" in verdict.reason


def test_the_server_of_a_pair_is_not_taken_for_the_measurement():
    run = a_run("rdma-write", "gpu-001+gpu-002", ("gpu-001", "gpu-002"), role="server")
    unit = next(u for u in findings_of(returned(run, "x")).units if u.test == "rdma-write")
    assert unit.state is State.ABSENT


def test_runs_that_the_plan_does_not_know_are_named():
    assert findings_of(returned(a_run("mystery", "gpu-009"), "x")).unplanned == ("mystery on gpu-009",)


@pytest.mark.parametrize(("without", "held"), [(367.0, True), (478.0, False)])
def test_a_control_holds_only_when_the_number_falls(without, held):
    off = returned(a_run("control-without-nvls", "gpu-001"), nccl_output(busbw=without))
    control = next(c for c in findings_of(in_node("gpu-001"), off).controls if c.test == "control-without-nvls")
    assert control.held is held
    assert "480.0 →" in control.text


def test_a_control_that_did_not_run_is_open_and_its_output_never_proves_a_claim():
    found = findings_of(returned(a_run("control-without-nvls", "gpu-001"), nccl_output()))
    control = next(c for c in found.controls if c.test == "control-without-nvls")
    assert control.held is None
    assert not found.evidence


def kernel_log(seconds_of_load):
    lines = "".join(
        f"2026-11-02T{h:02d}:00:01,000000+00:00 nvidia 0000:1b:00.0: enabling device\n" for h in range(6, 12)
    )
    runs = []
    for node in ("gpu-001", "gpu-002"):
        if seconds_of_load:
            runs.append(returned(a_run("sustained-load", node, (node,), seconds=seconds_of_load), "{}"))
        runs.append(returned(a_run("kernel-log", node, (node,)), lines, kind="kernel-log"))
    return runs


def test_a_quiet_log_proves_nothing_without_the_load_that_the_claim_asks_for():
    assert verdict_on("no-xid", *kernel_log(0)).outcome is Outcome.NOT_MEASURED
    assert verdict_on("no-xid", *kernel_log(1800)).outcome is Outcome.NOT_MEASURED
    long = verdict_on("no-xid", *kernel_log(7300))
    assert long.outcome is Outcome.MET, long.reason


def placement(node, ranks, world=16, shared=False):
    members = [[r, f"gpu-{r // 8 + 1:03d}", f"GPU-{r}"] for r in range(world)]
    lines = [
        json.dumps({
            "format": "clusterwright-placement/1", "node": node, "host": node, "node_rank": 0, "rank": r,
            "local_rank": r % 8, "world_size": world, "device": "GPU-0" if shared else f"GPU-{r}", "devices": [],
            "pid": r, "image": "", "members": members, "meeting": "",
        })
        for r in ranks
    ]  # fmt: skip
    return returned(a_run("placement", node, (node,)), "\n".join(lines) + "\n")


def test_the_outputs_of_all_nodes_together_say_whether_a_job_landed_as_declared():
    whole = verdict_on("tasks-land-as-declared", placement("gpu-001", range(8)), placement("gpu-002", range(8, 16)))
    assert whole.outcome is Outcome.MET, whole.reason
    shared = placement("gpu-002", range(8, 16), shared=True)
    assert verdict_on("tasks-land-as-declared", placement("gpu-001", range(8)), shared).outcome is Outcome.NOT_MET


def test_a_node_whose_ranks_did_not_report_leaves_the_placement_open():
    verdict = verdict_on("tasks-land-as-declared", placement("gpu-001", range(8)))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "gpu-002" in verdict.reason


def test_a_smaller_job_than_planned_proves_nothing_about_the_planned_one():
    runs = (placement("gpu-001", range(4), world=8), placement("gpu-002", range(4, 8), world=8))
    assert verdict_on("tasks-land-as-declared", *runs).outcome is Outcome.NOT_MEASURED


POD = {
    "kind": "Pod",
    "metadata": {"labels": {"clusterwright.dev/test": "placement"}},
    "spec": {"nodeName": "gpu-001"},
    "status": {
        "containerStatuses": [
            {"imageID": "docker-pullable://reg/x@sha256:ab", "state": {"terminated": {"exitCode": 0}}}
        ]
    },
}


def test_the_image_is_what_the_node_ran():
    pod = parse_pod(json.dumps(POD))
    assert (pod.node, pod.image, pod.problem) == ("gpu-001", "reg/x@sha256:ab", "")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "OOMKilled"),
        ({"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}, "ImagePullBackOff no such tag"),
    ],
)
def test_a_pod_that_did_not_end_well_says_why(state, said):
    pod = json.loads(json.dumps(POD))
    pod["status"]["containerStatuses"][0]["state"] = state
    assert said in parse_pod(json.dumps(pod)).problem


@pytest.mark.parametrize("text", ["", "null", "[]", '{"kind": "Job"}', '{"kind": "Pod", "status": 3, "spec": []}'])
def test_anything_else_than_a_pod_does_no_harm(text):
    pod = parse_pod(text)
    assert pod is None or pod.image == ""


def test_only_claims_that_were_met_become_stale_with_a_replaced_node():
    made = planned(ENGINE)
    architecture = made.document.architecture
    claims, site = collect_claims(architecture), site_of(architecture)
    evidence = gather_findings(made.plan, [in_node("gpu-001"), in_node("gpu-002")]).evidence
    later = NOON + timedelta(hours=1)
    stale = stale_after_replacement(claims, evidence, ("gpu-002",), now=later, site=site)
    assert list(stale) == ["all-reduce-in-node"]
    unknown = stale_after_replacement(claims, None, ("gpu-002",), now=later, site=site)
    assert len(unknown) > 10


def test_evidence_names_what_it_was_taken_on():
    found = findings_of(replace(in_node("gpu-001"), run=a_run("collective-in-node", "gpu-001")))
    environment = dict(found.evidence[0].environment)
    assert environment["driver"] == "550.90.07"
    assert found.evidence[0].requirements == ("all-reduce-in-node",)
