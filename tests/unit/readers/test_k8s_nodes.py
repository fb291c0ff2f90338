from pathlib import Path

from builders.corpus import found, read_file, values
from clusterwright.model.observations import Outcome
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "k8s-node"


def read(text, kind="k8s-node"):
    return read_output([text.encode()], kind=kind)


def codes(run):
    return [notice.code for notice in run.notices]


def message(run, code):
    return next(notice.message for notice in run.notices if notice.code == code)


def node_json(**status):
    import json

    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status})


def test_capacity_allocatable_requested_and_free_are_four_numbers():
    (run,) = read_file(FIXTURES / "nodes-and-pods.yaml").runs
    gpu = {"resource": "nvidia.com/gpu"}
    assert values(run, "capacity", node="gpu-a", **gpu) == [8.0]
    assert values(run, "allocatable", node="gpu-b", **gpu) == [7.0]
    # The pod that ended holds nothing; the init container needs more CPU than all containers.
    assert values(run, "requested", node="gpu-a", **gpu) == [5.0]
    assert values(run, "requested", node="gpu-a", resource="cpu") == [96.0]
    assert values(run, "free", node="gpu-a", **gpu) == [3.0]
    assert values(run, "total_allocatable", **gpu) == [15.0]
    # gpu-b is cordoned and its kubelet is silent.
    assert values(run, "total_schedulable", **gpu) == [8.0]
    assert values(run, "allocatable", node="gpu-a", resource="cpu") == [191.5]
    assert {"gpus-not-allocatable", "node-not-ready", "node-cordoned", "kubelets-differ"} <= set(codes(run))
    assert "free-not-known" not in codes(run)


def test_lines_of_list_items_are_kept():
    (run,) = read_file(FIXTURES / "nodes-and-pods.yaml").runs
    assert {o.line for o in found(run, "capacity", node="gpu-b")} == {34}


def test_time_sliced_gpus_are_advertised_not_physical():
    (run,) = read_file(FIXTURES / "nodes.json").runs
    assert values(run, "gpus_physical", node="edge-1") == [4.0]
    assert values(run, "gpu_replicas", node="edge-1") == [6.0]
    assert "24 advertised are 4 GPUs" in message(run, "gpus-shared")


def test_a_simulated_node_adds_nothing_to_the_totals():
    (run,) = read_file(FIXTURES / "nodes.json").runs
    assert values(run, "virtual", node="fake-1") == [True]
    assert values(run, "total_capacity", resource="nvidia.com/gpu") == [24.0]
    assert run.condition("node_count") == 1.0
    assert "virtual-node" in codes(run)


def test_pressure_is_said():
    (run,) = read_file(FIXTURES / "nodes.json").runs
    assert "DiskPressure is True" in message(run, "node-condition")


def test_the_table_says_who_is_ready_and_nothing_about_gpus():
    (run,) = read_file(FIXTURES / "table.txt").runs
    assert values(run, "node_ready") == [True, True, False, True]
    assert values(run, "unschedulable") == [True]
    assert "no-devices-in-table" in codes(run)
    assert values(run, "allocatable") == []


def test_all_gpus_gone_is_an_error_with_both_numbers():
    (run,) = read(node_json(capacity={"nvidia.com/gpu": "16"}, allocatable={"nvidia.com/gpu": "0"})).runs
    assert "capacity 16 nvidia.com/gpu, allocatable 0" in message(run, "gpus-not-allocatable")
    assert values(run, "total_allocatable", resource="nvidia.com/gpu") == [0.0]


def test_a_node_that_stands_twice_is_counted_once():
    text = "\n---\n".join(
        ["apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: 4}, allocatable: {cpu: 4}}"] * 2
    )
    (run,) = read(text).runs
    assert values(run, "total_capacity", resource="cpu") == [4.0]
    assert "node-twice" in codes(run)


def test_a_duplicate_key_in_json_is_said_and_read_once():
    text = (
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": '
        '{"capacity": {"cpu": "4", "cpu": "8"}}}'
    )
    (run,) = read(text).runs
    assert values(run, "capacity", resource="cpu") == [4.0]
    assert "duplicate-key" in codes(run)


