"""A directory of outputs of a two-node cluster → the verdict that a person would give: healthy, and with each fault.

Every fault is applied alone. A row says which claim it is about, how that claim must end, and words of the reason;
all claims that the fault does not touch must stay met.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders import hosts as on
from builders.outputs import collective, write_bandwidth
from clusterwright.app.accepting_results import ImportRequest, import_acceptance
from clusterwright.app.judging_outputs import OutputRequest, judge_outputs
from clusterwright.model.evidence import Outcome, Verdict

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOSTS = ("gpu-001", "gpu-002")
MET, NOT_MET, UNMEASURED = Outcome.MET, Outcome.NOT_MET, Outcome.NOT_MEASURED
FILE = f"""\
apiVersion: clusterwright/v1alpha1
cluster: two-nodes
pools:
  gpu: {{nodes: "gpu-[001-002]", shape: hgx-h100-sxm-8}}
scheduling: {{engine: slurm}}
workloads:
  chat:
    model: {on.MODEL}
    serve: {{engine: vllm, precision: fp8, in: 2000 tokens, out: 300 tokens, rate: 7 req/s, concurrency: 64}}
acceptance:
  requirements:
    gpus: {{metric: gpus_present, equals: 8, scope: &each {{of: node, pool: gpu, nodes: 2}}, max_age: &month 30 days}}
    ecc: {{metric: ecc_uncorrected, at_most: 0, scope: *each, max_age: *month}}
    remaps: {{metric: remaps_pending, at_most: 0, scope: *each, max_age: *month}}
    remap-failures: {{metric: remap_failures, at_most: 0, scope: *each, max_age: *month}}
    fabric: {{metric: fabric_ready, equals: true, scope: *each, max_age: *month}}
    heat: {{metric: gpu_temperature_margin, at_least: 2, scope: *each, max_age: *month}}
    clocks: {{metric: gpus_throttled, at_most: 0, scope: *each, max_age: *month}}
    driver: {{metric: driver_version, equals: {on.DRIVER}, scope: *each, max_age: *month}}
    nvlink: {{metric: nvlink_down, at_most: 0, scope: *each, max_age: *month}}
    dcgm: {{metric: dcgm_failures, at_most: 0, scope: *each, max_age: *month}}
    xid: {{metric: xid_errors, at_most: 0, scope: *each, max_age: *month}}
    lost: {{metric: gpus_lost, at_most: 0, scope: *each, max_age: *month}}
    pcie: {{metric: pcie_errors, at_most: 0, scope: *each, max_age: *month}}
    ib-links: {{metric: ib_links_up, equals: 8, scope: *each, max_age: *month}}
    ib-rate: {{metric: ib_port_rate, at_least: 400 Gb/s, scope: *each, max_age: *month}}
    in-node:
      metric: busbw
      at_least: 450 GB/s
      scope: *each
      conditions: {{operation: all-reduce, message_size: 8 GiB}}
      max_age: *month
    both-nodes:
      metric: busbw
      at_least: 350 GB/s
      scope: &both {{of: pool, pool: gpu, nodes: 2}}
      conditions: {{operation: all-reduce, message_size: 8 GiB}}
      max_age: *month
    correct: {{metric: collective_errors, at_most: 0, scope: *both, max_age: *month}}
    rdma:
      metric: gpudirect_rdma_write
      at_least: 380 Gb/s
      scope: {{of: pair, pool: gpu, nodes: 2}}
      conditions: {{message_size: 64 KiB}}
      max_age: *month
    cold-read:
      metric: storage_read
      at_least: 10 GB/s
      scope: *each
      conditions: {{concurrency: 16, duration: 60 s}}
      max_age: *month
    load-at-once:
      metric: storage_read
      at_least: 30 GB/s
      scope: *both
      conditions: {{concurrency: 64, duration: 60 s}}
      max_age: *month
    offered: {{metric: gpus_schedulable, equals: 8, scope: *each, max_age: *month}}
    taking-jobs: {{metric: nodes_schedulable, equals: 1, scope: *each, max_age: *month}}
    step: {{metric: step_time, at_most: 11 s, scope: *both, max_age: *month}}
    saved: {{metric: checkpoints_failed, at_most: 0, scope: *both, max_age: *month}}
    first-token:
      metric: ttft_p99
      at_most: 500 ms
      scope: &served {{of: pool, pool: gpu, nodes: 2, workload: chat}}
      conditions: {{concurrency: 64}}
      max_age: *month
    next-token: {{metric: tpot_p99, at_most: 40 ms, scope: *served, conditions: {{concurrency: 64}}, max_age: *month}}
    answered: {{metric: request_success, at_least: 100%, scope: *served, max_age: *month}}
    rate: {{metric: request_rate, at_least: 7 req/s, scope: *served, conditions: {{concurrency: 64}}, max_age: *month}}
