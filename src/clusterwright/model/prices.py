"""What the catalogue knows about prices: each a snapshot with its provider, day and what it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from clusterwright.lib.quantities import KINDS, Quantity, UnitError, is_kind, parse_kind
from clusterwright.model.entries import Entry, Text, TokenPrice

PriceKind = Literal["rental", "capex", "colocation", "power", "storage", "egress"]
ProviderClass = Literal["hyperscaler", "specialist", "marketplace", "model-api", "vendor", "survey", "public"]
Commitment = Literal["on-demand", "spot", "1 year", "3 years", "unstated"]

#: Family of units (a key of lib.quantities.KINDS) that each kind of price is written in.
PRICE_UNITS: Final[dict[PriceKind, str]] = {
    "rental": "money per GPU time",
    "capex": "money",
    "colocation": "money per power time",
    "power": "money per power time",
    "storage": "money per bytes time",
    "egress": "money per bytes",
}


def _read_price(value: Any) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if not isinstance(value, str):
        raise UnitError("this wants a price such as " + KINDS["money per GPU time"][1])
    quantity = parse_kind(value, *dict.fromkeys(PRICE_UNITS.values()))
    if quantity.value < 0:
        raise UnitError(f"'{quantity}' is negative")
    return quantity


AnyPrice = Annotated[Quantity, _read_price]


@dataclass(frozen=True, kw_only=True)
class Price(Entry):
    """The price of one thing, a range where the source gives one.

    Args:
        kind: what is bought; decides the unit (PRICE_UNITS).
        item: catalogue name of the GPU or node shape, or a name of the service ("object-storage").
        low, high: the range, both included; equal when the source gives one number.
        per: what a capex price buys one of.
        provider: who sells; None in a survey over several.
        provider_class: what kind of seller.
        commitment: term behind the number.
        includes: what the number covers beside the thing itself, in words.
    """

    kind: PriceKind
    item: Text
    low: AnyPrice
    high: AnyPrice
    per: Literal["gpu", "node", "rack"] | None = None
    provider: Text | None = None
    provider_class: ProviderClass
    commitment: Commitment = "unstated"
    includes: str = ""

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if not is_kind(end, PRICE_UNITS[self.kind]):
                raise ValueError(f"a {self.kind} price is {PRICE_UNITS[self.kind]}, not '{end}'")
        if self.low.powers != self.high.powers:
            raise ValueError(f"low '{self.low}' and high '{self.high}' are in two currencies")
        if self.low.value > self.high.value:
            raise ValueError(f"low '{self.low}' is above high '{self.high}'")
        if (self.per is None) == (self.kind == "capex"):
            raise ValueError("per (gpu, node, rack) belongs to capex, and only there")


@dataclass(frozen=True, kw_only=True)
class ApiPrice(Entry):
    """What a model API charges per token.

    Args:
        model: Hugging Face id of the open model, or the provider's own name of a closed one.
        provider: who serves it.
        input, output: per token read and generated.
        cached_input: per token found in the provider's prompt cache, None if not offered.
    """

    model: Text
    provider: Text
    input: TokenPrice
    output: TokenPrice
    cached_input: TokenPrice | None = None
