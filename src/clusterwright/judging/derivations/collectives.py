"""nccl-tests and rccl-tests: bandwidth per row, and whether the results were right.

Bandwidth without a checked result is bandwidth only; correctness is a reading of its own, and `N/A` is no zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import NoValue, Observation

METRICS_OF = ("busbw", "algbw", "collective_errors")


def derive_collectives(facts: Facts) -> Iterator[Reading]:
    """Bus and algorithm bandwidth of every row that moved data, then the number of wrong elements."""
    if not facts.has("busbw", "algbw", "wrong"):
        return
    shared = _shared(facts)
    for name in ("busbw", "algbw"):
        for row in facts.of(name):
            if _size(row) > 0:
                yield facts.reading(name, _rate(row), shared | _row_conditions(row))
    yield _errors(facts, shared)


def _rate(row: Observation) -> Quantity | NoValue | None:
    return row.value if isinstance(row.value, Quantity | NoValue) else None


def _shared(facts: Facts) -> dict[str, str]:
    names = ("operation", "ranks", "gpu")
    return {name: text for name in names if (text := facts.text(name))}


def _row_conditions(row: Observation) -> dict[str, str]:
    subject = dict(row.subject)
    found = {"message_size": f"{_size(row)} B"}
    if data_type := subject.get("type"):
        found["data_type"] = data_type
    if operation := subject.get("operation"):
        found["operation"] = operation
    if place := subject.get("place"):
        found["in_place"] = "true" if place == "in" else "false"
    return found


def _size(row: Observation) -> int:
    text = dict(row.subject).get("size", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0


def _errors(facts: Facts, shared: dict[str, str]) -> Reading:
    """Wrong elements over all rows; without a check, or where one row lacks it, there is no count to pass with."""
    rows = [o for o in facts.of("wrong") if _size(o) > 0]
    counts = [float(o.value) for o in rows if isinstance(o.value, float | int)]
    beyond = facts.number("out_of_bounds")
    worst = max(sum(counts), beyond or 0.0)
    if worst > 0:
        return facts.reading("collective_errors", worst, shared)
    return facts.reading("collective_errors", 0.0, shared, why=_why_unchecked(facts, rows, counts, beyond))


def _why_unchecked(facts: Facts, rows: list[Observation], counts: list[float], beyond: float | None) -> str:
    if facts.run.condition("validation") is False:
        return "not checked: validation was off (-c 0)"
    if rows and len(counts) < len(rows):
        printed = next((plain(o.value) or str(o.value) for o in rows if not isinstance(o.value, float | int)), "")
        return f"not checked: {len(rows) - len(counts)} of {len(rows)} results have no count of wrong ones ({printed})"
    if not rows and beyond is None:
        return "not checked: no count of wrong results is printed"
    if not rows and facts.run.condition("validation") is not True:
        return "not checked: nothing says that results were validated"
    return ""
