"""What a run keeps is bounded, and what it does not keep is counted and said."""

from __future__ import annotations

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder


def test_notices_beyond_the_bound_are_counted():
    builder = RunBuilder("tool")
    for number in range(1_005):
        builder.notice("code", f"message {number}")
    run = builder.build()
    assert len(run.notices) == 1_000
    assert run.missing == ("5 notices beyond the first 1,000 of their weight",)


def test_an_error_is_said_after_any_number_of_remarks():
    builder = RunBuilder("tool")
    for number in range(2_000):
        builder.notice("code", f"message {number}", Weight.INFO)
    builder.notice("fault", "a fault", Weight.ERROR)
    assert [n.code for n in builder.build().notices if n.weight is Weight.ERROR] == ["fault"]


def test_a_notice_that_was_said_is_not_counted_as_left_out():
    builder = RunBuilder("tool")
    for number in range(1_000):
        builder.notice("code", f"message {number}")
    builder.notice("code", "message 7")
    assert builder.build().missing == ()


def test_missing_parts_beyond_the_bound_are_counted():
    builder = RunBuilder("tool")
    for number in range(1_003):
        builder.missing(f"part {number}")
    missing = builder.build().missing
    assert len(missing) == 1_001
    assert missing[-1] == "3 more, beyond the 1,000 that are named"
