"""Sweeps: one parameter of the architecture, several values, the same seeds for each."""

from __future__ import annotations

from dataclasses import replace

from clusterwright.app.replicating import Request, Show
from clusterwright.app.simulated_paths import parse_sweep
from clusterwright.app.simulating import Workshop, run_futures
from clusterwright.app.simulation_requests import SimulationRequest
from clusterwright.lib.errors import InvalidInput
from clusterwright.report.replications import Simulated


def sweep_request(asked: SimulationRequest, sweep: str, stop: Request, show: Show | None = None) -> list[Simulated]:
    """Simulate every value of a sweep; where the jobs are a trace's own with real waits, also the file as it is.

    Returns:
        One result per value. The calibration of each is that of the architecture as the file has it, because real
        waits say nothing about a changed one.

    Raises:
        InvalidInput: for anything wrong in the request or a value.
    """
    path, values = parse_sweep(sweep)
    if asked.events is not None:
        raise InvalidInput("--events is of one future; a sweep has several")
    workshop = Workshop(replace(asked, picture=False))
    labels = [f"{path}={value}" for value in values]
    futures = [workshop.build((*asked.overrides, label), label) for label in labels]
    if not workshop.has_waits:
        return run_futures(workshop.asked, futures, workshop, stop, show)
    base = workshop.build(asked.overrides, "as it is")
    both = run_futures(workshop.asked, [base, *futures], workshop, stop, show)
    return [replace(one, calibration=both[0].calibration) for one in both[1:]] if both else []
