"""Explaining a name: a rule of the review, a number of a plan, or a word of the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterwright.app.planning import plan_files
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure
from clusterwright.model.terms import TERMS, Term, find_term, nearest_terms, terms_of_figure
from clusterwright.report.plan_figures import derivation_values, find_figure, render_derivation
from clusterwright.report.reviews import WIDTH, render_rule, rule_values
from clusterwright.report.terms import render_term, render_terms, term_values
from clusterwright.review.rulebook import find_rule, nearest_rules
from clusterwright.review.rules import Rule


@dataclass(frozen=True)
class Explained:
    """What a name stands for; at least one of the three.

    Args:
        rule: of the review. figure: of the plan of the files. terms: words that the name is, or the figure is one of.
        several: figures of the plan that end so, where they are more than one.
    """

    rule: Rule | None = None
    figure: Figure | None = None
    terms: tuple[Term, ...] = ()
    several: tuple[str, ...] = ()


def explain_name(
    name: str,
    files: Sequence[str | Path] = (),
    overrides: Sequence[str] = (),
    catalogues: Sequence[str | Path] = (),
) -> Explained:
    """What a name stands for.

    Args:
        files: whose plan's numbers are looked through; none without.

    Raises:
        InvalidInput: nothing is called so; with the nearest rules, numbers and words.
    """
    rule, term = find_rule(name), find_term(name)
    found: Figure | tuple[str, ...] = find_figure(plan_files(files, overrides, catalogues), name) if files else ()
    if isinstance(found, Figure):
        terms = dict.fromkeys((*((term,) if term else ()), *terms_of_figure(found.name)))
        return Explained(rule, found, tuple(terms))
    if rule is not None or term is not None:
        return Explained(rule, None, (term,) if term else (), found if term else ())
    same = [figure for figure in found if figure.endswith(f".{name}")]
    if len(same) > 1:
        raise InvalidInput(f"several numbers of this plan end in '{name}'; name one: {', '.join(same)}")
    raise InvalidInput(f"nothing is called '{name}'; {_hint(name, found, asked=bool(files))}")


def _hint(name: str, figures: tuple[str, ...], *, asked: bool) -> str:
    near = [f"the rule {rule}" for rule in nearest_rules(name)[:2]]
    near += [f"the number {figure}" for figure in figures[:3]]
    near += [f"the word {term}" for term in nearest_terms(name, 2)]
    more = "" if asked else "; numbers of a plan need its file: cw explain NAME FILE"
    if near:
        return f"did you mean {', or '.join(near)}?{more}"
    return f"cw explain lists all rules, cw explain --terms all words{more}"


def describe_explained(found: Explained, width: int = WIDTH) -> str:
    """As text for a terminal of `width` columns."""
    blocks = []
    if found.rule is not None:
        blocks.append(render_rule(found.rule, width))
    if found.figure is not None:
        blocks.append(render_derivation(found.figure))
    blocks += [render_term(term, width) for term in found.terms]
    if found.several:
        blocks.append("\n".join(["Numbers of this plan:", *(f"  {name}" for name in found.several)]))
    return "\n\n".join(blocks)


def values_of_explained(found: Explained) -> dict[str, Any]:
    """As plain values: those of the rule alone, of the figure with its words, or of the word."""
    if found.rule is not None and found.figure is None:
        return rule_values(found.rule)
    terms = [term_values(term) for term in found.terms]
    if found.figure is not None:
        return derivation_values(found.figure) | {"terms": terms}
    return terms[0] | ({"figures_of_plan": list(found.several)} if found.several else {})


def list_terms() -> str:
    """Every word of the field on one line."""
    return render_terms()


def values_of_terms() -> dict[str, Any]:
    """Every word of the field as plain values."""
    return {"terms": [term_values(term) for term in TERMS]}
