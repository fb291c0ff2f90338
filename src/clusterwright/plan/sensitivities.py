"""The inputs of a figure between the ends of their bands, ranked by how far each moves it.

An input is an estimate with a validated band, wherever it stands in the tree, or a leaf below none. A leaf without a
band of its own gets one by its origin. Counts that the file or the plan decides (nodes, GPUs, replicas) have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.lib.figures import Figure, Origin
from clusterwright.physics.sensitivities import Swing, tornado

#: Factors on a leaf without a band of its own, by origin: our defaults. A declared price is what the contract says, a
#: declared share or load what somebody hopes.
BANDS: Final[dict[Origin, tuple[float, float]]] = {
    Origin.ASSUMED: (0.7, 1.3),
    Origin.REHEARSED: (0.7, 1.3),
    Origin.CATALOGUE: (0.9, 1.1),
    Origin.DECLARED: (0.9, 1.1),
    Origin.MEASURED: (0.95, 1.05),
}
#: Units of what is decided, not estimated.
_DECIDED: Final = frozenset({"nodes", "GPUs", "replicas", "copies", "ports", "GPU-h/month", "sequences", ""})


def swings_of(figure: Figure, most: int = 8) -> tuple[Swing, ...]:
    """The widest swings of a figure, at most `most`; shares stay at most 1."""
    inputs: dict[str, Figure] = {}
    _collect(figure, inputs, top=True)
    bands = {name: _ends(found) for name, found in inputs.items() if found.unit not in _DECIDED}
    return tornado(lambda changed: evaluate_at(figure, changed), bands)[:most]


def _collect(figure: Figure, inputs: dict[str, Figure], top: bool) -> None:
    if figure.is_leaf or (figure.band is not None and not top):
        inputs[figure.name] = figure
        return
    for below in figure.inputs:
        _collect(below, inputs, top=False)


def _ends(figure: Figure) -> tuple[float, float]:
    low, high = figure.band or BANDS[figure.origin]
    ends = (figure.value * low, figure.value * high)
    return (min(ends[0], 1.0), min(ends[1], 1.0)) if figure.unit == "share" else ends


def evaluate_at(figure: Figure, changed: Mapping[str, float]) -> float:
    """Value of a figure with some figures below it replaced by name, computed ones too."""
    known: dict[int, float] = {}

    def value_of(node: Figure) -> float:
        if id(node) not in known:
            if node.name in changed:
                known[id(node)] = changed[node.name]
            elif node.function is None:
                known[id(node)] = node.value
            else:
                known[id(node)] = float(node.function(*(value_of(i) for i in node.inputs)))
        return known[id(node)]

    return value_of(figure)
