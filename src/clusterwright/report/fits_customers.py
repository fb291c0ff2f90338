"""What of an answer's values stays in the house: doubts, sensitivities, the errors of the estimates, how prices age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Keys at the top of an answer, of a machine, of its price and failures, and of what was asked, for the house alone.
WITHHELD: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"close", "effects", "lost", "elsewhere"}),
    "machines": frozenset({"times"}),
    "price": frozenset({"low", "high", "age_days", "stale", "sold_per_gpu_hour"}),
    "asked": frozenset({"profile"}),
    "interruptions": frozenset({"origin"}),
}


def for_customers(values: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as plain values without what stays in the house: the keys are left out, not emptied."""
    kept = _without(values, "")
    kept["asked"] = _without(values["asked"], "asked")
    kept["machines"] = [_machine(machine) for machine in values["machines"]]
    return kept


def _machine(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = _without(values, "machines")
    if kept.get("price"):
        kept["price"] = _without(kept["price"], "price")
    if kept.get("interruptions"):
        kept["interruptions"] = _without(kept["interruptions"], "interruptions")
    return kept


def _without(values: Mapping[str, Any], part: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in WITHHELD[part]}
