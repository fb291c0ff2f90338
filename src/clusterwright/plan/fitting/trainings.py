"""Training on one machine: the best layout of a job, its band, days and money; what popular layouts lost by."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.physics.failures import RSC1_PER_1000_NODE_DAYS
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.physics.training.calibration import CALIBRATED
from clusterwright.physics.training.memory import BAND
from clusterwright.physics.training.recipes import Recipe, Sharding
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.house import Audience
from clusterwright.plan.fitting.inverses import limit_of
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import HourPrice, price_of
from clusterwright.plan.fitting.ranked import Ranked
from clusterwright.plan.fitting.wants import TrainingWants, Wants
from clusterwright.plan.searching.machines import reported_gib
from clusterwright.plan.searching.questions import Losses, TrainingQuestion
from clusterwright.plan.searching.reasons import WORDS, Reason
from clusterwright.plan.searching.training import TrainingRow, TrainingSearch, WhyNot, search_training

TrainingVerdict = Literal["holds", "late", "too big", "impossible", "unknown"]
#: Tokens of a global batch where none is stated: what models of 7B to 70B were trained with (Llama 2 and 3: 4 M).
BATCH_TOKENS: Final = 2**22
#: Until a job works again after a failure, s; B/s of storage per node that checkpoints are written at (DGX reference
#: node, "good").
RESTART_S: Final = 600.0
WRITE_BYTES_S: Final = 2e9
#: Numbers of GPUs below a limit that are tried.
_TRIES: Final = 5
#: Precision → field of `DenseRates` that must be there.
_UNITS: Final = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
_SHARDING: Final[dict[str, Sharding]] = {"megatron": "distributed", "torchtitan": "fsdp", "deepspeed": "zero3"}


@dataclass(frozen=True)
class TrainingFit:
    """One machine's answer.

    Args:
        search: None where the machine cannot train at all. best: None where nothing holds.
        missed: why not, in words.
        tokens: that a budget buys, where one was given.
    """

    machine: Machine
    verdict: TrainingVerdict
    price: HourPrice | None
    search: TrainingSearch | None = None
    best: TrainingRow | None = None
    missed: str = ""
    tokens: float | None = None

    @property
    def chosen(self) -> TrainingRow:
        """The best layout.

        Raises:
            ValueError: nothing holds.
        """
        if self.best is None:
            raise ValueError(f"nothing holds on {self.machine.asked}")
        return self.best

    @property
    def tokens_s(self) -> Band:
        """Tokens per second of the job, without losses."""
        low, high = self.chosen.step.band
        return Band(self.chosen.tokens_s, self.chosen.tokens_s * low, self.chosen.tokens_s * high)

    @property
    def days(self) -> Band | None:
        """To the target, with what checkpoints and failures take."""
        days, (low, high) = self.chosen.days, self.chosen.step.band
        return None if days is None else Band(days, days / high, days / low)

    @property
    def memory_gib(self) -> Band:
        """Of the fullest GPU."""
        low, high = self.chosen.memory.band
        return Band(self.chosen.memory_gib, self.chosen.memory_gib * low, self.chosen.memory_gib * high)

    @property
    def tighter(self) -> TrainingRow | None:
        """A faster layout that fits only if memory is not above its estimate; None where the chosen one is fastest."""
        found = None if self.search is None else self.search.best
        return None if found is None or found.step_s >= self.chosen.step_s * 0.999 else found

    @property
    def tight(self) -> bool:
        """Whether the chosen layout does not fit at the upper end of the memory's band."""
        have = reported_gib(self.machine.gpu)
        return self.chosen.memory_gib * BAND[1] > have

    @property
    def per_h(self) -> float | None:
        """Money per hour of the job."""
        return None if self.price is None else self.price.value * self.chosen.gpus

    @property
    def per_mtok(self) -> Band | None:
        """Money per million tokens."""
        if self.price is None:
            return None
        hours, (low, high) = self.chosen.gpu_h_per_mtok, self.chosen.step.band
        return Band(hours * self.price.value, hours / high * self.price.low, hours / low * self.price.high)

    @property
    def cost(self) -> Band | None:
        """Money of the whole run."""
        days = self.days
        if self.price is None or days is None:
            return None
        hours = self.chosen.gpus * 24
        return Band(
            days.value * hours * self.price.value,
            (days.low or 0.0) * hours * self.price.low,
            (days.high or 0.0) * hours * self.price.high,
        )


