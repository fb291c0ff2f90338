from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "k8s-describe"


def codes(run):
    return [notice.code for notice in run.notices]


def test_a_described_node_is_read_whole():
    transcript = read_file(FIXTURES / "node.txt")
    assert transcript.kind == "k8s-describe"
    (run,) = transcript.runs
    assert run.complete
    gpu = {"node": "gpu-07", "resource": "nvidia.com/gpu"}
    assert [values(run, name, **gpu) for name in ("capacity", "allocatable", "requested", "free")] == [
        [8.0], [7.0], [4.0], [3.0],
    ]  # fmt: skip
    assert values(run, "kubelet") == ["v1.32.3"]
    assert values(run, "taint") == ["nvidia.com/gpu=present:NoSchedule"]
    assert values(run, "gpus_physical") == [8.0]
    assert values(run, "node_ready") == [True]
    assert values(run, "node_condition", type="GpuUnhealthy") == ["True"]
    assert {"gpus-not-allocatable", "node-condition"} <= set(codes(run))


def test_folded_events_keep_their_count_and_span():
    (run,) = read_file(FIXTURES / "node.txt").runs
    assert values(run, "event_count", reason="ImageGCFailed") == [12.0]
    assert values(run, "event_span", reason="ImageGCFailed")[0].to("h") == 3


def test_a_described_pod_says_what_it_asks_for_and_why_it_waits():
    transcript = read_file(FIXTURES / "pod.txt")
    assert transcript.kind == "k8s-describe"
    (run,) = transcript.runs
    assert values(run, "pod_request", resource="nvidia.com/gpu") == [2.0]
    assert values(run, "pending_reason") == [
        "insufficient-resource", "node-selector", "untolerated-taint", "group-at-maximum", "no-scale-up",
    ]  # fmt: skip
    assert values(run, "nodes_affected") == [4.0, 5.0, 3.0]
    assert set(values(run, "nodes_total")) == {12.0}
    assert "still-pending" in codes(run)


def test_only_the_allocatable_block_is_a_node_with_parts_missing():
    (run,) = read_output(
        [b"Allocatable:\n  cpu:             95690m\n  nvidia.com/gpu:  8\n  vpc.amazonaws.com/efa:  32\n"]
    ).runs
    assert values(run, "allocatable", resource="nvidia.com/gpu") == [8.0]
    assert values(run, "allocatable", resource="cpu") == [95.69]
    assert values(run, "requested") == []
    assert any(part.startswith("Name, Capacity") for part in run.missing)


def test_several_nodes_in_one_output_are_several_nodes():
    text = (FIXTURES / "node.txt").read_text()
    (run,) = read_output([(text + "\n" + text.replace("gpu-07", "gpu-08")).encode()]).runs
    assert run.condition("node_count") == 2.0
    assert values(run, "total_allocatable", resource="nvidia.com/gpu") == [14.0]


def test_pasted_commands_are_read_together():
    text = (
        'apiVersion: v1\nkind: Node\nstatus:\n  allocatable:\n    nvidia.com/gpu: "2"\n\n'
        "Allocated resources:\n  Resource        Requests  Limits\n  --------        --------  ------\n"
        "  nvidia.com/gpu  2         2\n\n"
        "  Warning  FailedScheduling  12s   default-scheduler  0/3 nodes are available: "
        "3 Insufficient nvidia.com/gpu.\n"
    )
    (run,) = read_output([text.encode()]).runs
    assert values(run, "free", resource="nvidia.com/gpu") == [0.0]
    assert "none-free" in codes(run)
    assert values(run, "pending_reason") == ["insufficient-resource"]
    assert run.rejected == 0


def test_a_cut_annotation_loses_its_last_device_and_says_so():
    text = (
        "Name:         h1\nRoles:        worker\nAnnotations:  hami.io/node-nvidia-register:\n"
        "                GPU-1,4,24576,100,NVIDIA-NVIDIA "
        "A10,0,true:GPU-2,4,24576,100,NVIDIA-NVIDIA A10,0,true:GPU-3,4,245...\n"
    )
    (run,) = read_output([text.encode()]).runs
    assert values(run, "gpu") == ["NVIDIA A10", "NVIDIA A10"]
    assert values(run, "gpu_replicas") == [4.0, 4.0]
    assert run.rejected == 1
    assert "at least 3" in next(n.message for n in run.notices if n.code == "gpus-virtual")


def test_rows_of_allocated_resources_that_are_none_are_rejected():
    text = (
        "Allocated resources:\n  Resource  Requests  Limits\n  cpu       many      4\n  "
        "memory\n  nvidia.com/gpu  1  1\n"
    )
    (run,) = read_output([text.encode()]).runs
    assert run.rejected == 2
    assert values(run, "requested", resource="nvidia.com/gpu") == [1.0]
