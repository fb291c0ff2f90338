"""An acceptance plan → a directory of shell scripts with one that runs them in order."""

from __future__ import annotations

from shlex import quote

from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.render.exports import Export, Files
from clusterwright.render.readmes import guarded, render_readme, stages_of, waves_of
from clusterwright.render.scripts import common_files, one_line

_HEAD = """\
#!/bin/sh
# Runs the acceptance tests of {cluster} in order: on this machine, and on others over ssh.
# Usage: sh run.sh [--as NODE] [TEST or STAGE ...]
#   --as NODE   name of this machine in the architecture (default: its host name)
#   TEST        only these tests; STAGE is a number; default is everything
# Other nodes are reached with `ssh NODE` without a password, and must see this directory under the same path.
set -u
CW_HOME=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
CW_SELF=$(uname -n | cut -d. -f1)
if [ "${{1:-}}" = --as ]; then
    CW_SELF=${{2:?--as wants the name of a node}}
    shift 2
fi
CW_WANTED=" $* "
export CW_HOME
mkdir -p "$CW_HOME/results"

wanted() {{
    case $CW_WANTED in
    "  ") return 0 ;;
    *" $1 "* | *" $2 "*) return 0 ;;
    esac
    return 1
}}

# on NODE NAME=VALUE... SCRIPT: runs a test's script there.
on() {{
    node=$1
    shift
    if [ "$node" = "$CW_SELF" ] || [ "$node" = - ]; then
        env "$@"
    else
        line="cd '$CW_HOME' && env"
        for word in "$@"; do
            line="$line '$(printf '%s' "$word" | sed "s/'/'\\\\\\\\''/g")'"
        done
        ssh -n -o BatchMode=yes -o ConnectTimeout=10 "$node" "$line"
    fi
}}
"""


def render_shell(export: Export) -> Files:
    """Every file of the export, path → text."""
    plan = export.plan
    lines = [_HEAD.format(cluster=one_line(plan.cluster))]
    for stage, tests in stages_of(plan).items():
        for wave in waves_of(tests):
            lines.append(f"# stage {stage}")
            for test in wave:
                lines += guarded(test, _lines(test), together=len(wave) > 1)
            lines += ["wait"] * (len(wave) > 1)
    files = common_files(export)
    files["run.sh"] = "\n".join([*lines, 'echo "clusterwright: now run: sh collect.sh" >&2', ""])
    run = (
        "`sh run.sh` runs everything in order; `sh run.sh 1` only stage 1, `sh run.sh TEST` only one test. Look at the "
        "results of the first stages before the later ones: a node that fails there spoils what follows.",
        "On one machine alone, `sh run.sh --as NODE` names it as the architecture does.",
    )
    needs = (
        "a POSIX shell, coreutils, and the tools of the tests (nvidia-smi, dcgmi, nccl-tests, perftest, fio ...)",
        "for tests over several nodes: this directory on a shared file system, and ssh without a password",
        "for collectives over several nodes: Open MPI, and nccl-tests built with MPI=1",
    )
    files["README.md"] = render_readme(export, run=run, needs=needs)
    return files


def _lines(test: PlannedTest) -> list[str]:
    script = f'sh "$CW_HOME/tests/{test.id}.sh"'
    if test.kind.runs in ("client", "once"):
        return [f"on - CW_UNIT=client {script}"]
    if test.kind.launch == "ranks":
        group = test.nodes
        return [
            *(
                f"on {quote(n)} CW_NODE={n} CW_UNIT={n} CW_NODE_RANK={i} CW_NODES={len(group)} "
                f"CW_MASTER={group[0]} {script} &"
                for i, n in enumerate(group)
            ),
            "wait",
        ]
    lines = []
    for groups in test.rounds:
        for unit, group in [(u, g) for u, g in test.units if g in groups]:
            lines += _unit(test, unit, group, script)
        lines.append("wait")
    return lines


def _unit(test: PlannedTest, unit: str, group: tuple[str, ...], script: str) -> list[str]:
    names = f"CW_UNIT={unit} CW_GROUP={','.join(group)}"
    if test.kind.per_rail and len(group) == 2:
        server, client = group
        return [
            f"on {server} CW_NODE={server} {names} CW_ROLE=server {script} &",
            f"on {client} CW_NODE={client} {names} CW_ROLE=client CW_PEER={server} {script} &",
        ]
    return [f"on {group[0]} CW_NODE={group[0]} {names} {script} &"]
