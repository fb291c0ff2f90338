"""What `cw fit --write` writes is what `cw plan` plans: layout, replicas, speed, memory and money, for any question.

Without the layout in the file the plan finds the same one itself.
"""

from __future__ import annotations

import datetime
import re

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.plan.engines import file_layout
from clusterwright.plan.fitting.answers import ServingAnswer, answer_serving
from clusterwright.plan.fitting.documents import architecture_text
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.trainings import TrainingAnswer, answer_training
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan

CATALOGUE = load_catalogue()
TODAY = datetime.date(2026, 6, 30)
CHAT = {"rate": "20", "in": "1000", "out": "250", "ttft": "2s", "tpot": "60ms", "survive": "1", "price": "2.5"}
LLAMA, MOE = "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-V3"
SERVICES: list[tuple[str, str, dict[str, str]]] = [
    ("llama-3.1-8b", "h100", CHAT),
    ("llama-3.1-8b", "l40s", CHAT | {"engine": "sglang"}),
    (LLAMA, "h100", CHAT | {"engine": "sglang"}),
    (LLAMA, "a100-80", CHAT | {"engine": "tensorrt-llm"}),
    (LLAMA, "h200", CHAT | {"survive": "2", "weights": "fp8", "context": "32768"}),
    (LLAMA, "h100", {"gpus": "4", "rate": "3", "price": "2"}),
    (MOE, "h200", CHAT),
    (MOE, "h200", CHAT | {"engine": "sglang", "at": "p99"}),
    (MOE, "gb200", CHAT | {"at": "mean"}),
    (MOE, "mi300x", CHAT),
    ("moonshotai/Kimi-K2-Instruct", "h200", CHAT | {"engine": "tensorrt-llm"}),
    ("moonshotai/Kimi-K2-Instruct", "b200", CHAT),
    ("openai/gpt-oss-120b", "h100", CHAT | {"goal": "domain"}),
    ("openai/gpt-oss-120b", "h100", CHAT | {"goal": "throughput"}),
    ("Qwen/Qwen3-235B-A22B", "h200", CHAT | {"reuse": "40%", "in_p95": "4000", "kv": "fp8"}),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "h100", CHAT | {"engine": "sglang"}),
    ("google/gemma-3-27b-it", "h100", CHAT),
    ("meta-llama/Llama-3.1-405B-Instruct", "h100", CHAT),
]
#: Questions about requests in flight, or about one replica: the file asks for what its replicas carry of arrivals.
IN_FLIGHT: list[tuple[str, str, dict[str, str]]] = [
    ("llama-3.1-8b", "h100", {"price": "2"}),
    ("llama-3.1-8b", "h100", {"concurrency": "200", "ttft": "1s", "tpot": "30ms"}),
    (LLAMA, "h100", {"budget": "$20000/month", "price": "2"}),
]
JOBS: list[tuple[str, str, dict[str, str]]] = [
    ("llama-3.1-8b", "h100", {"tokens": "100G", "gpus": "64"}),
    ("llama-3.1-8b", "a100-80", {"tokens": "100G", "gpus": "16", "framework": "deepspeed"}),
    (LLAMA, "h200", {"tokens": "100G", "gpus": "64", "framework": "torchtitan"}),
    (LLAMA, "h100", {"tokens": "1G", "gpus": "8", "method": "lora"}),
    (MOE, "h100", {"tokens": "1T", "gpus": "1024", "precision": "fp8"}),
    ("Qwen/Qwen3-30B-A3B", "h100", {"tokens": "100G", "gpus": "32"}),
]


def named(case: tuple[str, str, dict[str, str]]) -> str:
    model, machine, options = case
    beside = "-".join(f"{k}={v}" for k, v in options.items() if CHAT.get(k) != v)
    return f"{model.rpartition('/')[2]}-{machine}-{beside}"


def ask(model: str, machine: str, options: dict[str, str]) -> ServingAnswer:
    decoder = CATALOGUE.find_decoder(model)
    assert decoder is not None
    wants = read_wants({name.replace("_", "-"): text for name, text in options.items()})
    return answer_serving(model, decoder, [find_machine(CATALOGUE, machine)], wants, CATALOGUE, TODAY)


def plan_of(text: str) -> Plan:
    return plan_architecture(parse_architecture(Source("cluster.yaml", text)), CATALOGUE)


def without(text: str, *keys: str) -> str:
    return re.sub(rf"      ({'|'.join(keys)}): .*\n", "", text)


