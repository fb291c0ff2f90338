"""The state of ports, links and switches, whichever tool printed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Value, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "ib-state"
IBSTAT = (FIXTURES / "ibstat.txt").read_text()


def read(text: str) -> Transcript:
    transcript = read_output([text.encode()])
    assert transcript.refusal is None, str(transcript.refusal)
    assert transcript.kind == "ib-state"
    return transcript


def only_run(text: str) -> Run:
    (run,) = read(text).runs
    return run


def values(run: Run, name: str, /, **subject: str) -> list[Value]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def gbps(run: Run, **subject: str) -> list[float]:
    return [v.to("Gb/s") for v in values(run, "port_rate", **subject) if isinstance(v, Quantity)]


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def test_ibstat_gives_every_port():
    transcript = read(IBSTAT)
    (run,) = transcript.runs
    assert (transcript.outcome, run.tool) == (Outcome.READ, "ibstat")
    assert values(run, "port_state") == ["Active"] * 3
    assert values(run, "port_layer") == ["InfiniBand"] * 3
    assert gbps(run) == [400, 200, 400]
    assert values(run, "port_guid", device="mlx5_2") == ["0x0c42a10300a1b2d0"]
    assert (run.condition("ports"), run.condition("ports_active")) == (3, 3)


def test_a_port_below_its_peers_and_other_firmware_are_said():
    run = only_run(IBSTAT)
    assert "mlx5_1 port 1 run below 400 Gb/s" in next(n.message for n in run.notices if n.code == "rate-below-peers")
    assert "28.39.1002, 28.43.1014" in next(n.message for n in run.notices if n.code == "firmware-differs")


def test_the_rate_of_a_port_that_is_down_is_no_rate():
    run = only_run(
        IBSTAT.replace(
            "State: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 200",
            "State: Down\n\t\tPhysical state: Polling\n\t\tRate: 10",
        )
    )
    (rate,) = values(run, "port_rate", device="mlx5_1")
    assert isinstance(rate, NoValue)
    assert codes(run)["port-down"] is Weight.ERROR


def test_a_disabled_port_was_switched_off_by_somebody():
    run = only_run(
        IBSTAT.replace("State: Active\n\t\tPhysical state: LinkUp", "State: Down\n\t\tPhysical state: Disabled", 1)
    )
    assert codes(run)["port-disabled"] is Weight.WARNING


def test_a_port_without_subnet_manager_is_an_error():
    assert codes(only_run(IBSTAT.replace("State: Active", "State: Initializing", 1)))["port-not-active"] is Weight.ERROR


def test_a_cut_record_is_missing_and_its_port_unknown():
    run = only_run(IBSTAT[: IBSTAT.index("Port 1:", IBSTAT.index("mlx5_2"))])
    assert "1 of 1 ports of mlx5_2" in run.missing
    assert values(run, "port_state", device="mlx5_2") == []


def test_a_state_cut_in_the_middle_is_unreadable():
    text = IBSTAT[: IBSTAT.index("State: Active", IBSTAT.index("mlx5_2")) + 10]
    (state,) = values(only_run(text), "port_state", device="mlx5_2")
    assert isinstance(state, NoValue)


def test_hosts_that_prefix_their_lines_become_nodes():
    text = "".join(f"{host}: {line}\n" for line in IBSTAT.splitlines() for host in ("node-a", "node-b"))
    runs = read(text).runs
    assert [run.condition("node") for run in runs] == ["node-a", "node-b"]
    assert values(runs[1], "port_state", node="node-b", device="mlx5_0") == ["Active"]


def test_a_bond_has_no_known_capacity():
    assert "bond-rate" in codes(only_run(IBSTAT.replace("mlx5_0", "mlx5_bond_0")))


DEVINFO = """hca_id:	mlx5_0
	transport:			InfiniBand (0)
	fw_ver:				28.43.1014
	node_guid:			0c42:a103:00a1:b2c0
	vendor_part_id:			4129
	phys_port_cnt:			1
		port:	1
			state:			PORT_ACTIVE (4)
			active_mtu:		4096 (5)
			port_lid:		41
			link_layer:		InfiniBand
			active_width:		4X (2)
			active_speed:		100.0 Gbps (128)
			phys_state:		LINK_UP (5)
			GID[  0]:		fe80:0000:0000:0000:0c42:a103:00a1:b2c0
