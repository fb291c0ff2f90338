"""Every rule, in one tuple: the only place that knows all modules of rules."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from clusterwright.review import (
    adapters,
    equipment,
    fabrics,
    floors,
    layouts,
    money,
    necessity,
    platforms,
    promises,
    quotas,
    references,
    sharing,
    targets,
    thresholds,
    transfers,
    versions,
    waiving,
)
from clusterwright.review.inputs import (
    acceptance,
    compute,
    economics,
    network,
    observability,
    owners,
    scheduler,
    security,
    storage,
    workload,
)
from clusterwright.review.rules import Rule

_MODULES: Final = (
    *(owners, workload, compute, network, storage, scheduler, observability, security, acceptance, economics),
    *(references, targets, layouts, equipment, sharing, versions, platforms, fabrics, adapters, transfers, quotas),
    *(floors, thresholds, money, necessity, promises, waiving),
)
_WITHOUT_UNKNOWN: Final = tuple(rule for module in _MODULES for rule in module.RULES)
_UNKNOWN: Final = waiving.unknown_rule(frozenset({rule.id for rule in _WITHOUT_UNKNOWN} | {"waiver-unknown-rule"}))

RULES: Final[tuple[Rule, ...]] = (*_WITHOUT_UNKNOWN, _UNKNOWN)
BY_ID: Final[dict[str, Rule]] = {rule.id: rule for rule in RULES}


def find_rule(rule_id: str) -> Rule | None:
    """The rule of that id, None if there is none."""
    return BY_ID.get(rule_id)


def nearest_rules(rule_id: str) -> tuple[str, ...]:
    """Up to three ids close to a wrong one; a part of an id counts as close."""
    wanted = rule_id.lower().replace("_", "-")
    near = get_close_matches(wanted, BY_ID, n=3, cutoff=0.55)
    near += [known for known in BY_ID if len(wanted) > 2 and wanted in known]
    return tuple(dict.fromkeys(near))[:3]
