"""The one exception that a reader may raise: the output is refused, with the place and the reason."""

from __future__ import annotations

from typing import Final

from clusterwright.model.observations import Refusal

_SHOWN: Final = 120


class Refused(Exception):
    """An output that cannot be read at all; `refusal` says why."""

    def __init__(self, reason: str, line: int = 0, found: str = "") -> None:
        self.refusal = Refusal(reason, line, shorten(found))
        super().__init__(str(self.refusal))


def shorten(text: str, limit: int = _SHOWN) -> str:
    """The text without line breaks, cut with an ellipsis."""
    flat = " ".join(text[: limit * 4].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
