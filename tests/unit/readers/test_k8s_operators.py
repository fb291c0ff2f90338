from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"
OPERATOR = FIXTURES / "k8s-gpu-operator"
PLUGIN = FIXTURES / "k8s-device-plugin"


def read(text, kind=""):
    return read_output([text.encode()], kind=kind)


def messages(run, code):
    return [notice.message for notice in run.notices if notice.code == code]


def test_a_cluster_policy_says_what_it_manages_and_pins():
    (run,) = read_file(OPERATOR / "clusterpolicy.yaml").runs
    assert run.condition("form") == "ClusterPolicy"
    expected = {
        "mig_strategy": "mixed", "driver_managed": True, "driver_version": "570.86.15", "rdma": True, "gds": False,
        "gdrcopy": True, "use_open_kernel_modules": True, "policy_state": "notReady",
    }  # fmt: skip
    assert {name: values(run, name) for name in expected} == {name: [value] for name, value in expected.items()}
    assert messages(run, "version-not-pinned")[0].startswith("no version is set for dcgmExporter:")
    assert "plugin-config" in messages(run, "config-elsewhere")[0]
    assert messages(run, "policy-not-ready")


def test_time_slicing_inside_chart_values_is_read():
    transcript = read_file(OPERATOR / "values.yaml")
    assert transcript.kind == "k8s-gpu-operator"
    (run,) = transcript.runs
    assert values(run, "replicas", config="small") == [3.0]
    assert "= 3 x physical" in messages(run, "advertised-multiplied")[0]
    assert "'small'" in messages(run, "default-config")[0]
    assert messages(run, "driver-not-managed")


def test_values_of_the_network_operator_are_named_as_such():
    (run,) = read_file(OPERATOR / "network-values.yaml").runs
    assert run.condition("form") == "network operator values"
    assert values(run, "rdma_pods_max", resource="rdma_shared_device_a") == [63.0]
    assert "at most 63 pods" in messages(run, "rdma-shared")[0]
    assert messages(run, "not-deployed") == []
    assert messages(run, "network-operator")


def test_values_inside_releases_are_found():
    values_text = (
        "driver:\n  enabled: true\n  version: 570.1\ntoolkit:\n  enabled: true\nmigManager:\n  enabled: false\n"
    )
    indented = "".join("    " + line + "\n" for line in values_text.splitlines())
    for head in (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: g}\nspec:\n  values:\n",
        "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: g}\nspec:\n  valuesContent: |-\n",
    ):
        transcript = read(head + indented)
        assert transcript.kind == "k8s-gpu-operator", head
        assert values(transcript.runs[0], "driver_version") == ["570.1"]
    transcript = read("gpu-operator:\n" + indented)
    assert values(transcript.runs[0], "driver_version") == ["570.1"]


def test_the_network_operators_policy_holds_its_resources_as_json():
    text = (
        "apiVersion: mellanox.com/v1alpha1\nkind: NicClusterPolicy\nmetadata: {name: n}\n"
        "spec:\n  rdmaSharedDevicePlugin:\n"
        '    config: \'{"configList": [{"resourceName": "hca_a", "rdmaHcaMax": 12}]}\'\n'
    )
    (run,) = read(text).runs
    assert values(run, "rdma_pods_max", resource="hca_a") == [12.0]
    transcript = read(text.replace("configList", "configList\\"))
    assert transcript.runs[0].rejected == 1


def test_each_configuration_of_a_config_map_multiplies_only_where_it_is_chosen():
    transcript = read_file(PLUGIN / "configmap.yaml")
    assert transcript.kind == "k8s-device-plugin"
    (run,) = transcript.runs
    assert values(run, "replicas", config="inference", sharing="time-slicing") == [5.0]
    assert values(run, "replicas", config="batch", sharing="mps") == [2.0]
    assert values(run, "renamed_to", config="inference") == ["nvidia.com/gpu.shared"]
    inference, batch = messages(run, "advertised-multiplied")
    assert "device-plugin.config=inference" in inference
    assert "(only devices [0, 1])" in batch
    assert "memory is split evenly" in batch


def test_mig_manager_profiles_are_counted_per_gpu():
    (run,) = read_file(PLUGIN / "mig-parted.yaml").runs
    assert values(run, "mig_devices_per_gpu", config="half", devices="0,1,2,3", profile="1g.18gb") == [7.0]
    assert values(run, "mig_enabled", config="all-disabled") == [False]


def test_replicas_that_are_no_number_are_no_factor():
    text = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: many\n"
    (run,) = read(text).runs
    assert isinstance(values(run, "replicas")[0], NoValue)
    assert messages(run, "replicas-unreadable")
    (run,) = read(text.replace("many", "1")).runs
    assert messages(run, "advertised-multiplied") == []


def test_mps_with_mig_and_both_kinds_of_sharing_are_errors():
    text = (
        "version: v1\nflags: {migStrategy: mixed}\nsharing:\n  mps: {resources: [{name: "
        "nvidia.com/gpu, replicas: 2}]}\n"
        "  timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}\n"
    )
    (run,) = read(text).runs
    assert messages(run, "mps-with-mig")
    assert messages(run, "two-kinds-of-sharing")


def test_an_unknown_version_of_the_configuration_is_refused_by_name():
    text = "version: v2\nsharing:\n  mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}\n"
    transcript = read(text)
    assert transcript.outcome is Outcome.REFUSED
    assert "version: v2" in str(transcript.refusal)


def test_a_config_map_without_a_configuration_is_refused():
    transcript = read("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n", kind="k8s-device-plugin")
    assert transcript.outcome is Outcome.REFUSED
