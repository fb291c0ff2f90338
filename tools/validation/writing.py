"""Scores as text for a terminal and as the page *How good are these numbers*."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from validation.lines import (
    BAR_HEAD,
    BIAS_HEAD,
    HEAD,
    WORST_HEAD,
    Line,
    bar_lines,
    bias_lines,
    failure_lines,
    group_lines,
    weaknesses,
    worst_lines,
)
from validation.scoring import LEAST, SHARE, Failures, Scored

_INTRODUCTION: Final = """\
# How good are these numbers

Written by `make validate` from public measurements that are not part of this repository; do not edit. It says how far
the planner's estimates are from what others measured, on rows that its constants were not fitted on unless *in sample*
is said. Use it to decide how much margin an estimate needs. `cw calibrate` replaces the constants of serving by those
of your own measurements ([calibrate.md](calibrate.md)); [planning.md](planning.md) says what the planner computes.

- *mean*, *median*, *p90*: of the error |predicted ÷ measured − 1|.
- *in band*: share of rows within the band of the set. Times of serving have bands of their own, set without the rows
  that are scored; beside a group stands the median of its rows' ends, and they are to hold nine of ten. A group of at
  least {least} rows must reach {share:.0f} %; one with fewer is shown and not judged (*too few*); sets without a demand
  of their own are *listed*.
- *no answer*: rows that the planner refuses. They count as outside the band.
- *bias*: median of predicted ÷ measured − 1. A family of at least {least} rows whose median error is over twice that of
  its set is FAR OFF, which misses the bar.
- A missed bar stays MISSED here until the formulas are better; nothing is tuned to single rows.

Sources: start-up logs in reports to vLLM, SGLang and TensorRT-LLM; training memory from BigScience's chronicle of
BLOOM, torchtitan's reports, Stas Bekman's ML engineering book and ms-swift; serving from InferenceX and other runs that
the aiconfigurator-core wheel ships (Apache-2.0); throughput from the performance pages of NVIDIA Megatron-Bridge and
torchtitan's reports; latencies of nccl-tests by system and release, and the bus bandwidths in `physics/published.py`.
"""
#: What no score can say of itself.
_PLAINLY: Final = """\
What the numbers below cannot say of themselves:

- **Held out** are constants. The shape of the formulas was chosen by people who had seen the rows. *New model*, *new
  system*, *unseen system* and *rank count left out* ask more than most questions do: nothing like the row was fitted.
- **Serving** is measured in closed loops, most of them one publisher's sweeps, with prompts of one length that share
  nothing. Rows that were held out still share its harness. Percentiles under arrivals, prefix reuse and speculation are
  computed, and hardly measured. Published settings are tuned ones: an engine with its defaults is slower.
- **Bands of serving** are wide because engines differ by model, release and settings more than by GPU. The way a band
  is set (shares, least rows, drawing to wider sets) was chosen after looks at how often earlier ways held.
- **Disaggregated serving** without worker counts cannot be predicted from what is published: those rows are listed, as
  are 20 of SGLang on GB200 that give 72 GPUs of several workers as one tensor size; the notes of *serving* say what the
  errors are with them counted in. Where a decode worker's limit on sequences is not told, a request may wait for
  another's whole output: the upper end of TTFT on GB200 and GB300.
- **Training throughput** is what the framework's vendor published for its own best recipes; what they recompute stands
  in recipes that change with every release, and is used only where it never changed. A first run on a new cluster is
  slower; so are early releases of a model, whose dispatcher of experts waits for the host.
- **Training memory** rests on one team's runs on one machine for the most part. Fine-tuning of mixtures of experts
  whose routing is uneven takes up to a fifth more than the estimate.
- **Memory of an engine** is close where the log gives weights and activation. From the model, the GPU and flags alone
  it is held to few logs, fewer still of current releases.
- **Collectives over nodes** are held to published rates of long messages alone; short ones between nodes to nothing.
- **Failures, storage, queues, money** agree with their formulas; whether a rate or a price is that of your site,
  nothing here says.
