"""Tests with outcomes, whichever report format holds them: counted, compared with the totals that the report states.

Observed (subject test, suite): `test` (text pass, fail, error, skip, pending, not run, other), `test_duration`,
`test_message`; conditions `tests`, `tests_passed`, `tests_failed`, `tests_skipped` as counted from the rows, and
`stated_*` as the report states them. A skipped test is no passed one, and a report without tests is no pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten

PASS: Final = "pass"
FAIL: Final = "fail"
ERROR: Final = "error"
SKIP: Final = "skip"
PENDING: Final = "pending"
NOT_RUN: Final = "not run"
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test.

    Args:
        duration: None when the report has none.
        flaky: whether it failed and then passed.
    """

    name: str
    suite: str
    result: str
    duration: Value | None = None
    message: str = ""
    flaky: bool = False
    line: int = 0


def report_outcomes(outcomes: list[Outcome], stated: Mapping[str, float], builder: RunBuilder) -> None:
    """Observe every test, then what the counts say.

    Args:
        stated: totals of the report by our names: tests, pass, fail, error, skip, pending, other.
    """
    for outcome in outcomes:
        subject = (("test", outcome.name), *((("suite", outcome.suite),) if outcome.suite else ()))
        builder.observe("test", outcome.result, subject, outcome.line)
        if outcome.duration is not None:
            builder.observe("test_duration", outcome.duration, subject, outcome.line)
        if outcome.message and outcome.result != PASS:
            builder.observe("test_message", shorten(outcome.message, 500), subject, outcome.line)
    counts = Counter(outcome.result for outcome in outcomes)
    _tell_counts(outcomes, counts, builder)
    _tell_stated(counts, len(outcomes), stated, builder)
    _tell_twice(outcomes, builder)
    flaky = [outcome.name for outcome in outcomes if outcome.flaky]
    if flaky:
        builder.notice("flaky", f"{len(flaky)} tests failed before they passed: {', '.join(flaky[:5])}")


def _tell_counts(outcomes: list[Outcome], counts: Counter[str], builder: RunBuilder) -> None:
    builder.condition("tests", float(len(outcomes)))
    builder.condition("tests_passed", float(counts[PASS]))
    builder.condition("tests_failed", float(counts[FAIL] + counts[ERROR]))
    builder.condition("tests_skipped", float(counts[SKIP] + counts[PENDING] + counts[NOT_RUN]))
    if not outcomes:
        builder.notice("no-tests", "the report holds no test: nothing was measured, this is no pass", Weight.ERROR)
        return
    idle = counts[SKIP] + counts[PENDING] + counts[NOT_RUN]
    if idle == len(outcomes):
        builder.notice(
            "all-skipped", f"all {idle} tests were skipped: nothing was measured, this is no pass", Weight.ERROR
        )
    elif idle:
        builder.notice(
            "skipped", f"{idle} of {len(outcomes)} tests did not run (skipped, pending or disabled): they are no pass"
        )
    failed = counts[FAIL] + counts[ERROR]
    if failed:
        names = [outcome.name for outcome in outcomes if outcome.result in (FAIL, ERROR)]
        more = ", …" if len(names) > 5 else ""
        builder.notice(
            "failed", f"{failed} of {len(outcomes)} tests failed: {', '.join(names[:5])}{more}"[:500], Weight.ERROR
        )
    if counts[OTHER]:
        builder.notice("other-status", f"{counts[OTHER]} tests ended neither passed nor failed")


def _tell_stated(counts: Counter[str], rows: int, stated: Mapping[str, float], builder: RunBuilder) -> None:
    """Where the totals that the report states and its rows differ, the rows count."""
    for name, number in stated.items():
        builder.condition(f"stated_{name.replace(' ', '_')}", number)
        found = rows if name == "tests" else counts[name]
        if number != found:
            what = "tests" if name == "tests" else f"tests as {name}"
            builder.notice(
                "totals-contradict",
                f"the report states {number:g} {what}, its rows hold {found}; the rows count",
                Weight.ERROR,
            )
            if name == "tests" and number > found:
                builder.missing(f"{number - found:g} of the {number:g} tests that the report states")


def _tell_twice(outcomes: list[Outcome], builder: RunBuilder) -> None:
    results: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        results.setdefault((outcome.suite, outcome.name), []).append(outcome.result)
    for (_, name), found in results.items():
        if len(set(found)) > 1:
            builder.notice(
                "outcomes-differ", f"test {name} stands {len(found)} times with {' and '.join(sorted(set(found)))}"
            )
        elif len(found) > 1:
            builder.notice("test-twice", f"test {name} stands {len(found)} times", Weight.INFO)
