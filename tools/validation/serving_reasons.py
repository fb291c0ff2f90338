"""Why a measured run of serving is off: what its two times, taken together, say."""

from __future__ import annotations

from typing import Final

from clusterwright.calibrating.measurements import Measurement

#: Rows whose measured value cannot be of the setting that they name: part of the model, of the GPU, concurrency, why.
ODD: Final = (("gpt-oss", "h100", 512, "sequences per step were capped by the server: TPOT as of a few, TTFT a queue"),)
#: Times estimated ÷ measured beyond which a time counts as off.
_OVER, _UNDER = 1.3, 1 / 1.3
#: Requests in flight from which prompts can wait for prefill workers.
_MANY: Final = 32


def reason_of(row: Measurement, ttft: float, tpot: float) -> str:
    """Why a row is off.

    Args:
        ttft, tpot: estimated ÷ measured.
    """
    for part, gpu, concurrency, why in ODD:
        if part in row.model and gpu in row.gpu and row.concurrency == concurrency:
            return why
    if row.notes:
        return "; ".join(row.notes)
    if row.prefill is not None:
        return _apart(row, ttft, tpot)
    return _together(ttft, tpot)


def _apart(row: Measurement, ttft: float, tpot: float) -> str:
    """Prefill and decode on workers of their own."""
    if ttft > _OVER:
        if row.concurrency >= _MANY:
            return "prefill workers are estimated short of the load, so that prompts wait; in the run they kept up"
        return "handing a prompt over took less than in the engine's other runs"
    if tpot < _UNDER:
        return "decode workers were overloaded in the run: tokens waited, not prompts"
    if ttft < _UNDER:
        return "prefill workers fell behind in the run; the estimate has them keep up"
    return "decode steps were faster than those of the engine's other runs"


def _together(ttft: float, tpot: float) -> str:
    """One worker does both."""
    if ttft > _OVER and tpot > _OVER:
        return "both times are as of fewer requests in flight, or of smaller weights, than the row says"
    if tpot > _OVER and ttft < _UNDER:
        return "prompts went first: waiting that is estimated between tokens was before the first"
    if tpot < _UNDER and ttft > _OVER:
        return "prompts went between tokens: waiting that is estimated before the first was between the others"
    if ttft > _OVER:
        return "more prompts are estimated to wait at once; how the run fed requests (burst or steady) is not told"
    if ttft < _UNDER:
        return "prompts queued in the run, or the first ones warmed it up; the estimate has no such wait"
    if tpot > _OVER:
        return "steps were faster than those of the engine's other runs"
    return "steps were slower than memory and links explain"
