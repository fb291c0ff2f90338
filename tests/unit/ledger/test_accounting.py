from __future__ import annotations

import pytest

from clusterwright.ledger.accounting import Ledger, Unbalanced
from clusterwright.ledger.attempts import Ending, charge_finished
from clusterwright.ledger.lines import Line

from .builders import US, attempt, ledger


def test_an_empty_cluster_is_free_without_demand() -> None:
    lines = ledger().close(3600.0)
    assert lines.by("line") == {("free without demand",): 16 * 3_600_000}
    assert lines.installed_gpu_ms == {"h100": 16 * 3_600_000}


def test_free_time_is_charged_to_what_blocks_the_head() -> None:
    made = ledger()
    made.free(10.0, "h100", 16, "QUOTA_WAIT")
    made.free(15.0, "h100", 16, "TOPOLOGY")
    made.free(18.0, "h100", 16)
    found = made.close(20.0).by("line", "why")
    assert found == {
        ("free without demand", ""): 12 * 16_000,
        ("free with demand", "QUOTA_WAIT"): 5 * 16_000,
        ("free with demand", "TOPOLOGY"): 3 * 16_000,
    }


def test_attempts_nodes_and_free_gpus_make_up_the_whole() -> None:
    made = ledger()
    made.admit(0.0, "h100", 8)
    made.free(0.0, "h100", 8)
    made.put_out(40.0, "h100", Line.UNHEALTHY, 8)
    made.free(40.0, "h100", 0)
    made.put_out(60.0, "h100", Line.UNHEALTHY, -8)
    made.free(60.0, "h100", 8)
    made.charge(US, attempt())
    made.free(100.0, "h100", 16)
    lines = made.close(200.0)
    assert lines.total_gpu_ms == 16 * 200_000
    assert lines.by("line") == {
        ("starting",): 80_000,
        ("productive",): 720_000,
        ("unhealthy",): 160_000,
        ("free without demand",): 8 * 80_000 + 16 * 100_000,
    }
    assert lines.by("queue", "team", "size")["training", "nlp", "8"] == 800_000
    assert lines.held_gpu_ms == 800_000


def test_what_is_installed_later_counts_from_then_on() -> None:
    made = ledger()
    made.install(50.0, "h100", 24)
    made.free(50.0, "h100", 24)
    made.install(50.0, "b200", 8)
    made.put_out(50.0, "b200", Line.DRAINED, 8)
    lines = made.close(100.0)
    assert lines.installed_gpu_ms == {"h100": 16 * 50_000 + 24 * 50_000, "b200": 8 * 50_000}
    assert lines.by("flavor", "line")["b200", "drained or maintenance"] == 8 * 50_000


def test_a_change_that_does_not_balance_is_named_when_time_goes_on() -> None:
    made = ledger()
    made.admit(5.0, "h100", 8)
    with pytest.raises(Unbalanced, match=r"h100: from 5\.0 s on 16 GPUs are installed, but 16 are free, 8 held and 0"):
        made.free(6.0, "h100", 8)


def test_changes_at_one_instant_may_come_in_any_order() -> None:
    made = ledger()
    made.free(5.0, "h100", 8)
    made.admit(5.0, "h100", 8)
    made.charge(US, attempt(admitted_s=5.0))
    made.free(100.0, "h100", 16)
    assert made.close(100.0).total_gpu_ms == 1_600_000


def test_an_attempt_charged_with_another_time_than_it_was_admitted_is_an_error_that_says_how_much() -> None:
    made = ledger()
    made.admit(5.0, "h100", 8)
    made.free(5.0, "h100", 8)
    made.charge(US, attempt(admitted_s=7.0))
    made.free(100.0, "h100", 16)
    with pytest.raises(Unbalanced, match=r"h100.*16000 missing"):
        made.close(100.0)


def test_an_attempt_that_was_not_charged_is_an_error() -> None:
    made = ledger()
    made.admit(5.0, "h100", 8)
    made.free(5.0, "h100", 8)
    with pytest.raises(Unbalanced, match="hold 8 GPUs"):
        made.close(100.0)