"""


def test_ibv_devinfo_is_read_in_the_words_of_ibstat():
    run = only_run(DEVINFO)
    assert values(run, "port_state") == ["Active"]
    assert values(run, "port_physical_state") == ["LinkUp"]
    assert values(run, "node_guid") == ["0x0c42a10300a1b2c0"]
    assert gbps(run) == [400]


def test_ibv_devinfo_without_v_has_no_rate():
    run = only_run(DEVINFO[: DEVINFO.index("\t\t\tactive_width")])
    assert gbps(run) == []
    assert run.complete


def test_ibstatus_trusts_the_link_layer():
    run = only_run(
        "Infiniband device 'rocep1s0' port 1 status:\n\tdefault gid:\t fe80::1\n\tbase lid:\t 0x0\n"
        "\tstate:\t\t 4: ACTIVE\n"
        "\tphys state:\t 5: LinkUp\n\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t Ethernet\n"
    )
    assert (values(run, "port_layer"), gbps(run)) == (["Ethernet"], [200])


def test_ibdev2netdev_speaks_of_the_ip_interface_only():
    run = only_run("mlx5_0 port 1 ==> ibs1 (Down)\nmlx5_1 port 1 ==> ens2np0 (Up)\n")
    assert values(run, "netdev_state") == ["Down", "Up"]
    assert not values(run, "port_state")
    assert codes(run) == {"ip-interface-only": Weight.INFO}
    assert (run.condition("infiniband_interfaces"), run.condition("ethernet_interfaces")) == (1, 1)


def test_verbose_ibdev2netdev_names_address_and_port_state():
    run = only_run(
        "0000:5d:00.0 mlx5_4 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 fw 28.43.1014 port 1 (DOWN  ) ==> ibs4 (Down)\n"
    )
    assert values(run, "port_state", device="mlx5_4", pci="0000:5d:00.0") == ["Down"]
    assert codes(run)["port-down"] is Weight.ERROR


@pytest.mark.parametrize("start", ["link mlx5_0/1 ", "1/1: mlx5_0/1: "])
def test_rdma_link_is_read(start):
    run = only_run(
        f"{start}state ACTIVE physical_state LINK_UP netdev ens1np0 \n"
        "link mlx5_1/1 state DOWN physical_state DISABLED \n"
    )
    assert values(run, "port_state") == ["Active", "Down"]
    assert values(run, "netdev", device="mlx5_0") == ["ens1np0"]
    assert values(run, "port_layer") == ["Ethernet"]


def test_rdma_link_names_a_subnet_for_infiniband_only():
    run = only_run(
        "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 41 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP \n"
    )
    assert (values(run, "port_layer"), values(run, "port_lid")) == (["InfiniBand"], [41.0])


def test_ip_and_ethtool_listings_are_read():
    run = only_run("4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP\n    link/infiniband 00:00\n")
    assert values(run, "netdev_state", netdev="ib0") == ["Up"]
    ethtool = only_run(
        "Settings for ens1np0:\n\tSpeed: 400000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n"
        "Settings for ens2np0:\n\tSpeed: Unknown!\n\tLink detected: no\n"
    )
    assert gbps(ethtool) == [400]
    assert isinstance(values(ethtool, "port_rate", netdev="ens2np0")[0], NoValue)
    assert "link-not-detected" in codes(ethtool)


def test_a_fabric_is_read_once_a_link_and_its_helpers_are_no_hosts():
    transcript = read((FIXTURES / "ibnetdiscover.txt").read_text())
    (run,) = transcript.runs
    assert transcript.outcome is Outcome.READ
    assert [run.condition(name) for name in ("switches", "adapters", "hosts", "links")] == [1, 2, 2, 3]
    assert values(run, "link", to="node-a mlx5_0") == ["4xNDR"]
    assert [str(v) for v in values(run, "link_rate", to="node-a mlx5_0")] == ["400 Gb/s"]
    assert values(run, "node_kind", name="Mellanox Technologies Aggregation Node") == ["aggregation node"]
    assert "link-narrow" in codes(run)


def test_a_fabric_that_ends_early_lacks_nodes():
    text = (FIXTURES / "ibnetdiscover.txt").read_text()
    run = only_run(text[: text.rindex("vendid")])
    assert run.missing == ("the records of 1 nodes that others link to, such as node-b mlx5_0",)


def test_ports_without_a_peer_are_no_fault():
    run = only_run(
        "CA    41  1 0x0c42a10300a1b2c0 4x NDR - SW     2  1 0xfc6a1c0300000010 ( 'node-a mlx5_0' - 'leaf-01' )\n"
        "SW     2  1 0xfc6a1c0300000010 4x NDR - CA    41  1 0x0c42a10300a1b2c0 ( 'leaf-01' - 'node-a mlx5_0' )\n"
        "SW     2  9 0xfc6a1c0300000010 4x ???                                    'leaf-01'\n"
    )
    assert (run.condition("hosts"), run.condition("links")) == (1, 1)
    assert codes(run) == {"ports-unconnected": Weight.INFO}


def test_iblinkinfo_names_links_below_their_capability():
    run = only_run((FIXTURES / "iblinkinfo.txt").read_text())
    assert [str(v) for v in values(run, "link_rate")][:2] == ["400 Gb/s", "200 Gb/s"]
    assert values(run, "port_state", node="node-a", device="mlx5_0") == ["Active"]
    assert gbps(run) == [400]
    assert (run.condition("ports_down"), run.condition("links_below_capability")) == (1, 1)
    assert "Could be 106.25 Gbps" in next(n.message for n in run.notices if n.code == "link-below-capability")


def test_mlxlink_is_read_with_its_error_rates():
    run = only_run((FIXTURES / "mlxlink.txt").read_text())
    assert (values(run, "port_state", device="mlx5_3"), gbps(run)) == (["Active"], [400])
    assert values(run, "effective_physical_errors") == [12.0]
    assert isinstance(values(run, "link_error_recovery_counter")[0], NoValue)
    assert run.condition("recommendation") == "No issue was observed"


SWITCH = """part number        | MQM0000-TEST
product name       | Testswitch
PSID               | MT_0000000000
PSU0 status        | OK
     DC power      | OK
     fan status    | OK
     power (W)     | 70
