"""The page that explains an export to whoever runs it."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.judging.acceptance_plans import AcceptancePlan, PlannedTest
from clusterwright.lib.hostlists import fold
from clusterwright.render.exports import Export
from clusterwright.render.scripts import one_line, services_of, stores_of


def render_readme(export: Export, *, run: Sequence[str], needs: Sequence[str]) -> str:
    """What is here, how it is run, what it needs, and how the results come back.

    Args:
        run: how to run it, one paragraph each.
        needs: what must be there first, one item each.
    """
    plan = export.plan
    lines = [
        f"# Acceptance of {one_line(plan.cluster)}",
        "",
        "Nothing has to be installed in the cluster: these are plain scripts. A test whose hardware or tool is missing "
        "ends as *not measured* and says so.",
        "",
        "## Before",
        "",
        *(f"- {need}" for need in (*needs, *_settings(export))),
        "",
        "## Run",
        "",
        *_paragraphs(run),
        "## Bring back",
        "",
        "`sh collect.sh` writes `results/manifest.json` and `results.tar.gz`. Where the architecture is:",
        "",
        "    cw accept import cluster.yaml results",
        "",
        "Each run has a directory `results/TEST/UNIT` with its output and `run.json` (node, start and end in UTC, exit "
        "code, image, driver, kernel). A second run of a test gets a directory of its own; nothing is overwritten.",
        "",
        "## Tests",
        "",
        "| Test | Nodes | What | Rights | By | Keeps others out |",
        "|---|---|---|---|---|---|",
        *(_row(t) for t in plan.tests),
        "",
    ]
    return "\n".join(lines)


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _settings(export: Export) -> list[str]:
    found = []
    stores = [s or "(any)" for s in stores_of(export.plan) if not export.options.stores.get(s)]
    if stores:
        found.append(f"`settings.sh` wants the path of: {', '.join(map(one_line, stores))}")
    services = [w for w in services_of(export.plan) if not export.options.endpoints.get(w)]
    if services:
        found.append(f"`settings.sh` wants the address of: {', '.join(map(one_line, services))}")
    return found


def _row(test: PlannedTest) -> str:
    nodes = fold(test.nodes) if test.nodes else "client"
    who = ", ".join(test.providers) or "-"
    kept = "yes" if test.kind.exclusive else "no"
    title = one_line(test.title).replace("|", "\\|")
    return f"| {test.id} | {nodes} | {title} | {test.rights} | {who} | {kept} |"


def stages_of(plan: AcceptancePlan) -> dict[int, list[PlannedTest]]:
    """Tests by stage, in order."""
    found: dict[int, list[PlannedTest]] = {}
    for test in sorted(plan.tests, key=lambda t: t.kind.stage):
        found.setdefault(test.kind.stage, []).append(test)
    return found


def waves_of(tests: Sequence[PlannedTest]) -> list[list[PlannedTest]]:
    """Tests of one stage, those that share neither nodes nor a store together, in order."""
    waves: list[list[PlannedTest]] = []
    for test in tests:
        alone = bool(test.control_of or test.kind.runs in ("client", "once"))
        last = waves[-1] if waves and not alone else []
        clash = any(_clash(test, other) for other in last)
        if last and not clash:
            last.append(test)
        else:
            waves.append([test])
    return waves


def _clash(one: PlannedTest, other: PlannedTest) -> bool:
    shared = bool(set(one.busy) & set(other.busy)) or not one.busy or not other.busy
    return shared or bool(one.store and one.store == other.store)


def guarded(test: PlannedTest, steps: Sequence[str], *, together: bool) -> list[str]:
    """Steps that a script takes only when the test or its stage is wanted; beside others when `together`."""
    body = [f"    {line}" for line in steps]
    if together:
        body = ["    (", *(f"    {line}" for line in body), "    ) &"]
    return [f"if wanted {test.id} {test.kind.stage}; then", *body, "fi"]
