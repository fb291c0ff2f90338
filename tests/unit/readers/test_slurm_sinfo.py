"""sinfo: every node once, whatever the format."""

from pathlib import Path

import pytest

from clusterwright.lib.hostlists import HostlistError
from clusterwright.model.observations import Lack, NoValue, Outcome, Run
from clusterwright.readers.reading import rank_kinds, read_output
from clusterwright.readers.slurm.hosts import Hosts

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "slurm-sinfo"


def read(text: str) -> Run:
    transcript = read_output([text.encode()], kind="slurm-sinfo")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def fixture(name: str) -> Run:
    return read((FIXTURES / name).read_text())


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
def test_recognises_and_reads_every_fixture_whole(path):
    transcript = read_output([path.read_bytes()], name="anything.txt")
    assert transcript.kind == "slurm-sinfo"
    assert transcript.outcome is Outcome.READ


def test_default_listing_gives_each_node_its_state_once():
    run = fixture("default-22.05.txt")
    assert run.condition("nodes_listed") == 5.0
    assert values(run, "node_state", node="gpu-003") == ["DRAINING"]
    assert values(run, "takes_jobs", node="gpu-004") == [False]
    assert values(run, "partitions", node="gpu-001") == ["batch-long-name,all"]
    assert values(run, "time_limit", partition="all") == ["unlimited"]
    assert "node-listed-several-times" in codes(run)


def test_long_listing_keeps_reasons_with_blanks():
    run = fixture("long-nodes-22.05.txt")
    assert run.condition("printed") == "Mon Nov 30 15:51:09 2026"
    assert values(run, "reason", node="gpu-003") == ["bad fan, see ticket"]
    assert str(values(run, "memory_configured", node="gpu-003")[0]) == "1000 MiB"
    assert values(run, "reason", node="gpu-001") == []


def test_reasons_have_user_and_time():
    run = fixture("reasons-22.05.txt")
    assert values(run, "reason_user", node="gpu-003") == ["root"]
    assert values(run, "reason_since", node="gpu-003") == ["2026-11-30T15:51:01"]


def test_a_reason_as_wide_as_its_column_may_be_cut():
    run = read(
        "REASON               USER      TIMESTAMP           NODELIST\n"
        "gres/gpu count repor root      2025-01-01T00:00:00 gpu-9\n"
    )
    assert "cells-may-be-cut" in codes(run)


def test_gpus_are_counted_once_per_node_and_slices_apart():
    run = fixture("used-21.08.txt")
    assert run.condition("gpus_configured") == 23.0
    assert run.condition("gpus_allocated") == 7.0
    assert run.condition("gpus_on_nodes_taking_jobs") == 15.0
    assert run.condition("mig_slices_configured") == 7.0
    assert values(run, "gpu_indices", node="gpu-01") == ["0-5"]
    assert {"mig-slices", "not-responding", "nodes-take-no-jobs"} <= codes(run)


def test_a_node_without_resources_has_no_zero():
    run = read("NODELIST|GRES|STATE\ncpu-1|(null)|idle\n")
    assert values(run, "gpus_configured") == []
    assert run.condition("gpus_configured") is None


def test_a_cut_resource_gives_no_sum():
    run = read("NODELIST|GRES|STATE\ngpu-1|gpu:h100:8|idle\ngpu-2|gpu:h1|idle\n")
    (cut,) = values(run, "gpus_configured", node="gpu-2")
    assert isinstance(cut, NoValue)
    assert cut.lack is Lack.UNREADABLE
    assert run.condition("gpus_configured") is None
    assert "gres-unreadable" in codes(run)


def test_a_cut_state_is_unreadable():
    run = read("NODELIST|STATE\ngpu-1|alloca+\n")
    (state,) = values(run, "node_state")
    assert isinstance(state, NoValue)
    assert "node-state-unreadable" in codes(run)


def test_rows_that_do_not_fit_are_rejected_and_counted():
    run = read("NODELIST|GRES|STATE\ngpu-1|gpu:h100:8|idle\ngpu-2|gpu:h100:8|idle|more\ngpu-3|gpu:h1\n")
    assert run.condition("nodes_listed") == 1.0
    assert run.rejected == 2
    assert run.missing == ("end: the last row is cut",)


