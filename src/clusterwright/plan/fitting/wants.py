"""What is wanted of a fit, as values; `reading` makes it from options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from clusterwright.lib.scales import DAY_S
from clusterwright.plan.fitting.prices import Hours

Goal = Literal["cost", "latency", "throughput", "domain"]
Method = Literal["full", "lora", "qlora"]
Offload = Literal["none", "optimizer", "parameters"]
Trainer = Literal["megatron", "torchtitan", "deepspeed"]


@dataclass(frozen=True)
class Money:
    """An amount, per month where `monthly`, else once."""

    value: float
    currency: str
    monthly: bool


@dataclass(frozen=True)
class ServingWants:
    """Inference; see `plan.searching.questions.ServingQuestion` for what each means.

    Args:
        utilisation: share of the load that money is counted for, on average over the day, of the stated rate.
        context: longest sequence that must fit, None where not stated.
        version: release of the engine as planned. asked_version: as asked for, where that one is not modelled.
    """

    rate: float | None = None
    concurrency: float | None = None
    mean_in: float = 2000.0
    mean_out: float = 300.0
    p95_in: float | None = None
    p95_out: float | None = None
    reused_share: float = 0.0
    ttft_s: float | None = None
    tpot_s: float | None = None
    quantile: float | None = 0.95
    survive_nodes: int = 0
    context: int | None = None
    engine: str = "vllm"
    version: tuple[int, int] | None = None
    asked_version: tuple[int, int] | None = None
    weights: str | None = None
    kv_format: str = "auto"
    memory_share: float | None = None
    utilisation: float = 1.0
    goal: Goal = "cost"


@dataclass(frozen=True)
class TrainingWants:
    """Training; see `plan.searching.questions.TrainingQuestion`.

    Args:
        framework: "" for the one that offers what is wanted.
        method: full; lora (adapters over 16-bit weights); qlora (adapters over 4-bit weights). rank: of adapters.
        offload: what the host holds: none, optimizer, parameters (with gradients and optimizer).
        failures: of nodes per 1,000 node-days, None for a published cluster's.
        store_bytes_s: of the storage that checkpoints go to, all nodes together; None for a rate per node.
        repair_s: until a failed node is back.
    """

    tokens: float | None = None
    sequence: int = 8192
    global_batch: int | None = None
    precision: str = "bf16"
    framework: str = ""
    deadline_s: float | None = None
    method: Method = "full"
    rank: int = 16
    offload: Offload = "none"
    failures: float | None = None
    restart_s: float = 600.0
    repair_s: float = DAY_S
    store_bytes_s: float | None = None

    @property
    def adapters(self) -> bool:
        """Whether weights stay frozen under adapters."""
        return self.method != "full"

    @property
    def trainer(self) -> Trainer:
        """The framework: Megatron, whose speed was held to most runs, where it offers what is wanted, else FSDP2."""
        if self.framework:
            return cast("Trainer", self.framework)
        return "torchtitan" if self.method == "qlora" or self.offload == "parameters" else "megatron"


@dataclass(frozen=True)
class Wants:
    """Everything that was asked beside model and machines.

    Args:
        training: None where the question is about inference.
        gpus: that there are. budget, power_w: that may be spent: the question is then what one gets for it.
        hours: prices per GPU-hour, those that count first. pue: for power.
        stated, profiled: names of options that the question or the profile gave; the others are assumed.
    """

    serving: ServingWants = ServingWants()
    training: TrainingWants | None = None
    gpus: int | None = None
    budget: Money | None = None
    power_w: float | None = None
    hours: tuple[Hours, ...] = ()
    pue: float = 1.25
    spares_target: float = 0.99
    stated: frozenset[str] = field(default=frozenset())
    profiled: frozenset[str] = field(default=frozenset())

    @property
    def inverse(self) -> bool:
        """Whether what is asked is what a budget or a power gives."""
        return self.budget is not None or self.power_w is not None

    def origin(self, option: str) -> str:
        """Where the value of an option comes from: stated, profile or assumed."""
        return "stated" if option in self.stated else "profile" if option in self.profiled else "assumed"
