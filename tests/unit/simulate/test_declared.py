"""From a declared architecture to a scenario."""

import pytest
from tests.builders.plans import CATALOGUE
from tests.builders.simulations import kind

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.queueing.policies import Backfill, Reclaim
from clusterwright.simulate.declaring import scenario_of
from clusterwright.simulate.jobs import SimJob, list_jobs
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.outcomes import cost
from clusterwright.simulate.scenarios import NodeLoss

_FILE = """
apiVersion: clusterwright/v1alpha1
cluster: test
pools:
  gpu: {nodes: "gpu-[1-4]", shape: hgx-h100, price: $2.00/GPU-h, spares: 1}
  small: {nodes: "s-[1-2]", hardware: {gpus: 4}, price: $6.00/node-h}
  login: {nodes: login-1, role: login}
scheduling:
  engine: slurm
  node_loss: replace
  backfill: easy
  retries: {limit: 3, backoff: 20 s}
  preemption: {reclaim: any}
  queues:
    a: {guarantee: {gpu: 16, small: 8}}
    b: {guarantee: {gpu: 8}}
"""


def declared(text, rows=()):
    document = parse_architecture(Source("cluster.yaml", text))
    return scenario_of(document, CATALOGUE, list_jobs(rows))


def test_pools_are_flavors_and_the_last_nodes_are_spares():
    found = declared(_FILE)
    assert [(n.name, n.flavor, n.gpus) for n in found.scenario.nodes] == [
        ("gpu-1", "gpu", 8),
        ("gpu-2", "gpu", 8),
        ("gpu-3", "gpu", 8),
        ("gpu-4", "gpu", 8),
        ("s-1", "small", 4),
        ("s-2", "small", 4),
    ]
    assert found.scenario.spares == (3,)
    assert found.gpus_per_node == {"gpu": 8, "small": 4}


def test_scheduling_is_taken_as_declared():
    found = declared(_FILE, [SimJob(0, 10, kind(8, queue="a"))]).scenario
    assert found.node_loss is NodeLoss.REPLACE
    assert found.policy.backfill is Backfill.EASY
    assert found.policy.preemption.reclaim is Reclaim.ANY
    assert found.tree.leaves
    assert (found.jobs.kinds[0].retries, found.jobs.kinds[0].backoff_ms) == (3, 20_000)


def test_prices_become_money_per_gpu_hour():
    found = declared(_FILE, [SimJob(0, 3600, kind(8, queue="a"))]).scenario
    assert (found.prices, found.currency) == ({"gpu": 2.0, "small": 1.5}, "USD")
    assert cost(simulate(found)).total == pytest.approx(32 * 2.0 + 8 * 1.5)


def test_what_the_file_does_not_say_is_named():
    bare = 'apiVersion: clusterwright/v1alpha1\ncluster: test\npools: {gpu: {nodes: "g-[1-2]", hardware: {gpus: 8}}}\n'
    said = " ".join(declared(bare).unsaid)
    assert "node_loss" in said
    assert "cost" in said
    assert "without quotas" in said


def test_a_file_without_gpus_cannot_be_simulated():
    with pytest.raises(InvalidInput, match="no worker pool has GPUs"):
        declared("apiVersion: clusterwright/v1alpha1\ncluster: test\n")
