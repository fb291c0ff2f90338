"""Values that fill a test's command template, and the command that results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.acceptance_tests import RUN_TIME, AcceptanceTest, split_template
from clusterwright.judging.acceptance_plans import Argument, Slot
from clusterwright.judging.requirements import Claim
from clusterwright.lib.quantities import Quantity
from clusterwright.model.acceptance import Requirement

#: Programs of nccl-tests and rccl-tests by operation. Source: github.com/NVIDIA/nccl-tests, src/Makefile.
BINARIES: Final = {
    "all-reduce": "all_reduce_perf",
    "all-gather": "all_gather_perf",
    "reduce-scatter": "reduce_scatter_perf",
    "all-to-all": "alltoall_perf",
    "broadcast": "broadcast_perf",
}
#: A sweep begins here unless a claim asks for less: below it, latency hides bandwidth.
_SWEEP_FROM: Final = 2**20
#: A sweep ends here when no claim names a size: 16 GiB, the size of most published figures.
_SWEEP_TO: Final = 2**34
#: Bytes per reader where the file does not say how much one loads.
FILE_BYTES: Final = 4 * 2**30


def fill(test: AcceptanceTest, values: Mapping[str, str]) -> tuple[Argument, ...] | str:
    """The command with its values, or the name of a value that is missing.

    An optional group is left out when one of its values is missing.
    """
    argv: list[Argument] = []
    for word in test.argv:
        if isinstance(word, str):
            filled = _fill_word(word, values)
            if isinstance(filled, str):
                return filled
            argv.append(filled)
            continue
        group = [_fill_word(w, values) for w in word]
        argv += [] if any(isinstance(g, str) for g in group) else [g for g in group if not isinstance(g, str)]
    return tuple(argv)


def _fill_word(word: str, values: Mapping[str, str]) -> Argument | str:
    parts: list[str | Slot] = []
    for kind, part in split_template(word):
        if kind == "text":
            parts.append(part)
        elif part in RUN_TIME:
            parts.append(Slot(part))
        elif part in values:
            parts.append(values[part])
        else:
            return part
    return tuple(parts)


def fill_title(title: str, values: Mapping[str, str]) -> str:
    """The title with its values; a value that is missing keeps its name."""
    return "".join(part if kind == "text" else values.get(part, part) for kind, part in split_template(title))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the claims of one test ask for together."""

    sizes: tuple[int, ...]
    duration_s: float

    @property
    def smallest(self) -> int:
        """Where the sweep begins, so that doubling from there meets the largest size that is asked for."""
        start = min((_SWEEP_FROM, *self.sizes))
        top = self.largest
        while top > start and top % 2 == 0:
            top //= 2
        return top if self.sizes else start

    @property
    def largest(self) -> int:
        """Where the sweep ends."""
        return max(self.sizes, default=_SWEEP_TO)


def size_family(claim: Claim) -> int:
    """The odd part of the claim's message size: one doubling sweep meets all sizes that share it; 0 without a size."""
    size = claim.requirement.conditions.message_size
    number = round(size.value) if size is not None else 0
    return number // (number & -number) if number > 0 else 0


def wishes_of(claims: Iterable[Claim]) -> Wishes:
    """Message sizes and the longest duration that claims ask for."""
    sizes: dict[int, None] = {}
    duration = 0.0
    for claim in claims:
        conditions = claim.requirement.conditions
        if conditions.message_size is not None:
            sizes[round(conditions.message_size.value)] = None
        if conditions.duration is not None:
            duration = max(duration, conditions.duration.value)
    return Wishes(tuple(sorted(sizes)), duration)


def whole(quantity: Quantity | None, unit: str) -> str | None:
    """A quantity as a plain number of units, rounded up; None without one."""
    return None if quantity is None else str(math.ceil(quantity.to(unit)))


def concurrency_of(requirement: Requirement) -> int | None:
    """Readers, writers or requests at once that the claim asks for."""
    value = requirement.conditions.concurrency
    return None if value is None else int(value)
