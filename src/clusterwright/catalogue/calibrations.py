"""Which calibration of a serving engine applies: the closest by GPU, then by version."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.calibrations import Calibration


def calibrations(catalogue: Catalogue) -> tuple[Calibration, ...]:
    """Every calibration, a user's own last."""
    return catalogue.calibrations()


def closest(known: Iterable[Calibration], engine: str, version: str = "", gpu: str = "") -> Calibration | None:
    """The calibration of this GPU and version, else of this GPU, else of the engine; None where there is none.

    Among equals the one written last counts, so that a user's own file goes before the shipped data.
    """
    found: tuple[tuple[bool, bool, int], Calibration] | None = None
    for place, each in enumerate(known):
        if each.engine != engine or each.gpu not in (None, gpu):
            continue
        rank = (each.gpu == gpu, bool(version) and version in each.versions, place)
        if found is None or rank > found[0]:
            found = rank, each
    return None if found is None else found[1]


def outside(calibration: Calibration, **values: float) -> tuple[str, ...]:
    """What lies outside the rows that were fitted, in words; `values` by the names of spans."""
    return tuple(
        f"{name} {_plain(value)} outside {_plain(span.low)} to {_plain(span.high)}"
        for name, value in values.items()
        if (span := calibration.spans.get(name)) is not None and not span.holds(value)  # type: ignore[call-overload]
    )


def _plain(value: float) -> str:
    """Three significant digits, whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
