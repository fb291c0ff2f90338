"""Parsing an architecture: values, places, and what each kind of mistake is answered with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.model.documents import Document
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source

EXAMPLES = Path(__file__).parents[3] / "examples"
HEAD = "apiVersion: clusterwright/v1alpha1\ncluster: c\n"


def parse(text: str, *overrides: str) -> Document:
    return parse_architecture(Source("f.yaml", HEAD + text), overrides=overrides)


def problems_of(text: str, overrides: Sequence[str] = (), head: str = HEAD) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        parse_architecture(Source("f.yaml", head + text), overrides=overrides)
    return caught.value.problems


def one_problem(text: str, **more: str) -> Problem:
    (problem,) = problems_of(text, **more)
    return problem


@pytest.mark.parametrize("name", ["two-workers", "single-server", "training-1024"])
def test_every_value_of_an_example_has_the_place_where_it_stands(name: str) -> None:
    file = EXAMPLES / name / "cluster.yaml"
    text = file.read_text(encoding="utf-8")
    document = parse_architecture(Source(str(file), text))
    assert len(document.places.values) > 400
    for path, place in document.places.values.items():
        line, last = document.places.line_of(place), path.rpartition(".")[2]
        before, here = line[: place.column - 1], line[place.column - 1 :]
        # At a key, right behind one, or at an item of a list.
        assert here.startswith(last) or before.endswith(f"{last}: ") or last.isdecimal() or not path


def test_places_of_keys_values_and_what_is_missing() -> None:
    document = parse("pools:\n  gpu:\n    nodes: gpu-[1-2]\n    replacement: {within: 1 h}\n")
    places = document.places
    assert str(places.of("pools")) == "f.yaml:3:1"
    assert str(places.of("pools.gpu")) == "f.yaml:4:3"
    assert str(places.of("pools.gpu.nodes")) == "f.yaml:5:12"
    assert str(places.of("pools.gpu.replacement.within")) == "f.yaml:6:27"
    assert str(places.of("pools.gpu.price")) == "f.yaml:4:3"
    assert str(places.of("storage.stores.x")) == "f.yaml:1:1"
    assert places.has("pools.gpu.nodes")
    assert not places.has("pools.gpu.price")
    assert places.line_of(places.of("pools.gpu.nodes")) == "    nodes: gpu-[1-2]"


def test_values_keep_their_text() -> None:
    text = "software: {kubernetes: 1.30, profiles: {p: {cuda: 13.2, kernel: 0x10, nccl: '2.0'}}}\n"
    software = parse(text).architecture.software
    assert software is not None
    profile = software.profiles["p"]
    assert (software.kubernetes, profile.cuda, profile.kernel, profile.nccl) == ("1.30", "13.2", "0x10", "2.0")


def test_the_short_form_of_the_design_is_read() -> None:
    text = """
pools: {h100: {nodes: "gpu-[001-008]", shape: hgx-h100-sxm-8, price: $2.40/GPU-h}}
workloads:
  chat:
    model: meta-llama/Llama-3.3-70B-Instruct
    serve: {engine: vllm 0.11, precision: fp8, in: 2000 tokens, out: 300 tokens, rate: 50 req/s}
    target: {ttft_p95: 1 s, tpot_p95: 50 ms, survive: 1 node}
