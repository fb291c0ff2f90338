"""The page that explains an export to whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.lib.hostlists import fold
from clusterwright.render.exports import Export
from clusterwright.render.scripts import one_line, services_of, shell_command, stores_of


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
        *([f"**These results will not count.** {export.foreign}", ""] if export.foreign else []),
        "## Before",
        "",
        *(f"- {need}" for need in (*needs, *_settings(export), *_rights(export))),
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
        *(_row(t) for t in export.tests),
        "",
        *_left_out(export),
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


def _rights(export: Export) -> list[str]:
    tests = [t.id for t in export.tests if t.kind.rights == "root"]
    if not tests:
        return []
    how = (
        "their pods run as root where the image does, without privileges"
        if export.engine == "kubernetes"
        else 'run them as root, or set `CW_SUDO="sudo -n"`, which is put before their commands only (off by default); '
        "without either they run with the rights that you have, and what they may not read is not measured"
    )
    return [f"rights of root for {', '.join(tests)}: {how}"]


def _left_out(export: Export) -> list[str]:
    if not export.left_out:
        return []
    by_id = {t.id: t for t in export.plan.tests}
    items = [
        f"- {id_} ({fold(by_id[id_].nodes)}): {why}; take it there with `{shell_command(by_id[id_].argv)}` and put the "
        "file into `results` before it is collected"
        for id_, why in export.left_out.items()
    ]
    return ["## Not in this export", "", *items, ""]


def checked_words(tests: Sequence[PlannedTest], left_out: Mapping[str, str]) -> str:
    """Shell lines that refuse a word which is neither a test nor a stage, with those that are."""
    ids, stages = " ".join(t.id for t in tests), " ".join(map(str, sorted({t.kind.stage for t in tests})))
    lines = [f"CW_TESTS='{ids}'", f"CW_STAGES='{stages}'", 'for word in "$@"; do', '    case "$word" in']
    for id_, why in left_out.items():
        lines += [
            f"    {id_})",
            f"        echo {quote(f'clusterwright: {id_}: {why}')} >&2",
            "        exit 2",
            "        ;;",
        ]
    lines += [
        '    "" | *[!a-z0-9-]*) ;;',
        "    *)",
        '        case " $CW_TESTS $CW_STAGES " in',
        '        *" $word "*) continue ;;',
        "        esac",
        "        ;;",
        "    esac",
        "    echo \"clusterwright: no test or stage '$word'; tests: $CW_TESTS; stages: $CW_STAGES\" >&2",
        "    exit 2",
        "done",
        "",
    ]
    return "\n".join(lines)


def _row(test: PlannedTest) -> str:
    nodes = fold(test.nodes) if test.nodes else "client"
    who = ", ".join(test.providers) or "-"
    kept = "yes" if test.kind.exclusive else "no"
    title = one_line(test.title).replace("|", "\\|")
    return f"| {test.id} | {nodes} | {title} | {test.rights} | {who} | {kept} |"


def stages_of(tests: Sequence[PlannedTest]) -> dict[int, list[PlannedTest]]:
    """Tests by stage, in order."""
    found: dict[int, list[PlannedTest]] = {}
    for test in sorted(tests, key=lambda t: t.kind.stage):
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


def guarded(
    test: PlannedTest,
    steps: Sequence[str],
    *,
    together: bool,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    note: str = "",
) -> list[str]:
    """Steps that a script takes only when the test or its stage is wanted; beside others when `together`.

    Args:
        before, after: what a subshell does around the steps.
        note: what follows once the subshell is started.
    """
    body = [f"    {line}" for line in steps]
    if together:
        body = ["    (", *(f"    {line}" for line in (*before, *body, *after)), f"    ) &{note}"]
    return [f"if wanted {test.id} {test.kind.stage}; then", *body, "fi"]
