from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.jobs import (
    AgentIdentity,
    Attempt,
    AttemptState,
    Exclusion,
    Exit,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
    RankRun,
    TaskGroup,
    TaskPlacement,
)
from clusterwright.ports.stores import NewEvent
from clusterwright.store.sqlite import SqliteStore

AGENT = AgentIdentity("n1", 2, "boot", 10, 999)


def attempt(number: int = 1) -> Attempt:
    ranks = (RankRun(0, 0, 0, 11, 12, 1.5, 2.5, Exit(signal=9)), RankRun(1, 0, 1))
    tasks = (TaskPlacement("main", 0, "n1", ("VIRTUAL-0", "VIRTUAL-1")),)
    return Attempt(number, number, AttemptState.RUNNING, tasks, ranks, (AGENT,), "h100", 4000, 1.0, lost=(AGENT,))


def job(number: int = 1, *attempts: Attempt) -> Job:
    group = TaskGroup(("echo", "a b", "'; DROP TABLE jobs; --", "ü\n"), 2, 8, min_count=1, env={"A": "1"})
    spec = JobSpec("name", (group,), env={"B": "=2"}, exclude=("n9",))
    return Job(
        JobId(str(number)),
        spec,
        JobState.RUNNING,
        "/ckpt",
        1.0,
        2.0,
        attempts=attempts,
        exclusions=(Exclusion("n1", 1),),
    )


def node(name: str) -> Node:
    return Node(NodeSpec(name, 2, "h100", topology=("row", "rack")), NodeState.IDLE, ("VIRTUAL-0",), agent=AGENT)


def test_what_is_committed_is_loaded_again_in_order(tmp_path: Path) -> None:
    path = tmp_path / "it's a; state.db"
    store = SqliteStore(path)
    jobs = [job(n, *[attempt(a) for a in range(1, n)]) for n in (1, 2, 10)]
    nodes = [node("n2"), node("n1")]
    store.commit(jobs=jobs, nodes=nodes)
    store.close()
    again = SqliteStore(path).load()
    assert again.jobs == tuple(jobs)
    assert again.nodes == tuple(nodes)


def test_a_commit_replaces_rows_and_keeps_other_attempts(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    first = job(1, attempt(1), attempt(2))
    store.commit(jobs=[first])
    ended = replace(first.attempts[1], state=AttemptState.ENDED)
    changed = replace(first, state=JobState.SUCCEEDED, attempts=(first.attempts[0], ended))
    store.commit(jobs=[changed])
    assert store.load().jobs == (changed,)


def test_events_are_numbered_filtered_and_limited(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    assert store.commit(events=[NewEvent("a", 1.0, JobId("1"), data={"x": [1, None]}), NewEvent("b", 2.0)]) == 2
    assert store.commit(events=[NewEvent("c", 3.0, JobId("1"), epoch=4, node="n1")]) == 3
    assert [(e.seq, e.kind) for e in store.events()] == [(1, "a"), (2, "b"), (3, "c")]
    assert [e.kind for e in store.events(1, job=JobId("1"))] == ["c"]
    assert [e.kind for e in store.events(limit=1)] == ["a"]
    assert store.events()[0].data == {"x": [1, None]}


def test_history_cannot_be_changed_or_removed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.commit(events=[NewEvent("a", 1.0)])
    store.close()
    connection = sqlite3.connect(tmp_path / "state.db")
    for statement in ("DELETE FROM events", "UPDATE events SET kind = 'b'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_a_failing_commit_changes_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    unstorable = NewEvent("b", 1.0, data={"x": object()})
    with pytest.raises(Exception, match="JSON serializable"):
        store.commit(jobs=[job()], events=[unstorable])
    assert store.load().jobs == ()


def test_nodes_can_be_forgotten(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.commit(nodes=[node("n1"), node("n2")])
    store.forget_nodes(["n1"])
    assert [n.spec.name for n in store.load().nodes] == ["n2"]


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "state.db").close()
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("UPDATE schema_version SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(InvalidInput, match="schema version 99, this version reads 1"):
        SqliteStore(tmp_path / "state.db")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_text("not a database, just a long enough text to be looked at" * 20)
    with pytest.raises(Unavailable, match="cannot be used as state"):
        SqliteStore(tmp_path / "state.db")
