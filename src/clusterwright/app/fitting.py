"""Fitting: model, machines and options as text → an answer, and its page."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from clusterwright.app.fitting_models import find_model
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import Quantity, UnitError, parse_kind
from clusterwright.plan.fitting.answers import Audience, ServingAnswer, answer_serving
from clusterwright.plan.fitting.machines import Machine, find_machine
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.trainings import TrainingAnswer, answer_training
from clusterwright.report.blocks import Block, as_markdown, as_text
from clusterwright.report.fits import serving_page
from clusterwright.report.fits_training import training_page

T = TypeVar("T")
Answer = ServingAnswer | TrainingAnswer


@dataclass(frozen=True)
class FitRequest:
    """What was asked.

    Args:
        model: Hugging Face id or alias of the catalogue, or path of a config.json or its folder.
        machines: names of GPUs or nodes.
        today: day that prices are judged on.
        options: by name as on the command line, as text; `nic` beside those of `plan.fitting.reading`.
        catalogues: the user's own, over the shipped.
    """

    model: str
    machines: Sequence[str]
    today: datetime.date
    options: Mapping[str, str] = field(default_factory=dict)
    train: bool = False
    audience: Audience = "internal"
    catalogues: Sequence[str] = ()


def fit(request: FitRequest) -> Answer:
    """The answer.

    Raises:
        InvalidInput: with everything wrong in model, machines and options.
    """
    catalogue = load_catalogue(request.catalogues)
    problems = list[Problem]()
    options = dict(request.options)
    nic = _tried(lambda: _nic(options.pop("nic", None)), problems)
    decoder = _tried(lambda: find_model(catalogue, request.model), problems)
    machines = [_tried(partial(find_machine, catalogue, name, nic), problems) for name in request.machines]
    wants = _tried(lambda: read_wants(options, train=request.train), problems)
    if problems or decoder is None or wants is None:
        raise InvalidInput(*problems)
    found = list[Machine](machine for machine in machines if machine is not None)
    if not found:
        raise InvalidInput(Problem(Place("GPU"), "", "name at least one GPU or node", "such as h100 or dgx-h100"))
    if request.train:
        trained = answer_training(request.model, decoder, found, wants, catalogue, request.today)
        return replace(trained, audience=request.audience)
    answer = answer_serving(request.model, decoder, found, wants, catalogue, request.today)
    return replace(answer, audience=request.audience)


def page_of(answer: Answer) -> tuple[Block, ...]:
    """The answer as blocks of a page."""
    return training_page(answer) if isinstance(answer, TrainingAnswer) else serving_page(answer)


def describe_fit(answer: Answer, width: int = 120) -> str:
    """The answer as text for a terminal of that many columns."""
    return as_text(page_of(answer), width)


def markdown_of_fit(answer: Answer) -> str:
    """The answer as Markdown."""
    return as_markdown(page_of(answer), f"{answer.name} on {', '.join(f.machine.asked for f in answer.fits)}")


def _tried(make: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return make()
    except InvalidInput as error:
        problems.extend(error.problems)
        return None


def _nic(text: str | None) -> Quantity | None:
    if not text:
        return None
    try:
        return parse_kind(text, "bit rate")
    except UnitError as error:
        raise InvalidInput(Problem(Place("--nic"), "", str(error))) from None
