"""Why a job waits: the set of its blockers, each with numbers, holders and the next step.

Never an estimated time without its basis: 'next release' is said only where a holder has a time limit. A job that could
start now has no blocker; every other one has at least one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from clusterwright.lib.hostlists import fold
from clusterwright.model.jobs import JobId
from clusterwright.model.outlooks import Blocker, BlockerKind
from clusterwright.queueing.clusters import Floor
from clusterwright.queueing.domains import Flags
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.lines import Line, age_of
from clusterwright.queueing.policies import Backfill
from clusterwright.queueing.quotas import Quota
from clusterwright.queueing.requests import Demand, Holding, Request
from clusterwright.queueing.state import State
from clusterwright.queueing.windows import closing, open_for

#: How many holders and nodes a blocker names.
TOP_HOLDERS: Final = 3


def why(job: JobId, state: State, now_s: float) -> tuple[Blocker, ...]:
    """Every reason that keeps a waiting job from starting now; none where it could.

    Raises:
        KeyError: no such job waits.
    """
    state.seat_newcomer()
    return _Inquiry(state.waiting[job], state, now_s).run()


class _Inquiry:
    def __init__(self, request: Request, state: State, now_s: float) -> None:
        self.request, self.demand, self.state, self.now_s = request, request.demand, state, now_s

    def run(self) -> tuple[Blocker, ...]:
        early = self._not_ready()
        if any(b.kind is BlockerKind.MISCONFIGURED for b in early):
            return tuple(early)
        flavors = self.state.flavors_of(self.request)
        possible = [f for f in flavors if self._hardware_ever(f) and self._quota_ever(f)]
        if not possible:
            return (*early, self._never(flavors))
        if (claim := self.state.claims.get(self.request.id)) is not None:
            return (*early, self._preempting(claim.victims))
        by_flavor = [self._quota(f) + self._hardware(f) for f in possible]
        if all(by_flavor):
            return (*early, *(b for some in by_flavor for b in some))
        return tuple(early) if early else self._order()

    # -- before anything is looked for ------------------------------------------------------------------------------

    def _not_ready(self) -> list[Blocker]:
        request, state, found = self.request, self.state, list[Blocker]()
        if request.hold:
            step = f"`cw release {request.id}` lets it start"
            found.append(self._blocker(BlockerKind.HELD, request.hold, next_step=step))
        for gate, reason in request.gates.items():
            found.append(self._blocker(BlockerKind.GATED, f"waits for {gate}: {reason}"))
        if state.tree.queues and request.queue not in state.tree.leaves:
            known = ", ".join(sorted(state.tree.leaves))
            kind = "a group" if request.queue in state.tree.by_name else "not declared"
            message = f"queue '{request.queue}' is {kind}; queues that take jobs: {known}"
            found.append(self._blocker(BlockerKind.MISCONFIGURED, message, next_step="submit to one of these"))
        complaints = dict.fromkeys(state.cluster.complaint(self.demand, f) for f in state.flavors_of(request))
        if complaints and all(complaints):
            found.append(self._blocker(BlockerKind.MISCONFIGURED, "; ".join(complaints)))
        if request.not_before_s > self.now_s:
            left = request.not_before_s - self.now_s
            numbers = {"wait_s": round(left, 3), "attempt": request.restarts + 1, "attempts": request.max_restarts + 1}
            message = (
                f"attempt {request.restarts + 1} of {request.max_restarts + 1} starts in {left:.1f} s after a failure"
            )
            found.append(self._blocker(BlockerKind.BACKOFF, message, numbers))
        return found + self._budget()

    def _budget(self) -> list[Blocker]:
        request, budgets = self.request, self.state.budgets
        if budgets is None:
            return []
        over = budgets.admits(request.queue, request.user, self.demand.most_gpus, request.limit_s, self.now_s)
        if over is None:
            return []
        numbers = {
            "used_gpu_hours": over.used,
            "committed_gpu_hours": over.committed,
            "needed_gpu_hours": over.needed,
            "budget_gpu_hours": over.budget,
        }
        step = "ask its owner for more"
        if over.ends_s < float("inf"):
            numbers["period_ends_s"] = over.ends_s
            step = f"wait {max(0.0, over.ends_s - self.now_s):.0f} s for the end of the period, or {step}"
        return [self._blocker(BlockerKind.BUDGET, str(over), numbers, next_step=step)]

    # -- never ------------------------------------------------------------------------------------------------------

    def _hardware_ever(self, flavor: str) -> bool:
        return self.state.cluster.could_ever(self.demand, flavor)

    def _quota_ever(self, flavor: str) -> bool:
        request, usage, demand = self.request, self.state.usage, self.demand
        if not usage.could_ever(request.queue, flavor, demand.least_gpus, demand.least_resources):
            return False
        if not demand.least_gpus or not self.state.tree.queues:
            return True
        if self.state.policy.guaranteed_only and not request.preemptible:
            quota = self.state.tree.by_name[request.queue].quotas.get(flavor)
            return quota is not None and quota.guarantee >= demand.least_gpus
        return True

    def _never(self, flavors: Sequence[str]) -> Blocker:
        state, usage = self.state, self.state.usage
        known = ", ".join(f or "(no model)" for f in state.cluster.flavors) or "none"
        if not flavors:
            asked = ", ".join(f"'{f}'" for f in self.demand.flavors) or "any"
            return self._blocker(BlockerKind.NEVER_FITS, f"no node has GPU model {asked}; models here: {known}")
        numbers: dict[str, float] = {"needed_gpus": self.demand.least_gpus}
        reasons = list[str]()
        for flavor in flavors:
            if not self._hardware_ever(flavor):
                reasons += self._largest(flavor, numbers)
            elif not self._quota_ever(flavor):
                potential = (
                    usage.potential(self.request.queue, flavor) if usage.named(self.request.queue, flavor) else 0
                )
                numbers["potential_gpus"] = max(potential, numbers.get("potential_gpus", 0.0))
                reasons.append(f"queue '{self.request.queue}' can never use more than {potential:g} {_model(flavor)}")
        message = "; ".join(dict.fromkeys(reasons)) + f"; the job needs {_need(self.demand)}"
        step = "ask for less, or add nodes or quota"
        if self.demand.exclude:
            step = f"exclude fewer nodes, {step}"
        return self._blocker(BlockerKind.NEVER_FITS, message, numbers, next_step=step)

    def _largest(self, flavor: str, numbers: dict[str, float]) -> list[str]:
        floor = self.state.cluster.floors.get(flavor)
        if floor is None:
            return [f"no node has {_model(flavor)}"]
        excluded = [n for n in floor.names if n in self.demand.exclude]
        usable = len(floor.names) - len(excluded)
        if not usable:
            nodes = "the only node" if len(excluded) == 1 else f"all {len(excluded)} nodes"
            return [f"the job excludes {nodes}{f' with {flavor}' if flavor else ''}"]
        left = (
            f" ({len(excluded)} more {'is' if len(excluded) == 1 else 'are'} excluded by the job)" if excluded else ""
        )
        found = []
        for group, most in zip(self.demand.groups, self.state.cluster.largest(self.demand, flavor), strict=True):
            name = f"largest_{group.name}_tasks"
            numbers[name] = max(most, numbers.get(name, 0.0))
            apart = " on nodes of their own" if group.spread else ""
            within = ""
            if self.demand.topology is not None and self.demand.topology.level and self.demand.topology.required:
                within = f" within one {self.demand.topology.level}"
            held = f"hold {most} of {group.fewest} tasks with {group.gpus} {_model(flavor)}{apart}{within}"
            found.append(f"all {usable} usable nodes{left} {held}")
        return found

    # -- not now ----------------------------------------------------------------------------------------------------

    def _preempting(self, victims: Sequence[JobId]) -> Blocker:
        running = self.state.running
        left = [v for v in victims if v in running] or sorted(self.state.leaving)
        leaves = [t for v in left if (t := running[v].leaving_at_s) is not None]
        wait = max(0.0, max(leaves, default=self.now_s) - self.now_s)
        numbers = {"victims": len(left), "grace_left_s": round(wait, 3)}
        message = f"{len(left)} job{'s' * (len(left) != 1)} must leave first, in {wait:.0f} s at the latest"
        return self._blocker(BlockerKind.PREEMPTING, message, numbers, left[:TOP_HOLDERS])

    def _quota(self, flavor: str) -> list[Blocker]:
        request, state, usage, demand = self.request, self.state, self.state.usage, self.demand
        allowed = gpus_allowed(request, flavor, usage, state.policy)
        if allowed >= demand.least_gpus:
            return []
        queue = request.queue
        available = max(0.0, usage.available(queue, flavor))
        numbers = {
            "needed_gpus": demand.least_gpus,
            "available_gpus": available,
            "used_gpus": usage.usage(queue, flavor),
            "guarantee_gpus": state.tree.by_name[queue].quotas.get(flavor, Quota()).guarantee,
            "potential_gpus": usage.potential(queue, flavor),
        }
        lacks = [lack for lack in usage.lacking(queue, flavor, 0, demand.least_resources) if lack.resource != "gpu"]
        if available >= demand.least_gpus and lacks:
            text = f"queue '{queue}' may take {lacks[0].available:g} more {lacks[0].resource} now, the job needs "
            text += f"{lacks[0].needed:g}"
        elif available >= demand.least_gpus:
            text = f"queue '{queue}' has {max(0.0, allowed):g} {_model(flavor)} of its guarantee left, and a job that "
            text += f"may not be preempted may not borrow; it needs {demand.least_gpus}"
        else:
            text = (
                f"queue '{queue}' may take {available:g} more {_model(flavor)} now, the job needs {demand.least_gpus}"
            )
        root = state.tree.root_of(queue)
        sharing = frozenset(q for q in state.tree.leaves if state.tree.root_of(q) == root)
        return [self._with_holders(BlockerKind.QUOTA_WAIT, text, numbers, flavor, sharing)]

    def _hardware(self, flavor: str) -> list[Blocker]:
        state, demand = self.state, self.demand
        floor = state.cluster.floors[flavor]
        closed = closing(state.windows, self.request, self.now_s) if state.windows else []
        free = open_for(state.cluster, flavor, closed, floor.free) if closed else floor.free
        if not isinstance(floor.find_in(free, demand, demand.least_gpus), NoFit):
            return []
        down = [n for n, usable in zip(floor.names, floor.usable.tolist(), strict=True) if not usable]
        mine = self._may_use(floor)
        left = int(free[mine].sum())
        numbers: dict[str, float] = {
            "needed_gpus": demand.least_gpus,
            "free_gpus": left,
            "down_nodes": len(down),
            "down_gpus": int(floor.total[~floor.usable].sum()),
        }
        kind, text = self._hardware_kind(flavor, left, int(free[mine].max(initial=0)), numbers)
        notes = [text]
        if down:
            notes.append(
                f"{len(down)} node{'s' * (len(down) != 1)} take{'s' * (len(down) == 1)} no jobs ({fold(down)})"
            )
        avoided = [n for n in floor.names if n in demand.avoid and n not in down]
        if avoided:
            numbers["avoided_nodes"] = len(avoided)
            said = "node {} is" if len(avoided) == 1 else "nodes {} are"
            notes.append(f"{said.format(fold(avoided))} avoided because an attempt was lost there")
        excluded = [n for n in floor.names if n in demand.exclude]
        if excluded:
            notes.append(f"the job excludes {len(excluded)} node{'s' * (len(excluded) != 1)}")
        for window in closed:
            numbers["reserved_nodes"] = numbers.get("reserved_nodes", 0.0) + len(window.nodes)
            what = "maintenance" if window.maintenance else "reservation"
            ends = "the job has no time limit" if self.request.limit_s is None else "the job might still run then"
            notes.append(f"{what} '{window.name}' holds {len(window.nodes)} nodes from {window.start_s:.0f} s: {ends}")
        return [self._with_holders(kind, "; ".join(notes), numbers, flavor, None)]

    def _may_use(self, floor: Floor) -> Flags:
        """`(nodes,) bool`: usable nodes that the job neither excludes nor can avoid."""
        demand = self.demand
        if not demand.exclude and not demand.avoid:
            return floor.usable
        others = replace(demand, exclude=demand.exclude | demand.avoid)
        skip = demand.exclude if isinstance(floor.fit_empty(others, floor.usable), NoFit) else others.exclude
        return floor.usable & np.array([name not in skip for name in floor.names], dtype=np.bool_)

    def _hardware_kind(self, flavor: str, left: int, most: int, numbers: dict[str, float]) -> tuple[BlockerKind, str]:
        """Of GPUs the job may use, `left` are free, `most` of them on one node."""
        demand, cluster = self.demand, self.state.cluster
        wish = demand.topology
        if left < demand.least_gpus or not demand.least_gpus:
            return BlockerKind.HARDWARE_WAIT, f"{left} {_model(flavor)} free, the job needs {_need(demand)}"
        if wish is not None and ((wish.level and wish.required) or wish.slice_tasks):
            best = cluster.best_domain(demand, flavor)
            if best is not None and best.level:
                numbers["best_domain_tasks"], numbers["wanted_tasks"] = best.tasks, best.wanted
                where = f"{best.level} {best.name}" if best.name else best.level
                held = f"the best domain ({where}) holds {best.tasks} of {best.wanted} tasks"
                return BlockerKind.TOPOLOGY, f"{left} {_model(flavor)} free, but {held}"
        text = f"{left} {_model(flavor)} free but at most {most} on one node, the job needs {_need(demand)}"
        moves = cluster.moves(demand, flavor)
        if moves is not None:
            numbers["gpus_to_move"] = moves.gpus
            text += f"; at least {moves.gpus} GPUs would have to move off {fold(moves.nodes[:TOP_HOLDERS])}"
        return BlockerKind.FRAGMENTED, text

    # -- order ------------------------------------------------------------------------------------------------------

    def _order(self) -> tuple[Blocker, ...]:
        """Who is ahead, where that is all that keeps the job from starting."""
        request, state = self.request, self.state
        line = state.lines.get(request.queue)
        if line is None or request.id in state.apart:
            return ()
        position = line.position(request)
        easy = state.policy.backfill is Backfill.EASY
        promise = state.promise if easy else None
        if promise is not None and promise.request.id != request.id:
            wait = max(0.0, promise.at_s - self.now_s)
            numbers = {"position": position, "promised_in_s": round(wait, 3)}
            message = (
                f"position {position} in queue '{request.queue}'; starting it now could delay job "
                f"{promise.request.id}, which is promised to start in {wait:.0f} s"
            )
            step = "" if request.limit_s is not None else "with a time limit it could be backfilled"
            return (self._blocker(BlockerKind.ORDER, message, numbers, [promise.request.id], step),)
        head = self._head(line) if not easy and state.tree.strict(request.queue) else None
        if head is not None and head.id != request.id:
            ahead = f"behind job {head.id}, which cannot start yet"
            message = f"position {position} in strict queue '{request.queue}' {ahead}"
            return (self._blocker(BlockerKind.ORDER, message, {"position": position}, [head.id]),)
        return ()

    def _head(self, line: Line) -> Request | None:
        """The first job of a queue that its budgets admit."""
        firsts = (next((r for r in bunch if not self._overdrawn(r)), None) for bunch in line.bunches.values())
        usage, now_s = self.state.usage_over_time, self.now_s
        known = ((-r.priority, usage(r, now_s), age_of(r), r) for r in firsts if r is not None)
        return min(known, key=lambda k: k[:3], default=(0, 0.0, None, None))[3]

    def _overdrawn(self, request: Request) -> bool:
        budgets, gpus = self.state.budgets, request.demand.most_gpus
        if budgets is None:
            return False
        return budgets.admits(request.queue, request.user, gpus, request.limit_s, self.now_s) is not None

    def _with_holders(
        self, kind: BlockerKind, message: str, numbers: Mapping[str, float], flavor: str, queues: Collection[str] | None
    ) -> Blocker:
        """A blocker with the largest holders and the next known release, of these queues or of all."""
        large = self._largest_holders(flavor, queues)
        first, step = self._next_release(flavor, queues), ""
        if first is not None:
            left, gpus = max(0.0, (first.ends_by_s or 0.0) - self.now_s), first.placement.gpus
            numbers = {**numbers, "next_release_s": round(left, 3), "next_release_gpus": gpus}
            step = f"at the latest in {left:.0f} s job {first.request.id} frees {gpus} GPUs (its time limit)"
        return self._blocker(kind, message, numbers, [h.request.id for h in large], step)

    def _largest_holders(self, flavor: str, queues: Collection[str] | None) -> list[Holding]:
        """The largest holders of a flavor, of equals who started first."""
        found: list[Holding] = []
        more_than = 0
        for holding in self.state.running.values():
            placement = holding.placement
            if placement.gpus <= more_than or placement.flavor != flavor:
                continue
            if queues is None or holding.request.queue in queues:
                found = sorted([*found, holding], key=lambda h: -h.placement.gpus)[:TOP_HOLDERS]
                more_than = found[-1].placement.gpus if len(found) == TOP_HOLDERS else 0
        return found

    def _next_release(self, flavor: str, queues: Collection[str] | None) -> Holding | None:
        running = self.state.running
        ends = (running[job] for _, _, job, *_ in self.state.known_ends(flavor))
        return next((h for h in ends if h.placement.gpus and (queues is None or h.request.queue in queues)), None)

    def _blocker(
        self,
        kind: BlockerKind,
        message: str,
        numbers: Mapping[str, float] | None = None,
        holders: Sequence[str] = (),
        next_step: str = "",
    ) -> Blocker:
        return Blocker(kind, message, numbers or {}, tuple(holders), next_step, self.now_s)


def _need(demand: Demand) -> str:
    return " + ".join(f"{g.fewest} × {g.gpus} GPU{'s' * (g.gpus != 1)}" for g in demand.groups)


def _model(flavor: str) -> str:
    return f"{flavor} GPUs" if flavor else "GPUs"
