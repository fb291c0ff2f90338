"""Generic resources of a node → amounts under the names that observations use; each text is read once."""

from __future__ import annotations

from typing import Final, NamedTuple

from clusterwright.model.observations import Labels, NoValue
from clusterwright.readers.memos import remembered
from clusterwright.readers.slurm.gres import Gres, count_gpus, count_indices, read_gres


class Amount(NamedTuple):
    """One resource.

    Args:
        kind: gpus, mig_slices or gres.
        labels: what the subject has beside the node.
        indices: of the devices, as printed; "" if none.
        conflict: where count and indices contradict each other, how; "" elsewhere.
    """

    kind: str
    labels: Labels
    number: float
    indices: str
    conflict: str


class Resources(NamedTuple):
    """All resources of a list.

    Args:
        gpus: whole ones.
        slices: MIG instances, which are parts of GPUs.
    """

    amounts: tuple[Amount, ...]
    gpus: int
    slices: int


NOTHING: Final = Resources((), 0, 0)


@remembered
def read_resources(text: str) -> Resources | NoValue:
    """What a list such as `gpu:h100:8(IDX:0-7),shard:16` names."""
    read = read_gres(text)
    if isinstance(read, NoValue):
        return read
    slices = sum(gres.count or 0 for gres in read if gres.is_slice)
    return Resources(tuple(_amount(gres) for gres in read), count_gpus(read), slices)


def _amount(gres: Gres) -> Amount:
    kind = "gpus" if gres.is_gpu else "mig_slices" if gres.is_slice else "gres"
    labels: Labels = (("type", gres.type),) if gres.type else ()
    listed = count_indices(gres.indices) if gres.indices else None
    conflict = ""
    if listed is not None and listed != gres.count:
        conflict = f"{gres.count} {gres.name} {gres.type} in use, but indices {gres.indices} name {listed}"
    named = (*labels, ("gres", gres.name)) if kind == "gres" else labels
    return Amount(kind, named, float(gres.count or 0), gres.indices, conflict)
