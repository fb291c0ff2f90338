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
_METRICS: Final = {"step_time": "step_time", "training_rate": "training_rate", "tflops_per_gpu": "tflops_per_gpu"}


def derive_trainings(facts: Facts) -> Iterator[Reading]:
    """Medians of the steady part, skipped steps, and what became of checkpoints."""
    for name, metric in _METRICS.items():
        if rows := facts.of(name):
            yield _steady(facts, metric, rows)
    for o in facts.of("data_loading_stall"):
        yield facts.reading("data_loading_stall", o.value)
    if facts.has("skipped_iterations"):
        yield from _skipped(facts)
    yield from _checkpoints(facts)


def _iteration(observation: Observation) -> str:
    return dict(observation.subject).get("iteration", "")


def _steady(facts: Facts, metric: str, rows: list[Observation]) -> Reading:
    idle = {_iteration(o) for o in facts.of("skipped_iterations") if isinstance(o.value, float | int) and o.value > 0}
    steady = [o for o in rows[1:] if _iteration(o) not in idle or not _iteration(o)]
    values = [o.value for o in steady if isinstance(o.value, Quantity)]
    if len(values) < FEWEST_WINDOWS:
        skipped = f", {len(rows) - 1 - len(steady)} with skipped steps left out" if len(steady) < len(rows) - 1 else ""
        why = f"no value: {len(values)} windows after the first{skipped}; at least {FEWEST_WINDOWS} make a steady part"
        return facts.reading(metric, None, why=why)
    middle = median(v.value for v in values)
    return facts.reading(metric, Quantity(middle, values[0].powers), {"windows": str(len(values))})


def _skipped(facts: Facts) -> Iterator[Reading]:
    numbers = [float(o.value) for o in facts.of("skipped_iterations") if isinstance(o.value, float | int)]
    yield facts.reading("skipped_steps", sum(numbers) if numbers else None)


def _checkpoints(facts: Facts) -> Iterator[Reading]:
    states: dict[str, list[str]] = {}
    for o in facts.of("checkpoint"):
        states.setdefault(_iteration(o), []).append(plain(o.value).lower())
    if states:
        lost = [iteration for iteration, seen in states.items() if "failed" in seen or "saved" not in seen]
        named = {"unfinished": ", ".join(filter(None, lost[:6]))} if any(lost) else {}
        yield facts.reading("checkpoints_failed", float(len(lost)), named)
    times = [o.value for o in facts.of("checkpoint_write") if isinstance(o.value, Quantity)]
    if times:
        yield facts.reading("checkpoint_write", max(times, key=lambda q: q.value), {"checkpoints": str(len(times))})
