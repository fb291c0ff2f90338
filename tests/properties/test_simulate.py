"""Random clusters that fail, preempt, repair and grow: what must hold at every instant and at the end."""

import ast
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders.simulations import logged, nodes

import clusterwright.simulate
from clusterwright.ledger.lines import HELD
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import Backfill, Policy, PreemptionPolicy, Reclaim, WithinQueue
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Shape, TopologyWish
from clusterwright.simulate.attempts import NEVER, plan_checkpoints
from clusterwright.simulate.durations import Duration, exponential
from clusterwright.simulate.expansions import Delivery
from clusterwright.simulate.failing import Cause, Effect, Lemons
from clusterwright.simulate.jobs import Fate, Kind, SimJob, list_jobs
from clusterwright.simulate.loop import Simulation, simulate
from clusterwright.simulate.maintaining import Maintenance
from clusterwright.simulate.repairs import Care, Eviction
from clusterwright.simulate.scenarios import Faults, NodeLoss, Scenario
from clusterwright.simulate.tallies import Fared

_TREE = QueueTree(
    (Queue("all"), Queue("a", "all", {"h100": Quota(32)}), Queue("b", "all", {"h100": Quota(16, lend=8)}))
)
_CAUSES = (
    Cause("gpu", 4000),
    Cause("switch", 1500, level="rack"),
    Cause("software", 4000, effect=Effect.JOB),
    Cause("ecc", 4000, shape=0.7, effect=Effect.DRAIN),
    Cause("corruption", 2000, effect=Effect.SILENT),
)
_CARE = Care(exponential(120), Duration(300), 0.5, exponential(3600), Duration(200), drain_at_most_s=1800)


@st.composite
def kinds(draw):
    tasks, gpus = draw(st.sampled_from([(1, 1), (1, 3), (1, 8), (2, 8), (4, 4)]))
    least = draw(st.sampled_from([None, 1]))
    wish = draw(st.sampled_from([None, None, TopologyWish("rack"), TopologyWish("rack", exclusive=True)]))
    return Kind(
        Demand((Shape(tasks, gpus, least=least),), topology=wish),
        draw(st.sampled_from(["a", "b"])),
        priority=draw(st.integers(0, 2)),
        checkpoints=draw(st.sampled_from([NEVER, plan_checkpoints(300, 7), plan_checkpoints(60, 1, 1e9, 1e8)])),
        starting_ms=draw(st.sampled_from([0, 15_000])),
        bytes_each=draw(st.sampled_from([0.0, 1e10])),
        retries=draw(st.integers(0, 2)),
        backoff_ms=draw(st.sampled_from([0, 5_000])),
        preemptible=draw(st.booleans()),
        speeds=draw(st.sampled_from([(), (("h100", 1.3),), (("h100", 0.37),)])),
    )


@st.composite
def scenarios(draw):
    some = draw(st.lists(kinds(), min_size=1, max_size=4))
    rows = draw(
        st.lists(
            st.builds(
                SimJob,
                st.floats(0, 20_000),
                st.floats(0.001, 6_000),
                st.sampled_from(some),
                st.sampled_from([None, 600.0, 10_000.0]),
                st.sampled_from(Fate),
            ),
            max_size=25,
        )
    )
    policy = Policy(
        backfill=draw(st.sampled_from(Backfill)),
        preemption=draw(
            st.sampled_from([PreemptionPolicy(), PreemptionPolicy(WithinQueue.LOWER, Reclaim.ANY, grace_s=20.0)])
        ),
    )
    return Scenario(
        nodes(8, rack=2),
        list_jobs(rows),
        ("rack",),
        draw(st.sampled_from([QueueTree(), _TREE])),
        policy,
        faults=Faults(
            draw(st.sampled_from([(), _CAUSES])),
            Lemons(0.25, 4.0),
            _CARE,
            crew=draw(st.sampled_from([None, 1])),
            eviction=draw(st.sampled_from([None, Eviction(2, 86_400, Duration(1_000))])),
        ),
        spares=draw(st.sampled_from([(), (5,)])),
        spare_level="rack",
        node_loss=draw(st.sampled_from(NodeLoss)),
        maintenance=draw(st.sampled_from([(), (Maintenance("m", (0, 1, 2, 3), 4_000, 900, batches=2),)])),
        announced_s=1_000.0,
        budgets=draw(st.sampled_from([{}, {"a": Budget(40.0, every_s=7200.0)}])),
        deliveries=draw(st.sampled_from([(), (Delivery("d", (6, 7), 3_000, exponential(600)),)])),
        store_bytes_per_s=1e9,
        until_s=40_000.0,
    )


