"""Rails: a test of each of them measured the network only where every rail of the node came back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterwright.judging.acceptance_evidence import RunOutput


def of_the_network(outputs: Sequence[RunOutput], layer: str) -> tuple[RunOutput, ...]:
    """The outputs without those of ports that belong to another network.

    Args:
        layer: link layer of the compute network, "" when unknown; then every port counts.
    """
    return tuple(o for o in outputs if not layer or _layers(o) <= {layer})


def _layers(output: RunOutput) -> set[str]:
    names = {"ib": "infiniband"}
    said = (run.condition("link_layer") for run in output.transcript.runs)
    return {names.get(text.lower(), text.lower()) for text in said if isinstance(text, str) and text}


def why_rails_missing(outputs: Iterable[RunOutput], rails: int) -> str:
    """Which part of the declared rails was measured, "" when all were or nobody declares how many there are."""
    said = (run.condition("device") for o in outputs for run in o.transcript.runs)
    devices = sorted({d for d in said if isinstance(d, str) and d})
    if not rails or len(devices) >= rails:
        return ""
    shown = ", ".join(devices[:8]) or "no device is named"
    return f"rails missing: {len(devices)} of {rails} measured ({shown})"
