"""Evidence in a directory: files named by their digest, and an SQLite index that only grows.

    DIR/objects/ab/cdef…   a raw output or a record, named by the SHA-256 of its bytes
    DIR/index.sqlite       the chain in order, with the columns that lists and searches need

A file is written beside its place, flushed to disk and renamed before the index names it: after kill -9 there may be a
file that nothing names, never a name without its file.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from sqlalchemy import JSON, Column, Integer, MetaData, String, Table, create_engine, event, insert, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import StaticPool

from clusterwright.lib.commitments import SALT, canonical, digest_of
from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable
from clusterwright.model.records import ORIGIN, Record, find_faults, parse_record, record_values, seal
from clusterwright.ports.evidence import Appended
from clusterwright.store.write_ahead import configure

#: Grows with every change of the table below; another version is refused.
SCHEMA_VERSION: Final = 1
_PIECE: Final = 1024 * 1024

_metadata = MetaData()
_versions = Table("schema_version", _metadata, Column("version", Integer, primary_key=True))
_index = Table(
    "records",
    _metadata,
    Column("sequence", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("previous", String, nullable=False, unique=True),
    Column("object", String, nullable=False),
    Column("content", String, nullable=False, unique=True),
    Column("added", String, nullable=False),
    Column("tool", String, index=True),
    Column("started", String, index=True),
    Column("ended", String),
    Column("nodes", JSON, nullable=False),
    Column("requirements", JSON, nullable=False),
)
_GUARDS: Final = (
    "CREATE TRIGGER IF NOT EXISTS records_keep BEFORE DELETE ON records "
    "BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS records_stay BEFORE UPDATE ON records "
    "BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END",
)


class EvidenceDirectory:
    """`EvidenceStore` in a directory.

    Args:
        path: the directory.
        create: make it when it is not there.

    Raises:
        InvalidInput: when there is none and `create` is not set, or it has another schema version.
        Unavailable: when it cannot be used.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self._path = path
        if not create and not (path / "index.sqlite").is_file():
            raise InvalidInput(Problem(Place(str(path)), "", "holds no evidence", "cw evidence add makes it"))
        try:
            (path / "objects").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"{path}: cannot be used for evidence: {error.strerror or error}") from None
        self._engine = create_engine(f"sqlite:///{path / 'index.sqlite'}", poolclass=StaticPool)
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        try:
            with self._engine.begin() as connection:
                _metadata.create_all(connection)
                for statement in _GUARDS:
                    connection.exec_driver_sql(statement)
                found = connection.execute(select(_versions.c.version)).scalar_one_or_none()
                if found is None:
                    connection.execute(insert(_versions).values(version=SCHEMA_VERSION))
        except DatabaseError as error:
            raise Unavailable(f"{path}: cannot be used for evidence: {error.orig}") from error
        if found not in (None, SCHEMA_VERSION):
            raise InvalidInput(f"{path} has schema version {found}, this version reads {SCHEMA_VERSION}")

    def keep(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """See `EvidenceStore.keep`."""
        digest, size = hashlib.sha256(), 0
        try:
            handle, name = tempfile.mkstemp(dir=self._path / "objects", prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as stream:
                    for chunk in chunks:
                        digest.update(chunk)
                        size += len(chunk)
                        stream.write(chunk)
                    stream.flush()
                    os.fsync(stream.fileno())
                self._place(name, digest.hexdigest())
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            raise Unavailable(f"{self._path}: cannot keep evidence: {error.strerror or error}") from None
        return f"sha256:{digest.hexdigest()}", size

    def raw(self, digest: str) -> Iterator[bytes]:
        """See `EvidenceStore.raw`."""
        found = hashlib.sha256()
        try:
            with self._object(digest).open("rb") as stream:
                while piece := stream.read(_PIECE):
                    found.update(piece)
                    yield piece
        except OSError as error:
            raise InvalidInput(f"{self._object(digest)} cannot be read: {error.strerror or error}") from None
        if f"sha256:{found.hexdigest()}" != digest:
            raise InvalidInput(f"{self._object(digest)} was altered: its digest is another")

    def append(self, content: Any, added: str, same: str = "") -> Appended:
        """See `EvidenceStore.append`."""
        same = same or digest_of(canonical(content))
        try:
            with self._engine.begin() as connection:
                there = connection.execute(select(_index.c.object).where(_index.c.content == same)).scalar_one_or_none()
                if there is not None:
                    return Appended(self._read(there), was_there=True)
                last = connection.execute(
                    select(_index.c.sequence, _index.c.id).order_by(_index.c.sequence.desc()).limit(1)
                ).one_or_none()
                record = seal(
                    content,
                    sequence=1 if last is None else last.sequence + 1,
                    previous=ORIGIN if last is None else last.id,
                    salts=lambda: secrets.token_hex(SALT),
                )
                name, _ = self.keep([_write(record)])
                connection.execute(insert(_index).values(**_columns(record, name, same, added)))
        except DatabaseError as error:
            raise Unavailable(f"{self._path}: evidence cannot be added: {error.orig}") from error
        return Appended(record, was_there=False)

    def records(self) -> Iterator[Record]:
        """See `EvidenceStore.records`."""
        for row in self._rows():
            yield self._read(row["object"])

    def find_faults(self) -> list[str]:
        """See `EvidenceStore.find_faults`."""
        faults, records = [], []
        rows = self._rows()
        for row in rows:
            try:
                record = self._read(row["object"])
            except InvalidInput as error:
                faults.append(f"record {row['sequence']}: {error.problems[0].message}")
                continue
            records.append(record)
            if (record.id, record.previous, record.sequence) != (row["id"], row["previous"], row["sequence"]):
                faults.append(f"record {row['sequence']}: the index says something else than its file")
            faults += self._raw_faults(record)
        if len(records) == len(rows):
            faults += find_faults(records)
        return faults

    def close(self) -> None:
        """See `EvidenceStore.close`."""
        self._engine.dispose()

    def _rows(self) -> list[dict[str, Any]]:
        try:
            with self._engine.begin() as connection:
                rows = connection.execute(select(_index).order_by(_index.c.sequence)).mappings()
                return [dict(row) for row in rows]
        except DatabaseError as error:
            raise Unavailable(f"{self._path}: the index cannot be read: {error.orig}") from error

    def _raw_faults(self, record: Record) -> list[str]:
        faults = []
        for raw in record.content.get("raw", ()):
            try:
                for _ in self.raw(raw["digest"]):
                    pass
            except InvalidInput as error:
                faults.append(f"record {record.sequence}: {raw['name']}: {error.problems[0].message}")
        return faults

    def _read(self, name: str) -> Record:
        data = b"".join(self.raw(name))
        try:
            return parse_record(json.loads(data))
        except ValueError as error:
            raise InvalidInput(f"{self._object(name)}: {error}") from None

    def _object(self, digest: str) -> Path:
        hex_digits = digest.removeprefix("sha256:")
        if len(hex_digits) != 64 or not all(c in "0123456789abcdef" for c in hex_digits):
            raise InvalidInput(f"'{digest[:80]}' is no digest")
        return self._path / "objects" / hex_digits[:2] / hex_digits[2:]

    def _place(self, name: str, hex_digits: str) -> None:
        """Give a finished file its place; one that stands there is the same file, unless it was altered."""
        target = self._object(hex_digits)
        target.parent.mkdir(exist_ok=True)
        os.chmod(name, 0o444)
        os.replace(name, target)
        for folder in (target.parent, target.parent.parent):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _write(record: Record) -> bytes:
    return (json.dumps(record_values(record), indent=1) + "\n").encode()


def _columns(record: Record, name: str, same: str, added: str) -> dict[str, Any]:
    evidence = record.content.get("evidence", {})
    return {
        "sequence": record.sequence,
        "id": record.id,
        "previous": record.previous,
        "object": name,
        "content": same,
        "added": added,
        "tool": evidence.get("tool"),
        "started": evidence.get("started"),
        "ended": evidence.get("ended"),
        "nodes": evidence.get("nodes", []),
        "requirements": evidence.get("requirements", []),
    }


def _configure(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun by us, so that two writers wait for each other
    configure(connection, wait_s=30)