"""
_SPLITS_HEAD: Final[Line] = ("set", "rows", "fitted on, scored on")
_VECTORS_HEAD: Final[Line] = ("value", "ours", "published")
#: Sets whose rows stand in a table of their own on the page, whatever their error.
_EXACT: Final = ("shapes", "formula vectors")


def as_text(scores: Sequence[Scored | Failures]) -> str:
    """Everything for a terminal."""
    sets = [s for s in scores if isinstance(s, Scored)]
    blocks = [text_table(HEAD, [line for s in sets for line in group_lines(s)])]
    for scored in sets:
        parts = _parts(scored)
        if parts or scored.notes:
            blocks.append(f"{scored.name}\n  band: {scored.band}\n  split: {scored.split}")
            blocks += [text_table(head, lines) for head, lines in parts]
            blocks += [f"  {note}" for note in scored.notes]
    blocks += ["\n".join(failure_lines(f)) for f in scores if isinstance(f, Failures)]
    for heading, sentences in weaknesses(scores):
        blocks.append("\n".join([heading, *(f"  {text}" for text in sentences)]))
    return "\n\n".join(blocks)


def as_page(scores: Sequence[Scored | Failures]) -> str:
    """Everything as Markdown."""
    sets = [s for s in scores if isinstance(s, Scored)]
    blocks = [_INTRODUCTION.format(least=LEAST, share=SHARE * 100)]
    blocks += ["## Where it is weak", _PLAINLY]
    for heading, sentences in weaknesses(scores):
        blocks += [f"### {heading}", "\n".join(f"- {text}" for text in sentences)]
    blocks += ["## In one table", page_table(HEAD, [line for s in sets for line in group_lines(s)])]
    splits = [(s.name, f"{len(s.rows):,}", s.split) for s in sets]
    blocks += ["## What was fitted on which rows", page_table(_SPLITS_HEAD, splits)]
    for scored in sets:
        if scored.name not in _EXACT:
            blocks += [f"## {scored.name[0].upper()}{scored.name[1:]}", f"Band: {scored.band}."]
            blocks += [page_table(head, lines) for head, lines in _parts(scored)]
            blocks += list(scored.notes)
    blocks.append("## Failures that could be known")
    for failures in scores:
        if isinstance(failures, Failures):
            blocks.append("\n".join(f"- {line}" for line in failure_lines(failures)))
    for scored in sets:
        if scored.name in _EXACT:
            blocks += _exact(scored)
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _parts(scored: Scored) -> list[tuple[Line, list[Line]]]:
    """Bars, bias and worst rows of a set, those that it has."""
    parts = ((BAR_HEAD, bar_lines(scored)), (BIAS_HEAD, bias_lines(scored)), (WORST_HEAD, worst_lines(scored)))
    return [(head, lines) for head, lines in parts if lines and scored.name not in _EXACT]


def _exact(scored: Scored) -> list[str]:
    """A set in which every value must be that of its source: models by count, vectors each."""
    inside = sum(row.inside for row in scored.rows)
    blocks = [f"## {scored.name[0].upper()}{scored.name[1:]}"]
    if scored.name == "shapes":
        blocks.append(
            f"Parameters counted layer by layer: {inside} of {len(scored.rows)} models agree with their published total"
            " ([models.md](models.md) lists them). Configs that are refused, by name:"
        )
        return [*blocks, "\n".join(f"- {note}" for note in scored.notes)]
    blocks.append(f"{inside} of {len(scored.rows)} exact.")
    rows = [(r.id, "–" if r.predicted is None else f"{r.predicted:.10g}", f"{r.measured:.10g}") for r in scored.rows]
    return [*blocks, page_table(_VECTORS_HEAD, rows)]


def text_table(head: Line, lines: Sequence[Line]) -> str:
    """Columns in line."""
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in [head, *lines]
    )


def page_table(head: Line, lines: Sequence[Line]) -> str:
    """A Markdown table."""
    rows = [head, tuple("---" for _ in head), *lines]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows)
