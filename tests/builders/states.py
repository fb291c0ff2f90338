"""Small random clusters with queues, policies and jobs, and a life for them; everything follows from the seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from clusterwright.model.jobs import JobId
from clusterwright.queueing.budgets import Budget, Budgets
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.decisions import Decisions
from clusterwright.queueing.policies import Backfill, FairShare, Policy, PreemptionPolicy, Reclaim, WithinQueue
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Request, Shape, TopologyWish
from clusterwright.queueing.state import State
from clusterwright.queueing.windows import Window

FLAVORS = ("h100", "b200")
LEAVES = ("a", "b", "c")
LEVELS = ("row", "rack")
NODES = [f"n{i}" for i in range(6)]

#: (state before, decisions, state after, time)
Look = Callable[[State, Decisions, State, float], None]


def random_state(chance: Random) -> State:
    """A cluster without jobs."""
    tree, windows, budgets = _tree(chance), [], None
    if chance.random() < 0.25:
        start = chance.randint(0, 20)
        windows.append(Window("w", start, start + 10, _names(chance, 3), maintenance=chance.random() < 0.5))
    if chance.random() < 0.25:
        budgets = Budgets(tree, {"a": Budget(chance.choice([0.0, 0.02, 1.0]))})
    policy = _policy(chance)
    return State(_nodes(chance), levels=LEVELS, tree=tree, policy=policy, windows=windows, budgets=budgets)


def random_request(chance: Random, number: int, now_s: float) -> Request:
    """A job that comes now."""
    return Request(
        id=JobId(str(number)),
        demand=_demand(chance),
        queued_at_s=now_s,
        queue=chance.choice(LEAVES) if chance.random() < 0.95 else "nowhere",
        priority=chance.randint(-1, 1),
        limit_s=chance.choice([None, chance.randint(1, 40)]),
        user=chance.choice(["ada", "bob"]),
        preemptible=chance.random() < 0.8,
        hold="held by its owner" if chance.random() < 0.08 else "",
        not_before_s=now_s + chance.choice([0, 0, 0, 5]),
    )


def live(seed: int, look: Look, steps: int = 12) -> tuple[State, float]:
    """Jobs come and end, nodes go and come back, and a cycle after each; the state and the time at the end."""
    chance = Random(seed)
    state, now_s, number = random_state(chance), 0.0, 0
    for _ in range(steps):
        now_s += chance.randint(0, 6)
        for job, holding in list(state.running.items()):
            if holding.ends_by_s is not None and holding.ends_by_s <= now_s:
                state.release(job, now_s)
        state.wake()
        what = chance.randint(0, 5)
        if what <= 2:
            for _ in range(chance.randint(1, 3)):
                number += 1
                state.submit(random_request(chance, number, now_s))
        elif what == 3 and state.running:
            state.release(chance.choice(sorted(state.running)), now_s)
        elif what == 4:
            names = state.cluster.floors[state.cluster.flavors[0]].names
            state.set_usable(chance.choice(names), usable=chance.random() < 0.6)
        elif state.waiting and chance.random() < 0.5:
            state.withdraw(chance.choice(sorted(state.waiting)))
        before = state.fork()
        look(before, run_cycle(state, now_s), state, now_s)
    return state, now_s


def _nodes(chance: Random) -> list[NodeInfo]:
    found = []
    for i, name in enumerate(NODES[: chance.randint(1, 6)]):
        flavor = FLAVORS[0] if i < 4 else chance.choice(FLAVORS)
        path = (f"row{i // 4}", f"rack{i // 2}")
        found.append(NodeInfo(name, flavor, chance.choice([2, 4, 8]), path, chance.random() < 0.8))
    return found


def _tree(chance: Random) -> QueueTree:
    if chance.random() < 0.2:
        return QueueTree()

    def most() -> int | None:
        return chance.choice([None, chance.randint(0, 12)])

    def quotas() -> dict[str, Quota]:
        return {f: Quota(chance.randint(0, 16), most(), most()) for f in FLAVORS if chance.random() < 0.8}

    groups = [Queue("root", None, quotas()), Queue("left", "root", quotas())]
    parents = {"a": "left", "b": "left", "c": "root"}
    return QueueTree((*groups, *(Queue(n, parents[n], quotas(), chance.random() < 0.5) for n in LEAVES)))


def _policy(chance: Random) -> Policy:
    preemption = PreemptionPolicy(
        chance.choice(list(WithinQueue)),
        chance.choice(list(Reclaim)),
        chance.choice([None, 0.0, 5.0]),
        chance.choice([0.0, 3.0]),
        chance.choice([0.0, 2.0]),
    )
    fair = FairShare(chance.random() < 0.5, chance.choice([None, 20.0]), chance.random() < 0.5)
    backfill = chance.choice(list(Backfill))
    return Policy(backfill=backfill, preemption=preemption, fair=fair, guaranteed_only=chance.random() < 0.5)


def _demand(chance: Random) -> Demand:
    shapes = []
    for name in ("x", "y")[: chance.choice([1, 1, 1, 2])]:
        count = chance.randint(1, 4)
        least = chance.choice([None, chance.randint(1, count)])
        shapes.append(Shape(count, chance.randint(0, 8), name, least, chance.random() < 0.2))
    wish = None
    if chance.random() < 0.25:
        wish = TopologyWish(chance.choice(LEVELS), chance.random() < 0.5, exclusive=chance.random() < 0.2)
    flavors = chance.choice([(), (), ("h100",), ("b200", "h100")])
    exclude = _names(chance, 2) if chance.random() < 0.2 else frozenset[str]()
    avoid = _names(chance, 2) if chance.random() < 0.2 else frozenset[str]()
    return Demand(tuple(shapes), flavors, wish, exclude, avoid)


def _names(chance: Random, most: int) -> frozenset[str]:
    return frozenset(chance.sample(NODES, chance.randint(1, most)))
