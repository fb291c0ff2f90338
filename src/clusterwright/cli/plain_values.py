"""Values of options that need no conversion.

Typer has pydantic convert every value, text to text and what was not given to nothing; importing pydantic and building
a converter per option takes longer than many a command. Values that are already what they are declared as stay as they
are; all others are converted as ever, so that errors read the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from typer.core import TyperCommand


@dataclass(frozen=True)
class _Plain:
    """Stands for Typer's converter of one parameter.

    Args:
        kind: type that the value is declared as. make: Typer's own converter, built when a value needs it.
    """

    kind: Any
    make: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as its declared type."""
        many = param.multiple or param.nargs != 1
        if value is None and not many:
            return None
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        if type(value) is self.kind and (self.kind is str or issubclass(self.kind, Enum)) and not many:
            return value
        return self.make().coerce(value, param=param, ctx=ctx)


def keep_plain(params: Sequence[Any]) -> list[Any]:
    """The parameters, plain values of theirs left alone; unchanged where this Typer converts in another way."""
    for param in params:
        described, make = getattr(param, "type_descriptor", None), getattr(param, "get_runtime_param", None)
        if described is not None and make is not None and "get_runtime_param" not in vars(param):
            plain = _Plain(described.annotation, make)
            param.get_runtime_param = lambda plain=plain: plain
    return list(params)


class PlainCommand(TyperCommand):
    """A command whose plain values are not converted."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters."""
        return keep_plain(super().get_params(ctx))
