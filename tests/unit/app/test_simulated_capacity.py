"""CPU, memory, MIG slices and budgets of a file in a scenario."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders.simulated import CLUSTER, request
from builders.traces import trace_of
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.simulated_capacity import Host, host_of, needs_of, slices_in
from clusterwright.app.simulated_jobs import Habits, jobs_of_trace
from clusterwright.app.simulated_sites import Site, budgets_from, site_of
from clusterwright.app.simulated_speeds import EQUAL, Paces
from clusterwright.app.simulating import Workshop

HOST = ("pools.gpu.hardware.cpu_cores=96", "pools.gpu.hardware.ram=2 TB")
MIG = ("pools.small.nodes=m-[1-2]", "pools.small.shape=hgx-h100-sxm-8", "pools.small.sharing=mig",
       "pools.small.price=$1.40/GPU-h")  # fmt: skip


def site(*overrides: str) -> Site:
    return site_of(load_document([CLUSTER], overrides), load_catalogue())


def job(**fields):
    return {"submit_s": 0.0, "run_s": 100.0, "gpus": 8, "account": "research", **fields}


def stream_of(where: Site, *rows, host: Host | None = None):
    return jobs_of_trace(trace_of(*rows), where, Habits(host=host), Paces(where, load_catalogue(), EQUAL))


def test_what_a_node_has_is_declared_or_of_its_shape():
    assert site(*HOST).resources == {"gpu": (("cpu", 96.0), ("memory", 2e12 / 2**30))}
    assert site().resources == {"gpu": ()}
    shape = site("pools.gpu.shape=dgx-h100").resources["gpu"]
    assert dict(shape) == {"cpu": 112.0, "memory": 2048.0}


def test_needs_of_a_task_are_those_of_the_job_over_its_nodes():
    trace = trace_of(
        job(gpus=16, cpus=48.0, memory_gib=100.5), job(submit_s=1.0), job(submit_s=2.0, cpus=1.0, memory_gib=1.0)
    )
    tasks = np.array([2, 1, 1], dtype=np.int32)
    found = needs_of(trace, tasks, site(*HOST).resources, Host())
    assert found.cores.tolist() == [24, 0, 1]
    assert found.memory_gib.tolist() == [51, 0, 1]
    assert found.remarks == ()


def test_what_is_not_known_on_one_side_is_not_modelled_and_said():
    tasks = np.array([1], dtype=np.int32)
    bare = needs_of(trace_of(job(cpus=4.0)), tasks, site().resources, Host())
    assert bare.cores.tolist() == bare.memory_gib.tolist() == [0]
    assert "pools.gpu.hardware.cpu_cores is not known" in bare.remarks[0]
    assert "the trace records none" in bare.remarks[1]


def test_cpus_are_threads_where_a_job_has_more_than_cores_and_the_cluster_of_the_trace_decides():
    trace, tasks = trace_of(job(cpus=192.0), job(submit_s=1.0, cpus=24.0)), np.array([1, 1], dtype=np.int32)
    host = host_of(trace, tasks, site(*HOST).resources)
    assert host.threads == 2
    smaller = site("pools.gpu.hardware.cpu_cores=32", "pools.gpu.hardware.ram=2 TB").resources
    assert needs_of(trace, tasks, smaller, host).cores.tolist() == [96, 12]
    assert host_of(trace_of(job(cpus=900.0)), tasks[:1], site(*HOST).resources).threads == 1


def test_a_little_more_memory_than_a_node_declares_is_all_of_it():
    tasks = np.array([1, 1, 1], dtype=np.int32)
    rows = [job(submit_s=float(n), memory_gib=gib) for n, gib in enumerate((1862.2, 2000.0, 3000.0))]
    host = host_of(trace_of(*rows), tasks, site(*HOST).resources)
    found = needs_of(trace_of(*rows), tasks, site(*HOST).resources, host)
    assert found.memory_gib[:2].tolist() == [1862.645, 1862.645]
    assert found.memory_gib[2] == 3000
    assert found.remarks[-1].startswith("1 jobs ask for a little more memory")


@pytest.mark.parametrize(
    ("word", "slices"),
    [("1g.10gb", 1), ("nvidia_a100_3g.20gb", 3), ("mig-7g.80gb", 7), ("h100", 0), ("8g.80gb", 0), ("", 0)],
)
def test_a_mig_profile_names_its_slices(word, slices):
    assert slices_in(word) == slices


def test_a_pool_shared_by_mig_is_a_flavor_of_slices_with_their_price():
    found = site(*MIG)
    assert found.slices == {"small": 7}
    assert {n.gpus for n in found.nodes if n.flavor == "small"} == {56}
    assert found.prices["small"] == pytest.approx(1.40 / 7)
    assert any("one of 7 slices" in note for note in found.notes)
    assert not any("shared" in limit for limit in found.limits)
    assert any("time-slicing" in limit for limit in site("pools.gpu.sharing=time-slicing").limits)


def test_parts_of_gpus_and_mig_profiles_go_to_slices_and_whole_gpus_do_not():
    found = stream_of(
        site(*MIG), job(), job(submit_s=1.0, gpus=1, gpu_milli=300), job(submit_s=2.0, gpus=2, flavor="3g.40gb"),
        job(submit_s=3.0, gpus=5, flavor="small"), job(submit_s=4.0, gpus=1, flavor="h100"),
    )  # fmt: skip
    demands = [found.jobs.kinds[k].demand for k in found.jobs.kind]
    assert [(d.flavors, d.most_gpus) for d in demands] == [
        (("gpu",), 8), (("small",), 3), (("small",), 6), (("small",), 5), (("gpu",), 1),
    ]  # fmt: skip
    whole = stream_of(site(), job(gpus=1, gpu_milli=300))
    assert any("each takes a whole one" in remark for remark in whole.remarks)


def test_budgets_are_of_the_instants_of_the_simulation():
    found = site("scheduling.queues.product.budget={gpu_time: 100 GPU-h, every: 30 d, starts: 2026-05-01}")
    assert found.budgets["product"].gpu_hours == 100
    moved, said = budgets_from(found, 1777852800.0)  # 2026-05-04
    assert moved["product"].from_s == -3 * 86400
    assert "begin full" in said[0]
    undated, told = budgets_from(found, None)
    assert (undated["product"].from_s, undated["product"].every_s) == (0.0, 30 * 86400.0)
    assert "no date" in told[0]
    assert budgets_from(site(), 0.0) == ({}, ())


def test_jobs_that_a_budget_or_the_memory_of_a_node_never_admits_are_named():
    asked = request(overrides=HOST)
    memory = Workshop(replace(asked, overrides=("pools.gpu.hardware.cpu_cores=4", "pools.gpu.hardware.ram=2 TB")))
    reasons = {n.why for n in memory.build(memory.asked.overrides).never_fit}
    assert any(w.startswith("no pool has the CPU cores or memory; a task on a node needs 48 cores") for w in reasons)
    once = ("scheduling.queues.product.budget.gpu_time=20 GPU-h",)
    future = Workshop(asked).build(once)
    assert {n.queue for n in future.never_fit} == {"product"}
    assert all("is 20 GPU-hours in all" in n.why for n in future.never_fit)
    limits = future.scenario.jobs.limit_ms * future.scenario.jobs.gpus
    product = np.array([k.queue == "product" for k in future.scenario.jobs.kinds])[future.scenario.jobs.kind]
    assert limits[product].max() <= 20 * 3_600_000 < limits[~product].max()
    renewed = Workshop(asked).build((*once, "scheduling.queues.product.budget.every=30 d"))
    assert renewed.never_fit == ()
