"""The JSON of perftest (--out_json): `test_info` and `results`. It names no unit of bandwidth.

The unit is found from the row itself: average = size × message rate holds in MiB/s or in Gb/s, never in both.

Source: linux-rdma/perftest, src/perftest_resources.c and perftest_parameters.c since 4.5-0.18 (`out_json`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from clusterwright.model.observations import NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import quantity, read_number, unreadable

_TIMES: Final = {
    "t_min": "latency_min", "t_max": "latency_max", "t_typical": "latency_typical", "t_avg": "latency_mean",
    "t_stdev": "latency_stdev", "percentile_99": "latency_p99", "percentile_99.9": "latency_p99_9",
}  # fmt: skip
_TESTS: Final = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic"}


def holds_perf_json(text: str) -> bool:
    """Whether a beginning is JSON of perftest."""
    return '"test_info"' in text or ('"n_iterations"' in text and ('"BW_average"' in text or '"t_avg"' in text))


def read_perf_json(text: str) -> list[Run]:
    """The one test in a JSON output."""
    place = find_json(text)
    if place is None:
        raise Refused("no JSON begins at the start of a line", 1, text)
    line = text.count("\n", 0, place[0]) + 1
    value = load_json(text[place[0] : place[1]], first_line=line).value
    if not isinstance(value, dict) or "results" not in value:
        raise Refused("JSON without results of perftest", line)
    info = value.get("test_info")
    run = RunBuilder("perftest")
    if isinstance(info, dict):
        _add_info(run, info)
    else:
        run.missing("test_info")
    for row in _rows(value["results"]):
        _add_row(run, row)
    if run.bare:
        run.missing("every result")
    return [run.build()]


def _add_info(run: RunBuilder, info: dict[str, Any]) -> None:
    title = str(info.get("test", ""))[:60]
    verb = next((name for key, name in _TESTS.items() if title.startswith(key)), "")
    if verb:
        run.tool = f"ib_{verb}_{'bw' if 'BW' in title else 'lat'}"
        run.condition("test", run.tool)
        run.condition("operation", verb)
        run.condition("bidirectional", "Bidirectional" in title)
    link, transport = str(info.get("Link_type", ""))[:20], str(info.get("Transport_type", ""))[:20]
    names = {("IB", "IB"): "InfiniBand", ("IB", "Ethernet"): "RoCE"}
    if link or transport:
        run.condition("transport", names.get((transport, link), f"{transport} over {link}"))
    for name, key in (("device", "Device"), ("connection", "Connection_type"), ("link_layer", "Link_type")):
        if isinstance(info.get(key), str):
            run.condition(name, info[key][:60])
    if _is_number(info.get("Number_of_qps")):
        run.condition("qps", float(info["Number_of_qps"]))
    if _is_number(info.get("Mtu")):
        run.condition("mtu", quantity(float(info["Mtu"]), "B"))
    memory = [str(info[key]) for key in info if "memory" in key.lower()]
    if "ON" in memory:
        run.condition("gpu_memory", True)


def _rows(results: Any) -> Iterator[dict[str, Any]]:
    for row in results if isinstance(results, list) else [results]:
        if isinstance(row, dict):
            yield row


def _add_row(run: RunBuilder, row: dict[str, Any]) -> None:
    size = row.get("MsgSize", row.get("msg_size"))
    if not _is_number(size) or size < 0:
        run.reject(0, str(row)[:200], "no message size")
        return
    subject = (("size", f"{size:.0f}"),)
    rate = row.get("MsgRate")
    unit = _unit(float(size), row.get("BW_average"), rate)
    for key, name in (("BW_peak", "bandwidth_peak"), ("BW_average", "bandwidth_average")):
        if key in row:
            run.observe(
                name, _amount(row[key], unit, "the JSON names no unit and the message rate settles none"), subject
            )
    if "MsgRate" in row:
        value = rate * 1e6 if _is_number(rate) else rate
        run.observe("message_rate", _amount(value, "op/s", ""), subject)
    for key, name in _TIMES.items():
        if key in row:
            run.observe(name, _amount(row[key], "µs", ""), subject)
    if _is_number(row.get("n_iterations")):
        run.observe("iterations", float(row["n_iterations"]), subject)
    numbers = [row.get(key) for key in ("BW_average", "BW_peak", "MsgRate", *_TIMES)]
    if any(_is_number(number) and number < 0 for number in numbers):
        run.notice("impossible-value", "a result is negative", Weight.ERROR)


def _unit(size: float, average: Any, rate: Any) -> str:
    """`MiB/s` or `Gb/s`, whichever makes average = size × rate true; "" when neither does."""
    if not _is_number(average) or not _is_number(rate) or rate <= 0 or average <= 0:
        return ""
    bytes_s = size * rate * 1e6
    for unit, scale in (("MiB/s", 2.0**20), ("Gb/s", 1.25e8)):
        if abs(average * scale - bytes_s) <= 0.02 * bytes_s:
            return unit
    return ""


def _amount(cell: Any, unit: str, why: str) -> Value:
    if isinstance(cell, str):
        number: float | NoValue = read_number(cell)
    elif _is_number(cell):
        number = float(cell)
    else:
        return unreadable(str(cell)[:40], "not a number")
    if isinstance(number, NoValue):
        return number
    if number < 0:
        return unreadable(f"{number:g}", "negative, which is impossible")
    return quantity(number, unit) if unit else unreadable(f"{number:g}", why)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18
