"""Public operator files of Kubernetes: the conclusions that a reader must reach."""

from __future__ import annotations

import pytest

from builders.corpus import FOLDER, Expectation, check_corpus, found, values
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight

KINDS = (
    "k8s-kueue",
    "k8s-dra",
    "k8s-node",
    "k8s-describe",
    "k8s-pending",
    "k8s-gpu-operator",
    "k8s-device-plugin",
)
GPU = "nvidia.com/gpu"


def only(transcript: Transcript, kind: str, outcome: Outcome = Outcome.READ) -> Run:
    assert transcript.kind == kind
    assert transcript.outcome is outcome, f"{transcript.outcome}: {transcript.refusal or transcript.runs[0].missing}"
    (run,) = transcript.runs
    return run


def said(run: Run, code: str) -> str:
    return " | ".join(notice.message for notice in run.notices if notice.code == code)


def errors(run: Run) -> set[str]:
    return {notice.code for notice in run.notices if notice.weight is Weight.ERROR}


def expect_hpcgame_queues(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert values(run, "flavor_quota", flavor="gpu-a800", resource=GPU) == [21.0]
    assert values(run, "quota", queue="judge-queue", flavor="gpu-a800", resource=GPU) == [9.0]
    assert values(run, "borrowing_limit", queue="judge-queue", flavor="gpu-a800", resource=GPU) == [3.0]
    assert values(run, "quota", queue="default-queue", flavor="gpu-a800", resource=GPU) == [12.0]
    assert "gpu-a800 sum to 21 over 2 of 2" in said(run, "compare-with-installed")
    assert "9999 in flavor default-flavor stands for no limit" in said(run, "quota-no-limit")
    assert values(run, "flavor_quota", resource="hpc.lcpu.dev/gpu-count") == []
    assert "ClusterQueue" in said(run, "commented-objects")


def expect_hpcgame_flavors(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert len({dict(o.subject)["flavor"] for o in found(run, "flavor_label")}) == 10
    assert "gpu-a800, gpu-a800-shared select the same hardware" in said(run, "flavors-same-hardware")
    assert "gpu-l40-shared, gpu-l40 select the same hardware" in said(run, "flavors-same-hardware")
    assert "counts MIG slices" in said(run, "flavor-counts-mig")


def expect_gke_cohort(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert values(run, "cohort_quota_total", cohort="workload", resource="cpu") == [8.0]
    assert values(run, "cohort_quota_total", cohort="workload", resource="memory")[0].to("GiB") == 32
    assert "no GPU quota" in said(run, "no-gpu-in-cohort")
    assert "double the value of allocatable memory" in said(run, "quota-comment")


def expect_oke(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert "can never be admitted in it" in said(run, "no-gpu-quota")


def expect_llmd(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert values(run, "quota", flavor="gb200", resource=GPU) == [40.0]
    assert "blocks every smaller one behind it" in said(run, "strict-fifo")
    assert "neither borrows nor lends" in said(run, "no-cohort")


def expect_template(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.REFUSED
    assert "render it first" in str(transcript.refusal)
    assert transcript.refusal is not None
    assert transcript.refusal.line == 4


def expect_zero_rdma(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue", Outcome.PARTLY)
    assert values(run, "quota", resource=GPU) == [40.0]
    assert "a pod that asks for rdma/rdma_shared_device_a can never be admitted" in said(run, "zero-quota")
    assert values(run, "admitted_workloads") == [3.0]


def expect_fungibility(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert "borrowing is impossible" in said(run, "no-cohort")
    assert values(run, "quota", flavor="arm", resource="cpu") == [0.5]


def expect_double_count(transcript: Transcript) -> None:
    run = only(transcript, "k8s-kueue")
    assert "8 can be admitted" in said(run, "cohort-quota-adds")
    assert "8 GiB can be admitted" in said(run, "cohort-quota-adds")


def expect_t4_slices(transcript: Transcript) -> None:
    run = only(transcript, "k8s-dra", Outcome.PARTLY)
    assert values(run, "gpu") == ["Tesla T4", "Tesla T4"]
    assert values(run, "pool_slices") == values(run, "pool_slices_expected") == [1.0]
    # Only a line of metadata was left out by its author: no slice and no device is missing.
    assert run.missing == ("what stood where line 6 says that something was left out",)


def expect_h100_slices(transcript: Transcript) -> None:
    run = only(transcript, "k8s-dra")
    assert run.condition("gpus_offered") == 16.0
    assert run.condition("node_count") == 2.0
    assert set(values(run, "gpu")) == {"NVIDIA H100 80GB HBM3"}
    assert len({dict(o.subject)["uuid"] for o in found(run, "gpu")}) == 16
    assert "add no GPU" in said(run, "devices-without-hardware")
    assert values(run, "device_allocated") == []


def expect_dranet(transcript: Transcript) -> None:
    run = only(transcript, "k8s-dra", Outcome.PARTLY)
    assert values(run, "gpu") == []
    assert values(run, "nic", driver="dra.net", pci="0000:c8:00.0") == ["gpu7rdma0"]
    assert "is a nic, not a GPU" in said(run, "not-a-gpu")


def expect_old_claims(transcript: Transcript) -> None:
    run = only(transcript, "k8s-dra")
    asked = values(run, "devices_requested")
    assert len(asked) == 4
    assert all(isinstance(value, NoValue) for value in asked)
    assert "4 claims use resource.k8s.io/v1alpha2" in said(run, "api-removed")


def expect_extended_resource(transcript: Transcript) -> None:
    run = only(transcript, "k8s-dra")
    assert values(run, "pod_request", resource=GPU) == [1.0]
    assert values(run, "device_allocated") == []
    assert "ResourceClaim" in said(run, "commented-objects")
    assert "do not add what a device plugin counts" in said(run, "served-by-dra")


def expect_all_gone(transcript: Transcript) -> None:
    run = only(transcript, "k8s-node", Outcome.PARTLY)
    assert values(run, "total_allocatable", resource=GPU) == [0.0]
    assert values(run, "capacity", node="node-gpu01", resource=GPU) == [16.0]
    assert values(run, "allocatable", resource="ephemeral-storage")[0].to("B") == 9391196145
    assert values(run, "capacity", resource="ephemeral-storage")[0].to("KiB") == 10190100
    assert "gpus-not-allocatable" in errors(run)


def expect_single_gpu(transcript: Transcript) -> None:
    run = only(transcript, "k8s-node", Outcome.PARTLY)
    assert values(run, "allocatable", node="10.20.0.11", resource=GPU) == [1.0]
    assert values(run, "free", resource=GPU) == []
    assert "allocatable minus the requests of the pods" in said(run, "free-not-known")


def expect_kwok(transcript: Transcript) -> None:
    run = only(transcript, "k8s-node")
    assert values(run, "virtual", node="virtual-gpu-node") == [True]
    assert values(run, "total_allocatable", resource=GPU) == []
    assert "do not exist" in said(run, "virtual-node")


def expect_mig_labels(transcript: Transcript) -> None:
    run = only(transcript, "k8s-node", Outcome.PARTLY)
    assert values(run, "mig_devices", profile="1g.5gb") == [4.0]
    assert values(run, "mig_devices", profile="2g.10gb") == [2.0]
    assert values(run, "gpus_physical") == []
    assert "4 x 1g.5gb + 2 x 2g.10gb" in said(run, "mig-devices-only")


def expect_none_free(transcript: Transcript) -> None:
    run = only(transcript, "k8s-describe", Outcome.PARTLY)
    assert values(run, "free", resource=GPU) == [0.0]
    assert "allocatable is not availability" in said(run, "none-free")
    assert values(run, "nodes_affected", resource=GPU) == [6.0]


def expect_hami(transcript: Transcript) -> None:
    run = only(transcript, "k8s-describe", Outcome.PARTLY)
    assert values(run, "gpu_replicas", node="gpuhost1") == [10.0]
    assert "splits each GPU into 10 virtual ones" in said(run, "gpus-virtual")
    assert "at least 2" in said(run, "gpus-virtual")
    assert run.rejected == 1


def expect_two_plugins(transcript: Transcript) -> None:
    run = only(transcript, "k8s-describe", Outcome.PARTLY)
    assert values(run, "allocatable", resource=GPU) == [1.0]
    assert values(run, "allocatable", resource="deepomatic.com/shared-gpu") == [0.0]
    assert "do not add them" in said(run, "several-gpu-resources")


def expect_nemo(transcript: Transcript) -> None:
    run = only(transcript, "k8s-describe", Outcome.PARTLY)
    assert values(run, "allocatable", resource=GPU) == [8.0]
    assert values(run, "allocatable", resource="vpc.amazonaws.com/efa") == [4.0]
    assert values(run, "allocatable", resource="cpu") == [95.69]


def expect_never_admitted(transcript: Transcript) -> None:
    run = only(transcript, "k8s-pending", Outcome.PARTLY)
    assert values(run, "pending_reason", resource="cpu") == ["quota-too-small"]
    assert "never admitted as it is" in said(run, "quota-too-small")
    assert values(run, "resource_request", resource="memory")[0].to("MiB") == 600


def expect_provisioning(transcript: Transcript) -> None:
    run = only(transcript, "k8s-pending", Outcome.PARTLY)
    assert values(run, "workload_state") == ["waiting for checks"]
    assert "waits for dws-prov (Pending)" in said(run, "waits-for-admission-check")


def expect_twelve_hours(transcript: Transcript) -> None:
    run = only(transcript, "k8s-pending")
    assert values(run, "pending_reason") == ["insufficient-resource", "untolerated-taint"]
    assert values(run, "event_count", reason="FailedScheduling") == [150.0]
    assert values(run, "event_span")[0].to("h") == 12
    assert "driver or device plugin" in said(run, "insufficient-resource")
    assert "{gpu: }" in said(run, "untolerated-taint")


def expect_waited_then_ran(transcript: Transcript) -> None:
    run = only(transcript, "k8s-pending")
    assert [value.to("s") for value in values(run, "wait_time")] == [1, 35, 67]
    assert said(run, "waited-then-ran").count("not stuck") == 2
    assert values(run, "pending_reason") == []


def expect_shared_request(transcript: Transcript) -> None:
    run = only(transcript, "k8s-pending", Outcome.PARTLY)
    assert values(run, "rejected") == ["UnexpectedAdmissionError"]
    assert values(run, "requested", resource=GPU) == [2.0]
    assert values(run, "limit", resource=GPU) == [1.0]
    assert "time-slicing" in said(run, "shared-request-too-large")


def expect_scale_up(transcript: Transcript) -> None:
    run = only(transcript, "k8s-pending")
    assert values(run, "pods_unplaceable", resource=GPU) == [1.0]
    assert values(run, "group_size_from") == [1.0]
    assert values(run, "group_size_to") == [2.0]
    assert "from 1 to 2 nodes" in said(run, "scale-up")


def expect_policy(transcript: Transcript) -> None:
    run = only(transcript, "k8s-gpu-operator")
    assert values(run, "mig_strategy") == ["single"]
    assert values(run, "driver_managed") == [True]
    assert values(run, "rdma") == [False]
    assert values(run, "gds") == [False]
    assert "an upgrade changes them" in said(run, "version-not-pinned")


def expect_network_operator(transcript: Transcript) -> None:
    run = only(transcript, "k8s-gpu-operator")
    assert values(run, "rdma_pods_max") == [9.0]
    assert "at most 9 pods share" in said(run, "rdma-shared")
    assert "nothing in them sets GPUs" in said(run, "network-operator")
    # What the note does not say: the plugin that would share them is not deployed.
    assert "not deployed" in said(run, "not-deployed")


def expect_embedded_sharing(transcript: Transcript) -> None:
    run = only(transcript, "k8s-gpu-operator")
    assert values(run, "replicas", config="any", sharing="time-slicing") == [8.0]
    assert values(run, "default_config") == ["any"]
    assert "8 x physical" in said(run, "advertised-multiplied")


def expect_mps(transcript: Transcript) -> None:
    run = only(transcript, "k8s-device-plugin")
    assert values(run, "replicas", sharing="mps") == [2.0]
    assert "2 x physical" in said(run, "advertised-multiplied")
    assert "memory is split" in said(run, "advertised-multiplied")


def expect_matching_nodes(transcript: Transcript) -> None:
    run = only(transcript, "k8s-device-plugin")
    assert values(run, "replicas", config="NVIDIA-4060-PCIE-8GB") == [4.0]
    assert "4 x physical, only on nodes with the label" in said(run, "advertised-multiplied")


def expect_ten(transcript: Transcript) -> None:
    run = only(transcript, "k8s-device-plugin")
    assert values(run, "replicas") == [10.0]
    assert "10 x physical" in said(run, "advertised-multiplied")
    assert values(run, "renamed_to") == []


EXPECTATIONS: dict[str, Expectation] = {
    "k8s-kueue/001-hpcgame-clusterqueues-production.yaml": expect_hpcgame_queues,
    "k8s-kueue/002-hpcgame-resourceflavors.yaml": expect_hpcgame_flavors,
    "k8s-kueue/003-gke-cohort.yaml": expect_gke_cohort,
    "k8s-kueue/004-oke.yaml": expect_oke,
    "k8s-kueue/005-llmd-bench-cluster.yaml": expect_llmd,
    "k8s-kueue/010-aks-helm-template.yaml": expect_template,
    "k8s-kueue/011-issue9048-gke-tas-40-gpus-rdma-zero.yaml": expect_zero_rdma,
    "k8s-kueue/012-issue1276-flavor-fungibility.yaml": expect_fungibility,
    "k8s-kueue/013-issue5289-cohort-double-count.yaml": expect_double_count,
    "k8s-dra/001-resourceslice-openshift.yaml": expect_t4_slices,
    "k8s-dra/004-aicr-claims-evidence.yaml": expect_h100_slices,
    "k8s-dra/005-dranet-resourceslice-nics.yaml": expect_dranet,
    "k8s-dra/007-claims-mig-mps.yaml": expect_old_claims,
    "k8s-dra/008-deviceclass-extended-resource.yaml": expect_extended_resource,
    "k8s-node/001-yaml-capacity16-allocatable0.yaml": expect_all_gone,
    "k8s-node/003-yaml-full-single-gpu-114.yaml": expect_single_gpu,
    "k8s-node/004-kwok-virtual-gpu-node.yaml": expect_kwok,
    "k8s-node/005-labels-mig-mixed-network-operator.yaml": expect_mig_labels,
    "k8s-describe/002-allocated-vs-allocatable-213.txt": expect_none_free,
    "k8s-describe/003-hami-node-registration-annotation.txt": expect_hami,
    "k8s-describe/004-shared-gpu-zero.txt": expect_two_plugins,
    "k8s-describe/005-awsome-nemo-describe.txt": expect_nemo,
    "k8s-pending/002-kueue-cond-2.yaml": expect_never_admitted,
    "k8s-pending/003-kueue-cond-3.yaml": expect_provisioning,
    "k8s-pending/005-failed-scheduling-x150-and-taint.txt": expect_twelve_hours,
    "k8s-pending/006-vks-gang-events.txt": expect_waited_then_ran,
    "k8s-pending/007-device-plugin-oversubscribed-unexpectedadmission.txt": expect_shared_request,
    "k8s-pending/009-upcloud-autoscale.txt": expect_scale_up,
    "k8s-gpu-operator/001-clusterpolicy-sample.yaml": expect_policy,
    "k8s-gpu-operator/003-crusoe-k3s-values.yaml": expect_network_operator,
    "k8s-gpu-operator/005-rke2-values.yaml": expect_embedded_sharing,
    "k8s-device-plugin/002-mps.yaml": expect_mps,
    "k8s-device-plugin/003-ocp-time-slicing.yaml": expect_matching_nodes,
    "k8s-device-plugin/005-operator-test.yaml": expect_ten,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside the clone")
@pytest.mark.parametrize("kind", KINDS)
def test_every_public_file_of_kubernetes_is_read_as_a_person_would(kind):
    assert check_corpus(EXPECTATIONS, kind) > 0