"""
BOTH = "gpu-001_gpu-002"


def healthy() -> dict[str, str]:
    """path → text of every output."""
    files = {
        f"{BOTH}/all_reduce.log": collective(HOSTS, 390.0),
        f"{BOTH}/ib_write_bw.txt": write_bandwidth(),
        f"{BOTH}/elbencho.txt": on.elbencho(HOSTS),
        f"{BOTH}/vllm.json": on.serving(),
        f"{BOTH}/train.log": on.training(),
        "scontrol-nodes.txt": on.scheduler_nodes(HOSTS),
        "sacct.txt": on.accounting(),
    }
    for host in HOSTS:
        files |= {
            f"{host}/nvidia-smi-q.txt": on.gpu_report(host),
            f"{host}/topo.txt": on.topology(),
            f"{host}/nvlink.txt": on.nvlinks(host),
            f"{host}/dcgm.json": on.diagnosis(host),
            f"{host}/kernel.log": on.kernel_log(host),
            f"{host}/ibstat.txt": on.ports(host),
            f"{host}/all_reduce.log": collective([host], 478.0),
            f"{host}/fio.json": on.fio(),
        }
    return files


@dataclass(frozen=True)
class Fault:
    """One fault, and how claims end by it.

    Args:
        change: the outputs that it replaces; None takes one away.
        claims: claim → its outcome; all others stay met.
        said: words of the reason of the first claim.
        days_old: age of the replaced outputs.
    """

    name: str
    change: Callable[[dict[str, str]], dict[str, str | None]]
    claims: dict[str, Outcome]
    said: str
    days_old: float = 1.0

    def __str__(self) -> str:
        return self.name


ALL_REDUCE, RDMA, Q, DCGM, KERNEL = (
    f"{BOTH}/all_reduce.log", f"{BOTH}/ib_write_bw.txt", "gpu-002/nvidia-smi-q.txt", "gpu-002/dcgm.json",
    "gpu-002/kernel.log",
)  # fmt: skip
OF_GPUS = ("ecc", "remaps", "remap-failures", "fabric", "heat", "clocks", "driver")
OF_KERNEL = ("xid", "lost", "pcie")
SERVED = ("first-token", "next-token", "answered", "rate")


def put(name: str, text: str | None) -> Callable[[dict[str, str]], dict[str, str | None]]:
    return lambda files: {name: text}


def edit(name: str, old: str, new: str) -> Callable[[dict[str, str]], dict[str, str | None]]:
    def change(files: dict[str, str]) -> dict[str, str | None]:
        assert old in files[name]
        return {name: files[name].replace(old, new)}

    return change


def gpu(old: str, new: str) -> Callable[[dict[str, str]], dict[str, str | None]]:
    return lambda files: {Q: on.gpu_report("gpu-002", changes={old: new})}


def ecc(value: str) -> str:
    """The first block of ECC counters with its uncorrected ones."""
    names = ("SRAM Uncorrectable Parity    ", "SRAM Uncorrectable SEC-DED   ", "DRAM Correctable             ")
    return "\n            ".join(f"{name} : {value}" for name in (*names, "DRAM Uncorrectable           "))


def cut(name: str, at: str) -> Callable[[dict[str, str]], dict[str, str | None]]:
    return lambda files: {name: files[name][: files[name].index(at)]}


def unmeasured(*claims: str) -> dict[str, Outcome]:
    return dict.fromkeys(claims, UNMEASURED)


def failed(*claims: str) -> dict[str, Outcome]:
    return dict.fromkeys(claims, NOT_MET)


XID_79 = "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XID_31 = (
    "NVRM: Xid (PCI:0000:1b:00): 31, pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS"
)
AER = "nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"
TEMPLATE = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  8589934592    2147483648     float     sum      -1   XXXXXX  XXX.XX  XXX.XX      0   XXXXXX  XXX.XX  XXX.XX      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : XXX.XX
"""

