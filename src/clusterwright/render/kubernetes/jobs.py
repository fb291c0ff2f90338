"""One test → its Jobs: an Indexed Job with one pod per node, pinned to the nodes of the test.

No operator is assumed. Pods of one run find each other through a headless Service (Job with completionMode Indexed and
spec.subdomain, Kubernetes 1.21 and later). Source: Kubernetes API reference, batch/v1 Job; "Job with Pod-to-Pod
Communication".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusterwright.judging.acceptance_plans import Group, PlannedTest
from clusterwright.render.exports import Options
from clusterwright.render.scripts import endpoint_variable, limit_s, store_variable

PREFIX: Final = "cw"
#: Label by which everything of an export is found again.
LABEL: Final = "clusterwright.dev/test"
UNIT: Final = "clusterwright.dev/unit"
SERVICE: Final = "clusterwright"
SCRIPTS: Final = "clusterwright-scripts"
SSH_SECRET: Final = "clusterwright-ssh"
HOME: Final = "/opt/clusterwright"
_PEERS: Final = frozenset({"mpi", "ranks"})


def jobs_of(test: PlannedTest, options: Options, declared: str) -> list[tuple[int, dict[str, Any]]]:
    """(round, Job) of every run of a test; Jobs of one round run at the same time."""
    kind = test.kind
    image = image_of(test, options, declared)
    if kind.runs in ("each-node", "together") or kind.launch == "ranks":
        nodes = test.nodes
        return [(0, _job(test, options, image, name=job_name(test.id), nodes=nodes, unit=None, group=nodes))]
    if kind.runs == "once":
        return [(0, _job(test, options, image, name=job_name(test.id), nodes=(), unit="client", group=()))]
    found = []
    number = 0
    for turn, groups in enumerate(test.rounds):
        for unit, group in [(u, g) for u, g in test.units if g in groups]:
            number += 1
            name = job_name(test.id, number if len(test.units) > 1 else 0)
            found.append((turn, _job(test, options, image, name=name, nodes=group, unit=unit, group=group)))
    return found


def job_name(id_: str, number: int = 0) -> str:
    """Name of a Job: with the index of a pod it stays within the 63 characters of a host name."""
    end = f"-{number}" if number else ""
    return f"{PREFIX}-{id_[: 50 - len(end)].rstrip('-')}{end}"


def _job(
    test: PlannedTest, options: Options, image: str, *, name: str, nodes: Group, unit: str | None, group: Group
) -> dict[str, Any]:
    count = max(1, len(nodes))
    labels = {LABEL: test.id, "app.kubernetes.io/part-of": "clusterwright-acceptance"}
    if options.queue:
        labels["kueue.x-k8s.io/queue-name"] = options.queue
    metadata: dict[str, Any] = {"name": name, "namespace": options.namespace, "labels": labels}
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "subdomain": SERVICE,
        "automountServiceAccountToken": False,
        **({"affinity": _affinity(name, nodes)} if nodes else {}),
        **({"tolerations": [{"key": options.gpu_resource, "operator": "Exists"}]} if nodes or _gpus(test) else {}),
        "containers": [_container(test, options, image, name=name, unit=unit, group=group)],
        "volumes": _volumes(test, options),
    }
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "backoffLimit": 0,
        "activeDeadlineSeconds": limit_s(test) + 1800,
        **({"suspend": True} if options.queue else {}),
        "template": {"metadata": {"labels": {**labels, "clusterwright.dev/job": name}}, "spec": pod},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _affinity(name: str, nodes: Group) -> dict[str, Any]:
    """On these nodes only, and no two pods of the Job on one of them."""
    pinned = [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": pinned}]}
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"clusterwright.dev/job": name}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        },
    }


def _container(
    test: PlannedTest, options: Options, image: str, *, name: str, unit: str | None, group: Group
) -> dict[str, Any]:
    script = f"{HOME}/tests/{test.id}.sh"
    resources = _resources(test, options)
    return {
        "name": "test",
        "image": image,
        "command": ["sh", "-c", _START.get(_shape(test), 'exec sh "$0"'), script],
        "env": _environment(test, options, name=name, image=image, unit=unit, group=group),
        "securityContext": _security(test),
        **({"resources": resources} if resources else {}),
        "volumeMounts": _mounts(test, options),
    }


#: What a pod must find out before the script: its role in a pair, its number among the nodes.
_START: Final = {
    "pair": (
        'if [ "$JOB_COMPLETION_INDEX" = 0 ]; then export CW_ROLE=server; else export CW_ROLE=client; fi; exec sh "$0"'
    ),
    "ranks": 'export CW_NODE_RANK="$JOB_COMPLETION_INDEX"; exec sh "$0"',
}


def _shape(test: PlannedTest) -> str:
    if test.kind.per_rail and len(test.rounds[0][0]) == 2:
        return "pair"
    return "ranks" if test.kind.launch == "ranks" else ""


def image_of(test: PlannedTest, options: Options, declared: str) -> str:
    """The image that the test runs in; "" when neither the file nor the options name one.

    Args:
        declared: production image of the plan, for tests that belong to no workload with an image of its own.
    """
    production = options.image or test.image or declared
    if test.kind.image == "production":
        return production
    return options.tools_image or production


def _environment(
    test: PlannedTest, options: Options, *, name: str, image: str, unit: str | None, group: Group
) -> list[dict[str, Any]]:
    fixed: dict[str, str] = {
        "CW_HOME": HOME, "CW_RESULTS": "/results", "CW_PRINT": "1", "CW_IMAGE": image, "CW_JOB": name,
    }  # fmt: skip
    if unit is not None:
        fixed["CW_UNIT"] = unit
        fixed["CW_GROUP"] = ",".join(group)
    hosts = [f"{name}-{i}.{SERVICE}" for i in range(len(group))]
    if test.kind.launch in _PEERS and len(group) > 1:
        fixed |= {"CW_HOSTS": ",".join(hosts), "CW_MASTER": hosts[0]}
    if test.kind.launch == "ranks":
        fixed["CW_NODES"] = str(len(group))
    if _shape(test) == "pair":
        fixed["CW_PEER"] = hosts[0]
    if "store" in test.kind.placeholders:
        fixed[store_variable(test.store)] = f"/stores/{_store_name(test)}"
    if "endpoint" in test.kind.placeholders and test.workload in options.endpoints:
        fixed[endpoint_variable(test.workload)] = options.endpoints[test.workload]
    found: list[dict[str, Any]] = [{"name": key, "value": value} for key, value in fixed.items()]
    return [{"name": "CW_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, *found]


def _security(test: PlannedTest) -> dict[str, Any]:
    """The least that the test needs; no test is privileged."""
    if test.kind.launch == "mpi" and len(test.rounds[0][0]) > 1:
        # sshd separates its privileges, for which it needs the container runtime's default capabilities.
        return {"capabilities": {"add": ["IPC_LOCK"]}, "seccompProfile": {"type": "RuntimeDefault"}}
    added = []
    if "rdma" in test.kind.needs or (test.kind.gpus and len(test.rounds[0][0]) > 1):
        added.append("IPC_LOCK")
    if test.rights == "root" and test.kind.argv[0] == "dmesg":
        added.append("SYSLOG")
    capabilities: dict[str, Any] = {"drop": ["ALL"]}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": capabilities | ({"add": added} if added else {}),
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _gpus(test: PlannedTest) -> int:
    wanted = test.kind.gpus or any("gpu" in need for need in test.kind.needs)
    return test.gpus_per_node if wanted else 0


def _resources(test: PlannedTest, options: Options) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if gpus := _gpus(test):
        limits[options.gpu_resource] = gpus
    if options.rdma_resource and ("rdma" in test.kind.needs or (gpus and len(test.rounds[0][0]) > 1)):
        limits[options.rdma_resource] = 1
    return {"limits": limits} if limits else {}


def _store_name(test: PlannedTest) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in test.store.lower()).strip("-") or "store"


def _volumes(test: PlannedTest, options: Options) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "scripts", "configMap": {"name": SCRIPTS, "items": None}},
        {"name": "results", "emptyDir": {}},
    ]
    if _gpus(test):
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory"}})
    if "store" in test.kind.placeholders:
        claim = options.stores.get(test.store) or _store_name(test)
        volumes.append({"name": "store", "persistentVolumeClaim": {"claimName": claim}})
    if test.kind.launch == "mpi" and len(test.rounds[0][0]) > 1:
        volumes.append({"name": "ssh", "secret": {"secretName": SSH_SECRET, "defaultMode": 0o400, "optional": True}})
    return volumes


def _mounts(test: PlannedTest, options: Options) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "scripts", "mountPath": HOME, "readOnly": True},
        {"name": "results", "mountPath": "/results"},
    ]
    if _gpus(test):
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    if "store" in test.kind.placeholders:
        mounts.append({"name": "store", "mountPath": f"/stores/{_store_name(test)}"})
    if test.kind.launch == "mpi" and len(test.rounds[0][0]) > 1:
        mounts.append({"name": "ssh", "mountPath": "/etc/clusterwright-ssh", "readOnly": True})
    return mounts


def with_scripts(job: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """The Job with the scripts that it mounts.

    Args:
        paths: key in the ConfigMap → path below HOME.
    """
    job = dict(job)
    spec = dict(job["spec"])
    template = dict(spec["template"])
    pod = dict(template["spec"])
    items = [{"key": key, "path": path} for key, path in paths.items()]
    pod["volumes"] = [
        {**v, "configMap": {"name": SCRIPTS, "items": items}} if v["name"] == "scripts" else v for v in pod["volumes"]
    ]
    template["spec"], spec["template"], job["spec"] = pod, template, spec
    return job
