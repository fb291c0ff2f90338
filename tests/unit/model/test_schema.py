"""The published JSON Schema: valid itself, accepts what the parser accepts, refuses wrong shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from ruamel.yaml import YAML

from clusterwright.model.architecture import Architecture
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.schema import DIALECT, file_schema
from clusterwright.model.sources import Source
from clusterwright.model.suggestions import keys_of, sections

FOLDER = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted(FOLDER.glob("*/cluster.yaml"))
BROKEN = sorted((FOLDER / "broken").glob("*.yaml"))
SCHEMA = file_schema()
HEAD = "apiVersion: clusterwright/v1alpha1\ncluster: c\n"


def plain(text: str) -> Any:
    """The text as an editor's YAML server sees it: YAML 1.2 without our places, dates as text."""
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))


def errors_of(text: str) -> list[str]:
    return [path for e in Draft202012Validator(SCHEMA).iter_errors(plain(text)) for path in deepest(e)]


def deepest(error: ValidationError) -> list[str]:
    """Where the error and the alternatives that failed below it stand."""
    return [error.json_path] + [path for inner in error.context or () for path in deepest(inner)]


def test_it_is_a_valid_schema_of_its_draft() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == DIALECT


@pytest.mark.parametrize("file", [*EXAMPLES, *BROKEN], ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_it_accepts_every_example(file: Path) -> None:
    assert errors_of(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        "apiVersion: clusterwright/v1alpha1\ncluster: {name: c, power: 8 kW}\n",
        HEAD + "software: {kubernetes: 1.30}\n",
        HEAD + "fabric:\nowners: {default: me}\n",
        HEAD + "waivers: [{rule: r, reason: w, owner: o, expires: 2026-12-31}]\n",
        HEAD + "acceptance: {requirements: {a: {metric: xid_errors, at_most: 0}}}\n",
        HEAD + "acceptance: {requirements: {a: {metric: busbw, at_least: 400 GB/s}}}\n",
        HEAD + "pools: {a: {nodes: 'n[1-2]', price: $2.40/GPU-h}}\n",
        HEAD + "workloads: {w: {model: m, gpus: [a], payload: {source: s, within: 1 s, artifacts: [weights]}}}\n",
    ],
)
def test_it_accepts_short_forms_as_the_parser_does(text: str) -> None:
    assert errors_of(text) == []
    parse_architecture(Source("f", text))


@pytest.mark.parametrize(
    ("serve", "accepted"),
    [
        ("lengths: {trace: t.csv}, disaggregated: true", True),
        ("in: 5 tokens, out: 5 tokens, rate: 1 req/s, disaggregated: {prefill: {workers: 2}}", True),
        ("in: 5 tokens, rate: 1 req/s", False),
        ("lengths: {trace: t.csv}, disaggregated: 3", False),
        ("lengths: {trace: t.csv}, speculation: {method: mtp, tokens: 1}", False),
    ],
)
def test_a_trace_stands_for_lengths_and_rate(serve: str, accepted: bool) -> None:
    text = HEAD + f"workloads: {{w: {{model: m, serve: {{engine: vllm, precision: fp8, {serve}}}}}}}\n"
    assert (errors_of(text) == []) is accepted


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (HEAD + "pols: {}\n", "$"),
        ("cluster: c\n", "$"),
        ("apiVersion: v2\ncluster: c\n", "$.apiVersion"),
        (HEAD + "pools: {a: {nodes: n1, sharring: none}}\n", "$.pools.a"),
        (HEAD + "pools: {a: {nodes: n1, sharing: migg}}\n", "$.pools.a.sharing"),
        (HEAD + "pools: {a: {nodes: n1, spares: -1}}\n", "$.pools.a.spares"),
        (HEAD + "pools: {a: {nodes: n1, mixed: yes}}\n", "$.pools.a.mixed"),
        (HEAD + "pools: {a: {shape: s}}\n", "$.pools.a"),
        (HEAD + "workloads: {w: {model: ''}}\n", "$.workloads.w.model"),
        (HEAD + "workloads: {w: {model: m, gpus: h100}}\n", "$.workloads.w.gpus"),
        (HEAD + "economics: {term: 6}\n", "$.economics.term"),
        (HEAD + "economics: {term: six months}\n", "$.economics.term"),
        (HEAD + "economics: {term: '6'}\n", "$.economics.term"),
        (HEAD + "economics: {term: 6 GB}\n", "$.economics.term"),
        (HEAD + "economics: {utilisation: '45'}\n", "$.economics.utilisation"),
        (HEAD + "economics: {costs: {power: 8 ¢}}\n", "$.economics.costs.power"),
        (HEAD + "fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 20 GB}}}\n",
         "$.fabric.networks.ib.rate"),
        (HEAD + "fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 20 GB/s}}}\n",
         "$.fabric.networks.ib.rate"),
        (HEAD + "fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: '400'}}}\n",
         "$.fabric.networks.ib.rate"),
        (HEAD + "pools: {a: {nodes: n1, price: $2.40}}\n", "$.pools.a.price"),
        (HEAD + "acceptance: {requirements: {a: {metric: busbw, at_least: 400 Gb/s}}}\n",
         "$.acceptance.requirements.a.at_least"),
        (HEAD + "acceptance: {requirements: {a: {metric: busbw, at_least: 400}}}\n",
         "$.acceptance.requirements.a.at_least"),
        (HEAD + "acceptance: {requirements: {a: {metric: xid_errors, at_most: none}}}\n",
         "$.acceptance.requirements.a.at_most"),
        (HEAD + "acceptance: {requirements: {a: {metric: buzbw}}}\n", "$.acceptance.requirements.a.metric"),
    ],
)  # fmt: skip
def test_it_refuses_wrong_shapes_at_their_path(text: str, path: str) -> None:
    assert path in errors_of(text)


def test_every_key_has_a_description() -> None:
    for name, section in [("", SCHEMA), *SCHEMA["$defs"].items()]:
        for key, value in section["properties"].items():
            assert value.get("description"), f"{name}.{key}"
        assert section["additionalProperties"] is False, name


def test_it_knows_every_key_of_the_model() -> None:
    for _, section in sections(Architecture):
        known = SCHEMA if section is Architecture else SCHEMA["$defs"][section.__name__]
        assert set(known["properties"]) == set(keys_of(section))
