"""Random lives of a small engine, told as its events: the ledger accounts for every GPU, whatever happened."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.ledger.histories import read_history
from clusterwright.ledger.lines import to_ms
from clusterwright.ledger.totals import merge_lines
from clusterwright.model.jobs import (
    Attempt,
    AttemptEnd,
    AttemptState,
    Cause,
    Event,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
    TaskGroup,
    TaskPlacement,
)

MODELS = ("h100", "b200")
KINDS = ("ORDER", "QUOTA_WAIT", "HARDWARE_WAIT", "BACKOFF")
#: Seconds between events; a clock may step back.
steps = st.sampled_from([0.0, 0.0005, 0.001, 3.3, 60.0]) | st.floats(0.0, 100.0) | st.just(-5.0)
shares = st.floats(0.0, 1.0)


@dataclass
class Engine:
    """What an engine would know, with the events it would have told."""

    nodes: list[Node]
    at_s: float = 1.7e9
    events: list[Event] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)
    free: dict[str, int] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    running: dict[int, dict[str, int]] = field(default_factory=dict)
    fencing: set[int] = field(default_factory=set)

    def tell(self, kind: str, job: int | None = None, node: str | None = None, **data: Any) -> None:
        of = None if job is None else JobId(str(job))
        self.events.append(Event(len(self.events) + 1, self.at_s, kind, of, node=node, data=data))

    def submit(self, draw: st.DrawFn) -> None:
        number = len(self.jobs) + 1
        model, priority = draw(st.sampled_from([None, *MODELS])), draw(st.integers(0, 2))
        group = TaskGroup(("p",), gpus=draw(st.integers(0, 2)))
        spec = JobSpec("j", (group,), gpu_model=model, priority=priority, held=draw(st.booleans()))
        self.jobs[number] = Job(JobId(str(number)), spec, JobState.PENDING, "/c", 0.0, 0.0)
        self.waiting.add(number)
        self.tell("submitted", number)

    def block(self, draw: st.DrawFn) -> None:
        if self.waiting:
            kinds = draw(st.lists(st.sampled_from(KINDS), max_size=2))
            number = draw(st.sampled_from(sorted(self.waiting)))
            self.tell("blocked_by", number, blockers=[{"kind": k, "message": ""} for k in kinds])

    def admit(self, draw: st.DrawFn) -> None:
        model = draw(st.sampled_from(MODELS))
        fits = [n.spec.name for n in self.nodes if n.spec.gpu_model == model and n.spec.name in self.up]
        held = {name: draw(st.integers(0, self.free[name])) for name in fits}
        if not self.waiting or not fits:
            return
        number = draw(st.sampled_from(sorted(self.waiting)))
        tasks = tuple(TaskPlacement("main", i, n, ("d",) * g) for i, (n, g) in enumerate(held.items()))
        job = self.jobs[number]
        attempt = Attempt(len(job.attempts) + 1, 1, AttemptState.ENDED, tasks, (), (), model, 0, 0.0)
        self.jobs[number] = replace(job, attempts=(*job.attempts, attempt))
        self.waiting.discard(number)
        self.running[number] = held
        for name, gpus in held.items():
            self.free[name] -= gpus
        self.tell("admitted", number, attempt=attempt.number)
        if draw(st.booleans()):
            self.tell("started", number)

    def save(self, draw: st.DrawFn) -> None:
        live = [n for n in self.running if n not in self.fencing and self._started(n)]
        if live:
            self.tell("checkpoint_seen", draw(st.sampled_from(live)))

    def fence(self, draw: st.DrawFn) -> None:
        live = [n for n in self.running if n not in self.fencing]
        if live:
            number, cause = draw(st.sampled_from(live)), draw(st.none() | st.sampled_from(Cause))
            self.fencing.add(number)
            self.tell("fencing", number, end=draw(st.sampled_from(AttemptEnd)).value, cause=cause and cause.value)

    def end(self, draw: st.DrawFn) -> None:
        if not self.fencing:
            return
        number = draw(st.sampled_from(sorted(self.fencing)))
        self.fencing.discard(number)
        for name, gpus in self.running.pop(number).items():
            self.free[name] += gpus
        self.tell("fenced", number)
        if draw(st.booleans()):
            self.waiting.add(number)
            self.tell("requeued", number)
        else:
            self.tell("ended", number, state="SUCCEEDED")

    def lose(self, draw: st.DrawFn) -> None:
        name = draw(st.sampled_from([n.spec.name for n in self.nodes]))
        self.up.discard(name)
        self.tell("node_lost", node=name)

    def report(self, draw: st.DrawFn) -> None:
        name = draw(st.sampled_from([n.spec.name for n in self.nodes]))
        self.up.add(name)
        self.tell("node_up", node=name)

    def hold(self, draw: st.DrawFn) -> None:
        if self.jobs:
            self.tell(draw(st.sampled_from(["held", "released"])), draw(st.sampled_from(sorted(self.jobs))))

    def stop(self, draw: st.DrawFn) -> None:
        self.up.clear()
        self.tell("cluster_stopped")

    def _started(self, number: int) -> bool:
        last = [e.kind for e in self.events if e.job == str(number) and e.kind in ("admitted", "started")]
        return last[-1:] == ["started"]


@st.composite
def engines(draw: st.DrawFn) -> Engine:
    """Up to three nodes, and what happened on them."""
    specs = [NodeSpec(f"n{i}", draw(st.integers(0, 4)), draw(st.sampled_from(MODELS))) for i in range(3)]
    engine = Engine([Node(s, NodeState.IDLE, ("d",) * s.gpus) for s in specs])
    engine.free = {s.name: s.gpus for s in specs}
    engine.tell("control_plane_started")
    for _ in range(3):
        engine.report(draw)
    often = [Engine.submit, Engine.admit, Engine.admit, Engine.save, Engine.fence, Engine.end, Engine.block]
    for step in draw(
        st.lists(st.sampled_from([*often, Engine.lose, Engine.report, Engine.hold, Engine.stop]), max_size=20)
    ):
        engine.at_s += draw(steps)
        step(engine, draw)
    return engine


@settings(deadline=None, max_examples=150)
@given(engines(), st.floats(0.0, 100.0), shares)
def test_a_history_accounts_for_every_gpu_and_can_be_split_anywhere(engine: Engine, later: float, share: float) -> None:
    latest = max(e.at_s for e in engine.events)
    first, last = engine.events[0].at_s, latest + later
    middle = first + (last - first) * share
    jobs = list(engine.jobs.values())
    whole = read_history(engine.events, jobs, engine.nodes, as_of_s=last)
    gpus = sum(n.spec.gpus for n in engine.nodes)
    assert whole.lines.total_gpu_ms == gpus * (to_ms(last) - to_ms(first))
    assert min(whole.lines.amounts.values(), default=0) >= 0
    assert whole.usage.gpu_ms() == whole.lines.held_gpu_ms
    parts = [
        read_history(engine.events, jobs, engine.nodes, as_of_s=last, until_s=middle),
        read_history(engine.events, jobs, engine.nodes, as_of_s=last, since_s=middle),
    ]
    assert merge_lines(p.lines for p in parts) == whole.lines


@settings(deadline=None, max_examples=100)
@given(engines(), st.integers(1, 30))
def test_a_history_read_at_any_moment_of_it_accounts_for_every_gpu(engine: Engine, count: int) -> None:
    events = engine.events[:count]
    found = read_history(events, engine.jobs.values(), engine.nodes, as_of_s=0.0)
    gpus = sum(n.spec.gpus for n in engine.nodes)
    assert found.lines.total_gpu_ms == gpus * (to_ms(max(e.at_s for e in events)) - to_ms(events[0].at_s))
