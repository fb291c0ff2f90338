"""Names of GPUs and nodes as people type them → the machine that is meant, with what was taken for granted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.catalogue.catalogues import Catalogue, fold
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import Quantity
from clusterwright.lib.scales import GIB
from clusterwright.model.hardware import Gpu, NodeShape
from clusterwright.plan.searching.questions import Pool

#: `8xh100`, `4 x l40s`.
_COUNTED: Final = re.compile(r"(\d{1,3})\s*[x×]\s*(.+)", re.IGNORECASE)
#: GPUs of a node of which the catalogue knows no shape.
_NODE: Final = 8


@dataclass(frozen=True)
class Machine:
    """A kind of node.

    Args:
        asked: as it was typed, which is what tables call it.
        shape: the node's entry in the catalogue, None where it knows none of this GPU.
        domain_gpus: that reach each other without a NIC.
        nic_gbytes_s: of one GPU out of its node, None where no network is known.
        taken: what was assumed because the name does not say it.
        sku: name in the house profile, "" where it is none.
    """

    asked: str
    gpu: Gpu
    shape: NodeShape | None
    gpus_per_node: int
    domain_gpus: int
    nic_gbytes_s: float | None
    taken: tuple[str, ...] = ()
    sku: str = ""

    @property
    def host_gib(self) -> float | None:
        """Memory of the host for one GPU, None where the catalogue does not know it."""
        ram = None if self.shape is None else self.shape.ram
        return None if ram is None or self.shape is None else float(ram.value) / GIB / self.shape.gpus

    def pool(self, gpus: int | None = None, price: float | None = None, currency: str = "USD") -> Pool:
        """GPUs of this kind: as many as are needed, or at most `gpus`; fewer than a node has make a smaller node."""
        node, nodes = self.gpus_per_node, None
        if gpus is not None:
            node = min(node, max(gpus, 1))
            nodes = gpus // node
        domain = min(self.domain_gpus, node) if node < self.gpus_per_node else self.domain_gpus
        return Pool(
            self.gpu,
            node,
            domain,
            nodes,
            self.nic_gbytes_s,
            host_gib=self.host_gib,
            price_per_gpu_h=price,
            currency=currency,
        )

    @property
    def is_gpu(self) -> bool:
        """Whether it was asked for by the name of its GPU."""
        names = (self.gpu.name, *self.gpu.aliases)
        return fold(self.asked) in {fold(name) for name in names}

    def counted(self, gpus: int, nodes: int) -> str:
        """So many GPUs of it in words."""
        if self.is_gpu:
            return f"{gpus:,} × {self.asked} in {nodes:,} node{'s' * (nodes != 1)}"
        node = self.asked if self.sku or self.shape is None else self.shape.name
        return f"{gpus:,} GPU{'s' * (gpus != 1)} in {nodes:,} × {node}"

    @property
    def described(self) -> str:
        """The node in words."""
        link = f", {self.domain_gpus} linked" if self.domain_gpus > 1 else ", no link between GPUs"
        net = f", {self.nic_gbytes_s * 8:g} Gb/s per GPU" if self.nic_gbytes_s else ", no network known"
        name = self.shape.name if self.shape else "a node"
        return f"{name}: {self.gpus_per_node} × {self.gpu.name}{link}{net}"


def find_machine(
    catalogue: Catalogue, name: str, nic: Quantity | None = None, skus: Mapping[str, str] | None = None
) -> Machine:
    """The machine of a GPU's name, a node shape, a number of GPUs (`8xh100`) or a SKU of the house profile.

    Args:
        nic: rate of the NIC of one GPU, over what the shape says.
        skus: name → node shape or GPU.

    Raises:
        InvalidInput: nothing is called so; with the nearest names.
    """
    own = {fold(sku): (sku, shape) for sku, shape in (skus or {}).items()}.get(fold(name))
    if own is not None:
        return replace(find_machine(catalogue, own[1], nic), asked=name, sku=own[0])
    counted = _COUNTED.fullmatch(name.strip())
    if counted and catalogue.find_shape(name) is None:
        return _counted(catalogue, name, int(counted[1]), counted[2], nic)
    gpu = catalogue.find_gpu(name)
    if gpu is not None:
        return _of_gpu(catalogue, name, gpu, nic)
    shape = catalogue.find_shape(name)
    if shape is not None and shape.gpu is None:
        raise InvalidInput(Problem(Place(name), "", "this node has no GPU"))
    if shape is None:
        raise _unknown(catalogue, name)
    return _of_shape(catalogue, name, shape, nic, ())


def _counted(catalogue: Catalogue, asked: str, count: int, name: str, nic: Quantity | None) -> Machine:
    found = find_machine(catalogue, name, nic)
    if found.shape is None and found.gpus_per_node == 1 and count > 1:
        found = _unlisted(name, found.gpu, nic)
    largest = found.gpus_per_node
    if not 1 <= count <= largest:
        hint = f"write {name} and --gpus {count}"
        raise InvalidInput(Problem(Place(asked), "", f"a node of {found.gpu.name} holds 1 to {largest} GPUs", hint))
    if count == largest:
        return replace(found, asked=asked)
    exact = next((s for s in catalogue.shapes if s.gpu == found.gpu.name and s.gpus == count), None)
    if exact is not None:
        return _of_shape(catalogue, asked, exact, nic, ())
    domain = min(found.domain_gpus, count)
    taken = (f"{count} of the {largest} GPUs of {found.shape.name if found.shape else 'a node'}",)
    return replace(found, asked=asked, gpus_per_node=count, domain_gpus=domain, taken=(*found.taken, *taken))


def _of_gpu(catalogue: Catalogue, asked: str, gpu: Gpu, nic: Quantity | None) -> Machine:
    shapes = [s for s in catalogue.shapes if s.gpu == gpu.name]
    if shapes:
        best = max(shapes, key=lambda s: (s.compute_rate is not None, s.power is not None, s.gpus))
        return _of_shape(catalogue, asked, best, nic, (f"{asked} in nodes as {best.name}",))
    if gpu.form == "superchip":
        # As clouds rent it (CoreWeave's and Lambda's GH200 instances); four or thirty-two linked ones must be said.
        alone = f"{asked} one to a node, as clouds rent it; 4x{asked} for linked ones"
        return Machine(asked, gpu, None, 1, 1, _gbytes(nic), (alone,))
    return _unlisted(asked, gpu, nic)


def _unlisted(asked: str, gpu: Gpu, nic: Quantity | None) -> Machine:
    """A GPU of which the catalogue has no node: eight of them, as many linked as its links join."""
    linked = min(gpu.scale_up.gpus, _NODE) if gpu.scale_up else 1
    node = _NODE if gpu.pcie is not None or linked == 1 else linked
    taken = (f"{asked} in nodes of {node}, since the catalogue has no node with it",)
    return Machine(asked, gpu, None, node, linked, _gbytes(nic), taken)


def _of_shape(
    catalogue: Catalogue, asked: str, shape: NodeShape, nic: Quantity | None, taken: tuple[str, ...]
) -> Machine:
    assert shape.gpu is not None
    rate = shape.compute_rate
    own = None if rate is None else float(rate.value) / 8 / 1e9 / shape.gpus
    return Machine(
        asked,
        catalogue.gpu(shape.gpu),
        shape,
        shape.gpus,
        shape.domain_gpus,
        _gbytes(nic) if nic is not None else own,
        taken,
    )


def _gbytes(nic: Quantity | None) -> float | None:
    return None if nic is None else float(nic.value) / 8 / 1e9


def _unknown(catalogue: Catalogue, name: str) -> InvalidInput:
    near = (*catalogue.suggest("gpus", name), *catalogue.suggest("shapes", name))[:4]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known GPUs: {', '.join(catalogue.names('gpus'))}"
    return InvalidInput(Problem(Place(name), "", f"no GPU or node '{name}' in the catalogue", hint))
