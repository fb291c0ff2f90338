"""What catalogue entries are made of: frozen records whose annotations say what may be written in a field.

`Annotated[int, within(1)]` is a whole number that then goes through `within(1)`, which returns it or raises ValueError.
`catalogue.building` reads fields by them. It is not a validation library's model, as the sections of an architecture
file are: importing one takes longer than answering most questions that need nothing but a few entries.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from clusterwright.lib.quantities import Quantity
from clusterwright.model.magnitudes import SMALLEST, quantity_reader

T = TypeVar("T")
N = TypeVar("N", int, float)


def within(low: float, high: float = math.inf) -> Callable[[N], N]:
    """Refuses numbers below `low` or above `high`, and whatever is not finite."""

    def read(value: N) -> N:
        if not low <= value <= high or math.isinf(value):
            raise ValueError(f"{value} is {'less than ' + str(low) if value < low else 'more than ' + str(high)}")
        return value

    return read


def above_zero(value: N) -> N:
    """Refuses zero, negative numbers and whatever is not finite."""
    if not 0 < value < math.inf:
        raise ValueError(f"{value} is not above zero")
    return value


def matching(pattern: str) -> Callable[[str], str]:
    """Refuses texts that do not match as a whole."""

    def read(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(f"'{value}' does not match {pattern}")
        return value

    return read


def not_blank(value: str) -> str:
    """Refuses a text without letters."""
    if not value.strip():
        raise ValueError("this is empty")
    return value


def not_empty(values: T) -> T:
    """Refuses an empty list."""
    if isinstance(values, Sized) and not len(values):
        raise ValueError("at least one is wanted")
    return values


Text = Annotated[str, not_blank]
Natural = Annotated[int, within(0)]
Positive = Annotated[int, within(1)]
Above = Annotated[float, above_zero]
Share = Annotated[float, within(0)]
#: CUDA compute capability ("9.0").
Capability = Annotated[str, matching(r"\d+\.\d")]
Bytes = Annotated[Quantity, quantity_reader("bytes", least=1)]
ByteRate = Annotated[Quantity, quantity_reader("byte rate", least=SMALLEST)]
BitRate = Annotated[Quantity, quantity_reader("bit rate", least=SMALLEST)]
ComputeRate = Annotated[Quantity, quantity_reader("compute rate", least=SMALLEST)]
Power = Annotated[Quantity, quantity_reader("power", least=SMALLEST)]
TokenPrice = Annotated[Quantity, quantity_reader("money per token")]


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of every catalogue type. Rules between fields are kept in `__post_init__`, which raises ValueError."""

    @classmethod
    def written_out(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields with those that follow from others.

        Raises:
            ValueError: when they cannot follow.
        """
        return fields


@dataclass(frozen=True, kw_only=True)
class Entry(Record):
    """A catalogue entry.

    Args:
        name: unique within its kind.
        source: title and address of where the numbers come from.
        date: day on which the entry was written down from its source; for a price, the day for which it was
            quoted. The entry's age counts from it.
        aliases: other names by which it is found, such as what nvidia-smi prints.
        note: what a reader must know before using the numbers.
    """

    name: Text
    source: Text
    date: datetime.date
    aliases: tuple[Text, ...] = ()
    note: str = ""

    @property
    def basis(self) -> str:
        """The entry as a figure cites it: name, source, date."""
        return f"catalogue {self.name}: {self.source}, {self.date.isoformat()}"
