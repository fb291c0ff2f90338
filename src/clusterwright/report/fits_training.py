"""The answer about training as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clusterwright.plan.fitting.trainings import (
    RESTART_S,
    WRITE_BYTES_S,
    TrainingAnswer,
    TrainingFit,
    calibration_words,
    recipe_of,
)
from clusterwright.plan.searching.machines import reported_gib
from clusterwright.report.blocks import Bars, Block, Grid, Heading, Lines
from clusterwright.report.fits_words import amount, banded, counted_tokens, money, number, price_words

_NO = {"late": "misses deadline", "too big": "no: memory", "impossible": "no", "unknown": "not known"}
#: Terms of a step that take less than this share are not shown.
_LEAST = 0.005


def training_page(answer: TrainingAnswer) -> tuple[Block, ...]:
    """Blocks of the page, the verdict first."""
    return tuple(_page(answer))


def _page(answer: TrainingAnswer) -> Iterator[Block]:
    internal = answer.audience == "internal"
    yield Lines((training_verdict(answer),))
    yield Lines((_asked(answer),))
    yield _machines(answer)
    others = [f"{f.machine.asked}: {f.missed}" for f in answer.fits[1:] if f.best is None]
    if others:
        yield Heading("Why not")
        yield Lines(tuple(others), bullet=True)
    first = answer.first
    if first.best is not None:
        yield from _best(answer, first)
    elif answer.remedies:
        yield Heading(f"What to change on {first.machine.asked}")
        yield Lines(answer.remedies, bullet=True)
    yield from _questions(answer)
    yield Heading("How good these numbers are")
    yield Lines(tuple(training_basis(answer, internal)), bullet=True)


def training_verdict(answer: TrainingAnswer) -> str:
    """The answer in one sentence."""
    fit, name = answer.first, answer.name
    if fit.best is None:
        many = "none of the machines holds: " if len(answer.fits) > 1 else ""
        return f"No: {many}{name} on {fit.machine.asked}: {fit.missed}."
    best = fit.chosen
    hardware = fit.machine.counted(best.gpus, best.nodes)
    text = f"Yes: {hardware} train {name} at {banded(fit.tokens_s)} tokens/s as {best.layout}"
    own, price = answer.wants.training, fit.price
    if fit.days is not None and own is not None and own.tokens:
        text += f"; {counted_tokens(own.tokens)} tokens take {banded(fit.days)} days"
    if price is not None and fit.cost is not None:
        text += f" and {amount(fit.cost, price.currency)}"
    elif price is not None and fit.per_mtok is not None:
        text += f"; {amount(fit.per_mtok, price.currency)} per Mtok"
    if fit.tokens is not None:
        period = " a month" if answer.wants.budget is not None and answer.wants.budget.monthly else ""
        text += f"; the budget buys {counted_tokens(fit.tokens)} tokens{period}"
    return text + "."


def _asked(answer: TrainingAnswer) -> str:
    wants, own = answer.wants, answer.wants.training
    assert own is not None
    decoder = answer.decoder
    batch = recipe_of(own).global_batch

    def marked(text: str, option: str) -> str:
        origin = wants.origin(option)
        return text if origin == "stated" else f"{text} [{origin}]"

    told = [
        f"{decoder.name}, {decoder.parameters / 1e9:.4g} B parameters, all trained",
        marked(f"sequences of {own.sequence:,}", "sequence"),
        marked(f"{batch:,} of them a step", "batch-size"),
        marked(own.precision, "precision"),
        marked(own.framework, "framework"),
    ]
    return "Asked: " + ", ".join(told) + "."


def _machines(answer: TrainingAnswer) -> Grid:
    fits = answer.fits
    table: list[tuple[str, ...]] = []

    def row(label: str, cell: Callable[[TrainingFit], str]) -> None:
        cells = [cell(fit) if fit.best is not None else "-" for fit in fits]
        if any(text != "-" for text in cells):
            table.append((label, *cells))

    table.append(("fits and holds", *("yes" if fit.best is not None else _NO[fit.verdict] for fit in fits)))
    row("layout", lambda f: str(f.chosen.layout))
    row("GPUs", lambda f: f"{f.chosen.gpus:,}")
    row("nodes", lambda f: f"{f.chosen.nodes:,}")
    row("micro-batch", lambda f: str(f.chosen.recipe.micro_batch))
    row("recomputation", lambda f: f.chosen.recipe.recompute)
    row("GiB of the fullest GPU", lambda f: banded(f.memory_gib))
    row("seconds a step", lambda f: number(f.chosen.step_s))
    row("tokens/s", lambda f: banded(f.tokens_s))
    row("tokens/s and GPU", lambda f: number(f.chosen.tokens_s_per_gpu))
    row("MFU", lambda f: f"{f.chosen.mfu:.1%}")
    row("goodput", lambda f: f"{f.chosen.goodput:.1%}" if f.chosen.days is not None else "-")
    row("days", lambda f: banded(f.days))
    row("per GPU-hour", _price)
    row("per Mtok", lambda f: amount(f.per_mtok, f.price.currency) if f.price else "-")
    row("whole run", lambda f: amount(f.cost, f.price.currency) if f.price and f.cost else "-")
    return Grid(("", *(f"{place}. {fit.machine.asked}" for place, fit in enumerate(fits, 1))), tuple(table))


def _price(fit: TrainingFit) -> str:
    if fit.price is None:
        return "-"
    return money(fit.price.value, fit.price.currency) + ("*" if fit.price.origin == "catalogue" else "")


def _best(answer: TrainingAnswer, fit: TrainingFit) -> Iterator[Block]:
    best = fit.chosen
    have = reported_gib(fit.machine.gpu)
    peak = best.memory.peak
    yield Heading(f"Memory of the fullest GPU of {fit.machine.asked}, {best.layout} (stage {peak.stage})")
    used = tuple((name, gib) for name, gib in peak.terms if gib > 0.05)
    left = have - sum(gib for _, gib in peak.terms)
    yield Bars((*used, ("not used", left)), have, "GiB")
    yield Heading("Where a step's time goes; 10 % more of a term costs a tenth of its share")
    terms = [(name, s) for name, s in best.step.terms if s > _LEAST * best.step_s]
    rows = tuple((name, number(s), f"{s / best.step_s:.1%}") for name, s in sorted(terms, key=lambda t: -t[1]))
    yield Grid(("", "s", "share"), rows)
    if fit.tight:
        yield Lines(("At the upper end of the memory's band this does not fit: try it on one node group first.",))
    elif fit.tighter is not None:
        faster, have = fit.tighter, reported_gib(fit.machine.gpu)
        yield Lines(
            (
                f"{faster.layout} is {best.step_s / faster.step_s - 1:.1%} faster, with {faster.memory_gib:.1f} of "
                f"{have:.1f} GiB: it fits only if memory is not above its estimate.",
            )
        )
    lost = [f"{w.name} ({w.layout}): {w.text}" for w in answer.lost]
    if lost:
        yield Heading("Why popular layouts lost")
        yield Lines(tuple(lost), bullet=True)


def _questions(answer: TrainingAnswer) -> Iterator[Block]:
    wants = answer.wants
    asked = []
    if "tokens" not in wants.stated and wants.budget is None:
        asked.append("How many tokens? (--tokens) Days and money of the run follow from it.")
    if "gpus" not in wants.stated and "deadline" not in wants.stated and wants.budget is None:
        asked.append("By when, or on how many GPUs? (--deadline, --gpus) Else the fewest that fit are taken.")
    if "batch-size" not in wants.stated:
        asked.append("Which global batch? (--batch-size) It sets how many GPUs may work side by side.")
    price = answer.first.price
    if answer.audience == "internal" and (price is None or price.origin == "catalogue"):
        asked.append("What does a GPU-hour cost you? (--price) Money scales with it.")
    if asked:
        yield Heading("Worth asking")
        yield Lines(tuple(asked), bullet=True)


def training_basis(answer: TrainingAnswer, internal: bool) -> Iterator[str]:
    """Basis and band of each kind of number."""
    fit = answer.first
    if fit.best is not None:
        low, high = fit.best.step.band
        yield f"tokens per second: {1 - low:.0%} less to {high - 1:.0%} more" + (
            f"; {calibration_words()}" if internal else ""
        )
        low, high = fit.best.memory.band
        yield f"memory: factors {low:g} to {high:g} on the peak, as published runs were off"
        yield (
            f"goodput: nodes fail as on a published cluster (RSC-1, 6.5 per 1,000 node-days), restart takes "
            f"{RESTART_S / 60:g} min, checkpoints go out in the background at {WRITE_BYTES_S / 1e9:g} GB/s a node, at "
            "Daly's interval; jobs of middle size were seen to fail 3.6 × as often"
        )
    for each in answer.fits:
        if each.price is not None and (internal or each.price.for_sale):
            star = "* " if each.price.origin == "catalogue" else ""
            yield f"{star}{each.machine.asked}: {price_words(each.price)}"
        elif each.price is None and internal:
            yield f"{each.machine.asked}: no price is known; give --price"
        yield from (f"taken: {text} ({each.machine.described})" for text in each.machine.taken)
