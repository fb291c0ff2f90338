"""Plain values → YAML text that every parser reads the same way: strings are quoted unless they cannot be mistaken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
#: Words that a parser of YAML 1.1 takes for something other than text.
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml_documents(documents: Sequence[Mapping[str, Any]]) -> str:
    """Documents in one file."""
    return "".join("---\n" + "\n".join(_mapping(d, 0)) + "\n" for d in documents)


def _mapping(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for key, item in value.items():
        yield from _entry(f"{pad}{_scalar(key)}:", item, depth)


def _entry(head: str, item: Any, depth: int) -> Iterator[str]:
    if isinstance(item, Mapping) and item:
        yield head
        yield from _mapping(item, depth + 1)
    elif isinstance(item, list | tuple) and item:
        yield head
        yield from _sequence(item, depth)
    elif isinstance(item, str) and "\n" in item and _fits_a_block(item):
        yield f"{head} |"
        pad = "  " * (depth + 1)
        yield from (pad + line if line else "" for line in item.split("\n")[:-1])
    else:
        yield f"{head} {_scalar(item)}"


def _sequence(items: Sequence[Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *rest = list(_mapping(item, depth + 1))
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{pad}- {_scalar(item)}"


def _fits_a_block(text: str) -> bool:
    """Whether a literal block keeps it: ends in one line break, begins without space, has no odd characters."""
    return (
        text.endswith("\n")
        and not text.endswith("\n\n")
        and not text.startswith((" ", "\n", "\t"))
        and all(c.isprintable() or c in "\n\t" for c in text)
    )


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return json.dumps(value)
