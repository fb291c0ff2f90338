"""GPU Operator and network operator: their custom resources, and the values of their Helm charts.

Observed: `setting` (subject path; every scalar that is set), and by name (no subject): `mig_strategy`,
`driver_managed`, `driver_version`, `rdma`, `gds`, `gdrcopy`, `use_open_kernel_modules`, `device_plugin_config`,
`default_config`; for the network operator (subject resource): `rdma_pods_max` (rdmaHcaMax).

Source: NVIDIA/gpu-operator api/nvidia/v1 and deployments/gpu-operator/values.yaml; Mellanox/network-operator
api/v1alpha1 and deployment/network-operator/values.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from clusterwright.model.observations import Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import load_yaml
from clusterwright.readers.kubernetes.amounts import read_resource
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.shapes import Fields, dig, rows, table, word
from clusterwright.readers.kubernetes.sharing import read_data
from clusterwright.readers.refusing import Refused

GPU_KEYS: Final = frozenset(
    {
        "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd", "mig", "migManager", "validator",
        "operator", "sandboxWorkloads", "vgpuManager", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin",
        "kataManager",
        "ccManager", "gds", "gdrcopy", "cdi", "nodeStatusExporter", "daemonsets", "platform", "psp", "psa", "hostPaths",
        "kataSandboxDevicePlugin", "fabricManager",
    }
)  # fmt: skip
NETWORK_KEYS: Final = frozenset(
    {
        "sriovNetworkOperator", "ofedDriver", "nvPeerDriver", "rdmaSharedDevicePlugin", "sriovDevicePlugin",
        "ibKubernetes",         "secondaryNetwork", "nvIpam", "nicFeatureDiscovery", "docaTelemetryService",
        "maintenanceOperator", "deployCR",
        "nicConfigurationOperator", "spectrumXOperator", "maintenance-operator-chart", "sriov-network-operator",
    }
)  # fmt: skip
#: Keys by which no other chart is meant; the other keys above are words that many charts use.
TELLING: Final = frozenset(
    {
        "dcgmExporter", "migManager", "devicePlugin", "gfd", "vgpuManager", "sandboxWorkloads", "gdrcopy", "ccManager",
        "nodeStatusExporter", "toolkit", "dcgm", "vfioManager", "kataManager",
    }
)  # fmt: skip
_NAMED: Final = {
    "mig.strategy": "mig_strategy",
    "driver.enabled": "driver_managed",
    "driver.version": "driver_version",
    "driver.rdma.enabled": "rdma",
    "driver.rdma.useHostMofed": "rdma_uses_host_mofed",
    "driver.useOpenKernelModules": "use_open_kernel_modules",
    "driver.kernelModuleType": "kernel_module_type",
    "driver.upgradePolicy.autoUpgrade": "driver_auto_upgrade",
    "gds.enabled": "gds",
    "gdrcopy.enabled": "gdrcopy",
    "cdi.enabled": "cdi",
    "toolkit.version": "toolkit_version",
    "devicePlugin.config.name": "device_plugin_config",
    "devicePlugin.config.default": "default_config",
    "migManager.config.name": "mig_manager_config",
}
_COMPONENTS: Final = ("driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd", "migManager", "gds")
_MOST_SETTINGS: Final = 3000


def chart_of(value: object) -> str:
    """`gpu`, `network` or "" for the chart whose values a document holds."""
    keys = set(table(value))
    if len(keys & NETWORK_KEYS) > len(keys & GPU_KEYS):
        return "network"
    return "gpu" if keys & TELLING else ""


def unwrap(thing: Thing) -> list[Fields]:
    """Values inside a release (HelmRelease, HelmChart, Argo CD Application) or below the name of the chart."""
    found: list[object] = [thing.body, thing.spec.get("values")]
    found += [table(thing.body).get(key) for key in ("gpu-operator", "network-operator", "gpuOperator")]
    sources = [table(thing.spec.get("source")), *rows(thing.spec.get("sources"))]
    for text in (thing.spec.get("valuesContent"), *(dig(source, "helm", "values") for source in sources)):
        if isinstance(text, str):
            found += _load(text)
    found += [dig(source, "helm", "valuesObject") for source in sources]
    found += [table(item).get("gpu-operator") for item in found if item is not thing.body]
    return [table(item) for item in found if chart_of(item)]


def _load(text: str) -> list[object]:
    try:
        return list(load_yaml(text))
    except Refused:
        return []


def tell_policy(thing: Thing, builder: RunBuilder) -> None:
    """A ClusterPolicy, NVIDIADriver or NicClusterPolicy."""
    if thing.kind == "ClusterPolicy":
        builder.condition("form", "ClusterPolicy")
        if not thing.spec:
            builder.missing("the spec of the ClusterPolicy")
        _tell_gpu(thing.spec, thing.line, builder, pinned_by_chart=False)
        state = word(thing.status.get("state"))
        if state:
            builder.observe("policy_state", state, (("policy", thing.name),), thing.line)
        if state and state != "ready":
            builder.notice("policy-not-ready", f"ClusterPolicy {thing.name} is {state}", Weight.ERROR, thing.line)
    elif thing.kind == "NVIDIADriver":
        builder.condition("form", "NVIDIADriver")
        _tell_gpu({"driver": thing.spec}, thing.line, builder, pinned_by_chart=False)
    else:
        builder.condition("form", thing.kind)
        tell_network(thing.spec, thing.line, builder)


def tell_values(values: Fields, line: int, builder: RunBuilder) -> None:
    """Values of a chart."""
    if chart_of(values) == "network":
        builder.condition("form", "network operator values")
        tell_network(values, line, builder)
        builder.notice(
            "network-operator", "these are values of the network operator: nothing in them sets GPUs", Weight.INFO, line
        )
        return
    builder.condition("form", "GPU Operator values")
    _tell_gpu(values, line, builder, pinned_by_chart=True)


def _tell_gpu(spec: Fields, line: int, builder: RunBuilder, *, pinned_by_chart: bool) -> None:
    settings = dict(_settings(spec, builder))
    for path, value in settings.items():
        builder.observe("setting", value, (("path", path),), line)
        if path in _NAMED and value != "":
            builder.observe(_NAMED[path], value, (), line)
    _tell_pins(spec, line, builder, pinned_by_chart=pinned_by_chart)
    config = table(dig(spec, "devicePlugin", "config"))
    if read_data(table(config.get("data")), line, builder):
        default = word(config.get("default"))
        if default:
            builder.notice(
                "default-config",
                f"devicePlugin.config.default is {default!r}: every node without a label of its own uses it",
                line=line,
            )
    elif word(config.get("name")):
        builder.notice(
            "config-elsewhere",
            f"the device plugin is configured by ConfigMap {word(config.get('name'))}, which is not here: whether "
            "GPUs are "
            "multiplied by sharing is not known",
            line=line,
        )
    if settings.get("driver.enabled") is False:
        builder.notice(
            "driver-not-managed", "driver.enabled is false: the driver is that of the host", Weight.INFO, line
        )


def _tell_pins(spec: Fields, line: int, builder: RunBuilder, *, pinned_by_chart: bool) -> None:
    shown = [name for name in _COMPONENTS if name in spec and dig(spec, name, "enabled") is not False]
    loose = [name for name in shown if not word(dig(spec, name, "version"))]
    if loose:
        by = "the version of the chart decides" if pinned_by_chart else "the operator's own default decides"
        builder.notice(
            "version-not-pinned",
            f"no version is set for {', '.join(loose)}: {by}, so an upgrade changes them",
            Weight.INFO if pinned_by_chart else Weight.WARNING,
            line,
        )


def _settings(spec: Fields, builder: RunBuilder) -> Iterator[tuple[str, Value]]:
    """(path, value) of every scalar, in order."""
    waiting: list[tuple[str, object]] = [(key, item) for key, item in reversed(spec.items())]
    given = 0
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend((f"{path}.{key}", inner) for key, inner in reversed(item.items()))
        elif isinstance(item, list):
            waiting.extend((f"{path}[{n}]", inner) for n, inner in reversed([*enumerate(item)]))
        elif item is not None and "\n" not in str(item):
            if (given := given + 1) > _MOST_SETTINGS:
                builder.missing(f"settings beyond the first {_MOST_SETTINGS}")
                return
            yield path, item if isinstance(item, bool) else word(item)[:300]


def tell_network(spec: Fields, line: int, builder: RunBuilder) -> None:
    """What the network operator deploys, and how many pods may share an RDMA device."""
    for path, value in _settings(spec, builder):
        builder.observe("setting", value, (("path", path),), line)
    shared = table(spec.get("rdmaSharedDevicePlugin"))
    resources = rows(shared.get("resources"))
    config = shared.get("config")
    if isinstance(config, str):
        resources += _decode_list(config, line, builder)
    for row in resources:
        name = word(row.get("name")) or word(row.get("resourceName")) or "(unnamed)"
        most = read_resource("pods", row.get("rdmaHcaMax"))
        builder.observe("rdma_pods_max", most, (("resource", name),), line)
        if isinstance(most, float):
            builder.notice(
                "rdma-shared",
                f"{name}: at most {most:g} pods share each RDMA device (rdmaHcaMax); rdma/{name} counts shares, not "
                "NICs",
                line=line,
            )
    if resources and shared.get("deploy") is False:
        builder.notice(
            "not-deployed",
            "rdmaSharedDevicePlugin.deploy is false: its resources are configured and not deployed",
            line=line,
        )


def _decode_list(config: str, line: int, builder: RunBuilder) -> list[Fields]:
    try:
        return rows(table(json.loads(config)).get("configList"))
    except (ValueError, RecursionError):
        builder.reject(line, config[:120], "rdmaSharedDevicePlugin.config is not JSON")
        return []
