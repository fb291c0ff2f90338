"""Schema: the file's format as JSON Schema, for editors.

It accepts whatever the parser accepts by shape; relations between values and units are the parser's business.
Source: JSON Schema draft 2020-12.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from clusterwright.model.architecture import API_VERSION, Architecture

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def file_schema() -> dict[str, Any]:
    """The JSON Schema of an architecture file."""
    schema = Architecture.model_json_schema(by_alias=True, schema_generator=_FileSchema)
    return {"$schema": DIALECT} | schema | {"title": f"Architecture ({API_VERSION})"}


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
