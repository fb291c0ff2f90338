"""Configuration of NVIDIA's device plugin and MIG manager: how often each GPU is advertised, or how it is cut.

Observed (subject config, resource, sharing): `replicas` (advertised per physical device), `renamed_to`; (subject
config): `mig_strategy`, `resource_pattern`; for MIG manager (subject config, devices, profile): `mig_devices_per_gpu`.

Source: NVIDIA/k8s-device-plugin api/config/v1 (config.go, replicas.go), NVIDIA/mig-parted api/spec/v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.observations import Labels, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import load_yaml
from clusterwright.readers.kubernetes.amounts import read_resource
from clusterwright.readers.kubernetes.shapes import Fields, dig, rows, table, word, words
from clusterwright.readers.refusing import Refused

_KINDS: Final = {"timeSlicing": "time-slicing", "mps": "mps"}
_NOT_ISOLATED: Final = {
    "time-slicing": "neither memory nor faults are isolated",
    "mps": "memory is split evenly, faults are not isolated",
}


def is_sharing(value: object) -> bool:
    """Whether a document is a configuration of the device plugin."""
    fields = table(value)
    return bool(fields.get("sharing")) or ("version" in fields and ("flags" in fields or "resources" in fields))


def is_mig_parted(value: object) -> bool:
    """Whether a document is a configuration of MIG manager."""
    return "mig-configs" in table(value)


def read_data(data: Fields, line: int, builder: RunBuilder) -> bool:
    """Read every configuration in the data of a ConfigMap or of chart values; whether there was one.

    Args:
        data: name of the configuration → its text.
    """
    found = False
    for name, text in data.items():
        if not isinstance(text, str) or ("sharing" not in text and "flags" not in text and "mig-configs" not in text):
            continue
        try:
            documents = load_yaml(text)
        except Refused as refused:
            builder.reject(line, f"{name}: {text[:80]}", refused.refusal.reason)
            continue
        for document in documents:
            found = tell_config(name, document, line, builder, one_of=len(data)) or found
    return found


def tell_config(name: str, value: object, line: int, builder: RunBuilder, *, one_of: int = 1) -> bool:
    """Observe one configuration; whether it was one.

    Args:
        name: key under which nodes select it, "" for a file of its own.
        one_of: how many configurations stand side by side.
    """
    if is_mig_parted(value):
        _tell_mig(table(value), line, builder)
        return True
    if not is_sharing(value):
        return False
    config = table(value)
    subject: Labels = (("config", name),) if name else ()
    version = word(config.get("version"))
    if version not in ("v1", ""):
        builder.reject(line, f"version: {version}", "an unknown version of the device plugin's configuration")
        return True
    if not version:
        builder.missing("version of the device plugin's configuration")
    strategy = word(dig(config, "flags", "migStrategy"))
    if strategy:
        builder.observe("mig_strategy", strategy, subject, line)
    for part in ("gpus", "mig"):
        for row in rows(dig(config, "resources", part)):
            renamed = f"{word(row.get('pattern'))} -> {word(row.get('name'))}"
            builder.observe("resource_pattern", renamed, (*subject, ("part", part)), line)
    shared = list(_shared(config))
    for kind, row, options in shared:
        _tell_replicas(name, kind, row, options, subject, line, builder, one_of=one_of)
    if len({kind for kind, _, _ in shared}) > 1:
        builder.notice(
            "two-kinds-of-sharing", "time-slicing and MPS are both set; the device plugin takes one", Weight.ERROR
        )
    if any(kind == "mps" for kind, _, _ in shared) and strategy not in ("", "none"):
        builder.notice("mps-with-mig", f"MPS sharing does not work with migStrategy {strategy}", Weight.ERROR, line)
    return True


def _shared(config: Fields) -> Iterator[tuple[str, Fields, Fields]]:
    """(kind of sharing, resource row, options of the kind)."""
    for key, kind in _KINDS.items():
        options = table(dig(config, "sharing", key))
        for row in rows(options.get("resources")):
            yield kind, row, options


def _tell_replicas(
    name: str,
    kind: str,
    row: Fields,
    options: Fields,
    subject: Labels,
    line: int,
    builder: RunBuilder,
    *,
    one_of: int,
) -> None:
    resource = word(row.get("name")) or "(unnamed)"
    replicas = read_resource("replicas", row.get("replicas"))
    at = (*subject, ("resource", resource), ("sharing", kind))
    builder.observe("replicas", replicas, at, line)
    renamed = word(row.get("rename")) or (f"{resource}.shared" if options.get("renameByDefault") is True else "")
    if renamed:
        builder.observe("renamed_to", renamed, at, line)
    if isinstance(replicas, NoValue) or not isinstance(replicas, float):
        builder.notice("replicas-unreadable", f"{resource}: replicas are {replicas}", Weight.ERROR, line)
        return
    if replicas < 2:
        builder.notice("not-multiplied", f"{resource}: {replicas:g} replica: nothing is shared", Weight.INFO, line)
        return
    devices = row.get("devices")
    only = "" if devices in (None, "all") else f" (only devices {devices})"
    notes = _NOT_ISOLATED[kind] + ("" if renamed else f"; shares keep the name {resource}")
    builder.notice(
        "advertised-multiplied",
        f"{kind}: advertised {renamed or resource} = {replicas:g} x physical{only}, {_where(name, one_of)}; {notes}",
        line=line,
    )


def _where(name: str, one_of: int) -> str:
    if not name:
        return "on every node that uses this configuration"
    if name in ("any", "default") and one_of == 1:
        return f"on every node where {name!r} is the default configuration"
    return f"only on nodes with the label nvidia.com/device-plugin.config={name} (or where it is the default)"


def _tell_mig(config: Fields, line: int, builder: RunBuilder) -> None:
    for name, parts in table(config.get("mig-configs")).items():
        for part in rows(parts):
            devices = part.get("devices")
            where = devices if isinstance(devices, str) else ",".join(words(devices))
            for profile, count in table(part.get("mig-devices")).items():
                at = (("config", name), ("devices", where), ("profile", profile))
                builder.observe("mig_devices_per_gpu", read_resource("devices", count), at, line)
            if part.get("mig-enabled") is False:
                builder.observe("mig_enabled", False, (("config", name), ("devices", where)), line)
