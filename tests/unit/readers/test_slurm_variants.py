"""Slurm's listings as people paste them: commands without a prompt, no header, states of old versions."""

from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.reading import read_output


def read(text: str, kind: str = "") -> list[Run]:
    transcript = read_output([text.encode()], name="pasted.txt", kind=kind)
    assert transcript.refusal is None, transcript.refusal
    return list(transcript.runs)


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def said(run: Run, code: str) -> str:
    return next(n.message for n in run.notices if n.code == code)


def test_reads_a_listing_below_its_command_without_a_prompt():
    (run,) = read("squeue -j 77 -o '%.18i %.10T %.20V'\n             JOBID      STATE          SUBMIT_TIME\n"
                  "                77    PENDING  2026-05-01T10:00:00\n")  # fmt: skip
    assert values(run, "job_state", job="77") == ["PENDING"]
    (run,) = read("scontrol show node gx1\nNodeName=gx1 CPUAlloc=0 CPUTot=8\n   RealMemory=9 State=IDLE\n")
    assert values(run, "node_state", node="gx1") == ["IDLE"]
    assert not run.rejected


def test_reads_a_listing_behind_a_root_prompt_and_a_conda_environment():
    table = (
        "JobID           JobName      State\n------------ ---------- ----------\n7                 train  COMPLETED\n"
    )
    for prompt in ("~# ", "(base) me@login1:~$ "):
        (run,) = read(f"{prompt}sacct --format=JobID,JobName,State\n{table}")
        assert values(run, "job_name", job="7") == ["train"]


def test_takes_all_words_of_a_reason_where_the_header_is_missing():
    (run,) = read("$ sinfo -R\nBad cable on port 3 root 2026-02-01T08:00:00 gx[7-8]\n")
    assert values(run, "reason", node="gx8") == ["Bad cable on port 3"]
    assert said(run, "nodes-out") == "gx[7-8] (2 nodes): Bad cable on port 3"


def test_reads_the_default_columns_of_squeue_without_a_header():
    (run,) = read(
        "  88 gpu     my run  ann PD       0:00      1 (Nodes required for job are DOWN, DRAINED or reserved)\n"
    )
    assert values(run, "job_state", job="88") == ["PENDING"]
    assert values(run, "job_name", job="88") == ["my run"]
    assert values(run, "pending_reason") == ["Nodes required for job are DOWN, DRAINED or reserved"]
    assert "header" in run.missing


def test_counts_of_nodes_by_partition_are_whole():
    (run,) = read('$ sinfo -o "%P %a %F"\nPARTITION AVAIL NODES(A/I/O/T)\ngpu* up 3/1/2/6\n')
    assert run.complete
    assert values(run, "partition_nodes", partition="gpu", state="other") == [2.0]


def test_reads_the_states_of_versions_before_21_08():
    (run,) = read(
        "NodeName=gx2 CPUTot=8 RealMemory=9 State=DOWN*+DRAIN\n   Reason=Not responding [root@2020-06-29T08:00:07]\n"
    )
    assert values(run, "node_state", node="gx2") == ["DOWN"]
    assert values(run, "node_flags", node="gx2") == ["DRAIN+NOT_RESPONDING"]
    assert said(run, "nodes-out") == "gx2 (1 nodes): Not responding"


def test_reads_the_gpus_of_a_partition_with_remote_licences():
    (run,) = read("PartitionName=p State=UP TotalNodes=2 TRES=cpu=8,gres/gpu=6,license/solver@site=3\n")
    assert values(run, "gpus_configured", partition="p") == [6.0]


def test_a_list_of_resources_that_cannot_be_read_is_not_left_out():
    (run,) = read("PartitionName=p State=UP TotalNodes=2 TRES=cpu=8,gres/gpu=\n")
    assert isinstance(values(run, "gpus_configured", partition="p")[0], NoValue)


def test_says_when_types_do_not_add_up_to_all_gpus():
    (run,) = read("NodeName=gx3 CPUTot=8 RealMemory=9 State=IDLE\n   CfgTRES=cpu=8,gres/gpu=9,gres/gpu:h200=2\n")
    assert "the other 7" in said(run, "gpu-types-unknown")


def test_says_when_a_row_names_other_than_its_number_of_nodes():
    (run,) = read("PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\ngpu up 1:00:00 5 idle gx[1-3]\n")
    assert "stands for 5 nodes and names 3" in said(run, "node-count-conflict")


def test_says_how_jobs_ended():
    (run,) = read("JobID|State|Elapsed\n5|NODE_FAIL|00:01:00\n6|TIMEOUT|01:00:00\n7|COMPLETED|01:00:00\n")
    assert "(5)" in said(run, "ended-node-fail")
    assert next(n.weight for n in run.notices if n.code == "ended-node-fail") is Weight.ERROR
    assert "(6)" in said(run, "ended-timeout")


def test_says_which_node_events_last():
    (run,) = read("Cluster|Duration|TimeStart|TimeEnd|Event|NodeName|State|User|Reason|\n"
                  "c||2026-01-01T00:00:00|Unknown|Node|gx4|DRAIN|root|ECC errors|\n"
                  "c||2026-01-01T00:00:00|2026-01-02T00:00:00|Node|gx5|DRAIN|root|reboot|\n")  # fmt: skip
    assert said(run, "event-not-ended").startswith("gx4 (1 nodes): DRAIN, ECC errors")


def test_reads_a_daemon_in_the_foreground_that_finds_no_gpus():
    (run,) = read("slurmd: GRES: Using node-local AutoDetect=nvml\n"
                  "slurmd: We were configured with nvml functionality, but that lib wasn't found on the system.\n"
                  "slurmd: 0 GPU system device(s) detected\n")  # fmt: skip
    assert {"gpu-plugin-missing", "no-gpus-detected"} <= {n.code for n in run.notices}


def test_says_that_a_failed_node_took_a_job_along():
    (run,) = read("[2026-01-01T00:00:00.000] Killing JobId=31 on failed node gx6\n", "slurm-log")
    assert "gx6" in said(run, "job-killed")


def test_reads_the_queue_below_the_title_of_watch():
    (run,) = read("Every 2.0s: squeue -u ann                    login1: Tue Jan  6 10:00:00 2026\n\n"
                  "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
                  "    901       gpu    train      ann PD       0:00      8 (QOSMaxGRESPerUser)\n")  # fmt: skip
    assert values(run, "pending_reason", job="901") == ["QOSMaxGRESPerUser"]
    assert not run.rejected