FAULTS = [
    Fault("a GPU is missing", put(Q, on.gpu_report("gpu-002", gpus=range(7))), failed("gpus"), "7 on gpu-002"),
    Fault(
        "one GPU of eight is not printed",
        lambda files: {
            Q: on.gpu_report("gpu-002", gpus=range(7)).replace(
                "Attached GPUs                             : 7", "Attached GPUs                             : 8"
            )
        },
        unmeasured(*OF_GPUS),
        "incomplete",
    ),
    Fault(
        "an NVLink is inactive",
        put("gpu-002/nvlink.txt", on.nvlinks("gpu-002", down=[(7, 3)])),
        failed("nvlink"),
        "1 on gpu-002",
    ),
    Fault(
        "a pair has fewer links",
        put("gpu-002/topo.txt", on.topology(links={(2, 5): "NV17"})),
        failed("nvlink"),
        "1 on gpu-002",
    ),
    Fault(
        "an ECC error",
        gpu("DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 2"),
        failed("ecc"),
        "2 on gpu-002",
    ),
    Fault(
        "a row waits to be remapped",
        gpu("Pending                           : No", "Pending                           : Yes"),
        failed("remaps"),
        "1 on gpu-002",
    ),
    Fault(
        "a remapping failed",
        gpu("Remapping Failure Occurred        : No", "Remapping Failure Occurred        : Yes"),
        failed("remap-failures"),
        "1 on gpu-002",
    ),
    Fault(
        "a GPU is too hot",
        gpu("GPU T.Limit Temp                  : 53 C", "GPU T.Limit Temp                  : -3 C"),
        failed("heat"),
        "-3 on gpu-002",
    ),
    Fault(
        "a GPU is held down",
        gpu("HW Slowdown                       : Not Active", "HW Slowdown                       : Active"),
        failed("clocks"),
        "1 on gpu-002",
    ),
    Fault(
        "the fabric is not ready",
        gpu("State                             : Completed", "State                             : In Progress"),
        failed("fabric"),
        "no on gpu-002",
    ),
    Fault("another driver", edit(Q, on.DRIVER, "550.90.07"), failed("driver"), "550.90.07 on gpu-002"),
    Fault("a counter is N/A", gpu(ecc("0"), ecc("N/A")), unmeasured("ecc"), "no value"),
    Fault(
        "the driver does not answer",
        put(
            Q,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
            "Make sure that the latest NVIDIA driver is installed and running.\n",
        ),
        unmeasured(*OF_GPUS),
        "without gpu-002",
    ),
    Fault("Xid 79", put(KERNEL, on.kernel_log("gpu-002", XID_79)), failed("xid", "lost"), "1 on gpu-002"),
    Fault("an Xid of a job", put(KERNEL, on.kernel_log("gpu-002", XID_31)), failed("xid"), "1 on gpu-002"),
    Fault("an uncorrected PCIe error", put(KERNEL, on.kernel_log("gpu-002", AER)), failed("pcie"), "1 on gpu-002"),
    Fault(
        "a kernel log of two minutes",
        put(KERNEL, on.kernel_log("gpu-002", minutes=2)),
        unmeasured(*OF_KERNEL),
        "silence of less than 10 min",
    ),
    Fault(
        "a kernel log that is elided",
        edit(KERNEL, "gpu-002 kernel: mlx5", "gpu-002 kernel: x\n[...]\n2026-11-29T08:00:31+0000 gpu-002 kernel: mlx5"),
        unmeasured(*OF_KERNEL),
        "incomplete",
    ),
    Fault(
        "one GPU fails a test of DCGM",
        put(DCGM, on.diagnosis("gpu-002", results={("memory", 5): "Fail"})),
        failed("dcgm"),
        "1 on gpu-002",
    ),
    Fault(
        "a test of DCGM is skipped",
        put(DCGM, on.diagnosis("gpu-002", results={("targeted_power", g): "Skip" for g in range(8)})),
        unmeasured("dcgm"),
        "skipped: targeted_power",
    ),
    Fault(
        "a test of DCGM warns",
        put(DCGM, on.diagnosis("gpu-002", results={("pcie", 2): "Warn"})),
        unmeasured("dcgm"),
        "warned: pcie on GPU 2",
    ),
    Fault(
        "a test of DCGM did not run",
        put(DCGM, on.diagnosis("gpu-002", results={("memory", 0): "Not Run"})),
        unmeasured("dcgm"),
        "skipped: memory",
    ),
    Fault(
        "DCGM ran at level 1",
        put(DCGM, on.diagnosis("gpu-002", tests=("software",))),
        unmeasured("dcgm"),
        "partial view",
    ),
    Fault(
        "no test of DCGM at all", put(DCGM, on.diagnosis("gpu-002", tests=())), unmeasured("dcgm"), "without gpu-002"
    ),
    Fault("an empty file", put(DCGM, ""), unmeasured("dcgm"), "without gpu-002"),
    Fault(
        "a file of ssh's error",
        put(DCGM, "ssh: connect to host gpu-002 port 22: Connection refused\n"),
        unmeasured("dcgm"),
        "without gpu-002",
    ),
    Fault("a cut document", cut(DCGM, '"metadata"'), unmeasured("dcgm"), "gpu-002"),
    Fault(
        "an IB port is down",
        put("gpu-002/ibstat.txt", on.ports("gpu-002", states={5: ("Down", "Polling", 10)})),
        failed("ib-links"),
        "7 on gpu-002",
    ),
    Fault(
        "an IB port is slow",
        put("gpu-002/ibstat.txt", on.ports("gpu-002", states={5: ("Active", "LinkUp", 200)})),
        failed("ib-rate"),
        "200 Gb/s on gpu-002",
    ),
    Fault(
        "wrong results",
        put(ALL_REDUCE, collective(HOSTS, 390.0, wrong="3")),
        failed("correct") | unmeasured("both-nodes"),
        "on gpu-[001-002]",
    ),
    Fault(
        "results were not checked",
        put(ALL_REDUCE, collective(HOSTS, 390.0, validation=0)),
        unmeasured("correct"),
        "not checked: validation was off",
    ),
    Fault("a collective is cut", cut(ALL_REDUCE, "# Out of bounds"), unmeasured("both-nodes", "correct"), "incomplete"),
    Fault(
        "a row is elided",
        edit(ALL_REDUCE, "  1073741824 ", "...\n  1073741824 "),
        unmeasured("both-nodes", "correct"),
        "incomplete",
    ),
    Fault(
        "another message size",
        put(ALL_REDUCE, collective(HOSTS, 390.0, sizes=(2**30,))),
        unmeasured("both-nodes"),
        "other conditions: message size",
    ),
    Fault(
        "another operation",
        put(ALL_REDUCE, collective(HOSTS, 390.0, operation="all_gather")),
        unmeasured("both-nodes"),
        "other conditions: operation",
    ),
    Fault(
        "a slow collective",
        put(ALL_REDUCE, collective(HOSTS, 190.0)),
        failed("both-nodes"),
        "190 GB/s on gpu-[001-002], required at least 350 GB/s",
    ),
    Fault("a placeholder of documentation", put(ALL_REDUCE, TEMPLATE), unmeasured("both-nodes", "correct"), "refused"),
    Fault(
        "a collective on other nodes",
        lambda files: {ALL_REDUCE: None, "all_reduce.log": collective(("node-a", "node-b"), 390.0)},
        unmeasured("both-nodes", "correct"),
        "other nodes: node-a,node-b",
    ),
    Fault(
        "a collective on one node",
        put(ALL_REDUCE, collective(HOSTS[:1], 478.0)),
        unmeasured("both-nodes", "correct"),
        "scope too small",
    ),
    Fault(
        "a collective faster than NVLink",
        put("gpu-002/all_reduce.log", collective(HOSTS[1:], 900.0)),
        unmeasured("in-node"),
        "impossible value",
    ),
    Fault(
        "a later run passes in the same file",
        put(ALL_REDUCE, collective(HOSTS, 120.0) + collective(HOSTS, 390.0)),
        failed("both-nodes"),
        "120 GB/s",
    ),
    Fault(
        "a later run passes in another file",
        put(f"{BOTH}/first.log", collective(HOSTS, 120.0)),
        failed("both-nodes"),
        "120 GB/s",
    ),
    Fault("slow RDMA", put(RDMA, write_bandwidth(190.0)), failed("rdma"), "190 Gb/s"),
    Fault("RDMA from the host's memory", put(RDMA, write_bandwidth(gpu=False)), unmeasured("rdma"), "not run"),
    Fault(
        "RDMA in both directions",
        edit(RDMA, "RDMA_Write BW Test", "RDMA_Write Bidirectional BW Test"),
        unmeasured("rdma"),
        "not comparable",
    ),
    Fault("RDMA is cut", cut(RDMA, " 65536 "), unmeasured("rdma"), "incomplete"),
    Fault("RDMA is too old", put(RDMA, write_bandwidth()), unmeasured("rdma"), "stale: 40.0 days old", 40),
    Fault("RDMA of tomorrow", put(RDMA, write_bandwidth()), unmeasured("rdma"), "in the future", -1),
    Fault("slow storage", put("gpu-002/fio.json", on.fio(4.0)), failed("cold-read"), "4 GB/s on gpu-002"),
    Fault(
        "storage through the page cache",
        put("gpu-002/fio.json", on.fio(half_ns=2000)),
        unmeasured("cold-read"),
        "not comparable",
    ),
    Fault("a short run of fio", put("gpu-002/fio.json", on.fio(seconds=10)), unmeasured("cold-read"), "duration"),
    Fault(
        "fewer readers",
        put("gpu-002/fio.json", on.fio(jobs=4)),
        unmeasured("cold-read"),
        "other conditions: concurrency 4",
    ),
    Fault("fio ends with an error", put("gpu-002/fio.json", on.fio(error=5)), unmeasured("cold-read"), "invalid"),
    Fault(
        "elbencho on one host",
        put(f"{BOTH}/elbencho.txt", on.elbencho(HOSTS[:1])),
        unmeasured("load-at-once"),
        "concurrency",
    ),
    Fault(
        "a node is drained",
        put("scontrol-nodes.txt", on.scheduler_nodes(HOSTS, states={"gpu-002": "IDLE+DRAIN"})),
        failed("offered", "taking-jobs"),
        "0 on gpu-002",
    ),
    Fault(
        "a node is not in the scheduler",
        put("scontrol-nodes.txt", on.scheduler_nodes(HOSTS[:1])),
        unmeasured("offered", "taking-jobs"),
        "without gpu-002",
    ),
    Fault("slow steps", put(f"{BOTH}/train.log", on.training(14.0)), failed("step"), "14"),
    Fault("few steps", put(f"{BOTH}/train.log", on.training(steps=4)), unmeasured("step", "saved"), "no value"),
    Fault(
        "a checkpoint is not finished",
        put(f"{BOTH}/train.log", on.training(saved=False)),
        failed("saved"),
        "1 on gpu-[001-002]",
    ),
    Fault(
        "a node was left out",
        lambda files: {name: None for name in files if name.startswith("gpu-002/")},
        unmeasured("gpus", *OF_GPUS, "nvlink", "dcgm", *OF_KERNEL, "ib-links", "ib-rate", "in-node", "cold-read"),
        "without gpu-002",
    ),
]
#: Faults that only the outputs of both hosts together show.
TWIN_FAULTS = [
    Fault(
        "the GPUs of one host twice",
        lambda files: {Q: files["gpu-001/nvidia-smi-q.txt"]},
        unmeasured(*OF_GPUS),
        "is in outputs of gpu-[001-002]",
    ),
    Fault(
        "the ports of one host twice",
        lambda files: {"gpu-002/ibstat.txt": files["gpu-001/ibstat.txt"]},
        unmeasured("ib-links", "ib-rate"),
        "is in outputs of gpu-[001-002]",
    ),
    Fault(
        "one host is a copy of the other",
        lambda files: {
            name: files[name.replace("gpu-002", "gpu-001")] for name in files if name.startswith("gpu-002/")
        },
        unmeasured(*OF_GPUS, "nvlink", *OF_KERNEL, "ib-links", "ib-rate", "in-node"),
        "is in outputs of gpu-[001-002]",
    ),
]
SERVICE_FAULTS = [
    Fault(
        "requests fail",
        put(f"{BOTH}/vllm.json", on.serving(completed=950, failed=50)),
        failed("answered") | unmeasured("first-token", "next-token", "rate"),
        "95%",
    ),
    Fault(
        "the service is overloaded",
        put(f"{BOTH}/vllm.json", on.serving(p99_ttft_ms=9000.0)),
        failed("first-token"),
        "9000 ms",
    ),
    Fault(
        "too few requests are answered",
        put(
            f"{BOTH}/vllm.json",
            on.serving(request_throughput=4.0, duration=250.0, output_throughput=1200.0, total_token_throughput=9200.0),
        ),
        failed("rate"),
        "4 req/s",
    ),
    Fault(
        "another load",
        put(f"{BOTH}/vllm.json", on.serving(max_concurrency=8)),
        unmeasured("first-token", "next-token", "rate"),
        "other conditions: concurrency 8",
    ),
    Fault(
        "another model",
        put(f"{BOTH}/vllm.json", on.serving(model_id="meta-llama/Llama-3.1-8B")),
        unmeasured(*SERVED),
        "workload",
    ),
    Fault(
        "no request was answered",
        put(f"{BOTH}/vllm.json", on.serving(completed=0, failed=1000)),
        failed("answered") | unmeasured("first-token", "next-token", "rate"),
        "0%",
    ),
]


