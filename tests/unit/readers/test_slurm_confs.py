"""slurm.conf, gres.conf, cgroup.conf and topologies: what is declared, what is missing, what contradicts itself."""

from pathlib import Path

import pytest

from clusterwright.model.observations import NoValue, Outcome, Run
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"
HEAD = "ClusterName=c\nSlurmctldHost=h\nSelectType=select/cons_tres\nGresTypes=gpu\n"


def read_all(text: str, kind: str) -> tuple[Run, ...]:
    transcript = read_output([text.encode()], kind=kind)
    assert transcript.refusal is None, transcript.refusal
    return transcript.runs


def conf(text: str) -> Run:
    return read_all(text, "slurm-conf")[0]


def gres(text: str) -> Run:
    return read_all(text, "slurm-gres-conf")[0]


def topology(text: str) -> Run:
    return read_all(text, "slurm-topology")[0]


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


@pytest.mark.parametrize("kind", ["slurm-conf", "slurm-gres-conf", "slurm-cgroup-conf", "slurm-topology"])
def test_recognises_every_fixture(kind):
    for path in (FIXTURES / kind).iterdir():
        assert read_output([path.read_bytes()]).kind == kind, path.name


def test_declared_nodes_with_defaults_continued_lines_and_quotes():
    run = conf((FIXTURES / "slurm-conf" / "gpus.conf").read_text())
    assert run.condition("gpus_configured") == 35.0
    assert run.condition("gpus_potential") == 80.0
    assert run.condition("mig_slices_configured") == 7.0
    assert values(run, "gpus_configured", node="gpu-02", type="h100") == [8.0]
    assert str(values(run, "memory_configured", node="gpu-02")[0]) == "1000000 MiB"
    assert str(values(run, "memory_configured", node="gpu-05")[0]) == "500000 MiB"
    assert values(run, "features", node="gpu-01") == ["h100,ib"]
    assert values(run, "gpus_configured", partition="batch") == [35.0]


def test_partition_limits_are_minutes_days_or_unlimited():
    run = conf((FIXTURES / "slurm-conf" / "gpus.conf").read_text())
    assert values(run, "time_limit", partition="batch")[0].value == 172800
    assert values(run, "time_limit", partition="burst")[0].value == 5400
    assert values(run, "time_limit", partition="all") == ["unlimited"]


def test_unknown_keys_are_kept_and_comments_are_not():
    run = conf((FIXTURES / "slurm-conf" / "gpus.conf").read_text())
    assert values(run, "setting", key="FutureKey") == ["kept"]
    assert values(run, "setting", key="AccountingStorageTRES") == ["gres/gpu"]


def test_a_node_in_several_partitions_counts_once_and_a_shared_one_is_named():
    run = conf((FIXTURES / "slurm-conf" / "gpus.conf").read_text())
    assert {"node-in-several-partitions", "oversubscribed", "potential-capacity"} <= codes(run)
    assert "gpu-hours-not-recorded" not in codes(run)


def test_gpus_that_accounting_does_not_track_are_named():
    run = conf(HEAD + "NodeName=n[1-2] Gres=gpu:8\nPartitionName=p Nodes=ALL\n")
    assert run.condition("gpus_configured") == 16.0
    assert "gpu-hours-not-recorded" in codes(run)


def test_a_part_of_a_configuration_says_nothing_about_accounting():
    run = conf("NodeName=n[1-2] Gres=gpu:8 RealMemory=1000\nPartitionName=p Nodes=n[1-2]\n")
    assert run.condition("gpus_configured") == 16.0
    assert "gpu-hours-not-recorded" not in codes(run)


def test_no_gres_means_that_slurm_counts_none():
    run = conf(
        "ClusterName=c\nSlurmctldHost=h\nSelectType=select/linear\nNodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL\n"
    )
    assert run.condition("gpus_configured") == 0.0
    assert "no-gpus-declared" in codes(run)


def test_an_include_leaves_the_number_of_gpus_unknown():
    run = conf(HEAD + "NodeName=n1 Gres=gpu:8\nInclude /etc/slurm/nodes.conf\n")
    assert isinstance(run.condition("gpus_configured"), NoValue)
    assert run.missing == ("included file /etc/slurm/nodes.conf",)


