"""Jobs of the public Philly trace, read by hand: independent of the importer of the product."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import numpy as np

from builders.oracles import Job

#: Microsoft's trace in the flattened form that came with Sia (SOSP 2023); see the README beside it.
PHILLY = Path(__file__).resolve().parents[3] / "shared" / "traces" / "philly" / "philly_sia.csv"
#: GPUs of a node (Jeon et al., USENIX ATC 2019: machines with 2 and with 8; gangs are counted in eights here).
NODE_GPUS = 8


def philly_jobs(first: int = 0, count: int | None = None, *, times_faster: float = 1.0, seed: int = 1) -> list[Job]:
    """So many jobs in order of submission, with submissions closer together.

    The trace has neither time limits nor priorities: run times are multiplied with 1 to 10 for the limit, and one job
    in ten is urgent and one in ten more so, drawn with `seed`. Jobs wider than a node are tasks of at most a node.
    """
    with PHILLY.open() as lines:
        rows = [(datetime.fromisoformat(r["timestamp"]), number, r) for number, r in enumerate(csv.DictReader(lines))]
    rows = sorted(rows, key=lambda row: row[:2])[first : None if count is None else first + count]
    rng = np.random.Generator(np.random.PCG64(seed))
    jobs = []
    for submitted, number, row in rows:
        gpus, run_s = int(float(row["num_gpus"])), float(row["duration"])
        tasks = -(-gpus // NODE_GPUS)
        job = Job(
            id=f"{number:06d}",
            submit_s=(submitted - rows[0][0]).total_seconds() // times_faster,
            run_s=run_s,
            gpus=gpus // tasks,
            tasks=tasks,
            limit_s=run_s * int(rng.choice([1, 1, 2, 5, 10])),
            priority=int(rng.choice([0, 1, 2], p=[0.8, 0.1, 0.1])),
        )
        jobs.append(job)
    return jobs
