from pathlib import Path

import pytest

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome
from clusterwright.readers.kubernetes.explaining import explain
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "k8s-pending"


def read(text):
    return read_output([text.encode()], kind="k8s-pending")


def codes(run):
    return [notice.code for notice in run.notices]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/5 nodes are available: 5 Insufficient nvidia.com/gpu.", ["insufficient-resource"]),
        (
            "0/6 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate, 5 Insufficient cpu.",
            ["untolerated-taint", "insufficient-resource"],
        ),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {gpu: }, 1 node(s) "
            "were unschedulable. preemption: 0/2 "
            "nodes are available: 2 Preemption is not helpful for scheduling.",
            ["untolerated-taint", "node-unschedulable"],
        ),
        (
            "No nodes are available that match all of the predicates: Insufficient "
            "nvidia.com/gpu (3), MatchNodeSelector (2).",
            ["insufficient-resource", "node-selector"],
        ),
        ("0/3 nodes are unavailable: 2 Insufficient nvidia.com/gpu, 1 node(s) didn't match pod anti-affinity rules.",
         ["insufficient-resource", "pod-affinity"]),
        ("0/1 nodes are available: 1 cannot allocate all claims.", ["device-claim"]),
        ("resource nvidia.com/gpu unavailable in ClusterQueue", ["resource-not-covered"]),
        ("ClusterQueue team-x doesn't exist", ["queue-missing"]),
        ('topology "racks" allows to fit only 2 out of 4 pod(s)', ["topology-does-not-fit"]),
        ("exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: "
         "requests.nvidia.com/gpu=8", ["namespace-quota"]),
        ("Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 2, "
         "Available: 1, which is unexpected", ["devices-unavailable"]),
        ("nothing that anybody knows", []),
    ],
)  # fmt: skip
def test_messages_become_reasons(message, expected):
    assert [reason.code for reason in explain(message)] == expected


def test_every_pod_set_and_flavor_of_a_kueue_message_is_a_reason():
    reasons = explain(
        "couldn't assign flavors to pod set master: insufficient unused quota for "
        "nvidia.com/gpu in flavor a, 8 more needed, "
        "insufficient unused quota for nvidia.com/gpu in flavor b, 4 more needed; "
        "couldn't assign flavors to pod set worker: "
        "insufficient quota for nvidia.com/gpu in flavor a, request > maximum capacity (16 > 8)"
    )
    assert [(r.code, r.pod_set, r.flavor, dict(r.numbers)) for r in reasons] == [
        ("quota-in-use", "master", "a", {"needed": "8"}),
        ("quota-in-use", "master", "b", {"needed": "4"}),
        ("quota-too-small", "worker", "a", {"requested": "16", "limit": "8"}),
    ]


def test_the_newer_wording_over_several_pod_sets_is_read():
    (reason,) = explain(
        "insufficient quota for cpu in flavor f, previously considered podsets requests "
        "(16) + current podset request (8) > "
        "maximum capacity (16)"
    )
    assert reason.code == "quota-too-small"
    assert dict(reason.numbers) == {"requested": "8", "limit": "16"}


def test_events_say_who_is_stuck_and_who_only_waited():
    transcript = read_file(FIXTURES / "events.txt")
    assert transcript.kind == "k8s-pending"
    (run,) = transcript.runs
    assert values(run, "pending_reason", object="workload/job-big-7f3a1") == ["quota-too-small"]
    assert values(run, "limit", object="workload/job-big-7f3a1") == [32.0]
    assert values(run, "pending_reason", object="workload/job-mid-19c2d") == []
    assert values(run, "workload_state", object="workload/job-mid-19c2d") == ["admitted"]
    assert values(run, "wait_time", workload="job-mid-19c2d")[0].to("s") == 421
    assert values(run, "pending_reason", object="pod/train-3") == ["insufficient-resource"]
    assert values(run, "gang_minimum", object="podgroup/train") == [4.0]
    assert "waited-then-ran" in codes(run)


def test_ages_decide_where_events_are_not_in_order():
    header = "LAST SEEN   TYPE      REASON     OBJECT         MESSAGE\n"
    later = "1m          Normal    Admitted   workload/w     Admitted by ClusterQueue q\n"
    earlier = (
        "9m          Warning   Pending    workload/w     couldn't assign flavors to pod "
        "set main: insufficient unused quota for cpu in flavor f, 1 more needed\n"
    )
    for rows in (later + earlier, earlier + later):
        (run,) = read(header + rows).runs
        assert values(run, "pending_reason") == []
    again = earlier.replace("9m ", "10s")
    (run,) = read(header + later + again).runs
    assert values(run, "pending_reason") == ["quota-in-use"]


def test_an_unknown_waiting_time_of_kueue_is_no_number():
    text = "Normal  QuotaReserved  job-x  Quota reserved in ClusterQueue q, wait time since queued was 9223372037s\n"
    (run,) = read(text).runs
    assert isinstance(values(run, "wait_time")[0], NoValue)


