"""Capacity that is ordered: when it was promised, and when it can be used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterwright.simulate.durations import NOTHING, Duration
from clusterwright.simulate.streams import Streams


@dataclass(frozen=True, slots=True)
class Delivery:
    """Nodes that arrive together.

    Args:
        name: names its random stream.
        nodes: their indexes among all nodes, present and future.
        planned_s: the promised instant; for a lead time that is drawn as a whole, the instant of the order.
        delay: what comes on top, or the lead time.
        acceptance: from arrival until the nodes passed their tests and can be used.
    """

    name: str
    nodes: tuple[int, ...]
    planned_s: float
    delay: Duration = NOTHING
    acceptance: Duration = NOTHING


@dataclass(frozen=True, slots=True)
class Arrival:
    """Nodes of a delivery can be used from `at_s` on, `late_s` after the promise."""

    at_s: float
    late_s: float
    delivery: Delivery


def draw_arrivals(deliveries: Iterable[Delivery], streams: Streams) -> tuple[Arrival, ...]:
    """When each delivery can be used, in order of time.

    Raises:
        ValueError: if two deliveries share a name or a node.
    """
    wanted = tuple(deliveries)
    nodes = [n for d in wanted for n in d.nodes]
    if len({d.name for d in wanted}) < len(wanted) or len(set(nodes)) < len(nodes):
        raise ValueError("two deliveries share a name or a node")
    arrivals = []
    for delivery in wanted:
        generator = streams.of("deliveries", delivery.name)
        late_s = delivery.delay.draw(generator) + delivery.acceptance.draw(generator)
        arrivals.append(Arrival(delivery.planned_s + late_s, late_s, delivery))
    return tuple(sorted(arrivals, key=lambda a: a.at_s))
