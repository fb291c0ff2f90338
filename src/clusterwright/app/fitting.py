"""Fitting: model, machines and options as text → an answer, and its page."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from clusterwright.app.fitting_models import find_model
from clusterwright.files.catalogue import load_catalogue
from clusterwright.files.outputs import write_text
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import Quantity, UnitError, parse_kind
from clusterwright.plan.fitting.alternatives import Alternative, alternatives
from clusterwright.plan.fitting.answers import ServingAnswer, answer_serving
from clusterwright.plan.fitting.bills import bill_of
from clusterwright.plan.fitting.documents import architecture_text
from clusterwright.plan.fitting.house import Audience, House
from clusterwright.plan.fitting.machines import Machine, find_machine
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.trainings import TrainingAnswer, answer_training
from clusterwright.plan.materials import Materials
from clusterwright.report.blocks import Block, as_markdown, as_text
from clusterwright.report.fits import serving_page
from clusterwright.report.fits_more import alternative_blocks, alternative_values, bill_blocks, bill_values
from clusterwright.report.fits_training import training_page
from clusterwright.report.fits_values import serving_values, training_values
from clusterwright.report.tables_out import as_csv, serving_rows, table_of, training_rows

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
        profile: of the house, see `app.fitting_profile`. audience: who reads the answer.
        catalogues: the user's own, over the shipped. place: where an option stands, for messages.
    """

    model: str
    machines: Sequence[str]
    today: datetime.date
    options: Mapping[str, str] = field(default_factory=dict)
    train: bool = False
    profile: House = field(default_factory=House)
    audience: Audience = "internal"
    catalogues: Sequence[str] = ()
    place: Callable[[str], str] = lambda name: f"--{name}"


def fit(request: FitRequest) -> Answer:
    """The answer.

    Raises:
        InvalidInput: with everything wrong in model, machines and options.
    """
    catalogue = load_catalogue(request.catalogues)
    problems, house = list[Problem](), request.profile
    options = dict(request.options)
    nic = _tried(lambda: _nic(options.pop("nic", None)), problems)
    decoder = _tried(lambda: find_model(catalogue, request.model), problems)
    machines = [_tried(partial(find_machine, catalogue, name, nic, house.skus), problems) for name in request.machines]
    wants = _tried(
        lambda: read_wants(
            options,
            train=request.train,
            defaults={} if request.train else house.defaults,
            hours=house.hours(request.audience),
            place=request.place,
        ),
        problems,
    )
    if problems or decoder is None or wants is None:
        raise InvalidInput(*problems)
    found = list[Machine](machine for machine in machines if machine is not None)
    if not found:
        raise InvalidInput(Problem(Place("GPU"), "", "name at least one GPU or node", "such as h100 or dgx-h100"))
    make = answer_training if request.train else answer_serving
    return make(request.model, decoder, found, wants, catalogue, request.today, request.audience)


@dataclass(frozen=True)
class More:
    """What a page may say beside the answer.

    Args:
        bill: whether the bill of materials is wanted, `materials` where it could be counted.
        elsewhere: the same work at published prices, None where nobody asked or a customer reads.
    """

    bill: bool = False
    materials: Materials | None = None
    elsewhere: tuple[Alternative, ...] | None = None


NOTHING_MORE: Final = More()


def more_of(answer: Answer, request: FitRequest, *, bill: bool, elsewhere: bool) -> More:
    """The bill and the alternatives of the best machine, as far as they are wanted and this audience may see them."""
    found = None
    if elsewhere and request.audience == "internal":
        catalogue = load_catalogue(request.catalogues)
        found = alternatives(answer.first, catalogue, request.today, answer.decoder.name)
    return More(bill, bill_of(answer.first, answer.wants) if bill else None, found)


def page_of(answer: Answer, more: More = NOTHING_MORE) -> tuple[Block, ...]:
    """The answer as blocks of a page."""
    blocks = list(training_page(answer) if isinstance(answer, TrainingAnswer) else serving_page(answer))
    machine = answer.first.machine.asked
    if more.bill:
        blocks += bill_blocks(more.materials, machine)
    if more.elsewhere is not None:
        blocks += alternative_blocks(more.elsewhere, machine)
    return tuple(blocks)


def values_of_fit(answer: Answer, more: More = NOTHING_MORE) -> dict[str, Any]:
    """The answer as plain values."""
    values = training_values(answer) if isinstance(answer, TrainingAnswer) else serving_values(answer)
    if more.bill:
        values["bill"] = bill_values(more.materials)
    if more.elsewhere is not None:
        values["elsewhere"] = alternative_values(more.elsewhere)
    return values


def csv_of_fit(answer: Answer) -> str:
    """The answer as CSV, one row per machine."""
    rows = training_rows(answer) if isinstance(answer, TrainingAnswer) else serving_rows(answer)
    return as_csv(table_of(rows))


def write_architecture(answer: Answer, path: Path, *, replace: bool = False) -> None:
    """Write the architecture file that says what the answer says.

    Raises:
        InvalidInput: nothing holds, or the file exists.
    """
    write_text(path, architecture_text(answer), replace=replace)


def describe_fit(answer: Answer, width: int = 120, more: More = NOTHING_MORE) -> str:
    """The answer as text for a terminal of that many columns."""
    return as_text(page_of(answer, more), width)


def markdown_of_fit(answer: Answer, more: More = NOTHING_MORE) -> str:
    """The answer as Markdown."""
    return as_markdown(page_of(answer, more), f"{answer.name} on {', '.join(f.machine.asked for f in answer.fits)}")


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
