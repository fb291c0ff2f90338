"""How the cost of one start grows with nodes, queues and waiting jobs: a table, fitted exponents, a plot (SVG).

    python bench/growth.py [PLOT.svg]      PLOT.svg is build/growth.svg unless given

A cluster is full and stays so: a running job ends, the queue runs a cycle, again. The cost is CPU time per started job,
cycles included that start none. The exponent is the slope of its logarithm over that of the size: with 0 a start costs
the same at every size, with 1 it costs in proportion, and a whole simulation then grows with the square.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path

import numpy as np
from queueing import crowded

from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.policies import Backfill, Policy
from clusterwright.queueing.state import State

POLICIES = {"best effort": Policy(), "EASY": Policy(backfill=Backfill.EASY)}
#: What grows → (its sizes, what stays: queues, waiting jobs, nodes).
AXES: dict[str, tuple[Sequence[int], dict[str, int]]] = {
    "nodes": ((64, 256, 1024, 4096, 12_500), {"queues": 10, "waiting": 2000}),
    "queues": ((1, 10, 100, 1000), {"waiting": 5000, "count": 500}),
    "waiting jobs": ((100, 1000, 10_000, 50_000), {"queues": 10, "count": 500}),
}
ARGUMENT = {"nodes": "count", "queues": "queues", "waiting jobs": "waiting"}
#: CPU seconds that one point is measured for, and most ends in it.
POINT_S, ENDS = 2.0, 2000
COLORS = {"best effort": "#1f77b4", "EASY": "#d62728"}
WIDTH, HEIGHT, MARGIN = 300, 260, 52


@dataclass(frozen=True)
class Curve:
    """Cost of a start in CPU ms by size."""

    axis: str
    policy: str
    sizes: tuple[int, ...]
    costs_ms: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Least squares over the logarithms."""
        return float(np.polyfit(np.log10(self.sizes), np.log10(self.costs_ms), 1)[0])


def cost_ms(state: State) -> float:
    """CPU ms per start while jobs end one after the other, drawn with a fixed seed."""
    rng = np.random.Generator(np.random.PCG64(9))
    running, started, spent, now_s = list(state.running), 0, 0.0, 1e6
    for _ in range(ENDS):
        at = int(rng.integers(len(running)))
        running[at], running[-1] = running[-1], running[at]
        now_s += 1.0
        begin = time.process_time()
        state.release(running.pop(), now_s)
        starts = run_cycle(state, now_s).starts
        spent += time.process_time() - begin
        running += [start.request.id for start in starts]
        started += len(starts)
        if spent > POINT_S or not running:
            break
    return 1000 * spent / max(1, started)


def measure(axis: str, policy: str) -> Curve:
    sizes, fixed = AXES[axis]
    costs = []
    for size in sizes:
        arguments = {**fixed, ARGUMENT[axis]: size}
        costs.append(cost_ms(crowded(policy=POLICIES[policy], **arguments)))
        print(f"{axis:<14} {policy:<12} {size:>8,} {costs[-1]:>12.3f}", flush=True)
    return Curve(axis, policy, tuple(sizes), tuple(costs))


def plot(curves: Sequence[Curve]) -> str:
    """One panel per axis, both scales logarithmic, with its own text."""
    low = min(log10(c) for curve in curves for c in curve.costs_ms)
    high = max(log10(c) for curve in curves for c in curve.costs_ms)
    bottom, top = int(np.floor(low)), int(np.ceil(high)) + (low == high)
    parts = []
    for number, axis in enumerate(AXES):
        of_axis = [curve for curve in curves if curve.axis == axis]
        left, right = (log10(bound) for bound in (AXES[axis][0][0], AXES[axis][0][-1]))
        x0, y0 = MARGIN + number * (WIDTH + MARGIN), MARGIN / 2 + HEIGHT
        parts.append(f'<path d="M{x0} {MARGIN / 2}V{y0}H{x0 + WIDTH}" fill="none" stroke="#444"/>')
        parts.append(f'<text x="{x0 + WIDTH / 2}" y="{y0 + 34}" text-anchor="middle">{axis}</text>')
        for power in range(bottom, top + 1):
            y = y0 - HEIGHT * (power - bottom) / (top - bottom)
            parts.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
            parts.append(f'<path d="M{x0} {y:.1f}h{WIDTH}" stroke="#ddd"/>')
        for size in AXES[axis][0]:
            x = x0 + WIDTH * (log10(size) - left) / (right - left)
            parts.append(f'<text x="{x:.1f}" y="{y0 + 16}" text-anchor="middle">{size:,}</text>')
        for row, curve in enumerate(of_axis):
            points = [
                (x0 + WIDTH * (log10(s) - left) / (right - left), y0 - HEIGHT * (log10(c) - bottom) / (top - bottom))
                for s, c in zip(curve.sizes, curve.costs_ms, strict=True)
            ]
            color, path = COLORS[curve.policy], " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
            label = f"{curve.policy}: exponent {curve.exponent:.2f}"
            parts.append(f'<text x="{x0 + 10}" y="{MARGIN / 2 + 14 + 16 * row}" fill="{color}">{label}</text>')
    whole = MARGIN + len(AXES) * (WIDTH + MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{HEIGHT + 90}" font-family="sans-serif"'
    said = "CPU ms per started job on a full cluster (both scales logarithmic)"
    title = f'<text x="{MARGIN}" y="{HEIGHT + 82}">{said}</text>'
    return "\n".join(
        [f'{head} font-size="12">', '<rect width="100%" height="100%" fill="#fff"/>', *parts, title, "</svg>\n"]
    )


def main(arguments: Sequence[str]) -> None:
    target = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "build" / "growth.svg"
    print(f"{'grows':<14} {'policy':<12} {'size':>8} {'ms per start':>12}")
    curves = [measure(axis, policy) for axis in AXES for policy in POLICIES]
    print(f"\n{'grows':<14} {'policy':<12} exponent")
    for curve in curves:
        print(f"{curve.axis:<14} {curve.policy:<12} {curve.exponent:>8.2f}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(plot(curves))
    print(f"\nplot: {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
