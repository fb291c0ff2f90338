"""Why a layout is not possible, as a number that fits a column; the first rule that a layout breaks counts."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """0 where nothing speaks against a layout. The order is that in which the rules are asked."""

    NONE = 0
    ENGINE = 1
    COPIES = 2
    POOL = 3
    NODES = 4
    DOMAIN = 5
    NETWORK = 6
    HEADS = 7
    KV_HEADS = 8
    STATES = 9
    WIDTHS = 10
    BLOCKS = 11
    EXPERTS = 12
    LAYERS = 13
    BATCH = 14
    CONTEXT = 15
    FORMAT = 16
    MEMORY = 17
    HOST = 18
    TTFT = 19
    TPOT = 20
    LOAD = 21
    DEADLINE = 22


#: What each rule says, in words that hold for any layout.
WORDS: dict[Reason, str] = {
    Reason.NONE: "possible",
    Reason.ENGINE: "the engine does not run such groups",
    Reason.COPIES: "whole copies are replicas of their own",
    Reason.POOL: "more GPUs than the pool has",
    Reason.NODES: "does not fill whole nodes",
    Reason.DOMAIN: "tensor ranks leave the GPUs that are linked to each other",
    Reason.NETWORK: "leaves its node, and no network is known",
    Reason.HEADS: "query heads do not divide",
    Reason.KV_HEADS: "KV heads neither divide nor repeat evenly",
    Reason.STATES: "heads of recurrent states do not divide",
    Reason.WIDTHS: "widths of feed-forward blocks do not divide",
    Reason.BLOCKS: "cuts blocks of weights that share a scale",
    Reason.EXPERTS: "experts do not divide",
    Reason.LAYERS: "layers do not divide into the stages",
    Reason.BATCH: "the batch does not divide",
    Reason.CONTEXT: "sequences longer than the model's own limit",
    Reason.FORMAT: "the GPU has no unit for the weights' format",
    Reason.MEMORY: "does not fit the GPU's memory",
    Reason.HOST: "what is offloaded does not fit the host's memory",
    Reason.TTFT: "misses the time to first token even without other load",
    Reason.TPOT: "misses the time per token even without other load",
    Reason.LOAD: "the load takes more GPUs than the pool has",
    Reason.DEADLINE: "does not end by the deadline",
}
