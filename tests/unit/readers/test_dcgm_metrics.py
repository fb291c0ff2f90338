"""Metrics of the DCGM exporter: units from labels and documentation, marks for no value, duplicates, scrapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript
from clusterwright.readers.dcgm import extremes, metrics
from clusterwright.readers.dcgm.exposition import parse_labels
from clusterwright.readers.dcgm.fields import UNITS, blank_meaning, read_value
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "dcgm-metrics"
LABELS = 'gpu="0",UUID="GPU-aaaaaaaa-0000-1111-2222-333333333333",Hostname="gpu-007"'


def read(text: str) -> Transcript:
    return read_output([text.encode()], kind="dcgm-metrics")


def only(transcript: Transcript) -> Run:
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_a_scrape_is_read_with_units_subjects_and_gpus():
    transcript = read_output([(FIXTURES / "h100.prom").read_bytes()])
    assert transcript.kind == "dcgm-metrics"
    run = only(transcript)
    assert str(values(run, "DCGM_FI_DEV_SM_CLOCK", gpu="0")[0]) == "1980 MHz"
    assert values(run, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="0")[0].to("J") == 7200.0
    assert values(run, "gpu") == ["NVIDIA H100 80GB HBM3"] * 2
    assert dict(found(run, "gpu", gpu="1")[0].subject)["pci"] == "0000:43:00.0"
    assert (run.condition("node"), run.condition("driver")) == ("gpu-007", "570.86.15")


def test_a_share_that_its_help_line_calls_percent_stays_a_share():
    run = only(read_output([(FIXTURES / "h100.prom").read_bytes()]))
    assert values(run, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", gpu="0")[0].to("%") == pytest.approx(87.5)
    assert "unit-doubtful" in codes(run)


def test_labels_with_escapes_and_braces_are_read():
    run = only(read_output([(FIXTURES / "h100.prom").read_bytes()]))
    subject = dict(found(run, "DCGM_FI_DEV_XID_ERRORS", gpu="1")[0].subject)
    assert subject["err_msg"] == 'said "off the bus", {really}\\'
    assert {"xid-is-the-last-code", "xid-reported"} <= codes(run)


def test_a_gpu_without_a_series_is_a_gap_and_never_zero():
    run = only(read_output([(FIXTURES / "h100.prom").read_bytes()]))
    (gap,) = values(run, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="1")
    assert isinstance(gap, NoValue)
    assert run.missing == ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION of GPU 1",)


def test_open_metrics_with_exemplar_and_timestamp():
    run = only(read_output([(FIXTURES / "open.prom").read_bytes()]))
    assert str(values(run, "DCGM_FI_DEV_GPU_TEMP")[0]) == "61 °C"
    assert run.condition("started") == "2026-01-01T00:00:00.500000+00:00"


@pytest.mark.parametrize(
    "text",
    ["2147483632", "2147483634", "9223372036854775792", "9223372036854775794", "9223372036854775795",
     "9223372036854776000",
     "140737488355328.000000", "140737488355330.0", "9.223372036854775807e+18", "9.223372036854776e+18",
     "<<<NOT_SUPPORTED>>>"],
)  # fmt: skip
def test_marks_for_no_value_are_absent(text):
    value = read_value(text, UNITS["C"])
    assert isinstance(value, NoValue)
    assert value.lack is Lack.ABSENT


@pytest.mark.parametrize("text", ["2147483631", "2147483648", "140737488355327", "140737488355344", "0", "4742776"])
def test_neighbours_of_the_marks_are_numbers(text):
    assert blank_meaning(text) is None
    assert read_value(text, None) == float(text)


def test_a_whole_number_equal_to_the_mark_of_floating_point_fields_is_a_number():
    assert read_value("140737488355328", None) == 140737488355328.0


@pytest.mark.parametrize("text", ["ERROR - FAILED TO CONVERT TO STRING", "1.2.3", "0x10", "1e999", "Inf"])
def test_what_is_no_number_is_unreadable(text):
    value = read_value(text, UNITS["W"])
    assert isinstance(value, NoValue)
    assert value.lack is Lack.UNREADABLE


def test_a_memory_temperature_of_0_is_absent_and_a_utilisation_of_0_is_0():
    text = f"DCGM_FI_DEV_MEMORY_TEMP{{{LABELS}}} 0\nDCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 0\n"
    run = only(read(text))
    assert isinstance(values(run, "DCGM_FI_DEV_MEMORY_TEMP")[0], NoValue)
    assert values(run, "DCGM_FI_DEV_GPU_UTIL")[0].to("%") == 0.0


def test_the_unit_never_comes_from_the_name():
    run = only(read(f"DCGM_FI_DEV_SOME_NEW_BYTES{{{LABELS}}} 5\n"))
    assert values(run, "DCGM_FI_DEV_SOME_NEW_BYTES") == [5.0]


def test_the_help_line_gives_the_unit_of_a_field_that_is_not_documented():
    help_line = "# HELP DCGM_FI_DEV_THERMAL_VIOLATION Throttling duration due to thermal constraints (in us).\n"
    run = only(read(f"{help_line}DCGM_FI_DEV_THERMAL_VIOLATION{{{LABELS}}} 2500\n"))
    assert values(run, "DCGM_FI_DEV_THERMAL_VIOLATION")[0].to("ms") == pytest.approx(2.5)


def test_a_series_that_stands_twice_is_counted_once_and_said():
    run = only(read(f"DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 7\nDCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 9\n"))
    assert [str(v) for v in values(run, "DCGM_FI_DEV_GPU_UTIL")] == ["7%"]
    (notice,) = [n for n in run.notices if n.code == "duplicate-series"]
    assert "7, then 9" in notice.message


def scrape(temperature: int) -> str:
    return f"DCGM_FI_DEV_GPU_TEMP{{{LABELS}}} {temperature}\nDCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 1\n"


def test_several_scrapes_are_several_runs():
    runs = read(scrape(40) + scrape(41) + scrape(42)).runs
    assert [str(values(run, "DCGM_FI_DEV_GPU_TEMP")[0]) for run in runs] == ["40 °C", "41 °C", "42 °C"]


def test_scrapes_with_help_lines_begin_anew_with_the_first_of_them():
    head = "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
    assert len(read((head + scrape(40)) * 2).runs) == 2


def test_scrapes_beyond_what_is_kept_leave_their_extremes(monkeypatch):
    monkeypatch.setattr(metrics, "_MOST_VALUES", 4)
    runs = read("".join(scrape(t) for t in (40, 41, 90, 35, 50))).runs
    assert len(runs) == 3
    rest = runs[-1]
    assert str(values(rest, "DCGM_FI_DEV_GPU_TEMP")[0]) == "50 °C"
    assert str(values(rest, "highest", metric="DCGM_FI_DEV_GPU_TEMP")[0]) == "90 °C"
    assert str(values(rest, "lowest", metric="DCGM_FI_DEV_GPU_TEMP")[0]) == "35 °C"
    assert values(rest, "samples", metric="DCGM_FI_DEV_GPU_UTIL") == [3.0]
    assert values(rest, "highest", metric="DCGM_FI_DEV_GPU_UTIL") == []
    assert rest.condition("scrapes") == 3.0
    assert [dict(o.subject)["gpu"] for o in found(rest, "gpu")] == ["0"]
    assert rest.condition("node") == "gpu-007"
    assert "3 scrapes" in rest.missing[0]


def test_a_log_of_scrapes_is_read_from_chunks_as_they_come():
    def chunks() -> Iterator[bytes]:
        for number in range(200):
            yield scrape(30 + number % 50).encode()

    runs = read_output(chunks(), kind="dcgm-metrics").runs
    assert len(runs) == 101
    assert runs[-1].condition("scrapes") == 100.0


def xids(*codes: int) -> str:
    return "".join(f"DCGM_FI_DEV_XID_ERRORS{{{LABELS}}} {c}\nDCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 1\n" for c in codes)


def test_folded_scrapes_keep_each_code_of_an_xid(monkeypatch):
    monkeypatch.setattr(metrics, "_MOST_SCRAPES", 1)
    rest = read(xids(0, 0, 79, 79, 0, 31, 0)).runs[-1]
    assert sorted(values(rest, "DCGM_FI_DEV_XID_ERRORS")) == [0.0, 31.0, 79.0]
    assert [n.message for n in rest.notices if n.code == "xid-reported"] == [
        "an Xid of GPU 0 was 79",
        "an Xid of GPU 0 was 31",
    ]


def test_folded_scrapes_count_samples_without_a_value(monkeypatch):
    monkeypatch.setattr(metrics, "_MOST_SCRAPES", 1)
    blank = f"DCGM_FI_DEV_GPU_TEMP{{{LABELS}}} 9223372036854775794\nDCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 1\n"
    rest = read(scrape(40) * 3 + blank * 2).runs[-1]
    assert values(rest, "samples", metric="DCGM_FI_DEV_GPU_TEMP") == [4.0]
    assert values(rest, "samples_without_value", metric="DCGM_FI_DEV_GPU_TEMP") == [2.0]
    assert isinstance(values(rest, "DCGM_FI_DEV_GPU_TEMP")[0], NoValue)


def test_a_fault_in_a_folded_scrape_is_said(monkeypatch):
    monkeypatch.setattr(metrics, "_MOST_SCRAPES", 1)
    fault = f"DCGM_FI_DEV_GPU_TEMP{{{LABELS}}} 40\nDCGM_FI_DEV_ROW_REMAP_FAILURE{{{LABELS}}} 1\n"
    rest = read(scrape(40) + fault + fault.replace("E{" + LABELS + "} 1", "E{" + LABELS + "} 0")).runs[-1]
    assert "row-remap-failure" in codes(rest)
    assert values(rest, "DCGM_FI_DEV_ROW_REMAP_FAILURE") == [1.0]


def test_series_beyond_what_is_followed_are_counted(monkeypatch):
    monkeypatch.setattr(metrics, "_MOST_SCRAPES", 1)
    monkeypatch.setattr(extremes, "MOST_SERIES", 2)
    more = scrape(40) + "".join(f'DCGM_FI_DEV_X{{gpu="{n}",UUID="GPU-{n}"}} 1\n' for n in range(5))
    rest = read(scrape(40) + more + more).runs[-1]
    assert "10 samples of series beyond the first 2" in rest.missing


def test_a_label_set_of_unlikely_length_is_rejected():
    run = only(read(scrape(40) + 'DCGM_FI_DEV_GPU_TEMP{a="%s"} 1\n' % ("x" * 20_000)))
    assert run.rejected == 1


def test_a_line_that_a_terminal_broke_is_joined_and_said():
    text = f'DCGM_FI_DEV_GPU_TEMP{{{LABELS},pod="video-5\n4d8"}} 54\n# EOF\n'
    run = only(read(text))
    assert dict(found(run, "DCGM_FI_DEV_GPU_TEMP")[0].subject)["pod"] == "video-54d8"
    assert "wrapped-line-joined" in codes(run)


def test_a_line_that_ends_inside_its_labels_is_rejected():
    run = only(read(scrape(40) + 'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-aa'))
    assert run.rejected == 1
    assert values(run, "DCGM_FI_DEV_POWER_USAGE") == []


def test_a_sample_without_a_value_is_rejected_and_no_zero():
    run = only(read(f'DCGM_FI_DEV_XID_ERRORS{{{LABELS},err_code="62"}}\n'))
    assert run.rejected == 1
    assert isinstance(values(run, "DCGM_FI_DEV_XID_ERRORS")[0], NoValue)
    assert any("62" in n.message for n in run.notices if n.code == "xid-reported")


def test_labels_that_were_left_out_make_it_incomplete():
    run = only(read('DCGM_FI_DEV_GPU_TEMP{gpu="0",...,modelName="NVIDIA L4",...} 31\n...\n'))
    assert "labels that were left out as '...'" in run.missing
    assert "lines that were left out as '...'" in run.missing
    assert run.condition("attached_gpus") == 1.0


def test_the_pod_of_the_exporter_is_not_the_node():
    text = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="nvidia-dcgm-exporter-x7k2p"} 31\n'
    run = only(read(text))
    assert run.condition("node") is None
    assert "hostname-is-a-pod" in codes(run)


def test_used_free_and_reserved_memory_give_the_total():
    text = "".join(
        f"DCGM_FI_DEV_FB_{name}{{{LABELS}}} {mib}\n" for name, mib in (("USED", 24), ("FREE", 1000), ("RESERVED", 1))
    )
    assert values(only(read(text)), "memory_total")[0].to("MiB") == 1025.0


def test_old_names_and_labels_are_mapped():
    run = only(read('dcgm_gpu_temp{gpu="2",uuid="GPU-9",pod_name="a",container_name="b",pod_namespace="c"} 44\n'))
    subject = dict(found(run, "dcgm_gpu_temp")[0].subject)
    assert subject == {"gpu": "2", "uuid": "GPU-9", "pod": "a", "container": "b", "namespace": "c"}


def test_headers_without_a_sample_measure_nothing():
    text = "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
    assert "nothing was measured" in str(read(text).refusal)
    assert read(text).outcome is Outcome.REFUSED


def test_failed_remapping_is_an_error():
    assert "row-remap-failure" in codes(only(read(f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{LABELS}}} 1\n")))


@pytest.mark.parametrize("text", ['a="b', "a=b", 'a="b" c="d"', '="x"', 'a="b",,c="d"'])
def test_labels_that_are_none_are_refused(text):
    assert parse_labels(text) is None


def test_labels_may_have_spaces_and_a_comma_at_the_end():
    assert parse_labels(' a = "1", b="2" , ') == ((("a", "1"), ("b", "2")), False)


def test_an_answer_of_prometheus_is_read_like_a_scrape():
    metric = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "3", "UUID": "GPU-1", "Hostname": "gpu-009"}
    result = [{"metric": metric, "value": [1767225600, "55"]}]
    answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
    transcript = read_output([json.dumps(answer).encode()])
    assert transcript.kind == "dcgm-metrics"
    run = only(transcript)
    assert str(values(run, "DCGM_FI_DEV_GPU_TEMP", gpu="3", node="gpu-009")[0]) == "55 °C"
    assert run.condition("started") == "2026-01-01T00:00:00+00:00"


def test_an_error_of_prometheus_is_refused_with_its_text():
    assert "no route" in str(read('{"status": "error", "error": "no route"}').refusal)


def test_a_count_of_xids_within_a_window_names_the_code():
    row = 'DCGM_EXP_XID_ERRORS_COUNT{%s,window_size_in_ms="300000",xid="%d"} %d\n'
    run = only(read("".join(row % (LABELS, code, count) for code, count in ((48, 2), (63, 0), (0, 0)))))
    assert [n.message for n in run.notices if n.code == "xid-reported"] == ["GPU 0 reported Xid 48 2 times"]


def test_gpus_whose_uuids_were_blotted_out_are_told_apart_by_their_index():
    row = 'DCGM_FI_DEV_GPU_TEMP{gpu="%d",UUID="%s",modelName="H100"} 54\n'
    for blot in ("XXX", "GPU-xxxxxxxx-xxxx", "GPU-****"):
        run = only(read(row % (0, blot) + row % (1, blot)))
        assert run.condition("attached_gpus") == 2.0
        assert all("uuid" not in dict(o.subject) for o in found(run, "DCGM_FI_DEV_GPU_TEMP"))


def test_a_banner_of_another_tool_above_does_not_hide_the_metrics():
    text = "| NVIDIA-SMI 535.10    Driver Version: 535.10    CUDA Version: 12.2 |\n\n"
    text += f"DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 44\n"
    assert read_output([text.encode()]).kind == "dcgm-metrics"
