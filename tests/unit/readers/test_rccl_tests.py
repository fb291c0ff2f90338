"""rccl-tests: told from nccl-tests, text and JSON rows."""

from __future__ import annotations

from pathlib import Path

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "rccl-tests"


def test_the_text_is_recognised_as_rccl():
    transcript = read_output([(FIXTURES / "eight-gpus.txt").read_bytes()])
    (run,) = transcript.runs
    assert (transcript.kind, transcript.outcome) == ("rccl-tests", Outcome.READ)
    assert run.version == "develop:1a2b3c4"
    assert run.condition("operation") == "reduce-scatter"
    assert run.condition("gpu") == "AMD Instinct MI300X"
    assert [o.value.to("GB/s") for o in run.observations if o.name == "busbw" and isinstance(o.value, Quantity)][
        -1
    ] == 280


def test_rows_in_json_make_one_run_an_operation():
    transcript = read_output([(FIXTURES / "rows.json").read_bytes()])
    (run,) = transcript.runs
    assert (transcript.kind, transcript.outcome) == ("rccl-tests", Outcome.READ)
    assert (run.tool, run.condition("ranks")) == ("all_gather_perf", 16)
    assert [o.value for o in run.observations if o.name == "wrong"] == [0.0]


def test_rank_lines_without_a_product_name_none():
    text = (FIXTURES / "eight-gpus.txt").read_text().replace(" AMD Instinct MI300X", "")
    (run,) = read_output([text.encode()]).runs
    assert run.condition("gpu") == NoValue(Lack.ABSENT, "", "the list names no product")


def test_versions_of_a_banner_are_kept_whole():
    banner = "RCCL version : 2.27.7-HEAD:abc1234\nROCm version : 7.1.0.0-1-dirty\nHostname     : node-m\n"
    table = (FIXTURES / "eight-gpus.txt").read_text().split("#\n", 2)[2]
    (run,) = read_output([(banner + table).encode()]).runs
    assert (run.condition("rccl"), run.condition("rocm")) == ("2.27.7-HEAD:abc1234", "7.1.0.0-1-dirty")
    assert run.condition("node") == "node-m"


def test_a_failed_first_collective_is_no_pass():
    text = (
        "# rccl-tests version 2.18.0 rccl-headers=22707 rccl-library=22707\n"
        "#  Rank  0 Group  0 Pid 1 on node-m device  0 [0000:0c:00] AMD Instinct MI300X\n"
        "NCCL INFO comm 0x1 rank 0 nranks 2 - Init COMPLETE\n"
        "node-m: Test NCCL failure common.cu.cpp:700 'unhandled cuda error'\n"
    )
    transcript = read_output([text.encode()])
    (run,) = transcript.runs
    assert transcript.kind == "rccl-tests"
    assert {n.code: n.weight for n in run.notices}["test-failed"] is Weight.ERROR
    assert "the table" in run.missing
