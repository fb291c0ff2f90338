"""The load before a log was taken: whether it was one, and whether the log covers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.judging.placing_outputs import read_moment
from clusterwright.model.observations import Outcome, Run

if TYPE_CHECKING:
    from clusterwright.judging.acceptance_evidence import RunOutput
    from clusterwright.judging.acceptance_runs import RunRecord

#: Longest silence of a kernel before the log that was taken after the load is doubted; our default. A quiet host logs
#: nothing under load, and the ring buffer loses its beginning, never its end.
QUIET: Final = timedelta(days=7)

_AFTER_BOOT: Final = " s after boot"
#: Stamps this soon after boot are of its beginning: firmware tables are printed at 0.
_BOOT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """A run that put load on its nodes.

    Args:
        why_none: why it was no load, "" when it was one.
    """

    began: datetime
    ended: datetime
    why_none: str = ""

    @property
    def seconds(self) -> float:
        """How long it lasted; 0 when it was none."""
        return 0.0 if self.why_none else (self.ended - self.began).total_seconds()


def load_of(run: RunRecord, outputs: Sequence[RunOutput], problem: str, test: PlannedTest) -> Load:
    """The load of a run: only one whose own output says that it ran and failed nowhere counts."""
    return Load(run.started, run.ended, _why_no_load(run, outputs, problem, test))


def _why_no_load(run: RunRecord, outputs: Sequence[RunOutput], problem: str, test: PlannedTest) -> str:
    if run.lacking or problem or run.failed:
        return run.lacking or problem or run.failed
    if run.exit_code is None:
        return "it was not started"
    own = [o for o in outputs if o.transcript.kind.startswith(test.kind.reader)]
    if not own:
        return "it brought no output of its own back"
    if refused := next((o.transcript for o in own if o.transcript.outcome is Outcome.REFUSED), None):
        return f"its output is unreadable: {refused.refusal or 'no run in it'}"
    results = [str(o.value) for out in own for r in out.transcript.runs for o in r.observations if o.name == "test"]
    if "fail" in results:
        return "its own output says that it failed"
    if results and not {"pass", "warn"} & set(results):
        return f"its own output says that nothing ran: {', '.join(dict.fromkeys(results))}"
    return ""


def why_log_leaves_gaps(log: RunOutput, load: Load) -> str:
    """Why the silence of a log says nothing about the load before it, "" when the log covers all of it."""
    for run in log.transcript.runs:
        if why := _why_run_leaves_gaps(run, log.run, load):
            return why
    return ""


def _why_run_leaves_gaps(run: Run, record: RunRecord, load: Load) -> str:
    first, last = run.condition("started"), run.condition("ended")
    if not isinstance(first, str) or not isinstance(last, str):
        return "no value: the log says no times, so nothing shows that it covers the load"
    if first.endswith(_AFTER_BOOT) and last.endswith(_AFTER_BOOT):
        return _why_stamps_leave_gaps(first, last, record, load)
    began, ended = read_moment(first), read_moment(last)
    if began is None or ended is None or not began[1] or not ended[1]:
        return f"no value: the times of the log ({first} to {last}) have no year or zone to compare the load with"
    if began[0] > load.began:
        return f"no value: the log begins {_say(began[0])}, after the load began {_say(load.began)}"
    if ended[0] < load.ended and (record.started < load.ended or load.ended - ended[0] > QUIET):
        return (
            f"no value: the last line of the log is of {_say(ended[0])}, before the load ended {_say(load.ended)}, and "
            "it was not taken after that, or has been silent for too long"
        )
    return ""


def _why_stamps_leave_gaps(first: str, last: str, record: RunRecord, load: Load) -> str:
    """For stamps since boot: the host booted at the latest so long before the log was taken."""
    try:
        begin, end = float(first.removesuffix(_AFTER_BOOT)), float(last.removesuffix(_AFTER_BOOT))
        boot = record.ended - timedelta(seconds=end)
    except (ValueError, OverflowError):
        return f"no value: the times of the log ({first} to {last}) cannot be compared with the load"
    if begin > _BOOT_S:
        return f"no value: the log begins {first}, and nothing says when that was; what came before was overwritten"
    if boot > load.began:
        return f"no value: nothing shows that the host ran since the load began {_say(load.began)}; its log ends {last}"
    return ""


def _say(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
