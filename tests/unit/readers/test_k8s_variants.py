"""Kubernetes outputs as people paste them: events without a header, several commands in one text, own columns."""

from clusterwright.model.observations import NoValue, Run
from clusterwright.readers.reading import read_output


def read(text: str, kind: str) -> Run:
    transcript = read_output([text.encode()], name="pasted.txt")
    assert transcript.refusal is None, transcript.refusal
    assert transcript.kind == kind
    (run,) = transcript.runs
    return run


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def said(run: Run, code: str) -> str:
    return next(n.message for n in run.notices if n.code == code)


def test_reads_events_without_their_header():
    run = read("3m  Warning  FailedScheduling  pod/train-0  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n"
               "5m  Normal   SuccessfulCreate  job/train    Created pod: train-0\n", "k8s-pending")  # fmt: skip
    assert values(run, "pending_reason", object="pod/train-0") == ["insufficient-resource"]
    assert values(run, "event_count", object="job/train") == [1.0]


def test_a_node_table_ends_where_another_output_begins():
    run = read("NAME  STATUS    ROLES   AGE  VERSION\ngx1   NotReady  <none>  3d   v1.31.0\n"
               "me@host:~$ kubectl describe nodes gx1\nName:   gx1\nConditions:\n"
               "  Type     Status   LastHeartbeatTime  LastTransitionTime  Reason  Message\n"
               "  ----     ------   -----------------  ------------------  ------  -------\n", "k8s-node")  # fmt: skip
    assert values(run, "node_ready") == [False]
    assert {dict(o.subject).get("node") for o in run.observations} == {"gx1"}
    assert not run.rejected


def test_reads_tables_of_pods_and_claims_in_one_text():
    run = read("$ kubectl get pod\nNAME  READY  STATUS   RESTARTS  AGE\np1    0/1    Pending  0         7s\n\n"
               "$ kubectl get resourceclaim\nNAME   STATE     AGE\np1-gx  pending   9s\n", "k8s-pending")  # fmt: skip
    assert values(run, "pod_phase", pod="p1") == ["Pending"]
    assert values(run, "claim_state", claim="p1-gx") == ["pending"]
    assert "no device" in said(run, "claim-pending")


def test_reads_a_column_of_gpus_and_takes_none_for_absent():
    run = read("NAME  GPU\ngx1   8\ncpu1  <none>\n", "k8s-node")
    assert values(run, "gpus_listed", node="gx1") == [8.0]
    assert isinstance(values(run, "gpus_listed", node="cpu1")[0], NoValue)


def test_reads_a_list_of_nodes_without_kinds():
    run = read('{"items": [{"metadata": {"name": "gx1"}, "status": {"allocatable": {"nvidia.com/gpu": "6"}, '
               '"capacity": {"nvidia.com/gpu": "8"}}}]}', "k8s-node")  # fmt: skip
    assert values(run, "allocatable", node="gx1", resource="nvidia.com/gpu") == [6.0]


def test_an_unreachable_node_is_no_matter_of_tolerations():
    run = read("0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.\n",
               "k8s-pending")  # fmt: skip
    assert "2 of 2 nodes are unreachable" in said(run, "untolerated-taint")


def test_reads_a_quota_message_that_stands_alone():
    run = read(
        "insufficient quota for nvidia.com/gpu in flavor h200, request > maximum capacity (32 > 24)\n", "k8s-pending"
    )
    assert values(run, "pending_reason") == ["quota-too-small"]
    assert values(run, "limit") == [24.0]


def test_a_device_class_of_gpus_is_gpu_quota():
    run = read("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata:\n  name: q\n"
               "spec:\n  resourceGroups:\n"
               "  - coveredResources: [gpu.vendor.com]\n    flavors:\n    - name: f\n      resources:\n"
               "      - name: gpu.vendor.com\n        nominalQuota: 6\n", "k8s-kueue")  # fmt: skip
    assert "no-gpu-quota" not in {n.code for n in run.notices}
    assert values(run, "quota", queue="q") == [6.0]


def test_says_why_containers_of_a_described_pod_ended():
    run = read("Name:             t-0\nNamespace:        ml\nStatus:           Running\nContainers:\n  main:\n"
               "    State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n"
               "      Reason:       OOMKilled\n      Exit Code:    137\n    Restart Count:  9\n",
               "k8s-describe")  # fmt: skip
    assert values(run, "container_last_state", pod="t-0", container="main") == ["OOMKilled"]
    assert values(run, "pod_restarts", pod="t-0") == [9.0]
    assert "CrashLoopBackOff" in said(run, "container-failed")
