"""Throughput of the readers in MB/s (10^6 bytes), beside the obvious parser of the same format where there is one.

Each input is a fixture of the tests, repeated to about SIZE bytes where its format may be repeated; peers get the same
bytes in the same run and only parse, while a reader also detects units, duplicates and what is missing. The second
table streams STREAMED MB of logs and metrics through a reader in a process of its own and shows by how much its peak
memory grew. The third doubles hostile inputs: the last column is the time of the doubled input over that of the single
one, about 2 for a linear reader (less where half of the time is fixed, much less where a bound refuses the longer one).
Times are CPU seconds.

    python bench/readers.py               all three tables, in a few minutes
    python bench/readers.py --hostile     the third alone
    python bench/readers.py --memory 1074 the second alone, with so many MB
"""

from __future__ import annotations

import csv
import io
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from xml.etree import ElementTree

from clusterwright.readers.reading import KINDS, read_output

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures" / "readers"
PEERS = ROOT / ".peers" / "readers"
SIZE = 2_000_000
STREAMED = 64
HOSTILE_SIZE = 64 * 1024
RUNS = 3
MANY = 20
DOCUMENTS = {".json", ".xml"}


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def repeated(kind: str) -> bytes:
    """The largest fixture of a kind whose format may be repeated, repeated."""
    texts = [path for path in FIXTURES.glob(f"{kind}/*") if path.suffix not in DOCUMENTS]
    seed = max((path.read_bytes() for path in texts), key=len, default=b"")
    return seed * (SIZE // len(seed)) if seed else b""


def metrics() -> bytes:
    """An exposition of DCGM exporter: 100 fields of 8 GPUs on many hosts, every series once."""
    names = [f"DCGM_FI_PROF_SAMPLE_{n}" for n in range(100)]
    out = []
    hosts = SIZE // (len(names) * 8 * 190)
    for name in names:
        out.append(f"# HELP {name} A field of the benchmark (in MB).\n# TYPE {name} gauge\n")
        for host in range(max(1, hosts)):
            for gpu in range(8):
                uuid = f"GPU-{host:08x}-0000-0000-0000-{gpu:012x}"
                out.append(
                    f'{name}{{gpu="{gpu}",UUID="{uuid}",device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",'
                    f'Hostname="gpu-{host:04d}"}} {host * 8 + gpu}.5\n'
                )
    return "".join(out).encode()


def accounting() -> bytes:
    """`sacct -P` with a header and many jobs."""
    rows = ["JobID|JobName|User|Account|Partition|State|ExitCode|Submit|Start|End|Elapsed|AllocTRES|NodeList\n"]
    while len(rows) < SIZE // 180:
        n = len(rows)
        rows.append(
            f"{1000 + n}|train|u{n % 50}|team{n % 9}|gpu|COMPLETED|0:0|2026-11-01T08:00:00|2026-11-01T08:05:00|"
            f"2026-11-01T09:05:00|01:00:00|billing=64,cpu=64,gres/gpu=8,mem=512G,node=1|gpu-{n % 100:03d}\n"
        )
    return "".join(rows).encode()


def fio_json() -> bytes:
    """The JSON of fio with its jobs repeated."""
    value = json.loads(min(FIXTURES.glob("fio/*.json")).read_text())
    value["jobs"] = value["jobs"] * max(1, SIZE // len(json.dumps(value["jobs"])))
    return json.dumps(value).encode()


def nodes() -> dict[str, object]:
    """Nodes as the API server lists them."""
    resources = {"cpu": "192", "memory": "2113407800Ki", "nvidia.com/gpu": "8", "pods": "110"}
    status = {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "images": [{"names": [f"registry.example/image-{n}@sha256:{n:064x}"], "sizeBytes": n} for n in range(40)],
    }
    items = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"gpu-{n:04d}", "uid": f"{n:x}"}, "status": status}
        for n in range(SIZE // 9_000)
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def many(work: Callable[[], object]) -> None:
    for _ in range(MANY):
        work()


def prometheus_peer() -> list[str] | None:
    """Command that parses an exposition with prometheus_client in an environment of its own and prints CPU seconds."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "prometheus_client"], check=False)
    if done.returncode:
        return None
    code = (
        "import sys,time,statistics\n"
        "from prometheus_client.parser import text_string_to_metric_families as parse\n"
        "text=sys.stdin.read(); times=[]\n"
        f"for _ in range({RUNS}):\n"
        " t=time.process_time(); n=sum(len(f.samples) for f in parse(text)); times.append(time.process_time()-t)\n"
        "print(statistics.median(times))"
    )
    return [str(python), "-c", code]


def compare() -> None:
    print(f"{'input':<34} {'MB':>6}  {'reader MB/s':>11}  {'peer MB/s':>9}  peer")
    text = metrics()
    own = len(text) / 1e6 / seconds(lambda: read_output([text], kind="dcgm-metrics"))
    command = prometheus_peer()
    if command is not None:
        said = subprocess.run(command, input=text, capture_output=True, check=True).stdout
        show("metrics, every series once", text, own, len(text) / 1e6 / float(said), "prometheus_client parser")
    rows = accounting()
    own = len(rows) / 1e6 / seconds(lambda: read_output([rows], kind="slurm-sacct"))
    peer = seconds(lambda: list(csv.DictReader(io.StringIO(rows.decode()), delimiter="|")))
    show("sacct -P", rows, own, len(rows) / 1e6 / peer, "csv.DictReader (strings only)")
    document = fio_json()
    own = len(document) / 1e6 / seconds(lambda: read_output([document], kind="fio"))
    show("fio JSON", document, own, len(document) / 1e6 / seconds(lambda: json.loads(document)), "json.loads (C)")
    body = sorted(FIXTURES.glob("nvidia-smi-q/*.xml"))[0].read_bytes()
    own = len(body) / 1e6 / seconds(partial(many, partial(read_output, [body], kind="nvidia-smi-q"))) * MANY
    peer = len(body) / 1e6 / seconds(partial(many, partial(ElementTree.fromstring, body))) * MANY
    show("nvidia-smi -q -x", body, own, peer, "ElementTree (C)")
    listing = json.dumps(nodes(), indent=4).encode()
    own = len(listing) / 1e6 / seconds(lambda: read_output([listing], kind="k8s-node"))
    peer = len(listing) / 1e6 / seconds(lambda: json.loads(listing))
    show("kubectl get nodes -o json", listing, own, peer, "json.loads (C)")
    for kind in ("kernel-log", "nccl-tests", "slurm-squeue", "training-log", "k8s-node"):
        if body := repeated(kind):
            show(kind, body, len(body) / 1e6 / seconds(partial(read_output, [body], kind=kind)))


def scrapes() -> Iterator[bytes]:
    """Scrapes of one node, one after the other, with other values each time."""
    labels = [
        f'gpu="{gpu}",UUID="GPU-{gpu:08x}-0000-1111-2222-333333333333",pci_bus_id="00000000:{gpu + 16:02X}:00.0",'
        f'device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-007"'
        for gpu in range(8)
    ]
    for number in count():
        rows = []
        for metric in range(25):
            rows.append(f"# HELP DCGM_FI_DEV_M{metric} A field (in MHz).\n# TYPE DCGM_FI_DEV_M{metric} gauge\n")
            rows += [f"DCGM_FI_DEV_M{metric}{{{gpu}}} {(number * 7 + metric) % 997}\n" for gpu in labels]
        yield "".join(rows).encode()


def kernel_lines() -> Iterator[bytes]:
    """Lines of a day and more of eight nodes; one of 50 is an Xid."""
    for second in count():
        rows = []
        for n in range(500):
            said = "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready and more text here"
            if n % 50 == second % 50:
                said = f"NVRM: Xid (PCI:0000:{n % 8 + 16:02x}:00): 31, pid=1, name=python, Ch 00000010, MMU Fault"
            stamp = f"Mar  1 {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
            rows.append(f"{stamp} gpu-{n % 8:03d} kernel: [{second}.{n:06d}] {said}\n")
        yield "".join(rows).encode()


def steps() -> Iterator[bytes]:
    """Steps of a Megatron job, a checkpoint every 50."""
    for first in count(1, 500):
        rows = []
        for n in range(first, first + 500):
            rows.append(
                f" [2026-03-01 10:{n // 60 % 60:02d}:{n % 60:02d}] iteration {n:8d}/ 9000000 | consumed samples: "
                f"{n * 1024:12d} | elapsed time per iteration (ms): {5000 + n % 77}.3 | throughput per GPU "
                f"(TFLOP/s/GPU): 410.{n % 10} | learning rate: 6.0E-05 | global batch size:  1024 | lm loss: "
                f"2.{n % 1000:03d}E+00 | loss scale: 1.0 | grad norm: 0.{n % 100} | number of skipped iterations:   0"
                " | number of nan iterations:   0 |\n"
            )
            if n % 50 == 0:
                rows.append(f"saving checkpoint at iteration {n:7d} to /ckpt in torch_dist format\n")
                rows.append(f"  successfully saved checkpoint from iteration {n:7d} to /ckpt [ t 1/8, p 1/1 ]\n")
        yield "".join(rows).encode()


STREAMS: dict[str, Callable[[], Iterator[bytes]]] = {
    "dcgm-metrics": scrapes,
    "kernel-log": kernel_lines,
    "training-log": steps,
}


def stream(kind: str, megabytes: int) -> None:
    """Read so much of a kind and print the CPU seconds of reading, the growth of peak memory in MiB, and the runs."""
    making = 0.0

    def chunks() -> Iterator[bytes]:
        nonlocal making
        source, sent = STREAMS[kind](), 0
        while sent < megabytes * 1e6:
            begin = time.process_time()
            chunk = next(source)
            making += time.process_time() - begin
            sent += len(chunk)
            yield chunk

    read_output(islice(STREAMS[kind](), 4), kind=kind)
    before = peak_mib()
    begin = time.process_time()
    transcript = read_output(chunks(), kind=kind)
    used = time.process_time() - begin - making
    print(used, peak_mib() - before, len(transcript.runs))


def peak_mib() -> float:
    """Most memory that this process held so far; on Linux without what its parent held."""
    status = Path("/proc/self/status")
    if status.exists():
        return float(next(line.split()[1] for line in status.read_text().splitlines() if line[:6] == "VmHWM:")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def hold(megabytes: int) -> None:
    print(f"\n{'kind':<28} {'MB streamed':>11}  {'MB/s':>6}  {'growth of peak memory':>21}  runs")
    for kind in STREAMS:
        argv = [sys.executable, __file__, "--stream", kind, str(megabytes)]
        said = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()
        rate, grown = megabytes / float(said[0]), float(said[1])
        print(f"{kind:<28} {megabytes:>11}  {rate:>6.1f}  {grown:>17.0f} MiB  {said[2]:>4}", flush=True)


def show(name: str, body: bytes, own: float, peer: float | None = None, what: str = "") -> None:
    rate = "" if peer is None else f"{peer:.1f}"
    print(f"{name:<34} {len(body) / 1e6:>6.3f}  {own:>11.1f}  {rate:>9}  {what}", flush=True)


#: Pieces that catch expressions which look back or ahead too far.
HOSTILE = {
    "blank lines": b"\n", "spaces": b" ", "tabs": b"\t", "equal signs": b"=", "hashes": b"#", "digits": b"7",
    "letters": b"a", "quotes": b'"', "brackets": b"[", "braces": b"{", "colons": b"a: ", "dashes": b"- ",
    "pipes": b"| ", "commas": b"1,", "columns": b"1 2 3 4 5 6 7 8\n", "key values": b"a=b c=d\n", "escapes": b"\x1b[",
    "lines of spaces": b"                    \n", "tags": b"<a>", "stars": b"*", "dots": b"... ",
}  # fmt: skip


def double(kinds: list[str]) -> None:
    print(f"\n{'kind':<28} {'slowest hostile input':<22} {'s for 64 kB':>12}  doubled")
    for kind in ["(detection)", *kinds]:
        worst = ("", 0.0, 0.0)
        for name, piece in HOSTILE.items():
            body = piece * (HOSTILE_SIZE // len(piece))
            used = "" if kind == "(detection)" else kind
            begin = time.process_time()
            read_output([body], kind=used)
            single = time.process_time() - begin
            if single > worst[1]:
                begin = time.process_time()
                read_output([body + body], kind=used)
                worst = (name, single, (time.process_time() - begin) / max(single, 1e-9))
        print(f"{kind:<28} {worst[0]:<22} {worst[1]:>12.3f}  {worst[2]:>7.1f}", flush=True)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--stream", kind, megabytes]:
            stream(kind, int(megabytes))
        case ["--memory", megabytes]:
            hold(int(megabytes))
        case ["--hostile"]:
            double(sorted(KINDS))
        case []:
            compare()
            hold(STREAMED)
            double(sorted(KINDS))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
