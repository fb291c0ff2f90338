"""Documents: a first architecture file, and the format of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clusterwright.files.inputs import DEFAULT_NAME
from clusterwright.files.outputs import TEMPLATES, read_template, write_text
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.spelling import did_you_mean


def write_first_file(directory: Path, template: str, *, replace: bool = False) -> Path:
    """Write a template as `cluster.yaml` in a directory, which is made if absent; returns the path written.

    Raises:
        InvalidInput: for an unknown template, or when the file exists and may not be replaced.
        Unavailable: when the system does not let us write.
    """
    if template not in TEMPLATES:
        hint = did_you_mean(template, TEMPLATES) or f"choose one of {', '.join(TEMPLATES)}"
        raise InvalidInput(f"no template '{template}'; {hint}")
    path = directory / DEFAULT_NAME
    write_text(path, read_template(template), replace=replace)
    return path


def describe_format() -> dict[str, Any]:
    """The JSON Schema of an architecture file."""
    from clusterwright.model.schema import file_schema  # builds every section: only for those who ask

    return file_schema()
