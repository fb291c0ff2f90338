"""Which readings of which evidence count for a claim, and why each other one does not.

Evidence counts as measured only when it was taken on the declared engine, with real devices, on declared hosts, and
is fresh. A record that holds an unreadable or impossible value for the claim gives no pass with its other values,
because a part of it was lost; a failure in it still counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from clusterwright.judging.comparing import holds, why_unusable
from clusterwright.judging.conditions import why_other_conditions
from clusterwright.judging.sites import Site
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import KINDS, Quantity
from clusterwright.lib.scales import DAY_S
from clusterwright.model.acceptance import Requirement, Threshold
from clusterwright.model.evidence import Evidence, Reading

#: Clocks of two machines may differ by this much before evidence counts as from the future.
CLOCK_SKEW: Final = timedelta(minutes=5)

#: Classes of claims of which the facts are those of each node.
_OF_EACH_NODE: Final = frozenset({"hardware-health", "scheduled-execution"})
#: Reasons in the order in which they bring a claim closest to being measured; the first found is shown.
_NEAREST: Final = (
    "other nodes",
    "scope too small",
    "other scope",
    "impossible value",
    "incomplete",
    "partial view",
    "invalid",
    "not checked",
    "warned",
    "skipped",
    "not comparable",
    "unit unknown",
    "no value",
    "refused",
    "unparsable",
    "stale",
    "message size unknown",
    "other conditions",
    "wrong engine",
    "virtual",
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A usable reading that was measured for the claim.

    Args:
        value: never None.
        nodes: hosts that it was taken on; declared hosts of the claim's scope.
        passes: on the right side of the threshold.
    """

    evidence: Evidence
    reading: Reading
    value: Threshold
    nodes: frozenset[str]
    passes: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a reading, or all of a record, does not count.

    Args:
        nodes: hosts that it was taken on, as far as known.
        fits: over the nodes that the claim is about, so that nothing but this keeps it from counting.
    """

    reason: str
    nodes: frozenset[str] = frozenset()
    fits: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """What the evidence gives for one claim: usable readings, and why others were refused."""

    sightings: tuple[Sighting, ...]
    refusals: tuple[Refusal, ...]

    def nearest_refusal(self) -> str:
        """The refusal that says most about what is left to do, with the number of others."""
        if not self.refusals:
            return "not run"
        others = len({r.reason for r in self.refusals}) - 1
        return min(self.refusals, key=_rank).reason + (
            f" (and {others} other reading{'s' if others > 1 else ''} that do not count)" if others else ""
        )

    def refusal_on(self, nodes: Iterable[str]) -> str:
        """Why what was taken on one of these nodes does not count, else why anything does not; "" for no refusal."""
        wanted = frozenset(nodes)
        on_them = [r for r in self.refusals if r.nodes & wanted]
        return min(on_them or self.refusals, key=_rank).reason if self.refusals else ""


def _rank(refusal: Refusal) -> tuple[bool, int]:
    known = (i for i, start in enumerate(_NEAREST) if refusal.reason.startswith(start))
    return not refusal.fits, next(known, len(_NEAREST))


def match_evidence(
    id_: str,
    requirement: Requirement,
    evidence: Iterable[Evidence],
    *,
    now: datetime,
    site: Site,
    limit: Quantity | None,
) -> Match:
    """Every usable reading for a claim, and every reason why one was refused.

    Args:
        id_: of the claim, as evidence names it.
        now: aware time of the judgement.
        limit: the most that the declared hardware can reach, if known.
    """
    sightings: list[Sighting] = []
    refusals: list[Refusal] = []
    for record in evidence:
        named = id_ in record.requirements
        readings = [r for r in record.readings if r.metric == requirement.metric]
        if not readings:
            if named:
                refusals.append(Refusal(_why_no_reading(requirement, record), frozenset(record.nodes)))
            continue
        refused = _why_refused(requirement, record, now=now, site=site)
        if refused:
            nodes = frozenset(record.nodes)
            refusals.append(Refusal(refused, nodes, not _why_other_scope(requirement, record, nodes, site)))
            continue
        found, reasons = _read(requirement, record, readings, named=named, site=site, limit=limit)
        sightings += found
        refusals += reasons
    return Match(tuple(sightings), tuple(refusals))


def _why_no_reading(requirement: Requirement, record: Evidence) -> str:
    others = sorted({r.metric for r in record.readings})
    if not others:
        return f"unparsable: the output of {record.tool} holds no reading at all"
    return f"not run: {record.tool} gave {', '.join(others)}, which does not prove {requirement.metric}"


def _why_refused(requirement: Requirement, record: Evidence, *, now: datetime, site: Site) -> str:
    """Why nothing in the record counts as measured, or ""."""
    engines = site.engines_of(requirement)
    if record.devices != "real":
        return f"virtual: {record.tool} ran on virtual devices"
    if record.basis != "measured":
        return f"virtual: {record.tool} was a rehearsal"
    if record.engine not in engines:
        return f"wrong engine: run on {record.engine or 'no engine'}, declared is {' or '.join(sorted(engines))}"
    if record.started.tzinfo is None or record.ended.tzinfo is None:
        return f"impossible value: the times of {record.tool} have no time zone"
    if record.ended < record.started or record.ended > now + CLOCK_SKEW:
        return f"impossible value: {record.tool} ended {record.ended.isoformat()}, before it began or in the future"
    age_s = (now - record.ended).total_seconds()
    oldest = requirement.max_age
    if oldest is not None and age_s > oldest.value:
        return f"stale: {age_s / DAY_S:.1f} days old, required within {oldest}"
    return ""


def _read(
    requirement: Requirement,
    record: Evidence,
    readings: list[Reading],
    *,
    named: bool,
    site: Site,
    limit: Quantity | None,
) -> tuple[list[Sighting], list[Refusal]]:
    """(usable readings, reasons of refused ones) of a record that counts as measured."""
    found: list[Sighting] = []
    refusals: list[Refusal] = []
    lost = False
    for reading in readings:
        nodes = frozenset(reading.nodes or record.nodes)
        wrong = _why_other_scope(requirement, record, nodes, site)
        other = why_other_conditions(requirement, reading, named=named)
        unusable = why_unusable(requirement, reading, limit)
        elsewhere = other.startswith("other conditions")
        lost = lost or bool(unusable and not elsewhere)
        reason = (other if elsewhere else unusable or other) or wrong
        value = reading.value
        if reason or value is None:
            refusals.append(Refusal(reason, nodes, not wrong))
        else:
            found.append(Sighting(record, reading, value, nodes, holds(requirement, value)))
    return [s for s in found if not (lost and s.passes)], refusals


def _why_other_scope(requirement: Requirement, record: Evidence, nodes: frozenset[str], site: Site) -> str:
    """Why the hosts of a reading are not those of the claim, or ""."""
    scope = requirement.scope
    hosts = site.pool_hosts(requirement)
    if not nodes:
        return "scope too small: no node is named"
    strangers = nodes - set(hosts)
    if strangers:
        return f"other nodes: {fold(sorted(strangers))} is not declared for {scope.pool or 'any worker pool'}"
    if not nodes <= set(record.nodes):
        return (
            f"impossible value: measured on {fold(sorted(nodes - set(record.nodes)))}, which the record does not list"
        )
    if scope.of == "node" and len(nodes) != 1:
        return f"other scope: over {len(nodes)} nodes at once, required on each alone"
    if scope.of == "pair" and len(nodes) != 2:
        return f"other scope: over {len(nodes)} nodes, required between two"
    if not counts_by_node(requirement) and len(nodes) < required_nodes(requirement, site):
        return f"scope too small: {len(nodes)} of {required_nodes(requirement, site)} nodes at once"
    return ""


def required_nodes(requirement: Requirement, site: Site) -> int:
    """Nodes that evidence must cover: as the scope says, else every declared host of it."""
    return requirement.scope.nodes or len(site.pool_hosts(requirement))


def counts_by_node(requirement: Requirement) -> bool:
    """Whether readings on single nodes add up to the scope: for node and pair scopes, and for facts of each node.

    Rates and times do not add up: two nodes that were each fast alone say nothing about both at once. Neither do counts
    of a test that runs over all of them: right results in each node say nothing about the fabric between them.
    """
    if requirement.scope.of in ("node", "pair"):
        return True
    return requirement.about.kind not in KINDS and requirement.about.claim in _OF_EACH_NODE
