"""Write examples/broken/ anew: examples/broken/sound.yaml with one class of mistake in each file.

Each entry of MISTAKES: file name → (what is wrong, in a sentence; replacements in the text of sound.yaml). The rule ids
in the `# gives:` line are those of the errors that a review gives; read the diff before committing it.
"""

# ruff: noqa: E501  # the replacements quote lines of a YAML file

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Final

from clusterwright.app.reviewing import review_files

BROKEN: Final = Path(__file__).resolve().parent.parent / "examples" / "broken"
SOUND: Final = BROKEN / "sound.yaml"
TODAY: Final = datetime.date(2026, 11, 30)
MARK: Final = "# The mistake is in the next line."
GAP: Final = "# The mistake: something is missing here."

Edits = tuple[tuple[str, str], ...]

_SECOND_POOL: Final = """\
  old: {nodes: "old-[1-2]", shape: hgx-a100-sxm-8, software: gpu-node, price: $1.30/GPU-h, ownership: rented,
    sharing: none, replacement: {within: 24 h, policy: provider}, hardware: {cpu: EPYC 7742, cpu_cores: 128,
    ram: 2048 GiB, numa_nodes: 8, nvme_capacity: 30 TB, nvme_read: 25 GB/s, nvme_write: 12 GB/s, power: 2 kW}}
"""
_CONTROL: Final = "  control: {nodes"
_FOUR_NODES: Final = (
    ('nodes: "gpu-[001-002]"', 'nodes: "gpu-[001-004]"'),
    ("power: 26 kW", "power: 60 kW"),
    ("example-cloud, nodes: 2", "example-cloud, nodes: 4"),
)
#: A second pool makes the contract's numbers wrong, which is not the mistake.
_NO_NUMBERS: Final = ("example-cloud, nodes: 2, gpu: h100-sxm-80, ", "example-cloud, ")

