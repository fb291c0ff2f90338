"""Lines by which a tool for ports says that it could not read something, and lines that somebody left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clusterwright.model.observations import Notice, Run, Weight
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import shorten

_TROUBLE: Final = re.compile(
    r"\s*(?:ibpanic|iberror|ibwarn|ibstat|ibstatus|ibportstate|iblinkinfo|ibnetdiscover|ibv_\w{2,16}|mlxlink|-E-)\b"
    r".{0,300}\b(?:failed|[Ee]rror|panic|[Cc]an(?:no|')t|[Cc]ould ?n[o']t|No such|not found|timed? ?out)\b"
)
_DOTS: Final = frozenset({"...", "....", "…", "[...]", "[…]", "(...)", "<snip>", "[snip]"})
_MOST: Final = 20


def with_troubles(runs: Sequence[Run], lines: Sequence[Line]) -> list[Run]:
    """The runs of one host; the first one says a trouble and is incomplete."""
    said = [line for line in lines if _TROUBLE.match(line.text[:400])][:_MOST]
    elided = [line.number for line in lines if len(line.text) < 40 and line.text.strip() in _DOTS][:_MOST]
    if not runs or not (said or elided):
        return list(runs)
    first = runs[0]
    notices = tuple(Notice("tool-error", shorten(line.text), Weight.ERROR, line.number) for line in said)
    missing = [f"what the tool could not read (line {line.number})" for line in said]
    missing += [f"lines left out at an ellipsis (line {number})" for number in elided]
    changed = replace(first, notices=(*first.notices, *notices), missing=(*first.missing, *missing))
    return [changed, *runs[1:]]
