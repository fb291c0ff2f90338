"""Public operator files of perftest, port states and port counters: the conclusions that a reader must reach."""

from __future__ import annotations

import pytest

from builders.corpus import FOLDER, check_corpus, found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight


def only(transcript: Transcript, outcome: Outcome = Outcome.READ) -> Run:
    problems = transcript.refusal or [run.missing for run in transcript.runs]
    assert transcript.outcome is outcome, f"{transcript.outcome}: {problems}"
    (run,) = transcript.runs
    return run


def amounts(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 4) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def errors(run: Run) -> set[str]:
    return {notice.code for notice in run.notices if notice.weight is Weight.ERROR}


def loopback_once(transcript: Transcript) -> None:
    run = only(transcript)
    assert amounts(run, "bandwidth_average", "MiB/s") == [24056.72]
    assert round(amounts(run, "bandwidth_average", "GB/s")[0] * 8, 1) == 201.8
    assert (run.condition("loopback"), run.condition("transport")) == (True, "InfiniBand")
    assert {"both-ends", "loopback"} <= set(codes(run))


def frequency_line(transcript: Transcript) -> None:
    run = only(transcript)
    assert amounts(run, "bandwidth_average", "Gb/s") == [92.40]
    assert codes(run) == {"cpu-frequency": Weight.WARNING}
    assert run.condition("transport") == "RoCE"


def bidirectional(transcript: Transcript) -> None:
    run = only(transcript)
    assert amounts(run, "bandwidth_average", "Gb/s", size="8388608") == [204.59]
    assert len(amounts(run, "bandwidth_average", "Gb/s")) == 23
    assert run.condition("bidirectional") is True
    assert "102.3 Gb/s each way" in next(n.message for n in run.notices if n.code == "sum-of-directions")
    assert isinstance(run.condition("device"), NoValue)


