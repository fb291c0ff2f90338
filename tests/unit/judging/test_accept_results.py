"""What came back of an acceptance → evidence and verdicts: nothing passes that was not measured."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from builders.acceptance import NOON, a_run, nccl_output, planned, returned
from clusterwright.app.loading import load_catalogue
from clusterwright.judging.acceptance_pods import parse_pod
from clusterwright.judging.acceptance_runs import State, parse_run
from clusterwright.judging.acceptance_sites import pool_facts
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
    found = gather_findings(made.plan, runs, pool_facts(architecture, load_catalogue()))
    claims = collect_claims(architecture)
    verdicts = judge(claims, found.evidence, (), now=NOON + timedelta(hours=3), site=site_of(architecture))
    commands = {t.id: f"sh submit.sh {t.id}" for t in made.plan.tests}
    return next(v for v in explain_verdicts(verdicts, made.plan, found, commands) if v.id == claim)


def in_node(unit, text=None, **changes):
    run = replace(a_run("collective-in-node", unit, (unit,)), **changes)
    return returned(run, nccl_output(host=unit) if text is None else text)


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
    slow = in_node("gpu-002", nccl_output(busbw=200.0, host="gpu-002"), exit_code=1)
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
    slow = in_node("gpu-002", nccl_output(busbw=200.0, host="gpu-002"))
    again = returned(a_run("collective-in-node", "gpu-002", ("gpu-002",), attempt=2), nccl_output(host="gpu-002"))
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


def xid_log(node, hours=range(6, 14), event="", stamp="2026-11-02T{h:02d}:00:01,000000+00:00"):
    lines = [f"{stamp.format(h=h)} nvidia 0000:1b:00.0: enabling device of {node}\n" for h in hours]
    return "".join(lines) + event


def kernel_log(seconds_of_load, diag=None, **log):
    runs = []
    for node in ("gpu-001", "gpu-002"):
        if seconds_of_load:
            load = a_run("sustained-load", node, (node,), seconds=seconds_of_load)
            runs.append(returned(load, diagnosis(node) if diag is None else diag))
        taken = a_run("kernel-log", node, (node,), started=NOON + timedelta(hours=2), ended=NOON + timedelta(hours=2))
        runs.append(returned(taken, xid_log(node, **log), kind="kernel-log"))
    return runs


def diagnosis(node, status="Pass"):
    results = [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": i, "status": status} for i in range(8)]
    test = {"name": "targeted_power", "results": results, "test_summary": {"status": status}}
    category = {"category": "Stress", "tests": [test]}
    entities = [
        {"entity_group": "GPU", "entity_group_id": 1, "entities": [
            {"entity_id": i, "device_id": "2330", "serial_num": f"{node}-{i}"} for i in range(8)
        ]}
    ]  # fmt: skip
    metadata = {"version": "4.5.2", "Driver Version Detected": "595.91.07"}
    return json.dumps({"dcgm_version": "4.5.2", "driver_version": "595.91.07", "entity_groups": entities,
                       "metadata": metadata, "DCGM Diagnostic": {"test_categories": [category]}})  # fmt: skip


def test_a_quiet_log_proves_nothing_without_the_load_that_the_claim_asks_for():
    assert verdict_on("no-xid", *kernel_log(0)).outcome is Outcome.NOT_MEASURED
    assert verdict_on("no-xid", *kernel_log(1800)).outcome is Outcome.NOT_MEASURED
    long = verdict_on("no-xid", *kernel_log(7300))
    assert long.outcome is Outcome.MET, long.reason


def test_a_kernel_that_fell_silent_under_load_is_covered_by_a_log_taken_after_it():
    assert verdict_on("no-xid", *kernel_log(7300, hours=range(6, 12))).outcome is Outcome.MET


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ({"hours": range(11, 14)}, "the log begins 2026-11-02T11:00:01Z, after the load began"),
        ({"stamp": "2025-11-02T{h:02d}:00:01,000000+00:00"}, "before the load ended"),
        ({"stamp": "Nov  2 {h:02d}:00:01 gpu-001 kernel:"}, "no year or zone"),
        ({"stamp": "[{h:2d}000.000001]"}, "what came before was overwritten"),
    ],
)
def test_a_quiet_log_that_does_not_cover_the_load_proves_nothing(log, said):
    verdict = verdict_on("no-xid", *kernel_log(7300, **log))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert said in verdict.reason


def test_a_log_that_begins_at_boot_covers_the_load_by_its_stamps():
    verdict = verdict_on("no-xid", *kernel_log(7300, hours=range(50), stamp="[{h:2d}000.000000]"))
    assert verdict.outcome is Outcome.MET, verdict.reason


def test_an_xid_in_a_log_that_does_not_cover_the_load_counts():
    event = "2026-11-02T13:30:00,000000+00:00 NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n"
    assert verdict_on("no-xid", *kernel_log(7300, hours=range(11, 14), event=event)).outcome is Outcome.NOT_MET


@pytest.mark.parametrize(
    "diag", ["", "{}", "Error: unable to establish a connection to the specified host: localhost\n"]
)
def test_a_load_whose_own_output_cannot_be_read_is_no_load(diag):
    assert verdict_on("no-xid", *kernel_log(7300, diag=diag)).outcome is Outcome.NOT_MEASURED


def test_a_load_that_failed_by_its_own_output_is_no_load():
    assert verdict_on("no-xid", *kernel_log(7300, diag=diagnosis("x", "Fail"))).outcome is Outcome.NOT_MEASURED


def test_a_load_without_any_output_is_no_load():
    runs = [replace(r, outputs=()) if r.run.test == "sustained-load" else r for r in kernel_log(7300)]
    assert verdict_on("no-xid", *runs).outcome is Outcome.NOT_MEASURED


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


def rail(device, rate=392.1, layer="IB"):
    return f"""---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : {device}
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 PCIe relax order: ON
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 4096[B]
 Link type       : {layer}
 Max inline data : 0[B]
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0x12 QPN 0x029e PSN 0x73226b RKey 0x021400 VAddr 0x0078e9f9000000
 remote address: LID 0x13 QPN 0x02a4 PSN 0xf27096 RKey 0x020f00 VAddr 0x007acbe5000000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 1048576    470000           0.00               {rate:.2f}             0.046
