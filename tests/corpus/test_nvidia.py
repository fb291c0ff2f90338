"""Public operator files of nvidia-smi, rocm-smi and amd-smi: the conclusions that a reader must reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from builders.corpus import FOLDER, check_corpus, found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript, Weight

Check = Callable[[Transcript], None]


def only(transcript: Transcript, outcome: Outcome = Outcome.READ) -> Run:
    assert transcript.outcome is outcome, (
        f"{transcript.outcome}: {transcript.refusal or [r.missing for r in transcript.runs]}"
    )
    (run,) = transcript.runs
    return run


def codes(run: Run, weight: Weight | None = None) -> set[str]:
    return {notice.code for notice in run.notices if weight in (None, notice.weight)}


def in_unit(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 6) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def absent(run: Run, name: str, **subject: str) -> bool:
    shown = values(run, name, **subject)
    return bool(shown) and all(isinstance(v, NoValue) and v.lack is Lack.ABSENT for v in shown)


def gpus(run: Run) -> list[object]:
    return values(run, "gpu")


def counts(run: Run, name: str) -> dict[str, float]:
    shown = {dict(o.subject).get("gpu", ""): o.value for o in found(run, name)}
    return {gpu: value for gpu, value in shown.items() if isinstance(value, float)}


# --- nvidia-smi -q


def h100_in_mig_mode(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["NVIDIA H100 80GB HBM3"]
    assert values(run, "mig_mode") == [True]
    assert values(run, "mig_devices") == [4.0]
    assert values(run, "mig_device") == ["60 SM", "32 SM", "16 SM", "16 SM"]
    assert absent(run, "utilization")
    assert absent(run, "remap_pending")
    assert absent(run, "remap_failure")
    assert set(values(run, "ecc_uncorrected")) == {0.0}
    assert values(run, "channel_repair_pending") == values(run, "tpc_repair_pending") == [False]
    assert in_unit(run, "power", "W", window="average") == [432.21]
    assert in_unit(run, "power", "W", window="instant") == [444.72]
    assert in_unit(run, "mig_memory_total", "MiB") == [40448, 20096, 9984, 9984]
    assert not codes(run, Weight.ERROR)
    assert run.condition("driver") == "590.48.01"


def l40s(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["NVIDIA L40S"]
    assert {dict(o.subject)["cause"]: o.value for o in found(run, "remapped_rows")} == {
        "correctable": 0, "inactive correctable": 0, "uncorrectable": 0, "inactive uncorrectable": 0,
    }  # fmt: skip
    assert values(run, "remap_pending") == values(run, "remap_failure") == [False]
    assert absent(run, "fabric_state")
    assert not codes(run)


def windows_610(transcript: Transcript) -> None:
    run = only(transcript)
    assert run.condition("driver") == "610.62"
    assert run.condition("cuda") == "13.3"
    assert absent(run, "ecc_uncorrected")
    assert absent(run, "ecc_mode")
    assert absent(run, "process_memory")
    assert values(run, "driver_model") == ["WDDM"]
    assert in_unit(run, "power_limit", "W") == [250]
    assert not codes(run)


def short_xml(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert gpus(run) == ["GeForce GTX 1070 Ti"]
    assert run.missing == ("driver version", "number of attached GPUs")
    assert run.condition("driver") is None
    assert not found(run, "attached_gpus")
    assert absent(run, "power")
    assert in_unit(run, "fan_speed", "%") == [100]
    assert in_unit(run, "temperature", "°C") == [39]
    assert in_unit(run, "memory_total", "MiB") == [4096]


def tesla_t4(transcript: Transcript) -> None:
    run = only(transcript)
    assert run.condition("driver") == "515.105.01"
    assert values(run, "retired_pages") == [0.0, 0.0]
    assert set(values(run, "retired_pages_pending")) == {False}
    assert absent(run, "fan_speed")
    assert absent(run, "remap_pending")
    assert in_unit(run, "power", "W") == [26.78]
    assert in_unit(run, "process_memory", "MiB") == [22, 1005]
    assert codes(run) == {"pcie-narrow"}
    assert not codes(run, Weight.WARNING) | codes(run, Weight.ERROR)


def retired_pages(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "attached_gpus") == [8.0]
    assert len(gpus(run)) == 8
    rma = {n.message.split(":")[0] for n in run.notices if n.code == "retired-pages-rma"}
    assert rma == {f"GPU {i - 1} (000{i}" for i in (1, 2, 6, 8)}
    first = next(n.message for n in run.notices if n.code == "retired-pages-rma")
    assert "65 retired pages" in first
    assert "from 60" in first
    assert {
        dict(o.subject)["pci"] for o in found(run, "retired_pages_pending") if o.value is True
    } == {f"000{i}:00:00.0" for i in (2, 4, 6, 8)}  # fmt: skip
    assert values(run, "retired_pages", pci="0002:00:00.0", cause="double-bit") == [61.0]


def one_selected_gpu(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "attached_gpus") == [8.0]
    assert gpus(run) == ["NVIDIA H800"]
    assert {"gpus-selected", "ecc-disabled"} <= codes(run)
    assert absent(run, "ecc_uncorrected")


# --- CSV


def windows_csv(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["NVIDIA GeForce RTX 2080 SUPER"]
    assert run.condition("driver") == "610.62"
    assert absent(run, "serial")
    assert values(run, "driver_model") == ["WDDM"]
    assert in_unit(run, "memory_used", "MiB") == [1366]
    assert in_unit(run, "temperature", "°C") == [44]
    assert absent(run, "ecc_uncorrected")


def compute_apps(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["NVIDIA H200"]
    assert in_unit(run, "process_memory", "MiB") == [2566, 1542, 28234]
    assert sum(in_unit(run, "process_memory", "MiB")) == 32342
    assert values(run, "processes") == [3.0]


def power_samples(transcript: Transcript) -> None:
    run = only(transcript)
    watts = in_unit(run, "power", "W")
    assert len(watts) == 91
    assert min(watts) == 16.48
    assert max(watts) == 73.24  # the note says 72; the row of 73.24 W is in the file
    assert "equal-timestamps" in codes(run, Weight.WARNING)
    assert len(gpus(run)) == 1


# --- the table


def table_of_610(transcript: Transcript) -> None:
    run = only(transcript)
    assert run.version == "610.57.04"
    assert run.condition("cuda") == "13.3"
    assert in_unit(run, "memory_used", "MiB") == [815]
    assert values(run, "persistence_mode") == [False]
    assert in_unit(run, "process_memory", "MiB") == [173, 3, 230, 370]


def shared_mig_memory(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["NVIDIA H200"]
    assert values(run, "mig_devices") == [5.0]
    assert values(run, "gpu_instances") == [4.0]
    assert in_unit(run, "mig_memory_used", "MiB") == [16925, 17, 9, 9]
    assert "mig-memory-shared" in codes(run)
    assert absent(run, "utilization")


def windows_table(transcript: Transcript) -> None:
    run = only(transcript)
    assert len(gpus(run)) == 1
    assert in_unit(run, "utilization", "%") == [7]
    assert in_unit(run, "memory_used", "MiB") == [1366]
    assert in_unit(run, "memory_total", "MiB") == [8192]
    assert absent(run, "process_memory")
    assert values(run, "driver_model") == ["WDDM"]
    assert not found(run, "persistence_mode")


def two_models(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["GeForce GTX 108..."] * 3 + ["TITAN Xp"]
    assert in_unit(run, "temperature", "°C", gpu="0") == [84]
    assert in_unit(run, "memory_used", "MiB", gpu="0") == [10729]
    assert in_unit(run, "memory_total", "MiB", gpu="0") == [11176]
    assert len(found(run, "process_memory")) == 1


def cut_table(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert gpus(run) == ["NVIDIA A100 80GB PCIe"]
    assert "end of the table of GPUs" in run.missing
    assert "table of processes" in run.missing
    assert "utilization-without-process" in codes(run)


# --- topology


def matrix(gpu_count: int, *said: str, never: tuple[str, ...] = (), nics: int = 0, near: int = 0) -> Check:
    """A whole matrix of GPUs with these notices."""

    def check(transcript: Transcript) -> None:
        run = only(transcript)
        assert values(run, "gpus_visible") == [float(gpu_count)]
        assert len(gpus(run)) == gpu_count
        assert len(found(run, "link")) == (gpu_count + nics) * (gpu_count + nics - 1)
        assert set(said) <= codes(run), codes(run)
        assert not set(never) & codes(run)
        if nics:
            assert values(run, "nics_visible") == [float(nics)]
            assert values(run, "nics_near_gpus") == [float(near)]

    return check


def degraded(pairs: list[str], then: Check) -> Check:
    def check(transcript: Transcript) -> None:
        then(transcript)
        run = transcript.runs[0]
        (said,) = [n.message for n in run.notices if n.code == "nvlink-unequal" and n.weight is Weight.ERROR]
        for pair in pairs:
            assert pair in said, said

    return check


def full_mesh(link: str, then: Check) -> Check:
    def check(transcript: Transcript) -> None:
        then(transcript)
        run = transcript.runs[0]
        own = [o.value for o in found(run, "link") if not any("NIC" in value for _, value in o.subject)]
        assert Counter(own) == {link: len(own)}
        assert not codes(run, Weight.ERROR)

    return check


def container(transcript: Transcript) -> None:
    matrix(5, "container-view", never=("nvlink-unequal",), nics=12, near=5)(transcript)
    (said,) = [n.message for n in transcript.runs[0].notices if n.code == "container-view"]
    assert "does not show that GPUs are missing" in said


def one_fraction(transcript: Transcript) -> None:
    matrix(1)(transcript)
    assert absent(transcript.runs[0], "gpu_numa_id")


def two_numa_columns(transcript: Transcript) -> None:
    full_mesh("NV18", matrix(8, nics=8, near=8))(transcript)
    run = transcript.runs[0]
    assert values(run, "numa_affinity") == ["0"] * 4 + ["1"] * 4
    assert absent(run, "gpu_numa_id")
    assert values(run, "nearest_nics", gpu="0") == values(run, "nearest_nics", gpu="1") == ["NIC0 NIC1"]


def ascend(transcript: Transcript) -> None:
    run = only(transcript)
    assert run.tool == "npu-smi info -t topo"
    assert values(run, "npus_visible") == [8.0]
    assert not found(run, "gpus_visible")
    assert not found(run, "gpu")
    assert Counter(values(run, "link")) == {"HCCS": 56}
    assert values(run, "cpu_affinity", npu="0") == ["144-167"]
    assert values(run, "cpu_affinity", npu="7") == ["48-71"]
    assert "other-vendor" in codes(run)


# --- NVLink


def a100_full(transcript: Transcript) -> None:
    run = only(transcript)
    assert len(gpus(run)) == 8
    assert set(counts(run, "nvlinks_active").values()) == {12.0}
    assert in_unit(run, "nvlink_rate", "GB/s") == [25.0] * 96
    assert "nvlink-full" in codes(run)
    assert not codes(run, Weight.ERROR) | codes(run, Weight.WARNING)


def nvlink_unknown(transcript: Transcript) -> None:
    run = only(transcript)
    assert absent(run, "nvlink_state")
    assert not found(run, "nvlink_rate")
    assert "nvlink-unknown-in-mig" in codes(run, Weight.INFO)


def h800_elided(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert counts(run, "nvlinks_active") == {"0": 8.0, "1": 8.0, "7": 8.0}
    assert "GPU 2 to 6" in run.missing
    assert not codes(run, Weight.ERROR)


def h800_traffic(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert len(gpus(run)) == 5
    assert "GPU 3 to 5" in run.missing
    assert not found(run, "nvlink_state")
    assert in_unit(run, "nvlink_raw_tx", "KiB", gpu="2", link="0") == [576438247]
    (said,) = [n.message for n in run.notices if n.code == "nvlink-traffic-uneven"]
    assert said.startswith("GPU 2 moved")
    assert "nvlink-errors" not in codes(run)


def gb200(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.PARTLY
    status, info = transcript.runs
    assert in_unit(status, "nvlink_rate", "GB/s", gpu="0") == [53.125] * 18
    assert counts(status, "nvlinks_active")["0"] == 18
    assert "links of GPU 1 (2 of 18 listed)" in status.missing
    assert not codes(status, Weight.ERROR)
    assert values(info, "nvlink_firmware", part="NETIR") == ["36:2014:1862"]
    assert "everything about GPU 1" in info.missing


def one_inactive_link(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert values(run, "nvlink_state", link="4") == ["inactive"]
    assert absent(run, "nvlink_rate", link="4")
    assert "nvlink-inactive" in codes(run, Weight.WARNING)
    assert not codes(run, Weight.ERROR)


# --- MIG and -L


def listed(slices: list[float], profiles: list[str], outcome: Outcome = Outcome.READ) -> Check:
    def check(transcript: Transcript) -> None:
        run = only(transcript, outcome)
        assert len(gpus(run)) == len(slices)
        assert values(run, "mig_compute_slices") == slices
        assert values(run, "mig_device", gpu="0") == profiles
        assert len(found(run, "mig_device")) == len(profiles) * len(slices)

    return check


def h100_listed(transcript: Transcript) -> None:
    listed([7.0], ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"])(transcript)
    assert in_unit(transcript.runs[0], "mig_profile_memory", "GB") == [40, 20, 10, 10]


def cut_by_head(transcript: Transcript) -> None:
    listed([7.0, 7.0], ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], Outcome.PARTLY)(transcript)
    assert any("head" in part for part in transcript.runs[0].missing)


# --- AMD


def mi100(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["Arcturus GL-XL [Instinct MI100]"] * 4
    assert in_unit(run, "memory_total", "B") == [34342961152] * 4
    assert in_unit(run, "utilization", "%") == [0] * 4
    assert in_unit(run, "temperature", "°C", sensor="junction")[:2] == [55, 58]
    assert absent(run, "serial")
    assert Counter(values(run, "link")) == {"PCIE": 6}


def renamed_keys(transcript: Transcript) -> None:
    run = only(transcript)
    assert gpus(run) == ["Navi 22 [Radeon RX 6700/6700 XT / 6800M]"]
    assert in_unit(run, "memory_use", "%", measure="allocated") == [12]
    assert in_unit(run, "memory_use", "%", measure="busy") == [0]
    assert run.condition("driver") == "6.3.6"


def xgmi(transcript: Transcript) -> None:
    run = only(transcript)
    assert values(run, "gpus_visible") == [8.0]
    assert Counter(values(run, "link")) == {"XGMI": 56}
    assert not found(run, "link_hops")
    assert not found(run, "numa_node")


EXPECTATIONS: dict[str, Check] = {
    "nvidia-smi-q/001-h100-mig-q-load.txt": h100_in_mig_mode,
    "nvidia-smi-q/003-l40s-q-load-595.txt": l40s,
    "nvidia-smi-q/004-win-rtx2080-q-load-610.txt": windows_610,
    "nvidia-smi-q/006-telegraf-gtx-1070-ti.xml": short_xml,
    "nvidia-smi-q/008-telegraf-tesla-t4.xml": tesla_t4,
    "nvidia-smi-q/009-azhc-retired-pages-bad.txt": retired_pages,
    "nvidia-smi-q/010-h800-q-cn.txt": one_selected_gpu,
    "nvidia-smi-csv/002-win-rtx2080-query-gpu.csv": windows_csv,
    "nvidia-smi-csv/003-h200-query-compute-apps.csv": compute_apps,
    "nvidia-smi-csv/005-pkb-power-csv.csv": power_samples,
    "nvidia-smi-table/002-rtx2080-610-new-table-layout.txt": table_of_610,
    "nvidia-smi-table/003-h200-mig-load-table.txt": shared_mig_memory,
    "nvidia-smi-table/004-windows-table.txt": windows_table,
    "nvidia-smi-table/006-determined-docs-err.txt": two_models,
    "nvidia-smi-table/007-stas-debug-ecc-or-missing.txt": cut_table,
    "nvidia-smi-topo/001-nvl-bridge-pair-nv17-degraded.txt": degraded(
        ["GPU2-GPU3 NV17"], matrix(8, "nvlink-pairs-only")
    ),
    "nvidia-smi-topo/002-a800-mixed-nv8-nv6-nv4.txt": degraded(
        ["GPU4-GPU7 NV6", "GPU5-GPU6 NV4"], matrix(8, "nvlink-pairs-only", nics=2, near=1)
    ),
    "nvidia-smi-topo/003-h100-26-nics-virtual-functions-ansi.txt": full_mesh(
        "NV18", matrix(8, "nics-far-from-gpus", "nics-of-one-card", nics=26, near=8)
    ),
    "nvidia-smi-topo/004-10gpu-pcie-box.txt": matrix(10, "no-nvlink", never=("container-view",)),
    "nvidia-smi-topo/005-h100-5of8-visible-container.txt": container,
    "nvidia-smi-topo/007-aws-p5-48xlarge.txt": full_mesh("NV18", matrix(8, "nics-not-shown")),
    "nvidia-smi-topo/009-aws-g6f-large.txt": one_fraction,
    "nvidia-smi-topo/011-b200-gke-a4-8nic.txt": two_numa_columns,
    "nvidia-smi-topo/013-ascend-npu-smi-topo.txt": ascend,
    "nvidia-smi-nvlink/004-gpud-a100-8gpu.txt": a100_full,
    "nvidia-smi-nvlink/005-h100-mig-not-supported.txt": nvlink_unknown,
    "nvidia-smi-nvlink/006-h800-elided-cn.txt": h800_elided,
    "nvidia-smi-nvlink/007-h800-throughput-counters-cn.txt": h800_traffic,
    "nvidia-smi-nvlink/008-gb200-nvlink-info-firmware.txt": gb200,
    "nvidia-smi-nvlink/009-h100-pcie-link4-inactive.txt": one_inactive_link,
    "nvidia-smi-mig/001-h100-mig-L-4-devices.txt": h100_listed,
    "nvidia-smi-mig/002-h200-mig-L.txt": listed(
        [7.0], ["1c.3g.71gb", "2c.3g.71gb", "2g.35gb", "1g.18gb", "1g.18gb"]
    ),
    "nvidia-smi-mig/003-deepops-mig-lgi.txt": cut_by_head,
    "rocm-smi/001-mi100-rocm602.json": mi100,
    "rocm-smi/003-rx6700xt-rocm612.json": renamed_keys,
    "rocm-smi/004-mi300x-topo-sglang3198.txt": xgmi,
}  # fmt: skip

KINDS = sorted({name.split("/")[0] for name in EXPECTATIONS})


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside this clone")
def test_every_public_file_leads_to_its_conclusion():
    assert check_corpus(EXPECTATIONS, *KINDS) > 0