def test_json_that_ends_in_the_middle_is_refused():
    text = (FIXTURES / "nodes.json").read_text()
    transcript = read(text[: len(text) // 2])
    assert transcript.outcome is Outcome.REFUSED
    assert "ends in the middle" in str(transcript.refusal)


def test_a_yaml_list_that_ends_early_is_incomplete():
    text = (FIXTURES / "nodes-and-pods.yaml").read_text()
    transcript = read(text[: text.index("  - name: fetch") - 100])
    assert transcript.outcome is Outcome.PARTLY
    assert any("end of the list" in part for part in transcript.runs[0].missing)


def test_a_torn_item_loses_only_itself():
    text = (FIXTURES / "nodes-and-pods.yaml").read_text()
    broken = text.replace("    name: gpu-b", "    name: [gpu-b")
    transcript = read(broken)
    assert transcript.outcome is Outcome.PARTLY
    assert values(transcript.runs[0], "capacity", node="gpu-a", resource="cpu") == [192.0]
    assert transcript.runs[0].rejected == 1


def test_a_raw_list_without_kinds_is_read_by_the_kind_of_the_list():
    item = '{"metadata":{"name":"r1"},"status":{"capacity":{"cpu":"2"}}}'
    text = '{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[' + item + "]}"
    (run,) = read_output([text.encode()]).runs
    assert values(run, "capacity", node="r1") == [2.0]


def test_prompts_fences_and_warnings_around_the_objects_are_no_objects():
    yaml = (
        "```yaml\nuser@host:~$ kubectl get node a -o yaml\napiVersion: v1\nkind: Node\n"
        "metadata:\n  name: a\n  ...\nstatus:\n  capacity:\n    cpu: 4\n```\n"
    )
    (run,) = read(yaml).runs
    assert values(run, "capacity", node="a") == [4.0]
    assert any("left out" in part for part in run.missing)
    json_text = (
        "W0101 12:00:00.000000 1 warnings.go:70] deprecated\n{\n"
        + '"apiVersion":"v1","kind":"Node","metadata":{"name":"b"},"status":{"capacity":{"cpu":"2"}}\n}'
    )
    (run,) = read(json_text).runs
    assert values(run, "capacity", node="b") == [2.0]


def test_labels_alone_are_a_node_without_a_physical_count():
    text = (
        '      nvidia.com/gpu.product: NVIDIA-A30\n      nvidia.com/gpu.memory: "24576"\n'
        '      nvidia.com/mig-2g.12gb.count: "2"\n      nvidia.com/mig-1g.6gb.count: "3"\n'
    )
    transcript = read_output([text.encode()])
    assert transcript.kind == "k8s-node"
    (run,) = transcript.runs
    assert values(run, "mig_devices", profile="2g.12gb") == [2.0]
    assert values(run, "gpus_physical") == []
    assert "2 x 2g.12gb" in message(run, "mig-devices-only")
    assert not run.complete


def test_an_excerpt_that_begins_deep_inside_a_node_finds_its_parts():
    text = (
        '    nvidia.com/gpu.product: NVIDIA-L4\n    nvidia.com/gpu.count: "4"\n  name: '
        "deep-1\nspec: {}\nstatus:\n  allocatable:\n    nvidia.com/gpu: 4\n  capacity:\n "
        "   nvidia.com/gpu: 4\n"
    )
    transcript = read_output([text.encode()])
    (run,) = transcript.runs
    assert values(run, "allocatable", resource="nvidia.com/gpu") == [4.0]
    assert not run.complete


def test_a_label_that_disagrees_with_the_plugin_is_said():
    import json

    node = json.loads(node_json(capacity={"nvidia.com/gpu": "7"}, allocatable={"nvidia.com/gpu": "7"}))
    node["metadata"]["labels"] = {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "1"}
    (run,) = read(json.dumps(node)).runs
    assert "labels say 8 GPUs" in message(run, "count-differs-from-label")


def test_the_node_that_differs_from_its_peers_is_named():
    nodes = [
        f"apiVersion: v1\nkind: Node\nmetadata:\n  name: g{n}\n  labels:\n    nvidia.com/gpu.product: X\nstatus:\n"
        f"  allocatable: {{nvidia.com/gpu: {7 if n == 3 else 8}}}\n  capacity: {{nvidia.com/gpu: 8}}"
        for n in range(5)
    ]
    (run,) = read("\n---\n".join(nodes)).runs
    assert message(run, "gpu-count-differs").endswith("others: g3 7")


def test_devices_of_two_plugins_on_one_node_are_not_added():
    (run,) = read(node_json(allocatable={"nvidia.com/gpu": "2", "example.com/shared-gpu": "20"})).runs
    assert "do not add them" in message(run, "several-gpu-resources")


def test_a_text_of_another_kind_is_refused():
    transcript = read("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    assert transcript.outcome is Outcome.REFUSED
    assert "Service" in str(transcript.refusal)


def test_much_yaml_that_no_program_prints_is_refused_with_what_to_do():
    assert "print it as JSON" in str(read("kind: Node\nnote: >\n" + "  a long line\n" * 20_000).refusal)


def test_a_megabyte_of_plain_yaml_is_read():
    item = "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n{}\n    annotations:\n      note: {}\n"
    item += "  status:\n    capacity:\n      cpu: 8\n"
    text = "apiVersion: v1\nitems:\n" + "".join(item.format(n, "x" * 900) for n in range(1_000)) + "kind: List\n"
    (run,) = read(text).runs
    assert len({dict(o.subject).get("node") for o in run.observations} - {None}) == 1_000


def test_a_list_whose_items_stand_elsewhere_is_incomplete():
    text = (
        "items:\nkind: List\n---\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n"
        "  status: {capacity: {cpu: 1}}\n"
    )
    (run,) = read(text).runs
    assert values(run, "capacity", node="a") == [1.0]
    (run,) = read("items:\nkind: List\n  - x\n" + "---\n" + text.split("---\n")[1]).runs
    assert not run.complete


def test_aliases_that_never_end_are_refused():
    for text in (
        "kind: Node\nspec: &a [*a]\n",
        "kind: Node\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    ):
        transcript = read(text)
        assert transcript.outcome is Outcome.REFUSED
        assert "aliases" in str(transcript.refusal)