def cpu_memory_fails_at_the_end(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert amounts(run, "bandwidth_average", "Gb/s", size="65536") == [381.41]
    assert (run.condition("gpu_memory"), errors(run)) == (False, {"test-failed"})
    assert "sizes above 65,536 B; -a goes to 8,388,608 B" in run.missing


def gpu_memory(transcript: Transcript) -> None:
    run = only(transcript)
    assert amounts(run, "bandwidth_average", "Gb/s", size="8388608") == [140.40]
    assert (run.condition("gpu_memory"), run.condition("dmabuf"), run.condition("gpu")) == (True, True, "NVIDIA H200")
    assert (run.condition("gpu_index"), run.condition("gpu_pci")) == ("0", "0000:8f:00.0")


def without_result(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert not run.observations
    assert "the table" in run.missing


def cycles(transcript: Transcript) -> None:
    without_result(transcript)
    assert {"in-cycles", "few-iterations"} <= set(codes(transcript.runs[0]))


def polling(transcript: Transcript) -> None:
    run = only(transcript)
    assert (values(run, "port_state"), values(run, "port_physical_state")) == (["Down"], ["Polling"])
    assert errors(run) == {"port-down"}
    assert isinstance(values(run, "port_rate")[0], NoValue)
    assert isinstance(values(run, "node_guid")[0], NoValue)


def bonds(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert amounts(run, "port_rate", "Gb/s") == [200, 200]
    assert [dict(o.subject)["device"] for o in found(run, "port_state")] == ["mlx5_bond_0", "mlx5_bond_1"]
    assert "bond-rate" in codes(run)
    assert "1 of 1 ports of mlx5_bond_2" in run.missing


def one_down_one_unknown(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert values(run, "port_state", device="mlx5_0") == ["Down"]
    assert values(run, "port_state", device="mlx5_1") == []
    assert values(run, "node_guid") == ["0x58a2e103002a09b8", "0x58a2e103002a0e38"]
    assert errors(run) == {"port-down"}


def roce_whatever_the_words(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "port_layer") == ["Ethernet", "Ethernet"]
    assert amounts(run, "port_rate", "Gb/s") == [100, 100]
    assert not errors(run)


def ip_interfaces_down(transcript: Transcript) -> None:
    run = only(transcript)
    assert run.condition("infiniband_interfaces") == 8
    assert not values(run, "port_state")
    assert codes(run) == {"ip-interface-only": Weight.INFO}


def unconnected(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert run.condition("hosts") == 3
    assert codes(run) == {"ports-unconnected": Weight.INFO}


def topology(transcript: Transcript) -> None:
    run = only(transcript)
    assert (run.condition("switches"), run.condition("hosts"), run.condition("links")) == (8, 10, 18)
    spine = "MF0;rmd70-0101-0908-01ib1-A:MCS8500/S01/U1"
    leaves = [(dict(o.subject)["to"][-6:], dict(o.subject)["to_port"]) for o in found(run, "link", **{"from": spine})]
    assert leaves[:2] == [("L01/U1", "21"), ("L02/U1", "21")]
    kinds = [dict(o.subject)["name"] for o in found(run, "node_kind") if o.value == "aggregation node"]
    assert kinds == ["Mellanox Technologies Aggregation Node"]


def guid_pairs(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "port_guid", node="vma000bbc00005I") == ["0x0ff08c4321664e96"]
    assert len(values(run, "port_guid")) == 10


def chassis_fan(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "fan_status") == ["ERROR"]
    assert values(run, "psu_fan_status") == ["OK", "OK"]
    assert codes(run) == {"switch-fault": Weight.WARNING}


def no_data(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert isinstance(values(run, "psu_status", psu="1")[0], NoValue)
    assert isinstance(values(run, "fan_speed_rpm", fan="1")[0], NoValue)
    assert codes(run) == {"no-data": Weight.WARNING}
    assert "row of fan status" in run.missing


def power_unknown(transcript: Transcript) -> None:
    run = only(transcript)
    assert isinstance(values(run, "psu_power", psu="0")[0], NoValue)
    assert (values(run, "psu_status"), values(run, "fan_status")) == (["OK", "OK"], ["OK"])
    assert codes(run) == {"no-data": Weight.WARNING}


def no_errors(transcript: Transcript) -> None:
    run = only(transcript)
    assert set(codes(run)) == {"cumulative"}
    assert values(run, "PortMulticastRcvPkts") == [3732373137.0]
    assert values(run, "PortXmitData") == [37108676853855.0]
    assert amounts(run, "port_xmit_bytes", "B") == [4 * 37108676853855]


def two_ports(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "PortXmitWait", port="1") == [22730501.0]
    assert values(run, "PortXmitWait", port="2") == [36510964.0]
    assert set(codes(run)) == {"cumulative"}


def empty(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.REFUSED
    assert "nothing was measured" in str(transcript.refusal)


def link_downs_saturated(transcript: Transcript) -> None:
    run = only(transcript)
    for name, least in (("link_downed", "255"), ("excessive_buffer_overrun_errors", "15")):
        (value,) = values(run, name)
        assert isinstance(value, NoValue)
        assert f"at least {least}" in value.why
    assert values(run, "port_rcv_errors") == [14.0]
    assert values(run, "port_state") == ["Active"]
    assert amounts(run, "port_rate", "Gb/s") == [400]
    assert {"counter-saturated", "errors-counted", "cumulative"} == set(codes(run))
    assert not errors(run)


def old_errors(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "link_downed") == [0.0]
    assert isinstance(values(run, "excessive_buffer_overrun_errors")[0], NoValue)
    assert "roce_adp_retrans 3" in next(n.message for n in run.notices if n.code == "errors-counted")
    assert not errors(run)


EXPECTATIONS = {
    "perftest-bw-lat/001-loopback-8M-server-client-mixed.log": loopback_once,
    "perftest-bw-lat/003-deepops-roce-cpu-freq-line-in-table.txt": frequency_line,
    "perftest-bw-lat/004-rocm-bidirectional-all-sizes.txt": bidirectional,
    "perftest-bw-lat/006-gke-cx7-cpu-memory-all-sizes.txt": cpu_memory_fails_at_the_end,
    "perftest-bw-lat/007-gke-h200-use-cuda-dmabuf.txt": gpu_memory,
    "perftest-bw-lat/009-issue82-negative-after-long-run.txt": without_result,
    "perftest-bw-lat/011-issue108-output-bandwidth-json-mode.log": without_result,
    "perftest-bw-lat/012-issue8-latency-cycles-cn.txt": cycles,
    "perftest-bw-lat/013-issue214-report-min-bw-header.txt": without_result,
    "ib-state/002-ibstat-polling-rate10.txt": polling,
    "ib-state/005-ibstat-bond-bluefield.txt": bonds,
    "ib-state/006-ibv-devinfo-port-down-cx7.txt": one_down_one_unknown,
    "ib-state/007-ibstatus-ethernet-edr-label.txt": roce_whatever_the_words,
    "ib-state/008-ibdev2netdev-ib-down-is-normal.txt": ip_interfaces_down,
    "ib-state/010-ibnetdiscover-p-width-unknown.txt": unconnected,
    "ib-state/011-ibnetdiscover-sb.txt": topology,
    "ib-state/012-ibstat-guid-list-vm.txt": guid_pairs,
    "ib-state/013-ibswinfo-test1.txt": chassis_fan,
    "ib-state/014-ibswinfo-test1-missing.txt": no_data,
    "ib-state/015-ibswinfo-test-err1.txt": power_unknown,
    "ib-counters/002-perfquery-003b4b96.txt": no_errors,
    "ib-counters/003-perfquery-009ce5b0.txt": two_ports,
    "ib-counters/004-perfquery-00cc02a6.txt": empty,
    "ib-counters/006-sysfs-h100-mlx5-1-linkdowned.txt": link_downs_saturated,
    "ib-counters/007-sysfs-h100-mlx5-0-old-errors.txt": old_errors,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside this clone")
def test_every_public_file_leads_to_its_conclusion():
    assert check_corpus(EXPECTATIONS, "perftest-bw-lat", "ib-state", "ib-counters") > 0
