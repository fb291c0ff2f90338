"""Which ports a test of rails takes, how both sides meet, and what it says about rails that were not measured."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from builders.acceptance import planned
from clusterwright.app.accepting import Options, export_acceptance

#: A server writes that it waited on its TCP port and is met by the client of the same port.
IB_WRITE_BW = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -d) device=$2 ;;
    -p) port=$2 ;;
    -i) number=$2 ;;
    esac
    peer=$1
    shift
done
case $peer in
peer)
    if [ ! -e "$MEET/$port" ]; then exit 1; fi
    rm "$MEET/$port"
    ;;
*)
    echo "$device" >"$MEET/$port"
    while [ -e "$MEET/$port" ]; do sleep 0.1; done
    ;;
esac
echo "device $device port ${number:-1}"
"""


def device(root, name, layer="InfiniBand", state="4: ACTIVE", rate="400 Gb/sec (4X NDR)", ports=1):
    for number in range(1, ports + 1):
        folder = root / "class" / "infiniband" / name / "ports" / str(number)
        folder.mkdir(parents=True)
        for file, text in (("link_layer", layer), ("state", state), ("rate", rate)):
            (folder / file).write_text(f"{text}\n", encoding="utf-8")


@pytest.fixture
def export(tmp_path):
    root = tmp_path / "export"
    files = export_acceptance(planned(), "shell", Options())
    files["bin/ib_write_bw"] = IB_WRITE_BW
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "bin" / "ib_write_bw").chmod(0o755)
    (tmp_path / "meet").mkdir()
    return root


def both(export, tmp_path, **environment):
    """(record of the client, record of the server, directory of the client)."""
    path = f"{export}/bin:{os.environ['PATH']}"
    common = {"PATH": path, "MEET": str(tmp_path / "meet"), "CW_UNIT": "a+b", "CW_RAIL_IDLE": "4", "CW_RAIL_WAIT": "15"}
    started = [
        subprocess.Popen(
            ["sh", str(export / "tests" / "rdma-write.sh")], stderr=subprocess.DEVNULL,
            env=common | environment | {"CW_ROLE": role, "CW_PEER": "peer", "CW_SYSFS": str(tmp_path / role)},
        )
        for role in ("server", "client")
    ]  # fmt: skip
    for process in started:
        process.wait(60)
    folder = export / "results" / "rdma-write"
    client, server = folder / "a+b", folder / "a+b.server"
    return json.loads((client / "run.json").read_text()), json.loads((server / "run.json").read_text()), client


def test_the_script_knows_the_declared_layer_rate_and_ports(export):
    assert "\ncw_rails rail InfiniBand 400 8\n" in (export / "tests" / "rdma-write.sh").read_text("utf-8")


def test_every_rail_of_the_compute_network_is_measured_and_no_other(export, tmp_path):
    for side in ("client", "server"):
        device(tmp_path / side, "mlx5_9", layer="Ethernet", rate="200 Gb/sec (4X HDR)")
        for number in (10, 0, 1, 2, 3, 4, 5, 6):
            device(tmp_path / side, f"mlx5_{number}")
    client, server, folder = both(export, tmp_path)
    names = [f"mlx5_{n}" for n in (0, 1, 2, 3, 4, 5, 6, 10)]
    assert client["rails"] == " ".join(f"{n}=measured" for n in names)
    assert client["files"].split() == [f"rail-{n}.txt" for n in names]
    assert (client["exit_code"], client["rails_expected"], server["exit_code"]) == (0, 8, 0)
    assert all((folder / f"rail-{n}.txt").read_text("utf-8") == f"device {n} port 1\n" for n in names)


def test_a_rail_that_is_down_on_one_side_moves_no_other_and_is_said(export, tmp_path):
    for side, down in (("client", 1), ("server", 2)):
        for number in range(8):
            state = "1: DOWN" if number == down else "4: ACTIVE"
            device(
                tmp_path / side, f"mlx5_{number}", state=state, rate="10 Gb/sec (4X SDR)" if number == down else "400"
            )
    client, _, folder = both(export, tmp_path)
    said = dict(r.split("=") for r in client["rails"].split())
    assert (said["mlx5_1"], said["mlx5_2"]) == ("not-active", "failed")
    assert [n for n, s in said.items() if s == "measured"] == [f"mlx5_{n}" for n in (0, 3, 4, 5, 6, 7)]
    assert all(f"device mlx5_{n} " in (folder / f"rail-mlx5_{n}.txt").read_text("utf-8") for n in (0, 3, 7))
    assert client["exit_code"] != 0, "a run without all rails gives no pass"


def test_fewer_rails_than_declared_are_no_success(export, tmp_path):
    for side in ("client", "server"):
        device(tmp_path / side, "mlx5_0")
    client, _, folder = both(export, tmp_path)
    assert (client["rails"], client["rails_expected"], client["exit_code"]) == ("mlx5_0=measured", 8, 3)
    assert "8 rails are declared" in (folder / "stderr.txt").read_text("utf-8")


def test_named_devices_are_the_rails_and_each_counts_once(export, tmp_path):
    for side in ("client", "server"):
        for number in range(12):
            device(tmp_path / side, f"mlx5_{number}")
    client, _, _ = both(export, tmp_path)
    assert client["lacking"].startswith("not configured: 12 RDMA ports")
    for folder in (export / "results" / "rdma-write").iterdir():
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    client, _, _ = both(export, tmp_path, CW_RAILS="mlx5_4 mlx5_4 mlx5_99")
    assert client["rails"] == "mlx5_4=measured mlx5_99=not-active"
    assert client["exit_code"] == 3


def test_both_ports_of_a_device_are_two_rails(export, tmp_path):
    for side in ("client", "server"):
        for number in range(4):
            device(tmp_path / side, f"mlx5_{number}", ports=2)
    client, _, folder = both(export, tmp_path)
    assert client["exit_code"] == 0
    assert len(client["rails"].split()) == 8
    assert (folder / "rail-mlx5_3-port-2.txt").read_text("utf-8") == "device mlx5_3 port 2\n"
