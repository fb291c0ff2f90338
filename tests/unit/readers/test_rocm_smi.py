from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "rocm-smi"


def fixture(name: str) -> str:
    return (FOLDER / name).read_text()


def read(text: str, outcome: Outcome = Outcome.READ) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.kind == "rocm-smi"
    assert transcript.outcome is outcome
    (run,) = transcript.runs
    return run


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def amounts(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [v.to(unit) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def absent(run: Run, name: str, **subject: str) -> bool:
    shown = values(run, name, **subject)
    return bool(shown) and all(isinstance(v, NoValue) and v.lack is Lack.ABSENT for v in shown)


def test_json_takes_units_from_its_keys_and_the_first_of_a_key_that_stands_twice():
    run = read(fixture("cards.json"))
    assert values(run, "gpu") == ["AMD Instinct MI250X"]
    assert amounts(run, "utilization", "%") == [17]
    assert amounts(run, "memory_total", "B") == [68702699520]
    assert dict(found(run, "gpu")[0].subject) == {"gpu": "0", "pci": "0000:c1:00.0"}
    assert values(run, "link", **{"from": "GPU0", "to": "GPU1"}) == ["XGMI"]
    assert codes(run)["key-twice"] is Weight.WARNING


@pytest.mark.parametrize("key", ["Card Series", "card series", "CARD SERIES"])
def test_keys_are_compared_without_regard_to_capitals(key):
    assert values(read(fixture("cards.json").replace("Card Series", key)), "gpu") == ["AMD Instinct MI250X"]


@pytest.mark.parametrize(
    "text",
    ['{"card0": []}', '{"card0": null, "system": 5}', '{"card0": {"a": ', '{"system": {"DRM devices": 1}}', "[1]",
     "{}"],
)  # fmt: skip
def test_json_of_another_shape_is_refused(text):
    assert read_output([text.encode()], kind="rocm-smi").outcome is Outcome.REFUSED


def test_json_after_warnings_of_the_tool_is_found():
    run = read("WARNING: AMD GPU device(s) is/are in a low-power state.\n\n" + fixture("cards.json"))
    assert values(run, "gpu") == ["AMD Instinct MI250X"]


def test_the_concise_table_is_read_under_its_two_headings():
    run = read(fixture("concise-6.txt"))
    assert run.complete
    assert amounts(run, "temperature", "°C", sensor="junction") == [43]
    assert amounts(run, "power", "W") == [139]
    assert amounts(run, "power_limit", "W") == [750, 750]
    assert amounts(run, "memory_use", "%", measure="allocated") == [3, 75]
    assert values(run, "compute_partition") == ["SPX", "SPX"]
    assert absent(run, "temperature", gpu="1")


def test_the_older_concise_table_names_its_sensor():
    text = (
        "======================= ROCm System Management Interface =======================\n"
        "================================= Concise Info =================================\n"
        "GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%  \n"
        "0    35.0c           41.0W   800Mhz  1600Mhz  0%   auto  560.0W    2%   9%    \n"
        "1    36.0c           42.0W   800Mhz  1600Mhz\n"
        "================================================================================\n"
        "============================= End of ROCm SMI Log ==============================\n"
    )
    run = read(text, Outcome.PARTLY)
    assert amounts(run, "temperature", "°C", sensor="dieedge") == [35]
    assert amounts(run, "clock", "MHz", domain="sclk") == [800]
    assert run.rejected == 1


def test_a_log_without_its_end_is_incomplete():
    lines = fixture("concise-6.txt").splitlines()
    assert read("\n".join(lines[:8]), Outcome.PARTLY).missing == ("end of the log",)


def test_keyed_lines_matrices_and_ras_tables_are_read():
    run = read(fixture("show-all.txt"))
    assert values(run, "gpu") == ["AMD Instinct MI210", "AMD Instinct MI210"]
    assert amounts(run, "temperature", "°C", gpu="0") == [38, 44]
    assert absent(run, "temperature", gpu="1")
    assert values(run, "ecc_uncorrected", gpu="0", location="umc") == [1.0]
    assert not found(run, "ecc_uncorrected", location="sdma")
    assert values(run, "link_hops") == [1.0, 1.0]
    assert values(run, "link") == ["PCIE", "PCIE"]
    assert values(run, "gpus_visible") == [2.0]
    assert {"ecc-uncorrected": Weight.ERROR, "xgmi-errors": Weight.ERROR}.items() <= codes(run).items()


def test_csv_respects_quotes_and_rejects_short_rows():
    run = read(fixture("cards.csv"), Outcome.PARTLY)
    assert values(run, "gpu") == ["AMD Instinct MI100", "Instinct, MI100"]
    assert amounts(run, "temperature", "°C") == [40]
    assert run.rejected == 1


def test_amd_smi_metric_counts_errors_and_megabytes_of_two_to_the_twenty():
    run = read(fixture("amd-metric.txt"))
    assert amounts(run, "memory_total", "MiB") == [196592]
    assert amounts(run, "temperature", "°C", sensor="junction") == [83]
    assert absent(run, "temperature", sensor="edge")
    assert values(run, "ecc_corrected", gpu="0") == [1.0, 1.0]
    assert values(run, "ecc_uncorrected", gpu="1") == [4.0]
    assert codes(run) == {"ecc-uncorrected": Weight.ERROR}


def test_amd_smi_json_reads_values_with_units_and_links():
    run = read(fixture("amd-static.json"), Outcome.PARTLY)
    assert values(run, "gpu")[0] == "AMD Instinct MI300X"
    assert amounts(run, "power_limit_max", "W") == [750]
    assert amounts(run, "temperature_slowdown", "°C") == [100]
    assert values(run, "link", **{"from": "GPU1", "to": "GPU0"}) == ["XGMI"]
    assert run.condition("driver") == "6.8.5"
    assert run.rejected == 1


def test_the_monitor_joins_numbers_with_their_units_and_rejects_short_rows():
    run = read(fixture("amd-monitor.txt"), Outcome.PARTLY)
    assert amounts(run, "power", "W") == [182]
    assert absent(run, "power", gpu="1")
    assert amounts(run, "memory_used", "MiB") == [283, 283]
    assert run.version == "24.6.2+2b02a07"
    assert run.rejected == 1


def test_link_tables_are_told_apart_by_their_titles():
    run = read(fixture("amd-topology.txt"))
    assert values(run, "link") == ["XGMI", "XGMI"]
    assert values(run, "link_hops") == [1.0, 1.0]
    assert values(run, "gpus_visible") == [2.0]


def test_pairs_joined_by_different_links_are_said():
    text = fixture("amd-topology.txt").replace("XGMI         SELF", "PCIE         SELF")
    assert codes(read(text)) == {"xgmi-unequal": Weight.WARNING}


def test_the_table_of_amd_smi_is_read_and_another_layout_refused():
    run = read(fixture("amd-table.txt"))
    assert values(run, "gpu") == ["AMD Instinct MI355X"] * 2
    assert amounts(run, "memory_total", "MiB") == [294896, 294896]
    assert amounts(run, "power", "W") == [311]
    assert absent(run, "power", gpu="1")
    assert values(run, "ecc_uncorrected") == [0.0, 6.0]
    changed = read_output([fixture("amd-table.txt").replace("UEC", "XYZ").encode()])
    assert changed.refusal is not None
    assert "unknown layout" in changed.refusal.reason


def test_amd_smi_csv_is_read_by_its_header():
    run = read(
        "gpu,gpu_bdf,power_usage,hotspot_temperature,vram_used\n0,0000:05:00.0,142,41,283\n1,x\n", Outcome.PARTLY
    )
    assert amounts(run, "power", "W") == [142]
    assert amounts(run, "memory_used", "MiB") == [283]
    assert run.rejected == 1


def test_the_concise_table_is_known_without_its_banner_and_says_that_it_lacks_one():
    head = "Device  Node  IDs  Temp  Power  Partitions  SCLK  MCLK  Fan  Perf  PwrCap  VRAM%  GPU%"
    text = (
        f"{head}\n"
        "              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)\n"
        "0       2     0x75a0,   24959  61.0°C  300.0W  NPS2, DPX, 0  2203Mhz  1900Mhz  0%  auto  1000.0W  3%  7%\n"
        "1       3     0x75a0,   20862  N/A     N/A     N/A, N/A, 1   N/A      N/A      0%  n/a   N/A      3%  N/A\n"
    )
    transcript = read_output([text.encode()])
    assert transcript.kind == "rocm-smi"
    (run,) = transcript.runs
    assert run.missing == ("beginning of the log",)
    assert values(run, "memory_partition", gpu="0") == ["NPS2"]
    assert str(values(run, "power", gpu="0")[0]) == "300 W"
    assert isinstance(values(run, "power", gpu="1")[0], NoValue)


def test_the_driver_of_the_text_is_kept():
    bar = "=" * 20
    text = f"{bar} ROCm System Management Interface {bar}\nDriver version: 6.3.6\n"
    text += "GPU[0] : Temperature (Sensor edge) (C): 50.0\n"
    (run,) = read_output([text.encode()]).runs
    assert run.condition("driver") == "6.3.6"


def test_the_monitor_of_amd_smi_joins_used_and_total_memory_in_one_column():
    run = read(
        "GPU  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%   ENC%   DEC%      VRAM_USAGE\n"
        "  0  140 W   42 °C   37 °C   133 MHz    5 %    0 %    N/A    0 %    1.5/191.7 GB\n"
    )
    assert amounts(run, "memory_used", "GiB", gpu="0") == pytest.approx([1.5])
    assert amounts(run, "memory_total", "GiB", gpu="0") == pytest.approx([191.7])
    assert amounts(run, "temperature", "°C", gpu="0") == [42]
    assert run.complete


def test_no_bad_pages_are_0():
    run = read("GPU: 0\n    RETIRED: No bad pages found.\n    PENDING: No bad pages found.\n")
    assert values(run, "retired_pages", gpu="0") == [0.0]
