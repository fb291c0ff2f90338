"""Constants of an engine's speed for a question, from calibrations that the caller hands in."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.catalogue.calibrations import closest
from clusterwright.model.calibrations import Calibration
from clusterwright.physics.serving.constants import Constants, named
from clusterwright.plan.searching.questions import ServingQuestion


def calibrated(question: ServingQuestion, known: Iterable[Calibration]) -> tuple[Constants, Calibration | None]:
    """Constants of the closest calibration by engine, GPU and version, with where they come from.

    Without one: the prior, of which nobody measured anything, and None.
    """
    version = "" if question.version is None else ".".join(str(part) for part in question.version)
    found = closest(known, question.engine, version, question.pool.gpu.name)
    return (Constants(), None) if found is None else (named(found.constants), found)
