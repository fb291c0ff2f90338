"""Logs, sessions, shares and counters of Slurm."""

from pathlib import Path

import pytest

from clusterwright.model.observations import NoValue, Outcome, Run
from clusterwright.readers.reading import rank_kinds, read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"


def read_all(text: str, kind: str = "slurm-log") -> tuple[Run, ...]:
    transcript = read_output([text.encode()], kind=kind)
    assert transcript.refusal is None, transcript.refusal
    return transcript.runs


def log(text: str) -> Run:
    return read_all(text)[0]


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


@pytest.mark.parametrize("kind", ["slurm-log", "slurm-session", "slurm-listing", "slurm-sdiag"])
def test_recognises_every_fixture(kind):
    for path in (FIXTURES / kind).iterdir():
        assert read_output([path.read_bytes()]).kind == kind, path.name


def test_a_first_start_is_no_loss():
    run = log((FIXTURES / "slurm-log" / "slurmctld-22.05.log").read_text())
    assert run.version == "22.05.8"
    assert "job-state-missing" in codes(run)
    assert "job-state-lost" not in codes(run)
    assert values(run, "gpus_reported", node="gpu-002") == [0.0]
    assert values(run, "gpus_configured", node="gpu-002") == [8.0]
    assert "fewer-gpus" in codes(run)


def test_state_that_is_gone_in_the_middle_is_a_loss():
    run = log((FIXTURES / "slurm-log" / "clocks.log").read_text())
    assert "job-state-lost" in codes(run)


def test_clock_skew_is_the_difference_of_the_two_stamps():
    run = log((FIXTURES / "slurm-log" / "clocks.log").read_text())
    assert values(run, "clock_skew")[0].value == 3610
    assert "behind" in next(n.message for n in run.notices if n.code == "clock-skew")
    ahead = log(
        "[2025-01-01T00:00:00.1] ENCODED: Wed Jan 01 01:00:00 2025\n"
        "[2025-01-01T00:00:00.1] DECODED: Wed Jan 01 00:00:00 2025\n"
    )
    assert values(ahead, "clock_skew")[0].value == -3600
    assert "ahead" in next(n.message for n in ahead.notices if n.code == "clock-skew")


def test_a_credential_that_is_a_little_late_is_no_skew():
    run = log(
        "[2025-01-01T00:00:00.1] ENCODED: Wed Jan 01 00:00:00 2025\n"
        "[2025-01-01T00:00:00.1] DECODED: Wed Jan 01 00:01:00 2025\n"
    )
    assert "clock-skew" not in codes(run)


def test_events_are_counted_per_node():
    run = log((FIXTURES / "slurm-log" / "clocks.log").read_text())
    assert values(run, "log_event", event="node-down", node="gpu-04") == [1.0]
    assert values(run, "memory_reported", node="gpu-05")[0].value == 1031000 * 2**20
    assert "memory-configured-too-high" in codes(run)


def test_months_in_another_language_keep_their_lines():
    run = log((FIXTURES / "slurm-log" / "syslog.log").read_text())
    assert run.rejected == 0
    assert run.condition("daemon") == "slurmctld"
    assert sorted(v.value for v in values(run, "clock_skew")) == [90, 91]


def test_other_text_is_rejected_and_counted():
    run = log("[2025-01-01T00:00:00.1] error: Node n1 unexpectedly rebooted\n  continued\n")
    assert run.rejected == 1
    assert "node-rebooted" in codes(run)


def test_logs_of_other_programs_are_not_claimed():
    text = "[2025-01-01T00:00:00.100] iteration 1 loss 2.0\n[2025-01-01T00:00:01.100] iteration 2 loss 1.9\n"
    assert not [kind for score, kind in rank_kinds(text) if kind == "slurm-log" and score >= 50]


