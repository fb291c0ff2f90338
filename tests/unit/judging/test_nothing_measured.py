"""A pass with nothing measured: every known way to one, from the tool's own output to the verdict.

Each output goes through its reader, the derivation of readings and the judgement, as `cw judge` takes it.
"""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from builders.evidence import NOW
from clusterwright.judging.deriving import derive
from clusterwright.judging.recording import record
from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site
from clusterwright.judging.verdicts import cover, exit_code, judge
from clusterwright.model.acceptance import Requirement
from clusterwright.model.evidence import Outcome
from clusterwright.readers.reading import KINDS, read_output

HOSTS = ("gpu-001", "gpu-002")
SITE = Site(hosts={"gpu": HOSTS}, engines={"gpu": "slurm"}, workloads={})
ONE = Site(hosts={"gpu": HOSTS[:1]}, engines={"gpu": "slurm"}, workloads={})


def claim(**fields):
    return Claim("it", Requirement.model_validate(fields), "acceptance.requirements.it")


def taken(text, *nodes, name="", kind=""):
    """The evidence of one output that these hosts wrote."""
    transcript = read_output([text.encode()], name=name, kind=kind)
    derivation = derive(transcript, nodes=nodes)
    return record(
        derivation, raw_digest="sha256:raw", started=NOW - timedelta(hours=2), ended=NOW - timedelta(hours=1),
        engine="slurm",
    )  # fmt: skip


def verdict(of, *records, site=ONE):
    (only,) = judge([of], records, (), now=NOW, site=site)
    return only


HEALTHY_GPUS = claim(metric="dcgm_failures", at_most=0, scope={"of": "node", "pool": "gpu"})


def dcgm(results, root="DCGM Diagnostic"):
    """A dcgmi diag -j report: {test: {gpu: status}}."""
    tests = [
        {"name": test, "results": [{"entity_group": "GPU", "entity_group_id": 0, "entity_id": gpu, "status": status}
                                   for gpu, status in gpus.items()]}
        for test, gpus in results.items()
    ]  # fmt: skip
    categories = [{"category": "Hardware", "tests": tests}]
    if root == "DCGM GPU Diagnostic":
        tests = [
            {"name": test, "results": [{"gpu_id": str(gpu), "status": status} for gpu, status in gpus.items()]}
            for test, gpus in results.items()
        ]
        return json.dumps({root: {"test_categories": [{"category": "Hardware", "tests": tests}], "version": "3.3.5"}})
    return json.dumps(
        {root: {"test_categories": categories},
         "entity_groups": [{"entity_group": "GPU", "entity_group_id": 0,
                            "entities": [{"entity_id": g, "device_id": "2330"} for g in range(8)]}],
         "metadata": {"version": "4.2.3", "Driver Version Detected": "570.86.15"}}
    )  # fmt: skip


def all_gpus(status, **others):
    return dict.fromkeys(range(8), status) | {int(k.removeprefix("gpu")): v for k, v in others.items()}


LOADED = {"memory": all_gpus("Pass"), "pcie": all_gpus("Pass"), "targeted_power": all_gpus("Pass")}


def test_a_whole_passing_report_is_met():
    """The counterpart: without it the tests below could all pass for the wrong reason."""
    assert verdict(HEALTHY_GPUS, taken(dcgm(LOADED), "gpu-001")).outcome is Outcome.MET


def test_a_later_pass_does_not_overwrite_a_failure_of_the_same_test():
    report = json.loads(dcgm(LOADED))
    tests = report["DCGM Diagnostic"]["test_categories"][0]["tests"]
    tests.insert(0, json.loads(json.dumps(tests[0])))
    tests[0]["results"][3]["status"] = "Fail"
    assert verdict(HEALTHY_GPUS, taken(json.dumps(report), "gpu-001")).outcome is Outcome.NOT_MET


def test_a_later_pass_does_not_overwrite_a_warning_of_the_same_test():
    report = json.loads(dcgm(LOADED))
    tests = report["DCGM Diagnostic"]["test_categories"][0]["tests"]
    tests.insert(0, json.loads(json.dumps(tests[0])))
    tests[0]["results"][3]["status"] = "Warn"
    found = verdict(HEALTHY_GPUS, taken(json.dumps(report), "gpu-001"))
    assert found.outcome is Outcome.NOT_MEASURED
    assert "warned: memory on GPU 3" in found.reason


