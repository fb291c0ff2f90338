from __future__ import annotations

import pytest

from clusterwright.ledger.lines import Account, Entry, Line, size_class, to_ms
from clusterwright.ledger.totals import Lines, merge_lines

from .builders import US

LINES = Lines(
    {
        (Account("h100"), Entry(Line.FREE)): 7_200_000,
        (US, Entry(Line.FAILED, "hardware")): 1_800_000,
        (US, Entry(Line.FAILED, "setup")): 900_000,
        (US._replace(queue="serving"), Entry(Line.PRODUCTIVE)): 100_000,
    },
    {"h100": 10_000_000},
)


def test_lines_are_grouped_by_any_fields() -> None:
    assert LINES.by("queue") == {("",): 7_200_000, ("training",): 2_700_000, ("serving",): 100_000}
    assert LINES.by("queue", "why")["training", "setup"] == 900_000
    assert LINES.by() == {(): 10_000_000}


def test_a_field_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="'colour' is no field of the ledger; fields: flavor, queue, team"):
        LINES.by("colour")


def test_every_line_is_in_the_table_even_without_time() -> None:
    table = LINES.by_line()
    assert list(table) == list(Line)
    assert table[Line.RESERVED] == 0
    assert sum(table.values()) == LINES.total_gpu_ms == 10_000_000


def test_a_line_is_its_details_together() -> None:
    assert LINES.of(Line.FAILED) == 2_700_000
    assert LINES.of(Line.FAILED, "setup") == 900_000
    assert LINES.gpu_h(Line.FREE) == 2.0
    assert LINES.share(Line.FAILED, Line.FREE) == 0.99


def test_merged_lines_are_the_sum_and_one_part_makes_them_partial() -> None:
    other = Lines({(US, Entry(Line.FAILED, "setup")): 1, (US, Entry(Line.LOST, "setup")): 2}, {"b200": 3}, partial=True)
    merged = merge_lines([LINES, other])
    assert merged.of(Line.FAILED, "setup") == 900_001
    assert merged.of(Line.LOST) == 2
    assert merged.installed_gpu_ms == {"h100": 10_000_000, "b200": 3}
    assert merged.partial
    assert merge_lines([]) == Lines({})


@pytest.mark.parametrize(
    ("gpus", "name"),
    [(0, "0"), (1, "1"), (2, "2-7"), (7, "2-7"), (8, "8"), (9, "9-31"), (2047, "512-2047"), (2048, "2048+")],
)
def test_sizes_have_classes(gpus: int, name: str) -> None:
    assert size_class(gpus) == name


def test_instants_are_rounded_to_milliseconds_half_to_even() -> None:
    assert [to_ms(s) for s in (0.0004, 0.0015, 0.0025, 1.7e9)] == [0, 2, 2, 1_700_000_000_000]
