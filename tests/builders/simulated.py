"""Simulated futures for tests, from the small own example."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from clusterwright.app.replicating import Request
from clusterwright.app.simulating import Workshop, run_futures, simulate_request
from clusterwright.app.simulation_requests import SimulationRequest
from clusterwright.app.trace_reading import TraceRequest
from clusterwright.report.replications import Picture, Simulated

FIXTURES = Path(__file__).parents[1] / "fixtures" / "simulation"
CLUSTER, SACCT = str(FIXTURES / "cluster.yaml"), str(FIXTURES / "sacct.txt")
HOSTILE = "</script><script>document.title='broken'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"


def request(**changes) -> SimulationRequest:
    asked = SimulationRequest(
        files=(CLUSTER,), trace=TraceRequest((SACCT,)), days=2.0, seeds=2, processes=1, picture=True
    )
    return replace(asked, **changes)


@cache
def a_simulation(**changes) -> Simulated:
    """Two days of the example in two futures."""
    (found,) = simulate_request(request(**changes), Request())
    return found


@cache
def a_sweep() -> list[Simulated]:
    asked = request(picture=False)
    workshop = Workshop(asked)
    labels = [f"pools.gpu.nodes={count}" for count in (4, 8)]
    return run_futures(asked, [workshop.build((label,), label) for label in labels], workshop, Request())


@cache
def a_pair() -> tuple[Simulated, Simulated]:
    asked = request()
    workshop = Workshop(asked)
    first, second = run_futures(
        asked, [workshop.build(()), workshop.build(("pools.gpu.nodes=4",))], workshop, Request()
    )
    return first, second


def hostile() -> Simulated:
    """Names that try to leave their place."""
    found = a_simulation()
    assert found.picture
    rows = tuple((HOSTILE, HOSTILE, 1) for _ in found.picture.rows)
    return replace(
        found, name=HOSTILE, source=HOSTILE, remarks=(HOSTILE,), limits=(HOSTILE,),
        picture=replace(found.picture, rows=rows),
    )  # fmt: skip


def many_nodes() -> Simulated:
    """A picture as large as it gets."""
    found = a_simulation()
    cell = ((("productive", 5.0), ("starting", 1.0)), (("unhealthy", 6.0),), (("free without demand", 6.0),))
    cells = tuple(tuple(cell[(r + c) % 3] for c in range(120)) for r in range(96))
    rows = tuple((f"gpu/{r // 18}", f"g-{r}", 11) for r in range(96))
    return replace(found, picture=Picture(rows, cells, 1440.0, 172800.0))
