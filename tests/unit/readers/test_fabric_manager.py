"""The log of Fabric Manager, its lines in the journal, and what stops it."""

from __future__ import annotations

from pathlib import Path

from builders.corpus import found, values
from clusterwright.model.observations import Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FIXTURE = Path(__file__).parents[2] / "fixtures" / "readers" / "fabric-manager-log" / "fm.log"


def only(text: str) -> Run:
    transcript = read_output([text.encode()], kind="fabric-manager-log")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_errors_of_switches_are_counted_per_port_and_information_is_passed_over():
    transcript = read_output([FIXTURE.read_bytes()])
    assert transcript.kind == "fabric-manager-log"
    (run,) = transcript.runs
    assert values(run, "sxid") == [20034.0, 12028.0]
    assert values(run, "sxid_severity", port="30") == ["fatal"]
    assert values(run, "sxid_count", port="31") == [2.0]
    assert dict(found(run, "sxid")[0].subject)["pci"] == "0000:c3:00.0"
    assert run.condition("fabric_manager") == "570.86.15"
    assert values(run, "fabric_state") == ["configured"]
    assert run.condition("records") == 6.0
    weights = {notice.weight for notice in run.notices if notice.code == "nvswitch-error"}
    assert weights == {Weight.ERROR, Weight.WARNING}


def test_versions_that_differ_only_behind_the_branch_stop_the_fabric():
    run = only(
        "nv-fabricmanager[77]: fabric manager NVIDIA GPU driver interface version 550.54.14 don\u2019t match "
        "with driver version 550.54.15. Please update with matching NVIDIA driver package.\n"
    )
    assert (run.condition("fabric_manager"), run.condition("driver")) == ("550.54.14", "550.54.15")
    assert values(run, "fabric_state") == ["failed"]
    assert codes(run) == {"fabric-manager-mismatch"}


def test_a_mismatch_that_is_cut_is_still_one_and_the_line_is_rejected():
    run = only(
        "Mar  1 10:00:00 n1 nv-fabricmanager[7]: fabric manager NVIDIA GPU driver interface version 550.54.14 don'"
    )
    assert "fabric-manager-mismatch" in codes(run)
    assert run.condition("driver") is None
    assert run.rejected == 1


def test_error_802_means_that_a_list_of_gpus_is_no_proof():
    run = only(
        "RuntimeError: CUDA error. Error 802: system not yet initialized\n"
        "Mar  1 10:00:00 n1 systemd[1]: Starting NVIDIA fabric manager service...\n"
    )
    assert "cuda-not-ready" in codes(run)
    assert run.condition("node") == "n1"
    assert run.missing == ("whether the start succeeded",)


def test_a_service_that_failed_is_failed():
    run = only("Mar  1 10:00:00 n1 systemd[1]: Failed to start NVIDIA fabric manager service.\n")
    assert values(run, "fabric_state") == ["failed"]


def test_ports_of_switches_are_not_adapters():
    run = only("2026/03/01 10:00:00 nvidia-fabricmanager-wrapper: found NVSwitch LPF: device=mlx5_4 guid=0xabc0\n")
    assert values(run, "nvswitch_port_device", guid="0xabc0") == ["mlx5_4"]
    assert "nvswitch-devices" in codes(run)


def test_an_error_record_that_is_not_known_is_still_said():
    run = only("[Mar 01 2026 12:00:00] [ERROR] [tid 9] something new went wrong on port 7\n")
    assert any(n.code == "fabric-error" and n.weight is Weight.ERROR for n in run.notices)


def test_text_of_something_else_is_refused():
    assert read_output([b"hello\n"], kind="fabric-manager-log").outcome is Outcome.REFUSED


def test_the_status_of_a_failed_service_is_read():
    run = only(
        "× nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
        "     Active: failed (Result: exit-code) since Sun 2026-03-01 10:00:00 UTC; 2 days ago\n"
    )
    assert values(run, "fabric_state") == ["failed"]


def test_a_start_script_that_ends_with_an_exit_code_failed():
    head = "Mar 02 08:00:00 gpu-005 "
    text = (
        f'{head}nvidia-fabricmanager-start.sh[77]: "/usr/bin/nv-fabricmanager -c /x/fabricmanager.cfg" failed! '
        "Exit code: 1\n"
        f"{head}systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE\n"
    )
    run = only(text)
    assert values(run, "fabric_state") == ["failed"]
    assert run.condition("node") == "gpu-005"


def test_a_log_that_says_nothing_of_the_fabric_is_no_proof_of_one():
    run = only("[Mar 02 2026 08:00:00] [INFO] [tid 9] multicast group 3 is allocated.\n")
    assert run.missing == ("whether the fabric was set up: no line says it",)


def test_ports_of_switches_are_named_without_a_guid_too():
    head = "2026/03/02 08:00:00 nvidia-fabricmanager-wrapper: infiniband: found NVSwitch LPF device: "
    run = only(f"{head}mlx5_4\n{head}mlx5_5\n")
    assert values(run, "nvswitch_port_device") == ["mlx5_4", "mlx5_5"]
    assert "nvswitch-devices" in codes(run)


def test_logs_of_several_nodes_are_runs_and_the_last_state_counts():
    unit = "nvidia-fabricmanager.service - NVIDIA fabric manager service"
    text = (
        f"Mar 02 08:00:00 gpu-001 systemd[1]: Failed to start {unit}.\n"
        f"Mar 02 08:01:00 gpu-001 systemd[1]: Started {unit}.\n"
        "Mar 02 08:01:00 gpu-002 nv-fabricmanager[9]: Successfully configured all the available NVSwitches to route.\n"
        f"Mar 02 08:01:01 gpu-002 systemd[1]: Started {unit}.\n"
        "Mar 02 08:01:00 gpu-003 nv-fabricmanager[9]: Successfully configured all the available NVSwitches to route.\n"
        f"Mar 02 09:00:00 gpu-003 systemd[1]: Stopped {unit}.\n"
        f"Mar 02 09:00:00 gpu-004 systemd[1]: Starting {unit}...\n"
    )
    runs = read_output([text.encode()]).runs
    states = {run.condition("node"): values(run, "fabric_state") for run in runs}
    assert states == {"gpu-001": ["started"], "gpu-002": ["configured"], "gpu-003": ["stopped"], "gpu-004": []}
    assert "failed-before" in codes(runs[0])
    assert runs[3].missing == ("whether the start succeeded",)
