"""What the same work costs elsewhere: an API for the model, rented GPUs; dated, old prices marked."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.catalogue.shelf_lives import SHELF_LIVES
from clusterwright.plan.fitting.prices import rentals
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.training_fits import TrainingFit


@dataclass(frozen=True)
class Alternative:
    """Another way to have the work done.

    Args:
        per_h: money per hour for the same work, low to high.
        ratio: of the middle to ours; None where ours has no price in that currency.
        dated: day of the price, ISO; stale when past its shelf life.
    """

    what: str
    low: float
    high: float
    currency: str
    ratio: float | None
    dated: str
    stale: bool


def alternatives(
    fit: ServingFit | TrainingFit, catalogue: Catalogue, today: datetime.date, model: str
) -> tuple[Alternative, ...]:
    """Alternatives to the best layout of a machine, cheapest first; none where nothing holds."""
    if fit.best is None:
        return ()
    found = list(_rented(fit, catalogue, today))
    if isinstance(fit, ServingFit):
        found += _apis(fit, catalogue, today, model)
    return tuple(sorted(found, key=lambda a: a.low + a.high))


def _rented(fit: ServingFit | TrainingFit, catalogue: Catalogue, today: datetime.date) -> Iterator[Alternative]:
    gpus = fit.charged_gpus.value if isinstance(fit, ServingFit) else float(fit.chosen.gpus)
    for price in rentals(catalogue, fit.machine.gpu.name, today):
        dated = (today - datetime.timedelta(days=price.age_days or 0)).isoformat()
        what = f"rent: {price.basis.rpartition(', ')[0]}"
        yield _alternative(fit, what, price.low * gpus, price.high * gpus, price.currency, dated, price.stale)


def _apis(fit: ServingFit, catalogue: Catalogue, today: datetime.date, model: str) -> Iterator[Alternative]:
    own, life = fit.question.lengths, SHELF_LIVES["API price"].days
    for price in catalogue.api_prices(model):
        cached = price.cached_input.value if price.cached_input is not None else price.input.value
        read = own.mean_in * ((1 - own.reused_share) * price.input.value + own.reused_share * cached)
        per_h = (read + own.mean_out * price.output.value) * fit.load_s * fit.utilisation * 3600
        stale = life is not None and (today - price.date).days > life
        what, currency = f"API: {price.provider}", price.output.currency
        yield _alternative(fit, what, per_h, per_h, currency, price.date.isoformat(), stale)


def _alternative(
    fit: ServingFit | TrainingFit, what: str, low: float, high: float, currency: str, dated: str, stale: bool
) -> Alternative:
    ours = fit.per_h.value if isinstance(fit, ServingFit) and fit.per_h is not None else None
    if isinstance(fit, TrainingFit):
        ours = fit.per_h
    comparable = ours is not None and fit.price is not None and fit.price.currency == currency
    ratio = (low + high) / 2 / ours if comparable and ours else None
    return Alternative(what, low, high, currency, ratio, dated, stale)
