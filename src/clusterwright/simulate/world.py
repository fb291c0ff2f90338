"""What the parts of one simulation share: the queue, the agenda, the books, and what runs."""

from __future__ import annotations

from collections.abc import Callable

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.lines import to_ms
from clusterwright.queueing.budgets import Budgets
from clusterwright.queueing.state import State
from clusterwright.simulate.agenda import Agenda
from clusterwright.simulate.books import Books
from clusterwright.simulate.happenings import Event, Happening
from clusterwright.simulate.running import Run
from clusterwright.simulate.scenarios import Scenario
from clusterwright.simulate.tallies import Tallies


class World:
    """The state of a simulation.

    Attributes:
        state: of the queue, which decides everything.
        running: attempts that hold GPUs, by number of the job.
        rotten: nodes that compute wrong results, and nobody knows.
        counted_ms: from when on the ledger counts.
        observe: called with every event; None when nobody looks.
    """

    def __init__(self, scenario: Scenario, observe: Callable[[Event], None] | None) -> None:
        self.scenario, self.observe = scenario, observe
        self.state = State(
            scenario.nodes,
            levels=scenario.levels,
            tree=scenario.tree,
            policy=scenario.policy,
            windows=scenario.windows,
            budgets=Budgets(scenario.tree, scenario.budgets) if scenario.budgets else None,
        )
        self.agenda = Agenda()
        self.counted_ms = to_ms(scenario.counted_from_s)
        self.ledger = Ledger(scenario.counted_from_s)
        self.books = Books(scenario, self.state, self.ledger)
        self.tallies = Tallies(scenario.jobs.work_ms)
        self.running: dict[int, Run] = {}
        self.rotten: set[int] = set()

    def tell(self, event: Event) -> None:
        """Write into the log."""
        if self.observe is not None:
            self.observe(event)

    def tell_job(self, now_ms: int, what: Happening, run: Run, detail: str) -> None:
        """Write of an attempt into the log."""
        if self.observe is not None:
            self.observe(Event(now_ms, what, run.number, (), run.gpus, detail))

    def tell_start(self, now_ms: int, run: Run, detail: str) -> None:
        """Write of a start into the log, with its nodes."""
        if self.observe is not None:
            names = self.state.cluster.floors[run.placement.flavor].names
            nodes = tuple(dict.fromkeys(names[n] for _, n, _ in run.placement.runs))
            self.observe(Event(now_ms, Happening.STARTED, run.number, nodes, run.gpus, detail))
