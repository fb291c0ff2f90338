"""Bill of materials of the best layout of a machine."""

from __future__ import annotations

import math
from dataclasses import replace

from clusterwright.lib.scales import DAY_S
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.wants import Wants
from clusterwright.plan.materials import Materials, Options, count_materials


def options_of(wants: Wants) -> Options:
    """What a bill counts with; training says how often its nodes fail, how long a repair takes and what stands by."""
    plain, own = Options(pue=wants.pue, spares_target=wants.spares_target), wants.training
    if own is None:
        return plain
    asked = None if wants.origin("survive") == "assumed" else wants.serving.survive_nodes
    rate = plain.per_1000_node_days if own.failures is None else own.failures
    return replace(plain, per_1000_node_days=rate, repair_days=own.repair_s / DAY_S, spares=asked)


def bill_of(fit: ServingFit | TrainingFit, wants: Wants) -> Materials | None:
    """Nodes with spares, switches, cables, racks and power; None where nothing holds or no node is known."""
    if fit.best is None or fit.machine.shape is None:
        return None
    options = options_of(wants)
    nodes, together = fit.best.nodes, fit.machine.shape.domain_nodes
    if together > 1:
        # A domain that spans nodes is one rack, sold whole and spared as a whole.
        nodes = math.ceil(nodes / together) * together
        options = replace(options, rack_nodes=together, rack_kw=math.inf, per_1000_node_days=0.0, spares=None)
    try:
        found = count_materials(fit.machine.shape, nodes=nodes, options=options)
    except ValueError as error:  # more nodes than any tree of these switches joins
        gpus = nodes * fit.machine.gpus_per_node
        return Materials(nodes, 0, gpus, None, None, 0, 0, 0, None, None, unknown=(f"everything: {error}",))
    if together == 1:
        return found
    lines = (
        replace(line, reason=f"{together} nodes, one domain of GPUs") if line.what == "racks of nodes" else line
        for line in found.lines
        if line.what != "spare nodes"
    )
    return replace(found, lines=tuple(lines), unknown=(*found.unknown, "spares: a rack is spared as a whole"))