temperature (C)    | 41
fan status         | OK
fan#1 (rpm)        | 8000
"""


def test_a_switch_table_is_read():
    transcript = read(SWITCH)
    assert transcript.outcome is Outcome.READ
    assert values(transcript.runs[0], "psu_power", psu="0")[0].to("W") == 70  # type: ignore[union-attr]
    assert not transcript.runs[0].notices


def test_a_switch_fault_is_not_an_empty_cell():
    faulty = only_run(SWITCH.replace("fan status         | OK", "fan status         | ERROR"))
    assert (values(faulty, "fan_status"), codes(faulty)) == (["ERROR"], {"switch-fault": Weight.WARNING})
    empty = only_run(SWITCH.replace("| 8000", "|").replace("| 70", "| foo"))
    assert codes(empty) == {"no-data": Weight.WARNING}
    assert isinstance(values(empty, "fan_speed_rpm")[0], NoValue)
    assert isinstance(values(empty, "psu_power")[0], NoValue)
    gone = only_run(SWITCH.replace("fan status         | OK\n", ""))
    assert "row of fan status" in gone.missing


def test_short_listings_are_read():
    nodes = only_run(
        'Ca\t: 0x0c42a10300a1b2c0 ports 1 "node-a mlx5_0"\nSwitch\t: 0xfc6a1c0300000010 ports 65 "leaf-01" base\n'
    )
    assert (nodes.condition("adapters"), nodes.condition("switches")) == (1, 1)
    devices = only_run(
        "    device          \t   node GUID\n    ------          \t--------\n    mlx5_0          \t0c42a10300a1b2c0\n"
    )
    assert values(devices, "node_guid", device="mlx5_0") == ["0x0c42a10300a1b2c0"]
    port = only_run(
        "# Port info: Lid 2 port 7\nLinkState:.......................Active\nPhysLinkState:...................LinkUp\n"
        "LinkWidthActive:.................4X\nLinkSpeedActive:.................10.0 Gbps\n"
        "LinkSpeedExtActive:..............106.25 Gbps\n"
    )
    assert (values(port, "port_state", device="lid 2", port="7"), gbps(port)) == (["Active"], [400])


def test_gathered_guids_belong_to_their_hosts():
    run = only_run("VM_hostname vm-1\n0c42a10300a1b2c0\nVM_hostname vm-2\n0c42a10300a1b3c0\n")
    assert values(run, "port_guid", node="vm-2") == ["0x0c42a10300a1b3c0"]


def test_several_tools_in_one_output_are_several_runs():
    runs = read(IBSTAT + "$ ibdev2netdev\nmlx5_0 port 1 ==> ibs1 (Down)\n").runs
    assert [run.tool for run in runs] == ["ibstat", "ibdev2netdev"]


def test_states_of_sysfs_are_read():
    base = "/sys/class/infiniband/mlx5_0/ports/1/"
    run = only_run(
        f"{base}state: 4: ACTIVE\n{base}phys_state: 5: LinkUp\n"
        f"{base}rate: 400 Gb/sec (4X NDR)\n{base}link_layer: InfiniBand\n"
    )
    assert (values(run, "port_state"), gbps(run)) == (["Active"], [400])


def test_a_device_that_the_tool_could_not_open_makes_the_listing_incomplete():
    text = IBSTAT + "ibpanic: [71] main: stat of IB device 'mlx5_9' failed: No such file or directory\n"
    run = read(text).runs[0]
    assert not run.complete
    assert any("mlx5_9" in n.message and n.weight is Weight.ERROR for n in run.notices if n.code == "tool-error")


def test_an_ellipsis_in_a_listing_is_a_lack():
    assert only_run(IBSTAT).complete
    assert not only_run(IBSTAT + "...\n").complete


def test_a_port_of_ibv_devinfo_is_read_without_the_adapter_above_it():
    run = only_run("\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n\t\t\tlink_layer:\t\tInfiniBand\n")
    assert values(run, "port_state", port="1") == ["Down"]
    assert codes(run)["port-down"] is Weight.ERROR
    assert not run.complete


MODULE = """Operational Info
----------------
State                              : Active
Physical state                     : LinkUp

