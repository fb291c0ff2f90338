"""The search for inference: the best layout, the ranked table, fronts, why not, and what popular layouts lost by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.plan.searching.columns import Floats, Ints, gpus, layout_at
from clusterwright.plan.searching.fronts import front, order
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving_columns import Judged, judge
from clusterwright.plan.searching.serving_reasons import explain, popular

if TYPE_CHECKING:
    from clusterwright.plan.searching.disaggregated import Split

#: Constants of an engine that nobody measured on this GPU.
PRIOR: Final = Constants()


@dataclass(frozen=True)
class ServingRow:
    """One possible layout at its load.

    Args:
        memory: the engine's plan, with the command line that realises it.
        concurrency: requests in flight of one replica at the load; ttft_s, tpot_s: that they meet, at the wanted
            quantile (see `open_loop` and `closed_loop`). requests_s: that one replica carries within the targets.
        needed: replicas for the load; replicas: with those that may be lost. gpus, nodes: of all of them; charged_gpus
            count what is left over on their nodes.
        gpu_h_per_mtok: charged GPU-hours per million output tokens.
        cost_per_h, cost_per_mtok_output, cost_per_mtok_total: money; None without a price. The last counts prompt
            tokens as well as output tokens.
        domain_gpus, domain_nodes: that stop when one node fails.
        kv_tokens: that the caches of one replica hold. max_context: longest sequence of one request.
    """

    layout: Layout
    memory: EngineMemory
    concurrency: float
    ttft_s: float
    tpot_s: float
    requests_s: float
    needed: int
    replicas: int
    gpus: int
    charged_gpus: float
    nodes: int
    gpu_h_per_mtok: float
    cost_per_h: float | None
    cost_per_mtok_output: float | None
    cost_per_mtok_total: float | None
    domain_gpus: int
    domain_nodes: int
    kv_tokens: int
    max_context: int


@dataclass(frozen=True)
class WhyNot:
    """Why a layout is not the best.

    Args:
        reason: NONE where it is possible, and then `text` says by how much it loses, if it does.
        row: its figures where it is possible.
    """

    name: str
    layout: Layout
    reason: Reason
    text: str
    row: ServingRow | None


#: Reasons of layouts that fit the GPU's memory.
FITTING: Final = (Reason.NONE, Reason.TTFT, Reason.TPOT, Reason.LOAD)
#: Columns that fronts may be drawn over → whether more is better.
AXES: Final[dict[str, bool]] = {
    "gpu_h_per_mtok": False, "tpot_s": False, "ttft_s": False, "gpus": False, "charged_gpus": False,
    "domain_gpus": False, "tokens_s_per_gpu": True, "max_context": True, "kv_tokens": True,
}  # fmt: skip


@dataclass(frozen=True)
class ServingSearch:
    """Answers of one search.

    Args:
        judged: every layout that was tried, as columns.
        constants: of the engine's speed.
    """

    question: ServingQuestion
    judged: Judged
    constants: Constants

    @cached_property
    def ranked(self) -> Ints:
        """Positions of possible layouts, best first."""
        return order(self._keys(), np.flatnonzero(self.judged.possible))

    @property
    def best(self) -> ServingRow | None:
        """The best layout, None where none is possible."""
        return self.row(int(self.ranked[0])) if len(self.ranked) else None

    def table(self, count: int | None = None) -> tuple[ServingRow, ...]:
        """Possible layouts, best first."""
        return tuple(self.row(int(i)) for i in self.ranked[:count])

    def pareto(self, first: str, second: str) -> tuple[ServingRow, ...]:
        """Layouts that no other beats in both figures, the best of the first one first.

        Args:
            first, second: names from AXES, such as gpu_h_per_mtok × tpot_s, tokens_s_per_gpu × tpot_s, gpus ×
                max_context.
        """
        found = front(self._axis(first), self._axis(second), np.flatnonzero(self.judged.possible))
        return tuple(self.row(int(i)) for i in found)

    def why_not(self, layout: Layout, name: str = "") -> WhyNot:
        """Why a layout is not the best; any layout may be asked for, not only those that were tried."""
        at = self.judged.position(layout)
        judged = judge(self.question, self.constants, (layout,)) if at is None else self.judged.only(at)
        reason = Reason(int(judged.reason[0]))
        row = _row(self.question, judged, 0) if reason == Reason.NONE else None
        best = self.best
        text = explain(self.question, layout, judged, row, best)
        return WhyNot(name or str(layout), layout, reason, text, row)

    @cached_property
    def nearest(self) -> ServingRow | None:
        """The layout that fits and comes closest to the targets: with the lowest latencies without other load."""
        rows = np.flatnonzero(np.isin(self.judged.reason, [int(reason) for reason in FITTING]))
        if not len(rows):
            return None
        first, each = self.judged.first_ttft_s[rows], self.judged.first_tpot_s[rows]
        over = np.maximum(_over(first, self.question.ttft_s), _over(each, self.question.tpot_s))
        over = np.maximum(over, 1e-9) * (1 + 1e-6 * gpus(self.judged.sizes)[rows])
        return self.row(int(rows[int(np.nanargmin(over))]))

    def losers(self) -> tuple[WhyNot, ...]:
        """Popular layouts that are not the best, with the reason in numbers."""
        best = self.best
        asked = [(name, layout) for name, layout in popular(self.question) if best is None or layout != best.layout]
        return tuple(self.why_not(layout, name) for name, layout in asked)

    @cached_property
    def split(self) -> Split | None:
        """Prefill and decode on workers of their own, the cheapest; None where that is not possible."""
        from clusterwright.plan.searching.disaggregated import split_service  # few ask

        return split_service(self.question, self.constants, self.judged)

    def reasons(self) -> dict[Reason, int]:
        """How many layouts each reason excludes."""
        # np.unique would import masked arrays, which takes longer than all counting here.
        counts = np.bincount(self.judged.reason)
        return {Reason(code): int(count) for code, count in enumerate(counts) if count}

    def row(self, position: int) -> ServingRow:
        """Figures of a possible layout by its position in the columns."""
        return _row(self.question, self.judged, position)

    def _axis(self, name: str) -> Floats:
        if name not in AXES:
            raise ValueError(f"no column {name}; of {', '.join(AXES)}")
        if name == "tokens_s_per_gpu":
            values: Floats = self._tokens_s_per_gpu()
        else:
            values = self.judged.figures[name]
        return -values if AXES[name] else values

    def _tokens_s_per_gpu(self) -> Floats:
        return self.judged.requests_s * self.question.lengths.mean_out / gpus(self.judged.sizes)

    def _keys(self) -> tuple[Floats, ...]:
        j = self.judged
        cost, each, wide = j.gpu_h_per_mtok, j.tpot_s, gpus(j.sizes).astype(np.float64)
        return {
            "cost": (cost, each, wide),
            "latency": (each, j.ttft_s, cost),
            "throughput": (-self._tokens_s_per_gpu(), each, wide),
            "domain": (j.domain_gpus, j.domain_nodes, cost, each),
        }[self.question.goal]


def search_serving(question: ServingQuestion, constants: Constants = PRIOR) -> ServingSearch:
    """All layouts of a model on a pool, judged and ranked.

    Args:
        constants: of the engine on this GPU, as calibrated.

    Raises:
        ValueError: if no such engine or weight format is modelled.
    """
    return ServingSearch(question, judge(question, constants), constants)


def _over(times: Floats, wanted: float | None) -> Floats:
    """How many times a target they are: 0 where there is none, infinite where a layout does not keep up at all."""
    return np.where(np.isfinite(times), times / wanted if wanted else 0.0, np.inf)


def _row(question: ServingQuestion, judged: Judged, row: int) -> ServingRow:
    f = {name: float(values[row]) for name, values in judged.figures.items()}
    price, lengths = question.pool.price_per_gpu_h, question.lengths
    per_output = None if price is None else price * f["gpu_h_per_mtok"]
    share = lengths.mean_out / (lengths.mean_in + lengths.mean_out)
    return ServingRow(
        layout=layout_at(judged.sizes, row),
        memory=judged.memories[row],
        concurrency=f["concurrency"],
        ttft_s=f["ttft_s"],
        tpot_s=f["tpot_s"],
        requests_s=f["requests_s"],
        needed=int(f["needed"]),
        replicas=int(f["replicas"]),
        gpus=int(f["gpus"]),
        charged_gpus=f["charged_gpus"],
        nodes=int(f["nodes"]),
        gpu_h_per_mtok=f["gpu_h_per_mtok"],
        cost_per_h=None if price is None else price * f["charged_gpus"],
        cost_per_mtok_output=per_output,
        cost_per_mtok_total=None if per_output is None else per_output * share,
        domain_gpus=int(f["domain_gpus"]),
        domain_nodes=int(f["domain_nodes"]),
        kv_tokens=int(f["kv_tokens"]),
        max_context=int(f["max_context"]),
    )
