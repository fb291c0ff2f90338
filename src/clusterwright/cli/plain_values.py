"""Values of options that need no conversion.

Typer has pydantic convert every value, text to text and what was not given to nothing; importing pydantic and building
a converter per option takes longer than many a command. Texts, lists of them, words of a choice and paths that nothing
is asked of need none; all others, and whatever is wrong, are converted as ever, so that errors read the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from typer.core import TyperCommand


@dataclass(frozen=True)
class _Plain:
    """Stands for Typer's converter of one parameter.

    Args:
        kind: type that the value is declared as. info: how the parameter is declared.
        make: Typer's own converter, built when a value needs it.
    """

    kind: Any
    info: Any
    make: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as its declared type."""
        many = param.multiple or param.nargs != 1
        if value is None and not many:
            return None
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        if many:
            if self.kind == list[str] and isinstance(value, list | tuple) and all(type(each) is str for each in value):
                return list(value)
        elif type(value) is self.kind and (self.kind is str or issubclass(self.kind, Enum)):
            return value
        elif isinstance(value, str) and isinstance(self.kind, type):
            if issubclass(self.kind, Enum) and value in {each.value for each in self.kind}:
                return self.kind(value)
            if self.kind is Path and self._is_unquestioned(value):
                return Path(value)
        return self.make().coerce(value, param=param, ctx=ctx)

    def _is_unquestioned(self, path: str) -> bool:
        """Whether Typer has nothing to object to a path: nothing is asked of it, and it may be read if it is there."""
        asked = self.info.exists or self.info.resolve_path or self.info.writable or self.info.allow_dash
        if asked or not (self.info.file_okay and self.info.dir_okay):
            return False
        return not os.path.exists(path) or os.access(path, os.R_OK)


def keep_plain(params: Sequence[Any]) -> list[Any]:
    """The parameters, plain values of theirs left alone; unchanged where this Typer converts in another way."""
    for param in params:
        described, make = getattr(param, "type_descriptor", None), getattr(param, "get_runtime_param", None)
        if described is not None and make is not None and "get_runtime_param" not in vars(param):
            plain = _Plain(described.annotation, described.parameter_info, make)
            param.get_runtime_param = lambda plain=plain: plain
    return list(params)


class PlainCommand(TyperCommand):
    """A command whose plain values are not converted."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters."""
        return keep_plain(super().get_params(ctx))
