"""The script of one test: POSIX shell, the same for every engine."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any, Final

from clusterwright.judging.acceptance_plans import AcceptancePlan, Argument, PlannedTest, Slot
from clusterwright.render.exports import Export, Files, Rails

#: Variables that hold what only the machine knows.
_SLOTS: Final = {
    "out": "${CW_OUT}",
    "scripts": "${CW_HOME}/lib",
    "store": "${CW_STORE}",
    "endpoint": "${CW_ENDPOINT}",
    "device": "${CW_DEVICE}",
    "rail": "${CW_RAIL}",
    "port": "${CW_PORT}",
}
#: A test that takes this much longer than planned has failed.
_PATIENCE: Final = 1.5
_PATIENCE_S: Final = 900.0
#: Variables of lib/run.sh.
_KNOBS: Final = ("CW_RESULTS", "CW_SUDO", "CW_IMAGE", "CW_RAILS", "CW_RAIL_WAIT", "CW_RAIL_SECONDS", "CW_RAIL_IDLE")
FORMAT: Final = "clusterwright-acceptance/1"


def common_files(export: Export) -> Files:
    """What every engine's export holds: scripts, the plan, settings."""
    files = {f"lib/{name}": text for name, text in export.scripts.items() if name != "collect.sh"}
    files["collect.sh"] = export.scripts["collect.sh"]
    files["plan.json"] = render_plan(export)
    files["settings.sh"] = render_settings(export)
    for test in export.tests:
        files[f"tests/{test.id}.sh"] = render_test(test, export.rails.get(test.pool, Rails()))
    return files


def render_test(test: PlannedTest, rails: Rails) -> str:
    """The script that runs one test on the node, pair or set of nodes that it is started for."""
    kind = test.kind
    files = " ".join(kind.files) or "stdout.txt"
    lines = [
        "#!/bin/sh",
        f"# {one_line(test.title)}",
        f"# Shows {one_line(kind.shows)}.",
        f"# Leaves open {one_line(kind.leaves_open)}.",
        f"# Source of the command: {one_line(kind.source)}",
        "set -u",
        'CW_HOME=${CW_HOME:-$(CDPATH=\'\' cd -- "$(dirname -- "$0")/.." && pwd)}',
        "# shellcheck source=/dev/null",
        '. "${CW_HOME}/lib/run.sh"',
        f"cw_begin {test.id} {kind.reader} {limit_s(test)} {quote(files)}",
        *(f"cw_need {need}" for need in kind.needs),
    ]
    tool = _tool(test)
    if tool and kind.launch != "mpi":  # which looks for it itself, in the image where there is one
        lines.append(f"cw_tool {quote(tool)}")
    if "store" in kind.placeholders:
        name = test.store or "of this test"
        lines.append(f'cw_store {quote(one_line(name))} "${{{store_variable(test.store)}:-}}"')
    if "endpoint" in kind.placeholders:
        variable = endpoint_variable(test.workload)
        lines.append(f'cw_endpoint {quote(one_line(test.workload))} "${{{variable}:-}}"')
    if kind.rights == "root":
        lines.append("cw_root")
    lines += [f"cw_set {name} {quote(value)}" for name, value in kind.environment.items()]
    if kind.during:
        lines.append(f"cw_during {' '.join(map(quote, kind.during))}")
    return "\n".join([*lines, *_start(test, rails)]) + "\n"


def _start(test: PlannedTest, rails: Rails) -> list[str]:
    command = shell_command(test.argv)
    if test.kind.per_rail:
        return [
            "rail() {",
            f"    cw_rail {command}",
            "}",
            f"cw_rails rail {quote(rails.layer)} {rails.rate:g} {rails.ports}",
        ]
    if test.kind.launch == "mpi":
        pods = ['if [ "$CW_ENGINE" = kubernetes ]; then cw_mpi_pod; fi'] if len(test.rounds[0][0]) > 1 else []
        return [*pods, f"cw_mpi {test.ranks} {test.gpus_per_node} {command}"]
    if test.kind.launch == "ranks":
        return [f"export CW_GPUS={test.gpus_per_node}", f"cw_run {command}"]
    return [f"cw_run {command}"]


