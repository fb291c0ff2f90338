"""A parsed architecture together with the places of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clusterwright.lib.errors import Place
from clusterwright.model.architecture import Architecture


@dataclass(frozen=True)
class Places:
    """Where every key and value stands.

    Paths are dotted (`pools.gpu.price`, `waivers.0.rule`); a key that itself holds dots or spaces is kept as it is.

    Args:
        values: path → place of the value (of the key for a mapping).
        lines: file name → its lines, without line ends.
    """

    values: Mapping[str, Place]
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether the file itself says something at `path`."""
        return path in self.values

    def of(self, path: str) -> Place:
        """Place of `path`, or of its nearest present parent, or of the start of the first file."""
        while path:
            if path in self.values:
                return self.values[path]
            path = path.rpartition(".")[0]
        return self.values.get("", Place("input"))

    def line_of(self, place: Place) -> str:
        """The source line at a place, or "" when it has none."""
        lines = self.lines.get(place.file, ())
        return lines[place.line - 1] if 0 < place.line <= len(lines) else ""


@dataclass(frozen=True)
class Document:
    """The declared value with the places of its parts.

    Args:
        digest: `sha256:` of the merged, canonical content; results name the inputs they follow from.
        content: the merged sections as plain values, before they were validated.
    """

    architecture: Architecture
    places: Places
    digest: str = ""
    content: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
