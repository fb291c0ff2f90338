"""Words of the field as text and as plain values."""

from __future__ import annotations

import textwrap
from typing import Any

from clusterwright.model.terms import TERMS, Term

_WIDEST = 100


def render_term(term: Term, width: int = _WIDEST) -> str:
    """One word for people: what it means, its formula, its source."""
    wide = max(40, min(width, _WIDEST))
    head = f"{term.name}, {term.long}" if term.long else term.name
    lines = [head, "", *textwrap.wrap(term.means, wide)]
    if term.formula:
        lines += ["", *textwrap.wrap(f"Formula: {term.formula}", wide, subsequent_indent="  ")]
    if term.also:
        lines += ["", *textwrap.wrap(f"Also: {', '.join(term.also)}", wide, subsequent_indent="  ")]
    return "\n".join([*lines, "", *textwrap.wrap(f"Source: {term.source}", wide, subsequent_indent="  ")])


def render_terms() -> str:
    """Every word on one line."""
    wide = max(len(term.name) for term in TERMS)
    return "\n".join(f"{term.name:{wide}}  {_first_sentence(term)}" for term in TERMS)


def _first_sentence(term: Term) -> str:
    return term.long or term.means.partition(". ")[0].rstrip(".")


def term_values(term: Term) -> dict[str, Any]:
    """One word as plain values."""
    return {
        "term": term.name,
        "long": term.long,
        "means": term.means,
        "formula": term.formula,
        "also": list(term.also),
        "figures": list(term.figures),
        "source": term.source,
    }
