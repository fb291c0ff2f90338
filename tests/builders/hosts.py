"""What the tools of a healthy host print: GPUs, links, diagnosis, kernel, ports, storage, scheduler, service, training.

Eight H100 with NVSwitch and eight ConnectX-7 at 400 Gb/s; every function varies what a test wants to be wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PRODUCT = "NVIDIA H100 80GB HBM3"
DRIVER = "570.124.06"
BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)


def pci(gpu: int) -> str:
    return f"0000:{BUSES[gpu]:02x}:00.0"


def uuid(host: str, gpu: int) -> str:
    return f"GPU-{int(host[-3:]):08d}-0000-4000-8000-{gpu:012d}"


def gpu_report(host: str, *, gpus: Sequence[int] = range(8), changes: Mapping[str, str] | None = None) -> str:
    """`nvidia-smi -q`, in which `changes` replaces text of the last GPU."""
    head = [
        "",
        "==============NVSMI LOG==============",
        "",
        "Timestamp                                 : Sun Nov 29 10:00:00 2026",
        f"Driver Version                            : {DRIVER}",
        "CUDA Version                              : 12.8",
        "",
        f"Attached GPUs                             : {len(gpus)}",
    ]
    blocks = [_gpu(host, gpu) for gpu in gpus]
    for old, new in (changes or {}).items():
        assert old in blocks[-1], old
        blocks[-1] = blocks[-1].replace(old, new, 1)
    return "\n".join(head) + "\n" + "\n".join(blocks)


def _gpu(host: str, gpu: int) -> str:
    return f"""\
GPU 0000{pci(gpu).upper()}
    Product Name                          : {PRODUCT}
    Product Brand                         : NVIDIA
    Product Architecture                  : Hopper
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    Serial Number                         : 16535230{int(host[-3:]):03d}{gpu:02d}
    GPU UUID                              : {uuid(host, gpu)}
    Minor Number                          : {gpu}
    VBIOS Version                         : 96.00.99.00.01
    PCI
        Bus                               : 0x{BUSES[gpu]:02X}
        Bus Id                            : 0000{pci(gpu).upper()}
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 5
            Link Width
                Max                       : 16x
                Current                   : 16x
        Replays Since Reset               : 0
    Fan Speed                             : N/A
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : Active
        Applications Clocks Setting       : Not Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
        SW Thermal Slowdown               : Not Active
        Display Clock Setting             : Not Active
    FB Memory Usage
        Total                             : 81559 MiB
        Reserved                          : 551 MiB
        Used                              : 1 MiB
        Free                              : 81007 MiB
    Compute Mode                          : Default
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable Parity     : 0
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Correctable              : 0
            DRAM Uncorrectable            : 0
        Aggregate
            SRAM Correctable              : 0
            SRAM Uncorrectable Parity     : 0
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Correctable              : 0
            DRAM Uncorrectable            : 0
    Retired Pages
        Single Bit ECC                    : N/A
        Double Bit ECC                    : N/A
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 0
        Pending                           : No
        Remapping Failure Occurred        : No
        Bank Remap Availability Histogram
            Max                           : 2560 bank(s)
            High                          : 0 bank(s)
            Partial                       : 0 bank(s)
            Low                           : 0 bank(s)
            None                          : 0 bank(s)
    Temperature
        GPU Current Temp                  : 31 C
        GPU T.Limit Temp                  : 53 C
        GPU Shutdown T.Limit Temp         : -8 C
        GPU Slowdown T.Limit Temp         : -2 C
        GPU Max Operating T.Limit Temp    : 0 C
        GPU Target Temperature            : N/A
        Memory Current Temp               : 40 C
    GPU Power Readings
        Average Power Draw                : 69.80 W
        Current Power Limit               : 700.00 W
        Max Power Limit                   : 700.00 W
    Clocks
        Graphics                          : 1980 MHz
        SM                                : 1980 MHz
        Memory                            : 2619 MHz
        Video                             : 1545 MHz
    Fabric
        State                             : Completed
        Status                            : Success
    Processes                             : None
