"""What an acceptance plan says: tests on nodes, when each runs, and what no test covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from clusterwright.catalogue.acceptance_tests import AcceptanceTest


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a value that only the machine knows, a key of RUN_TIME."""

    name: str


#: One argument: pieces of fixed text and slots. Fixed text is never read again for placeholders.
Argument = tuple[str | Slot, ...]
Group = tuple[str, ...]

#: Rights in ascending order.
RIGHTS: Final = ("user", "admin", "root")


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """One test with everything that is known before it runs.

    Args:
        id: unique within the plan; names files and jobs, so only `a-z`, `0-9` and `-`.
        argv: the command; runs once per unit (per process where `kind.launch` says so).
        rounds: groups of nodes that run at the same time, round after round. A group is one node, two, or all.
        claims: ids of the claims that it serves.
        store: name of the store that it uses, "" if none.
        occupies: nodes that work for the test without running it, such as those of a service under load.
        gpus_per_node: GPUs of a node of its pool.
        seconds: of all rounds together.
        duration: seconds that the measurement itself was asked to take, 0 when nobody asked.
        providers: who must provide the evidence, as the claims say.
        control_of: id of the test whose number must change, for a negative control.
        notes: what was assumed or left out.
    """

    id: str
    kind: AcceptanceTest
    title: str
    argv: tuple[Argument, ...]
    pool: str
    rounds: tuple[tuple[Group, ...], ...]
    claims: tuple[str, ...] = ()
    occupies: tuple[str, ...] = ()
    store: str = ""
    workload: str = ""
    image: str = ""
    gpus_per_node: int = 0
    seconds: float = 0.0
    duration: float = 0.0
    rights: str = "user"
    providers: tuple[str, ...] = ()
    control_of: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that takes part, in the order of the file."""
        return tuple(dict.fromkeys(n for groups in self.rounds for group in groups for n in group))

    @property
    def busy(self) -> tuple[str, ...]:
        """Nodes that run the test or work for it."""
        return tuple(dict.fromkeys((*self.nodes, *self.occupies)))

    @property
    def gpu_hours(self) -> float:
        """Hours × GPUs that the test keeps from other work; 0 when work may go on beside it."""
        if not (self.kind.gpus or self.kind.exclusive):
            return 0.0
        hours = self.seconds / max(1, len(self.rounds)) / 3600
        nodes = sum(len(g) for groups in self.rounds for g in groups) + len(self.occupies)
        return nodes * self.gpus_per_node * hours

    @property
    def units(self) -> tuple[tuple[str, Group], ...]:
        """(name, nodes) of every run that must report; each node for itself where every one has ranks of its own."""
        if self.kind.launch == "ranks":
            return tuple((node, (node,)) for node in self.nodes)
        return tuple((unit_name(self.kind.runs, g), g) for groups in self.rounds for g in groups)

    @property
    def ranks(self) -> int:
        """Processes of one run that has one per GPU."""
        group = self.rounds[0][0] if self.rounds and self.rounds[0] else ()
        return len(group) * self.gpus_per_node


def unit_name(runs: str, group: Group) -> str:
    """Name of one run of a test: its node, both nodes of a pair, `all` or `client`."""
    if runs in ("each-node", "together", "once") and len(group) == 1:
        return group[0]
    if runs == "each-pair":
        return "+".join(group)
    return "client" if runs in ("client", "once") else "all"


@dataclass(frozen=True, slots=True)
class Interval:
    """When a test runs, seconds after the window opens.

    Args:
        fits: whether it ends within the window.
    """

    test: str
    begins_s: float
    ends_s: float
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A claim that no test of the plan covers.

    Args:
        how: what else would measure it.
        kind: `no-test` when nothing shipped measures it, `cannot` when the file does not allow a test, `out` when
            the claim needs none (not applicable, not decidable).
    """

    claim: str
    reason: str
    how: str
    kind: Literal["no-test", "cannot", "out"] = "no-test"


@dataclass(frozen=True, slots=True)
class AcceptancePlan:
    """The tests that the claims of a file need, in the order in which they should run.

    Args:
        image: declared production image, "" if none.
        window_s: declared time in which acceptance must be finished, None without one.
        ends_s: when the last test ends.
        stale: claim → why it must be measured again, where only those were asked for.
        statistics: what the sustained run can and cannot say.
    """

    cluster: str
    engine: str
    tests: tuple[PlannedTest, ...]
    schedule: tuple[Interval, ...]
    uncovered: tuple[Uncovered, ...]
    image: str = ""
    window_s: float | None = None
    stale: Mapping[str, str] = field(default_factory=dict)
    statistics: tuple[str, ...] = ()

    @property
    def ends_s(self) -> float:
        """When the last test ends, seconds after the window opens."""
        return max((i.ends_s for i in self.schedule), default=0.0)

    @property
    def gpu_hours(self) -> float:
        """GPU-hours of all tests."""
        return sum(t.gpu_hours for t in self.tests)

    @property
    def late(self) -> tuple[str, ...]:
        """Tests that do not end within the window."""
        return tuple(i.test for i in self.schedule if not i.fits)

    def test(self, id_: str) -> PlannedTest | None:
        """The test of that id."""
        return next((t for t in self.tests if t.id == id_), None)
