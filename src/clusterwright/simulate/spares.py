"""Hot spares: installed and ready nodes that nobody may use until another node is out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Spares:
    """Which spares are ready.

    Args:
        nodes: indexes of the spares.
        domains: index of the node → domain in which its replacement is looked for first; empty when any is as good.
    """

    def __init__(self, nodes: Iterable[int], domains: Sequence[int] = ()) -> None:
        self._ready = set(nodes)
        self._domains = domains

    def __len__(self) -> int:
        return len(self._ready)

    def __contains__(self, node: object) -> bool:
        return node in self._ready

    def take(self, lost: int) -> int | None:
        """The spare that takes the place of a node: of its domain if there is one, of equal ones the lowest index."""
        if not self._ready:
            return None
        near = [n for n in self._ready if self._domains[n] == self._domains[lost]] if len(self._domains) else []
        chosen = min(near or self._ready)
        self._ready.discard(chosen)
        return chosen

    def give(self, node: int) -> None:
        """A node is ready as a spare: it came back and its place was taken."""
        self._ready.add(node)

    def lose(self, node: int) -> None:
        """A spare failed; nothing for a node that is none."""
        self._ready.discard(node)
