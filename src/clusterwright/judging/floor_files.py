"""A file of thresholds (YAML, JSON or CSV) → floors, each with the system that it is about.

A row names a GPU or a node shape of the catalogue, the nodes, the NIC, the collective, the message size, and the
threshold in `at_least` or in a field of its own such as `min_busbw_gbps`, which is how most such files are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.judging.floors import Floor
from clusterwright.judging.systems import System
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import Quantity, UnitError, parse_kind
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.hardware import Gpu, NodeShape

#: Fields of a row besides the threshold's own.
FIELDS: Final = (
    "name", "gpu", "shape", "nodes", "gpus_per_node", "domain_gpus", "nic", "nics", "in_network_reduction",
    "operation", "metric", "message_size", "source", "at_least", "at_most",
)  # fmt: skip
_VALUE: Final = re.compile(
    r"busbw|algbw|bus_?bw|alg_?bw|bw|bandwidth|gbps|gbits?|gbytes?|gb_?s|floor|min", re.IGNORECASE
)
_OPERATIONS: Final = {
    "allreduce": "all-reduce", "allreduceperf": "all-reduce", "allgather": "all-gather",
    "allgatherperf": "all-gather", "reducescatter": "reduce-scatter", "reducescatterperf": "reduce-scatter",
    "alltoall": "all-to-all", "alltoallperf": "all-to-all",
}  # fmt: skip


def parse_floors(rows: Sequence[tuple[Mapping[str, Any], Place]], catalogue: Catalogue) -> list[Floor]:
    """The floors of a file.

    Args:
        rows: fields of each row, and where it stands; empty cells are left out.

    Raises:
        InvalidInput: with every unknown field, name and unit.
    """
    floors, problems = list[Floor](), list[Problem]()
    for number, (row, place) in enumerate(rows, 1):
        try:
            floors += _floors_of(row, number, place, catalogue)
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    return floors


def _floors_of(row: Mapping[str, Any], number: int, place: Place, catalogue: Catalogue) -> list[Floor]:
    fields = {key: value for key, value in row.items() if value not in (None, "")}
    values = {k: v for k, v in fields.items() if k in ("at_least", "at_most") or (k not in FIELDS and _VALUE.search(k))}
    unknown = [k for k in fields if k not in FIELDS and k not in values]
    if unknown:
        hint = did_you_mean(unknown[0], FIELDS) or f"fields are {', '.join(FIELDS)}"
        raise InvalidInput(Problem(place, str(unknown[0]), f"unknown field '{unknown[0]}'", hint))
    if not values:
        raise InvalidInput(Problem(place, "", "this row holds no threshold", "write at_least: 380 GB/s"))
    name = str(fields.get("name") or f"threshold {number}")
    size = fields.get("message_size")
    message_size = None if size is None else _quantity(size, place, "message_size", "bytes")
    operation = str(fields.get("operation", ""))
    operation = _OPERATIONS.get(re.sub(r"[^a-z]", "", operation.lower()), operation)
    found = []
    for field, value in values.items():
        metric = str(fields.get("metric") or ("algbw" if re.search(r"alg_?bw", field, re.IGNORECASE) else "busbw"))
        if metric not in ("busbw", "algbw"):
            raise InvalidInput(
                Problem(place, "metric", f"'{metric}' is no bandwidth of a collective", "busbw or algbw")
            )
        found.append(
            Floor(
                name=name,
                field=field,
                value=_value(value, place, field),
                operation=operation,
                metric=metric,
                message_size=message_size,
                system=_system(fields, place, catalogue),
                is_limit=field == "at_most",
            )
        )
    return found


def _value(value: Any, place: Place, field: str) -> Quantity | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        return _quantity(value, place, field, "byte rate", "bit rate")


def _system(fields: Mapping[str, Any], place: Place, catalogue: Catalogue) -> System | str:
    try:
        shape = catalogue.shape(str(fields["shape"])) if "shape" in fields else None
        gpu = _gpu(fields, shape, catalogue)
    except InvalidInput as error:  # the other rows of the table can be judged all the same
        first = error.problems[0]
        return f"{first.message} ({first.hint})"
    if gpu is None:
        return "neither GPU nor node shape is named"
    nodes = _count(fields, "nodes", place) or 1
    per_node = _count(fields, "gpus_per_node", place) or (shape.gpus if shape else None)
    sold = gpu.scale_up.gpus if gpu.scale_up else 1
    if per_node is None:
        if sold not in (4, 8):
            return f"the GPUs per node are not given (gpus_per_node; {gpu.name} has no usual number)"
        per_node = sold
    domain = _count(fields, "domain_gpus", place) or (shape.domain_gpus if shape and shape.domain_gpus else None)
    nic = _nic_rate(fields, shape, per_node, place)
    return System(
        gpu=gpu,
        ranks=nodes * per_node,
        domain_gpus=domain or max(sold, 1),
        nic_gbytes_s=nic,
        sharp=str(fields.get("in_network_reduction", "")).lower() in ("true", "yes", "1", "on"),
    )


def _gpu(fields: Mapping[str, Any], shape: NodeShape | None, catalogue: Catalogue) -> Gpu | None:
    name = fields.get("gpu") or (shape.gpu if shape else None)
    return None if name is None else catalogue.gpu(str(name))


def _nic_rate(fields: Mapping[str, Any], shape: NodeShape | None, per_node: int, place: Place) -> float | None:
    """GB/s of NIC per GPU: as declared, else those of the shape; None when neither says."""
    if "nic" in fields:
        port = _quantity(fields["nic"], place, "nic", "bit rate", "byte rate")
        rate = port.to("Gb/s") / 8 if dict(port.powers).get("b") else port.to("GB/s")
        return rate * (_count(fields, "nics", place) or per_node) / per_node
    shipped = shape.compute_rate if shape else None
    return None if shipped is None else shipped.to("Gb/s") / 8 / per_node


def _count(fields: Mapping[str, Any], name: str, place: Place) -> int | None:
    if name not in fields:
        return None
    text = str(fields[name]).strip()
    if not re.fullmatch(r"\d{1,7}", text) or int(text) < 1:
        raise InvalidInput(Problem(place, name, f"this wants a whole number from 1, found '{text[:40]}'"))
    return int(text)


def _quantity(value: Any, place: Place, field: str, *kinds: str) -> Quantity:
    try:
        return parse_kind(str(value), *kinds)
    except UnitError as error:
        raise InvalidInput(Problem(place, field, str(error))) from None
