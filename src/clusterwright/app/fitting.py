"""Fitting: model, machines and options as text → an answer, and its page."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from clusterwright.app.fitting_models import find_model
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import Quantity
from clusterwright.plan.fitting.amounts import Wrong, link
from clusterwright.plan.fitting.answers import ServingAnswer, answer_serving
from clusterwright.plan.fitting.house import Audience, House
from clusterwright.plan.fitting.machines import Machine, find_machine
from clusterwright.plan.fitting.prices import names_of
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.report.blocks import Block, as_markdown, as_text
from clusterwright.report.fits import serving_page

if TYPE_CHECKING:
    from clusterwright.catalogue.catalogues import Catalogue
    from clusterwright.plan.fitting.trainings import TrainingAnswer
    from clusterwright.plan.fitting.wants import Wants

    Answer = ServingAnswer | TrainingAnswer

T = TypeVar("T")


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


#: Options that say how much is asked for: whoever states one of them replaces all of them.
_LOADS: Final = ("rate", "concurrency", "budget", "power")


def options_over(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """Options of a question over those that hold where it says nothing (of a trace, of a command with many rows)."""
    replaced = _LOADS if any(name in above for name in _LOADS) else ()
    return {**{name: text for name, text in below.items() if name not in replaced}, **above}


def fit(request: FitRequest) -> Answer:
    """The answer.

    Raises:
        InvalidInput: with everything wrong in model, machines and options.
    """
    catalogue = load_catalogue(request.catalogues)
    problems, house = list[Problem](), request.profile
    options = {name: text for name, text in request.options.items() if name != "nic"}
    nic = _tried(lambda: _nic(request), problems)
    decoder = _tried(lambda: find_model(catalogue, request.model), problems)
    machines = [_tried(partial(find_machine, catalogue, name, nic, house.skus), problems) for name in request.machines]
    wants = _tried(
        lambda: read_wants(
            options,
            train=request.train,
            defaults=house.defaults,
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
    _check_prices(request, wants, found, catalogue)
    asked = (request.model, decoder, found, wants, catalogue, request.today, request.audience)
    if not request.train:
        return answer_serving(*asked)
    # Most questions are about inference: what training needs is read when it is asked for.
    from clusterwright.plan.fitting.trainings import answer_training

    return answer_training(*asked)


def page_of(answer: Answer, more: Sequence[Block] = ()) -> tuple[Block, ...]:
    """The answer as blocks of a page, with what is added on demand (see `app.fitting_forms`)."""
    if isinstance(answer, ServingAnswer):
        return (*serving_page(answer), *more)
    from clusterwright.report.fits_training import training_page

    return (*training_page(answer), *more)


def describe_fit(answer: Answer, width: int = 120, more: Sequence[Block] = ()) -> str:
    """The answer as text for a terminal of that many columns."""
    return as_text(page_of(answer, more), width)


def markdown_of_fit(answer: Answer, more: Sequence[Block] = ()) -> str:
    """The answer as Markdown."""
    machines = ", ".join(fit.machine.asked for fit in answer.fits)
    return as_markdown(page_of(answer, more), f"{answer.name} on {machines}")


def _tried(make: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return make()
    except InvalidInput as error:
        problems.extend(error.problems)
        return None


def _check_prices(request: FitRequest, wants: Wants, machines: Sequence[Machine], catalogue: Catalogue) -> None:
    """Refuse a price by a name that nothing has: the published price would count in its place."""
    if "price" not in wants.stated:
        return
    known = {name for machine in machines for name in names_of(machine)}
    for name in wants.hours[0].values:
        if name and name not in known and catalogue.find_gpu(name) is None and catalogue.find_shape(name) is None:
            hint = f"names here: {', '.join(machine.asked for machine in machines)}"
            raise InvalidInput(Problem(Place(request.place("price")), "", f"no GPU or node is called '{name}'", hint))


def _nic(request: FitRequest) -> Quantity | None:
    text = request.options.get("nic", "")
    if not text.strip():
        return None
    try:
        return link(text)
    except Wrong as error:
        raise InvalidInput(Problem(Place(request.place("nic")), "", str(error))) from None
