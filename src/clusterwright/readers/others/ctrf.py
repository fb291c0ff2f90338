"""CTRF, the common test report format: JSON with `results.tests`.

Source: ctrf.io schema, reportFormat CTRF, specVersion 0.0.x and 1.x: durations and times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.model.observations import Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.others.outcomes import FAIL, OTHER, PASS, PENDING, SKIP, Outcome, report_outcomes
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import quantity, read_quantity, unreadable

_RESULTS: Final = {"passed": PASS, "failed": FAIL, "skipped": SKIP, "pending": PENDING, "other": OTHER}
_STATED: Final = {"tests": "tests", "passed": PASS, "failed": FAIL, "skipped": SKIP, "pending": PENDING, "other": OTHER}
#: Latest year for which a time in milliseconds is taken as one; beyond it the number is something else.
_LAST_YEAR_MS: Final = 4_102_444_800_000


def recognise(head: Head) -> int:
    """By `results` with a tool and tests, or by the name of the format."""
    text = head.text
    if not text.lstrip().startswith("{"):
        return 0
    if '"reportFormat"' in text and '"CTRF"' in text:
        return 100
    if '"results"' in text and '"summary"' in text and '"tests"' in text and '"tool"' in text:
        return 88
    return 0


def read(source: Source) -> Sequence[Run]:
    """The tests of one report."""
    text = source.text()
    place = find_json(text)
    if place is None:
        raise Refused("no JSON object begins on any line", 1, text[:120])
    first = text.count("\n", 0, place[0]) + 1
    document = load_json(text[place[0] :], first_line=first)
    root = document.value if isinstance(document.value, dict) else {}
    results = root.get("results")
    if not isinstance(results, dict):
        raise Refused("no CTRF report: it has no object 'results'", first, text[place[0] : place[0] + 80])
    tool = results.get("tool")
    named = tool if isinstance(tool, dict) else {}
    builder = RunBuilder(str(named.get("name") or "ctrf"), str(named.get("version") or ""))
    if "specVersion" in root:
        builder.condition("spec_version", str(root["specVersion"]))
    for duplicate in document.duplicates[:20]:
        builder.notice(
            "duplicate-key", f"the key {duplicate.key!r} stands {len(duplicate.values)} times; the first counts"
        )
    stated = _read_summary(results.get("summary"), builder)
    _read_environment(results.get("environment"), builder)
    tests = results.get("tests")
    if not isinstance(tests, list):
        builder.missing("the list of tests")
        tests = []
    outcomes = [outcome for test in tests if (outcome := _read_test(test, builder)) is not None]
    report_outcomes(outcomes, stated, builder)
    return [builder.build()]


def _read_summary(summary: object, builder: RunBuilder) -> dict[str, float]:
    if not isinstance(summary, dict):
        builder.missing("the summary")
        return {}
    for key, name in (("start", "started"), ("stop", "ended")):
        if key in summary and (moment := _moment(summary[key])) is not None:
            builder.condition(name, moment)
    stated = {}
    for key, name in _STATED.items():
        number = summary.get(key)
        if isinstance(number, int | float) and not isinstance(number, bool):
            stated[name] = float(number)
    return stated


def _moment(raw: object) -> Value | None:
    """A time in milliseconds since 1970 as ISO text; 0 means that the tool had none."""
    if not isinstance(raw, int | float) or isinstance(raw, bool) or raw == 0:
        return None
    if not 0 < raw < _LAST_YEAR_MS:
        return unreadable(str(raw), "no time in milliseconds since 1970")
    return datetime.fromtimestamp(raw / 1000, UTC).isoformat()


def _read_environment(environment: object, builder: RunBuilder) -> None:
    if not isinstance(environment, dict):
        return
    for key, value in list(environment.items())[:50]:
        if isinstance(value, str | int | float | bool):
            builder.condition(f"environment_{key}"[:80], str(value)[:200])


def _read_test(test: Any, builder: RunBuilder) -> Outcome | None:
    if not isinstance(test, dict) or not isinstance(test.get("name"), str):
        builder.reject(0, str(test)[:200], "a test without a name")
        return None
    status = test.get("status")
    result = _RESULTS.get(status) if isinstance(status, str) else None
    if result is None:
        builder.reject(0, f"{test['name']}: status {status}", f"an unknown status; known are {', '.join(_RESULTS)}")
        return None
    raw = test.get("duration")
    duration: Value | None = None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        duration = quantity(float(raw), "ms") if raw >= 0 else unreadable(str(raw), "a negative duration")
    elif raw is not None:
        duration = read_quantity(str(raw)[:64], "ms")
    suite = test.get("suite")
    named = " > ".join(map(str, suite)) if isinstance(suite, list) else str(suite or "")
    message = test.get("message")
    if result == PASS and isinstance(message, str) and message.lower().startswith(("error", "fail")):
        builder.notice("passed-with-error", f"test {test['name']} passed and says: {message[:120]}", Weight.WARNING)
    return Outcome(
        test["name"],
        named[:300],
        result,
        duration,
        message if isinstance(message, str) else "",
        test.get("flaky") is True,
    )


READERS: Final[tuple[Reader, ...]] = (Reader("ctrf", "CTRF test report (JSON)", recognise, read),)