@dataclass(frozen=True)
class TrainingAnswer(Ranked[TrainingFit]):
    """Training.

    Args:
        fits: best first. lost, remedies: of the first.
    """

    name: str
    decoder: Decoder
    wants: Wants
    fits: tuple[TrainingFit, ...]
    lost: tuple[WhyNot, ...] = ()
    remedies: tuple[str, ...] = ()
    audience: Audience = "internal"


def answer_training(
    name: str,
    decoder: Decoder,
    machines: Sequence[Machine],
    wants: Wants,
    catalogue: Catalogue,
    today: datetime.date,
    audience: Audience = "internal",
) -> TrainingAnswer:
    """Search every machine and rank them: those that hold first, then by money, else by GPU-hours."""
    published = audience == "internal"
    prices = [price_of(m, wants.hours, catalogue, today, published=published) for m in machines]
    fits = [fit_training(decoder, m, wants, price) for m, price in zip(machines, prices, strict=True)]
    money = all(fit.price is not None for fit in fits if fit.best is not None)
    ranked = tuple(sorted(fits, key=lambda fit: _key(fit, money)))
    first = ranked[0]
    lost = first.search.losers() if published and first.search is not None and first.best is not None else ()
    return TrainingAnswer(name, decoder, wants, ranked, lost, tuple(_remedies(decoder, first, wants)), audience)


def _key(fit: TrainingFit, money: bool) -> tuple[int, float, str]:
    order = ("holds", "late", "too big", "impossible", "unknown").index(fit.verdict)
    if fit.best is None:
        return order, math.inf, fit.machine.asked
    hours = fit.best.gpu_h_per_mtok
    return order, hours * fit.price.value if money and fit.price else hours, fit.machine.asked


def fit_training(decoder: Decoder, machine: Machine, wants: Wants, price: HourPrice | None) -> TrainingFit:
    """Search one machine; a budget becomes GPUs (per month) or tokens (once)."""
    plain = TrainingFit(machine, "unknown", price)
    gpus = wants.gpus
    own = wants.training or TrainingWants()
    if getattr(machine.gpu.dense, _UNITS[own.precision]) is None:
        known = [name for name, unit in _UNITS.items() if getattr(machine.gpu.dense, unit) is not None]
        missed = (
            f"{machine.gpu.name} has no unit for {own.precision}; it has {', '.join(known) or 'none of those known'}"
        )
        return replace(plain, verdict="impossible", missed=missed)
    budget = wants.budget
    if budget is not None:
        if price is None or price.currency != budget.currency:
            return replace(plain, missed=f"no price in {budget.currency} of {machine.asked}; give --price")
        if budget.monthly:
            node = machine.gpus_per_node
            gpus = math.floor(budget.value / HOURS_PER_MONTH / price.value / node + 1e-9) * node
            if gpus < 1:
                return replace(plain, verdict="too big", missed=f"the budget buys no node of {node} GPUs")
    if wants.power_w is not None:
        limit = limit_of(machine, replace(wants, budget=None), price)
        if limit.nodes is None:
            return replace(plain, missed=limit.missing)
        gpus = min(gpus or limit.nodes * machine.gpus_per_node, limit.nodes * machine.gpus_per_node)
        if gpus < 1:
            return replace(plain, verdict="too big", missed="the power does not feed one node")
    sizes = _sizes(gpus, machine) if wants.inverse else [gpus]
    try:
        search = _largest(question_of(decoder, machine, wants, size, price) for size in sizes)
    except ValueError as error:
        return replace(plain, missed=str(error))
    best = _roomy(search)
    if best is None:
        return replace(plain, verdict=_verdict(search), search=search, missed=_missed(search))
    tokens = None
    if budget is not None and best.cost_per_mtok:
        tokens = _bought(budget.value, budget.monthly, best)
    return replace(plain, verdict="holds", search=search, best=best, tokens=tokens)


def _sizes(gpus: int | None, machine: Machine) -> list[int | None]:
    """Numbers of GPUs to try under a limit: the limit itself, then 1 or 3 times a power of two nodes, largest first."""
    if gpus is None:
        return [None]
    node = machine.gpus_per_node
    nodes = {base << i for base in (1, 3) for i in range(gpus.bit_length()) if (base << i) * node <= gpus}
    return [gpus, *sorted((node * count for count in nodes if node * count < gpus), reverse=True)[:_TRIES]]


