"""What-ifs: the architecture as it is and changed, in the same futures."""

from __future__ import annotations

from dataclasses import replace

from clusterwright.app.replicating import Request, Show
from clusterwright.app.simulating import Workshop, run_futures
from clusterwright.app.simulation_requests import SimulationRequest
from clusterwright.lib.errors import InvalidInput
from clusterwright.report.replications import Simulated


def what_if_request(
    asked: SimulationRequest, changes: tuple[str, ...], stop: Request, show: Show | None = None
) -> tuple[Simulated, Simulated] | None:
    """Simulate both with the same seeds, so that they differ in nothing but the changes.

    Args:
        changes: `path=value` each, over what `asked.overrides` makes of the files.

    Returns:
        The two, the calibration of both that of the first; None when it was stopped before both had begun.

    Raises:
        InvalidInput: without a change, and for anything wrong in the request.
    """
    if not changes:
        raise InvalidInput("there is no change; write --set PATH=VALUE, such as --set pools.gpu.nodes=24")
    workshop = Workshop(asked)
    futures = [
        workshop.build(asked.overrides, "as it is"),
        workshop.build((*asked.overrides, *changes), ", ".join(changes)),
    ]
    found = run_futures(workshop.asked, futures, workshop, stop, show)
    if len(found) < len(futures):
        return None
    return found[0], replace(found[1], calibration=found[0].calibration)
