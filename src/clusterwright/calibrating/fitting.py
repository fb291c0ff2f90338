"""Constants from measurements: robust, regularised least squares in logarithms, with bounds.

A constant of a row is prior × engine, each factor e^δ with δ pulled to 0 by its spread: few rows move little, and an
engine that no row showed keeps the common value. Residuals are ln(predicted ÷ measured) of TTFT and TPOT, weighted down
beyond `Rule.soft` (Huber), so that mislabelled rows do not pull. Gauss–Newton with Levenberg damping; derivatives by
differences of one constant at a time, which are shared by all levels.

GPUs differ by their peaks alone. A factor per GPU, and one per release, were fitted once and left out: published runs
have hardly a model in common between two GPUs or two releases, so that such a factor takes up what the models' own
errors are, and then ranks machines by it. Rows of a model that was not fitted were predicted worse with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.calibrating.settings import Settings, predict
from clusterwright.physics.serving.constants import BOUNDS, NAMES, Array, Constants

_STEP: Final = 0.02
LEVELS: Final = ("all", "engine")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a fit weighs things.

    Args:
        soft: |ln error| up to which residuals count in full.
        scatter: |ln error| of a row that is as telling as one prior; rows of one run of measurements are not
            independent, so it is larger than what remains of them.
        ttft: weight of TTFT rows beside TPOT rows, which are less scattered.
        engine: spread of an engine's factor as a share of the constant's own.
        rounds: at most.
        levels: that may differ.
    """

    soft: float = 0.20
    scatter: float = 0.70
    ttft: float = 0.80
    engine: float = 0.6
    rounds: int = 8
    levels: tuple[str, ...] = LEVELS


@dataclass(frozen=True)
class Fit:
    """Factors found: level → (key → (constant → δ)); level "all" has the key ""."""

    prior: Constants
    deltas: Mapping[str, Mapping[str, Mapping[str, float]]]

    def constants(self, engine: str) -> Constants:
        """Constants of an engine; one without rows has the common ones."""
        values = {}
        for name in NAMES:
            moved = sum(self.deltas.get(level, {}).get(key, {}).get(name, 0.0) for level, key in keys_of(engine))
            bound = BOUNDS[name]
            values[name] = float(min(max(getattr(self.prior, name) * np.exp(moved), bound.low), bound.high))
        return Constants(**values)


def keys_of(engine: str) -> tuple[tuple[str, str], ...]:
    """(level, key) of a row, from the widest."""
    return ("all", ""), ("engine", engine)


def fit(settings: Settings, use: Array, prior: Constants, rule: Rule | None = None) -> Fit:
    """Constants that the rows marked in `use` support, starting from `prior`.

    Args:
        use: (rows,) weights; 0 leaves a row out.
    """
    return _Search(settings.chosen(use), use[use > 0], prior, rule or Rule()).run()


class _Search:
    def __init__(self, settings: Settings, use: Array, prior: Constants, rule: Rule) -> None:
        self.settings, self.use, self.prior, self.rule = settings, use, prior, rule
        self.columns: list[tuple[str, str, str]] = []
        self.members: list[Array] = []
        self.spreads: list[float] = []
        labels = [dict(keys_of(r.engine)) for r in settings.rows]
        for level in rule.levels:
            share = {"all": 1.0, "engine": rule.engine}[level]
            for key in sorted({label[level] for label, u in zip(labels, use, strict=True) if u > 0}):
                member = np.array([label[level] == key for label in labels], dtype=np.float64)
                for name in NAMES:
                    self.columns.append((level, key, name))
                    self.members.append(member)
                    self.spreads.append(BOUNDS[name].spread * share)
        self.spread = np.array(self.spreads)
        self.measured = np.concatenate([settings.ttft_s, settings.tpot_s])
        known = np.isfinite(self.measured)
        weight = np.concatenate([use * rule.ttft, use]) * known
        self.weight = np.sqrt(weight) / rule.scatter
        self.target = np.log(np.where(known, self.measured, 1.0))

    def run(self) -> Fit:
        theta, damping = np.zeros(len(self.columns)), 1e-2
        residual = self._residual(theta)
        cost = self._cost(theta, residual)
        for _ in range(self.rule.rounds):
            jacobian = self._jacobian(theta, residual)
            for _ in range(6):
                step = self._step(theta, residual, jacobian, damping)
                new = self._residual(theta + step)
                value = self._cost(theta + step, new)
                if value < cost:
                    break
                damping *= 6
            else:
                break
            gain = cost - value
            theta, residual, cost, damping = theta + step, new, value, damping / 4
            if gain < 1e-4 * cost:
                break
        return self._result(theta)

    def _constants(self, theta: Array) -> dict[str, Array]:
        moved = {name: np.zeros(len(self.settings.rows)) for name in NAMES}
        for (_, _, name), member, value in zip(self.columns, self.members, theta, strict=True):
            moved[name] += member * value
        return {
            name: np.clip(getattr(self.prior, name) * np.exp(moved[name]), BOUNDS[name].low, BOUNDS[name].high)
            for name in NAMES
        }

    def _residual(self, theta: Array, nudged: str | None = None) -> Array:
        constants = self._constants(theta)
        if nudged is not None:
            constants[nudged] = constants[nudged] * np.exp(_STEP)
        ttft, tpot = predict(self.settings, constants)
        return np.asarray(np.log(np.concatenate([ttft, tpot])) - self.target)

    def _jacobian(self, theta: Array, residual: Array) -> Array:
        slopes = {name: (self._residual(theta, name) - residual) / _STEP for name in NAMES}
        twice = [np.concatenate([m, m]) for m in self.members]
        return np.stack([slopes[name] * m for (_, _, name), m in zip(self.columns, twice, strict=True)], axis=1)

    def _huber(self, residual: Array) -> Array:
        size = np.abs(residual)
        return np.where(size > self.rule.soft, np.sqrt(self.rule.soft / np.maximum(size, 1e-12)), 1.0)

    def _cost(self, theta: Array, residual: Array) -> float:
        size, soft = np.abs(residual), self.rule.soft
        loss = np.where(size > soft, soft * (2 * size - soft), size**2)
        return float((self.weight**2 * loss).sum() + ((theta / self.spread) ** 2).sum())

    def _step(self, theta: Array, residual: Array, jacobian: Array, damping: float) -> Array:
        weight = (self.weight * self._huber(residual))[:, None]
        weighted = weight * jacobian
        curve = weighted.T @ weighted + np.diag(1 / self.spread**2)
        slope = weighted.T @ (weight[:, 0] * residual) + theta / self.spread**2
        curve[np.diag_indices_from(curve)] *= 1 + damping
        return np.asarray(-np.linalg.solve(curve, slope))

    def _result(self, theta: Array) -> Fit:
        deltas: dict[str, dict[str, dict[str, float]]] = {}
        for (level, key, name), value in zip(self.columns, theta, strict=True):
            deltas.setdefault(level, {}).setdefault(key, {})[name] = float(value)
        return Fit(self.prior, deltas)


def constants_of_rows(found: Fit, settings: Settings) -> dict[str, Array]:
    """Constants of a fit as columns, one value per row."""
    held = [found.constants(r.engine) for r in settings.rows]
    return {name: np.array([getattr(c, name) for c in held]) for name in NAMES}


def errors(predicted: Array, measured: Sequence[float] | Array) -> Array:
    """|predicted ÷ measured − 1|."""
    return np.asarray(np.abs(predicted / np.asarray(measured) - 1))