Module Info
-----------
Temperature [C]                    : 51 [-10..80]
Bias Current [mA]                  : 9.1,11.6 [7..11]
Rx Power Current [dBm]             : -6.1,2.0 [-5.0..4.0]
Module State                       : Low Power state
Tx Fault [per lane]                : 0,0
Rx LOS [per lane]                  : 1,0
Rx CDR LOL [per lane]              : 0,1
"""


def test_the_module_is_held_against_its_own_limits_lane_by_lane():
    run = only_run(MODULE)
    assert values(run, "module_bias_ma", lane="2") == [11.6]
    assert values(run, "module_rx_los", lane="1") == [1.0]
    said = {(n.message, n.weight) for n in run.notices}
    assert ("Bias Current [mA]: 11.6 on lane 2; allowed 7 to 11", Weight.WARNING) in said
    assert ("Rx Power Current [dBm]: -6.1 on lane 1; allowed -5.0 to 4.0", Weight.WARNING) in said
    assert ("Rx LOS on lane 1", Weight.ERROR) in said
    assert ("Rx CDR LOL on lane 2", Weight.WARNING) in said
    assert ("the module is in Low Power state", Weight.ERROR) in said


def test_the_json_of_mlxlink_says_what_its_text_says():
    text = (
        '# mlxlink -d mlx5_3 -p 1 --json\n{"result": {"output": {"Operational Info": {"State": "Active",'
        ' "Physical state": "LinkUp", "Speed": "IB-NDR", "Width": "4x", "FEC": "Standard RS-FEC"}}}}\n'
    )
    run = only_run(text)
    assert gbps(run, device="mlx5_3") == [400]
    assert run.condition("fec") == "Standard RS-FEC"


def test_names_of_nodes_are_read_without_quotes_and_blanks():
    run = only_run(
        "SW   7  1 0x00000000000000ab 4x NDR                     ' spine 1 '\nSW 8 2 0xac 4x SDR  leaf of old\n"
    )
    assert [dict(o.subject)["name"] for o in run.observations if o.name == "node_kind"] == ["spine 1", "leaf of old"]
