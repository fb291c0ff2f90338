"""Starting tests by a shell: words that mean nothing, nodes that do not answer, signals, rights, and variables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from builders.acceptance import planned
from clusterwright.app.accepting import Options, export_acceptance

SSH = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -o) shift ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
if [ "$1" = "$DEAD" ]; then exit 255; fi
shift
exec env -i PATH="$PATH" sh -c "$*"
"""


def export_to(root, engine="shell", **tests):
    """An export whose tests are replaced by lines of shell."""
    files = export_acceptance(
        planned(), engine, Options(stores={"object": "/nowhere"}) if engine == "shell" else Options()
    )
    for name, line in tests.items():
        id_ = name.replace("_", "-")
        files[f"tests/{id_}.sh"] = (
            'set -u\nCW_HOME=${CW_HOME:-$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)}\n. "$CW_HOME/lib/run.sh"\n'
            f'cw_begin {id_} x 60\ncw_store object "${{CW_STORE_OBJECT:-}}"\n{line}\n'
        )
    files["bin/ssh"] = SSH
    files["bin/as-root"] = '#!/bin/sh\necho "as root: $*" >>"$SAID"\nexec "$@"\n'
    files["bin/id"] = "#!/bin/sh\necho 1000\n"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    (root / "store").mkdir()
    return root


def environment(root, **more):
    return {"PATH": f"{root}/bin:{os.environ['PATH']}", "DEAD": "", "CW_STORE_OBJECT": f"{root}/store"} | more


def start(root, *argv, **more):
    return subprocess.run(
        ["sh", *argv], cwd=root, env=environment(root, **more), capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("engine", "script"), [("shell", "run.sh"), ("slurm", "submit.sh"), ("kubernetes", "submit.sh")]
)
@pytest.mark.parametrize("word", ["chekpoint", "12", "checkpoint 1", "*", ""])
def test_a_word_that_is_no_test_and_no_stage_is_refused_with_those_that_are(engine, script, word, tmp_path):
    done = start(export_to(tmp_path, engine), script, word)
    assert done.returncode == 2
    assert f"no test or stage '{word}'" in done.stderr
    assert "checkpoint" in done.stderr
    assert "stages: 1 2" in done.stderr


def test_a_test_that_kubernetes_cannot_run_is_refused_with_the_reason(tmp_path):
    done = start(export_to(tmp_path, "kubernetes"), "submit.sh", "kernel-journal")
    assert (done.returncode, "not on Kubernetes" in done.stderr) == (2, True)


@pytest.mark.parametrize(("dead", "code"), [("", 0), ("gpu-002", 1)])
def test_a_node_that_does_not_answer_is_named_and_no_success(dead, code, tmp_path):
    root = export_to(tmp_path, kernel_log="cw_run echo fine")
    done = start(root, "run.sh", "--as", "gpu-001", "kernel-log", DEAD=dead)
    assert done.returncode == code, done.stderr
    assert ("gpu-002: ssh ended with exit code 255" in done.stderr) == bool(dead)
    assert len(list((root / "results" / "kernel-log").iterdir())) == 2 - code


def test_variables_of_the_environment_hold_on_other_nodes_whatever_is_in_them(tmp_path):
    root = export_to(tmp_path, kernel_log='cw_run printf %s "$CW_STORE_OBJECT"')
    store = tmp_path / "it's a $(touch owned) place"
    store.mkdir()
    done = start(root, "run.sh", "kernel-log", CW_STORE_OBJECT=str(store), CW_RESULTS=str(tmp_path / "else where"))
    assert done.returncode == 0, done.stderr
    for node in ("gpu-001", "gpu-002"):
        assert (tmp_path / "else where" / "kernel-log" / node / "stdout.txt").read_text("utf-8") == str(store)
    assert not list(tmp_path.rglob("owned"))


def test_root_is_used_for_the_tests_that_want_it_and_only_when_asked(tmp_path):
    root = export_to(tmp_path, kernel_log="cw_root\ncw_run echo fine", checkpoint="cw_run echo fine")
    said = tmp_path / "said"
    start(root, "run.sh", "--as", "gpu-001", "kernel-log", SAID=str(said))
    assert not said.exists()
    assert "cw_root\n" in export_acceptance(planned(), "shell", Options())["tests/kernel-log.sh"]
    for test in ("kernel-log", "checkpoint"):
        subprocess.run(
            ["sh", f"tests/{test}.sh"], cwd=root, check=True, stderr=subprocess.DEVNULL,
            env=environment(root, SAID=str(said), CW_SUDO="as-root", CW_UNIT=test),
        )  # fmt: skip
    assert said.read_text("utf-8") == "as root: timeout -k 30 60 echo fine\n"
    record = json.loads((root / "results" / "kernel-log" / "kernel-log" / "run.json").read_text("utf-8"))
    assert record["command"] == "as-root echo fine"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_what_runs_writes_it_down_and_clears_the_store(number, tmp_path):
    root = export_to(tmp_path, kernel_log='cw_run sh -c "echo \\$\\$ >$CW_OUT/pid; sleep 300 & sleep 301"')
    process = subprocess.Popen(
        ["sh", "run.sh", "--as", "gpu-001", "kernel-log"], cwd=root, env=environment(root), stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    folder = root / "results" / "kernel-log"
    deadline = time.monotonic() + 30
    while len(list(folder.glob("*/pid"))) < 1 or not all((p / "pid").read_text() for p in folder.glob("gpu-001")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    pid = int((folder / "gpu-001" / "pid").read_text("utf-8"))
    assert list((root / "store").iterdir())
    process.send_signal(number)
    assert process.wait(40) != 0
    record = json.loads((folder / "gpu-001" / "run.json").read_text("utf-8"))
    assert (record["signal"], record["exit_code"]) == ("TERM", 143)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not [p for p in (root / "store").iterdir() if "gpu-001" in p.name]
