"""The JSON output of nccl-tests and rccl-tests → records.

Three forms: nccl-tests 2.14.1 and later (`-J FILE`; `"version": 1` or 2 with `config` and `results`), rccl-tests
(`-Z json`; a list of rows with `algBw` and `busBw`), and the earlier patch `--json` whose sizes are object keys.

Source: nccl-tests src/util.cu (JSON_FILE_VERSION 2); rccl-tests src/common.cu; nccl-tests pull request 318.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.collectives.programs import OPERATIONS, program_in
from clusterwright.readers.collectives.ranks import Rank, parse_rank
from clusterwright.readers.collectives.records import Record
from clusterwright.readers.collectives.rows import Half, Layout, Row
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import quantity, read_number, read_quantity, unreadable

#: Versions of the form with `config` and `results` that are known.
KNOWN_VERSIONS: Final = frozenset({1, 2})
_PARAMETERS: Final = {
    "nthreads": "nThread", "ngpus": "nGpus", "minimum_bytes": "minBytes", "maximum_bytes": "maxBytes",
    "warmup_iters": "warmup iters", "iterations": "iters", "aggregated_iterations": "agg iters",
    "validation": "validation", "graph": "graph",
}  # fmt: skip
_PATCH: Final = "nccl-tests structured output"
_HALF: Final = {"time": "µs", "cpu_time": "µs", "alg_bw": "GB/s", "bus_bw": "GB/s"}
_OURS: Final = {"cpu_time": "time", "alg_bw": "algbw", "bus_bw": "busbw"}
_LAYOUT: Final = Layout(("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "wrong") * 2))


def holds_json(text: str) -> bool:
    """Whether a beginning is one of the three forms."""
    if '"busBw"' in text and '"algBw"' in text:
        return True
    if _PATCH in text and '"benchmark"' in text:
        return True
    return '"nccl_version"' in text and '"args"' in text and '"version"' in text


def read_json(text: str) -> list[Record]:
    """The runs in a JSON output; text of a launcher before it is skipped."""
    place = find_json(text)
    if place is None:
        raise Refused("no JSON begins at the start of a line", 1, text)
    line = text.count("\n", 0, place[0]) + 1
    value = load_json(text[place[0] : place[1]], first_line=line).value
    if isinstance(value, list):
        return list(_rccl_records(value, line))
    if isinstance(value, dict) and "benchmark" in value:
        return [_patch_record(value, line)]
    if isinstance(value, dict) and "results" in value:
        return [_nccl_record(value, line)]
    raise Refused("JSON without results of nccl-tests or rccl-tests", line)


def _nccl_record(value: dict[str, Any], line: int) -> Record:
    version = value.get("version")
    if version not in KNOWN_VERSIONS:
        known = " and ".join(map(str, sorted(KNOWN_VERSIONS)))
        raise Refused(f"nccl-tests JSON of version {str(version)[:20]}; known are {known}", line)
    record = Record(stage=1, layout=_LAYOUT)
    arguments = [str(part) for part in _list(value.get("args"))][:100]
    record.command = " ".join(arguments)[:400]
    record.program = program_in(arguments[0]) or "" if arguments else ""
    record.named_by = "the command"
    record.started, record.ended = (
        str(value.get(key, ""))[:40].replace(" ", "T") for key in ("start_time", "end_time")
    )
    code = value.get("nccl_version")
    if isinstance(code, int) and 2000 < code < 10**7:
        record.versions["nccl"] = f"{code // 10_000}.{code // 100 % 100}.{code % 100}" if code > 9999 else str(code)
    config = _dict(value.get("config"))
    record.parameters = {ours: str(config[key])[:30] for key, ours in _PARAMETERS.items() if key in config}
    for key, kind in (("step_factor", "factor"), ("step_bytes", "bytes")):
        if key in config:
            record.parameters["step"] = f"{str(config[key])[:20]}({kind})"
    record.ranks = [rank for item in _list(config.get("devices")) if (rank := _rank(item)) is not None]
    for item in _list(value["results"]):
        _keep(record, _nccl_row(item), item)
    _take_sums(record, value)
    if "end_time" not in value:
        record.elide(0)
    for error in _list(value.get("errors")):
        if isinstance(error, str) and error.strip():
            record.fail(0, error)
    return record


def _take_sums(record: Record, value: dict[str, Any]) -> None:
    bounds, average = _dict(value.get("out_of_bounds")), _dict(value.get("average_bus_bandwidth"))
    if "count" in bounds:
        record.bounds = (0, str(bounds["count"])[:30], "" if str(bounds.get("okay")) == "true" else "FAILED")
    if "bandwidth" in average:
        record.average = (0, str(average["bandwidth"])[:30], "FAILED" if str(average.get("okay")) == "false" else "")


def _rank(item: Any) -> Rank | None:
    """A device by way of the line that the text output prints for it."""
    found = _dict(item)
    keys = ("rank", "group", "pid", "hostname", "device", "device_hex", "device_info")
    rank, group, pid, host, device, bus, name = (str(found.get(key, ""))[:200] for key in keys)
    return parse_rank(f"Rank {rank} Group {group or 0} Pid {pid or 0} on {host} device {device} [{bus}] {name}", 0)


def _nccl_row(item: Any) -> Row | str:
    found = _dict(item)
    size = found.get("size")
    if not _is_size(size):
        return "no size"
    halves = {}
    for key, place in (("out_of_place", "out"), ("in_place", "in")):
        if found.get(key) is not None:
            half = _half({_OURS.get(k, k): (v, _HALF[k]) for k, v in _dict(found[key]).items() if k in _HALF})
            if half is None:
                return f"{key} without time, alg_bw and bus_bw"
            half.values["wrong"] = _count(_dict(found[key]).get("nwrong"))
            halves[place] = half
    return _row(size, found, halves) if halves else "no measurement"


def _patch_record(value: dict[str, Any], line: int) -> Record:
    record = Record(stage=1, layout=_LAYOUT)
    if isinstance(value.get("version"), str):
        record.versions["nccl"] = value["version"][:40]
    for sizes in _list(value["benchmark"]):
        for size, item in _dict(sizes).items():
            found = _dict(item)
            halves = {}
            for short, place in (("oop", "out"), ("ip", "in")):
                half = _half(
                    {
                        n: (found.get(f"{short}_{n}"), u)
                        for n, u in (("time", "µs"), ("algbw", "GB/s"), ("busbw", "GB/s"))
                    }
                )
                if half is not None:
                    half.values["wrong"] = _count(found.get(f"{short}_error"))
                    halves[place] = half
            whole = size.isdecimal() and len(size) < 20 and bool(halves)
            _keep(record, _row(int(size), found, halves) if whole else "no size or no measurement", item)
    if not record.rows and not record.rejections:
        raise Refused("JSON of nccl-tests without a row", line)
    return record


def _rccl_records(items: list[Any], line: int) -> Iterator[Record]:
    """One record an operation, in the order of first appearance; each item is one place of one row."""
    records: dict[str, Record] = {}
    rows: dict[str, dict[tuple[Any, ...], Row]] = {}
    for item in items:
        found = _dict(item)
        name = str(found.get("name", ""))[:40]
        key = name.replace("_", "").lower()
        program = next((p for p in OPERATIONS if p.replace("_", "") == key), "")
        record = records.setdefault(
            name, Record(stage=1, layout=_LAYOUT, library="rccl", program=program, footer=False)
        )
        record.named_by = "the JSON"
        half = _half(
            {
                o: (found.get(k), u)
                for k, o, u in (("time", "time", "µs"), ("algBw", "algbw", "GB/s"), ("busBw", "busbw", "GB/s"))
            }
        )
        size = found.get("size")
        place = {"0": "out", "1": "in", "False": "out", "True": "in"}.get(str(found.get("inPlace")), "")
        if half is None or not _is_size(size) or not place:
            _keep(record, "no size, place or measurement", item)
            continue
        half.values["wrong"] = _count(found.get("wrong"))
        identity = (found.get("numCycle"), size, str(found.get("type")), str(found.get("redop")))
        row = rows.setdefault(name, {}).get(_plain(identity))
        if row is not None and place not in row.halves:
            row.halves[place] = half
            continue
        row = rows[name][_plain(identity)] = _row(size, found, {place: half})
        record.keep_row(row)
        ranks = found.get("ranks")
        if isinstance(ranks, int) and 0 < ranks < 10**7:
            record.declared_ranks.setdefault("the JSON", ranks)
    if not records:
        raise Refused("a list without rows of rccl-tests", line)
    yield from records.values()


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _plain(identity: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(str(part)[:60] for part in identity)


def _half(cells: dict[str, tuple[Any, str]]) -> Half | None:
    """The three numbers of one place, None when one is not there at all."""
    if not {"time", "algbw", "busbw"} <= cells.keys() or any(cell is None for cell, _ in cells.values()):
        return None
    return Half({name: _amount(cell, unit) for name, (cell, unit) in cells.items()})


def _amount(cell: Any, unit: str) -> Value:
    if isinstance(cell, str):
        return read_quantity(cell, unit)
    if isinstance(cell, bool) or not isinstance(cell, (int, float)) or not abs(cell) < 1e18:
        return unreadable(str(cell)[:40], "not a number")
    return quantity(float(cell), unit) if cell >= 0 else unreadable(str(cell), "negative, which is impossible")


def _count(cell: Any) -> Value:
    if cell is None:
        return NoValue(Lack.ABSENT, "null")
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return float(cell) if 0 <= cell < 1e18 else unreadable(str(cell)[:40], "not a count")
    return read_number(str(cell)[:80])


def _row(size: int, found: dict[str, Any], halves: dict[str, Half]) -> Row:
    count = found.get("count")
    texts = {
        key: str(found[key]).strip()[:20] if found.get(key) is not None else "" for key in ("type", "redop", "root")
    }
    whole = count if _is_size(count) else None
    return Row(0, size, whole, texts["type"], texts["redop"], texts["root"], halves)


def _keep(record: Record, row: Row | str, item: Any) -> None:
    if isinstance(row, str):
        record.reject(0, str(item)[:200], row)
    else:
        record.keep_row(row)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