def written(folder: Path, fault: Fault, *, whole: bool = True) -> None:
    """The outputs with a fault; only those of the tools that it is about, unless all are wanted."""
    files = healthy()
    changed = fault.change(files)
    about = {Path(name).name for name in changed}
    kept = {name: text for name, text in files.items() if name not in changed and (whole or Path(name).name in about)}
    write(folder, kept)
    write(folder, {name: text for name, text in changed.items() if text is not None}, fault.days_old)


def check(fault: Fault, verdicts: dict[str, Verdict], *, without: tuple[Outcome, ...] = ()) -> None:
    """That the claims of a fault end as they should, and all others are met.

    Args:
        without: how a claim may end of which no output is there.
    """
    wrong = {
        claim: (verdict.outcome, verdict.reason)
        for claim, verdict in verdicts.items()
        if verdict.outcome is not fault.claims.get(claim, MET)
        and (claim in fault.claims or verdict.outcome not in without)
    }
    assert not wrong


def test_healthy_outputs_meet_every_claim(tmp_path):
    write(tmp_path, healthy())
    verdicts = judge(tmp_path)
    assert {v.outcome for v in verdicts.values()} == {MET}, {v.id: v.reason for v in verdicts.values()}


@pytest.mark.parametrize("fault", [*FAULTS, *SERVICE_FAULTS, *TWIN_FAULTS], ids=str)
def test_each_fault_gives_the_verdict_that_a_person_would(tmp_path, fault):
    written(tmp_path, fault, whole=False)
    verdicts = judge(tmp_path)
    check(fault, verdicts, without=(UNMEASURED,))
    assert fault.said in verdicts[next(iter(fault.claims))].reason