MISTAKES: Final[dict[str, tuple[str, Edits]]] = {
    # --- workload brief
    "brief-incomplete": (
        "The brief leaves out revision, image, lengths, concurrency, loading and recovery.",
        (
            ("    revision: 6f6073b423013f6a7d4d9f39144961bfbfbc386b\n", ""),
            ("      in_p95: 3000 tokens\n", ""),
            ("      concurrency: 64\n", ""),
            ("    operations_boundary: platform runs nodes and engine, ml runs image and prompts\n", ""),
            ("    payload: {source: object, cache: nvme, within: 90 s, startup: 60 s, artifacts: [weights, tokenizer, engine]}\n", ""),
            ("survive: 1 node, detection: 30 s, recovery: 10 min, cold_start: 5 min}", "}"),
        ),
    ),
    "neither-serves-nor-trains": (
        "A workload says neither how it serves nor what it trains.",
        (
            (
                "    serve:\n      engine: vllm 0.11\n      precision: fp8\n      in: 1000 tokens\n      in_p95: 3000 tokens\n"
                "      out: 250 tokens\n      out_p95: 600 tokens\n      max_model_len: 8192 tokens\n      rate: 8 req/s\n"
                "      concurrency: 64\n      replicas: 2\n      replica_rate: 9 req/s\n      parallel: {tp: 4}\n",
                "",
            ),
        ),
    ),
    "no-target": ("Nothing says how fast is fast enough.", (("{ttft_p95: 1 s, tpot_p95: 50 ms, survive", "{survive"),)),
    "latency-without-percentile": (
        "A latency target names no percentile.",
        (("{ttft_p95: 1 s, tpot_p95", "{ttft: 1 s, ttft_p95: 1 s, tpot_p95"),),
    ),
    "failure-tied-to-nothing": (
        "One node may be lost, and nothing says of which of two pools.",
        (
            ("    pools: [gpu]\n    gpus: [h100-sxm-80]\n    queue: online", "    gpus: [h100-sxm-80]\n    queue: online"),
            (_CONTROL, _SECOND_POOL.replace("shape: hgx-a100-sxm-8", "shape: hgx-h100-sxm-8") + _CONTROL),
            ("power: 26 kW", "power: 60 kW"),
            _NO_NUMBERS,
        ),
    ),
    "requests-too-long": (
        "The longest requests exceed what the engine accepts.",
        (("max_model_len: 8192 tokens", "max_model_len: 3500 tokens"),),
    ),
    "latency-out-of-reach": (
        "A time per output token that one request alone does not reach, however many replicas there are.",
        (("      replica_rate: 9 req/s\n", ""), ("tpot_p95: 50 ms, survive", "tpot_p95: 5 ms, survive")),
    ),
    "deadline-missed": ("The training cannot finish by its deadline.", (("deadline: 3 days", "deadline: 30 min"),)),
    "restore-above-recovery": (
        "Noticing a loss and restoring the checkpoint take longer than recovery may.",
        (("recovery: 15 min, lost_work", "recovery: 150 s, lost_work"),),
    ),
    # --- what does not fit
    "memory-too-small": (
        "A 70B model in bf16 on two 80 GB GPUs: the weights alone fill them.",
        (("      precision: fp8", "      precision: bf16"), ("      parallel: {tp: 4}", "      parallel: {tp: 1}")),
    ),
    "replica-across-servers": (
        "A replica spans two servers although it fits inside one.",
        (
            ("      replicas: 2\n      replica_rate: 9 req/s\n      parallel: {tp: 4}", "      replicas: 1\n      parallel: {tp: 8, pp: 2}"),
            ("survive: 1 node, ", "survive: 0 nodes, "),
            ("online: {parent: shared, guarantee: {gpu: 8}", "online: {parent: shared, guarantee: {gpu: 16}"),
            *_FOUR_NODES,
        ),
    ),
    "heads-not-divided": ("Three GPUs cannot share 64 heads.", (("parallel: {tp: 4}", "parallel: {tp: 3}"),)),
    "tensor-parallel-beyond-nvlink": (
        "Tensor parallelism over 16 GPUs leaves the NVLink domain of 8.",
        (
            ("      gpus: 4\n      parallel: {dp: 4}", "      gpus: 16\n      parallel: {tp: 16}"),
            ("guarantee: {gpu: 4}, borrow: {gpu: 4}, lend", "guarantee: {gpu: 16}, borrow: {gpu: 4}, lend"),
            *_FOUR_NODES,
        ),
    ),
    "layout-impossible": (
        "Experts of a model that has none, and widths whose product is not the number of GPUs.",
        (("parallel: {dp: 4}", "parallel: {dp: 8, ep: 2}"),),
    ),
    "no-layout": (
        "Four GPUs and no parallelism: their memory is an inventory total.",
        (("      parallel: {dp: 4}\n", ""),),
    ),
    "no-failure-capacity": (
        "Two replicas that both need their full capacity: one lost node halves the service.",
        (("replica_rate: 9 req/s", "replica_rate: 5 req/s"),),
    ),
    "load-above-capacity": (
        "All replicas together carry less than the load.",
        (("replica_rate: 9 req/s", "replica_rate: 3 req/s"),),
    ),
    "control-plane-as-capacity": (
        "Guarantees count on control-plane nodes, which add no GPU capacity.",
        (("    pools: [gpu]\n    gpus: [h100-sxm-80]\n    queue: training", "    pools: [gpu, control]\n    gpus: [h100-sxm-80]\n    queue: training"),
         ("guarantee: {gpu: 4}, borrow: {gpu: 4}, lend", "guarantee: {gpu: 4, control: 3}, borrow: {gpu: 4}, lend")),
    ),
    "format-without-hardware": (
        "NVFP4 on Hopper, which has no units for it.",
        (("      precision: fp8", "      precision: nvfp4"), ("engine: vllm 0.11", "engine: sglang 0.5")),
    ),
    "gpu-substituted": (
        "The pool has another GPU than the briefs accept.",
        (("    gpus: [h100-sxm-80]\n    queue: online", "    gpus: [h200-sxm-141]\n    queue: online"),),
    ),
    "lands-on-different-gpus": (
        "A workload may land on pools with different GPUs without saying so.",
        (
            ("    pools: [gpu]\n    gpus: [h100-sxm-80]\n    queue: training", "    gpus: [h100-sxm-80, a100-sxm-80]\n    queue: training"),
            (_CONTROL, _SECOND_POOL + _CONTROL),
            _NO_NUMBERS,
        ),
    ),
    "brief-contradicts-itself": (
        "A loss is noticed after recovery is over, as many nodes may be lost as there are, and a p95 is below its mean.",
        (
            ("      in_p95: 3000 tokens", "      in_p95: 500 tokens"),
            ("survive: 1 node, detection: 30 s, recovery: 10 min", "survive: 2 nodes, detection: 15 min, recovery: 10 min"),
        ),
    ),
    "more-requests-than-cache": (
        "More requests are in flight than the KV cache of all replicas holds.",
        (("concurrency: 64\n", "concurrency: 5000\n"),),
    ),
    "more-replicas-than-room": (
        "More replicas than quota and nodes have room for.",
        (("replicas: 2", "replicas: 4"),),
    ),
    "gang-above-pool": (
        "A gang larger than the pool.",
        (("      gpus: 4\n      parallel: {dp: 4}", "      gpus: 32\n      parallel: {dp: 32}"),),
    ),
    # --- equipment
    "hardware-unknown": (
        "A node shape and a GPU that nobody knows.",
        (("shape: hgx-h100-sxm-8", "shape: hgx-h100-sxm-9"), ("gpu: h100-sxm-80, nics", "gpu: h100-xsm-80, nics")),
    ),
    "spares-are-everything": (
        "All nodes are kept spare.",
        (("    sharing: none\n", "    sharing: none\n    spares: 2\n"),),
    ),
    "disk-below-payload": (
        "A local disk that cannot hold what it caches.",
        (("nvme_capacity: 30.72 TB, nvme_read", "nvme_capacity: 80 GB, nvme_read"),),
    ),
    "node-twice": ("A node stands in two pools.", (('control: {nodes: "cp-[1-3]"', 'control: {nodes: "cp-[1-2],gpu-002"'),)),
    "mixed-pool": ("The nodes of a pool differ.", (("    sharing: none\n", "    sharing: none\n    mixed: true\n"),)),
    "hardware-contradicts-shape": (
        "The declared hardware is not that of the declared shape.",
        (("nic: connectx-7, nics: 8", "gpu: h200-sxm-141, nic: connectx-7, nics: 8"), ("gpu: h100-sxm-80, nics", "gpu: h200-sxm-141, nics"),
         ("    gpus: [h100-sxm-80]\n    queue: online", "    gpus: [h200-sxm-141]\n    queue: online"),
         ("    gpus: [h100-sxm-80]\n    queue: training", "    gpus: [h200-sxm-141]\n    queue: training")),
    ),
    "power-above-site": ("The nodes draw more than the site gives.", (("power: 26 kW", "power: 15 kW"),)),
    "host-unknown": (
        "Nobody says what hosts the GPUs sit in, or what local disks they have.",
        (
            ("cpu: 2 x Xeon 8480C, cpu_cores: 112, ram: 2048 GiB, numa_nodes: 2, power: 10.2 kW,\n", "power: 10.2 kW,\n"),
            ("      nvme_capacity: 30.72 TB, nvme_read: 25 GB/s, nvme_write: 12 GB/s,\n", ""),
        ),
    ),
    "mig-under-collectives": (
        "MIG slices under workloads that need several whole GPUs together.",
        (("    sharing: none\n", "    sharing: mig\n"),),
    ),
    # --- fabric
    "roles-share-a-network": (
        "GPU traffic and storage on one network without policy.",
        (("ib: {kind: infiniband, roles: [compute]", "ib: {kind: infiniband, roles: [compute, storage]"),),
    ),
    "no-out-of-band": (
        "A node that hangs can be reached by nobody.",
        (("    oob: {kind: ethernet, roles: [out-of-band], rate: 1 Gb/s, isolation: own switch, observability: BMC reachability,\n      failure_domain: one switch}\n", ""),),
    ),
    "no-subnet-manager": ("InfiniBand without a subnet manager.", (("subnet_managers: 2", "subnet_managers: 0"),)),
    "roce-without-congestion": (
        "RoCE without agreed congestion settings.",
        (("ib: {kind: infiniband,", "ib: {kind: roce,"), ("      subnet_managers: 2, isolation", "      isolation")),
    ),
    "gpudirect-unfounded": (
        "GPUDirect RDMA is claimed with ACS and IOMMU on, across the CPU interconnect.",
        (('placement: same-switch, acs: "off", iommu: passthrough', 'placement: cross-numa, acs: "on", iommu: "on"'),),
    ),
    "nic-above-slot": (
        "400 Gb/s ports in PCIe 4.0 slots.",
        (("pcie_generation: 5", "pcie_generation: 4"),),
    ),
    "nic-too-slow": (
        "The network is faster than the NICs, and than their slots.",
        (("ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s", "ib: {kind: infiniband, roles: [compute], rate: 800 Gb/s"), ("nics: 8 x 400 Gb/s", "nics: 8 x 800 Gb/s")),
    ),
    "nvlink-between-servers": (
        "Multi-node NVLink is assumed between eight-GPU servers.",
        (("  pod_networking: multus\n", "  pod_networking: multus\n  multi_node_nvlink: true\n"),),
    ),
    "network-unknown": (
        "The storage network does not say how it is built, proven or watched.",
        (("ports: 2, oversubscription: 1, isolation: VLAN 21,\n      benchmark: elbencho, observability: switch counters, failure_domain: one of two switches}", "ports: 2}"),),
    ),
    "cluster-without-fabric": (
        "A job over two nodes on a pool that no compute network reaches.",
        (
            ("ports: 8, pools: [gpu]", "ports: 8, pools: [control]"),
            ("      gpus: 4\n      parallel: {dp: 4}", "      gpus: 16\n      parallel: {dp: 16}"),
            ("guarantee: {gpu: 4}, borrow: {gpu: 4}, lend", "guarantee: {gpu: 16}, borrow: {gpu: 0}, lend"),
            *_FOUR_NODES,
        ),
    ),
    "cloud-fabric-anywhere": (
        "A cloud fabric whose nodes sit in no placement group.",
        (
            ("ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8", "ib: {kind: efa, roles: [compute], rate: 100 Gb/s, ports: 32"),
            ("nic: connectx-7, nics: 8", "nic: efa-v2-100, nics: 32"),
            ("nics: 8 x 400 Gb/s InfiniBand", "nics: 32 x 100 Gb/s EFA"),
            ("placement: both nodes on the same leaf switches", "placement: same availability zone"),
            ("every-rail: {metric: rdma_write, at_least: 370 Gb/s", "every-rail: {metric: rdma_write, at_least: 90 Gb/s"),
        ),
    ),
    # --- storage
    "cache-is-the-only-copy": (
        "The weights exist only on local disks.",
        (("payload: {source: object, cache: nvme, within: 90 s", "payload: {source: nvme, within: 90 s"),),
    ),
    "cache-of-nothing": ("A cache with nothing behind it.", (("cache_of: object, ", ""),)),
    "source-too-slow": (
        "A fast local disk does not cure a slow source.",
        (("      read: 20 GB/s, write: 10 GB/s, network", "      read: 1 GB/s, write: 10 GB/s, network"),
         ("at_least: 10 GB/s, scope", "at_least: 2 GB/s, scope")),
    ),
    "payload-without-weights": (
        "A payload of 1 GB that is said to hold the weights, which are 73 GB.",
        (("payload: {source: object, cache: nvme, within: 90 s, startup", "payload: {size: 1 GB, source: object, cache: nvme, within: 90 s, startup"),),
    ),
    "path-too-slow": (
        "The store is fast and the network to it is not.",
        (("rate: 200 Gb/s, ports: 2, oversubscription: 1, isolation: VLAN 21", "rate: 10 Gb/s, ports: 1, oversubscription: 4, isolation: VLAN 21"),),
    ),
    "cold-start-too-slow": (
        "A replica needs longer to start than it may.",
        (("startup: 60 s", "startup: 8 min"),),
    ),
    "checkpoint-stalls": (
        "A synchronous checkpoint stops training longer than it may.",
        (("mode: async, stall_within: 60 s", "mode: sync, stall_within: 5 s"),),
    ),
    "checkpoints-pile-up": (
        "A checkpoint is not written before the next one is due.",
        (("write: 10 GB/s, network", "write: 50 MB/s, network"),),
    ),
    "restore-too-slow": ("Restoring takes longer than it may.", (("restore_within: 120 s", "restore_within: 2 s"),)),
    "too-much-work-lost": ("One failure loses more than it may.", (("every: 25 min", "every: 4 h"),)),
    "store-too-small": ("The checkpoints that are kept fill the store.", (("keep: 3", "keep: 3000"),)),
    # --- software
    "versions-not-exact": (
        "Branches and moving names instead of versions.",
        (("kubernetes: 1.36.2", 'kubernetes: "1.36"'), ("kueue: 0.19.1", "kueue: latest")),
    ),
    "image-by-tag": (
        "A workload runs an image by tag.",
        (("    image: registry.example.com/torchtitan@sha256:8b7a6c5d4e3f2019182736455463728190a0b1c2d3e4f5061728394a5b6c7d8e", "    image: registry.example.com/torchtitan:0.2"),),
    ),
    "fabric-manager-of-another-version": (
        "Driver 595.91.07 with another Fabric Manager on NVSwitch nodes.",
        (("fabric_manager: 595.91.07", "fabric_manager: 595.71.05"),),
    ),
    "fabric-manager-forgotten": ("NVSwitch nodes without Fabric Manager.", (("fabric_manager: 595.91.07, ", ""),)),
    "vbios-too-old": (
        "Hopper subrevision 3 with VBIOS 96.00.67 under driver 595.91.07.",
        (("vbios: 96.00.74.00.01", "vbios: 96.00.67.00.01"),),
    ),
    "cuda-too-new": ("CUDA that the driver cannot start.", (("driver: 595.91.07, fabric_manager: 595.91.07", "driver: 570.86.15, fabric_manager: 570.86.15"),)),
    "nccl-of-another-cuda": ("NCCL for another CUDA.", (("nccl: 2.29.2", "nccl: 2.12.10"),)),
    "kubernetes-too-old-for-operator": (
        "Kubernetes 1.32 under GPU Operator 26.7.2.",
        (
            ("kubernetes: 1.36.2", "kubernetes: 1.32.4"),
            ("container_toolkit: 1.19.0, kubelet: 1.36.2", "container_toolkit: 1.19.0, kubelet: 1.32.4"),
            ("containerd: 2.3.6, kubelet: 1.36.2}", "containerd: 2.1.4, kubelet: 1.32.4}"),
            ("containerd: 2.3.6, container_toolkit", "containerd: 2.1.4, container_toolkit"),
        ),
    ),
    "kubernetes-too-new-for-operator": (
        "Kubernetes 1.38 under GPU Operator 26.7.2.",
        (("kubernetes: 1.36.2", "kubernetes: 1.38.0"),),
    ),
    "kubelet-newer-than-control-plane": (
        "A kubelet newer than its control plane.",
        (("containerd: 2.3.6, kubelet: 1.36.2}", "containerd: 2.3.6, kubelet: 1.37.0}"),),
    ),
    "containerd-not-listed": (
        "A containerd branch that is not listed for the Kubernetes minor.",
        (("containerd: 2.3.6, container_toolkit", "containerd: 1.7.28, container_toolkit"),),
    ),
    "system-not-listed": (
        "An operating system that the GPU Operator does not list.",
        (("gpu_operator: 26.7.2", "gpu_operator: 26.7.0"), ("gpu-node: {os: Ubuntu 24.04", "gpu-node: {os: Debian 13")),
    ),
    # --- quotas
    "workload-in-a-group": (
        "A workload in a queue that only groups others.",
        (("queue: online", "queue: shared"),),
    ),
    "queue-over-two-engines": (
        "One quota over pools of two schedulers that do not know each other.",
        (
            ("  engine: kubernetes\n", "  engine: kubernetes\n  mixed_site: {identity: OIDC, data: object, observability: Grafana, cost: by account}\n"),
            (_CONTROL, _SECOND_POOL.replace("ownership: rented", "ownership: rented, engine: slurm") + _CONTROL),
            ("kueue: 0.19.1", "kueue: 0.19.1\n  slurm: 26.05.1"),
            ("online: {parent: shared, guarantee: {gpu: 8}", "online: {parent: shared, guarantee: {gpu: 8, old: 8}"),
            _NO_NUMBERS,
        ),
    ),
    "guarantees-above-capacity": (
        "More is guaranteed than the pool has.",
        (("online: {parent: shared, guarantee: {gpu: 8}", "online: {parent: shared, guarantee: {gpu: 12}"),),
    ),
    "borrowing-from-nobody": (
        "A queue may borrow where nobody lends.",
        (("shared: {guarantee: {gpu: 4}, ", "shared: {"),),
    ),
    "queues-in-a-circle": ("Queues that are each other's parents.", (("    online: {parent", "    a: {parent: b, owner: ml@example.com}\n    b: {parent: a, owner: ml@example.com}\n    online: {parent"),)),
    "gang-above-quota": (
        "A gang larger than its queue can ever hold.",
        (("      gpus: 4\n      parallel: {dp: 4}", "      gpus: 8\n      parallel: {dp: 8}"), ("borrow: {gpu: 4}, lend", "borrow: {gpu: 0}, lend")),
    ),
    "lent-and-never-reclaimed": (
        "A guarantee that is lent out and may not be taken back.",
        (("reclaim: any", "reclaim: never"), ("guarantee: {gpu: 8}, borrow: {gpu: 0}", "guarantee: {gpu: 8}, borrow: {gpu: 4}")),
    ),
    "workload-in-the-spares": ("A workload in the queue that holds the spares.", (("guarantee: {gpu: 4}, borrow: {gpu: 4}, lend", "slack: true, guarantee: {gpu: 4}, borrow: {gpu: 4}, lend"),)),
    "two-engines-undesigned": (
        "Two schedulers on one site and nothing designed across them.",
        (("    sharing: none\n", "    sharing: none\n    engine: slurm\n"), (_CONTROL, _SECOND_POOL + _CONTROL), ("kueue: 0.19.1", "kueue: 0.19.1\n  slurm: 26.05.1"), _NO_NUMBERS),
    ),
    # --- security
    "tenants-by-namespace": (
        "Namespaces called tenant isolation.",
        (("tenancy: single-team", "tenancy: multi-tenant"),),
    ),
    "tenants-by-time-slicing": (
        "Strangers share GPUs by time-slicing.",
        (
            ("tenancy: single-team\n  isolation: one namespace per workload, no boundary against hostile code", "tenancy: multi-tenant\n  isolation: virtual machines per tenant"),
            ("    sharing: none\n", "    sharing: time-slicing\n"),
        ),
    ),
    "access-unsettled": (
        "Nobody settled identity, secrets, audit or what may leave.",
        (("  identity: OIDC of the company\n", ""), ("  secrets: in the vault, injected at start\n  egress: allow list\n", ""), ("  audit_retention: 365 days\n", "")),
    ),
    "no-owners": (
        "No area has an owner.",
        (("  default: platform@example.com\n", ""),),
    ),
    "nobody-operates": (
        "Nobody runs drivers, scheduler, storage or network.",
        (("  default: platform@example.com\n  duties: {drivers: platform@example.com, images", "  duties: {images"), ("scheduler_policy: platform@example.com, ", "")),
    ),
    "seen-by-nobody": (
        "GPUs and cost are seen nowhere, and nobody is alerted.",
        (("gpus: DCGM exporter, ", ""), ("  cost: by team and model, alerts: to on-call, retention", "  retention")),
    ),
    # --- acceptance
    "floor-unattainable": (
        "800 GB/s bus bandwidth inside nodes of eight H100, which are bound by 700.",
        (("at_least: 350 GB/s, scope: {of: pool", "at_least: 800 GB/s, scope: {of: node"),),
    ),
    "floor-vacuous": (
        "100 GB/s inside a node that measures 450 to 480 when it is healthy.",
        (("at_least: 350 GB/s, scope: {of: pool", "at_least: 100 GB/s, scope: {of: node"),),
    ),
    "floor-without-size": ("A bandwidth without a message size.", (("operation: all-reduce, message_size: 16 GiB", "operation: all-reduce"),)),
    "bits-for-bytes": ("46 Gb/s where 46 GB/s was measured.", (("at_least: 370 Gb/s", "at_least: 46 Gb/s"),)),
    "threshold-without-scope": (
        "Thresholds without scope, source and load.",
        (("at_least: 10 GB/s, scope: {of: cluster, nodes: 2},\n      conditions: {concurrency: 8}, source: payload rate with margin,", "at_least: 10 GB/s,"),),
    ),
    "threshold-upside-down": ("A latency of at least a second.", (("at_most: 1 s, scope", "at_least: 1 s, scope"),)),
    "accepted-below-target": (
        "Acceptance allows twice the latency that the brief asks for.",
        (("metric: ttft_p95, at_most: 1 s", "metric: ttft_p95, at_most: 2 s"),),
    ),
    "more-nodes-than-there-are": (
        "A claim about more nodes than exist, and about four of eight GPUs.",
        (("equals: 8, scope: {of: node, pool: gpu, nodes: 2}", "equals: 4, scope: {of: node, pool: gpu, nodes: 4}"),),
    ),
    "another-image-accepted": (
        "Acceptance runs an image that no workload runs.",
        (("  image: registry.example.com/vllm@sha256:3f1c6b0a9d5e4c7788d2b1a0c9e8f7061524334251607f8e9dacbb1a2c3d4e5f\n  workload: chat", "  image: registry.example.com/vendor-test@sha256:0f1c6b0a9d5e4c7788d2b1a0c9e8f7061524334251607f8e9dacbb1a2c3d4e5f\n  workload: chat"),),
    ),
    "claims-of-one-class-only": (
        "Nothing shows that the scheduler starts the intended image as declared.",
        (("    chat-image: {metric: image_digest, scope: {of: pool, pool: gpu, nodes: 2, workload: chat},\n      equals: sha256:3f1c6b0a9d5e4c7788d2b1a0c9e8f7061524334251607f8e9dacbb1a2c3d4e5f, source: release,\n      max_age: 30 days}\n", ""),),
    ),
    # --- money
    "denominators-differ": (
        "Cost per accepted Mtok compared with cost per GPU-hour.",
        (("price: $3.29/GPU-h, denominator: accepted Mtok", "price: $3.29/GPU-h, denominator: GPU-h"),),
    ),
    "utilisation-allocated": ("Allocated counted as useful.", (("utilisation_means: useful", "utilisation_means: allocated"),)),
    "costs-left-out": (
        "Support, staff, retries and failed runs are left out.",
        (("support: $1500/month, operations: $9000/month}", "}"), ("retries: 3%, failed: 2%, accepted: 98%}", "}")),
    ),
    "shares-above-whole": ("More than all of the paid time is used.", (("idle: 52%", "idle: 80%"),)),
    "never-useful": ("Every run yields nothing.", (("failed: 2%", "failed: 100%"),)),
    "power-paid-twice": (
        "Colocation and power: the power is paid twice.",
        (("support: $1500/month", "support: $1500/month, colocation: $170/kW-month, power: 8 ¢/kWh"),),
    ),
    "owned-for-nothing": ("Owned hardware without its purchase price.", (("    ownership: rented\n", "    ownership: owned\n"),)),
    "two-currencies": ("Dollars and euros added up.", (("network: $900/month", "network: €900/month"),)),
    "compared-with-nothing": (
        "A cluster that is compared with a rental only, whose price nobody wrote down.",
        (("    api: {kind: model-api, input_price: $0.60/Mtok, output_price: $0.60/Mtok, denominator: accepted Mtok,\n      source: price list, date: 2026-10-01}\n", ""), ("price: $3.29/GPU-h, denominator", "denominator")),
    ),
    "only-outputs-needed": (
        "A cluster for work of which only the outputs matter.",
        (("    needs: own-weights\n    pattern: diurnal", "    needs: outputs\n    pattern: diurnal"), ("    needs: own-weights\n    pattern: steady", "    needs: outputs\n    pattern: steady")),
    ),
    # --- promises, waivers, names
    "contract-differs": (
        "The contract promises other nodes and NICs than the design counts on.",
        (("nodes: 2, gpu: h100-sxm-80, nics: 8 x 400 Gb/s", "nodes: 4, gpu: h100-sxm-80, nics: 4 x 200 Gb/s"),),
    ),
    "waivers-void": (
        "Waivers that have expired, name no rule, or nobody owns.",
        (
            (
                "contract: {provider",
                "waivers:\n"
                "  - {rule: containerd-branch, reason: tested here, owner: sre@example.com, expires: 2026-06-30}\n"
                "  - {rule: containerd-brunch, reason: tested here, owner: sre@example.com, expires: 2027-06-30}\n"
                "  - {rule: api-cheaper, reason: decided, owner: TBD, expires: 2027-06-30}\n"
                "contract: {provider",
            ),
        ),
    ),
    "names-of-nothing": (
        "References to pools, queues, stores, networks, profiles and hardware that are not there.",
        (
            ("    priority: batch", "    priority: bacth"),
            ("    queue: training", "    queue: trainning"),
            ("data: object", "data: objects"),
            ("network: storage, readers", "network: storrage, readers"),
            ("control: {nodes: \"cp-[1-3]\", role: control-plane, software: cpu-node", "control: {nodes: \"cp-[1-3]\", role: control-plane, software: cpunode"),
            ("nic: connectx-7,", "nic: connectx-77,"),
            ("{of: pool, pool: gpu, nodes: 2},\n      conditions: {operation", "{of: pool, pool: gpus, nodes: 2},\n      conditions: {operation"),
        ),
    ),
}  # fmt: skip


