"""A fit as a document and back: JSON, which is YAML too; every value is described in docs/traces.md.

The reader believes nothing: what is missing, no number, or out of its range is an error with its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from clusterwright.lib.errors import InvalidInput
from clusterwright.traces.distributions import PROBABILITIES, Fitted
from clusterwright.traces.fits import Arrivals, Fit, Kind, Limits, RunTimes
from clusterwright.traces.rules import MOST_GPUS

#: What stands first in the document, with the version of its form.
FORM: Final = "clusterwright trace fit 1"
_PARAMETERS: Final = {
    "exponential": 1, "lognormal": 2, "gamma": 2, "weibull": 2, "empirical": len(PROBABILITIES),
}  # fmt: skip
_HOURS: Final = (1, 168)


def fit_values(fit: Fit) -> dict[str, Any]:
    """The fit as plain values."""
    return {
        "form": FORM, **asdict(fit), "kinds": [kind._asdict() for kind in fit.kinds],
        "run_times": [asdict(of_class) for of_class in fit.run_times],
    }  # fmt: skip


def fit_text(fit: Fit) -> str:
    """The document, each kind of job and each class of sizes on a line of its own."""
    lines = []
    for name, value in fit_values(fit).items():
        if isinstance(value, list):
            inside = ",\n".join(f"  {_dump(each)}" for each in value)
            lines.append(f" {_dump(name)}: [\n{inside}\n ]")
        else:
            lines.append(f" {_dump(name)}: {_dump(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def is_fit(head: str) -> bool:
    """Whether a text begins as such a document does."""
    return f'"{FORM}"' in head[:200]


def parse_fit(text: str) -> Fit:
    """The fit of a document.

    Raises:
        InvalidInput: naming what is missing or wrong, and its place.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the fit is no JSON: {error}") from None
    found = _Reading(values, "fit")
    if found.text("form") != FORM:
        raise InvalidInput(f"form is {found.text('form')!r}, must be {FORM!r}; write it with cw trace fit")
    kinds = tuple(_kind(each) for each in found.each("kinds"))
    run_times = tuple(_run_times(each) for each in found.each("run_times"))
    if sum(kind.share for kind in kinds) <= 0:
        raise InvalidInput("fit: kinds: the shares add up to 0")
    unheld = [kind.gpus for kind in kinds if not any(of_class.holds(kind.gpus) for of_class in run_times)]
    if unheld:
        raise InvalidInput(f"fit: run_times: no class holds jobs with {unheld[0]} GPUs")
    return Fit(
        found.text("source"), found.text("zone"), int(found.number("jobs")), int(found.number("left_out")),
        found.number("days"), _arrivals(found.inner("arrivals")), kinds, run_times, _limits(found.inner("limits")),
    )  # fmt: skip


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class _Reading:
    """One object of the document, with the place at which it stands."""

    def __init__(self, values: Any, place: str) -> None:
        if not isinstance(values, Mapping):
            raise InvalidInput(f"{place}: must be an object")
        self._values = values
        self.place = place

    def value(self, name: str) -> Any:
        """What stands under a name."""
        if name not in self._values:
            raise InvalidInput(f"{self.place}: {name} is missing")
        return self._values[name]

    def text(self, name: str) -> str:
        """A text."""
        value = self.value(name)
        if not isinstance(value, str):
            raise InvalidInput(f"{self.place}: {name} is {value!r:.40}, must be a text")
        return value

    def number(self, name: str, low: float = 0.0, high: float = math.inf) -> float:
        """A finite number within bounds."""
        return self._checked(name, self.value(name), low, high)

    def numbers(self, name: str, counts: Sequence[int], low: float = 0.0) -> tuple[float, ...]:
        """As many finite numbers as one of the counts."""
        values = self.value(name)
        if not isinstance(values, list) or len(values) not in counts:
            raise InvalidInput(f"{self.place}: {name} must be a list of {' or '.join(map(str, counts))} numbers")
        return tuple(self._checked(name, value, low, math.inf) for value in values)

    def inner(self, name: str) -> _Reading:
        """An object inside."""
        return _Reading(self.value(name), f"{self.place}: {name}")

    def each(self, name: str) -> list[_Reading]:
        """The objects of a list with one at least."""
        values = self.value(name)
        if not isinstance(values, list) or (not values and name != "others"):
            raise InvalidInput(f"{self.place}: {name} must be a list of objects")
        return [_Reading(value, f"{self.place}: {name}[{number}]") for number, value in enumerate(values)]

    def _checked(self, name: str, value: Any, low: float, high: float) -> float:
        whole = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not whole or not math.isfinite(value) or not low <= value <= high:
            raise InvalidInput(f"{self.place}: {name} is {value!r:.40}, must be a number from {low:g} to {high:g}")
        return float(value)


def _arrivals(found: _Reading) -> Arrivals:
    hourly = found.numbers("hourly", _HOURS)
    if not sum(hourly):
        raise InvalidInput(f"{found.place}: hourly must not be 0 throughout")
    return Arrivals(
        hourly, found.number("cv"), found.number("zero_share", 0.0, 0.999999), _fitted(found.inner("chosen")),
        tuple(map(_fitted, found.each("others"))),
    )  # fmt: skip


def _kind(found: _Reading) -> Kind:
    return Kind(
        found.number("share", 0.0, 1.0), found.text("queue"), found.text("flavor"),
        int(found.number("gpus", 0, MOST_GPUS)), int(found.number("gpu_milli", 1, 1000)),
        int(found.number("tasks", -1, MOST_GPUS)), int(found.number("gpus_per_task", -1, MOST_GPUS)),
    )  # fmt: skip


def _run_times(found: _Reading) -> RunTimes:
    low, high = found.numbers("gpus", (2,), -1.0)
    return RunTimes(
        (int(low), int(high)), int(found.number("jobs")), int(found.number("censored")),
        found.number("zero_share", 0.0, 1.0), _fitted(found.inner("chosen")), tuple(map(_fitted, found.each("others"))),
    )  # fmt: skip


def _fitted(found: _Reading) -> Fitted:
    family = found.text("family")
    if family not in _PARAMETERS:
        raise InvalidInput(f"{found.place}: no family '{family}'; families: {', '.join(_PARAMETERS)}")
    low = -math.inf if family == "lognormal" else 0.0
    parameters = found.numbers("parameters", (_PARAMETERS[family],), low)
    if family == "empirical" and list(parameters) != sorted(parameters):
        raise InvalidInput(f"{found.place}: parameters must not fall")
    fitted = Fitted(family, parameters, found.number("distance", 0.0, 1.0))
    if family != "lognormal" and not (all(parameters[:2]) or family == "empirical"):
        raise InvalidInput(f"{found.place}: parameters must be above 0")
    if not fitted.mean > 0 or not math.isfinite(fitted.mean):
        raise InvalidInput(f"{found.place}: parameters give a mean of {fitted.mean:g}, must be above 0")
    return fitted


def _limits(found: _Reading) -> Limits:
    return Limits(
        found.number("unlimited_share", 0.0, 1.0), found.number("unknown_share", 0.0, 1.0),
        found.numbers("ratio", (0, len(PROBABILITIES))),
    )  # fmt: skip
