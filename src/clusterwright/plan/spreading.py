"""Replicas against losses where other workloads take part of the pool: as many as survive where they really lie.

A service counts its replicas as if every node of its pool were free (`drafts.count_replicas`). On fewer nodes a lost
one takes more of them, so that some more are needed; they are added one by one while there is place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clusterwright.plan.drafts import Draft
from clusterwright.plan.placing import Nodes, Placement, place, surviving_replicas, worst_loss

#: Most replicas that are added to a service.
_MOST_ADDED: Final = 32


def place_to_survive(drafts: list[Draft], pools: Sequence[Nodes]) -> tuple[list[Draft], Placement]:
    """Everything placed, with the replicas added that declared losses ask for where the file counts none."""
    placement = _place(drafts, pools)
    for _ in range(_MOST_ADDED):
        more = [_one_more(draft) if _falls_short(draft, placement) else draft for draft in drafts]
        if more == drafts:
            break
        tried = _place(more, pools)
        if not all(_is_placed(draft, tried) for draft in more):
            break
        drafts, placement = more, tried
    return drafts, placement


def groups_of(drafts: Sequence[Draft]) -> list[Draft]:
    """Workloads as they are placed: prefill workers before the decode workers that they belong to."""
    return [group for draft in drafts for group in (draft.first, draft) if group is not None]


def _place(drafts: Sequence[Draft], pools: Sequence[Nodes]) -> Placement:
    return place([d.request for d in groups_of(drafts) if d.request is not None], pools)


def _is_placed(draft: Draft, placement: Placement) -> bool:
    return draft.request is None or placement.placed.get(draft.name, 0) >= draft.request.replicas


def _falls_short(draft: Draft, placement: Placement) -> bool:
    """Whether all of it has a place and too few of it are left after the declared losses."""
    if draft.serve is None or draft.serve.replicas is not None or draft.first is not None or draft.site is None:
        return False
    if draft.for_failures is None or not draft.survive or not _is_placed(draft, placement):
        return False
    lost = worst_loss(draft.name, placement.assignments, draft.site.working, draft.survive)
    return surviving_replicas(draft.name, placement.assignments, lost) < draft.needed


def _one_more(draft: Draft) -> Draft:
    assert draft.request is not None
    wanted = draft.request.replicas + 1
    return replace(draft, wanted=wanted, for_failures=wanted, request=replace(draft.request, replicas=wanted))
