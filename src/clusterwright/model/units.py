"""Field types of the file: text with a unit in, `Quantity` out, and back to the text as written.

Each type is one marker that holds its finished schema: put together from the library's parts (a validator, a serializer
and so on) it would be put together again for each of the 370 fields, at every start.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Final

from pydantic import Strict
from pydantic_core import core_schema

from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.lib.patterns import pattern_of
from clusterwright.lib.quantities import KINDS, Quantity
from clusterwright.model.magnitudes import LARGEST, SMALLEST, quantity_reader, raw_text


@dataclass(frozen=True, slots=True, eq=False)
class _Type:
    """How a value of the file is read, and what an editor is told; the kinds of a quantity give its pattern."""

    core: core_schema.CoreSchema
    json: dict[str, Any]
    kinds: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return copy(self.core)  # the library writes into what it gets

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**self.json, "pattern": pattern_of(*self.kinds)} if self.kinds else dict(self.json)


_AS_TEXT: Final = core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema())


def _measured_in(*kinds: str, least: float = 0.0, most: float = LARGEST, whole: bool = False) -> Any:
    """A quantity of one of `kinds`; at least `least` (0 alone is allowed to be zero) and at most `most` base units."""

    examples = [KINDS[k][1] for k in kinds]
    schema = {
        "type": "string",
        "description": f"{' or '.join(kinds)} with its unit",
        "examples": examples,
    }
    core = core_schema.no_info_plain_validator_function(
        quantity_reader(*kinds, least=least, most=most, whole=whole), serialization=_AS_TEXT
    )
    return Annotated[Quantity, _Type(core, schema, kinds)]


Bytes = _measured_in("bytes", least=1)
ByteRate = _measured_in("byte rate", least=SMALLEST)
BitRate = _measured_in("bit rate", least=SMALLEST)
#: A time that is never zero, and one that may be.
Duration = _measured_in("duration", least=SMALLEST)
Delay = _measured_in("duration")
Power = _measured_in("power", least=SMALLEST)
ComputeRate = _measured_in("compute rate", least=SMALLEST)
Tokens = _measured_in("tokens", least=1)
TokenRate = _measured_in("token rate", least=SMALLEST)
RequestRate = _measured_in("request rate", least=SMALLEST)
Nodes = _measured_in("nodes", whole=True)
GpuTime = _measured_in("GPU time")
#: A period of a budget, at least an hour.
Period = _measured_in("duration", least=3600)
#: A share that may be nothing, and one that never is: nothing is divided by it.
Share = _measured_in("share", most=1)
PositiveShare = _measured_in("share", least=SMALLEST, most=1)
Money = _measured_in("money")
MoneyPerTime = _measured_in("money per time")
PoolPrice = _measured_in("money per GPU time", "money per node time", "money per time")
PowerPrice = _measured_in("money per power time")
TokenPrice = _measured_in("money per token")
BytesPrice = _measured_in("money per bytes")
BytesTimePrice = _measured_in("money per bytes time")
AlternativePrice = _measured_in("money per GPU time", "money per node time", "money per time", "money per token")


def _read_hosts(value: Any) -> tuple[str, ...]:
    if isinstance(value, tuple) and all(isinstance(v, str) for v in value):
        return value
    if not isinstance(value, str):
        raise ValueError('this wants a host list such as "gpu-[001-008]"')
    try:
        return expand(value)
    except HostlistError as error:
        raise ValueError(f'{error}; write for example "gpu-[001-008]"') from None


Hosts = Annotated[
    tuple[str, ...],
    _Type(
        core_schema.no_info_plain_validator_function(_read_hosts),
        {"type": "string", "description": "host list", "examples": ["gpu-[001-008]"]},
    ),
]


def _read_text(value: Any) -> Any:
    value = raw_text(value)
    if isinstance(value, str) and not value.strip():
        raise ValueError("this is empty")
    return value


#: Free text, never empty. A number written without quotes keeps its digits (`1.30` stays `1.30`).
Text = Annotated[
    str,
    _Type(
        core_schema.no_info_before_validator_function(_read_text, core_schema.str_schema(strict=True)),
        {"type": ["string", "number"], "minLength": 1, "pattern": r"\S"},
    ),
]
#: A list of names, written as a YAML list.
Texts = Annotated[tuple[Text, ...], Strict(False)]
#: A version or other identifier that YAML would read as a number.
Version = Text


def _read_day(value: Any) -> date:
    if isinstance(value, date):
        return value
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"'{value}' is no date: {error}") from None
    raise ValueError("this wants a date such as 2026-12-31")


_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: A calendar day, written 2026-12-31.
Day = Annotated[
    date,
    _Type(
        core_schema.no_info_plain_validator_function(_read_day),
        {"type": "string", "format": "date", "description": "day", "examples": ["2026-12-31"]},
    ),
]


def _whole_number(least: int, most: int = 1_000_000_000) -> _Type:
    core = core_schema.int_schema(ge=least, le=most, strict=True)
    return _Type(core, {"type": "integer", "minimum": least, "maximum": most})


#: Plain numbers. No cluster has a billion of anything that is counted here.
Count = Annotated[int, _whole_number(1)]
Whole = Annotated[int, _whole_number(0)]
Priority = Annotated[int, _whole_number(-1_000_000_000)]