@settings(deadline=None, max_examples=60)
@given(scenarios(), st.integers(0, 5))
def test_every_gpu_second_and_every_job_is_accounted_for(setting, seed):
    simulation = Simulation(setting, seed)
    step = simulation._step

    def checked(now_ms):
        step(now_ms)
        check_allocation(simulation)

    simulation._step = checked
    outcome = simulation.run()
    assert np.all(outcome.results.fared != Fared.NOT_SUBMITTED)
    unfinished = outcome.results.count(Fared.WAITING, Fared.RUNNING)
    assert int((outcome.results.end_ms < 0).sum()) == unfinished
    assert outcome.lines.total_gpu_ms == sum(outcome.lines.installed_gpu_ms.values())
    held = sum(n for (_, entry), n in outcome.lines.amounts.items() if entry.line in HELD)
    assert held == int(outcome.results.held_gpu_ms.sum())
    check_work(outcome)


def check_allocation(simulation):
    """No node gives more than it has, and what the queue counts is what runs."""
    state, used = simulation.state, {}
    for holding in state.running.values():
        floor = state.cluster.floors[holding.placement.flavor]
        for node, gpus in floor.effect(holding.placement, holding.request.demand).gpus.items():
            used[floor.names[node]] = used.get(floor.names[node], 0) + gpus
    kept = {}
    for claim in state.claims.values():
        floor = state.cluster.floors[claim.placement.flavor]
        for node, gpus in claim.kept.items():
            kept[floor.names[node]] = kept.get(floor.names[node], 0) + gpus
    for floor in state.cluster.floors.values():
        for name, total, free in zip(floor.names, floor.total.tolist(), floor.free.tolist(), strict=True):
            assert used.get(name, 0) + kept.get(name, 0) + free == total
    assert set(state.running) == {str(n) for n in simulation._running}
    assert not set(state.running) & set(state.waiting)


def check_work(outcome):
    """A job that succeeded did all of its work, and what was saved is never done twice."""
    results, jobs = outcome.results, outcome.scenario.jobs
    fixed = np.array([not k.demand.elastic and k.demand.topology is None for k in jobs.kinds], dtype=bool)
    if not len(jobs):
        return
    speed = np.array([dict(k.speeds).get("h100", 1.0) for k in jobs.kinds])[jobs.kind]
    won = (results.fared == Fared.SUCCEEDED) & fixed[jobs.kind]
    plain = won & (speed == 1)
    assert np.array_equal(results.productive_gpu_ms[plain], (jobs.work_ms * jobs.gpus)[plain])
    wall_ms = results.productive_gpu_ms / jobs.gpus - jobs.work_ms / speed
    assert np.all(wall_ms[won] > -1e-3)
    assert np.all(wall_ms[won] <= results.attempts[won] * (1 + 1 / speed[won]) + 1e-3), "rounding, once per attempt"
    assert np.all(results.start_ms[results.attempts > 0] >= jobs.submit_ms[results.attempts > 0])


@settings(deadline=None, max_examples=20)
@given(scenarios(), st.floats(1.0, 30_000.0))
def test_a_warm_up_changes_what_is_counted_and_nothing_that_happens(setting, warm_up_s):
    whole, late = simulate(setting), simulate(replace(setting, counted_from_s=warm_up_s))
    assert late.results.equal(whole.results)
    early = simulate(replace(setting, until_s=warm_up_s))
    both = {f: n + late.lines.installed_gpu_ms[f] for f, n in early.lines.installed_gpu_ms.items()}
    assert both == whole.lines.installed_gpu_ms
    assert late.lines.total_gpu_ms == sum(late.lines.installed_gpu_ms.values())


