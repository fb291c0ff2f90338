"""`cw explain`: a rule of the review, a number of a plan, or a word of the field."""

from __future__ import annotations

from typing import Annotated

import typer

from clusterwright.app.explaining import (
    describe_explained,
    explain_name,
    list_terms,
    values_of_explained,
    values_of_terms,
)
from clusterwright.app.reviewing import list_rules, values_of_rules
from clusterwright.cli.output import Format, columns, say, say_json


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Rule, number of a plan (its end is enough where only one ends so), or word; all rules if absent."
        ),
    ] = None,
    files: Annotated[
        list[str] | None, typer.Argument(help="Architecture files whose plan's numbers are meant, merged in order.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write over a value of the files.")
    ] = None,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    terms: Annotated[bool, typer.Option("--terms", help="List the words of the field.")] = False,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or JSON.")] = Format.text,
) -> None:
    """Explain a rule, a number or a word.

    A rule of the review: what it catches, why it matters, how to satisfy it, with an example and its source. A number
    of the plan of FILES: its tree down to datasheet, line of the file or assumption, and what changes it most. A word
    such as TTFT, busbw, MFU or ETTR: what it means, its formula and source. What is called by no name of the three is
    answered with the nearest of all.

    Exit codes: 0 explained; 2 nothing is called so, or a file cannot be read.
    """
    if name is None:
        listed = (list_terms, values_of_terms) if terms else (list_rules, values_of_rules)
        if output is Format.json:
            say_json(listed[1]())
        else:
            say(listed[0]())
        return
    found = explain_name(name, files or (), overrides or (), catalogues or ())
    if output is Format.json:
        say_json(values_of_explained(found))
    else:
        say(describe_explained(found, columns()))
