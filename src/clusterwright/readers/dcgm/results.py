"""Results of diagnostic tests, whatever form they were printed in: what passed, failed, warned, was skipped or not run.

Observations: `test` (pass, fail, warn, skip, not run; subject test, gpu or another entity, category), `test_message`
(subject also `said` = warning or info), and figures from messages, such as `gpu_to_host_bandwidth` (subject gpu).
Conditions: `result` of the whole, `deepest_level` whose tests ran, `gpus_tested`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.values import quantity, unreadable

_STATUSES: Final = {
    "pass": "pass", "passed": "pass", "fail": "fail", "failed": "fail", "warn": "warn", "warning": "warn",
    "warned": "warn", "skip": "skip", "skipped": "skip", "not run": "not run", "notrun": "not run",
    "not_run": "not run",
}  # fmt: skip
#: Run level to which a test belongs. Source: DCGM user guide, "DCGM Diagnostics", run levels and tests.
_LEVELS: Final = {
    "software": 1, "pcie": 2, "memory": 2, "gpu memory": 2, "diagnostic": 3, "targeted stress": 3,
    "targeted power": 3, "memory bandwidth": 3, "sm stress": 3, "nvbandwidth": 3, "nccl tests": 3, "memtest": 4,
    "pulse test": 4, "eud": 4, "eud test": 4, "cpu eud": 4, "cpu eud test": 4,
}  # fmt: skip
_FIGURE: Final = re.compile(
    r"GPU (?P<gpu>\d{1,4}) (?P<what>[A-Za-z][A-Za-z ]{2,40}):\s*(?P<number>\d{1,18}(?:\.\d{1,9})?)"
    r"\s*(?P<unit>GB/s|MB/s|us|C\b|W\b|%)?"
)
_FIGURE_UNITS: Final = {"us": "µs", "C": "°C"}
_VIOLATION: Final = re.compile(
    r"GPU (?P<gpu>\w{1,4}),? (?P<kind>[Tt]hermal|[Pp]ower) violations? totaling "
    r"(?P<seconds>\d{1,12}(?:\.\d{1,9})?) seconds"
)
_MOST_NAMED: Final = 8


class Results:
    """The results of one run of the diagnosis.

    Args:
        run: where they go.
    """

    def __init__(self, run: RunBuilder) -> None:
        self.run = run
        self.counts = dict.fromkeys(("pass", "fail", "warn", "skip", "not run"), 0)
        self._by_test: dict[str, dict[str, list[str]]] = {}
        self._reasons: dict[str, str] = {}
        self._gpus: set[str] = set()
        self._deepest = 0

    @property
    def any(self) -> bool:
        """Whether any test has a result."""
        return bool(self._by_test)

    def add(self, test: str, status: str, subject: Labels, line: int, where: str = "") -> None:
        """Keep the result of a test.

        Args:
            status: as printed.
            subject: whom it is about beside the test: gpu, switch, category.
            where: for people, such as "GPU 3"; "" for the node as a whole.
        """
        word = _STATUSES.get(status.strip().lower())
        full = (("test", test), *subject)
        if word is None:
            self.run.observe("test", unreadable(status, "no result that is known"), full, line)
            self.run.reject(line, f"{test} {status}", "no result that is known")
            return
        self.run.observe("test", word, full, line)
        self.counts[word] += 1
        self._by_test.setdefault(test, {}).setdefault(word, []).append(where)
        self._gpus.update(value for key, value in subject if key == "gpu")
        if word not in ("skip", "not run"):
            self._deepest = max(self._deepest, level_of(test))

    def say(self, test: str, text: str, said: str, subject: Labels, line: int) -> None:
        """Keep a message of a test (`said`: warning or info) with the figures in it."""
        flat = " ".join(text.split())
        if not flat:
            return
        self.run.observe("test_message", flat, (("test", test), *subject, ("said", said)), line)
        if said == "warning":
            self._reasons.setdefault(test, flat)
        observe_figures(self.run, flat, line)

    def finish(self, detected: int = 0) -> Run:
        """The run with its notices.

        Args:
            detected: GPUs that the output lists; 0 when it lists none.
        """
        self._say_tests()
        run = self.run
        tested = detected if "all" in self._gpus else len(self._gpus)
        if tested:
            run.condition("gpus_tested", float(tested))
        if detected and 0 < tested < detected:
            run.missing(f"results of {detected - tested} of {detected} GPUs")
        if self._deepest:
            run.condition("deepest_level", float(self._deepest))
        asked = run.conditions().get("asked_level")
        whole = run.build().complete and not run.rejected
        if whole and isinstance(asked, str) and asked in ("1", "2", "3", "4") and self._deepest < int(asked):
            run.notice("level-not-reached", f"level {asked} was asked for, tests of level {self._deepest} ran at most")
        run.condition("result", self._result(whole))
        return run.build()

    def _result(self, complete: bool) -> Value:
        if self.counts["fail"]:
            return "fail"
        if not complete:
            return NoValue(Lack.ABSENT, "", "parts of the output are missing")
        if self.counts["warn"]:
            return "warn"
        if self.counts["pass"]:
            return "pass"
        return NoValue(Lack.ABSENT, "", "no test ran")

    def _say_tests(self) -> None:
        run = self.run
        for test, found in self._by_test.items():
            reason = f": {shorten(self._reasons[test], 200)}" if test in self._reasons else ""
            if "fail" in found:
                run.notice("test-failed", f"{test} failed{_on(found['fail'])}{reason}", Weight.ERROR)
            if "warn" in found:
                run.notice("test-warned", f"{test} gives a warning{_on(found['warn'])}{reason}")
            if "skip" in found or "not run" in found:
                idle = found.get("skip", []) + found.get("not run", [])
                others = sum(len(v) for k, v in found.items() if k not in ("skip", "not run"))
                whole = "" if others else "; it is no evidence"
                run.notice("test-skipped", f"{test} was skipped{_on(idle)}{whole}{reason}")
        if self.any and not (self.counts["pass"] or self.counts["fail"] or self.counts["warn"]):
            run.notice("nothing-measured", "every test was skipped or not run: this proves nothing", Weight.ERROR)


def level_of(test: str) -> int:
    """Run level to which a test belongs; the checks of software are level 1."""
    return _LEVELS.get(test.strip().lower().replace("_", " "), 1)


def observe_figures(run: RunBuilder, text: str, line: int) -> None:
    """Figures that a message states: bandwidths, latencies, temperatures, violations."""
    for match in _FIGURE.finditer(text):
        unit = _FIGURE_UNITS.get(match["unit"] or "", match["unit"] or "")
        number = float(match["number"])
        value: Value = quantity(number, unit) if unit else number
        run.observe(match["what"].strip().lower().replace(" ", "_"), value, (("gpu", match["gpu"]),), line)
    for match in _VIOLATION.finditer(text):
        kind, seconds = match["kind"].lower(), float(match["seconds"])
        run.observe(f"{kind}_violation", quantity(seconds, "s"), (("gpu", match["gpu"]),), line)
        if seconds == 0:
            run.notice(
                "violation-of-no-length",
                f"a {kind} violation of 0.0 s is reported for GPU {match['gpu']}: a warning at most, no failure",
                line=line,
            )


def _on(places: Iterable[str]) -> str:
    named = [place for place in places if place]
    if not named:
        return ""
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f" on {', '.join(named[:_MOST_NAMED])}{more}"