def render_broken(name: str) -> str:
    """The text of one file, with `{gives}` where its rule ids belong."""
    title, edits = MISTAKES[name]
    _, head, body = SOUND.read_text(encoding="utf-8").partition("apiVersion:")
    body = head + body
    for old, new in edits:
        if body.count(old) != 1:
            raise ValueError(f"{name}: found {body.count(old)} times, not once: {old!r}")
        start = body.rindex("\n", 0, body.index(old) + 1) + 1
        body = body.replace(old, new)
        line = body[start:].partition("\n")[0]
        indent = " " * (len(line) - len(line.lstrip(" ")))
        body = f"{body[:start]}{indent}{MARK if new else GAP}\n{body[start:]}"
    return f"# {title}\n# gives: {{gives}}\n{body}"


def errors_of(path: Path) -> list[str]:
    """Ids of the rules whose errors a review of one file gives, sorted."""
    review = review_files([path], today=TODAY).review
    return sorted({finding.rule for finding in review.errors})


def render_readme(given: dict[str, str]) -> str:
    """The table of all files."""
    rows = [f"| [{name}](./{name}.yaml) | {MISTAKES[name][0]} | {ids} |" for name, ids in sorted(given.items())]
    return "\n".join(["""\
# Broken architectures

Written by `python tools/write_broken.py`. Each file is [sound.yaml](./sound.yaml) with one class of mistake, marked in
the file, and names the rules whose errors it gives: `diff sound.yaml FILE` shows the mistake, `cw review FILE` what is
said about it, `cw explain RULE` why it matters. Support and prices age, so the ids are those of """
        + f"`--today {TODAY}`.", "", "| File | Mistake | Errors |", "|---|---|---|", *rows, ""])  # fmt: skip


def main() -> None:
    given = dict[str, str]()
    for old in BROKEN.glob("*.yaml"):
        if old != SOUND and old.stem not in MISTAKES:
            old.unlink()
    for name in MISTAKES:
        path, text = BROKEN / f"{name}.yaml", render_broken(name)
        path.write_text(text, encoding="utf-8")
        given[name] = ", ".join(errors_of(path)) or "nothing"
        path.write_text(text.replace("{gives}", given[name], 1), encoding="utf-8")
        print(f"{name}: {given[name]}")
    (BROKEN / "README.md").write_text(render_readme(given), encoding="utf-8")


if __name__ == "__main__":
    main()
