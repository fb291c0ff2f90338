"""scontrol: records by key name, as blocks and on one line."""

from pathlib import Path

from clusterwright.model.observations import NoValue, Outcome, Run
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "slurm-scontrol"
JOB = """JobId=5 JobName=a=b c
   UserId=ada(1000) GroupId=lab(100) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=01:00:00 TimeLimit=02:00:00 TimeMin=N/A
   NodeList=gpu-[1-2]
   NumNodes=2 NumCPUs=64 NumTasks=2
   ReqTRES=cpu=2,node=2,gres/gpu=2
   AllocTRES=cpu=64,node=2,gres/gpu=16
   JOB_GRES=gpu:h100:16
     Nodes=gpu-[1-2] CPU_IDs=0-31 Mem=1000 GRES=gpu:h100:8(IDX:0-6)
   Comment=first line
   Command=/bin/run me
"""


def read(text: str) -> Run:
    transcript = read_output([text.encode()], kind="slurm-scontrol")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_recognises_and_reads_every_fixture_whole():
    for path in FIXTURES.iterdir():
        transcript = read_output([path.read_bytes()])
        assert (transcript.kind, transcript.outcome) == ("slurm-scontrol", Outcome.READ), path.name


def test_reads_nodes_in_blocks():
    run = read((FIXTURES / "node-22.05.txt").read_text())
    assert values(run, "gpus_configured", node="gpu-001", type="h100") == [8.0]
    assert values(run, "gpus_allocated", node="gpu-001") == [4.0]
    assert values(run, "node_state", node="gpu-004") == ["UNKNOWN"]
    (load,) = values(run, "cpu_load", node="gpu-004")
    assert isinstance(load, NoValue)
    assert values(run, "slurm_version", node="gpu-001") == ["22.05.8"]


def test_reads_a_node_on_one_line_with_blanks_in_values():
    run = read((FIXTURES / "node-drained-one-line.txt").read_text())
    assert values(run, "reason") == ["gres/gpu count reported lower than configured (7 < 8)"]
    assert values(run, "reason_user") == ["slurm"]
    assert values(run, "gpus_reported") == [7.0]
    assert values(run, "takes_jobs") == [False]
    assert str(values(run, "memory_configured")[0]) == "2000000 MiB"
    assert "fewer-gpus-than-configured" in codes(run)
    assert run.condition("gpus_on_nodes_taking_jobs") == 0.0


def test_an_old_reason_does_not_make_an_idle_node_unhealthy():
    run = read(
        "NodeName=n1 CPUTot=8\n   RealMemory=1000 State=IDLE\n   Reason=Kill task failed [root@2025-01-01T00:00:00]\n"
    )
    assert values(run, "takes_jobs") == [True]
    assert "reason-without-drain" in codes(run)


def test_gpus_without_tracking_are_not_zero():
    run = read("NodeName=n1 CPUTot=8 Gres=gpu:4 GresUsed=gpu:2(IDX:0-1)\n   RealMemory=1000 State=MIXED\n"
               "   CfgTRES=cpu=8,mem=1000M\n   AllocTRES=cpu=4\n")  # fmt: skip
    assert values(run, "gpus_allocated") == [2.0]
    assert "tres-without-gpu" in codes(run)


def test_more_indices_or_fewer_than_the_count_is_a_conflict():
    run = read("NodeName=n1 CPUTot=8 Gres=gpu:4 GresUsed=gpu:2(IDX:0-2)\n   RealMemory=1000 State=MIXED\n")
    assert "gpu-count-conflict" in codes(run)


def test_a_default_memory_is_named():
    run = read("NodeName=n1 CPUTot=8\n   RealMemory=1 AllocMem=0 FreeMem=900 State=IDLE\n")
    assert "memory-never-configured" in codes(run)


def test_a_job_is_billed_by_what_it_holds():
    run = read(JOB)
    assert values(run, "gpus_allocated") == [16.0]
    assert values(run, "job_name") == ["a=b c"]
    assert values(run, "gpu_indices") == ["0-6"]
    assert {"gpu-count-conflict", "allocated-more-than-asked"} <= codes(run)


def test_a_job_shown_twice_counts_once_and_missing_indices_are_unknown():
    run = read((JOB.replace("GRES=gpu:h100:8(IDX:0-6)", "GRES=") + "\n") * 2)
    assert run.condition("gpus_allocated") == 16.0
    assert {"job-listed-twice", "device-indices-unknown"} <= codes(run)


def test_node_counts_that_disagree_are_named():
    assert "node-count-conflict" in codes(read(JOB.replace("NumNodes=2", "NumNodes=3")))


def test_a_cut_job_is_incomplete():
    run = read("JobId=7 JobName=x\n   UserId=a(1)\n   JobState=PENDING Reason=Resources\n   NumNodes=1\n   TRES=cpu=\n")
    assert run.missing == ("rest of the record of job 7",)


def test_reads_the_jobs_of_a_real_controller():
    run = read((FIXTURES / "jobs-22.05.txt").read_text())
    assert run.condition("jobs_listed") == 7.0
    assert values(run, "array_tasks", job="4") == [19.0]
    assert values(run, "gpus_allocated", job="3") == [16.0]
    assert values(run, "exit_code", job="2") == [3.0]


def test_a_failed_launch_names_the_node():
    run = read("JobId=7 JobName=x\n   UserId=a(1)\n   JobState=PENDING Reason=launch_failed_requeued_held\n"
               "   BatchHost=n9\n   NumNodes=1\n")  # fmt: skip
    assert values(run, "suspect_node") == ["n9"]
    assert "node-suspect" in codes(run)


def test_a_reservation_takes_nodes_away():
    run = read((FIXTURES / "reservation.txt").read_text())
    assert values(run, "nodes") == [16.0]
    assert values(run, "duration")[0].value == 43200
    assert "reservation" in codes(run)


def test_configuration_keeps_units_and_is_no_state():
    run = read((FIXTURES / "config-24.05.txt").read_text())
    assert run.version == "24.05.3"
    assert values(run, "setting", key="HealthCheckInterval")[0].value == 300
    (absent,) = values(run, "setting", key="Epilog")
    assert isinstance(absent, NoValue)
    assert values(run, "setting", key="ConstrainDevices", section="Cgroup Support Configuration") == ["yes"]
    assert {"configuration-only", "controller-not-up"} <= codes(run)


def test_a_cut_configuration_is_incomplete():
    run = read("Configuration data as of 2025-01-01T00:00:00\nClusterName = x\n")
    assert run.missing == ("end: the controllers' state",)


def test_partitions_have_limits_and_gpus():
    run = read((FIXTURES / "partitions-22.05.txt").read_text())
    assert values(run, "gpus_configured", partition="all") == [32.0]
    assert values(run, "time_limit", partition="all") == ["unlimited"]


def test_a_record_cut_after_its_name_is_rejected():
    for key in ("StepId", "PartitionName"):
        run = read(f"{key}=x\n")
        assert (run.rejected, run.observations) == (1, ())
