"""JUnit XML of any writer: `testsuites`, nested `testsuite`, `testcase` with failure, error or skipped.

Source: the de facto schemas of Ant, Maven surefire, pytest, gtest (`status="notrun"`), Ginkgo and go-junit-report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from clusterwright.model.observations import NoValue, Run, Value
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.documents import load_xml
from clusterwright.readers.others.outcomes import (
    ERROR,
    FAIL,
    NOT_RUN,
    OTHER,
    PASS,
    SKIP,
    Outcome,
    report_outcomes,
)
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import read_number, read_quantity

_ROOT: Final = re.compile(r"<(?:\w+:)?testsuites?[\s>/]")
#: Attribute of a suite → our name of the count.
_STATED: Final = {"tests": "tests", "failures": FAIL, "errors": ERROR, "skipped": SKIP, "skip": SKIP}
_NOT_RUN: Final = frozenset({"notrun", "disabled", "suppressed", "skipped", "pending", "ignored"})
_BAD: Final = frozenset({"failed", "fail", "error", "timedout", "panicked", "interrupted", "aborted"})
_GOOD: Final = frozenset({"", "run", "passed", "pass", "success", "completed", "ok"})


def recognise(head: Head) -> int:
    """By the root element."""
    text = head.text
    match = _ROOT.search(text[:8192])
    if match is None or not text.lstrip().startswith("<"):
        return 0
    return 95 if "<testcase" in text or "testsuites" in match.group() else 85


def read(source: Source) -> Sequence[Run]:
    """The tests of one file, all suites together."""
    root = load_xml(source.text())
    if _tag(root) not in ("testsuites", "testsuite"):
        raise Refused("no JUnit report: its root is neither testsuites nor testsuite", found=f"<{_tag(root)}>")
    builder = RunBuilder("junit")
    suites = [element for element in root.iter() if _tag(element) == "testsuite"]
    outcomes = list(_outcomes(root, "", builder))
    _observe_suites(root, suites, builder)
    report_outcomes(outcomes, _stated(root, suites), builder)
    return [builder.build()]


def _tag(element: Element) -> str:
    tag = element.tag if isinstance(element.tag, str) else ""
    return tag.rpartition("}")[2].rpartition(":")[2]


def _outcomes(element: Element, suite: str, builder: RunBuilder) -> Iterator[Outcome]:
    """Every test case below an element, with the name of its suite; without recursion, for deep nesting is hostile."""
    waiting = [(element, suite)]
    while waiting:
        current, name = waiting.pop()
        if _tag(current) == "testsuite":
            name = current.get("name") or name
        for child in current:
            if _tag(child) == "testcase":
                outcome = _read_case(child, name, builder)
                if outcome is not None:
                    yield outcome
        waiting.extend((child, name) for child in reversed(current) if _tag(child) in ("testsuite", "testsuites"))


def _read_case(case: Element, suite: str, builder: RunBuilder) -> Outcome | None:
    name = case.get("name") or ""
    if not name:
        builder.reject(0, str(dict(case.attrib))[:200], "a test case without a name")
        return None
    owner = case.get("classname") or ""
    children = {_tag(child): child for child in reversed(case)}
    result = _result(case, children)
    told = children.get("failure")
    for tag in ("error", "skipped"):
        told = told if told is not None else children.get(tag)
    message = (told.get("message") or (told.text or "").strip()) if told is not None else ""
    raw = case.get("time")
    duration: Value | None = None
    if raw is not None:
        duration = read_quantity(raw, "s", grouped=True)
    return Outcome(
        f"{owner}.{name}" if owner and owner != suite else name,
        suite,
        result,
        duration,
        message,
        bool({"flakyFailure", "flakyError", "rerunFailure"} & set(children)) and result == PASS,
    )


def _result(case: Element, children: dict[str, Element]) -> str:
    if "error" in children:
        return ERROR
    if "failure" in children:
        return FAIL
    if "skipped" in children:
        return SKIP
    said = {(case.get(key) or "").lower() for key in ("status", "result")}
    if said & _NOT_RUN:
        return NOT_RUN
    if said & _BAD:
        return FAIL
    return PASS if said <= _GOOD else OTHER


def _stated(root: Element, suites: list[Element]) -> dict[str, float]:
    """Totals of the root, or the sums of its outermost suites where it states none."""
    places = [root]
    if root.get("tests") is None:
        places = [suite for suite in root if _tag(suite) == "testsuite"] or suites[:1]
    stated: dict[str, float] = {}
    for attribute, name in _STATED.items():
        numbers = [read_number(place.get(attribute) or "") for place in places]
        found = [number for number in numbers if not isinstance(number, NoValue)]
        if found and len(found) == len(numbers):
            stated[name] = stated.get(name, 0.0) + sum(found)
    return stated


def _observe_suites(root: Element, suites: list[Element], builder: RunBuilder) -> None:
    for suite in [*suites, root][:1000]:
        name = suite.get("name") or ""
        started = suite.get("timestamp")
        if started:
            builder.observe("suite_started", started[:64], (("suite", name),))
        if suite.get("hostname"):
            builder.observe("suite_node", suite.get("hostname", "")[:256], (("suite", name),))
        for child in suite:
            if _tag(child) in ("failure", "error"):
                builder.notice("suite-failed", f"suite {name} itself failed: {child.get('message') or ''}"[:300])


READERS: Final[tuple[Reader, ...]] = (Reader("junit", "JUnit XML test report", recognise, read),)
