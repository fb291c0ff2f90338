"""What was judged: outputs with what they prove, and the verdicts on the claims of a file if there was one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from clusterwright.judging.advising import Advised, is_serious
from clusterwright.judging.causes import Chain
from clusterwright.judging.identities import Twice
from clusterwright.judging.meaning import Meaning
from clusterwright.judging.outliers import Group
from clusterwright.judging.verdicts import exit_code
from clusterwright.judging.yardsticks import Yardstick
from clusterwright.model.evidence import Coverage, Evidence, Reading, Verdict
from clusterwright.model.observations import Notice, Outcome, Transcript, Weight

#: Where the time of an output is known from.
Timed = Literal["printed", "printed without a time zone, counted at its oldest", "given", "time of the file"]

#: Metrics of which more than none is a failure by itself, whatever a file requires. Codes are advised about instead.
FAILURES: Final = frozenset(
    {"collective_errors", "dcgm_failures", "gpus_lost", "remap_failures", "nvlink_down", "checkpoints_failed",
     "ecc_uncorrected"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JudgedOutput:
    """One output.

    Args:
        timed: where the times of its evidence come from.
        named: how its hosts are known, in words; "" when they are not.
        notices: what a careful person says about it, errors first.
        advice: what its events and counters ask for.
    """

    path: str
    transcript: Transcript
    evidence: Evidence
    timed: Timed
    named: str
    meaning: Meaning
    notices: tuple[Notice, ...]
    yardsticks: tuple[Yardstick, ...] = ()
    advice: tuple[Advised, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it shows that something is wrong."""
        impossible = any(y.impossible for y in self.yardsticks)
        return bool(self.failures or self.errors or impossible or is_serious(self.advice))

    @property
    def failures(self) -> tuple[Reading, ...]:
        """Readings that are failures by themselves."""
        return failures_of(self.evidence)

    @property
    def errors(self) -> tuple[Notice, ...]:
        """Notices that say that something is wrong."""
        return tuple(n for n in self.notices if n.weight is Weight.ERROR)

    @property
    def whole(self) -> bool:
        """Whether it was read whole and none of what it should prove is without value."""
        return self.transcript.outcome is Outcome.READ and not _has_gap(self.evidence)


#: Reasons for a missing value that leave no gap: the device has no such thing.
_NOT_A_GAP: Final = "no value"


@dataclass(frozen=True, slots=True)
class Kept:
    """Evidence that was measured and kept before.

    Args:
        source: the store or bundle that holds it.
        remark: what to know about it, "" when nothing is.
    """

    source: str
    evidence: tuple[Evidence, ...]
    remark: str = ""

    @property
    def failures(self) -> tuple[tuple[Evidence, Reading], ...]:
        """Readings that are failures by themselves, each with its record."""
        return tuple((e, r) for e in self.evidence for r in failures_of(e))


def failures_of(evidence: Evidence) -> tuple[Reading, ...]:
    """Readings that are failures whatever a file requires."""
    return tuple(r for r in evidence.readings if r.metric in FAILURES and isinstance(r.value, float) and r.value > 0)


def _has_gap(evidence: Evidence) -> bool:
    return any(r.value is None and not r.unreadable.startswith(_NOT_A_GAP) for r in evidence.readings)


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything that a judgement found.

    Args:
        kept: evidence that counted beside the outputs.
        causes: events of the logs that others follow from.
        twice: devices that outputs of two hosts hold.
        name: of the architecture, "" without one.
        verdicts: on its claims; () without one.
        groups: metrics in which nodes were compared with each other.
        remarks: what to know about the judgement as a whole.
    """

    outputs: tuple[JudgedOutput, ...]
    name: str = ""
    verdicts: tuple[Verdict, ...] = ()
    coverage: Coverage | None = None
    groups: tuple[Group, ...] = ()
    remarks: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    causes: tuple[Chain, ...] = ()
    twice: tuple[Twice, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 when a claim is not met or an output shows a failure, 3 when something was not measured, else 0.

        A failure in kept evidence may be old and repaired: where there are claims, these decide whether it counts.
        """
        if any(o.failed for o in self.outputs) or (self.coverage is not None and self.coverage.not_met):
            return 1
        if self.coverage is not None:
            return exit_code(self.coverage)
        if any(k.failures for k in self.kept):
            return 1
        records = [e for k in self.kept for e in k.evidence]
        whole = not self.twice and all(o.whole for o in self.outputs) and not any(_has_gap(e) for e in records)
        return 0 if whole and (self.outputs or records) else 3
