"""Planning: what fits where, how fast, what a failure takes, what a unit of accepted work costs.

Declared values, catalogue entries and measured figures in; a `Plan` of figures out. Formulas are in `physics`; here
inputs are chosen, formulas applied and results compared with targets. What this form does not model is an `Unplanned`
with its reason. Here lives no text for people beyond reasons, no rule of the review, nothing that touches the world.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clusterwright.plan.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Names of `plan.api`, read when the first of them is asked for: most commands need none."""
    if name.startswith("_"):
        raise AttributeError(name)
    api = import_module("clusterwright.plan.api")
    if name not in api.__all__:
        raise AttributeError(f"module 'clusterwright.plan' has no '{name}'; see clusterwright.plan.api")
    return getattr(api, name)
