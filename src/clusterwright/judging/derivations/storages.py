"""fio, ior, mdtest, elbencho and gdsio: rates with the load that made them.

A result that came out of a page cache, or of a phase that did not run, is no rate of the storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

#: How the reason begins where data may take another way than the direct one.
COPIED: Final = "not comparable"
SUPPORT_METRICS: Final = ("gds_read", "gds_write")
METRICS_OF: Final = ("storage_read", "storage_write")
_METRICS: Final = {
    "read_rate": "storage_read",
    "write_rate": "storage_write",
    "read_iops": "storage_read_ops",
    "write_iops": "storage_write_ops",
    "read_latency_p99": "storage_read_latency_p99",
    "write_latency_p99": "storage_write_latency_p99",
    "file_creation": "files_created",
    "metadata_rate": "files_created",
}
_DIRECT_PATH: Final = {"storage_read": "gds_read", "storage_write": "gds_write"}
_LOAD: Final = ("block_size", "file_size", "queue_depth", "direct")
#: Codes of notices by which readers say that something else than storage was measured, or too little of it.
_FAULTS: Final = {
    "page-cache": "not comparable", "read-back": "not comparable", "compat-mode-forced": "not comparable",
    "short-run": "partial view", "phase-too-short": "partial view", "small-files": "not comparable",
}  # fmt: skip


def derive_storages(facts: Facts) -> Iterator[Reading]:
    """Every rate and latency of the run: of a group of jobs together where the tool adds them up."""
    for name, metric in _METRICS.items():
        for o in _rows(facts, name):
            if name == "metadata_rate" and not dict(o.subject).get("phase", "").endswith("-write"):
                continue  # stat, delete and find create no files
            known = _DIRECT_PATH.get(metric, metric) if _is_direct(facts, dict(o.subject)) else metric
            lasted = _time_of(facts, o)
            conditions = _conditions(facts, o, lasted)
            yield facts.reading(known, o.value, conditions)
            if why := _fault(facts, known, lasted):
                yield facts.reading(known, None, conditions, why=why)


def derive_support(facts: Facts) -> Iterator[Reading]:
    """gdscheck: whether a rate of this host can be one of the direct path; no rate by itself."""
    forced = any(n.code == "compat-mode-forced" for n in facts.run.notices)
    allowed = any(o.value is True for o in facts.of("compat_mode"))
    lacking = [dict(o.subject).get("gpu", "") for o in facts.of("gds_supported") if o.value is False]
    why = "partial view: gdscheck shows which paths exist, not how fast they are"
    if forced or allowed:
        how = "forced" if forced else "allowed"
        why = f"{COPIED}: the compatibility mode is {how}, so that a copy through the host may stand in"
    elif lacking:
        why = f"{COPIED}: GPU {', '.join(lacking)} does not support GPUDirect Storage"
    for node in facts.given if len(facts.given) == 1 else facts.node_names():
        for metric in SUPPORT_METRICS:
            yield facts.reading(metric, None, {"checked": "gdscheck"}, nodes=(node,), why=why)


def _rows(facts: Facts, name: str) -> list[Observation]:
    """The rows of a name; of jobs that ran at once only their sum, where it is printed."""
    rows = facts.of(name)
    totals = {dict(o.subject).get("group"): o for o in facts.of(f"{name}_total")}
    members: dict[str | None, list[Observation]] = {}
    for o in rows:
        members.setdefault(dict(o.subject).get("group"), []).append(o)
    return [
        o
        for group, found in members.items()
        for o in ([_summed(totals[group], found)] if group in totals and len(found) > 1 else found)
    ]


def _summed(total: Observation, members: list[Observation]) -> Observation:
    """The sum of a group under what its members have in common."""
    shared = set(members[0].subject).intersection(*(set(m.subject) for m in members))
    subject = (*sorted(shared), ("jobs", str(len(members))))
    return Observation(total.name, total.value, subject, total.line)


def _fault(facts: Facts, metric: str, lasted: Quantity | None) -> str:
    """Why a value may not pass, or ""; a notice about the other direction, or another job's time, is not about it."""
    other = "writes" if "read" in metric else "reads"
    for notice in facts.run.notices:
        about = notice.code in _FAULTS or (notice.code == "no-gain" and metric.startswith("gds"))
        if not about or other in notice.message.split()[:5]:
            continue
        if notice.code == "short-run" and lasted is not None and str(lasted) not in notice.message:
            continue
        return f"{_FAULTS.get(notice.code, 'not comparable')}: {notice.message}"
    return ""


def _time_of(facts: Facts, row: Observation) -> Quantity | None:
    """How long the job of a row ran, where that is printed."""
    direction = next((d for d in ("read", "write") if row.name.startswith(d)), "")
    found = [
        o.value for o in facts.of(f"{direction}_time", f"{direction}_elapsed", "phase_time") if o.subject == row.subject
    ]
    value = found[0] if found else facts.run.condition("duration")
    return value if isinstance(value, Quantity) else None


def _is_direct(facts: Facts, subject: dict[str, str]) -> bool:
    """Whether storage and GPU moved the data without the host's memory (GPUDirect Storage)."""
    said = subject.get("transfer") or facts.text("transfer", "transfer_type")
    return said.upper() in ("GPUD", "GPU_DIRECT", "GPUDIRECT")


def _conditions(facts: Facts, row: Observation, lasted: Quantity | None) -> dict[str, str]:
    subject = dict(row.subject)
    found = {name: text for name in _LOAD if (text := subject.get(name) or facts.text(name))}
    for name in ("job", "test", "phase", "operation"):
        if name in subject:
            found.setdefault("test", subject[name])
    if lasted is not None:
        found["duration"] = f"{lasted.value:.9g} s"
    if concurrency := _concurrency(facts, subject):
        found["concurrency"] = concurrency
    return found


def _concurrency(facts: Facts, subject: dict[str, str]) -> str:
    """Readers or writers at once: clients times jobs of each, where both are printed as whole numbers."""
    if text := subject.get("concurrency") or facts.text("concurrency"):
        return text
    counts = [subject.get(name) or plain(facts.value(name)) for name in ("clients", "jobs", "threads")]
    if ranks := plain(facts.value("ranks")):
        counts = [ranks]
    known = [int(c) for c in counts if c.isascii() and c.isdecimal() and len(c) < 9]
    if not known:
        return ""
    if facts.kind == "elbencho" and not counts[0]:  # its threads are those of each host
        known.append(max(1, len(facts.node_names())))
    product = 1
    for count in known:
        product *= count
    return str(product)
