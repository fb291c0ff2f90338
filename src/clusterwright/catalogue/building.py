"""An entry's fields as written → the record that they describe, or everything that is wrong with them.

One reader for shipped and users' data alike, driven by the annotations of the record (see `model.entries`).
"""

from __future__ import annotations

import datetime
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from clusterwright.lib.quantities import Quantity
from clusterwright.model.entries import Record

R = TypeVar("R", bound=Record)
Reader = Callable[[Any], Any]
Path = tuple[str | int, ...]

_FLAGS: Final = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with one field; an empty path means the entry."""

    path: Path
    message: str
    hint: str = ""


class Unreadable(ValueError):
    """An entry that cannot be built, with all that is wrong."""

    def __init__(self, *wrong: Wrong) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, each.path))}: {each.message}" for each in wrong))
        self.wrong = wrong

    def inside(self, step: str | int) -> tuple[Wrong, ...]:
        """The same, seen from what holds it."""
        return tuple(Wrong((step, *each.path), each.message, each.hint) for each in self.wrong)


def build(kind: type[R], written: Mapping[str, Any]) -> R:
    """The record of a kind.

    Args:
        written: fields as text, lists and mappings, or as finished values.

    Raises:
        Unreadable: with everything wrong.
    """
    try:
        given = kind.written_out(written)
    except ValueError as error:
        raise Unreadable(Wrong((), str(error))) from error
    described: Any = kind  # mypy takes no class for hashable
    readers, wrong, values = _readers(described), list[Wrong](), dict[str, Any]()
    wrong += [Wrong((name,), f"'{name}' is missing") for name in _required(described) if name not in given]
    for name, value in given.items():
        if name not in readers:
            wrong.append(Wrong((name,), f"unknown key '{name}'", f"keys are {', '.join(readers)}"))
            continue
        _add(values, wrong, name, readers[name], value)
    if wrong:
        raise Unreadable(*wrong)
    try:
        return kind(**values)
    except ValueError as error:
        raise Unreadable(Wrong((), str(error))) from error


def _add(values: dict[Any, Any], wrong: list[Wrong], step: str | int, read: Reader, value: Any) -> None:
    try:
        values[step] = read(value)
    except Unreadable as error:
        wrong += error.inside(step)
    except ValueError as error:
        wrong.append(Wrong((step,), str(error)))


@cache
def _required(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)


@cache
def _readers(kind: type[Any]) -> dict[str, Reader]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _reader(hints[field.name]) for field in fields(kind)}


def _reader(hint: Any) -> Reader:
    """What reads a value that is annotated so."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return partial(_refined, _reader(args[0]), args[1:])
    if origin in (Union, types.UnionType):
        (inner,) = (arg for arg in args if arg is not types.NoneType)
        return partial(_optional, _reader(inner))
    if origin is Literal:
        return partial(_one_of, args)
    if origin is tuple:
        many = len(args) == 2 and args[1] is ...
        return partial(_list, _reader(args[0])) if many else partial(_pair, tuple(_reader(arg) for arg in args))
    if origin is dict:
        return partial(_mapping, _reader(args[0]), _reader(args[1]))
    return _PLAIN[hint] if hint in _PLAIN else partial(_record, hint)


def _refined(read: Reader, refine: tuple[Reader, ...], value: Any) -> Any:
    found = read(value)
    for step in refine:
        found = step(found)
    return found


def _optional(read: Reader, value: Any) -> Any:
    return None if value is None else read(value)


def _one_of(choices: tuple[str, ...], value: Any) -> str:
    if value not in choices:
        raise ValueError(f"'{value}' is none of {', '.join(choices)}")
    return str(value)


def _list(read: Reader, value: Any) -> tuple[Any, ...]:
    return _pair((read,) * len(_listed(value)), value)


def _pair(readers: tuple[Reader, ...], value: Any) -> tuple[Any, ...]:
    if len(_listed(value)) != len(readers):
        raise ValueError(f"{len(readers)} values are wanted, not {len(value)}")
    found, wrong = dict[int, Any](), list[Wrong]()
    for number, (read, each) in enumerate(zip(readers, value, strict=True)):
        _add(found, wrong, number, read, each)
    if wrong:
        raise Unreadable(*wrong)
    return tuple(found.values())


def _listed(value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("this wants a list")
    return value


def _mapping(key: Reader, read: Reader, value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("this wants a mapping (name: value)")
    found, wrong = dict[Any, Any](), list[Wrong]()
    for name, each in value.items():
        _add(found, wrong, name, key, name)  # a key is checked, never changed
        _add(found, wrong, name, read, each)
    if wrong:
        raise Unreadable(*wrong)
    return found


def _record(kind: type[Record], value: Any) -> Record:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("this wants a mapping of fields")
    return build(kind, value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("this wants a text")
    return value


def _whole(value: Any) -> int:
    number = _number(value)
    if not number.is_integer():
        raise ValueError(f"'{value}' is not a whole number")
    return int(value) if not isinstance(value, str) or value.strip().lstrip("+-").isdigit() else int(number)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("this wants a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"'{value}' is not a number") from None


def _flag(value: Any) -> bool:
    found = value if isinstance(value, bool) else _FLAGS.get(str(value).lower())
    if found is None:
        raise ValueError(f"'{value}' is neither true nor false")
    return found


def _day(value: Any) -> datetime.date:
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"'{value}' is no date; write for example 2026-12-31") from None


def _as_it_is(value: Any) -> Any:
    return value


#: Readers of what is not put together of parts; quantities are read by what refines them.
_PLAIN: Final[Mapping[Any, Reader]] = {
    str: _text, int: _whole, float: _number, bool: _flag, datetime.date: _day, Quantity: _as_it_is, Any: _as_it_is,
}  # fmt: skip
