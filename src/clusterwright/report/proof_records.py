"""The proof as JSON: every figure with unit, origin and formula; nothing that a reader would have to parse again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel

from clusterwright.lib.errors import Place
from clusterwright.lib.figures import Figure
from clusterwright.lib.quantities import Quantity
from clusterwright.model.findings import Severity
from clusterwright.report.proofs import Proof

FORMAT: Final = "clusterwright/proof/v1alpha1"


def proof_json(proof: Proof) -> str:
    """The whole proof but the architecture itself, which its digest names; the same proof gives the same bytes."""
    return json.dumps(proof_record(proof), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def proof_record(proof: Proof) -> dict[str, Any]:
    """The proof as plain values."""
    record: dict[str, Any] = {"format": FORMAT}
    for item in fields(proof):
        if item.name != "document":
            record[item.name] = to_record(getattr(proof, item.name))
    record["inputs"] = dict(proof.inputs)
    return record


def to_record(value: Any) -> Any:
    """A value as JSON knows it; a figure keeps its origin, a quantity its unit, an infinite number its name."""
    if value is None or (isinstance(value, bool | int) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Figure):
        return _figure(value)
    if isinstance(value, Quantity | Place):
        return str(value)
    if isinstance(value, Severity):
        return value.word
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, BaseModel):
        named = ((f.alias or n, getattr(value, n)) for n, f in type(value).model_fields.items())
        return {name: to_record(item) for name, item in named if item is not None}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_record(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_record(v) for k, v in value.items()}
    return [to_record(v) for v in value] if isinstance(value, list | tuple | set | frozenset) else str(value)


def _figure(figure: Figure) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": figure.name,
        "value": to_record(figure.value),
        "unit": figure.unit,
        "origin": figure.origin.word,
        "source" if figure.is_leaf else "formula": figure.basis,
    }
    if figure.inputs:
        record["inputs"] = [i.name for i in figure.inputs]
    if figure.band is not None:
        record["band"] = list(figure.band)
    return record
