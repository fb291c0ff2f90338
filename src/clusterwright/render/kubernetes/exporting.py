"""An acceptance plan → manifests, with scripts that apply them and fetch what the pods print."""

from __future__ import annotations

from typing import Any

from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.render.exports import Export, Files
from clusterwright.render.kubernetes.fetching import render_fetch
from clusterwright.render.kubernetes.jobs import LABEL, SCRIPTS, SERVICE, SSH_SECRET, jobs_of, with_scripts
from clusterwright.render.kubernetes.yaml_text import yaml_documents
from clusterwright.render.readmes import checked_words, guarded, render_readme, stages_of, waves_of
from clusterwright.render.scripts import common_files, limit_s, one_line, render_settings

_SUBMIT = """\
#!/bin/sh
# Runs the acceptance tests of {cluster} as Jobs, each stage after the one before, and waits for them.
# Usage: sh submit.sh [STAGE or TEST ...]     default: all stages, {stages}
# Needs kubectl with the rights to create ConfigMaps, Services, Secrets and Jobs in the namespace {namespace}.
set -u
CW_HOME=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$CW_HOME" || exit 1
mkdir -p results
CW_WANTED=" $* "
KUBECTL="kubectl --namespace={namespace}"
STATES='{{range .items[*]}}{{.metadata.name}}={{.status.conditions[?(@.status=="True")].type}}{{"\\n"}}{{end}}'

wanted() {{
    case $CW_WANTED in
    "  ") return 0 ;;
    *" $1 "* | *" $2 "*) return 0 ;;
    esac
    return 1
}}

# apply FILE TEST SECONDS: creates the Jobs of one round and waits until they are over, however they end.
apply() {{
    if ! $KUBECTL create -f "manifests/$1"; then
        echo "clusterwright: $2 was not created; delete its Jobs to run it again: sh remove.sh $2" >&2
        return
    fi
    left=$3
    while [ "$left" -gt 0 ]; do
        if states=$($KUBECTL get jobs -l "{label}=$2" -o jsonpath="$STATES"); then
            if [ "$(printf '%s' "$states" | grep -c -v -e Complete -e Failed)" = 0 ]; then
                return
            fi
        fi
        sleep 10
        left=$((left - 10))
    done
    echo "clusterwright: $2 is not over after $3 s; sh fetch.sh shows what there is" >&2
}}

"""
_APPLY = "$KUBECTL apply -f manifests/00-scripts.yaml || exit 1\n"
_KEYS = """\
if ! $KUBECTL get secret {secret} >/dev/null 2>&1; then
    # A key for this acceptance alone: MPI starts its processes in other pods over ssh.
    keys=$(mktemp -d)
    ssh-keygen -q -t ed25519 -N '' -C clusterwright -f "$keys/key" &&
        $KUBECTL create secret generic {secret} --from-file="$keys/key" --from-file="$keys/key.pub"
    rm -rf "$keys"
fi
"""
_REMOVE = """\
#!/bin/sh
# Removes the Jobs of the acceptance tests (of TEST, or all), and with the last ones everything else of it.
# Fetches first, because what a pod printed goes with it; where that fails nothing is removed, unless with --unfetched.
# Usage: sh remove.sh [--unfetched] [TEST ...]
set -u
KUBECTL="kubectl --namespace={namespace}"
if [ "${{1:-}}" = --unfetched ]; then
    shift
elif ! sh "$(dirname -- "$0")/fetch.sh"; then
    echo "clusterwright: nothing was removed, as not everything was fetched; sh remove.sh --unfetched removes all" >&2
    exit 1
fi
if [ $# -gt 0 ]; then
    for test in "$@"; do
        $KUBECTL delete jobs -l "{label}=$test"
    done
    exit 0
fi
$KUBECTL delete jobs -l {label}
$KUBECTL delete service {service} --ignore-not-found
$KUBECTL delete configmap {scripts} --ignore-not-found
$KUBECTL delete secret {secret} --ignore-not-found
"""


