"""Rules that ask whether something is said at all, written as data: which parts, which fields, in which words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from clusterwright.model.findings import Severity, Stage
from clusterwright.review.rules import ALWAYS, BUILD, Check, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, listed, value_at

#: (path, what it is called in messages, the declared value) of each part that a rule asks about.
Parts = Iterable[tuple[str, str, Any]]
Each = Callable[[Subject], Parts]

#: Source of the rules that no outside document states.
PRACTICE: Final = "Clusterwright's readiness areas: what a builder has to ask back for when it is missing"

#: Top-level section → stages at which a rule of its own asks for the whole of it. Where it is absent that rule speaks
#: alone: forty findings about the fields of a section that nobody has begun say less than one.
WHOLE: Final[Mapping[str, tuple[Stage, ...]]] = {
    "owners": ALWAYS,  # owner-missing
    "fabric": ALWAYS,  # network-missing
    "storage": ALWAYS,  # durable-store-missing
    "scheduling": ALWAYS,  # engine-missing
    "software": BUILD,  # software-missing
    "access": BUILD,  # access-missing
    "observability": BUILD,  # observability-missing
    "acceptance": BUILD,  # acceptance-missing
    "economics": BUILD,  # economics-missing
}


def asked_as_a_whole(subject: Subject, section: str) -> bool:
    """Whether a section is absent or empty, and a rule of its own says so at this stage."""
    value = getattr(subject.architecture, section)
    return subject.stage in WHOLE[section] and (value is None or not value.model_fields_set)


def the_file(subject: Subject) -> Parts:
    """The whole file."""
    yield "", "the file", subject.architecture


def each_workload(subject: Subject) -> Parts:
    """Every workload."""
    for name, workload in subject.workloads.items():
        yield f"workloads.{name}", f"workload {name}", workload


def each_inference(subject: Subject) -> Parts:
    """Every workload with `serve`."""
    return (part for part in each_workload(subject) if part[2].serve is not None)


def each_training(subject: Subject) -> Parts:
    """Every workload with `train`."""
    return (part for part in each_workload(subject) if part[2].train is not None)


def each_gpu_pool(subject: Subject) -> Parts:
    """Every worker pool that has, or may have, GPUs."""
    for name, pool in subject.gpu_pools.items():
        yield f"pools.{name}", f"pool {name}", pool


def each_pool(subject: Subject) -> Parts:
    """Every pool."""
    for name, pool in subject.pools.items():
        yield f"pools.{name}", f"pool {name}", pool


def each_network(subject: Subject) -> Parts:
    """Every network."""
    for name, network in subject.networks.items():
        yield f"fabric.networks.{name}", f"network {name}", network


def each_data_network(subject: Subject) -> Parts:
    """Every network that carries GPU or storage traffic."""
    for name, network in subject.networks_with("compute", "storage").items():
        yield f"fabric.networks.{name}", f"network {name}", network


def each_compute_network(subject: Subject) -> Parts:
    """Every network that carries GPU traffic."""
    for name, network in subject.networks_with("compute").items():
        yield f"fabric.networks.{name}", f"network {name}", network


def each_store(subject: Subject) -> Parts:
    """Every store."""
    for name, store in subject.stores.items():
        yield f"storage.stores.{name}", f"store {name}", store


def each_durable_store(subject: Subject) -> Parts:
    """Every store that keeps what it was given."""
    return (part for part in each_store(subject) if part[2].durable)


def each_remote_store(subject: Subject) -> Parts:
    """Every store that is reached over a network."""
    return (part for part in each_store(subject) if part[2].kind in ("object", "file", "block"))


def each_queue(subject: Subject) -> Parts:
    """Every queue that has users."""
    for name, queue in subject.queues.items():
        if not queue.slack:
            yield f"scheduling.queues.{name}", f"queue {name}", queue


def missing(parts: Parts, fields: Mapping[str, str]) -> Iterator[Hit]:
    """A hit for every field of a part that is absent or empty; one for all fields of a section that is absent."""
    for path, label, value in parts:
        together: dict[str, dict[str, str]] = {}
        for field, words in fields.items():
            if value_at(value, field) in (None, "", (), {}):
                together.setdefault(_absent_section(value, field), {})[field] = words
        for section, open_points in together.items():
            if section in fields:
                continue  # asked for itself
            if section and len(open_points) > 1:
                said = listed(open_points.values(), "or")
                yield Hit(f"{path}.{section}".lstrip("."), f"{label} does not say {said}")
            else:
                for field, words in open_points.items():
                    yield Hit(f"{path}.{field}".lstrip("."), f"{label} does not say {words}")


def _absent_section(value: Any, field: str) -> str:
    """The outermost section on the way to a field that is absent, "" where only the field is."""
    parts = field.split(".")
    ways = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    return next((way for way in ways if value_at(value, way) is None), "")


def asks(each: Each, fields: Mapping[str, str]) -> Check:
    """A rule function that asks each part for its fields; of an absent section its own rule speaks (WHOLE)."""

    def check(subject: Subject) -> Iterator[Hit]:
        for part in each(subject):
            open_points = fields
            if not part[0]:
                silent = {s for s in WHOLE if asked_as_a_whole(subject, s)}
                open_points = {f: w for f, w in fields.items() if "." not in f or f.partition(".")[0] not in silent}
            yield from missing([part], open_points)

    return check


def require(
    table: RuleTable,
    id: str,
    each: Each,
    fields: Mapping[str, str],
    *,
    catches: str,
    why: str,
    satisfy: str,
    example: str,
    severity: Severity = Severity.ERROR,
    weight: int = 50,
    stages: tuple[Stage, ...] = BUILD,
    source: str = PRACTICE,
) -> None:
    """Enter a rule that asks `each` part for `fields` (name → words for what is missing)."""
    table.rules.append(
        Rule(
            id, severity, table.area, weight, catches, stages, why, satisfy, example.strip("\n"), source,
            asks(each, fields),
        )
    )  # fmt: skip