def _tool(test: PlannedTest) -> str:
    first = test.argv[0]
    return first[0] if len(first) == 1 and isinstance(first[0], str) else ""


def shell_command(argv: Iterable[Argument]) -> str:
    """A command as words of POSIX shell; fixed text is quoted, values of the machine are expanded within quotes."""
    return " ".join(map(shell_word, argv))


def shell_word(argument: Argument) -> str:
    """One argument as one word of POSIX shell."""
    pieces = [f'"{_SLOTS[p.name]}"' if isinstance(p, Slot) else quote(p) for p in argument if p != ""]
    return "".join(pieces) or "''"


def limit_s(test: PlannedTest) -> int:
    """Seconds after which a run of the test is ended."""
    one = test.seconds / max(1, len(test.rounds))
    return math.ceil(one * _PATIENCE + _PATIENCE_S)


def one_line(text: str) -> str:
    """Text without line breaks and control characters, for a comment or a message."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def store_variable(store: str) -> str:
    """Name of the variable that holds a store's path."""
    return f"CW_STORE_{_variable(store)}"


def endpoint_variable(workload: str) -> str:
    """Name of the variable that holds a service's address."""
    return f"CW_ENDPOINT_{_variable(workload)}"


def _variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper().encode("ascii", "replace").decode()) or "DEFAULT"


def stores_of(plan: AcceptancePlan) -> tuple[str, ...]:
    """Stores that tests use, in the order of the tests."""
    return tuple(dict.fromkeys(t.store for t in plan.tests if "store" in t.kind.placeholders))


def services_of(plan: AcceptancePlan) -> tuple[str, ...]:
    """Workloads whose service a test talks to."""
    return tuple(dict.fromkeys(t.workload for t in plan.tests if "endpoint" in t.kind.placeholders))


def render_settings(export: Export, paths: Mapping[str, str] | None = None) -> str:
    """Variables that the tests read; the environment wins over what stands here.

    Args:
        paths: store → path, instead of what the options say.
    """
    chosen = export.options.stores if paths is None else paths
    lines = ["# shellcheck shell=sh disable=SC2034", "# What the architecture does not say. The environment wins."]
    for store in stores_of(export.plan):
        lines.append(f"# path of the store {one_line(store) or 'that tests of storage use'} on the nodes")
        lines.append(_default(store_variable(store), chosen.get(store, "")))
    for workload in services_of(export.plan):
        lines.append(f"# address of the service {one_line(workload)}, such as http://10.0.0.5:8000")
        lines.append(_default(endpoint_variable(workload), export.options.endpoints.get(workload, "")))
    return "\n".join(lines) + "\n"


def forwarded(plan: AcceptancePlan) -> tuple[str, ...]:
    """Variables that whoever starts the tests may set, and that hold on every node."""
    stores = (store_variable(s) for s in stores_of(plan))
    services = (endpoint_variable(w) for w in services_of(plan))
    return tuple(dict.fromkeys((*stores, *services, *_KNOBS)))


def _default(name: str, value: str) -> str:
    return f'if [ -z "${{{name}:-}}" ]; then {name}={quote(value)}; fi'


def render_plan(export: Export) -> str:
    """The plan as JSON: which runs must report, and for what."""
    plan = export.plan
    left_out = export.left_out
    tests = [
        {
            "id": t.id,
            "kind": t.kind.name,
            "title": t.title,
            "reader": t.kind.reader,
            "command": shell_command(t.argv),
            "units": [{"unit": unit, "nodes": list(nodes)} for unit, nodes in t.units],
            "claims": list(t.claims),
            "control_of": t.control_of,
            **({"left_out": left_out[t.id]} if t.id in left_out else {}),
        }
        for t in plan.tests
    ]
    body: dict[str, Any] = {
        "format": FORMAT,
        "cluster": plan.cluster,
        "engine": export.engine,
        "derived_with": dict(export.derived_with),
        "tests": tests,
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"
