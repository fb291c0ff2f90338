"""AMD devices and what their values say together: names, faults, links between GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.model.observations import Labels, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import Duplicate
from clusterwright.readers.nvidia.cells import as_absent, as_text
from clusterwright.readers.nvidia.devices import labels

_NAMES = ("card series", "device name", "card model", "market_name", "gpu-name")


def product_of(known: dict[str, str]) -> Value:
    """Name of the product from the keys that may hold it, in lower case."""
    for key in _NAMES:
        value = as_text(known.get(key, ""))
        if isinstance(value, str):
            return value
    return as_absent("no product name in this output")


def say_duplicates(builder: RunBuilder, duplicates: Iterable[Duplicate]) -> None:
    """A key twice in one JSON object: the first value counts."""
    for duplicate in duplicates:
        builder.notice("key-twice", f"key {duplicate.key[:60]!r} stands twice; the first value counts", Weight.WARNING)


def observe_pair(builder: RunBuilder, name: str, a: str, b: str, value: Value, node: str = "", line: int = 0) -> None:
    """One link between two GPUs, each an index or a PCI address."""
    ends = {"from": a, "to": b}
    builder.observe(name, value, labels(node=node, **ends), line)


def say_faults(builder: RunBuilder) -> None:
    """Notices for links and errors of AMD GPUs; links between all pairs should be of one type."""
    kinds: dict[str, int] = {}
    for o in builder.observations:
        device = dict(o.subject)
        who = f"GPU {device.get('gpu') or device.get('pci', '')}"
        if o.name == "link" and isinstance(o.value, str):
            kinds[o.value] = kinds.get(o.value, 0) + 1
        elif o.name in ("ecc_uncorrected", "xgmi_errors") and isinstance(o.value, float) and o.value > 0:
            what = "uncorrectable errors" if o.name == "ecc_uncorrected" else "XGMI errors"
            where = f" in {device['location']}" if "location" in device else ""
            builder.notice(o.name.replace("_", "-"), f"{who}: {o.value:.0f} {what}{where}", Weight.ERROR, o.line)
    if "XGMI" in kinds and len(kinds) > 1:
        others = ", ".join(f"{kind} ({count})" for kind, count in kinds.items() if kind != "XGMI")
        builder.notice("xgmi-unequal", f"some pairs of GPUs are joined by XGMI and others by {others}", Weight.WARNING)


def subject_of(index: str, pci: str = "", uuid: str = "", node: str = "") -> Labels:
    """Labels of an AMD GPU; `N/A` names nothing."""
    known = as_text(uuid)
    return labels(gpu=index, uuid=known if isinstance(known, str) else "", pci=pci, node=node)
