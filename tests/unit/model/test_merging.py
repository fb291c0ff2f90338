"""Several files and `--set`: what merges, what is refused, and whose place a value has."""

from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.model.documents import Document
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source

BASE = "apiVersion: clusterwright/v1alpha1\ncluster: c\npools:\n  gpu: {nodes: n1}\n"


def parse(*texts: str, overrides: tuple[str, ...] = ()) -> Document:
    sources = [Source(f"{'abc'[i]}.yaml", text) for i, text in enumerate(texts)]
    return parse_architecture(*sources, overrides=overrides)


def problems_of(*texts: str, overrides: tuple[str, ...] = ()) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        parse(*texts, overrides=overrides)
    return caught.value.problems


def test_mappings_merge_key_by_key_with_their_own_places() -> None:
    document = parse(BASE, "pools:\n  gpu: {spares: 1}\n  cpu: {nodes: m1}\nowners: {default: me}\n")
    assert document.architecture.pools["gpu"].spares == 1
    assert list(document.architecture.pools) == ["gpu", "cpu"]
    assert str(document.places.of("pools.gpu.spares")) == "b.yaml:2:17"
    assert str(document.places.of("pools.gpu")) == "a.yaml:4:3"
    assert document.places.line_of(document.places.of("owners.default")) == "owners: {default: me}"


def test_the_order_of_files_changes_neither_value_nor_digest() -> None:
    more = "owners: {default: me}\n"
    one, two = parse(BASE, more), parse(more, BASE)
    assert one.digest == two.digest
    assert one.architecture == two.architecture


def test_every_file_may_repeat_the_same_version() -> None:
    assert (
        parse(BASE, "apiVersion: clusterwright/v1alpha1\nowners: {default: me}\n").architecture.owners.default == "me"
    )


@pytest.mark.parametrize(
    ("more", "path", "where"),
    [
        ("cluster: c\n", "cluster", "b.yaml:1:1"),
        ("pools:\n  gpu: {nodes: n1}\n", "pools.gpu.nodes", "b.yaml:2:9"),
        ("apiVersion: clusterwright/v2\n", "apiVersion", "b.yaml:1:1"),
        ("pools: [gpu]\n", "pools", "b.yaml:1:1"),
    ],
)
def test_a_value_given_twice_names_both_places(more: str, path: str, where: str) -> None:
    (problem,) = problems_of(BASE, more)
    assert problem.path == path
    assert str(problem.place) == where
    assert "given twice" in problem.message
    assert "a.yaml:" in problem.hint


def test_problems_of_all_files_come_together() -> None:
    found = problems_of("a: {\n", "b: [\n")
    assert [p.place.file for p in found] == ["a.yaml", "b.yaml"]


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("pools.gpu.spares=1", "pools.gpu.spares", "1"),
        ("pools.gpu.nodes=n[1-4]", "pools.gpu.nodes", "('n1', 'n2', 'n3', 'n4')"),
        ("pools.gpu.price=$2/GPU-h", "pools.gpu.price", "$2/GPU-h"),
        ("pools.gpu.replacement={within: 1 h}", "pools.gpu.replacement.within", "1 h"),
        ("economics.costs.support=$5/h", "economics.costs.support", "$5/h"),
        (" pools.gpu.ownership = owned", "pools.gpu.ownership", "owned"),
        ("cluster=other=name", "cluster.name", "other=name"),
    ],
)
def test_an_override_writes_over_the_files(override: str, path: str, value: str) -> None:
    document = parse(BASE, overrides=(override,))
    found: object = document.architecture
    for part in path.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    assert str(found) == value
    assert document.places.of(path).file == "--set"
    assert document.places.of(path).line == 0


def test_an_empty_override_removes_the_key() -> None:
    document = parse(BASE + "economics: {term: 1 year, utilisation: 5%}\n", overrides=("economics.term=",))
    assert document.architecture.economics is not None
    assert document.architecture.economics.term is None
    assert not document.places.has("economics.term")