def test_a_later_passing_file_does_not_overwrite_a_failing_one():
    bad = dcgm(LOADED | {"memory": all_gpus("Pass", gpu7="Fail")})
    found = verdict(HEALTHY_GPUS, taken(bad, "gpu-001"), taken(dcgm(LOADED), "gpu-001"))
    assert found.outcome is Outcome.NOT_MET


def test_not_only_the_first_gpu_of_a_dcgm_report_counts():
    found = verdict(HEALTHY_GPUS, taken(dcgm(LOADED | {"pcie": all_gpus("Pass", gpu7="Fail")}), "gpu-001"))
    assert found.outcome is Outcome.NOT_MET
    assert dict(found.reading.conditions)["failed"] == "pcie on GPU 7"


@pytest.mark.parametrize("root", ["DCGM Diagnostic", "DCGM GPU Diagnostic"])
def test_both_root_keys_of_dcgm_are_known(root):
    good = taken(dcgm(LOADED, root), "gpu-001")
    bad = taken(dcgm(LOADED | {"memory": all_gpus("Pass", gpu2="Fail")}, root), "gpu-001")
    assert any(r.metric == "dcgm_failures" and r.value == 0.0 for r in good.readings)
    assert verdict(HEALTHY_GPUS, bad).outcome is Outcome.NOT_MET


def test_an_unknown_root_key_is_no_pass_with_zero_tests():
    found = verdict(HEALTHY_GPUS, taken(dcgm(LOADED, "DCGM Health Report 9"), "gpu-001", kind="dcgm-diag"))
    assert found.outcome is Outcome.NOT_MEASURED


def test_a_report_with_zero_tests_is_no_pass():
    assert verdict(HEALTHY_GPUS, taken(dcgm({}), "gpu-001", kind="dcgm-diag")).outcome is Outcome.NOT_MEASURED


def test_a_skipped_test_is_no_pass():
    found = verdict(HEALTHY_GPUS, taken(dcgm(LOADED | {"memory": all_gpus("Pass", gpu4="Skip")}), "gpu-001"))
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.reason.startswith("skipped: memory on GPU 4")


def test_a_kill_switched_check_is_no_pass():
    """Every test switched off: the report is well formed, says nothing bad, and measured nothing."""
    found = verdict(HEALTHY_GPUS, taken(dcgm({t: all_gpus("Not Run") for t in LOADED}), "gpu-001"))
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.reason.startswith("skipped:")


@pytest.mark.parametrize(("test", "level"), [("software", "level 1"), ("memory", "level 2")])
def test_a_shallow_diagnosis_is_no_pass_of_the_deep_one(test, level):
    found = verdict(HEALTHY_GPUS, taken(dcgm({test: all_gpus("Pass")}), "gpu-001"))
    assert found.outcome is Outcome.NOT_MEASURED
    assert level in found.reason


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("content", ["", " \n\t\n", "\n" * 500], ids=["empty", "blank", "lines"])
def test_an_empty_log_of_any_kind_gives_no_value(kind, content):
    found = taken(content, "gpu-001", kind=kind)
    assert [r for r in found.readings if r.value is not None] == []


def test_an_empty_log_is_not_all_nodes_pass():
    xids = claim(metric="xid_errors", at_most=0, scope={"of": "node", "pool": "gpu"})
    for kind in (k for k in KINDS if k.startswith("kernel")):
        assert verdict(xids, taken("", *HOSTS, kind=kind), site=SITE).outcome is Outcome.NOT_MEASURED


NCCL = """\
# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: {check} graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1200 on    gpu-001 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1201 on    gpu-002 device  0 [0x1b] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1  23000.0   46.68   46.68      {wrong}  23010.0   46.66   46.66      {wrong}
  8589934592    2147483648     float     sum      -1   183000   46.94   46.94      {wrong}   183100   46.91   46.91      {wrong}
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 46.7981
#
"""  # noqa: E501
AT_8_GIB = {"operation": "all-reduce", "message_size": "8 GiB"}
BANDWIDTH = claim(
    metric="busbw", at_least="45 GB/s", scope={"of": "pool", "pool": "gpu", "nodes": 2}, conditions=AT_8_GIB
)
CORRECT = claim(metric="collective_errors", at_most=0, scope={"of": "pool", "pool": "gpu", "nodes": 2})


def nccl(check="1", wrong="0"):
    return "./build/all_reduce_perf -b 1G -e 8G -f 2\n" + NCCL.format(check=check, wrong=wrong)


