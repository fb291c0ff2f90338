"""The scripts that an exported plan brings along: checkpoints of a node, and what every rank of a job saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading

CHECKPOINT_METRICS: Final = ("checkpoint_write", "checkpoint_restore")
PLACEMENT_METRICS: Final = ("tasks_as_expected", "image_digest")


def derive_checkpoints(facts: Facts) -> Iterator[Reading]:
    """Time to write and to restore; a restore that may have come from memory is none from the store."""
    conditions = {"concurrency": jobs} if (jobs := facts.text("jobs")) else {}
    cached = next((f"not comparable: {n.message}" for n in facts.run.notices if n.code == "page-cache"), "")
    for name, metric, why in (("write_time", "checkpoint_write", ""), ("restore_time", "checkpoint_restore", cached)):
        for node, observations in facts.per_node(name):
            for o in observations:
                yield facts.reading(metric, o.value, conditions, nodes=(node,), why=why)


def derive_placements(facts: Facts) -> Iterator[Reading]:
    """The share of the declared ranks that met all others on a GPU of their own, and the image they ran in."""
    worlds = {o.value for o in facts.of("world_size") if isinstance(o.value, float | int)}
    ranks = {dict(o.subject).get("rank", ""): o for o in facts.of("met")}
    if len(worlds) == 1 and (world := max(worlds)) >= 1:
        devices = {dict(o.subject).get("rank", ""): _device(o.subject, plain(o.value)) for o in facts.of("device")}
        users = Counter(d for d in devices.values() if d)
        good = [
            rank
            for rank, o in ranks.items()
            if o.value is True and (device := devices.get(rank)) and users[device] == 1
        ]
        share = min(1.0, len(good) / world)
        yield facts.reading("tasks_as_expected", Quantity(share, (), "100%" if share == 1 else f"{share * 100:.4g}%"))
    else:
        yield facts.reading(
            "tasks_as_expected", None, why="no value: how many ranks there should be is not printed once"
        )
    yield facts.reading("image_digest", facts.value("image"))


def _device(subject: tuple[tuple[str, str], ...], device: str) -> tuple[str, str] | None:
    return (dict(subject).get("node", ""), device) if device else None
