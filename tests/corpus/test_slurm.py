"""Public operator files of Slurm, each with the conclusion that a correct reader reaches."""

from __future__ import annotations

from typing import Final

import pytest

from builders.corpus import FOLDER, Expectation, check_corpus, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript

KINDS: Final = ("slurm-conf", "slurm-gres-conf", "slurm-topology", "slurm-output", "slurm-log")


def only(transcript: Transcript, kind: str, outcome: Outcome = Outcome.READ) -> Run:
    assert (transcript.kind, transcript.outcome) == (kind, outcome), (transcript.kind, transcript.outcome)
    (run,) = transcript.runs
    return run


def said(run: Run, *codes: str) -> None:
    found = {notice.code for notice in run.notices}
    assert set(codes) <= found, f"{set(codes) - found} not in {found}"


def message(run: Run, code: str) -> str:
    return next(notice.message for notice in run.notices if notice.code == code)


def seconds(value: object) -> float:
    assert isinstance(value, Quantity), value
    return value.value


def absent(value: object) -> bool:
    return isinstance(value, NoValue) and value.lack is Lack.ABSENT


def allocation(run: Run, name: str, job: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and dict(o.subject) == {"job": job}]


# slurm.conf


def whole_node_superpod(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert run.condition("nodes_configured") == 98.0
    assert run.condition("gpus_configured") == 0.0
    said(run, "no-gpus-declared", "gpu-tracked-without-gres", "cpus-inconsistent")
    assert "charged by node" in message(run, "no-gpus-declared")


def mixed_types(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert run.condition("gpus_configured") == 15.0
    assert "8 m2070q" in message(run, "gpu-kinds")
    assert "4 v100" in message(run, "gpu-kinds")
    assert seconds(values(run, "time_limit", partition="ibtesla")[0]) == 7 * 86400 + 99
    said(run, "odd-duration", "old-key")


def single_host(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert (run.condition("nodes_configured"), run.condition("gpus_configured")) == (1.0, 8.0)
    said(run, "gpu-hours-not-recorded")


def four_shared_hosts(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert run.condition("gpus_configured") == 32.0
    assert values(run, "partition_nodes", partition="gpus") == [4.0]
    assert "4 jobs" in message(run, "oversubscribed")


def continued_partitions(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert (run.condition("nodes_configured"), run.condition("gpus_configured")) == (1.0, 1.0)
    assert seconds(values(run, "time_limit", partition="students")[0]) == 4 * 3600
    said(run, "node-in-several-partitions")


def shards(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert run.condition("gpus_configured") == 4.0
    said(run, "gpu-fractions", "cpus-inconsistent")
    assert values(run, "gpus_configured", partition="groupx-worm") == [4.0]


def three_hosts(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert (run.condition("nodes_configured"), run.condition("gpus_configured")) == (3.0, 4.0)
    said(run, "node-in-several-partitions")


def pods(t: Transcript) -> None:
    run = only(t, "slurm-conf")
    assert run.condition("gpus_configured") == 0.0
    said(run, "dynamic-nodes", "no-gpus-declared")


# gres.conf


def one_device_two_names(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert run.condition("gpus_configured") == 13.0
    assert "/dev/nvidia0 by slurmnode1, slurmnode8" in message(run, "device-claimed-twice")


def four_per_socket(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert run.condition("gpus_configured") == 8.0
    assert message(run, "affinity").count(" 4 on ") == 2
    said(run, "old-key")


def sixteen_devices(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert run.condition("gpus_per_node") == 16.0
    assert values(run, "gpu_device", index="10") == ["/dev/nvidia10"]


def autodetect_and_lines(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert run.condition("gpus_configured") == 4.0
    assert "drained" in message(run, "autodetect-and-explicit")


def commented_autodetect(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert run.condition("gpus_configured") == 3.0
    assert values(run, "gpus_configured", node="localhost", type="tesla") == [3.0]
    assert run.condition("autodetect") is None


def affinity_comes_back(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert run.condition("gpus_per_node") == 8.0
    said(run, "affinity-repeats", "every-node")


def includes_only(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf", Outcome.PARTLY)
    assert absent(run.condition("gpus_configured"))
    assert len(run.missing) == 3


def static_and_dynamic(t: Transcript) -> None:
    run = only(t, "slurm-gres-conf")
    assert (run.condition("gpus_configured"), run.condition("gpus_potential")) == (2.0, 88.0)
    said(run, "potential-capacity")


# topology.conf


def broken_tree(t: Transcript) -> None:
    run = only(t, "slurm-topology")
    assert "n051 hangs on s2 and s4" in message(run, "node-in-two-leaves")
    assert message(run, "prefix-lost").startswith("n[019-020]")
    said(run, "tree-not-connected")


def one_switch(t: Transcript) -> None:
    run = only(t, "slurm-topology")
    assert (run.condition("switches"), run.condition("nodes")) == (1.0, 4.0)


def counted_tree(t: Transcript) -> None:
    run = only(t, "slurm-topology")
    assert (run.condition("nodes"), run.condition("leaves"), run.condition("switches")) == (16.0, 5.0, 6.0)
    said(run, "counts-agree")
    assert not {n.code for n in run.notices} & {"count-differs", "tree-not-connected"}


# sinfo


def wide_sinfo(t: Transcript) -> None:
    run = only(t, "slurm-sinfo")
    assert run.condition("nodes_listed") == 3.0
    assert values(run, "node_state", node="node0201") == ["DRAINED"]
    assert values(run, "node_flags", node="node0201") == ["DRAIN+NOT_RESPONDING"]
    assert values(run, "reason", node="node0201") == ["replace"]
    assert values(run, "reason_since", node="node0201") == ["2022-06-02T05:54:34"]
    assert values(run, "gpus_configured", node="node0201") == [8.0]
    assert absent(values(run, "memory_free", node="node0201")[0])


def name_and_state(t: Transcript) -> None:
    run = only(t, "slurm-sinfo", Outcome.PARTLY)
    assert len(values(run, "node_state")) == run.condition("nodes_listed")
    assert values(run, "node_flags", node="lxfoo0026") == ["NOT_RESPONDING"]
    said(run, "not-responding", "no-header")


def slices_mixed_in(t: Transcript) -> None:
    run = only(t, "slurm-sinfo", Outcome.PARTLY)
    assert (run.condition("gpus_configured"), run.condition("mig_slices_configured")) == (133.0, 21.0)
    assert "never add them to 154" in message(run, "mig-slices")


def node_in_four_partitions(t: Transcript) -> None:
    run = only(t, "slurm-sinfo", Outcome.PARTLY)
    assert run.condition("gpus_configured") == 20.0
    assert run.condition("gpus_allocated") == 6.0
    assert run.condition("gpus_on_nodes_taking_jobs") == 12.0
    assert values(run, "takes_jobs", node="a002") == [False]
    assert values(run, "takes_jobs", node="a004") == [False]


def two_types(t: Transcript) -> None:
    run = only(t, "slurm-sinfo", Outcome.PARTLY)
    assert (run.condition("gpus_configured"), run.condition("gpus_allocated")) == (4.0, 1.0)
    assert values(run, "gpu_indices", type="model_b") == ["2"]


def tracked_without_gpus(t: Transcript) -> None:
    listing, record = t.runs
    assert values(listing, "gpus_per_node", type="h100") == [8.0]
    assert values(record, "gpus_allocated", node="node01") == [5.0]
    said(record, "tres-without-gpu")
    assert "no GPU hours" in message(record, "tres-without-gpu")


# squeue


def bars_and_hashes(t: Transcript) -> None:
    run = only(t, "slurm-squeue", Outcome.PARTLY)
    assert values(run, "array_tasks", job="42271120_[7-8%1]") == [2.0]
    assert values(run, "array_throttle", job="42271120_[7-8%1]") == [1.0]
    assert values(run, "gpus_per_node", job="42956774_3") == [8.0]
    assert values(run, "gpus_allocated", job="42956774_3") == [256.0]
    said(run, "job-stuck", "jobs-never-starts")


def control_characters(t: Transcript) -> None:
    run = only(t, "slurm-squeue")
    assert run.condition("jobs_listed") == 1.0
    assert values(run, "job_state", job="29471683_9") == ["COMPLETED"]
    assert "\ufffd" in str(values(run, "job_name")[0])
    assert dict(t.cleaned)["undecodable bytes"] > 0


def reasons_with_commas(t: Transcript) -> None:
    run = only(t, "slurm-squeue", Outcome.PARTLY)
    assert run.condition("jobs_listed") == 55.0
    assert values(run, "job_state").count("NODE_FAIL") == 1
    assert values(run, "waits_for").count("held") == 2
    assert values(run, "waits_for").count("capacity") == 2
    said(run, "node-fail", "jobs-held")


def not_available(t: Transcript) -> None:
    first, second = t.runs
    assert absent(values(first, "gpus_per_node", job="4711")[0])
    assert values(second, "gpus_allocated", job="4711") == [1.0]
    said(first, "gpus-unknown")


def held_after_a_failure(t: Transcript) -> None:
    assert (t.kind, t.outcome) == ("slurm-session", Outcome.PARTLY)
    queue, answers, record = t.runs
    assert values(queue, "waits_for") == ["failure", "failure"]
    assert values(answers, "tasks_answered", answer="No error") == [12.0]
    (cut,) = values(answers, "tasks_answered", answer="Job has already finished")
    assert isinstance(cut, NoValue)
    assert values(record, "suspect_node") == ["node-n2-23"]
    assert record.missing == ("rest of the record of job 80634",)


# sacct


def torn_records(t: Transcript) -> None:
    run = only(t, "slurm-sacct")
    gpus = {dict(o.subject)["job"]: o.value for o in run.observations
            if o.name == "gpus_allocated" and dict(o.subject).get("step") != "batch"}  # fmt: skip
    assert gpus == {"200131": 2048.0, "201729": 1024.0, "201844": 256.0}
    assert values(run, "gpus_allocated", job="201729", step="batch") == [8.0]
    assert run.condition("records") == 4.0
    said(run, "records-joined", "record-listed-twice")
    assert "3 records" in message(run, "records-joined")


def running_jobs(t: Transcript) -> None:
    run = only(t, "slurm-sacct")
    assert all(absent(end) for end in values(run, "end"))
    assert seconds(values(run, "elapsed")[0]) == 93050
    said(run, "still-running", "record-listed-twice")


def cancelled_by(t: Transcript) -> None:
    run = only(t, "slurm-sacct")
    assert seconds(allocation(run, "elapsed", "43974388")[0]) == 12805
    assert allocation(run, "cpus", "43974388") == [2.0]
    assert absent(allocation(run, "gpus_allocated", "43974388")[0])
    assert allocation(run, "cancelled_by", "43974388") == ["1300204"]
    assert seconds(allocation(run, "elapsed", "43977780")[0]) == 17
    said(run, "step-longer-than-allocation", "end-unknown", "gpus-not-accounted")


def broken_records(t: Transcript) -> None:
    run = only(t, "slurm-sacct", Outcome.PARTLY)
    assert run.rejected == 3
    assert [unread.line for unread in run.unread] == [4, 5, 6]
    assert run.condition("records") == 21.0
    assert seconds(values(run, "max_rss", job="278952")[0]) == 438.5 * 2**20
    assert not [o for o in run.observations if o.line in (4, 5, 6)]


def requeued(t: Transcript) -> None:
    run = only(t, "slurm-sacct", Outcome.PARTLY)
    assert seconds(values(run, "elapsed_total", job="235929")[0]) == 16637
    assert "end: the last row is cut" in run.missing
    assert set(values(run, "memory_scope")) == {"per core"}
    said(run, "requeue-loop")


def recycled(t: Transcript) -> None:
    assert values(t.runs[1], "job_state", job="12728301") == ["RUNNING"]
    assert "2017-10-03" in message(t.runs[-1], "job-id-recycled")


def fixed_width_steps(t: Transcript) -> None:
    run = only(t, "slurm-sacct", Outcome.PARTLY)
    assert seconds(allocation(run, "start_to_end", "11303562")[0]) == 123142
    assert seconds(allocation(run, "waited", "11303562")[0]) == 3568
    assert seconds(allocation(run, "consumed_energy", "11303562")[0]) == 4.16e9
    assert run.rejected == 1


# scontrol


def configuration(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert run.version == "23.02.2"
    assert seconds(values(run, "setting", key="BatchStartTimeout")[0]) == 300
    assert absent(values(run, "setting", key="AuthInfo")[0])
    said(run, "configuration-only")


def eight_nodes(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert allocation(run, "gpus_allocated", "8401413") == [64.0]
    assert values(run, "gpu_indices", job="8401413") == ["0-7"]
    assert "gpu-sum-conflict" not in {n.code for n in run.notices}


def count_against_indices(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert allocation(run, "gpus_allocated", "30214") == [8.0]
    said(run, "gpu-count-conflict", "allocated-more-than-asked")


def repeated_entry(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert (run.condition("jobs_listed"), run.condition("gpus_allocated")) == (1.0, 8.0)
    said(run, "device-indices-unknown", "job-listed-twice")


def array_master(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert values(run, "array_tasks", job="30214") == [32.0]
    assert values(run, "array_throttle", job="30214") == [100.0]


def bridged_pod(t: Transcript) -> None:
    run = only(t, "slurm-session")
    assert values(run, "job_state") == ["CANCELLED"]
    assert absent(values(run, "account")[0])
    said(run, "job-of-a-pod", "no-account")


def compound_states(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert values(run, "node_state", node="c1") == ["MIXED"]
    assert "DRAIN" in str(values(run, "node_flags", node="c1")[0])
    assert values(run, "takes_jobs", node="c1") == [False]
    assert values(run, "takes_jobs", node="c6") == [True]
    assert values(run, "reason", node="c4") == ["planned_maintenance"]
    assert values(run, "reason_user", node="c4") == ["root"]
    assert values(run, "gpus_allocated") == []


def reservation(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert values(run, "nodes") == [102.0]
    assert seconds(values(run, "duration")[0]) == 3 * 86400 + 13 * 3600
    assert "102 nodes will be unavailable to others from 2025-08-26T07:00:00" in message(run, "reservation")


# JSON


def queue_json(t: Transcript) -> None:
    run = only(t, "slurm-json")
    assert run.condition("jobs_listed") == 2.0
    assert values(run, "array_tasks", job="58948420_[1-10]") == [10.0]
    assert seconds(values(run, "time_limit", job="26515966")[0]) == 30240 * 60


def statistics(t: Transcript) -> None:
    run = only(t, "slurm-json")
    said(run, "statistics-only")
    assert values(run, "gpus_configured") == []


def rest_nodes(t: Transcript) -> None:
    # The state is idle and state_flags holds DRAIN: the reason is not an old text, the node is drained.
    run = only(t, "slurm-json")
    assert values(run, "node_state", node="nodex145") == ["IDLE"]
    assert values(run, "node_flags", node="nodex145") == ["DRAIN"]
    assert values(run, "takes_jobs", node="nodex145") == [False]
    assert values(run, "takes_jobs", node="nodex147") == [True]


def rest_job(t: Transcript) -> None:
    run = only(t, "slurm-json")
    assert values(run, "nodes", job="349") == [2.0]
    assert values(run, "array_job") == []
    assert values(run, "exit_code") == [0.0]
    assert absent(values(run, "gpus_allocated")[0])


def rest_node(t: Transcript) -> None:
    run = only(t, "slurm-json")
    assert (run.condition("gpus_configured"), run.condition("gpus_allocated")) == (1.0, 0.0)
    assert values(run, "takes_jobs", node="worker-1") == [True]


# Logs


def low_memory(t: Transcript) -> None:
    run = only(t, "slurm-log")
    assert seconds(values(run, "memory_reported")[0]) == 63622 * 2**20
    assert "set RealMemory to at most 63622" in message(run, "memory-configured-too-high")


def replaced_machine(t: Transcript) -> None:
    run = only(t, "slurm-log")
    assert "margin" in message(run, "memory-configured-too-high")
    said(run, "registration-refused")


def no_gpu_found(t: Transcript) -> None:
    run = only(t, "slurm-scontrol")
    assert values(run, "gpus_reported") == [0.0]
    assert run.condition("gpus_on_nodes_taking_jobs") == 0.0
    said(run, "fewer-gpus-than-configured", "memory-never-configured")


def first_start(t: Transcript) -> None:
    run = only(t, "slurm-log")
    assert "normal once" in message(run, "job-state-missing")
    assert "job-state-lost" not in {n.code for n in run.notices}


def expired_credential(t: Transcript) -> None:
    run = only(t, "slurm-log")
    assert seconds(values(run, "clock_skew")[0]) == 13 * 3600 + 19
    assert "behind" in message(run, "clock-skew")


def rewound_credential(t: Transcript) -> None:
    run = only(t, "slurm-log")
    assert seconds(values(run, "clock_skew")[0]) == -(4 * 3600 + 60 + 42)
    said(run, "clock-skew", "job-state-lost")


def dutch_months(t: Transcript) -> None:
    run = only(t, "slurm-log")
    assert run.rejected == 0
    assert 646.0 in [seconds(v) for v in values(run, "clock_skew", between="file system and controller")]
    assert "646 s" in message(run, "clock-skew")


EXPECTATIONS: Final[dict[str, Expectation]] = {
    "slurm-conf/001-dgx2-superpod-100-nodes.conf": whole_node_superpod,
    "slurm-conf/003-es-uni-mixed-gpu-types.conf": mixed_types,
    "slurm-conf/004-lambda-8gpu-single.conf": single_host,
    "slurm-conf/006-lab-8gpu.conf": four_shared_hosts,
    "slurm-conf/007-homelab-rtx8000.conf": continued_partitions,
    "slurm-conf/008-mixed-autodetect.conf": shards,
    "slurm-conf/009-cn-small-3-hosts.conf": three_hosts,
    "slurm-conf/010-slurm-on-openshift.conf": pods,
    "slurm-gres-conf/001-same-device-on-several-nodes.conf": one_device_two_names,
    "slurm-gres-conf/002-cpus-affinity-old-key.conf": four_per_socket,
    "slurm-gres-conf/003-16-devices-no-type.conf": sixteen_devices,
    "slurm-gres-conf/004-autodetect-and-explicit-mixed.conf": autodetect_and_lines,
    "slurm-gres-conf/007-autodetect-commented.conf": commented_autodetect,
    "slurm-gres-conf/009-no-nodename-affinity-wraps.conf": affinity_comes_back,
    "slurm-gres-conf/010-pcluster-include-only.conf": includes_only,
    "slurm-gres-conf/011-pcluster-gpu.conf": static_and_dynamic,
    "slurm-topology/001-superpod-node-in-two-leaves.conf": broken_tree,
    "slurm-topology/002-tree-one-switch-no-newline.conf": one_switch,
    "slurm-topology/005-azure-tree.conf": counted_tree,
    "slurm-output/002-sinfo-pipe-44-columns-dup-headers.txt": wide_sinfo,
    "slurm-output/003-squeue-hash-pipe-delim.txt": bars_and_hashes,
    "slurm-output/005-sacct-multiline-jobnames.txt": torn_records,
    "slurm-output/008-scontrol-show-config.txt": configuration,
    "slurm-output/009-sacct-running-end-unknown.txt": running_jobs,
    "slurm-output/010-scontrol-job-d-8nodes-64gpus.txt": eight_nodes,
    "slurm-output/011-scontrol-job-d-some-gpus.txt": count_against_indices,
    "slurm-output/012-scontrol-job-d-repeated-entry.txt": repeated_entry,
    "slurm-output/013-scontrol-job-array-master.txt": array_master,
    "slurm-output/014-slurm-bridge-cancelled-job.txt": bridged_pod,
    "slurm-output/015-squeue-json-rivos.json": queue_json,
    "slurm-output/017-sdiag-json-2405.json": statistics,
    "slurm-output/019-rest-nodes-telegraf.json": rest_nodes,
    "slurm-output/020-rest-job-2node-soperator.json": rest_job,
    "slurm-output/021-rest-node-soperator.json": rest_node,
    "slurm-output/022-sinfo-vpenso.txt": name_and_state,
    "slurm-output/023-squeue-nonutf8-ood.txt": control_characters,
    "slurm-output/025-sinfo-gres-mig-slices-mixed-in.txt": slices_mixed_in,
    "slurm-output/027-sinfo-node-in-four-partitions.txt": node_in_four_partitions,
    "slurm-output/028-sinfo-node-two-gpu-types.txt": two_types,
    "slurm-output/031-squeue-reason-with-commas.txt": reasons_with_commas,
    "slurm-output/032-scontrol-oneline-compound-states.txt": compound_states,
    "slurm-output/033-scontrol-reservation-maintenance.txt": reservation,
    "slurm-output/034-sacct-wide-cancelled-by.csv": cancelled_by,
    "slurm-output/036-sacct-apel-broken-records.txt": broken_records,
    "slurm-output/037-sacct-duplicates-requeued.txt": requeued,
    "slurm-output/038-sacct-recycled-jobid.txt": recycled,
    "slurm-output/039-squeue-gres-field-na.txt": not_available,
    "slurm-output/041-sinfo-cfgtres-without-gpu.txt": tracked_without_gpus,
    "slurm-output/043-sacct-wrapper-steps.txt": fixed_width_steps,
    "slurm-output/044-scontrol-launch-failed-requeued-held.txt": held_after_a_failure,
    "slurm-log/002-low-real-memory-drain.log": low_memory,
    "slurm-log/003-low-memory-spot-eviction.log": replaced_machine,
    "slurm-log/005-scontrol-node-idle-drain-gres-0-of-1.txt": no_gpu_found,
    "slurm-log/006-gcp-state-files-missing-at-start.log": first_start,
    "slurm-log/008-munge-expired-credential-13h.log": expired_credential,
    "slurm-log/009-munge-rewound-credential-job-state-lost.log": rewound_credential,
    "slurm-log/010-job-state-moved-backwards-dutch.log": dutch_months,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside this clone")
def test_every_file_of_slurm_gives_its_conclusion() -> None:
    assert check_corpus(EXPECTATIONS, *KINDS) > 0