def test_a_whole_checked_collective_is_met():
    records = [taken(nccl())]
    assert verdict(BANDWIDTH, *records, site=SITE).outcome is Outcome.MET
    assert verdict(CORRECT, *records, site=SITE).outcome is Outcome.MET


def test_validation_switched_off_proves_bandwidth_and_no_correctness():
    records = [taken(nccl(check="0", wrong="N/A"))]
    assert verdict(BANDWIDTH, *records, site=SITE).outcome is Outcome.MET
    found = verdict(CORRECT, *records, site=SITE)
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.reason.startswith("not checked")


def test_the_tools_own_ok_is_not_trusted_over_a_wrong_element():
    assert verdict(CORRECT, taken(nccl(wrong="7")), site=SITE).outcome is Outcome.NOT_MET


def test_wrong_results_are_no_bandwidth_either():
    assert verdict(BANDWIDTH, taken(nccl(wrong="7")), site=SITE).outcome is Outcome.NOT_MEASURED


def test_an_incomplete_run_is_no_pass_and_exits_3():
    """INCOMPLETE exiting 0: the footer is missing, so the run did not finish."""
    cut = nccl().split("# Out of bounds")[0]
    found = verdict(BANDWIDTH, taken(cut), site=SITE)
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.reason.startswith("incomplete")
    assert exit_code(cover([found])) == 3


def test_a_failure_in_an_incomplete_run_still_counts():
    cut = nccl().split("# Out of bounds")[0].replace("  46.94   46.94", "  12.00   12.00")
    assert verdict(BANDWIDTH, taken(cut), site=SITE).outcome is Outcome.NOT_MET


def test_an_elided_table_is_no_pass():
    lines = nccl().splitlines()
    lines.insert(10, "  ...")
    found = verdict(BANDWIDTH, taken("\n".join(lines) + "\n"), site=SITE)
    assert found.outcome is Outcome.NOT_MEASURED


def test_a_template_is_no_result():
    text = (
        nccl().replace("46.94", "XXX.XX").replace("46.68", "XXX.XX").replace("46.91", "XXX.XX").replace("46.66", "XX")
    )
    assert verdict(BANDWIDTH, taken(text), site=SITE).outcome is Outcome.NOT_MEASURED


def test_an_unknown_sku_gives_no_threshold_of_zero():
    """Without a known ceiling a reading is judged by the claim alone, and a claim of zero proves nothing."""
    strange = nccl().replace("NVIDIA H100 80GB HBM3", "NVIDIA Z999")
    assert verdict(BANDWIDTH, taken(strange), site=SITE).outcome is Outcome.MET
    slow = strange.replace("46.94", "0.94").replace("46.91", "0.91")
    assert verdict(BANDWIDTH, taken(slow), site=SITE).outcome is Outcome.NOT_MET
    found = verdict(claim(metric="busbw", at_least="0 GB/s", conditions=AT_8_GIB), taken(strange), site=SITE)
    assert found.outcome is Outcome.NOT_MEASURED
    assert found.reason.startswith("threshold proves nothing")


def test_nodes_are_not_dropped_silently():
    """A report of one of two hosts is a claim about one of two hosts, and the missing one is named."""
    found = verdict(HEALTHY_GPUS, taken(dcgm(LOADED), "gpu-001"), site=SITE)
    assert found.outcome is Outcome.NOT_MEASURED
    assert "1 of 2 nodes, without gpu-002" in found.reason


def test_one_output_does_not_stand_for_every_host_that_is_named():
    found = verdict(HEALTHY_GPUS, taken(dcgm(LOADED), *HOSTS), site=SITE)
    assert found.outcome is Outcome.NOT_MEASURED


def test_a_host_that_the_rank_list_lacks_did_not_take_part():
    lines = [line for line in nccl().splitlines() if "Rank  1" not in line]
    assert verdict(BANDWIDTH, taken("\n".join(lines) + "\n"), site=SITE).outcome is not Outcome.MET


def test_noise_of_any_kind_gives_no_pass():
    for text in ("Permission denied\n", "bash: nvidia-smi: command not found\n", "OK\n", "PASS\n", "0\n", "{}", "[]"):
        found = taken(text, "gpu-001")
        assert [r for r in found.readings if r.value is not None] == []
        assert verdict(HEALTHY_GPUS, found).outcome is Outcome.NOT_MEASURED
