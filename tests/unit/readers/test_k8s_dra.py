from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "k8s-dra"


def read(text):
    return read_output([text.encode()], kind="k8s-dra")


def messages(run, code):
    return [notice.message for notice in run.notices if notice.code == code]


def test_a_gpu_has_product_uuid_address_and_node():
    (run,) = read_file(FIXTURES / "slices.yaml").runs
    (gpu,) = [o for o in run.observations if o.name == "gpu"]
    subject = dict(gpu.subject)
    assert gpu.value == "NVIDIA H200"
    assert subject["pci"] == "0000:1b:00.0"
    assert (subject["uuid"], subject["node"]) == ("GPU-aaaaaaaa-0000-0000-0000-000000000000", "n1")
    assert values(run, "memory_total", gpu="gpu-0")[0].to("MiB") == 143771
    assert run.condition("gpus_offered") == 1.0


def test_slices_of_an_old_generation_are_not_counted_and_missing_ones_are_named():
    transcript = read_file(FIXTURES / "slices.yaml")
    assert transcript.outcome is Outcome.PARTLY
    (run,) = transcript.runs
    assert values(run, "devices_total", type="gpu") == [1.0]
    assert "newest is 3" in messages(run, "old-generation")[0]
    assert run.missing == ("1 of 2 slices of pool n1 (gpu.nvidia.com)",)


def test_partitions_are_no_gpus_and_overlap():
    (run,) = read_file(FIXTURES / "slices.yaml").runs
    assert values(run, "mig_device") == ["1g.18gb"]
    assert "do not add up" in messages(run, "devices-overlap")[0]
    assert "unhealthy" in messages(run, "device-tainted")[0]


def test_a_nic_whose_name_begins_with_gpu_is_a_nic():
    (run,) = read_file(FIXTURES / "slices.yaml").runs
    assert values(run, "nic") == ["gpu0rdma0"]
    assert values(run, "nic_rdma") == [True]
    assert "is a nic" in messages(run, "not-a-gpu")[0]


def test_the_oldest_layouts_of_slices_are_read():
    text = (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceSlice\nmetadata: {name: s}\nnodeName: n9\n"
        "driverName: gpu.resource.nvidia.com\nnamedResources:\n  instances:\n  - name: gpu-0\n    attributes:\n"
        "    - {name: type, string: gpu}\n    - {name: product-name, string: X}\n    - {name: uuid, string: GPU-1}\n"
    )
    (run,) = read(text).runs
    assert [dict(o.subject)["node"] for o in run.observations if o.name == "gpu"] == ["n9"]


def test_claims_say_how_many_devices_they_ask_for():
    (run,) = read_file(FIXTURES / "claims.yaml").runs
    assert values(run, "devices_requested", claim="two-gpus") == [2.0]
    assert values(run, "device_allocated", claim="two-gpus") == ["gpu-0", "gpu-3"]
    every = values(run, "devices_requested", claim_template="all-or-small", request="any/whole")
    assert isinstance(every[0], NoValue)
    assert values(run, "devices_requested", request="any/part") == [1.0]


def test_a_class_that_serves_an_extended_resource_warns_of_counting_twice():
    (run,) = read_file(FIXTURES / "claims.yaml").runs
    assert values(run, "extended_resource") == ["example.com/gpu"]
    assert "do not add" in messages(run, "served-by-dra")[0]


def test_claims_of_the_removed_api_ask_for_an_unknown_number():
    text = (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: c}\n"
        "spec:\n  resourceClassName: g\n"
        "  parametersRef: {kind: P, name: p}\n"
    )
    (run,) = read(text).runs
    assert isinstance(values(run, "devices_requested")[0], NoValue)
    assert "v1alpha2" in messages(run, "api-removed")[0]


def test_compute_domain_channels_add_no_gpu():
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
        "spec:\n  driver: compute-domain.nvidia.com\n"
        "  nodeName: n\n  pool: {name: n, generation: 1, resourceSliceCount: 1}\n  devices:\n"
        "  - {name: channel-0, attributes: {type: {string: channel}}}\n"
    )
    (run,) = read(text).runs
    assert values(run, "gpu") == []
    assert values(run, "device") == ["channel"]
    assert messages(run, "devices-without-hardware")


def test_a_pod_with_an_extended_resource_says_that_nobody_knows_who_serves_it():
    text = (
        "# resource.k8s.io/v1 with extendedResourceName\napiVersion: v1\nkind: Pod\n"
        "metadata: {name: p}\nspec:\n  containers:\n"
        "  - {name: c, resources: {limits: {nvidia.com/gpu: 1}}}\n"
    )
    transcript = read_output([text.encode()])
    assert transcript.kind == "k8s-dra"
    assert values(transcript.runs[0], "pod_request") == [1.0]
    assert messages(transcript.runs[0], "served-by-dra")


def test_an_unknown_version_is_refused_by_name():
    transcript = read("apiVersion: resource.k8s.io/v7\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {devices: []}\n")
    assert transcript.outcome is Outcome.REFUSED
    assert "v7 ResourceSlice s" in str(transcript.refusal)
