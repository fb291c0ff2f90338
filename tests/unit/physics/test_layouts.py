"""Parallel sizes of a replica or job."""

import pytest

from clusterwright.physics.layouts import Layout


def test_only_tp_pp_cp_and_dp_multiply_gpus() -> None:
    assert Layout(tp=4, pp=2, cp=2, dp=3, ep=8, vp=5, dcp=2, attention_dp=4, etp=2).gpus == 48


def test_attention_ranks_are_what_its_data_parallel_groups_leave() -> None:
    assert Layout(tp=8, attention_dp=4).attention_tp == 2


def test_reads_as_its_sizes_above_one() -> None:
    assert str(Layout(tp=8, pp=2, ep=8)) == "TP8 PP2 EP8"
    assert str(Layout()) == "one GPU"


@pytest.mark.parametrize("sizes", [{"tp": 0}, {"tp": 8, "attention_dp": 3}, {"tp": 8, "dcp": 3}])
def test_refuses_sizes_that_cannot_be(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|does not divide"):
        Layout(**sizes)
