"""Transcripts → readings: conditions, hosts, gaps, and what never becomes a pass."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders.evidence import NOW
from clusterwright.judging.combining import combine
from clusterwright.judging.deriving import FAMILIES, derive
from clusterwright.judging.recording import evidence_id, record
from clusterwright.lib.quantities import parse_quantity
from clusterwright.model.metrics import METRICS
from clusterwright.model.observations import Lack, Notice, NoValue, Observation, Refusal, Run, Transcript, Weight

ABSENT = NoValue(Lack.ABSENT, "N/A")


def run(*observations, conditions=(), **fields):
    seen = tuple(Observation(name, value, tuple(subject.items())) for name, value, subject in observations)
    return Run("tool", conditions=tuple(dict(conditions).items()), observations=seen, **fields)


def readings(kind, *runs, nodes=(), workload=""):
    return derive(Transcript(kind, runs), nodes=nodes, workload=workload).readings


def values(found, metric):
    return [r.value if r.value is None else str(r.value) for r in found if r.metric == metric]


def row(size, busbw, place="out", wrong=0.0):
    subject = {"size": str(size), "type": "float", "place": place}
    return [("busbw", parse_quantity(busbw), subject), ("wrong", wrong, subject)]


HOSTS = {"operation": "all-reduce", "nodes": "a,b", "node_count": 2.0, "ranks": 16.0, "validation": True}


def test_every_family_names_metrics_that_exist():
    assert {m for family in FAMILIES for m in family.metrics} <= METRICS.keys()


def test_a_row_carries_the_conditions_that_claims_name():
    found = readings("nccl-tests", run(*row(8 * 2**30, "470 GB/s"), conditions=HOSTS))
    (bandwidth,) = [r for r in found if r.metric == "busbw"]
    conditions = dict(bandwidth.conditions)
    assert conditions["operation"] == "all-reduce"
    assert conditions["message_size"] == "8589934592 B"
    assert conditions["data_type"] == "float"
    assert conditions["in_place"] == "false"
    assert bandwidth.nodes == ("a", "b")


def test_rows_of_size_zero_are_left_out():
    found = readings("nccl-tests", run(*row(0, "0 GB/s"), *row(1024, "1 GB/s"), conditions=HOSTS))
    assert values(found, "busbw") == ["1 GB/s"]


def test_hosts_of_a_rank_list_of_which_a_part_is_there_are_not_all_hosts():
    conditions = {"operation": "all-reduce", "nodes": "a", "ranks": 16.0, "ranks_listed": 1.0}
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=conditions))
    assert all(r.nodes == () for r in found)


def test_given_hosts_name_those_that_the_output_calls_otherwise():
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=HOSTS), nodes=("gpu-001", "gpu-002"))
    assert {r.nodes for r in found} == {("gpu-001", "gpu-002")}


def test_given_hosts_of_another_number_do_not_replace_printed_ones():
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=HOSTS), nodes=("x", "y", "z"))
    assert {r.nodes for r in found} == {("a", "b")}


def test_a_host_with_its_domain_is_the_declared_host():
    conditions = HOSTS | {"nodes": "a.cluster.local,b.cluster.local"}
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=conditions), nodes=("b", "a"))
    assert {r.nodes for r in found} == {("a", "b")}


def test_localhost_is_no_host():
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=HOSTS | {"nodes": "localhost"}))
    assert {r.nodes for r in found} == {()}


def test_an_error_of_a_benchmark_leaves_its_values_and_lets_none_pass():
    notice = Notice("requests-failed", "1409 of 3200 requests failed", Weight.ERROR)
    found = readings(
        "vllm-bench",
        run(
            ("ttft_p95", parse_quantity("200 ms"), {}),
            ("requests_ok", 1791.0, {}),
            ("requests_asked", 3200.0, {}),
            notices=(notice,),
        ),
    )
    assert values(found, "ttft_p95") == ["200 ms", None]
    assert "invalid: 1409 of 3200 requests failed" in [r.unreadable for r in found]
    assert values(found, "request_success") == ["55.97%", None]


def test_an_error_of_a_state_report_spoils_only_its_own_value():
    notice = Notice("retired-pages-rma", "GPU 1: 65 retired pages", Weight.ERROR)
    found = readings("nvidia-smi-q", run(("gpu", "NVIDIA H100", {"gpu": "0"}), notices=(notice,)), nodes=("n",))
    assert values(found, "gpus_present") == ["1.0"]


def test_latencies_without_the_number_of_failed_requests_are_not_checked():
    found = readings("vllm-bench", run(("ttft_p99", parse_quantity("90 ms"), {}), ("requests_ok", 979.0, {})))
    assert values(found, "ttft_p99") == ["90 ms", None]
    assert values(found, "request_success") == [None]


def test_without_streaming_there_is_no_first_token():
    found = readings(
        "vllm-bench",
        run(
            ("ttft_p99", parse_quantity("90 ms"), {}),
            ("requests_ok", 100.0, {}),
            ("requests_failed", 0.0, {}),
            conditions={"streaming": False},
        ),
    )
    assert [r.unreadable for r in found if r.metric == "ttft_p99"][1].startswith("not comparable: without streaming")


def test_missing_parts_and_rejected_rows_are_said():
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=HOSTS, missing=("the footer",), rejected=3))
    said = [r.unreadable for r in found if r.metric == "busbw" and r.value is None]
    assert said == ["incomplete: the footer", "incomplete: 3 rows could not be read"]


def test_a_refused_output_has_no_value_of_any_of_its_metrics():
    found = derive(Transcript("dcgm-diag", refusal=Refusal("empty: nothing was measured"))).readings
    assert [(r.metric, r.value, r.unreadable) for r in found] == [
        ("dcgm_failures", None, "refused: empty: nothing was measured")
    ]


def gpu(index, **more):
    return {"gpu": str(index)} | more


def test_one_gpu_without_counter_leaves_no_count_to_pass_with():
    found = readings(
        "nvidia-smi-q",
        run(
            ("ecc_uncorrected", 0.0, gpu(0, scope="volatile")),
            ("ecc_uncorrected", ABSENT, gpu(1, scope="volatile")),
        ),
        nodes=("n",),
    )
    assert values(found, "ecc_uncorrected") == [None]


def test_a_counted_error_beside_a_missing_counter_still_fails():
    found = readings(
        "nvidia-smi-q",
        run(
            ("ecc_uncorrected", 2.0, gpu(0, scope="volatile")),
            ("ecc_uncorrected", ABSENT, gpu(1, scope="volatile")),
            ("ecc_uncorrected", 9.0, gpu(0, scope="aggregate")),
        ),
        nodes=("n",),
    )
    assert values(found, "ecc_uncorrected") == ["2.0", None]
    assert values(found, "ecc_uncorrected_lifetime") == ["9.0"]


def test_a_printed_total_is_not_added_to_its_parts():
    found = readings(
        "nvidia-smi-q",
        run(
            ("ecc_uncorrected", 3.0, gpu(0, scope="volatile", location="dram")),
            ("ecc_uncorrected", 1.0, gpu(0, scope="volatile", location="sram")),
            ("ecc_uncorrected", 4.0, gpu(0, scope="volatile")),
        ),
        nodes=("n",),
    )
    assert values(found, "ecc_uncorrected") == ["4.0"]


def test_a_view_of_a_part_is_no_count_of_the_host():
    seen = [("gpu", "NVIDIA H100", gpu(i)) for i in range(5)]
    view = readings("nvidia-smi-topo", run(*seen, notices=(Notice("container-view", "5 GPUs joined all to all"),)))
    some = readings("nvidia-smi-q", run(*seen, conditions={"attached_gpus": 8.0}))
    apps = derive(
        Transcript("nvidia-smi-csv", (Run("nvidia-smi --query-compute-apps", observations=run(*seen).observations),))
    )
    assert values(view, "gpus_present") == [None]
    assert values(some, "gpus_present") == [None]
    assert values(apps.readings, "gpus_present") == [None]


def test_an_inactive_link_is_neither_up_nor_down():
    links = [("nvlink_state", "up", gpu(0, link=str(i))) for i in range(17)]
    found = readings("nvidia-smi-nvlink", run(*links, ("nvlink_state", "inactive", gpu(0, link="17"))))
    assert values(found, "nvlink_down") == [None]
    found = readings("nvidia-smi-nvlink", run(*links, ("nvlink_state", "down", gpu(0, link="17"))))
    assert values(found, "nvlink_down") == ["1.0"]


def test_a_pair_with_fewer_links_than_its_siblings_is_degraded_and_equal_pairs_prove_nothing():
    pairs = [("link", "NV18", {"from": "GPU0", "to": f"GPU{i}"}) for i in range(1, 8)]
    assert values(readings("nvidia-smi-topo", run(*pairs)), "nvlink_down") == []
    worse = run(*pairs, ("link", "NV17", {"from": "GPU2", "to": "GPU3"}))
    assert values(readings("nvidia-smi-topo", worse), "nvlink_down") == ["1.0"]


@pytest.mark.parametrize(("printed", "margin"), [("-3 °C", "-3.0"), ("21 °C", "21.0")])
def test_the_least_margin_of_all_gpus_counts(printed, margin):
    found = readings(
        "nvidia-smi-q",
        run(
            ("temperature_margin", parse_quantity("40 °C"), gpu(0)),
            ("temperature_margin", parse_quantity(printed), gpu(1)),
        ),
    )
    assert values(found, "gpu_temperature_margin") == [margin]


def test_old_drivers_print_the_limit_instead_of_the_margin():
    found = readings(
        "nvidia-smi-q",
        run(
            ("temperature", parse_quantity("70 °C"), gpu(0)),
            ("temperature_slowdown", parse_quantity("87 °C"), gpu(0)),
        ),
    )
    assert values(found, "gpu_temperature_margin") == ["17.0"]


def test_a_silent_log_of_hours_is_zero_and_one_of_seconds_is_nothing():
    hours = readings("kernel-log", run(conditions={"node": "n", "duration": parse_quantity("2 h")}))
    seconds = readings("kernel-log", run(conditions={"node": "n", "duration": parse_quantity("5 s")}))
    unknown = readings("kernel-log", run(conditions={"node": "n"}))
    assert values(hours, "xid_errors") == ["0.0"]
    assert values(seconds, "xid_errors") == [None]
    assert values(unknown, "xid_errors") == [None]
    assert dict(hours[0].conditions)["duration"] == "2 h"


def test_events_count_as_often_as_they_were_folded_and_are_named():
    found = readings(
        "kernel-log",
        run(("xid", 13.0, {"node": "n", "pci": "0000:1b:00.0", "count": "16"}), ("xid", 43.0, {"node": "n"})),
    )
    (xids,) = [r for r in found if r.metric == "xid_errors"]
    assert xids.value == 17.0
    assert dict(xids.conditions)["events"] == "13, 43"


def test_corrected_pcie_errors_are_no_errors():
    found = readings(
        "kernel-log",
        run(("aer", "corrected", {"node": "n", "count": "900"}), conditions={"duration": parse_quantity("1 h")}),
    )
    assert values(found, "pcie_errors") == ["0.0"]


def port(device, state="Active", physical="LinkUp", rate="400 Gb/s", layer="InfiniBand"):
    at = {"device": device, "port": "1"}
    speed = parse_quantity(rate) if rate else ABSENT
    return [
        ("port_state", state, at),
        ("port_physical_state", physical, at),
        ("port_rate", speed, at),
        ("port_layer", layer, at),
    ]


def test_ports_that_are_up_count_and_the_slowest_gives_the_rate():
    found = readings(
        "ib-state",
        run(
            *port("mlx5_0"),
            *port("mlx5_1", rate="200 Gb/s"),
            *port("mlx5_2", state="Down", physical="Polling", rate=""),
        ),
        nodes=("n",),
    )
    assert values(found, "ib_links_up") == ["2.0"]
    assert values(found, "ib_port_rate") == ["200 Gb/s"]


def test_ethernet_ports_are_no_infiniband_links():
    found = readings("ib-state", run(*port("mlx5_0", layer="Ethernet"), *port("mlx5_1")))
    assert values(found, "ib_links_up") == ["1.0"]
    assert values(readings("ib-state", run(*port("mlx5_0", layer="Ethernet"))), "ib_links_up") == []


PERFTEST = {"operation": "write", "connection": "RC", "transport": "RoCE", "gpu_memory": False}


def test_bytes_per_second_become_bits_and_the_transport_is_named_whole():
    found = readings(
        "perftest-bw-lat",
        run(("bandwidth_average", parse_quantity("46000 MiB/s"), {"size": "1048576"}), conditions=PERFTEST),
        nodes=("a", "b"),
    )
    (rate,) = [r for r in found if r.metric == "rdma_write"]
    assert rate.value.to("Gb/s") == pytest.approx(46000 * 2**20 * 8 / 1e9)
    assert dict(rate.conditions)["transport"] == "RC over RoCE"
    assert rate.nodes == ("a", "b")


@pytest.mark.parametrize("condition", [{"bidirectional": True}, {"loopback": True}])
def test_sums_of_directions_and_loopback_are_not_comparable(condition):
    found = readings(
        "perftest-bw-lat",
        run(("bandwidth_average", parse_quantity("390 Gb/s"), {"size": "65536"}), conditions=PERFTEST | condition),
    )
    assert values(found, "rdma_write") == [None]


def test_gpu_memory_makes_it_gpudirect():
    found = readings(
        "perftest-bw-lat",
        run(
            ("bandwidth_average", parse_quantity("390 Gb/s"), {"size": "65536"}),
            conditions=PERFTEST | {"gpu_memory": True},
        ),
    )
    assert values(found, "gpudirect_rdma_write") == ["390 Gb/s"]


def test_a_cached_read_is_no_read_of_the_store_and_the_writes_stand():
    notice = Notice("page-cache", "half of the reads completed within 2 µs: that is memory")
    found = readings(
        "fio",
        run(
            ("read_rate", parse_quantity("90 GB/s"), {"job": "r"}),
            ("write_rate", parse_quantity("9 GB/s"), {"job": "w"}),
            notices=(notice,),
        ),
    )
    assert values(found, "storage_read") == ["90 GB/s", None]
    assert values(found, "storage_write") == ["9 GB/s"]


def test_jobs_of_a_group_count_by_their_printed_sum():
    found = readings(
        "fio",
        run(
            ("read_rate", parse_quantity("2 GB/s"), {"job": "r", "group": "0"}),
            ("read_rate", parse_quantity("3 GB/s"), {"job": "r", "group": "0"}),
            ("read_rate_total", parse_quantity("5 GB/s"), {"group": "0"}),
        ),
    )
    assert values(found, "storage_read") == ["5 GB/s"]
    assert dict(found[0].conditions)["concurrency"] == "2"


def steps(*seconds, **more):
    return [("step_time", parse_quantity(f"{s} s"), {"iteration": str(10 * i)}) for i, s in enumerate(seconds, 1)]


def test_the_steady_step_is_the_median_without_the_first_window():
    found = readings("training-log", run(*steps(9, 1.4, 1.38, 1.4, 1.39, 2.0)))
    assert values(found, "step_time") == ["1.4 s"]


def test_few_or_skipped_windows_are_no_steady_part():
    skipped = [("skipped_iterations", 10.0, {"iteration": str(10 * i)}) for i in range(1, 7)]
    found = readings("training-log", run(*steps(9, 1, 1, 1, 1, 1), *skipped))
    assert values(found, "step_time") == [None]
    assert values(found, "skipped_steps") == ["60.0"]
    assert values(readings("training-log", run(*steps(9, 1, 1))), "step_time") == [None]


def test_a_checkpoint_that_was_begun_and_not_saved_is_lost():
    found = readings("training-log", run(("checkpoint", "started", {"iteration": "5"})))
    assert values(found, "checkpoints_failed") == ["1.0"]


def test_gpus_of_a_drained_node_are_not_on_offer_and_types_add_up():
    found = readings(
        "slurm-scontrol",
        run(
            ("gpus_configured", 4.0, {"node": "a", "type": "x"}),
            ("gpus_configured", 2.0, {"node": "a", "type": "y"}),
            ("takes_jobs", True, {"node": "a"}),
            ("gpus_configured", 8.0, {"node": "b"}),
            ("takes_jobs", False, {"node": "b"}),
        ),
    )
    assert [(r.nodes, r.value) for r in found if r.metric == "gpus_schedulable"] == [(("a",), 6.0), (("b",), 0.0)]


def test_a_simulated_node_offers_nothing():
    found = readings(
        "k8s-node",
        run(("allocatable", 8.0, {"node": "v", "resource": "nvidia.com/gpu"}), ("virtual", True, {"node": "v"})),
    )
    assert values(found, "gpus_schedulable") == []


def test_ranks_without_a_gpu_of_their_own_are_not_as_expected():
    ranks = [
        (name, value, {"node": "a", "rank": str(rank)})
        for rank in range(4)
        for name, value in (("world_size", 4.0), ("met", True), ("device", "GPU-0" if rank < 2 else f"GPU-{rank}"))
    ]
    found = readings("clusterwright-placement", run(*ranks))
    assert values(found, "tasks_as_expected") == ["50%"]


def test_the_workload_is_named_where_the_caller_says_it():
    found = readings("nccl-tests", run(*row(1024, "1 GB/s"), conditions=HOSTS), workload="chat")
    assert all(dict(r.conditions)["workload"] == "chat" for r in found)


def test_a_record_is_named_by_its_content():
    derivation = derive(Transcript("nccl-tests", (run(*row(1024, "1 GB/s"), conditions=HOSTS),)))
    times = {"started": NOW - timedelta(hours=1), "ended": NOW}
    one = record(derivation, raw_digest="sha256:a", **times)
    assert one.id == evidence_id(one) == record(derivation, raw_digest="sha256:a", **times).id
    assert one.id != record(derivation, raw_digest="sha256:b", **times).id
    assert one.nodes == ("a", "b")


def test_a_value_without_host_does_not_stand_for_the_hosts_of_others():
    found = derive(
        Transcript(
            "nvidia-smi-q",
            (
                run(("gpu", "x", gpu(0)), conditions={"node": "a"}),
                run(("gpu", "x", gpu(0)), ("gpu", "x", gpu(1))),
            ),
        )
    )
    made = record(found, raw_digest="", started=NOW, ended=NOW)
    assert [(r.value, r.nodes) for r in made.readings if r.metric == "gpus_present"] == [(1.0, ("a",)), (None, ())]


def test_the_share_of_a_step_that_waits_for_data_is_a_median():
    waits = [
        ("phase_time", parse_quantity(f"{s} s"), {"iteration": str(10 * i), "phase": "batch-generator"})
        for i, s in enumerate((0.9, 0.1, 0.2, 0.1, 0.1, 0.1), 1)
    ]
    found = readings("training-log", run(*steps(1, 1, 1, 1, 1, 1), *waits))
    assert values(found, "data_loading_stall") == ["10%"]


def test_a_checkpoint_directory_with_a_short_shard_is_no_checkpoint():
    found = readings(
        "checkpoint-listing",
        run(("checkpoint_complete", False, {"checkpoint": "c2"}), ("checkpoint_complete", True, {"checkpoint": "c1"})),
    )
    assert values(found, "checkpoints_failed") == ["1.0"]
    assert dict(found[0].conditions)["unfinished"] == "c2"


def test_a_failure_of_the_background_watches_counts_and_their_silence_proves_nothing():
    overall = ("health", "failure", {"scope": "overall"})
    parts = [("health", "failure", {"gpu": "5"}), ("health", "failure", {"gpu": "5", "system": "memory"})]
    found = readings("dcgm-health", run(overall, *parts, ("health", "warning", {"gpu": "2"})), nodes=["gpu-001"])
    assert values(found, "dcgm_failures") == ["1.0", None, None]
    assert dict(found[0].conditions)["failed"] == "gpu 5 memory"
    assert "warned: gpu 2" in [r.unreadable for r in found]
    healthy = readings("dcgm-health", run(("health", "healthy", {"scope": "overall"})), nodes=["gpu-001"])
    assert values(healthy, "dcgm_failures") == [None]
    assert values(readings("dcgm-health", run(overall), nodes=["gpu-001"]), "dcgm_failures") == ["1.0", None]


def test_phases_of_io500_are_rates_of_all_clients_and_only_creation_creates():
    phases = [
        ("write_rate", parse_quantity("58 GiB/s"), {"phase": "ior-easy-write"}),
        ("phase_time", parse_quantity("310 s"), {"phase": "ior-easy-write"}),
        ("metadata_rate", parse_quantity("45 kIOPS"), {"phase": "mdtest-easy-write"}),
        ("metadata_rate", parse_quantity("90 kIOPS"), {"phase": "mdtest-easy-stat"}),
    ]
    found = readings("io500", run(*phases, conditions={"ranks": "128"}))
    (write,) = [r for r in found if r.metric == "storage_write"]
    assert dict(write.conditions) | {"test": "ior-easy-write"} == dict(write.conditions)
    assert dict(write.conditions)["concurrency"] == "128"
    assert dict(write.conditions)["duration"] == "310 s"
    assert values(found, "files_created") == ["45 kIOPS"]


@pytest.mark.parametrize(
    ("checked", "passes"),
    [
        ([("compat_mode", False, {}), ("gds_supported", True, {"gpu": "0"})], True),
        ([("compat_mode", True, {}), ("gds_supported", True, {"gpu": "0"})], False),
        ([("compat_mode", False, {}), ("gds_supported", False, {"gpu": "3"})], False),
    ],
)
def test_a_rate_of_the_direct_path_is_none_where_data_may_be_copied(checked, passes):
    direct = run(("read_rate", parse_quantity("40 GB/s"), {}), conditions={"transfer": "GPUD"})
    moments = {"started": NOW - timedelta(hours=2), "ended": NOW - timedelta(hours=2)}
    found = [
        record(derive(Transcript(kind, (one,)), nodes=["a"]), raw_digest="sha256:0", **moments)
        for kind, one in (("gdsio", direct), ("gdscheck", run(*checked)))
    ]
    assert all(r.value is None for r in found[1].readings)
    rate = combine(found)[0]
    assert any(r.value is not None for r in rate.readings if r.metric == "gds_read")
    assert any(r.value is None for r in rate.readings if r.metric == "gds_read") is not passes
