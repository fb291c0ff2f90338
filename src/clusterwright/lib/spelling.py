"""Spelling: the word that was most likely meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

#: Likeness (difflib's ratio, 0 to 1) from which a word is offered at all.
LIKELY: Final = 0.6
#: No name is longer; a longer word is data that landed in the wrong place.
_LONGEST: Final = 80


def nearest(word: str, choices: Iterable[str], cutoff: float = LIKELY) -> str | None:
    """The choice most like `word`, ignoring case, spaces, dashes and underscores; None when none is close."""
    plain = {_plain(choice): choice for choice in choices}
    found = get_close_matches(_plain(word), plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`did you mean 'x'?`, or "" when nothing is close."""
    close = nearest(word, choices)
    return f"did you mean '{close}'?" if close else ""


def _plain(word: str) -> str:
    return re.sub(r"[-_ ]", "", word[:_LONGEST]).lower()
