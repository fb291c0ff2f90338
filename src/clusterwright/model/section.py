"""The base of every section of the file: frozen, unknown keys are errors, nothing is converted silently.

Strict: `"8"`, `8.0` and `true` are not the whole number 8, and `yes` is not `true`. Infinity and NaN are no values.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the architecture; immutable, every key known."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )
