"""What an output proves → an evidence record, named by the digest of its content."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Literal

from clusterwright.judging.deriving import Derivation
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence, Reading

_NO_NODE: Final = "scope unknown: the output does not say on which host this was; give it with --nodes"


def record(
    derivation: Derivation,
    *,
    raw_digest: str,
    started: datetime,
    ended: datetime,
    engine: str = "",
    devices: Literal["real", "virtual"] = "real",
    requirements: Sequence[str] = (),
) -> Evidence:
    """An evidence record of one output.

    Args:
        raw_digest: of its bytes, `sha256:...`.
        started, ended: aware times between which it was taken.
        engine: that ran it, "" when the caller does not say.
        requirements: ids of the claims that it was taken for.

    Returns:
        A record in which every value stands for hosts that are named, and whose id is the digest of the rest.
    """
    nodes = derivation.nodes
    bare = Evidence(
        id="",
        requirements=tuple(requirements),
        tool=derivation.tool or derivation.kind or "unknown output",
        readings=tuple(_with_scope(r, nodes) for r in derivation.readings),
        basis="measured" if devices == "real" else "rehearsed",
        engine=engine,
        devices=devices,
        nodes=nodes,
        started=started,
        ended=ended,
        raw_digest=raw_digest,
        environment=derivation.environment,
    )
    return replace(bare, id=evidence_id(bare))


def _with_scope(reading: Reading, nodes: Sequence[str]) -> Reading:
    """A value without host would stand for every host of its record."""
    if reading.nodes or not nodes or reading.value is None:
        return reading
    return replace(reading, value=None, unreadable=_NO_NODE)


def evidence_id(evidence: Evidence) -> str:
    """Digest of everything in the record but its id: `sha256:` and 64 hex digits.

    The form is canonical JSON: sorted keys, no spaces, quantities as magnitude in base units with their powers.
    """
    body = {
        "requirements": list(evidence.requirements),
        "tool": evidence.tool,
        "readings": [_plain_reading(r) for r in evidence.readings],
        "basis": evidence.basis,
        "engine": evidence.engine,
        "devices": evidence.devices,
        "nodes": list(evidence.nodes),
        "started": evidence.started.isoformat(),
        "ended": evidence.ended.isoformat(),
        "raw_digest": evidence.raw_digest,
        "environment": [list(pair) for pair in evidence.environment],
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _plain_reading(reading: Reading) -> dict[str, Any]:
    return {
        "metric": reading.metric,
        "value": _plain_value(reading.value),
        "conditions": [list(pair) for pair in reading.conditions],
        "nodes": list(reading.nodes),
        "unreadable": reading.unreadable,
    }


def _plain_value(value: Quantity | float | bool | str | None) -> Any:
    if isinstance(value, Quantity):
        return {"value": value.value, "powers": [list(power) for power in value.powers]}
    return value
