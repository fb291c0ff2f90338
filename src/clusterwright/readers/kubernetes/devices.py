"""DRA ResourceSlices: which devices a driver offers, of every API version that had them.

Observed: `gpu` (product; subject gpu, uuid, pci, node, driver, pool), `mig_device` (profile), `nic` (interface name),
`device` (its type, for everything else, such as a compute domain channel); `memory_total`, `driver`, `pcie_root`,
`nic_rdma`, `device_taint`; `pool_slices` and `pool_slices_expected` (subject driver, pool); `devices_total` (subject
driver, type).

Source: k8s.io/api/resource v1alpha2 (namedResources), v1alpha3 and v1beta1 (basic), v1beta2 and v1; attributes of
kubernetes-sigs/dra-driver-nvidia-gpu and google/dranet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.lib.pci import pci_address
from clusterwright.model.observations import Labels, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import read_exact, read_resource
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.shapes import Fields, dig, rows, table, word

VERSIONS: Final = frozenset({"v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1", ""})


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a slice, with its attributes as texts by their name without the driver's domain."""

    name: str
    driver: str
    pool: str
    node: str
    attributes: dict[str, str]
    capacity: Fields
    taints: tuple[str, ...]
    shares: bool
    line: int

    @property
    def kind(self) -> str:
        """gpu, mig, vfio, nic, or the type that the driver gives; never guessed from the device's name."""
        kind = self.attributes.get("type", "").lower()
        if "gpu" in self.driver and kind in ("gpu", "mig", "vfio"):
            return kind
        if (
            "ifName" in self.attributes
            or "rdmaDevice" in self.attributes
            or self.driver.endswith(("dra.net", "dranet"))
        ):
            return "nic"
        if "productName" in self.attributes and "gpu" in self.driver:
            return "gpu"
        return kind or "device"

    def subject(self) -> Labels:
        """Labels of an observation about it."""
        key = "gpu" if self.kind in ("gpu", "mig", "vfio") else "device"
        labels = [(key, self.name), ("uuid", self.attributes.get("uuid", "")), ("pci", self.pci), ("node", self.node)]
        labels += [("driver", self.driver), ("pool", self.pool)]
        return tuple((name, text) for name, text in labels if text)

    @property
    def pci(self) -> str:
        """Its PCI address in one form, "" when it has none."""
        a = self.attributes
        text = a.get("pciBusID") or a.get("pciBusId") or a.get("pciAddress") or ""
        if not text and "pciAddressBus" in a:
            domain, bus = a.get("pciAddressDomain") or "0000", a["pciAddressBus"]
            text = f"{domain}:{bus}:{a.get('pciAddressDevice', '')}.{a.get('pciAddressFunction') or '0'}"
        try:
            return pci_address(text)
        except ValueError:
            return ""


def report_slices(things: Sequence[Thing], builder: RunBuilder) -> None:
    """Observe the devices of every current slice, once each, and say whether the pools are whole."""
    current = _current(things, builder)
    devices: dict[tuple[str, str, str], Device] = {}
    for thing in current:
        if thing.excerpt:
            builder.missing("apiVersion and kind of a ResourceSlice: this is an excerpt")
        for device in _devices(thing, builder):
            key = device.driver, device.pool, device.name
            if device.pool and key in devices:
                builder.notice(
                    "device-twice", f"device {device.name} of pool {device.pool} stands in two slices; counted once"
                )
                continue
            devices[key if device.pool else (device.driver, f"{thing.name}#{thing.line}", device.name)] = device
    for device in devices.values():
        _observe(device, builder)
    _tell_pools(current, builder)
    _tell_totals(list(devices.values()), builder)


def _current(things: Sequence[Thing], builder: RunBuilder) -> list[Thing]:
    """Slices of known versions and of the newest generation of their pool."""
    known, newest = [], dict[tuple[str, str], int]()
    for thing in things:
        if thing.version not in VERSIONS:
            builder.reject(
                thing.line, f"{thing.group}/{thing.version} ResourceSlice {thing.name}", "an unknown API version"
            )
            continue
        known.append(thing)
        newest[_pool(thing)] = max(newest.get(_pool(thing), 0), _generation(thing))
    current = []
    for thing in known:
        if _generation(thing) < newest[_pool(thing)]:
            driver, pool = _pool(thing)
            builder.notice(
                "old-generation",
                f"slice {thing.name} is generation {_generation(thing)} of pool {pool} ({driver}), the newest is "
                f"{newest[driver, pool]}: its devices are gone and not counted",
                Weight.INFO,
                thing.line,
            )
        else:
            current.append(thing)
    return current


def _pool(thing: Thing) -> tuple[str, str]:
    driver = word(thing.spec.get("driver")) or word(thing.body.get("driverName"))
    return driver, word(dig(thing.spec, "pool", "name"))


def _generation(thing: Thing) -> int:
    number = read_exact(dig(thing.spec, "pool", "generation"))
    return int(number) if number is not None else 0


