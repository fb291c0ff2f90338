"""Port counters: two readings give a rate, one gives nothing, and neither does a cleared or saturated one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders.evidence import NOW
from clusterwright.judging.combining import combine
from clusterwright.judging.deriving import derive
from clusterwright.judging.growing import grow
from clusterwright.judging.recording import record
from clusterwright.readers.reading import read_output

HOUR = timedelta(hours=1)


def perfquery(*, symbols=0, downs=0, lid=41):
    return (
        f"# Port counters: Lid {lid} port 1 (CapMask: 0x5A00)\n"
        "PortSelect:......................1\nCounterSelect:...................0x0000\n"
        f"SymbolErrorCounter:..............{symbols}\nLinkErrorRecoveryCounter:........0\n"
        f"LinkDownedCounter:...............{downs}\nPortRcvErrors:...................0\n"
        "PortRcvRemotePhysicalErrors:.....0\nPortRcvSwitchRelayErrors:........0\n"
        "PortXmitDiscards:................0\nPortXmitConstraintErrors:........0\n"
        "PortRcvConstraintErrors:.........0\nCounterSelect2:..................0x00\n"
        "LocalLinkIntegrityErrors:........0\nExcessiveBufferOverrunErrors:....0\n"
        "VL15Dropped:.....................0\nPortXmitData:....................100\n"
        "PortRcvData:.....................100\nPortXmitPkts:....................20\n"
        "PortRcvPkts:.....................30\nPortXmitWait:....................77\n"
    )


def at(hours_ago, *texts, node="gpu-001", engine="slurm"):
    """One output of the counters of a host."""
    text = "".join(texts)
    derivation = derive(read_output([text.encode()]), nodes=(node,))
    moment = NOW - hours_ago * HOUR
    digest = f"sha256:{hours_ago}{text}"
    return record(derivation, raw_digest=digest, started=moment, ended=moment, engine=engine)


def rates(*records):
    return {r.metric: str(r.value) if r.value is not None else r.unreadable for e in grow(records) for r in e.readings}


def test_one_reading_has_no_value_whatever_it_counts():
    for counted in (0, 12):
        found = [r for r in at(1, perfquery(symbols=counted)).readings if r.metric == "ib_symbol_errors"]
        assert [r.value for r in found] == [None]
        assert "a second reading" in found[0].unreadable
        assert grow([at(1, perfquery(symbols=counted))]) == ()


def test_two_readings_give_events_per_hour():
    found = grow([at(2, perfquery(symbols=100, downs=3)), at(4, perfquery(symbols=40, downs=3))])
    (one,) = found
    assert {r.metric: r.value.to("events/h") for r in one.readings} == pytest.approx(
        {"ib_symbol_errors": 30.0, "ib_link_downs": 0.0}
    )
    assert one.nodes == ("gpu-001",)
    assert (one.started, one.ended) == (NOW - 4 * HOUR, NOW - 2 * HOUR)
    assert dict(one.readings[0].conditions)["duration"] == "7200 s"


def test_the_worst_port_of_a_host_counts():
    before = at(2, perfquery(lid=41), perfquery(lid=42))
    after = at(1, perfquery(lid=41, symbols=1), perfquery(lid=42, symbols=9))
    assert rates(before, after)["ib_symbol_errors"] == "9 events/h"


def test_a_counter_that_went_back_was_cleared():
    assert "cleared in between" in rates(at(2, perfquery(symbols=50)), at(1, perfquery(symbols=2)))["ib_symbol_errors"]


def test_a_saturated_counter_gives_nothing():
    said = rates(at(2, perfquery(symbols=65535, downs=255)), at(1, perfquery(symbols=65535, downs=255)))
    assert said["ib_symbol_errors"].startswith("no value: SymbolErrorCounter")
    assert said["ib_link_downs"].startswith("no value: LinkDownedCounter")


def test_readings_a_moment_apart_give_nothing():
    assert "at least 10 min" in rates(at(1.05, perfquery()), at(1, perfquery(symbols=1)))["ib_symbol_errors"]


def test_a_port_that_one_reading_lacks_is_said_and_keeps_the_host_from_passing():
    found = grow([at(2, perfquery(lid=41), perfquery(lid=42)), at(1, perfquery(lid=41))])
    said = [(r.value is None, r.unreadable) for r in found[0].readings if r.metric == "ib_symbol_errors"]
    assert sorted(said) == [(False, ""), (True, "partial view: a port that only one of two readings has")]


def test_other_hosts_and_the_same_moment_are_no_second_reading():
    assert grow([at(2, perfquery()), at(1, perfquery(), node="gpu-002")]) == ()
    assert grow([at(1, perfquery()), at(1, perfquery(symbols=1))]) == ()


def test_three_readings_give_two_times_so_that_a_quiet_end_hides_nothing():
    found = grow([at(3, perfquery()), at(2, perfquery(symbols=60)), at(1, perfquery(symbols=60))])
    assert [e.readings[0].value.to("events/h") for e in found] == pytest.approx([60.0, 0.0])


def test_what_one_of_both_was_measured_on_must_be_of_the_engine():
    assert grow([at(2, perfquery(), engine=""), at(1, perfquery())])[0].engine == ""
    virtual = replace(at(2, perfquery()), devices="virtual")
    assert grow([virtual, at(1, perfquery())])[0].devices == "virtual"


def test_it_follows_the_records_of_a_judgement():
    records = [at(2, perfquery()), at(1, perfquery(symbols=2))]
    assert [r.tool for r in combine(records)] == ["perfquery", "perfquery", "perfquery, twice"]
