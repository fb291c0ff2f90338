from __future__ import annotations

from pathlib import Path

from builders.corpus import found, values
from clusterwright.model.observations import Outcome, Run
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "nvidia-smi-mig"
LIST = (FOLDER / "list.txt").read_text()
TABLES = (FOLDER / "instances-profiles.txt").read_text()


def runs(text: str) -> tuple[Run, ...]:
    transcript = read_output([text.encode()])
    assert transcript.kind == "nvidia-smi-mig"
    return transcript.runs


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_physical_gpus_and_mig_devices_are_counted_apart():
    (run,) = runs(LIST)
    assert run.complete
    assert values(run, "gpu") == ["NVIDIA A100-SXM4-40GB"] * 2
    assert values(run, "mig_devices") == [2.0, 0.0]
    assert values(run, "mig_device") == ["3g.20gb", "1c.4g.20gb"]
    assert values(run, "mig_compute_slices") == [4.0]
    assert dict(found(run, "mig_device")[0].subject)["mig_uuid"].endswith("/1/0")


def test_a_part_of_an_instance_shares_its_memory():
    (run,) = runs(LIST)
    assert "mig-memory-shared" in codes(run)
    assert len(found(run, "mig_profile_memory", shared="yes")) == 1


def test_gpus_without_mig_are_counted():
    (run,) = runs("GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA B200 (UUID: GPU-2)\n")
    assert values(run, "gpus_visible") == [2.0]


def test_a_line_cut_in_its_middle_is_no_device():
    (run,) = runs(LIST[: LIST.index("000000000002)") + 5])
    assert run.rejected == 1
    assert len(found(run, "gpu")) == 1


def test_a_list_that_head_shortened_is_incomplete():
    (run,) = runs("$ nvidia-smi -L | head -n 4\n" + LIST)
    assert run.missing == ("lines that head left out; the last GPU may be incomplete",)


def test_two_gpus_with_one_uuid_are_an_error():
    (run,) = runs("GPU 0: X (UUID: GPU-7)\nGPU 1: X (UUID: GPU-7)\n")
    assert codes(run) == {"gpu-twice"}


def test_tables_of_instances_and_profiles_are_read_by_their_headings():
    profiles, instances, parts, places = runs(TABLES)
    assert values(profiles, "gpu_instance_profile") == ["1g.5gb", "3g.20gb"]
    assert values(profiles, "instances_free", profile_id="19") == [5.0]
    assert [str(v) for v in values(profiles, "profile_memory")] == ["4.75 GiB", "19.62 GiB"]
    assert values(instances, "placement", instance="12") == ["1:1"]
    assert values(instances, "gpu_instances") == [2.0]
    assert values(parts, "compute_instance_profile", gpu_instance="11") == ["1g.5gb"]
    assert values(places, "placements", profile_id="9") == ["{0,4}:4"]
    assert all(run.complete and not run.rejected for run in (profiles, instances, parts, places))


def test_a_table_without_its_end_is_incomplete_and_a_short_row_rejected():
    start = TABLES.index("| GPU instances:") - 58
    (whole,) = runs(TABLES[start : TABLES.index("$ nvidia-smi mig -lcip")])
    assert whole.complete
    (cut,) = runs(TABLES[start : TABLES.index("12          1:1")] + "12  |\n")
    assert cut.rejected == 1
    assert "end of the table 'GPU instances:'" in cut.missing


def test_a_table_with_other_headings_is_refused():
    transcript = read_output([TABLES.replace("Placement ", "Placing   ").encode()])
    assert transcript.refusal is not None
    assert "unknown layout" in transcript.refusal.reason


def test_no_instances_is_an_answer():
    (run,) = runs("No GPU instances found: Not Found\n")
    assert values(run, "gpu_instances") == [0.0]
    assert read_output([b"nothing here\n"], kind="nvidia-smi-mig").outcome is Outcome.REFUSED


def test_a_table_that_breaks_off_in_a_row_is_incomplete():
    (run,) = runs(TABLES[: TABLES.index("MIG 3g.20gb") + 2])
    assert not run.complete
    assert run.rejected == 1
    assert values(run, "gpu_instance_profile") == ["1g.5gb"]


def test_uuids_that_were_blotted_out_are_no_two_gpus_with_one_uuid():
    line = "GPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)\n"
    (run,) = read_output([(line % 0 + line % 1).encode()]).runs
    assert "gpu-twice" not in {notice.code for notice in run.notices}
    assert [dict(o.subject) for o in run.observations if o.name == "gpu"] == [{"gpu": "0"}, {"gpu": "1"}]