def test_nodes_that_register_themselves_leave_it_unknown():
    run = conf(HEAD + "MaxNodeCount=100\nNodeSet=ns Feature=gpu\nPartitionName=p Nodes=ns\n")
    assert isinstance(run.condition("gpus_configured"), NoValue)
    assert "dynamic-nodes" in codes(run)
    assert values(run, "partition_nodes") == []


def test_a_resource_without_a_count_is_one_in_a_configuration():
    run = conf(HEAD + "NodeName=n1 Gres=gpu\nNodeName=n2 Gres=gpu:a100\n")
    assert run.condition("gpus_configured") == 2.0


@pytest.mark.parametrize(
    ("node", "wrong"),
    [
        ("CPUs=96 Procs=48", True),
        ("CPUs=1 CoresPerSocket=2 ThreadsPerCore=1", True),
        ("CPUs=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2", False),
        ("CPUs=32 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2", False),
        ("CPUs=48 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2", True),
    ],
)
def test_processors_that_contradict_each_other_are_named(node, wrong):
    run = conf(HEAD + f"NodeName=n[1-3] {node}\n")
    assert ("cpus-inconsistent" in codes(run)) is wrong


def test_odd_durations_are_read_and_named():
    run = conf(HEAD + "NodeName=n1\nPartitionName=p Nodes=n1 MaxTime=7-0:00:99\n")
    assert values(run, "time_limit")[0].value == 7 * 86400 + 99
    assert "odd-duration" in codes(run)


def test_duplicates_are_named():
    run = conf(HEAD + "NodeName=n1\nNodeName=n[1-2]\nSlurmdPort=1\nSlurmdPort=2\nPartitionName=p Nodes=n[1-3]\n")
    assert {"node-twice", "key-twice", "unknown-node"} <= codes(run)
    assert run.condition("nodes_configured") == 2.0


def test_text_that_is_no_pair_is_rejected():
    run = conf(HEAD + "NodeName=n1\nthis is no pair\n")
    assert run.rejected == 1


def test_old_keys_are_named():
    run = conf("ControlMachine=h\nClusterName=c\nFastSchedule=1\nNodeName=n1\nPartitionName=p Nodes=n1 Shared=YES:4\n")
    said = " ".join(notice.message for notice in run.notices if notice.code == "old-key")
    assert all(key in said for key in ("controlmachine", "fastschedule", "shared"))


def test_devices_are_counted_per_node_in_numeric_order():
    run = gres((FIXTURES / "slurm-gres-conf" / "mixed.conf").read_text())
    assert run.condition("gpus_configured") == 16.0
    assert run.condition("autodetect") == "nvml"
    assert values(run, "gpu_cores", node="gpu-01", device="/dev/nvidia4") == ["32-63"]
    assert values(run, "gres_configured", gres="shard") == [8.0]
    assert {"autodetect-and-explicit", "affinity"} <= codes(run)
    run = gres("".join(f"Name=gpu File=/dev/nvidia{i}\n" for i in (0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9)))
    assert values(run, "gpu_device", index="10") == ["/dev/nvidia10"]
    assert values(run, "gpu_device", index="2") == ["/dev/nvidia2"]


def test_includes_mean_unknown_and_not_zero():
    run = gres((FIXTURES / "slurm-gres-conf" / "includes.conf").read_text())
    assert isinstance(run.condition("gpus_configured"), NoValue)
    assert len(run.missing) == 2


def test_lines_without_a_node_hold_for_every_node():
    run = gres("Name=gpu Type=v100 File=/dev/nvidia[0-3]\n")
    assert run.condition("gpus_per_node") == 4.0
    assert run.condition("gpus_configured") is None


def test_affinity_that_comes_back_is_named():
    lines = "".join(f"Name=gpu File=/dev/nvidia{i} Cores={'0-7' if i % 2 else '8-15'}\n" for i in range(4))
    assert "affinity-repeats" in codes(gres(lines))


