"""DCGM: tests that failed, on any GPU. A warning, a skip or a test that did not run is no pass.

Run level 1 looks at software, level 2 at memory and PCIe; a host passes from level 3 on, which loads the GPUs.

Source: DCGM user guide, "DCGM Diagnostics", run levels and tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

METRICS_OF: Final = ("dcgm_failures",)
_LEAST_LEVEL: Final = 3
#: What keeps a host from passing: result → how the reason begins.
_NO_PASS: Final = {"warn": "warned", "skip": "skipped", "not run": "skipped", "": "no value"}


def derive_diagnoses(facts: Facts) -> Iterator[Reading]:
    """Per host the tests that failed; a GPU that fails a test counts once for it, whatever it did later."""
    for node, observations in facts.per_node("test"):
        results = [(o, plain(o.value).lower()) for o in observations]
        failed = {_what(o) for o, result in results if result == "fail"}
        passed = any(result == "pass" for _, result in results)
        conditions = {"level": level} if (level := facts.text("deepest_level")) else {}
        if failed:
            named = ", ".join(sorted(" on GPU ".join(filter(None, what)) for what in failed)[:6])
            yield facts.reading("dcgm_failures", float(len(failed)), conditions | {"failed": named}, nodes=(node,))
        elif passed and (level_run := facts.number("deepest_level")) is not None and level_run < _LEAST_LEVEL:
            why = f"partial view: tests up to level {level_run:g} ran; dcgmi diag -r {_LEAST_LEVEL} loads the GPUs"
            yield facts.reading("dcgm_failures", None, conditions, nodes=(node,), why=why)
        elif passed:
            yield facts.reading("dcgm_failures", 0.0, conditions, nodes=(node,))
        for bad, begin in _NO_PASS.items():
            found = [o for o, result in results if result == bad]
            if found:
                why = f"{begin}: {_name_tests(found)}"
                yield facts.reading("dcgm_failures", None, conditions, nodes=(node,), why=why)


def derive_healths(facts: Facts) -> Iterator[Reading]:
    """Failures that the background watches saw. Their silence is no diagnosis: nothing was loaded."""
    for node, observations in facts.per_node("health"):
        told = [(_where(o), plain(o.value).lower()) for o in observations if dict(o.subject).get("scope") != "overall"]
        told = told or [("overall", plain(o.value).lower()) for o in observations]
        failed = list(dict.fromkeys(where for where, state in told if state == "failure"))
        failed = _most_precise(failed)
        warned = _most_precise(list(dict.fromkeys(where for where, state in told if state == "warning")))
        if failed:
            named = {"failed": ", ".join(failed[:6])}
            yield facts.reading("dcgm_failures", float(len(failed)), named, nodes=(node,))
        if warned:
            yield facts.reading("dcgm_failures", None, nodes=(node,), why=f"warned: {'; '.join(warned[:4])}")
        why = f"partial view: background watches load nothing; dcgmi diag -r {_LEAST_LEVEL} does"
        yield facts.reading("dcgm_failures", None, nodes=(node,), why=why)


def _where(observation: Observation) -> str:
    """`gpu 0 memory`."""
    subject = dict(observation.subject)
    system = subject.pop("system", "")
    device = " ".join(f"{key} {value}" for key, value in subject.items() if key != "node")
    return " ".join(part for part in (device, system) if part)


def _most_precise(places: list[str]) -> list[str]:
    """Without devices of which a system is named, too."""
    return [place for place in places if not any(other.startswith(f"{place} ") for other in places)]


def _what(observation: Observation) -> tuple[str, str]:
    subject = dict(observation.subject)
    return subject.get("test", ""), subject.get("gpu", "")


def _name_tests(observations: list[Observation]) -> str:
    """`memory on GPU 0, 3; pcie`, at most four tests."""
    by_test: dict[str, list[str]] = {}
    for o in observations:
        test, gpu = _what(o)
        by_test.setdefault(test, []).append(gpu)
    named = []
    for test, gpus in by_test.items():
        where = ", ".join(dict.fromkeys(g for g in gpus if g))
        named.append(f"{test} on GPU {where}" if where else test)
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return "; ".join(named[:4]) + more
