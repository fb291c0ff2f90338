"""cw evidence: what is kept, listed, compared, handed out and verified."""

import json
import os

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

HEAD = """\
# nThread 1 nGpus 1 minBytes 8589934592 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid  101 on  gpu-001 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  102 on  gpu-002 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
FOOT = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {rate:.2f}\n#\n"


def output(rate, wrong=0):
    time = 8589934592 / rate / 1e3
    cells = f"{time:9.0f}  {rate:6.2f}  {rate:6.2f}  {wrong:5}"
    return HEAD + f"  8589934592    2147483648     float     sum      -1{cells}{cells}\n" + FOOT.format(rate=rate)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, rate in enumerate((46.0, 46.2, 46.1, 31.0, 31.2, 31.1), 1):
        (tmp_path / f"run-{number}.log").write_text(output(rate))
        os.utime(tmp_path / f"run-{number}.log", (1.79e9 + number, 1.79e9 + number))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["evidence", *map(str, arguments)])


def test_outputs_are_kept_once_and_come_back_byte_for_byte(here):
    assert run("add", "run-1.log", "run-2.log", "--engine", "slurm").exit_code == 0
    again = run("add", "run-1.log", "--engine", "slurm", "--format", "json")
    assert [(a["sequence"], a["was_there"]) for a in json.loads(again.stdout)] == [(1, True)]
    shown = run("show", "2", "--raw")
    assert shown.stdout_bytes == (here / "run-2.log").read_bytes()
    listed = json.loads(run("list", "--format", "json").stdout)
    assert [r["evidence"]["engine"] for r in listed] == ["slurm", "slurm"]
    assert run("verify").exit_code == 0


def test_the_store_itself_is_no_evidence(here):
    run("add", ".")
    assert run("add", ".").exit_code == 0
    assert len(json.loads(run("list", "--format", "json").stdout)) == 6


def test_an_output_that_proves_nothing_is_kept_and_said(here):
    (here / "cut.log").write_text(output(46.0)[:-80])
    (here / "empty.log").write_text("")
    assert run("add", "cut.log").exit_code == 3
    assert run("add", "empty.log").exit_code == 3
    assert len(json.loads(run("list", "--format", "json").stdout)) == 2


def test_a_slower_image_is_worse_only_after_three_runs_on_each_side(here):
    run("add", ".", "--engine", "slurm")
    worse = run("diff", "1-3", "4-6", "--format", "json")
    verdicts = {(c["metric"], c["verdict"]) for c in json.loads(worse.stdout)["changes"]}
    assert worse.exit_code == 1
    assert ("busbw", "worse") in verdicts
    assert ("collective_errors", "same") in verdicts
    few = run("diff", "1", "4", "--format", "json")
    assert few.exit_code == 0
    assert ("busbw", "too few") in {(c["metric"], c["verdict"]) for c in json.loads(few.stdout)["changes"]}


def test_wrong_values_after_the_change_fail_the_comparison(here):
    (here / "wrong.log").write_text(output(46.0, wrong=3))
    run("add", ".")
    assert run("diff", "1", "7").exit_code == 1


def test_a_bundle_verifies_for_those_who_have_the_key(here):
    run("add", ".")
    done = json.loads(run("export", "b.tar", "--redact", "--format", "json").stdout)
    (here / "key.pub").write_text(done["public_key"])
    assert done["withheld"] == {"host": 2}
    assert run("verify", "b.tar", "--key", "key.pub").exit_code == 0
    assert run("verify", "b.tar").exit_code == 3
    assert run("verify", "b.tar", "--key", "key.pub", "--head", done["head"]).exit_code == 0
    assert run("verify", "b.tar", "--key", "key.pub", "--head", "sha256:" + "1" * 64).exit_code == 1
    assert "gpu-001" not in (here / "b.tar").read_bytes().decode("latin-1")
    assert json.loads(run("list", "b.tar", "--format", "json").stdout)[0]["nodes"] == ["host-1", "host-2"]


def test_a_bundle_of_another_signer_is_not_used(here):
    run("add", ".")
    run("export", "b.tar")
    run("add", "run-1.log", "--store", "other")
    other = json.loads(run("export", "o.tar", "--store", "other", "--format", "json").stdout)
    (here / "other.pub").write_text(other["public_key"])
    assert run("verify", "b.tar", "--key", "other.pub").exit_code == 1
    result = run("list", "b.tar", "--key", "other.pub")
    assert isinstance(result.exception, InvalidInput)


def test_a_store_that_was_altered_is_not_used(here):
    run("add", ".")
    raw = max((here / "evidence" / "objects").rglob("*"), key=lambda p: p.stat().st_size if p.is_file() else 0)
    raw.chmod(0o644)
    raw.write_bytes(raw.read_bytes().replace(b"0", b"1"))
    assert run("verify").exit_code == 1
    assert isinstance(run("list").exception, InvalidInput)
    assert isinstance(run("export", "b").exception, InvalidInput)


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "9"),
        ("show", "abcd"),
        ("show", "x"),
        ("diff", "1-3", "nothing"),
        ("diff", "1,x", "2"),
        ("add", "missing.log"),
        ("add", "-"),
        ("export", "run-1.log"),
        ("verify", "run-1.log", "--head", "xyz"),
        ("verify", "missing"),
        ("list", "run-1.log"),
        ("list", "--store", "nowhere"),
    ],
)
def test_wrong_input_is_refused_with_a_reason(here, arguments):
    run("add", "run-1.log")
    result = run(*arguments)
    assert isinstance(result.exception, InvalidInput), result.output
    assert str(result.exception)


SQUEUE = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
               101      h100    train jsmithee  R    1:00:00      2 secretnode[01-02]
               102      h100    infer mmustero PD       0:00      1 (Resources)
"""
CSV = """\
index, name, serial, uuid
0, NVIDIA H100 80GB HBM3, 1650099999123, GPU-11111111-2222-3333-4444-555555555555
"""
XML = """\
<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>580.65.06</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:18:00.0"><product_name>NVIDIA H100</product_name>
<serial>1650099999777</serial></gpu></nvidia_smi_log>
"""


