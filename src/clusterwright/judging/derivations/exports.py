"""Metrics of the DCGM exporter: what its counters say of the GPUs of each host.

The Xid gauge holds the last code only: a code is an error, and none is no proof of none.

Source: DCGM field identifiers (dcgm_fields.h).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.model.evidence import Reading

METRICS_OF: Final = ("gpus_present",)
_COUNTERS: Final = {
    "ecc_uncorrected": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "ecc_uncorrected_lifetime": "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
    "remap_failures": "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "remaps_pending": "DCGM_FI_DEV_ROW_REMAP_PENDING",
}
_XID: Final = "DCGM_FI_DEV_XID_ERRORS"


def derive_exports(facts: Facts) -> Iterator[Reading]:
    """GPUs that the exporter sees, and their counters."""
    for node, observations in facts.per_node("gpu"):
        seen = {dict(o.subject).get("uuid") or dict(o.subject).get("gpu", "") for o in observations}
        yield facts.reading("gpus_present", float(len(seen)), nodes=(node,))
    for metric, name in _COUNTERS.items():
        if facts.has(name):
            yield from facts.count(metric, (name,))
    for node, observations in facts.per_node(_XID):
        codes = [text for o in observations if (text := plain(o.value)) not in ("", "0")]
        if codes:
            events = {"events": ", ".join(dict.fromkeys(codes))}
            yield facts.reading("xid_errors", float(len(codes)), events, nodes=(node,))
        else:
            why = "partial view: the exporter keeps the last Xid only; read the kernel log"
            yield facts.reading("xid_errors", None, nodes=(node,), why=why)
