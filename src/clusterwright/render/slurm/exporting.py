"""An acceptance plan → sbatch scripts with one that submits them, stage after stage.

Source of the options: man sbatch and man srun (Slurm 22.05 and later).
"""

from __future__ import annotations

from clusterwright.judging.acceptance_plans import Group, PlannedTest
from clusterwright.lib.hostlists import fold
from clusterwright.render.exports import Export, Files
from clusterwright.render.readmes import checked_words, guarded, render_readme, stages_of
from clusterwright.render.scripts import common_files, limit_s, one_line

_SUBMIT = """\
#!/bin/sh
# Submits the acceptance tests of {cluster}, each stage after the one before.
# Usage: sh submit.sh [STAGE or TEST ...]     default: all stages, {stages}
# Each job is one test on one node, pair or set of nodes, so that a node that is down holds up nothing but itself.
set -u
CW_HOME=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$CW_HOME" || exit 1
mkdir -p results logs
CW_WANTED=" $* "
after=
jobs=

wanted() {{
    case $CW_WANTED in
    "  ") return 0 ;;
    *" $1 "* | *" $2 "*) return 0 ;;
    esac
    return 1
}}

# job TEST UNIT NODES SBATCH-OPTIONS...: submits one run and remembers its number.
job() {{
    test=$1
    unit=$2
    nodes=$3
    shift 3
    if [ -n "$nodes" ]; then
        set -- --nodelist="$nodes" "$@"
    fi
    if [ -n "$after" ]; then
        set -- --dependency=afterany"$after" "$@"
    fi
    number=$(CW_UNIT=$unit CW_HOME=$CW_HOME sbatch --parsable --export=ALL "$@" "jobs/$test.sbatch") || {{
        echo "clusterwright: $test on $unit was not accepted" >&2
        return
    }}
    jobs="$jobs:${{number%%;*}}"
    echo "$number $test $unit"
}}

# The jobs that follow wait for those of this stage, where there were any.
stage_over() {{
    after=${{jobs:-$after}}
    jobs=
}}
"""


def render_slurm(export: Export) -> Files:
    """Every file of the export, path → text."""
    plan = export.plan
    files = common_files(export)
    stages = stages_of(export.tests)
    listed = ", ".join(map(str, stages))
    lines = [_SUBMIT.format(cluster=one_line(plan.cluster), stages=listed), checked_words(export.tests, {})]
    for stage, tests in stages.items():
        lines.append(f"# stage {stage}")
        for test in tests:
            if test.kind.runs == "client":
                steps = [f'CW_ENGINE=slurm CW_UNIT=client sh "$CW_HOME/tests/{test.id}.sh"']
            else:
                files[f"jobs/{test.id}.sbatch"] = _batch(test, export.options.queue)
                steps = _submissions(test)
            lines += guarded(test, steps, together=False)
        lines.append("stage_over")
    files["submit.sh"] = "\n".join([*lines, 'echo "clusterwright: when all are done: sh collect.sh" >&2', ""])
    run = (
        "`sh submit.sh` submits everything; `sh submit.sh 1 2` only these stages, `sh submit.sh TEST` only one "
        "test. Look at the results of the first "
        "stages before the later ones: a node that fails there spoils what follows.",
        "A test that runs in the production image does so only when `CW_SRUN_ARGS` says how your site starts "
        "containers, for Pyxis: `export CW_SRUN_ARGS=--container-image=REGISTRY#IMAGE@sha256:...`. Without it the "
        "image is not recorded, and claims about it stay not measured.",
    )
    needs = (
        "this directory on a file system that login node and compute nodes share",
        "for collectives over several nodes: nccl-tests built with MPI=1 against an MPI that `srun --mpi=pmix` starts "
        "(another plugin: `export CW_PMI=pmi2`)",
    )
    files["README.md"] = render_readme(export, run=run, needs=needs)
    return files


def _submissions(test: PlannedTest) -> list[str]:
    if test.kind.runs == "once":
        return [f"job {test.id} client ''"]
    if test.kind.launch == "ranks" or test.kind.runs == "together":
        return [f"job {test.id} each '{fold(test.nodes)}' --nodes={len(test.nodes)}"]
    return [f"job {test.id} {unit} '{fold(group)}' --nodes={len(group)}" for unit, group in test.units]


def _batch(test: PlannedTest, queue: str) -> str:
    minutes = -(-limit_s(test) // 60) + 5
    head = [
        "#!/bin/bash",
        f"#SBATCH --job-name=cw-{test.id}",
        f"#SBATCH --time={minutes // 60:02d}:{minutes % 60:02d}:00",
        "#SBATCH --output=logs/%x-%j.log",
        *([f"#SBATCH --partition={queue}"] if queue else []),
        *(["#SBATCH --exclusive"] if test.kind.exclusive and test.nodes else []),
        *([f"#SBATCH --gpus-per-node={test.gpus_per_node}"] if _wants_gpus(test) else []),
        f"# {one_line(test.title)}",
        "set -u",
        'cd "${CW_HOME:=$SLURM_SUBMIT_DIR}" || exit 1',
        "export CW_HOME",
        f"script=$CW_HOME/tests/{test.id}.sh",
    ]
    return "\n".join([*head, *_body(test)]) + "\n"


def _wants_gpus(test: PlannedTest) -> bool:
    return bool(test.gpus_per_node) and (test.kind.gpus or any("gpu" in need for need in test.kind.needs))


def _body(test: PlannedTest) -> list[str]:
    groups: Group = test.rounds[0][0]
    if test.kind.launch == "mpi":
        # The script calls srun itself, for all ranks.
        nodes = 'CW_GROUP=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -sd, -)'
        return [nodes, "export CW_GROUP", 'sh "$script"']
    extra = "${CW_SRUN_ARGS:-}" if test.kind.image == "production" else ""
    note = ["# shellcheck disable=SC2086  # several options"] if extra else []
    options = f" {extra}" if extra else ""
    if test.kind.per_rail and len(groups) == 2:
        return [
            'mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
            'CW_GROUP="${nodes[0]},${nodes[1]}"',
            'CW_PEER="${nodes[0]}"',
            "export CW_GROUP CW_PEER",
            'CW_ROLE=server srun --nodes=1 --ntasks=1 --exact --nodelist="${nodes[0]}" sh "$script" &',
            'CW_ROLE=client srun --nodes=1 --ntasks=1 --exact --nodelist="${nodes[1]}" sh "$script" &',
            "wait",
        ]
    everywhere = f'srun{options} --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 sh "$script"'
    if test.kind.launch == "ranks":
        return [
            'CW_MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            "CW_NODES=$SLURM_JOB_NUM_NODES",
            "export CW_MASTER CW_NODES",
            *note,
            everywhere,
        ]
    if test.kind.runs == "together":
        return [*note, everywhere]
    return [*note, f'srun{options} --nodes=1 --ntasks=1 sh "$script"']
