from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "nvidia-smi-table"
TWO = (FOLDER / "two-gpus-525.txt").read_text()
ERROR = (FOLDER / "error-470.txt").read_text()
MIG = """\
+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
+------------------+----------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |
|      ID  ID  Dev |           BAR1-Usage | SM     Unc| CE  ENC  DEC  OFA  JPG|
|                  |                      |        ECC|                       |
|==================+======================+===========+=======================|
|  0    1   0   0  |     11MiB / 20096MiB | 42      0 |  3   0    2    0    0 |
|                  |      0MiB / 32767MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+
|  0    1   1   1  |     11MiB / 20096MiB | 14      1 |  3   0    2    0    0 |
|                  |      0MiB / 32767MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+

"""


def read(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.kind == "nvidia-smi-table"
    (run,) = transcript.runs
    return run


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def test_every_cell_is_read_under_its_heading():
    run = read(TWO)
    assert run.complete
    assert (run.version, run.condition("cuda")) == ("525.60.13", "12.0")
    assert values(run, "persistence_mode") == [True, True]
    assert values(run, "compute_mode") == ["Default", "E. Process"]
    assert [str(v) for v in values(run, "memory_used")] == ["39010 MiB", "2 MiB"]
    assert [str(v) for v in values(run, "power_limit")] == ["400 W", "400 W"]
    assert values(run, "mig_mode") == [False, False]
    assert dict(found(run, "process_memory")[0].subject)["process"] == "python"


def test_ecc_off_is_no_count():
    run = read(TWO)
    first, second = values(run, "ecc_uncorrected")
    assert first == 3.0
    assert isinstance(second, NoValue)
    assert values(run, "ecc_mode") == [False]
    assert codes(run)["ecc-uncorrected"] is Weight.ERROR
    assert codes(run)["ecc-disabled"] is Weight.WARNING


def test_errors_in_cells_are_unreadable_and_a_lost_device_is_named():
    run = read(ERROR)
    shown = [o.value for o in run.observations if o.name in ("temperature", "power", "gpu", "utilization", "mig_mode")]
    assert shown
    assert all(isinstance(v, NoValue) and v.lack is Lack.UNREADABLE for v in shown)
    assert dict(found(run, "lost_device")[0].subject) == {"pci": "0000:8a:00.0"}
    assert codes(run)["gpu-lost"] is codes(run)["gpu-error"] is Weight.ERROR
    assert values(run, "processes") == [0.0]


def test_the_memory_of_a_gpu_instance_counts_once():
    upper, lower = TWO.split("\n" + " " * 79 + "\n")
    run = read(f"{upper}\n\n{MIG}{lower}")
    assert run.complete
    assert values(run, "mig_devices") == [2.0]
    assert values(run, "gpu_instances") == [1.0]
    assert [str(v) for v in values(run, "mig_memory_used")] == ["11 MiB"]
    assert values(run, "ecc_uncorrected", mig="1") == [1.0]


def test_mig_mode_without_devices_is_said():
    none = MIG[: MIG.index("|  0    1   0")] + "|  No MIG devices found" + " " * 56 + "|\n" + "+" + "-" * 77 + "+\n"
    run = read(none)
    assert codes(run)["mig-without-devices"] is Weight.WARNING
    assert "table of GPUs" in run.missing


def test_an_unknown_layout_is_refused_by_name():
    transcript = read_output([TWO.replace("Pwr:Usage/Cap", "Power-Budget ").encode()])
    assert transcript.refusal is not None
    assert "unknown layout" in transcript.refusal.reason
    assert "Power-Budget" in transcript.refusal.found


@pytest.mark.parametrize("lines", range(8, 23))
def test_a_table_cut_anywhere_is_never_whole(lines):
    transcript = read_output(["\n".join(TWO.splitlines()[:lines]).encode()])
    assert transcript.outcome is Outcome.PARTLY
    for run in transcript.runs:
        assert len(found(run, "memory_used")) == len(found(run, "gpu"))


def test_a_row_cut_in_its_middle_is_rejected():
    run = read(TWO[: TWO.index("40960MiB |      0%")])
    assert run.rejected
    assert len(found(run, "gpu")) == 1


def test_an_elided_table_is_incomplete():
    rows = TWO.splitlines()
    assert "rows left out at an ellipsis" in read("\n".join([*rows[:12], "...", *rows[12:]])).missing


def test_busy_without_a_process_proves_no_work():
    run = read(TWO.replace("|    0   N/A  N/A      2718      C   python                          39001MiB |\n", ""))
    assert "utilization-without-process" in codes(run)
    assert not found(run, "processes")
    assert isinstance(values(run, "utilization", gpu="0")[0], Quantity)


@pytest.mark.parametrize(
    "said",
    ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it is running.",
     "Failed to initialize NVML: Driver/library version mismatch", "No devices were found"],
)  # fmt: skip
def test_a_tool_that_could_not_run_measured_nothing(said):
    transcript = read_output([said.encode()])
    assert transcript.kind == "nvidia-smi-table"
    assert transcript.refusal is not None
    assert transcript.refusal.reason == "nvidia-smi measured nothing"
    assert transcript.refusal.found == said[:120]


def test_each_banner_is_a_run_of_its_own():
    transcript = read_output([(TWO + "\n" + TWO.replace("06:07:08", "06:07:18")).encode()])
    assert [run.condition("started") for run in transcript.runs] == ["2023-01-05T06:07:08", "2023-01-05T06:07:18"]


def test_a_lost_gpu_is_named_behind_a_prompt_too():
    for prompt in ("$ nvidia-smi\n", "C:\\Program Files\\NVSMI>nvidia-smi\n"):
        run = read(prompt + "Unable to determine the device handle for GPU0000:5d:00.0: Unknown Error\n")
        assert values(run, "lost_device", pci="0000:5d:00.0") == ["Unknown Error"]


def test_a_table_without_its_head_is_read_in_part():
    body = TWO[TWO.index("|   0 ") :]
    run = read(body)
    assert not run.complete
    assert values(run, "gpu") == values(read(TWO), "gpu")
    assert values(run, "temperature") == values(read(TWO), "temperature")
