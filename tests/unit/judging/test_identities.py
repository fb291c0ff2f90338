"""Devices that two hosts seem to have, and outputs that name another host than their directory."""

from __future__ import annotations

from datetime import timedelta

from builders import hosts as on
from builders.evidence import NOW
from clusterwright.judging.deriving import derive
from clusterwright.judging.identities import doubt_twins, find_twice
from clusterwright.judging.placing_outputs import place
from clusterwright.judging.recording import record
from clusterwright.readers.reading import read_output

HOSTS = ("gpu-001", "gpu-002")


def output(text, host, path=""):
    transcript = read_output([text.encode()])
    then = NOW - timedelta(hours=1)
    evidence = record(derive(transcript, nodes=[host]), raw_digest="sha256:0", started=then, ended=then)
    return path or f"{host}/x.txt", transcript, evidence


def test_the_same_gpus_on_two_hosts_let_neither_pass_and_a_fault_stands():
    changed = on.gpu_report(
        "gpu-001", changes={"DRAM Uncorrectable            : 0": "DRAM Uncorrectable            : 4"}
    )
    outputs = [output(changed, host) for host in HOSTS]
    (twice,) = find_twice(outputs)
    assert twice.nodes == HOSTS
    assert len(twice.devices) == 16
    for evidence in doubt_twins(outputs, [twice]):
        ecc = [r for r in evidence.readings if r.metric == "ecc_uncorrected"]
        assert [r.value for r in ecc] == [4.0, None]
        assert ecc[1].unreadable.startswith("invalid: ")


def test_two_outputs_of_one_host_and_different_hosts_are_fine():
    one = output(on.gpu_report("gpu-001"), "gpu-001")
    assert find_twice([one, output(on.nvlinks("gpu-001"), "gpu-001", "gpu-001/nvlink.txt")]) == ()
    assert find_twice([one, output(on.gpu_report("gpu-002"), "gpu-002")]) == ()
    assert doubt_twins([one], ()) == [one[2]]


def test_outputs_without_identities_are_fine():
    assert find_twice([output(on.topology(), host) for host in HOSTS]) == ()


def test_an_output_that_names_another_known_host_is_not_of_its_directory():
    log = read_output([on.kernel_log("gpu-001").encode()])
    assert place("out/gpu-001/kernel.log", log, HOSTS) == ("gpu-001",)
    assert place("out/gpu-002/kernel.log", log, HOSTS) == ()
    assert place("out/kernel.log", log, HOSTS) == ()


def test_an_output_that_names_a_pod_is_of_its_directory():
    log = read_output([on.kernel_log("worker-7f9c").encode()])
    assert place("out/gpu-002/kernel.log", log, HOSTS) == ("gpu-002",)
