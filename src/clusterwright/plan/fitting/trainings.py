"""One question about training over several machines: the ranked answers, and what is said about the best of them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.physics.training.calibration import CALIBRATED
from clusterwright.plan.fitting.effects import Asked, Effect
from clusterwright.plan.fitting.house import Audience
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import prices_of
from clusterwright.plan.fitting.ranked import Ranked
from clusterwright.plan.fitting.training_effects import training_effects
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.training_questions import training_questions
from clusterwright.plan.fitting.training_remedies import TrainingRemedy, training_remedies
from clusterwright.plan.fitting.training_searches import fit_training
from clusterwright.plan.fitting.wants import Wants
from clusterwright.plan.searching.training import WhyNot

#: Questions that a house asks itself, not its customers.
_OURS: Final = ("--price", "cw plan")
_ORDER: Final = ("holds", "late", "too big", "impossible", "unknown")


@dataclass(frozen=True)
class TrainingAnswer(Ranked[TrainingFit]):
    """Training.

    Args:
        fits: best first. effects, asked, lost, remedies: of the first; remedies only where nothing holds.
    """

    name: str
    decoder: Decoder
    wants: Wants
    fits: tuple[TrainingFit, ...]
    effects: tuple[Effect, ...] = ()
    asked: tuple[Asked, ...] = ()
    lost: tuple[WhyNot, ...] = ()
    remedies: tuple[TrainingRemedy, ...] = ()
    audience: Audience = "internal"


def answer_training(
    name: str,
    decoder: Decoder,
    machines: Sequence[Machine],
    wants: Wants,
    catalogue: Catalogue,
    today: datetime.date,
    audience: Audience = "internal",
) -> TrainingAnswer:
    """Search every machine and rank them: those that hold first, then by money, else by GPU-hours."""
    published = audience == "internal"
    prices = prices_of(machines, wants.hours, catalogue, today, published=published)
    fits = [fit_training(decoder, m, wants, price) for m, price in zip(machines, prices, strict=True)]
    money = all(fit.price is not None for fit in fits if fit.best is not None)
    ranked = tuple(sorted(fits, key=lambda fit: _key(fit, money)))
    first = ranked[0]
    asked, changes = training_questions(first, wants), training_remedies(first, wants)
    if not published:
        asked = tuple(a for a in asked if a.option not in _OURS)
        return TrainingAnswer(name, decoder, wants, ranked, asked=asked, remedies=changes, audience=audience)
    lost = first.search.losers() if first.search is not None and first.best is not None else ()
    return TrainingAnswer(name, decoder, wants, ranked, training_effects(first, wants), asked, lost, changes)


def _key(fit: TrainingFit, money: bool) -> tuple[int, float, str]:
    order = _ORDER.index(fit.verdict)
    if fit.best is None:
        return order, math.inf, fit.machine.asked
    each = fit.per_mtok if money else None
    return order, (each or fit.gpu_h_per_mtok).value, fit.machine.asked


def calibration_words() -> str:
    """What step times rest on."""
    mean, median = CALIBRATED.error
    return f"{CALIBRATED.fitted_on}; models left out: mean error {mean:.0%}, median {median:.0%}"