@pytest.mark.parametrize("fault", FAULTS[::6], ids=str)
def test_a_fault_among_all_outputs_leaves_the_other_claims_met(tmp_path, fault):
    written(tmp_path, fault)
    check(fault, judge(tmp_path))


def test_healthy_outputs_import_into_met_claims(tmp_path):
    write(tmp_path, healthy())
    verdicts = imported(tmp_path)
    assert {i for i, v in verdicts.items() if v.outcome is not MET} <= set(SERVED)


@pytest.mark.parametrize("fault", FAULTS[::2], ids=str)
def test_faults_import_into_the_verdict_that_a_person_would_give(tmp_path, fault):
    written(tmp_path, fault, whole=False)
    check(fault, imported(tmp_path), without=(UNMEASURED,))


def write(folder: Path, files: dict[str, str], days_old: float = 1.0) -> None:
    for name, text in files.items():
        path = folder / "outputs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        then = (NOW - timedelta(days=days_old)).timestamp()
        os.utime(path, (then, then))
    (folder / "cluster.yaml").write_text(FILE)


def judge(folder: Path) -> dict[str, Verdict]:
    request = OutputRequest([str(folder / "cluster.yaml"), str(folder / "outputs")], engine="slurm")
    return {v.id: v for v in judge_outputs(request, now=NOW).verdicts}


def imported(folder: Path) -> dict[str, Verdict]:
    request = ImportRequest([str(folder / "cluster.yaml")], str(folder / "outputs"), engine="slurm")
    return {v.id: v for v in import_acceptance(request, now=NOW).verdicts}
