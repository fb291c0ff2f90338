"""The connections of agents: whom a message reaches, and since when a node has been silent.

In memory alone: a new control plane has none, and every node's silence begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clusterwright.engines.local.wire import Message
from clusterwright.model.jobs import Attempt
from clusterwright.ports.clocks import Clock


@dataclass(slots=True)
class Link:
    """The connection of one agent."""

    boot: str
    send: Callable[[Message], None]
    close: Callable[[], None]


class Links:
    """Connections by node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._links: dict[str, Link] = {}
        self._heard_s: dict[str, float] = {}
        self._looked_s = clock.monotonic_s()

    def __contains__(self, node: str) -> bool:
        return node in self._links

    def expect(self, nodes: Iterable[str]) -> None:
        """Silence of these nodes begins now."""
        self._heard_s = dict.fromkeys(nodes, self._clock.monotonic_s())

    def connect(self, node: str, link: Link) -> None:
        """A node's agent is connected, in place of any before."""
        self._links[node] = link
        self.hear(node)

    def hear(self, node: str) -> None:
        """A node's agent lives."""
        self._heard_s[node] = self._clock.monotonic_s()

    def silent_s(self, node: str, now_s: float) -> float:
        """From when it was last heard of until `now_s`, by the monotonic clock."""
        return now_s - self._heard_s[node]

    def forgive(self, longest_s: float) -> None:
        """Let no silence count of a time since the last call, if that is longer: nobody listened then."""
        now = self._clock.monotonic_s()
        absent_s = now - self._looked_s
        if absent_s > longest_s:
            self._heard_s = {n: t + absent_s for n, t in self._heard_s.items()}
        self._looked_s = now

    def send(self, attempt: Attempt, node: str, message: Message) -> None:
        """To the agent the attempt was placed with, if it is connected; one that returns is told by `on_hello`."""
        link = self._links.get(node)
        if link is not None and link.boot in {a.boot for a in attempt.agents}:
            link.send(message)

    def send_all(self, message: Message) -> None:
        """To every agent that is connected."""
        for link in self._links.values():
            link.send(message)

    def ended(self, node: str, boot: str) -> bool:
        """A connection of this agent ended; whether it was the node's."""
        link = self._links.get(node)
        if link is None or link.boot != boot:
            return False
        del self._links[node]
        return True

    def close(self, node: str) -> None:
        """Close the connection of a node, if it has one."""
        link = self._links.pop(node, None)
        if link is not None:
            link.close()
