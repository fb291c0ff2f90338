"""How a replica over several nodes is started."""

from __future__ import annotations

import datetime
import re

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.plan.fitting.answers import answer_serving
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.spanning import over_nodes

TODAY = datetime.date(2026, 6, 30)


def fit(model: str, machine: str, **options: str) -> ServingFit:
    catalogue = load_catalogue()
    decoder = catalogue.find_decoder(model)
    assert decoder is not None
    found = find_machine(catalogue, machine)
    return answer_serving(model, decoder, [found], read_wants(options), catalogue, TODAY).first


def test_nothing_is_said_of_a_replica_that_a_node_holds() -> None:
    assert over_nodes(fit("llama-3.3-70b", "h100", rate="5")) == ""


def test_data_parallel_ranks_of_vllm_are_numbered_over_nodes_so_that_every_rank_is_there_once() -> None:
    found = fit("deepseek-v3", "gb200-nvl72", rate="50", ttft="2s", tpot="50ms", **{"in": "4000", "out": "1000"})
    text = over_nodes(found)
    local = int(re.findall(r"--data-parallel-size-local (\d+)", text)[0])
    starts = re.findall(r"--data-parallel-start-rank (.*)\.", text)[0]
    assert found.chosen.layout.dp == local * found.chosen.domain_nodes
    assert starts.startswith(f"{local}, {2 * local}, ")
    assert starts.endswith(f" {found.chosen.layout.dp - local}")


@pytest.mark.parametrize(
    ("version", "flag"),
    [("0.11", "--distributed-executor-backend ray"), ("0.12", "--nnodes 2 --node-rank 0 or 1 --master-addr")],
)
def test_stages_of_vllm_over_nodes_need_ray_before_its_own_processes_could(version: str, flag: str) -> None:
    wide = fit("llama-3.1-405b", "h100", rate="1", engine=f"vllm {version}")
    assert wide.chosen.layout.dp == 1
    assert wide.chosen.layout.gpus == 16
    assert flag in over_nodes(wide)


def test_sglang_and_tensorrt_llm_start_as_their_documentation_says() -> None:
    sglang = fit("deepseek-v3", "h100", rate="2", engine="sglang")
    nodes = -(-sglang.chosen.layout.gpus // 8)
    assert f"--nnodes {nodes} --node-rank 0 " in over_nodes(sglang)
    assert "--dist-init-addr" in over_nodes(sglang)
    trtllm = fit("deepseek-v3", "h100", rate="2", engine="tensorrt-llm")
    assert f"-n {trtllm.chosen.layout.gpus} trtllm-llmapi-launch" in over_nodes(trtllm)
