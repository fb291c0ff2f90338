"""Inference on one machine: the best layout with its bands, and what every size of replica does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np

from clusterwright.catalogue.calibrations import closest
from clusterwright.model.calibrations import Calibration
from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.releases import NEWEST
from clusterwright.physics.engines.vendors import unserved
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.plan.fitting.bands import Band, SpeedBasis, speed_basis
from clusterwright.plan.fitting.carrying import all_parts, all_parts_at_peak, carried
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import HourPrice
from clusterwright.plan.fitting.wants import ServingWants, Wants
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.columns import gpus, layout_at
from clusterwright.plan.searching.questions import Lengths, ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import FITTING, ServingRow, ServingSearch, search_serving
from clusterwright.plan.searching.serving_columns import judge
from clusterwright.plan.searching.sizing import sized

#: holds: fits and meets what was asked. late: fits, but misses a target or the load. too big: no layout fits.
#: impossible: model, engine and machine do not go together. unknown: nothing can be said.
Verdict = Literal["holds", "late", "too big", "impossible", "unknown"]
#: Context that is planned for where none is stated: at least so many tokens, and twice prompt and output.
_CONTEXT: Final = 8192


@dataclass(frozen=True)
class ServingFit:
    """One machine's answer.

    Args:
        search: with its question. best: None where nothing holds.
        price: per GPU-hour, None where nobody gives one.
        slow, fast: factors on the requests that a replica carries when every step takes as long as at the ends of the
            band of TPOT, never less than the peaks allow; slow is 0 where a target is then missed.
        utilisation: share of the load that money is counted for.
        nearest: the layout that fits and comes closest, where none holds.
        said: why not, where the search does not tell.
    """

    machine: Machine
    search: ServingSearch
    verdict: Verdict
    basis: SpeedBasis
    price: HourPrice | None
    best: ServingRow | None = None
    slow: float = 1.0
    fast: float = 1.0
    utilisation: float = 1.0
    nearest: ServingRow | None = None
    said: str = ""

    @property
    def question(self) -> ServingQuestion:
        """As searched."""
        return self.search.question

    @property
    def constants(self) -> Constants:
        """Of the engine's speed."""
        return self.search.constants

    @property
    def refused(self) -> str:
        """Why the engine does not run on this GPU at all, "" where it does."""
        gpu, asked = self.machine.gpu, self.question
        release = asked.version or NEWEST[asked.engine]
        return unserved(asked.engine, gpu.vendor, gpu.compute_capability, release)

    @property
    def chosen(self) -> ServingRow:
        """The best layout.

        Raises:
            ValueError: nothing holds.
        """
        if self.best is None:
            raise ValueError(f"nothing holds on {self.machine.asked}")
        return self.best

    @property
    def ttft_s(self) -> Band:
        """Time to first token at the load."""
        return Band.within(self.chosen.ttft_s, self.basis.ttft)

    @property
    def tpot_s(self) -> Band:
        """Time per output token at the load."""
        return Band.within(self.chosen.tpot_s, self.basis.tpot)

    @property
    def requests_s(self) -> Band:
        """That one replica carries within the targets."""
        value = self.chosen.requests_s
        return Band(value, value * self.slow or None, value * self.fast)

    @property
    def carried_s(self) -> Band:
        """Requests per second that all replicas for the load carry within the targets."""
        return self.requests_s.times(self.chosen.needed)

    @property
    def tokens_s(self) -> Band:
        """Output tokens per second of one replica at what it carries."""
        return self.requests_s.times(self.question.lengths.mean_out)

    @property
    def needed(self) -> Band:
        """Replicas for the load, none lost."""
        best = self.chosen
        if self.question.rate is None and self.question.concurrency is None:
            return Band(best.needed, best.needed, best.needed)
        load = self.question.rate or best.requests_s * best.needed
        few = max(math.ceil(load / (best.requests_s * self.fast) - 1e-9), 1)
        many = max(math.ceil(load / (best.requests_s * self.slow) - 1e-9), 1) if self.slow else None
        return Band(best.needed, min(few, best.needed), None if many is None else max(many, best.needed))

    @property
    def replicas(self) -> Band:
        """With those that may be lost."""
        return self._of_needed("replicas")

    @property
    def gpus(self) -> Band:
        """Of all replicas."""
        return self.replicas.times(self.chosen.layout.gpus)

    @property
    def charged_gpus(self) -> Band:
        """GPUs that are paid for: with what replicas leave over on their nodes."""
        best = self.chosen
        return self.replicas.times(best.charged_gpus / best.replicas)

    @property
    def nodes(self) -> Band:
        """Whole nodes."""
        return self._of_needed("nodes")

    def _of_needed(self, name: str) -> Band:
        """A size by the replicas that the load needs; more of those may ask for fewer spares."""
        value, wide = float(getattr(self.chosen, name)), np.array([self.chosen.layout.gpus])
        ends = [
            None if needed is None else float(sized(self.question, np.array([needed]), np.ones(1), wide)[name][0])
            for needed in (self.needed.low, self.needed.high)
        ]
        low, high = (value if end is None else end for end in ends)
        return Band(value, min(value, low, high), None if ends[1] is None else max(value, low, high))

    @cached_property
    def context(self) -> Band:
        """The longest request; the model's own limit has no band where the cache is larger than it needs."""
        best, limit, share = self.chosen, self.question.decoder.max_context, self.chosen.memory.band.share
        if best.max_context >= limit and best.memory.kv_tokens / (1 + share) >= limit:
            return Band(best.max_context, best.max_context, best.max_context)
        return Band(best.max_context, best.max_context / (1 + share), min(best.max_context * (1 + share), limit))

    @property
    def places(self) -> Band:
        """Sequences of the planned length that the caches of one replica hold at once."""
        return Band.around(self.chosen.memory.max_concurrency, self.chosen.memory.band.share)

    @property
    def per_h(self) -> Band | None:
        """Money per hour of all GPUs that are paid for."""
        if self.price is None:
            return None
        charged, price = self.charged_gpus, self.price
        return Band(
            charged.value * price.value,
            (charged.low or charged.value) * price.low,
            None if charged.high is None else charged.high * price.high,
        )

    @property
    def per_mtok_out(self) -> Band | None:
        """Money per million output tokens, at the declared utilisation."""
        per_h, load = self.per_h, self.load_s
        if per_h is None:
            return None
        loaded = self.question.rate is not None or self.question.concurrency is not None
        fast, slow = (1.0, 1.0) if loaded else (self.fast, self.slow)
        unit = 1e6 / (load * self.question.lengths.mean_out * 3600 * self.utilisation)
        high = None if per_h.high is None or not slow else per_h.high * unit / slow
        return Band(per_h.value * unit, (per_h.low or 0.0) * unit / fast, high)

    @property
    def per_mtok(self) -> Band | None:
        """The same per million tokens, prompts counted like outputs."""
        out, own = self.per_mtok_out, self.question.lengths
        return None if out is None else out.times(own.mean_out / (own.mean_in + own.mean_out))

    @property
    def load_s(self) -> float:
        """Requests per second that are served."""
        best = self.chosen
        if self.question.rate is not None:
            return self.question.rate
        if self.question.concurrency is not None:
            return best.requests_s / best.concurrency * self.question.concurrency
        return best.requests_s * best.needed

    @cached_property
    def sizes(self) -> tuple[ServingRow, ...]:
        """The best layout of every number of GPUs a replica, fewest first."""
        wide = gpus(self.search.judged.sizes)
        found = dict[int, int]()
        for position in self.search.ranked:
            found.setdefault(int(wide[position]), int(position))
        return tuple(self.search.row(found[count]) for count in sorted(found))

    @cached_property
    def missed(self) -> str:
        """What stands in the way of the layout that comes closest; "" where one holds."""
        if self.best is not None:
            return ""
        if self.said:
            return self.said
        if self.nearest is not None:
            return f"{self.nearest.layout}: {self.search.why_not(self.nearest.layout).text}"
        wide, reason = gpus(self.search.judged.sizes), self.search.judged.reason
        closest = int(reason.max(initial=0))
        rows = np.flatnonzero(reason == closest)
        if closest != Reason.MEMORY:
            return self.search.why_not(layout_at(self.search.judged.sizes, int(rows[0]))).text
        largest = int(rows[int(np.argmax(wide[rows]))])
        count = int(wide[largest])
        return f"{count} GPU{'s' * (count != 1)}: {'; '.join(self.search.judged.memories[largest].why)}"


