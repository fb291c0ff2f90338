"""The tables, their version, and the guard that keeps history append-only."""

from __future__ import annotations

from typing import Final

from sqlalchemy import JSON, Column, Float, Integer, MetaData, String, Table

#: Grows with every change of the tables below; a file of another version is refused, never guessed at.
SCHEMA_VERSION: Final = 1

metadata = MetaData()

versions = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("queue", String, nullable=False),
    Column("state", String, nullable=False),
    Column("submitted_at_s", Float, nullable=False),
    Column("ended_at_s", Float),
    Column("document", JSON, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("ended_by", String),
    Column("admitted_at_s", Float, nullable=False),
    Column("ended_at_s", Float),
    Column("document", JSON, nullable=False),
)

nodes = Table(
    "nodes",
    metadata,
    Column("name", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("virtual", Integer, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("document", JSON, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("at_s", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("job", String, index=True),
    Column("epoch", Integer),
    Column("node", String),
    Column("data", JSON, nullable=False),
    sqlite_autoincrement=True,
)

#: Statements run once after the tables exist.
GUARDS: Final = (
    "CREATE TRIGGER IF NOT EXISTS events_keep BEFORE DELETE ON events "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS events_stay BEFORE UPDATE ON events "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END",
)
