"""Which claims must be measured again after nodes were replaced, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from clusterwright.judging.refreshing import plan_reruns
from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence


def stale_after_replacement(
    claims: Sequence[Claim],
    evidence: Sequence[Evidence] | None,
    replaced: Sequence[str],
    *,
    now: datetime,
    site: Site,
    limits: Mapping[str, Quantity] | None = None,
) -> dict[str, str]:
    """Claim → why it must be measured again.

    Args:
        evidence: what was measured before, None when nothing is known; then every claim about a replaced node is
            taken for measured, and is stale.
        replaced: nodes whose hardware changed before `now`; everything measured on them before is void.
    """
    if evidence is None:
        return {
            c.id: f"about {fold(gone)}, which was replaced"
            for c in claims
            if (gone := [h for h in site.pool_hosts(c.requirement) if h in replaced])
        }
    moments = dict.fromkeys(replaced, now)
    reruns = plan_reruns(claims, evidence, moments, now=now, site=site, limits=limits)
    return {r.claim.id: r.reason for r in reruns}