def question_of(decoder: Decoder, machine: Machine, wants: Wants, price: HourPrice | None) -> ServingQuestion:
    """The search's question; targets without a load ask for what one replica carries within them."""
    own = wants.serving
    bare = own.rate is None and own.concurrency is None and own.ttft_s is None and own.tpot_s is None
    currency = "USD" if price is None else price.currency
    return ServingQuestion(
        decoder,
        machine.pool(wants.gpus, None if price is None else price.value, currency),
        Lengths(own.mean_in, own.mean_out, own.p95_in, own.p95_out, own.reused_share),
        engine=own.engine,
        version=own.version,
        weights=own.weights,
        kv_format=own.kv_format,
        rate=own.rate,
        concurrency=own.concurrency,
        ttft_s=own.ttft_s,
        tpot_s=own.tpot_s,
        quantile=None if bare else own.quantile,
        survive_nodes=own.survive_nodes,
        max_model_len=context_of(decoder, own),
        memory_share=own.memory_share,
        goal=own.goal,
    )


def context_of(decoder: Decoder, wants: ServingWants) -> int:
    """Tokens of the longest sequence: as stated, else room for prompts and outputs that are not average."""
    if wants.context is not None:
        return wants.context
    long = math.ceil((wants.p95_in or wants.mean_in) + (wants.p95_out or wants.mean_out))
    wanted = max(_CONTEXT, 1 << math.ceil(math.log2(2 * long)))
    return max(min(wanted, decoder.max_context), long)


