"""Counters of ports: ceilings, words of four bytes, what is missing."""

from __future__ import annotations

from pathlib import Path

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Value, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "ib-counters"
PERFQUERY = (FIXTURES / "perfquery.txt").read_text()
BASE = "/sys/class/infiniband/mlx5_7/ports/1/"


def only_run(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.refusal is None, str(transcript.refusal)
    assert transcript.kind == "ib-counters"
    (run,) = transcript.runs
    return run


def values(run: Run, name: str, /, **subject: str) -> list[Value]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def test_counters_at_their_ceiling_have_no_value():
    run = only_run(PERFQUERY)
    for name, least in (
        ("SymbolErrorCounter", "65,535"),
        ("LinkDownedCounter", "255"),
        ("PortXmitData", "4,294,967,295"),
    ):
        (value,) = values(run, name, lid="41", port="1")
        assert isinstance(value, NoValue)
        assert value.lack is Lack.UNREADABLE
        assert f"at least {least}" in value.why
    assert codes(run)["counter-saturated"] is Weight.WARNING


def test_counters_below_their_ceiling_are_numbers():
    run = only_run(PERFQUERY)
    assert (values(run, "PortXmitWait"), values(run, "PortXmitDiscards")) == ([77.0], [3.0])
    assert "PortXmitDiscards 3" in next(n.message for n in run.notices if n.code == "errors-counted")


def test_data_counts_words_of_four_bytes():
    (size,) = values(only_run(PERFQUERY), "port_rcv_bytes")
    assert isinstance(size, Quantity)
    assert size.to("B") == 4000


def test_wide_counters_do_not_stop_at_narrow_ceilings():
    run = only_run(PERFQUERY.replace("# Port counters", "# Port extended counters"))
    assert values(run, "LinkDownedCounter") == [255.0]
    assert "counter-saturated" not in codes(run)
    full = only_run(
        PERFQUERY.replace("# Port counters", "# Port extended counters").replace("...77", "..." + str(2**64 - 1))
    )
    assert isinstance(values(full, "PortXmitWait")[0], NoValue)


def test_two_ports_stay_apart():
    run = only_run(PERFQUERY + PERFQUERY.replace("port 1", "port 2").replace("...77", "...88"))
    assert values(run, "PortXmitWait", port="2") == [88.0]


def test_a_cut_listing_is_incomplete():
    cut = only_run(PERFQUERY + PERFQUERY.replace("port 1", "port 2")[:600])
    assert any("counters of lid 41 port 2" in part for part in cut.missing)
    torn = only_run(PERFQUERY[: PERFQUERY.index("SymbolErrorCounter") + 12])
    assert "error counters of lid 41 port 1" in torn.missing or "counters of lid 41 port 1" in torn.missing
    assert torn.rejected == 1


def test_a_counter_without_a_value_is_absent():
    run = only_run(
        f"{BASE}counters/link_downed:N/A (no PMA)\n{BASE}counters/symbol_error:\n{BASE}counters/port_rcv_errors:x7\n"
    )
    assert [v.lack for v in (*values(run, "link_downed"), *values(run, "symbol_error")) if isinstance(v, NoValue)] == [
        Lack.ABSENT, Lack.ABSENT,
    ]  # fmt: skip
    (broken,) = values(run, "port_rcv_errors")
    assert isinstance(broken, NoValue)
    assert broken.lack is Lack.UNREADABLE


def test_sysfs_counters_come_with_the_state_of_their_port():
    run = only_run(
        f"{BASE}counters/link_downed: 255\n{BASE}counters/excessive_buffer_overrun_errors: 15\n"
        f"{BASE}counters/port_rcv_data: 10\n{BASE}hw_counters/out_of_sequence: 4\n{BASE}state: 4: ACTIVE\n"
    )
    assert isinstance(values(run, "link_downed", device="mlx5_7")[0], NoValue)
    assert isinstance(values(run, "excessive_buffer_overrun_errors")[0], NoValue)
    assert values(run, "out_of_sequence") == [4.0]
    assert values(run, "port_state") == ["Active"]


def test_files_shown_by_head_are_read():
    run = only_run(f"==> {BASE}counters/link_downed <==\n3\n\n==> {BASE}counters/symbol_error <==\n0\n")
    assert (values(run, "link_downed"), values(run, "symbol_error")) == ([3.0], [0.0])


def test_the_same_counter_twice_is_said():
    run = only_run(f"{BASE}counters/link_downed: 3\n{BASE}counters/link_downed: 4\n")
    assert (values(run, "link_downed"), "counter-twice" in codes(run)) == ([3.0], True)


def test_ibqueryerrors_is_read_without_its_sums():
    run = only_run((FIXTURES / "ibqueryerrors.txt").read_text())
    assert values(run, "SymbolErrorCounter") == [5.0]
    assert values(run, "LinkDownedCounter", port="2", name="MF0;leaf-01:MQM9700/U1") == [4.0]
    assert isinstance(values(run, "PortRcvErrors", name="node-b mlx5_0")[0], NoValue)
    assert run.condition("summary") == "3 nodes checked, 2 bad nodes found"
    assert run.complete


def test_ibqueryerrors_without_its_summary_is_incomplete():
    text = (FIXTURES / "ibqueryerrors.txt").read_text()
    assert only_run(text[: text.index("\n## Summary")]).missing == ("summary at the end",)


def test_ethtool_statistics_name_what_matters():
    run = only_run(
        "$ ethtool -S ens1np0\nNIC statistics:\n     rx_packets: 1000\n     rx_discards_phy: 7\n     tx_pause: 2\n"
    )
    assert values(run, "rx_packets", netdev="ens1np0") == [1000.0]
    assert "rx_discards_phy 7" in next(n.message for n in run.notices if n.code == "errors-counted")


def test_rdma_statistics_are_read():
    run = only_run("link mlx5_0/1 rx_write_requests 5 rx_read_requests 6 \n    out_of_sequence 2 packet_seq_err 0 \n")
    assert (values(run, "rx_read_requests"), values(run, "out_of_sequence")) == ([6.0], [2.0])


def test_an_empty_listing_is_no_listing_without_errors():
    transcript = read_output([b"\n"], name="perfquery.out")
    assert transcript.outcome is Outcome.REFUSED
    assert "nothing was measured" in str(transcript.refusal)


def test_one_reading_is_said_to_date_nothing():
    assert codes(only_run(PERFQUERY))["cumulative"] is Weight.INFO


def test_details_of_errors_are_counters_of_their_own_table():
    details = "# PortRcvErrorDetails counters: Lid 41 port 1\nPortSelect:......1\nPortLocalPhysicalErrors:....7\n"
    run = only_run(details)
    assert values(run, "PortLocalPhysicalErrors", lid="41", port="1") == [7.0]
    assert run.complete
    assert "errors-counted" in codes(run)


def test_counters_of_ibdiagnet_are_hexadecimal():
    run = only_run(
        "-------------\nPort=2 Lid=0x0031 GUID=0x0000000000000a01 Device=54000 Port Name=S0a01/P2\n-------------\n"
        "symbol_error_counter_extended=0x00000000000000ff\nlink_downed_counter_extended=0xffffffffffffffff\n"
    )
    assert values(run, "symbol_error_counter_extended", lid="49", port="2", guid="0x0000000000000a01") == [255.0]
    assert isinstance(values(run, "link_downed_counter_extended")[0], NoValue)
    assert "symbol_error_counter_extended 255" in next(n.message for n in run.notices if n.code == "errors-counted")


def test_statistics_of_ethtool_that_went_through_grep_are_known():
    text = "# ethtool -S ens1 | grep prio\n     rx_prio0_bytes: 880345\n     tx_prio0_bytes: 139066\n"
    run = only_run(text + "     rx_prio3_pause: 17\n")
    assert values(run, "rx_prio3_pause", netdev="ens1") == [17.0]
    assert run.complete


def test_a_statistic_of_ethtool_that_is_cut_is_rejected():
    run = only_run("NIC statistics:\n     rx_packets: 845\n     tx_packets: 896\n     rx_out\n")
    assert run.rejected == 1
