"""Formats of many tools: CTRF, JUnit, cost exports; and notes that are no tool's output."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.others import cost_exports, ctrf, junit, notes
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = (*ctrf.READERS, *junit.READERS, *cost_exports.READERS, *notes.READERS)
