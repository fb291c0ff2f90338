"""The public traces: every row of them is accounted for, and their published totals come out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders.traces import adds_up, codes
from clusterwright.app.trace_reading import TraceRequest, read_trace
from clusterwright.traces.imports import Imported

TRACES = Path(__file__).parents[3] / "shared" / "traces"
PHILLY = TRACES / "philly"
OPENB = TRACES / "alibaba-gpu-v2023-openb"

pytestmark = pytest.mark.skipif(
    not (PHILLY.exists() and OPENB.exists()), reason=f"the public traces are not there: {PHILLY}, {OPENB}"
)


def read(*paths: Path) -> Imported:
    return read_trace(TraceRequest([str(path) for path in paths]))


@pytest.fixture(scope="module")
def philly() -> Imported:
    return read(PHILLY / "philly_sia.csv")


def test_all_lines_of_philly_are_jobs(philly):
    # 82,248 lines below the header, the last of which is blank.
    lines = (PHILLY / "philly_sia.csv").read_text(encoding="utf-8").split("\n")[1:]
    rows = sum(bool(line.strip()) for line in lines)
    assert rows == 82_247
    assert adds_up(philly.counts, rows)
    assert philly.counts.jobs == len(philly.trace) == rows
    assert codes(philly.counts) == {"remarks": {"time-twice": 7}}


def test_the_gpu_time_of_philly_is_that_of_its_own_column(philly):
    lines = (PHILLY / "philly_sia.csv").read_text(encoding="utf-8").split("\n")[1:]
    spent = sum(float(line.split(",")[3]) for line in lines if line.strip())
    assert float(np.sum(philly.trace.held_s * philly.trace.whole_gpus)) == pytest.approx(spent, rel=1e-12)


def test_both_forms_of_philly_give_the_same_submissions(philly):
    common = read(PHILLY / "philly_common_oct_nov.csv")
    assert len(common.trace) == 68_503
    one = {(job.submit_s, job.gpus, job.queue) for job in common.trace.jobs()}
    other = {(job.submit_s, job.gpus, job.queue) for job in philly.trace.jobs()}
    assert one <= other


def test_pods_and_nodes_of_openb_are_all_there():
    found = read(OPENB / "openb_pod_list_default.csv", OPENB / "openb_node_list_all_node.csv")
    assert (len(found.trace), len(found.machines), sum(m.gpus for m in found.machines)) == (8_152, 1_523, 6_212)
    assert adds_up(found.counts, 8_152 + 1_523)
    assert codes(found.counts) == {"parts": {"node": 1_523}, "remarks": {"never-ran": 897, "still-running": 34}}
    assert found.trace.state.counts() == {"CANCELLED": 6_056, "FAILED": 1_870, "COMPLETED": 192, "RUNNING": 34}
    assert int(np.count_nonzero(found.trace.gpu_milli < 1000)) == 3_078


@pytest.mark.parametrize("name", ["cpu100", "gpushare100", "gpuspec33", "multigpu50"])
def test_variants_of_openb_are_all_jobs(name):
    path = OPENB / f"openb_pod_list_{name}.csv"
    rows = len(path.read_text(encoding="utf-8").strip().split("\n")) - 1
    found = read(path)
    assert adds_up(found.counts, rows)
    assert len(found.trace) == rows
