"""What no job or node may be, said at once and in full."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import MAX_GPUS, MAX_RANKS, MAX_TASKS, JobSpec, NodeSpec, TaskGroup


@pytest.mark.parametrize("field", ["name", "queue", "user", "gpu_model"])
def test_what_is_shown_and_stored_is_text(field: str) -> None:
    values: dict[str, Any] = {"name": "job", "groups": (TaskGroup(("true",)),), field: "a\udcff"}
    with pytest.raises(InvalidInput, match="must be text that UTF-8 can hold"):
        JobSpec(**values)


def test_arguments_and_variables_may_be_any_bytes() -> None:
    assert (
        JobSpec(
            "j",
            (
                TaskGroup(
                    ("cat", "\udcff"),
                ),
            ),
            env={"A": "\udcff"},
        ).env["A"]
        == "\udcff"
    )


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"gpus": MAX_GPUS + 1}, f"gpus is {MAX_GPUS + 1}, must be from 0 to {MAX_GPUS}"),
        ({"gpus": -1}, "gpus is -1"),
        ({"ranks": MAX_RANKS + 1}, f"ranks is {MAX_RANKS + 1}, must be from 1 to {MAX_RANKS}"),
        ({"count": MAX_TASKS + 1}, f"count is {MAX_TASKS + 1}, must be from 1 to {MAX_TASKS}"),
    ],
)
def test_sizes_have_bounds(values: dict[str, int], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        JobSpec("j", (TaskGroup(("true",), **values),))
    assert JobSpec("j", (TaskGroup(("true",), MAX_TASKS, MAX_GPUS, ranks=MAX_RANKS),))


def test_a_node_has_at_most_so_many_gpus() -> None:
    with pytest.raises(InvalidInput, match=f"node n1: gpus is 200000000, must be from 0 to {MAX_GPUS}"):
        NodeSpec("n1", 200_000_000)
