"""The base of every section of the file: frozen, unknown keys are errors, nothing is converted silently.

Strict: `"8"`, `8.0` and `true` are not the whole number 8, and `yes` is not `true`. Infinity and NaN are no values.
"""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the architecture; immutable, every key known."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,  # built once as parts of Architecture, not also one by one
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )
