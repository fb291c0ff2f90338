"""Simulating: what of a trace and a file becomes a scenario, paths, pictures, processes."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from builders.simulated import CLUSTER, SACCT, a_simulation, request
from builders.traces import trace_of
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.replicating import Request, Task, replicate
from clusterwright.app.simulated_jobs import ANY_QUEUE, Habits, distinct, interval, jobs_of_trace
from clusterwright.app.simulated_misfits import split_never_fit
from clusterwright.app.simulated_paths import check_paths, expand_nodes, parse_sweep
from clusterwright.app.simulated_sites import Site, site_of
from clusterwright.app.simulated_speeds import Paces, parse_speeds
from clusterwright.app.simulated_workloads import jobs_of_workloads
from clusterwright.app.simulating import Workshop, simulate_request
from clusterwright.app.simulation_outputs import page_of, text_of, values_of
from clusterwright.app.simulation_requests import bare_file
from clusterwright.app.sizing import Question, ask
from clusterwright.app.sweeping import sweep_request
from clusterwright.app.what_ifs import what_if_request
from clusterwright.ledger.lines import Line
from clusterwright.lib.errors import InvalidInput
from clusterwright.simulate.jobs import NONE_MS, Fate

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "training-1024" / "cluster.yaml")


def site(*overrides: str, path: str = CLUSTER) -> Site:
    return site_of(load_document([path], overrides), load_catalogue())


def paces(where: Site | None = None, *entries: str, measured_on: str = "") -> Paces:
    return Paces(where or site(), load_catalogue(), parse_speeds(entries), measured_on)


def job(**fields):
    return {"submit_s": 0.0, "run_s": 100.0, "gpus": 8, "account": "research", **fields}


def test_every_job_of_a_trace_is_simulated_or_counted():
    trace = trace_of(job(), job(gpus=0), job(gpus=-1), job(run_s=float("nan")), job(submit_s=9.0))
    stream = jobs_of_trace(trace, site(), Habits(), paces())
    assert len(stream.jobs) == 2
    assert sum(stream.left_out.values()) == 3
    assert len(stream.left_out) == 3


def test_a_job_arrives_when_its_own_conditions_let_it_and_ends_as_it_did():
    trace = trace_of(
        job(submit_s=1000.0, eligible_s=1500.0, state="FAILED"),
        job(submit_s=1100.0, state="TIMEOUT", limit_s=90.0),
        job(submit_s=1200.0, start_s=1260.0, state="CANCELLED", limit_s=500.0),
    )
    stream = jobs_of_trace(trace, site(), Habits(checkpoints=interval(60.0)), paces())
    jobs = stream.jobs
    assert jobs.submit_ms.tolist() == [100_000, 200_000, 500_000]
    assert jobs.fate.tolist() == [Fate.TIME_OUT, Fate.CANCEL, Fate.FAIL]
    assert jobs.limit_ms.tolist() == [100_000, 500_000, NONE_MS], "who ran beyond the limit may do so here"
    assert stream.real_wait_ms.tolist() == [NONE_MS, 60_000, NONE_MS]
    assert jobs.kinds[0].checkpoints.interval_ms == 60_000
    assert any("beyond their time limit" in remark for remark in stream.remarks)


def test_queues_come_from_account_partition_or_qos_or_are_mapped():
    mapped = Habits({"lab": "product", ANY_QUEUE: "research"})
    trace = trace_of(job(account="x", qos="product"), job(account="lab"), job(account="y", queue="z"))
    kinds = jobs_of_trace(trace, site(), mapped, paces()).jobs
    assert [kinds.kinds[k].queue for k in kinds.kind] == ["product", "product", "research"]
    with pytest.raises(InvalidInput, match="1 jobs of the trace"):
        jobs_of_trace(trace_of(job(account="y")), site(), Habits(), paces())


def test_failures_come_from_the_catalogue_with_their_source_and_scale_with_the_gpus_of_a_node():
    whole, half = site(), site("pools.gpu.hardware.gpus=4", "scheduling.queues=")
    rate = {f.name: f for f in whole.figures}["failures.rate"]
    assert rate.origin.word == "catalogue"
    assert "arxiv.org/abs/2407.21783" in rate.basis
    assert sum(c.per_1000_days for c in whole.faults.causes) == pytest.approx(rate.value) == pytest.approx(3.79)
    assert sum(c.per_1000_days for c in half.faults.causes) == pytest.approx(3.79 / 2)
    assert {f.name: f.origin.word for f in whole.figures}["failures.detection"] == "assumed"


def test_a_declared_training_saves_restarts_and_is_placed_as_planned():
    found = site(path=EXAMPLE)
    jobs = jobs_of_workloads(found, 86400.0, paces(found)).jobs
    (kind,) = jobs.kinds
    assert kind.demand.most_gpus == 1024
    assert kind.checkpoints.interval_ms == 30 * 60 * 1000
    assert kind.retries == 100
    assert kind.starting_ms > 0
    assert len(found.spares) == 4
    assert found.prices == {"gpu": pytest.approx(2.10)}


def test_jobs_that_no_quota_holds_are_taken_out_with_their_names():
    asked = request()
    future = Workshop(asked).build(("pools.gpu.nodes=16",))
    split, never = split_never_fit(future.scenario)
    assert (len(split.jobs), never) == (len(future.scenario.jobs), ())
    small = Workshop(asked).build(("pools.gpu.nodes=2",))
    assert sum(n.jobs for n in small.never_fit) > 0
    assert len(small.scenario.jobs) + sum(n.jobs for n in small.never_fit) == len(future.scenario.jobs)
    capped = Workshop(asked).build(("scheduling.queues.product.borrow.gpu=0",))
    assert any("may use 24 GPUs at most" in n.why for n in capped.never_fit)


def test_a_number_of_nodes_stands_for_hosts():
    document = load_document([CLUSTER])
    assert expand_nodes(document, ["pools.gpu.nodes=2", "a=b"]) == ["pools.gpu.nodes=g-01,g-02", "a=b"]
    assert expand_nodes(document, ["pools.gpu.nodes=9"])[0].endswith("g-08,gpu-more-1")
    assert expand_nodes(document, ["pools.gpu.nodes=x-[1-3]"]) == ["pools.gpu.nodes=x-[1-3]"]
    with pytest.raises(InvalidInput, match="0 nodes"):
        expand_nodes(document, ["pools.gpu.nodes=0"])
    with pytest.raises(InvalidInput, match=r"did you mean scheduling.queues.product.lend.gpu\?"):
        check_paths(document, ["scheduling.queues.products.lend.gpu=1"])


@pytest.mark.parametrize(
    ("text", "values"),
    [("a.b=1,2,x", ["1", "2", "x"]), ("a=8..32/8", ["8", "16", "24", "32"]), ("a=0.5..1/0.25", ["0.5", "0.75", "1"]),
     ("a=3..5", ["3", "4", "5"])],
)  # fmt: skip
def test_a_sweep_lists_its_values(text, values):
    assert parse_sweep(text)[1] == values


@pytest.mark.parametrize("text", ["a", "=1", "a=", "a=5..1", "a=0..1000", "a=1..2/0"])
def test_a_sweep_without_values_or_with_too_many_is_refused(text):
    with pytest.raises(InvalidInput):
        parse_sweep(text)


@pytest.mark.parametrize("text", ["", "8", "x8", "8x", "0x8", "8x0", "8x999", "-1x8"])
def test_bare_nodes_are_refused_unless_they_are_a_number_of_nodes_and_gpus(text):
    with pytest.raises(InvalidInput, match="nodes x GPUs"):
        bare_file(text)


def test_the_picture_holds_all_gpu_time_of_every_node_and_agrees_with_the_ledger():
    found = a_simulation(failures="none", seeds=1)
    picture = found.picture
    assert picture is not None
    assert [name for _, name, _ in picture.rows] == [f"g-0{n}" for n in range(1, 9)]
    for cells in picture.cells:
        assert sum(s for cell in cells for _, s in cell) == pytest.approx(8 * 2 * 86400)
    (run,) = found.replications
    drawn = dict.fromkeys(Line, 0.0)
    for cells in picture.cells:
        for cell in cells:
            for line, seconds in cell:
                drawn[Line(line)] += seconds
    for line in (Line.PRODUCTIVE, Line.PREEMPTED, Line.LOST, Line.FAILED, Line.STARTING, Line.HELD_IDLE):
        assert drawn[line] == pytest.approx(run.lines.of(line) / 1000, rel=1e-3, abs=10), line
    free = (Line.FREE, Line.FREE_WITH_DEMAND)
    assert sum(drawn[x] for x in free) == pytest.approx(sum(run.lines.of(x) for x in free) / 1000)


def test_a_stop_keeps_what_was_simulated_and_begins_nothing_new():
    future = Workshop(request()).build(())
    with Request() as stop:
        signal.raise_signal(signal.SIGTERM)
        tasks = (Task(future.scenario, seed) for seed in range(3))
        assert replicate(tasks, 3, 1, stop) == []
        assert stop.name == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_is_stopped_before_anything_was_simulated_has_no_result():
    with Request() as stop:
        signal.raise_signal(signal.SIGINT)
        assert simulate_request(request(), stop) == []
        assert sweep_request(request(), "pools.gpu.nodes=4,8", stop) == []
        assert what_if_request(request(), ("pools.gpu.nodes=4",), stop) is None
        assert ask(request(), Question("useful"), stop) is None
    assert text_of([]) == "stopped before anything was simulated"
    assert "stopped before anything was simulated" in page_of([])
    assert values_of([]) == {"partial": True, "simulated": []}


def test_different_rows_are_those_of_numpy_also_where_they_do_not_fit_into_one_number():
    generator = np.random.default_rng(3)
    for sizes in ((3, 2, 4), (3, 2**40, 2**40, 5), (1, 1)):
        columns = [generator.integers(0, size, 500) for size in sizes]
        columns[1] = columns[1] // max(1, sizes[1] // 3) * (sizes[1] // 3)
        unique, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        rows, which = distinct(columns)
        assert rows == [tuple(row) for row in unique.tolist()]
        assert np.array_equal(which, inverse.reshape(-1))
    assert distinct([np.zeros(0, dtype=np.int32)])[0] == []


def test_drawn_jobs_are_the_same_whatever_the_cluster():
    asked = request(draw=True, days=2.0)
    workshop = Workshop(asked)
    one, two = workshop.build(()), workshop.build(("pools.gpu.nodes=16",))
    assert np.array_equal(workshop.draw(one, 3).jobs.work_ms, workshop.draw(two, 3).jobs.work_ms)
    assert not np.array_equal(workshop.draw(one, 3).jobs.work_ms, workshop.draw(one, 4).jobs.work_ms)
    assert SACCT in one.source
