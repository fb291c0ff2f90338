"""One reading against one threshold: what the value is, whether it can be true, and which side it falls on."""

from __future__ import annotations

import math
from typing import Final

from clusterwright.lib.quantities import KINDS, Quantity, is_kind
from clusterwright.model.acceptance import Requirement, Threshold
from clusterwright.model.evidence import Reading

#: Durations that may truly be nothing; any other time of zero was not measured.
_MAY_BE_ZERO: Final = frozenset({"lost_work", "checkpoint_stall"})
#: What tools print where a value would stand.
_NO_VALUE: Final = frozenset({"", "n/a", "[n/a]", "na", "none", "null", "unknown", "-", "nan"})
_SKIPPED: Final = ("skip", "not run", "disabled")
#: Values that may truly be below zero: a GPU above its slowdown temperature.
_MAY_BE_NEGATIVE: Final = frozenset({"gpu_temperature_margin"})
#: Beginnings of reasons that say all by themselves why there is no value.
REASONS: Final = (
    "incomplete", "not checked", "no value", "invalid", "refused", "warned", "partial view", "unit unknown",
    "scope unknown", "not comparable", "not told apart", "impossible value",
)  # fmt: skip


def why_toothless(requirement: Requirement) -> str:
    """Why passing the threshold would prove nothing, or ""."""
    better, comparison, threshold = requirement.about.better, requirement.comparison, requirement.threshold
    wrong = {"more": "at_most", "less": "at_least", "equal": "at_most"}[better]
    if comparison == wrong:
        wanted = {"more": "at_least", "less": "at_most", "equal": "equals or at_least"}[better]
        return f"threshold points the wrong way: {requirement.metric} wants {wanted}, the file says {comparison}"
    value = _number(threshold)
    if requirement.metric in _MAY_BE_NEGATIVE:
        return ""
    if value is not None and comparison == "at_least" and value <= 0:
        return f"threshold proves nothing: every {requirement.metric} is at least {threshold}"
    if value is not None and not math.isfinite(value):
        return f"threshold proves nothing: {threshold} is no bound"
    return ""


def why_unusable(requirement: Requirement, reading: Reading, limit: Quantity | None) -> str:
    """Why the reading says nothing about the requirement, or "".

    Args:
        limit: the largest value that the declared hardware can reach, if known; more is no measurement.
    """
    value, kind = reading.value, requirement.about.kind
    if value is None or (isinstance(value, str) and value.strip().lower() in _NO_VALUE):
        text = reading.unreadable.strip()
        if text.lower().startswith(_SKIPPED):
            return text if text.lower().startswith("skipped:") else f"skipped: {text}"
        if text.lower().startswith(REASONS):
            return text
        return f"unparsable: '{text}'" if text else "unparsable: no value"
    if isinstance(value, str) and value.strip().lower().startswith(_SKIPPED):
        return f"skipped: {value.strip()}"
    if kind in KINDS and (not isinstance(value, Quantity) or not is_kind(value, kind)):
        return f"unit unknown: {value} does not measure {kind}"
    if kind == "count" and (isinstance(value, bool | str | Quantity)):
        return f"unit unknown: '{value}' is not a count"
    if kind == "flag" and not isinstance(value, bool):
        return f"unit unknown: '{value}' is neither true nor false"
    if kind == "text" and not isinstance(value, str):
        return f"unit unknown: '{value}' is not text"
    return _why_impossible(requirement, value, limit)


def _why_impossible(requirement: Requirement, value: Threshold, limit: Quantity | None) -> str:
    number, kind = _number(value), requirement.about.kind
    if number is None:
        return ""
    if not math.isfinite(number) or (number < 0 and requirement.metric not in _MAY_BE_NEGATIVE):
        return f"impossible value: {value}"
    if kind == "count" and number != int(number):
        return f"impossible value: {value} is not a whole number"
    if kind == "share" and number > 1:
        return f"impossible value: {value} is more than everything"
    if kind == "duration" and number == 0 and requirement.metric not in _MAY_BE_ZERO:
        return f"impossible value: a {requirement.metric} of zero was not measured"
    if limit is not None and number > limit.value * (1 + 1e-9):
        return f"impossible value: {value} is above {limit}, the most that the declared hardware can do"
    return ""


def holds(requirement: Requirement, value: Threshold) -> bool:
    """Whether a usable value is on the right side of the threshold."""
    threshold = requirement.threshold
    left, right = _number(value), _number(threshold)
    if left is None or right is None:
        return requirement.comparison == "equals" and _same_text(value, threshold)
    if requirement.comparison == "at_least":
        return left >= right
    return left <= right if requirement.comparison == "at_most" else left == right


def badness(requirement: Requirement, value: Threshold) -> float:
    """Orders usable values: the larger, the worse for this requirement."""
    number, threshold = _number(value), _number(requirement.threshold)
    if number is None or threshold is None:
        return 0.0 if holds(requirement, value) else 1.0
    if requirement.comparison == "at_least":
        return -number
    return number if requirement.comparison == "at_most" else abs(number - threshold)


def _number(value: Threshold) -> float | None:
    if isinstance(value, Quantity):
        return value.value
    if isinstance(value, bool | str):
        return None
    return float(value)


def _same_text(left: Threshold, right: Threshold) -> bool:
    """Equal text; an image named by repository and digest equals its digest alone."""
    return digest_part(str(left)) == digest_part(str(right))


def digest_part(image: str) -> str:
    """The digest of an image name, or the whole text when it has none."""
    return image.strip().rpartition("@")[2]
