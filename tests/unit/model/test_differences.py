"""What two documents say differently, and one with some of what the other says."""

from __future__ import annotations

import pytest

from builders.plans import BASE, document
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.differences import adopt, find_differences


def test_a_document_does_not_differ_from_itself() -> None:
    assert find_differences(document(), document()) == ()


def test_every_path_is_named_once_with_both_texts() -> None:
    changed = document(
        BASE, "pools.gpu.price=$3/GPU-h", "workloads.chat.serve.parallel.tp=8", "economics.alternatives.api="
    )
    found = {said.name: (said.first, said.second) for said in find_differences(document(), changed)}
    assert set(found) == {"pools.gpu.price", "workloads.chat.serve.parallel.tp", "economics.alternatives.api"}
    assert found["pools.gpu.price"] == ("$2.40/GPU-h", "$3/GPU-h")
    assert found["workloads.chat.serve.parallel.tp"] == ("4", "8")
    first, second = found["economics.alternatives.api"]
    assert "kind: model-api" in str(first)
    assert second is None


def test_adopting_all_paths_makes_the_other_design() -> None:
    one, two = document(), document(BASE, "pools.gpu.price=$3/GPU-h", "pools.spare.nodes=s-1", "economics=")
    made = adopt(one, two, [said.path for said in find_differences(one, two)])
    assert made.architecture == two.architecture
    assert find_differences(made, two) == ()
    assert made.places.has("pools.spare.nodes")
    assert not made.places.has("economics.utilisation")


def test_adopting_one_path_changes_that_one() -> None:
    one, two = document(), document(BASE, "pools.gpu.price=$3/GPU-h", "workloads.chat.serve.rate=9 req/s")
    made = adopt(one, two, [("pools", "gpu", "price")])
    assert [said.name for said in find_differences(one, made)] == ["pools.gpu.price"]
    assert one.architecture.pools["gpu"].price != made.architecture.pools["gpu"].price


def test_a_mixture_that_is_no_architecture_is_refused() -> None:
    two = document(BASE, "pools.gpu=", "workloads.chat=", "workloads.finetune=")
    with pytest.raises(InvalidInput, match="nodes"):
        adopt(document(), two, [("pools", "gpu", "nodes")])