def _largest(questions: Iterable[TrainingQuestion]) -> TrainingSearch:
    """The first question that has an answer, else the last."""
    search = None
    for question in questions:
        search = search_training(question)
        if search.best is not None:
            return search
    assert search is not None
    return search


def _roomy(search: TrainingSearch) -> TrainingRow | None:
    """The best layout that fits at the upper end of the memory's band, too; else the best there is."""
    rows = search.ranked
    if not len(rows):
        return None
    have = reported_gib(search.question.pool.gpu)
    safe = rows[search.judged.memory_gib[rows] * BAND[1] <= have]
    return search.row(int(safe[0] if len(safe) else rows[0]))


def _bought(budget: float, monthly: bool, best: TrainingRow) -> float:
    """Tokens of one month, or of the whole budget."""
    if monthly:
        return best.tokens_s * best.goodput * HOURS_PER_MONTH * 3600
    return budget / (best.cost_per_mtok or math.inf) * 1e6


def question_of(
    decoder: Decoder, machine: Machine, wants: Wants, gpus: int | None, price: HourPrice | None
) -> TrainingQuestion:
    """The search's question with what is assumed."""
    own = wants.training or TrainingWants()
    currency = "USD" if price is None else price.currency
    nodes = max((gpus or machine.gpus_per_node) // machine.gpus_per_node, 1)
    return TrainingQuestion(
        decoder,
        machine.pool(gpus, None if price is None else price.value, currency),
        recipe_of(own),
        gpus,
        own.tokens,
        own.deadline_s,
        Losses(RSC1_PER_1000_NODE_DAYS, RESTART_S, WRITE_BYTES_S * nodes, asynchronous=True),
    )


def recipe_of(own: TrainingWants) -> Recipe:
    """How it is trained; micro-batch and recomputation are left to the search."""
    return Recipe(
        framework=own.framework,  # type: ignore[arg-type]
        sharding=_SHARDING[own.framework],
        precision=own.precision,  # type: ignore[arg-type]
        sequence=own.sequence,
        global_batch=own.global_batch or max(BATCH_TOKENS // own.sequence, 1),
        logits="fused",
        expandable=True,
    )


def _verdict(search: TrainingSearch) -> TrainingVerdict:
    reasons = search.reasons()
    if Reason.DEADLINE in reasons:
        return "late"
    return "too big" if Reason.MEMORY in reasons else "impossible"


def _missed(search: TrainingSearch) -> str:
    reasons = search.reasons()
    closest = Reason(max(int(reason) for reason in reasons))
    have = reported_gib(search.question.pool.gpu)
    if closest == Reason.MEMORY:
        return f"no layout of {search.gpus:,} GPUs fits {have:.1f} GiB, whatever is recomputed"
    return f"{search.gpus:,} GPUs: {WORDS[closest]}"


def _remedies(decoder: Decoder, fit: TrainingFit, wants: Wants) -> Iterator[str]:
    """Changes after which the machine holds."""
    if fit.best is not None or fit.search is None:
        return
    question = fit.search.question
    tries: list[tuple[str, TrainingQuestion]] = []
    if question.gpus is not None:
        pool = fit.machine.pool(None, question.pool.price_per_gpu_h)
        tries.append(("more GPUs", replace(question, gpus=None, pool=pool)))
    if question.deadline_s is not None:
        tries.append(("no deadline", replace(question, deadline_s=None)))
    if question.recipe.precision == "bf16" and fit.machine.gpu.dense.fp8 is not None:
        tries.append(("--precision fp8", replace(question, recipe=replace(question.recipe, precision="fp8"))))
    shorter = question.recipe.sequence // 2
    if fit.verdict == "too big" and shorter >= 1024:
        short = replace(question.recipe, sequence=shorter, global_batch=question.recipe.global_batch * 2)
        tries.append((f"--sequence {shorter}", replace(question, recipe=short)))
    for what, changed in tries:
        row = search_training(changed).best
        if row is not None:
            days = f", {row.days:.3g} days" if row.days is not None else ""
            yield f"{what}: then {row.gpus:,} GPUs hold as {row.layout}{days}"


def calibration_words() -> str:
    """What step times rest on."""
    mean, median = CALIBRATED.error
    return f"{CALIBRATED.fitted_on}; models left out: mean error {mean:.0%}, median {median:.0%}"