def _devices(thing: Thing, builder: RunBuilder) -> Iterator[Device]:
    driver, pool = _pool(thing)
    node = word(thing.spec.get("nodeName")) or word(thing.body.get("nodeName"))
    if not node:
        owners = [word(o.get("name")) for o in rows(thing.metadata.get("ownerReferences")) if o.get("kind") == "Node"]
        node = owners[0] if owners else ""
    listed = thing.spec.get("devices")
    if listed is None:
        listed = dig(thing.body, "namedResources", "instances")
    if listed is None and "sharedCounters" not in thing.spec:
        builder.missing(f"the devices of slice {thing.name}")
    if listed is not None and not driver:
        builder.missing(f"the driver and pool of slice {thing.name}")
    for row in rows(listed):
        name = word(row.get("name"))
        if not name:
            builder.reject(thing.line, str(row)[:200], "a device without a name")
            continue
        inner = table(row.get("basic")) or row
        attributes, foreign = _attributes(inner.get("attributes"))
        yield Device(
            name,
            driver or foreign,
            pool,
            word(inner.get("nodeName")) or node,
            attributes,
            {key.rpartition("/")[2]: item for key, item in table(inner.get("capacity")).items()},
            tuple(
                f"{word(t.get('key'))}={word(t.get('value'))}:{word(t.get('effect'))}"
                for t in rows(inner.get("taints"))
            ),
            bool(inner.get("consumesCounters") or inner.get("consumesCounter")),
            thing.line,
        )


def _attributes(value: object) -> tuple[dict[str, str], str]:
    """(attributes by name without their domain, a domain other than Kubernetes' own)."""
    pairs: list[tuple[str, Any]] = [*table(value).items()]
    pairs += [(word(row.get("name")), row) for row in rows(value)]  # v1alpha2 lists them
    found, domain = {}, ""
    for key, item in pairs:
        space, _, name = key.rpartition("/")
        typed = table(item)
        held = next((typed[kind] for kind in ("string", "version", "int", "bool") if kind in typed), None)
        found[name] = word(held)
        if space and "kubernetes.io" not in space:
            domain = space
    return found, domain


def _observe(device: Device, builder: RunBuilder) -> None:
    subject, attributes = device.subject(), device.attributes
    if device.kind == "gpu":
        builder.observe("gpu", attributes.get("productName") or "(no product name)", subject, device.line)
    elif device.kind == "mig":
        parent = attributes.get("parentUUID", "")
        at = (*subject, ("parent", parent)) if parent else subject
        builder.observe("mig_device", attributes.get("profile") or "(no profile)", at, device.line)
    elif device.kind == "nic":
        builder.observe("nic", attributes.get("ifName") or device.name, subject, device.line)
        if "rdma" in attributes:
            builder.observe("nic_rdma", attributes["rdma"] == "true", subject, device.line)
        for key in ("state", "mtu", "numaNode", "pciVendor", "cloudNetwork"):
            if attributes.get(key):
                builder.observe(f"nic_{key.lower()}", attributes[key], subject, device.line)
    else:
        builder.observe("device", device.kind, subject, device.line)
    if "memory" in device.capacity:
        raw = device.capacity["memory"]
        amount = table(raw).get("value") if isinstance(raw, dict) else raw
        builder.observe("memory_total", read_resource("memory", amount), subject, device.line)
    for key, name in (("driverVersion", "driver"), ("pcieRoot", "pcie_root"), ("cudaDriverVersion", "cuda")):
        if attributes.get(key):
            builder.observe(name, attributes[key], subject, device.line)
    for taint in device.taints:
        builder.observe("device_taint", taint, subject, device.line)
        builder.notice("device-tainted", f"device {device.name} on {device.node} is tainted {taint}", line=device.line)


def _tell_pools(slices: Sequence[Thing], builder: RunBuilder) -> None:
    seen = Counter(_pool(thing) for thing in slices)
    for (driver, pool), count in seen.items():
        if not pool:
            continue
        counts = [
            read_resource("slices", dig(t.spec, "pool", "resourceSliceCount"))
            for t in slices
            if _pool(t) == (driver, pool)
        ]
        at = (("driver", driver), ("pool", pool))
        builder.observe("pool_slices", float(count), at)
        expected = next((number for number in counts if not isinstance(number, NoValue)), None)
        if isinstance(expected, float):
            builder.observe("pool_slices_expected", expected, at)
            if count < expected:
                builder.missing(f"{expected - count:g} of {expected:g} slices of pool {pool} ({driver})")


def _tell_totals(devices: Sequence[Device], builder: RunBuilder) -> None:
    totals = Counter((device.driver, device.kind) for device in devices)
    for (driver, kind), count in totals.items():
        builder.observe("devices_total", float(count), (("driver", driver), ("type", kind)))
    gpus = [device for device in devices if device.kind == "gpu"]
    if gpus:
        nodes = Counter(device.node for device in gpus)
        builder.condition("gpus_offered", float(len(gpus)))
        builder.condition("node_count", float(len(nodes)))
    for device in devices:
        if device.kind not in ("gpu", "mig", "vfio") and device.name.lower().startswith(("gpu", "nvidia")):
            builder.notice(
                "not-a-gpu",
                f"device {device.name} of driver {device.driver or '(unknown)'} is a {device.kind}, not a GPU: its "
                "name "
                "says nothing about its type",
                Weight.INFO,
                device.line,
            )
    others = sum(count for (_, kind), count in totals.items() if kind in ("daemon", "channel"))
    if others:
        builder.notice(
            "devices-without-hardware",
            f"{others} daemons and channels of compute domains are offered as devices; they add no GPU",
            Weight.INFO,
        )
    if any(device.shares for device in devices):
        builder.notice(
            "devices-overlap",
            "devices consume counters that they share (partitions of one GPU): they exclude each other and do not "
            "add up",
        )
    if any(re.fullmatch(r"\d+\.\d+\.\d", device.attributes.get("driverVersion", "")) for device in gpus):
        builder.notice(
            "driver-version-normalised",
            "driver versions are attributes of type version, which lose leading zeros: 580.105.8 may be the driver "
            "580.105.08",
            Weight.INFO,
        )
