"""The probes as real processes, without an engine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clusterwright.engines.local.fences import NAME
from clusterwright.probes.checkpoints import EPOCH_FILE, Checkpoint, read_latest, write_checkpoint
from clusterwright.probes.trainer import DIMENSIONS, FENCED, ONE, apply, final_weights, gradient

pytestmark = pytest.mark.local


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(program: str, ranks: int, *arguments: str, run: str = "job.1", **more: str) -> list[subprocess.Popen[str]]:
    port = str(free_port())
    common = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": run}
    return [
        subprocess.Popen(
            [sys.executable, "-P", "-m", f"clusterwright.probes.{program}", *arguments],
            env=os.environ | common | {"RANK": str(rank)} | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[int, list[dict[str, Any]]]]:
    ended = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert not err, err
        ended.append((process.returncode, [json.loads(line) for line in out.splitlines()]))
    return ended


def test_ranks_report_whom_they_met(tmp_path: Path) -> None:
    (tmp_path / "STORE").write_text("object")
    ended = finish(
        start(
            "reporter", 3, "--stores", json.dumps({"object": {"*": str(tmp_path)}, "nvme": {"n1": f"{tmp_path}/none"}}),
            CLUSTERWRIGHT_NODE="n1", CUDA_VISIBLE_DEVICES="VIRTUAL-0,VIRTUAL-1", CLUSTERWRIGHT_VIRTUAL="1",
        )
    )  # fmt: skip
    for code, (seen,) in ended:
        assert code == 0
        assert [m["rank"] for m in seen["members"]] == [0, 1, 2]
        assert seen["devices"] == ["VIRTUAL-0", "VIRTUAL-1"]
        assert seen["stores"]["object"]["label"] == "object"
        assert seen["stores"]["object"]["missing"] == []
        assert not seen["stores"]["nvme"]["visible"]
        assert seen["stores"]["nvme"]["path"].endswith("none")
        assert seen["image"] is None
    pids = {m["pid"] for m in ended[0][1][0]["members"]}
    assert len(pids) == 3, "the members are processes, not numbers from the environment"


def test_a_rank_that_never_comes_is_named() -> None:
    first, second, third = start("reporter", 3, "--wait", "1")
    third.kill()
    third.communicate()
    for code, (seen,) in finish([first, second]):
        assert code == 1
        assert seen["members"] == []
        assert seen["meeting"]


def test_a_rank_of_another_attempt_is_not_a_member() -> None:
    port = str(free_port())
    ours = start("reporter", 2, "--wait", "2", run="job.2", MASTER_PORT=port)
    ours[1].kill()
    ours[1].communicate()
    stale = start("reporter", 2, "--wait", "2", run="job.1", MASTER_PORT=port)
    stale[0].kill()
    stale[0].communicate()
    for code, (seen,) in finish([ours[0], stale[1]]):
        assert code == 1
        assert seen["meeting"]


def final(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "final.json").read_text())
    return found


@pytest.mark.parametrize("ranks", [1, 3])
def test_any_number_of_ranks_ends_in_the_same_state(tmp_path: Path, ranks: int) -> None:
    where = {"CLUSTERWRIGHT_CHECKPOINT_DIR": str(tmp_path), "CLUSTERWRIGHT_EPOCH": "1"}
    ended = finish(start("trainer", ranks, "--steps", "12", "--every", "5", **where))
    assert [code for code, _ in ended] == [0] * ranks
    assert tuple(final(tmp_path)["weights"]) == final_weights(12)
    assert sorted(p.name for p in tmp_path.glob("step-*")) == [f"step-{n:08d}.json" for n in (5, 10, 12)]


def test_a_killed_run_goes_on_from_its_checkpoint_to_the_same_state(tmp_path: Path) -> None:
    where = {"CLUSTERWRIGHT_CHECKPOINT_DIR": str(tmp_path)}
    arguments = ("--steps", "60", "--every", "5", "--pace", "0.02")
    first = start("trainer", 2, *arguments, run="job.1", CLUSTERWRIGHT_EPOCH="1", **where)
    deadline = time.monotonic() + 30
    while read_latest(tmp_path) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    first[1].kill()
    (code, events), _ = finish(first[:1])[0], first[1].communicate()
    assert code == 1, "the other rank notices"
    assert events[-1]["event"] == "lost"
    reached = read_latest(tmp_path)
    assert reached is not None
    assert reached.step < 60
    second = finish(start("trainer", 3, *arguments, run="job.2", CLUSTERWRIGHT_EPOCH="2", **where))
    assert [code for code, _ in second] == [0, 0, 0]
    assert second[0][1][0]["step"] == reached.step
    assert second[0][1][0]["written_by"] == 1
    assert tuple(final(tmp_path)["weights"]) == final_weights(60)


@pytest.mark.parametrize("line", ["2 open", "1 closed", "garbage"])
def test_an_attempt_that_is_over_writes_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / EPOCH_FILE).write_text(line)
    where = {"CLUSTERWRIGHT_CHECKPOINT_DIR": str(tmp_path), "CLUSTERWRIGHT_EPOCH": "1"}
    ((code, events),) = finish(start("trainer", 1, "--steps", "3", "--every", "1", **where))
    assert code == FENCED
    assert events[-1]["event"] == "fenced"
    assert [p.name for p in tmp_path.iterdir()] == [EPOCH_FILE]


def test_a_run_that_is_overtaken_stops_writing(tmp_path: Path) -> None:
    (tmp_path / EPOCH_FILE).write_text("1 open")
    where = {"CLUSTERWRIGHT_CHECKPOINT_DIR": str(tmp_path), "CLUSTERWRIGHT_EPOCH": "1"}
    running = start("trainer", 2, "--steps", "10000", "--every", "1", "--pace", "0.01", **where)
    deadline = time.monotonic() + 30
    while read_latest(tmp_path) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    (tmp_path / EPOCH_FILE).write_text("2 open")
    codes = [code for code, _ in finish(running)]
    assert FENCED in codes
    assert set(codes) <= {FENCED, 1}
    assert not (tmp_path / "final.json").exists()


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    weights = (ONE,) * DIMENSIONS
    write_checkpoint(tmp_path, Checkpoint(5, 1, weights), keep=3)
    newer = write_checkpoint(tmp_path, Checkpoint(10, 1, weights), keep=3)
    newer.write_text(newer.read_text().replace("4294967296", "4294967297", 1))
    found = read_latest(tmp_path)
    assert found is not None
    assert found.step == 5


def test_the_problem_is_really_learned() -> None:
    assert [round(w / ONE, 1) for w in final_weights(100)] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_parts_of_the_gradient_sum_to_the_whole() -> None:
    weights = final_weights(3)
    parts = [gradient(weights, range(rank, 256, 7)) for rank in range(7)]
    assert [sum(c) for c in zip(*parts, strict=True)] == gradient(weights, range(256))
    assert apply(weights, gradient(weights, range(256))) == final_weights(4)


def test_the_epoch_file_is_the_one_the_engine_writes() -> None:
    assert EPOCH_FILE == NAME


def test_a_holder_says_where_it_is_and_waits_until_it_is_ended() -> None:
    (holder,) = start("holder", 1, CLUSTERWRIGHT_NODE="n1", CUDA_VISIBLE_DEVICES="VIRTUAL-0,VIRTUAL-1")
    assert holder.stdout is not None
    seen = json.loads(holder.stdout.readline())
    assert (seen["event"], seen["node"], seen["devices"]) == ("hold", "n1", ["VIRTUAL-0", "VIRTUAL-1"])
    assert holder.poll() is None
    holder.terminate()
    out, err = holder.communicate(timeout=20)
    assert (out, err, holder.returncode) == ("", "", -signal.SIGTERM)
