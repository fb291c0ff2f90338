"""A user's measurements → constants of each engine and GPU, with the error before and after and on rows held out.

Rows of one engine, version and GPU make one calibration. It starts from the constants that the catalogue has for them
and is pulled to those where the rows say nothing, so few rows move little. Every fourth row (in order of layout,
lengths and concurrency) is held out, the rest fitted and both scored; what is written is then fitted to all rows.
Fewer than LEAST rows, or rows at fewer than two concurrencies, are not fitted: one point cannot part latency from rate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.calibrating.fitting import Rule, constants_of_rows, fit
from clusterwright.calibrating.measurements import Left, Measurement
from clusterwright.calibrating.settings import Settings, predict
from clusterwright.physics.serving.constants import BOUNDS, NAMES, Array, Constants

#: Rows from which constants are fitted; every HELD_OUT-th is kept for the score.
LEAST: Final = 8
HELD_OUT: Final = 4
#: One level, and rows that weigh more than when a fit has to serve everybody.
OWN: Final = Rule(scatter=0.25, ttft=0.8, rounds=14, levels=("all",))

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Error:
    """|predicted ÷ measured − 1| over some rows: mean, median and how many; None where nothing was measured."""

    mean: float
    median: float
    rows: int


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of the two times."""

    ttft: Error | None
    tpot: Error | None


@dataclass(frozen=True, slots=True)
class Move:
    """One constant before and after; `at_bound` says that the data wanted to go on."""

    name: str
    before: float
    after: float
    at_bound: bool


@dataclass(frozen=True, slots=True)
class Refit:
    """One engine, version and GPU.

    Args:
        before, after: over all rows; `held_before`, `held_after` over rows that a fit on the others did not see.
        spans: (lowest, highest) of prompt, output, concurrency and gpus.
    """

    key: Key
    models: tuple[str, ...]
    rows: int
    constants: Constants
    before: Score
    after: Score
    held_before: Score
    held_after: Score
    moved: tuple[Move, ...]
    spans: dict[str, tuple[float, float]]
    notes: tuple[str, ...]

    @property
    def better(self) -> bool:
        """Whether the rows held out are predicted no worse than before, TTFT and TPOT together."""
        return _sum(self.held_after) <= _sum(self.held_before)


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that are not enough for a fit."""

    key: Key
    rows: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a set of measurements gave."""

    refits: tuple[Refit, ...]
    refused: tuple[Refused, ...]
    left: tuple[Left, ...]


def refit_all(settings: Settings, left: Sequence[Left], known: Callable[[Key], Constants]) -> Outcome:
    """Refit each engine, version and GPU among the rows.

    Args:
        known: constants that the catalogue has so far.
    """
    groups: dict[Key, list[int]] = defaultdict(list)
    for place, row in enumerate(settings.rows):
        groups[row.engine, row.version, row.gpu].append(place)
    refits: list[Refit] = []
    refused: list[Refused] = []
    for key, places in sorted(groups.items()):
        mask = np.zeros(len(settings.rows))
        mask[places] = 1.0
        chosen = settings.chosen(mask)
        reason = _too_few(chosen.rows)
        if reason:
            refused.append(Refused(key, len(places), reason))
        else:
            refits.append(_refit(key, chosen, known(key)))
    return Outcome(tuple(refits), tuple(refused), tuple(left))


def _too_few(rows: Sequence[Measurement]) -> str:
    if len(rows) < LEAST:
        return f"{len(rows)} rows; a fit needs {LEAST}"
    if len({row.concurrency for row in rows}) < 2:
        return "one concurrency only; a fit needs two or more"
    return ""


def _refit(key: Key, settings: Settings, prior: Constants) -> Refit:
    held = _held_out(settings.rows)
    everything = np.ones(len(settings.rows))
    part = fit(settings, 1.0 - held, prior, OWN)
    whole = fit(settings, everything, prior, OWN)
    constants = whole.constants(*key)
    old = {name: np.full(len(settings.rows), getattr(prior, name)) for name in NAMES}
    before = predict(settings, old)
    after = predict(settings, constants_of_rows(whole, settings))
    unseen = predict(settings, constants_of_rows(part, settings))
    return Refit(
        key,
        tuple(sorted({row.model for row in settings.rows})),
        len(settings.rows),
        constants,
        score(settings, before, everything),
        score(settings, after, everything),
        score(settings, before, held),
        score(settings, unseen, held),
        tuple(_moves(prior, constants)),
        _spans(settings.rows),
        tuple(dict.fromkeys(note for row in settings.rows for note in row.notes)),
    )


def _held_out(rows: Sequence[Measurement]) -> Array:
    order = sorted(
        range(len(rows)), key=lambda i: (str(rows[i].decode), rows[i].prompt, rows[i].output, rows[i].concurrency)
    )
    mask = np.zeros(len(rows))
    mask[order[HELD_OUT // 2 :: HELD_OUT]] = 1.0
    return mask


def score(settings: Settings, predicted: tuple[Array, Array], use: Array) -> Score:
    """Errors over the rows marked in `use`."""
    return Score(
        _error(predicted[0], settings.ttft_s, use),
        _error(predicted[1], settings.tpot_s, use),
    )


def _error(predicted: Array, measured: Array, use: Array) -> Error | None:
    rows = (use > 0) & np.isfinite(measured)
    if not rows.any():
        return None
    size = np.abs(predicted[rows] / measured[rows] - 1)
    return Error(float(size.mean()), float(np.median(size)), int(rows.sum()))


def _moves(before: Constants, after: Constants) -> list[Move]:
    moves = []
    for name in NAMES:
        old, new, bound = getattr(before, name), getattr(after, name), BOUNDS[name]
        if abs(new / old - 1) >= 0.01:
            moves.append(Move(name, old, new, new <= bound.low * 1.001 or new >= bound.high * 0.999))
    return sorted(moves, key=lambda m: -abs(np.log(m.after / m.before)))


def _spans(rows: Sequence[Measurement]) -> dict[str, tuple[float, float]]:
    values = {
        "prompt": [row.prompt for row in rows],
        "output": [row.output for row in rows],
        "concurrency": [row.concurrency for row in rows],
        "gpus": [float(row.decode.layout.gpus) for row in rows],
    }
    return {name: (min(found), max(found)) for name, found in values.items()}


def _sum(score: Score) -> float:
    return sum(each.mean for each in (score.ttft, score.tpot) if each is not None)