def test_a_daemon_in_the_foreground_is_recognised():
    text = (
        "slurmd: error: Node configuration differs from hardware: CPUs=48:96(hw)\n"
        "slurmd: error: Waiting for gres.conf file /dev/nvidia0\n"
        "slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory\n"
    )
    transcript = read_output([text.encode()])
    assert transcript.kind == "slurm-log"
    assert {"hardware-differs", "device-missing"} <= codes(transcript.runs[0])
    assert transcript.runs[0].condition("daemon") == "slurmd"


def test_a_count_of_gpus_in_either_wording_names_the_node():
    run = log(
        "[2024-03-01T12:00:00.000] error: gres/gpu: count too low (0 < 8) on node gpu01\n"
        "[2024-03-01T12:00:01.000] error: Setting node gpu02 state to DRAIN with reason:gres/gpu count reported lower "
        "than configured (7 < 8)\n"
    )
    assert values(run, "gpus_reported", node="gpu01") == [0.0]
    assert values(run, "gpus_reported", node="gpu02") == [7.0]


def test_many_nodes_stay_within_a_bound():
    text = "".join(f"[2025-01-01T00:00:00.1] error: Node n{i} unexpectedly rebooted\n" for i in range(20_100))
    run = log(text)
    assert any("beyond the first" in part for part in run.missing)


def test_a_session_names_columns_by_its_commands():
    runs = read_all((FIXTURES / "slurm-session" / "commands.txt").read_text(), "slurm-session")
    assert [run.tool for run in runs] == ["squeue", "squeue", "sacct", "sinfo", "scontrol", "other"]
    (lack,) = values(runs[0], "gpus_per_node", job="55")
    assert isinstance(lack, NoValue)
    assert values(runs[1], "gpus_allocated", job="55") == [2.0]
    assert values(runs[2], "elapsed", job="55")[0].value == 3600
    assert runs[3].condition("gpus_configured") == 4.0
    assert values(runs[4], "tasks_answered", answer="No error") == [3.0]
    assert runs[5].rejected == 1


def test_a_session_shows_a_job_id_that_was_used_again():
    runs = read_all((FIXTURES / "slurm-session" / "commands.txt").read_text(), "slurm-session")
    assert "job-id-recycled" in codes(runs[-1])


def test_the_job_and_node_of_a_command_are_the_subject():
    runs = read_all("$ sacct -n -P -X -j 12 -o State\nCOMPLETED\n$ scontrol show node n1\n"
                    "GresUsed=gpu:h100:5(IDX:0-4)\n"
                    "CfgTRES=cpu=8\nAllocTRES=cpu=4\n", "slurm-session")  # fmt: skip
    assert values(runs[0], "job_state", job="12") == ["COMPLETED"]
    assert values(runs[1], "gpus_allocated", node="n1") == [5.0]
    assert "tres-without-gpu" in codes(runs[1])


def test_a_comment_that_names_a_command_is_no_prompt():
    assert not [kind for _, kind in rank_kinds("# sinfo shows\nClusterName=x\n") if kind == "slurm-session"]


def test_shares_and_priorities_keep_their_columns():
    (run,) = read_all((FIXTURES / "slurm-listing" / "sshare-22.05.txt").read_text(), "slurm-listing")
    assert values(run, "rawshares", account="team", user="root") == [1.0]
    assert all(isinstance(value, NoValue) for value in values(run, "tresrunmins"))
    (run,) = read_all((FIXTURES / "slurm-listing" / "sprio.txt").read_text(), "slurm-listing")
    assert values(run, "fairshare", job="1201") == [11000.0]


def test_counters_are_no_capacity():
    (run,) = read_all((FIXTURES / "slurm-sdiag" / "sdiag-22.05.txt").read_text(), "slurm-sdiag")
    assert [o.value for o in run.observations if ("name", "Jobs submitted") in o.subject] == [25.0]
    assert "statistics-only" in codes(run)


def test_a_session_without_output_is_refused():
    assert read_output([b"$ squeue\n"], kind="slurm-session").outcome is Outcome.REFUSED
