"""What the public operator files prove: a refusal proves nothing, and no fault of a benchmark passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import FOLDER, read_file
from clusterwright.judging.advising import advise
from clusterwright.judging.comparing import REASONS
from clusterwright.judging.deriving import derive, families_of
from clusterwright.model.metrics import METRICS
from clusterwright.model.observations import Transcript, Weight

FILES = sorted(FOLDER.glob("*/*")) if FOLDER.is_dir() else []
SAID = (*REASONS, "skip", "not run")


@pytest.fixture(scope="module")
def transcripts() -> dict[Path, Transcript]:
    if not FILES:
        pytest.skip("the public operator files are not beside the clone")
    return {path: read_file(path) for path in FILES}


def test_every_file_gives_readings_of_known_metrics_with_values_or_reasons(transcripts):
    for path, transcript in transcripts.items():
        advise(transcript)
        for reading in derive(transcript).readings:
            assert reading.metric in METRICS, path
            assert (reading.value is None) == bool(reading.unreadable), path
            assert not reading.unreadable or reading.unreadable.lower().startswith(SAID), (path, reading.unreadable)


def test_a_refused_file_has_no_value(transcripts):
    for path, transcript in transcripts.items():
        if transcript.refusal is not None:
            assert not [r for r in derive(transcript).readings if r.value is not None], path


def test_an_incomplete_or_faulty_benchmark_loses_every_metric_that_it_gives(transcripts):
    for path, transcript in transcripts.items():
        if not any(family.benchmark for family in families_of(transcript.kind)):
            continue
        for run in transcript.runs:
            if not run.missing and not run.rejected and not any(n.weight is Weight.ERROR for n in run.notices):
                continue
            found = derive(Transcript(transcript.kind, (run,))).readings
            lost = {r.metric for r in found if r.value is None}
            assert {r.metric for r in found} == lost, path


def test_placeholders_of_documentation_prove_nothing(transcripts):
    templates = [p for p in transcripts if "placeholder" in p.name or "template" in p.name]
    for path in templates:
        assert not [r for r in derive(transcripts[path]).readings if r.value is not None], path


#: Conclusions that a careful person draws, as (metric, value) that must be among the readings.
CONCLUSIONS = {
    "nccl-tests/029-issue1184-wrong-237858-proto-simple.txt": [("collective_errors", 475896.0)],
    "nccl-tests/001-a100-8gpu-allreduce-old-header-check-off.log": [("collective_errors", None)],
    "nvidia-smi-topo/001-nvl-bridge-pair-nv17-degraded.txt": [("nvlink_down", 1.0)],
    "nvidia-smi-topo/004-10gpu-pcie-box.txt": [("gpus_present", 10.0)],
    "nvidia-smi-topo/005-h100-5of8-visible-container.txt": [("gpus_present", None)],
    "nvidia-smi-q/009-azhc-retired-pages-bad.txt": [("remaps_pending", 4.0), ("gpus_present", 8.0)],
    "nvidia-smi-q/010-h800-q-cn.txt": [("gpus_present", None)],
    "nvidia-smi-csv/003-h200-query-compute-apps.csv": [("gpus_present", None)],
    "nvidia-smi-nvlink/005-h100-mig-not-supported.txt": [("nvlink_down", None)],
    "dcgm-diag/005-json-per-gpu-dcgm2-style.json": [("dcgm_failures", 3.0)],
    "dcgm-discovery-health/003-nvlink-status-one-down.txt": [("nvlink_down", 2.0)],
    "dcgm-metrics/011-xid-metric-stale-45.prom": [("xid_errors", None)],
    "kernel-xid/005-gpu-fell-off-without-xid-multiline.log": [("gpus_lost", 1.0), ("xid_errors", None)],
    "ib-state/002-ibstat-polling-rate10.txt": [("ib_links_up", 0.0)],
    "perftest-bw-lat/001-loopback-8M-server-client-mixed.log": [("rdma_write", None)],
    "perftest-bw-lat/004-rocm-bidirectional-all-sizes.txt": [("rdma_write", None)],
    "training-log/009-superbench-megatron-deepspeed.log": [("checkpoints_failed", 1.0)],
    "k8s-node/001-yaml-capacity16-allocatable0.yaml": [("gpus_schedulable", 0.0)],
}


def test_what_a_careful_person_concludes_is_reached(transcripts):
    for name, expected in CONCLUSIONS.items():
        path = FOLDER / name
        if path not in transcripts:
            continue
        found = {(r.metric, r.value) for r in derive(transcripts[path]).readings if not hasattr(r.value, "powers")}
        for metric, value in expected:
            assert (metric, value) in found, (name, metric, sorted(map(str, found)))
