"""Small architectures and a hand-made catalogue for the planner's tests."""

from typing import Any

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.documents import Document
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.plans import Plan

_ABOUT = {"source": "a datasheet", "date": "2026-01-02"}
_H100 = _ABOUT | {
    "vendor": "nvidia",
    "architecture": "hopper",
    "form": "sxm",
    "compute_capability": "9.0",
    "memory": "80 GiB",
    "sold_as": "80 GB",
    "memory_kind": "HBM3",
    "reported": {"total": "79.1 GiB", "source": "a log"},
    "bandwidth": "3.35 TB/s",
    "dense": {"bf16": "989 TFLOP/s", "fp16": "989 TFLOP/s", "fp8": "1979 TFLOP/s"},
    "scale_up": {
        "kind": "nvlink",
        "generation": 4,
        "gpus": 8,
        "per_direction": "450 GB/s",
        "total": "900 GB/s",
        "switched": True,
    },
    "pcie": {"generation": 5, "lanes": 16},
}
_SHAPE = _ABOUT | {"gpu": "h100-sxm-80", "gpus": 8, "nvswitch": True, "fabric_manager": "node", "domain_gpus": 8}
_GQA = _ABOUT | {"family": "test", "attention": "gqa", "tied_embeddings": False, "max_context": 131072}
_70B = {"layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "head_dim": 128, "intermediate": 28672}
_8B = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 14336}
_LATENT = {"kv_rank": 512, "q_rank": 1536, "rope_dim": 64, "nope_dim": 128, "value_dim": 128}
_FIT = {"rows": 40, "models": ["Llama 8B"], "ttft_error": 0.5, "tpot_error": 0.25, "held_out": "model by model"}
_DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "torch_dtype": "bfloat16",
    "hidden_size": 7168,
    "num_hidden_layers": 6,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 16,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
}
_MOE = {"experts": 128, "active": 8, "intermediate": 1536}

CATALOGUE = Catalogue(
    {
        "gpus": {
            "h100-sxm-80": _H100 | {"aliases": ["h100"]},
            "mystery": {k: v for k, v in _H100.items() if k != "reported"},
        },
        "shapes": {
            "hgx-h100": _SHAPE,
            "one-h100": _SHAPE | {"gpus": 1, "nvswitch": False, "fabric_manager": "none", "domain_gpus": 1},
            "cpu": _ABOUT,
        },
        "nics": {},
        "models": {
            "llama-70b": _GQA | _70B | {"vocab": 128256},
            "llama-8b": _GQA | _8B | {"vocab": 128256},
            "qwen-235b": _GQA
            | {"layers": 94, "hidden": 4096, "heads": 64, "kv_heads": 4, "head_dim": 128, "vocab": 151936, "moe": _MOE},
            "deepseek-like": _ABOUT | {"family": "deepseek", "config": _DEEPSEEK},
            "deepseek": _ABOUT
            | {"family": "deepseek", "attention": "mla", "layers": 61, "hidden": 7168, "heads": 128, "vocab": 129280}
            | {"intermediate": 18432, "latent": _LATENT, "tied_embeddings": False, "max_context": 163840},
        },
        "calibrations": {
            "vllm-h100": _ABOUT
            | {"engine": "vllm", "gpu": "h100-sxm-80", "constants": {"math_share": 0.5}, "fit": _FIT}
            | {"spans": {"prompt": {"low": 10.0, "high": 5000.0}}},
        },
        "prices": {
            "rent-h100": _ABOUT
            | {"kind": "rental", "item": "h100-sxm-80", "low": "$2/GPU-h", "high": "$4/GPU-h"}
            | {"provider_class": "specialist"}
        },
    }
)

BASE = """\
apiVersion: clusterwright/v1alpha1
cluster: test
workloads:
  chat:
    model: llama-70b
    denominator: accepted Mtok
    serve:
      engine: vllm 0.11
      precision: fp8
      in: 1000 tokens
      out: 250 tokens
      in_p95: 3000 tokens
      rate: 8 req/s
      replicas: 2
      spread: required
      parallel: {tp: 4}
      memory_share: 90%
      max_model_len: 8192 tokens
    payload: {source: object, cache: nvme, within: 90 s, startup: 60 s, loader: runai-streamer}
    target: {ttft_p95: 1 s, tpot_p95: 50 ms, survive: 1 node, cold_start: 5 min}
  finetune:
    model: llama-8b
    denominator: accepted run
    train:
      framework: torchtitan 0.2
      precision: bf16
      sequence: 4096 tokens
      global_batch: 64
      gpus: 4
      parallel: {dp: 4}
      recompute: full
      tokens: 200 Mtok
      deadline: 3 days
      checkpoint: {to: object, every: 25 min, mode: async, stall_within: 60 s, restore_within: 120 s}
    payload: {source: object, within: 120 s}
    target: {recovery: 15 min, lost_work: 30 min}
pools:
  gpu: {nodes: "gpu-[1-2]", shape: hgx-h100, price: $2.40/GPU-h}
  control: {nodes: "cp-[1-3]", role: control-plane, price: $0.60/node-h}
fabric:
  networks:
    ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8, pools: [gpu], oversubscription: 1}
    eth: {kind: ethernet, roles: [storage], rate: 200 Gb/s, ports: 2, oversubscription: 1}
storage:
  stores:
    object: {kind: object, durable: true, read: 20 GB/s, write: 10 GB/s, network: eth}
    nvme: {kind: local-nvme, durable: false, read: 25 GB/s, write: 12 GB/s, cache_of: object}
economics:
  denominator: accepted Mtok
  utilisation: 45%
  utilisation_means: useful
  costs: {network: $900/month, storage: $4000/month, support: $1500/month, operations: $9000/month}
  shares: {retries: 3%, failed: 2%, accepted: 98%}
  alternatives:
    on-demand: {kind: rental, price: $3.29/GPU-h}
    api: {kind: model-api, input_price: $0.60/Mtok, output_price: $0.60/Mtok}
"""


def document(text: str = BASE, *overrides: str) -> Document:
    """The architecture of a text, with `path=value` written over it."""
    return parse_architecture(Source("cluster.yaml", text), overrides=overrides)


def planned(*overrides: str, text: str = BASE, **arguments: Any) -> Plan:
    """The plan of the base architecture with some values changed; an empty value removes a key."""
    return plan_architecture(document(text, *overrides), CATALOGUE, **arguments)


def value(plan: Plan, name: str) -> float:
    """Magnitude of a figure of the plan."""
    return plan.figures[name].value


def subjects(plan: Plan) -> set[str]:
    """What does not hold."""
    return {m.subject for m in plan.misfits}


def gaps(plan: Plan) -> set[str]:
    """What could not be planned."""
    return {u.subject for u in plan.unplanned}
