"""Serving benchmarks and what a server logs about its capacity."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = ()
