"""Bytes that a training step must move out of a group of GPUs without NICs between them: a lower bound on its time.

Every term counts what has to cross the boundary of a domain (a node, or an NVLink domain of several), once, in one
direction of its links, whatever the algorithm; it is compared with the rate of all NICs of the domain together. Hidden
behind computation as far as it goes, the step then takes no less than the longer of the two.

Ranks are laid out tensor, context, data, pipeline from the inside out (Megatron-LM, arXiv:2104.04473, section 3.3, and
torchtitan's device mesh). Volumes: ZeRO, arXiv:1910.02054, section 7 (data parallel and ZeRO-1, 2: reduce-scatter and
all-gather, 2 Ψ; ZeRO-3: two all-gathers and a reduce-scatter, 3 Ψ, once per step at least); a pipeline sends the
activations of every token forward and their gradients back; context parallelism gathers keys and values and scatters
their gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: B per element of gradients, activations, keys and values in mixed-precision training.
ELEMENT_BYTES: Final = 2.0


@dataclass(frozen=True, slots=True)
class Ranks:
    """Widths of the layout, and GPUs of a domain that talk without a NIC."""

    tp: int
    pp: int
    dp: int
    cp: int
    domain: int

    @property
    def copies(self) -> int:
        """Ranks that hold or shard the same weights: data and context parallel ones."""
        return self.dp * self.cp

    @property
    def here(self) -> int:
        """Of those, ranks in one domain."""
        return max(1, min(self.copies, self.domain // self.tp))

    @property
    def domains(self) -> float:
        """Domains over which the copies spread."""
        return self.copies / self.here

    @property
    def stages_here(self) -> int:
        """Pipeline stages in one domain."""
        return max(1, min(self.pp, self.domain // (self.tp * self.copies)))

    @property
    def leaves(self) -> bool:
        """Whether the job is larger than a domain."""
        return self.tp * self.pp * self.copies > self.domain


def weights_bytes(ranks: Ranks, parameters: float, gather_bytes: float, sharded: bool, reduces_inside: bool) -> float:
    """B of weights and gradients that enter a domain per step.

    Args:
        parameters: of the whole model that are exchanged among all copies.
        gather_bytes: per gathered weight.
        sharded: ZeRO-3 or FSDP; else data parallel, ZeRO-1 or ZeRO-2.
        reduces_inside: switches add up: a gradient then leaves once and its sum is counted with the gather.
    """
    outside = 1 - 1 / ranks.domains
    mine = parameters * ranks.stages_here / ranks.pp * outside
    gathers = 2 if sharded else 1
    return mine * (gathers * gather_bytes + (0 if reduces_inside else ELEMENT_BYTES))


def pipeline_bytes(ranks: Ranks, tokens: float, hidden: float) -> float:
    """B of activations and their gradients that leave the busiest domain per step of `tokens`."""
    if ranks.pp == ranks.stages_here:
        return 0.0
    ways = 2 if ranks.pp // ranks.stages_here > 2 else 1
    return tokens * ranks.here / ranks.copies * hidden * ELEMENT_BYTES * ways


def context_bytes(ranks: Ranks, tokens: float, layers: float, kv_width: float) -> float:
    """B of keys and values, and of their gradients, that enter a domain per step when context ranks leave it.

    Args:
        kv_width: key and value elements of one token and layer.
    """
    inside = max(1, ranks.domain // ranks.tp)
    if ranks.cp <= inside:
        return 0.0
    return tokens / ranks.dp * (1 - inside / ranks.cp) * layers / ranks.pp * kv_width * ELEMENT_BYTES * 2