def test_later_overrides_win_and_old_parts_are_gone() -> None:
    document = parse(BASE, overrides=("pools.gpu.spares=1", "pools.gpu={nodes: m1}", "pools.gpu.spares=2"))
    assert document.architecture.pools["gpu"].nodes == ("m1",)
    assert document.architecture.pools["gpu"].spares == 2


def test_keys_with_dots_and_positions_in_lists_are_found() -> None:
    text = BASE + "workloads: {llama-3.3: {model: m, gpus: [a, b]}}\n"
    document = parse(text, overrides=("workloads.llama-3.3.queue=q", "workloads.llama-3.3.gpus.1=c"))
    assert document.architecture.workloads["llama-3.3"].queue == "q"
    assert document.architecture.workloads["llama-3.3"].gpus == ("a", "c")


@pytest.mark.parametrize("before", ["", "waivers:\n", "waivers: []\n"])
def test_a_list_that_is_absent_begins_with_its_first_item(before: str) -> None:
    fields = {"rule": "r", "reason": "w", "owner": "me@example.com", "expires": "2026-12-31"}
    flags = tuple(f"waivers.0.{key}={value}" for key, value in fields.items())
    more = ("waivers.1={rule: s, reason: w, owner: o, expires: 2026-12-31}", "pools.gpu.spares=1")
    waivers = parse(BASE + before, overrides=(*flags, *more)).architecture.waivers
    assert [(w.rule, w.owner) for w in waivers] == [("r", "me@example.com"), ("s", "o")]


def test_names_are_added_to_lists_by_position() -> None:
    text = BASE + "workloads: {chat: {model: m, gpus: [a]}}\n"
    flags = ("workloads.chat.pools.0=x", "workloads.chat.pools.1=y", "workloads.chat.gpus.1=b")
    chat = parse(text, overrides=flags).architecture.workloads["chat"]
    assert chat.pools == ("x", "y")
    assert chat.gpus == ("a", "b")


def test_an_item_is_taken_away_by_position() -> None:
    text = BASE + "workloads: {chat: {model: m, gpus: [a, b]}}\n"
    assert parse(text, overrides=("workloads.chat.gpus.0=",)).architecture.workloads["chat"].gpus == ("b",)


def test_aliased_parts_are_changed_only_where_named() -> None:
    text = "apiVersion: clusterwright/v1alpha1\ncluster: c\npools: {a: &p {nodes: n1}, b: *p}\n"
    pools = parse(text, overrides=("pools.b.spares=1",)).architecture.pools
    assert (pools["a"].spares, pools["b"].spares) == (0, 1)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("nothing", "is no override"),
        ("pools.\udcff.nodes=n1", "U+DCFF"),
        ("pools.gpu.nodes=\0", "NUL byte"),
        ("=5", "is no override"),
        ("a..b=5", "is no override"),
        ("pools.gpu.nodes.x=5", "is a single value"),
        ("waivers.7.rule=x", "is no position in the list"),
        ("waivers.2.rule=x", "is no position in the list"),
        ("waivers.1=", "is no position in the list"),
        ("workloads.chat.pools.1=x", "is no position in the list"),
        ("workloads.chat.pools.0=", "is no position in the list"),
        ("waivers.x=1", "is no position in the list"),
        ("pools.gpu.price={", "missing"),
        ("pools.gpu.price=a: b: c", "':'"),
        ("pools.gpu.prize=$2/GPU-h", "unknown key"),
        ("pools.gpu.spares=two", "whole number"),
        ("cluster=", "missing"),
    ],
)
def test_a_wrong_override_is_answered_at_the_flag(override: str, says: str) -> None:
    text = BASE + "waivers: [{rule: r, reason: w, owner: o, expires: 2026-12-31}]\n"
    (problem,) = problems_of(text, overrides=(override,))
    assert says in problem.message
    assert problem.place.file == ("a.yaml" if override == "cluster=" else "--set")


def test_all_wrong_overrides_are_reported() -> None:
    assert len(problems_of(BASE, overrides=("x", "y"))) == 2
