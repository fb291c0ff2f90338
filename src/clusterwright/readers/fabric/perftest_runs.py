"""One test of perftest → run: observations, conditions, notices, what is missing.

Conditions: test, operation, bidirectional, device, transport (InfiniBand, RoCE, …), connection, mtu, qps, gpu_memory,
gpu, role, loopback, peak_measured, command.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.fabric.perftest_records import PerfRecord
from clusterwright.readers.fabric.perftest_tables import PerfRow
from clusterwright.readers.values import lacking, read_number, read_quantity

_FEWEST_ITERATIONS: Final = 100
_LARGEST_SIZE: Final = 1 << 23
_VERBS: Final = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic", "Raw": "raw"}
_SETTINGS: Final = (
    ("connection", "Connection type"), ("link_layer", "Link type"), ("srq", "Using SRQ"),
    ("pcie_relaxed_ordering", "PCIe relax order"), ("dual_port", "Dual-port"), ("rdma_cm", "rdma_cm QPs"),
    ("gid_index", "GID index"),
)  # fmt: skip
_NUMBERS: Final = (("qps", "Number of qps"), ("tx_depth", "TX depth"), ("cq_moderation", "CQ Moderation"))


def finish_perf(record: PerfRecord) -> Run:
    """The run that a record describes."""
    test = _test(record)
    run = RunBuilder(test or "perftest")
    if test:
        run.condition("test", test)
    _add_conditions(run, record)
    _add_rows(run, record)
    _add_gpu(run, record)
    _say(run, record)
    _add_missing(run, record)
    return run.build()


def _test(record: PerfRecord) -> str:
    verb, _, what = record.title
    if verb:
        name = _VERBS.get(verb.split("_With")[0].split("_Imm")[0].split(" ")[0], verb)
        kind = "bw" if what == "BW" else "lat"
        return f"raw_ethernet_{kind}" if name == "raw" else f"ib_{name}_{kind}"
    return record.commands[-1][0] if record.commands else ""


def _bidirectional(record: PerfRecord) -> bool | None:
    if record.title_line:
        return "Bidirectional" in record.title[1]
    return _has(record, "b", "bidirectional") if record.commands else None


def _has(record: PerfRecord, short: str, long: str) -> bool:
    return re.search(rf"\s(?:-[A-Za-z]{{0,3}}{short}(?=\s|$)|--{long}\b)", record.options) is not None


def _add_conditions(run: RunBuilder, record: PerfRecord) -> None:
    verb = record.title[0] or (record.commands[-1][0].split("_")[1] if record.commands else "")
    if verb:
        run.condition("operation", _VERBS.get(verb.split("_With")[0].split(" ")[0], verb))
    both = _bidirectional(record)
    if both is not None:
        run.condition("bidirectional", both)
    settings = record.settings
    if "Device" in settings:
        run.condition("device", lacking(settings["Device"]) or settings["Device"])
    link, transport = settings.get("Link type", ""), settings.get("Transport type", "")
    if link:
        names = {("IB", "IB"): "InfiniBand", ("IB", "Ethernet"): "RoCE", ("iWARP", "Ethernet"): "iWARP"}
        run.condition("transport", names.get((transport, link), f"{transport or 'unknown'} over {link}"))
    for name, key in _SETTINGS:
        if key in settings:
            run.condition(name, settings[key])
    for name, key in _NUMBERS:
        if key in settings:
            run.condition(name, read_number(settings[key]))
    if "Mtu" in settings:
        mtu = settings["Mtu"]
        run.condition("mtu", read_quantity(mtu.removesuffix("[B]"), "B") if mtu.endswith("[B]") else _cut(mtu))
    if record.waited:
        run.condition("role", "server")
    if record.prefix:
        run.condition("node", record.prefix)
    if record.commands:
        run.condition("command", f"{record.commands[-1][0]}{record.options}".strip())


def _cut(text: str) -> NoValue:
    return NoValue(Lack.UNREADABLE, text[:20], "its unit is cut off")


def _add_rows(run: RunBuilder, record: PerfRecord) -> None:
    repeats: Counter[tuple[int, str]] = Counter()
    for row in record.rows:
        subject = [("size", str(row.size))]
        if row.level:
            subject.append(("service_level", row.level))
        repeats[row.size, row.level] += 1
        if repeats[row.size, row.level] > 1:
            subject.append(("repeat", str(repeats[row.size, row.level])))
        for name, value in row.values.items():
            run.observe(name, _peak(record, row, name, value), tuple(subject), row.line)
        if isinstance(row.iterations, float):
            run.observe("iterations", row.iterations, tuple(subject), row.line)
    for line, text, why in record.rejected:
        run.reject(line, text, why)


def _peak(record: PerfRecord, row: PerfRow, name: str, value: Value) -> Value:
    """A peak of 0.00 beside an average above it was not measured (duration mode, or more than one QP)."""
    average = row.values.get("bandwidth_average")
    empty = name == "bandwidth_peak" and isinstance(value, Quantity) and value.value == 0
    if empty and (record.no_peak or not isinstance(average, Quantity) or average.value > 0):
        return NoValue(Lack.ABSENT, "0.00", "the peak is not measured in this mode")
    return value


def _add_gpu(run: RunBuilder, record: PerfRecord) -> None:
    """Where the memory was. Without any word about a GPU and without the command it is not known."""
    used = re.search(r"\s--use_(?:cuda|rocm|neuron|hl|mlu|opencl)\b(?:_bus_id)?[=\s]*(\S{0,16})", record.options)
    rocm = record.settings.get("Use ROCm memory") == "ON" or record.settings.get("Use CUDA memory") == "ON"
    if record.gpu_memory or used is not None or rocm:
        run.condition("gpu_memory", True)
        if record.dmabuf or "dmabuf" in record.options:
            run.condition("dmabuf", True)
    elif record.commands:
        run.condition("gpu_memory", False)
    index = record.gpu_index or (used[1] if used is not None and used[1].isdecimal() else "")
    if record.gpu_name:
        run.condition("gpu", record.gpu_name)
    if index:
        run.condition("gpu_index", index)
    place = record.gpu_addresses.get(index)
    if place is not None:
        try:
            run.condition("gpu_pci", pci_address(place))
        except ValueError:
            run.condition("gpu_pci", NoValue(Lack.UNREADABLE, place, "no PCI address"))


def _say(run: RunBuilder, record: PerfRecord) -> None:
    if record.both_ends:
        run.notice("both-ends", "client and server are both in the output; the test counts once", Weight.INFO)
    for line, text in record.failures[:5]:
        run.notice("test-failed", text, Weight.ERROR, line)
    if record.frequency:
        run.notice(
            "cpu-frequency",
            "CPU frequencies differ or are not at their maximum: rates and times are computed from them",
            line=record.frequency,
        )
    if re.search(r"\s(?:-C|--report-cycles)(?=\s|$)", record.options):
        run.notice("in-cycles", "times are CPU cycles (option -C) although the header says usec", Weight.ERROR)
    wrong = re.search(r"\s-(use_(?:cuda|rocm)|report_gbits)\b", record.options)
    if wrong is not None:
        run.notice(
            "option-misspelled", f"-{wrong[1]} has one dash: the tool reads it as other options, not as --{wrong[1]}"
        )
    _say_loopback(run, record)
    _say_numbers(run, record)
    if _bidirectional(record) and record.rows:
        best = max((r.values["bandwidth_average"] for r in record.rows if _is_quantity(r)), key=_value, default=None)
        half = ""
        if isinstance(best, Quantity):
            bits = best.value * (1 if ("b", 1) in best.powers else 8)
            half = f", at best {bits / 2e9:.4g} Gb/s each way"
        run.notice("sum-of-directions", f"a bidirectional test prints the sum of both directions{half}", Weight.INFO)


def _value(value: Value) -> float:
    return value.value if isinstance(value, Quantity) else 0.0


def _is_quantity(row: PerfRow) -> bool:
    return isinstance(row.values.get("bandwidth_average"), Quantity)


def _say_loopback(run: RunBuilder, record: PerfRecord) -> None:
    """Both ends on one port: the fabric was not used."""
    local, remote = (_port(record.addresses.get(side, "")) for side in ("local", "remote"))
    itself = bool(local) and local == remote
    named = re.search(r"\s(?:localhost|127\.0\.0\.1)(?=\s|$)", record.options)
    if itself or named is not None:
        run.condition("loopback", True)
        what = "both ends have the same address" if itself else "the peer is this host itself"
        run.notice("loopback", f"{what}: this measures the adapter and its host, not the fabric")
    elif local and remote:
        run.condition("loopback", False)


def _port(address: str) -> str:
    """What names the port in an address: its GID, else its LID; "" for neither."""
    gid = re.search(r"GID (\S+)", address)
    lid = re.match(r"LID (?:0x)?([0-9a-fA-F]+)", address)
    number = int(lid[1][:8], 16) if lid is not None else 0
    return f"lid {number}" if number else gid[1].lower() if gid is not None else ""


def _say_numbers(run: RunBuilder, record: PerfRecord) -> None:
    negative = [row for row in record.rows if any("negative" in str(value) for value in row.values.values())]
    if negative:
        run.notice("impossible-value", f"{len(negative)} rows hold negative numbers", Weight.ERROR, negative[0].line)
    few = [row for row in record.rows if isinstance(row.iterations, float) and row.iterations < _FEWEST_ITERATIONS]
    asked = re.search(r"\s(?:-n|--iters)[ =]{0,3}(\d{1,9})(?=\s|$)", record.options)
    if few:
        run.notice(
            "few-iterations", f"{len(few)} rows rest on fewer than {_FEWEST_ITERATIONS} iterations", line=few[0].line
        )
    elif asked is not None and int(asked[1]) < _FEWEST_ITERATIONS:
        run.notice("few-iterations", f"only {asked[1]} iterations were asked for")
    odd = [row for row in record.rows if not _agrees(row)]
    if odd:
        run.notice(
            "row-contradicts",
            f"bandwidth is not size times message rate in {len(odd)} rows, first at {odd[0].size:,} B",
            Weight.WARNING,
            odd[0].line,
        )


def _agrees(row: PerfRow) -> bool:
    """Whether average bandwidth is size times message rate, as far as the digits go."""
    average, rate = row.values.get("bandwidth_average"), row.values.get("message_rate")
    if not isinstance(average, Quantity) or not isinstance(rate, Quantity) or row.size < 1024:
        return True
    bytes_s = average.value / 8 if ("b", 1) in average.powers else average.value
    expected = row.size * rate.value
    return abs(bytes_s - expected) <= 0.03 * max(bytes_s, expected) + row.size * 2.0


def _add_missing(run: RunBuilder, record: PerfRecord) -> None:
    if not record.columns:
        run.missing("the table")
    elif not record.rows:
        run.missing("every row of the table")
    elif not record.closed:
        run.missing("line that ends the table")
    if record.rejected and record.columns:
        run.missing(f"{len(record.rejected)} rows that are cut or torn")
    if record.failures and record.columns:
        run.missing("the rest of the test, which failed")
    if _has(record, "a", "all") and record.rows:
        largest = max(row.size for row in record.rows)
        if largest < _LARGEST_SIZE:
            run.missing(f"sizes above {largest:,} B; -a goes to {_LARGEST_SIZE:,} B")
