"""An acceptance run for real on this machine: exported, run, imported, with what is missing named as such."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.local
FIXTURE = Path(__file__).parents[1] / "fixtures" / "acceptance" / "one-box.yaml"
NODE = socket.gethostname().split(".")[0]
HAS_GPU = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def cw(*argv, check=False):
    return subprocess.run(
        [sys.executable, "-m", "clusterwright.cli.entry", "accept", *map(str, argv)],
        capture_output=True, text=True, check=check,
    )  # fmt: skip


def run(*argv, cwd, **environment):
    return subprocess.run(
        [*argv], cwd=cwd, capture_output=True, text=True, check=False, timeout=240,
        env={k: v for k, v in os.environ.items() if not k.startswith("SLURM")} | environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """(architecture, export) of this machine, run once and collected."""
    root = tmp_path_factory.mktemp("acceptance")
    store = root / "a store's place"
    store.mkdir()
    file = root / "cluster.yaml"
    file.write_text(FIXTURE.read_text(encoding="utf-8").replace("NODE", NODE), encoding="utf-8")
    export = root / "export"
    cw("export", file, export, "--shell", "--store", f"disk={store}", check=True)
    done = run("sh", "run.sh", cwd=export)
    assert done.returncode == 0, done.stderr
    collected = run("sh", "collect.sh", cwd=export)
    assert collected.returncode == 0, collected.stderr
    assert not list(store.iterdir()), "tests leave nothing on the store"
    return file, export


@pytest.fixture(scope="module")
def verdict(box):
    done = cw("import", *box, "--format", "json")
    assert done.returncode == 3, done.stderr
    return json.loads(done.stdout)


def claim(verdict, name):
    return next(c for c in verdict["claims"] if c["id"] == name)


def test_checkpoints_are_written_restored_and_measured(verdict):
    for name in ("checkpoint-write", "checkpoint-restore"):
        found = claim(verdict, name)
        if found["outcome"] == "not measured":
            pytest.skip(f"the file system here takes no O_DIRECT: {found['reason']}")
        assert found["outcome"] == "met"
        assert found["value"].endswith(" s")


def test_storage_is_measured_by_fio_with_the_declared_readers_and_by_nothing_else(verdict):
    found = claim(verdict, "cold-load")
    if shutil.which("fio") is None:
        assert "no such tool: fio" in found["reason"]
        return
    assert found["outcome"] == "met", found
    assert "B/s" in found["value"]


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize("name", ["gpus", "dcgm", "all-reduce", "placement"])
def test_without_gpus_their_tests_end_as_no_such_hardware(verdict, name):
    found = claim(verdict, name)
    assert found["outcome"] == "not measured"
    assert found["reason"].startswith("no such hardware")
    assert "sh run.sh" in found["next"]


def test_a_claim_that_no_test_covers_names_what_would_measure_it(verdict):
    assert claim(verdict, "recovery")["outcome"] == "not measured"
    assert "kill one worker" in claim(verdict, "recovery")["next"]


def test_the_manifest_has_every_run_with_node_times_and_exit_code(box):
    _, export = box
    manifest = json.loads((export / "results" / "manifest.json").read_text(encoding="utf-8"))
    runs = {r["test"]: r for r in manifest["runs"]}
    assert runs["checkpoint"]["node"] == NODE
    assert runs["checkpoint"]["exit_code"] == 0
    assert runs["checkpoint"]["started"] <= runs["checkpoint"]["ended"]
    assert all(len(f["sha256"]) == 64 for f in manifest["files"])
    assert (export / "results.tar.gz").stat().st_size > 0


def copy_of(box, tmp_path):
    file, export = box
    shutil.copytree(export / "results", tmp_path / "results")
    return file, tmp_path / "results"


def test_a_byte_altered_after_collection_takes_the_measurement_away(box, tmp_path):
    file, results = copy_of(box, tmp_path)
    output = results / "checkpoint" / NODE / "stdout.txt"
    output.write_text(output.read_text(encoding="utf-8").replace('"seconds": ', '"seconds": 0'), encoding="utf-8")
    done = cw("import", file, results, "--format", "json")
    found = claim(json.loads(done.stdout), "checkpoint-write")
    assert (found["outcome"], done.returncode) == ("not measured", 3)
    assert "altered after it was collected" in found["reason"]


def test_without_a_manifest_no_run_counts_and_it_is_said(box, tmp_path):
    file, results = copy_of(box, tmp_path)
    (results / "manifest.json").unlink()
    found = json.loads(cw("import", file, results, "--format", "json").stdout)
    assert claim(found, "checkpoint-write")["outcome"] == "not measured"
    assert "not protected by the manifest: there is none" in claim(found, "checkpoint-write")["reason"]


def test_an_empty_output_is_not_measured(box, tmp_path):
    file, results = copy_of(box, tmp_path)
    (results / "checkpoint" / NODE / "stdout.txt").write_text("", encoding="utf-8")
    run("sh", "collect.sh", cwd=box[1], CW_RESULTS=str(results))
    found = json.loads(cw("import", file, results, "--format", "json").stdout)
    assert claim(found, "checkpoint-write")["outcome"] == "not measured"


def test_a_node_that_did_not_report_is_named(box, tmp_path):
    file, results = copy_of(box, tmp_path)
    for folder in results.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    (results / "manifest.json").unlink()
    done = cw("import", file, results)
    assert f"Nothing came back from {NODE}." in done.stdout
    assert done.returncode == 3


def test_a_second_run_keeps_the_first(box):
    _, export = box
    done = run("sh", "run.sh", "checkpoint", cwd=export, CW_RESULTS=str(export / "again"))
    assert done.returncode == 0, done.stderr
    run("sh", "run.sh", "checkpoint", cwd=export, CW_RESULTS=str(export / "again"))
    assert sorted(p.name for p in (export / "again" / "checkpoint").iterdir()) == [NODE, f"{NODE}.2"]


def test_a_store_without_a_path_ends_as_not_configured(box, tmp_path):
    file, _ = box
    cw("export", file, tmp_path / "export", "--shell", check=True)
    run("sh", "run.sh", "checkpoint", cwd=tmp_path / "export")
    record = json.loads((tmp_path / "export" / "results" / "checkpoint" / NODE / "run.json").read_text("utf-8"))
    assert record["lacking"] == "not configured: no path for the store disk in settings.sh"
    assert record["exit_code"] is None


def test_an_export_is_not_written_over_anything(box):
    file, export = box
    done = cw("export", file, export, "--shell")
    assert done.returncode == 2
    assert "not empty" in done.stderr


def test_on_cpus_alone_a_collective_is_labelled_so_or_its_tool_is_named(tmp_path):
    file = tmp_path / "cluster.yaml"
    text = FIXTURE.read_text(encoding="utf-8").replace("NODE", NODE).replace("gpus: 1, gpu: h100-sxm-80", "gpus: 0")
    file.write_text(text, encoding="utf-8")
    cw("export", file, tmp_path / "export", "--shell", check=True)
    run("sh", "run.sh", "collective-cpu", cwd=tmp_path / "export")
    run("sh", "collect.sh", cwd=tmp_path / "export")
    found = json.loads(cw("import", file, tmp_path / "export", "--format", "json").stdout)
    unit = next(r for r in found["runs"] if r["test"] == "collective-cpu")
    if unit["state"] == "lacking":
        assert unit["reason"] == "no such tool: neither torch nor mpi4py with mpirun is installed"
    else:
        assert unit["state"] == "read"
        output = tmp_path / "export" / "results" / "collective-cpu" / NODE / "stdout.txt"
        assert json.loads(output.read_text(encoding="utf-8").splitlines()[-1])["device"] == "cpu"
    assert claim(found, "all-reduce")["outcome"] == "not measured", "a number of CPUs never proves one of GPUs"


KUBECTL = """\
#!/bin/sh
# Answers what fetch.sh asks, from files: the pods, what each printed, and what the API server says of it.
case "$*" in
*"get pods"*) ls "$FAKE" | sed -n 's/\\.log$//p' ;;
*"get pod "*) for pod in "$@"; do if [ -f "$FAKE/$pod.json" ]; then cat "$FAKE/$pod.json"; fi; done ;;
*logs*) for pod in "$@"; do if [ -f "$FAKE/$pod.log" ]; then cat "$FAKE/$pod.log"; fi; done ;;
esac
"""


def test_what_pods_print_comes_back_with_the_image_that_ran(box, tmp_path):
    file, _ = box
    mine = tmp_path / "cluster.yaml"
    mine.write_text(file.read_text(encoding="utf-8").replace("engine: local", "engine: kubernetes"), encoding="utf-8")
    export, fake, store = tmp_path / "export", tmp_path / "fake", tmp_path / "store"
    cw("export", mine, export, "--kubernetes", "--image", "reg/x@sha256:aa", check=True)
    fake.mkdir()
    store.mkdir()
    (tmp_path / "bin").mkdir()
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text(KUBECTL, encoding="utf-8")
    kubectl.chmod(0o755)
    for test in ("checkpoint", "gpu-inventory"):
        pod = run(
            "sh", f"tests/{test}.sh", cwd=export, CW_RESULTS=str(tmp_path / "pod"), CW_PRINT="1",
            CW_ENGINE="kubernetes", CW_NODE=NODE, CW_STORE_DISK=str(store),
        )  # fmt: skip
        (fake / f"{test}-0.log").write_text(f"pulling\n{pod.stdout}", encoding="utf-8")
        status = {
            "kind": "Pod",
            "metadata": {"labels": {"clusterwright.dev/test": test}},
            "spec": {"nodeName": NODE},
            "status": {"containerStatuses": [{"imageID": "reg/x@sha256:bb", "state": {"terminated": {"exitCode": 0}}}]},
        }
        (fake / f"{test}-0.json").write_text(json.dumps(status), encoding="utf-8")
    (fake / "evil-0.log").write_text("clusterwright-file: ../../../evil\n| x\nclusterwright-end\n", encoding="utf-8")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    collected = run("sh", "collect.sh", cwd=export, PATH=path, FAKE=str(fake))
    assert collected.returncode == 0, collected.stderr
    assert not list(tmp_path.rglob("evil"))
    found = json.loads(cw("import", mine, export, "--format", "json").stdout)
    states = {r["test"]: (r["state"], r["reason"]) for r in found["runs"]}
    assert states["checkpoint"] == ("read", None), collected.stderr
    assert claim(found, "checkpoint-write")["outcome"] == "met"
    records = list((export / "results" / "checkpoint").rglob("pod.txt"))
    assert [r.read_text(encoding="utf-8").strip() for r in records] == ["checkpoint-0"]


SLURM = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
MISSING = [p for p in SLURM if shutil.which(p) is None and not Path(f"/usr/sbin/{p}").exists()]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A Slurm of one node on this machine; the environment in which its commands find it."""
    if MISSING or os.geteuid() != 0:
        pytest.skip(f"Slurm cannot be started: {', '.join(MISSING) or 'not root'} (Debian: slurm-wlm, munge)")
    root = tmp_path_factory.mktemp("slurm")
    root.chmod(0o755)
    key, sock = root / "munge.key", root / "munge.socket"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    for name in ("state", "spool"):
        (root / name).mkdir()
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        ports = one.getsockname()[1], two.getsockname()[1]
    user = pwd.getpwuid(os.geteuid()).pw_name
    (root / "slurm.conf").write_text(
        f"""\
ClusterName=test
SlurmctldHost={NODE}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={sock}
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1
NodeName={NODE} NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:1 State=UNKNOWN
GresTypes=gpu
PartitionName=all Nodes={NODE} Default=YES MaxTime=INFINITE State=UP
""",
        encoding="utf-8",
    )
    (root / "gres.conf").write_text(f"NodeName={NODE} Name=gpu File=/dev/null\n", encoding="utf-8")
    environment = {"SLURM_CONF": str(root / "slurm.conf"), "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    log = (root / "daemons.log").open("wb")
    commands = (
        ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={sock}", f"--pid-file={root}/munge.pid",
         f"--seed-file={root}/seed", f"--log-file={root}/munge.log"],
        ["slurmctld", "-D", "-c"],
        ["slurmd", "-D", "-N", NODE],
    )  # fmt: skip
    daemons = []
    try:
        for command in commands:
            daemons.append(subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log))
            time.sleep(1.0)
        deadline = time.monotonic() + 60
        while "IDLE" not in run("scontrol", "show", "node", NODE, cwd=root, **environment).stdout:
            if time.monotonic() > deadline:
                log.flush()
                pytest.skip(f"Slurm does not come up here: {(root / 'daemons.log').read_text('utf-8')[-600:]}")
            time.sleep(1.0)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
        log.close()


