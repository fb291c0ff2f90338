"""One question over several machines: the ranked answers, and what is said about the best of them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.plan.fitting.effects import Asked, Effect, effects, questions
from clusterwright.plan.fitting.house import Audience
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import prices_of
from clusterwright.plan.fitting.ranked import Ranked
from clusterwright.plan.fitting.serving import ServingFit, fit_serving
from clusterwright.plan.fitting.wants import Wants
from clusterwright.plan.searching.serving import WhyNot

if TYPE_CHECKING:
    from clusterwright.plan.fitting.remedies import Remedy

#: Questions that a house asks itself, not its customers.
_OURS: Final = ("--price", "cw calibrate")
_ORDER: Final = {"holds": 0, "late": 1, "too big": 2, "impossible": 3, "unknown": 4}


@dataclass(frozen=True)
class ServingAnswer(Ranked[ServingFit]):
    """Inference.

    Args:
        name: of the model as asked. fits: best first.
        effects, asked, lost, remedies: of the first of `fits`; remedies only where nothing holds.
        close: machines whose cost the band of the first one reaches: their order is not sure.
    """

    name: str
    decoder: Decoder
    wants: Wants
    fits: tuple[ServingFit, ...]
    effects: tuple[Effect, ...] = ()
    asked: tuple[Asked, ...] = ()
    lost: tuple[WhyNot, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    close: tuple[str, ...] = ()
    audience: Audience = "internal"


def answer_serving(
    name: str,
    decoder: Decoder,
    machines: Sequence[Machine],
    wants: Wants,
    catalogue: Catalogue,
    today: datetime.date,
    audience: Audience = "internal",
) -> ServingAnswer:
    """Fit every machine and rank them: those that hold first, then by money where all have a price, else by GPUs.

    Args:
        audience: for a customer, published prices do not stand in for prices that nobody gave, and nothing is said
            that is the house's own business.
    """
    known = catalogue.calibrations()
    make = fit_serving
    if wants.inverse:
        # Few questions are asked the other way round.
        from clusterwright.plan.fitting.inverses import fit_within

        make = fit_within
    published = audience == "internal"
    prices = prices_of(machines, wants.hours, catalogue, today, published=published)
    fits = [make(decoder, m, wants, price, known) for m, price in zip(machines, prices, strict=True)]
    return told(name, decoder, wants, fits, audience)


def told(
    name: str, decoder: Decoder, wants: Wants, fits: Sequence[ServingFit], audience: Audience = "internal"
) -> ServingAnswer:
    """Rank fits and say what is to be said of the first, to this audience."""
    ranked = tuple(sorted(fits, key=_key(fits, wants.inverse)))
    first = ranked[0]
    changes = () if first.verdict == "holds" else _remedies(first)
    if audience == "customer":
        asked = tuple(a for a in questions(first, wants) if a.option not in _OURS)
        return ServingAnswer(name, decoder, wants, ranked, asked=asked, remedies=changes, audience=audience)
    return ServingAnswer(
        name,
        decoder,
        wants,
        ranked,
        effects(first, wants),
        questions(first, wants),
        first.search.losers(),
        changes,
        () if wants.inverse else _close(ranked),
    )


def _remedies(fit: ServingFit) -> tuple[Remedy, ...]:
    # Most questions have an answer that holds.
    from clusterwright.plan.fitting.remedies import remedies

    return remedies(fit)


def by_money(fits: Sequence[ServingFit]) -> bool:
    """Whether every machine that holds has a price in one currency."""
    prices = [fit.price for fit in fits if fit.verdict == "holds"]
    return bool(prices) and None not in prices and len({p.currency for p in prices if p is not None}) == 1


def measure(fit: ServingFit, money: bool) -> float:
    """What machines that hold are ranked by: money per token, else GPUs (per request and second without a load)."""
    if money and fit.per_mtok_out is not None:
        return fit.per_mtok_out.value
    if fit.question.rate is not None or fit.question.concurrency is not None:
        return fit.charged_gpus.value
    return fit.chosen.layout.gpus / fit.chosen.requests_s


def _key(fits: Sequence[ServingFit], inverse: bool) -> Callable[[ServingFit], tuple[int, float, str]]:
    money = by_money(fits)

    def key(fit: ServingFit) -> tuple[int, float, str]:
        held = math.inf
        if fit.verdict == "holds":
            held = -fit.carried_s.value if inverse else measure(fit, money)
        return _ORDER[fit.verdict], held, fit.machine.asked

    return key


def _close(fits: Sequence[ServingFit]) -> tuple[str, ...]:
    """Machines that may be as good as the first, as far as the estimates tell."""
    first = fits[0]
    if first.verdict != "holds":
        return ()
    money = by_money(fits)

    def ends(fit: ServingFit) -> tuple[float, float]:
        band = fit.per_mtok_out if money else fit.charged_gpus
        assert band is not None
        return band.low or 0.0, math.inf if band.high is None else band.high

    top = ends(first)[1]
    return tuple(fit.machine.asked for fit in fits[1:] if fit.verdict == "holds" and ends(fit)[0] <= top)
