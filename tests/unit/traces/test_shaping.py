"""Jobs whose nodes nobody recorded get equal tasks, as few as the nodes allow."""

from __future__ import annotations

import pytest

from builders.traces import trace_of
from clusterwright.traces.shaping import shape_jobs


@pytest.mark.parametrize(
    ("gpus", "tasks", "per_task"),
    [(0, 1, 0), (1, 1, 1), (8, 1, 8), (12, 2, 6), (16, 2, 8), (9, 3, 3), (13, 13, 1), (128, 16, 8), (-1, -1, -1)],
)
def test_equal_tasks_as_few_as_possible(gpus, tasks, per_task):
    found = shape_jobs(trace_of({"submit_s": 0.0, "gpus": gpus}), 8)
    assert (found[0].tolist(), found[1].tolist()) == ([tasks], [per_task])


def test_what_is_recorded_stays():
    found = shape_jobs(trace_of({"submit_s": 0.0, "gpus": 16, "tasks": 4, "gpus_per_task": 4}), 8)
    assert (found[0].tolist(), found[1].tolist()) == ([4], [4])


def test_a_node_has_at_least_one_gpu():
    with pytest.raises(ValueError, match="must be 1 or more"):
        shape_jobs(trace_of({"submit_s": 0.0}), 0)
