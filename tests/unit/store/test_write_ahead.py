"""Setting up a connection waits for another one that is at the same."""

import sqlite3
import threading

import pytest

from clusterwright.store.write_ahead import configure


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new.sqlite"


def connect(path):
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def test_a_writer_at_a_new_file_is_waited_for(path):
    first, second = connect(path), connect(path)
    first.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, first.execute, ["COMMIT"]).start()
    configure(second, wait_s=30)
    assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert second.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_writer_that_does_not_end_is_an_error(path):
    first, second = connect(path), connect(path)
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        configure(second, wait_s=0.1)


def test_what_is_no_database_is_an_error_at_once(path):
    path.write_text("no database, " * 1000)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        configure(connect(path), wait_s=30)
