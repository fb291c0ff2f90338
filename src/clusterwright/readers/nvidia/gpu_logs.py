"""One GPU of `nvidia-smi -q` → observations: its fields, ECC counters, clock reasons, MIG devices and processes."""

from __future__ import annotations

from typing import Final

from clusterwright.model.observations import Labels, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.nvidia.cells import as_absent, as_amount, as_count, as_flag, as_text
from clusterwright.readers.nvidia.fields import FIELDS, SECTIONS
from clusterwright.readers.nvidia.trees import Node

_REASONS: Final = ("clocks_event_reasons", "clocks_throttle_reasons")
_APART: Final = ("mig_device", "mig_devices", "processes", "accounted_processes", "supported_clocks")


def observe_gpu(builder: RunBuilder, gpu: Node, subject: Labels) -> None:
    """Observe everything that the section says of a GPU."""
    product = gpu.child("product_name")
    name = as_text(product.value or "") if product else as_absent("the product name is not among these sections")
    builder.observe("gpu", name, subject, product.line if product else gpu.line)
    plain = Node("gpu", None, gpu.line, [child for child in gpu.children if child.label not in _APART])
    for path, node in plain.leaves():
        _observe_leaf(builder, path, node, subject)
    for child in gpu.children:
        if child.label in _REASONS:
            _observe_reasons(builder, child, subject)
    _observe_mig(builder, gpu, subject)
    processes = gpu.child("processes")
    if processes is not None:
        _observe_processes(builder, processes, subject)


def _observe_leaf(builder: RunBuilder, path: str, node: Node, subject: Labels) -> None:
    text = node.value or ""
    if path.startswith("ecc_errors/") and path not in FIELDS:
        _observe_ecc(builder, path.split("/"), node, subject)
        return
    fields = (FIELDS[path],) if path in FIELDS else SECTIONS.get(path, ())
    for field in fields:
        builder.observe(field.name, field.read(text), (*subject, *field.labels), node.line)


def _observe_ecc(builder: RunBuilder, path: list[str], node: Node, subject: Labels) -> None:
    """One counter: scope, kind and memory come from the labels above it, in their old or their new form."""
    scope = path[1].removesuffix("_count")
    if scope not in ("volatile", "aggregate") or len(path) < 3:
        return
    kind, location = _ecc_kind(path[2:])
    if not kind:
        return
    where = (("location", location),) if location else ()
    builder.observe(kind, as_count(node.value or ""), (*subject, ("scope", scope), *where), node.line)


def _ecc_kind(labels: list[str]) -> tuple[str, str]:
    first, last = labels[0], labels[-1]
    if first in ("single_bit", "double_bit"):
        location = "" if last == "total" else last.replace("_", " ")
        return ("ecc_corrected" if first == "single_bit" else "ecc_uncorrected"), location
    for mark, kind in (("_uncorrectable", "ecc_uncorrected"), ("_correctable", "ecc_corrected")):
        if mark in last:
            before, _, after = last.partition(mark)
            return kind, f"{before} {after.strip('_').replace('sec_ded', 'secded')}".replace("_", " ").strip()
    return "", ""


def _observe_reasons(builder: RunBuilder, section: Node, subject: Labels) -> None:
    """The reasons that hold the clocks down now; `none` when the tool says of each that it is not active."""
    if section.value is not None and not section.children:
        builder.observe("throttle", as_text(section.value), subject, section.line)
        return
    flags = [(path.rsplit("/", 1)[-1], node, as_flag(node.value or "")) for path, node in section.leaves()]
    active = [(label, node) for label, node, flag in flags if flag is True]
    for label, node in active:
        builder.observe("throttle", reason_of(label), subject, node.line)
    unclear: list[Value] = [flag for _, _, flag in flags if not isinstance(flag, bool)]
    if not active and flags:
        builder.observe("throttle", unclear[0] if unclear else "none", subject, section.line)


