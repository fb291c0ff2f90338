"""dcgmi health, discovery, nvlink, dmon and logs of health checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"


def fixture(kind: str, name: str) -> Transcript:
    transcript = read_output([(FIXTURES / kind / name).read_bytes()])
    assert transcript.kind == kind
    return transcript


def only(transcript: Transcript) -> Run:
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_the_health_tree_gives_every_entity_and_system():
    run = only(fixture("dcgm-health", "check.txt"))
    assert run.complete
    assert values(run, "health", scope="overall") == ["failure"]
    assert values(run, "health", gpu="2", system="pcie") == ["warning"]
    assert values(run, "health", gpu="5", system="memory") == ["failure"]
    (message,) = values(run, "health_message", gpu="2")
    assert message.startswith("Detected more than 8 PCIe replays per minute for GPU 2")


def test_the_health_json_says_the_same():
    run = only(fixture("dcgm-health", "check.json"))
    assert values(run, "health", scope="overall") == ["warning"]
    assert values(run, "health", gpu="4", system="thermal") == ["warning"]
    assert values(run, "health_message", gpu="4") == ["Detected clocks event due to thermal violation in GPU 4."]


def test_the_health_tree_of_dcgm_1_has_rows_of_gpus():
    text = (
        "Health Monitor Report\n"
        "+------------------+---------------------------------------------------------+\n"
        "| Overall Health:   Warning                                                  |\n"
        "+==================+=========================================================+\n"
        "| GPU ID: 0        | Warning                                                 |\n"
        "|                  | PCIe system: Warning - Detected more than 8 PCIe        |\n"
        "|                  | replays per minute for GPU 0: 13                        |\n"
        "+------------------+---------------------------------------------------------+\n"
    )
    run = only(read_output([text.encode()]))
    assert values(run, "health", scope="overall") == ["warning"]
    assert values(run, "health", gpu="0", system="pcie") == ["warning"]
    assert values(run, "health_message") == ["Detected more than 8 PCIe replays per minute for GPU 0: 13"]


def test_a_health_tree_that_is_cut_is_incomplete():
    text = (FIXTURES / "dcgm-health" / "check.txt").read_text()
    run = only(read_output([text[: text.index("| -> 5")].encode()]))
    assert run.missing == ("the end of the report",)


def test_watches_that_are_not_enabled_are_no_health():
    transcript = read_output([b"Error: Health watches not enabled. Please enable watches. \n"])
    assert transcript.outcome is Outcome.REFUSED
    assert "nothing was checked" in str(transcript.refusal)


def test_watches_that_are_off_are_named():
    text = (
        "Health monitor systems report\n"
        "+-----------------+----------------------------------------------------+\n"
        "| PCIe            | On                                                 |\n"
        "| NVLINK          | Off                                                |\n"
        "+-----------------+----------------------------------------------------+\n"
    )
    run = only(read_output([text.encode()]))
    assert values(run, "health_watch") == [True, False]
    assert "watches-off" in codes(run)


def test_health_lines_of_the_host_engine_are_counted():
    line = "2026-03-01 10:00:00.123 ERROR [77:78] [[Health]] Detected a WARNING in health system PCIe: "
    line += "'replays in GPU 6.'\n"
    run = only(read_output([(line * 3).encode()]))
    assert values(run, "health", gpu="6", system="pcie") == ["warning"]
    assert values(run, "health_events", gpu="6") == [3.0]
    assert run.condition("started") == "2026-03-01 10:00:00.123"


def test_discovery_lists_gpus_with_one_form_of_the_address():
    run = only(fixture("dcgm-discovery", "two-gpus.txt"))
    assert run.complete
    assert values(run, "gpu") == ["NVIDIA H100 80GB HBM3"] * 2
    assert [dict(o.subject)["pci"] for o in found(run, "gpu")] == ["0000:1b:00.0", "0000:43:00.0"]
    assert values(run, "entities_found", kind="nvswitch") == [1.0]
    assert run.condition("attached_gpus") == 2.0


def test_fewer_gpus_listed_than_found_are_missing():
    text = (FIXTURES / "dcgm-discovery" / "two-gpus.txt").read_text()
    run = only(read_output([text[: text.index("| 1 ")].encode()]))
    assert "1 of 2 GPUs" in run.missing


def test_no_gpu_found_is_an_error():
    text = "0 GPUs found.\n+--------+---+\n| GPU ID | Device Information |\n+--------+---+\n+--------+---+\n"
    run = only(read_output([text.encode()]))
    assert run.condition("attached_gpus") == 0.0
    assert "no-gpu" in codes(run)


def test_link_states_are_read_per_gpu_and_switch():
    run = only(fixture("dcgm-nvlink", "status.txt"))
    assert run.complete
    assert values(run, "nvlink_state", gpu="1", link="1") == ["down"]
    assert values(run, "nvlink_state", gpu="1", link="4") == ["inactive"]
    (absent,) = values(run, "nvlink_state", gpu="0", link="7")
    assert isinstance(absent, NoValue)
    assert values(run, "nvlink_state", nvswitch="4", link="4") == ["down"]
    assert {"nvlink-down", "nvlink-inactive"} <= codes(run)


def test_link_errors_keep_zero_and_blank_apart():
    run = only(fixture("dcgm-nvlink", "errors.txt"))
    assert values(run, "nvlink_errors", gpu="3", error="crc flit") == [0.0]
    assert values(run, "nvlink_errors", gpu="3", error="crc data") == [7.0]
    (blank,) = values(run, "nvlink_errors", gpu="3", error="replay")
    assert isinstance(blank, NoValue)
    assert blank.lack is Lack.ABSENT


def test_dmon_reads_cells_by_heading_with_the_printed_unit():
    run = only(fixture("dcgm-dmon", "two-gpus.txt"))
    assert [str(v) for v in values(run, "power", gpu="0")] == ["612.5 W", "615 W"]
    assert [str(v) for v in values(run, "gputl", gpu="1", sample="2")] == ["2%"]
    assert all(isinstance(v, NoValue) for v in values(run, "mmtmp", gpu="1"))
    assert values(run, "xider", gpu="1") == [79.0, 79.0]
    assert run.condition("samples") == 2.0


def test_a_row_of_dmon_with_too_few_cells_is_rejected():
    text = (FIXTURES / "dcgm-dmon" / "two-gpus.txt").read_text() + "GPU 0     88            61"
    assert only(read_output([text.encode()])).rejected == 1


def test_a_heading_of_dmon_without_a_sample_is_refused():
    assert read_output([b"#Entity   GPUTL\nID        %\n"]).outcome is Outcome.REFUSED


def test_a_check_that_crashed_is_not_a_failure_of_hardware():
    run = only(fixture("health-check-log", "active.log"))
    assert values(run, "check", check="NCCL") == ["pass"]
    assert values(run, "check", check="GPU Fryer") == ["fail"]
    (crashed,) = values(run, "check", check="GPU SDC")
    assert isinstance(crashed, NoValue)
    assert str(values(run, "average_busbw")[0]) == "471.25 GB/s"
    assert {"check-crashed", "check-failed"} == codes(run)


@pytest.mark.parametrize("kind", ["dcgm-health", "dcgm-discovery", "dcgm-nvlink", "dcgm-dmon", "health-check-log"])
def test_text_of_something_else_is_refused(kind):
    assert read_output([b"nothing of the kind\n"], kind=kind).outcome is Outcome.REFUSED


def test_a_hierarchy_lists_gpus_and_their_instances():
    run = only(fixture("dcgm-hierarchy", "mig.txt"))
    assert run.complete
    assert run.condition("attached_gpus") == 2.0
    assert values(run, "mig_instance", gpu="0", instance="1") == [
        "GPU Instance (EntityID: 0)", "Compute Instance (EntityID: 0)",
    ]  # fmt: skip


def test_a_border_below_every_gpu_does_not_end_the_health_tree_of_dcgm_1():
    text = (
        "Health Monitor Report\n"
        "+----------------------------------------------------------------------------+\n"
        "| Group 3         | Overall Health: Warning                                  |\n"
        "+============+===============================================================+\n"
        "| GPU ID: 0  | Warning                                                       |\n"
        "|            | PCIe system: Warning - Detected more than 8 PCIe replays per  |\n"
        "|            | minute for GPU 0: 21                                          |\n"
        "+------------+---------------------------------------------------------------+\n"
        "| GPU ID: 4  | Warning                                                       |\n"
        "|            | InfoROM system: Warning - A corrupt InfoROM has been detected |\n"
        "|            | in GPU 4.                                                     |\n"
        "+------------+---------------------------------------------------------------+\n"
    )
    run = only(read_output([text.encode()]))
    assert values(run, "health", scope="overall") == ["warning"]
    assert values(run, "health", gpu="0", system="pcie") == ["warning"]
    assert values(run, "health", gpu="4", system="inforom") == ["warning"]


def test_gpus_that_dcgm_cannot_name_are_absent_names_and_still_counted():
    row = "| {0} | Name: <<<NULL>>> |\n| | PCI Bus ID: 00000000:{0}C:00.0 |\n| | Device UUID: GPU-aa{0} |\n"
    head = "| GPU ID | Device Information |\n+--------+-----+\n"
    text = "2 GPUs found (Active).\n+--------+-----+\n" + head + row.format(0) + row.format(1) + "+--------+-----+\n"
    run = only(read_output(["\n".join(f"  {line}" for line in text.splitlines()).encode()]))
    assert run.condition("attached_gpus") == 2.0
    assert all(isinstance(value, NoValue) for value in values(run, "gpu"))
    assert [dict(o.subject)["pci"] for o in found(run, "gpu")] == ["0000:0c:00.0", "0000:1c:00.0"]
    assert "no-name" in codes(run)


def test_an_ellipsis_in_a_list_of_gpus_is_said():
    text = (FIXTURES / "dcgm-discovery" / "two-gpus.txt").read_text()
    run = only(read_output([text.replace("| 1 ", "...\n| 1 ", 1).encode()]))
    assert any("ellipsis" in lack for lack in run.missing)
