"""Numbers of GPUs that a job may take, fewest first, without those that arithmetic rules out at once."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.scales import GIB
from clusterwright.physics.training.states import states_of
from clusterwright.plan.searching.machines import reported_gib, system
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.training_columns import flop_per_token, host_gib, host_room_gib

#: Most GPUs that are tried where the pool has no limit.
_MOST: Final = 32768


def job_sizes(question: TrainingQuestion) -> list[int]:
    """Whole nodes, and powers of two GPUs within one: 1, 2, 3 or 4 … × a power of two; at least one size.

    Left out: fewer GPUs than hold the states divided evenly, and fewer than end in time at peak rate.
    """
    node, most = question.pool.gpus_per_node, question.pool.gpus or _MOST
    inside = {1 << i for i in range(node.bit_length()) if 1 << i < node}
    nodes = {base << i for base in (1, 3) for i in range(max(most // node, 1).bit_length())}
    sizes = sorted(size for size in inside | {node * count for count in nodes} if size <= most)
    least = _least(question)
    return [size for size in sizes if size >= least] or [most]


def _least(question: TrainingQuestion) -> float:
    recipe, parameters = question.recipe, question.decoder.parameters
    least = 1.0
    if recipe.adapter_rank is None:
        states = states_of(recipe)
        divided = sum(held.divided + held.whole for held in (states.weights, states.gradients, states.optimizer))
        least = parameters * divided / (reported_gib(question.pool.gpu) * GIB)
    if question.pool.host_gib is not None:
        least = max(least, host_gib(question, 1) / host_room_gib(question))
    if question.tokens is not None and question.deadline_s:
        peak = system(question.pool).peak(recipe.precision)
        least = max(least, question.tokens * flop_per_token(question) / question.deadline_s / peak)
    return least