---------------------------------------------------------------------------------------
"""


def rails(*texts):
    run = a_run("rdma-write", "gpu-001+gpu-002", ("gpu-001", "gpu-002"), role="client", node="gpu-002")
    return verdict_on("rdma-every-rail", returned(run, *texts))


EIGHT = [rail(f"mlx5_{i}") for i in range(8)]


def test_every_declared_rail_must_be_measured():
    whole = rails(*EIGHT)
    assert whole.outcome is Outcome.MET, whole.reason
    for some in (EIGHT[:1], EIGHT[:3], [rail("mlx5_0", 392 + i / 10) for i in range(8)]):
        verdict = rails(*some)
        assert verdict.outcome is Outcome.NOT_MEASURED
        names = {text.split("Device         : ")[1].split("\n")[0] for text in some}
        assert f"rails missing: {len(names)} of 8 measured" in verdict.reason


def test_a_slow_rail_fails_the_claim_though_others_are_missing():
    assert rails(rail("mlx5_0", 198.0), *EIGHT[1:3]).outcome is Outcome.NOT_MET


def test_ports_of_another_network_neither_fail_nor_stand_in_for_a_rail():
    slow = rail("mlx5_9", 98.0, "Ethernet")
    assert rails(*EIGHT, slow).outcome is Outcome.MET
    assert "7 of 8" in rails(*EIGHT[:7], rail("mlx5_9", 391.0, "Ethernet")).reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (nccl_output(), "it names gpu-001, the run was on gpu-002"),
        (nccl_output(host="node-7"), "it names node-7, the run was on gpu-002"),
        (nccl_output(host="gpu-002", gpu="NVIDIA A100-SXM4-80GB"), "taken on NVIDIA A100-SXM4-80GB"),
        (nccl_output(host="gpu-002", gpu="NVIDIA H200"), "taken on NVIDIA H200"),
    ],
)
def test_an_output_of_other_hosts_or_gpus_is_not_measured(text, said):
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), in_node("gpu-002", text))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert said in verdict.reason


def test_the_same_bytes_of_two_nodes_are_those_of_one():
    text = nccl_output(host="cw-collective-in-node-0")
    runs = [returned(a_run("collective-in-node", n, (n,), engine="kubernetes"), text) for n in ("gpu-001", "gpu-002")]
    units = [u for u in findings_of(*runs).units if u.test == "collective-in-node"]
    assert [u.state for u in units] == [State.READ, State.UNREAD]
    assert "the same bytes as collective-in-node/gpu-001" in units[1].reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": ("gpu-001", "gpu-003")}, "the run gpu-002 is of gpu-002"),
        ({"node": "gpu-001"}, "written on gpu-001"),
        ({"started": NOON}, "at the same moment"),
        ({"started": NOON + timedelta(seconds=9)}, "ended before it began"),
    ],
)
def test_a_record_that_contradicts_itself_is_not_measured(changes, said):
    verdict = verdict_on("all-reduce-in-node", in_node("gpu-001"), in_node("gpu-002", **changes))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "record contradicts itself" in verdict.reason
    assert said in verdict.reason


def test_a_record_that_took_no_time_counts_where_a_tool_only_looks():
    run = a_run("gpu-inventory", "gpu-001", started=NOON)
    unit = next(u for u in findings_of(returned(run, "x")).units if u.test == "gpu-inventory" and u.unit == "gpu-001")
    assert "contradicts" not in unit.reason


def test_a_first_placement_that_went_wrong_is_not_overwritten_by_a_second():
    wrong = (placement("gpu-001", range(8)), placement("gpu-002", range(8, 16), shared=True))
    again = [
        replace(r, run=replace(r.run, attempt=2))
        for r in (placement("gpu-001", range(8)), placement("gpu-002", range(8, 16)))
    ]
    assert verdict_on("tasks-land-as-declared", *wrong, *again).outcome is Outcome.NOT_MET