def test_reserved_quota_is_not_admission():
    (run,) = read_file(FIXTURES / "workloads.yaml").runs
    state = {dict(o.subject)["workload"]: o.value for o in run.observations if o.name == "workload_state"}
    assert state == {"job-alpha": "waiting for quota", "job-beta": "waiting for checks", "job-gamma": "admitted"}
    assert "waits for provision (Pending)" in next(
        n.message for n in run.notices if n.code == "waits-for-admission-check"
    )


def test_a_workload_asks_for_its_pods_times_their_requests():
    (run,) = read_file(FIXTURES / "workloads.yaml").runs
    assert values(run, "resource_request", workload="job-alpha", resource="nvidia.com/gpu") == [32.0]
    assert values(run, "resource_request", workload="job-alpha", resource="cpu") == [2.0]
    assert values(run, "needed", workload="job-alpha") == [12.0]


def test_a_described_workload_is_read_like_the_object():
    text = (
        "Name:         job-x\nNamespace:    ns\nAPI Version:  kueue.x-k8s.io/v1beta1\nKind:         Workload\nStatus:\n"
        "  Conditions:\n    Last Transition Time:  2025-05-22T08:48:47Z\n"
        "    Message:               couldn't assign flavors to pod set main: "
        "insufficient unused quota for memory in flavor f, "
        "4396Mi more needed\n    Reason:                Pending\n    Status:                False\n"
        "    Type:                  QuotaReserved\n"
    )
    (run,) = read(text).runs
    assert values(run, "pending_reason") == ["quota-in-use"]
    assert values(run, "needed")[0].to("MiB") == 4396


def test_an_autoscaler_log_shows_the_plan():
    transcript = read_file(FIXTURES / "autoscaler.log")
    assert transcript.kind == "k8s-pending"
    (run,) = transcript.runs
    assert values(run, "pods_unplaceable", resource="nvidia.com/gpu") == [2.0]
    assert [values(run, f"group_size_{end}", group="pool-h100") for end in ("from", "to", "max")] == [
        [2.0],
        [5.0],
        [8.0],
    ]
    assert "from 2 to 5" in next(n.message for n in run.notices if n.code == "scale-up")


def test_a_rejected_pod_is_no_waiting_pod():
    text = (
        "Events:\n  Type     Reason                    Age   From     Message\n  ----    "
        " ------                    ----  ----     -------\n"
        "  Warning  UnexpectedAdmissionError  13s   kubelet  Allocate failed due to rpc "
        "error: code = Unknown desc = request for "
        "'nvidia.com/gpu: 4' too large: maximum request size for shared resources is 1, which is unexpected\n"
    )
    (run,) = read(text).runs
    assert values(run, "rejected") == ["UnexpectedAdmissionError"]
    assert values(run, "requested") == [4.0]
    assert values(run, "limit") == [1.0]


def test_pods_that_cannot_be_scheduled_say_why_in_their_status():
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
        "status:\n  phase: Pending\n  conditions:\n  - {type: PodScheduled, status: 'False', reason: Unschedulable, "
        "message: '0/2 nodes are available: 2 Insufficient nvidia.com/gpu.'}\n"
    )
    transcript = read_output([text.encode()])
    assert transcript.kind == "k8s-pending"
    assert values(transcript.runs[0], "pending_reason", pod="p") == ["insufficient-resource"]


def test_tables_of_workloads_and_pods_are_read_with_empty_cells():
    text = (
        "NAME      QUEUE   RESERVED IN   ADMITTED   FINISHED   AGE\n"
        "job-a     lq      cq            True       True       9m\n"
        "job-b     lq      cq                                  5m\n"
        "job-c     lq                                          1m\n\n"
        "NAMESPACE   NAME    READY   STATUS                     RESTARTS      AGE\n"
        "x           p1      1/1     Running                    3 (2m ago)    3d\n"
        "x           p2      0/1     UnexpectedAdmissionError   0             2m\n"
        "x           p3      0/1     Pending\n"
    )
    (run,) = read(text).runs
    assert values(run, "workload_state") == ["finished", "quota reserved", "waiting for quota"]
    assert values(run, "pod_restarts") == [3.0, 0.0]
    assert run.rejected == 1
    assert {"reserved-not-admitted", "pod-failed"} <= set(codes(run))


def test_an_unknown_version_of_workloads_is_refused_by_name():
    transcript = read("apiVersion: kueue.x-k8s.io/v9\nkind: Workload\nmetadata: {name: w}\nstatus: {conditions: []}\n")
    assert transcript.outcome is Outcome.REFUSED
    assert "v9" in str(transcript.refusal)


def test_many_events_of_one_object_take_time_in_proportion():
    header = "LAST SEEN   TYPE      REASON             OBJECT     MESSAGE\n"
    row = (
        "5m          Warning   FailedScheduling   pod/a      0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\n"
    )
    ran = "9m          Normal    Scheduled          pod/a      placed\n"
    (run,) = read(header + (ran + row) * 3000).runs
    assert len(values(run, "pending_reason")) == 3000
