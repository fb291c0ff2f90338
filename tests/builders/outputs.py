"""What tools print on healthy machines, with the figures that tests vary: one function per tool."""

from __future__ import annotations

from collections.abc import Sequence

GIB = 2**30


def collective(
    hosts: Sequence[str],
    busbw: float = 390.0,
    *,
    gpus: int = 8,
    sizes: Sequence[int] = (GIB, 8 * GIB),
    wrong: str = "0",
    operation: str = "all_reduce",
    validation: int = 1,
    product: str = "NVIDIA H100 80GB HBM3",
) -> str:
    """nccl-tests over `gpus` GPUs of every host; the bus bandwidth in GB/s is that of every size."""
    ranks = gpus * len(hosts)
    factor = 2 * (ranks - 1) / ranks if operation == "all_reduce" else (ranks - 1) / ranks
    lines = [
        f"./build/{operation}_perf -b {sizes[0]} -e {sizes[-1]} -f 8 -g {gpus} -c {validation}",
        f"# nThread 1 nGpus {gpus} minBytes {sizes[0]} maxBytes {sizes[-1]} step: 8(factor) warmup iters: 5 iters: 20 "
        f"agg iters: 1 validation: {validation} graph: 0",
        "#",
        "# Using devices",
    ]
    for rank in range(ranks):
        host, device = hosts[rank // gpus], rank % gpus
        lines.append(
            f"#  Rank {rank:2d} Group  0 Pid {4000 + rank} on {host:>10} device {device:2d} "
            f"[0000:{0x1B + 8 * device:02x}:00] {product}"
        )
    lines += [
        "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root " + "    time   algbw   busbw #wrong" * 2,
        "#        (B)    (elements)                           " + "    (us)  (GB/s)  (GB/s)       " * 2,
    ]
    checked = wrong if validation else "N/A"
    for size in sizes:
        algbw = busbw / factor
        side = f"{size / algbw / 1e3:9.1f} {algbw:7.2f} {busbw:7.2f} {checked:>6}"
        lines.append(f"{size:12d} {size // 4:13d}     float     sum      -1 {side} {side}")
    beyond = "0 OK" if wrong == "0" else f"{2 * len(sizes)} FAILED"
    lines += [f"# Out of bounds values : {beyond}", f"# Avg bus bandwidth    : {busbw:.4f}", "#"]
    return "\n".join(lines) + "\n"


def write_bandwidth(rate: float = 392.0, *, size: int = 65536, device: str = "mlx5_0", gpu: bool = True) -> str:
    """ib_write_bw of perftest, in Gb/s, seen by one of the two hosts."""
    head = ["initializing CUDA", "Listing all CUDA devices in system:", "CUDA device 0: PCIe address is 1B:00", "",
            "Picking device No. 0", "[pid = 4001, dev = 0] device name = [NVIDIA H100 80GB HBM3]",
            "creating CUDA Ctx", "making it the current CUDA Ctx"] if gpu else []  # fmt: skip
    line = "-" * 87
    messages = rate * 1e9 / 8 / size / 1e6
    body = [
        line,
        "                    RDMA_Write BW Test",
        " Dual-port       : OFF\t\tDevice         : " + device,
        " Number of qps   : 4\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON\t\tLock-free      : OFF",
        " ibv_wr* API     : ON\t\tUsing DDP      : OFF",
        " TX depth        : 128",
        " CQ Moderation   : 1",
        " Mtu             : 4096[B]",
        " Link type       : IB",
        " Max inline data : 0[B]",
        " rdma_cm QPs\t : OFF",
        " Data ex. method : Ethernet",
        line,
        " local address: LID 0x11 QPN 0x0127 PSN 0x5cd9d3 RKey 0x1fff00 VAddr 0x007f9c40000000",
        " remote address: LID 0x12 QPN 0x0128 PSN 0x8b5a2e RKey 0x1fff01 VAddr 0x007f1c80000000",
        line,
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
        f" {size}      5000             {rate + 0.5:.2f}             {rate:.2f}               {messages:.6f}",
        line,
    ]
    return "\n".join(head + body) + "\n"
