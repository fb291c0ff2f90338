"""Bill of materials of the best layout of a machine."""

from __future__ import annotations

from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.trainings import TrainingFit
from clusterwright.plan.fitting.wants import Wants
from clusterwright.plan.materials import Materials, Options, count_materials


def bill_of(fit: ServingFit | TrainingFit, wants: Wants) -> Materials | None:
    """Nodes with spares, switches, cables, racks and power; None where nothing holds or no node is known."""
    if fit.best is None or fit.machine.shape is None:
        return None
    options = Options(pue=wants.pue, spares_target=wants.spares_target)
    nodes = fit.best.nodes
    try:
        return count_materials(fit.machine.shape, nodes=nodes, options=options)
    except ValueError as error:  # more nodes than any tree of these switches joins
        gpus = nodes * fit.machine.gpus_per_node
        return Materials(nodes, 0, gpus, None, None, 0, 0, 0, None, None, unknown=(f"everything: {error}",))
