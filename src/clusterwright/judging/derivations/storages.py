"""fio, ior, mdtest, elbencho and gdsio: rates with the load that made them.

A result that came out of a page cache, or of a phase that did not run, is no rate of the storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

METRICS_OF: Final = ("storage_read", "storage_write")
_METRICS: Final = {
    "read_rate": "storage_read",
    "write_rate": "storage_write",
    "read_iops": "storage_read_ops",
    "write_iops": "storage_write_ops",
    "read_latency_p99": "storage_read_latency_p99",
    "write_latency_p99": "storage_write_latency_p99",
    "file_creation": "files_created",
    "file_create_rate": "files_created",
}
_DIRECT_PATH: Final = {"storage_read": "gds_read", "storage_write": "gds_write"}
_LOAD: Final = ("block_size", "file_size", "queue_depth", "jobs", "clients", "direct")
_CACHED: Final = ("page-cache", "cached", "cache-read", "served-from-cache")


def derive_storages(facts: Facts) -> Iterator[Reading]:
    """Every rate and latency of the run, each job or phase by itself."""
    fault = next((f"not comparable: {n.message}" for n in facts.run.notices if n.code in _CACHED), "")
    for name, metric in _METRICS.items():
        for o in facts.of(name):
            subject = dict(o.subject)
            known = _DIRECT_PATH.get(metric, metric) if _is_direct(facts, subject) else metric
            yield facts.reading(known, o.value, _conditions(facts, o), why=fault)


def _is_direct(facts: Facts, subject: dict[str, str]) -> bool:
    """Whether storage and GPU moved the data without the host's memory (GPUDirect Storage)."""
    said = subject.get("transfer") or facts.text("transfer", "transfer_type")
    return said.upper() in ("GPUD", "GPU_DIRECT", "GPUDIRECT")


def _conditions(facts: Facts, row: Observation) -> dict[str, str]:
    subject = dict(row.subject)
    found = {name: text for name in _LOAD if (text := subject.get(name) or facts.text(name))}
    for name in ("job", "test", "phase", "operation"):
        if name in subject:
            found.setdefault("test", subject[name])
    if concurrency := _concurrency(facts, subject):
        found["concurrency"] = concurrency
    return found


def _concurrency(facts: Facts, subject: dict[str, str]) -> str:
    """Readers or writers at once: clients times jobs of each, where both are printed as whole numbers."""
    if text := subject.get("concurrency") or facts.text("concurrency"):
        return text
    counts = [subject.get(name) or plain(facts.value(name)) for name in ("clients", "jobs")]
    known = [int(c) for c in counts if c.isascii() and c.isdecimal() and len(c) < 9]
    if not known:
        return ""
    product = 1
    for count in known:
        product *= count
    return str(product)