def test_one_device_of_several_node_names_is_an_error_only_where_they_look_like_one_host():
    odd = (
        "NodeName=a Name=gpu File=/dev/nvidia0\nNodeName=b Name=gpu File=/dev/nvidia1\n"
        "NodeName=c Name=gpu File=/dev/nvidia[0-1]\n"
    )
    assert "device-claimed-twice" in codes(gres(odd))
    usual = "NodeName=a Name=gpu File=/dev/nvidia[0-3]\nNodeName=b Name=gpu File=/dev/nvidia[0-3]\n"
    assert "device-claimed-twice" not in codes(gres(usual))


def test_a_device_listed_twice_for_a_node_and_a_wrong_count_are_named():
    run = gres("NodeName=a Name=gpu File=/dev/nvidia[0-1]\nNodeName=a Name=gpu File=/dev/nvidia1 Count=1\n")
    assert "device-twice" in codes(run)
    assert "count-conflict" in codes(gres("NodeName=a Name=gpu File=/dev/nvidia[0-3] Count=8\n"))


def test_dynamic_nodes_of_a_cloud_are_potential():
    run = gres(
        "NodeName=q-st-x-[1-2] Name=gpu Type=t4 File=/dev/nvidia0\n"
        "NodeName=q-dy-x-[1-5] Name=gpu Type=t4 File=/dev/nvidia0\n"
    )
    assert run.condition("gpus_configured") == 2.0
    assert run.condition("gpus_potential") == 5.0


def test_a_commented_autodetect_is_none():
    run = gres("#AutoDetect=nvml\nNodeName=localhost Name=gpu Type=tesla  File=/dev/nvidia[0-2]\n")
    assert run.condition("autodetect") is None
    assert run.condition("gpus_configured") == 3.0


def test_unconstrained_devices_are_named():
    (run,) = read_all((FIXTURES / "slurm-cgroup-conf" / "cgroup.conf").read_text(), "slurm-cgroup-conf")
    assert values(run, "setting", key="ConstrainCores") == ["yes"]
    assert "devices-not-constrained" in codes(run)


def test_a_tree_gives_the_leaf_of_each_node():
    run = topology((FIXTURES / "slurm-topology" / "tree.conf").read_text())
    assert run.condition("nodes") == 6.0
    assert values(run, "leaf", node="gpu-05") == ["leaf2"]
    assert "counts-agree" in codes(run)
    assert "tree-not-connected" not in codes(run)


def test_faults_of_a_tree_are_named():
    run = topology("# Number of Nodes in s1: 9\nSwitchName=s1 Nodes=rack-n[1-4],n[5-6]\n"
                   "SwitchName=s2 Nodes=rack-n[4,7-9]\n"
                   "SwitchName=top Switches=s1,s9\n")  # fmt: skip
    assert {"node-in-two-leaves", "prefix-lost", "tree-not-connected", "unknown-switch", "count-differs"} <= codes(run)


def test_a_cycle_is_named():
    assert "switch-cycle" in codes(topology("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"))


def test_blocks_are_read():
    run = topology((FIXTURES / "slurm-topology" / "block.conf").read_text())
    assert (run.condition("topology"), run.condition("block_sizes")) == ("block", "18,36")
    assert values(run, "leaf", node="gb-019") == ["b2"]


def test_topology_yaml_holds_several_topologies():
    runs = read_all((FIXTURES / "slurm-topology" / "topology.yaml").read_text(), "slurm-topology")
    assert [run.condition("topology") for run in runs] == ["tree", "block", "flat"]
    assert values(runs[0], "leaf", node="gpu-03") == ["l2"]
    assert runs[1].condition("block_sizes") == "4,8"


def test_scontrol_show_topology_counts_nodes_at_the_leaves():
    run = topology("SwitchName=s0 Level=0 LinkSpeed=1 Nodes=a[1-2]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=a[3-4]\n"
                   "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=a[1-4] Switches=s[0-1]\n")  # fmt: skip
    assert "node-in-two-leaves" not in codes(run)
    assert run.condition("nodes") == 4.0


@pytest.mark.parametrize("kind", ["slurm-conf", "slurm-gres-conf", "slurm-cgroup-conf", "slurm-topology"])
def test_comments_alone_are_refused(kind):
    transcript = read_output([b"# nothing here\n#SwitchName=x\n"], kind=kind)
    assert transcript.outcome is Outcome.REFUSED
