"""Kubernetes: nodes, pods that wait, Kueue, device plugins, DRA."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = ()
