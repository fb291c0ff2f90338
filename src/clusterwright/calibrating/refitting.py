"""A user's measurements → constants of each engine and GPU, with the error before and after and on rows held out.

Rows of one engine, version and GPU make one calibration. It starts from the constants that the catalogue has for them
and is pulled to those where the rows say nothing, so few rows move little. Every fourth row (by layout, lengths
and concurrency) is held out and predicted from the others, four times, so that each row is once; errors and bands are
of these predictions. What is written is then fitted to all rows. Fewer than LEAST rows, or rows at fewer than two
concurrencies, are not fitted: one point cannot part latency from rate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.calibrating.bands import Mode, ends, mode_of
from clusterwright.calibrating.fitting import Rule, constants_of_rows, fit
from clusterwright.calibrating.measurements import Left, Measurement
from clusterwright.calibrating.settings import Settings, predict
from clusterwright.model.calibrations import Factors, TimeBands
from clusterwright.physics.serving.constants import BOUNDS, NAMES, Array, Constants

#: Rows from which constants are fitted; every HELD_OUT-th is held out at a time.
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
        before, after: over all rows; `held` of each row predicted by a fit that did not see it.
        bands: from the same predictions, by mode.
        spans: (lowest, highest) of prompt, output, concurrency and gpus.
    """

    key: Key
    models: tuple[str, ...]
    rows: int
    constants: Constants
    before: Score
    after: Score
    held: Score
    bands: tuple[TimeBands, ...]
    moved: tuple[Move, ...]
    spans: dict[str, tuple[float, float]]
    notes: tuple[str, ...]

    @property
    def better(self) -> bool:
        """Whether rows are predicted no worse than before when held out, TTFT and TPOT together."""
        return _sum(self.held) <= _sum(self.before)


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
    everything = np.ones(len(settings.rows))
    whole = fit(settings, everything, prior, OWN)
    constants = whole.constants(key[0])
    old = {name: np.full(len(settings.rows), getattr(prior, name)) for name in NAMES}
    before = predict(settings, old)
    after = predict(settings, constants_of_rows(whole, settings))
    unseen = _unseen(settings, prior)
    return Refit(
        key,
        tuple(sorted({row.model for row in settings.rows})),
        len(settings.rows),
        constants,
        score(settings, before, everything),
        score(settings, after, everything),
        score(settings, unseen, everything),
        tuple(_bands(settings, unseen)),
        tuple(_moves(prior, constants)),
        _spans(settings.rows),
        tuple(dict.fromkeys(note for row in settings.rows for note in row.notes)),
    )


def _unseen(settings: Settings, prior: Constants) -> tuple[Array, Array]:
    """(TTFT, TPOT) of every row with constants fitted without it and every HELD_OUT-th of the others."""
    rows = settings.rows
    order = sorted(
        range(len(rows)), key=lambda i: (str(rows[i].decode), rows[i].prompt, rows[i].output, rows[i].concurrency)
    )
    ttft, tpot = np.full((2, len(rows)), np.nan)
    for first in range(HELD_OUT):
        out = np.zeros(len(rows))
        out[order[first::HELD_OUT]] = 1.0
        found, part = fit(settings, 1.0 - out, prior, OWN), settings.chosen(out)
        ttft[out > 0], tpot[out > 0] = predict(part, constants_of_rows(found, part))
    return ttft, tpot


def _bands(settings: Settings, unseen: tuple[Array, Array]) -> Iterator[TimeBands]:
    """Bands by mode; of few rows, from the lowest to the highest ratio."""
    modes: tuple[Mode, ...] = ("aggregated", "disaggregated")
    for mode in modes:
        own = np.array([mode_of(row) == mode for row in settings.rows])
        first, each = (
            _factors((measured / predicted)[own])
            for measured, predicted in ((settings.ttft_s, unseen[0]), (settings.tpot_s, unseen[1]))
        )
        if first or each:
            yield TimeBands(mode=mode, model="fitted", ttft=first, tpot=each)


def _factors(ratios: Array) -> Factors | None:
    known = ratios[np.isfinite(ratios)]
    if not len(known):
        return None
    low, high = ends(known)
    return Factors(low=low, high=high, rows=len(known), of="own measurements")


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
