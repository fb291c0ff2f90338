"""How the GPUs of a job are spread over nodes, where the source does not say: a rule, not a record."""

from __future__ import annotations

import numpy as np

from clusterwright.traces.tables import Counts, Trace


def shape_jobs(trace: Trace, gpus_of_node: int) -> tuple[Counts, Counts]:
    """(tasks, GPUs per task) of every job, (jobs,) int32 each; -1 in both where its GPUs are not recorded.

    What is recorded stays. Else equal tasks are taken, as few as nodes with `gpus_of_node` GPUs allow: 16 GPUs on nodes
    with 8 are 2 × 8, 12 are 2 × 6, 9 are 3 × 3. A job without GPUs is one task.
    """
    if gpus_of_node < 1:
        raise ValueError(f"gpus_of_node is {gpus_of_node}, must be 1 or more")
    tasks, per_task = trace.tasks.copy(), trace.gpus_per_task.copy()
    unknown = (tasks < 0) | (per_task < 0)
    for gpus in np.unique(trace.gpus[unknown]).tolist():
        fewest = _fewest_tasks(gpus, gpus_of_node) if gpus >= 0 else -1
        chosen = unknown & (trace.gpus == gpus)
        tasks[chosen] = fewest
        per_task[chosen] = gpus // fewest if gpus >= 0 else -1
    return tasks, per_task


def _fewest_tasks(gpus: int, gpus_of_node: int) -> int:
    least = max(1, -(-gpus // gpus_of_node))
    return next(tasks for tasks in range(least, max(gpus, 1) + 1) if gpus % tasks == 0)
