"""What two documents say differently, path by path, and one document with some of what the other says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.architecture import Architecture
from clusterwright.model.complaints import explain_errors
from clusterwright.model.documents import Document, Places
from clusterwright.model.magnitudes import raw_text

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Said:
    """One path at which two documents differ.

    Args:
        path: keys from the top, dotted in text.
        first, second: as written, a whole section in braces; None where a document says nothing there.
    """

    path: tuple[str, ...]
    first: str | None
    second: str | None

    @property
    def name(self) -> str:
        """The path as `--set` takes it."""
        return ".".join(self.path)


def find_differences(first: Document, second: Document) -> tuple[Said, ...]:
    """Every path at which two documents differ, in the order of the first; a list or a missing section is one path."""
    return tuple(_walk(first.content, second.content, ()))


def _walk(first: Any, second: Any, path: tuple[str, ...]) -> Iterable[Said]:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in dict.fromkeys((*first, *second)):
            yield from _walk(first.get(key, _ABSENT), second.get(key, _ABSENT), (*path, key))
    elif as_written(first) != as_written(second):
        yield Said(path, as_written(first), as_written(second))


def as_written(value: Any) -> str | None:
    """A value on one line as the file says it; None where there is none."""
    if value is _ABSENT:
        return None
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {as_written(v)}" for key, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(str(as_written(v)) for v in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return str(raw_text(value))


def adopt(document: Document, other: Document, paths: Iterable[tuple[str, ...]]) -> Document:
    """The document with what the other says, or does not say, at these paths.

    Raises:
        InvalidInput: the mixture is no valid architecture.
    """
    wanted = list(paths)
    content: Any = document.content
    for path in wanted:
        content = _put(content, path, _at(other.content, path))
    prefixes = tuple(".".join(path) for path in wanted)
    places = Places(
        {p: place for p, place in document.places.values.items() if not _below(p, prefixes)}
        | {p: place for p, place in other.places.values.items() if _below(p, prefixes)},
        {**other.places.lines, **document.places.lines},
    )
    try:
        architecture = Architecture.model_validate(content, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidInput(*explain_errors(error, places, dict(places.values))) from None
    return Document(architecture, places, "", content)


def _below(path: str, prefixes: tuple[str, ...]) -> bool:
    return any(path == prefix or path.startswith(prefix + ".") for prefix in prefixes)


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(content, Mapping) or key not in content:
            return _ABSENT
        content = content[key]
    return content


def _put(content: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy with the value at the path; sections on the way are begun where absent, and a missing value is removed."""
    key, *rest = path
    copied = dict(content) if isinstance(content, Mapping) else {}
    if rest:
        copied[key] = _put(copied.get(key), tuple(rest), value)
    elif value is _ABSENT:
        copied.pop(key, None)
    else:
        copied[key] = value
    return copied
