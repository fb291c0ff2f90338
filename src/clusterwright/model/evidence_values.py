"""Evidence ↔ plain values, as they are kept in records and files."""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from clusterwright.model.evidence import Evidence

_ADAPTER: Final[TypeAdapter[Evidence]] = TypeAdapter(Evidence)


def evidence_values(evidence: Evidence) -> dict[str, Any]:
    """Everything in it but its id, which names the place where it is kept."""
    values: dict[str, Any] = _ADAPTER.dump_python(evidence, mode="json")
    del values["id"]
    return values


def parse_evidence(values: Any, id_: str) -> Evidence:
    """Evidence from its plain values.

    Args:
        id_: under which it is kept.

    Raises:
        ValueError: when the values are not those of evidence.
    """
    if not isinstance(values, dict):
        raise ValueError("not evidence: no object")
    try:
        return _ADAPTER.validate_python({**values, "id": id_})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"not evidence: {place}: {first['msg']}") from None
