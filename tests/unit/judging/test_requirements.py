"""Every target of a brief ends up as a claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clusterwright.judging.requirements import Claim, collect_claims
from clusterwright.judging.sites import site_of
from clusterwright.model.architecture import Architecture
from clusterwright.model.parsing import Source, parse_architecture
from clusterwright.model.workloads import Target

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-workers" / "cluster.yaml"
SERVE = {"engine": "vllm 0.11", "precision": "fp8", "in": "1000 tokens", "out": "250 tokens", "rate": "8 req/s"}


def architecture(workloads: dict[str, Any], requirements: dict[str, Any] | None = None) -> Architecture:
    return Architecture.model_validate(
        {
            "apiVersion": "clusterwright/v1alpha1",
            "cluster": "small",
            "pools": {"gpu": {"nodes": "n[1-3]"}, "cp": {"nodes": "c1", "role": "control-plane"}},
            "workloads": workloads,
            "scheduling": {"engine": "slurm"},
            "acceptance": {"requirements": requirements or {}},
        }
    )


def serving(**target: Any) -> dict[str, Any]:
    return {"chat": {"model": "m", "serve": SERVE, "target": target}}


def by_id(claims: tuple[Claim, ...]) -> dict[str, Claim]:
    return {c.id: c for c in claims}


def test_every_latency_and_recovery_target_of_a_brief_is_claimed() -> None:
    fields = {n: "1 s" for n in Target.model_fields if n not in ("survive", "availability")}
    claims = by_id(collect_claims(architecture(serving(survive="1 node", availability="99%", **fields))))
    promised = {f"chat-{n.replace('_', '-')}" for n in Target.model_fields} | {"chat-rate"}
    assert set(claims) == promised - {"chat-rate"}, "carrying the load after a loss proves carrying it before"
    assert claims["chat-ttft-p95"].path == "workloads.chat.target.ttft_p95"
    assert claims["chat-ttft-p95"].requirement.scope.nodes == 3
    assert str(claims["chat-survive"].requirement.at_least) == "8 req/s"


def test_a_requirement_at_least_as_strict_takes_the_place_of_a_target() -> None:
    def ids(threshold: str, **more: Any) -> set[str]:
        named = {"metric": "cold_start", "at_most": threshold, "scope": {"workload": "chat"}} | more
        return set(by_id(collect_claims(architecture(serving(cold_start="5 min"), {"cold": named}))))

    assert ids("5 min") == {"cold", "chat-rate"}
    assert ids("4 min") == {"cold", "chat-rate"}
    assert ids("6 min") == {"cold", "chat-cold-start", "chat-rate"}, "a weaker requirement does not prove the target"
    assert ids("5 min", required=False) == {"cold", "chat-cold-start", "chat-rate"}


def test_a_derived_claim_never_takes_a_name_of_the_file() -> None:
    named = {"chat-rate": {"metric": "gpus_present", "equals": 8}}
    assert set(by_id(collect_claims(architecture(serving(), named)))) == {"chat-rate", "chat-rate-target"}


def test_a_deadline_is_a_rate_of_training() -> None:
    train = {
        "framework": "torchtitan 0.2", "precision": "bf16", "sequence": "4096 tokens", "global_batch": 8, "gpus": 8,
        "tokens": "86.4 Mtok", "deadline": "1 day",
        "checkpoint": {"to": "s", "every": "30 min", "mode": "async", "stall_within": "5 s", "restore_within": "9 s"},
    }  # fmt: skip
    claims = by_id(
        collect_claims(architecture({"tune": {"model": "m", "train": train, "target": {"survive": "1 node"}}}))
    )
    assert claims["tune-deadline"].requirement.at_least.to("tokens/s") == 1000
    assert claims["tune-checkpoint-stall"].requirement.metric == "checkpoint_stall"
    assert claims["tune-checkpoint-restore"].requirement.metric == "checkpoint_restore"
    assert claims["tune-survive"].requirement.metric == "nodes_survived"


def test_the_example_leaves_no_target_unclaimed() -> None:
    example = parse_architecture(Source("cluster.yaml", EXAMPLE.read_text())).architecture
    derived = [c.id for c in collect_claims(example) if c.derived]
    assert derived == [
        "chat-availability", "chat-detection", "chat-recovery", "chat-payload",
        "finetune-deadline", "finetune-payload",
    ]  # fmt: skip


def test_a_site_holds_workers_with_their_engine() -> None:
    site = site_of(architecture(serving()))
    assert dict(site.hosts) == {"gpu": ("n1", "n2", "n3")}
    assert dict(site.engines) == {"gpu": "slurm"}
