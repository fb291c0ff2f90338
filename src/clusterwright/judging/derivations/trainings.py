"""Training logs: the steady step, useful work, and checkpoints that were finished.

The first window is start-up and left out. Steps that were skipped did no work and are no steps. A checkpoint that was
begun and not reported as saved is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

METRICS_OF: Final = ("step_time",)
#: Printed windows from which on their median is called steady; our default.
FEWEST_WINDOWS: Final = 5
#: Timers that measure waiting for data. Source: Megatron-LM, timers of the training loop.
_DATA_PHASES: Final = frozenset({"batch-generator"})
_METRICS: Final = {"step_time": "step_time", "training_rate": "training_rate", "tflops_per_gpu": "tflops_per_gpu"}


def derive_trainings(facts: Facts) -> Iterator[Reading]:
    """Medians of the steady part, skipped steps, and what became of checkpoints."""
    for name, metric in _METRICS.items():
        if rows := facts.of(name):
            yield _steady(facts, metric, rows)
    yield from _stall(facts)
    if facts.has("skipped_iterations"):
        yield from _skipped(facts)
    yield from _checkpoints(facts)


def _iteration(observation: Observation) -> str:
    return dict(observation.subject).get("iteration", "")


def _steady(facts: Facts, metric: str, rows: list[Observation]) -> Reading:
    idle = {_iteration(o) for o in facts.of("skipped_iterations") if isinstance(o.value, float | int) and o.value > 0}
    later = [o for o in rows if dict(o.subject).get("phase") != "start"]
    later = later if len(later) < len(rows) else rows[1:]
    steady = [o for o in later if _iteration(o) not in idle or not _iteration(o)]
    values = [o.value for o in steady if isinstance(o.value, Quantity)]
    if len(values) < FEWEST_WINDOWS:
        skipped = f", {len(later) - len(steady)} with skipped steps left out" if len(steady) < len(later) else ""
        why = f"no value: {len(values)} windows after the first{skipped}; at least {FEWEST_WINDOWS} make a steady part"
        return facts.reading(metric, None, why=why)
    middle = median(v.value for v in values)
    return facts.reading(metric, Quantity(middle, values[0].powers), {"windows": str(len(values))})


def _stall(facts: Facts) -> Iterator[Reading]:
    """Share of a step that waits for the data: the median over the iterations that print both times."""
    steps = {_iteration(o): o.value.value for o in facts.of("step_time") if isinstance(o.value, Quantity)}
    waits: dict[str, float] = {}
    for o in facts.of("phase_time"):
        subject = dict(o.subject)
        if subject.get("phase") in _DATA_PHASES and isinstance(o.value, Quantity):
            waits[_iteration(o)] = waits.get(_iteration(o), 0.0) + o.value.value
    shares = [waits[i] / steps[i] for i in waits if steps.get(i)]
    if len(shares) >= FEWEST_WINDOWS:
        share = median(shares)
        text = f"{share * 100:.3g}%"
        yield facts.reading("data_loading_stall", Quantity(share, (), text), {"windows": str(len(shares))})


def derive_listings(facts: Facts) -> Iterator[Reading]:
    """Checkpoints of a directory of which parts are missing, empty or not renamed."""
    if not facts.has("checkpoint_complete"):
        return
    lost = [o for o in facts.of("checkpoint_complete") if o.value is not True]
    named = {"unfinished": ", ".join(dict(o.subject).get("checkpoint", "") for o in lost[:6])} if lost else {}
    yield facts.reading("checkpoints_failed", float(len(lost)), named)


def _skipped(facts: Facts) -> Iterator[Reading]:
    numbers = [float(o.value) for o in facts.of("skipped_iterations") if isinstance(o.value, float | int)]
    yield facts.reading("skipped_steps", sum(numbers) if numbers else None)


def _checkpoints(facts: Facts) -> Iterator[Reading]:
    states: dict[str, list[str]] = {}
    for o in facts.of("checkpoint"):
        if (state := plain(o.value).lower()) != "loaded":
            states.setdefault(_iteration(o), []).append(state)
    if states:
        lost = [iteration for iteration, seen in states.items() if "failed" in seen or "saved" not in seen]
        named = {"unfinished": ", ".join(filter(None, lost[:6]))} if any(lost) else {}
        yield facts.reading("checkpoints_failed", float(len(lost)), named)
    times = [o.value for o in facts.of("checkpoint_write") if isinstance(o.value, Quantity)]
    if times:
        yield facts.reading("checkpoint_write", max(times, key=lambda q: q.value), {"checkpoints": str(len(times))})
