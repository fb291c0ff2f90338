"""Output of the scripts of an exported acceptance plan: times of checkpoints, and ranks that landed as they should.

A restore that may have come from the page cache is no restore, and a store in main memory is no store. What a rank sees
is judged against its own world here; which nodes were planned is judged where the plan is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

CHECKPOINT_METRICS: Final = ("checkpoint_write", "checkpoint_restore")
PLACEMENT_METRICS: Final = ("tasks_as_expected",)
_MOMENTS: Final = {"checkpoint_write": "write", "checkpoint_restore": "restore"}


def derive_checkpoints(facts: Facts) -> Iterator[Reading]:
    """How long the checkpoint of one node took to the store and back."""
    if facts.kind != "clusterwright-checkpoint":
        return
    for metric, part in _MOMENTS.items():
        for observation in facts.of(f"{part}_time"):
            node = dict(observation.subject).get("node", "")
            nodes = (node,) if node and not facts.given else facts.given
            value = observation.value if isinstance(observation.value, Quantity) else None
            why = _why_no_restore(facts) if metric == "checkpoint_restore" else ""
            said = {"file_size": "file_size", "started": f"{part}_started", "ended": f"{part}_ended"}
            conditions = {name: text for name, key in said.items() if (text := facts.text(key))}
            shown = None if why else value
            yield facts.reading(metric, shown, conditions, nodes=nodes, why=why or ("" if value else "no value"))


def _why_no_restore(facts: Facts) -> str:
    if plain(facts.value("verified")) != "true":
        return "invalid: what was restored was not compared with what was written"
    if plain(facts.value("direct_restore")) != "true":
        return "invalid: the file system takes no O_DIRECT, so the restore may have come from the page cache"
    return ""


def derive_placements(facts: Facts) -> Iterator[Reading]:
    """Share of the ranks of the job that reported once, with a GPU of their own, having met all others."""
    if facts.kind != "clusterwright-placement":
        return
    ranks = {_subject(o): o for o in facts.of("met")}
    devices = {_subject(o): plain(o.value) for o in facts.of("device") if isinstance(o.value, str)}
    users = Counter((node, device) for (node, _), device in devices.items())
    sizes = [o.value for o in facts.of("world_size") if isinstance(o.value, float)]
    nodes = tuple(dict.fromkeys(node for node, _ in ranks if node))
    if not sizes or len(set(sizes)) > 1 or not sizes[0]:
        why = "unparsable: the ranks do not agree on how many they are"
        yield facts.reading("tasks_as_expected", None, nodes=nodes, why=why)
        return
    twice = {rank for rank, n in Counter(rank for _, rank in ranks).items() if n > 1}
    good = [
        key
        for key, met in ranks.items()
        if met.value is True and key in devices and users[key[0], devices[key]] == 1 and key[1] not in twice
    ]
    share = len(good) / sizes[0]
    text = "100%" if share == 1.0 else f"{min(share * 100, 99.9):.1f}%"
    conditions = {"ranks": f"{sizes[0]:.0f}", "ranks_as_expected": str(len(good))}
    yield facts.reading("tasks_as_expected", Quantity(min(share, 1.0), (), text), conditions, nodes=nodes)


def _subject(observation: Observation) -> tuple[str, str]:
    subject = dict(observation.subject)
    return subject.get("node", ""), subject.get("rank", "")
