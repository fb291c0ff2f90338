"""Answers to sizing questions, as text and as plain values, with the futures that they rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.report.replications import Simulated
from clusterwright.report.simulation_values import SCHEMA, simulated_values
from clusterwright.report.simulations import render_sweep


@dataclass(frozen=True, slots=True)
class Answer:
    """What follows from some futures.

    Args:
        said: the answer in one sentence, with its numbers.
        basis: what it rests on.
    """

    question: str
    said: str
    basis: str


def render_answer(answer: Answer, found: Sequence[Simulated], width: int = 100) -> str:
    """The answer first, then the futures side by side."""
    told = [f"{answer.question}: {answer.said}", f"basis: {answer.basis}"]
    lines = [line for text in told for line in textwrap.wrap(text, width, subsequent_indent="    ")]
    return "\n".join((*lines, "", render_sweep("the futures that this rests on", found, width)))


def answer_values(answer: Answer, found: Sequence[Simulated]) -> dict[str, Any]:
    """The answer with the values of its futures."""
    return {
        "schema": SCHEMA,
        "origin": "simulated",
        "question": answer.question,
        "answer": answer.said,
        "basis": answer.basis,
        "partial": any(f.partial for f in found),
        "futures": [simulated_values(f) for f in found],
    }