def test_columns_that_run_together_are_rejected():
    run = read("NODELIST  GRES    GRES_USED           STATE\ngpu-004   gpu:h100gpu:h100:0          idle\n")
    assert (run.rejected, run.observations) == (1, ())


def test_a_state_twice_in_the_header_is_read_once():
    run = read("STATE|NODELIST|STATE|REASON\ndrain*|n1|drained*|replace\n")
    assert values(run, "node_state") == ["DRAINED"]


def test_two_rows_about_a_node_that_disagree_are_named():
    run = read("NODELIST|STATE|PARTITION\nn1|idle|a\nn1|down|b\n")
    assert "node-differs" in codes(run)
    assert values(run, "node_state") == ["IDLE"]


def test_summary_gives_nodes_by_partition_and_state():
    run = fixture("summary-22.05.txt")
    assert values(run, "partition_nodes", partition="all", state="total") == [5.0]


def test_groups_of_nodes_without_names_are_added_up_and_slices_kept_apart():
    run = read("3 gpu:a100:4(S:0-1)\n1 gpu:a100_1g.5gb:14\n10 (null)\n")
    assert run.condition("gpus_configured") == 12.0
    assert run.condition("mig_slices_configured") == 14.0
    assert run.condition("nodes_listed") == 14.0
    assert "header" in run.missing


def test_groups_of_several_partitions_give_no_sum():
    run = read("PARTITION|NODES|GRES\na|2|gpu:4\nb|2|gpu:4\n")
    assert run.condition("gpus_configured") is None
    assert "nodes-not-named" in codes(run)
    assert "node names" in run.missing


def test_names_columns_without_a_header_only_where_nothing_else_fits():
    run = read("n1 100 200 4/0/0/4 allocated gpu gpu:x:2(S:0) gpu:x:2(IDX:0-1)\n"
               "n1 100 200 4/0/0/4 allocated gpu2 gpu:x:2(S:0) gpu:x:2(IDX:0-1)\n"
               "n2 0 200 0/0/4/4 drained* gpu gpu:x:2(S:0) gpu:x:0(IDX:N/A)\n")  # fmt: skip
    assert run.condition("gpus_configured") == 4.0
    assert run.condition("gpus_allocated") == 2.0
    assert values(run, "memory_configured") == []
    assert "no-header" in codes(run)


def test_names_and_states_with_commas_are_recognised():
    transcript = read_output([b"node01,idle\nnode02,down*\nnode02,down*\nnode03,mix~\n"])
    assert transcript.kind == "slurm-sinfo"
    assert transcript.runs[0].condition("nodes_listed") == 3.0


def test_an_empty_partition_is_no_damage():
    run = read(
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "gpu*         up 7-00:00:00      2   idle gpu[01-02]\n"
        "debug        up    1:00:00      0    n/a \n"
    )
    assert (run.rejected, run.condition("nodes_listed")) == (0, 2.0)


def test_a_listing_without_rows_is_refused():
    transcript = read_output([b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"])
    assert transcript.outcome is Outcome.REFUSED


def test_other_tables_are_not_claimed():
    for text in ("name,count\nfoo,3\nbar,4\n", "# size count\n8 2\n", "a b c\nidle mixed down\n"):
        assert not [kind for _, kind in rank_kinds(text) if kind.startswith("slurm")], text
    assert not [kind for _, kind in rank_kinds("1 2 3\n4 5 6\n") if kind.startswith("slurm")]


def test_host_lists_are_expanded_within_a_bound():
    hosts = Hosts(most=15)
    assert len(hosts.expand("n[1-10]") + hosts.expand("n[1-10]")) == 20
    with pytest.raises(HostlistError, match="more than 15 names"):
        hosts.expand("n1")


def test_a_host_list_that_cannot_be_read_is_a_rejected_row():
    run = read("NODELIST|STATE\nn[1-|idle\nn[1-999999999]|idle\nn1|idle\n")
    assert (run.rejected, run.condition("nodes_listed")) == (2, 1.0)
