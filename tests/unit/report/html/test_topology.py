"""The drawing shows every pool, node, network and store of the file, and says the same as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.pages import Node, parse_page
from builders.proofs import EXAMPLE, example_document, example_proof
from clusterwright.plan.results.clusters import PoolPlan
from clusterwright.plan.results.layouts import Assignment
from clusterwright.report.html.sites import ranges
from clusterwright.report.html.topology import render_topology
from clusterwright.report.proofs import Proof


def drawn(proof: Proof) -> Node:
    return parse_page(render_topology(proof))


def proof_of(nodes: int, *, gpus: int = 8, domain: int = 8) -> Proof:
    """A pool of so many nodes of which all but the last two serve chat."""
    width = len(str(nodes))
    text = EXAMPLE.read_text().replace("gpu-[001-002]", f"gpu-[{1:0{width}d}-{nodes}]")
    proof = example_proof(example_document(text))
    assert proof.document
    assert proof.plan
    names = proof.document.architecture.pools["gpu"].nodes
    placement = tuple(Assignment("chat", i, "gpu", n, tuple(range(gpus))) for i, n in enumerate(names[:-2]))
    chat, finetune = proof.plan.workloads
    plan = replace(
        proof.plan,
        pools=(PoolPlan("gpu", names, "h100-sxm-80gb", gpus, domain, 0),),
        workloads=(replace(chat, placement=placement), replace(finetune, placement=())),
    )
    return replace(proof, plan=plan)


def squares(drawing: Node) -> dict[str, int]:
    """GPUs by colour in tiles: a sub-path each."""
    counts: dict[str, int] = {}
    for path in drawing.all("path"):
        colour = path.attributes["class"]
        counts[colour] = counts.get(colour, 0) + path.attributes["d"].count("M")
    return counts


def test_few_nodes_are_drawn_device_by_device() -> None:
    page = drawn(example_proof())
    for cls in ("wide", "narrow"):
        picture = page.one("svg", class_=cls)
        tips = [t.text for t in picture.all("title")]
        assert tips[0] == "Topology"
        assert len([t for t in tips if "GPU" in t]) == 16
        assert tips.count("gpu-001 GPU 4: finetune, replica 0") == 1
        assert tips.count("gpu-002 GPU 7: free") == 1
        for said in ("gpu-001", "gpu-002", "cp-1", "cp-3", "store object", "NVSwitch domain, 8 GPUs"):
            assert said in picture.text


def test_every_network_reaches_what_it_is_attached_to() -> None:
    page = drawn(example_proof())
    picture = page.one("svg", class_="wide")
    for said in (
        "ib: InfiniBand, compute, 400 Gb/s a port, not oversubscribed, 2 subnet managers",
        "oob: Ethernet, out-of-band, 1 Gb/s a port",
    ):
        assert said in picture.text
    dots = [c.attributes["class"] for c in picture.all("circle")]
    assert sorted(dots) == sorted(["f-compute", *["f-storage"] * 3, *["f-in-band"] * 2, *["f-out-of-band"] * 2])


@pytest.mark.parametrize("nodes", [5, 128, 160])
def test_many_nodes_get_a_tile_each(nodes: int) -> None:
    picture = drawn(proof_of(nodes)).one("svg", class_="wide")
    assert squares(picture) == {"k1": (nodes - 2) * 8, "free": 16}
    assert "every node" in picture.text


def test_a_domain_over_several_nodes_is_outlined() -> None:
    picture = drawn(proof_of(36, gpus=4, domain=72)).one("svg", class_="wide")
    assert "NVSwitch domain, 72 GPUs over 18 nodes" in picture.text
    outlines = [r for r in picture.all("rect", class_="domain") if r.children]
    assert len(outlines) == 2


def test_beyond_that_alike_nodes_share_a_tile_and_none_is_lost() -> None:
    picture = drawn(proof_of(900)).one("svg", class_="wide")
    assert "gpu-[001-898]: 8 × chat" in picture.text
    assert "gpu-[899-900]: 8 × free" in picture.text
    assert "× 898 A" in picture.text


def test_the_text_says_where_everything_is() -> None:
    said = drawn(example_proof()).one("details").text
    assert "gpu gpu-[001-002] worker, hgx-h100-sxm-8, 16 × h100-sxm-80gb" in said
    assert "replica 0: gpu-001 GPUs 0-3; replica 1: gpu-002 GPUs 0-3" in said
    assert "object object, durable, 200 TB, read 20 GB/s, write 10 GB/s storage" in said


def test_without_a_plan_nothing_is_placed_and_it_says_so() -> None:
    page = drawn(replace(example_proof(), plan=None))
    assert "Nothing could be planned, so no placement is shown." in page.text
    assert "chat, not placed" in page.text


def test_without_pools_there_is_no_drawing() -> None:
    bare = example_document("apiVersion: clusterwright/v1alpha1\ncluster: bare\n")
    assert render_topology(replace(example_proof(), document=bare)) == ""
    assert render_topology(replace(example_proof(), document=None)) == ""


@pytest.mark.parametrize(
    ("numbers", "folded"), [((), ""), ((3,), "3"), ((0, 1, 2, 3), "0-3"), ((0, 2, 3, 7), "0, 2-3, 7")]
)
def test_numbers_fold_into_ranges(numbers: tuple[int, ...], folded: str) -> None:
    assert ranges(numbers) == folded
