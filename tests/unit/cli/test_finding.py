"""`cw find-node`: the plan of pairs or halves, and which node their results make suspect."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from builders.outputs import collective, write_bandwidth
from clusterwright.cli.main import app
from clusterwright.judging.searching import pair_rounds
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.hostlists import expand

NODES = "gpu-[001-008]"
HOSTS = expand(NODES)


def run(*arguments):
    result = CliRunner().invoke(app, ["find-node", "--nodes", NODES, *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def values(*arguments):
    code, text = run(*arguments, "--format", "json")
    found = json.loads(text)
    assert found["exit_code"] == code
    return found


def rates(slow=(), paths=(), *, bad=21.3, good=390.0):
    """The bus bandwidth of a pair, in which every pair differs a little."""

    def rate(hosts):
        noise = sum(ord(c) * (i + 1) for i, c in enumerate("".join(hosts))) % 10 / 10
        return bad if set(hosts) & set(slow) or set(hosts) in map(set, paths) else good + noise

    return rate


def tournament(folder, rounds, rate, write=None):
    """The outputs of some rounds, each in a file that its hosts name."""
    for group in pair_rounds(HOSTS)[:rounds]:
        for pair in group:
            text = write(rate(pair)) if write else collective(pair, rate(pair))
            (folder / f"{'_'.join(pair)}.log").write_text(text)


def test_without_results_every_node_meets_every_other_in_seven_rounds():
    code, text = run()
    assert code == 3
    rounds = [re.findall(r"gpu-\d+", line) for line in text.splitlines() if line.startswith("  round")]
    assert len(rounds) == 7
    assert all(sorted(names) == sorted(HOSTS) for names in rounds)
    assert "then: cw find-node --nodes gpu-[001-008] DIRECTORY" in text
    found = values()
    assert len(found["rounds"]) == 7
    assert found["run_next"] == found["rounds"][0]


def test_halves_begin_with_all_nodes():
    code, text = run("--by", "halves")
    assert (code, "gpu-[001-008]" in text, "--bound" in text) == (3, True, True)
    assert values("--by", "halves")["run_next"] == [list(HOSTS)]


def test_a_node_that_is_slow_with_everybody_is_suspect_with_median_and_mad(tmp_path):
    tournament(tmp_path, 3, rates(["gpu-003"]))
    code, text = run(tmp_path)
    assert code == 1
    assert text.splitlines()[0] == "suspect: gpu-003"
    assert "gpu-003: 21.3 GB/s, the median over 3 partners" in text
    assert "busbw at 8 GiB" in text
    assert re.search(r"median of the good nodes 390\.\d GB/s, MAD 150 MB/s", " ".join(text.split()))
    found = values(tmp_path)
    assert found["suspects"] == ["gpu-003"]
    assert found["compared"][0]["cleared"] == [h for h in HOSTS if h != "gpu-003"]


def test_equal_nodes_make_nobody_suspect_and_the_paths_not_run_are_said(tmp_path):
    tournament(tmp_path, 3, rates())
    code, text = run(tmp_path)
    assert code == 0
    assert "no node of gpu-[001-008] is suspect" in text
    assert "12 of 28 pairs were run" in text


def test_after_one_round_it_asks_for_another_with_new_pairs(tmp_path):
    tournament(tmp_path, 1, rates(["gpu-003"]))
    found = values(tmp_path)
    assert (found["exit_code"], found["suspects"]) == (3, [])
    assert sorted(n for pair in found["run_next"] for n in pair) == sorted(HOSTS)
    tried = {frozenset(p) for p in pair_rounds(HOSTS)[0]}
    assert not tried & {frozenset(p) for p in found["run_next"]}


@pytest.mark.parametrize("bad", [["gpu-005"], ["gpu-001", "gpu-002"], []])
def test_following_what_it_says_ends_at_the_bad_nodes(tmp_path, bad):
    rate = rates(bad)
    code, pairs, rounds = 3, [list(p) for p in pair_rounds(HOSTS)[0]], 0
    while code == 3:
        rounds += 1
        assert rounds < 8
        for pair in pairs:
            (tmp_path / f"{'_'.join(pair)}.log").write_text(collective(pair, rate(pair)))
        found = values(tmp_path)
        code, pairs = found["exit_code"], found["run_next"]
    assert found["suspects"] == bad
    assert code == (1 if bad else 0)


def test_a_slow_path_between_good_nodes_is_no_fault_of_them(tmp_path):
    tournament(tmp_path, 7, rates(paths=[("gpu-002", "gpu-006")]))
    code, text = run(tmp_path)
    assert code == 1
    assert "slow path gpu-002,gpu-006: 21.3 GB/s" in text
    assert "suspect so far" in text


def test_outputs_that_print_no_hosts_are_known_by_their_paths(tmp_path):
    tournament(tmp_path, 3, rates(["gpu-008"], bad=190.0), write_bandwidth)
    found = values(tmp_path)
    assert found["suspects"] == ["gpu-008"]
    assert found["compared"][0]["metric"] == "gpudirect_rdma_write"


def test_outputs_of_nobody_knows_whom_are_not_used(tmp_path):
    (tmp_path / "one.log").write_text(write_bandwidth())
    code, text = run(tmp_path)
    assert code == 3
    assert "1 results name no hosts" in text


def test_results_of_other_nodes_are_not_used(tmp_path):
    (tmp_path / "one.log").write_text(collective(["gpu-001", "gpu-099"]))
    found = values(tmp_path)
    assert found["exit_code"] == 3
    assert found["not_used"]["other_hosts"] == ["gpu-099"]


def test_halves_follow_the_results_down_to_the_node(tmp_path):
    groups, code, steps = [list(HOSTS)], 3, 0
    while code == 3:
        steps += 1
        assert steps < 8
        for group in groups:
            rate = 21.0 if "gpu-006" in group else 390.0
            (tmp_path / f"step-{steps}-{group[0]}.log").write_text(collective(group, rate))
        found = values(tmp_path, "--by", "halves", "--bound", "300 GB/s")
        code, groups = found["exit_code"], found["run_next"]
    assert (code, found["suspects"]) == (1, ["gpu-006"])
    assert "not busbw at least 300 GB/s" in run(tmp_path, "--by", "halves", "--bound", "300 GB/s")[1]


def test_halves_that_all_pass_need_one_step(tmp_path):
    (tmp_path / "all.log").write_text(collective(HOSTS))
    assert run(tmp_path, "--by", "halves", "--bound", "300 GB/s")[0] == 0


def test_halves_are_not_compared_with_each_other(tmp_path):
    (tmp_path / "all.log").write_text(collective(HOSTS))
    with pytest.raises(InvalidInput, match="--bound"):
        run(tmp_path, "--by", "halves")


def test_one_failing_run_of_a_pair_counts_though_another_passes(tmp_path):
    tournament(tmp_path, 1, rates())
    (tmp_path / "gpu-001_gpu-008-again.log").write_text(collective(["gpu-001", "gpu-008"], 20.0))
    found = values(tmp_path, "--bound", "300 GB/s")
    assert found["tried"][0]["failed"] == [["gpu-001", "gpu-008"]]
    assert found["exit_code"] == 3
    assert {n for pair in found["run_next"] for n in pair} >= {"gpu-001", "gpu-008"}


def test_wrong_results_are_followed_to_the_node_that_has_them(tmp_path):
    for group in pair_rounds(HOSTS)[:2]:
        for pair in group:
            wrong = "7" if "gpu-004" in pair else "0"
            (tmp_path / f"{'_'.join(pair)}.log").write_text(collective(pair, wrong=wrong))
    code, text = run(tmp_path)
    assert code == 1
    assert text.splitlines()[0] == "suspect: gpu-004"
    assert "not right results in 2 runs" in text


def test_a_run_without_a_value_is_named_and_is_no_result(tmp_path):
    tournament(tmp_path, 3, rates())
    name = "_".join(pair_rounds(HOSTS)[0][0])
    text = (tmp_path / f"{name}.log").read_text()
    (tmp_path / f"{name}.log").write_text(text[: text.index("  1073741824")])
    code, text = run(tmp_path)
    assert code == 3
    assert "no value from gpu-[001,008]" in text
    assert "not known yet: gpu-[001,008]" in text


def test_a_node_that_differs_in_a_test_of_its_own_is_suspect(tmp_path):
    for host in HOSTS:
        (tmp_path / f"{host}.log").write_text(collective([host], 310.0 if host == "gpu-007" else 479.0))
    code, text = run(tmp_path)
    assert code == 1
    assert "suspect: gpu-007" in text
    assert "gpu-007 alone: busbw 310 GB/s; 7 peers 479 GB/s" in text


def test_kept_evidence_gives_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    tournament(tmp_path / "out", 3, rates(["gpu-003"]))
    assert CliRunner().invoke(app, ["evidence", "add", "out"]).exit_code == 0
    assert values("--evidence", "evidence")["suspects"] == ["gpu-003"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bound", "fast"], "--bound 'fast'"),
        (["--metric", "busbandwidth"], "no metric 'busbandwidth'"),
        (["--nodes", "gpu-001"], "at least two nodes"),
        (["--nodes", "gpu-[1"], "--nodes"),
    ],
)
def test_wrong_options_are_named(arguments, said):
    with pytest.raises(InvalidInput, match=re.escape(said)):
        run(*arguments)