def render_kubernetes(export: Export) -> Files:
    """Every file of the export, path → text."""
    plan, options = export.plan, export.options
    files = common_files(export)
    names = {
        "namespace": options.namespace,
        "label": LABEL,
        "service": SERVICE,
        "scripts": SCRIPTS,
        "secret": SSH_SECRET,
    }
    shared = _scripts(export, files)
    files["manifests/00-scripts.yaml"] = yaml_documents(shared)
    stages = stages_of(export.tests)
    listed = ", ".join(map(str, stages))
    lines = [
        _SUBMIT.format(cluster=one_line(plan.cluster), stages=listed, **names),
        checked_words(export.tests, export.left_out),
        _APPLY,
    ]
    if any(_is_mpi(t) for t in export.tests):
        lines.append(_KEYS.format(**names))
    for stage, tests in stages.items():
        for wave in waves_of(tests):
            lines.append(f"# stage {stage}")
            for test in wave:
                lines += guarded(test, _steps(test, export, files), together=len(wave) > 1)
            lines += ["wait"] * (len(wave) > 1)
    files["submit.sh"] = "\n".join([*lines, 'echo "clusterwright: now run: sh collect.sh" >&2', ""])
    files["fetch.sh"] = render_fetch(options.namespace, LABEL)
    files["remove.sh"] = _REMOVE.format(**names)
    files["README.md"] = render_readme(export, run=_RUN, needs=_needs(export))
    return files


def _is_mpi(test: PlannedTest) -> bool:
    return test.kind.launch == "mpi" and len(test.rounds[0][0]) > 1


def _scripts(export: Export, files: Files) -> list[dict[str, Any]]:
    """The ConfigMap with every script, and the Service by which pods find each other."""
    options = export.options
    data = {key: files[path] for key, path in _keys(files).items()}
    # A pod has the paths of stores from its mounts, so the settings hold addresses only.
    data["settings.sh"] = render_settings(export, {})
    labels = {"app.kubernetes.io/part-of": "clusterwright-acceptance"}
    meta = {"namespace": options.namespace, "labels": labels}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SCRIPTS, **meta}, "data": data},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, **meta},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels},
        },
    ]


def _keys(files: Files) -> dict[str, str]:
    """Key in the ConfigMap → path in the export; keys cannot hold a slash."""
    found = {p.replace("/", "."): p for p in sorted(files) if p.startswith(("lib/", "tests/"))}
    return {"settings.sh": "settings.sh", **found}


def _steps(test: PlannedTest, export: Export, files: Files) -> list[str]:
    if test.kind.runs == "client":
        return [f'CW_HOME=$CW_HOME CW_ENGINE=kubernetes CW_UNIT=client sh "$CW_HOME/tests/{test.id}.sh"']
    needed = {k: p for k, p in _keys(files).items() if not p.startswith("tests/") or p == f"tests/{test.id}.sh"}
    rounds: dict[int, list[dict[str, Any]]] = {}
    for turn, job in jobs_of(test, export.options, export.plan.image):
        rounds.setdefault(turn, []).append(with_scripts(job, needed))
    steps = []
    for turn, jobs in rounds.items():
        name = f"{test.id}.yaml" if len(rounds) == 1 else f"{test.id}-{turn + 1}.yaml"
        files[f"manifests/{name}"] = yaml_documents(jobs)
        steps.append(f"apply {name} {test.id} {limit_s(test) + 1800}")
    return steps


_RUN = (
    "`sh submit.sh` runs everything in order and waits; `sh submit.sh 1` only stage 1, `sh submit.sh TEST` only one "
    "test. Look at the results of the first stages before the later ones: a node that fails there spoils what follows.",
    "`sh collect.sh` fetches what the pods printed; do it before the Jobs are removed. `sh remove.sh` removes them.",
)


def _needs(export: Export) -> list[str]:
    options = export.options
    needs = [f"`kubectl` with rights to create ConfigMaps, Services, Secrets and Jobs in `{options.namespace}`"]
    tests = export.tests
    if any(t.kind.image == "tools" and t.kind.runs != "client" for t in tests) and not options.tools_image:
        needs.append(
            "tests of the node's health and of RDMA run in the production image, which may lack their tools (dcgmi, "
            "perftest, ibstat, fio); `--tools-image` names one that has them"
        )
    if any("rdma" in t.kind.needs for t in tests) and not options.rdma_resource:
        needs.append("`--rdma-resource` names the extended resource by which pods get RDMA devices; none is asked for")
    if any(_is_mpi(t) for t in tests):
        needs.append(
            "collectives over several nodes: the production image holds Open MPI, nccl-tests built with MPI=1, and "
            "/usr/sbin/sshd; an operator for MPI is not needed. Without sshd they end as not measured"
        )
    if any("store" in t.kind.placeholders for t in tests):
        needs.append("a PersistentVolumeClaim (ReadWriteMany) for each store; `--store NAME=CLAIM` says which")
    if any(t.kind.argv[0] == "dmesg" for t in tests):
        needs.append("the kernel log needs root in the pod and the capability SYSLOG; no pod is privileged")
    return needs
