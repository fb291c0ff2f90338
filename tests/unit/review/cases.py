"""For each rule: changes of the two-workers example that give it, and changes that do not.

A change is a tuple of `path=value`, as `--set` takes them; an empty value removes the key. Rules that only ask whether
a line is there are held by tests/cases/required_lines.txt.
"""

from __future__ import annotations

from typing import Final

Changes = tuple[str, ...]

GIVES: Final[dict[str, list[Changes]]] = {
    "intra-node-topology-missing": [
        ("pools.gpu.shape=", "pools.gpu.hardware.gpu=h100-sxm-80", "pools.gpu.hardware.gpus=8")
    ],
    "multi-node-nvlink-undeclared": [("pools.gpu.shape=gb200-nvl72-tray", "fabric.multi_node_nvlink=")],
    "mixed-engines-undesigned": [("pools.batch={nodes: 'b-[1-2]', shape: hgx-h100-sxm-8, engine: slurm}",)],
    "pool-unknown": [
        ("workloads.chat.pools=[gpus]",),
        ("fabric.networks.ib.pools=[gqu]",),
        ("scheduling.queues.online.guarantee={gpux: 8}",),
        ("acceptance.requirements.no-xid.scope.pool=cpu",),
    ],
    "queue-unknown": [("workloads.chat.queue=onlin",), ("scheduling.queues.online.parent=nowhere",)],
    "priority-unknown": [("workloads.chat.priority=urgent",)],
    "store-unknown": [
        ("workloads.chat.payload.source=objekt",),
        ("workloads.finetune.train.checkpoint.to=s3",),
        ("storage.uses.logs=loki",),
        ("storage.stores.nvme.cache_of=ceph",),
    ],
    "network-unknown": [("storage.stores.object.network=storag",)],
    "profile-unknown": [("pools.gpu.software=gpu-nodes",)],
    "workload-unknown": [("acceptance.requirements.chat-ttft.scope.workload=chad",)],
    "shape-unknown": [("pools.gpu.shape=hgx-h100-sxm-9",)],
    "gpu-unknown": [("workloads.chat.gpus=[h100-sxm-81gb]",), ("contract.gpu=h1000",)],
    "nic-unknown": [("pools.gpu.hardware.nic=connectx-77",)],
    "model-unknown": [("workloads.chat.model=example/our-own-70b",)],
    "workload-type-unclear": [("workloads.chat.serve=",)],
    "latency-without-percentile": [
        ("workloads.chat.target.ttft=1 s",),
        ("acceptance.requirements.chat-ttft.metric=ttft",),
    ],
    "survive-untied": [("workloads.chat.pools=", "pools.two={nodes: 'x-[1-2]', shape: hgx-h100-sxm-8}")],
    "survive-above-pool": [("workloads.chat.target.survive=2 nodes",)],
    "availability-untied": [("workloads.chat.target.survive=0 nodes",)],
    "detection-above-recovery": [("workloads.chat.target.detection=10 min",)],
    "length-above-model": [
        ("workloads.chat.serve.max_model_len=3500 tokens",),
        ("workloads.chat.serve.max_model_len=200000 tokens",),
    ],
    "percentile-below-mean": [("workloads.chat.serve.in_p95=500 tokens",)],
    "concurrency-below-load": [("workloads.chat.serve.concurrency=8",)],
    "deadline-missed": [("workloads.finetune.train.deadline=10 min",)],
    "training-network-slow": [
        (
            "fabric.networks.ib.rate=25 Gb/s",
            "workloads.finetune.train.gpus=16",
            "workloads.finetune.train.parallel={dp: 16}",
            "workloads.chat=",
        ),
        (
            "fabric.networks.ib.oversubscription=2",
            "workloads.finetune.train.gpus=16",
            "workloads.finetune.train.parallel={dp: 16}",
            "workloads.chat=",
        ),
    ],
    "latency-unreachable": [
        ("workloads.chat.target.tpot_p95=5 ms",),
        ("workloads.chat.target.ttft_p95=100 ms",),
        ("workloads.chat.target.tpot_p95=15 ms", "workloads.chat.serve.replica_rate=9 req/s"),  # at its load
    ],
    "memory-does-not-fit": [("workloads.chat.serve.parallel={tp: 1}",), ("workloads.chat.model=example/our-own-70b",)],
    "memory-below-concurrency": [("workloads.chat.serve.concurrency=5000",)],
    "replica-crosses-server": [("workloads.chat.serve.parallel={tp: 8, pp: 2}",)],
    "tp-does-not-divide-heads": [("workloads.chat.serve.parallel={tp: 6}",)],
    "tp-above-kv-heads": [("workloads.chat.serve.parallel={tp: 16}",)],
    "tp-crosses-nvlink": [("workloads.chat.serve.parallel={tp: 16}",)],
    "layout-impossible": [
        ("workloads.finetune.train.parallel={dp: 3}",),
        ("workloads.finetune.train.parallel={dp: 4, ep: 2}",),
        ("workloads.finetune.train.global_batch=63",),
        ("workloads.finetune.train.gpus=33", "workloads.finetune.train.parallel={pp: 33}"),
    ],
    "parallelism-undeclared": [("workloads.finetune.train.parallel=",), ("workloads.chat.serve.parallel=",)],
    "workload-not-placed": [("workloads.chat.serve.replicas=5",)],
    "load-above-capacity": [
        ("workloads.chat.serve.replica_rate=3 req/s",),
        ("workloads.chat.serve.parallel={tp: 8, pp: 2}", "fabric.networks.ib="),  # no network: its speed is undecided
    ],
    "no-failure-capacity": [
        ("workloads.chat.serve.replica_rate=5 req/s",),
        ("workloads.chat.serve.replicas=1",),
        ("pools.gpu.nodes=gpu-001", "workloads.chat.serve.replica_rate=20 req/s"),
    ],
    "training-cannot-restart": [
        ("workloads.chat.serve.spread=preferred",),  # the lost replica is placed again first, on what is free
        (
            "workloads.finetune.train.gpus=16",
            "workloads.finetune.train.parallel={dp: 16}",
            "workloads.chat=",
        ),
    ],
    "control-plane-counted": [
        ("workloads.chat.pools=[gpu, control]",),
        ("scheduling.queues.online.guarantee={control: 8}",),
    ],
    "node-in-two-pools": [("pools.control.nodes=cp-1,gpu-002",)],
    "mixed-hardware-in-pool": [("pools.gpu.mixed=true",)],
    "hardware-contradicts-shape": [
        ("pools.gpu.hardware.gpu=h200-sxm-141",),
        ("pools.gpu.hardware.gpus=4",),
        ("pools.gpu.hardware.nvswitch=false",),
    ],
    "gpu-not-acceptable": [("pools.gpu.shape=hgx-a100-sxm-8",)],
    "workload-spans-different-pools": [
        ("pools.old={nodes: 'old-[1-2]', shape: hgx-a100-sxm-8}", "workloads.chat.pools="),
        ("pools.old={nodes: 'old-[1-2]', shape: hgx-h200-sxm-8}", "workloads.finetune.pools=[gpu, old]"),
    ],
    "workload-spans-different-software": [
        (
            "pools.new={nodes: 'new-[1-2]', shape: hgx-h100-sxm-8, software: other}",
            "software.profiles.other={driver: 580.65.06, cuda: 13.0, nccl: 2.29.2}",
            "workloads.chat.pools=[gpu, new]",
        )
    ],
    "power-above-site": [("cluster.power=20 kW",)],
    "ram-below-gpu-memory": [("pools.gpu.hardware.ram=512 GiB",)],
    "precision-unsupported": [
        ("pools.gpu.shape=hgx-a100-sxm-8", "workloads.chat.gpus=[a100-sxm-80]"),
        ("workloads.chat.serve.precision=nvfp4", "workloads.chat.serve.engine=sglang 0.5"),
        ("workloads.finetune.train.precision=nvfp4",),
    ],
    "nvme-below-payload": [("pools.gpu.hardware.nvme_capacity=50 GB",)],
    "spares-cover-pool": [("pools.gpu.spares=2",)],
    "mig-unsupported": [
        ("pools.gpu.sharing=mig", "pools.gpu.shape=mi300x-8"),
        ("pools.gpu.sharing=mig", "pools.gpu.shape="),
    ],
    "namespace-called-isolation": [("access.tenancy=multi-tenant",)],
    "sharing-called-isolation": [
        ("access.tenancy=multi-tenant", "pools.gpu.sharing=time-slicing"),
        ("access.tenancy=multi-tenant", "pools.gpu.sharing=mig"),
    ],
    "sharing-with-collectives": [("pools.gpu.sharing=mig",)],
    "sharing-hides-telemetry": [("pools.gpu.sharing=mps",)],
    "teams-without-quota": [("access.tenancy=multi-team", "scheduling.queues={one: {guarantee: {gpu: 16}}}")],
    "version-not-exact": [
        ("software.kubernetes='1.36'",),
        ("software.kueue=latest",),
        ("software.profiles.gpu-node.driver='595'",),
        ("software.profiles.gpu-node.containerd='>=2.3'",),
        ("software.profiles.gpu-node.os=Ubuntu",),
    ],
    "engine-release-missing": [
        ("workloads.chat.serve.engine=vllm",),
        ("workloads.finetune.train.framework=torchtitan",),
    ],
    "image-without-digest": [
        ("workloads.chat.image=registry.example.com/serving/vllm:v0.11",),
        ("software.images.chat=registry.example.com/serving/vllm@sha256:3f1c",),
        ("acceptance.image=registry.example.com/serving/vllm:latest",),
    ],
    "fabric-manager-mismatch": [
        ("software.profiles.gpu-node.fabric_manager=595.71.05",),
        ("software.profiles.gpu-node.fabric_manager=595.71.05", "pools.gpu.shape="),
    ],
    "fabric-manager-missing": [("software.profiles.gpu-node.fabric_manager=",)],
    "vbios-below-driver": [
        ("pools.gpu.hardware.vbios=96.00.67.00.01",),
        ("pools.gpu.hardware.vbios=",),
        ("pools.gpu.hardware.vbios=96.00.67.00.01", "pools.gpu.hardware.gpu_subrevision="),
        ("pools.gpu.hardware.vbios=newest",),
    ],
    "cuda-above-driver": [
        ("software.profiles.gpu-node.driver=570.26.00",),
        ("software.profiles.gpu-node.cuda='13.3'",),
        ("software.profiles.gpu-node.cuda='99.0'",),
        ("software.profiles.gpu-node.cuda='13.9'",),  # its major is known, the release is not: undecided
    ],
    "nccl-cuda-mismatch": [
        ("software.profiles.gpu-node.nccl=2.10.3",),
        ("software.profiles.gpu-node.nccl=2.99.1",),
    ],
    "operator-unknown": [("software.gpu_operator=27.1.0",)],
    "operator-kubernetes-unsupported": [("software.kubernetes=1.32.4",), ("software.kubernetes=1.38.0",)],
    "operator-os-unsupported": [
        (),
        ("software.gpu_operator=26.7.0", "software.profiles.gpu-node.os=Debian 13"),
    ],
    "operator-containerd-unsupported": [()],
    "operator-driver-unlisted": [()],
    "kubelet-skew": [
        ("software.profiles.gpu-node.kubelet=1.37.0",),
        ("software.profiles.gpu-node.kubelet=1.32.9",),
    ],
    "containerd-branch": [
        ("software.profiles.gpu-node.containerd=2.2.1",),
        ("software.profiles.gpu-node.containerd=1.7.28",),
        ("software.kubernetes=1.99.0",),
    ],
    "driver-out-of-support": [("software.profiles.gpu-node.driver=535.216.01",), ()],
    "kubernetes-out-of-support": [("software.kubernetes=1.33.5",)],
    "roles-share-network": [
        ("fabric.networks.in-band.roles=[in-band, out-of-band]",),
        ("fabric.networks.storage.roles=[storage, in-band]",),
    ],
    "storage-on-compute-fabric": [("fabric.networks.ib.roles=[compute, storage]",)],
    "no-out-of-band-path": [("fabric.networks.oob=",)],
    "network-role-missing": [
        ("fabric.networks.in-band=",),
        ("fabric.networks.ib=", "workloads.finetune.network_sensitivity=high"),
        ("fabric.networks.ib=", "workloads.finetune.train.gpus=16", "workloads.finetune.train.parallel={dp: 16}"),
    ],
    "out-of-band-shared": [("fabric.networks.oob=", "fabric.networks.in-band.roles=[in-band, out-of-band]")],
    "subnet-manager-missing": [("fabric.networks.ib.subnet_managers=0",), ("fabric.networks.ib.subnet_managers=",)],
    "subnet-manager-not-redundant": [("fabric.networks.ib.subnet_managers=1",)],
    "roce-without-congestion": [
        ("fabric.networks.ib.kind=roce",),
        ("fabric.networks.ib.kind=roce", "fabric.networks.ib.congestion={pfc: true, ecn: true}"),
        (
            "fabric.networks.ib.kind=roce",
            "fabric.networks.ib.congestion={pfc: false, ecn: false, nic_settings: a, switch_settings: b}",
        ),
    ],
    "gpudirect-prerequisites": [
        ("fabric.gpudirect_rdma={enabled: true}",),
        ("fabric.gpudirect_rdma.acs='on'",),
        ("fabric.gpudirect_rdma.acs='on'", "access.isolation=a virtual machine per tenant"),
        ("fabric.gpudirect_rdma.iommu='on'",),
        ("fabric.gpudirect_rdma.placement=cross-numa",),
        ("fabric.networks.ib.kind=ethernet",),
    ],
    "gpudirect-placement-slow": [("fabric.gpudirect_rdma.placement=same-numa",)],
    "nic-above-pcie": [
        ("pools.gpu.hardware.pcie_generation=4",),
        ("pools.gpu.hardware.pcie_lanes=8",),
        ("pools.gpu.hardware.pcie_generation=",),
        ("pools.gpu.hardware.pcie_generation=8",),
    ],
    "network-below-nic": [
        ("fabric.networks.ib.rate=25 Gb/s",),
        ("fabric.networks.ib.rate=200 Gb/s",),
    ],
    "nic-rate-mismatch": [
        ("fabric.networks.ib.rate=800 Gb/s",),
        ("fabric.networks.ib.kind=efa",),
        ("fabric.networks.ib.ports=16",),
    ],
    "multi-node-nvlink-wrong": [
        ("fabric.multi_node_nvlink=true",),
        ("fabric.multi_node_nvlink=true", "pools.gpu.shape="),
    ],
    "multi-node-nvlink-unused": [("pools.gpu.shape=gb200-nvl72-tray",)],
    "pool-off-compute-network": [
        (
            "workloads.finetune.train.gpus=16",
            "workloads.finetune.train.parallel={dp: 16}",
            "workloads.chat=",
            "fabric.networks.ib.pools=[control]",
        )
    ],
    "compute-oversubscribed": [
        ("fabric.networks.ib.oversubscription=2", "workloads.finetune.network_sensitivity=high"),
        ("fabric.networks.ib.oversubscription=2",),  # a collective over both nodes is accepted
        (
            "fabric.networks.ib.oversubscription=2",
            "acceptance.requirements.all-reduce-both-nodes=",
            "workloads.finetune.train.gpus=16",
            "workloads.finetune.train.parallel={dp: 16}",
            "workloads.chat=",
        ),
    ],
    "efa-without-placement-group": [("fabric.networks.ib.kind=efa",)],
    "cache-only-copy": [
        ("workloads.chat.payload.source=nvme",),
        ("workloads.finetune.train.checkpoint.to=nvme",),
        ("workloads.finetune.train.data=nvme",),
        ("storage.uses.outputs=nvme",),
        ("storage.stores.object.durable=false",),
    ],
    "cache-of-nothing": [
        ("storage.stores.nvme.cache_of=",),
        ("storage.stores.object.durable=false",),
        ("storage.stores.other={kind: file, durable: true}", "storage.stores.nvme.cache_of=other"),
    ],
    "payload-below-weights": [
        ("workloads.chat.payload.size=1 GB",),
        ("workloads.chat.payload.size=71 GB",),
        ("workloads.finetune.payload.size=10 GB",),
    ],
    "payload-above-source": [("storage.stores.object.read=1 GB/s",), ("storage.stores.object.read=",)],
    "payload-above-network": [
        ("fabric.networks.storage.rate=1 Gb/s",),
        ("fabric.networks.storage=",),
    ],
    "payload-above-cache": [("storage.stores.nvme.read=100 MB/s",)],
    "readers-above-design": [("storage.stores.object.readers=1",)],
    "cold-start-over-target": [("workloads.chat.target.cold_start=30 s",), ("storage.stores.object.read=",)],
    "checkpoint-stall": [
        ("workloads.finetune.train.checkpoint.mode=sync", "storage.stores.object.write=500 MB/s"),
        ("workloads.finetune.train.checkpoint.mode=sync", "storage.stores.object.write="),
    ],
    "checkpoint-restore-slow": [("workloads.finetune.train.checkpoint.restore_within=1 s",)],
    "restore-above-recovery": [("workloads.finetune.target.recovery=150 s",)],
    "lost-work-above-target": [("workloads.finetune.train.checkpoint.every=2 h",)],
    "checkpoint-interval-too-short": [("storage.stores.object.write=10 MB/s",)],
    "checkpoint-interval-off-optimum": [
        ("workloads.finetune.train.checkpoint.every=5 min", "workloads.finetune.train.checkpoint.mode=sync")
    ],
    "checkpoints-fill-store": [
        ("workloads.finetune.train.checkpoint.keep=1000", "storage.stores.object.capacity=1 TB")
    ],
    "queue-cycle": [("scheduling.queues.shared.parent=online",)],
    "guarantees-exceed-capacity": [
        ("scheduling.queues.training.guarantee={gpu: 5}",),
        ("pools.gpu.spares=1",),
        ("pools.gpu.shape=",),
        ("scheduling.queues.online.guarantee={control: 1}",),
    ],
    "capacity-in-no-queue": [("scheduling.queues.shared.guarantee=",)],
    "borrow-from-nothing": [("scheduling.queues.shared.guarantee=",), ("scheduling.queues.training.parent=",)],
    "borrow-above-reach": [("scheduling.queues.training.borrow={gpu: 12}",)],
    "queue-unreachable": [("scheduling.queues.students={parent: shared, borrow: {gpu: 0}, owner: x@example.com}",)],
    "queue-is-group": [("workloads.chat.queue=shared",)],
    "gang-exceeds-potential": [
        ("workloads.finetune.train.gpus=12", "workloads.finetune.train.parallel={dp: 12}"),
    ],
    "replicas-exceed-potential": [("workloads.chat.serve.replicas=3",)],
    "gang-exceeds-pool": [
        ("workloads.finetune.train.gpus=32", "workloads.finetune.train.parallel={dp: 32}"),
        ("pools.gpu.shape=",),
    ],
    "preemption-cannot-free": [("scheduling.preemption.reclaim=never", "scheduling.queues.online.borrow={gpu: 4}")],
    "preemption-without-grace": [
        ("scheduling.preemption.grace=",),
        ("scheduling.preemption.grace=1 s",),
    ],
    "priorities-inert": [("scheduling.preemption={within_queue: never}",)],
    "queue-spans-engines": [
        (
            "pools.batch={nodes: 'b-[1-2]', shape: hgx-h100-sxm-8, engine: slurm}",
            "scheduling.queues.online.guarantee={gpu: 8, batch: 8}",
        )
    ],
    "slack-queue-used": [("scheduling.queues.online.slack=true",)],
    "floor-unattainable": [
        ("acceptance.requirements.all-reduce-in-node.at_least=800 GB/s",),
        ("acceptance.requirements.all-reduce-both-nodes.at_least=900 GB/s",),
        ("acceptance.requirements.rdma-every-rail.at_least=500 Gb/s",),
        ("acceptance.requirements.cold-load.at_least=100 GB/s",),
        ("acceptance.requirements.all-reduce-in-node.conditions.operation=broadcast",),
        (
            "pools.gpu.shape=hgx-a100-sxm-8",
            "fabric.networks.ib.rate=100 Gb/s",
            "fabric.networks.ib.ports=4",
            "acceptance.requirements.all-reduce-both-nodes.at_least=300 GB/s",
        ),
        ("fabric.networks.ib.oversubscription=8",),
        ("fabric.networks.ib.oversubscription=1.5",),
        ("fabric.networks.ib.oversubscription=8", "fabric.networks.ib.in_network_reduction=true"),
        (
            "acceptance.requirements.all-reduce-in-node.metric=algbw",
            "acceptance.requirements.all-reduce-in-node.at_least=430 GB/s",
        ),
    ],
    "limit-unattainable": [
        ("acceptance.requirements.checkpoint-restore.at_most=1 s",),
        ("acceptance.requirements.chat-ttft.at_most=0 s",),
        ("acceptance.requirements.chat-cold-start.at_most=10 s",),
    ],
    "floor-vacuous": [
        ("acceptance.requirements.all-reduce-in-node.at_least=100 GB/s",),
        ("acceptance.requirements.rdma-every-rail.at_least=100 Gb/s",),
        ("acceptance.requirements.tasks-land-as-declared.at_least=0%",),
    ],
    "floor-size-missing": [
        ("acceptance.requirements.all-reduce-in-node.conditions.message_size=",),
        ("acceptance.requirements.all-reduce-in-node.conditions.operation=",),
        ("acceptance.requirements.rdma-every-rail.conditions=",),
    ],
    "floor-unit-suspect": [
        ("acceptance.requirements.all-reduce-in-node.source=nccl floor 400 Gb/s",),
        ("acceptance.requirements.rdma-every-rail.at_least=46 Gb/s",),
        ("acceptance.requirements.rdma-every-rail.source=46 GB/s by perftest",),
    ],
    "threshold-wrong-direction": [
        ("acceptance.requirements.chat-ttft.at_most=", "acceptance.requirements.chat-ttft.at_least=1 s"),
        ("acceptance.requirements.cold-load.at_least=", "acceptance.requirements.cold-load.at_most=10 GB/s"),
    ],
    "threshold-without-scope": [
        ("acceptance.requirements.no-xid.scope=",),
        ("acceptance.requirements.no-xid.scope.pool=", "pools.two={nodes: 'x-[1-2]', shape: hgx-h100-sxm-8}"),
        ("acceptance.requirements.chat-ttft.scope.workload=",),
    ],
    "scope-above-pool": [("acceptance.requirements.all-gpus-present.scope.nodes=3",)],
    "nodes-left-out": [("acceptance.requirements.all-gpus-present.scope.nodes=1",)],
    "requirement-below-target": [
        ("acceptance.requirements.chat-ttft.at_most=2 s",),
        ("acceptance.requirements.finetune-recovery.at_most=20 min",),
        ("acceptance.requirements.cold-load.at_least=1 GB/s",),
    ],
    "count-contradicts-pool": [("acceptance.requirements.all-gpus-present.equals=4",)],
    "image-claim-differs": [
        ("acceptance.requirements.chat-image.equals=sha256:" + "0" * 64,),
        ("acceptance.image=registry.example.com/other@sha256:" + "1" * 64,),
    ],
    "denominators-differ": [("economics.alternatives.api.denominator=GPU-h",)],
    "utilisation-allocated": [("economics.utilisation_means=allocated",)],
    "shares-not-whole": [
        ("economics.shares.idle=60%",),
        ("economics.shares.idle=20%",),
    ],
    "nothing-useful": [
        ("economics.shares.retries=100%",),
        ("economics.shares.idle=100%",),
        ("economics.shares.failed=100%", "economics.utilisation="),
    ],
    "colocation-and-power-twice": [
        ("economics.costs.power=8 ¢/kWh", "economics.costs.colocation=$170/kW-month"),
        ("economics.costs.power=8 ¢/kWh",),
    ],
    "owned-without-capital": [("pools.gpu.ownership=owned",)],
    "currencies-mixed": [("economics.costs.network=€900/month",)],
    "alternative-unpriced": [("economics.alternatives.on-demand.price=",)],
    "alternative-missing": [("economics.alternatives.api=",), ()],
    "term-exceeds-evidence": [("economics.term=3 years",), ("contract.term=3 years",)],
    "break-even-above-plan": [(), ("economics.utilisation=", "economics.shares.idle=")],
    "utilisation-below-load": [("economics.utilisation=45%",)],
    "price-off-market": [
        ("pools.gpu.price=$0.24/GPU-h",),
        ("pools.gpu.price=$3/h",),
        ("pools.gpu.price=$3/node-h",),
        ("pools.gpu.price=$2.40/month",),
        ("pools.gpu.price=$3000/GPU-h",),
        ("pools.gpu.price=$0/h",),
    ],
    "price-stale": [("economics.alternatives.api.date=2025-10-01",), ("economics.alternatives.api.date=2027-10-01",)],
    "input-stale": [("pools.gpu.price=",)],
    "only-outputs-needed": [("workloads.chat.needs=outputs", "workloads.finetune.needs=outputs")],
    "api-cheaper": [(), ("workloads.chat.needs=outputs",)],
    "model-mix-unstable": [("workloads.chat.model_changes_every=7 days",)],
    "nobody-operates": [("owners.duties.drivers=", "owners.network="), ("owners={workload: ml@example.com}",)],
    "bursty-and-idle": [("workloads.chat.pattern=bursty",), ("workloads.chat.pattern=bursty", "economics=")],
    "data-movement-dominates": [("economics.costs.storage=$400000/month",)],
    "contract-differs": [
        ("contract.nodes=4",),
        ("contract.gpu=h200-sxm-141",),
        ("contract.nics=4 x 200 Gb/s",),
    ],
    "contract-weaker": [(), ("contract.replacement_within=3 days",)],
    "contract-term-differs": [("contract.term=1 year",)],
    "waiver-expired": [("waivers=[{rule: api-cheaper, reason: known, owner: cto, expires: 2026-11-29}]",)],
    "waiver-too-long": [("waivers=[{rule: api-cheaper, reason: known, owner: cto, expires: 2028-11-29}]",)],
    "waiver-without-owner": [("waivers=[{rule: api-cheaper, reason: known, owner: TBD, expires: 2027-01-31}]",)],
    "waiver-unknown-rule": [("waivers=[{rule: api-cheap, reason: known, owner: cto, expires: 2027-01-31}]",)],
    "preemption-missing": [("scheduling.preemption=",)],
}

