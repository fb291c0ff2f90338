"""Public operator files of DCGM: the conclusions that a reader must reach."""

from __future__ import annotations

import pytest

from builders.corpus import FOLDER, check_corpus, found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight


def only(transcript: Transcript) -> Run:
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def failed(run: Run) -> set[str]:
    return {dict(o.subject)["test"] for o in found(run, "test") if o.value == "fail"}


def messages(run: Run, code: str) -> str:
    return " ".join(notice.message for notice in run.notices if notice.code == code)


def deepops(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.READ
    assert {"Persistence Mode", "Environment Variables", "Page Retirement"} <= failed(run)
    assert run.condition("result") == "fail"
    assert "sentence-is-no-verdict" in codes(run)


def p4d(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.READ
    assert (run.version, run.condition("driver")) == ("3.3.3", "535.104.12")
    assert run.condition("device_ids") == ",".join(["20b2"] * 8)
    assert run.condition("result") == "pass"
    assert run.condition("deepest_level") == 2.0
    assert run.condition("gpus_tested") == 8.0
    assert "Stress" in messages(run, "section-empty")
    assert run.condition("arguments") == "-r 2 -p pcie.gpu_nvlinks_expected_up=12"


def per_gpu_json(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.READ
    assert failed(run) == {"sm_stress"}
    assert [dict(o.subject)["gpu"] for o in found(run, "test", test="sm_stress") if o.value == "fail"] == [
        "0",
        "2",
        "3",
    ]
    said = " ".join(str(v) for v in values(run, "test_message", test="sm_stress"))
    assert all(figure in said for figure in ("2128.7", "1096.5", "1099.7", "3000.0"))
    assert values(run, "test", test="memory", gpu="0") == ["skip"]
    assert "ECC" in str(values(run, "test_message", test="memory", gpu="0")[0])
    for test in ("diagnostic", "memory_bandwidth", "targeted_stress", "targeted_power"):
        assert values(run, "test", test=test) == ["skip"] * 4
        assert f"{test} was skipped" in messages(run, "test-skipped")
    assert str(values(run, "gpu_to_host_bandwidth", gpu="0")[0]) == "13.08 GB/s"


def cut_423(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.PARTLY
    assert run.version == "4.2.3"
    assert run.condition("attached_gpus") == 4.0
    assert values(run, "test", test="software", gpu="3") == ["pass"]
    assert values(run, "test", test="memory") == []
    assert isinstance(run.condition("result"), NoValue)


def cut_335(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.PARTLY
    assert run.condition("device_ids") == ",".join(["20b5"] * 4)
    assert isinstance(run.condition("result"), NoValue)
    assert "the end of the table" in run.missing


def info_piece(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.PARTLY
    assert str(values(run, "host_to_gpu_bandwidth", gpu="0")[0]) == "25.93 GB/s"
    assert str(values(run, "host_to_gpu_latency", gpu="0")[0]) == "3.715 µs"
    assert len(run.observations) == 6
    assert not any(n.weight is Weight.ERROR for n in run.notices)


def no_violation(t: Transcript) -> None:
    run = only(t)
    assert [v.to("s") for v in values(run, "thermal_violation") if isinstance(v, Quantity)] == [0.0]
    assert {n.weight for n in run.notices} == {Weight.WARNING}


def preflight(t: Transcript) -> None:
    run = only(t)
    assert run.condition("result") == "fail"
    assert [values(run, f"tests_{k}")[0] for k in ("passed", "failed", "warned", "skipped", "total")] == [0, 2, 2, 2, 6]
    assert t.outcome is Outcome.PARTLY


def exit_226(t: Transcript) -> None:
    run = only(t)
    assert values(run, "exit_status") == [226.0]
    assert "nothing about the GPUs" in messages(run, "tool-error")
    assert isinstance(run.condition("result"), NoValue)


def links_up(t: Transcript) -> None:
    run = only(t)
    assert values(run, "nvlink_state", gpu="0") == ["up"] * 12
    assert values(run, "nvlink_state", gpu="1") == ["up"] * 12


def link_down(t: Transcript) -> None:
    run = only(t)
    down = [(dict(o.subject)["gpu"], dict(o.subject)["link"]) for o in found(run, "nvlink_state") if o.value == "down"]
    assert down == [("0", "3"), ("1", "6")]
    assert values(run, "nvlink_state", gpu="1", link="10") == ["inactive"]
    assert {"nvlink-down", "nvlink-inactive"} <= codes(run)


def crash_is_unknown(t: Transcript) -> None:
    run = only(t)
    assert isinstance(values(run, "check", check="GPU SDC")[0], NoValue)
    assert values(run, "check", check="NCCL") == ["pass"]
    assert str(values(run, "average_busbw")[0]) == "230.167 GB/s"
    assert "check-failed" not in codes(run)


def thermal_warning(t: Transcript) -> None:
    run = only(t)
    assert values(run, "health", gpu="2", system="thermal") == ["warning"]
    assert values(run, "health_events", gpu="2") == [1.0]
    assert not any(n.weight is Weight.ERROR for n in run.notices)


def no_memory_sensor(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.READ
    assert isinstance(values(run, "DCGM_FI_DEV_MEMORY_TEMP")[0], NoValue)
    assert values(run, "DCGM_FI_DEV_FB_USED")[0].to("MiB") == 0.0  # type: ignore[attr-defined]
    assert values(run, "gpu") == ["NVIDIA L4"]


def l40s(t: Transcript) -> None:
    run = only(t)
    assert values(run, "gpu") == ["NVIDIA L40S"]
    assert "kubectl" in messages(run, "not-exposition")


def two_gpus(t: Transcript) -> None:
    run = only(t)
    assert len(found(run, "gpu")) == 2
    assert "types-unknown" in codes(run)


def t4_memory(t: Transcript) -> None:
    run = only(t)
    assert str(values(run, "DCGM_FI_DEV_FB_FREE")[0]) == "14912 MiB"
    assert values(run, "memory_total")[0].to("MiB") == pytest.approx(15360, abs=2)  # type: ignore[attr-defined]


def old_labels(t: Transcript) -> None:
    run = only(t)
    assert str(values(run, "DCGM_FI_DEV_SM_CLOCK", gpu="0")[0]) == "139 MHz"
    assert isinstance(values(run, "DCGM_FI_DEV_MEMORY_TEMP")[0], NoValue)


def gaps(t: Transcript) -> None:
    run = only(t)
    assert run.condition("attached_gpus") == 8.0
    copies = values(run, "DCGM_FI_DEV_MEM_COPY_UTIL")
    assert sum(isinstance(v, NoValue) for v in copies) == 2
    assert "GPU 6, 7" in run.missing[0]
    assert messages(run, "gpu-attribution").startswith("1 of 8 GPUs belong to a pod (vllm-agg-")


def wrapped(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.PARTLY
    assert len(values(run, "DCGM_FI_DEV_GPU_TEMP")) == 1
    assert {"wrapped-line-joined", "hostname-is-a-pod"} <= codes(run)
    assert run.condition("node") is None


def stale_xid(t: Transcript) -> None:
    run = only(t)
    assert isinstance(values(run, "DCGM_FI_DEV_XID_ERRORS")[0], NoValue)
    assert "only the kernel log" in messages(run, "xid-is-the-last-code")
    assert "45" in messages(run, "xid-reported")


def sentinel(t: Transcript) -> None:
    run = only(t)
    assert str(values(run, "DCGM_FI_DEV_SM_CLOCK")[0]) == "139 MHz"
    assert str(values(run, "DCGM_FI_DEV_MEM_CLOCK")[0]) == "405 MHz"
    (temperature,) = values(run, "DCGM_FI_DEV_MEMORY_TEMP")
    assert isinstance(temperature, NoValue)
    assert temperature.why == "not supported"


EXPECTED = {
    "dcgm-diag/002-deepops-r1-fails.txt": deepops,
    "dcgm-diag/003-p4d-r2-333.txt": p4d,
    "dcgm-diag/005-json-per-gpu-dcgm2-style.json": per_gpu_json,
    "dcgm-diag/007-issue253-423-per-gpu-rows-warn.txt": cut_423,
    "dcgm-diag/009-issue68-pcie-fail-but-reported-healthy.txt": cut_335,
    "dcgm-diag/010-issue215-info-tabs-newline-in-json.txt": info_piece,
    "dcgm-diag/011-issue242-thermal-violation-0s.txt": no_violation,
    "dcgm-diag/012-issue772-preflight-jsonlines-persistence.jsonl": preflight,
    "dcgm-diag/013-issue158-exit-226.txt": exit_226,
    "dcgm-discovery-health/002-nvlink-status-all-up.txt": links_up,
    "dcgm-discovery-health/003-nvlink-status-one-down.txt": link_down,
    "dcgm-discovery-health/005-oci-active-check-crash-vs-fail.log": crash_is_unknown,
    "dcgm-discovery-health/006-health-thermal-warning.log": thermal_warning,
    "dcgm-metrics/001-l4-580-full.prom": no_memory_sensor,
    "dcgm-metrics/002-l40s-upcloud-scrape.prom": l40s,
    "dcgm-metrics/004-l40s-two-gpus-viettel.prom": two_gpus,
    "dcgm-metrics/006-t4-rafay-fb.prom": t4_memory,
    "dcgm-metrics/008-gpu-monitoring-tools-old-lowercase.prom": old_labels,
    "dcgm-metrics/009-aicr-evidence-scrape.prom": gaps,
    "dcgm-metrics/010-t4-470-terminal-wrapped-labels.prom": wrapped,
    "dcgm-metrics/011-xid-metric-stale-45.prom": stale_xid,
    "dcgm-metrics/012-genai-perf-telemetry-snippet.prom": sentinel,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside the clone")
@pytest.mark.parametrize("kind", ["dcgm-diag", "dcgm-discovery-health", "dcgm-metrics"])
def test_every_public_file_ends_in_its_conclusion(kind):
    assert check_corpus(EXPECTED, kind)
