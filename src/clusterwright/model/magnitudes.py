"""Numbers with units as files write them: text in, `Quantity` out, with the bounds that reality sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clusterwright.lib.quantities import KINDS, Quantity, UnitError, format_base, is_kind, parse_kind


def raw_text(value: Any) -> Any:
    """The scalar as it stands in the file: YAML reads `1.30` as the number 1.3, but its text is kept in `raw`."""
    return getattr(value, "raw", value)


#: Bounds of any magnitude in base units: from a price per byte and second to the bytes of all storage on earth.
#: They keep sums and products of declared numbers finite.
SMALLEST: Final = 1e-24
LARGEST: Final = 1e24


def read_quantity(value: Any, *kinds: str) -> Quantity:
    """A value of the file as a quantity of one of `kinds` (keys of quantities.KINDS), not negative.

    Raises:
        UnitError: with what was found and an example of what is expected.
    """
    if isinstance(value, Quantity):
        if any(is_kind(value, k) for k in kinds):
            return value
        raise UnitError(f"'{value}' does not measure {' or '.join(kinds)}")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(f"this wants a quantity such as {KINDS[kinds[0]][1]}")
    quantity = parse_kind(str(raw_text(value)), *kinds)
    if quantity.value < 0:
        raise UnitError(f"'{quantity}' is negative")
    if quantity.value and not SMALLEST <= quantity.value <= LARGEST:
        raise UnitError(f"'{quantity}' is too {'small' if quantity.value < 1 else 'large'} to be real")
    return quantity


def quantity_reader(
    *kinds: str, least: float = 0.0, most: float = LARGEST, whole: bool = False
) -> Callable[[Any], Quantity]:
    """Reads a quantity of one of `kinds`; at least `least` (0 alone is allowed to be zero), at most `most` base units.

    The reader raises UnitError with what was found.
    """

    def read(value: Any) -> Quantity:
        quantity = read_quantity(value, *kinds)
        if not least <= quantity.value <= most:
            bound = f"less than {format_base(least, quantity.powers)}"
            if quantity.value > most:
                bound = f"more than {format_base(most, quantity.powers)}"
            raise UnitError(f"'{quantity}' is {bound if quantity.value else 'zero'}, which cannot be")
        if whole and not quantity.value.is_integer():
            raise UnitError(f"'{quantity}' is not a whole number")
        return quantity

    return read