scheduling: {engine: kubernetes}
owners: {default: platform@example.com}
"""
    architecture = parse(text).architecture
    assert architecture.cluster.name == "c"
    assert architecture.pools["h100"].node_count == 8
    assert architecture.owners.of("storage") == "platform@example.com"
    serve = architecture.workloads["chat"].serve
    assert serve is not None
    assert serve.rate.to("req/s") == 50


def test_on_and_off_are_text_and_dates_are_dates() -> None:
    text = "fabric: {gpudirect_rdma: {enabled: true, acs: off, iommu: on}}\n"
    text += "waivers: [{rule: r, reason: why, owner: me, expires: 2026-12-31}]\n"
    architecture = parse(text).architecture
    assert architecture.fabric is not None
    assert architecture.fabric.gpudirect_rdma is not None
    assert architecture.fabric.gpudirect_rdma.acs == "off"
    assert architecture.waivers[0].expires == date(2026, 12, 31)


def test_thresholds_take_the_unit_of_their_metric() -> None:
    text = "acceptance: {requirements: {a: {metric: busbw, at_least: 400 GB/s}, b: {metric: xid_errors, at_most: 0}}}\n"
    acceptance = parse(text).architecture.acceptance
    assert acceptance is not None
    assert acceptance.requirements["a"].threshold.to("GB/s") == 400  # type: ignore[union-attr]
    assert acceptance.requirements["b"].threshold == 0.0


def test_sections_may_be_empty() -> None:
    assert parse("fabric:\nwaivers: []\npools: {}\n").architecture.fabric is None


@pytest.mark.parametrize(
    ("text", "where", "path", "says", "hints"),
    [
        ("pols: {}\n", "3:1", "pols", "unknown key", "did you mean 'pools'?"),
        ("pools: {a: {nodes: n1, sharring: none}}\n", "3:24", "pools.a.sharring", "unknown key", "'sharing'"),
        ("pools: {a: {nodes: n1, ttft_p95: 1 s}}\n", "3:24", "pools.a.ttft_p95", "unknown key", "<name>.target"),
        ("pools: {a: {hosts: n1}}\n", "3:13", "pools.a.hosts", "unknown key", "did you mean 'nodes'?"),
        ("pools: {a: {nodes: n1, xyzzy: 1}}\n", "3:24", "pools.a.xyzzy", "unknown key", "valid here: nodes, role"),
        ("access: {db_password: vault}\n", "3:10", "access.db_password", "unknown key", "access.secrets"),
        ("pools: {a: {shape: s}}\n", "3:9", "pools.a.nodes", "this is missing", "host list"),
        ("fabric: {networks: {n: {kind: roce, rate: 1 Gb/s}}}\n", "3:21", "fabric.networks.n.roles", "missing", ""),
        ("pools: {a: {nodes: n1, sharing: migg}}\n", "3:33", "pools.a.sharing", "one of none, mig", "'mig'?"),
        ("pools: {a: {nodes: n1, sharing: true}}\n", "3:33", "pools.a.sharing", "found true", ""),
        ("pools: {a: {nodes: n1, sharing: [mig]}}\n", "3:24", "pools.a.sharing", "found a list", ""),
        ("pools: {nodes: n1}\n", "3:16", "pools.nodes", "found 'n1'", "a name is missing"),
        ("pools: {a: }\n", "3:11", "pools.a", "found nothing", ""),
        ("pools: [a]\n", "3:1", "pools", "named entries", ""),
        ("storage: {uses: s3}\n", "3:17", "storage.uses", "keys such as weights", ""),
        ("workloads: {w: {model: m, gpus: h100}}\n", "3:33", "workloads.w.gpus", "wants a list", "write [h100]"),
        ("workloads: {w: {model: true}}\n", "3:24", "workloads.w.model", "found true", 'put it in quotes: "true"'),
        ("workloads: {w: {model: {}}}\n", "3:17", "workloads.w.model", "found a section", ""),
        ("workloads: {w: {model: ' '}}\n", "3:24", "workloads.w.model", "this is empty", ""),
        ("pools: {a: {nodes: n1, spares: '3'}}\n", "3:32", "pools.a.spares", "whole number", "remove the quotes"),
        ("pools: {a: {nodes: n1, spares: 1.5}}\n", "3:32", "pools.a.spares", "found '1.5'", ""),
        ("pools: {a: {nodes: n1, spares: true}}\n", "3:32", "pools.a.spares", "found true", ""),
        ("pools: {a: {nodes: n1, spares: -1}}\n", "3:32", "pools.a.spares", "this wants at least 0", ""),
        ("pools: {a: {nodes: n1, spares: 9999999999}}\n", "3:32", "pools.a.spares", "at most 1,000,000,000", ""),
        ("pools: {a: {nodes: n1, mixed: yes}}\n", "3:31", "pools.a.mixed", "true or false, found 'yes'", "write true"),
        ("economics: {costs: {pue: .inf}}\n", "3:26", "economics.costs.pue", "plain number, found '.inf'", ""),
        ("economics: {costs: {pue: high}}\n", "3:26", "economics.costs.pue", "plain number, found 'high'", ""),
        ("pools: {a: {nodes: 5}}\n", "3:20", "pools.a.nodes", "host list", ""),
        ("pools: {a: {nodes: 'n[3-1]'}}\n", "3:20", "pools.a.nodes", "backwards", "write for example"),
        ("economics: {term: 6}\n", "3:19", "economics.term", "'6' has no unit", "write for example 90 s"),
        ("economics: {term: [6 months]}\n", "3:13", "economics.term", "wants a quantity", ""),
        ("economics: {term: 0 s}\n", "3:19", "economics.term", "is zero", ""),
        ("economics: {utilisation: 0%}\n", "3:26", "economics.utilisation", "is zero", ""),
        ("economics: {term: 1e30 s}\n", "3:19", "economics.term", "too large to be real", ""),
        ("economics: {utilisation: 120%}\n", "3:26", "economics.utilisation", "more than 100%", ""),
        ("economics: {utilisation: -5%}\n", "3:26", "economics.utilisation", "is negative", ""),
        ("cluster2: x\n", "3:1", "cluster2", "unknown key", "did you mean 'cluster'?"),
        ("waivers: [{rule: r, reason: w, owner: o, expires: soon}]\n", "3:51", "waivers.0.expires", "2026-12-31", ""),
        ("waivers: [{rule: r, reason: w, owner: o, expires: 2026-02-30}]\n", "3:51", "waivers.0.expires", "no d", ""),
        ("scheduling: {engine: local, priorities: {p: high}}\n", "3:45", "scheduling.priorities.p", "whole number", ""),
    ],
)  # fmt: skip
def test_each_mistake_is_located_and_explained(text: str, where: str, path: str, says: str, hints: str) -> None:
    problem = one_problem(text)
    assert str(problem.place) == f"f.yaml:{where}"
    assert problem.path == path
    assert says in problem.message
    assert hints in problem.hint
    assert "pydantic" not in str(problem)
    assert "type=" not in str(problem)


@pytest.mark.parametrize(
    ("requirement", "column", "path", "says", "hints"),
    [
        ("{metric: buzbw, at_least: 1}", 10, ".metric", "unknown metric 'buzbw'", "did you mean 'busbw'?"),
        ("{metric: busbw, at_least: 40 Gb/s}", 27, ".at_least", "counts bits", "10.7 GB/s"),
        ("{metric: busbw, at_least: 40}", 27, ".at_least", "no unit", "10.7 GB/s"),
        ("{metric: busbw, at_least: -1 GB/s}", 27, ".at_least", "negative", ""),
        ("{metric: xid_errors, at_most: none}", 31, ".at_most", "plain number, found 'none'", ""),
        ("{metric: xid_errors, at_most: .nan}", 31, ".at_most", "plain number, found '.nan'", ""),
        ("{metric: image_digest, equals: true}", 32, ".equals", "wants text", ""),
        ("{metric: xid_errors}", -2, "", "exactly one of", "found none"),
        ("{metric: xid_errors, at_most: 0, equals: 0}", -2, "", "exactly one of", "at_most and equals"),
    ],
)
def test_a_wrong_threshold_is_located(requirement: str, column: int, path: str, says: str, hints: str) -> None:
    problem = one_problem(f"acceptance:\n  requirements:\n    r: {requirement}\n")
    assert (problem.place.line, problem.place.column) == (5, 7 + column)
    assert problem.path == f"acceptance.requirements.r{path}"
    assert says in problem.message
    assert hints in problem.hint


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    found = problems_of("pools:\n  a: {nodes: 1, spares: x}\nfabric: {dns: true}\nwaivers: [{}]\n")
    assert [p.path for p in found] == [
        "pools.a.nodes", "pools.a.spares", "fabric.dns",
        "waivers.0.rule", "waivers.0.reason", "waivers.0.owner", "waivers.0.expires",
    ]  # fmt: skip
    assert [p.place.line for p in found] == [4, 4, 5, 6, 6, 6, 6]


def test_a_misspelled_key_is_not_reported_again_as_missing() -> None:
    assert one_problem("workloads: {w: {modle: m}}\n").path == "workloads.w.modle"


@pytest.mark.parametrize(
    ("head", "says", "hints"),
    [
        ("cluster: c\n", "this is missing", "write `apiVersion: clusterwright/v1alpha1`"),
        ("apiVersion: v1\ncluster: c\n", "'v1' is not supported", "this version reads clusterwright/v1alpha1"),
        ("apiVersion: clusterwright/v2\ncluster: c\n", "'clusterwright/v2' is not supported", "clusterwright/v1alpha1"),
        ("apiVersion: 1\ncluster: c\n", "'1' is not supported", "clusterwright/v1alpha1"),
        ("apiversion: clusterwright/v1alpha1\ncluster: c\n", "this is missing", ""),
    ],
)
def test_the_version_says_what_is_supported(head: str, says: str, hints: str) -> None:
    problem = problems_of("", head=head)[0]
    assert problem.path == "apiVersion"
    assert says in problem.message
    assert hints in problem.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("---\n...\n", "the file is empty"),
        ("- a\n", "the file holds a list"),
        ("just text\n", "the file holds a single value"),
    ],
)
def test_a_file_without_sections_says_how_to_begin(text: str, says: str) -> None:
    problem = one_problem(text, head="")
    assert says in problem.message
    assert "apiVersion: clusterwright/v1alpha1" in problem.hint
    assert problem.place.line == 1


def test_without_sources_nothing_is_read() -> None:
    with pytest.raises(InvalidInput, match="no architecture file given"):
        parse_architecture()


def test_the_digest_follows_the_content_as_written() -> None:
    plain = parse("pools: {a: {nodes: n1}}\nsoftware: {kubernetes: 1.30}\n")
    same = parse("# note\nsoftware:\n  kubernetes: '1.30'\npools:\n  a:\n    nodes: \"n1\"\n")
    other = parse("pools: {a: {nodes: n1}}\nsoftware: {kubernetes: 1.3}\n")
    assert plain.digest == same.digest
    assert plain.digest != other.digest
    assert plain.digest.startswith("sha256:")
    assert len(plain.digest) == len("sha256:") + 64
