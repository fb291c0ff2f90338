"""Small scenarios for the tests of the simulation."""

from collections.abc import Iterable
from typing import Any

from clusterwright.queueing.nodes import NodeInfo
from clusterwright.queueing.requests import Demand, Shape
from clusterwright.simulate.happenings import Event, render_event
from clusterwright.simulate.jobs import Kind, SimJob, list_jobs
from clusterwright.simulate.loop import Outcome, simulate
from clusterwright.simulate.scenarios import Scenario


def nodes(count: int, gpus: int = 8, flavor: str = "h100", rack: int = 0) -> tuple[NodeInfo, ...]:
    """n0, n1 …, in racks of `rack` nodes."""
    return tuple(NodeInfo(f"n{i}", flavor, gpus, (f"rack{i // rack}",) if rack else ()) for i in range(count))


def kind(gpus: int = 8, tasks: int = 1, **fields: Any) -> Kind:
    """Tasks of `gpus` GPUs each."""
    return Kind(Demand((Shape(tasks, gpus),)), **fields)


def scenario(rows: Iterable[SimJob], count: int = 1, **fields: Any) -> Scenario:
    """Jobs on `count` nodes of 8 GPUs, unless `nodes` says others."""
    return Scenario(fields.pop("nodes", None) or nodes(count), list_jobs(rows), **fields)


def logged(setting: Scenario, seed: int = 0) -> tuple[Outcome, list[str]]:
    """The outcome, and its log."""
    events = list[Event]()
    outcome = simulate(setting, seed, observe=events.append)
    return outcome, [render_event(e) for e in events]