def service(plan: Plan) -> tuple[WorkloadPlan, ServicePlan]:
    found = plan.workload("service")
    assert found is not None
    assert isinstance(found.service, ServicePlan)
    return found, found.service


@pytest.mark.parametrize("case", SERVICES, ids=named)
def test_a_service_is_planned_as_it_was_answered(case: tuple[str, str, dict[str, str]]) -> None:
    answer = ask(*case)
    fit, best, text = answer.first, answer.first.chosen, architecture_text(answer)
    assert fit.per_h is not None
    assert fit.per_mtok_out is not None
    plan = plan_of(text)
    assert not plan.misfits
    planned, served = service(plan)
    assert planned.layout is not None
    assert str(planned.layout) == str(file_layout(best.layout))
    assert (planned.replicas_wanted, planned.replicas_placed) == (best.replicas, best.replicas)
    assert (served.replicas_for_load, served.replicas_for_failures) == (best.needed, best.replicas)
    assert served.replica_rate.value == pytest.approx(best.requests_s, rel=1e-6)  # type: ignore[union-attr]
    assert served.costs is not None
    assert [figure.value for figure in served.costs] == pytest.approx(
        [fit.per_h.value, fit.per_mtok_out.value], rel=1e-5
    )

    own = plan_of(without(text, "replicas", "parallel"))
    found, alone = service(own)
    assert not own.misfits
    assert str(found.layout) == str(planned.layout)
    assert found.replicas_wanted == best.replicas
    assert alone.costs is not None
    assert alone.costs[0].value == pytest.approx(fit.per_h.value, rel=1e-5)


@pytest.mark.parametrize("case", IN_FLIGHT, ids=named)
def test_requests_in_flight_are_written_as_what_the_replicas_carry(case: tuple[str, str, dict[str, str]]) -> None:
    answer = ask(*case)
    best, plan = answer.first.chosen, plan_of(architecture_text(answer))
    assert not plan.misfits
    planned, served = service(plan)
    assert str(planned.layout) == str(file_layout(best.layout))
    assert planned.replicas_wanted == best.replicas
    assert served.replicas_for_load == best.needed
    assert served.rate.value <= answer.first.load_s


def train(model: str, machine: str, options: dict[str, str]) -> TrainingAnswer:
    decoder = CATALOGUE.find_decoder(model)
    assert decoder is not None
    wants = read_wants(options | {"price": "2"}, train=True)
    return answer_training(model, decoder, [find_machine(CATALOGUE, machine)], wants, CATALOGUE, TODAY)


@pytest.mark.parametrize("case", JOBS, ids=named)
def test_a_job_is_planned_as_it_was_answered(case: tuple[str, str, dict[str, str]]) -> None:
    answer = train(*case)
    best, text = answer.first.chosen, architecture_text(answer)
    for written in (text, without(text, "parallel")):
        plan = plan_of(written)
        assert not plan.misfits
        job = plan.workload("job")
        assert job is not None
        assert str(job.layout) == str(file_layout(best.layout))
        assert isinstance(job.memory, MemoryPlan)
        assert job.memory.total.value == pytest.approx(best.memory_gib, rel=1e-6)
        assert isinstance(job.training, TrainingPlan)
        assert job.training.tokens_per_s.value == pytest.approx(best.tokens_s, rel=1e-6)  # type: ignore[union-attr]
        month = answer.first.per_h
        assert month is not None
        spares = 1 - best.gpus / (best.gpus + 8 * (answer.first.lost.spares or 0))
        assert plan.compute_month is not None
        assert plan.compute_month.value * (1 - spares) == pytest.approx(month * 730, rel=1e-6)


def test_virtual_stages_may_hold_a_table_alone() -> None:
    """32 layers with embedding and head fill 34 virtual stages, as Megatron counts them, and no more."""
    text = without(architecture_text(train("llama-3.1-8b", "h100", {"gpus": "64", "tokens": "1G"})), "parallel")

    def parallel(sizes: str) -> list[str]:
        said = text.replace("      gpus: 64\n", f"      gpus: 64\n      parallel: {sizes}\n")
        return [misfit.message for misfit in plan_of(said).misfits]

    assert not parallel("{tp: 2, pp: 2, dp: 16, vp: 17}")
    job = plan_of(
        text.replace("      gpus: 64\n", "      gpus: 64\n      parallel: {tp: 2, pp: 4, dp: 8, vp: 9}\n")
    ).workload("job")
    assert job is not None
    assert "32 layers do not fill 36 stages" in str(job.memory)