def fit_serving(
    decoder: Decoder, machine: Machine, wants: Wants, price: HourPrice | None, known: Sequence[Calibration]
) -> ServingFit:
    """Search one machine and put bands around what is found."""
    question = question_of(decoder, machine, wants, price)
    constants, _ = calibrated(question, known)
    return answer(machine, wants, price, search_serving(question, constants), known)


def answer(
    machine: Machine, wants: Wants, price: HourPrice | None, search: ServingSearch, known: Sequence[Calibration]
) -> ServingFit:
    """The answer of a search with the bands of its best layout."""
    best, question = search.best, search.question
    found, wider = calibrated(question, known)[1], closest(known, question.engine)
    basis = speed_basis(found, wider, question.engine, machine.gpu.name, question.decoder.name, _spans(question, best))
    plain = ServingFit(machine, search, _verdict(search), basis, price, best, utilisation=wants.serving.utilisation)
    refused = plain.refused
    if refused:
        return replace(plain, verdict="impossible", best=None, said=refused)
    if best is None:
        return replace(plain, nearest=search.nearest)
    short, long = basis.tpot
    cases = [{}, all_parts(long), all_parts_at_peak(short, search.constants)]
    now, slow, fast = carried(question, search.constants, best.layout, cases)
    return replace(plain, slow=slow / now if now else 0.0, fast=fast / now if now else 1.0)


def again(search: ServingSearch, layout: Layout, question: ServingQuestion) -> ServingRow | None:
    """One layout under another question; None where it is then not possible."""
    judged = judge(question, search.constants, (layout,))
    if judged.reason[0] != Reason.NONE:
        return None
    return ServingSearch(question, judged, search.constants).row(0)


def _verdict(search: ServingSearch) -> Verdict:
    reasons = search.reasons()
    if Reason.NONE in reasons:
        return "holds"
    if any(reason in reasons for reason in FITTING):
        return "late"
    return "too big" if Reason.MEMORY in reasons else "impossible"


def _spans(question: ServingQuestion, row: ServingRow | None) -> dict[str, float]:
    found = {"prompt": question.lengths.mean_in, "output": question.lengths.mean_out}
    if row is not None and math.isfinite(row.concurrency):
        found |= {"concurrency": row.concurrency, "gpus": float(row.layout.gpus)}
    return found