def reason_of(label: str) -> str:
    """`hw thermal slowdown` of any spelling of that clock event reason."""
    for prefix in (
        "clocks_event_reason_",
        "clocks_event_reasons_",
        "clocks_throttle_reason_",
        "clocks_throttle_reasons_",
    ):
        label = label.removeprefix(prefix)
    return {"gpu_idle": "idle"}.get(label, label.replace("_", " "))


def _observe_mig(builder: RunBuilder, gpu: Node, subject: Labels) -> None:
    holder = gpu.child("mig_devices")
    devices = [node for parent in (gpu, holder) if parent for node in parent.children if node.label == "mig_device"]
    if not devices:
        return
    builder.observe("mig_devices", float(len(devices)), subject, devices[0].line)
    instances: dict[str, str] = {}
    for device in devices:
        index, instance = device.said("index"), device.said("gpu_instance_id")
        part = (
            *subject,
            ("mig", index),
            ("gpu_instance", instance),
            ("compute_instance", device.said("compute_instance_id")),
        )
        builder.observe("mig_device", _shape(device), part, device.line)
        for path, node in device.leaves():
            if "uncorrectable" in path and path.startswith("ecc_error"):
                location = path.rsplit("/", 1)[-1].partition("_uncorrectable")[0]
                builder.observe("ecc_uncorrected", as_count(node.value or ""),
                                (*part, ("scope", "volatile"), ("location", location)), node.line)  # fmt: skip
        memory = device.child("shared_fb_memory_usage", "fb_memory_usage")
        if memory is None or (instance and instance in instances):
            continue
        instances[instance] = index
        holder_of = (*subject, ("gpu_instance", instance))
        for kind in ("total", "used"):
            size = memory.child(kind)
            if size is not None:
                builder.observe(f"mig_memory_{kind}", as_amount(size.value or ""), holder_of, size.line)
    builder.observe("gpu_instances", float(len(instances)), subject, devices[0].line)
    if len(instances) < len(devices):
        said = f"{len(devices)} MIG devices in {len(instances)} GPU instances; shared memory is counted once"
        builder.notice("mig-memory-shared", said, Weight.INFO, devices[0].line)


def _shape(device: Node) -> Value:
    """Multiprocessors of a MIG device, which the tool prints in place of its profile."""
    for path, node in device.leaves():
        if path.endswith("multiprocessor_count"):
            count = as_count(node.value or "")
            return f"{count:.0f} SM" if isinstance(count, float) else count
    return as_absent("no device attributes printed")


def _observe_processes(builder: RunBuilder, section: Node, subject: Labels) -> None:
    if section.value is not None and not section.children:
        if section.value.lower() in ("none", ""):
            builder.observe("processes", 0.0 if section.value else as_absent("nothing printed"), subject, section.line)
        else:
            builder.observe("processes", as_text(section.value), subject, section.line)
        return
    count = 0
    instance: list[tuple[str, str]] = []
    for node in section.children:
        if node.label in ("gpu_instance_id", "compute_instance_id"):
            key = node.label.removesuffix("_id")
            instance = [pair for pair in instance if pair[0] != key]
            if isinstance(word := as_text(node.value or ""), str):
                instance.append((key, word))
        elif node.label in ("process_id", "process_info"):
            count += 1
            _observe_process(builder, node, (*subject, *instance))
            instance = []
    builder.observe("processes", float(count), subject, section.line)


def _observe_process(builder: RunBuilder, node: Node, subject: Labels) -> None:
    pid = node.said("pid") or (node.value or "")
    name, kind = node.said("name", "process_name"), node.said("type")
    memory = node.child("used_gpu_memory", "used_memory")
    value = as_amount(memory.value or "") if memory else as_absent("not printed")
    whom = (("pid", pid[:20]), ("process", name[:200]), ("type", kind[:8]))
    builder.observe("process_memory", value, (*subject, *(pair for pair in whom if pair[1])), node.line)
