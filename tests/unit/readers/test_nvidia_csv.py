from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "nvidia-smi-csv"


def read(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.kind == "nvidia-smi-csv"
    (run,) = transcript.runs
    return run


def fixture(name: str) -> str:
    return (FOLDER / name).read_text()


def amounts(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [v.to(unit) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def test_columns_are_read_by_name_with_the_unit_of_the_header():
    run = read(fixture("query-gpu.csv"))
    assert values(run, "gpu") == ["NVIDIA H200"] * 3
    assert amounts(run, "memory_total", "MiB") == [143771, 143771]
    assert amounts(run, "temperature", "°C") == [41, 88]
    assert values(run, "remap_pending", gpu="1") == [True]
    assert run.condition("driver") == "565.57.01"
    assert run.condition("started") == "2025-02-03T10:00:00.100"


def test_another_order_of_columns_gives_the_same_values():
    header, *rows = [line.split(", ") for line in fixture("query-gpu.csv").splitlines()]
    turned = "\n".join(", ".join(reversed(row)) for row in (header, *rows))
    before, after = read(fixture("query-gpu.csv")), read(turned)
    key = lambda o: (o.name, str(o.value), o.subject)  # noqa: E731
    assert sorted(before.observations, key=key) == sorted(after.observations, key=key)


def test_a_lost_gpu_is_unreadable_and_never_zero():
    run = read(fixture("query-gpu.csv"))
    lost = values(run, "temperature", gpu="2") + values(run, "power", gpu="2")
    assert all(isinstance(v, NoValue) and v.lack is Lack.UNREADABLE for v in lost)
    ecc = values(run, "ecc_uncorrected", gpu="2")
    assert all(isinstance(v, NoValue) and v.lack is Lack.ABSENT for v in ecc)


def test_the_mask_of_clock_reasons_is_told_apart():
    run = read(fixture("query-gpu.csv"))
    assert values(run, "throttle", gpu="0") == ["none"]
    assert values(run, "throttle", gpu="1") == ["hw slowdown", "hw thermal slowdown"]
    assert isinstance(values(run, "throttle", gpu="2")[0], NoValue)


def test_cells_without_units_take_them_from_the_header_and_samples_are_numbered():
    run = read(fixture("nounits-loop.csv"))
    assert amounts(run, "power", "W", window="instant") == [99.1, 101.3, 100.2]
    assert [dict(o.subject)["sample"] for o in found(run, "power")] == ["1", "2", "3"]
    assert len(found(run, "gpu")) == 1
    assert run.condition("ended") == "2025-02-03T10:00:02.000"
    assert not run.notices


def test_samples_with_one_time_prove_no_energy():
    text = fixture("nounits-loop.csv").replace(":01.000", ":00.000").replace(":02.000", ":00.000")
    (notice,) = read(text).notices
    assert (notice.code, notice.weight) == ("equal-timestamps", Weight.WARNING)
    assert "3 samples of GPU 0 carry 1 different times" in notice.message


def test_processes_keep_commas_in_their_names_and_unknown_memory():
    run = read(fixture("compute-apps.csv"))
    assert [dict(o.subject).get("process") for o in found(run, "process_memory")] == ["python3", "serve, a", None]
    assert amounts(run, "process_memory", "MiB") == [512, 256]
    assert values(run, "processes") == [2.0, 1.0]


def test_no_process_is_an_answer_and_no_gpu_is_none():
    assert values(read("pid, process_name, used_gpu_memory [MiB]\n"), "processes") == [0.0]
    empty = read_output([b"index, name, power.draw [W]\n"])
    assert empty.refusal is not None
    assert "nothing was measured" in empty.refusal.reason


def test_without_a_header_it_is_refused_by_name():
    rows = "\n".join(fixture("query-gpu.csv").splitlines()[1:])
    transcript = read_output([rows.encode()])
    assert transcript.kind == "nvidia-smi-csv"
    assert transcript.refusal is not None
    assert "noheader" in transcript.refusal.reason


def test_a_row_with_too_few_fields_is_rejected_and_counted():
    run = read(fixture("query-gpu.csv") + "2025/02/03 10:00:00.200, 3, NVIDIA")
    assert run.rejected == 1
    assert run.unread[0].line == 5
    assert len(found(run, "gpu")) == 3


def test_a_column_that_stands_twice_counts_once_and_is_said():
    run = read("index, power.draw [W], power.draw [W]\n0, 5 W, 6 W\n")
    assert amounts(run, "power", "W") == [5]
    assert [n.code for n in run.notices] == ["column-twice"]


def test_fewer_rows_than_the_column_count_says_are_missing():
    run = read("count, index, uuid\n8, 0, GPU-1\n")
    assert run.missing == ("rows of 7 of 8 attached GPUs",)
    assert values(run, "attached_gpus") == [8.0]


@pytest.mark.parametrize("junk", ["name,age\na,1\n", "time,value\n1,2\n", "index,foo,bar,baz\n0,1,2,3\n"])
def test_other_tables_of_commas_are_not_claimed(junk):
    assert read_output([junk.encode()]).kind != "nvidia-smi-csv"


def test_a_second_header_begins_a_second_run():
    transcript = read_output([fixture("nounits-loop.csv").encode() + fixture("query-gpu.csv").encode()])
    assert transcript.outcome is Outcome.READ
    assert len(transcript.runs) == 2


@pytest.mark.parametrize(
    "said",
    ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "ssh: connect to host: No route"],
)
def test_a_host_that_failed_among_others_is_a_run_of_its_own(said):
    rows = ["index, name, pci.bus_id", *(f"{n}, NVIDIA H100 80GB HBM3, 00000000:{n}B:00.0" for n in range(4))]
    lines = [f"{host}: {row}" for host in ("gpu-001", "10.0.0.3") for row in rows]
    runs = read_output(["\n".join([*lines[:3], f"gpu-002: {said}", *lines[3:]]).encode()]).runs
    assert [run.condition("node") for run in runs] == ["gpu-001", "10.0.0.3", "gpu-002"]
    assert runs[2].missing == ("the output of gpu-002",)
    assert [notice.code for notice in runs[2].notices] == ["host-not-read"]
    assert all(run.complete for run in runs[:2])
