"""What it means when about one request of full length fits into the KV cache."""

from __future__ import annotations

from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder

#: Up to here a concurrency is at the boundary: one request of full length may fit and never end; our default.
_BOUNDARY: Final = 1.1


def say_concurrency(builder: RunBuilder, times: float, what: str) -> None:
    """Say what a concurrency around one means."""
    if times < 1:
        message = f"{times:g} requests of {what} fit: no request of full length can ever be served"
        builder.notice("cannot-serve-full-length", message, Weight.ERROR)
    elif times <= _BOUNDARY:
        message = f"{times:g} requests of {what} fit: at the boundary; have one request of full length return tokens"
        builder.notice("concurrency-at-boundary", message, Weight.WARNING)
