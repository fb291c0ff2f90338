"""Scripts that bring results back: what pods print, and the archive with its manifest."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from builders.acceptance import planned
from clusterwright.app.accepting import Options, export_acceptance

KUBECTL = """\
#!/bin/sh
case "$*" in
*"get pods"*) ls "$FAKE" | sed -n 's/\\.log$//p' ;;
*"get pod "*) for pod in "$@"; do if [ -f "$FAKE/$pod.log" ]; then echo '{"kind": "Pod"}'; fi; done ;;
*logs*) for pod in "$@"; do if [ -f "$FAKE/$pod.log" ]; then cat "$FAKE/$pod.log"; fi; done ;;
*delete*) echo "$*" >>"$FAKE/deleted" ;;
esac
"""


def put(root, name, text, mode=0o644):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def sh(*argv, cwd, **environment):
    done = subprocess.run(
        ["sh", *argv], cwd=cwd, capture_output=True, check=False, timeout=60,
        env={"PATH": os.environ["PATH"]} | environment,
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def export(tmp_path):
    root = tmp_path / "export"
    for name, text in export_acceptance(planned(), "kubernetes", Options()).items():
        put(root, name, text)
    put(tmp_path, "bin/kubectl", KUBECTL, 0o755)
    (tmp_path / "fake").mkdir()
    return root


def pod(export, tmp_path, name, command, test="serving", unit="client", files="out.json"):
    """What a pod prints whose command is a line of shell."""
    script = f". ./lib/run.sh\ncw_begin {test} vllm-bench 60 \"{files}\"\ncw_run sh -c '{command}'\n"
    done = sh(
        "-c", script, cwd=export, CW_HOME=str(export), CW_RESULTS=str(tmp_path / f"pod-{name}"), CW_PRINT="1",
        CW_ENGINE="kubernetes", CW_NODE="gpu-001", CW_UNIT=unit,
    )  # fmt: skip
    log = tmp_path / "fake" / f"{name}.log"
    with log.open("w", encoding="utf-8", newline="") as file:
        file.write(done.stdout)
    return log


def fetch(export, tmp_path, script="fetch.sh", *argv):
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    return sh(script, *argv, cwd=export, PATH=path, FAKE=str(tmp_path / "fake"))


@pytest.mark.parametrize("text", ['{"a": 1}', "a\\nb", "a\\n", "a\\n\\n", "\\n", "| x\\n\\n| y", "", "a\\r\\nb\\t"])
def test_a_file_comes_back_byte_for_byte_with_or_without_a_last_line_break(export, tmp_path, text):
    said = text.replace('"', '\\"')
    pod(export, tmp_path, "p-0", f'printf "{said}" >"$CW_OUT/out.json"; printf "{said}"')
    done = fetch(export, tmp_path)
    assert done.returncode == 0, done.stderr
    folder = export / "results" / "serving" / "client"
    for name in ("out.json", "stdout.txt"):
        assert (folder / name).read_bytes() == text.encode().decode("unicode_escape").encode(), name
    assert json.loads((folder / "run.json").read_text("utf-8"))["lacking"] == ""


def test_a_large_file_is_packed_and_comes_back_whole(export, tmp_path):
    log = pod(export, tmp_path, "p-0", 'seq 1 200000 | tr "\\n" "," >"$CW_OUT/out.json"')
    assert log.stat().st_size < 1_000_000
    assert fetch(export, tmp_path).returncode == 0
    whole = ",".join(map(str, range(1, 200001))) + ","
    assert (export / "results" / "serving" / "client" / "out.json").read_text("utf-8") == whole


def test_every_pod_keeps_a_directory_and_an_attempt_of_its_own(export, tmp_path):
    for name, said in (("p-0-aaa", "first"), ("p-0-bbb", "second")):
        pod(export, tmp_path, name, f'echo {said} >"$CW_OUT/out.json"')
        assert fetch(export, tmp_path).returncode == 0
    assert fetch(export, tmp_path).returncode == 0
    found = {p.name: p for p in (export / "results" / "serving").iterdir()}
    assert sorted(found) == ["client", "client.2"]
    assert [(p / "out.json").read_text("utf-8") for p in found.values() if p.name == "client"] == ["first\n"]
    assert (found["client.2"] / "out.json").read_text("utf-8") == "second\n"
    records = {n: json.loads((p / "run.json").read_text("utf-8")) for n, p in found.items()}
    assert {n: r["attempt"] for n, r in records.items()} == {"client": 1, "client.2": 2}


def test_a_log_that_lost_its_beginning_is_not_taken_for_a_whole_run(export, tmp_path):
    log = pod(export, tmp_path, "p-0", 'seq 1 100 >"$CW_OUT/out.json"')
    whole = log.read_text("utf-8")
    log.write_text(whole[whole.index("| 50\n") :], encoding="utf-8")
    done = fetch(export, tmp_path)
    assert done.returncode == 1
    assert "without: out.json" in done.stderr
    record = json.loads((export / "results" / "serving" / "client" / "run.json").read_text("utf-8"))
    assert record["lacking"].startswith("did not come back whole")
    assert not (export / "results" / "serving" / "client" / "out.json").exists()


def test_lines_lost_within_a_log_are_noticed(export, tmp_path):
    log = pod(export, tmp_path, "p-0", 'seq 1 100 >"$CW_OUT/out.json"')
    log.write_text(log.read_text("utf-8").replace("| 50\n", ""), encoding="utf-8")
    done = fetch(export, tmp_path)
    assert (done.returncode, "out.json" in done.stderr) == (1, True)


def test_what_was_fetched_whole_stays_when_the_log_is_rotated_later(export, tmp_path):
    log = pod(export, tmp_path, "p-0", 'seq 1 100 >"$CW_OUT/out.json"')
    assert fetch(export, tmp_path).returncode == 0
    log.write_text("clusterwright-end\n", encoding="utf-8")
    fetch(export, tmp_path)
    assert (export / "results" / "serving" / "client" / "out.json").read_text("utf-8").endswith("100\n")


def test_jobs_are_not_removed_before_their_logs_are_fetched(export, tmp_path):
    log = pod(export, tmp_path, "p-0", 'seq 1 100 >"$CW_OUT/out.json"')
    log.write_text(log.read_text("utf-8").replace("| 50\n", ""), encoding="utf-8")
    refused = fetch(export, tmp_path, "remove.sh", "serving")
    assert refused.returncode == 1
    assert not (tmp_path / "fake" / "deleted").exists()
    assert fetch(export, tmp_path, "remove.sh", "--unfetched", "serving").returncode == 0
    assert (tmp_path / "fake" / "deleted").exists()


RECORD = '{"format": "clusterwright-run/1", "test": "a", "attempt": 1, "exit_code": null, "timed_out": false}\n'


@pytest.mark.parametrize(
    "bad", ["", RECORD[:60], RECORD[:-2], RECORD + RECORD, '{"a": "x"y"}\n', '{"a": "\\"}\n', "{}"]
)
def test_a_cut_record_is_a_named_fault_and_spoils_no_other(bad, tmp_path):
    for name, text in export_acceptance(planned(), "shell", Options()).items():
        put(tmp_path, name, text)
    good = RECORD.replace('"a"', '"it\\"s \\\\ é"')
    put(tmp_path, "results/a/x/run.json", bad)
    put(tmp_path, "results/b/x/run.json", good)
    done = sh("collect.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "results" / "manifest.json").read_text("utf-8"))
    assert manifest["runs"] == [json.loads(good)]
    assert [f["path"] for f in manifest["faults"]] == ["a/x/run.json"]
    assert "a/x/run.json" in done.stderr
    assert len(manifest["files"]) == 3


@pytest.mark.parametrize("tool", ["cp", "tar", "mktemp", "mv", "sha256sum", "sort", "find"])
def test_a_step_that_fails_is_no_success(tool, tmp_path):
    for name, text in export_acceptance(planned(), "shell", Options()).items():
        put(tmp_path, name, text)
    put(tmp_path, "results/b/x/run.json", RECORD)
    put(tmp_path, f"bin/{tool}", "#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n", 0o755)
    done = sh("collect.sh", cwd=tmp_path, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "not collected" in done.stderr
    assert not (tmp_path / "results.tar.gz").exists()
