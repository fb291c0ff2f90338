"""Quantities: what is read, what is refused, and what a refusal says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.lib.quantities import (
    KINDS,
    Quantity,
    UnitError,
    format_base,
    is_kind,
    parse_kind,
    parse_quantity,
    parse_unit,
)


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("120 GB", 120e9),
        ("120GB", 120e9),
        ("16 GiB", 16 * 2**30),
        ("1,024 MiB", 2**30),
        ("1.5e3 kB", 1.5e6),
        ("400 Gb/s", 400e9),
        ("400 Gbps", 400e9),
        ("10.7 GB/s", 10.7e9),
        ("90 s", 90.0),
        ("1 h 30 min", 5400.0),
        ("1h30min", 5400.0),
        ("2 days", 172_800.0),
        ("1 month", 730 * 3600.0),
        ("1 year", 8760 * 3600.0),
        ("10.2 kW", 10_200.0),
        ("85%", 0.85),
        ("$2.40/GPU-h", 2.40 / 3600),
        ("2.40 USD/GPU-h", 2.40 / 3600),
        ("8 ¢/kWh", 0.08 / 3.6e6),
        ("$170/kW-month", 170 / 1000 / (730 * 3600)),
        ("$0.60/Mtok", 0.6e-6),
        ("€19/node-h", 19 / 3600),
        ("50 req/s", 50.0),
        ("2000 tokens", 2000.0),
        ("989 TFLOP/s", 989e12),
        ("989 TFLOPS", 989e12),
    ],
)
def test_reads_base_units(text: str, base: float) -> None:
    assert math.isclose(parse_quantity(text).value, base, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("120", "has no unit"),
        ("GB", "does not start with a number"),
        ("", "does not start with a number"),
        ("10 gb", "GB (bytes) or Gb (bits)"),
        ("10 KB", "kB (1,000 bytes) or KiB (1,024 bytes)"),
        ("10 m", "min (minutes) or month"),
        ("10 Gi", "GiB"),
        ("10 gbps", "Gb/s (bits) or GB/s (bytes)"),
        ("10 GB/", "incomplete unit"),
        ("5 furlongs", "unknown unit 'furlongs'"),
        ("1e400 GB", "not a finite number"),
        ("1e300 EB", "too large"),
        ("9" * 300, "far too long"),
        ("١ GB", "does not start with a number"),
    ],
)
def test_refuses_with_the_likely_intention(text: str, says: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_quantity(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("400 Gb/s", "byte rate", "it would be 50 GB/s"),
        ("50 GB/s", "bit rate", "it would be 400 Gb/s"),
        ("640 Gb", "bytes", "it would be 80 GB"),
        ("90 s", "bytes", "measures duration, this wants bytes"),
        ("$3/h", "money per GPU time", "$2.40/GPU-h"),
    ],
)
def test_a_wrong_kind_names_both_and_converts(text: str, kind: str, says: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_kind(text, kind)
    assert says in str(caught.value)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_example_of_every_kind_is_of_that_kind(kind: str) -> None:
    quantity = parse_kind(KINDS[kind][1], kind)
    assert is_kind(quantity, kind)
    assert str(quantity) == KINDS[kind][1]


def test_any_currency_is_money_and_keeps_its_code() -> None:
    assert parse_kind("€3/GPU-h", "money per GPU time").currency == "EUR"
    assert parse_kind("90 s", "duration").currency == ""


def test_energy_and_power_time_are_one_unit() -> None:
    assert parse_unit("kWh") == parse_unit("kW-h")


def test_to_converts_and_refuses_another_dimension() -> None:
    assert parse_quantity("1 GB").to("MB") == pytest.approx(1000)
    with pytest.raises(UnitError, match="is not measured in s"):
        parse_quantity("1 GB").to("s")


@given(
    st.floats(min_value=1e-3, max_value=1e18, allow_nan=False),
    st.sampled_from([(("B", 1),), (("B", 1), ("s", -1)), (("b", 1), ("s", -1)), (("W", 1),), (("s", 1),)]),
)
def test_printing_and_reading_agree_to_four_digits(value: float, powers: tuple[tuple[str, int], ...]) -> None:
    again = parse_quantity(format_base(value, powers))
    assert again.powers == powers
    assert math.isclose(again.value, value, rel_tol=1e-3)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except UnitError:
        return
    assert math.isfinite(quantity.value)


def test_a_computed_quantity_prints_in_the_largest_fitting_unit() -> None:
    assert str(Quantity(10.7e9, (("B", 1), ("s", -1)))) == "10.7 GB/s"
    assert str(Quantity(0.25, ())) == "25%"
