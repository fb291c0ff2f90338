from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "nvidia-smi-q"
TWO = (FOLDER / "two-gpus-535.txt").read_text()
VOLTA = (FOLDER / "volta-ecc-418.txt").read_text()
MIG = (FOLDER / "mig.xml").read_text()


def read(text: str | bytes) -> Run:
    transcript = read_output([text if isinstance(text, bytes) else text.encode()])
    assert transcript.kind == "nvidia-smi-q"
    (run,) = transcript.runs
    return run


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def amounts(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [v.to(unit) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def test_each_gpu_has_its_values_under_index_uuid_and_pci():
    run = read(TWO)
    assert run.complete
    assert values(run, "gpu") == ["NVIDIA H100 80GB HBM3"] * 2
    assert dict(found(run, "gpu")[1].subject) == {
        "gpu": "1", "uuid": "GPU-11111111-2222-3333-4444-555555555502", "pci": "0000:43:00.0",
    }  # fmt: skip
    assert amounts(run, "memory_used", "MiB") == [40321, 0]
    assert amounts(run, "power", "W") == [612.5, 70.11]
    assert amounts(run, "clock", "MHz", domain="sm") == [1125, 345]
    assert values(run, "pcie_width") == [8.0, 16.0]
    assert run.condition("started") == "2024-03-04T07:08:09"
    assert run.condition("driver") == "535.161.08"


def test_every_fault_is_said_with_the_gpu_that_has_it():
    said = {(n.code, n.message.split(":")[0].split(" (")[0]) for n in read(TWO).notices}
    assert {
        ("remap-pending", "GPU 0"), ("remap-failure", "GPU 1"), ("ecc-uncorrected", "GPU 0"), ("throttled", "GPU 0"),
        ("thermal-margin", "GPU 0"), ("pcie-narrow", "GPU 0"), ("fabric-not-ready", "GPU 0"),
    } <= said  # fmt: skip
    assert ("remap-pending", "GPU 1") not in said


def test_an_error_in_a_cell_is_unreadable_and_not_supported_is_absent():
    run = read(TWO)
    (decoder, fine) = values(run, "utilization", part="decoder")
    assert isinstance(decoder, NoValue)
    assert decoder.lack is Lack.UNREADABLE
    assert isinstance(fine, Quantity)
    (encoder, _) = values(run, "utilization", part="encoder")
    assert isinstance(encoder, NoValue)
    assert encoder.lack is Lack.ABSENT


def test_clock_reasons_are_named_and_none_is_said_only_when_all_are_printed():
    run = read(TWO)
    assert values(run, "throttle", gpu="0") == ["hw slowdown", "hw thermal slowdown"]
    assert values(run, "throttle", gpu="1") == ["idle"]
    quiet = read(TWO.replace(": Active", ": Not Active"))
    assert values(quiet, "throttle") == ["none", "none"]


def test_the_old_ecc_layout_gives_scope_location_and_a_total_without_location():
    run = read(VOLTA)
    assert values(run, "ecc_corrected", scope="volatile", location="device memory") == [12.0]
    assert isinstance(values(run, "ecc_corrected", scope="volatile", location="texture memory")[0], NoValue)
    totals = [o for o in found(run, "ecc_uncorrected", scope="aggregate") if "location" not in dict(o.subject)]
    assert [o.value for o in totals] == [3.0]
    assert codes(run)["ecc-uncorrected"] is Weight.WARNING


@pytest.mark.parametrize(("single", "double", "rma"), [(60, 0, True), (0, 60, True), (30, 30, True), (58, 1, False)])
def test_sixty_retired_pages_of_both_causes_together_qualify_for_rma(single, double, rma):
    text = VOLTA.replace("Single Bit ECC              : 8", f"Single Bit ECC              : {single}")
    run = read(text.replace("Double Bit ECC              : 3", f"Double Bit ECC              : {double}"))
    assert ("retired-pages-rma" in codes(run)) is rma


def test_xml_with_its_document_type_counts_mig_memory_once():
    run = read(MIG)
    assert run.complete
    assert run.version == "570.124.06"
    assert values(run, "mig_devices") == [2.0]
    assert values(run, "gpu_instances") == [1.0]
    assert amounts(run, "mig_memory_used", "MiB") == [7020]
    assert amounts(run, "memory_used", "MiB") == [7062]
    assert values(run, "ecc_uncorrected", mig="1") == [2.0]
    assert amounts(run, "power", "W", window="instant") == [171.5]
    assert values(run, "throttle") == ["sw power cap"]


def test_xml_with_an_entity_or_cut_in_the_middle_is_refused():
    bomb = MIG.replace('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', '<!DOCTYPE a [<!ENTITY b "cc">]>')
    assert read_output([bomb.encode()]).outcome is Outcome.REFUSED
    cut = read_output([MIG[:1500].encode()])
    assert cut.refusal is not None
    assert "ends in the middle" in cut.refusal.reason


def test_the_second_of_two_xml_logs_that_is_cut_is_said_to_be_missing():
    transcript = read_output([(MIG + MIG[:800]).encode()])
    assert [bool(run.missing) for run in transcript.runs] == [False, True]


def test_a_log_that_stops_early_is_incomplete_and_loses_its_last_line():
    end = TWO.index("        Uncorrectable Error               : 2") + len(
        "        Uncorrectable Error               : 2"
    )
    run = read(TWO[:end])
    assert any("attached" in part for part in run.missing)
    assert any("end of the section" in part for part in run.missing)
    assert run.rejected == 1
    assert not found(run, "remapped_rows", cause="uncorrectable")


def test_a_subset_of_sections_is_complete_without_product_names():
    run = read(VOLTA)
    assert run.complete
    (name,) = values(run, "gpu")
    assert isinstance(name, NoValue)


def test_one_selected_gpu_of_several_attached_is_said_where_the_command_stands():
    one = TWO[: TWO.index("GPU 00000000:43:00.0")]
    chosen = read("$ nvidia-smi -q -i 0\n" + one)
    assert chosen.complete
    assert "gpus-selected" in codes(chosen)
    assert "gpu" not in dict(found(chosen, "gpu")[0].subject)
    unknown = read(one)
    assert unknown.missing == ("sections of 1 of 2 attached GPUs",)


def test_the_same_gpu_twice_counts_once():
    section = VOLTA[VOLTA.index("GPU 0000") :]
    run = read(VOLTA + section)
    assert len(found(run, "gpu")) == 1
    assert codes(run)["gpu-twice"] is Weight.ERROR
    assert codes(run)["more-gpus-than-attached"] is Weight.ERROR


def test_two_logs_are_two_runs_and_hosts_are_told_apart():
    assert len(read_output([(VOLTA + VOLTA).encode()]).runs) == 2
    both = "".join(f"node{n}: {line}\n" for n in (1, 2) for line in VOLTA.splitlines())
    transcript = read_output([both.encode()])
    assert [run.condition("node") for run in transcript.runs] == ["node1", "node2"]
    assert dict(found(transcript.runs[1], "gpu")[0].subject)["node"] == "node2"


def test_carriage_returns_byte_order_mark_and_indentation_change_nothing():
    plain = read(VOLTA).observations
    windows = read(b"\xef\xbb\xbf" + VOLTA.replace("\n", "\r\n").encode())
    assert [(o.name, o.value) for o in windows.observations] == [(o.name, o.value) for o in plain]
    shifted = read("\n".join("   " + line for line in VOLTA.splitlines()))
    assert [(o.name, o.value) for o in shifted.observations] == [(o.name, o.value) for o in plain]


def test_a_remark_on_deprecation_is_no_part_of_the_version():
    text = VOLTA.replace(": 418.87.00", ": 418.87.00 [Deprecated; use KMD Version instead]")
    assert read(text).condition("driver") == "418.87.00"


@pytest.mark.parametrize("state", ["Reset", "Drain and Reset"])
def test_a_recovery_action_is_an_error_and_none_is_an_answer(state):
    ask = TWO.replace("    Fan Speed ", f"    GPU Recovery Action                   : {state}\n    Fan Speed ", 1)
    assert codes(read(ask))["recovery-action"] is Weight.ERROR
    calm = read(ask.replace(f": {state}", ": None"))
    assert values(calm, "recovery_action") == ["None"]
    assert "recovery-action" not in codes(calm)


def test_a_lost_device_between_the_sections_is_an_observation_and_an_error():
    lost = "Unable to determine the device handle for GPU3: 0000:C9:00.0: Unknown Error\n"
    run = read(TWO.replace("GPU 00000000:43:00.0", lost + "GPU 00000000:43:00.0"))
    (device,) = found(run, "lost_device")
    assert dict(device.subject) == {"gpu": "3", "pci": "0000:c9:00.0"}
    assert codes(run)["gpu-lost"] is Weight.ERROR


def test_sections_without_the_heading_of_their_gpu_are_read_as_an_excerpt():
    rows = "    Remapped Rows\n        Correctable Error : 0\n        Uncorrectable Error : 4\n        Pending : {}\n"
    run = read("$ nvidia-smi -q | grep -A3 Remapped\n" + rows.format("No") + "--\n" + rows.format("Yes"))
    assert not run.complete
    assert values(run, "remap_pending", gpu="#2") == [True]
    assert values(run, "remap_pending", gpu="#1") == [False]
    assert [n.message for n in run.notices if n.code == "remap-pending"] == [
        "GPU #2: a row remapping is pending; reset the GPU"
    ]


def test_a_fabric_that_completed_without_success_failed():
    text = "Fabric\n    State : Completed\n    Status : Insufficient Resources\n    CliqueId : 0\n"
    assert codes(read(text))["fabric-failed"] is Weight.ERROR


def test_xml_that_breaks_off_keeps_the_gpus_before():
    whole = MIG[: MIG.rindex("</nvidia_smi_log>")]
    run = read(whole + '\t<gpu id="00000000:5D:00.0">\n\t\t<product_name>NVIDIA A1')
    assert not run.complete
    assert len(values(run, "gpu")) == MIG.count("<gpu id=")


def test_an_excerpt_may_begin_deeper_than_it_goes_on():
    text = "        Current : Enabled\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : 2\n"
    text += "    Remapped Rows\n        Pending : Yes\n"
    assert "remap-pending" in codes(read(text))
