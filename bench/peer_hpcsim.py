"""Run one workload through hpcsim, in hpcsim's own environment; starts of jobs and CPU seconds as JSON.

    python bench/peer_hpcsim.py WORKLOAD.swf NODES GPUS POLICY       POLICY is fifo or easy

A job without a model architecture runs `num_iterations ÷ GPUs` seconds. Every job asks for the whole memory of its
GPUs, for hpcsim checks memory alone when it allocates and would else put two jobs on one GPU. Its metrics are sampled
once a day and not every minute, which only makes it faster.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from hpcsim.cluster.cluster import Cluster, ClusterConfig, NodeSpec
from hpcsim.cluster.hardware import GPUType
from hpcsim.scheduler.backfill import BackfillWrapper, EASYBackfillPolicy
from hpcsim.scheduler.schedulers import FIFOScheduler
from hpcsim.simulator.engine import SimulationEngine
from hpcsim.workload.job import TrainingJob


def read(workload: str, memory_gb: float) -> list[TrainingJob]:
    jobs = []
    for line in Path(workload).read_text().splitlines():
        if line.startswith(";"):
            continue
        fields = line.split()
        number, submit_s, run_s, gpus, limit_s = (int(fields[i]) for i in (0, 1, 3, 7, 8))
        job = TrainingJob(
            job_id=str(number),
            submit_time=float(submit_s),
            arch=None,
            num_iterations=run_s * gpus,
            num_gpus_requested=gpus,
            memory_per_gpu_gb=memory_gb,
        )
        job.requested_runtime = float(limit_s)
        jobs.append(job)
    return jobs


def main(workload: str, nodes: str, gpus: str, policy: str) -> None:
    spec = NodeSpec(gpu_type=GPUType.V100, num_nodes=int(nodes), gpus_per_node=int(gpus))
    cluster = Cluster(ClusterConfig("pool", [spec]))
    jobs = read(workload, next(iter(cluster.gpus.values())).memory_free_gb)
    scheduler = FIFOScheduler(cluster)
    if policy == "easy":
        scheduler = BackfillWrapper(scheduler, EASYBackfillPolicy())
    SimulationEngine.METRIC_INTERVAL = 86_400.0
    ends_s = max(j.submit_time for j in jobs) + sum(j.num_iterations / j.num_gpus_requested for j in jobs)
    engine = SimulationEngine(cluster, scheduler, jobs, max_sim_time=ends_s)
    begin = time.process_time()
    result = engine.run()
    cpu_s = time.process_time() - begin
    print(json.dumps({"cpu_s": cpu_s, "starts": {j.job_id: j.start_time for j in result.completed_jobs}}))


if __name__ == "__main__":
    main(*sys.argv[1:])