def test_the_jobs_run_under_a_real_slurm(slurm, box, tmp_path):
    file, _ = box
    text = file.read_text(encoding="utf-8").replace("engine: local", "engine: slurm")
    mine = tmp_path / "cluster.yaml"
    mine.write_text(text, encoding="utf-8")
    store = tmp_path / "store"
    store.mkdir()
    export = tmp_path / "export"
    cw("export", mine, export, "--slurm", "--store", f"disk={store}", check=True)
    done = run("sh", "submit.sh", cwd=export, **slurm)
    assert done.returncode == 0, done.stderr
    assert "not accepted" not in done.stderr
    deadline = time.monotonic() + 200
    while run("squeue", "--noheader", cwd=export, **slurm).stdout.strip():
        assert time.monotonic() < deadline, run("squeue", cwd=export, **slurm).stdout
        time.sleep(1.0)
    run("sh", "collect.sh", cwd=export, **slurm)
    found = json.loads(cw("import", mine, export, "--format", "json").stdout)
    states = {r["test"]: r["state"] for r in found["runs"]}
    assert states["checkpoint"] == "read", found["runs"]
    assert claim(found, "checkpoint-write")["outcome"] == "met"
    if not HAS_GPU:
        assert claim(found, "all-reduce")["reason"].startswith("no such hardware")
    assert "did not report" not in states.values(), states
