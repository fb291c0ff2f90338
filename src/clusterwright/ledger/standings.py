"""Which GPUs of which node are free, held or out of use, kept while a history is read and told to a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.lines import Entry
from clusterwright.lib.errors import InvalidInput


@dataclass(slots=True)
class NodeStanding:
    """A node: `out` is the entry of its GPUs that nobody holds while it may not be used, None while it may."""

    flavor: str
    gpus: int
    out: Entry | None
    held: int = 0

    @property
    def unheld(self) -> int:
        """GPUs that no attempt holds."""
        return self.gpus - self.held


class Standings:
    """All nodes of a cluster; every change goes to the ledger, except what is free, which `free` holds by flavor.

    Args:
        nodes: by name; they are installed at `at_s`.
    """

    def __init__(self, ledger: Ledger, nodes: Mapping[str, NodeStanding], at_s: float) -> None:
        self._ledger = ledger
        self.nodes = nodes
        self.free: dict[str, int] = {}
        installed: dict[str, int] = {}
        for node in nodes.values():
            installed[node.flavor] = installed.get(node.flavor, 0) + node.gpus
            self.free.setdefault(node.flavor, 0)
        for flavor, gpus in installed.items():
            ledger.install(at_s, flavor, gpus)
        for node in nodes.values():
            self._add_unheld(at_s, node, node.unheld)

    def set_out(self, at_s: float, names: Iterable[str], out: Entry | None) -> None:
        """The nodes may not be used, for this reason, or may again; names that are not declared are passed over."""
        for name in names:
            node = self.nodes.get(name)
            if node is not None and node.out != out:
                self._add_unheld(at_s, node, -node.unheld)
                node.out = out
                self._add_unheld(at_s, node, node.unheld)

    def take(self, at_s: float, gpus_by_node: Mapping[str, int]) -> str:
        """An attempt gets GPUs; returns their flavor.

        Raises:
            InvalidInput: when a node is not declared, has fewer GPUs left, or the nodes are of several flavors.
        """
        for name, gpus in gpus_by_node.items():
            node = self.nodes.get(name)
            if node is None:
                raise InvalidInput(f"node {name} ran jobs, but how many GPUs it has is not known any more")
            if gpus > node.unheld:
                raise InvalidInput(
                    f"node {name} has {node.gpus} GPUs, the history puts {node.held + gpus} to use there"
                )
        flavors = {self.nodes[name].flavor for name in gpus_by_node}
        if len(flavors) != 1:
            raise InvalidInput(f"an attempt on {', '.join(gpus_by_node)} uses GPUs of several models")
        (flavor,) = flavors
        self._ledger.admit(at_s, flavor, sum(gpus_by_node.values()))
        self._move(at_s, gpus_by_node, 1)
        return flavor

    def give_back(self, at_s: float, gpus_by_node: Mapping[str, int]) -> None:
        """An attempt's GPUs are free again, or out of use where their node is; the ledger is told by charging it."""
        self._move(at_s, gpus_by_node, -1)

    def _move(self, at_s: float, gpus_by_node: Mapping[str, int], sign: int) -> None:
        for name, gpus in gpus_by_node.items():
            node = self.nodes[name]
            node.held += sign * gpus
            self._add_unheld(at_s, node, -sign * gpus)

    def _add_unheld(self, at_s: float, node: NodeStanding, gpus: int) -> None:
        if node.out is None:
            self.free[node.flavor] += gpus
        elif gpus:
            self._ledger.put_out(at_s, node.flavor, node.out.line, gpus, node.out.why)
