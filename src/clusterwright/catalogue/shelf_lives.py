"""How long what the catalogue knows stays good: a price moves by the month, a datasheet never.

A number older than its kind's shelf life is still used, and is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

AgeKind = Literal[
    "rental price",
    "API price",
    "purchase price",
    "colocation price",
    "energy price",
    "storage price",
    "egress price",
    "calibration",
    "failure rate",
    "datasheet",
]


@dataclass(frozen=True, slots=True)
class ShelfLife:
    """How many days a kind of number stays good, and why; None for ever."""

    days: int | None
    reason: str


SHELF_LIVES: Final[dict[AgeKind, ShelfLife]] = {
    "rental price": ShelfLife(90, "rents of a GPU moved by tens of per cent within a quarter"),
    "API price": ShelfLife(90, "providers change token prices by the month, mostly down"),
    "purchase price": ShelfLife(365, "a product generation lasts about a year"),
    "colocation price": ShelfLife(365, "contracts are made by the year"),
    "energy price": ShelfLife(365, "tariffs are set by the year"),
    "storage price": ShelfLife(365, "list prices of clouds change less than once a year"),
    "egress price": ShelfLife(365, "list prices of clouds change less than once a year"),
    "calibration": ShelfLife(365, "one release of an engine or library moved throughput by an eighth"),
    "failure rate": ShelfLife(1095, "measured on one generation of hardware; the next fails otherwise"),
    "datasheet": ShelfLife(None, "what a product is does not change after it was built"),
}

#: Kinds of catalogue prices and of declared alternatives → kind of age.
OF_PRICE: Final[dict[str, AgeKind]] = {
    "rental": "rental price",
    "capex": "purchase price",
    "colocation": "colocation price",
    "power": "energy price",
    "storage": "storage price",
    "egress": "egress price",
}
OF_ALTERNATIVE: Final[dict[str, AgeKind]] = {
    "rental": "rental price",
    "model-api": "API price",
    "serverless": "API price",
    "colocation": "colocation price",
    "on-premises": "purchase price",
}
