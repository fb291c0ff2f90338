"""What must be run again after nodes were replaced: the claims that lost their evidence, and the smallest re-run.

A reading over several nodes is lost with any one of them: a collective over old hardware says nothing about new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from clusterwright.judging.matching import counts_by_node
from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site
from clusterwright.judging.verdicts import describe_next_step, judge
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence, Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Rerun:
    """A claim that was met and is not any more.

    Args:
        nodes: the fewest on which its test brings the claim back; their test is one run over all of them at once
            unless the claim is about each node.
        reason: why it does not stand any more.
        next_step: what to run, and who can.
    """

    claim: Claim
    nodes: tuple[str, ...]
    reason: str
    next_step: str


def without_replaced(evidence: Sequence[Evidence], replaced: Mapping[str, datetime]) -> tuple[Evidence, ...]:
    """The evidence without readings on a node that was replaced after they were begun.

    Args:
        replaced: node → aware time at which its hardware changed.
    """
    stripped = (_strip(record, replaced) for record in evidence)
    return tuple(new for new, old in zip(stripped, evidence, strict=True) if new.readings or not old.readings)


def _strip(record: Evidence, replaced: Mapping[str, datetime]) -> Evidence:
    gone = {node for node, at in replaced.items() if record.started < at}
    kept = tuple(r for r in record.readings if not gone & set(r.nodes or record.nodes))
    return record if len(kept) == len(record.readings) else replace(record, readings=kept)


def plan_reruns(
    claims: Sequence[Claim],
    evidence: Sequence[Evidence],
    replaced: Mapping[str, datetime],
    *,
    now: datetime,
    site: Site,
    limits: Mapping[str, Quantity] | None = None,
) -> tuple[Rerun, ...]:
    """The claims that were met and lost that with the replaced nodes, in the order of the claims.

    A claim that was not met, or not measured, before is none of them: it stays open for its own reason.
    """
    before = judge(claims, evidence, (), now=now, site=site, limits=limits)
    after = judge(claims, without_replaced(evidence, replaced), (), now=now, site=site, limits=limits)
    return tuple(
        _rerun(claim, new, replaced, site)
        for claim, old, new in zip(claims, before, after, strict=True)
        if old.outcome is Outcome.MET and new.outcome is not Outcome.MET
    )


def _rerun(claim: Claim, verdict: Verdict, replaced: Mapping[str, datetime], site: Site) -> Rerun:
    requirement = claim.requirement
    hosts = site.pool_hosts(requirement)
    gone = tuple(h for h in hosts if h in replaced)
    nodes = hosts
    if requirement.scope.of == "pair":
        partner = next((h for h in hosts if h not in replaced), None)
        nodes = gone if partner is None else (*gone, partner)
    elif counts_by_node(requirement):
        nodes = gone
    elif requirement.scope.nodes is not None:
        nodes = (*gone, *(h for h in hosts if h not in replaced))[: max(requirement.scope.nodes, 1)]
    reason = f"measured before {fold(gone)} was replaced; {verdict.reason}"
    return Rerun(claim, tuple(nodes), reason, describe_next_step(requirement, _with_hosts(site, nodes)))


def _with_hosts(site: Site, nodes: Sequence[str]) -> Site:
    """The site with these hosts alone, so that a next step names where to run."""
    chosen = frozenset(nodes)
    return replace(site, hosts={pool: tuple(h for h in hosts if h in chosen) for pool, hosts in site.hosts.items()})
