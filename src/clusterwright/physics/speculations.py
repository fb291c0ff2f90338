"""Speculative decoding: some tokens are drafted one after another, then all are verified in one pass.

Source: Leviathan, Kalman, Matias, Fast inference from transformers via speculative decoding, ICML 2023, equation 1:
with acceptance a of each draft token and k drafts a step keeps (1 − a^(k+1)) ÷ (1 − a) tokens, the one that the
verification itself gives included; draft tokens are accepted on their own and alike.
"""

from __future__ import annotations

import math
from dataclasses import replace

from clusterwright.physics.serving.sides import Side


def kept_tokens(acceptance: float, drafts: float) -> float:
    """Mean tokens that one step keeps.

    Args:
        acceptance: of one draft token, 0 to 1.
        drafts: tokens that are drafted in a step.
    """
    if acceptance >= 1:
        return drafts + 1
    return (1.0 - math.pow(acceptance, drafts + 1)) / (1.0 - acceptance)


def drafted_side(verifies: Side, drafts: Side, count: int) -> Side:
    """The worker whose step drafts `count` tokens one by one and verifies `count` + 1 tokens of a sequence at once.

    Its step is one of `count` + 1 tokens a sequence (`steps.step_terms` with that width). What a pass of the draft
    takes whatever it holds is added `count` times; what follows tokens counts `count` ÷ (`count` + 1) of the width.
    Where one of both is bound by memory and the other by products the step is up to the smaller of both short.
    """
    each = count / (count + 1)
    return replace(
        verifies,
        layers=verifies.layers + count * drafts.layers,
        expert_layers=verifies.expert_layers + count * drafts.expert_layers,
        dense_read=verifies.dense_read + count * drafts.dense_read,
        dense_math=verifies.dense_math + each * drafts.dense_math,
        expert_read=verifies.expert_read + count * drafts.expert_read,
        expert_math=verifies.expert_math + each * drafts.expert_math,
        piece_read=(*verifies.piece_read, *(count * p for p in drafts.piece_read)),
        piece_decode=(*verifies.piece_decode, *(each * p for p in drafts.piece_decode)),
        piece_prefill=(*verifies.piece_prefill, *drafts.piece_prefill),
        piece_limit=(*verifies.piece_limit, *drafts.piece_limit),
        state_read=verifies.state_read + count * drafts.state_read,
        reduce_s=verifies.reduce_s + each * drafts.reduce_s,
        reduces=verifies.reduces + count * drafts.reduces,
        exchange_s=verifies.exchange_s + each * drafts.exchange_s,
        exchanges=verifies.exchanges + count * drafts.exchanges,
        hand_bytes=verifies.hand_bytes + drafts.hand_bytes,
    )
