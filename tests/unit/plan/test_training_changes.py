"""What a file could change so that its training fits, and what its hosts must hold."""

from __future__ import annotations

import pytest

from builders.decoders import LLAMA, decoder
from builders.plans import document
from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.memory import training_memory
from clusterwright.physics.training.recipes import Recipe
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.training_changes import training_changes

LARGE = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672}


def test_changes_are_fields_of_the_file_and_those_that_fit_come_first() -> None:
    model, pool = decoder(LLAMA, **LARGE), find_machine(load_catalogue(), "dgx-h100").pool(16, None)
    recipe = Recipe(sharding="distributed", recompute="none", sequence=8192, micro_batch=2, global_batch=64)
    found = training_changes(model, Layout(tp=8, dp=2), recipe, pool, 79.1)
    assert found
    fields = ("recompute:", "micro_batch:", "sharding:", "offload:", "parallel:")
    assert all(change.what.startswith(fields) for change in found)
    assert [change.fits for change in found] == sorted((c.fits for c in found), reverse=True)


@pytest.mark.parametrize("sharding", ["zero3", "fsdp"])
def test_what_is_said_to_fit_fits(sharding) -> None:
    model, pool = decoder(LLAMA, **LARGE), find_machine(load_catalogue(), "dgx-h100").pool(8, None)
    framework = "deepspeed" if sharding == "zero3" else "torchtitan"
    recipe = Recipe(framework=framework, sharding=sharding, recompute="full", sequence=4096, global_batch=64)
    found = {c.what.split(" (")[0]: c for c in training_changes(model, Layout(dp=8), recipe, pool, 79.1)}
    changed = Recipe(
        framework=framework, sharding=sharding, recompute="full", sequence=4096, global_batch=64, offload="parameters"
    )
    assert found["offload: parameters"].fits
    assert training_memory(model, Layout(dp=8), changed).fits(79.1)


OFFLOADED = """
apiVersion: clusterwright/v1alpha1
cluster: {name: c}
pools: {gpu: {nodes: "gpu-[1-2]", shape: dgx-h100}}
workloads:
  job:
    model: meta-llama/Llama-3.3-70B-Instruct
    train:
      framework: torchtitan
      precision: bf16
      sequence: 8192 tokens
      global_batch: 64
      gpus: 8
      parallel: {tp: 8}
      sharding: fsdp
      offload: parameters
      recompute: full
"""


@pytest.mark.parametrize(("gpus", "held"), [(8, True), (4, False)])
def test_a_host_that_cannot_hold_what_is_offloaded_is_named(gpus, held) -> None:
    """18 B for each of 70.55 G parameters: 148 GiB for each of 8 GPUs, 296 for each of 4; a GPU's share is 256."""
    job = "workloads.job.train"
    read = document(OFFLOADED, f"{job}.gpus={gpus}", f"{job}.parallel.tp={gpus}")
    said = [m for m in plan_architecture(read, load_catalogue()).misfits if "the host would hold" in m.message]
    assert [m.path for m in said] == ([] if held else [f"{job}.offload"])
