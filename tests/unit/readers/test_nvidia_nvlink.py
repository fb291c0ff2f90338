from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.model.observations import NoValue, Outcome, Run, Weight
from clusterwright.readers.nvidia.nvlink_findings import full_links
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "nvidia-smi-nvlink"
STATUS = (FOLDER / "status.txt").read_text()
ERRORS = (FOLDER / "errors-capabilities.txt").read_text()


def read(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.kind == "nvidia-smi-nvlink"
    (run,) = transcript.runs
    return run


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def test_an_inactive_link_has_no_rate_and_is_an_error_where_the_full_number_is_known():
    run = read(STATUS)
    assert run.complete
    assert values(run, "nvlink_state", gpu="1", link="2") == ["inactive"]
    assert isinstance(values(run, "nvlink_rate", gpu="1", link="2")[0], NoValue)
    assert [str(v) for v in values(run, "nvlink_rate", gpu="0", link="5")] == ["25.781 GB/s"]
    assert values(run, "nvlinks_active") == [6.0, 5.0]
    assert codes(run) == {"nvlink-links-down": Weight.ERROR, "nvlink-unequal": Weight.ERROR}


def test_all_links_of_a_known_product_are_said_to_be_full():
    run = read(STATUS.replace("<inactive>", "25.781 GB/s"))
    assert codes(run) == {"nvlink-full": Weight.INFO}


def test_on_a_card_with_bridges_an_inactive_link_needs_the_platform():
    run = read(STATUS.replace("Tesla V100-SXM2-32GB", "NVIDIA A40"))
    assert codes(run)["nvlink-inactive"] is Weight.WARNING
    assert "nvlink-links-down" not in codes(run)


def test_a_list_of_links_that_stops_early_is_incomplete_and_not_compared():
    run = read("\n".join(STATUS.splitlines()[:10]))
    assert run.missing == ("links of GPU 1 (2 of 6 listed)",)
    assert "nvlink-unequal" not in codes(run)
    assert "nvlink-links-down" not in codes(run)


def test_gpus_left_out_at_an_ellipsis_are_named():
    run = read(STATUS.replace("GPU 1:", "...\nGPU 4:"))
    assert "GPU 1 to 3" in run.missing


def test_each_typed_command_is_a_run():
    errors, capabilities, remote = read_output([ERRORS.encode()]).runs
    assert values(errors, "nvlink_crc_errors") == [7.0]
    assert values(errors, "nvlink_replay_errors") == [0.0]
    assert codes(errors) == {"nvlink-errors": Weight.WARNING}
    assert values(capabilities, "nvlink_p2p_is_supported") == [True]
    assert values(remote, "nvlink_remote") == ["0000:d5:00.0"]
    assert values(remote, "nvlink_remote_link") == [3.0]


def test_the_same_gpu_again_begins_another_run_without_a_typed_command():
    assert len(read_output([(STATUS + STATUS).encode()]).runs) == 2


def test_counters_of_generation_five_are_errors_but_corrected_codewords_are_not():
    text = (
        "GPU 0: NVIDIA B200 (UUID: GPU-1)\n\t Link 0: Rx Errors: 3\n\t Link 0: FEC Errors - 0: 99\n"
        "\t Link 0: Effective BER: 15e-255\n\t Link 0: Symbol Errors: N/A\n"
    )
    run = read(text)
    assert [n.message for n in run.notices] == ["GPU 0 link 0: Rx Errors 3"]
    assert values(run, "nvlink_effective_ber") == ["15e-255"]
    assert isinstance(values(run, "nvlink_symbol_errors")[0], NoValue)


def test_mig_mode_leaves_the_links_unknown():
    run = read("GPU 0: NVIDIA H100 (UUID: GPU-1)\nNvlink queries are not supported for Devices in MIG mode\n")
    assert isinstance(values(run, "nvlink_state")[0], NoValue)
    assert codes(run) == {"nvlink-unknown-in-mig": Weight.INFO}


def test_links_that_are_all_inactive_are_said_once_for_the_gpu():
    run = read(
        "GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-1)\n"
        "\t NVML: Unable to retrieve NVLink information as all links are inActive\n"
    )
    assert values(run, "nvlink_state") == ["inactive"]
    assert codes(run) == {"nvlink-all-inactive": Weight.WARNING}


def test_a_link_line_that_is_cut_is_rejected():
    run = read(STATUS.rstrip()[: -len("GB/s") - 1])
    assert run.rejected == 1
    assert isinstance(values(run, "nvlink_rate", gpu="1", link="5")[0], NoValue)


@pytest.mark.parametrize(
    ("product", "links"),
    [("NVIDIA A100-SXM4-80GB", 12), ("NVIDIA H100 80GB HBM3", 18), ("NVIDIA H800", 8), ("NVIDIA GB200", 18),
     ("NVIDIA H100 PCIe", None), ("NVIDIA A100 80GB PCIe", None), ("NVIDIA L40S", None), ("NVIDIA H200 NVL", None)],
)  # fmt: skip
def test_the_full_number_of_links_is_known_only_without_bridges(product, links):
    assert full_links(product) == links


def test_without_any_link_it_is_refused():
    assert read_output([b"hello\n"], kind="nvidia-smi-nvlink").outcome is Outcome.REFUSED
    assert not found(read("GPU 0: X (UUID: GPU-1)\n\t NVLE: disabled\n"), "nvlink_state")


def test_gpus_without_a_uuid_are_read_when_links_stand_below():
    run = read("$ nvidia-smi nvlink -e\nGPU 0: NVIDIA X\n\t Link 0: Replay Errors: 7\n\t Link 0: CRC Errors: 65535\n")
    assert values(run, "nvlink_replay_errors", gpu="0", link="0") == [7.0]
    assert "at least as many" in next(n.message for n in run.notices if "CRC" in n.message)


def test_a_uuid_that_somebody_cut_is_none():
    run = read("GPU 0: NVIDIA X (UUID: GPU-5cb1...)\n\t Link 0: 14.062 GB/s\n\t Link 1: 14.062 GB/s\n")
    assert dict(found(run, "gpu")[0].subject) == {"gpu": "0"}
    assert values(run, "nvlinks_active", gpu="0") == [2.0]


def test_links_of_a_gpu_that_is_not_named_are_rejected_not_lost():
    text = "GPU 0: NVIDIA X (UUID: GPU-1)\n\t Link 0: 14.062 GB/s\n$ nvidia-smi nvlink -e\n\t Link 0: CRC Errors: 3\n"
    transcript = read_output([text.encode()])
    assert [run.rejected for run in transcript.runs] == [0, 1]