@settings(deadline=None, max_examples=40)
@given(scenarios(), st.integers(0, 5), st.lists(st.sampled_from([0.0, 1.5, 4.0, 16.0]), min_size=4, max_size=4))
def test_cpu_that_is_short_is_never_given_twice(setting, seed, needs):
    kinds = []
    for kind, need in zip(setting.jobs.kinds, needs, strict=False):
        groups = tuple(replace(g, resources=(("cpu", need),) if need else ()) for g in kind.demand.groups)
        kinds.append(replace(kind, demand=replace(kind.demand, groups=groups)))
    equipped = tuple(replace(n, resources=(("cpu", 16.0),)) for n in setting.nodes)
    simulation = Simulation(replace(setting, nodes=equipped, jobs=replace(setting.jobs, kinds=tuple(kinds))), seed)
    step = simulation._step

    def checked(now_ms):
        step(now_ms)
        for floor in simulation.state.cluster.floors.values():
            left = floor.resources["cpu"].copy()
            for holding in simulation.state.running.values():
                effect = floor.effect(holding.placement, holding.request.demand)
                for node, parts in effect.further.get("cpu", {}).items():
                    left[node] -= parts
            assert np.array_equal(left, floor.spare["cpu"])
            assert left.min() >= 0

    simulation._step = checked
    outcome = simulation.run()
    assert outcome.lines.total_gpu_ms == sum(outcome.lines.installed_gpu_ms.values())
    check_work(outcome)


@settings(deadline=None, max_examples=30)
@given(scenarios(), st.integers(0, 5))
def test_cpu_that_is_never_short_changes_nothing(setting, seed):
    def needing(kind):
        groups = tuple(replace(g, resources=(("cpu", 1.0),)) for g in kind.demand.groups)
        return replace(kind, demand=replace(kind.demand, groups=groups))

    jobs = replace(setting.jobs, kinds=tuple(map(needing, setting.jobs.kinds)))
    equipped = tuple(replace(n, resources=(("cpu", 1e6),)) for n in setting.nodes)
    plain, other = simulate(setting, seed), simulate(replace(setting, jobs=jobs, nodes=equipped), seed)
    assert other.results.equal(plain.results)
    assert other.lines == plain.lines


@settings(deadline=None, max_examples=15)
@given(scenarios(), st.integers(0, 5))
def test_the_same_seed_gives_the_same_log_byte_for_byte(setting, seed):
    first, log = logged(setting, seed)
    second, again = logged(setting, seed)
    assert "\n".join(log).encode() == "\n".join(again).encode()
    assert first.results.equal(second.results)
    assert first.lines == second.lines


#: What decides: the simulation may read it and carry it out, never use its parts to decide itself.
_DECIDING = {
    "clusterwright.queueing.evicting",
    "clusterwright.queueing.fitting",
    "clusterwright.queueing.floors",
    "clusterwright.queueing.gangs",
    "clusterwright.queueing.mixing",
    "clusterwright.queueing.ordering",
    "clusterwright.queueing.promising",
    "clusterwright.queueing.searching",
    "clusterwright.queueing.shelves",
    "clusterwright.queueing.tournaments",
    "clusterwright.queueing.turns",
    "clusterwright.queueing.usages",
}


def test_the_simulation_imports_nothing_that_decides():
    found = set()
    for path in sorted(Path(clusterwright.simulate.__path__[0]).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in _DECIDING:
                found.add((path.name, node.module))
            if isinstance(node, ast.Attribute) and node.attr in {"find", "find_in", "take_away", "put_back"}:
                found.add((path.name, node.attr))
    assert not found
    assert all(find_spec(name) for name in _DECIDING), "a module was renamed"
