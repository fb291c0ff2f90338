"""State in one SQLite file.

Write-ahead log with synchronous=FULL: a commit survives kill -9 at any point and loss of power (SQLite, 'WAL mode' and
PRAGMA synchronous). One writer at a time; the control plane holds its own lock.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import Connection, Table, create_engine, event, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import StaticPool

from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.jobs import Attempt, Event, Job, JobId, Node
from clusterwright.ports.stores import NewEvent, Snapshot
from clusterwright.store import tables
from clusterwright.store.write_ahead import configure

#: Free bytes below which a full disk is named as what to mend: SQLite's log grows up to about 4 MiB (PRAGMA
#: wal_autocheckpoint: 1000 pages of 4 KiB).
LITTLE: Final = 4 * 2**20

_JOB = TypeAdapter(Job)
_ATTEMPT = TypeAdapter(Attempt)
_NODE = TypeAdapter(Node)


class SqliteStore:
    """`Store` in a file that is made if it is not there.

    Raises:
        InvalidInput: when the file has another schema version.
        Unavailable: when it is not a database or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = create_engine(f"sqlite:///{path}", poolclass=StaticPool)
        event.listen(self._engine, "connect", _set_pragmas)
        try:
            with self._engine.begin() as connection:
                self._prepare(connection)
        except DatabaseError as error:
            raise Unavailable(f"{path}: cannot be used as state: {error.orig}") from error
        self._saved_attempts: dict[tuple[JobId, int], Attempt] = {}

    def _prepare(self, connection: Connection) -> None:
        tables.metadata.create_all(connection)
        for statement in tables.GUARDS:
            connection.exec_driver_sql(statement)
        found = connection.execute(select(tables.versions.c.version)).scalar_one_or_none()
        if found is None:
            connection.execute(insert(tables.versions).values(version=tables.SCHEMA_VERSION))
        elif found != tables.SCHEMA_VERSION:
            raise InvalidInput(f"{self._path} has schema version {found}, this version reads {tables.SCHEMA_VERSION}")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except OperationalError as error:  # SQLite result codes FULL, IOERR, CANTOPEN, READONLY, BUSY …
            raise Unavailable(f"{self._path}: the state cannot be used: {error.orig}{_help(self._path)}") from error

    def load(self) -> Snapshot:
        """See `Store.load`."""
        with self._transaction() as connection:
            attempts: dict[str, list[Attempt]] = {}
            query = select(tables.attempts.c.job, tables.attempts.c.document)
            for job, document in connection.execute(query.order_by(tables.attempts.c.number)):
                attempts.setdefault(job, []).append(_ATTEMPT.validate_python(document))
            rows = connection.execute(select(tables.jobs.c.document)).scalars()
            jobs = [_JOB.validate_python({**d, "attempts": ()}) for d in rows]
            nodes = connection.execute(select(tables.nodes.c.document).order_by(tables.nodes.c.position)).scalars()
            found_nodes = tuple(_NODE.validate_python(d) for d in nodes)
        full = [replace(j, attempts=tuple(attempts.get(j.id, ()))) for j in jobs]
        self._saved_attempts = {(j.id, a.number): a for j in full for a in j.attempts}
        return Snapshot(tuple(sorted(full, key=lambda j: (j.submitted_at_s, len(j.id), j.id))), found_nodes)

    def commit(self, *, jobs: Sequence[Job] = (), nodes: Sequence[Node] = (), events: Sequence[NewEvent] = ()) -> int:
        """See `Store.commit`."""
        changed = [(j.id, a) for j in jobs for a in j.attempts if self._saved_attempts.get((j.id, a.number)) != a]
        with self._transaction() as connection:
            _upsert(connection, tables.jobs, [_job_row(j) for j in jobs])
            _upsert(connection, tables.attempts, [_attempt_row(j, a) for j, a in changed])
            _upsert(connection, tables.nodes, [_node_row(connection, n) for n in nodes])
            if events:
                connection.execute(insert(tables.events), [_event_row(e) for e in events])
            last = connection.execute(select(func.max(tables.events.c.seq))).scalar_one_or_none()
        self._saved_attempts.update({(j, a.number): a for j, a in changed})
        return int(last or 0)

    def forget_nodes(self, names: Sequence[str]) -> None:
        """See `Store.forget_nodes`."""
        with self._transaction() as connection:
            connection.execute(tables.nodes.delete().where(tables.nodes.c.name.in_(names)))

    def events(self, after: int = 0, *, job: JobId | None = None, limit: int = 10_000) -> tuple[Event, ...]:
        """See `Store.events`."""
        query = select(tables.events).where(tables.events.c.seq > after).order_by(tables.events.c.seq).limit(limit)
        if job is not None:
            query = query.where(tables.events.c.job == job)
        with self._transaction() as connection:
            return tuple(
                Event(r.seq, r.at_s, r.kind, None if r.job is None else JobId(r.job), r.epoch, r.node, r.data)
                for r in connection.execute(query)
            )

    def close(self) -> None:
        """See `Store.close`."""
        self._engine.dispose()


def _help(path: Path) -> str:
    """What to do where the disk is full: a commit needs a few pages and a little more for the log."""
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(path.parent).free
        if free < LITTLE:
            return f" ({free} bytes are free in {path.parent}: free some space there; `cw down` works all the same)"
    return ""


def _set_pragmas(connection: Any, _record: object) -> None:
    configure(connection, wait_s=5)


def _upsert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    statement = insert(table)
    keys = [c.name for c in table.primary_key]
    kept = {c.name: statement.excluded[c.name] for c in table.columns if c.name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=kept), rows)


def _job_row(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.spec.name,
        "queue": job.spec.queue,
        "state": job.state.value,
        "submitted_at_s": job.submitted_at_s,
        "ended_at_s": job.ended_at_s,
        "document": asdict(replace(job, attempts=())),
    }


def _attempt_row(job: JobId, attempt: Attempt) -> dict[str, Any]:
    return {
        "job": job,
        "number": attempt.number,
        "epoch": attempt.epoch,
        "state": attempt.state.value,
        "ended_by": attempt.end and attempt.end.value,
        "admitted_at_s": attempt.admitted_at_s,
        "ended_at_s": attempt.ended_at_s,
        "document": asdict(attempt),
    }


def _node_row(connection: Connection, node: Node) -> dict[str, Any]:
    position = connection.execute(
        select(tables.nodes.c.position).where(tables.nodes.c.name == node.spec.name)
    ).scalar_one_or_none()
    if position is None:
        position = connection.execute(select(func.count()).select_from(tables.nodes)).scalar_one()
    return {
        "name": node.spec.name,
        "position": position,
        "state": node.state.value,
        "virtual": int(node.spec.virtual),
        "gpus": node.spec.gpus,
        "incarnation": node.incarnation,
        "document": asdict(node),
    }


def _event_row(new: NewEvent) -> dict[str, Any]:
    return {
        "at_s": new.at_s,
        "kind": new.kind,
        "job": new.job,
        "epoch": new.epoch,
        "node": new.node,
        "data": dict(new.data),
    }