def test_a_fork_gives_partial_lines_and_leaves_the_ledger_as_it_was() -> None:
    made = ledger()
    made.admit(0.0, "h100", 8)
    made.free(0.0, "h100", 8, "ORDER")
    cut = made.fork()
    cut.charge(US, attempt(Ending.RUNNING, ended_s=60.0))
    cut.free(60.0, "h100", 16)
    partial = cut.close(60.0, partial=True)
    assert partial.partial
    assert partial.of(Line.PRODUCTIVE, "not saved yet") == 8 * 50_000
    made.charge(US, attempt())
    made.free(100.0, "h100", 16)
    whole = made.close(100.0)
    assert whole.of(Line.FREE_WITH_DEMAND, "ORDER") == 8 * 100_000
    assert whole.of(Line.PRODUCTIVE) == 8 * 90_000


def test_what_happens_before_counting_begins_is_followed_but_not_counted() -> None:
    made = ledger(since_s=30.0)
    made.admit(0.0, "h100", 8)
    made.free(0.0, "h100", 8, "ORDER")
    made.put_out(20.0, "h100", Line.RESERVED, 8)
    made.free(20.0, "h100", 0)
    made.charge(US, attempt())
    made.free(100.0, "h100", 8)
    lines = made.close(110.0)
    assert lines.installed_gpu_ms == {"h100": 16 * 80_000}
    assert lines.by("line") == {
        ("productive",): 8 * 70_000,
        ("reserved",): 8 * 80_000,
        ("free without demand",): 8 * 10_000,
    }


def test_a_line_below_zero_is_an_error_even_where_the_sum_is_right() -> None:
    made = ledger()
    made.put_out(5.0, "h100", Line.RESERVED, -4)
    made.free(5.0, "h100", 20)
    with pytest.raises(Unbalanced, match="h100: 'reserved' comes to -20000 GPU-ms"):
        made.close(10.0)


def test_time_does_not_go_back() -> None:
    made = ledger()
    made.free(5.0, "h100", 16, "ORDER")
    with pytest.raises(ValueError, match="time goes back"):
        made.free(4.0, "h100", 16)


def test_only_lines_of_gpus_that_nobody_holds_can_be_put_out() -> None:
    with pytest.raises(ValueError, match="'productive' is no line of GPUs out of use"):
        ledger().put_out(0.0, "h100", Line.PRODUCTIVE, 1)


def test_floats_that_are_no_whole_milliseconds_leave_no_remainder() -> None:
    made, at_s = Ledger(), 0.1
    made.install(at_s, "h100", 3)
    made.free(at_s, "h100", 3)
    for i in range(1, 1000):
        made.free(0.1 + i * 0.1234567, "h100", 3, "ORDER" if i % 2 else "")
    lines = made.close(130.0)
    assert lines.total_gpu_ms == 3 * 129_900


def test_rows_grow_with_accounts_and_lines_not_with_attempts() -> None:
    made = ledger()
    for i in range(500):
        made.admit(i * 2.0, "h100", 8)
        made.free(i * 2.0, "h100", 8, "ORDER" if i % 3 else "")
        made.charge(US, attempt(admitted_s=i * 2.0, started_s=i * 2.0 + 0.5, ended_s=i * 2.0 + 1))
        made.free(i * 2.0 + 1, "h100", 16)
    assert len(made.close(1000.0).amounts) == 4


def test_all_that_changed_at_an_instant_can_be_counted_at_once() -> None:
    apart, at_once = ledger(), ledger()
    for made in (apart, at_once):
        made.free(5.0, "h100", 16, "TOPOLOGY")
    apart.admit(10.0, "h100", 8)
    apart.free(10.0, "h100", 8, "QUOTA_WAIT")
    apart.charge(US, attempt(admitted_s=10.0, started_s=20.0))
    apart.free(100.0, "h100", 16)
    at_once.count(10_000, "h100", 8, 8, "QUOTA_WAIT")
    charge_finished(at_once.sums_of(US), 8, 10_000, 80_000, 0)
    at_once.count(100_000, "h100", -8, 16)
    assert at_once.close(200.0) == apart.close(200.0)


def test_counts_that_do_not_balance_are_an_error_when_time_goes_on() -> None:
    made = ledger()
    made.count(10_000, "h100", 8, 9)
    with pytest.raises(Unbalanced, match="16 GPUs are installed, but 9 are free, 8 held"):
        made.count(11_000, "h100", 0, 9)


def test_an_attempt_that_began_before_the_ledger_is_divided_within_it_alone() -> None:
    made = ledger(since_s=50.0)
    made.count(0, "h100", 8, 8)
    made.divide(made.sums_of(US), attempt())
    made.count(100_000, "h100", -8, 16)
    assert made.close(100.0).by("line") == {("productive",): 400_000, ("free without demand",): 400_000}
