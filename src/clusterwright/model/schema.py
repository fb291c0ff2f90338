"""Schema: the file's format as JSON Schema, for editors.

A quantity must have a number and a unit of its kind, a threshold one of its metric's. Relations between values, and
sizes that cannot be, are the parser's business.
Source: JSON Schema draft 2020-12.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from clusterwright.lib.patterns import pattern_of
from clusterwright.lib.quantities import KINDS
from clusterwright.model.architecture import API_VERSION, Architecture
from clusterwright.model.metrics import METRICS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def file_schema() -> dict[str, Any]:
    """The JSON Schema of an architecture file."""
    schema = Architecture.model_json_schema(by_alias=True, schema_generator=_FileSchema)
    schema["$defs"]["Requirement"]["allOf"] = [_thresholds(kind) for kind in sorted({m.kind for m in METRICS.values()})]
    return {"$schema": DIALECT} | schema | {"title": f"Architecture ({API_VERSION})"}


def _thresholds(kind: str) -> dict[str, Any]:
    """What the thresholds of all metrics of a kind look like: a quantity of that kind, a number, a flag, or text."""
    plain: dict[str, dict[str, Any]] = {"count": {"type": ["number", "null"]}, "flag": {"type": ["boolean", "null"]}}
    wanted = plain.get(kind, {"type": ["string", "number", "null"]})
    if kind in KINDS:
        wanted = {"type": ["string", "null"], "pattern": pattern_of(kind)}
    metrics = [name for name, metric in METRICS.items() if metric.kind == kind]
    return {
        "if": {"properties": {"metric": {"enum": metrics}}},
        "then": {"properties": dict.fromkeys(("at_least", "at_most", "equals"), wanted)},
    }


class _FileSchema(GenerateJsonSchema):
    """Without the titles that repeat each key, and without defaults that are whole sections."""

    def get_title_from_name(self, name: str) -> str:
        return ""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if found.get("default") in (None, {}, []) or isinstance(found.get("default"), dict):
            found.pop("default", None)
        return found