def test_redaction_finds_what_readers_name_also_in_file_names(here):
    (here / "secretnode01-nccl.log").write_text(output(46.0).replace("gpu-001", "secretnode01"))
    (here / "queue.txt").write_text(SQUEUE)
    (here / "gpus.csv").write_text(CSV)
    (here / "gpus.xml").write_text(XML)
    run("add", "secretnode01-nccl.log", "queue.txt", "gpus.csv", "gpus.xml", "--by", "ann.admin")
    run("export", "b", "--redact")
    secrets = (b"secretnode", b"jsmithee", b"mmustero", b"1650099999123", b"1650099999777", b"GPU-1111", b"ann.admin")
    for member in (p for p in (here / "b").rglob("*") if p.is_file()):
        found = [s for s in secrets if s in member.read_bytes()]
        assert found == [] or member.name == "manifest.json", (member, found)
    assert run("verify", "b").exit_code == 3


def test_what_is_no_bundle_any_more_does_not_verify(here):
    run("add", "run-1.log")
    run("export", "b.tar")
    run("export", "b")
    whole = (here / "b.tar").read_bytes()
    (here / "b.tar").write_bytes(whole + b"junk")
    assert run("verify", "b.tar").exit_code == 1
    (here / "b.tar").write_bytes(whole[:700])
    assert run("verify", "b.tar").exit_code == 1
    os.mkfifo(here / "b" / "raw" / ("a" * 64))
    assert run("verify", "b").exit_code == 1


def test_a_record_may_be_named_by_the_beginning_of_its_id(here):
    run("add", "run-1.log")
    done = json.loads(run("export", "b.tar", "--format", "json").stdout)
    short = done["head"].removeprefix("sha256:")[:12]
    assert run("verify", "b.tar", "--head", short).exit_code == 3
    assert run("verify", "--head", short).exit_code == 0
    assert run("verify", "--head", "0" * 12).exit_code == 1
