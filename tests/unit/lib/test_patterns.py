"""Patterns of quantities: they match what the parser reads of a kind, and nothing of another kind."""

from __future__ import annotations

import re

import pytest

from clusterwright.lib.patterns import pattern_of
from clusterwright.lib.quantities import KINDS, UnitError, parse_kind, units_measuring

#: Kind → spellings beside the example of KINDS.
SPELLINGS = {
    "bytes": ["120GB", "1,024 MiB", "1_000 kB", "1.5 TB", "1e12 B", "+5 GiB"],
    "byte rate": ["10 GBps", "600 MB/min", "20 GB / s", "1 TiB/h"],
    "bit rate": ["400Gb/s", "400 Gbps", "25 Gbit/s"],
    "duration": ["1 h 30 min", "1h30min", "3 days", "90 sec", "0 s", "250 us", "250 µs", "6 months"],
    "power": ["10200 W", "1 MW"],
    "compute rate": ["989 TFLOPS", "1 PFLOP/s"],
    "operation rate": ["500000 IOPS"],
    "tokens": ["2 ktok", "1 token", "200 Mtok"],
    "token rate": ["2500 tok/s", "1 Mtok/day"],
    "request rate": ["50 req/s", "100 requests/min", "1 request/s"],
    "event rate": ["1 event/day", "0 events/h", "3 events/week"],
    "nodes": ["0 nodes", "2 nodes"],
    "share": ["99.9%", "80 %", ".5%"],
    "GPU time": ["5,000 GPU-h", "5000 GPU·h", "10 h-GPU", "3 GPU-days", "2 GPUs * month", "1e6 GPU-s"],
    "money": ["$437,000", "€ 5", "10 USD", "10 EUR", "50 cent"],
    "money per time": ["€900/month", "10 USD/h", "$0/year"],
    "money per GPU time": ["$2.40/GPU-h", "$2.40/GPU·h", "$2.40/h-GPU", "2.4 USD/GPU-h", "$2 / GPU / h", "$2/GPUs-d"],
    "money per node time": ["$19.20/node-h", "19 EUR/server-h"],
    "money per power time": ["8 ¢/kWh", "$0.08/kWh", "$170/kW-month", "£0.2/kW-h"],
    "money per token": ["$0.60/Mtok", "60 ¢/Mtokens"],
    "money per bytes": ["$0.09/GB", "$90/TB", "$0.09/GiB"],
    "money per bytes time": ["$0.02/GB-month", "$20/TB/month"],
}  # fmt: skip
SPELT = [(kind, text) for kind, texts in SPELLINGS.items() for text in [KINDS[kind][1], *texts]]


def reads(kind: str, text: str) -> bool:
    try:
        parse_kind(text, kind)
    except UnitError:
        return False
    return True


def test_every_kind_is_spelt() -> None:
    assert set(SPELLINGS) == set(KINDS)


@pytest.mark.parametrize(("kind", "text"), SPELT)
def test_pattern_and_parser_agree_on_every_spelling_in_every_kind(kind: str, text: str) -> None:
    for other in KINDS:
        matched = re.search(pattern_of(other), text) is not None
        assert matched == reads(other, text), f"{text} as {other}"
    if text != "19 EUR/server-h":  # a server is no node
        assert reads(kind, text)


@pytest.mark.parametrize(
    "text", ["", "20", "GB", "20 GBs", "20 gb", "20 Gi", "20 GB/", "20 GB/s/s", "a 20 GB", "20 GB x"]
)
def test_what_no_parser_reads_no_pattern_matches(text: str) -> None:
    for kind in KINDS:
        assert not reads(kind, text)
        assert re.search(pattern_of(kind), text) is None


def test_several_kinds_in_one_pattern() -> None:
    pattern = pattern_of("money per GPU time", "money per time")
    assert re.search(pattern, "$2/GPU-h")
    assert re.search(pattern, "$2/h")
    assert re.search(pattern, "$2/GB") is None


def test_every_unit_of_one_word_is_in_the_pattern_of_its_kind() -> None:
    for kind, (powers, _) in KINDS.items():
        for unit in units_measuring(powers):
            assert re.search(pattern_of(kind), f"2 {unit}"), unit
