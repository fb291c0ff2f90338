"""The question turned round: how much load a budget or a power carries, and on what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterwright.model.calibrations import Calibration
from clusterwright.model.decoders import Decoder
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import HourPrice
from clusterwright.plan.fitting.serving import ServingFit, answer, question_of
from clusterwright.plan.fitting.wants import Wants
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.serving import ServingSearch, search_serving
from clusterwright.plan.searching.sizing import needed_of, replicas_in_pool

#: Most nodes that a power is counted for.
_MOST_NODES = 1 << 17


@dataclass(frozen=True)
class Limit:
    """What may be used.

    Args:
        charged_gpus: that a budget pays for at a time. nodes: that a power feeds, spares and switches beside them.
        missing: why neither is known, in words.
    """

    charged_gpus: float | None = None
    nodes: int | None = None
    missing: str = ""


def limit_of(machine: Machine, wants: Wants, price: HourPrice | None) -> Limit:
    """GPUs of a budget per month, nodes of a power; both where both are given."""
    charged = nodes = None
    if wants.budget is not None:
        if price is None or price.currency != wants.budget.currency:
            return Limit(missing=f"no price in {wants.budget.currency} of {machine.asked} is known; give --price")
        if not wants.budget.monthly:
            return Limit(missing="a budget of inference is per month: --budget $50k/month")
        charged = wants.budget.value / HOURS_PER_MONTH / price.value
    if wants.power_w is not None:
        if machine.shape is None or machine.shape.power is None:
            return Limit(missing=f"the catalogue has no power of {machine.asked}'s node; name one such as dgx-h100")
        nodes = nodes_of_power(machine, wants.power_w / 1e3, wants)
    return Limit(charged, nodes)


def nodes_of_power(machine: Machine, facility_kw: float, wants: Wants) -> int:
    """Most working nodes whose bill (spares, switches, cooling) stays within a power."""

    def fits(nodes: int) -> bool:
        needed = _facility_kw(machine, nodes, wants)
        return needed is not None and needed <= facility_kw

    low, high = 0, 1
    while high < _MOST_NODES and fits(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _facility_kw(machine: Machine, nodes: int, wants: Wants) -> float | None:
    """Power of a bill with cooling; None for more nodes than any tree of these switches joins."""
    # Only a power asks for a bill.
    from clusterwright.plan.fitting.bills import options_of
    from clusterwright.plan.materials import count_materials

    assert machine.shape is not None
    try:
        return count_materials(machine.shape, nodes=nodes, options=options_of(wants)).facility_kw
    except ValueError:
        return None


def _said_where_joined(machine: Machine, nodes: int, wants: Wants) -> Machine:
    """The machine, with a remark where its fabric and not the power ends what can be had."""
    if nodes == 0 or _facility_kw(machine, nodes + 1, wants) is not None:
        return machine
    told = f"{nodes:,} nodes, as many as one fabric of these switches joins, though the power feeds more"
    return replace(machine, taken=(*machine.taken, told))


def fit_within(
    decoder: Decoder, machine: Machine, wants: Wants, price: HourPrice | None, known: Sequence[Calibration]
) -> ServingFit:
    """The layout that carries most within the limit, and the least that carries as much."""
    limit = limit_of(machine, wants, price)
    question = question_of(decoder, machine, wants, price)
    if question.quantile is None:
        question = replace(question, quantile=wants.serving.quantile)
    if limit.nodes is not None:
        machine = _said_where_joined(machine, limit.nodes, wants)
        question = replace(question, pool=replace(question.pool, nodes=limit.nodes))
    constants, _ = calibrated(question, known)
    search = search_serving(question, constants)
    rate = 0.0 if limit.missing else carried_within(search, limit)
    if rate <= 0:
        plain = answer(machine, wants, price, search, known)
        if limit.missing:
            return replace(plain, verdict="unknown", best=None, nearest=None, said=limit.missing)
        if plain.verdict == "holds" or limit.nodes == 0:
            return replace(plain, verdict="late", best=None, nearest=None, said=_too_little(limit))
        return plain
    loaded = search_serving(replace(question, rate=rate * (1 - 1e-9)), constants)
    return answer(machine, wants, price, loaded, known)


def _too_little(limit: Limit) -> str:
    if limit.nodes == 0:
        return "the power feeds no node"
    return "that is too little for one replica, with what may be lost"


def carried_within(search: ServingSearch, limit: Limit) -> float:
    """Most requests per second of all layouts within a limit."""
    judged, question = search.judged, search.question
    rows = np.flatnonzero(judged.possible)
    if not len(rows):
        return 0.0
    sizes = judged.sizes
    wide = (sizes["tp"] * sizes["pp"] * sizes["cp"] * sizes["dp"])[rows]
    most = replicas_in_pool(question, wide)
    if limit.charged_gpus is not None:
        each = judged.charged_gpus[rows] / judged.replicas[rows]
        most = np.minimum(most, needed_of(question, np.floor(limit.charged_gpus / each + 1e-9), wide))
    carried = np.where(most > 0, most * judged.requests_s[rows], 0.0)
    found = float(np.max(carried))
    return found if math.isfinite(found) else 0.0