"""


def topology(*, links: Mapping[tuple[int, int], str] | None = None) -> str:
    """`nvidia-smi topo -m`; `links` replaces the links of single pairs."""
    names = [f"GPU{i}" for i in range(8)] + [f"NIC{i}" for i in range(8)]
    rows = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for i, name in enumerate(names):
        cells = [" X " if i == j else _link(i, j, links or {}) for j in range(16)]
        tail = f"\t{'0-47' if i < 4 else '48-95'}\t{0 if i < 4 else 1}\t\tN/A" if i < 8 else "\t\t\t\t"
        rows.append(name + "\t" + "\t".join(cells) + tail)
    legend = [
        "", "Legend:", "", "  X    = Self",
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)",
        "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
        "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
        "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
        "  PIX  = Connection traversing at most a single PCIe bridge",
        "  NV#  = Connection traversing a bonded set of # NVLinks", "", "NIC Legend:", "",
        *(f"  NIC{i}: mlx5_{i}" for i in range(8)),
    ]  # fmt: skip
    return "\n".join(rows + legend) + "\n"


def _link(i: int, j: int, links: Mapping[tuple[int, int], str]) -> str:
    if i < 8 and j < 8:
        return links.get((min(i, j), max(i, j)), "NV18")
    if i >= 8 and j >= 8:
        return "NODE" if (i - 8 < 4) == (j - 8 < 4) else "SYS"
    gpu, nic = (i, j - 8) if i < 8 else (j, i - 8)
    return "PIX" if gpu == nic else "NODE" if (gpu < 4) == (nic < 4) else "SYS"


def nvlinks(host: str, *, down: Sequence[tuple[int, int]] = ()) -> str:
    """`nvidia-smi nvlink -s`: 18 links of every GPU; those in `down` (GPU, link) are inactive."""
    lines = []
    for gpu in range(8):
        lines.append(f"GPU {gpu}: {PRODUCT} (UUID: {uuid(host, gpu)})")
        lines += [f"\t Link {link}: {'<inactive>' if (gpu, link) in down else '26.562 GB/s'}" for link in range(18)]
    return "\n".join(lines) + "\n"


DIAGNOSIS = (
    "software",
    "pcie",
    "memory",
    "memory_bandwidth",
    "diagnostic",
    "targeted_stress",
    "targeted_power",
    "nvbandwidth",
)


def diagnosis(
    host: str = "gpu-001", *, results: Mapping[tuple[str, int], str] | None = None, tests: Sequence[str] = DIAGNOSIS
) -> str:
    """`dcgmi diag -r 3 -j` of DCGM 4; `results` gives single GPUs another result than Pass."""
    results = results or {}
    found = [
        {
            "name": test,
            "results": [
                {
                    "entity_group": "GPU",
                    "entity_group_id": 0,
                    "entity_id": gpu,
                    "status": results.get((test, gpu), "Pass"),
                }
                for gpu in range(8)
            ],
            "test_summary": {"status": "Pass"},
        }
        for test in tests
    ]
    body = {
        "DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": found}]},
        "entity_groups": [
            {
                "entity_group": "GPU",
                "entity_group_id": 0,
                "entities": [
                    {"entity_id": gpu, "device_id": "2330", "serial_num": f"16535230{int(host[-3:]):03d}{gpu:02d}"}
                    for gpu in range(8)
                ],
            }
        ],
        "metadata": {"version": "4.2.3", "Driver Version Detected": DRIVER},
    }
    return json.dumps(body, indent=2) + "\n"


def kernel_log(host: str, *events: str, minutes: int = 120) -> str:
    """journalctl -k -o short-iso over some time, with events in the middle of it (without their beginnings)."""

    def stamp(minute: int, second: int = 0) -> str:
        return f"2026-11-29T{8 + minute // 60:02}:{minute % 60:02}:{second:02}+0000 {host} kernel:"

    lines = [
        f"{stamp(0)} Linux version 6.8.0-48-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-13) #48-Ubuntu SMP",
        f"{stamp(0, 9)} nvidia: loading out-of-tree module taints kernel.",
        f"{stamp(0, 10)} NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Thu Feb 27 04:47:25 UTC 2025",
        f"{stamp(0, 30)} mlx5_core 0000:18:00.0: firmware version: 28.43.1014",
    ]
    lines += [f"{stamp(minutes // 2, second)} {event}" for second, event in enumerate(events)]
    lines.append(f"{stamp(minutes)} systemd[1]: Started session 4 of User ops.")
    return "\n".join(lines) + "\n"


def ports(host: str = "gpu-001", *, states: Mapping[int, tuple[str, str, int]] | None = None) -> str:
    """`ibstat`: eight ports; `states` gives single ports (state, physical state, rate)."""
    blocks = []
    for port in range(8):
        state, physical, rate = (states or {}).get(port, ("Active", "LinkUp", 400))
        guid = f"0x0c42a10300{int(host[-3:]):02x}{0xB200 + 8 * port:04x}"
        blocks.append(
            f"CA 'mlx5_{port}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.43.1014\n"
            f"\tHardware version: 0\n\tNode GUID: {guid}\n\tSystem image GUID: {guid}\n\tPort 1:\n"
            f"\t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tBase lid: {41 + port}\n"
            f"\t\tLMC: 0\n\t\tSM lid: 1\n\t\tCapability mask: 0xa751e848\n\t\tPort GUID: {guid}\n"
            "\t\tLink layer: InfiniBand\n"
        )
    return "".join(blocks)


def fio(rate: float = 12.0, *, jobs: int = 16, seconds: int = 120, error: int = 0, half_ns: int = 1200000) -> str:
    """fio 3 as JSON with --group_reporting: one read job at `rate` GB/s, half of its reads within `half_ns`."""
    size = int(rate * 1e9 * seconds)
    none = {"io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0,
            "short_ios": 0, "drop_ios": 0}  # fmt: skip
    read = {
        "io_bytes": size, "io_kbytes": size // 1024, "bw_bytes": int(rate * 1e9), "bw": int(rate * 1e9 / 1024),
        "iops": rate * 1e9 / 2**20, "runtime": seconds * 1000, "total_ios": size // 2**20, "short_ios": 0,
        "drop_ios": 0, "clat_ns": {"min": 100000, "max": 9000000, "mean": 1300000.0, "stddev": 200000.0,
                                   "N": size // 2**20, "percentile": {"50.000000": half_ns, "99.000000": 4100000}},
    }  # fmt: skip
    options = {
        "name": "cold-read", "rw": "read", "bs": "1M", "size": "100G", "numjobs": str(jobs), "iodepth": "4",
        "ioengine": "io_uring", "direct": "1", "runtime": str(seconds), "group_reporting": "1",
    }  # fmt: skip
    job = {
        "jobname": "cold-read", "groupid": 0, "error": error, "eta": 0, "elapsed": seconds + 1,
        "job options": options, "read": read, "write": none, "trim": none, "job_runtime": seconds * 1000 * jobs,
        "usr_cpu": 2.0, "sys_cpu": 9.0, "ctx": 900000,
    }  # fmt: skip
    body = {"fio version": "fio-3.36", "timestamp": 1795953600, "timestamp_ms": 1795953600000,
            "time": "Sun Nov 29 12:00:00 2026", "jobs": [job]}  # fmt: skip
    return json.dumps(body, indent=2) + "\n"


def elbencho(hosts: Sequence[str], mib_s: int = 40000, *, threads: int = 32) -> str:
    """elbencho over several hosts at once: one read phase of two minutes."""
    total = mib_s * 120
    return (
        f"$ elbencho --hosts {','.join(hosts)} -r --direct -b 1m -s 100g -t {threads} /lake/file[1-{threads}]\n\n"
        "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n"
        "=========== ================    ==========   =========\n"
        "READ        Elapsed time     :     1m58.0s      2m0.0s\n"
        f"            IOPS             :   {mib_s + 100:9d}   {mib_s:9d}\n"
        f"            Throughput MiB/s :   {mib_s + 100:9d}   {mib_s:9d}\n"
        f"            Total MiB        :   {total - 9000:9d}   {total:9d}\n"
        "---\n"
    )


MODEL = "meta-llama/Llama-3.3-70B-Instruct"


def serving(**changes: Any) -> str:
    """`vllm bench serve --save-result`: 1,000 answered requests at a concurrency of 64."""
    body = {
        "date": "20261129-130000", "endpoint_type": "openai-chat", "backend": "vllm", "label": None, "model_id": MODEL,
        "tokenizer_id": MODEL, "num_prompts": 1000, "request_rate": 8.0, "burstiness": 1.0, "max_concurrency": 64,
        "duration": 126.0, "completed": 1000, "failed": 0, "total_input_tokens": 2000000,
        "total_output_tokens": 300000, "request_throughput": 7.9365, "request_goodput": None,
        "output_throughput": 2380.95, "total_token_throughput": 18253.97,
        "mean_ttft_ms": 180.0, "median_ttft_ms": 170.0, "std_ttft_ms": 40.0, "p95_ttft_ms": 260.0, "p99_ttft_ms": 310.0,
        "mean_tpot_ms": 22.0, "median_tpot_ms": 21.5, "std_tpot_ms": 2.0, "p95_tpot_ms": 26.0, "p99_tpot_ms": 29.0,
        "mean_itl_ms": 22.0, "median_itl_ms": 21.0, "std_itl_ms": 5.0, "p95_itl_ms": 30.0, "p99_itl_ms": 45.0,
        "mean_e2el_ms": 6758.0, "median_e2el_ms": 6700.0, "p95_e2el_ms": 8100.0, "p99_e2el_ms": 8900.0,
    }  # fmt: skip
    return json.dumps(body | changes) + "\n"


def scheduler_nodes(hosts: Sequence[str], *, states: Mapping[str, str] | None = None) -> str:
    """`scontrol show node`."""
    blocks = []
    for host in hosts:
        state = (states or {}).get(host, "IDLE")
        reason = "   Reason=[node_problem] bad GPU [root@2026-11-29T09:00:00]\n" if "DRAIN" in state else ""
        blocks.append(
            f"NodeName={host} Arch=x86_64 CoresPerSocket=48 \n"
            "   CPUAlloc=0 CPUEfctv=96 CPUTot=96 CPULoad=0.50\n"
            "   AvailableFeatures=(null)\n   ActiveFeatures=(null)\n   Gres=gpu:h100:8\n"
            f"   NodeAddr={host} NodeHostName={host} Version=24.05.4\n"
            "   OS=Linux 6.8.0-48-generic #48-Ubuntu SMP \n"
            "   RealMemory=2000000 AllocMem=0 FreeMem=1900000 Sockets=2 Boards=1\n"
            f"   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n"
            "   Partitions=batch \n"
            "   BootTime=2026-11-20T08:00:00 SlurmdStartTime=2026-11-20T08:05:00\n"
            "   LastBusyTime=2026-11-29T09:00:00 ResumeAfterTime=None\n"
            "   CfgTRES=cpu=96,mem=2000000M,billing=96,gres/gpu=8\n   AllocTRES=\n" + reason
        )
    return "\n".join(blocks) + "\n"


def accounting() -> str:
    """`sacct -P`: finished jobs of other people, which prove no claim."""
    return (
        "JobID|JobName|Partition|Account|AllocTRES|State|ExitCode|Elapsed|NodeList\n"
        "901|train|batch|ml|billing=96,cpu=96,gres/gpu=8,mem=1000G,node=1|COMPLETED|0:0|01:00:00|gpu-001\n"
        "901.batch|batch||ml|cpu=96,gres/gpu=8,mem=1000G,node=1|COMPLETED|0:0|01:00:00|gpu-001\n"
    )


def training(seconds: float = 9.8, *, steps: int = 40, saved: bool = True, skipped: int = 0) -> str:
    """Megatron-LM on both hosts: steps of `seconds`, a checkpoint at step 20."""
    lines = [
        "using world size: 16, data-parallel size: 2",
        "SLURM_JOB_NODELIST=gpu-[001-002]",
        "[before the start of training step] datetime: 2026-11-29 10:00:00 ",
    ]
    for step in range(1, steps + 1):
        wait = seconds + (20 if step == 1 else 0) + 0.001 * (step % 7)
        lost = 1 if step <= skipped + 1 and step > 1 else 0
        lines.append(
            f" [2026-11-29 10:{step // 6:02}:{step % 6 * 10:02}] iteration {step:8d}/     100 | consumed samples: "
            f"{64 * step:12d} | elapsed time per iteration (ms): {wait * 1000:.1f} | throughput per GPU "
            f"(TFLOP/s/GPU): 410.5 | learning rate: 1.0E-05 | global batch size:    64 | lm loss: 2.100000E+00 | "
            f"loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations: {lost:3d} | number of nan "
            "iterations:   0 |"
        )
        if step == 20:
            lines.append("saving checkpoint at iteration      20 to /lake/ckpt in torch_dist format")
            if saved:
                lines.append("  successfully saved checkpoint from iteration      20 to /lake/ckpt")
    return "\n".join(lines) + "\n"
