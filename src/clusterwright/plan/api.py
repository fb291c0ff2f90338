"""The planner as functions, for scripts and notebooks; `clusterwright.plan` has every name of this module.

Values in, values out: nothing is read or written. `clusterwright.planner` looks models, GPUs and constants up in the
catalogue. Functions without "arrays" or a unit in their name answer one setting with all its terms; the others take
arrays that broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.model.huggingface import parse_config
from clusterwright.physics.engines.arrays import Evaluated
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.failures import daly_higher_s, daly_s, ettr, ettr_exact, mttf_h, waste, young_s
from clusterwright.physics.failures import spares as spare_nodes
from clusterwright.physics.hierarchies import Fabric, expert_exchange_us, hierarchical_all_reduce_us
from clusterwright.physics.layouts import Layout
from clusterwright.physics.money import gpu_hour, per_million_tokens
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.training.calibration import SpeedConstants
from clusterwright.physics.training.memory import TrainingMemory
from clusterwright.physics.training.memory import training_memory as job_memory
from clusterwright.physics.training.recipes import MemoryConstants, Recipe
from clusterwright.physics.training.runs import Checkpointing, Run, plan_run
from clusterwright.physics.training.speed import StepTime
from clusterwright.physics.training.stages import bubble_share
from clusterwright.physics.waiting import mean_wait_s
from clusterwright.plan.estimating.memories import (
    engine_memory,
    engine_memory_arrays,
    job_memory_gib,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
)
from clusterwright.plan.estimating.speeds import (
    EngineSpeed,
    collective_time_us,
    engine_speed,
    job_speed,
    job_step_s,
)
from clusterwright.plan.searching.questions import Lengths, Losses, Pool, ServingQuestion, TrainingQuestion
from clusterwright.plan.searching.serving import ServingSearch, search_serving
from clusterwright.plan.searching.training import TrainingSearch, search_training

__all__ = [
    "Checkpointing", "Constants", "Decoder", "EngineMemory", "EngineSpeed", "Evaluated", "Fabric", "Gpu", "Layout",
    "Lengths", "Losses", "MemoryConstants", "Pool", "Recipe", "Run", "ServingQuestion", "ServingSearch",
    "SpeedConstants", "StepTime", "TrainingMemory", "TrainingQuestion", "TrainingSearch", "bubble_share",
    "collective_time_us", "daly_higher_s", "daly_s", "engine_memory", "engine_memory_arrays", "engine_speed",
    "ettr", "ettr_exact", "expert_exchange_us", "gpu_hour", "hierarchical_all_reduce_us", "job_memory",
    "job_memory_gib", "job_speed", "job_step_s", "kv_bytes_per_sequence", "kv_bytes_per_token", "mean_wait_s",
    "model_from_config", "mttf_h", "per_million_tokens", "plan_run", "search_serving", "search_training",
    "spare_nodes", "waste", "young_s",
]  # fmt: skip


def model_from_config(
    config: Mapping[str, Any], name: str = "", *, quantization: Mapping[str, Any] | None = None
) -> Decoder:
    """A model layer by layer from the content of its `config.json`.

    Args:
        quantization: content of `hf_quant_config.json` where the checkpoint has one.

    Raises:
        UnknownArchitecture: a family that is not counted exactly; says what is missing.
    """
    return parse_config(config, name=name, quantization=quantization)
