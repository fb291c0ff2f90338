"""`cw simulate` and `cw what-if` on a small own example: text, JSON, exit codes, seeds, processes, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

FIXTURES = Path(__file__).parents[2] / "fixtures" / "simulation"
CLUSTER, SACCT = str(FIXTURES / "cluster.yaml"), str(FIXTURES / "sacct.txt")
EXAMPLE = str(Path(__file__).parents[3] / "examples" / "training-1024" / "cluster.yaml")
QUICK = ("--seeds", "2", "--jobs", "1", "--days", "1")
REPLAY = (CLUSTER, "--trace", SACCT, *QUICK)


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@cache
def replayed() -> dict:
    """The values of the replay, for tests that only read them."""
    return values("simulate", *REPLAY)


def values(*arguments: object) -> dict:
    code, text, _ = run(*arguments, "--format", "json")
    assert code in (0, 3)
    return json.loads(text)


def test_a_replay_says_first_whether_it_can_be_relied_on_and_fits_100_columns():
    code, text, _ = run("simulate", *REPLAY)
    assert code == 0
    assert text.index("CALIBRATED") < text.index("queue time") < text.index("GPU-hours") < text.index("what carries")
    assert "every figure below is simulated, none is measured" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_ledger_sums_to_the_installed_gpus_exactly():
    found = replayed()
    assert found["ledger"]["installed_gpu_ms"] == found["ledger"]["sum_of_lines_gpu_ms"] == 2 * 64 * 86_400_000
    for future in found["futures"]:
        assert sum(future["lines_gpu_ms"].values()) == 64 * 86_400_000


def test_the_fields_of_the_json_are_these():
    found = replayed()
    assert list(found) == [
        "schema", "origin", "cluster", "label", "source", "replayed", "partial", "days", "warm_up_s", "seed", "seeds",
        "pools",
        "gpus", "jobs", "left_out", "never_fit", "remarks", "calibration", "reliable", "groups", "ledger",
        "allocated_share", "useful_share", "useful_of_allocated", "ettr", "ettr_saved", "fairness", "slowdown_spread",
        "cost",
        "failures", "preemptions", "restarted_jobs", "futures", "rests_on", "limits",
    ]  # fmt: skip
    assert found["origin"] == "simulated"
    group = found["groups"][0]
    assert list(group["wait_s"]) == list(group["slowdown"]) == ["median", "p90", "p95", "p99", "max"]
    assert {g["by"] for g in found["groups"]} == {"all", "size", "queue"}
    assert {f["origin"] for f in found["rests_on"]} <= {"assumed", "catalogue", "declared"}


def test_the_same_seeds_give_the_same_bytes_in_one_process_and_in_two(tmp_path):
    drawn = ("simulate", CLUSTER, "--trace", SACCT, "--draw", "--days", "2", "--seeds", "3", "--format", "json")
    one = run(*drawn, "--jobs", "1", "--events", tmp_path / "one")
    two = run(*drawn, "--jobs", "2", "--events", tmp_path / "two")
    assert one[:2] == two[:2]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert b"\tstarted\tjob " in (tmp_path / "one").read_bytes()
    assert run(*drawn, "--jobs", "1", "--seed", "9")[1] != one[1]


def test_waits_that_the_replay_does_not_reproduce_are_not_to_be_relied_on(tmp_path):
    """Starts in the trace are moved by 9 h: no queue of this cluster makes a job of one GPU wait so long."""
    shifted = tmp_path / "late.txt"
    lines = Path(SACCT).read_text().splitlines()
    rows = [line.split("|") for line in lines[1:]]
    for cells in rows:
        cells[8], cells[9] = (_later(cells[n], 9) for n in (8, 9))
    shifted.write_text("\n".join([lines[0], *("|".join(cells) for cells in rows), ""]))
    code, text, _ = run("simulate", CLUSTER, "--trace", shifted, *QUICK)
    assert code == 3
    assert "NOT TO BE RELIED ON" in text
    assert "  outside" in text
    code, text, _ = run("what-if", CLUSTER, "--trace", shifted, *QUICK, "--set", "pools.gpu.spares=1")
    assert (code, "NOT TO BE RELIED ON" in text) == (3, True)
    assert run("simulate", CLUSTER, "--trace", shifted, *QUICK, "--tolerance", "1")[0] == 0


def _later(stamp: str, hours: int) -> str:
    from datetime import datetime, timedelta

    return (datetime.fromisoformat(stamp) + timedelta(hours=hours)).isoformat()


def test_a_dump_of_sacct_is_enough():
    code, text, _ = run("simulate", "--nodes", "8x8", "--trace", SACCT, "--failures", "none", *QUICK)
    assert code in (0, 3)
    assert text.startswith("8 nodes with 8 GPUs: 1 days")
    assert "replayed against real waits" in text
    assert "cost        not known" in text


def test_a_trace_without_starts_cannot_be_held_to_real_waits(tmp_path):
    rows = "".join(f"2026-05-0{1 + n % 3}T08:{n % 60:02}:00Z,{600 + n},{1 + n % 8}\n" for n in range(60))
    (tmp_path / "jobs.csv").write_text("at,seconds,gpus\n" + rows)
    mapped = ("--trace", tmp_path / "jobs.csv", "--map", "submit=at,run=seconds,gpus=gpus")
    code, text, _ = run("simulate", "--nodes", "2x8", *mapped, "--seeds", "1")
    assert code == 0
    assert "no job has a recorded start" in text
    assert "replayed against real waits" not in text


def test_declared_workloads_are_simulated_without_a_trace():
    found = values("simulate", EXAMPLE, "--seeds", "2", "--jobs", "1", "--days", "20", "--seed", "3")
    assert (found["jobs"], found["gpus"], found["replayed"]) == (1, 1056, False)
    assert sum(found["failures"].values()) > 1
    assert found["groups"][0]["succeeded"] == 1


def test_jobs_that_never_fit_are_counted_and_named():
    code, text, _ = run(
        "simulate", CLUSTER, "--trace", SACCT, "--seeds", "1", "--days", "4", "--set", "pools.gpu.nodes=1"
    )
    assert code == 3
    assert "NEVER FITS" in text
    assert "no pool has room for it; the largest has 8 GPUs" in " ".join(text.split())


def test_a_what_if_pairs_its_futures_by_seed():
    found = values("what-if", *REPLAY, "--set", "pools.gpu.nodes=4", "--set", "scheduling.backfill=none")
    assert found["as_it_is"]["gpus"] == 64
    assert found["changed"]["gpus"] == 32
    cost = found["differences"]["cost of installed GPUs"]
    assert cost["difference"]["value"] == pytest.approx(-32 * 24 * 2.4)
    assert cost["clear"]
    same = values("what-if", *REPLAY, "--set", "pools.gpu.nodes=8")
    assert all(d["difference"]["value"] == 0 for d in same["differences"].values())


def test_shares_differ_by_points_and_a_difference_without_spread_is_clear():
    _, text, _ = run("what-if", *REPLAY, "--failures", "none", "--set", "pools.gpu.nodes=4")
    (allocated,) = [line for line in text.splitlines() if line.startswith("allocated share")]
    assert " points ± 0.0 points" in allocated
    assert "not clear" not in allocated


def test_rejected_rows_of_a_trace_are_counted(tmp_path):
    broken = Path(SACCT).read_text() + Path(SACCT).read_text().splitlines()[1].replace("1001|", "x?|", 1) + "\n"
    (tmp_path / "broken.txt").write_text(
        broken.replace("|2026-05-04T00:41:35|2026-05-04T00:41:35|", "|never|never|", 1)
    )
    _, text, _ = run("simulate", CLUSTER, "--trace", tmp_path / "broken.txt", *QUICK)
    assert "rows of the trace: rejected as no job" in text


def test_more_nodes_than_the_queues_may_use_are_said():
    _, text, _ = run("what-if", *REPLAY, "--set", "pools.gpu.nodes=12")
    assert "the queues may use 64 of the 96 GPUs of pool gpu at most" in " ".join(text.split())


def test_a_sweep_has_a_row_for_each_value():
    code, text, _ = run("simulate", *REPLAY, "--sweep", "pools.gpu.nodes=8..12/2")
    assert code == 0
    table = text.partition("p95 wait")[2].partition("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in table] == ["8", "10", "12"]
    found = values("simulate", *REPLAY, "--sweep", "scheduling.backfill=none,easy")
    assert [v["value"] for v in found["values"]] == ["none", "easy"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (("longest-wait", "--limit", "1000 h"), "with 4 nodes or more 95 % of the jobs start within"),
        (("node-loss",), "g-01 fails at half time:"),
        (("lead-time", "--add", "4", "--limit", "1000 h"), "they may arrive after never at the latest"),
        (("useful",), "of the installed GPU time is allocated"),
    ],
)
def test_sizing_questions_are_answered_with_their_numbers(question, said):
    _, text, _ = run("simulate", *REPLAY, "--ask", *question)
    assert said in " ".join(text.split())
    assert "basis: " in text


def test_a_node_that_fails_is_the_only_difference():
    found = values("simulate", *REPLAY, "--ask", "node-loss")
    without, failing = found["futures"]
    assert (without["failures"], failing["failures"]) == ({}, {"given failure": 1.0})
    assert failing["ledger"]["gpu_hours"]["unhealthy"]["value"] > 0


def test_a_page_is_written_and_never_over_another(tmp_path):
    page = tmp_path / "page.html"
    assert run("simulate", *REPLAY, "--format", "html", "--output", page)[0] == 0
    assert "Nodes over time" in page.read_text()
    with pytest.raises(InvalidInput, match="exists"):
        run("simulate", *REPLAY, "--format", "html", "--output", page)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name an architecture file"),
        ((CLUSTER, "--nodes", "2x8"), "in place of"),
        (("--nodes", "8", "--trace", SACCT), "nodes x GPUs"),
        (("--nodes", "8x8"), "has no workloads"),
        ((CLUSTER,), "no workload is declared"),
        ((*REPLAY[:3], "--days", "0"), "--days is 0"),
        ((*REPLAY[:3], "--days", "400"), "the trace holds 10"),
        ((*REPLAY[:3], "--seeds", "0"), "--seeds is 0"),
        ((*REPLAY[:3], "--seed", "-1"), "--seed is -1"),
        ((*REPLAY[:3], "--jobs", "0"), "--jobs is 0"),
        ((*REPLAY[:3], "--tolerance", "-0.5"), "--tolerance is -0.5"),
        ((*REPLAY[:3], "--failures", "rsc-3"), "rsc-"),
        ((*REPLAY[:3], "--checkpoint", "1 GB"), "--checkpoint"),
        ((*REPLAY[:3], "--queue", "x"), "no mapping"),
        ((*REPLAY[:3], "--queue", "research=reserch"), "did you mean 'research'"),
        ((*REPLAY[:3], "--set", "pools.gp.nodes=3"), "did you mean pools.gpu.nodes"),
        ((*REPLAY[:3], "--set", "pools.gpu.spare=3"), "did you mean 'spares'"),
        (
            (*REPLAY[:3], "--set", "scheduling.queues.reserch.weight=3"),
            "did you mean scheduling.queues.research.weight",
        ),
        ((*REPLAY[:3], "--set", "scheduling.queues.research.guarantee.gp=3"), "did you mean 'gpu'"),
        ((*REPLAY[:3], "--sweep", "pools.gpu.nodes"), "path=v1,v2"),
        ((*REPLAY[:3], "--sweep", "pools.gpu.nodes=9..3"), "goes up"),
        ((*REPLAY[:3], "--ask", "longest"), "did you mean 'longest-wait'"),
        ((*REPLAY[:3], "--ask", "longest-wait"), "needs --limit"),
        ((*REPLAY[:3], "--ask", "lead-time"), "needs --add"),
        ((*REPLAY[:3], "--ask", "other-gpu"), "the file has one"),
        ((*REPLAY[:3], "--ask", "node-loss", "--pool", "gp"), "did you mean 'gpu'"),
        ((CLUSTER, "--draw"), "give --trace"),
        ((CLUSTER, "--kind", "swf"), "give --trace"),
    ],
)
def test_wrong_input_is_named(arguments, said):
    with pytest.raises(InvalidInput) as found:
        run("simulate", *arguments)
    assert said in str(found.value)


def test_a_trace_without_gpus_names_the_line_to_add(tmp_path):
    rows = Path(SACCT).read_text().replace("gres/gpu=", "gres/fpga=")
    (tmp_path / "none.txt").write_text(rows)
    with pytest.raises(InvalidInput, match="AccountingStorageTRES=gres/gpu"):
        run("simulate", CLUSTER, "--trace", tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text(Path(SACCT).read_text().splitlines()[0] + "\n")
    with pytest.raises(InvalidInput, match="holds no job"):
        run("simulate", CLUSTER, "--trace", tmp_path / "empty.txt")


def test_queues_that_the_file_does_not_have_are_named_with_how_to_map_them(tmp_path):
    (tmp_path / "other.txt").write_text(Path(SACCT).read_text().replace("|product|", "|sales|"))
    with pytest.raises(InvalidInput, match=r"--queue '\*="):
        run("simulate", CLUSTER, "--trace", tmp_path / "other.txt")
    assert run("simulate", CLUSTER, "--trace", tmp_path / "other.txt", *QUICK, "--queue", "*=product")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_group_keeps_what_there_is_marked_partial_and_leaves_no_process(number):
    """A real process group in a terminal: the signal goes to all of it, as a shell sends it."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "clusterwright.cli.entry", "simulate", CLUSTER, "--trace", SACCT, "--draw"]
    process = subprocess.Popen(
        [*command, "--days", "3000", "--seeds", "3", "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=theirs, start_new_session=True, text=True,
    )  # fmt: skip
    os.close(theirs)
    seen = ""
    while "at day" not in seen:
        seen += os.read(ours, 4096).decode()
    os.killpg(process.pid, number)
    text, _ = process.communicate()
    try:
        while piece := os.read(ours, 4096):
            seen += piece.decode()
    except OSError:  # the last process has closed the terminal
        pass
    os.close(ours)
    assert process.returncode == 130
    assert "PARTIAL: stopped; 0 of 3 futures are whole, 2 cut off" in " ".join(text.split())
    assert f"stopped by {number.name}" in seen
    assert "Traceback" not in seen
    deadline_s = time.monotonic() + 20
    while (left := _group(process.pid)) and time.monotonic() < deadline_s:
        os.sched_yield()
    assert left == []


def _group(leader: int) -> list[int]:
    """Processes of a group that have not ended; one that ended and nobody asked about is none."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(group) == leader and state not in "ZX":
            found.append(int(stat.parent.name))
    return found
