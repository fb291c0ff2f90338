"""Published failure rates as causes of a simulation."""

from __future__ import annotations

from typing import Final

from clusterwright.model.failures import FailureRates
from clusterwright.simulate.failing import Cause, Effect

#: Name of the one cause where a source gives none.
ANY: Final = "node failure"


def causes_of(rates: FailureRates, scale: float = 1.0) -> tuple[Cause, ...]:
    """The causes of a catalogue entry; together they have its rate × `scale`.

    Counts of a source are taken as rates of every node, without ageing, with nothing that takes a whole domain: no
    public source gives more. What ends a job on a good node spares lemons.
    """
    whole = rates.per_1000_node_days * scale
    if not rates.causes:
        return (Cause(ANY, whole),)
    total = sum(c.interruptions for c in rates.causes)
    return tuple(
        Cause(c.cause, whole * c.interruptions / total, effect=Effect(c.effect), lemons=c.effect != "job")
        for c in rates.causes
    )
