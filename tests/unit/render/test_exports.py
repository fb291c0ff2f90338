"""Exports: scripts that hold for a shell, manifests that hold for the API, the same bytes every time."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from functools import cache
from io import StringIO

import pytest
from ruamel.yaml import YAML

from builders.acceptance import HOSTILE, TRAINING, hostile, planned
from clusterwright.app.accepting import Options, export_acceptance
from clusterwright.judging.acceptance_plans import Slot
from clusterwright.lib.errors import InvalidInput
from clusterwright.render.kubernetes.yaml_text import yaml_documents
from clusterwright.render.scripts import one_line, shell_word

ENGINES = ("shell", "slurm", "kubernetes")
EVERYTHING = Options(
    stores={"object": "bench-claim"}, endpoints={"chat": "http://10.0.0.5:8000"}, queue="acceptance",
    namespace="bench", tools_image="registry.example.com/tools@sha256:aa", rdma_resource="rdma/hca_shared",
)  # fmt: skip


def files_of(engine, made=None, options=None):
    if made is None and options in (None, Options(), EVERYTHING):
        return dict(_usual_files(engine, options == EVERYTHING))
    return export_acceptance(made or planned(), engine, options or Options())


@cache
def _usual_files(engine, whole):
    return export_acceptance(planned(), engine, EVERYTHING if whole else Options())


def scripts_of(files):
    return {n: t for n, t in files.items() if n.endswith((".sh", ".sbatch"))}


def documents(files):
    return [d for n, t in files.items() if n.startswith("manifests/") for d in _load(t)]


@cache
def _load(text):
    return list(YAML(typ="safe").load_all(StringIO(text)))


def jobs(files):
    return {d["metadata"]["name"]: d for d in documents(files) if d["kind"] == "Job"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [Options(), EVERYTHING])
def test_every_script_is_one_that_bash_parses(engine, options, tmp_path):
    for name, text in scripts_of(files_of(engine, options=options)).items():
        path = tmp_path / name.replace("/", "-")
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr}"


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("made", "severity"), [(planned, "style"), (hostile, "warning")])
def test_every_script_passes_shellcheck(engine, made, severity, tmp_path):
    paths = []
    for name, text in scripts_of(files_of(engine, made())).items():
        path = tmp_path / name.replace("/", "-")
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    done = subprocess.run(["shellcheck", "-S", severity, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_plan_gives_the_same_bytes(engine):
    assert files_of(engine) == export_acceptance(planned(), engine, Options())


@pytest.mark.parametrize("engine", ENGINES)
def test_every_test_has_its_script_and_every_script_records_its_run(engine):
    files = files_of(engine)
    for test in planned().plan.tests:
        if engine == "kubernetes" and test.kind.log_export:
            continue
        script = files[f"tests/{test.id}.sh"]
        assert f"cw_begin {test.id} {test.kind.reader} " in script
        assert re.search(r"^cw_(run|mpi|rails) ", script, re.MULTILINE)
    assert "collect.sh" in files
    assert "README.md" in files


@pytest.mark.parametrize(
    "text", ["plain", "", "a b", "it's", '"', "$(id)", "`id`", "a;b", "x\ny", "{store}", "--", "*"]
)
def test_a_word_means_the_same_to_the_shell(text, tmp_path):
    argument = (text, Slot("store"), text)
    line = f"printf '%s' {shell_word(argument)}"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=True, env={"CW_STORE": "/a b/$x"}, cwd=tmp_path
    )
    assert done.stdout == f"{text}/a b/$x{text}"


@pytest.mark.parametrize("engine", ENGINES)
def test_hostile_names_stay_data(engine):
    files = files_of(engine, hostile())
    script = next(t for n, t in files.items() if n.startswith("tests/serving"))
    command = next(line for line in script.split("cw_run ")[1:])
    assert HOSTILE in shlex.split(command)
    usual = files_of(engine)
    for name, text in scripts_of(files).items():
        if usual.get(name) != text:  # a script that no name of the file gets into is as it always is
            words = shlex.split(text.replace("\\''", ""), comments=True)
            assert not {"--x{store}", "touch", "/tmp/owned)`id`;|&"} & set(words), name


def test_a_comment_is_always_one_line():
    assert one_line("a\nb\r\tc\x1b[31m d\u2028e") == "a b c [31m d e"


def test_settings_take_the_path_of_every_store_and_the_environment_wins(tmp_path):
    files = files_of("shell", options=Options(stores={"object": "/mnt/it's"}))
    (tmp_path / "settings.sh").write_text(files["settings.sh"], encoding="utf-8")
    line = '. ./settings.sh; printf "%s" "$CW_STORE_OBJECT"'
    for environment, expected in (({}, "/mnt/it's"), ({"CW_STORE_OBJECT": "/other"}, "/other")):
        done = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
        )
        assert done.stdout == expected


@pytest.mark.parametrize("options", [Options(stores={"objct": "/x"}), Options(endpoints={"chta": "http://x"})])
def test_an_option_that_names_nothing_is_refused(options):
    with pytest.raises(InvalidInput, match="did you mean"):
        files_of("shell", options=options)


def test_kubernetes_needs_an_image():
    made = planned("acceptance.image=", "workloads.chat.image=", "workloads.finetune.image=")
    with pytest.raises(InvalidInput, match="--image"):
        files_of("kubernetes", made)
    assert files_of("kubernetes", made, Options(image="reg/x:1"))


@pytest.mark.parametrize("options", [Options(), EVERYTHING])
@pytest.mark.parametrize("file", ["two-workers", "training"])
def test_every_job_has_what_the_api_requires(options, file):
    made = planned() if file == "two-workers" else planned(file=TRAINING)
    if file == "training":
        options = Options(namespace=options.namespace)
    found = jobs(files_of("kubernetes", made, options))
    assert found
    for name, job in found.items():
        assert (job["apiVersion"], job["metadata"]["namespace"]) == ("batch/v1", options.namespace)
        assert len(name) <= 55
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
        spec = job["spec"]
        pod = spec["template"]["spec"]
        assert pod["restartPolicy"] == "Never"
        assert spec["completionMode"] == "Indexed"
        assert spec["completions"] == spec["parallelism"] >= 1
        assert spec["backoffLimit"] == 0
        assert spec["activeDeadlineSeconds"] > 0
        (container,) = pod["containers"]
        assert container["image"]
        assert container["command"][-1].startswith("/opt/clusterwright/tests/")
        volumes = {v["name"] for v in pod["volumes"]}
        assert {m["name"] for m in container["volumeMounts"]} == volumes
        assert all(isinstance(e.get("value", ""), str) for e in container["env"])
        labels = spec["template"]["metadata"]["labels"]
        assert all(re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", v) for v in labels.values())


def test_no_pod_is_privileged_or_mounts_the_host():
    for job in jobs(files_of("kubernetes")).values():
        pod = job["spec"]["template"]["spec"]
        security = pod["containers"][0]["securityContext"]
        assert "privileged" not in security
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert set(security["capabilities"].get("add", [])) <= {"IPC_LOCK", "SYSLOG"}
        assert not pod.get("hostNetwork")
        assert not pod.get("hostPID")
        assert not any("hostPath" in v for v in pod["volumes"])
        assert pod["automountServiceAccountToken"] is False


def test_pods_of_a_job_are_pinned_to_the_nodes_of_the_test_one_on_each():
    job = jobs(files_of("kubernetes"))["cw-collective-in-node"]
    affinity = job["spec"]["template"]["spec"]["affinity"]
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["gpu-001", "gpu-002"]
    (rule,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"] == {"clusterwright.dev/job": "cw-collective-in-node"}
    assert job["spec"]["completions"] == 2


def test_gpus_and_rdma_devices_are_asked_for_where_they_are_needed():
    found = jobs(files_of("kubernetes", options=EVERYTHING))
    limits = {
        n: j["spec"]["template"]["spec"]["containers"][0].get("resources", {}).get("limits", {})
        for n, j in found.items()
    }
    assert limits["cw-collective-all"] == {"nvidia.com/gpu": 8, "rdma/hca_shared": 1}
    assert limits["cw-rdma-write"] == {"rdma/hca_shared": 1}
    assert limits["cw-serving"] == {}
    volumes = found["cw-storage-cold-load"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "store", "persistentVolumeClaim": {"claimName": "bench-claim"}} in volumes


def test_every_script_that_a_pod_runs_is_in_the_config_map():
    files = files_of("kubernetes")
    (config,) = [d for d in documents(files) if d["kind"] == "ConfigMap"]
    for job in jobs(files).values():
        pod = job["spec"]["template"]["spec"]
        (scripts,) = [v["configMap"] for v in pod["volumes"] if v["name"] == "scripts"]
        paths = {f"/opt/clusterwright/{i['path']}": i["key"] for i in scripts["items"]}
        assert pod["containers"][0]["command"][-1] in paths
        assert set(paths.values()) <= set(config["data"])
    assert config["data"]["lib.run.sh"] == files["lib/run.sh"]
    assert sum(len(t.encode()) for t in config["data"].values()) < 1_000_000


def test_pods_find_each_other_through_a_headless_service():
    files = files_of("kubernetes")
    (service,) = [d for d in documents(files) if d["kind"] == "Service"]
    assert service["spec"]["clusterIP"] == "None"
    job = jobs(files)["cw-collective-all"]["spec"]["template"]
    assert job["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= job["metadata"]["labels"].items()
    hosts = next(e["value"] for e in job["spec"]["containers"][0]["env"] if e["name"] == "CW_HOSTS")
    assert hosts == "cw-collective-all-0.clusterwright,cw-collective-all-1.clusterwright"


@pytest.mark.parametrize(
    "value",
    [
        "yes",
        "null",
        "1",
        "1.5",
        "~",
        "- x",
        "a: b",
        "#",
        "",
        " x",
        "x\ny\n",
        "x\n",
        "\n",
        "tab\there",
        "é",
        "\x07",
        HOSTILE,
    ],
)
def test_yaml_text_is_read_back_as_it_was(value):
    document = {"a": {"b": [value, {"c": value}], value or "k": value}, "d": {}, "e": [], "f": 3, "g": True}
    assert YAML(typ="safe", pure=True).load(yaml_documents([document]).removeprefix("---\n")) == document


def test_slurm_jobs_name_time_nodes_and_gpus():
    files = files_of("slurm", options=Options(queue="bench"))
    job = files["jobs/collective-in-node.sbatch"]
    assert job.startswith("#!/bin/bash\n#SBATCH ")
    for option in ("--partition=bench", "--exclusive", "--gpus-per-node=8", "--job-name=cw-collective-in-node"):
        assert f"#SBATCH {option}\n" in job
    assert re.search(r"^#SBATCH --time=\d\d:\d\d:00$", job, re.MULTILINE)
    assert "job collective-in-node gpu-001 'gpu-001' --nodes=1" in files["submit.sh"]
    assert "job collective-all all 'gpu-[001-002]' --nodes=2" in files["submit.sh"]
    assert "--gpus-per-node" not in files["jobs/storage-cold-load.sbatch"]


SBATCH = """\
#!/bin/sh
n=$(cat "$COUNT"); n=$((n + 1)); echo $n >"$COUNT"
echo "$n $*" >>"$CALLS"
echo $n
"""


@pytest.mark.parametrize(
    ("wanted", "tests"),
    [
        (("3",), ["dcgm-level-3"] * 2),
        (("checkpoint",), ["checkpoint"]),
        (("2", "3"), ["dcgm-level-1"] * 2 + ["dcgm-level-3"] * 2),
    ],
)
def test_stages_and_tests_can_be_submitted_alone_and_a_stage_waits_for_the_one_before(wanted, tests, tmp_path):
    files = files_of("slurm")
    for name, text in {**files, "bin/sbatch": SBATCH}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "bin" / "sbatch").chmod(0o755)
    (tmp_path / "count").write_text("0", encoding="utf-8")
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "COUNT": f"{tmp_path}/count", "CALLS": f"{tmp_path}/calls"}
    done = subprocess.run(
        ["sh", "submit.sh", *wanted], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert [c.split("jobs/")[1].removesuffix(".sbatch") for c in calls] == tests
    waiting = [c for c in calls if "--dependency=afterany:1:2" in c]
    assert len(waiting) == (2 if len(wanted) == 2 else 0)


def test_the_plan_in_the_export_says_which_runs_must_report():
    plan = json.loads(files_of("slurm")["plan.json"])
    assert plan["engine"] == "slurm"
    test = next(t for t in plan["tests"] if t["id"] == "collective-in-node")
    assert test["units"] == [{"unit": "gpu-001", "nodes": ["gpu-001"]}, {"unit": "gpu-002", "nodes": ["gpu-002"]}]
    assert test["claims"] == ["all-reduce-in-node"]


def test_logs_of_nodes_are_left_out_for_kubernetes_with_the_reason():
    files = files_of("kubernetes")
    for test in ("kernel-journal", "fabric-manager-log"):
        assert f"tests/{test}.sh" not in files
        assert f"- {test} (gpu-[001-002]): not on Kubernetes" in files["README.md"]
        assert next(t for t in json.loads(files["plan.json"])["tests"] if t["id"] == test)["left_out"]
    assert "tests/kernel-journal.sh" in files_of("slurm")


def test_pods_that_are_pinned_to_nodes_of_gpus_tolerate_their_taint():
    found = jobs(files_of("kubernetes"))
    for name in ("cw-rdma-write", "cw-storage-cold-load", "cw-checkpoint", "cw-kernel-log"):
        pod = found[name]["spec"]["template"]["spec"]
        assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}], name
    assert "tolerations" not in found["cw-serving"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_readme_says_which_tests_want_root_and_that_a_foreign_engine_does_not_count(engine):
    text = files_of(engine)["README.md"]
    line = next(line for line in text.splitlines() if line.startswith("- rights of root for "))
    assert "dcgm-level-3" in line
    assert "gpu-inventory" not in line
    assert ('CW_SUDO="sudo -n"' in line) == (engine != "kubernetes")
    assert ("**These results will not count.**" in text) == (engine != planned().plan.engine)
