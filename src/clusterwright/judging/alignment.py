"""Which readings are of the same thing: same metric, same conditions, whatever their spelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.judging.conditions import data_type_name, magnitude
from clusterwright.model.evidence import Reading

#: What is printed beside a value and does not make it another measurement: it describes the system or the run.
_NOT_IDENTITY: Final = frozenset(
    {"image", "duration", "gpu", "events", "failed", "windows", "checkpoints", "unfinished"}
)


@dataclass(frozen=True, slots=True)
class Alike:
    """The metric and conditions that readings have in common."""

    metric: str
    conditions: tuple[tuple[str, str], ...]


def align(reading: Reading) -> Alike:
    """What the reading is of, the same for every spelling of its conditions."""
    kept = sorted((name, _canonical(name, text)) for name, text in reading.conditions if name not in _NOT_IDENTITY)
    return Alike(reading.metric, tuple(kept))


def _canonical(name: str, text: str) -> str:
    if name == "message_size":
        size = magnitude(text, "bytes")
        return text if size is None else f"{size:.15g} B"
    if name == "data_type":
        return data_type_name(text)
    return text.strip().lower().replace("_", "-")
