"""The working sheet of a plan: makes figures, keeps each under its name, and collects what does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import Figure, Origin, derive, leaf
from clusterwright.lib.quantities import CURRENCIES, Quantity
from clusterwright.model.architecture import Architecture
from clusterwright.model.documents import Document
from clusterwright.model.entries import Entry
from clusterwright.plan.choosing import Kind, Measured, choose
from clusterwright.plan.results.refusals import Misfit, Unplanned

Overlay = Mapping[str, Figure | Measured]


class Sheet:
    """Figures of one plan by name, with what was found on the way. Lives for one call of `plan_architecture`.

    Args:
        measured: name of a figure → measurement that may replace it (`choosing`).
    """

    def __init__(self, document: Document, catalogue: Catalogue, measured: Overlay) -> None:
        self.document = document
        self.catalogue = catalogue
        self.measured = measured
        self.figures: dict[str, Figure] = {}
        self.misfits: list[Misfit] = []
        self.unplanned: list[Unplanned] = []
        self.limits: dict[str, None] = {}
        #: Nodes that carry workloads, over all pools: the scope of what all of them share.
        self.nodes = 1

    @property
    def architecture(self) -> Architecture:
        """The declared value."""
        return self.document.architecture

    def declared(self, path: str, value: Quantity | float, unit: str) -> Figure:
        """A leaf that the file states at `path`; money keeps its currency in the unit (`$/h`)."""
        number = value.to(with_currency(unit, value)) if isinstance(value, Quantity) else float(value)
        shown = with_sign(unit, value) if isinstance(value, Quantity) else unit
        return self._keep(leaf(path, number, shown, Origin.DECLARED, str(self.document.places.of(path))))

    def maybe(self, path: str, value: Quantity | float | None, unit: str) -> Figure | None:
        """`declared`, or None when the file does not state it."""
        return None if value is None else self.declared(path, value, unit)

    def published(self, entry: Entry, field: str, value: Quantity | float, unit: str, note: str = "") -> Figure:
        """A leaf from a catalogue entry, named `catalogue.ENTRY.FIELD`."""
        number = value.to(with_currency(unit, value)) if isinstance(value, Quantity) else float(value)
        shown = with_sign(unit, value) if isinstance(value, Quantity) else unit
        basis = f"{entry.basis}{'; ' + note if note else ''}"
        return self._keep(leaf(f"catalogue.{entry.name}.{field}", number, shown, Origin.CATALOGUE, basis))

    def constant(self, name: str, value: float, unit: str, source: str) -> Figure:
        """A leaf from a publication that is no catalogue entry, named `published.NAME`."""
        return self._keep(leaf(f"published.{name}", value, unit, Origin.CATALOGUE, source))

    def assumed(self, name: str, value: float, unit: str, reason: str) -> Figure:
        """A leaf of our own with its reason, named `assumed.NAME`."""
        return self._keep(leaf(f"assumed.{name}", value, unit, Origin.ASSUMED, reason))

    def planned(self, name: str, value: float, unit: str, basis: str) -> Figure:
        """A count that this plan decided (nodes, replicas); follows from what the file declares."""
        return self._keep(leaf(name, value, unit, Origin.DECLARED, basis))

    def derive(
        self,
        name: str,
        unit: str,
        formula: str,
        function: Callable[..., float],
        *inputs: Figure,
        band: tuple[float, float] | None = None,
    ) -> Figure:
        """A computed figure; a division by zero is infinite."""
        return self._keep(derive(name, unit, formula, _total(function), *inputs, band=band))

    def choose(self, kind: Kind, name: str, *candidates: Figure | None, nodes: int = 1) -> Figure | None:
        """The candidate or measurement that counts (`choosing.choose`), None if there is none."""
        chosen = choose(kind, candidates, measured=self.measured.get(name), name=name, nodes=nodes)
        if chosen is not None:
            self._keep(chosen)
            self.figures[name] = chosen  # found by what it stands for, whoever stated it
        return chosen

    def picked(self, kind: Kind, name: str, *candidates: Figure | None, nodes: int = 1) -> Figure:
        """`choose` where a candidate is certain."""
        chosen = self.choose(kind, name, *candidates, nodes=nodes)
        if chosen is None:
            raise ValueError(f"no candidate for {name}")
        return chosen

    def miss(self, subject: str, reason: str, *missing: str) -> Unplanned:
        """Record and return what could not be planned; a repeat is recorded once."""
        found = Unplanned(subject, reason, missing)
        if found not in self.unplanned:
            self.unplanned.append(found)
        return found

    def misfit(self, subject: str, path: str, message: str) -> None:
        """Record what does not hold."""
        found = Misfit(subject, path, message)
        if found not in self.misfits:
            self.misfits.append(found)

    def limit(self, text: str) -> None:
        """Record once what this form of the planner does not model."""
        self.limits[text] = None

    def _keep(self, figure: Figure) -> Figure:
        known = self.figures.get(figure.name)
        if known is not None and known.is_leaf and known == figure:
            return known
        self.figures[figure.name] = figure
        return figure


def _total(function: Callable[..., float]) -> Callable[..., float]:
    """The function where it is defined, infinity where it divides by zero or has no value."""

    def value(*inputs: float) -> float:
        try:
            found = float(function(*inputs))
        except ArithmeticError:
            return math.inf
        return math.inf if math.isnan(found) else found

    return value


def with_currency(unit: str, quantity: Quantity) -> str:
    """`money/h` → `EUR/h` for a quantity in euro; other units unchanged."""
    return unit.replace("money", quantity.currency) if quantity.currency else unit


def with_sign(unit: str, quantity: Quantity) -> str:
    """`money/h` → `€/h` for a quantity in euro; other units unchanged."""
    return unit.replace("money", CURRENCIES[quantity.currency]) if quantity.currency else unit
