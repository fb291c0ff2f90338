"""Amounts as text: what is read, what lies outside the range that makes sense, and how that is said."""

from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.plan.fitting import amounts
from clusterwright.plan.fitting.amounts import Range, Wrong, hour_price, link, money, number, prices, rate
from clusterwright.plan.fitting.reading import read_wants

#: Option → (range, lowest and highest text that is read, texts just outside).
ENDS: dict[str, tuple[Range, tuple[str, str], tuple[str, str]]] = {
    "rate": (amounts.RATES, ("0.000001", "1e7"), ("0.0000009", "10000001")),
    "concurrency": (amounts.IN_FLIGHT, ("1", "1e9"), ("0", "1000000001")),
    "in": (amounts.LENGTHS, ("1", "100M"), ("0.9", "100000001")),
    "out": (amounts.LENGTHS, ("1", "1e8"), ("-1", "1e9")),
    "context": (amounts.LENGTHS, ("1", "100000000"), ("0", "100M1")),
    "ttft": (amounts.TARGETS, ("1us", "1 day"), ("0.9us", "25h")),
    "tpot": (amounts.TARGETS, ("1us", "24h"), ("0s", "1e30s")),
    "survive": (amounts.LOSSES, ("0", "10000 nodes"), ("-1", "1e9")),
    "gpus": (amounts.GPUS, ("1", "10M"), ("0", "10000001")),
    "power": (amounts.POWERS, ("1W", "100GW"), ("0.9W", "1e30kW")),
    "pue": (amounts.PUES, ("1", "5"), ("0.99", "5.01")),
    "budget": (amounts.BUDGETS, ("$0.01/month", "$1T/month"), ("-$5/month", "$1.01T/month")),
    "price": (amounts.PRICES, ("$0.001", "10000"), ("-2", "1e300")),
    "utilisation": (amounts.SHARES, ("0.1%", "1"), ("0.09%", "1.01")),
    "memory-share": (amounts.SHARES, ("0.001", "100%"), ("0", "101%")),
    "reuse": (amounts.REUSES, ("0", "100%"), ("-1%", "1.1")),
}


@pytest.mark.parametrize(("option", "text"), [(name, text) for name, (_, held, _) in ENDS.items() for text in held])
def test_both_ends_of_a_range_are_read(option: str, text: str) -> None:
    assert option in read_wants({option: text}).stated


@pytest.mark.parametrize(
    ("option", "text", "limits"), [(name, text, limits) for name, (limits, _, bad) in ENDS.items() for text in bad]
)
def test_what_lies_outside_is_refused_with_the_value_and_the_range(option: str, text: str, limits: Range) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_wants({option: text})
    said = str(caught.value)
    assert f"'{text}'" in said
    assert limits.words in said or "is not a number" in said
    assert option in said


def test_only_what_is_no_number_is_called_none() -> None:
    with pytest.raises(Wrong, match=r"'-1' is out of range: from 0\.000001"):
        rate("-1")
    for text in ("nan", "inf", "fast", "", "١٢", "0x10", "--1", "1e", "2,5"):
        with pytest.raises(Wrong, match="is not a number"):
            rate(text)


def test_a_comma_parts_thousands_and_nothing_else() -> None:
    assert number("1,234,567.5") == 1234567.5
    with pytest.raises(Wrong, match="a comma parts thousands"):
        number("2,5")


def test_numbers_with_exponents_and_without_a_whole_part() -> None:
    assert rate("1e-3") == 0.001
    assert rate("2.5E2/min") == pytest.approx(250 / 60)
    assert hour_price(".5") == (0.5, "USD")
    assert money("£.5k/day").currency == "GBP"


def test_a_nic_has_a_rate() -> None:
    assert link("400Gb/s").value == 400e9
    for text in ("0Gb/s", "-1Gb/s", "1e9Tb/s"):
        with pytest.raises(Wrong, match=r"from 0\.1 Gb/s to 100 Tb/s"):
            link(text)


def test_a_name_has_one_price() -> None:
    for text, says in (("h100=2,H100=3", "two prices of H100"), ("2,3", "two prices of every GPU")):
        with pytest.raises(Wrong, match=says):
            prices(text)


def test_a_long_or_hostile_text_is_shown_cut_and_on_one_line() -> None:
    with pytest.raises(Wrong) as caught:
        number("9" * 5000 + "\n\x1b[31m")
    assert len(str(caught.value)) < 150
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