#: Rules that the example itself gives, or whose condition is worth a counterexample of its own → changes that do not.
SPARES: Final[dict[str, list[Changes]]] = {
    "fabric-manager-mismatch": [
        # From driver 620 on the versions may differ; without NVSwitch nothing needs Fabric Manager.
        ("software.profiles.gpu-node.driver=620.10.01", "software.profiles.gpu-node.fabric_manager=620.20.01"),
        ("software.profiles.gpu-node.fabric_manager=595.71.05", "pools.gpu.shape=l40s-pcie-8"),
    ],
    "fabric-manager-missing": [("software.profiles.gpu-node.fabric_manager=", "pools.gpu.shape=gb200-nvl72-tray")],
    "vbios-below-driver": [
        ("pools.gpu.hardware.vbios=96.00.67.00.01", "pools.gpu.hardware.gpu_subrevision=2"),
        ("pools.gpu.hardware.vbios=96.00.67.00.01", "software.profiles.gpu-node.driver=570.86.15"),
        ("pools.gpu.hardware.vbios=96.00.68.00.01",),
        ("pools.gpu.hardware.vbios=96.00.A0.00.01",),  # parts are hexadecimal
        ("pools.gpu.hardware.gpu_subrevision=",),
    ],
    "operator-kubernetes-unsupported": [("software.kubernetes=1.33.0",), ("software.kubernetes=1.37.9",)],
    "operator-os-unsupported": [("software.gpu_operator=26.7.0",)],
    "operator-containerd-unsupported": [("software.gpu_operator=",)],
    "operator-driver-unlisted": [("software.gpu_operator=",)],
    "kubelet-skew": [("software.profiles.gpu-node.kubelet=1.33.0",)],
    "version-not-exact": [
        ("software.kubernetes=v1.36.2+rke2r1",),
        ("software.profiles.gpu-node.kernel=5.14.0-503.el9.x86_64",),
        ("software.profiles.gpu-node.doca_ofed=24.10-1.1.4.0",),
        ("software.profiles.gpu-node.driver=595.91.07-0ubuntu1",),
    ],
    "driver-out-of-support": [("economics.term=1 month", "contract.starts=")],
    "roce-without-congestion": [
        (
            "fabric.networks.ib.kind=roce",
            "fabric.networks.ib.congestion={ecn: true, nic_settings: DCQCN on, switch_settings: ECN at 150 kB}",
        )
    ],
    "network-below-nic": [
        ("fabric.networks.ib.rate=400 Gb/s",),
        ("fabric.networks.ib.rate=200 Gb/s", "pools.gpu.hardware.pcie_generation=4"),  # the slot carries 252 Gb/s
    ],
    "compute-oversubscribed": [
        ("fabric.networks.ib.oversubscription=2", "acceptance.requirements.all-reduce-both-nodes="),
    ],
    "payload-below-weights": [
        ("workloads.chat.payload.size=72 GB",),
        ("workloads.chat.payload.size=1 GB", "workloads.chat.payload.artifacts=[adapter]"),
    ],
    "price-off-market": [
        ("pools.gpu.price=$19.20/node-h",),
        ("pools.gpu.price=$28000/month",),
        ("pools.gpu.price=$38.40/h",),
    ],
    "training-network-slow": [
        ("fabric.networks.ib.rate=25 Gb/s",),  # the job stays inside a node
        ("workloads.finetune.train.gpus=16", "workloads.finetune.train.parallel={dp: 16}", "workloads.chat="),
    ],
    "latency-unreachable": [("workloads.chat.serve.rate=80 req/s",)],  # load-above-capacity says so
    "nic-above-pcie": [("fabric.networks.ib.rate=200 Gb/s", "pools.gpu.hardware.pcie_generation=4")],
    "site-power-missing": [("cluster.delivery=provider-managed", "cluster.power=", "cluster.cooling=")],
    "node-power-missing": [("cluster.delivery=provider-managed", "pools.gpu.hardware.power=")],
    "no-out-of-band-path": [("cluster.delivery=provider-managed", "fabric.networks.oob=")],
    "network-role-missing": [("fabric.networks.ib=",)],  # every replica and job stays inside a node
    "load-above-capacity": [("workloads.chat.model=example/our-own-70b",)],  # memory-does-not-fit is undecided
    "roles-share-network": [
        (
            "fabric.networks.storage.roles=[storage, in-band]",
            "fabric.networks.storage.congestion={ecn: true}",
        )
    ],
    "multi-node-nvlink-wrong": [("fabric.multi_node_nvlink=true", "pools.gpu.shape=gb200-nvl72-tray")],
    "efa-without-placement-group": [
        ("fabric.networks.ib.kind=efa", "fabric.networks.ib.placement=one placement group")
    ],
    "no-failure-capacity": [
        ("workloads.chat.serve.replica_rate=8 req/s",),
        ("workloads.chat.serve.replica_rate=5 req/s", "workloads.chat.target.survive=0 nodes"),
    ],
    "replica-crosses-server": [("workloads.chat.serve.parallel={tp: 8}",)],
    "tp-does-not-divide-heads": [("workloads.chat.serve.parallel={tp: 8}",)],
    "tp-crosses-nvlink": [("workloads.chat.serve.parallel={tp: 16}", "pools.gpu.shape=gb200-nvl72-tray")],
    "workload-spans-different-pools": [
        ("pools.old={nodes: 'old-[1-2]', shape: hgx-h200-sxm-8}", "workloads.chat.pools=[gpu, old]"),
    ],
    "namespace-called-isolation": [
        ("access.tenancy=multi-tenant", "access.isolation=a namespace in a virtual machine per tenant"),
    ],
    "sharing-called-isolation": [("pools.gpu.sharing=time-slicing",)],
    "borrow-from-nothing": [("scheduling.queues.training.borrow={gpu: 0}",)],
    "guarantees-exceed-capacity": [("scheduling.queues.shared.guarantee={gpu: 3}",)],
    "preemption-cannot-free": [("scheduling.preemption.reclaim=never",)],
    "floor-vacuous": [("acceptance.requirements.all-reduce-in-node.at_least=200 GB/s",)],
    "floor-unattainable": [
        ("acceptance.requirements.all-reduce-in-node.at_least=600 GB/s",),
        (
            "fabric.networks.ib.in_network_reduction=true",
            "acceptance.requirements.all-reduce-both-nodes.at_least=800 GB/s",
        ),
    ],
    "floor-unit-suspect": [("acceptance.requirements.rdma-every-rail.at_least=200 Gb/s",)],
    "cuda-above-driver": [("software.profiles.gpu-node.cuda='12.9'",)],
    "nccl-cuda-mismatch": [("software.profiles.gpu-node.nccl=2.30.7",)],
    "precision-unsupported": [("workloads.chat.serve.precision=bf16", "pools.gpu.shape=hgx-a100-sxm-8")],
    "checkpoint-stall": [("workloads.finetune.train.checkpoint.mode=sync", "storage.stores.object.write=10 GB/s")],
    "price-stale": [("economics.alternatives.api.date=2026-09-01",)],
    "input-stale": [("workloads.finetune.train.mfu=45%",)],
    "term-exceeds-evidence": [("economics.term=11 months",)],
    "alternative-missing": [
        (
            "economics.alternatives.colo={kind: colocation, price: $2/GPU-h}",
            "economics.alternatives.own={kind: on-premises, price: $2/GPU-h}",
        )
    ],
    "break-even-above-plan": [("economics.alternatives=",)],
    "utilisation-below-load": [("economics.utilisation=10%",)],
    "api-cheaper": [
        ("economics.alternatives.api.input_price=$9/Mtok", "economics.alternatives.api.output_price=$9/Mtok"),
    ],
    "bursty-and-idle": [
        (
            "workloads.chat.pattern=bursty",
            "economics.alternatives.api.input_price=$9/Mtok",
            "economics.alternatives.api.output_price=$9/Mtok",
            "economics.alternatives.on-demand.price=$20/GPU-h",
        )
    ],
    "contract-weaker": [("contract.availability=99.9%",)],
    "nobody-operates": [("cluster.delivery=managed", "owners="), ("owners.duties.drivers=",)],
    "only-outputs-needed": [("workloads.chat.needs=outputs",)],
    "colocation-and-power-twice": [("economics.costs.power=8 ¢/kWh", "pools.gpu.ownership=owned")],
    "survive-untied": [("workloads.chat.pools=",)],
    "engine-version-missing": [("software.kueue=", "scheduling.queues=")],
    "addressing-missing": [()],
}
