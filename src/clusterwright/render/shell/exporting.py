"""An acceptance plan → a directory of shell scripts with one that runs them in order."""

from __future__ import annotations

from shlex import quote

from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.render.exports import Export, Files
from clusterwright.render.readmes import checked_words, guarded, render_readme, stages_of, waves_of
from clusterwright.render.scripts import common_files, forwarded, one_line

_HEAD = r"""#!/bin/sh
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
mkdir -p "$CW_HOME/results" || exit 1

wanted() {{
    case $CW_WANTED in
    "  ") return 0 ;;
    *" $1 "* | *" $2 "*) return 0 ;;
    esac
    return 1
}}

# Stops every test that runs, here and over ssh, and waits until they wrote down that they were stopped.
# shellcheck disable=SC2317  # called by trap
stop() {{
    trap '' HUP INT TERM
    for job in $CW_JOBS; do
        kill -TERM "$job" 2>/dev/null
    done
    wait
    exit 130
}}
CW_JOBS=
CW_CODE=0
trap stop HUP INT TERM

# join: waits for what was started, and remembers whether all of it could be.
join() {{
    for job in $CW_JOBS; do
        wait "$job" || CW_CODE=1
    done
    CW_JOBS=
}}

# on NODE NAME=VALUE... SCRIPT: becomes a test's script there. Variables of this environment hold there, too.
on() {{
    node=$1
    shift
    if [ "$node" = "$CW_SELF" ] || [ "$node" = - ]; then
        exec env "$@"
    fi
    for name in {forwarded}; do
        eval "value=\${{$name:-}}"
        if [ -n "$value" ]; then set -- "$name=$value" "$@"; fi
    done
    line="cd $(quoted "$CW_HOME") && exec env"
    for word in "$@"; do
        line="$line $(quoted "$word")"
    done
    # With a terminal of its own, a script over there is hung up when this ssh ends.
    trap stop HUP INT TERM
    ssh -n -tt -o BatchMode=yes -o ConnectTimeout=10 "$node" "$line" &
    CW_JOBS=$!
    wait "$CW_JOBS"
    code=$?
    if [ "$code" -ne 0 ]; then
        echo "clusterwright: $node: ssh ended with exit code $code, its test may not have run" >&2
    fi
    exit "$code"
}}

quoted() {{
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"
}}
"""
_BEFORE = ("CW_JOBS=", "trap stop HUP INT TERM")
_NOTE = ' CW_JOBS="$CW_JOBS $!"'
_AFTER = ('exit "$CW_CODE"',)


def render_shell(export: Export) -> Files:
    """Every file of the export, path → text."""
    plan = export.plan
    head = _HEAD.format(cluster=one_line(plan.cluster), forwarded=" ".join(forwarded(plan)))
    lines = [head, checked_words(export.tests, {})]
    for stage, tests in stages_of(export.tests).items():
        for wave in waves_of(tests):
            lines.append(f"# stage {stage}")
            for test in wave:
                lines += guarded(test, _lines(test), together=len(wave) > 1, before=_BEFORE, after=_AFTER, note=_NOTE)
            lines += ["join"] * (len(wave) > 1)
    files = common_files(export)
    files["run.sh"] = "\n".join([*lines, 'echo "clusterwright: now run: sh collect.sh" >&2', 'exit "$CW_CODE"', ""])
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
        return [f"on - CW_UNIT=client {script} &{_NOTE}", "join"]
    if test.kind.launch == "ranks":
        group = test.nodes
        return [
            *(
                f"on {quote(n)} CW_NODE={n} CW_UNIT={n} CW_NODE_RANK={i} CW_NODES={len(group)} "
                f"CW_MASTER={group[0]} {script} &{_NOTE}"
                for i, n in enumerate(group)
            ),
            "join",
        ]
    lines = []
    for groups in test.rounds:
        for unit, group in [(u, g) for u, g in test.units if g in groups]:
            lines += _unit(test, unit, group, script)
        lines.append("join")
    return lines


def _unit(test: PlannedTest, unit: str, group: tuple[str, ...], script: str) -> list[str]:
    names = f"CW_UNIT={unit} CW_GROUP={','.join(group)}"
    if test.kind.per_rail and len(group) == 2:
        server, client = group
        return [
            f"on {server} CW_NODE={server} {names} CW_ROLE=server {script} &{_NOTE}",
            f"on {client} CW_NODE={client} {names} CW_ROLE=client CW_PEER={server} {script} &{_NOTE}",
        ]
    return [f"on {group[0]} CW_NODE={group[0]} {names} {script} &{_NOTE}"]
