"""What holds for the embedded engine's decisions, each made from a state that is built anew from its jobs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.states import LEAVES, random_state
from clusterwright.engines.local import lifecycles
from clusterwright.engines.local.configs import ClusterConfig
from clusterwright.engines.local.deciding import Decided, decide
from clusterwright.engines.local.preempting import preemption_changes
from clusterwright.model.jobs import (
    AttemptState,
    Exit,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
    TaskGroup,
)
from clusterwright.queueing.policies import Policy

SETTINGS = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32)


class Life:
    """Jobs that come, run, end and are preempted; everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        base = random_state(self.chance)
        policy: Policy = base.policy
        self.config = ClusterConfig("c", (), base.tree, policy=policy)
        self.nodes = {
            name: Node(NodeSpec(name, int(total), floor.flavor), NodeState.IDLE, tuple(f"G{i}" for i in range(total)))
            for floor in base.cluster.floors.values()
            for name, total in zip(floor.names, floor.total.tolist(), strict=True)
        }
        self.jobs: dict[JobId, Job] = {}
        self.now_s = 0.0

    def happen(self) -> None:
        """Time passes, and something comes, ends, leaves, or goes down."""
        chance = self.chance
        self.now_s += chance.randint(0, 5)
        what = chance.randint(0, 4)
        active = [j for j in self.jobs.values() if j.active is not None]
        if what <= 1:
            self._submit()
        elif what == 2 and active:
            self._end(chance.choice(active))
        elif what == 3:
            for job in active:
                if job.state is JobState.PREEMPTING and chance.random() < 0.6:
                    self._end(job)
        else:
            name = chance.choice(sorted(self.nodes))
            state = NodeState.DOWN if chance.random() < 0.4 else NodeState.IDLE
            self.nodes[name] = replace(self.nodes[name], state=state)

    def decide(self) -> Decided:
        return decide(self.jobs, self.nodes.values(), self.config, self.now_s)

    def carry_out(self, decided: Decided) -> None:
        """As the control plane does: starts, then who must leave; every rank of a start runs at once."""
        for begin in decided.begins:
            job = self.jobs[begin.job]
            epoch = len(job.attempts) + 1
            change = lifecycles.begin(
                job, begin.tasks, agents=(), flavor=begin.flavor, epoch=epoch, port=1, why="", now_s=self.now_s
            )
            job = lifecycles.on_opened(change.job, epoch, self.now_s).job
            ranks = [lifecycles.Started(r.rank, 1, 1, self.now_s) for r in job.attempts[-1].ranks]
            self.jobs[job.id] = lifecycles.on_started(job, epoch, ranks, self.now_s).job
        for change in preemption_changes(self.jobs, decided.state, decided.preemptions, self.now_s):
            self.jobs[change.job.id] = change.job

    def _submit(self) -> None:
        chance, number = self.chance, len(self.jobs) + 1
        count = chance.randint(1, 3)
        group = TaskGroup(("p",), count, chance.randint(0, 4), min_count=chance.choice([None, 1]), ranks=1)
        spec = JobSpec(
            "j",
            (group,),
            queue=chance.choice(LEAVES) if self.config.tree.queues else "default",
            priority=chance.randint(-1, 1),
            gpu_model=chance.choice([None, None, "h100"]),
            exclude=tuple(chance.sample(sorted(self.nodes), 1)) if chance.random() < 0.2 else (),
            time_limit_s=chance.choice([None, 5.0, 30.0]),
            held=chance.random() < 0.1,
        )
        job_id = JobId(str(number))
        self.jobs[job_id] = Job(job_id, spec, JobState.PENDING, f"/c{number}", self.now_s, self.now_s, held=spec.held)

    def _end(self, job: Job) -> None:
        """Every rank ends well and every process is gone."""
        attempt = job.attempts[-1]
        exits = {r.rank: (Exit(code=0), self.now_s) for r in attempt.ranks}
        ended = lifecycles.on_exited(job, attempt.epoch, exits, self.now_s).job
        self.jobs[job.id] = lifecycles.on_fenced(ended, self.now_s).job


@SETTINGS
@given(seeds)
def test_no_device_is_held_twice_and_a_start_goes_only_where_it_may(seed: int) -> None:
    life = Life(seed)
    for _ in range(15):
        life.happen()
        decided = life.decide()
        for begin in decided.begins:
            job = life.jobs[begin.job]
            assert job.state is JobState.PENDING
            assert not job.held
            for task in begin.tasks:
                assert life.nodes[task.node].up
                assert life.nodes[task.node].spec.gpu_model == begin.flavor
                assert task.node not in job.spec.exclude
                assert len(set(task.devices)) == len(task.devices) == job.spec.groups[0].gpus
        life.carry_out(decided)
        held = defaultdict(list)
        for job in life.jobs.values():
            for task in job.active.tasks if job.active is not None else ():
                held[task.node] += task.devices
        for name, devices in held.items():
            assert len(set(devices)) == len(devices)
            assert set(devices) <= set(life.nodes[name].devices)


def come_to_rest(life: Life) -> list[Decided]:
    """Decide and carry out until nothing more is decided; what was decided after the first time."""
    life.carry_out(life.decide())
    more = list[Decided]()
    while True:
        again = life.decide()
        if not again.begins and not again.preemptions and not preemption_changes(life.jobs, again.state, (), 0.0):
            return more
        more.append(again)
        assert len(more) <= len(life.jobs)
        life.carry_out(again)


@SETTINGS
@given(seeds)
def test_decisions_come_to_rest_and_nobody_else_leaves_for_having_decided_twice(seed: int) -> None:
    """So a control plane that dies right after a decision does not make more leave than it would have."""
    life = Life(seed)
    for _ in range(15):
        life.happen()
        assert [a.preemptions for a in come_to_rest(life) if a.preemptions] == []


@SETTINGS
@given(seeds)
def test_who_leaves_was_told_for_whom_and_goes_back_into_its_queue_uncounted(seed: int) -> None:
    life = Life(seed)
    for _ in range(15):
        life.happen()
        decided = life.decide()
        life.carry_out(decided)
        for preemption in decided.preemptions:
            winner = life.jobs[preemption.request.id]
            assert winner.claim is not None
            for victim in preemption.victims:
                job = life.jobs[victim]
                assert job.state is JobState.PREEMPTING
                assert job.attempts[-1].state is AttemptState.STOPPING
                assert job.attempts[-1].preempted_by == winner.id
    assert all(j.restarts == 0 for j in life.jobs.values())
    assert all(j.claim is None for j in life.jobs.values() if j.state is not JobState.PENDING)


@SETTINGS
@given(seeds)
def test_every_job_that_waits_has_a_reason(seed: int) -> None:
    life = Life(seed)
    for _ in range(15):
        life.happen()
        decided = life.decide()
        life.carry_out(decided)
    for job in life.jobs.values():
        if job.state is JobState.PENDING:
            assert decided.blockers(job.id)
